/* emit_wgsl_memory.c: buffers, parameters and variables in WGSL.
 *
 * Narrow elements lie several in a u32. A buffer of such that is written is made of atomic words,
 * as others may write to the same word at the same time. */
#include "kernel/emit_wgsl.h"

#include <string.h>

static uint32_t element_bytes(const struct kir_buffer *b)
{
    return kir_scalar_bytes((enum kir_scalar)b->type.scalar);
}

/* f16 that the device has lies as it is; vectors of narrow elements are whole words. */
static bool is_packed(const struct wgsl *w, const struct kir_buffer *b)
{
    return element_bytes(b) < 4 && b->type.lanes == 1 && !(b->type.scalar == KIR_F16 && w->f->f16);
}

static bool is_words(const struct wgsl *w, const struct kir_buffer *b)
{
    return element_bytes(b) < 4 && b->type.lanes > 1 && !(b->type.scalar == KIR_F16 && w->f->f16);
}

static bool is_atomic(const struct wgsl *w, uint32_t i)
{
    const struct kir_buffer *b = &w->k->buffer[i];

    return b->atomic || (is_packed(w, b) && (b->mode & KIR_OUT));
}

/* ---- declarations ---- */

static void element_type(struct wgsl *w, uint32_t i)
{
    const struct kir_buffer *b = &w->k->buffer[i];
    uint32_t words = element_bytes(b) * b->type.lanes / 4;

    if (b->atomic || is_packed(w, b)) {
        const char *of = b->type.scalar == KIR_I32 ? "i32" : "u32";
        text_addf(w->out, is_atomic(w, i) ? "atomic<%s>" : "%s", of);
    } else if (is_words(w, b)) {
        text_addf(w->out, words > 1 ? "vec%u<u32>" : "u32", words);
    } else {
        wgsl_type(w, b->type);
    }
}

static rlx_status add_buffer(struct wgsl *w, uint32_t i)
{
    const struct kir_buffer *b = &w->k->buffer[i];

    if (b->type.lanes == 3 || (is_words(w, b) && element_bytes(b) * b->type.lanes % 4))
        return diag_fail(w->diag, RLX_ERROR_UNSUPPORTED,
                         "buffer %.*s: elements of %u bytes cannot lie in a buffer",
                         STR_ARG(b->name), element_bytes(b) * b->type.lanes);
    text_addf(w->out, "@group(0) @binding(%u) var<storage, %s> b%u: array<", i,
              (b->mode & KIR_OUT) || w->how->read_write ? "read_write" : "read", i);
    element_type(w, i);
    text_addf(w->out, ">; // %.*s\n", STR_ARG(b->name));
    return RLX_OK;
}

/* Tables are constants, in which not every compiler knows bitcast. */
static void table_number(struct wgsl *w, enum kir_scalar s, uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    if (s == KIR_F32)
        wgsl_hex(w, (double)f, 'f');
    else
        text_addf(w->out, s == KIR_I32 ? "i32(%lld)" : "%lldu",
                  s == KIR_I32 ? (long long)(int32_t)bits : (long long)bits);
}

static void add_variable(struct wgsl *w, uint32_t i)
{
    const struct kir_var *v = &w->k->var[i];
    struct kir_type element = v->type;

    element.count = 0;
    if (!v->shared && !v->table)
        return;
    text_addf(w->out, "var<%s> m%u: ", v->shared ? "workgroup" : "private", i);
    if (v->type.count)
        text_add(w->out, STR("array<"));
    if (v->atomic)
        text_add(w->out, STR("atomic<"));
    wgsl_type(w, element);
    if (v->atomic)
        text_add(w->out, STR(">"));
    if (v->type.count)
        text_addf(w->out, ", %u>", v->type.count);
    if (v->table) {
        text_add(w->out, STR(" = array("));
        for (uint32_t n = 0; n < v->type.count; n++) {
            table_number(w, (enum kir_scalar)element.scalar, (uint32_t)v->table[n]);
            text_add(w->out, n + 1 < v->type.count ? STR(", ") : STR(")"));
        }
    }
    text_addf(w->out, "; // %.*s\n", STR_ARG(v->name));
}

