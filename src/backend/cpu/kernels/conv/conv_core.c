/* conv_core.c: convolutions as products of weights and windows (conv_core.h).
 *
 * Rows are output channels, columns are positions, and k runs over the channels of src and their
 * taps. Windows are packed a part at a time and never exist as a whole. An item of the product is a
 * class of one group of one image; where an image has too few positions to fill a block, one
 * image's columns follow another's, and an item is a class of one group. */
#include "backend/cpu/kernels/conv/conv_core.h"
#include "backend/cpu/kernels/conv/conv_tiles.h"
#include "backend/cpu/kernels/elementwise/row.h"

#include <stdatomic.h>

enum { FOLD_BELOW = 512 }; /* positions */

/* ---- shapes -------------------------------------------------------------------------------- */

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

void conv_prepare(struct conv *v, const struct conv_lists *l, int64_t groups)
{
    int32_t spatial = v->src->rank - 2;
    int64_t positions = 1;

    conv_three(v->src->dim + 2, spatial, 1, v->src_dim);
    conv_three(v->out->dim + 2, spatial, 1, v->out_dim);
    conv_three(v->w->dim + 2, spatial, 1, v->kernel);
    conv_three(l->stride->at, l->stride->count, 1, v->stride);
    conv_three(l->padding->at, l->padding->count, 0, v->pad);
    conv_three(l->dilation->at, l->dilation->count, 1, v->dilation);
    v->images = v->src->dim[0];
    v->groups = groups;
    v->m = v->out->dim[1] / groups;
    v->ch = v->src->dim[1] / groups;
    int64_t taps = windows_volume(v->kernel);
    v->w_line = v->transposed ? taps : v->ch * taps;
    v->w_ch = v->transposed ? v->m * taps : taps;
    for (int i = 0; i < 3; i++) {
        v->classes[i] = v->transposed ? cpu_min_i64(v->stride[i], v->out_dim[i]) : 1;
        positions *= v->transposed ? v->out_dim[i] / v->stride[i] : v->out_dim[i];
    }
    v->folded = v->images > 1 && positions < FOLD_BELOW;
}

/* Outputs at first, first + s, ..: the taps that reach them, and what they read through these. */
static void transposed_axis(const struct conv *v, int axis, int64_t first, struct conv_class *c)
{
    int64_t s = v->stride[axis], d = v->dilation[axis], g = gcd(s, d), every = s / g;
    int64_t tap = 0, shifted = first + v->pad[axis];

    while (tap < every && tap < v->kernel[axis] && (shifted - tap * d) % s != 0)
        tap++;
    c->first[axis] = first;
    c->step[axis] = s;
    c->win.pos[axis] = (v->out_dim[axis] - first + s - 1) / s;
    c->win.step[axis] = 1;
    c->win.delta[axis] = -(d / g);
    if (tap < every && tap < v->kernel[axis]) {
        c->win.taps[axis] = (v->kernel[axis] - 1 - tap) / every + 1;
        c->win.base[axis] = (shifted - tap * d) / s;
        c->w_first += tap * c->w_tap[axis];
        c->w_tap[axis] *= every;
    }
}

void conv_class_at(const struct conv *v, int64_t at, struct conv_class *c)
{
    *c = (struct conv_class){.w_tap = {v->kernel[1] * v->kernel[2], v->kernel[2], 1}};
    c->win.dtype = v->src->dtype;
    c->win.zero_point = v->x_zero;
    c->win.image = v->ch * v->groups * windows_volume(v->src_dim);
    for (int i = 2; i >= 0; i--) {
        int64_t number = at % v->classes[i];
        at /= v->classes[i];
        c->win.in[i] = v->src_dim[i];
        if (v->transposed) {
            transposed_axis(v, i, number, c);
            continue;
        }
        c->step[i] = 1;
        c->win.pos[i] = v->out_dim[i];
        c->win.taps[i] = v->kernel[i];
        c->win.step[i] = v->stride[i];
        c->win.base[i] = -v->pad[i];
        c->win.delta[i] = v->dilation[i];
    }
}

/* ---- items --------------------------------------------------------------------------------- */

struct place {
    int64_t image, group, class_at; /* image 0 where images are folded */
};

static struct place find_item(const struct conv *v, int64_t item)
{
    struct place p;

    p.class_at = item % conv_class_count(v);
    item /= conv_class_count(v);
    p.group = item % v->groups;
    p.image = item / v->groups;
    return p;
}

static void item_size(const void *ctx, int64_t item, int64_t *m, int64_t *n, int64_t *k)
{
    const struct conv *v = ctx;
    struct conv_class c;

    conv_class_at(v, find_item(v, item).class_at, &c);
    *m = v->m;
    *n = windows_volume(c.win.pos) * (v->folded ? v->images : 1);
    *k = windows_volume(c.win.taps) * v->ch;
}

