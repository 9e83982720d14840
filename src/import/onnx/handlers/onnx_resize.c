/* onnx_resize.c: Resize and Upsample of ONNX.
 *
 * Every axis is resized on its own: each result is a weighted sum of a few elements along the axis,
 * and which ones depends on sizes alone. So an axis is a gather (nearest), or a product with a
 * matrix of weights [in, out] that is worked out at load. */
#include <math.h>
#include <string.h>

#include "base/str.h"
#include "import/onnx/read/onnx_build.h"

#define MAX_AXIS (1 << 24)            /* elements, before and after */
#define MAX_MATRIX ((int64_t)1 << 26) /* elements of a matrix of weights */

enum { STRETCH, NOT_LARGER, NOT_SMALLER };

struct resize {
    rlx_str mode, transform, nearest;
    double a;     /* of cubic */
    bool exclude; /* weights of what lies outside are dropped */
    bool antialias;
    double outside; /* what tf_crop_and_resize gives there */
    double scale[RLX_MAX_RANK], start[RLX_MAX_RANK], end[RLX_MAX_RANK];
    int64_t size[RLX_MAX_RANK]; /* -1: this axis stays */
};

/* Where on the old axis of n element i of m comes from. The new length counts as n times the scale,
 * though it is cut to an integer. */
static double source(const struct resize *r, int32_t axis, int64_t n, int64_t m, int64_t i)
{
    double s = r->scale[axis], at = (double)i, len = (double)n, whole = s * len;

    if (str_eq(r->transform, STR("align_corners")))
        return whole == 1 ? 0 : at * (len - 1) / (whole - 1);
    if (str_eq(r->transform, STR("asymmetric")))
        return at / s;
    if (str_eq(r->transform, STR("tf_half_pixel_for_nn")))
        return (at + 0.5) / s;
    if (str_eq(r->transform, STR("tf_crop_and_resize")))
        return whole > 1 ? r->start[axis] * (len - 1) +
                               at * (r->end[axis] - r->start[axis]) * (len - 1) / (whole - 1)
                         : 0.5 * (r->start[axis] + r->end[axis]) * (len - 1);
    if (str_eq(r->transform, STR("pytorch_half_pixel")) && whole <= 1)
        return 0;
    if (str_eq(r->transform, STR("half_pixel_symmetric")))
        return len / 2 * (1 - (double)m / (s * len)) + (at + 0.5) / s - 0.5;
    return (at + 0.5) / s - 0.5;
}

/* Scales and regions are not trusted: what they lead to need not be an integer. */
static int64_t to_whole(double x)
{
    const double most = (double)(INT64_C(1) << 53);

    return x >= most ? (int64_t)most : x <= -most ? -(int64_t)most : x == x ? (int64_t)x : 0;
}

static int64_t clamp(int64_t v, int64_t n)
{
    return v < 0 ? 0 : v > n - 1 ? n - 1 : v;
}

static double round_nearest(const struct resize *r, double x)
{
    if (str_eq(r->nearest, STR("floor")))
        return floor(x);
    if (str_eq(r->nearest, STR("ceil")))
        return ceil(x);
    return str_eq(r->nearest, STR("round_prefer_ceil")) ? floor(x + 0.5) : ceil(x - 0.5);
}

/* ---- weights ---- */

static double triangle(double t)
{
    return fabs(t) < 1 ? 1 - fabs(t) : 0;
}

