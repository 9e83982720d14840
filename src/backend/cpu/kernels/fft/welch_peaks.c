/* welch_peaks.c: the strongest bins of spectra averaged over segments (ops-special.md 5.3).
 *
 * Powers are kept negated: "ascending, NaN last" is then the order that is wanted. */
#include "backend/cpu/kernels/order/order.h"

struct peaks {
    const struct cpu_call *c;
    int64_t n_fft, bins, k, segments;
};

static void set_job(struct peaks *p, const struct cpu_call *c)
{
    const struct attr_welch_peaks *a = &c->attr->welch_peaks;
    int64_t n_fft = c->in[0].dim[1] / 2;

    *p = (struct peaks){c, n_fft, n_fft / 2 + 1, a->k, a->n_segments};
}

/* A worker's: the k best, then the powers. */
static uint64_t worker_bytes(const struct peaks *p)
{
    return ((uint64_t)p->k * sizeof(uint64_t) + (uint64_t)p->bins * sizeof(float) + 63) / 64 * 64;
}

static uint64_t scratch(const struct cpu_call *c)
{
    struct peaks p;

    set_job(&p, c);
    return worker_bytes(&p) * (uint64_t)(c->pool ? pool_threads(c->pool) : 1);
}

static void add_powers(const struct peaks *p, const float *spec, float *minus)
{
    float share = 1 / (float)p->segments;

    memset(minus, 0, (size_t)p->bins * sizeof *minus);
    for (int64_t s = 0; s < p->segments; s++) {
        const float *re = spec + s * 2 * p->n_fft, *im = re + p->n_fft;
        for (int64_t j = 0; j < p->bins; j++) {
            /* all but the first and the last stand for two */
            float c = j == 0 || j == p->bins - 1 ? 1.0f : 2.0f;
            minus[j] -= c * (re[j] * re[j] + im[j] * im[j]) * share;
        }
    }
}

static void find_peaks(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct peaks *p = ctx;
    char *own = (char *)p->c->scratch + (uint64_t)worker * worker_bytes(p);
    uint64_t *top = (uint64_t *)(void *)own;
    float *minus = (float *)(void *)(own + (uint64_t)p->k * sizeof *top);
    struct cpu_tensor x = {.data = minus, .dtype = RLX_DTYPE_f32, .count = p->bins};
    struct order_row row = {&x, 0, 1, p->bins};
    CPU_TILE_OF(uint64_t, tile);

    for (int64_t b = begin; b < end; b++) {
        float *out = (float *)p->c->out->data + b * 2 * p->k;
        int64_t have = 0;
        add_powers(p, (const float *)p->c->in[0].data + b * p->segments * 2 * p->n_fft, minus);
        for (int64_t from = 0; from < p->bins; from += CPU_TILE) {
            int64_t n = cpu_min_i64(CPU_TILE, p->bins - from);
            order_packed(&row, ORDER_UP, from, n, tile);
            have = order_top_packed(top, p->k, have, tile, n);
        }
        order_finish_packed(top, have);
        for (int64_t i = 0; i < p->k; i++) {
            int64_t j = (int64_t)(top[i] & UINT32_MAX);
            out[2 * i] = (float)j;
            out[2 * i + 1] = 0 - minus[j]; /* 0, not -0, where there is no power */
        }
    }
}

static void run(const struct cpu_call *c)
{
    struct peaks p;

    if (c->out->count == 0)
        return;
    set_job(&p, c);
    int64_t grain = cpu_max_i64(1, 16384 / (p.bins * p.segments));
    cpu_for(c->pool, c->out->count / (2 * p.k), grain, find_peaks, &p);
}

const struct cpu_kernel CPU_NAME(cpu_welch_peaks) = {.run = run, .scratch = scratch};
