/* emit_spirv_matrix.c: cooperative matrices in SPIR-V. */
#include <string.h>

#include "kernel/emit_spirv.h"

/* ---- tiles ---- */

static spirv_id known_type(struct emit *e, uint32_t op, const uint32_t key[4])
{
    const struct spirv *s = &e->s;

    for (size_t i = 0; i < s->knowns; i++)
        if (s->known[i].op == op && memcmp(s->known[i].part, key, sizeof s->known[i].part) == 0)
            return s->known[i].id;
    return 0;
}

/* Two axes; what lies outside is zero. */
static spirv_id tile_layout_type(struct emit *e, bool inside)
{
    const uint32_t key[4] = {2, inside ? 0 : 1, 0, 0};
    struct spirv *s = &e->s;
    spirv_id id = known_type(e, OP_TYPE_TENSOR_LAYOUT, key);

    if (id)
        return id;
    spirv_capability(s, CAP_TENSOR, "SPV_NV_tensor_addressing");
    spirv_capability(s, CAP_COOP_TENSOR, "SPV_NV_cooperative_matrix2");
    spirv_id rank = spirv_word(s, 2), clamp = spirv_word(s, key[1]);
    id = spirv_new(s);
    SPIRV(s, SPIRV_GLOBALS, OP_TYPE_TENSOR_LAYOUT, id, rank, clamp);
    spirv_remember(s, OP_TYPE_TENSOR_LAYOUT, key, id);
    return id;
}

/* The two axes swapped. */
static spirv_id turned_view(struct emit *e)
{
    const uint32_t key[4] = {2, 0, 1, 0};
    struct spirv *s = &e->s;
    spirv_id type = known_type(e, OP_TYPE_TENSOR_VIEW, key);

    if (!type) {
        spirv_id rank = spirv_word(s, 2), no = spirv_constant(s, spirv_bool(s), 0, false),
                 one = spirv_word(s, 1), zero = spirv_word(s, 0);
        type = spirv_new(s);
        SPIRV(s, SPIRV_GLOBALS, OP_TYPE_TENSOR_VIEW, type, rank, no, one, zero);
        spirv_remember(s, OP_TYPE_TENSOR_VIEW, key, type);
    }
    return spirv_make(s, OP_CREATE_TENSOR_VIEW, type, NULL, 0);
}

static spirv_id lane_of(struct emit *e, kir_value v, uint32_t i)
{
    return SPIRV_MAKE(&e->s, OP_COMPOSITE_EXTRACT, spirv_int(&e->s, 32, false), e->value[v], i);
}

spirv_id emit_tile(struct emit *e, const struct kir_instr *n, uint32_t rows, uint32_t cols)
{
    struct spirv *s = &e->s;
    spirv_id type = tile_layout_type(e, (n->imm & KIR_INSIDE) != 0), one = spirv_word(s, 1);
    spirv_id l = spirv_make(s, OP_CREATE_TENSOR_LAYOUT, type, NULL, 0);

    l = SPIRV_MAKE(s, OP_TENSOR_LAYOUT_DIMENSION, type, l, lane_of(e, n->b, 0),
                   lane_of(e, n->b, 1));
    l = SPIRV_MAKE(s, OP_TENSOR_LAYOUT_STRIDE, type, l, lane_of(e, n->b, 2), one);
    return SPIRV_MAKE(s, OP_TENSOR_LAYOUT_SLICE, type, l, lane_of(e, n->c, 0), spirv_word(s, rows),
                      lane_of(e, n->c, 1), spirv_word(s, cols));
}

/* The matrix before the load is what elements that are not loaded would keep; there are none. */
static spirv_id tile_load(struct emit *e, const struct kir_instr *n, spirv_id type)
{
    struct spirv *s = &e->s;
    bool turned = n->d != 0;
    uint32_t rows = turned ? n->type.cols : n->type.rows,
             cols = turned ? n->type.rows : n->type.cols;
    enum spirv_storage storage;
    spirv_id at = emit_element(e, n->imm & UINT32_MAX, n->a, &storage);
    spirv_id layout = emit_tile(e, n, rows, cols);
    spirv_id before = spirv_make(s, OP_UNDEF, type, NULL, 0);

    if (!turned)
        return SPIRV_MAKE(s, OP_COOP_LOAD_TENSOR, type, at, before, layout, 0, 0);
    spirv_id view = turned_view(e);
    return SPIRV_MAKE(s, OP_COOP_LOAD_TENSOR, type, at, before, layout, 0, 1, view);
}