rlx_status wgsl_interface(struct wgsl *w)
{
    w->param_words = w->k->param_words;
    for (uint32_t i = 0; i < w->k->buffers; i++)
        TRY(add_buffer(w, i));
    w->param_words++; /* the zero */
    text_addf(w->out, "@group(0) @binding(%u) var<uniform> params: array<vec4<u32>, %u>;\n",
              w->k->buffers, (w->param_words + 3) / 4);
    for (uint32_t i = 0; i < w->k->vars; i++)
        add_variable(w, i);
    return RLX_OK;
}

/* ---- indices ---- */

void wgsl_param_word(struct wgsl *w, uint32_t word, kir_value more)
{
    if (more == KIR_NONE) {
        text_addf(w->out, "params[%u][%u]", word / 4, word % 4);
        return;
    }
    text_addf(w->out, "params[(%uu + ", word);
    wgsl_value(w, more);
    text_addf(w->out, ") / 4u][(%uu + ", word);
    wgsl_value(w, more);
    text_add(w->out, STR(") % 4u]"));
}

/* An element: of a buffer, or of a variable. */
static void place(struct wgsl *w, uint64_t imm, kir_value index)
{
    uint32_t i = (uint32_t)imm & ~KIR_IN_BUFFER;

    if (imm & KIR_IN_BUFFER) {
        text_addf(w->out, "b%u[", i);
        wgsl_value(w, index);
        text_add(w->out, STR("]"));
        return;
    }
    text_addf(w->out, "m%u", i);
    if (index != KIR_NONE) {
        text_add(w->out, STR("["));
        wgsl_value(w, index);
        text_add(w->out, STR("]"));
    }
}

/* ---- narrow elements ---- */

/* at<n>: the index; s<n>: how far up in its word. */
static void packed_place(struct wgsl *w, const struct kir_instr *n, uint32_t id, uint32_t bytes)
{
    uint32_t log = bytes == 2 ? 1 : 2;

    text_addf(w->out, "let at%u = ", id);
    wgsl_value(w, n->a);
    text_add(w->out, STR(";"));
    wgsl_line(w);
    text_addf(w->out, "let s%u = (at%u & %uu) * %uu;", id, id, (1u << log) - 1, bytes * 8);
    wgsl_line(w);
}

static void packed_load(struct wgsl *w, const struct kir_instr *n, uint32_t id)
{
    uint32_t i = (uint32_t)n->imm, bytes = element_bytes(&w->k->buffer[i]);
    bool atomic = is_atomic(w, i);

    packed_place(w, n, id, bytes);
    text_addf(w->out, "let v%u = (%sb%u[at%u >> %uu]%s >> s%u) & %uu;", id,
              atomic ? "atomicLoad(&" : "", i, id, bytes == 2 ? 1u : 2u, atomic ? ")" : "", id,
              bytes == 2 ? 0xffffu : 0xffu);
}

static void packed_store(struct wgsl *w, const struct kir_instr *n, uint32_t id)
{
    uint32_t i = (uint32_t)n->imm, bytes = element_bytes(&w->k->buffer[i]);
    uint32_t mask = bytes == 2 ? 0xffffu : 0xffu, log = bytes == 2 ? 1 : 2;

    packed_place(w, n, id, bytes);
    text_addf(w->out, "atomicAnd(&b%u[at%u >> %uu], ~(%uu << s%u));", i, id, log, mask, id);
    wgsl_line(w);
    text_addf(w->out, "atomicOr(&b%u[at%u >> %uu], (", i, id, log);
    wgsl_value(w, n->b);
    text_addf(w->out, " & %uu) << s%u);", mask, id);
}

/* The lanes of a narrow vector, each as bits in a u32. */
static void words_load(struct wgsl *w, const struct kir_instr *n, uint32_t id)
{
    const struct kir_buffer *b = &w->k->buffer[n->imm];
    uint32_t bytes = element_bytes(b), words = bytes * b->type.lanes / 4;

    text_addf(w->out, "let w%u = ", id);
    place(w, n->imm | KIR_IN_BUFFER, n->a);
    text_add(w->out, STR(";"));
    wgsl_line(w);
    text_addf(w->out, "let v%u = vec%u<u32>(", id, b->type.lanes);
    for (uint32_t l = 0; l < b->type.lanes; l++) {
        uint32_t at = l * bytes;
        text_addf(w->out, "%s(w%u", l ? ", " : "", id);
        if (words > 1)
            text_addf(w->out, "[%u]", at / 4);
        text_addf(w->out, " >> %uu) & %uu", at % 4 * 8, bytes == 2 ? 0xffffu : 0xffu);
    }
    text_add(w->out, STR(");"));
}

