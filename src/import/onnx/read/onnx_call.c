/* onnx_call.c: see onnx_call.h. */
#include "import/onnx/read/onnx_call.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "import/onnx/read/onnx_scope.h"

/* ---- inputs ---- */

bool onnx_has(const struct onnx_call *c, size_t i)
{
    return i < c->in_count && c->in[i] && !c->in[i]->is_absent;
}

static bool need(struct onnx_call *c, size_t i)
{
    if (!onnx_has(c, i))
        formula_fail(&c->f, RLX_ERROR_FORMAT, "input %zu is left out", i);
    else if (c->in[i]->is_sequence)
        formula_fail(&c->f, RLX_ERROR_FORMAT, "input %zu is a sequence, not a tensor", i);
    return c->f.status == RLX_OK;
}

ir_value onnx_in(struct onnx_call *c, size_t i)
{
    return need(c, i) ? onnx_node_of(c->im, c->scope, &c->f, c->in[i]) : RLX_NO_VALUE;
}

const struct ir_type *onnx_type(struct onnx_call *c, size_t i)
{
    static const struct ir_type scalar = {.dtype = RLX_DTYPE_f32};

    return need(c, i) ? &c->in[i]->type : &scalar;
}

bool onnx_is_known(const struct onnx_call *c, size_t i)
{
    return onnx_has(c, i) && c->in[i]->data;
}

/* Element k of bytes at any address, as a double or an integer. */
static double real_at(rlx_dtype t, const void *data, size_t k)
{
    const char *at = (const char *)data + k * rlx_dtype_size(t);
    union {
        float f32;
        double f64;
        uint16_t u16;
    } v;

    memcpy(&v, at, t == RLX_DTYPE_f64 ? 8 : t == RLX_DTYPE_f32 ? 4 : 2);
    return t == RLX_DTYPE_f64   ? v.f64
           : t == RLX_DTYPE_f32 ? (double)v.f32
           : t == RLX_DTYPE_f16 ? (double)f16_to_f32(v.u16)
                                : (double)bf16_to_f32(v.u16);
}

static int64_t whole_at(rlx_dtype t, const void *data, size_t k)
{
    size_t size = rlx_dtype_size(t);
    uint64_t bits = 0;

    memcpy(&bits, (const char *)data + k * size, size);
    if (dtype_is(t, CLASS_I) && size < 8 && bits >> (8 * size - 1))
        bits |= ~(uint64_t)0 << (8 * size);
    return (int64_t)bits;
}

/* Bytes of that type as doubles in the arena; NULL: they are not numbers. */
static double *as_reals(struct onnx_call *c, const struct ir_type *type, const void *data,
                        size_t *count)
{
    rlx_dtype t = type->dtype;
    int64_t n;

    if (!type_count(type, &n) || !dtype_is(t, CLASS_REAL | CLASS_B))
        return NULL;
    double *out = arena_array(onnx_arena(c), double, (size_t)n);
    if (!out) {
        c->f.status = diag_no_memory(c->f.diag, (size_t)n * sizeof *out);
        return NULL;
    }
    for (size_t k = 0; k < (size_t)n; k++)
        out[k] = dtype_is(t, CLASS_F) ? real_at(t, data, k)
                 : t == RLX_DTYPE_u64 ? (double)(uint64_t)whole_at(t, data, k)
                                      : (double)whole_at(t, data, k);
    *count = (size_t)n;
    return out;
}

const double *onnx_reals(struct onnx_call *c, size_t i, size_t *count)
{
    *count = 0;
    return onnx_is_known(c, i) ? as_reals(c, &c->in[i]->type, c->in[i]->data, count) : NULL;
}

const int64_t *onnx_i64s(struct onnx_call *c, size_t i, size_t *count)
{
    int64_t n;

    *count = 0;
    if (!onnx_is_known(c, i) || !type_count(&c->in[i]->type, &n) ||
        !dtype_is(c->in[i]->type.dtype, CLASS_INT | CLASS_B))
        return NULL;
    int64_t *out = arena_array(onnx_arena(c), int64_t, (size_t)n);
    if (!out) {
        c->f.status = diag_no_memory(c->f.diag, (size_t)n * sizeof *out);
        return NULL;
    }
    for (size_t k = 0; k < (size_t)n; k++)
        out[k] = whole_at(c->in[i]->type.dtype, c->in[i]->data, k);
    *count = (size_t)n;
    return out;
}

