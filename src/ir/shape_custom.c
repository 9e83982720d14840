/* shape_custom.c: the shape rule of registered ops: theirs to say, ours to check (ops-core 18.1).
 */
#include <inttypes.h>
#include <string.h>

#include "ir/custom.h"
#include "ir/shape_need.h"

#define MESSAGE_SIZE 256
#define FEW_INPUTS 8

/* An operand as the registered op sees it: sizes, no data. */
static rlx_status view_of(struct shape_call *c, int32_t operand, rlx_tensor *out)
{
    const struct ir_type *t = c->in[operand];
    uint64_t bytes;

    if (!type_is_static(t))
        return SHAPE_FAIL(c, UNBOUND_DIM,
                          "%s: %s is %s; a registered op needs sizes, not symbols, to tell its "
                          "result",
                          c->name, shape_operand_name(c, operand), type_text(c, t));
    if (!type_bytes(t, &bytes) || bytes > SIZE_MAX)
        return SHAPE_FAIL(c, LIMIT, "%s: %s is too large", c->name, shape_operand_name(c, operand));
    *out = (rlx_tensor){.dtype = t->dtype, .rank = t->rank, .bytes = (size_t)bytes};
    for (int32_t i = 0; i < t->rank; i++)
        out->dim[i] = t->dim[i];
    return RLX_OK;
}

/* What the registered op answered is not taken on trust. */
static rlx_status take_result(struct shape_call *c, const rlx_custom_op *op, const rlx_tensor *t)
{
    if ((unsigned)t->dtype >= RLX_DTYPE_count)
        return SHAPE_FAIL(c, GRAPH, "%s: \"%s\" gives a result of no element type (%d)", c->name,
                          op->name, (int)t->dtype);
    if (t->rank < 0)
        return SHAPE_FAIL(c, GRAPH, "%s: \"%s\" gives a result of rank %d", c->name, op->name,
                          t->rank);
    for (int32_t i = 0; i < t->rank && i < RLX_MAX_RANK; i++)
        if (t->dim[i] < 0)
            return SHAPE_FAIL(c, GRAPH, "%s: \"%s\" gives axis %d the size %" PRId64, c->name,
                              op->name, i, t->dim[i]);
    return shape_result(c, t->dtype, t->rank, t->dim);
}

static rlx_status ask(struct shape_call *c, const rlx_custom_op *op, rlx_tensor *in)
{
    const struct attr_custom *attr = &c->attr->custom;
    char message[MESSAGE_SIZE] = "";
    rlx_tensor out = {0};

    for (int32_t i = 0; i < c->in_count; i++)
        TRY(view_of(c, i, &in[i]));
    rlx_status s =
        op->infer(op->user, in, c->in_count, attr->attrs.ptr, attr->attrs.len, &out, message);
    message[MESSAGE_SIZE - 1] = 0;
    if (s == RLX_OK)
        return take_result(c, op, &out);
    if ((unsigned)s > RLX_ERROR_INTERNAL) /* no status of ours */
        s = RLX_ERROR_SHAPE;
    return diag_fail(c->diag, s, "%s: \"%s\": %s", c->name, op->name,
                     message[0] ? message : rlx_status_text(s));
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
    if (c->in_count > FEW_INPUTS && !(in = mem_alloc(c->mod->mem, bytes)))
        return diag_no_memory(c->diag, bytes);
    rlx_status s = ask(c, op, in);
    if (in != few)
        mem_free(c->mod->mem, in, bytes);
    return s;
}
