/* emit_wgsl.c: kir as WGSL: the module's frame, control flow, and values. A line per instruction.
 *
 * A constant that is not finite may not stand in WGSL: such numbers are made from bits that the
 * compiler cannot see through. Nor can it be made to round where the source does: it may take
 * (a + b) - b for a, on which our functions rely, so such sums are hidden from it. */
#include <math.h>
#include <string.h>

#include "kernel/emit_wgsl.h"

void wgsl_line(struct wgsl *w)
{
    text_addf(w->out, "\n%*s", 4 * w->indent, "");
}

/* Its values are bits in a u32. */
static bool is_narrow(const struct wgsl *w, enum kir_scalar s)
{
    return s >= KIR_BF16 || (s == KIR_F16 && !w->f->f16);
}

void wgsl_type(struct wgsl *w, struct kir_type t)
{
    enum kir_scalar s = (enum kir_scalar)t.scalar;
    const char *name = is_narrow(w, s) ? "u32" : kir_scalar_name(s);

    if (s == KIR_I64 || s == KIR_U64)
        text_add(w->out, STR("vec2<u32>"));
    else
        text_addf(w->out, t.lanes > 1 ? "vec%d<%s>" : "%.0d%s", t.lanes > 1 ? t.lanes : 0, name);
}

/* ---- numbers ---- */

/* Hexadecimal, so that all bits are there, and no locale has a say. */
void wgsl_hex(struct wgsl *w, double v, char suffix)
{
    int exponent;
    double fraction = frexp(fabs(v), &exponent);

    text_addf(w->out, signbit(v) ? "(-0x%llxp%d%c)" : "0x%llxp%d%c",
              (unsigned long long)ldexp(fraction, 24), exponent - 24, suffix);
}

static void number(struct wgsl *w, const struct kir_instr *n)
{
    uint32_t bits = (uint32_t)n->imm;
    float f;

    switch (n->type.scalar) {
    case KIR_BOOL: text_add(w->out, bits ? STR("true") : STR("false")); break;
    case KIR_I32: text_addf(w->out, "bitcast<i32>(%uu)", bits); break;
    case KIR_F32:
        memcpy(&f, &bits, 4);
        if (isfinite(f))
            wgsl_hex(w, (double)f, 'f');
        else
            text_addf(w->out, "bitcast<f32>(%uu ^ opaque)", bits);
        break;
    default: text_addf(w->out, "%uu", bits);
    }
}

void wgsl_value(struct wgsl *w, kir_value v)
{
    if (w->k->instr[v].op == KIR_CONST)
        number(w, &w->k->instr[v]);
    else
        text_addf(w->out, "v%u", v);
}

/* ---- values ---- */

static const struct spelling {
    const char *text; /* between two operands, or the name of a function */
    bool infix;
} spellings[KIR_OPS] = {
    [KIR_ADD] = {"+", true},
    [KIR_SUB] = {"-", true},
    [KIR_MUL] = {"*", true},
    [KIR_DIV] = {"/", true},
    [KIR_REM] = {"%", true},
    [KIR_AND] = {"&", true},
    [KIR_OR] = {"|", true},
    [KIR_XOR] = {"^", true},
    [KIR_SHL] = {"<<", true},
    [KIR_SHR] = {">>", true},
    [KIR_EQ] = {"==", true},
    [KIR_NE] = {"!=", true},
    [KIR_LT] = {"<", true},
    [KIR_LE] = {"<=", true},
    [KIR_GT] = {">", true},
    [KIR_GE] = {">=", true},
    [KIR_LOGIC_AND] = {"&&", true},
    [KIR_LOGIC_OR] = {"||", true},
    [KIR_NEG] = {"-", false},
    [KIR_NOT] = {"~", false},
    [KIR_LOGIC_NOT] = {"!", false},
    [KIR_FMA] = {"fma", false},
    [KIR_MIN] = {"min", false},
    [KIR_MAX] = {"max", false},
    [KIR_ABS] = {"abs", false},
    [KIR_FLOOR] = {"floor", false},
    [KIR_CEIL] = {"ceil", false},
    [KIR_TRUNC] = {"trunc", false},
    [KIR_ROUND] = {"round", false},
    [KIR_SQRT] = {"sqrt", false},
    [KIR_NATIVE_EXP2] = {"exp2", false},
    [KIR_NATIVE_LOG2] = {"log2", false},
    [KIR_NATIVE_SIN] = {"sin", false},
    [KIR_NATIVE_COS] = {"cos", false},
    [KIR_COUNT_ONES] = {"countOneBits", false},
    [KIR_HIGHEST_BIT] = {"firstLeadingBit", false},
    [KIR_LOWEST_BIT] = {"firstTrailingBit", false},
    [KIR_SUBGROUP_ADD] = {"subgroupAdd", false},
    [KIR_SUBGROUP_MIN] = {"subgroupMin", false},
    [KIR_SUBGROUP_MAX] = {"subgroupMax", false},
    [KIR_SUBGROUP_SCAN] = {"subgroupExclusiveAdd", false},
    [KIR_SUBGROUP_FIRST] = {"subgroupBroadcastFirst", false},
    [KIR_SUBGROUP_SHUFFLE] = {"subgroupShuffle", false},
    [KIR_SUBGROUP_XOR] = {"subgroupShuffleXor", false},
    [KIR_SUBGROUP_ANY] = {"subgroupAny", false},
    [KIR_SUBGROUP_ALL] = {"subgroupAll", false},
};

