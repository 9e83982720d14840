/* emit_spirv_memory.c: buffers, parameters and variables in SPIR-V. */
#include "kernel/emit_spirv.h"

#define PUSH_WORDS 32 /* push constants that every device has */

enum {
    NON_WRITABLE = 24,
    BUFFER_BLOCK = 2,
    ARRAY_STRIDE = 6,
    OFFSET = 35,
    BINDING = 33,
    SET = 34,
    BUILTIN = 11
};
enum { SCOPE_DEVICE = 1, SCOPE_GROUP = 2, RELAXED = 0 };

static spirv_id word_type(struct emit *e)
{
    return spirv_int(&e->s, 32, false);
}

/* ---- layouts ---- */

static enum spirv_layout layout_of(const struct emit *e, const struct kir_buffer *b)
{
    enum kir_scalar scalar = (enum kir_scalar)b->type.scalar;
    uint32_t bytes = kir_scalar_bytes(scalar);

    if (bytes >= 4)
        return LAYOUT_PLAIN;
    if (b->type.lanes > 1)
        return LAYOUT_WORDS;
    if (bytes == 2 && e->f->storage16)
        return scalar == KIR_F16 && e->f->f16 ? LAYOUT_PLAIN : LAYOUT_SMALL;
    return bytes == 1 && e->f->storage8 ? LAYOUT_SMALL : LAYOUT_PACKED;
}

/* The type of what lies in the buffer, and its bytes. */
static spirv_id stored_type(struct emit *e, const struct kir_buffer *b, uint32_t *bytes)
{
    uint32_t each = kir_scalar_bytes((enum kir_scalar)b->type.scalar);

    *bytes = each * b->type.lanes;
    switch (layout_of(e, b)) {
    case LAYOUT_PLAIN: return emit_type(e, b->type);
    case LAYOUT_SMALL:
        spirv_capability(&e->s, each == 2 ? CAP_STORAGE16 : CAP_STORAGE8,
                         each == 2 ? NULL : "SPV_KHR_8bit_storage");
        return spirv_int(&e->s, each * 8, false);
    case LAYOUT_PACKED: *bytes = 4; return word_type(e);
    default: return spirv_vector(&e->s, word_type(e), *bytes / 4);
    }
}

/* ---- declarations ---- */

static void name(struct emit *e, spirv_id id, rlx_str text)
{
    spirv_add_text(&e->s, SPIRV_NAMES, OP_NAME, &id, 1, text, NULL, 0);
}

/* struct { element array[]; } at a binding. */
static spirv_id block(struct emit *e, spirv_id element, uint32_t stride, uint32_t binding)
{
    struct spirv *s = &e->s;
    spirv_id array = spirv_new(s), type = spirv_new(s), var = spirv_new(s);

    SPIRV(s, SPIRV_GLOBALS, OP_TYPE_RUNTIME_ARRAY, array, element);
    SPIRV(s, SPIRV_GLOBALS, OP_TYPE_STRUCT, type, array);
    SPIRV(s, SPIRV_DECORATIONS, OP_DECORATE, array, ARRAY_STRIDE, stride);
    SPIRV(s, SPIRV_DECORATIONS, OP_DECORATE, type, BUFFER_BLOCK);
    SPIRV(s, SPIRV_DECORATIONS, OP_MEMBER_DECORATE, type, 0, OFFSET, 0);
    SPIRV(s, SPIRV_GLOBALS, OP_VARIABLE, spirv_pointer(s, SPIRV_STORAGE, type), var, SPIRV_STORAGE);
    SPIRV(s, SPIRV_DECORATIONS, OP_DECORATE, var, SET, 0);
    SPIRV(s, SPIRV_DECORATIONS, OP_DECORATE, var, BINDING, binding);
    return var;
}