/* What the caller who loads the model can do about it. */
#define FIX_IT ": fix the model's input that it comes from (--fix NAME=VALUE)"

bool onnx_sizes_in(struct onnx_call *c, size_t i, struct onnx_size *out, size_t room, size_t *count)
{
    int64_t n;

    if (!need(c, i))
        return false;
    const struct onnx_value *v = c->in[i];
    if ((!v->data && !v->size) || !dtype_is(v->type.dtype, CLASS_REAL)) {
        onnx_unsupported(c, "input %zu (\"%.*s\") must be integers known at load" FIX_IT, i,
                         STR_ARG(v->name));
        return false;
    }
    if (!type_count(&v->type, &n) || (size_t)n > room) {
        onnx_unsupported(c, "input %zu has more than %zu elements", i, room);
        return false;
    }
    bool is_float = dtype_is(v->type.dtype, CLASS_F);
    for (size_t k = 0; k < (size_t)n; k++) {
        double real = is_float && v->data ? real_at(v->type.dtype, v->data, k) : 0;
        if (v->size)
            out[k] = v->size[k];
        else if (!is_float)
            out[k] = (struct onnx_size){.number = whole_at(v->type.dtype, v->data, k)};
        else if (real == floor(real) && fabs(real) < 0x1p53)
            out[k] = (struct onnx_size){.number = (int64_t)real};
        else {
            onnx_unsupported(c, "input %zu (\"%.*s\") must be integers", i, STR_ARG(v->name));
            return false;
        }
    }
    *count = (size_t)n;
    return true;
}

bool onnx_ints_in(struct onnx_call *c, size_t i, rlx_list *out)
{
    struct onnx_size size[RLX_MAX_RANK];
    size_t count;

    if (!onnx_sizes_in(c, i, size, RLX_MAX_RANK, &count))
        return false;
    out->count = (int32_t)count;
    for (size_t k = 0; k < count; k++) {
        if (size[k].is_dim) {
            onnx_unsupported(c, "input %zu depends on a symbolic size", i);
            return false;
        }
        out->at[k] = size[k].number;
    }
    return true;
}

bool onnx_number_in(struct onnx_call *c, size_t i, double *out)
{
    size_t count;

    if (!need(c, i))
        return false;
    const double *at = onnx_reals(c, i, &count);
    if (!at || count != 1) {
        onnx_unsupported(c, "input %zu (\"%.*s\") must be one number known at load" FIX_IT, i,
                         STR_ARG(c->in[i]->name));
        return false;
    }
    *out = at[0];
    return true;
}

bool onnx_whole_in(struct onnx_call *c, size_t i, int64_t *out)
{
    double v = 0;

    if (!onnx_number_in(c, i, &v))
        return false;
    if (!(fabs(v) <= 0x1p40) || v != floor(v)) {
        formula_fail(&c->f, RLX_ERROR_LIMIT,
                     "input %zu is %g, which is not an integer of at most 2^40", i, v);
        return false;
    }
    *out = (int64_t)v;
    return true;
}

/* ---- attributes ---- */

static const struct onnx_attr *find_attr(const struct onnx_attr *at, size_t count, rlx_str name)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(at[i].name, name))
            return &at[i];
    return NULL;
}

const struct onnx_attr *onnx_resolve_attr(const struct onnx_call *c, const struct onnx_attr *a)
{
    /* In a function's body: what the caller gave, otherwise the function's default. Chains of
     * them end, as scopes do. */
    for (const struct onnx_scope *s = c->scope; a && a->ref.len && s->function;
         s = s->function->scope) {
        const struct onnx_node *caller = s->function->node;
        rlx_str name = a->ref;
        a = find_attr(caller->attr.at, caller->attr.count, name);
        if (!a)
            a = find_attr(s->definition->attr.at, s->definition->attr.count, name);
    }
    return a && !a->ref.len ? a : NULL;
}

