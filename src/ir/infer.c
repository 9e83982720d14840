/* infer.c: what every op has in common before its own shape rule speaks. */
#include "ir/infer.h"

#include <math.h>

#include "ir/shape/shape.h"

static rlx_status check_arity(const struct op_info *o, int32_t count, struct diag *d)
{
    if (count >= o->inputs_min && (o->inputs_max < 0 || count <= o->inputs_max))
        return RLX_OK;
    if (o->inputs_max < 0)
        return diag_fail(d, RLX_ERROR_GRAPH, "%s: takes at least %d inputs, got %d", o->name,
                         o->inputs_min, count);
    if (o->inputs_min == o->inputs_max)
        return diag_fail(d, RLX_ERROR_GRAPH, "%s: takes %d inputs, got %d", o->name, o->inputs_min,
                         count);
    return diag_fail(d, RLX_ERROR_GRAPH, "%s: takes %d to %d inputs, got %d", o->name,
                     o->inputs_min, o->inputs_max, count);
}

static bool is_optional(const struct attr_info *a)
{
    return a->default_text[0] == 'A'; /* ABSENT */
}

static rlx_status check_float(const struct op_info *o, const struct attr_info *a, double v,
                              struct diag *d)
{
    /* F64 are bounds and fill values, which may be infinite; nothing else may. NaN is how absence
     * is spelled. */
    bool inf_ok = a->kind == ATTR_F64;
    if (isnan(v) ? is_optional(a) : (!isinf(v) || inf_ok))
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_ATTRIBUTE, "%s: %s must be %s, not %g", o->name, a->name,
                     isnan(v) ? "a number" : "finite", v);
}

static rlx_status check_attr(const struct ir_graph *g, const struct op_info *o,
                             const struct attr_info *a, const void *at, struct diag *d)
{
    switch (a->kind) {
    case ATTR_F32: return check_float(o, a, (double)*(const float *)at, d);
    case ATTR_F64: return check_float(o, a, *(const double *)at, d);
    case ATTR_I64:
        if (*(const int64_t *)at == RLX_ABSENT && !is_optional(a))
            return diag_fail(d, RLX_ERROR_ATTRIBUTE, "%s: %s is missing", o->name, a->name);
        return RLX_OK;
    case ATTR_ENUM:
        if (*(const int32_t *)at < 0 || !enum_word(a->words, *(const int32_t *)at))
            return diag_fail(d, RLX_ERROR_ATTRIBUTE, "%s: %s has no word number %d", o->name,
                             a->name, *(const int32_t *)at);
        return RLX_OK;
    case ATTR_DTYPE: {
        rlx_dtype t = *(const rlx_dtype *)at;
        if ((unsigned)t >= RLX_DTYPE_count && !(t == RLX_ABSENT_DTYPE && is_optional(a)))
            return diag_fail(d, RLX_ERROR_ATTRIBUTE, "%s: %s is not an element type (%d)", o->name,
                             a->name, (int)t);
        return RLX_OK;
    }
    case ATTR_DIM:
        if (*(const ir_dim *)at == RLX_DIM_FAILED)
            return diag_fail(d, RLX_ERROR_ATTRIBUTE, "%s: %s is missing or overflows", o->name,
                             a->name);
        return RLX_OK;
    case ATTR_AXES:
    case ATTR_INTS:
    case ATTR_DIMS: {
        const rlx_list *l = at;
        if (l->count < 0 || l->count > RLX_MAX_RANK)
            return diag_fail(d, RLX_ERROR_LIMIT, "%s: %s has %d entries, at most %d fit", o->name,
                             a->name, l->count, RLX_MAX_RANK);
        for (int32_t i = 0; a->kind == ATTR_DIMS && i < l->count; i++)
            if (l->at[i] == RLX_DIM_FAILED)
                return diag_fail(d, RLX_ERROR_LIMIT, "%s: %s[%d] overflows", o->name, a->name, i);
        return RLX_OK;
    }
    case ATTR_FLOATS:
    case ATTR_BYTES:
    case ATTR_STRING:
    case ATTR_CHAIN: {
        const struct ir_blob *b = at;
        if (b->len && !b->ptr)
            return diag_fail(d, RLX_ERROR_ARGUMENT, "%s: %s is NULL", o->name, a->name);
        return RLX_OK;
    }
    case ATTR_GRAPH: {
        int32_t id = *(const int32_t *)at;
        if (id == -1 && is_optional(a))
            return RLX_OK;
        if (id <= 0 || (size_t)id >= g->mod->graph.len || id == g->id)
            return diag_fail(d, RLX_ERROR_GRAPH, "%s: %s is not a sub-graph of this graph", o->name,
                             a->name);
        return RLX_OK;
    }
    case ATTR_UNARY: {
        rlx_op op = *(const rlx_op *)at;
        if ((unsigned)op >= RLX_OP_count ||
            (op != RLX_OP_none && op_info(op)->family != FAMILY_unary))
            return diag_fail(d, RLX_ERROR_ATTRIBUTE, "%s: %s must be a unary op, not %s", o->name,
                             a->name, op_info(op)->name);
        return RLX_OK;
    }
    case ATTR_BOOL:
    case ATTR_U64: return RLX_OK;
    }
    return RLX_OK;
}