static void words_store(struct wgsl *w, const struct kir_instr *n)
{
    const struct kir_buffer *b = &w->k->buffer[n->imm];
    uint32_t bytes = element_bytes(b), words = bytes * b->type.lanes / 4, each = 4 / bytes;

    place(w, n->imm | KIR_IN_BUFFER, n->a);
    text_add(w->out, words > 1 ? STR(" = vec2<u32>(") : STR(" = ("));
    for (uint32_t l = 0; l < b->type.lanes; l++) {
        text_add(w->out, l == 0 ? STR("") : l % each ? STR(" | ") : STR(", "));
        text_add(w->out, STR("(("));
        wgsl_value(w, n->b);
        text_addf(w->out, "[%u] & %uu) << %uu)", l, bytes == 2 ? 0xffffu : 0xffu,
                  l % each * bytes * 8);
    }
    text_add(w->out, STR(");"));
}

/* ---- instructions ---- */

static void load(struct wgsl *w, const struct kir_instr *n, uint32_t id, bool buffer)
{
    uint64_t imm = n->imm | (buffer ? KIR_IN_BUFFER : 0);
    bool atomic = buffer ? is_atomic(w, (uint32_t)n->imm) : w->k->var[n->imm].atomic;

    text_addf(w->out, "let v%u = %s", id, atomic ? "atomicLoad(&" : "");
    place(w, imm, n->a);
    text_add(w->out, atomic ? STR(");") : STR(";"));
}

static void store(struct wgsl *w, const struct kir_instr *n, bool buffer)
{
    uint64_t imm = n->imm | (buffer ? KIR_IN_BUFFER : 0);
    bool atomic = buffer ? is_atomic(w, (uint32_t)n->imm) : w->k->var[n->imm].atomic;

    if (atomic)
        text_add(w->out, STR("atomicStore(&"));
    place(w, imm, n->a);
    text_add(w->out, atomic ? STR(", ") : STR(" = "));
    wgsl_value(w, n->b);
    text_add(w->out, atomic ? STR(");") : STR(";"));
}

static void atomic(struct wgsl *w, const struct kir_instr *n, uint32_t id)
{
    static const char *const names[] = {"Add", "Min", "Max",      "And",
                                        "Or",  "Xor", "Exchange", "CompareExchangeWeak"};
    bool cas = n->op == KIR_ATOMIC_CAS;

    text_addf(w->out, "let v%u = atomic%s(&", id, names[n->op - KIR_ATOMIC_ADD]);
    place(w, n->imm, n->a);
    if (cas) {
        text_add(w->out, STR(", "));
        wgsl_value(w, n->c);
    }
    text_add(w->out, STR(", "));
    wgsl_value(w, n->b);
    text_add(w->out, cas ? STR(").old_value;") : STR(");"));
}

bool wgsl_memory(struct wgsl *w, const struct kir_instr *n, uint32_t i)
{
    bool buffer = n->op == KIR_BUFFER_LOAD || n->op == KIR_BUFFER_STORE;
    const struct kir_buffer *b = buffer ? &w->k->buffer[n->imm] : NULL;

    if (n->op >= KIR_ATOMIC_ADD && n->op <= KIR_ATOMIC_CAS) {
        atomic(w, n, i);
        return true;
    }
    switch (n->op) {
    case KIR_BUFFER_LOAD:
        if (is_packed(w, b))
            packed_load(w, n, i);
        else if (is_words(w, b))
            words_load(w, n, i);
        else
            load(w, n, i, true);
        return true;
    case KIR_BUFFER_STORE:
        if (is_packed(w, b))
            packed_store(w, n, i);
        else if (is_words(w, b))
            words_store(w, n);
        else
            store(w, n, true);
        return true;
    case KIR_LOAD: load(w, n, i, false); return true;
    case KIR_GROUP_LOAD:
        text_addf(w->out, "let v%u = workgroupUniformLoad(&", i);
        place(w, n->imm, n->a);
        text_add(w->out, STR(");"));
        return true;
    case KIR_STORE: store(w, n, false); return true;
    default: return false;
    }
}
