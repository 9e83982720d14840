/* spectral.c: the helpers of rlx/spectral.h: compositions over the public builders (ops-special.md
 * 5.2). Each checks what the ops it is made of could not name, and leaves the rest to them. */
#include "rlx/spectral.h"

#include <inttypes.h>

#include "graph/builder.h"

static const rlx_spectrum none = {RLX_NO_VALUE, RLX_NO_VALUE};

/* A value's type, under the name of the helper that asks. */
struct subject {
    rlx_graph *g;
    const char *helper;
    rlx_value v;
    rlx_dtype dtype;
    rlx_list shape;
    int64_t axis; /* the last */
};

#define FAIL(s, status, ...) build_fail_in((s)->g, RLX_ERROR_##status, (s)->helper, __VA_ARGS__)

/* False: it has none, and the graph knows why. Rank 0 has no axis to transform. */
static bool look_at(struct subject *s, rlx_graph *g, const char *helper, rlx_value v)
{
    rlx_error err;

    *s = (struct subject){.g = g, .helper = helper, .v = v};
    if (!g || (v == RLX_NO_VALUE && rlx_graph_check(g, NULL) != RLX_OK))
        return false;
    if (rlx_value_type(g, v, &s->dtype, &s->shape, &err) != RLX_OK)
        return FAIL(s, GRAPH, "%s", err.message);
    s->axis = s->shape.count - 1;
    if (s->shape.count == 0)
        return FAIL(s, SHAPE, "a tensor of rank 0 has no axis to transform");
    return true;
}

static int64_t extent(const struct subject *s)
{
    return s->shape.at[s->axis];
}

static bool need_size(const struct subject *s)
{
    return extent(s) >= 0 || FAIL(s, SHAPE, "the size of the last axis must be known");
}

static bool need_real(const struct subject *s)
{
    if (s->dtype == RLX_DTYPE_f32 || s->dtype == RLX_DTYPE_f64)
        return true;
    return FAIL(s, DTYPE, "the signal must be f32 or f64, not %s", rlx_dtype_name(s->dtype));
}

static bool need_points(const struct subject *s, int64_t n)
{
    if (n < 1)
        return FAIL(s, ATTRIBUTE, "n must be at least 1, not %" PRId64, n);
    /* twice as many real numbers, and a power of two above them, are sizes too */
    return n <= INT64_MAX / 8 || FAIL(s, LIMIT, "%" PRId64 " points are too many", n);
}

/* Zeros after the last axis; n may be a dim. */
static rlx_value zeros_after(const struct subject *s, rlx_value x, rlx_dim n)
{
    rlx_list before = {.count = s->shape.count}, after = before;

    if (n == 0)
        return x;
    after.at[s->axis] = n;
    return rlx_pad(s->g, x, before, after, RLX_PAD_MODE_constant, 0);
}

/* The first n of the last axis. */
static rlx_value first(const struct subject *s, rlx_value x, rlx_dim n)
{
    return rlx_narrow(s->g, x, s->axis, 0, n);
}

int64_t rlx_next_pow2(int64_t n)
{
    int64_t p = 1;

    while (p < n && p > 0)
        p = p > INT64_MAX / 2 ? 0 : 2 * p;
    return p;
}

/* ---- axes ----------------------------------------------------------------------------------- */

static rlx_value transform_axis(const struct subject *s, rlx_value x, int64_t axis, bool inverse)
{
    rlx_list perm = {.count = s->shape.count};

    if (axis == s->axis)
        return rlx_fft(s->g, x, inverse, RLX_FFT_NORM_backward);
    for (int32_t i = 0; i < perm.count; i++)
        perm.at[i] = i == axis ? s->axis : i == s->axis ? axis : i;
    x = rlx_transpose(s->g, x, perm); /* a swap undoes itself */
    return rlx_transpose(s->g, rlx_fft(s->g, x, inverse, RLX_FFT_NORM_backward), perm);
}

static bool need_axis(const struct subject *s, int64_t *axis)
{
    int32_t rank = s->shape.count;

    if (*axis < -rank || *axis >= rank)
        return FAIL(s, ATTRIBUTE, "axis %" PRId64 " is outside of rank %d", *axis, rank);
    *axis += *axis < 0 ? rank : 0;
    return true;
}