/* ---- rows and elements ---- */

enum { GLSL_EXP2 = 29, GLSL_F_MAX = 40, INLINE = 1, BY_ROW = 1 };

struct function {
    spirv_id id, param[6];
};

/* Begin a function that makes an f32 of such parameters; what is written next is its body. */
static struct function begin_function(struct emit *e, const spirv_id *type, uint32_t count)
{
    struct spirv *s = &e->s;
    spirv_id f32 = spirv_float(s, 32);
    struct function f = {.id = spirv_new(s)};
    const uint32_t key[4] = {f32, count, 0, 0}; /* as many parameters are of the same types */
    uint32_t word[8] = {known_type(e, OP_TYPE_FUNCTION, key), f32};

    if (!word[0]) {
        word[0] = spirv_new(s);
        memcpy(&word[2], type, count * sizeof *type);
        spirv_add(s, SPIRV_GLOBALS, OP_TYPE_FUNCTION, word, count + 2);
        spirv_remember(s, OP_TYPE_FUNCTION, key, word[0]);
    }
    SPIRV(s, SPIRV_FUNCTIONS, OP_FUNCTION, f32, f.id, INLINE, word[0]);
    for (uint32_t i = 0; i < count; i++) {
        f.param[i] = spirv_new(s);
        SPIRV(s, SPIRV_FUNCTIONS, OP_FUNCTION_PARAMETER, type[i], f.param[i]);
    }
    SPIRV(s, SPIRV_FUNCTIONS, OP_LABEL, spirv_new(s));
    return f;
}

static spirv_id within(struct emit *e, enum spirv_op op, spirv_id type, spirv_id a, spirv_id b)
{
    spirv_id id = spirv_new(&e->s);

    SPIRV(&e->s, SPIRV_FUNCTIONS, op, type, id, a, b);
    return id;
}

static void end_function(struct emit *e, spirv_id result)
{
    SPIRV(&e->s, SPIRV_FUNCTIONS, OP_RETURN_VALUE, result);
    spirv_add(&e->s, SPIRV_FUNCTIONS, OP_FUNCTION_END, NULL, 0);
}

static spirv_id larger_of(struct emit *e, spirv_id a, spirv_id b)
{
    spirv_id id = spirv_new(&e->s);

    SPIRV(&e->s, SPIRV_FUNCTIONS, OP_EXT_INST, spirv_float(&e->s, 32), id, e->s.glsl, GLSL_F_MAX, a,
          b);
    return id;
}

/* Of two elements of a row. */
static struct function row_function(struct emit *e, enum kir_op op)
{
    spirv_id f32 = spirv_float(&e->s, 32), type[2] = {f32, f32};
    struct function f = begin_function(e, type, 2);

    end_function(e, op == KIR_COOP_ROW_MAX ? larger_of(e, f.param[0], f.param[1])
                                           : within(e, OP_F_ADD, f32, f.param[0], f.param[1]));
    return f;
}

/* An element where low <= column - row <= high and column < count, else -inf. */
static spirv_id kept(struct emit *e, const struct function *f)
{
    struct spirv *s = &e->s;
    spirv_id yes = spirv_bool(s), i32 = spirv_int(s, 32, true), id = spirv_new(s);
    spirv_id column = spirv_new(s), row = spirv_new(s);
    spirv_id nothing = spirv_constant(s, spirv_float(s, 32), 0xff800000u, false);

    SPIRV(s, SPIRV_FUNCTIONS, OP_BITCAST, i32, column, f->param[1]);
    SPIRV(s, SPIRV_FUNCTIONS, OP_BITCAST, i32, row, f->param[0]);
    spirv_id off = within(e, OP_I_SUB, i32, column, row);
    spirv_id above = within(e, OP_S_GREATER_EQUAL, yes, off, f->param[3]);
    spirv_id below = within(e, OP_S_LESS_EQUAL, yes, off, f->param[4]);
    spirv_id there = within(e, OP_U_LESS, yes, f->param[1], f->param[5]);
    spirv_id in = within(e, OP_LOGICAL_AND, yes, above, below);
    spirv_id all = within(e, OP_LOGICAL_AND, yes, in, there);
    SPIRV(s, SPIRV_FUNCTIONS, OP_SELECT, spirv_float(s, 32), id, all, f->param[2], nothing);
    return id;
}

