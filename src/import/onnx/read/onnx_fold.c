/* onnx_fold.c: what depends on known bytes alone is worked out while a model is read, by the
 * reference evaluator. Shape arithmetic with plain numbers ends here, and never becomes nodes. */
#include <string.h>

#include "import/onnx/read/onnx_scope.h"
#include "ir/eval/eval.h"

struct folding {
    struct onnx_call *c;
    size_t first;
    struct arena arena;
    struct eval_tensor *value; /* of the new nodes */
};

static bool is_small(const struct ir_type *t)
{
    int64_t count;

    return type_count(t, &count) && count <= ONNX_FOLD_LIMIT;
}

static bool is_known(const struct onnx_value *v)
{
    return v->data && is_small(&v->type);
}

/* Does the new node look at the elements of an input that is not known? */
static bool reads_unknown(const struct onnx_call *c, const struct ir_node *n)
{
    for (int32_t k = 0; k < n->in_count; k++)
        for (size_t i = 0; i < c->in_count; i++)
            if (c->in[i] && c->in[i]->node == n->in[k] && !is_known(c->in[i]))
                return true;
    return false;
}

/* Is what is read bytes, and are all new nodes of a kind that can be worked out, with small
 * results? Inputs of which only the type matters, as the second one of CastLike, need not be known.
 */
static bool can_fold(const struct onnx_call *c, size_t first)
{
    const struct ir_graph *g = c->f.g;
    bool any = false;

    for (size_t i = 0; i < c->in_count; i++)
        any |= c->in[i] && is_known(c->in[i]);
    for (size_t i = first; any && i < g->node.len; i++) {
        const struct ir_node *n = &g->node.at[i];
        if (op_is(n->op, OP_RANDOM | OP_WRITES) || op_info(n->op)->category == CATEGORY_CONTROL ||
            op_info(n->op)->family == FAMILY_leaf || !is_small(&n->type) || reads_unknown(c, n))
            return false;
    }
    return any;
}

static bool outputs_are_new(const struct onnx_call *c, size_t first)
{
    for (size_t i = 0; i < c->out_count; i++) {
        const struct onnx_value *v = &c->out[i];
        if (v->data || v->size || v->is_absent)
            continue;
        if (v->is_sequence || v->is_counted || v->node == RLX_NO_VALUE || (size_t)v->node < first)
            return false;
    }
    return true;
}

/* Bytes at any address as cells. */
static rlx_status load(struct folding *f, const struct ir_type *type, const void *data,
                       struct eval_tensor *out)
{
    uint64_t bytes;

    TRY(eval_tensor_new(&f->arena, type, out, f->c->f.diag));
    type_bytes(type, &bytes);
    void *copy = arena_alloc(&f->arena, (size_t)bytes, 16);
    if (!copy)
        return diag_no_memory(f->c->f.diag, (size_t)bytes);
    if (bytes)
        memcpy(copy, data, (size_t)bytes);
    eval_load(out, copy);
    return RLX_OK;
}

/* An operand from before: one of the inputs, made a node earlier. */
static rlx_status load_input(struct folding *f, ir_value v, struct eval_tensor *out)
{
    const struct onnx_call *c = f->c;

    for (size_t i = 0; i < c->in_count; i++)
        if (c->in[i] && c->in[i]->node == v)
            return load(f, &c->in[i]->type, c->in[i]->data, out);
    const struct ir_node *n = ir_node(c->f.g, v);
    if (n->op != RLX_OP_const)
        return RLX_ERROR_UNSUPPORTED;
    return load(f, &n->type, n->attr.const_.data.ptr, out);
}

#define MAX_OPERANDS 64

static rlx_status evaluate(struct folding *f, size_t i)
{
    const struct ir_graph *g = f->c->f.g;
    const struct ir_node *n = &g->node.at[i];
    struct eval_tensor *out = &f->value[i - f->first];
    const struct eval_tensor *in[MAX_OPERANDS];
    struct eval_tensor before[MAX_OPERANDS];

    if (n->op == RLX_OP_const)
        return load(f, &n->type, n->attr.const_.data.ptr, out);
    if (n->in_count > MAX_OPERANDS)
        return RLX_ERROR_UNSUPPORTED;
    for (int32_t k = 0; k < n->in_count; k++) {
        bool is_new = (size_t)n->in[k] >= f->first;
        if (!is_new)
            TRY(load_input(f, n->in[k], &before[k]));
        in[k] = is_new ? &f->value[(size_t)n->in[k] - f->first] : &before[k];
    }
    TRY(eval_tensor_new(&f->arena, &n->type, out, f->c->f.diag));
    TRY(eval_node(g, n, in, out, NULL, &f->arena, f->c->f.diag));
    eval_round(out);
    return RLX_OK;
}

static rlx_status keep(struct folding *f, struct onnx_value *v)
{
    const struct eval_tensor *t = &f->value[(size_t)v->node - f->first];
    uint64_t bytes;
    void *data;

    type_bytes(&t->type, &bytes);
    data = arena_alloc(onnx_arena(f->c), (size_t)bytes, 16);
    if (!data)
        return diag_no_memory(f->c->f.diag, (size_t)bytes);
    eval_store(t, data);
    v->type = t->type;
    v->data = data;
    return RLX_OK;
}

static rlx_status fold(struct folding *f)
{
    struct onnx_call *c = f->c;
    size_t count = c->f.g->node.len - f->first;

    f->value = arena_array(&f->arena, struct eval_tensor, count);
    if (!f->value)
        return diag_no_memory(c->f.diag, count * sizeof *f->value);
    for (size_t i = f->first; i < c->f.g->node.len; i++)
        TRY(evaluate(f, i));
    for (size_t i = 0; i < c->out_count; i++)
        if (c->out[i].node != RLX_NO_VALUE && !c->out[i].data) /* otherwise an input passed on */
            TRY(keep(f, &c->out[i]));
    return RLX_OK;
}

/* The nodes go; what was made of inputs among them is to be made again if it is asked for. */
static void drop_nodes(struct onnx_call *c, size_t first, size_t checks)
{
    for (size_t i = 0; i < c->in_count; i++)
        if (c->in[i] && c->in[i]->node != RLX_NO_VALUE && (size_t)c->in[i]->node >= first)
            c->in[i]->node = RLX_NO_VALUE;
    for (size_t i = 0; i < c->out_count; i++)
        c->out[i].node = RLX_NO_VALUE;
    c->f.g->node.len = first;
    c->f.g->mod->check.len = checks;
}

rlx_status onnx_fold(struct onnx_call *c, size_t first, size_t checks)
{
    struct folding f = {.c = c, .first = first};
    struct diag quiet, *diag = c->f.diag;

    if (!can_fold(c, first) || !outputs_are_new(c, first))
        return RLX_OK;
    diag_init(&quiet, "load");
    c->f.diag = &quiet;
    arena_init(&f.arena, c->f.g->mod->mem);
    rlx_status s = fold(&f);
    arena_free(&f.arena);
    c->f.diag = diag;
    if (s == RLX_OK)
        drop_nodes(c, first, checks);
    return s == RLX_ERROR_MEMORY ? diag_again(diag, &quiet.first, s) : RLX_OK;
}
