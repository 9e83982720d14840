/* shape_leaf.c: inputs, params, states and constants: as declared, if the declaration holds. */
#include "ir/shape/shape.h"

static rlx_status need_shape(struct shape_call *c, const rlx_list *shape, bool fixed,
                             bool unknown_ok)
{
    for (int32_t i = 0; i < shape->count; i++) {
        if (unknown_ok && shape->at[i] == RLX_DIM_UNKNOWN)
            continue;
        TRY(shape_need_size(c, "an entry of shape", shape->at[i]));
        if (fixed)
            TRY(shape_need_static(c, shape->at[i], "an entry of shape"));
    }
    return RLX_OK;
}

/* input, param, state. That no other leaf has the name is the graph's affair. */
rlx_status shape_leaf(struct shape_call *c)
{
    const struct attr_leaf *a = &c->attr->leaf;
    rlx_str name = {a->name.ptr, a->name.len};
    bool input = c->op == RLX_OP_input;

    if (name.len == 0)
        return SHAPE_FAIL(c, GRAPH, "%s: the name is empty", c->name);
    if (!str_is_utf8(name))
        return SHAPE_FAIL(c, GRAPH, "%s: the name \"%.*s\" is not UTF-8", c->name, STR_ARG(name));
    TRY(need_shape(c, &a->shape, !input, input));
    return shape_result(c, a->dtype, a->shape.count, a->shape.at);
}

rlx_status shape_const_(struct shape_call *c)
{
    const struct attr_const_ *a = &c->attr->const_;
    uint64_t bytes;

    TRY(need_shape(c, &a->shape, true, false));
    TRY(shape_result(c, a->dtype, a->shape.count, a->shape.at));
    if (!type_bytes(c->out, &bytes))
        return SHAPE_FAIL(c, LIMIT, "%s: the byte count of %s overflows 64 bits", c->name,
                          type_text(c, c->out));
    if (bytes != a->data.len)
        return SHAPE_FAIL(c, SIZE, "%s: %s takes %llu bytes, but %zu are given", c->name,
                          type_text(c, c->out), (unsigned long long)bytes, a->data.len);
    return RLX_OK;
}