static double cubic(double t, double a)
{
    t = fabs(t);
    if (t <= 1)
        return ((a + 2) * t - (a + 3)) * t * t + 1;
    return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

/* One column of the matrix w [n, m]: what element i is made of. */
static void weigh(const struct resize *r, int32_t axis, int64_t n, int64_t m, int64_t i, double *w)
{
    double x = source(r, axis, n, m, i), sum = 0;
    bool linear = str_eq(r->mode, STR("linear"));
    double shrink = r->antialias && r->scale[axis] < 1 ? r->scale[axis] : 1;
    double reach = (linear ? 1 : 2) / shrink;
    int64_t from = to_whole(ceil(x - reach)), to = to_whole(floor(x + reach));

    for (int64_t k = from; k <= to; k++) {
        double t = ((double)k - x) * shrink, v = linear ? triangle(t) : cubic(t, r->a);
        if (r->exclude && (k < 0 || k >= n))
            continue;
        w[clamp(k, n) * m + i] += v;
        sum += v;
    }
    for (int64_t k = 0; sum != 0 && (r->exclude || shrink < 1) && k < n; k++)
        w[k * m + i] /= sum;
}

static ir_value constant(struct onnx_call *c, rlx_dtype dtype, int32_t rank, ir_dim d0, ir_dim d1,
                         const void *data)
{
    struct ir_type t = {.dtype = dtype, .rank = rank, .dim = {d0, d1}};

    return onnx_table_of(c, &t, data);
}

static ir_value by_matrix(struct onnx_call *c, const struct resize *r, ir_value x, int32_t axis,
                          int64_t n, int64_t m)
{
    struct formula *f = &c->f;
    int32_t rank = formula_type(f, x)->rank;
    rlx_list perm = onnx_all_axes(rank);
    double *w = n * m <= MAX_MATRIX ? arena_array(onnx_arena(c), double, (size_t)(n * m)) : NULL;

    if (!w) {
        onnx_unsupported(c, "axes of %lld and %lld elements", (long long)n, (long long)m);
        return x;
    }
    for (int64_t i = 0; i < m; i++)
        weigh(r, axis, n, m, i, w);
    perm.at[axis] = rank - 1;
    perm.at[rank - 1] = axis;
    ir_value matrix = formula_cast(f, constant(c, RLX_DTYPE_f64, 2, n, m, w), f->dtype);
    x = formula_transpose(f, x, perm);
    if (rank == 1)
        x = formula_reshape(f, x, RLX_LIST(1, n));
    x = formula_matmul(f, x, matrix, false, false);
    if (rank == 1)
        x = formula_reshape(f, x, RLX_LIST(m));
    return formula_transpose(f, x, perm);
}

static ir_value by_nearest(struct onnx_call *c, const struct resize *r, ir_value x, int32_t axis,
                           int64_t n, int64_t m)
{
    union ir_attr attr;
    int64_t *at = arena_array(onnx_arena(c), int64_t, (size_t)m);

    if (!at) {
        c->f.status = diag_no_memory(c->f.diag, (size_t)m * sizeof *at);
        return x;
    }
    for (int64_t i = 0; i < m; i++)
        at[i] = clamp(to_whole(round_nearest(r, source(r, axis, n, m, i))), n);
    attr_defaults(RLX_OP_gather, &attr);
    attr.gather.axis = axis;
    ir_value in[] = {x, constant(c, RLX_DTYPE_i64, 1, m, 0, at)};
    return formula_node(&c->f, RLX_OP_gather, in, 2, &attr);
}

/* Where a crop reaches outside the picture along an axis, a separate value is used. */
static ir_value fill_outside(struct onnx_call *c, const struct resize *r, ir_value y, int32_t axis,
                             int64_t n, int64_t m)
{
    struct formula *f = &c->f;
    uint8_t *inside = arena_array(onnx_arena(c), uint8_t, (size_t)m);

    if (!inside || onnx_failed(c))
        return y;
    rlx_list shape = {.count = formula_type(f, y)->rank};
    for (int32_t i = 0; i < shape.count; i++)
        shape.at[i] = i == axis ? m : 1;
    for (int64_t i = 0; i < m; i++) {
        double x = source(r, axis, n, m, i);
        inside[i] = x >= 0 && x <= (double)n - 1;
    }
    ir_value mask = formula_reshape(f, constant(c, RLX_DTYPE_bool, 1, m, 0, inside), shape);
    return formula_where(f, mask, y, formula_number(f, r->outside));
}

/* Is every element of the new axis the one at an integer position of it? Then each is
 * repeated, `times` times, whatever the length. */
static bool repeats(const struct resize *r, int32_t axis, int64_t *times)
{
    double s = r->scale[axis];
    int64_t n = 16;

    *times = to_whole(s);
    if (s != floor(s) || s < 1 || s > 1024 || !str_eq(r->mode, STR("nearest")))
        return false;
    for (int64_t i = 0; i < n * *times; i++)
        if (clamp(to_whole(round_nearest(r, source(r, axis, n, n * *times, i))), n) != i / *times)
            return false;
    return true;
}

static ir_value repeat(struct onnx_call *c, ir_value x, int32_t axis, int64_t times)
{
    struct formula *f = &c->f;
    const struct ir_type t = *formula_type(f, x);
    rlx_list apart = {.count = t.rank + 1}, whole = formula_shape(&t);

    if (t.rank == RLX_MAX_RANK) {
        onnx_unsupported(c, "a symbolic axis of a tensor of rank %d", t.rank);
        return x;
    }
    for (int32_t i = 0; i <= t.rank; i++)
        apart.at[i] = i <= axis ? t.dim[i] : i == axis + 1 ? 1 : t.dim[i - 1];
    x = formula_reshape(f, x, apart);
    apart.at[axis + 1] = times;
    whole.at[axis] = dim_mul(onnx_dims(c), t.dim[axis], times);
    return formula_reshape(f, formula_expand(f, x, apart), whole);
}

static void resize(struct onnx_call *c, const struct resize *r)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    bool nearest = str_eq(r->mode, STR("nearest"));
    bool crops = str_eq(r->transform, STR("tf_crop_and_resize"));
    rlx_dtype in = nearest || dtype_is(t.dtype, CLASS_F) ? t.dtype : RLX_DTYPE_f32;

    f->dtype = in;
    if (!nearest && !str_eq(r->mode, STR("linear")) && !str_eq(r->mode, STR("cubic")))
        onnx_unsupported(c, "mode \"%.*s\"", STR_ARG(r->mode));
    ir_value x = formula_cast(f, onnx_in(c, 0), in);
    for (int32_t i = 0; i < t.rank && !onnx_failed(c); i++) {
        ir_dim n = t.dim[i];
        int64_t m = r->size[i], times;
        if (!dim_is_static(n) && m >= 0 && repeats(r, i, &times)) {
            x = repeat(c, x, i, times);
            continue;
        }
        bool empty = n == 0 && m == 0;
        if (m < 0 || empty || (!crops && dim_is_static(n) && m == n && r->scale[i] == 1))
            continue;
        if (!dim_is_static(n) || n < 1 || n > MAX_AXIS || m > MAX_AXIS) {
            onnx_unsupported(c, "axis %d is symbolic, empty or too long", i);
            return;
        }
        x = nearest ? by_nearest(c, r, x, i, n, m) : by_matrix(c, r, x, i, n, m);
    }
    for (int32_t i = 0; crops && i < t.rank; i++)
        if (r->size[i] >= 0 && dim_is_static(t.dim[i]) && t.dim[i] > 0)
            x = fill_outside(c, r, x, i, t.dim[i], r->size[i]);
    if (in != t.dtype) /* integers round */
        x = formula_1(f, RLX_OP_round, x);
    onnx_give(c, 0, formula_cast(f, x, t.dtype));
}

