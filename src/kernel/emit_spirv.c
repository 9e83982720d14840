/* emit_spirv.c: kir as SPIR-V: the module's frame, control flow, and one case per instruction. */
#include "kernel/emit_spirv.h"

enum { VERSION_1_3 = 0x10300, VERSION_1_6 = 0x10600, COMPUTE = 5, LOCAL_SIZE = 17 };
enum { MODE_SMALL_PRESERVE = 4459, MODE_NAN_PRESERVE = 4461, MODE_ROUND_EVEN = 4462 };
enum { SCOPE_SUBGROUP = 3, SCOPE_GROUP = 2 };
enum { ACQUIRE_RELEASE = 8, OF_BUFFERS = 0x40, OF_GROUP = 0x100, SHOWN_TO_ALL = 0x6000 };

/* Its values are bits in a u32. */
static bool is_narrow(const struct emit *e, enum kir_scalar s)
{
    return s >= KIR_BF16 || (s == KIR_F16 && !e->f->f16);
}

bool emit_is_pair(const struct emit *e, enum kir_scalar s)
{
    return (s == KIR_I64 || s == KIR_U64) && !e->f->int64;
}

/* ---- types ---- */

static spirv_id scalar_type(struct emit *e, enum kir_scalar scalar)
{
    struct spirv *s = &e->s;

    if (is_narrow(e, scalar))
        return spirv_int(s, 32, false);
    switch (scalar) {
    case KIR_BOOL: return spirv_bool(s);
    case KIR_I32: return spirv_int(s, 32, true);
    case KIR_F32: return spirv_float(s, 32);
    case KIR_F16:
        spirv_capability(s, CAP_FLOAT16, NULL);
        if (e->f->storage16)
            spirv_capability(s, CAP_STORAGE16, NULL);
        return spirv_float(s, 16);
    case KIR_F64: spirv_capability(s, CAP_FLOAT64, NULL); return spirv_float(s, 64);
    case KIR_I64:
    case KIR_U64: spirv_capability(s, CAP_INT64, NULL); return spirv_int(s, 64, scalar == KIR_I64);
    default: return spirv_int(s, 32, false);
    }
}

/* bf16 is a type only in matrices; elsewhere it is bits. */
static spirv_id matrix_element(struct emit *e, enum kir_scalar scalar)
{
    struct spirv *s = &e->s;
    const uint32_t key[4] = {16, KIR_BF16, 0, 0};

    if (scalar != KIR_BF16)
        return scalar_type(e, scalar);
    for (size_t i = 0; i < s->knowns; i++)
        if (s->known[i].op == OP_TYPE_FLOAT && s->known[i].part[1] == KIR_BF16)
            return s->known[i].id;
    spirv_capability(s, CAP_BF16, "SPV_KHR_bfloat16");
    spirv_capability(s, CAP_COOP_BF16, NULL);
    spirv_id id = spirv_new(s);
    SPIRV(s, SPIRV_GLOBALS, OP_TYPE_FLOAT, id, 16, 0 /* the encoding */);
    spirv_remember(s, OP_TYPE_FLOAT, key, id);
    return id;
}

static spirv_id matrix_type(struct emit *e, struct kir_type t)
{
    static const uint32_t uses[] = {0, 0, 1, 2};
    struct spirv *s = &e->s;
    const uint32_t key[4] = {t.scalar, (uint32_t)t.rows << 16 | t.cols, t.use, t.group};
    spirv_id element = matrix_element(e, (enum kir_scalar)t.scalar);
    spirv_id scope = spirv_word(s, t.group ? SCOPE_GROUP : SCOPE_SUBGROUP);

    for (size_t i = 0; i < s->knowns; i++)
        if (s->known[i].op == OP_TYPE_COOP && s->known[i].part[0] == key[0] &&
            s->known[i].part[1] == key[1] && s->known[i].part[2] == key[2] &&
            s->known[i].part[3] == key[3])
            return s->known[i].id;
    spirv_capability(s, CAP_COOP, "SPV_KHR_cooperative_matrix");
    spirv_id rows = spirv_word(s, t.rows), cols = spirv_word(s, t.cols),
             use = spirv_word(s, uses[t.use]), id = spirv_new(s);
    SPIRV(s, SPIRV_GLOBALS, OP_TYPE_COOP, id, element, scope, rows, cols, use);
    spirv_remember(s, OP_TYPE_COOP, key, id);
    return id;
}