rlx_value rlx_fft_axis(rlx_graph *g, rlx_value x, int64_t axis, bool inverse)
{
    struct subject s;

    if (!look_at(&s, g, "fft_axis", x) || !need_axis(&s, &axis))
        return RLX_NO_VALUE;
    return transform_axis(&s, x, axis, inverse);
}

static rlx_value transform_axes(rlx_graph *g, const char *helper, rlx_value x, rlx_list axes,
                                bool inverse)
{
    bool wanted[RLX_MAX_RANK] = {false};
    struct subject s;
    int32_t count = 0;

    if (!look_at(&s, g, helper, x))
        return RLX_NO_VALUE;
    for (int32_t i = 0; i < axes.count && i < RLX_MAX_RANK; i++) {
        if (!need_axis(&s, &axes.at[i]))
            return RLX_NO_VALUE;
        count += !wanted[axes.at[i]];
        wanted[axes.at[i]] = true;
    }
    if (count > 1 && s.dtype != RLX_DTYPE_c64) {
        FAIL(&s, DTYPE, "%d axes need c64, not %s", count, rlx_dtype_name(s.dtype));
        return RLX_NO_VALUE;
    }
    for (int32_t i = 0; i < s.shape.count; i++)
        if (wanted[i])
            x = transform_axis(&s, x, i, inverse);
    return x;
}

rlx_value rlx_fftn(rlx_graph *g, rlx_value x, rlx_list axes)
{
    return transform_axes(g, "fftn", x, axes, false);
}

rlx_value rlx_ifftn(rlx_graph *g, rlx_value x, rlx_list axes)
{
    return transform_axes(g, "ifftn", x, axes, true);
}

/* ---- real signals --------------------------------------------------------------------------- */

/* `bins` of a transform of p points: x, of at most as many, is followed by zeros for the rest of
 * them and for their imaginary parts. */
static rlx_spectrum real_transform(const struct subject *s, rlx_value x, rlx_dim have, rlx_dim p,
                                   rlx_dim bins, rlx_fft_norm norm)
{
    rlx_dim zeros = rlx_dim_sub(s->g, rlx_dim_mul(s->g, 2, p), have);
    rlx_value y = rlx_fft(s->g, zeros_after(s, x, zeros), false, norm);

    return (rlx_spectrum){first(s, y, bins), rlx_narrow(s->g, y, s->axis, p, bins)};
}

/* A signal of a known size, p = next_pow2 of it. */
static bool look_at_signal(struct subject *s, rlx_graph *g, const char *helper, rlx_value x,
                           int64_t *p)
{
    if (!look_at(s, g, helper, x) || !need_real(s) || !need_size(s) || !need_points(s, extent(s)))
        return false;
    *p = rlx_next_pow2(extent(s));
    return true;
}

rlx_spectrum rlx_fft_real(rlx_graph *g, rlx_value x, rlx_fft_norm norm)
{
    struct subject s;
    int64_t p;

    if (!look_at_signal(&s, g, "fft_real", x, &p))
        return none;
    return real_transform(&s, x, extent(&s), p, p, norm);
}

rlx_spectrum rlx_rfft_pow2(rlx_graph *g, rlx_value x, rlx_fft_norm norm)
{
    struct subject s;
    int64_t p;

    if (!look_at_signal(&s, g, "rfft_pow2", x, &p))
        return none;
    return real_transform(&s, x, extent(&s), p, p / 2 + 1, norm);
}

static rlx_dim half_of(rlx_graph *g, rlx_dim n)
{
    return rlx_dim_add(g, rlx_dim_div(g, n, 2), 1);
}

static rlx_spectrum exact_rfft(const struct subject *s, int64_t n, rlx_fft_norm norm)
{
    rlx_dim have = extent(s), points = n == RLX_ABSENT ? have : n;
    rlx_value x = s->v;

    if (!need_real(s) || (points >= 0 && !need_points(s, points)))
        return none;
    if (points != have && !need_size(s))
        return none;
    if (have >= 0 && have > points) {
        x = first(s, x, points);
        have = points;
    }
    return real_transform(s, x, have, points, half_of(s->g, points), norm);
}

