/* shape_custom.c: the shape rule of registered ops: theirs to say, ours to check
 * (ops-core.md 18.1).
 *
 * They know sizes, not symbols. Where an operand has symbols they are asked twice, with made-up
 * sizes: a size of the result that is one of an operand's both times is that symbol's, and all
 * others are unknown. That holds until sizes are bound and everything is inferred again. */
#include <string.h>

#include "ir/custom.h"
#include "ir/shape/shape_need.h"

#define FEW_INPUTS 8
#define MOST_SYMBOLS 64

/* ---- made-up sizes ---- */

/* Different for each symbol and trial, and multiples of what an op may want of them. */
static void make_up(int64_t *size, int trial, int64_t unit)
{
    static const int64_t step[2] = {3, 5};

    for (int64_t i = 0; i < MOST_SYMBOLS; i++)
        size[i] = unit * (step[trial] + (2 + trial) * i);
}

/* A size that no symbol tells is made up as well. */
static int64_t size_at(struct shape_call *c, ir_dim d, const int64_t *size)
{
    int64_t n = dim_is_static(d) ? d : -1;

    if (n < 0 && d != RLX_DIM_UNKNOWN)
        n = dim_eval(c->mod->dims, d, size, MOST_SYMBOLS, NULL);
    return n >= 0 ? n : size[MOST_SYMBOLS - 1];
}

static rlx_status operands_at(struct shape_call *c, const int64_t *size, rlx_tensor *in)
{
    for (int32_t i = 0; i < c->in_count; i++) {
        struct ir_type t = *c->in[i];
        for (int32_t k = 0; k < t.rank; k++)
            t.dim[k] = size_at(c, t.dim[k], size);
        if (!custom_tensor(&t, &in[i]))
            return SHAPE_FAIL(c, LIMIT, "%s: %s is too large", c->name, shape_operand_name(c, i));
    }
    return RLX_OK;
}

/* The dim of an operand that has these sizes in both trials. */
static ir_dim dim_of(struct shape_call *c, int64_t first, int64_t second,
                     const int64_t (*size)[MOST_SYMBOLS])
{
    for (int32_t i = 0; i < c->in_count; i++)
        for (int32_t k = 0; k < c->in[i]->rank; k++) {
            ir_dim d = c->in[i]->dim[k];
            if (!dim_is_static(d) && size_at(c, d, size[0]) == first &&
                size_at(c, d, size[1]) == second)
                return d;
        }
    return RLX_DIM_UNKNOWN;
}

/* Both trials, with sizes that are multiples of unit. */
static rlx_status try_sizes(struct shape_call *c, const rlx_custom_op *op, rlx_tensor *in,
                            int64_t unit, struct diag *d)
{
    const struct attr_custom *attr = &c->attr->custom;
    rlx_tensor out[2][CUSTOM_RESULTS];
    int64_t size[2][MOST_SYMBOLS];

    for (int i = 0; i < 2; i++) {
        make_up(size[i], i, unit);
        TRY(operands_at(c, size[i], in));
        TRY(custom_infer(op, in, c->in_count, &attr->attrs, out[i], d));
    }
    const rlx_tensor *a = &out[0][attr->result], *b = &out[1][attr->result];
    if (a->rank != b->rank || a->dtype != b->dtype)
        return diag_fail(d, RLX_ERROR_UNBOUND_DIM,
                         "custom op \"%s\": rank or type of result %lld depend on sizes, and an "
                         "operand has symbols",
                         op->name, (long long)attr->result);
    *c->out = (struct ir_type){.dtype = a->dtype, .rank = a->rank};
    for (int32_t i = 0; i < a->rank; i++)
        c->out->dim[i] = a->dim[i] == b->dim[i] ? a->dim[i]
                                                : dim_of(c, a->dim[i], b->dim[i],
                                                         (const int64_t(*)[MOST_SYMBOLS])size);
    return RLX_OK;
}

static rlx_status infer_symbolic(struct shape_call *c, const rlx_custom_op *op, rlx_tensor *in)
{
    static const int64_t unit[] = {64, 1};
    struct diag own;

    for (size_t i = 0; i < sizeof unit / sizeof unit[0]; i++) {
        diag_init(&own, NULL);
        if (try_sizes(c, op, in, unit[i], &own) == RLX_OK)
            return RLX_OK;
    }
    return diag_again(c->diag, &own.first, own.first.status);
}

/* ---- the rule ---- */

static rlx_status infer_static(struct shape_call *c, const rlx_custom_op *op, rlx_tensor *in)
{
    const struct attr_custom *attr = &c->attr->custom;
    rlx_tensor out[CUSTOM_RESULTS];

    for (int32_t i = 0; i < c->in_count; i++)
        if (!custom_tensor(c->in[i], &in[i]))
            return SHAPE_FAIL(c, LIMIT, "%s: %s is too large", c->name, shape_operand_name(c, i));
    TRY(custom_infer(op, in, c->in_count, &attr->attrs, out, c->diag));
    const rlx_tensor *t = &out[attr->result];
    return shape_result(c, t->dtype, t->rank, t->dim);
}

static bool is_static(const struct shape_call *c)
{
    for (int32_t i = 0; i < c->in_count; i++)
        if (!type_is_static(c->in[i]))
            return false;
    return true;
}

rlx_status shape_custom(struct shape_call *c)
{
    const struct attr_custom *attr = &c->attr->custom;
    const rlx_str name = {attr->name.ptr, attr->name.len};
    const rlx_custom_op *op = custom_find(c->mod->customs, name);
    rlx_tensor few[FEW_INPUTS], *in = few;
    size_t bytes = (size_t)c->in_count * sizeof *in;

    if (!op || !op->infer)
        return SHAPE_FAIL(c, GRAPH,
                          "%s: no op \"%.*s\" is registered: list it in the context's custom_ops",
                          c->name, STR_ARG(name));
    if (op->inputs != c->in_count)
        return SHAPE_FAIL(c, GRAPH, "%s: \"%s\" takes %d inputs, got %d", c->name, op->name,
                          op->inputs, c->in_count);
    if (attr->result < 0 || attr->result >= custom_results(op))
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: result is %lld; \"%s\" has results 0 to %d", c->name,
                          (long long)attr->result, op->name, custom_results(op) - 1);
    if (c->in_count > FEW_INPUTS && !(in = mem_alloc(c->mod->mem, bytes)))
        return diag_no_memory(c->diag, bytes);
    rlx_status s = is_static(c) ? infer_static(c, op, in) : infer_symbolic(c, op, in);
    if (in != few)
        mem_free(c->mod->mem, in, bytes);
    return s;
}
