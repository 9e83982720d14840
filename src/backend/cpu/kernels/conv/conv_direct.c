/* conv_direct.c: convolutions by the definition, a row of outputs at a time (conv_core.h). Terms
 * outside the source are left out. */
#include "backend/cpu/kernels/conv/conv_core.h"
#include "backend/cpu/kernels/gemm/gemm_vec.h"

/* One row of outputs: a class, an output channel of an image, and all positions but the last. */
struct direct_row {
    const struct conv *v;
    const struct conv_class *c;
    int64_t image, group;
    int64_t pos[2];
    int64_t weights; /* of the output channel, in w */
    int64_t out;     /* element that the row begins with */
};

#define DIRECT(name) name##_f32
#define DIRECT_T float
#define DIRECT_DTYPE RLX_DTYPE_f32
#define DIRECT_LOAD cpu_load_f32
#define DIRECT_MADD F32_MADD_1
#include "backend/cpu/kernels/conv/conv_direct_core.h"

#define DIRECT(name) name##_f64
#define DIRECT_T double
#define DIRECT_DTYPE RLX_DTYPE_f64
#define DIRECT_LOAD cpu_load_f64
#define DIRECT_MADD F64_MADD_1
#include "backend/cpu/kernels/conv/conv_direct_core.h"

struct rows_job {
    const struct conv *v;
    struct conv_class c;
};

static void run_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct rows_job *job = ctx;
    const struct conv *v = job->v;
    const struct conv_class *c = &job->c;
    int64_t taps = windows_volume(v->kernel);

    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        int64_t p1 = t % c->win.pos[1], p0 = t / c->win.pos[1] % c->win.pos[0];
        int64_t channel = t / (c->win.pos[1] * c->win.pos[0]), co = channel % (v->groups * v->m);
        struct direct_row r = {.v = v, .c = c, .pos = {p0, p1}};
        r.image = channel / (v->groups * v->m);
        r.group = co / v->m;
        r.weights = r.group * v->m * v->ch * taps + co % v->m * v->w_line + c->w_first;
        r.out = ((channel * v->out_dim[0] + c->first[0] + p0 * c->step[0]) * v->out_dim[1] +
                 c->first[1] + p1 * c->step[1]) *
                v->out_dim[2];
        if (v->src->dtype == RLX_DTYPE_f64)
            row_f64(&r);
        else
            row_f32(&r);
    }
}

void conv_direct(const struct conv *v, struct pool *pool)
{
    struct rows_job job = {.v = v};

    for (int64_t i = 0; i < conv_class_count(v); i++) {
        conv_class_at(v, i, &job.c);
        const struct windows *w = &job.c.win;
        int64_t work = w->pos[2] * v->ch * windows_volume(w->taps); /* of a row */
        cpu_for(pool, v->images * v->groups * v->m * w->pos[0] * w->pos[1],
                cpu_max_i64(1, 16384 / (work + 1)), run_rows, &job);
    }
}

struct weight_job {
    const struct conv *v;
    const struct cpu_tensor *dw;
    struct conv_class c;
};

static void run_weights(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct weight_job *job = ctx;
    const struct conv *v = job->v;
    const int64_t *k = v->kernel;

    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        int64_t at = t / windows_volume(k);
        int64_t tap[3] = {t / (k[1] * k[2]) % k[0], t / k[2] % k[1], t % k[2]};
        double dw = v->src->dtype == RLX_DTYPE_f64
                        ? weight_f64(v, &job->c.win, at / v->ch, at % v->ch, tap)
                        : weight_f32(v, &job->c.win, at / v->ch, at % v->ch, tap);
        cpu_set_f64(job->dw->dtype, job->dw->data, t, dw);
    }
}

void conv_direct_weight(const struct conv *v, const struct cpu_tensor *dw, struct pool *pool)
{
    struct weight_job job = {.v = v, .dw = dw};

    conv_class_at(v, 0, &job.c);
    int64_t work = v->images * windows_volume(job.c.win.pos); /* of a weight */
    cpu_for(pool, dw->count, cpu_max_i64(1, 16384 / (work + 1)), run_weights, &job);
}
