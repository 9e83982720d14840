/* onnx_deform.c: ONNX ops that read pictures at places which are worked out: DeformConv, RoiAlign.
 *
 * A picture's elements are rows of a table, all channels of one place. What lies between elements
 * is a weighted sum of the rows around it: one gather for each corner. */
#include "base/str.h"
#include "import/onnx/handlers/onnx_window.h"

#define MAX_SPACE 3
#define MAX_SAMPLES 4096 /* along an axis of a region */

struct places {
    int32_t space;
    int64_t len[MAX_SPACE]; /* of the picture's axes */
    ir_value at[MAX_SPACE]; /* [P], floats: where each place lies along them */
    ir_value first;         /* [P], i64: the row that its picture begins with */
    ir_value rows;          /* [pictures * all of space, C] */
    ir_dim count;           /* P */
};

static ir_value clamp(struct formula *f, ir_value x, double hi)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_clamp, &attr);
    attr.clamp.min = 0;
    attr.clamp.max = hi;
    return formula_node(f, RLX_OP_clamp, &x, 1, &attr);
}

/* ---- between elements ---- */

/* The rows at one corner of each place, times its weight: 0 outside of the picture. */
static ir_value corner(struct formula *f, const struct places *p, const ir_value *low,
                       const ir_value *part, int which)
{
    ir_value index = RLX_NO_VALUE, weight = RLX_NO_VALUE;

    for (int32_t i = 0; i < p->space; i++) {
        bool upper = which >> i & 1;
        ir_value at = upper ? onnx_plus(f, low[i], 1) : low[i];
        ir_value held = clamp(f, at, (double)p->len[i] - 1);
        ir_value own = upper ? part[i] : formula_2(f, RLX_OP_sub, formula_number(f, 1), part[i]);
        own = formula_where(f, formula_2(f, RLX_OP_eq, held, at), own, formula_number(f, 0));
        held = formula_cast(f, held, RLX_DTYPE_i64);
        if (i) {
            ir_value len = formula_number_of(f, RLX_DTYPE_i64, (double)p->len[i]);
            index = formula_2(f, RLX_OP_mul, index, len);
        }
        index = i ? formula_2(f, RLX_OP_add, index, held) : held;
        weight = i ? formula_2(f, RLX_OP_mul, weight, own) : own;
    }
    index = formula_2(f, RLX_OP_add, index, p->first);
    return formula_2(f, RLX_OP_mul, formula_2(f, RLX_OP_gather, p->rows, index),
                     formula_reshape(f, weight, RLX_LIST(p->count, 1)));
}

/* [P, C]; together: how the corners' parts are combined. */
static ir_value read_places(struct formula *f, const struct places *p, rlx_op together)
{
    ir_value low[MAX_SPACE], part[MAX_SPACE], sum = RLX_NO_VALUE;

    for (int32_t i = 0; i < p->space; i++) {
        low[i] = formula_1(f, RLX_OP_floor, p->at[i]);
        part[i] = formula_2(f, RLX_OP_sub, p->at[i], low[i]);
    }
    for (int k = 0; k < 1 << p->space; k++) {
        ir_value term = corner(f, p, low, part, k);
        sum = k ? formula_2(f, together, sum, term) : term;
    }
    return sum;
}

/* x [N, C, ..] as `groups` pictures for each item, whose rows are C / groups long. */
static bool begin_places(struct onnx_call *c, int64_t groups, struct places *p)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);

    *p = (struct places){.space = t.rank - 2};
    if (p->space < 1 || p->space > MAX_SPACE) {
        onnx_unsupported(c, "a picture of rank %d", t.rank);
        return false;
    }
    for (int32_t i = 0; i < p->space; i++) {
        p->len[i] = t.dim[2 + i];
        if (!dim_is_static(p->len[i]) || p->len[i] < 1 || p->len[i] > INT32_MAX)
            onnx_unsupported(c, "a picture of symbolic or no size, or too large");
    }
    if (!dim_is_static(t.dim[1]) || groups < 1 || t.dim[1] % groups)
        formula_fail(f, RLX_ERROR_SHAPE, "channels that are not a multiple of %lld groups",
                     (long long)groups);
    if (onnx_failed(c))
        return false;
    ir_dim all = onnx_product(c, &t, 2, t.rank), each = t.dim[1] / groups;
    ir_value x = formula_reshape(f, formula_cast(f, onnx_in(c, 0), f->dtype),
                                 RLX_LIST(t.dim[0], groups, each, all));
    x = formula_transpose(f, x, RLX_LIST(0, 1, 3, 2));
    p->rows = formula_reshape(f, x, RLX_LIST(RLX_DIM_INFER, each));
    return !onnx_failed(c);
}

