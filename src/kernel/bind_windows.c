/* bind_windows.c: a kernel made for the way its buffers are bound, as one more kernel that the
 * emitters read like any other.
 *
 *     y[i] = x[i]           =>  y[i] = x[i + begin]          x begins inside its binding
 *     y[i] = a[i] + b[i]    =>  y[i] = ab[i + p] + ab[i + q]  a and b overlap, in one binding
 *     y[i] = x[i]           =>  if i < W { t = x0[i] } else { t = x1[i - W] }  y[i] = t
 *
 * The last is for buffers that are larger than what a device binds at once: several bindings are
 * windows of one, and each access chooses its own. Elements never lie across the edge of two. */
#include <stddef.h>
#include <string.h>

#include "kernel/kernel.h"

struct binder {
    const struct kir *k;
    const struct kc_binding *how;
    struct kir *out;
    const uint32_t *first; /* by buffer: its binding, or the first of its windows */
    kir_value *renamed;    /* by instruction of k */
    kir_value *begin;      /* by buffer: where its elements begin; KIR_NONE: at 0 */
    uint32_t instr_room, var_room;
    uint32_t at; /* in the source, of what is being written */
    struct arena *arena;
    struct diag *diag;
    rlx_status status;
};

static const struct kir_type none, word = {.scalar = KIR_U32, .lanes = 1};

/* ---- what is written ---- */

/* The array with room for one more; NULL: there is no memory. */
static void *grown(struct binder *b, void *from, uint32_t count, uint32_t *room, size_t each)
{
    if (count < *room)
        return from;
    uint32_t more = *room ? *room * 2 : 64;
    void *to = arena_alloc_array(b->arena, more, each, _Alignof(max_align_t));
    if (!to) {
        b->status = diag_no_memory(b->diag, more * each);
        return NULL;
    }
    if (count)
        memcpy(to, from, count * each);
    *room = more;
    return to;
}

static kir_value append(struct binder *b, const struct kir_instr *n)
{
    struct kir *k = b->out;

    if (b->status != RLX_OK)
        return KIR_NONE;
    struct kir_instr *all = grown(b, k->instr, k->instrs, &b->instr_room, sizeof *all);
    if (!all)
        return KIR_NONE;
    k->instr = all;
    k->instr[k->instrs] = *n;
    return k->instrs++;
}

static kir_value add(struct binder *b, enum kir_op op, struct kir_type type, kir_value x,
                     kir_value y, uint64_t imm)
{
    return append(b, &(struct kir_instr){.op = (uint16_t)op,
                                         .type = type,
                                         .a = x,
                                         .b = y,
                                         .c = KIR_NONE,
                                         .d = KIR_NONE,
                                         .imm = imm,
                                         .at = b->at});
}

static kir_value number(struct binder *b, uint64_t value)
{
    return add(b, KIR_CONST, word, KIR_NONE, KIR_NONE, value);
}

/* A variable of that type that holds what was loaded until it is used, right after. */
static uint32_t held(struct binder *b, struct kir_type type)
{
    struct kir *k = b->out;

    for (uint32_t i = b->k->vars; i < k->vars; i++)
        if (kir_type_same(k->var[i].type, type))
            return i;
    struct kir_var *all = grown(b, k->var, k->vars, &b->var_room, sizeof *all);
    if (!all)
        return 0;
    k->var = all;
    k->var[k->vars] = (struct kir_var){.name = STR("held"), .type = type};
    return k->vars++;
}

/* ---- one access ---- */

static bool is_access(const struct kir_instr *n)
{
    if (n->op == KIR_BUFFER_LOAD || n->op == KIR_BUFFER_STORE)
        return true;
    return (n->imm & KIR_IN_BUFFER) &&
           ((n->op >= KIR_ATOMIC_ADD && n->op <= KIR_ATOMIC_CAS) || n->op == KIR_COOP_LOAD ||
            n->op == KIR_COOP_STORE || n->op == KIR_COOP_LOAD_TILE || n->op == KIR_COOP_STORE_TILE);
}

static uint32_t buffer_of(const struct kir_instr *n)
{
    return (uint32_t)n->imm & ~KIR_IN_BUFFER;
}

static uint32_t root_of(const struct kc_binding *how, uint32_t i)
{
    return how->merge ? how->merge[i] : i;
}

static uint32_t windows_of(const struct kc_binding *how, uint32_t i)
{
    uint32_t count = how->windows ? how->windows[root_of(how, i)] : 1;

    return count ? count : 1;
}

static uint64_t window_elements(const struct binder *b, uint32_t i)
{
    struct kir_type t = b->k->buffer[i].type;

    return b->how->window / (kir_scalar_bytes((enum kir_scalar)t.scalar) * t.lanes);
}

/* Some of its operands are numbers, not values. */
static void rename_operands(const struct binder *b, struct kir_instr *n)
{
    bool number_in_d =
        n->op == KIR_COOP_LOAD || n->op == KIR_COOP_STORE || n->op == KIR_COOP_LOAD_TILE;
    kir_value *operand[] = {&n->a, &n->b, &n->c, &n->d};

    for (int i = 0; i < (number_in_d ? 3 : 4); i++)
        if (*operand[i] != KIR_NONE)
            *operand[i] = b->renamed[*operand[i]];
}

/* What it does, in one of the windows; its value is held. */
static void access_window(struct binder *b, const struct kir_instr *n, uint32_t window,
                          uint32_t var)
{
    uint32_t i = buffer_of(n);
    struct kir_instr one = *n;

    if (window)
        one.a = add(b, KIR_SUB, word, n->a, number(b, window * window_elements(b, i)), 0);
    one.imm = (n->imm & KIR_IN_BUFFER) | (b->first[i] + window);
    kir_value made = append(b, &one);
    if (one.type.scalar != KIR_VOID)
        add(b, KIR_STORE, none, KIR_NONE, made, var);
}