/* ---- what the node says ---- */

static void take_scales(struct onnx_call *c, struct resize *r, const struct ir_type *t,
                        const rlx_list *axes, const double *scale, size_t count)
{
    if (count != (size_t)axes->count) {
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "%zu scales for %d axes", count, axes->count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        int64_t axis = axes->at[i];
        if (!(scale[i] > 0 && scale[i] < 1e9))
            formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "a scale must be above 0");
        r->scale[axis] = scale[i];
        if (scale[i] != 1 || dim_is_static(t->dim[axis]))
            r->size[axis] =
                dim_is_static(t->dim[axis]) ? to_whole(floor((double)t->dim[axis] * scale[i])) : 0;
    }
}

static void take_sizes(struct onnx_call *c, struct resize *r, const struct ir_type *t,
                       const rlx_list *axes, const rlx_list *size)
{
    rlx_str policy = onnx_text(c, "keep_aspect_ratio_policy", "stretch");
    int keep = str_eq(policy, STR("not_larger"))    ? NOT_LARGER
               : str_eq(policy, STR("not_smaller")) ? NOT_SMALLER
                                                    : STRETCH;
    double common = keep == NOT_LARGER ? INFINITY : 0;

    if (size->count != axes->count) {
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "%d sizes for %d axes", size->count, axes->count);
        return;
    }
    for (int32_t i = 0; i < axes->count; i++) {
        ir_dim n = t->dim[axes->at[i]];
        if (!dim_is_static(n) || n < 1 || size->at[i] < 0) {
            onnx_unsupported(c, "a symbolic or empty axis");
            return;
        }
        double s = (double)size->at[i] / (double)n;
        r->scale[axes->at[i]] = s;
        r->size[axes->at[i]] = size->at[i];
        common = keep == NOT_LARGER ? fmin(common, s) : fmax(common, s);
    }
    for (int32_t i = 0; keep != STRETCH && i < axes->count; i++) {
        r->scale[axes->at[i]] = common;
        r->size[axes->at[i]] = to_whole(floor(common * (double)t->dim[axes->at[i]] + 0.5));
    }
}