/* ---- packing ------------------------------------------------------------------------------- */

static const void *weight_at(const struct conv *v, int64_t group, int64_t at)
{
    return cpu_at(v->w, group * v->m * v->ch * windows_volume(v->kernel) + at);
}

/* The weights' k are dense, except for transposed ones, where each k is a separate row. */
static void pack_weights(const void *ctx, const struct gemm_part *p)
{
    const struct conv *v = ctx;
    struct place at = find_item(v, p->item);
    struct gemm_view view = {.dtype = v->w->dtype, .line = v->w_line, .k = 1};
    struct conv_class c;

    if (!v->transposed) {
        view.data = weight_at(v, at.group, 0);
        gemm_pack_view(&view, p);
        return;
    }
    conv_class_at(v, at.class_at, &c);
    for (int64_t j = 0; j < p->ks; j++) {
        int64_t k = p->k + j, t2 = k % c.win.taps[2], t1 = k / c.win.taps[2] % c.win.taps[1];
        int64_t t0 = k / (c.win.taps[2] * c.win.taps[1]) % c.win.taps[0];
        int64_t ch = k / windows_volume(c.win.taps);
        int64_t offset = p->line * v->w_line + ch * v->w_ch + c.w_first + t0 * c.w_tap[0] +
                         t1 * c.w_tap[1] + t2 * c.w_tap[2];
        view.data = weight_at(v, at.group, offset);
        gemm_pack_run(&view, p, j, 1);
    }
}

/* i8 weights, two k per lane. */
static void pack_weights_i8(const void *ctx, const struct gemm_part *p)
{
    const struct conv *v = ctx;
    const int8_t *w = weight_at(v, find_item(v, p->item).group, 0);
    int64_t lanes = (p->ks + 1) / 2;
    int16_t *to = p->panel;

    for (int64_t l = 0; l < gemm_up(p->lines, p->width); l++) {
        int16_t *lane = to + (l / p->width * lanes * p->width + l % p->width) * 2;
        const int8_t *line = w + (p->line + l) * v->w_line + p->k;
        for (int64_t j = 0; j < lanes * 2; j++)
            lane[j / 2 * p->width * 2 + j % 2] =
                l < p->lines && j < p->ks ? (int16_t)(line[j] - (int)v->w_zero) : 0;
    }
}

/* A window's plain case: every position reads itself, one channel after another. */
static bool is_pointwise(const struct conv *v, const struct windows *w)
{
    for (int i = 0; i < 3; i++)
        if (w->taps[i] != 1 || w->step[i] != 1 || w->base[i] != 0 || w->pos[i] != w->in[i])
            return false;
    return !v->folded && v->src->dtype != RLX_DTYPE_i8;
}

static void pack_windows(const void *ctx, const struct gemm_part *p)
{
    const struct conv *v = ctx;
    struct place at = find_item(v, p->item);
    int64_t plane = windows_volume(v->src_dim);
    bool i8 = v->src->dtype == RLX_DTYPE_i8;
    int64_t size = v->src->dtype == RLX_DTYPE_f64 ? 8 : 4, lanes = i8 ? (p->ks + 1) / 2 : p->ks;
    struct conv_class c;

    conv_class_at(v, at.class_at, &c);
    if (v->src->count > 0) /* otherwise all is padding */
        c.win.src = cpu_at(v->src, (at.image * v->groups + at.group) * v->ch * plane);
    if (is_pointwise(v, &c.win)) {
        struct gemm_view view = {c.win.src, v->src->dtype, 1, plane};
        gemm_pack_view(&view, p);
        return;
    }
    for (int64_t l = 0; l < p->lines; l += p->width) {
        char *panel = (char *)p->panel + l * lanes * size;
        struct windows_part part = {.pos = p->line + l,
                                    .positions = cpu_min_i64(p->width, p->lines - l),
                                    .tap = p->k,
                                    .taps = p->ks,
                                    .pos_step = i8 ? 2 : 1,
                                    .tap_step = i8 ? 2 * p->width : p->width,
                                    .dst = panel};
        if (part.positions < p->width)
            memset(panel, 0, (size_t)(lanes * p->width * size));
        if (i8)
            windows_fill_pairs(&c.win, &part);
        else
            windows_fill(&c.win, &part);
    }
}

/* ---- storing ------------------------------------------------------------------------------- */

#define SPREAD(T)                        \
    do {                                 \
        T *to_ = dst;                    \
        const T *from_ = (const T *)src; \
        for (int64_t j = 0; j < n; j++)  \
            to_[j * step] = from_[j];    \
    } while (0)

