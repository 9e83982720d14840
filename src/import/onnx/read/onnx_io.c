/* onnx_io.c: the inputs and outputs of an ONNX graph as those of ours.
 *
 * Ours are tensors. A sequence "x" of n tensors is n of them, "x[0]" and so on; an optional is its
 * value, or nothing. How many there are, and which are absent, is given by the caller who loads the
 * model.
 */
#include <stdio.h>
#include <string.h>

#include "import/onnx/read/onnx_scope.h"
#include "import/onnx/read/onnx_small_float.h"
#include "ir/text/text.h"
#include "rlx/tools.h"

#define MAX_OUTPUTS (1 << 16) /* items of sequences counted */

/* A tensor that becomes an input of ours. */
struct leaf {
    rlx_str name;
    const struct onnx_tensor_type *type;
    const rlx_tensor *shape; /* as given at load; NULL: it was not */
    const rlx_tensor *known; /* its value; NULL: not known */
    int64_t item;            /* its place in a sequence; -1: it is in none */
};

/* ---- the type of an input ---- */

static bool in_name(char ch, bool first)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_' ||
           (!first && ch >= '0' && ch <= '9');
}

/* A symbol's name is [A-Za-z_][A-Za-z0-9_]*: other characters become underscores. A dim without a
 * name, or with none of these in it ("?"), is called after its input and axis. The items of a
 * sequence need not be of one size: each has its own symbols. */
static rlx_str symbol_name(struct onnx_import *im, const struct leaf *in, int axis)
{
    rlx_str given = in->type->shape->dim.at[axis].param;
    bool named = false;
    char *name;

    for (size_t i = 0; i < given.len; i++)
        named |= given.ptr[i] != '_' && in_name(given.ptr[i], false);
    if (!named)
        name = (char *)arena_printf(im->arena, "%.*s_%d", STR_ARG(in->name), axis);
    else if (in->item >= 0)
        name = (char *)arena_printf(im->arena, "%.*s_%d", STR_ARG(given), (int)in->item);
    else
        name = (char *)arena_printf(im->arena, "%.*s", STR_ARG(given));
    for (char *p = name; p && *p; p++)
        if (!in_name(*p, p == name))
            *p = '_';
    return rlx_cstr(name);
}

/* The shape that was given at load, where the model does not contradict it. */
static rlx_status given_shape(const struct leaf *in, struct ir_type *out, struct diag *d)
{
    const struct onnx_shape *declared = in->type->shape;
    bool fits = in->shape->rank >= 0 && in->shape->rank <= RLX_MAX_RANK &&
                (!declared || declared->dim.count == (size_t)in->shape->rank);

    for (int32_t i = 0; fits && i < in->shape->rank; i++) {
        const struct onnx_dim *dim = declared ? &declared->dim.at[i] : NULL;
        bool is_static = dim && dim->has_value && dim->value >= 0;
        fits = in->shape->dim[i] >= 0 && (!is_static || dim->value == in->shape->dim[i]);
        out->dim[i] = in->shape->dim[i];
    }
    if (!fits)
        return diag_fail(d, RLX_ERROR_SHAPE, "the shape given for \"%.*s\" is not the model's",
                         STR_ARG(in->name));
    out->rank = in->shape->rank;
    return RLX_OK;
}

static rlx_status declared_shape(struct onnx_import *im, const struct leaf *in, struct ir_type *out,
                                 struct diag *d)
{
    const struct onnx_shape *shape = in->type->shape;

    if (!shape)
        return diag_fail(d, RLX_ERROR_UNSUPPORTED,
                         "the model does not give the rank of \"%.*s\": give its shape at load, as "
                         "in --items '%.*s=[1,3,224,224]'",
                         STR_ARG(in->name), STR_ARG(in->name));
    if (shape->dim.count > RLX_MAX_RANK)
        return diag_fail(d, RLX_ERROR_LIMIT, "it has %zu axes, more than %d", shape->dim.count,
                         RLX_MAX_RANK);
    out->rank = (int32_t)shape->dim.count;
    for (int32_t i = 0; i < out->rank; i++) {
        const struct onnx_dim *dim = &shape->dim.at[i];
        rlx_str name = symbol_name(im, in, (int)i);
        bool is_static = dim->has_value && dim->value >= 0;
        out->dim[i] = is_static ? dim->value : dim_symbol(im->mod->dims, name);
        if (!name.ptr || dim_no_memory(im->mod->dims))
            return diag_no_memory(d, 0);
        if (out->dim[i] == RLX_DIM_FAILED)
            return diag_fail(d, RLX_ERROR_FORMAT, "axis %d has no proper name: \"%.*s\"", i,
                             STR_ARG(dim->param));
    }
    return RLX_OK;
}

