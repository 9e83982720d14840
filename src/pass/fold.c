/* fold.c: what depends on constants alone is computed now.
 *
 *     %a = const f32[2] {1 2}
 *     %b = exp %a                =>      %b = const f32[2] {2.7182817 7.3890562}
 *
 * Needs:  an evaluator in the options; without one nothing is folded.
 * Keeps:  types, order, labels. Leaves: the operands; dce takes them.
 * Every pure op is folded, in its declared type, by the kernels that would have run it. A result
 * larger than 64 KiB is folded only where it takes no more room than its operands did. What the
 * evaluator declines stays, so that the run can say what is wrong with it. */
#include "pass/facts.h"
#include "pass/pass.h"

#define SMALL_BYTES (64u << 10)

static bool may_fold(const struct ir_graph *g, const struct ir_node *n, uint64_t *bytes)
{
    uint64_t given = 0;

    if (n->in_count == 0 || !node_is_pure(g->mod, n) || node_has_graphs(n) ||
        !node_attrs_are_static(n) || !type_bytes(&n->type, bytes))
        return false;
    for (int32_t k = 0; k < n->in_count; k++) {
        const struct ir_node *c = ir_node(g, n->in[k]);
        if (c->op != RLX_OP_const)
            return false;
        given += c->attr.const_.data.len;
    }
    return *bytes <= (given > SMALL_BYTES ? given : SMALL_BYTES);
}

static void become_const(struct ir_node *n, const void *data, size_t len)
{
    struct ir_type type = n->type;

    n->op = RLX_OP_const;
    n->in_count = 0;
    attr_defaults(RLX_OP_const, &n->attr);
    n->attr.const_.dtype = type.dtype;
    n->attr.const_.shape = rlx_list_of(type.rank, type.dim);
    n->attr.const_.data = (struct ir_blob){data, len};
}

/* *done: false where the evaluator declined. */
static rlx_status evaluate(struct pass_run *p, struct ir_graph *g, struct ir_node *n, size_t bytes,
                           bool *done)
{
    struct arena *arena = &g->mod->arena;
    const void **in = arena_array(arena, const void *, (size_t)n->in_count);
    void *out = arena_alloc(arena, bytes, 64);
    struct diag own;

    if (!in || !out)
        return diag_no_memory(p->diag, bytes);
    for (int32_t k = 0; k < n->in_count; k++)
        in[k] = ir_node(g, n->in[k])->attr.const_.data.ptr;
    diag_init(&own, "fold");
    rlx_status s = p->options->eval(p->options->eval_user, g, n, in, out, &own);
    if (s == RLX_ERROR_MEMORY)
        return diag_fail(p->diag, s, "%s", own.first.message);
    *done = s == RLX_OK;
    if (*done)
        become_const(n, out, bytes);
    return RLX_OK;
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    if (!p->options->eval || p->options->no_fold)
        return RLX_OK;
    for (size_t i = 0; i < m->graph.len; i++) {
        struct ir_graph *g = m->graph.at[i];
        IR_EACH(n, g) {
            uint64_t bytes;
            bool done = false;
            if (!may_fold(g, n, &bytes) || bytes > SIZE_MAX)
                continue;
            TRY(evaluate(p, g, n, (size_t)bytes, &done));
            p->changes += done;
        }
    }
    return RLX_OK;
}

const struct pass pass_fold = {"fold", "compute what depends on constants alone", run};
