/* fusion_missed.c: patterns that nearly fused, and why they did not (runtime.md 1.13).
 *
 * Looks at a module in which the patterns were fused and regions are not yet made, since those
 * swallow the adds. Only what a change to the model would fuse is listed: a sum that goes on as the
 * residual stream, or a product without a bias whose reader is not an activation, is as it should
 * be. What the device has no fused op for, or an option forbids, is not missed. */
#include "pass/fuse_shared.h"
#include "pass/fusion_report.h"

struct search {
    const struct pass_run *run;
    const struct fuse *f;
    struct fusion_report *out;
    struct diag *diag;
};

static rlx_status miss(struct search *s, const struct ir_node *n, enum fusion_reason why,
                       const char *hint)
{
    struct fusion_report *out = s->out;

    if (!vec_room(out->mem, &out->missed))
        return diag_no_memory(s->diag, sizeof(struct fusion_missed));
    out->missed.at[out->missed.len++] = (struct fusion_missed){
        .graph = s->f->g->id,
        .node = ir_id(s->f->g, n),
        .op = n->op,
        .label = n->label,
        .reason = why,
        .hint = hint,
    };
    return RLX_OK;
}

/* The only reader of n; NULL: there are others, or none. */
static const struct ir_node *only_reader(const struct fuse *f, const struct ir_node *n)
{
    ir_value id = ir_id(f->g, n);

    return f->uses[id] == 1 && f->user[id] != RLX_NO_VALUE ? fuse_node(f, f->user[id]) : NULL;
}

static ir_dim width_of(const struct ir_node *n)
{
    return n->type.dim[n->type.rank - 1];
}

/* ---- bias and activation ---- */

/* A product, the add that reads it, and what is added. */
static rlx_status bias_missed(struct search *s, const struct ir_node *product,
                              const struct ir_node *add, ir_value bias)
{
    const struct ir_type *b = ir_type_of(s->f->g, bias);
    bool row = fuse_is_row(b, width_of(product)), full = type_same(b, &product->type);

    if (row && only_reader(s->f, product) != add)
        return miss(s, product, FUSION_MULTI_CONSUMER,
                    "let only the bias add read the product, or read the sum instead");
    if (row && b->rank > product->type.rank)
        return miss(s, product, FUSION_BIAS_RANK, "give the bias the shape [n]");
    if (row)
        return miss(s, product, FUSION_NOT_FUSED, "write the state it reads after the bias add");
    if (!s->f->is_static[bias] || b->rank < 2 || only_reader(s->f, product) != add)
        return RLX_OK; /* a residual, or an offset */
    if (full || b->dim[b->rank - 1] == width_of(product))
        return miss(s, product, FUSION_BIAS_RANK, "give the bias the shape [n]");
    return RLX_OK;
}

static rlx_status search_add(struct search *s, const struct ir_node *n)
{
    for (int i = 0; i < 2; i++) {
        const struct ir_node *product = fuse_node(s->f, n->in[i]);
        if (product->op == RLX_OP_matmul && fuse_other(n, i) != n->in[i])
            return bias_missed(s, product, n, fuse_other(n, i));
    }
    return RLX_OK;
}

/* Is n the gate of a SwiGLU? Those are looked at as a whole. */
static bool is_gate(const struct fuse *f, const struct ir_node *n)
{
    const struct ir_node *reader = only_reader(f, n);

    return n->op == RLX_OP_silu && reader && reader->op == RLX_OP_mul;
}

static rlx_status search_product(struct search *s, const struct ir_node *n)
{
    const struct ir_node *reader = only_reader(s->f, n), *after;

    if (!reader)
        return RLX_OK;
    if (fuse_family(reader) == FAMILY_unary && !is_gate(s->f, reader))
        return miss(s, n, FUSION_NOT_A_BIAS_ADD,
                    "an activation is fused after a bias add; a bias of zeros will do");
    if (reader->op == RLX_OP_sub && fuse_node(s->f, reader->in[0]) == n &&
        fuse_is_row(ir_type_of(s->f->g, reader->in[1]), width_of(n)))
        return miss(s, n, FUSION_NOT_A_BIAS_ADD, "add the negated bias");
    after = reader->op == RLX_OP_cast ? only_reader(s->f, reader) : NULL;
    if (after && after->op == RLX_OP_add)
        for (int i = 0; i < 2; i++)
            if (fuse_node(s->f, after->in[i]) == reader &&
                fuse_is_row(ir_type_of(s->f->g, fuse_other(after, i)), width_of(n)))
                return miss(s, n, FUSION_NOT_A_BIAS_ADD, "give the bias the product's type");
    return RLX_OK;
}

static rlx_status search_fused(struct search *s, const struct ir_node *n)
{
    const struct ir_node *reader = only_reader(s->f, n);

    if (n->attr.fused_matmul_bias_act.activation == RLX_OP_none && reader &&
        fuse_family(reader) == FAMILY_unary && !is_gate(s->f, reader))
        return miss(s, n, FUSION_EPILOGUE, "name the activation in the fused op");
    return RLX_OK;
}