static rlx_status add_buffer(struct emit *e, uint32_t i)
{
    const struct kir_buffer *b = &e->k->buffer[i];
    uint32_t bytes;
    spirv_id element = stored_type(e, b, &bytes);

    if (b->type.lanes == 3 || (layout_of(e, b) == LAYOUT_WORDS && bytes % 4))
        return diag_fail(e->s.diag, RLX_ERROR_UNSUPPORTED,
                         "buffer %.*s: elements of %u bytes cannot lie in a buffer",
                         STR_ARG(b->name), bytes);
    e->buffer[i] = block(e, element, bytes, i);
    name(e, e->buffer[i], b->name);
    if (!(b->mode & KIR_OUT))
        SPIRV(&e->s, SPIRV_DECORATIONS, OP_MEMBER_DECORATE,
              /* the struct is the id after its array's */ e->buffer[i] - 1, 0, NON_WRITABLE);
    return RLX_OK;
}

/* Words: push constants where there are few, else one more buffer. */
static void add_params(struct emit *e)
{
    struct spirv *s = &e->s;
    spirv_id word = word_type(e);

    if (e->k->param_words == 0)
        return;
    e->params_pushed = e->k->param_words <= PUSH_WORDS;
    if (!e->params_pushed) {
        e->params = block(e, word, 4, e->k->buffers);
        SPIRV(s, SPIRV_DECORATIONS, OP_MEMBER_DECORATE, e->params - 1, 0, NON_WRITABLE);
    } else {
        spirv_id count = spirv_word(s, e->k->param_words), array = spirv_new(s),
                 type = spirv_new(s);
        SPIRV(s, SPIRV_GLOBALS, OP_TYPE_ARRAY, array, word, count);
        SPIRV(s, SPIRV_GLOBALS, OP_TYPE_STRUCT, type, array);
        SPIRV(s, SPIRV_DECORATIONS, OP_DECORATE, array, ARRAY_STRIDE, 4);
        SPIRV(s, SPIRV_DECORATIONS, OP_DECORATE, type, BUFFER_BLOCK);
        SPIRV(s, SPIRV_DECORATIONS, OP_MEMBER_DECORATE, type, 0, OFFSET, 0);
        e->params = spirv_new(s);
        SPIRV(s, SPIRV_GLOBALS, OP_VARIABLE, spirv_pointer(s, SPIRV_PUSH, type), e->params,
              SPIRV_PUSH);
    }
    name(e, e->params, STR("params"));
}

static spirv_id variable_type(struct emit *e, const struct kir_var *v)
{
    struct kir_type element = v->type;

    element.count = 0;
    spirv_id type = emit_type(e, element);
    return v->type.count
               ? spirv_type(&e->s, OP_TYPE_ARRAY, type, spirv_word(&e->s, v->type.count), 0)
               : type;
}

static void add_table(struct emit *e, uint32_t i)
{
    const struct kir_var *v = &e->k->var[i];
    struct kir_type element = v->type;
    spirv_id type = variable_type(e, v), table = spirv_new(&e->s);
    uint32_t *word = arena_array(e->s.arena, uint32_t, v->type.count + 2);

    if (!word) {
        e->s.status = diag_no_memory(e->s.diag, v->type.count * sizeof *word);
        return;
    }
    element.count = 0;
    word[0] = type;
    word[1] = table;
    for (uint32_t n = 0; n < v->type.count; n++)
        word[n + 2] = spirv_constant(&e->s, emit_type(e, element), v->table[n], false);
    spirv_add(&e->s, SPIRV_GLOBALS, OP_CONSTANT_COMPOSITE, word, v->type.count + 2);
    SPIRV(&e->s, SPIRV_GLOBALS, OP_VARIABLE, spirv_pointer(&e->s, SPIRV_PRIVATE, type), e->var[i],
          SPIRV_PRIVATE, table);
}

static void add_variable(struct emit *e, uint32_t i)
{
    const struct kir_var *v = &e->k->var[i];
    enum spirv_storage storage = v->shared ? SPIRV_WORKGROUP : SPIRV_FUNCTION;

    e->var[i] = spirv_new(&e->s);
    name(e, e->var[i], v->name);
    if (v->table) {
        add_table(e, i);
        return;
    }
    SPIRV(&e->s, v->shared ? SPIRV_GLOBALS : SPIRV_LOCALS, OP_VARIABLE,
          spirv_pointer(&e->s, storage, variable_type(e, v)), e->var[i], storage);
}

