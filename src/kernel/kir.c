/* kir.c: names of types and instructions, and a listing. */
#include "kernel/kir.h"

static const struct {
    const char *name;
    uint32_t bytes;
} scalars[KIR_SCALARS] = {
    [KIR_VOID] = {"void", 0}, [KIR_BOOL] = {"bool", 4}, [KIR_I32] = {"i32", 4},
    [KIR_U32] = {"u32", 4},   [KIR_F32] = {"f32", 4},   [KIR_F16] = {"f16", 2},
    [KIR_F64] = {"f64", 8},   [KIR_I64] = {"i64", 8},   [KIR_U64] = {"u64", 8},
    [KIR_BF16] = {"bf16", 2}, [KIR_I8] = {"i8", 1},     [KIR_U8] = {"u8", 1},
    [KIR_I16] = {"i16", 2},   [KIR_U16] = {"u16", 2},   [KIR_B8] = {"b8", 1}};

static const struct {
    const char *name;
    int operands;
    enum { VALUES, OTHER } shape;
} ops[KIR_OPS] = {
#define KIR(op, shape, operands, meaning) {#op, operands, shape},
#include "kernel/kir.def"
};

bool kir_type_same(struct kir_type a, struct kir_type b)
{
    return a.scalar == b.scalar && a.lanes == b.lanes && a.use == b.use && a.group == b.group &&
           a.rows == b.rows && a.cols == b.cols && a.count == b.count;
}

uint32_t kir_scalar_bytes(enum kir_scalar s)
{
    return scalars[s].bytes;
}

const char *kir_scalar_name(enum kir_scalar s)
{
    return scalars[s].name;
}

const char *kir_op_name(enum kir_op op)
{
    return ops[op].name;
}

/* ---- the listing ---- */

static void print_type(struct kir_type t, struct text *out)
{
    static const char *const uses[] = {"", "matrix_a", "matrix_b", "matrix_acc"};

    if (t.use)
        text_addf(out, "%s<%s, %d, %d%s>", uses[t.use], scalars[t.scalar].name, t.rows, t.cols,
                  t.group ? ", group" : "");
    else
        text_addf(out, t.lanes > 1 ? "%sx%d" : "%s", scalars[t.scalar].name, t.lanes);
    if (t.count)
        text_addf(out, "[%u]", t.count);
}

static void print_interface(const struct kir *k, struct text *out)
{
    static const char *const modes[] = {"", "in", "out", "inout"};

    text_addf(out, "kernel %.*s group(%u, %u, %u)\n", STR_ARG(k->name), k->group[0], k->group[1],
              k->group[2]);
    for (uint32_t i = 0; i < k->buffers; i++) {
        text_addf(out, "buffer %u: %.*s: %s %s", i, STR_ARG(k->buffer[i].name),
                  modes[k->buffer[i].mode], k->buffer[i].atomic ? "atomic " : "");
        print_type(k->buffer[i].type, out);
        text_add(out, STR("\n"));
    }
    for (uint32_t i = 0; i < k->params; i++) {
        text_addf(out, "word %u: %.*s: ", k->param[i].word, STR_ARG(k->param[i].name));
        print_type(k->param[i].type, out);
        text_add(out, STR("\n"));
    }
    for (uint32_t i = 0; i < k->vars; i++) {
        text_addf(out, "var %u: %.*s: %s%s", i, STR_ARG(k->var[i].name),
                  k->var[i].shared ? "shared " : "", k->var[i].table ? "table " : "");
        print_type(k->var[i].type, out);
        text_add(out, STR("\n"));
    }
}

static void print_instr(const struct kir *k, uint32_t i, int indent, struct text *out)
{
    const struct kir_instr *n = &k->instr[i];
    const kir_value operand[] = {n->a, n->b, n->c, n->d};

    text_addf(out, "%*s", 2 * indent, "");
    if (n->type.scalar != KIR_VOID)
        text_addf(out, "%%%u = ", i);
    text_add(out, rlx_cstr(ops[n->op].name));
    if (n->op == KIR_CONST)
        text_addf(out, " 0x%llx", (unsigned long long)n->imm);
    else if (ops[n->op].shape == OTHER)
        text_addf(out, " #%llu", (unsigned long long)n->imm);
    for (int a = 0; a < 4; a++)
        if (operand[a] != KIR_NONE)
            text_addf(out, " %%%u", operand[a]);
    if (n->type.scalar != KIR_VOID) {
        text_add(out, STR(": "));
        print_type(n->type, out);
    }
    text_add(out, STR("\n"));
}

void kir_print(const struct kir *k, struct text *out)
{
    int indent = 1;

    print_interface(k, out);
    for (uint32_t i = 0; i < k->instrs; i++) {
        enum kir_op op = (enum kir_op)k->instr[i].op;
        bool closes = op == KIR_END_IF || op == KIR_END_LOOP;
        bool middle = op == KIR_ELSE || op == KIR_CONTINUING;
        indent -= closes;
        print_instr(k, i, indent - middle, out);
        indent += op == KIR_IF || op == KIR_LOOP;
    }
}