static void spread(int64_t size, void *dst, const void *src, int64_t step, int64_t n)
{
    if (step == 1)
        memcpy(dst, src, (size_t)(n * size));
    else if (size == 2)
        SPREAD(uint16_t);
    else if (size == 4)
        SPREAD(float);
    else
        SPREAD(double);
}

static void store_plain(const struct conv *v, const void *sum, int64_t to, int64_t step, int64_t n)
{
    rlx_dtype dtype = v->out->dtype;
    CPU_TILE_OF(uint16_t, narrow);

    if (!cpu_is_half(dtype)) {
        spread((int64_t)cpu_size(dtype), cpu_at(v->out, to), sum, step, n);
        return;
    }
    for (int64_t at = 0; at < n; at += CPU_TILE) {
        int64_t part = cpu_min_i64(CPU_TILE, n - at);
        cpu_store_f32(dtype, (const float *)sum + at, narrow, part);
        spread(2, cpu_at(v->out, to + at * step), narrow, step, part);
    }
}

/* n <= CPU_TILE elements of t from `at` on, as f32 or f64. */
static const void *read_wide(const struct cpu_tensor *t, int64_t at, int64_t n, float *buffer)
{
    return t->dtype == RLX_DTYPE_f64 ? cpu_at(t, at)
                                     : cpu_as_f32(t->dtype, cpu_at(t, at), buffer, n);
}

void conv_store_row(const struct conv *v, const void *sum, int64_t to, int64_t step, int64_t n)
{
    rlx_dtype wide = v->out->dtype == RLX_DTYPE_f64 ? RLX_DTYPE_f64 : RLX_DTYPE_f32;
    int64_t size = (int64_t)cpu_size(wide), channel = to / windows_volume(v->out_dim);
    CPU_TILE_OF(float, buffer);
    CPU_TILE_ANY(done);

    if (!v->bias && !v->residual && v->act == RLX_OP_none) {
        store_plain(v, sum, to, step, n);
        return;
    }
    for (int64_t at = 0; at < n; at += CPU_TILE) { /* step is 1 */
        int64_t part = cpu_min_i64(CPU_TILE, n - at);
        const void *x = (const char *)sum + at * size;
        if (v->bias) {
            const void *b = read_wide(v->bias, channel % (v->groups * v->m), 1, buffer);
            cpu_row_binary(RLX_OP_add, wide, x, 1, b, 0, done, part);
            x = done;
        }
        if (v->residual) {
            const void *r = read_wide(v->residual, to + at, part, buffer);
            cpu_row_binary(RLX_OP_add, wide, x, 1, r, 1, done, part);
            x = done;
        }
        if (v->act != RLX_OP_none) {
            cpu_row_unary(v->act, wide, x, done, part);
            x = done;
        }
        store_plain(v, x, to + at, step, part);
    }
}

static void store(const void *ctx, const struct gemm_block *b)
{
    const struct conv *v = ctx;
    struct place at = find_item(v, b->item);
    int64_t size = v->out->dtype == RLX_DTYPE_f64 ? 8 : 4, plane = windows_volume(v->out_dim), n;
    struct conv_class c;

    conv_class_at(v, at.class_at, &c);
    int64_t volume = windows_volume(c.win.pos);
    for (int64_t r = 0; r < b->rows; r++) {
        const char *sum = (const char *)b->sum + r * b->ld * size;
        for (int64_t j = 0; j < b->cols; j += n) {
            int64_t pos = b->col + j, in_image = pos % volume, t2 = in_image % c.win.pos[2];
            int64_t t1 = in_image / c.win.pos[2] % c.win.pos[1];
            int64_t t0 = in_image / (c.win.pos[2] * c.win.pos[1]);
            int64_t channel =
                ((at.image + pos / volume) * v->groups + at.group) * v->m + b->row + r;
            int64_t row =
                (c.first[0] + t0 * c.step[0]) * v->out_dim[1] + c.first[1] + t1 * c.step[1];
            n = cpu_min_i64(b->cols - j, c.win.pos[2] - t2);
            conv_store_row(v, sum + j * size,
                           channel * plane + row * v->out_dim[2] + c.first[2] + t2 * c.step[2],
                           c.step[2], n);
        }
    }
}

/* ---- running ------------------------------------------------------------------------------- */