rlx_status emit_interface(struct emit *e)
{
    for (uint32_t i = 0; i < e->k->buffers; i++)
        TRY(add_buffer(e, i));
    add_params(e);
    for (uint32_t i = 0; i < e->k->vars; i++)
        add_variable(e, i);
    return e->s.status;
}

/* ---- parameters and builtins ---- */

static spirv_id param_word(struct emit *e, spirv_id index)
{
    enum spirv_storage storage = e->params_pushed ? SPIRV_PUSH : SPIRV_STORAGE;
    spirv_id type = word_type(e);
    spirv_id at = SPIRV_MAKE(&e->s, OP_ACCESS_CHAIN, spirv_pointer(&e->s, storage, type), e->params,
                             spirv_word(&e->s, 0), index);

    return SPIRV_MAKE(&e->s, OP_LOAD, type, at);
}

spirv_id emit_param(struct emit *e, const struct kir_instr *n)
{
    spirv_id index = spirv_word(&e->s, (uint32_t)n->imm);

    if (n->a != KIR_NONE)
        index = SPIRV_MAKE(&e->s, OP_I_ADD, word_type(e), index, e->value[n->a]);
    spirv_id word = param_word(e, index);
    return n->type.scalar == KIR_U32 ? word
                                     : SPIRV_MAKE(&e->s, OP_BITCAST, emit_type(e, n->type), word);
}

spirv_id emit_builtin(struct emit *e, enum kir_builtin b)
{
    /* WorkgroupId, NumWorkgroups, LocalInvocationId; the others are numbers by themselves. */
    static const uint32_t numbers[] = {26, 26, 26, 24, 24, 24, 27, 27, 27, 29, 41, 36, 40};
    struct spirv *s = &e->s;
    bool vector = b < KIR_LOCAL_INDEX;
    int slot = vector ? (int)b / 3 * 3 : (int)b;
    spirv_id word = word_type(e), type = vector ? spirv_vector(s, word, 3) : word;

    if (b >= KIR_SUBGROUP_LANE)
        spirv_capability(s, CAP_GROUP, NULL);
    if (!e->builtin[slot]) {
        e->builtin[slot] = spirv_new(s);
        SPIRV(s, SPIRV_GLOBALS, OP_VARIABLE, spirv_pointer(s, SPIRV_INPUT, type), e->builtin[slot],
              SPIRV_INPUT);
        SPIRV(s, SPIRV_DECORATIONS, OP_DECORATE, e->builtin[slot], BUILTIN, numbers[b]);
    }
    spirv_id all = SPIRV_MAKE(s, OP_LOAD, type, e->builtin[slot]);
    return vector ? SPIRV_MAKE(s, OP_COMPOSITE_EXTRACT, word, all, (uint32_t)b % 3) : all;
}

/* ---- variables ---- */

static spirv_id var_pointer(struct emit *e, uint32_t i, kir_value index, spirv_id type)
{
    const struct kir_var *v = &e->k->var[i];
    enum spirv_storage storage = v->table    ? SPIRV_PRIVATE
                                 : v->shared ? SPIRV_WORKGROUP
                                             : SPIRV_FUNCTION;

    if (index == KIR_NONE)
        return e->var[i];
    return SPIRV_MAKE(&e->s, OP_ACCESS_CHAIN, spirv_pointer(&e->s, storage, type), e->var[i],
                      e->value[index]);
}

uint32_t emit_memory_of(const struct emit *e, enum spirv_storage storage)
{
    enum { NOTHING = 0, NOT_PRIVATE = 0x20 };

    return e->k->uses_coop && storage == SPIRV_WORKGROUP ? NOT_PRIVATE : NOTHING;
}

spirv_id emit_load(struct emit *e, const struct kir_instr *n)
{
    spirv_id type = emit_type(e, n->type);
    spirv_id at = var_pointer(e, (uint32_t)n->imm, n->a, type);

    if (e->k->var[n->imm].atomic)
        return SPIRV_MAKE(&e->s, OP_ATOMIC_LOAD, type, at, spirv_word(&e->s, SCOPE_GROUP),
                          spirv_word(&e->s, RELAXED));
    if (e->k->var[n->imm].shared && e->k->uses_coop)
        return SPIRV_MAKE(&e->s, OP_LOAD, type, at, emit_memory_of(e, SPIRV_WORKGROUP));
    return SPIRV_MAKE(&e->s, OP_LOAD, type, at);
}