spirv_id emit_type(struct emit *e, struct kir_type t)
{
    enum kir_scalar scalar = (enum kir_scalar)t.scalar;

    if (t.use)
        return matrix_type(e, t);
    if (emit_is_pair(e, scalar))
        return spirv_vector(&e->s, spirv_int(&e->s, 32, false), 2);
    return spirv_vector(&e->s, scalar_type(e, scalar), t.lanes);
}

/* ---- control flow ---- */

struct block {
    bool loop, has_else;
    spirv_id other, merge, header, more; /* more: where a loop goes on to its next turn */
};

static void label(struct emit *e, spirv_id id)
{
    SPIRV(&e->s, SPIRV_CODE, OP_LABEL, id);
    e->open = true;
}

static void branch(struct emit *e, spirv_id to)
{
    if (e->open)
        SPIRV(&e->s, SPIRV_CODE, OP_BRANCH, to);
    e->open = false;
}

static void begin_if(struct emit *e, struct block *b, spirv_id cond)
{
    spirv_id then = spirv_new(&e->s);

    *b = (struct block){.other = spirv_new(&e->s), .merge = spirv_new(&e->s)};
    SPIRV(&e->s, SPIRV_CODE, OP_SELECTION_MERGE, b->merge, 0);
    SPIRV(&e->s, SPIRV_CODE, OP_BRANCH_CONDITIONAL, cond, then, b->other);
    label(e, then);
}

static void begin_loop(struct emit *e, struct block *b)
{
    spirv_id body = spirv_new(&e->s);

    *b = (struct block){.loop = true,
                        .header = spirv_new(&e->s),
                        .merge = spirv_new(&e->s),
                        .more = spirv_new(&e->s)};
    branch(e, b->header);
    label(e, b->header);
    SPIRV(&e->s, SPIRV_CODE, OP_LOOP_MERGE, b->merge, b->more, 0);
    branch(e, body);
    label(e, body);
}

static void end_if(struct emit *e, const struct block *b)
{
    branch(e, b->merge);
    if (!b->has_else) {
        label(e, b->other);
        branch(e, b->merge);
    }
    label(e, b->merge);
}

#define MAX_BLOCKS 192

struct blocks {
    struct block at[MAX_BLOCKS];
    size_t count;
};

static const struct block *innermost_loop(const struct blocks *b)
{
    size_t i = b->count - 1;

    while (!b->at[i].loop)
        i--;
    return &b->at[i];
}

/* true: it was one of these. */
static bool control(struct emit *e, const struct kir_instr *n, struct blocks *b)
{
    struct block *top = &b->at[b->count ? b->count - 1 : 0]; /* where there is one */

    switch (n->op) {
    case KIR_IF: begin_if(e, &b->at[b->count++], e->value[n->a]); break;
    case KIR_ELSE:
        branch(e, top->merge);
        top->has_else = true;
        label(e, top->other);
        break;
    case KIR_END_IF:
        end_if(e, top);
        b->count--;
        break;
    case KIR_LOOP: begin_loop(e, &b->at[b->count++]); break;
    case KIR_CONTINUING:
        branch(e, top->more);
        label(e, top->more);
        break;
    case KIR_END_LOOP:
        branch(e, top->header);
        label(e, top->merge);
        b->count--;
        break;
    case KIR_BREAK: branch(e, innermost_loop(b)->merge); break;
    case KIR_CONTINUE: branch(e, innermost_loop(b)->more); break;
    case KIR_RETURN:
        if (e->open)
            spirv_add(&e->s, SPIRV_CODE, OP_RETURN, NULL, 0);
        e->open = false;
        break;
    default: return false;
    }
    return true;
}

