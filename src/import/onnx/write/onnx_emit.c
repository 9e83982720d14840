/* onnx_emit.c: see onnx_emit.h. Everything is put into one arena; after memory ran out, nothing
 * more happens. */
#include "import/onnx/write/onnx_emit.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ir/formula.h"

/* ---- memory and names ---- */

/* Lists have room for a power of two, so the count says when one is full. */
void *emit_room(struct onnx_writer *w, void *at, size_t *count, size_t size)
{
    size_t n = *count, room = n ? n * 2 : 1;
    void *old, *list;

    if (w->no_memory)
        return NULL;
    memcpy(&old, at, sizeof old);
    if ((n & (n - 1)) == 0) {
        list = arena_alloc_array(w->arena, room, size, 16);
        if (!list) {
            w->no_memory = true;
            return NULL;
        }
        if (n)
            memcpy(list, old, n * size);
        memcpy(at, &list, sizeof list);
        old = list;
    }
    ++*count;
    return (char *)old + n * size;
}

rlx_str emit_text_of(struct onnx_writer *w, const char *format, ...)
{
    va_list args, again;
    char *text = NULL;

    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    if (len >= 0)
        text = arena_array(w->arena, char, (size_t)len + 1);
    if (text)
        vsnprintf(text, (size_t)len + 1, format, again);
    va_end(again);
    va_end(args);
    w->no_memory |= !text;
    return text ? (rlx_str){text, (size_t)len} : STR("");
}

static bool same_name(const void *owner, uint32_t i, const void *key)
{
    const struct onnx_writer *w = owner;

    return str_eq(w->name.at[i].text, *(const rlx_str *)key);
}

static struct emit_name *taken_name(const struct onnx_writer *w, rlx_str name)
{
    uint32_t i;
    uint64_t hash = hash_bytes(name.ptr, name.len);

    return map_find(&w->by_name, hash, same_name, w, &name, &i) ? &w->name.at[i] : NULL;
}

static rlx_str take_name(struct onnx_writer *w, rlx_str name)
{
    if (!name.ptr || !vec_room(w->mem, &w->name) ||
        !map_add(&w->by_name, hash_bytes(name.ptr, name.len), (uint32_t)w->name.len)) {
        w->no_memory = true;
        return STR("");
    }
    w->name.at[w->name.len++] = (struct emit_name){name, 1};
    return name;
}

/* Numbers go on where they last ended: a graph that is written out often has many alike. */
rlx_str emit_fresh(struct onnx_writer *w, rlx_str base)
{
    struct emit_name *first = taken_name(w, base);
    rlx_str name = first ? base : arena_str(w->arena, base);

    while (first && name.ptr && taken_name(w, name)) {
        const char *text = arena_printf(w->arena, "%.*s_%zu", STR_ARG(base), first->next++);
        name = text ? rlx_cstr(text) : (rlx_str){NULL, 0};
    }
    return take_name(w, name);
}

/* ---- nodes ---- */

static rlx_str name_within(struct emit *e, const char *op)
{
    if (!e->n)
        return emit_fresh(e->w, rlx_cstr(op));
    return emit_fresh(
        e->w, emit_text_of(e->w, "%s_%d_%s", op_info(e->n->op)->name, (int)ir_id(e->g, e->n), op));
}

void emit_outputs(struct emit *e, const char *op, const rlx_str *in, size_t count, rlx_str *out,
                  size_t outs, unsigned wanted)
{
    struct onnx_node *n = EMIT_MORE(e->w, &e->to->node);

    for (size_t i = 0; i < outs; i++)
        out[i] = wanted >> i & 1 ? name_within(e, op) : STR("");
    if (!n)
        return;
    n->op = rlx_cstr(op);
    for (size_t i = 0; i < count; i++) {
        rlx_str *to = EMIT_MORE(e->w, &n->input);
        if (to)
            *to = in[i];
    }
    for (size_t i = 0; i < outs; i++) {
        rlx_str *to = EMIT_MORE(e->w, &n->output);
        if (to)
            *to = out[i];
    }
}

rlx_str emit_node(struct emit *e, const char *op, const rlx_str *in, size_t count)
{
    rlx_str out;

    emit_outputs(e, op, in, count, &out, 1, 1);
    return out;
}

rlx_str emit_1(struct emit *e, const char *op, rlx_str a)
{
    return emit_node(e, op, &a, 1);
}

rlx_str emit_2(struct emit *e, const char *op, rlx_str a, rlx_str b)
{
    return emit_node(e, op, (const rlx_str[]){a, b}, 2);
}

rlx_str emit_3(struct emit *e, const char *op, rlx_str a, rlx_str b, rlx_str c)
{
    return emit_node(e, op, (const rlx_str[]){a, b, c}, 3);
}

/* ---- attributes ---- */

/* One more of the last node; somewhere harmless when memory ran out. */
static struct onnx_attr *add_attr(struct emit *e, const char *name, enum onnx_attr_type type)
{
    static _Thread_local struct onnx_attr nowhere;
    struct onnx_attr *a = NULL;