/* Of a row, a column, the element there, and operands. */
static struct function element_function(struct emit *e, enum kir_op op)
{
    struct spirv *s = &e->s;
    spirv_id u32 = spirv_int(s, 32, false), f32 = spirv_float(s, 32), i32 = spirv_int(s, 32, true);
    const spirv_id type[6] = {u32, u32, f32, op == KIR_COOP_MAX ? f32 : i32, i32, u32};
    struct function f = begin_function(e, type,
                                       op == KIR_COOP_EXP2  ? 3
                                       : op == KIR_COOP_MAX ? 4
                                                            : 6);
    spirv_id result;

    if (op == KIR_COOP_MAX) {
        result = larger_of(e, f.param[2], f.param[3]);
    } else if (op == KIR_COOP_EXP2) {
        result = spirv_new(s);
        SPIRV(s, SPIRV_FUNCTIONS, OP_EXT_INST, f32, result, s->glsl, GLSL_EXP2, f.param[2]);
    } else {
        result = kept(e, &f);
    }
    end_function(e, result);
    return f;
}

/* The function for an instruction, which the module has once. */
static spirv_id function_for(struct emit *e, enum kir_op op)
{
    const uint32_t key[4] = {op, 0, 0, 0};
    spirv_id id = known_type(e, OP_FUNCTION, key);

    if (id)
        return id;
    bool rows = op == KIR_COOP_ROW_MAX || op == KIR_COOP_ROW_SUM;
    id = rows ? row_function(e, op).id : element_function(e, op).id;
    spirv_remember(&e->s, OP_FUNCTION, key, id);
    return id;
}

static spirv_id reduce_rows(struct emit *e, const struct kir_instr *n, spirv_id type)
{
    spirv_capability(&e->s, CAP_COOP_REDUCTIONS, "SPV_NV_cooperative_matrix2");
    return SPIRV_MAKE(&e->s, OP_COOP_REDUCE, type, e->value[n->a], BY_ROW,
                      function_for(e, (enum kir_op)n->op));
}

static spirv_id by_element(struct emit *e, const struct kir_instr *n, spirv_id type)
{
    uint32_t word[5] = {e->value[n->a], function_for(e, (enum kir_op)n->op)}, count = 2;

    spirv_capability(&e->s, CAP_COOP_ELEMENTS, "SPV_NV_cooperative_matrix2");
    if (n->op != KIR_COOP_EXP2)
        word[count++] = e->value[n->b];
    if (n->op == KIR_COOP_BETWEEN) {
        word[count++] = e->value[n->c];
        word[count++] = e->value[n->d];
    }
    return spirv_make(&e->s, OP_COOP_PER_ELEMENT, type, word, count);
}

static spirv_id use_as(struct emit *e, const struct kir_instr *n, spirv_id type)
{
    spirv_capability(&e->s, CAP_COOP_CONVERSIONS, "SPV_NV_cooperative_matrix2");
    return SPIRV_MAKE(&e->s, OP_COOP_CONVERT, type, e->value[n->a]);
}

/* ---- all ---- */

spirv_id emit_matrix(struct emit *e, const struct kir_instr *n)
{
    spirv_id type = emit_type(e, n->type);
    enum spirv_storage storage;

    switch (n->op) {
    case KIR_COOP_LOAD_TILE: return tile_load(e, n, type);
    case KIR_COOP_FILL: return SPIRV_MAKE(&e->s, OP_COMPOSITE_CONSTRUCT, type, e->value[n->a]);
    case KIR_COOP_MULADD:
        return SPIRV_MAKE(&e->s, OP_COOP_MULADD, type, e->value[n->a], e->value[n->b],
                          e->value[n->c]);
    case KIR_COOP_USE_AS: return use_as(e, n, type);
    case KIR_COOP_ROW_MAX:
    case KIR_COOP_ROW_SUM: return reduce_rows(e, n, type);
    case KIR_COOP_MAX:
    case KIR_COOP_EXP2:
    case KIR_COOP_BETWEEN: return by_element(e, n, type);
    default: {
        spirv_id at = emit_element(e, n->imm, n->a, &storage);
        return SPIRV_MAKE(&e->s, OP_COOP_LOAD, type, at, spirv_word(&e->s, n->d), e->value[n->b],
                          emit_memory_of(e, storage));
    }
    }
}
