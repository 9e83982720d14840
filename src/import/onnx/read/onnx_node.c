/* onnx_node.c: what is known at load, as a node, where a node is wanted. */
#include <string.h>

#include "import/onnx/read/onnx_scope.h"

#define FEW 16 /* elements: a weight of no more is a constant, which passes may look into */

static ir_value constant(struct formula *f, const struct onnx_value *v, uint64_t bytes)
{
    struct ir_new_node n = {.op = RLX_OP_const};
    ir_value out = RLX_NO_VALUE;

    attr_defaults(RLX_OP_const, &n.attr);
    n.attr.const_.dtype = v->type.dtype;
    n.attr.const_.shape = formula_shape(&v->type);
    n.attr.const_.data = (struct ir_blob){v->data, (size_t)bytes};
    f->status = ir_add(f->g, &n, &out, f->diag); /* which copies the bytes, and so aligns them */
    return out;
}

static bool same_weight(const void *owner, uint32_t value, const void *key)
{
    const struct onnx_import *im = owner;
    const struct onnx_value *v = key;
    const struct onnx_weight *w = &im->out->weight.at[value];

    return w->data == v->data && type_same(ir_type_of(ir_entry(im->mod), w->node), &v->type);
}

/* One param for a weight, however many copies of the value there are: a loop's rounds have one
 * each. */
static ir_value param(struct onnx_import *im, struct formula *f, const struct onnx_value *v)
{
    struct ir_new_node n = {.op = RLX_OP_param};
    uint64_t hash = hash_bytes(&v->data, sizeof v->data);
    ir_value out = RLX_NO_VALUE;
    uint32_t found;

    if (map_find(&im->params, hash, same_weight, im, v, &found))
        return im->out->weight.at[found].node;
    attr_defaults(RLX_OP_param, &n.attr);
    n.attr.leaf.name = (struct ir_blob){v->name.ptr, v->name.len};
    n.attr.leaf.dtype = v->type.dtype;
    n.attr.leaf.shape = formula_shape(&v->type);
    f->status = ir_add(f->g, &n, &out, f->diag);
    if (f->status != RLX_OK)
        return out;
    if (!vec_room(im->mem, &im->out->weight) ||
        !map_add(&im->params, hash, (uint32_t)im->out->weight.len))
        f->status = diag_no_memory(f->diag, sizeof(struct onnx_weight));
    else
        im->out->weight.at[im->out->weight.len++] = (struct onnx_weight){v->name, v->data, out};
    return out;
}

/* A size as a number at run time: as many ones as it says, added up. */
static ir_value size_value(struct formula *f, const struct onnx_size *s, rlx_dtype dtype)
{
    if (!s->is_dim)
        return formula_reshape(f, formula_number_of(f, dtype, (double)s->number), RLX_LIST(1));
    ir_value ones = formula_expand(
        f, formula_reshape(f, formula_number_of(f, dtype, 1), RLX_LIST(1)), RLX_LIST(s->dim));
    return formula_reduce(f, RLX_OP_reduce_sum, ones, RLX_LIST(0), true);
}

#define MAX_SIZES 64

static ir_value sizes(struct formula *f, const struct onnx_value *v)
{
    ir_value part[MAX_SIZES];
    int64_t count;

    if (!type_count(&v->type, &count) || count < 1 || count > MAX_SIZES) {
        formula_fail(f, RLX_ERROR_UNSUPPORTED, "a shape tensor of more than %d sizes", MAX_SIZES);
        return RLX_NO_VALUE;
    }
    for (int64_t i = 0; i < count; i++)
        part[i] = size_value(f, &v->size[i], v->type.dtype);
    return formula_reshape(f, formula_concat(f, part, (int32_t)count, 0), formula_shape(&v->type));
}

ir_value onnx_node_of(struct onnx_import *im, struct onnx_scope *s, struct formula *f,
                      struct onnx_value *v)
{
    uint64_t bytes;
    int64_t count;

    if (f->status != RLX_OK || v->node != RLX_NO_VALUE)
        return f->status == RLX_OK ? v->node : RLX_NO_VALUE;
    if (v->size)
        v->node = sizes(f, v);
    else if (!v->data || !type_bytes(&v->type, &bytes) || !type_count(&v->type, &count))
        formula_fail(f, RLX_ERROR_UNSUPPORTED, "\"%.*s\" is not a tensor", STR_ARG(v->name));
    else if (v->is_weight && count > FEW && s->g->id == 0)
        v->node = param(im, f, v);
    else
        v->node = constant(f, v, bytes);
    return v->node;
}