    if (!e->w->no_memory && e->to->node.count)
        a = EMIT_MORE(e->w, &e->to->node.at[e->to->node.count - 1].attr);
    if (!a) {
        nowhere = (struct onnx_attr){.i = 0};
        a = &nowhere;
    }
    a->name = rlx_cstr(name);
    a->type = type;
    return a;
}

void emit_int(struct emit *e, const char *name, int64_t v)
{
    add_attr(e, name, ONNX_ATTR_INT)->i = v;
}

void emit_float(struct emit *e, const char *name, double v)
{
    add_attr(e, name, ONNX_ATTR_FLOAT)->f = (float)v;
}

void emit_text(struct emit *e, const char *name, const char *v)
{
    add_attr(e, name, ONNX_ATTR_STRING)->s = emit_text_of(e->w, "%s", v);
}

void emit_ints(struct emit *e, const char *name, const int64_t *v, size_t count)
{
    struct onnx_attr *a = add_attr(e, name, ONNX_ATTR_INTS);

    for (size_t i = 0; i < count; i++) {
        int64_t *to = EMIT_MORE(e->w, &a->ints);
        if (to)
            *to = v[i];
    }
}

void emit_texts(struct emit *e, const char *name, const char *const *v, size_t count)
{
    struct onnx_attr *a = add_attr(e, name, ONNX_ATTR_STRINGS);

    for (size_t i = 0; i < count; i++) {
        rlx_str *to = EMIT_MORE(e->w, &a->strings);
        if (to)
            *to = rlx_cstr(v[i]);
    }
}

void emit_graph(struct emit *e, const char *name, struct onnx_graph *g)
{
    add_attr(e, name, ONNX_ATTR_GRAPH)->g = g;
}

/* ---- results ---- */

static rlx_str proper_name(struct emit *e)
{
    if (e->wanted.len)
        return e->wanted; /* reserved for it */
    if (e->n->label.len)
        return emit_fresh(e->w, e->n->label);
    return emit_fresh(e->w,
                      emit_text_of(e->w, "%s_%d", op_info(e->n->op)->name, (int)ir_id(e->g, e->n)));
}

void emit_give(struct emit *e, rlx_str v)
{
    size_t count = e->to->node.count;
    struct onnx_node *last = count > e->first ? &e->to->node.at[count - 1] : NULL;

    e->result = v;
    if (e->w->no_memory || !last || !v.len)
        return;
    for (size_t i = 0; i < last->output.count; i++)
        if (last->output.at[i].ptr == v.ptr)
            last->output.at[i] = e->result = proper_name(e);
}

void emit_refuse(struct emit *e, const char *format, ...)
{
    char why[256];
    va_list args;
    const struct ir_node *n = e->n;

    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    e->result = STR("?");
    if (e->refused)
        return; /* the first reason will do */
    e->refused = true;
    e->w->refused++;
    size_t start = e->w->report->len;
    text_addf(e->w->report, "node %d", (int)ir_id(e->g, n));
    if (n->label.len)
        text_addf(e->w->report, " \"%.*s\"", STR_ARG(n->label));
    text_addf(e->w->report, ": %s: %s", op_info(n->op)->name, why);
    text_end_line(e->w->report, start);
}

/* ---- constants ---- */

void emit_tensor(struct onnx_writer *w, rlx_str name, const struct ir_type *type, const void *data)
{
    struct onnx_tensor *t = EMIT_MORE(w, &w->top->initializer);
    uint64_t bytes = 0;

    if (!t || !type_bytes(type, &bytes)) {
        w->no_memory = true;
        return;
    }
    t->name = name;
    t->data_type = onnx_dtype_number(type->dtype);
    t->raw = (rlx_str){data, (size_t)bytes};
    t->has_raw = true;
    for (int32_t i = 0; i < type->rank; i++) {
        int64_t *dim = EMIT_MORE(w, &t->dims);
        if (dim)
            *dim = type->dim[i];
    }
}

rlx_str emit_const(struct emit *e, rlx_dtype dtype, rlx_list shape, const void *data)
{
    struct onnx_writer *w = e->w;
    struct ir_type type = {.dtype = dtype, .rank = shape.count};
    rlx_str name = emit_fresh(w, emit_text_of(w, "const_%zu", w->constants++));
    uint64_t bytes = 0;

    memcpy(type.dim, shape.at, sizeof type.dim);
    type_bytes(&type, &bytes);
    rlx_str copy = arena_str(w->arena, (rlx_str){data, (size_t)bytes});
    w->no_memory |= !copy.ptr;
    emit_tensor(w, name, &type, copy.ptr);
    return name;
}

rlx_str emit_number(struct emit *e, rlx_dtype dtype, double v)
{
    uint8_t bytes[8];

    ir_number_bytes(dtype, v, bytes);
    return emit_const(e, dtype, RLX_EMPTY, bytes);
}

rlx_str emit_i64s(struct emit *e, const int64_t *v, size_t count)
{
    return emit_const(e, RLX_DTYPE_i64, RLX_LIST((int64_t)count), v);
}

rlx_str emit_i64(struct emit *e, int64_t v)
{
    return emit_i64s(e, &v, 1);
}

/* ---- what many need ---- */