rlx_spectrum rlx_rfft(rlx_graph *g, rlx_value x, int64_t n, rlx_fft_norm norm)
{
    struct subject s;

    return look_at(&s, g, "rfft", x) ? exact_rfft(&s, n, norm) : none;
}

/* ---- back again ----------------------------------------------------------------------------- */

static bool look_at_spectrum(struct subject *s, rlx_graph *g, const char *helper, rlx_spectrum x)
{
    struct subject im;

    if (!look_at(s, g, helper, x.re) || !look_at(&im, g, helper, x.im) || !need_real(s))
        return false;
    if (im.dtype != s->dtype)
        return FAIL(s, DTYPE, "re is %s and im is %s", rlx_dtype_name(s->dtype),
                    rlx_dtype_name(im.dtype));
    if (im.shape.count != s->shape.count)
        return FAIL(s, SHAPE, "re has rank %d and im has rank %d", s->shape.count, im.shape.count);
    for (int32_t i = 0; i < im.shape.count; i++)
        if (im.shape.at[i] != s->shape.at[i])
            return FAIL(s, SHAPE, "axis %d of re has size %" PRId64 " and that of im %" PRId64, i,
                        s->shape.at[i], im.shape.at[i]);
    return true;
}

/* n points from parts of them, all real parts before the imaginary ones. */
static rlx_value back(const struct subject *s, const rlx_value *part, size_t count, rlx_dim n,
                      rlx_fft_norm norm)
{
    for (size_t i = 0; i < count; i++)
        if (part[i] == RLX_NO_VALUE)
            return RLX_NO_VALUE;
    return first(s, rlx_fft(s->g, rlx_concat(s->g, part, count, s->axis), true, norm), n);
}

rlx_value rlx_ifft_spectrum(rlx_graph *g, rlx_spectrum x, rlx_fft_norm norm)
{
    const rlx_value part[] = {x.re, x.im};
    struct subject s;

    if (!look_at_spectrum(&s, g, "ifft_spectrum", x))
        return RLX_NO_VALUE;
    return back(&s, part, 2, extent(&s), norm);
}

/* n points from the first n/2 + 1: x[n - k] is the conjugate of x[k], for k = 1 .. (n-1)/2. */
static rlx_value mirrored(const struct subject *s, rlx_spectrum x, int64_t n, rlx_fft_norm norm)
{
    rlx_list last = {.count = 1, .at = {s->axis}};
    int64_t mirror = (n - 1) / 2;
    rlx_value re, im;

    if (mirror == 0)
        return back(s, (const rlx_value[]){x.re, x.im}, 2, n, norm);
    re = rlx_reverse(s->g, rlx_narrow(s->g, x.re, s->axis, 1, mirror), last);
    im = rlx_neg(s->g, rlx_reverse(s->g, rlx_narrow(s->g, x.im, s->axis, 1, mirror), last));
    return back(s, (const rlx_value[]){x.re, re, x.im, im}, 4, n, norm);
}

static rlx_value inverse_real(rlx_graph *g, const char *helper, rlx_spectrum x, int64_t n,
                              bool power, rlx_fft_norm norm)
{
    struct subject s;

    if (!look_at_spectrum(&s, g, helper, x) || !need_points(&s, n) || !need_size(&s))
        return RLX_NO_VALUE;
    int64_t points = power ? rlx_next_pow2(n) : n;
    if (extent(&s) != points / 2 + 1) {
        FAIL(&s, SHAPE, "%" PRId64 " points need %" PRId64 " bins, not %" PRId64, points,
             points / 2 + 1, extent(&s));
        return RLX_NO_VALUE;
    }
    rlx_value y = mirrored(&s, x, points, norm);
    return points == n ? y : first(&s, y, n);
}

rlx_value rlx_irfft_pow2(rlx_graph *g, rlx_spectrum s, int64_t n, rlx_fft_norm norm)
{
    return inverse_real(g, "irfft_pow2", s, n, true, norm);
}

