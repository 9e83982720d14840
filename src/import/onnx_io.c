/* onnx_io.c: the inputs and outputs of an ONNX graph as those of ours. */
#include <string.h>

#include "import/onnx_scope.h"
#include "import/onnx_small_float.h"

static bool in_name(char ch, bool first)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_' ||
           (!first && ch >= '0' && ch <= '9');
}

/* A symbol's name is [A-Za-z_][A-Za-z0-9_]*: other characters become underscores. A dim without a
 * name, or with none of these in it ("?"), is called after its input and axis. */
static rlx_str symbol_name(struct onnx_import *im, const struct onnx_value_info *info, int axis)
{
    rlx_str given = info->type->tensor->shape->dim.at[axis].param;
    bool named = false;

    for (size_t i = 0; i < given.len; i++)
        named |= given.ptr[i] != '_' && in_name(given.ptr[i], false);
    char *name = named ? (char *)arena_printf(im->arena, "%.*s", STR_ARG(given))
                       : (char *)arena_printf(im->arena, "%.*s_%d", STR_ARG(info->name), axis);
    for (char *p = name; p && *p; p++)
        if (!in_name(*p, p == name))
            *p = '_';
    return rlx_cstr(name);
}

static rlx_status input_type(struct onnx_import *im, const struct onnx_value_info *info,
                             struct ir_type *out, struct diag *d)
{
    const struct onnx_tensor_type *t = info->type ? info->type->tensor : NULL;

    if (!t)
        return diag_fail(d, RLX_ERROR_UNSUPPORTED, "it is no tensor");
    if (!onnx_element_dtype(t->elem_type, &out->dtype))
        return diag_fail(d, RLX_ERROR_UNSUPPORTED, "its elements are of type %s",
                         onnx_dtype_name(t->elem_type));
    if (!t->shape)
        return diag_fail(d, RLX_ERROR_UNSUPPORTED, "its rank is not told");
    if (t->shape->dim.count > RLX_MAX_RANK)
        return diag_fail(d, RLX_ERROR_LIMIT, "it has %zu axes, more than %d", t->shape->dim.count,
                         RLX_MAX_RANK);
    out->rank = (int32_t)t->shape->dim.count;
    for (int32_t i = 0; i < out->rank; i++) {
        const struct onnx_dim *dim = &t->shape->dim.at[i];
        rlx_str name = symbol_name(im, info, (int)i);
        bool is_static = dim->has_value && dim->value >= 0;
        out->dim[i] = is_static ? dim->value : dim_symbol(im->mod->dims, name);
        if (out->dim[i] == RLX_DIM_FAILED)
            return diag_fail(d, RLX_ERROR_FORMAT, "axis %d has no proper name: \"%.*s\"", i,
                             STR_ARG(dim->param));
    }
    return RLX_OK;
}

/* What was given for input `number` of that name; NULL: nothing. */
static const rlx_tensor *known_value(const struct onnx_import *im, size_t number, rlx_str name)
{
    for (size_t i = 0; i < im->options->known_count; i++) {
        const rlx_binding *b = &im->options->known[i];
        if (b->tensor.data && (b->name ? str_eq(rlx_cstr(b->name), name) : i == number))
            return &b->tensor;
    }
    return NULL;
}

/* An input whose value was given: its bytes are known from here on. */
static rlx_status know_input(struct onnx_import *im, const rlx_tensor *t, struct onnx_value *v,
                             struct diag *d)
{
    bool fits = t->dtype == v->type.dtype && t->rank == v->type.rank;
    uint64_t bytes;

    for (int32_t i = 0; fits && i < t->rank; i++)
        fits = !dim_is_static(v->type.dim[i]) || v->type.dim[i] == t->dim[i];
    if (!fits)
        return diag_fail(d, RLX_ERROR_SHAPE, "the value given for it is of another type or shape");
    memcpy(v->type.dim, t->dim, sizeof t->dim);
    if (!type_bytes(&v->type, &bytes) || bytes != t->bytes)
        return diag_fail(d, RLX_ERROR_SIZE, "the value given for it has %zu bytes", t->bytes);
    void *own = arena_alloc(im->arena, t->bytes, 16);
    if (!own)
        return diag_no_memory(d, t->bytes);
    if (t->bytes)
        memcpy(own, t->data, t->bytes);
    v->data = own;
    v->node = RLX_NO_VALUE;
    return RLX_OK;
}

rlx_status onnx_add_input(struct onnx_import *im, struct onnx_scope *s, size_t number,
                          const struct onnx_value_info *info, struct diag *d)
{
    const rlx_tensor *known = known_value(im, number, info->name);
    struct onnx_value v = {.node = RLX_NO_VALUE};
    struct ir_new_node n = {.op = RLX_OP_input};
    struct diag own;

    diag_init(&own, "load");
    rlx_status status = input_type(im, info, &v.type, &own);
    if (status == RLX_OK) {
        attr_defaults(RLX_OP_input, &n.attr);
        n.attr.leaf.name = (struct ir_blob){info->name.ptr, info->name.len};
        n.attr.leaf.dtype = v.type.dtype;
        n.attr.leaf.shape = rlx_list_of(v.type.rank, v.type.dim);
        status = ir_add(s->g, &n, &v.node, &own);
        v.narrow = onnx_narrow_type(info->type->tensor->elem_type);
    }
    if (status == RLX_OK && known)
        status = know_input(im, known, &v, &own);
    if (status == RLX_ERROR_MEMORY)
        return diag_again(d, &own.first, status);
    if (status != RLX_OK) {
        struct onnx_node as_node = {.op = STR("input"), .name = info->name};
        onnx_note_failure(im, &as_node, 0, &own.first);
        v.failed = true;
    }
    return onnx_bind(im, s, info->name, &v, d);
}

rlx_status onnx_add_outputs(struct onnx_import *im, struct onnx_scope *s,
                            const struct onnx_graph *g, struct diag *d)
{
    struct formula f = {.g = s->g, .diag = d, .dtype = RLX_DTYPE_f32};

    if (g->output.count == 0)
        return diag_fail(d, RLX_ERROR_FORMAT, "onnx: the graph has no outputs");
    im->out->output_name = arena_array(im->arena, rlx_str, g->output.count);
    if (!im->out->output_name)
        return diag_no_memory(d, g->output.count * sizeof(rlx_str));
    for (size_t i = 0; i < g->output.count; i++) {
        rlx_str name = g->output.at[i].name;
        struct onnx_value *v = onnx_find(im, s, name);
        if (!v)
            return diag_fail(d, RLX_ERROR_FORMAT, "no node gives the output \"%.*s\"",
                             STR_ARG(name));
        if (name.len == 0 || !str_is_utf8(name))
            return diag_fail(d, RLX_ERROR_FORMAT, "output %zu has no proper name", i);
        if (v->is_sequence)
            return diag_fail(d, RLX_ERROR_UNSUPPORTED, "the output \"%.*s\" is a sequence",
                             STR_ARG(name));
        ir_value node = onnx_node_of(im, s, &f, v);
        TRY(f.status);
        TRY(ir_add_output(s->g, node, d));
        im->out->output_name[i] = name;
    }
    return RLX_OK;
}