/* ---- DeformConv ---- */

enum deform_input { PICTURE, WEIGHTS, OFFSETS, BIAS, MASK };

struct deform {
    struct onnx_window w;
    int64_t groups, offset_groups, taps; /* taps: elements of the kernel */
    ir_dim batch, pictures, points;      /* pictures: batch * offset_groups; points: of output */
    struct ir_type offsets;              /* [N, offset_groups * taps * n, o1, ..] */
};

static bool check_deform(struct onnx_call *c, struct deform *d)
{
    struct formula *f = &c->f;
    const struct ir_type x = *onnx_type(c, PICTURE), w = *onnx_type(c, WEIGHTS);
    rlx_list kernel = {.count = w.rank - 2};

    d->offsets = *onnx_type(c, OFFSETS);
    d->groups = onnx_int(c, "group", 1);
    d->offset_groups = onnx_int(c, "offset_group", 1);
    if (x.rank < 3 || w.rank != x.rank || d->offsets.rank != x.rank || !type_is_static(&w)) {
        formula_fail(f, RLX_ERROR_SHAPE, "a picture of rank %d, weights of %d, offsets of %d",
                     x.rank, w.rank, d->offsets.rank);
        return false;
    }
    d->taps = 1;
    for (int32_t i = 0; i < kernel.count; i++) {
        kernel.at[i] = w.dim[2 + i];
        if (kernel.at[i] < 1 || __builtin_mul_overflow(d->taps, kernel.at[i], &d->taps) ||
            d->taps > MAX_SAMPLES)
            onnx_unsupported(c, "a kernel of no elements, or more than %d", MAX_SAMPLES);
    }
    if (onnx_failed(c) || !onnx_window_of(c, &x, &kernel, &d->w))
        return false;
    int64_t per = d->taps * kernel.count;
    if (d->groups < 1 || d->groups > INT32_MAX || w.dim[0] % d->groups || w.dim[1] > INT32_MAX ||
        x.dim[1] != w.dim[1] * d->groups || d->offset_groups < 1 || d->offset_groups > INT32_MAX ||
        d->offsets.dim[1] != d->offset_groups * per) {
        formula_fail(f, RLX_ERROR_SHAPE, "channels of picture, weights and offsets do not fit");
        return false;
    }
    for (int32_t i = 0; i < kernel.count; i++) {
        int64_t len = x.dim[2 + i], reach = d->w.dilation.at[i] * (kernel.at[i] - 1) + 1;
        ir_dim out = d->offsets.dim[2 + i];
        if (!dim_is_static(len) || !dim_is_static(out) || len > INT32_MAX)
            continue; /* such a picture is refused where it is read */
        int64_t room = len + d->w.before.at[i] + d->w.after.at[i] - reach;
        if (room < 0 || out != room / d->w.stride.at[i] + 1)
            formula_fail(f, RLX_ERROR_SHAPE, "offsets for %lld places along axis %d",
                         (long long)out, 2 + i);
    }
    return !onnx_failed(c);
}