void emit_store(struct emit *e, const struct kir_instr *n)
{
    spirv_id type = emit_type(e, emit_type_of(e, n->b));
    spirv_id at = var_pointer(e, (uint32_t)n->imm, n->a, type);

    if (e->k->var[n->imm].atomic)
        SPIRV(&e->s, SPIRV_CODE, OP_ATOMIC_STORE, at, spirv_word(&e->s, SCOPE_GROUP),
              spirv_word(&e->s, RELAXED), e->value[n->b]);
    else if (e->k->var[n->imm].shared && e->k->uses_coop)
        SPIRV(&e->s, SPIRV_CODE, OP_STORE, at, e->value[n->b], emit_memory_of(e, SPIRV_WORKGROUP));
    else
        SPIRV(&e->s, SPIRV_CODE, OP_STORE, at, e->value[n->b]);
}

/* ---- buffers ---- */

static spirv_id pointer_at(struct emit *e, uint32_t buffer, spirv_id index, spirv_id type)
{
    return SPIRV_MAKE(&e->s, OP_ACCESS_CHAIN, spirv_pointer(&e->s, SPIRV_STORAGE, type),
                      e->buffer[buffer], spirv_word(&e->s, 0), index);
}

spirv_id emit_element(struct emit *e, uint64_t imm, kir_value index, enum spirv_storage *storage)
{
    uint32_t i = (uint32_t)imm & ~KIR_IN_BUFFER, bytes;

    if (imm & KIR_IN_BUFFER) {
        *storage = SPIRV_STORAGE;
        spirv_id type = stored_type(e, &e->k->buffer[i], &bytes);
        return pointer_at(e, i, e->value[index], type);
    }
    struct kir_type t = e->k->var[i].type;
    t.count = 0;
    *storage = SPIRV_WORKGROUP;
    return var_pointer(e, i, index, emit_type(e, t));
}

static spirv_id op2(struct emit *e, enum spirv_op op, spirv_id a, spirv_id b)
{
    return SPIRV_MAKE(&e->s, op, word_type(e), a, b);
}

/* A narrow element among others in its word: which word, and how far up. */
static spirv_id packed_word(struct emit *e, uint32_t bytes, spirv_id index, spirv_id *shift)
{
    uint32_t log = bytes == 2 ? 1 : 2; /* elements in a word, as a power of two */
    struct spirv *s = &e->s;
    spirv_id lane = op2(e, OP_BITWISE_AND, index, spirv_word(s, (1u << log) - 1));

    *shift = op2(e, OP_I_MUL, lane, spirv_word(s, bytes * 8));
    return op2(e, OP_SHIFT_RIGHT_LOGICAL, index, spirv_word(s, log));
}

static uint32_t mask_of(uint32_t bytes)
{
    return bytes == 2 ? 0xffff : 0xff;
}

/* Bits as the value they stand for: f16 where the device has it, else themselves. */
static spirv_id from_bits(struct emit *e, spirv_id bits, struct kir_type t)
{
    struct spirv *s = &e->s;

    if (t.scalar != KIR_F16 || !e->f->f16)
        return bits;
    spirv_id half = emit_type(e, kir_scalar_type(KIR_F16)), pair = spirv_vector(s, half, 2);
    return SPIRV_MAKE(s, OP_COMPOSITE_EXTRACT, half, SPIRV_MAKE(s, OP_BITCAST, pair, bits), 0);
}

static spirv_id to_bits(struct emit *e, spirv_id value, struct kir_type t)
{
    struct spirv *s = &e->s;

    if (t.scalar != KIR_F16 || !e->f->f16)
        return value;
    spirv_id half = emit_type(e, kir_scalar_type(KIR_F16)), pair = spirv_vector(s, half, 2);
    spirv_id both =
        SPIRV_MAKE(s, OP_COMPOSITE_CONSTRUCT, pair, value, spirv_constant(s, half, 0, false));
    return SPIRV_MAKE(s, OP_BITCAST, word_type(e), both);
}