static rlx_status leaf_type(struct onnx_import *im, const struct leaf *in, struct ir_type *out,
                            struct diag *d)
{
    if (!onnx_element_dtype(in->type->elem_type, &out->dtype))
        return diag_fail(d, RLX_ERROR_UNSUPPORTED, "its elements are of type %s",
                         onnx_dtype_name(in->type->elem_type));
    return in->shape ? given_shape(in, out, d) : declared_shape(im, in, out, d);
}

/* ---- what was given at load ---- */

/* The value of input `number` of that name; NULL: none. */
static const rlx_tensor *known_value(const struct onnx_import *im, size_t number, rlx_str name)
{
    for (size_t i = 0; i < im->options->known_count; i++) {
        const rlx_binding *b = &im->options->known[i];
        if (b->tensor.data && (b->name ? str_eq(rlx_cstr(b->name), name) : i == number))
            return &b->tensor;
    }
    return NULL;
}

static const rlx_load_input *given_input(const struct onnx_import *im, size_t number, rlx_str name)
{
    for (size_t i = 0; i < im->options->input_count; i++) {
        const rlx_load_input *in = &im->options->inputs[i];
        if (in->name ? str_eq(rlx_cstr(in->name), name) : i == number)
            return in;
    }
    return NULL;
}

/* Both types, as the text form writes them. */
static rlx_status refuse_value(struct onnx_import *im, const struct ir_type *want,
                               const rlx_tensor *t, struct diag *d)
{
    struct ir_type is = {.dtype = t->dtype, .rank = t->rank};
    struct text a, b;

    memcpy(is.dim, t->dim, sizeof is.dim);
    text_init(&a, im->mod->mem);
    text_init(&b, im->mod->mem);
    ir_print_type(im->mod, want, &a);
    if (is.rank >= 0 && is.rank <= RLX_MAX_RANK && (unsigned)is.dtype < RLX_DTYPE_count)
        ir_print_type(im->mod, &is, &b);
    rlx_status s = diag_fail(d, RLX_ERROR_SHAPE, "the value given for it is %s, but %s is wanted",
                             b.at ? b.at : "of another type", a.at ? a.at : "another");
    text_free(&a);
    text_free(&b);
    return s;
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
        return refuse_value(im, &v->type, t, d);
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

/* ---- inputs ---- */

static rlx_status add_leaf(struct onnx_import *im, struct onnx_scope *s, const struct leaf *in,
                           struct onnx_value *v, struct diag *d)
{
    struct ir_new_node n = {.op = RLX_OP_input};

    *v = (struct onnx_value){.name = in->name, .node = RLX_NO_VALUE};
    TRY(leaf_type(im, in, &v->type, d));
    attr_defaults(RLX_OP_input, &n.attr);
    n.attr.leaf.name = (struct ir_blob){in->name.ptr, in->name.len};
    n.attr.leaf.dtype = v->type.dtype;
    n.attr.leaf.shape = rlx_list_of(v->type.rank, v->type.dim);
    TRY(ir_add(s->g, &n, &v->node, d));
    v->narrow = onnx_narrow_type(in->type->elem_type);
    return in->known ? know_input(im, in->known, v, d) : RLX_OK;
}

/* "x[3]"; NULL: no memory. */
static const char *item_name(struct onnx_import *im, rlx_str name, size_t i)
{
    return arena_printf(im->arena, "%.*s[%zu]", STR_ARG(name), i);
}

static rlx_status add_items(struct onnx_import *im, struct onnx_scope *s, rlx_str name,
                            const struct onnx_type *elem, const rlx_load_input *given,
                            struct onnx_value *v, struct diag *d)
{
    if (!elem || !elem->tensor)
        return diag_fail(d, RLX_ERROR_UNSUPPORTED,
                         "it is a sequence of something other than tensors");
    if (!given)
        return diag_fail(d, RLX_ERROR_UNSUPPORTED,
                         "it is a sequence: say at load how many items it has, as in --items "
                         "%.*s=3, or of which shapes, as in --items '%.*s=[2,3],[4,3]'",
                         STR_ARG(name), STR_ARG(name));
    if (given->item_count > ONNX_MAX_ITEMS)
        return diag_fail(d, RLX_ERROR_LIMIT, "a sequence of %zu items, more than %d",
                         given->item_count, ONNX_MAX_ITEMS);
    v->is_sequence = true;
    v->item_count = given->item_count;
    v->item = arena_array(im->arena, struct onnx_value, v->item_count);
    if (!v->item)
        return diag_no_memory(d, v->item_count * sizeof *v->item);
    for (size_t i = 0; i < v->item_count; i++) {
        const char *own = item_name(im, name, i);
        if (!own)
            return diag_no_memory(d, name.len);
        struct leaf leaf = {.name = rlx_cstr(own),
                            .type = elem->tensor,
                            .shape = given->shape ? &given->shape[i] : NULL,
                            .known = known_value(im, SIZE_MAX, rlx_cstr(own)),
                            .item = (int64_t)i};
        TRY(add_leaf(im, s, &leaf, &v->item[i], d));
    }
    return RLX_OK;
}

static rlx_status make_input(struct onnx_import *im, struct onnx_scope *s, size_t number,
                             const struct onnx_value_info *info, struct onnx_value *v,
                             struct diag *d)
{
    const rlx_load_input *given = given_input(im, number, info->name);
    const struct onnx_type *type = info->type;
    bool is_optional = type && type->optional;

    if (is_optional)
        type = type->optional->elem;
    if (given && given->absent) {
        v->is_absent = true;
        return is_optional ? RLX_OK : diag_fail(d, RLX_ERROR_ARGUMENT, "it is not an optional");
    }
    if (type && type->sequence)
        return add_items(im, s, info->name, type->sequence->elem, given, v, d);
    if (!type || !type->tensor)
        return diag_fail(d, RLX_ERROR_UNSUPPORTED, "it is not a tensor");
    struct leaf leaf = {.name = info->name,
                        .type = type->tensor,
                        .shape = given && given->item_count == 1 ? given->shape : NULL,
                        .known = known_value(im, number, info->name),
                        .item = -1};
    return add_leaf(im, s, &leaf, v, d);
}

rlx_status onnx_add_input(struct onnx_import *im, struct onnx_scope *s, size_t number,
                          const struct onnx_value_info *info, struct diag *d)
{
    struct onnx_value v = {.node = RLX_NO_VALUE};
    struct diag own;

    diag_init(&own, "load");
    rlx_status status = make_input(im, s, number, info, &v, &own);
    if (status == RLX_ERROR_MEMORY)
        return diag_again(d, &own.first, status);
    if (status != RLX_OK) {
        struct onnx_node as_node = {.op = STR("input"), .name = info->name};
        onnx_note_failure(im, &as_node, 0, &own.first);
        v.failed = true;
    }
    return onnx_bind(im, s, info->name, &v, d);
}

/* "x", or "x[3]", which is an item of it. */
static bool is_of_input(rlx_str given, rlx_str input)
{
    return str_eq(given, input) || (str_starts(given, input) && given.ptr[input.len] == '[');
}

static rlx_status check_name(const struct onnx_graph *g, const char *given, struct diag *d)
{
    rlx_nearest near = {.wanted = rlx_cstr(given)};
    char known[200] = "none", hint[RLX_NEAREST_HINT];
    size_t len = 0;

    for (size_t k = 0; k < g->input.count; k++) {
        rlx_str name = g->input.at[k].name;
        if (!given || is_of_input(near.wanted, name))
            return RLX_OK;
        rlx_nearest_offer(&near, name);
        if (len < sizeof known)
            len += (size_t)snprintf(known + len, sizeof known - len, "%s%.*s", k ? ", " : "",
                                    STR_ARG(name));
    }
    if (!given)
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_ARGUMENT, "the model has no input \"%s\"; it has: %s%s", given,
                     known, rlx_nearest_hint(&near, hint));
}