static void barrier(struct emit *e, const struct kir_instr *n)
{
    struct spirv *s = &e->s;
    uint32_t of = n->op == KIR_BUFFER_BARRIER ? OF_GROUP | OF_BUFFERS : OF_GROUP;

    if (e->k->uses_coop) /* the memory model that matrices need wants it said */
        of |= SHOWN_TO_ALL;
    SPIRV(s, SPIRV_CODE, OP_CONTROL_BARRIER, spirv_word(s, SCOPE_GROUP), spirv_word(s, SCOPE_GROUP),
          spirv_word(s, ACQUIRE_RELEASE | of));
}

/* ---- instructions ---- */

static spirv_id constant(struct emit *e, const struct kir_instr *n)
{
    bool wide = kir_scalar_bytes((enum kir_scalar)n->type.scalar) == 8;

    return spirv_constant(&e->s, emit_type(e, n->type), n->imm, wide);
}

static void matrix_store(struct emit *e, const struct kir_instr *n)
{
    enum spirv_storage storage;
    spirv_id at = emit_element(e, n->imm, n->a, &storage);

    SPIRV(&e->s, SPIRV_CODE, OP_COOP_STORE, at, e->value[n->c], spirv_word(&e->s, n->d),
          e->value[n->b], emit_memory_of(e, storage));
}

static void tile_store(struct emit *e, const struct kir_instr *n)
{
    struct kir_type t = emit_type_of(e, n->d);
    spirv_id layout = emit_tile(e, n, t.rows, t.cols);
    enum spirv_storage storage;

    SPIRV(&e->s, SPIRV_CODE, OP_COOP_STORE_TENSOR,
          emit_element(e, n->imm & UINT32_MAX, n->a, &storage), e->value[n->d], layout, 0, 0);
}

static void instruction(struct emit *e, uint32_t i)
{
    const struct kir_instr *n = &e->k->instr[i];

    switch (n->op) {
    case KIR_CONST: e->value[i] = constant(e, n); break;
    case KIR_PARAM: e->value[i] = emit_param(e, n); break;
    case KIR_BUILTIN: e->value[i] = emit_builtin(e, (enum kir_builtin)n->imm); break;
    case KIR_LOAD: e->value[i] = emit_load(e, n); break;
    case KIR_STORE: emit_store(e, n); break;
    case KIR_BUFFER_LOAD: e->value[i] = emit_buffer_load(e, n); break;
    case KIR_BUFFER_STORE: emit_buffer_store(e, n); break;
    case KIR_BARRIER:
    case KIR_BUFFER_BARRIER: barrier(e, n); break;
    case KIR_GROUP_LOAD:
        barrier(e, n);
        e->value[i] = emit_load(e, n);
        barrier(e, n);
        break;
    case KIR_COOP_STORE: matrix_store(e, n); break;
    case KIR_COOP_STORE_TILE: tile_store(e, n); break;
    default:
        e->value[i] = n->op >= KIR_ATOMIC_ADD && n->op <= KIR_ATOMIC_CAS ? emit_atomic(e, n)
                                                                         : emit_math(e, n);
    }
}

/* ---- the module ---- */

static void begin(struct emit *e)
{
    struct spirv *s = &e->s;
    spirv_id nothing, type;

    spirv_capability(s, CAP_SHADER, NULL);
    s->glsl = spirv_new(s);
    spirv_add_text(s, SPIRV_IMPORTS, OP_EXT_INST_IMPORT, &s->glsl, 1, STR("GLSL.std.450"), NULL, 0);
    nothing = spirv_type(s, OP_TYPE_VOID, 0, 0, 0);
    type = spirv_type(s, OP_TYPE_FUNCTION, nothing, 0, 0);
    e->entry = spirv_new(s);
    SPIRV(s, SPIRV_LOCALS, OP_FUNCTION, nothing, e->entry, 0, type);
    SPIRV(s, SPIRV_LOCALS, OP_LABEL, spirv_new(s));
    e->open = true;
}