/* Lane i of a narrow vector in one word or two. */
static spirv_id split_lane(struct emit *e, spirv_id words, uint32_t count, uint32_t i,
                           uint32_t bytes)
{
    uint32_t at = i * bytes;
    spirv_id word = words;

    if (count > 1)
        word = SPIRV_MAKE(&e->s, OP_COMPOSITE_EXTRACT, word_type(e), words, at / 4);
    if (at % 4)
        word = op2(e, OP_SHIFT_RIGHT_LOGICAL, word, spirv_word(&e->s, at % 4 * 8));
    return op2(e, OP_BITWISE_AND, word, spirv_word(&e->s, mask_of(bytes)));
}

static spirv_id load_words(struct emit *e, spirv_id words, struct kir_type t)
{
    uint32_t bytes = kir_scalar_bytes((enum kir_scalar)t.scalar), count = bytes * t.lanes / 4;
    spirv_id lane[4], type = emit_type(e, t);

    if (t.scalar == KIR_F16 && e->f->f16)
        return SPIRV_MAKE(&e->s, OP_BITCAST, type, words);
    for (uint32_t i = 0; i < t.lanes; i++)
        lane[i] = split_lane(e, words, count, i, bytes);
    return spirv_make(&e->s, OP_COMPOSITE_CONSTRUCT, type, lane, t.lanes);
}

spirv_id emit_buffer_load(struct emit *e, const struct kir_instr *n)
{
    uint32_t i = (uint32_t)n->imm, bytes;
    const struct kir_buffer *b = &e->k->buffer[i];
    struct spirv *s = &e->s;
    enum spirv_layout layout = layout_of(e, b);
    spirv_id index = e->value[n->a], stored = stored_type(e, b, &bytes), shift = 0;

    if (layout == LAYOUT_PACKED) {
        bytes = kir_scalar_bytes((enum kir_scalar)b->type.scalar);
        index = packed_word(e, bytes, index, &shift);
    }
    spirv_id at = pointer_at(e, i, index, stored);
    if (b->atomic)
        return SPIRV_MAKE(s, OP_ATOMIC_LOAD, stored, at, spirv_word(s, SCOPE_DEVICE),
                          spirv_word(s, RELAXED));
    spirv_id got = SPIRV_MAKE(s, OP_LOAD, stored, at);
    switch (layout) {
    case LAYOUT_PLAIN: return got;
    case LAYOUT_SMALL: return from_bits(e, SPIRV_MAKE(s, OP_U_CONVERT, word_type(e), got), n->type);
    case LAYOUT_WORDS: return load_words(e, got, n->type);
    default:
        got = op2(e, OP_SHIFT_RIGHT_LOGICAL, got, shift);
        return from_bits(e, op2(e, OP_BITWISE_AND, got, spirv_word(s, mask_of(bytes))), n->type);
    }
}

/* Others write their parts of the word at the same time: clear ours, then set it. */
static void store_packed(struct emit *e, uint32_t buffer, spirv_id index, uint32_t bytes,
                         spirv_id bits)
{
    struct spirv *s = &e->s;
    spirv_id shift, word = packed_word(e, bytes, index, &shift), type = word_type(e);
    spirv_id at = pointer_at(e, buffer, word, type);
    spirv_id mask = op2(e, OP_SHIFT_LEFT, spirv_word(s, mask_of(bytes)), shift);
    spirv_id keep = SPIRV_MAKE(s, OP_NOT, type, mask);

    bits = op2(e, OP_BITWISE_AND, bits, spirv_word(s, mask_of(bytes)));
    bits = op2(e, OP_SHIFT_LEFT, bits, shift);
    SPIRV_MAKE(s, OP_ATOMIC_AND, type, at, spirv_word(s, SCOPE_DEVICE), spirv_word(s, RELAXED),
               keep);
    SPIRV_MAKE(s, OP_ATOMIC_OR, type, at, spirv_word(s, SCOPE_DEVICE), spirv_word(s, RELAXED),
               bits);
}