/* Where the taps lie along axis i before they are moved, [taps, 1, .., o, .., 1]. */
static ir_value unmoved(struct onnx_call *c, const struct deform *d, int32_t i)
{
    struct formula *f = &c->f;
    int64_t inner = 1, n = d->w.n;
    struct ir_type t = {.dtype = RLX_DTYPE_f32, .rank = (int32_t)n + 1, .dim = {d->taps}};
    float *tap = arena_array(onnx_arena(c), float, (size_t)d->taps);
    rlx_list line = {.count = (int32_t)n + 1};

    if (!tap) {
        c->f.status = diag_no_memory(f->diag, (size_t)d->taps * sizeof *tap);
        return RLX_NO_VALUE;
    }
    for (int32_t k = i + 1; k < n; k++)
        inner *= d->w.kernel.at[k];
    for (int64_t k = 0; k < d->taps; k++)
        tap[k] = (float)(k / inner % d->w.kernel.at[i] * d->w.dilation.at[i] - d->w.before.at[i]);
    for (int32_t k = 0; k <= n; k++) {
        line.at[k] = k == i + 1 ? d->offsets.dim[2 + i] : 1;
        if (k)
            t.dim[k] = 1;
    }
    ir_value out = onnx_iota(c, d->offsets.dim[2 + i], RLX_DTYPE_i64);
    out = onnx_times(f, formula_cast(f, out, f->dtype), (double)d->w.stride.at[i]);
    return formula_2(f, RLX_OP_add, formula_cast(f, onnx_table_of(c, &t, tap), f->dtype),
                     formula_reshape(f, out, line));
}

static void place_taps(struct onnx_call *c, const struct deform *d, struct places *p)
{
    struct formula *f = &c->f;
    int32_t n = d->w.n;
    rlx_list apart = {.count = n + 3, .at = {d->pictures, d->taps, n}}, one = {.count = n + 2};
    int64_t all = 1;

    for (int32_t i = 0; i < n; i++) {
        apart.at[3 + i] = d->offsets.dim[2 + i];
        all *= p->len[i];
    }
    for (int32_t i = 0; i < n + 2; i++)
        one.at[i] = apart.at[i < 2 ? i : i + 1];
    ir_value moves = formula_reshape(f, formula_cast(f, onnx_in(c, OFFSETS), f->dtype), apart);
    struct ir_type count = {.rank = 3, .dim = {d->pictures, d->taps, d->points}};
    p->count = onnx_product(c, &count, 0, 3);
    for (int32_t i = 0; i < n; i++) {
        ir_value move = formula_reshape(f, formula_narrow(f, moves, 2, i, 1), one);
        p->at[i] = formula_reshape(f, formula_2(f, RLX_OP_add, move, unmoved(c, d, i)),
                                   RLX_LIST(p->count));
    }
    ir_value picture = onnx_iota(c, d->pictures, RLX_DTYPE_i64);
    picture = formula_2(f, RLX_OP_mul, picture, formula_number_of(f, RLX_DTYPE_i64, (double)all));
    picture = formula_expand(f, formula_reshape(f, picture, RLX_LIST(d->pictures, 1, 1)),
                             RLX_LIST(d->pictures, d->taps, d->points));
    p->first = formula_reshape(f, picture, RLX_LIST(p->count));
}

/* The picture's elements in the order that the convolution reads them, times the weights: [N, oC,
 * points]. */
static ir_value deformed_product(struct onnx_call *c, const struct deform *d, ir_value rows)
{
    struct formula *f = &c->f;
    const struct ir_type w = *onnx_type(c, WEIGHTS);
    int64_t channels = w.dim[1] * d->groups, depth = w.dim[1] * d->taps;

    rows = formula_reshape(f, rows,
                           RLX_LIST(d->pictures, d->taps, d->points, channels / d->offset_groups));
    rows = formula_transpose(f, rows, RLX_LIST(0, 3, 1, 2));
    rows = formula_reshape(f, rows, RLX_LIST(d->batch, d->groups, depth, d->points));
    ir_value weights = formula_reshape(f, formula_cast(f, onnx_in(c, WEIGHTS), f->dtype),
                                       RLX_LIST(1, d->groups, w.dim[0] / d->groups, depth));
    ir_value y = formula_matmul(f, weights, rows, false, false);
    return formula_reshape(f, y, RLX_LIST(d->batch, w.dim[0], d->points));
}