/* One of `count` windows from `from` on. */
static void choose_window(struct binder *b, const struct kir_instr *n, uint32_t from,
                          uint32_t count, uint32_t var)
{
    uint32_t half = count / 2;

    if (count == 1) {
        access_window(b, n, from, var);
        return;
    }
    kir_value edge = number(b, (from + half) * window_elements(b, buffer_of(n)));
    kir_value before = add(b, KIR_LT, kir_scalar_type(KIR_BOOL), n->a, edge, 0);
    add(b, KIR_IF, none, before, KIR_NONE, 0);
    choose_window(b, n, from, half, var);
    add(b, KIR_ELSE, none, KIR_NONE, KIR_NONE, 0);
    choose_window(b, n, from + half, count - half, var);
    add(b, KIR_END_IF, none, KIR_NONE, KIR_NONE, 0);
}

/* n: with its operands renamed. */
static kir_value access(struct binder *b, struct kir_instr *n)
{
    uint32_t i = buffer_of(n), windows = windows_of(b->how, i), var = 0;

    if (b->begin[i] != KIR_NONE)
        n->a = add(b, KIR_ADD, word, n->a, b->begin[i], 0);
    if (windows == 1) {
        n->imm = (n->imm & ~(uint64_t)UINT32_MAX) | (n->imm & KIR_IN_BUFFER) | b->first[i];
        return append(b, n);
    }
    if (n->op >= KIR_COOP_FILL) {
        b->status = diag_fail(b->diag, RLX_ERROR_LIMIT,
                              "%.*s: buffer %.*s is larger than what the device binds at once, and "
                              "tiles of matrices do not cross windows",
                              STR_ARG(b->k->name), STR_ARG(b->k->buffer[i].name));
        return KIR_NONE;
    }
    if (n->type.scalar != KIR_VOID)
        var = held(b, n->type);
    choose_window(b, n, 0, windows, var);
    return n->type.scalar == KIR_VOID ? KIR_NONE
                                      : add(b, KIR_LOAD, n->type, KIR_NONE, KIR_NONE, var);
}

/* ---- bindings ---- */

/* Overlapping buffers are one array, so their elements are of one type. */
static rlx_status join(const struct kir *k, uint32_t i, struct kir_buffer *with, struct diag *d)
{
    const struct kir_buffer *b = &k->buffer[i];

    if (!kir_type_same(b->type, with->type) || b->atomic != with->atomic)
        return diag_fail(d, RLX_ERROR_UNSUPPORTED,
                         "buffers %.*s and %.*s overlap and have elements of different types",
                         STR_ARG(b->name), STR_ARG(with->name));
    with->mode |= b->mode;
    return RLX_OK;
}

static rlx_status add_bindings(struct binder *b, uint32_t *first)
{
    uint32_t room = 0;

    for (uint32_t i = 0; i < b->k->buffers; i++)
        room += root_of(b->how, i) == i ? windows_of(b->how, i) : 0;
    struct kir_buffer *all = arena_array(b->arena, struct kir_buffer, room);
    if (!all)
        return diag_no_memory(b->diag, room * sizeof *all);
    b->out->buffers = 0;
    b->out->buffer = all;
    for (uint32_t i = 0; i < b->k->buffers; i++) {
        uint32_t root = root_of(b->how, i), windows = windows_of(b->how, i);
        if (windows > 1 && windows * window_elements(b, i) > UINT32_MAX)
            return diag_fail(b->diag, RLX_ERROR_LIMIT,
                             "%.*s: buffer %.*s has more elements than a kernel can count",
                             STR_ARG(b->k->name), STR_ARG(b->k->buffer[i].name));
        first[i] = root == i ? b->out->buffers : first[root];
        for (uint32_t w = 0; w < windows; w++)
            if (root == i)
                all[b->out->buffers++] = b->k->buffer[i];
            else
                TRY(join(b->k, i, &all[first[i] + w], b->diag));
    }
    return RLX_OK;
}

bool kc_begins_inside(const struct kc_binding *how, uint32_t i, uint32_t buffers)
{
    bool inside = how->offset && how->offset[i];

    for (uint32_t j = 0; j < buffers; j++)
        inside |= j != i && root_of(how, j) == root_of(how, i);
    return inside;
}

static void add_offsets(struct binder *b)
{
    for (uint32_t i = 0; i < b->k->buffers; i++) {
        b->begin[i] = KIR_NONE;
        if (kc_begins_inside(b->how, i, b->k->buffers))
            b->begin[i] = add(b, KIR_PARAM, word, KIR_NONE, KIR_NONE, b->out->param_words++);
    }
}

rlx_status kc_bind(const struct kir *k, const struct kc_binding *how, struct arena *arena,
                   struct kir *out, uint32_t *first, struct diag *d)
{
    struct binder b = {.k = k, .how = how, .out = out, .first = first, .arena = arena, .diag = d};

    *out = *k;
    out->instr = NULL;
    out->instrs = 0;
    b.var_room = k->vars; /* more of them are an array of their own */
    b.renamed = arena_array(arena, kir_value, k->instrs);
    b.begin = arena_array(arena, kir_value, k->buffers);
    if (!b.renamed || !b.begin)
        return diag_no_memory(d, k->instrs * sizeof *b.renamed);
    TRY(add_bindings(&b, first));
    add_offsets(&b);
    for (uint32_t i = 0; i < k->instrs && b.status == RLX_OK; i++) {
        struct kir_instr n = k->instr[i];
        b.at = n.at;
        rename_operands(&b, &n);
        b.renamed[i] = is_access(&n) ? access(&b, &n) : append(&b, &n);
    }
    return b.status;
}