rlx_status onnx_check_told(const struct onnx_import *im, const struct onnx_graph *g, struct diag *d)
{
    for (size_t i = 0; i < im->options->input_count; i++)
        TRY(check_name(g, im->options->inputs[i].name, d));
    for (size_t i = 0; i < im->options->known_count; i++)
        TRY(check_name(g, im->options->known[i].name, d));
    return RLX_OK;
}

/* ---- outputs ---- */

static size_t tensors_of(const struct onnx_value *v)
{
    return v->is_absent ? 0 : v->is_sequence ? v->item_count : 1;
}

static rlx_status add_output(struct onnx_import *im, struct onnx_scope *s, rlx_str name,
                             struct onnx_value *v, struct diag *d)
{
    struct formula f = {.g = s->g, .diag = d, .dtype = RLX_DTYPE_f32};
    size_t number = s->g->output.len;

    if (v->is_sequence || v->is_absent)
        return diag_fail(d, RLX_ERROR_UNSUPPORTED, "the output \"%.*s\" is not a tensor",
                         STR_ARG(name));
    ir_value node = onnx_node_of(im, s, &f, v);
    TRY(f.status);
    TRY(ir_add_output(s->g, node, d));
    im->out->output_name[number] = name;
    return RLX_OK;
}

/* Is there an output of that name besides the sequence's item? */
static bool is_taken(struct onnx_import *im, struct onnx_scope *s, const struct onnx_graph *g,
                     rlx_str name)
{
    for (size_t i = 0; onnx_find(im, s, name) && i < g->output.count; i++)
        if (str_eq(g->output.at[i].name, name))
            return true;
    return false;
}

