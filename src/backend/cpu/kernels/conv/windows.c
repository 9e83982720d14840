/* windows.c: what positions see through their taps, as rows or columns of a matrix (windows.h).
 *
 * Neighbouring positions along the last axis are a run: for one tap they read one row of the
 * source, at equal distances, so each run and tap is one short loop. Runs are the same for every
 * tap. */
#include "backend/cpu/kernels/conv/windows.h"

enum { RUNS = 256 }; /* positions at a time */

struct run {
    int64_t at, count; /* positions, from the first of the part on */
    int64_t image;     /* offset in the source */
    int64_t index[3];  /* of the first position: position * step + base */
};

static int32_t find_runs(const struct windows *w, int64_t pos, int64_t positions, struct run *out)
{
    int64_t volume = windows_volume(w->pos);
    int32_t n = 0;

    for (int64_t at = 0; at < positions; at += out[n++].count) {
        int64_t p = (pos + at) % volume, last = p % w->pos[2];
        struct run *r = &out[n];
        r->at = at;
        r->count = cpu_min_i64(positions - at, w->pos[2] - last);
        r->image = (pos + at) / volume * w->image;
        r->index[0] = p / (w->pos[1] * w->pos[2]) * w->step[0] + w->base[0];
        r->index[1] = p / w->pos[2] % w->pos[1] * w->step[1] + w->base[1];
        r->index[2] = last * w->step[2] + w->base[2];
    }
    return n;
}

/* A tap, counted through all channels. */
struct tap {
    int64_t channel;
    int64_t t[3];
};

static struct tap find_tap(const struct windows *w, int64_t at)
{
    struct tap r;

    r.t[2] = at % w->taps[2];
    at /= w->taps[2];
    r.t[1] = at % w->taps[1];
    at /= w->taps[1];
    r.t[0] = at % w->taps[0];
    r.channel = at / w->taps[0];
    return r;
}

static void next_tap(const struct windows *w, struct tap *t)
{
    if (++t->t[2] < w->taps[2])
        return;
    t->t[2] = 0;
    if (++t->t[1] < w->taps[1])
        return;
    t->t[1] = 0;
    if (++t->t[0] < w->taps[0])
        return;
    t->t[0] = 0;
    t->channel++;
}

/* Where the source row is that a run reads through a tap, and the index in it of its first
 * position; false: the whole row is outside. */
static bool source_row(const struct windows *w, const struct run *r, const struct tap *t,
                       int64_t *row, int64_t *start)
{
    int64_t i0 = r->index[0] + t->t[0] * w->delta[0];
    int64_t i1 = r->index[1] + t->t[1] * w->delta[1];

    if ((uint64_t)i0 >= (uint64_t)w->in[0] || (uint64_t)i1 >= (uint64_t)w->in[1] || w->in[2] == 0)
        return false;
    *row = r->image + ((t->channel * w->in[0] + i0) * w->in[1] + i1) * w->in[2];
    *start = r->index[2] + t->t[2] * w->delta[2];
    return true;
}

/* One run through one tap: S elements become D elements, `step` apart. */
#define FILL_RUN(S, D, VALUE)                                              \
    do {                                                                   \
        D *to_ = (D *)dst + r->at * p->pos_step;                           \
        int64_t row_, start_, lo_ = 0, hi_ = 0, step_ = w->step[2];        \
        const S *from_ = w->src;                                           \
        if (source_row(w, r, t, &row_, &start_)) {                         \
            windows_inside(start_, step_, w->in[2], r->count, &lo_, &hi_); \
            from_ += row_;                                                 \
        }                                                                  \
        for (int64_t j = 0; j < lo_; j++)                                  \
            to_[j * p->pos_step] = 0;                                      \
        if (step_ == 1 && p->pos_step == 1) {                              \
            for (int64_t j = lo_; j < hi_; j++)                            \
                to_[j] = VALUE(from_[start_ + j]);                         \
        } else {                                                           \
            for (int64_t j = lo_; j < hi_; j++)                            \
                to_[j * p->pos_step] = VALUE(from_[start_ + j * step_]);   \
        }                                                                  \
        for (int64_t j = hi_; j < r->count; j++)                           \
            to_[j * p->pos_step] = 0;                                      \
    } while (0)

#define SAME(x) (x)
#define CENTRED(x) ((int16_t)((x)-zero_point))

static void fill_run(const struct windows *w, const struct windows_part *p, const struct run *r,
                     const struct tap *t, void *dst)
{
    const int zero_point = (int)w->zero_point;

    switch (w->dtype) {
    case RLX_DTYPE_f32: FILL_RUN(float, float, SAME); break;
    case RLX_DTYPE_f64: FILL_RUN(double, double, SAME); break;
    case RLX_DTYPE_f16: FILL_RUN(uint16_t, float, f16_to_f32); break;
    case RLX_DTYPE_bf16: FILL_RUN(uint16_t, float, bf16_to_f32); break;
    case RLX_DTYPE_i8: FILL_RUN(int8_t, int16_t, CENTRED); break;
    default: break;
    }
}

/* Taps of the part, where tap k goes to dst + offset(k) elements. */
#define EACH_TAP(offset)                                                        \
    do {                                                                        \
        struct tap tap_ = find_tap(w, p->tap);                                  \
        for (int64_t k = 0; k < p->taps; k++, next_tap(w, &tap_))               \
            for (int32_t i = 0; i < runs; i++)                                  \
                fill_run(w, p, &run[i], &tap_, (char *)p->dst + (offset)*size); \
    } while (0)

void windows_fill(const struct windows *w, const struct windows_part *p)
{
    int64_t size = w->dtype == RLX_DTYPE_f64 ? 8 : w->dtype == RLX_DTYPE_i8 ? 2 : 4;
    struct run run[RUNS];

    for (int64_t at = 0; at < p->positions; at += RUNS) {
        int64_t first = at * p->pos_step;
        int32_t runs = find_runs(w, p->pos + at, cpu_min_i64(RUNS, p->positions - at), run);
        EACH_TAP(first + k * p->tap_step);
    }
}

void windows_fill_pairs(const struct windows *w, const struct windows_part *p)
{
    const int64_t size = 2;
    struct run run[RUNS];

    for (int64_t at = 0; at < p->positions; at += RUNS) {
        int64_t first = at * p->pos_step, n = cpu_min_i64(RUNS, p->positions - at);
        int32_t runs = find_runs(w, p->pos + at, n, run);
        EACH_TAP(first + k / 2 * p->tap_step + k % 2);
        if (p->taps % 2 != 0) {
            int16_t *last = (int16_t *)p->dst + first + p->taps / 2 * p->tap_step + 1;
            for (int64_t j = 0; j < n; j++)
                last[j * p->pos_step] = 0;
        }
    }
}