static void float_mode(struct emit *e, enum spirv_capability c, uint32_t mode, uint32_t bits)
{
    bool first = !e->float_controls; /* the extension is named once */

    spirv_capability(&e->s, c, first ? "SPV_KHR_float_controls" : NULL);
    SPIRV(&e->s, SPIRV_MODES, OP_EXECUTION_MODE, e->entry, mode, bits);
    e->float_controls = true;
}

static void float_modes(struct emit *e)
{
    if (e->f->nan_preserve)
        float_mode(e, CAP_NAN_PRESERVE, MODE_NAN_PRESERVE, 32);
    if (e->f->small_preserve)
        float_mode(e, CAP_SMALL_PRESERVE, MODE_SMALL_PRESERVE, 32);
    if (e->f->f16_rounds && e->k->uses_f16)
        float_mode(e, CAP_ROUND_EVEN, MODE_ROUND_EVEN, 16);
}

/* The interface lists inputs; from 1.4 on all global variables. */
static void end(struct emit *e)
{
    struct spirv *s = &e->s;
    uint32_t word[2] = {COMPUTE, e->entry}, *list, count = 0;
    bool coop = e->k->uses_coop;

    if (coop)
        spirv_capability(s, CAP_MEMORY_MODEL, NULL);
    SPIRV(s, SPIRV_MODEL, OP_MEMORY_MODEL, 0, coop ? 3u : 1u);
    list = arena_array(s->arena, uint32_t, (size_t)e->k->buffers + e->k->vars + 16);
    if (!list) {
        s->status = diag_no_memory(s->diag, 16 * sizeof *list);
        return;
    }
    for (size_t i = 0; i < 13; i++)
        if (e->builtin[i])
            list[count++] = e->builtin[i];
    for (uint32_t i = 0; coop && i < e->k->buffers; i++)
        list[count++] = e->buffer[i];
    for (uint32_t i = 0; coop && i < e->k->vars; i++)
        if (e->k->var[i].shared || e->k->var[i].table)
            list[count++] = e->var[i];
    if (coop && e->params)
        list[count++] = e->params;
    spirv_add_text(s, SPIRV_ENTRY, OP_ENTRY_POINT, word, 2, STR("main"), list, count);
    SPIRV(s, SPIRV_MODES, OP_EXECUTION_MODE, e->entry, LOCAL_SIZE, e->k->group[0], e->k->group[1],
          e->k->group[2]);
    float_modes(e);
    if (e->open)
        spirv_add(s, SPIRV_CODE, OP_RETURN, NULL, 0);
    spirv_add(s, SPIRV_CODE, OP_FUNCTION_END, NULL, 0);
}

static rlx_status body(struct emit *e)
{
    struct blocks blocks = {.count = 0};

    for (uint32_t i = 0; i < e->k->instrs && e->s.status == RLX_OK; i++) {
        if (blocks.count == MAX_BLOCKS)
            return diag_fail(e->s.diag, RLX_ERROR_LIMIT, "%.*s: more than %d blocks in one another",
                             STR_ARG(e->k->name), MAX_BLOCKS);
        if (!control(e, &e->k->instr[i], &blocks))
            instruction(e, i);
    }
    return e->s.status;
}

rlx_status kc_emit_spirv(const struct kir *k, const struct kc_emit *how, struct arena *arena,
                         uint32_t **words, size_t *count, struct diag *d)
{
    struct emit e = {.s = {.arena = arena, .diag = d, .next = 1}, .k = k, .f = how->features};

    e.value = arena_array(arena, spirv_id, k->instrs);
    e.buffer = arena_array(arena, spirv_id, k->buffers);
    e.var = arena_array(arena, spirv_id, k->vars);
    if (!e.value || !e.buffer || !e.var)
        return diag_no_memory(d, k->instrs * sizeof *e.value);
    begin(&e);
    TRY(emit_interface(&e));
    TRY(body(&e));
    end(&e);
    return spirv_finish(&e.s, k->uses_coop ? VERSION_1_6 : VERSION_1_3, words, count);
}
