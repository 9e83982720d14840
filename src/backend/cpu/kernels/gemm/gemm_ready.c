/* gemm_ready.c: panels of a weight, made once and read by every product with it (gemm.h).
 *
 * They are laid out like those of an operand that gemm packs completely (gemm_panels_at), so one
 * copy serves products of one row and of thousands. Panels of f16 and bf16 take half the room at
 * half of each offset. */
#include "backend/cpu/kernels/gemm/gemm_kind.h"

struct ready_job {
    const struct gemm *g;
    const struct gemm_loop *loop;
    int64_t item, lines, panels;
    char *to;
};

static int64_t narrow(const struct gemm *g, int64_t bytes)
{
    return cpu_is_half(g->ready_dtype) ? bytes / 2 : bytes;
}

/* Bytes that cannot be counted are more than anyone has. */
uint64_t gemm_ready_bytes(const struct gemm *g)
{
    const struct gemm_loop *loop = gemm_loop_of(g->kind);
    int64_t lines = gemm_up(g->n, loop->nr);

    return (uint64_t)narrow(g, gemm_panels_bytes(loop, lines, g->k));
}

/* One task: one panel over one stretch. */
static void make_panels(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ready_job *job = ctx;
    const struct gemm *g = job->g;
    int64_t nr = job->loop->nr, stretch = gemm_stretch(job->loop, g->k);

    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        int64_t col = t % job->panels * nr, k = t / job->panels * stretch;
        int64_t at = gemm_panels_at(job->loop, job->lines, g->k, col, k);
        struct gemm_part p = {.item = job->item,
                              .line = col,
                              .lines = cpu_min_i64(nr, g->n - col),
                              .k = k,
                              .ks = cpu_min_i64(stretch, g->k - k),
                              .width = nr,
                              .panel = job->to + narrow(g, at)};
        g->pack_b(g->ctx, &p);
    }
}

void gemm_make_ready(const struct gemm *g, int64_t item, struct pool *pool, void *to)
{
    const struct gemm_loop *loop = gemm_loop_of(g->kind);
    struct ready_job job = {.g = g, .loop = loop, .item = item, .to = to};
    int64_t stretch = gemm_stretch(loop, g->k);

    job.lines = gemm_up(g->n, loop->nr);
    job.panels = job.lines / loop->nr;
    cpu_for(pool, job.panels * ((g->k + stretch - 1) / stretch), 1, make_panels, &job);
}

/* ---- back ---- */

struct back_job {
    const struct gemm *g;
    const struct gemm_view *to;
    const struct gemm_loop *loop;
    int64_t lines, panels;
    const char *from;
};

/* Elements as bits: [k][line] becomes what the strides say. */
#define MOVE_BACK(T)                                                         \
    do {                                                                     \
        const T *from_ = (const T *)(const void *)panel;                     \
        T *to_ = (T *)(void *)(uintptr_t)v->data + col * v->line + k * v->k; \
        for (int64_t j = 0; j < ks; j++)                                     \
            for (int64_t l = 0; l < lines; l++)                              \
                to_[l * v->line + j * v->k] = from_[j * nr + l];             \
    } while (0)

static void move_panels_back(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct back_job *job = ctx;
    const struct gemm *g = job->g;
    const struct gemm_view *v = job->to;
    int64_t nr = job->loop->nr, stretch = gemm_stretch(job->loop, g->k);

    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        int64_t col = t % job->panels * nr, k = t / job->panels * stretch;
        int64_t lines = cpu_min_i64(nr, g->n - col), ks = cpu_min_i64(stretch, g->k - k);
        const char *panel =
            job->from + narrow(g, gemm_panels_at(job->loop, job->lines, g->k, col, k));
        switch (cpu_size(v->dtype)) {
        case 2: MOVE_BACK(uint16_t); break;
        case 4: MOVE_BACK(uint32_t); break;
        default: MOVE_BACK(uint64_t); break;
        }
    }
}

void gemm_from_ready(const struct gemm *g, const struct gemm_view *to, struct pool *pool,
                     const void *panels)
{
    const struct gemm_loop *loop = gemm_loop_of(g->kind);
    struct back_job job = {.g = g, .to = to, .loop = loop, .from = panels};
    int64_t stretch = gemm_stretch(loop, g->k);

    job.lines = gemm_up(g->n, loop->nr);
    job.panels = job.lines / loop->nr;
    cpu_for(pool, job.panels * ((g->k + stretch - 1) / stretch), 1, move_panels_back, &job);
}