static rlx_status add_output_items(struct onnx_import *im, struct onnx_scope *s,
                                   const struct onnx_graph *g, rlx_str name, struct onnx_value *v,
                                   struct diag *d)
{
    for (size_t i = 0; i < v->item_count; i++) {
        const char *own = item_name(im, name, i);
        if (!own)
            return diag_no_memory(d, name.len);
        if (is_taken(im, s, g, rlx_cstr(own)))
            return diag_fail(d, RLX_ERROR_UNSUPPORTED,
                             "two outputs would be called \"%s\", one an item of \"%.*s\"", own,
                             STR_ARG(name));
        TRY(add_output(im, s, rlx_cstr(own), &v->item[i], d));
    }
    return RLX_OK;
}

/* How many tensors the outputs are in all. */
static rlx_status count_outputs(struct onnx_import *im, struct onnx_scope *s,
                                const struct onnx_graph *g, size_t *count, struct diag *d)
{
    if (g->output.count == 0)
        return diag_fail(d, RLX_ERROR_FORMAT, "onnx: the graph has no outputs");
    *count = 0;
    for (size_t i = 0; i < g->output.count; i++) {
        rlx_str name = g->output.at[i].name;
        const struct onnx_value *v = onnx_find(im, s, name);
        if (!v)
            return diag_fail(d, RLX_ERROR_FORMAT, "no node gives the output \"%.*s\"",
                             STR_ARG(name));
        if (name.len == 0 || !str_is_utf8(name))
            return diag_fail(d, RLX_ERROR_FORMAT, "output %zu has no proper name", i);
        *count += tensors_of(v);
        if (*count > MAX_OUTPUTS)
            return diag_fail(d, RLX_ERROR_LIMIT, "more than %d outputs", MAX_OUTPUTS);
    }
    if (*count == 0)
        return diag_fail(d, RLX_ERROR_UNSUPPORTED,
                         "its outputs are empty sequences or absent: there is nothing to compute");
    return RLX_OK;
}

rlx_status onnx_add_outputs(struct onnx_import *im, struct onnx_scope *s,
                            const struct onnx_graph *g, struct diag *d)
{
    size_t count;

    TRY(count_outputs(im, s, g, &count, d));
    im->out->output_name = arena_array(im->arena, rlx_str, count);
    if (!im->out->output_name)
        return diag_no_memory(d, count * sizeof(rlx_str));
    for (size_t i = 0; i < g->output.count; i++) {
        rlx_str name = g->output.at[i].name;
        struct onnx_value *v = onnx_find(im, s, name);
        if (v->is_sequence)
            TRY(add_output_items(im, s, g, name, v, d));
        else if (!v->is_absent)
            TRY(add_output(im, s, name, v, d));
    }
    return RLX_OK;
}
