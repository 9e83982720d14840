/* trilu.c: a triangle of the last two axes, zeros elsewhere. */
#include "backend/cpu/kernels/move/move.h"

struct trilu_job {
    const char *x;
    char *y;
    size_t size;
    int64_t rows, cols; /* of one matrix */
    int64_t diagonal;
    bool upper;
};

static void trilu_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct trilu_job *j = ctx;

    (void)worker;
    for (int64_t r = begin; r < end; r++) {
        int64_t first = r % j->rows + j->diagonal + (j->upper ? 0 : 1); /* column past the edge */
        size_t edge = (size_t)cpu_min_i64(cpu_max_i64(first, 0), j->cols) * j->size;
        size_t width = (size_t)j->cols * j->size;
        const char *x = j->x + (size_t)r * width;
        char *y = j->y + (size_t)r * width;
        size_t keep = j->upper ? edge : 0, keep_end = j->upper ? width : edge;

        memset(y, 0, keep);
        if (y != x)
            memcpy(y + keep, x + keep, keep_end - keep);
        memset(y + keep_end, 0, width - keep_end);
    }
}

static void run(const struct cpu_call *c)
{
    const struct cpu_tensor *x = &c->in[0];

    if (x->count == 0)
        return;
    int64_t rows = x->dim[x->rank - 2], cols = x->dim[x->rank - 1];
    struct trilu_job j = {
        .x = x->data,
        .y = c->out->data,
        .size = cpu_size(x->dtype),
        .rows = rows,
        .cols = cols,
        /* Beyond the corners nothing changes any more. */
        .diagonal = cpu_min_i64(cpu_max_i64(c->attr->trilu.diagonal, -rows - 1), cols),
        .upper = c->attr->trilu.upper,
    };
    cpu_for(c->pool, x->count / cols, cpu_grain(MOVE_BLOCK, cols), trilu_rows, &j);
}

extern const struct cpu_kernel CPU_NAME(cpu_trilu);
const struct cpu_kernel CPU_NAME(cpu_trilu) = {.run = run, .in_place = 1};