static void list(struct wgsl *w, const kir_value *operand, int count)
{
    text_add(w->out, STR("("));
    for (int i = 0; i < count && operand[i] != KIR_NONE; i++) {
        if (i)
            text_add(w->out, STR(", "));
        wgsl_value(w, operand[i]);
    }
    text_add(w->out, STR(")"));
}

static void builtin(struct wgsl *w, enum kir_builtin b)
{
    static const char *const names[] = {"group.x",
                                        "group.y",
                                        "group.z",
                                        "groups.x",
                                        "groups.y",
                                        "groups.z",
                                        "local.x",
                                        "local.y",
                                        "local.z",
                                        "local_index",
                                        "subgroup_lane",
                                        "subgroup_size",
                                        "(local_index / subgroup_size)"};
    text_add(w->out, rlx_cstr(names[b]));
}

static void insert(struct wgsl *w, const struct kir_instr *n)
{
    uint32_t lane = (uint32_t)w->k->instr[n->b].imm;

    wgsl_type(w, n->type);
    text_add(w->out, STR("("));
    for (uint32_t i = 0; i < n->type.lanes; i++) {
        text_add(w->out, i ? STR(", ") : STR(""));
        wgsl_value(w, i == lane ? n->c : n->a);
        if (i != lane)
            text_addf(w->out, "[%u]", i);
    }
    text_add(w->out, STR(")"));
}

/* f16 that the device has, as bits and back, by way of f32, which has all its values: not every
 * compiler knows a bitcast between a pair of f16 and a word. */
static void bits(struct wgsl *w, const struct kir_instr *n)
{
    struct kir_type t = n->op == KIR_BITS_OF ? w->k->instr[n->a].type : n->type;

    if (t.scalar != KIR_F16 || !w->f->f16) {
        wgsl_value(w, n->a);
        return;
    }
    text_add(w->out, n->op == KIR_BITS_OF ? STR("pack2x16float(vec2<f32>(f32(")
                                          : STR("f16(unpack2x16float("));
    wgsl_value(w, n->a);
    text_add(w->out, n->op == KIR_BITS_OF ? STR("), 0.0f))") : STR(").x)"));
}

static void dot(struct wgsl *w, const struct kir_instr *n)
{
    text_add(w->out, n->op == KIR_DOT4_I8 ? STR("dot4I8Packed") : STR("dot4U8Packed"));
    list(w, (const kir_value[]){n->a, n->b}, 2);
    text_add(w->out, STR(" + "));
    wgsl_value(w, n->c);
}

/* ---- what the compiler must not see ----
 *
 * WGSL lets a compiler take NaN for impossible and reorder sums. `opaque` is zero, which it cannot
 * know: a value whose bits passed it comes from nowhere. */

static bool is_sum(const struct wgsl *w, kir_value v)
{
    enum kir_op op = (enum kir_op)w->k->instr[v].op;

    return op == KIR_ADD || op == KIR_SUB;
}

/* Choosing what was compared is a minimum or a maximum to a compiler, and those lose NaN. */
static bool is_compared(const struct wgsl *w, kir_value condition, kir_value v)
{
    const struct kir_instr *n = &w->k->instr[condition];

    switch (n->op) {
    case KIR_LT:
    case KIR_LE:
    case KIR_GT:
    case KIR_GE: return n->a == v || n->b == v;
    case KIR_LOGIC_OR: return is_compared(w, n->a, v) || is_compared(w, n->b, v);
    default: return false;
    }
}

/* Would it matter if the compiler saw where this operand comes from? */
static bool is_hidden(const struct wgsl *w, const struct kir_instr *n, kir_value v)
{
    enum kir_op from = (enum kir_op)w->k->instr[v].op;

    if (w->k->instr[v].type.scalar != KIR_F32 || from == KIR_CONST)
        return false;
    switch (n->op) {
    case KIR_ADD: return from == KIR_SUB;
    case KIR_SUB: return is_sum(w, v) || from == KIR_MUL || from == KIR_FMA || from == KIR_LOAD;
    case KIR_DIV: return from == KIR_MUL; /* a b / c is not a (b / c), which may be too small */
    case KIR_SELECT: return is_compared(w, n->a, v);
    case KIR_BITCAST: return true; /* to ask whether it is NaN */
    default: return false;
    }
}