const struct onnx_attr *onnx_attr(const struct onnx_call *c, const char *name)
{
    const struct onnx_node *n = c->node;

    return onnx_resolve_attr(c, find_attr(n->attr.at, n->attr.count, rlx_cstr(name)));
}

static bool holds(const struct onnx_attr *a, int64_t type)
{
    switch (type) {
    case ONNX_ATTR_FLOAT: return a->f != 0;
    case ONNX_ATTR_INT: return a->i != 0;
    case ONNX_ATTR_STRING: return a->s.len != 0;
    case ONNX_ATTR_TENSOR: return a->t != NULL;
    case ONNX_ATTR_GRAPH: return a->g != NULL;
    case ONNX_ATTR_FLOATS: return a->floats.count != 0;
    case ONNX_ATTR_INTS: return a->ints.count != 0;
    case ONNX_ATTR_STRINGS: return a->strings.count != 0;
    default: return false;
    }
}

/* What an attribute is that is not of that type; 0: nothing speaks against it. Old files do not
 * say, and zeros and empty lists are not seen in what it holds. */
static int64_t other_type(const struct onnx_attr *a, int64_t type)
{
    if (a->type && a->type != type)
        return a->type;
    for (int64_t other = ONNX_ATTR_FLOAT; other <= ONNX_ATTR_STRINGS; other++)
        if (other != type && holds(a, other) && !holds(a, type))
            return other;
    return 0;
}

static const char *attr_type_name(int64_t type)
{
    static const char *const names[] = {
        "?",    "FLOAT",   "INT",     "STRING", "TENSOR",        "GRAPH",          "FLOATS",
        "INTS", "STRINGS", "TENSORS", "GRAPHS", "SPARSE_TENSOR", "SPARSE_TENSORS", "TYPE_PROTO"};

    return type > 0 && (size_t)type < sizeof names / sizeof names[0] ? names[type] : names[0];
}

const struct onnx_attr *onnx_attr_as(struct onnx_call *c, const char *name,
                                     enum onnx_attr_type type)
{
    const struct onnx_attr *a = onnx_attr(c, name);
    int64_t other = a ? other_type(a, type) : 0;

    if (!other)
        return a;
    formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "its attribute %s is of type %s, not %s", name,
                 attr_type_name(other), attr_type_name(type));
    return NULL;
}

int64_t onnx_int(struct onnx_call *c, const char *name, int64_t otherwise)
{
    const struct onnx_attr *a = onnx_attr_as(c, name, ONNX_ATTR_INT);

    return a ? a->i : otherwise;
}

double onnx_float(struct onnx_call *c, const char *name, double otherwise)
{
    const struct onnx_attr *a = onnx_attr_as(c, name, ONNX_ATTR_FLOAT);

    return a ? (double)a->f : otherwise;
}

rlx_str onnx_text(struct onnx_call *c, const char *name, const char *otherwise)
{
    const struct onnx_attr *a = onnx_attr_as(c, name, ONNX_ATTR_STRING);

    if (!a)
        return rlx_cstr(otherwise);
    return a->s.ptr ? a->s : STR(""); /* the attribute may hold nothing */
}

bool onnx_ints(struct onnx_call *c, const char *name, rlx_list *out)
{
    const struct onnx_attr *a = onnx_attr_as(c, name, ONNX_ATTR_INTS);

    if (!a)
        return false;
    if (a->ints.count > RLX_MAX_RANK) {
        onnx_unsupported(c, "%s has %zu entries, more than %d", name, a->ints.count, RLX_MAX_RANK);
        return false;
    }
    *out = rlx_list_of((int32_t)a->ints.count, a->ints.at);
    return true;
}

const double *onnx_numbers(struct onnx_call *c, const char *name, size_t *count)
{
    const struct onnx_attr *a = onnx_attr(c, name);
    struct ir_type t = {.rank = 1};
    const void *data;

    *count = 0;
    if (!a || onnx_failed(c))
        return NULL;
    if (a->t) {
        c->f.status =
            onnx_tensor_data(a->t, &c->im->out->files, onnx_arena(c), &t, &data, c->f.diag);
        return onnx_failed(c) ? NULL : as_reals(c, &t, data, count);
    }
    t.dtype = a->floats.count ? RLX_DTYPE_f32 : RLX_DTYPE_i64;
    t.dim[0] = (ir_dim)(a->floats.count ? a->floats.count : a->ints.count);
    data = a->floats.count ? (const void *)a->floats.at : a->ints.at;
    return t.dim[0] ? as_reals(c, &t, data, count) : NULL;
}