rlx_str emit_cast(struct emit *e, rlx_str x, rlx_dtype from, rlx_dtype to)
{
    if (from == to)
        return x;
    x = emit_1(e, "Cast", x);
    emit_int(e, "to", onnx_dtype_number(to));
    return x;
}

rlx_str emit_reshape(struct emit *e, rlx_str x, rlx_list shape)
{
    bool has_zero = false;

    for (int32_t i = 0; i < shape.count; i++)
        has_zero |= shape.at[i] == 0;
    x = emit_2(e, "Reshape", x, emit_dims(e, shape));
    if (has_zero)
        emit_int(e, "allowzero", 1); /* otherwise 0 means "as it was" */
    return x;
}

rlx_str emit_transpose(struct emit *e, rlx_str x, const int64_t *perm, int32_t rank)
{
    bool same = true;

    for (int32_t i = 0; i < rank; i++)
        same &= perm[i] == i;
    if (same)
        return x;
    x = emit_1(e, "Transpose", x);
    emit_ints(e, "perm", perm, (size_t)rank);
    return x;
}

rlx_str emit_swap(struct emit *e, rlx_str x, int32_t rank, int32_t a, int32_t b)
{
    int64_t perm[RLX_MAX_RANK + 2];

    for (int32_t i = 0; i < rank; i++)
        perm[i] = i == a ? b : i == b ? a : i;
    return emit_transpose(e, x, perm, rank);
}

rlx_str emit_unsqueeze(struct emit *e, rlx_str x, int64_t axis)
{
    return emit_2(e, "Unsqueeze", x, emit_i64(e, axis));
}

rlx_str emit_slice(struct emit *e, rlx_str x, int64_t axis, rlx_str start, rlx_str end,
                   int64_t step)
{
    const rlx_str in[] = {x, start, end, emit_i64(e, axis), emit_i64(e, step)};

    return emit_node(e, "Slice", in, 5);
}

rlx_str emit_part(struct emit *e, rlx_str x, int64_t axis, int64_t start, int64_t len)
{
    return emit_slice(e, x, axis, emit_i64(e, start), emit_i64(e, start + len), 1);
}

rlx_str emit_concat(struct emit *e, const rlx_str *part, size_t count, int64_t axis)
{
    rlx_str y = emit_node(e, "Concat", part, count);

    emit_int(e, "axis", axis);
    return y;
}

rlx_str emit_expand(struct emit *e, rlx_str x, rlx_list shape)
{
    return emit_2(e, "Expand", x, emit_dims(e, shape));
}

rlx_str emit_index(struct emit *e, int32_t operand)
{
    rlx_dtype t = emit_type(e, operand)->dtype;

    return t == RLX_DTYPE_i32 ? e->in[operand] : emit_cast(e, e->in[operand], t, RLX_DTYPE_i64);
}

static rlx_dtype up(rlx_dtype t)
{
    return t == RLX_DTYPE_f16 || t == RLX_DTYPE_bf16 ? RLX_DTYPE_f32 : t;
}

rlx_str emit_up(struct emit *e, int32_t operand)
{
    rlx_dtype t = emit_type(e, operand)->dtype;

    return emit_cast(e, e->in[operand], t, up(t));
}

rlx_dtype emit_up_type(const struct emit *e)
{
    return up(emit_type(e, 0)->dtype);
}

void emit_give_down(struct emit *e, rlx_str v)
{
    emit_give(e, emit_cast(e, v, up(e->n->type.dtype), e->n->type.dtype));
}

rlx_dtype emit_wide(rlx_dtype t)
{
    switch (t) {
    case RLX_DTYPE_i8:
    case RLX_DTYPE_i16: return RLX_DTYPE_i32;
    case RLX_DTYPE_u8:
    case RLX_DTYPE_u16: return RLX_DTYPE_u32;
    default: return t;
    }
}

struct onnx_type *emit_tensor_type(struct onnx_writer *w, const struct ir_type *t)
{
    struct onnx_type *type = arena_new(w->arena, struct onnx_type);
    struct onnx_tensor_type *tensor = arena_new(w->arena, struct onnx_tensor_type);
    struct onnx_shape *shape = arena_new(w->arena, struct onnx_shape);
    struct dim_atom atom[DIM_MAX_ATOMS];
    size_t atoms;

    if (!type || !tensor || !shape) {
        w->no_memory = true;
        return NULL;
    }
    type->tensor = tensor;
    tensor->elem_type = onnx_dtype_number(t->dtype);
    tensor->shape = shape;
    for (int32_t i = 0; i < t->rank; i++) {
        struct onnx_dim *dim = EMIT_MORE(w, &shape->dim);
        if (!dim)
            return NULL;
        if (dim_is_static(t->dim[i])) {
            dim->has_value = true;
            dim->value = t->dim[i];
        } else if (dim_term_count(w->mod->dims, t->dim[i]) == 1 &&
                   dim_term_at(w->mod->dims, t->dim[i], 0, atom, &atoms) == 1 && atoms == 1 &&
                   atom[0].is_symbol)
            dim->param = dim_symbol_name(w->mod->dims, atom[0].symbol);
    }
    return type;
}