rlx_status ir_infer_types(struct ir_graph *g, rlx_op op, union ir_attr *attr,
                          const struct ir_type *const *types, const ir_value *in, int32_t in_count,
                          int32_t node_id, bool note_checks, struct ir_type *out, struct diag *d)
{
    const struct op_info *o = op_info(op);
    size_t attr_count;
    const struct attr_info *a = family_attrs(o->family, &attr_count);

    if (op <= RLX_OP_none || op >= RLX_OP_count)
        return diag_fail(d, RLX_ERROR_GRAPH, "there is no op number %d", (int)op);
    TRY(check_arity(o, in_count, d));
    for (size_t i = 0; i < attr_count; i++)
        TRY(check_attr(g, o, &a[i], (const char *)attr + a[i].offset, d));

    struct ir_type type = {0};
    struct shape_call call = {
        .graph = g,
        .mod = g->mod,
        .op = op,
        .name = o->name,
        .attr = attr,
        .in_count = in_count,
        .in = types,
        .in_id = in,
        .out = &type,
        .diag = d,
        .note_checks = note_checks,
        .node_id = node_id,
    };
    TRY(shape_rule_of(o->family)(&call));

    uint64_t size;
    for (int32_t i = 0; i < type.rank; i++)
        if (type.dim[i] == RLX_DIM_FAILED && dim_no_memory(g->mod->dims))
            return diag_no_memory(d, 0);
        else if (type.dim[i] == RLX_DIM_FAILED)
            return diag_fail(d, RLX_ERROR_LIMIT, "%s: size of axis %d overflows", o->name, i);
    if (type_is_static(&type) && !type_bytes(&type, &size))
        return diag_fail(d, RLX_ERROR_LIMIT, "%s: the result's byte count overflows 64 bits: %s",
                         o->name, type_text(&call, &type));
    *out = type;
    return RLX_OK;
}

#define FEW_INPUTS 16

rlx_status ir_infer_node(struct ir_graph *g, rlx_op op, union ir_attr *attr, const ir_value *in,
                         int32_t in_count, int32_t node_id, bool note_checks, struct ir_type *out,
                         struct diag *d)
{
    const struct ir_type *few[FEW_INPUTS] = {NULL}, **types = few;
    size_t bytes = (size_t)in_count * sizeof *types;

    if (in_count > FEW_INPUTS && !(types = mem_alloc(g->mod->mem, bytes)))
        return diag_no_memory(d, bytes);
    for (int32_t i = 0; i < in_count; i++)
        types[i] = ir_type_of(g, in[i]);
    rlx_status s = ir_infer_types(g, op, attr, types, in, in_count, node_id, note_checks, out, d);
    if (types != few)
        mem_free(g->mod->mem, types, bytes);
    return s;
}
