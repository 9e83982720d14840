/* conv_backward_weight.c: the gradient of a convolution for its weights (ops-core.md 12.1).
 *
 *     dw[group m, ch, tap] = sum over images and positions of dy[m, position] * x[ch, position +
 * tap]
 *
 * A product per group: rows are channels of dy, columns are taps of channels of x, and k runs over
 * the positions of all images. */
#include "backend/cpu/kernels/conv/conv_core.h"

/* src: x; out: dy; w: the result. */
struct weight_grad {
    struct conv v;
    struct conv_class c;
    int64_t positions; /* of an image */
};

static void describe(const struct cpu_call *c, struct weight_grad *g)
{
    const struct attr_conv_backward_weight *a = &c->attr->conv_backward_weight;
    const struct conv_lists l = {&a->stride, &a->padding, &a->dilation};

    *g = (struct weight_grad){.v = {.src = &c->in[0], .out = &c->in[1], .w = c->out, .call = c}};
    conv_prepare(&g->v, &l, a->groups);
    conv_class_at(&g->v, 0, &g->c);
    g->positions = windows_volume(g->c.win.pos);
}

/* Rows of dy: k lie together within an image. */
static void pack_dy(const void *ctx, const struct gemm_part *p)
{
    const struct weight_grad *g = ctx;
    const struct conv *v = &g->v;
    struct gemm_view view = {.dtype = v->out->dtype, .line = g->positions, .k = 1};
    int64_t n;

    for (int64_t j = 0; j < p->ks; j += n) {
        int64_t image = (p->k + j) / g->positions, pos = (p->k + j) % g->positions;
        int64_t channel = (image * v->groups + p->item) * v->m + p->line;
        n = cpu_min_i64(p->ks - j, g->positions - pos);
        view.data = cpu_at(v->out, channel * g->positions + pos);
        gemm_pack_run(&view, p, j, n);
    }
}

/* Taps are lines here, positions are k. */
static void pack_taps(const void *ctx, const struct gemm_part *p)
{
    const struct weight_grad *g = ctx;
    const struct conv *v = &g->v;
    int64_t size = v->src->dtype == RLX_DTYPE_f64 ? 8 : 4;
    struct windows w = g->c.win;

    if (v->src->count > 0) /* otherwise all is padding */
        w.src = cpu_at(v->src, p->item * v->ch * windows_volume(v->src_dim));
    for (int64_t l = 0; l < p->lines; l += p->width) {
        char *panel = (char *)p->panel + l * p->ks * size;
        struct windows_part part = {.pos = p->k,
                                    .positions = p->ks,
                                    .tap = p->line + l,
                                    .taps = cpu_min_i64(p->width, p->lines - l),
                                    .pos_step = p->width,
                                    .tap_step = 1,
                                    .dst = panel};
        if (part.taps < p->width)
            memset(panel, 0, (size_t)(p->ks * p->width * size));
        windows_fill(&w, &part);
    }
}

static void store(const void *ctx, const struct gemm_block *b)
{
    const struct weight_grad *g = ctx;
    const struct cpu_tensor *dw = g->v.w;
    int64_t columns = g->v.ch * windows_volume(g->v.kernel);

    for (int64_t r = 0; r < b->rows; r++) {
        int64_t to = (b->item * g->v.m + b->row + r) * columns + b->col;
        cpu_store_f32(dw->dtype, (const float *)b->sum + r * b->ld, cpu_at(dw, to), b->cols);
    }
}

static void describe_gemm(const struct weight_grad *g, struct gemm *out)
{
    const struct conv *v = &g->v;
    bool half = cpu_is_half(v->w->dtype);

    *out = (struct gemm){.kind = gemm_kind_of(v->w->dtype),
                         .items = v->groups,
                         .m = v->m,
                         .n = v->ch * windows_volume(v->kernel),
                         .k = v->images * g->positions,
                         .pack_a = pack_dy,
                         .pack_b = pack_taps,
                         .in_scratch = half,
                         .c = v->w->data,
                         .store = half ? store : NULL,
                         .ctx = g};
}

static bool takes_direct(const struct weight_grad *g)
{
    return g->v.m < CONV_DIRECT_ROWS;
}

static uint64_t scratch(const struct cpu_call *c)
{
    struct weight_grad g;
    struct gemm gemm;

    if (c->out->count == 0)
        return 0;
    describe(c, &g);
    if (takes_direct(&g))
        return 0;
    describe_gemm(&g, &gemm);
    return gemm_scratch(&gemm, c->pool);
}

/* As in conv_run: zeros from padding must not be multiplied with an infinity in dy. */
static void run(const struct cpu_call *c)
{
    struct weight_grad g;
    struct gemm gemm;

    if (c->out->count == 0)
        return;
    describe(c, &g);
    if (takes_direct(&g)) {
        conv_direct_weight(&g.v, c->out, c->pool);
        return;
    }
    describe_gemm(&g, &gemm);
    gemm_run(&gemm, c->pool, c->scratch);
    if (windows_have_edges(&g.c.win) && conv_any_special(c->out, c->pool))
        conv_direct_weight(&g.v, c->out, c->pool);
}

extern const struct cpu_kernel CPU_NAME(cpu_conv_backward_weight);
const struct cpu_kernel CPU_NAME(cpu_conv_backward_weight) = {.run = run, .scratch = scratch};