rlx_value rlx_irfft(rlx_graph *g, rlx_spectrum s, int64_t n, rlx_fft_norm norm)
{
    return inverse_real(g, "irfft", s, n, false, norm);
}

/* ---- frames --------------------------------------------------------------------------------- */

/* [..., t] -> [..., frames, frame_len]. The signal is cut into pieces of a hop each; a frame is
 * some of them in a row, so the frames' first pieces lie together, and so do their second ones.
 *
 *     pieces  0 1 2 3 4        frames of 2.5 hops   012 123 234   first halves of 2, 3, 4 are cut
 */
static rlx_value cut_frames(const struct subject *s, int64_t frame_len, int64_t hop, int64_t frames)
{
    int64_t each = frame_len / hop + (frame_len % hop != 0), pieces = frames + each - 1;
    int64_t length = pieces * hop, t = extent(s);
    rlx_value x = length <= t ? first(s, s->v, length) : zeros_after(s, s->v, length - t);
    rlx_value y = RLX_NO_VALUE;
    rlx_list cut = s->shape;

    cut.at[cut.count - 1] = pieces;
    cut.at[cut.count++] = hop;
    x = rlx_reshape(s->g, x, cut);
    rlx_value *part = mem_alloc(&s->g->ctx->mem, (size_t)each * sizeof *part);
    if (!part) {
        FAIL(s, MEMORY, "out of memory for %" PRId64 " parts of a frame", each);
        return RLX_NO_VALUE;
    }
    for (int64_t i = 0; i < each; i++)
        part[i] = rlx_narrow(s->g, x, s->axis, i, frames);
    if (rlx_graph_check(s->g, NULL) == RLX_OK)
        y = each == 1 ? part[0] : rlx_concat(s->g, part, (size_t)each, s->axis + 1);
    mem_free(&s->g->ctx->mem, part, (size_t)each * sizeof *part);
    return each * hop == frame_len ? y : rlx_narrow(s->g, y, s->axis + 1, 0, frame_len);
}

static bool need_frames(const struct subject *s, int64_t frame_len, int64_t hop)
{
    if (frame_len < 1)
        return FAIL(s, ATTRIBUTE, "frame_len must be at least 1, not %" PRId64, frame_len);
    if (hop < 1)
        return FAIL(s, ATTRIBUTE, "hop must be at least 1, not %" PRId64, hop);
    if (extent(s) < frame_len)
        return FAIL(s, SHAPE, "%" PRId64 " samples are less than a frame of %" PRId64, extent(s),
                    frame_len);
    if (s->shape.count == RLX_MAX_RANK)
        return FAIL(s, SHAPE, "rank %d leaves no axis for the frames", s->shape.count);
    return true;
}

rlx_value rlx_stft(rlx_graph *g, rlx_value x, int64_t frame_len, int64_t hop, rlx_fft_norm norm)
{
    struct subject s, framed;

    if (!look_at(&s, g, "stft", x) || !need_real(&s) || !need_size(&s) ||
        !need_frames(&s, frame_len, hop))
        return RLX_NO_VALUE;
    int64_t frames = 1 + (extent(&s) - frame_len) / hop;
    if (hop > frame_len) /* the rest of a hop is never looked at, and the last one may be cut off */
        hop = frames == 1 ? frame_len : hop;
    rlx_value y = cut_frames(&s, frame_len, hop, frames);
    rlx_list perm = {.count = s.shape.count + 1, .at = {s.axis}};
    for (int32_t i = 1; i < perm.count; i++)
        perm.at[i] = i <= s.axis ? i - 1 : i;
    y = rlx_transpose(g, y, perm);
    if (!look_at(&framed, g, "stft", y))
        return RLX_NO_VALUE;
    rlx_spectrum f = exact_rfft(&framed, RLX_ABSENT, norm);
    const rlx_value part[] = {f.re, f.im};
    if (f.re == RLX_NO_VALUE || f.im == RLX_NO_VALUE)
        return RLX_NO_VALUE;
    return rlx_concat(g, part, 2, framed.axis);
}

/* ---- power and convolution ------------------------------------------------------------------ */