/* ---- norms ---- */

static rlx_status search_norm(struct search *s, const struct ir_node *n)
{
    const struct ir_node *sum = fuse_node(s->f, n->in[0]);

    if (sum->op != RLX_OP_add || only_reader(s->f, sum) != n ||
        !type_same(ir_type_of(s->f->g, sum->in[0]), &sum->type) ||
        !type_same(ir_type_of(s->f->g, sum->in[1]), &sum->type))
        return RLX_OK;
    return miss(s, n, FUSION_NOT_FUSED, "normalise the last axis, with no writer in between");
}

/* ---- SwiGLU ---- */

static rlx_status search_gate(struct search *s, const struct ir_node *mul)
{
    for (int i = 0; i < 2; i++) {
        const struct ir_node *silu = fuse_node(s->f, mul->in[i]);
        const struct ir_node *up = fuse_node(s->f, fuse_other(mul, i)), *gate;
        if (silu->op != RLX_OP_silu)
            continue;
        gate = fuse_node(s->f, silu->in[0]);
        if (gate->op != up->op || (gate->op != RLX_OP_matmul && gate->op != RLX_OP_narrow) ||
            (gate->op == RLX_OP_matmul && !fuse_may_concat(s->run)))
            continue;
        if (gate->in[0] != up->in[0])
            return miss(s, mul, FUSION_INPUTS_DIFFER,
                        gate->op == RLX_OP_matmul ? "let both products read one value"
                                                  : "take both halves of one value");
        if (gate == up || only_reader(s->f, silu) != mul || only_reader(s->f, gate) != silu ||
            only_reader(s->f, up) != mul)
            return miss(s, mul, FUSION_MULTI_CONSUMER,
                        "let nothing else read the gate, its silu or the other operand");
        return miss(s, mul, FUSION_NOT_FUSED,
                    gate->op == RLX_OP_matmul ? "give both weights one shape of rank 2"
                                              : "take the two halves of the last axis");
    }
    return RLX_OK;
}

/* ---- products of one input ---- */

static rlx_status search_shared(struct search *s)
{
    struct fuse_shared *by_left;
    struct arena arena;
    rlx_status status;

    arena_init(&arena, s->out->mem);
    status = fuse_shared_list(s->f, &arena, &by_left, s->diag);
    for (size_t i = 0; status == RLX_OK && i < s->f->g->node.len; i++) {
        const char *why = NULL;
        size_t fixed = 0;
        for (size_t k = 0; k < by_left[i].count; k++)
            fixed += s->f->is_static[fuse_node(s->f, by_left[i].product[k])->in[1]];
        if (fixed >= 2 && !fuse_shared_fits(s->f, &by_left[i], &why))
            status = miss(s, fuse_node(s->f, by_left[i].product[0]), FUSION_SHARED_COUNT, why);
    }
    arena_free(&arena);
    return status;
}

/* ---- all of it ---- */

static rlx_status search_node(struct search *s, const struct ir_node *n)
{
    const struct pass_run *p = s->run;
    bool products = !p->options->no_matmul_fusion && fuse_may(p, FAMILY_fused_matmul_bias_act);
    bool norms = !p->options->no_residual_fusion && fuse_may(p, FAMILY_fused_residual_norm);

    switch (n->op) {
    case RLX_OP_add: return products ? search_add(s, n) : RLX_OK;
    case RLX_OP_matmul: return products ? search_product(s, n) : RLX_OK;
    case RLX_OP_fused_matmul_bias_act: return products ? search_fused(s, n) : RLX_OK;
    case RLX_OP_layer_norm:
    case RLX_OP_rms_norm: return norms ? search_norm(s, n) : RLX_OK;
    case RLX_OP_mul: return fuse_may(p, FAMILY_fused_swiglu) ? search_gate(s, n) : RLX_OK;
    default: return RLX_OK;
    }
}

rlx_status fusion_find_missed(const struct ir_module *m, const struct target *t,
                              const struct pass_options *o, struct fusion_report *out,
                              struct diag *d)
{
    const struct pass_run run = {.target = t, .options = o, .diag = d};

    for (size_t i = 0; i < m->graph.len; i++) {
        struct fuse f;
        struct search s = {&run, &f, out, d};
        rlx_status status = fuse_open(&f, m->graph.at[i], d);

        for (size_t k = 0; status == RLX_OK && k < f.g->node.len; k++)
            status = search_node(&s, &f.g->node.at[k]);
        if (status == RLX_OK && fuse_may_concat(&run) && fuse_may(&run, FAMILY_matmul))
            status = search_shared(&s);
        fuse_close(&f);
        TRY(status);
    }
    return RLX_OK;
}
