/* where.c: one of two operands, as a third says (ops-core.md 5.4). It selects, so what the branch
 * not taken holds never matters. */
#include "backend/cpu/kernels/elementwise/row.h"

#define SELECT(type)                      \
    do {                                  \
        const type *pa_ = a, *pb_ = b;    \
        type *q_ = out;                   \
        CPU_INDEPENDENT                   \
        for (int64_t i = 0; i < n; i++) { \
            type x = pa_[i], y = pb_[i];  \
            q_[i] = cond[i] ? x : y;      \
        }                                 \
    } while (0)

/* All are rows. Only the size of the elements matters. */
static void select_rows(int32_t size, const uint8_t *cond, const void *a, const void *b, void *out,
                        int64_t n)
{
    switch (size) {
    case 1: SELECT(cpu_bits8); break;
    case 2: SELECT(cpu_bits16); break;
    case 4: SELECT(cpu_bits32); break;
    default: SELECT(cpu_bits64); break;
    }
}

void cpu_row_where(int32_t size, const uint8_t *cond, int cond_step, const void *a, int a_step,
                   const void *b, int b_step, void *out, int64_t n)
{
    size_t bytes = (size_t)size;
    CPU_TILE_ANY(a_tile);
    CPU_TILE_ANY(b_tile);

    if (!cond_step) {
        const void *from = cond[0] ? a : b;
        int step = cond[0] ? a_step : b_step;
        if (from != out || !step)
            cpu_copy_strided(out, from, size, n, step);
        return;
    }
    if (!a_step)
        a = cpu_row_spread(a, bytes, a_tile, n);
    if (!b_step)
        b = cpu_row_spread(b, bytes, b_tile, n);
    for (int64_t at = 0; at < n; at += CPU_TILE)
        select_rows(size, cond + at, cpu_row_part(a, a_step, bytes, at),
                    cpu_row_part(b, b_step, bytes, at), (char *)out + at * size,
                    cpu_min_i64(n - at, CPU_TILE));
}

/* Conditions of one byte are read as they are; others become bytes, a tile at a time. */
static void where_span(const struct cpu_call *c, const struct cpu_span *s)
{
    rlx_dtype cond_type = c->in[0].dtype;
    int32_t size = (int32_t)cpu_size(c->out->dtype);
    uint8_t cond[CPU_TILE];

    if (cpu_size(cond_type) == 1) {
        cpu_row_where(size, s->in[0], s->step[0], s->in[1], s->step[1], s->in[2], s->step[2],
                      s->out, s->n);
        return;
    }
    for (int64_t at = 0; at < s->n; at += CPU_TILE) {
        int64_t part = cpu_min_i64(s->n - at, CPU_TILE);
        if (s->step[0] || at == 0)
            cpu_row_cast(cond_type, RLX_DTYPE_bool,
                         cpu_row_part(s->in[0], s->step[0], cpu_size(cond_type), at), cond,
                         s->step[0] ? part : 1);
        cpu_row_where(size, cond, s->step[0], cpu_row_part(s->in[1], s->step[1], (size_t)size, at),
                      s->step[1], cpu_row_part(s->in[2], s->step[2], (size_t)size, at), s->step[2],
                      (char *)s->out + at * size, part);
    }
}

static void run(const struct cpu_call *c)
{
    cpu_elementwise(c, cpu_row_grain(c->op), where_span);
}

extern const struct cpu_kernel CPU_NAME(cpu_where);
const struct cpu_kernel CPU_NAME(cpu_where) = {.run = run, .in_place = 6};
