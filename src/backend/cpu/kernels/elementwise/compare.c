/* compare.c: two operands of one type to bool (ops-core.md 5.2). gt and ge are lt and le turned
 * round, so that four comparisons are left. */
#include "backend/cpu/kernels/elementwise/row.h"

#define PAIR(type, value)                 \
    do {                                  \
        const type *pa_ = va, *pb_ = vb;  \
        CPU_INDEPENDENT                   \
        for (int64_t i = 0; i < n; i++) { \
            type a = pa_[i], b = pb_[i];  \
            out[i] = (uint8_t)(value);    \
        }                                 \
    } while (0)

#define EQUAL_CASES(type, equal)  \
    do {                          \
        if (op == RLX_OP_eq)      \
            PAIR(type, equal);    \
        else                      \
            PAIR(type, !(equal)); \
    } while (0)

#define ORDER_CASES(type)       \
    do {                        \
        if (op == RLX_OP_lt)    \
            PAIR(type, a < b);  \
        else                    \
            PAIR(type, a <= b); \
    } while (0)

static void equal_complex(rlx_op op, const float *a, const float *b, uint8_t *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int same = (a[2 * i] == b[2 * i]) & (a[2 * i + 1] == b[2 * i + 1]);
        out[i] = (uint8_t)(op == RLX_OP_eq ? same : !same);
    }
}

/* eq and ne. Integers by their bits, whatever their sign. */
static void equal_rows(rlx_op op, rlx_dtype dtype, const void *va, const void *vb, uint8_t *out,
                       int64_t n)
{
    switch (dtype) {
    case RLX_DTYPE_f32: EQUAL_CASES(float, a == b); return;
    case RLX_DTYPE_f64: EQUAL_CASES(double, a == b); return;
    case RLX_DTYPE_c64: equal_complex(op, va, vb, out, n); return;
    case RLX_DTYPE_bool: EQUAL_CASES(uint8_t, (a != 0) == (b != 0)); return;
    default: break;
    }
    switch (cpu_size(dtype)) {
    case 1: EQUAL_CASES(uint8_t, a == b); break;
    case 2: EQUAL_CASES(uint16_t, a == b); break;
    case 4: EQUAL_CASES(uint32_t, a == b); break;
    default: EQUAL_CASES(uint64_t, a == b); break;
    }
}

/* lt and le. */
static void order_rows(rlx_op op, rlx_dtype dtype, const void *va, const void *vb, uint8_t *out,
                       int64_t n)
{
    switch (dtype) {
#define X(name, type) \
    case RLX_DTYPE_##name: ORDER_CASES(type); break;
        CPU_EACH_WIDE_FLOAT(X)
        CPU_EACH_INT(X)
#undef X
    default: break;
    }
}

static void compare_rows(rlx_op op, rlx_dtype dtype, const void *va, const void *vb, uint8_t *out,
                         int64_t n)
{
    if (op == RLX_OP_eq || op == RLX_OP_ne)
        equal_rows(op, dtype, va, vb, out, n);
    else
        order_rows(op, dtype, va, vb, out, n);
}

/* One operand's part as a row of the type that is compared in. */
static const void *operand(rlx_dtype dtype, const void *row, int step, int64_t at, int64_t n,
                           void *tile)
{
    const void *part = cpu_row_part(row, step, cpu_size(dtype), at);

    if (!step)
        return row; /* spread already */
    if (!cpu_is_half(dtype))
        return part;
    cpu_load_f32(dtype, part, tile, n);
    return tile;
}

static const void *spread(rlx_dtype dtype, const void *value, void *tile, int64_t n)
{
    float f;

    if (!cpu_is_half(dtype))
        return cpu_row_spread(value, cpu_size(dtype), tile, n);
    cpu_load_f32(dtype, value, &f, 1);
    return cpu_row_spread(&f, sizeof f, tile, n);
}

void cpu_row_compare(rlx_op op, rlx_dtype dtype, const void *a, int a_step, const void *b,
                     int b_step, uint8_t *out, int64_t n)
{
    rlx_dtype in = cpu_is_half(dtype) ? RLX_DTYPE_f32 : dtype;
    CPU_TILE_ANY(a_tile);
    CPU_TILE_ANY(b_tile);

    if (op == RLX_OP_gt || op == RLX_OP_ge) {
        const void *swap = a;
        int swap_step = a_step;
        a = b, a_step = b_step;
        b = swap, b_step = swap_step;
        op = op == RLX_OP_gt ? RLX_OP_lt : RLX_OP_le;
    }
    if (!a_step)
        a = spread(dtype, a, a_tile, n);
    if (!b_step)
        b = spread(dtype, b, b_tile, n);
    for (int64_t at = 0; at < n; at += CPU_TILE) {
        int64_t part = cpu_min_i64(n - at, CPU_TILE);
        compare_rows(op, in, operand(dtype, a, a_step, at, part, a_tile),
                     operand(dtype, b, b_step, at, part, b_tile), out + at, part);
    }
}

static void compare_span(const struct cpu_call *c, const struct cpu_span *s)
{
    cpu_row_compare(c->op, c->in[0].dtype, s->in[0], s->step[0], s->in[1], s->step[1], s->out,
                    s->n);
}

static void run(const struct cpu_call *c)
{
    cpu_elementwise(c, cpu_row_grain(c->op), compare_span);
}

extern const struct cpu_kernel CPU_NAME(cpu_compare);
const struct cpu_kernel CPU_NAME(cpu_compare) = {.run = run};