void onnx_deform_conv(struct onnx_call *c)
{
    struct formula *f = &c->f;
    rlx_dtype type = onnx_type(c, PICTURE)->dtype;
    struct deform d;
    struct places p;

    f->dtype = formula_dtype(type);
    if (!check_deform(c, &d) || !begin_places(c, d.offset_groups, &p))
        return;
    struct ir_type lead = {.rank = 2, .dim = {onnx_type(c, PICTURE)->dim[0], d.offset_groups}};
    d.batch = lead.dim[0];
    d.pictures = onnx_product(c, &lead, 0, 2);
    d.points = onnx_product(c, &d.offsets, 2, d.offsets.rank);
    place_taps(c, &d, &p);
    ir_value rows = read_places(f, &p, RLX_OP_add);
    if (onnx_has(c, MASK)) {
        ir_value mask = formula_cast(f, onnx_in(c, MASK), f->dtype);
        rows = formula_2(f, RLX_OP_mul, rows, formula_reshape(f, mask, RLX_LIST(p.count, 1)));
    }
    ir_value y = deformed_product(c, &d, rows);
    if (onnx_has(c, BIAS))
        y = formula_2(f, RLX_OP_add, y,
                      onnx_per_channel(f, formula_cast(f, onnx_in(c, BIAS), f->dtype), 3));
    rlx_list shape = formula_shape(&d.offsets);
    shape.at[0] = d.batch;
    shape.at[1] = onnx_type(c, WEIGHTS)->dim[0];
    onnx_give(c, 0, formula_cast(f, formula_reshape(f, y, shape), type));
}

/* ---- RoiAlign ---- */

struct regions {
    ir_dim count;
    int64_t samples; /* along an axis of a bin */
    bool half_pixel; /* otherwise a region is at least one element large */
    bool largest;    /* the largest part of a corner, not the mean of what lies between them */
    double scale;
};

/* Coordinate k (0: the first of x, 1: of y, 2 and 3: the last ones) of each region, [R, 1]. */
static ir_value edge(struct onnx_call *c, const struct regions *r, int64_t k)
{
    struct formula *f = &c->f;
    ir_value v = formula_narrow(f, formula_cast(f, onnx_in(c, 1), f->dtype), 1, k, 1);

    v = onnx_times(f, v, r->scale);
    return r->half_pixel ? onnx_plus(f, v, -0.5) : v;
}

/* Where the samples of `bins` bins lie along an axis, [R, bins * samples]. */
static ir_value along(struct onnx_call *c, const struct regions *r, int64_t bins, int64_t k)
{
    struct formula *f = &c->f;
    struct ir_type t = {.dtype = RLX_DTYPE_f32, .rank = 1, .dim = {bins * r->samples}};
    float *at = arena_array(onnx_arena(c), float, (size_t)t.dim[0]);
    ir_value from = edge(c, r, k);
    ir_value size = formula_2(f, RLX_OP_sub, edge(c, r, k + 2), from);

    if (!at) {
        f->status = diag_no_memory(f->diag, (size_t)t.dim[0] * sizeof *at);
        return RLX_NO_VALUE;
    }
    for (int64_t i = 0; i < t.dim[0]; i++)
        at[i] = ((float)i + 0.5f) / (float)r->samples;
    if (!r->half_pixel)
        size = formula_2(f, RLX_OP_max, size, formula_number(f, 1));
    size = onnx_times(f, size, 1.0 / (double)bins);
    ir_value steps = formula_cast(f, onnx_table_of(c, &t, at), f->dtype);
    return formula_2(f, RLX_OP_add, from, formula_2(f, RLX_OP_mul, size, steps));
}

/* Is it within an element of the picture, whose axis is len long? As 0 or 1. */
static ir_value is_near(struct formula *f, ir_value at, int64_t len)
{
    ir_value above = formula_2(f, RLX_OP_ge, at, formula_number(f, -1));
    ir_value below = formula_2(f, RLX_OP_le, at, formula_number(f, (double)len));

    return formula_cast(f, formula_2(f, RLX_OP_bit_and, above, below), f->dtype);
}

