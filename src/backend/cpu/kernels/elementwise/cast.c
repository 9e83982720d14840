/* cast.c: from any element type to any other (ops-core.md 2.3), through a tile of f32, f64 or i64:
 * whichever holds every value of the type it comes from, or rounds just as the target would. */
#include "backend/cpu/kernels/elementwise/row.h"

enum via { VIA_BYTES, VIA_F32, VIA_F64, VIA_I64 };

static bool is_float(rlx_dtype d)
{
    return cpu_is_float(d) || d == RLX_DTYPE_c64;
}

static enum via path(rlx_dtype from, rlx_dtype to)
{
    bool wide = from == RLX_DTYPE_i32 || from == RLX_DTYPE_u32 || from == RLX_DTYPE_i64 ||
                from == RLX_DTYPE_u64; /* f32 cannot hold all of these */

    if (from == to)
        return VIA_BYTES;
    if (cpu_is_float(from))
        return from == RLX_DTYPE_f64 ? VIA_F64 : VIA_F32;
    if (!is_float(to))
        return VIA_I64;
    if (to == RLX_DTYPE_f64)
        return VIA_F64;
    /* To bf16 a wide integer must not be rounded on the way. To f16 it may: what f32 rounds is
     * beyond f16 anyway. */
    return wide && to == RLX_DTYPE_bf16 ? VIA_I64 : VIA_F32;
}

/* What the i64 tile holds as negative is the upper half of u64: halve it, the lost bit kept where
 * it can only break a tie, and double the result, which is far from overflow. */
static void big_u64_to_bf16(const int64_t *bits, uint16_t *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t u = (uint64_t)bits[i];
        int64_t half = (int64_t)(u >> 1 | (u & 1));
        uint16_t h;
        if (bits[i] >= 0)
            continue;
        cpu_store_i64(RLX_DTYPE_bf16, &half, &h, 1);
        out[i] = f32_to_bf16(2.0f * bf16_to_f32(h));
    }
}

static void to_complex(const float *re, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        out[2 * i] = re[i];
        out[2 * i + 1] = 0.0f;
    }
}

static void store_f32(rlx_dtype to, const float *tile, void *out, int64_t n)
{
    if (to == RLX_DTYPE_c64)
        to_complex(tile, out, n);
    else
        cpu_store_f32(to, tile, out, n);
}

static void cast_part(enum via via, rlx_dtype from, rlx_dtype to, const void *x, void *out,
                      int64_t n)
{
    CPU_TILE_ANY(tile);

    switch (via) {
    case VIA_BYTES: memmove(out, x, (size_t)n * cpu_size(to)); break;
    case VIA_F32:
        cpu_load_f32(from, x, (float *)tile, n);
        store_f32(to, (const float *)tile, out, n);
        break;
    case VIA_F64:
        if (to == RLX_DTYPE_c64) {
            cpu_load_f32(from, x, (float *)tile, n);
            store_f32(to, (const float *)tile, out, n);
            break;
        }
        cpu_load_f64(from, x, (double *)tile, n);
        cpu_store_f64(to, (const double *)tile, out, n);
        break;
    case VIA_I64:
        cpu_load_i64(from, x, (int64_t *)tile, n);
        cpu_store_i64(to, (const int64_t *)tile, out, n);
        if (from == RLX_DTYPE_u64 && to == RLX_DTYPE_bf16)
            big_u64_to_bf16((const int64_t *)tile, out, n);
        break;
    }
}

/* Straight from or into the row that is f32 or f64 itself. */
static bool cast_direct(enum via via, rlx_dtype from, rlx_dtype to, const void *x, void *out,
                        int64_t n)
{
    if (via == VIA_F32 && from == RLX_DTYPE_f32)
        store_f32(to, x, out, n);
    else if (via == VIA_F32 && to == RLX_DTYPE_f32)
        cpu_load_f32(from, x, out, n);
    else if (via == VIA_F64 && from == RLX_DTYPE_f64 && to != RLX_DTYPE_c64)
        cpu_store_f64(to, x, out, n);
    else if (via == VIA_F64 && to == RLX_DTYPE_f64)
        cpu_load_f64(from, x, out, n);
    else
        return false;
    return true;
}

void cpu_row_cast(rlx_dtype from, rlx_dtype to, const void *x, void *out, int64_t n)
{
    enum via via = path(from, to);
    if (x != out && cast_direct(via, from, to, x, out, n))
        return;

    int64_t x_size = (int64_t)cpu_size(from), out_size = (int64_t)cpu_size(to);

    for (int64_t at = 0; at < n; at += CPU_TILE)
        cast_part(via, from, to, (const char *)x + at * x_size, (char *)out + at * out_size,
                  cpu_min_i64(n - at, CPU_TILE));
}

static void cast_span(const struct cpu_call *c, const struct cpu_span *s)
{
    cpu_row_cast(c->in[0].dtype, c->out->dtype, s->in[0], s->out, s->n);
}

static void run(const struct cpu_call *c)
{
    cpu_elementwise(c, cpu_row_grain(c->op), cast_span);
}

extern const struct cpu_kernel CPU_NAME(cpu_cast);
const struct cpu_kernel CPU_NAME(cpu_cast) = {.run = run, .in_place = 1};