bool onnx_ints_or_in(struct onnx_call *c, const char *name, size_t i, rlx_list *out)
{
    if (onnx_has(c, i))
        return onnx_ints_in(c, i, out);
    return onnx_ints(c, name, out);
}

/* ---- results ---- */

void onnx_give(struct onnx_call *c, size_t i, ir_value v)
{
    if (i >= c->out_count || c->f.status != RLX_OK)
        return;
    c->out[i].node = v;
    c->out[i].type = *ir_type_of(c->f.g, v);
    c->out[i].data = NULL;
    for (size_t k = 0; k < c->in_count; k++) /* an input passed on stays as known as it was */
        if (c->in[k] && c->in[k]->node == v)
            c->out[i].data = c->in[k]->data;
}

void onnx_give_known(struct onnx_call *c, size_t i, const struct ir_type *type, const void *data)
{
    if (i >= c->out_count || c->f.status != RLX_OK)
        return;
    c->out[i].type = *type;
    c->out[i].data = data;
}

void onnx_give_sizes(struct onnx_call *c, size_t i, int32_t rank, const struct onnx_size *size,
                     size_t count)
{
    struct ir_type type = {.dtype = RLX_DTYPE_i64, .rank = rank, .dim = {(ir_dim)count}};
    bool any = false;

    for (size_t k = 0; k < count; k++)
        any |= size[k].is_dim;
    if (i >= c->out_count || c->f.status != RLX_OK)
        return;
    struct onnx_size *own = arena_array(onnx_arena(c), struct onnx_size, count);
    int64_t *plain = arena_array(onnx_arena(c), int64_t, count);
    if (!own || !plain) {
        c->f.status = diag_no_memory(c->f.diag, count * sizeof *own);
        return;
    }
    for (size_t k = 0; k < count; k++) {
        own[k] = size[k];
        plain[k] = size[k].number;
    }
    c->out[i].type = type;
    c->out[i].size = any ? own : NULL;
    c->out[i].data = any ? NULL : plain;
}

/* ---- odds and ends ---- */

int64_t onnx_type_number(struct onnx_call *c, size_t i)
{
    int64_t own = onnx_dtype_number(onnx_type(c, i)->dtype);

    return onnx_has(c, i) && c->in[i]->narrow ? c->in[i]->narrow : own;
}

void onnx_give_type(struct onnx_call *c, size_t i, int64_t data_type)
{
    if (i < c->out_count)
        c->out[i].narrow = onnx_narrow_type(data_type);
}

void onnx_unsupported(struct onnx_call *c, const char *format, ...)
{
    char text[200];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    formula_fail(&c->f, RLX_ERROR_UNSUPPORTED, "%s", text);
}

bool onnx_failed(const struct onnx_call *c)
{
    return c->f.status != RLX_OK;
}

struct arena *onnx_arena(const struct onnx_call *c)
{
    return c->im->arena;
}

struct dim_table *onnx_dims(const struct onnx_call *c)
{
    return c->im->mod->dims;
}

int32_t onnx_axis(struct onnx_call *c, int64_t axis, int32_t rank)
{
    if (axis >= -(int64_t)rank && axis < rank)
        return (int32_t)(axis < 0 ? axis + rank : axis);
    formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "axis %lld of a tensor of rank %d", (long long)axis,
                 rank);
    return 0;
}

rlx_list onnx_axes(struct onnx_call *c, rlx_list axes, int32_t rank)
{
    for (int32_t i = 0; i < axes.count; i++)
        axes.at[i] = onnx_axis(c, axes.at[i], rank);
    return axes;
}

rlx_list onnx_all_axes(int32_t rank)
{
    rlx_list l = {.count = rank};

    for (int32_t i = 0; i < rank; i++)
        l.at[i] = i;
    return l;
}