static void operand(struct wgsl *w, const struct kir_instr *n, kir_value v)
{
    unsigned lanes = w->k->instr[v].type.lanes;

    if (!is_hidden(w, n, v)) {
        wgsl_value(w, v);
    } else if (lanes > 1) {
        text_addf(w->out, "bitcast<vec%u<f32>>(bitcast<vec%u<u32>>(v%u) ^ vec%u<u32>(opaque))",
                  lanes, lanes, v, lanes);
    } else {
        text_addf(w->out, "bitcast<f32>(bitcast<u32>(v%u) ^ opaque)", v);
    }
}

static void choose(struct wgsl *w, const struct kir_instr *n)
{
    text_add(w->out, STR("select(")); /* what is false first */
    operand(w, n, n->c);
    text_add(w->out, STR(", "));
    operand(w, n, n->b);
    text_add(w->out, STR(", "));
    wgsl_value(w, n->a);
    text_add(w->out, STR(")"));
}

static void bitcast(struct wgsl *w, const struct kir_instr *n)
{
    bool pair = n->type.scalar == KIR_I64 || n->type.scalar == KIR_U64 ||
                w->k->instr[n->a].type.scalar == KIR_I64 ||
                w->k->instr[n->a].type.scalar == KIR_U64;

    if (!pair) {
        text_add(w->out, STR("bitcast<"));
        wgsl_type(w, n->type);
        text_add(w->out, STR(">("));
    }
    operand(w, n, n->a);
    if (!pair)
        text_add(w->out, STR(")"));
}

static void by_spelling(struct wgsl *w, const struct kir_instr *n)
{
    const struct spelling *s = &spellings[n->op];

    if (!s->text) {
        w->status = diag_fail(w->diag, RLX_ERROR_UNSUPPORTED, "%.*s: WGSL has no %s",
                              STR_ARG(w->k->name), kir_op_name((enum kir_op)n->op));
        return;
    }
    if (!s->infix) {
        text_add(w->out, rlx_cstr(s->text));
        list(w, (const kir_value[]){n->a, n->b, n->c}, 3);
        return;
    }
    /* Of NaN, != is not always true there; == is always false. */
    enum kir_scalar of = (enum kir_scalar)w->k->instr[n->a].type.scalar;
    bool unequal = n->op == KIR_NE && (of == KIR_F32 || of == KIR_F16);
    text_add(w->out, unequal ? STR("!(") : STR(""));
    operand(w, n, n->a);
    text_addf(w->out, " %s ", unequal ? "==" : s->text);
    operand(w, n, n->b);
    text_add(w->out, unequal ? STR(")") : STR(""));
}

static void expression(struct wgsl *w, const struct kir_instr *n)
{
    switch (n->op) {
    case KIR_PARAM:
        text_add(w->out, n->type.scalar == KIR_F32   ? STR("bitcast<f32>(")
                         : n->type.scalar == KIR_I32 ? STR("bitcast<i32>(")
                                                     : STR("("));
        wgsl_param_word(w, (uint32_t)n->imm, n->a);
        text_add(w->out, STR(")"));
        break;
    case KIR_BUILTIN: builtin(w, (enum kir_builtin)n->imm); break;
    case KIR_SELECT: choose(w, n); break;
    case KIR_CONVERT:
    case KIR_SPLAT:
    case KIR_VECTOR:
        wgsl_type(w, n->type);
        list(w, (const kir_value[]){n->a, n->b, n->c, n->d}, 4);
        break;
    case KIR_BITCAST: bitcast(w, n); break;
    case KIR_BITS_OF:
    case KIR_FROM_BITS: bits(w, n); break;
    case KIR_EXTRACT:
        wgsl_value(w, n->a);
        text_add(w->out, STR("["));
        wgsl_value(w, n->b);
        text_add(w->out, STR("]"));
        break;
    case KIR_INSERT: insert(w, n); break;
    case KIR_DOT4_I8:
    case KIR_DOT4_U8: dot(w, n); break;
    default: by_spelling(w, n);
    }
}

/* ---- control flow ---- */

static void open_block(struct wgsl *w, const char *text)
{
    text_add(w->out, rlx_cstr(text));
    w->indent++;
}

