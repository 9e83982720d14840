/* arg_extreme.c: the first index of the largest or smallest element along an axis; NaN wins.
 *
 * Elements are compared as keys (order.h), of which the smallest wins. Rows are searched a tile at
 * a time: the tile's smallest key first, and where it is only if it beats what there was. Columns
 * are searched side by side. */
#include "backend/cpu/kernels/order/order.h"

struct arg_job {
    const struct cpu_tensor *x, *out;
    enum order order;
    int64_t n, inner; /* the axis, and the elements after it */
    int64_t tiles;    /* columns: of CPU_TILE, per outer index */
};

#define LANES 32 /* fewer do not turn into vector code */

#define ARG_FUNCTIONS(bits)                                                                   \
    static int##bits##_t smallest_##bits(const int##bits##_t *key, int64_t n)                 \
    {                                                                                         \
        int##bits##_t lane[LANES], least = key[0];                                            \
        int64_t i = 0;                                                                        \
                                                                                              \
        for (int l = 0; l < LANES; l++)                                                       \
            lane[l] = least;                                                                  \
        for (; i + LANES <= n; i += LANES)                                                    \
            for (int l = 0; l < LANES; l++)                                                   \
                lane[l] = key[i + l] < lane[l] ? key[i + l] : lane[l];                        \
        for (; i < n; i++)                                                                    \
            least = key[i] < least ? key[i] : least;                                          \
        for (int l = 0; l < LANES; l++)                                                       \
            least = lane[l] < least ? lane[l] : least;                                        \
        return least;                                                                         \
    }                                                                                         \
                                                                                              \
    static int64_t search_row_##bits(const struct arg_job *j, int64_t row)                    \
    {                                                                                         \
        int##bits##_t best = INT##bits##_MAX;                                                 \
        int64_t found = 0;                                                                    \
        CPU_TILE_OF(int##bits##_t, key);                                                      \
                                                                                              \
        for (int64_t from = 0; from < j->n; from += CPU_TILE) {                               \
            int64_t n = cpu_min_i64(j->n - from, CPU_TILE), i = 0;                            \
            order_keys##bits(j->x->dtype, j->order, cpu_at(j->x, row * j->n + from), n, key); \
            int##bits##_t least = smallest_##bits(key, n);                                    \
            if (least >= best)                                                                \
                continue;                                                                     \
            while (key[i] != least)                                                           \
                i++;                                                                          \
            best = least;                                                                     \
            found = from + i;                                                                 \
        }                                                                                     \
        return found;                                                                         \
    }                                                                                         \
                                                                                              \
    /* The answers of n columns that begin at element `at`. */                                \
    static void search_columns_##bits(const struct arg_job *j, int64_t at, int64_t n,         \
                                      int64_t *found)                                         \
    {                                                                                         \
        CPU_TILE_OF(int##bits##_t, key);                                                      \
        CPU_TILE_OF(int##bits##_t, best);                                                     \
                                                                                              \
        order_keys##bits(j->x->dtype, j->order, cpu_at(j->x, at), n, best);                   \
        memset(found, 0, (size_t)n * sizeof *found);                                          \
        for (int64_t k = 1; k < j->n; k++) {                                                  \
            order_keys##bits(j->x->dtype, j->order, cpu_at(j->x, at + k * j->inner), n, key); \
            for (int64_t i = 0; i < n; i++) {                                                 \
                found[i] = key[i] < best[i] ? k : found[i];                                   \
                best[i] = key[i] < best[i] ? key[i] : best[i];                                \
            }                                                                                 \
        }                                                                                     \
    }

ARG_FUNCTIONS(32)
ARG_FUNCTIONS(64)

static void arg_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct arg_job *j = ctx;
    bool narrow = cpu_size(j->x->dtype) <= 4;

    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        int64_t found = narrow ? search_row_32(j, row) : search_row_64(j, row);
        index_store(j->out, row, 1, &found, 1);
    }
}

static void arg_columns(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct arg_job *j = ctx;
    bool narrow = cpu_size(j->x->dtype) <= 4;
    CPU_TILE_OF(int64_t, found);

    (void)worker;
    for (int64_t u = begin; u < end; u++) {
        int64_t outer = u / j->tiles, column = u % j->tiles * CPU_TILE;
        int64_t n = cpu_min_i64(j->inner - column, CPU_TILE);
        int64_t at = outer * j->n * j->inner + column;
        if (narrow)
            search_columns_32(j, at, n, found);
        else
            search_columns_64(j, at, n, found);
        index_store(j->out, outer * j->inner + column, 1, found, n);
    }
}

static void run(const struct cpu_call *c)
{
    const struct cpu_tensor *x = &c->in[0];
    int64_t axis = c->attr->arg_extreme.axis;
    struct arg_job j = {.x = x, .out = c->out};

    if (c->out->count == 0)
        return;
    j.order = c->op == RLX_OP_argmax ? ORDER_DOWN : ORDER_UP_NAN;
    j.n = x->dim[axis];
    j.inner = cpu_product(x, axis + 1, x->rank);
    if (j.inner == 1) {
        cpu_for(c->pool, c->out->count, cpu_grain(MOVE_BLOCK, j.n), arg_rows, &j);
        return;
    }
    j.tiles = (j.inner + CPU_TILE - 1) / CPU_TILE;
    int64_t each = j.n * cpu_min_i64(j.inner, CPU_TILE);
    cpu_for(c->pool, c->out->count / j.inner * j.tiles, cpu_grain(MOVE_BLOCK, each), arg_columns,
            &j);
}

extern const struct cpu_kernel CPU_NAME(cpu_arg_extreme);
const struct cpu_kernel CPU_NAME(cpu_arg_extreme) = {.run = run};