static void describe_gemm(const struct conv *v, struct gemm *g)
{
    int64_t positions = 1, taps = 1;
    bool i8 = v->src->dtype == RLX_DTYPE_i8, uneven = false;

    for (int i = 0; i < 3; i++) {
        int64_t s = v->transposed ? v->stride[i] : 1;
        int64_t every = s / gcd(s, v->dilation[i]);
        positions *= (v->out_dim[i] + s - 1) / s; /* of the largest class */
        taps *= (v->kernel[i] + every - 1) / every;
        uneven |= s > 1;
    }
    *g = (struct gemm){.kind = i8 ? GEMM_I16 : gemm_kind_of(v->src->dtype),
                       .items = conv_class_count(v) * v->groups * (v->folded ? 1 : v->images),
                       .m = v->m,
                       .n = positions * (v->folded ? v->images : 1),
                       .k = taps * v->ch,
                       .pack_a = i8 ? pack_weights_i8 : pack_weights,
                       .pack_b = pack_windows,
                       .c = v->out->data,
                       .ctx = v};
    if (uneven)
        g->size = item_size;
    g->in_scratch = v->store || v->folded || g->size || cpu_is_half(v->out->dtype) || v->bias ||
                    v->residual || v->act != RLX_OP_none;
    if (g->in_scratch)
        g->store = v->store ? v->store : store;
}

static bool takes_direct(const struct conv *v)
{
    return v->m < CONV_DIRECT_ROWS && cpu_is_float(v->src->dtype);
}

uint64_t conv_scratch(const struct conv *v, const struct pool *pool)
{
    struct gemm g;

    if (v->out->count == 0)
        return 0;
    if (conv_tiles_fit(v))
        return conv_tiles_scratch(v, pool);
    if (takes_direct(v))
        return 0;
    describe_gemm(v, &g);
    return gemm_scratch(&g, pool);
}

static bool has_edges(const struct conv *v)
{
    for (int64_t i = 0; i < conv_class_count(v); i++) {
        struct conv_class c;
        conv_class_at(v, i, &c);
        if (windows_have_edges(&c.win))
            return true;
    }
    return false;
}

static void run_product(const struct conv *v, struct pool *pool, void *scratch)
{
    struct gemm g;

    if (conv_tiles_fit(v)) {
        conv_tiles_run(v, pool, scratch);
    } else if (takes_direct(v)) {
        conv_direct(v, pool);
    } else {
        describe_gemm(v, &g);
        gemm_run(&g, pool, scratch);
    }
}

static bool special_weights(const struct conv *v, struct pool *pool)
{
    return v->w->packed ? conv_tiles_packed_special(v) : conv_any_special(v->w, pool);
}

/* A product multiplies weights with zeros where the definition leaves terms out, which is the same
 * unless a weight is an infinity or a NaN. Then, or if the result has a NaN, whichever is quicker
 * to check, the definition is followed exactly. An activation may hide a NaN, and a residual may
 * have been overwritten by then. */
void conv_run(const struct conv *v, struct pool *pool, void *scratch)
{
    if (v->out->count == 0)
        return;
    bool careful = cpu_is_float(v->src->dtype) && has_edges(v);
    bool ask_weights =
        v->w->packed || v->act != RLX_OP_none || v->residual || v->w->count <= v->out->count;
    if (careful && ask_weights && special_weights(v, pool)) {
        conv_direct(v, pool);
        return;
    }
    run_product(v, pool, scratch);
    if (careful && !ask_weights && conv_any_special(v->out, pool))
        conv_direct(v, pool);
}

/* ---- infinities and NaN -------------------------------------------------------------------- */

struct search {
    const struct cpu_tensor *t;
    atomic_bool found;
};

/* All bits of the exponent set. */
#define SEARCH(T, exponent)                             \
    do {                                                \
        typedef T bits_ __attribute__((may_alias));     \
        const bits_ *x_ = s->t->data;                   \
        int any_ = 0;                                   \
        for (int64_t i = begin; i < end; i++)           \
            any_ |= (x_[i] & (exponent)) == (exponent); \
        found = any_ != 0;                              \
    } while (0)

static void search(void *ctx, int64_t begin, int64_t end, int worker)
{
    struct search *s = ctx;
    bool found = false;

    (void)worker;
    if (atomic_load_explicit(&s->found, memory_order_relaxed))
        return;
    switch (s->t->dtype) {
    case RLX_DTYPE_f64: SEARCH(uint64_t, (uint64_t)0x7ff << 52); break;
    case RLX_DTYPE_f16: SEARCH(uint16_t, 0x7c00); break;
    case RLX_DTYPE_bf16: SEARCH(uint16_t, 0x7f80); break;
    default: SEARCH(uint32_t, 0x7f800000u); break;
    }
    if (found)
        atomic_store_explicit(&s->found, true, memory_order_relaxed);
}

bool conv_any_special(const struct cpu_tensor *t, struct pool *pool)
{
    struct search s = {.t = t};

    atomic_init(&s.found, false);
    cpu_for(pool, t->count, 65536, search, &s);
    return atomic_load(&s.found);
}