static bool begin_regions(struct onnx_call *c, struct regions *r, int64_t *bins)
{
    const struct ir_type x = *onnx_type(c, 0), t = *onnx_type(c, 1), of = *onnx_type(c, 2);
    rlx_str way = onnx_text(c, "coordinate_transformation_mode",
                            c->opset < 16 ? "output_half_pixel" : "half_pixel");

    *r = (struct regions){.count = t.dim[0],
                          .samples = onnx_int(c, "sampling_ratio", 0),
                          .half_pixel = str_eq(way, STR("half_pixel")),
                          .scale = onnx_float(c, "spatial_scale", 1)};
    bins[0] = onnx_int(c, "output_height", 1);
    bins[1] = onnx_int(c, "output_width", 1);
    if (x.rank != 4 || t.rank != 2 || t.dim[1] != 4 || of.rank != 1)
        formula_fail(&c->f, RLX_ERROR_SHAPE,
                     "a picture of rank %d, regions of rank %d, their pictures of rank %d", x.rank,
                     t.rank, of.rank);
    else if (r->samples == 0)
        onnx_unsupported(c, "a number of samples that depends on the regions (sampling_ratio 0)");
    else if (r->samples < 0 || r->samples > MAX_SAMPLES || bins[0] < 1 || bins[1] < 1 ||
             bins[0] > MAX_SAMPLES || bins[1] > MAX_SAMPLES)
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "%lld samples in %lld x %lld bins",
                     (long long)r->samples, (long long)bins[0], (long long)bins[1]);
    return !onnx_failed(c);
}

/* The samples of all regions, [R, h, s, w, s, C]. */
static ir_value sample_regions(struct onnx_call *c, const struct regions *r, const int64_t *bins,
                               struct places *p)
{
    struct formula *f = &c->f;
    ir_dim high = bins[0] * r->samples, wide = bins[1] * r->samples;
    struct ir_type grid = {.rank = 3, .dim = {r->count, high, wide}};
    rlx_list all = RLX_LIST(r->count, high, wide);
    ir_value near = RLX_NO_VALUE;

    p->count = onnx_product(c, &grid, 0, 3);
    for (int i = 0; i < 2; i++) {
        ir_value at = along(c, r, bins[i], 1 - i);
        at = formula_reshape(f, at, i ? RLX_LIST(r->count, 1, wide) : RLX_LIST(r->count, high, 1));
        ir_value own = is_near(f, at, p->len[i]);
        near = i ? formula_2(f, RLX_OP_mul, near, own) : own;
        at = formula_expand(f, clamp(f, at, (double)p->len[i] - 1), all);
        p->at[i] = formula_reshape(f, at, RLX_LIST(p->count));
    }
    ir_value first = onnx_index_in(c, 2, onnx_type(c, 0)->dim[0]);
    first = formula_2(f, RLX_OP_mul, formula_cast(f, first, RLX_DTYPE_i64),
                      formula_number_of(f, RLX_DTYPE_i64, (double)(p->len[0] * p->len[1])));
    first = formula_expand(f, formula_reshape(f, first, RLX_LIST(r->count, 1, 1)), all);
    p->first = formula_reshape(f, first, RLX_LIST(p->count));
    ir_value v = formula_2(f, RLX_OP_mul, read_places(f, p, r->largest ? RLX_OP_max : RLX_OP_add),
                           formula_reshape(f, near, RLX_LIST(p->count, 1)));
    return formula_reshape(
        f, v,
        RLX_LIST(r->count, bins[0], r->samples, bins[1], r->samples, onnx_type(c, 0)->dim[1]));
}

void onnx_roi_align(struct onnx_call *c)
{
    struct formula *f = &c->f;
    rlx_dtype type = onnx_type(c, 0)->dtype;
    rlx_str mode = onnx_text(c, "mode", "avg");
    struct regions r;
    struct places p;
    int64_t bins[2];

    f->dtype = formula_dtype(type);
    if (!str_eq(mode, STR("max")) && !str_eq(mode, STR("avg")))
        formula_fail(f, RLX_ERROR_ATTRIBUTE, "mode \"%.*s\"", STR_ARG(mode));
    if (!begin_regions(c, &r, bins) || !begin_places(c, 1, &p))
        return;
    r.largest = str_eq(mode, STR("max"));
    ir_value y = sample_regions(c, &r, bins, &p);
    y = formula_reduce(f, r.largest ? RLX_OP_reduce_max : RLX_OP_reduce_mean, y, RLX_LIST(2, 4),
                       false);
    onnx_give(c, 0, formula_cast(f, formula_transpose(f, y, RLX_LIST(0, 3, 1, 2)), type));
}
