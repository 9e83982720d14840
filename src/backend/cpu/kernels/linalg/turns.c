/* turns.c: plane rotations of neighbouring rows, many sweeps at a time (decompose.h). */
#include "backend/cpu/kernels/linalg/decompose.h"

enum { STRIP = 64 };

static void turn_rows(double *restrict x, double *restrict y, double cosine, double sine, int64_t n)
{
    for (int64_t c = 0; c < n; c++) {
        double was = x[c];
        x[c] = cosine * was + sine * y[c];
        y[c] = cosine * y[c] - sine * was;
    }
}

static void turn_strips(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct turns *t = ctx;

    (void)worker;
    for (int64_t s = 0; s < t->sweeps; s++) {
        const double *angle = t->angle + s * 2 * t->n;
        for (int64_t i = 0; i < t->count[s]; i++) {
            double *x = t->x + (t->first[s] + i) * t->n + begin;
            turn_rows(x, x + t->n, angle[2 * i], angle[2 * i + 1], end - begin);
        }
    }
}

void turns_end(struct turns *t)
{
    if (t->sweeps > 0)
        cpu_for(t->pool, t->n, STRIP, turn_strips, t);
    t->sweeps = 0;
}

double *turns_add(struct turns *t, int64_t first, int64_t count)
{
    if (!t->x)
        return NULL;
    if (t->sweeps == TURNS_SWEEPS)
        turns_end(t);
    t->first[t->sweeps] = first;
    t->count[t->sweeps] = count;
    return t->angle + t->sweeps++ * 2 * t->n;
}