static struct resize begin(struct onnx_call *c)
{
    struct resize r = {.mode = onnx_text(c, "mode", "nearest"),
                       .transform = onnx_text(c, "coordinate_transformation_mode", "half_pixel"),
                       .nearest = onnx_text(c, "nearest_mode", "round_prefer_floor"),
                       .a = onnx_float(c, "cubic_coeff_a", -0.75),
                       .exclude = onnx_int(c, "exclude_outside", 0) != 0,
                       .antialias = onnx_int(c, "antialias", 0) != 0,
                       .outside = onnx_float(c, "extrapolation_value", 0)};

    for (int32_t i = 0; i < RLX_MAX_RANK; i++) {
        r.scale[i] = 1;
        r.size[i] = -1;
        r.end[i] = 1;
    }
    return r;
}

/* Opset 10 had neither a region nor sizes, and its coordinates were asymmetric. */
void onnx_resize(struct onnx_call *c)
{
    const struct ir_type t = *onnx_type(c, 0);
    struct resize r = begin(c);
    rlx_list axes = onnx_all_axes(t.rank), size;
    size_t scales = c->opset < 11 ? 1 : 2, count, corners;

    if (c->opset < 11) {
        r.transform = STR("asymmetric");
        r.nearest = STR("floor");
    }
    if (onnx_ints(c, "axes", &axes))
        axes = onnx_axes(c, axes, t.rank);
    const double *roi = c->opset < 11 ? NULL : onnx_reals(c, 1, &corners);
    for (int32_t i = 0; roi && corners == 2 * (size_t)axes.count && i < axes.count; i++) {
        r.start[axes.at[i]] = roi[i];
        r.end[axes.at[i]] = roi[i + axes.count];
    }
    if (!roi && str_eq(r.transform, STR("tf_crop_and_resize")))
        onnx_unsupported(c, "a region must be known at load");
    const double *scale = onnx_reals(c, scales, &count);
    if (scale && count)
        take_scales(c, &r, &t, &axes, scale, count);
    else if (onnx_has(c, 3) && onnx_ints_in(c, 3, &size))
        take_sizes(c, &r, &t, &axes, &size);
    else
        onnx_unsupported(c, "scales or sizes must be known at load");
    if (!onnx_failed(c))
        resize(c, &r);
}

void onnx_upsample(struct onnx_call *c)
{
    const struct ir_type t = *onnx_type(c, 0);
    const struct onnx_attr *a = onnx_attr_as(c, "scales", ONNX_ATTR_FLOATS);
    struct resize r = begin(c);
    rlx_list axes = onnx_all_axes(t.rank);
    double own[RLX_MAX_RANK];
    size_t count = 0;
    const double *scale = own;

    if (str_eq(r.mode, STR("bilinear")))
        r.mode = STR("linear");
    r.transform = STR("asymmetric");
    r.nearest = STR("floor");
    if (c->opset >= 9)
        scale = onnx_reals(c, 1, &count);
    else
        for (; a && count < a->floats.count && count < RLX_MAX_RANK; count++)
            own[count] = (double)a->floats.at[count];
    if (!scale)
        onnx_unsupported(c, "scales must be known at load");
    else
        take_scales(c, &r, &t, &axes, scale, count);
    if (!onnx_failed(c))
        resize(c, &r);
}