/* Lines are written before their instruction, so a closing bracket steps back first. */
static bool control(struct wgsl *w, const struct kir_instr *n)
{
    switch (n->op) {
    case KIR_IF:
        wgsl_line(w);
        text_add(w->out, STR("if "));
        wgsl_value(w, n->a);
        open_block(w, " {");
        return true;
    case KIR_ELSE:
        w->indent--;
        wgsl_line(w);
        open_block(w, "} else {");
        return true;
    case KIR_LOOP:
        wgsl_line(w);
        open_block(w, "loop {");
        return true;
    case KIR_CONTINUING:
        wgsl_line(w);
        open_block(w, "continuing {");
        return true;
    case KIR_END_LOOP:
        w->indent--;
        wgsl_line(w);
        text_add(w->out, STR("}"));
        /* fallthrough */
    case KIR_END_IF:
        w->indent--;
        wgsl_line(w);
        text_add(w->out, STR("}"));
        return true;
    default: return false;
    }
}

static bool plain_statement(struct wgsl *w, const struct kir_instr *n)
{
    static const struct {
        enum kir_op op;
        const char *text;
    } statements[] = {{KIR_BREAK, "break;"},
                      {KIR_CONTINUE, "continue;"},
                      {KIR_RETURN, "return;"},
                      {KIR_BARRIER, "workgroupBarrier();"},
                      {KIR_BUFFER_BARRIER, "storageBarrier(); workgroupBarrier();"}};

    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++)
        if (n->op == statements[i].op) {
            text_add(w->out, rlx_cstr(statements[i].text));
            return true;
        }
    return false;
}

static void instruction(struct wgsl *w, uint32_t i)
{
    const struct kir_instr *n = &w->k->instr[i];

    if (n->op == KIR_CONST || control(w, n))
        return;
    wgsl_line(w);
    if (plain_statement(w, n) || wgsl_memory(w, n, i))
        return;
    text_addf(w->out, "let v%u = ", i);
    expression(w, n);
    text_add(w->out, STR(";"));
}

/* ---- the module ---- */

static void entry(struct wgsl *w)
{
    const struct kir *k = w->k;

    text_addf(w->out, "\n@compute @workgroup_size(%u, %u, %u)\nfn main(", k->group[0], k->group[1],
              k->group[2]);
    text_add(w->out,
             STR("@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: "
                 "vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>, "
                 "@builtin(local_invocation_index) local_index: u32"));
    if (k->uses_subgroups)
        text_add(w->out, STR(", @builtin(subgroup_invocation_id) subgroup_lane: u32, "
                             "@builtin(subgroup_size) subgroup_size: u32"));
    text_add(w->out, STR(") {"));
    w->indent = 1;
    wgsl_line(w);
    text_add(w->out, STR("opaque = "));
    wgsl_param_word(w, w->param_words - 1, KIR_NONE);
    text_add(w->out, STR(";"));
    for (uint32_t i = 0; i < k->vars; i++) {
        const struct kir_var *v = &k->var[i];
        struct kir_type element = v->type;
        if (v->shared || v->table)
            continue;
        wgsl_line(w);
        text_addf(w->out, v->type.count ? "var m%u: array<" : "var m%u: ", i);
        element.count = 0;
        wgsl_type(w, element);
        if (v->type.count)
            text_addf(w->out, ", %u>", v->type.count);
        text_addf(w->out, "; // %.*s", STR_ARG(v->name));
    }
}

/* Also where elements are declared and none is touched. */
static bool mentions_f16(const struct kir *k)
{
    bool found = k->uses_f16;

    for (uint32_t i = 0; i < k->buffers; i++)
        found |= k->buffer[i].type.scalar == KIR_F16;
    for (uint32_t i = 0; i < k->vars; i++)
        found |= k->var[i].type.scalar == KIR_F16;
    return found;
}

rlx_status kc_emit_wgsl(const struct kir *k, const struct kc_emit *how, struct text *out,
                        struct diag *d)
{
    struct wgsl w = {.k = k, .f = how->features, .how = how, .out = out, .diag = d};

    if (k->uses_coop || k->uses_f64)
        return diag_fail(d, RLX_ERROR_UNSUPPORTED, "%.*s: WGSL has no %s", STR_ARG(k->name),
                         k->uses_coop ? "cooperative matrices" : "f64");
    if (how->features->f16 && mentions_f16(k))
        text_add(out, STR("enable f16;\n"));
    if (k->uses_subgroups && !how->plain_subgroups)
        text_add(out, STR("enable subgroups;\n"));
    TRY(wgsl_interface(&w));
    text_add(out, STR("var<private> opaque: u32 = 0u;\n"));
    entry(&w);
    for (uint32_t i = 0; i < k->instrs && w.status == RLX_OK; i++)
        instruction(&w, i);
    text_add(out, STR("\n}\n"));
    if (w.status == RLX_OK && out->failed)
        return diag_no_memory(d, out->len);
    return w.status;
}