static rlx_value power(const struct subject *s, rlx_spectrum x)
{
    rlx_value sum = rlx_add(s->g, rlx_mul(s->g, x.re, x.re), rlx_mul(s->g, x.im, x.im));

    return rlx_div(s->g, sum, rlx_scalar(s->g, sum, (double)extent(s)));
}

rlx_value rlx_psd(rlx_graph *g, rlx_spectrum x)
{
    struct subject s;

    if (!look_at_spectrum(&s, g, "psd", x) || !need_size(&s) || !need_points(&s, extent(&s)))
        return RLX_NO_VALUE;
    return power(&s, x);
}

rlx_value rlx_psd_real(rlx_graph *g, rlx_value x, rlx_fft_norm norm)
{
    struct subject s, bins;

    if (!look_at(&s, g, "psd_real", x) || !need_size(&s))
        return RLX_NO_VALUE;
    rlx_spectrum f = exact_rfft(&s, RLX_ABSENT, norm);
    if (!look_at_spectrum(&bins, g, "psd_real", f))
        return RLX_NO_VALUE;
    return power(&bins, f);
}

rlx_value rlx_fft_conv1d(rlx_graph *g, rlx_value a, rlx_value b, int64_t n_fft, rlx_fft_norm norm)
{
    struct subject sa, sb, out;
    int64_t pa, pb;

    if (!look_at_signal(&sa, g, "fft_conv1d", a, &pa) ||
        !look_at_signal(&sb, g, "fft_conv1d", b, &pb))
        return RLX_NO_VALUE;
    if (sa.dtype != sb.dtype) {
        FAIL(&sa, DTYPE, "a is %s and b is %s", rlx_dtype_name(sa.dtype), rlx_dtype_name(sb.dtype));
        return RLX_NO_VALUE;
    }
    int64_t length = extent(&sa) + extent(&sb) - 1, most = n_fft > length ? n_fft : length;
    if (!need_points(&sa, most))
        return RLX_NO_VALUE;
    int64_t p = rlx_next_pow2(most);
    rlx_spectrum x = real_transform(&sa, a, extent(&sa), p, p / 2 + 1, norm);
    rlx_spectrum y = real_transform(&sb, b, extent(&sb), p, p / 2 + 1, norm);
    rlx_spectrum z = {rlx_sub(g, rlx_mul(g, x.re, y.re), rlx_mul(g, x.im, y.im)),
                      rlx_add(g, rlx_mul(g, x.re, y.im), rlx_mul(g, x.im, y.re))};
    if (!look_at_spectrum(&out, g, "fft_conv1d", z))
        return RLX_NO_VALUE;
    return first(&out, mirrored(&out, z, p, norm), length);
}

/* ---- frequencies ---------------------------------------------------------------------------- */

/* k/n for count values of k, less 1 from `wrap` on. */
static rlx_value frequencies(rlx_graph *g, const char *helper, int64_t n, int64_t count,
                             int64_t wrap)
{
    struct subject s = {.g = g, .helper = helper};
    size_t bytes = (size_t)count * sizeof(double);
    double *f;

    f = mem_alloc(&g->ctx->mem, bytes);
    if (!f) {
        FAIL(&s, MEMORY, "out of memory for %" PRId64 " frequencies", count);
        return RLX_NO_VALUE;
    }
    for (int64_t k = 0; k < count; k++)
        f[k] = (double)(k < wrap ? k : k - n) / (double)n;
    rlx_value v = rlx_const(g, RLX_DTYPE_f64, RLX_LIST(count), f, bytes);
    mem_free(&g->ctx->mem, f, bytes);
    return v;
}

rlx_value rlx_fftfreq(rlx_graph *g, int64_t n)
{
    struct subject s = {.g = g, .helper = "fftfreq"};

    if (!g || !need_points(&s, n))
        return RLX_NO_VALUE;
    return frequencies(g, "fftfreq", n, n, (n - 1) / 2 + 1);
}

rlx_value rlx_rfftfreq(rlx_graph *g, int64_t n)
{
    struct subject s = {.g = g, .helper = "rfftfreq"};

    if (!g || !need_points(&s, n))
        return RLX_NO_VALUE;
    return frequencies(g, "rfftfreq", n, n / 2 + 1, n);
}