static spirv_id join_words(struct emit *e, spirv_id value, struct kir_type t)
{
    uint32_t bytes = kir_scalar_bytes((enum kir_scalar)t.scalar), count = bytes * t.lanes / 4;
    spirv_id word[2] = {0}, type = spirv_vector(&e->s, word_type(e), count);

    if (t.scalar == KIR_F16 && e->f->f16)
        return SPIRV_MAKE(&e->s, OP_BITCAST, type, value);
    for (uint32_t i = 0; i < t.lanes; i++) {
        uint32_t at = i * bytes;
        spirv_id lane = SPIRV_MAKE(&e->s, OP_COMPOSITE_EXTRACT, word_type(e), value, i);
        lane = op2(e, OP_BITWISE_AND, lane, spirv_word(&e->s, mask_of(bytes)));
        if (at % 4)
            lane = op2(e, OP_SHIFT_LEFT, lane, spirv_word(&e->s, at % 4 * 8));
        word[at / 4] = at % 4 ? op2(e, OP_BITWISE_OR, word[at / 4], lane) : lane;
    }
    return count == 1 ? word[0] : spirv_make(&e->s, OP_COMPOSITE_CONSTRUCT, type, word, 2);
}

void emit_buffer_store(struct emit *e, const struct kir_instr *n)
{
    uint32_t i = (uint32_t)n->imm, bytes;
    const struct kir_buffer *b = &e->k->buffer[i];
    struct spirv *s = &e->s;
    enum spirv_layout layout = layout_of(e, b);
    spirv_id index = e->value[n->a], value = e->value[n->b];

    if (layout == LAYOUT_PACKED) {
        bytes = kir_scalar_bytes((enum kir_scalar)b->type.scalar);
        store_packed(e, i, index, bytes, to_bits(e, value, b->type));
        return;
    }
    spirv_id stored = stored_type(e, b, &bytes), at = pointer_at(e, i, index, stored);
    if (layout == LAYOUT_SMALL)
        value = SPIRV_MAKE(s, OP_U_CONVERT, stored, to_bits(e, value, b->type));
    else if (layout == LAYOUT_WORDS)
        value = join_words(e, value, b->type);
    if (b->atomic)
        SPIRV(s, SPIRV_CODE, OP_ATOMIC_STORE, at, spirv_word(s, SCOPE_DEVICE),
              spirv_word(s, RELAXED), value);
    else
        SPIRV(s, SPIRV_CODE, OP_STORE, at, value);
}

spirv_id emit_atomic(struct emit *e, const struct kir_instr *n)
{
    bool is_signed = n->type.scalar == KIR_I32;
    enum spirv_storage storage;
    struct spirv *s = &e->s;
    spirv_id at = emit_element(e, n->imm, n->a, &storage), type = emit_type(e, n->type);
    spirv_id scope = spirv_word(s, storage == SPIRV_WORKGROUP ? SCOPE_GROUP : SCOPE_DEVICE);
    spirv_id none = spirv_word(s, RELAXED), value = e->value[n->b];
    enum spirv_op op = OP_ATOMIC_I_ADD;

    switch (n->op) {
    case KIR_ATOMIC_MIN: op = is_signed ? OP_ATOMIC_S_MIN : OP_ATOMIC_U_MIN; break;
    case KIR_ATOMIC_MAX: op = is_signed ? OP_ATOMIC_S_MAX : OP_ATOMIC_U_MAX; break;
    case KIR_ATOMIC_AND: op = OP_ATOMIC_AND; break;
    case KIR_ATOMIC_OR: op = OP_ATOMIC_OR; break;
    case KIR_ATOMIC_XOR: op = OP_ATOMIC_XOR; break;
    case KIR_ATOMIC_SWAP: op = OP_ATOMIC_EXCHANGE; break;
    case KIR_ATOMIC_CAS:
        return SPIRV_MAKE(s, OP_ATOMIC_COMPARE_EXCHANGE, type, at, scope, none, none, value,
                          e->value[n->c]);
    default: break;
    }
    return SPIRV_MAKE(s, op, type, at, scope, none, value);
}
