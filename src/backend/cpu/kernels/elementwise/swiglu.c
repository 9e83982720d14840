/* swiglu.c: fused_swiglu, silu of one half of each row times the other half (ops-core.md 15). */
#include "backend/cpu/kernels/elementwise/row.h"

/* up *= gate, then both are done with. */
#define MULTIPLY(T)                     \
    do {                                \
        const T *g_ = gate;             \
        T *u_ = up;                     \
        for (int64_t i = 0; i < n; i++) \
            u_[i] = g_[i] * u_[i];      \
    } while (0)

/* n <= CPU_TILE results in the wide type, from the tiles gate and up, which change. */
static void combine(rlx_dtype wide, void *gate, void *up, int64_t n)
{
    cpu_row_unary(RLX_OP_silu, wide, gate, gate, n);
    if (wide == RLX_DTYPE_f64)
        MULTIPLY(double);
    else
        MULTIPLY(float);
}

static void load(rlx_dtype wide, const struct cpu_tensor *t, int64_t at, void *tile, int64_t n)
{
    if (wide == RLX_DTYPE_f64)
        cpu_load_f64(t->dtype, cpu_at(t, at), tile, n);
    else
        cpu_load_f32(t->dtype, cpu_at(t, at), tile, n);
}

struct job {
    const struct cpu_call *c;
};

static void rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct cpu_call *c = ((const struct job *)ctx)->c;
    const struct cpu_tensor *x = &c->in[0], *out = c->out;
    bool f64 = x->dtype == RLX_DTYPE_f64 || out->dtype == RLX_DTYPE_f64;
    rlx_dtype wide = f64 ? RLX_DTYPE_f64 : RLX_DTYPE_f32;
    bool gate_first = c->attr->fused_swiglu.gate_first;
    int64_t width = out->dim[out->rank - 1];
    CPU_TILE_ANY(gate);
    CPU_TILE_ANY(up);

    (void)worker;
    while (begin < end) {
        int64_t row = begin / width, column = begin % width;
        int64_t n = cpu_min_i64(cpu_min_i64(end - begin, width - column), CPU_TILE);
        int64_t low = row * 2 * width + column, high = low + width;
        load(wide, x, gate_first ? low : high, gate, n);
        load(wide, x, gate_first ? high : low, up, n);
        combine(wide, gate, up, n);
        cpu_row_cast(wide, out->dtype, up, cpu_at(out, begin), n);
        begin += n;
    }
}

static void run(const struct cpu_call *c)
{
    struct job j = {c};

    cpu_for(c->pool, c->out->count, 8192, rows, &j);
}

extern const struct cpu_kernel CPU_NAME(cpu_fused_swiglu);
const struct cpu_kernel CPU_NAME(cpu_fused_swiglu) = {.run = run};
