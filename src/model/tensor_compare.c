/* tensor_compare.c: two tensors that should be the same: how far they are apart, and whether that
 * will do.
 */
#include <math.h>
#include <string.h>

#include "model/store.h"
#include "model/tensor_file.h"
#include "run/convert.h"

struct limits {
    double abs, rel, cosine;
};
static const struct limits presets[] = {
    [RLX_TOLERANCE_STRICT] = {1e-4, 1e-3, 0.9999},
    [RLX_TOLERANCE_HALF] = {5e-2, 5e-2, 0.999},
};

struct sums {
    double abs, got, want, both; /* of |difference|, got^2, want^2, got want */
    double largest;              /* finite |want| */
};

/* Equal infinities are equal; any NaN fails, on both sides too. */
static void add_pair(rlx_comparison *c, struct sums *s, double got, double want)
{
    double off = got == want ? 0 : fabs(got - want);
    double rel = want != 0 ? off / fabs(want) : off > 0 ? (double)INFINITY : 0;

    if (isnan(got) || isnan(want)) {
        c->nan_count++;
        if (c->worst_index < 0 || c->nan_count == 1)
            c->worst_index = (int64_t)c->count;
        c->count++;
        return;
    }
    if (off > c->max_abs || c->count == 0) {
        if (c->nan_count == 0)
            c->worst_index = (int64_t)c->count;
        c->max_abs = off;
    }
    c->max_rel = rel > c->max_rel ? rel : c->max_rel;
    s->largest = isfinite(want) ? fmax(s->largest, fabs(want)) : s->largest;
    s->abs += off;
    c->count++;
    if (isinf(got) || isinf(want))
        return; /* they have no angle */
    s->got += got * got;
    s->want += want * want;
    s->both += got * want;
}

static void finish(rlx_comparison *c, const struct sums *s, const struct limits *l)
{
    double norms = sqrt(s->got) * sqrt(s->want);

    c->mean_abs = c->count ? s->abs / (double)c->count : 0;
    c->cosine = norms > 0 ? s->both / norms : s->got == s->want ? 1 : 0;
    c->passed = c->nan_count == 0 && c->max_abs <= l->abs + l->rel * s->largest &&
                (!(norms > 0) || !(c->cosine < l->cosine));
}

static rlx_status check(const rlx_tensor *got, const rlx_tensor *want, rlx_tolerance preset,
                        size_t *count, struct diag *d)
{
    bool same = got->rank == want->rank;
    size_t n;

    if ((size_t)preset >= sizeof presets / sizeof presets[0])
        return diag_fail(d, RLX_ERROR_ARGUMENT, "there is no tolerance %d", (int)preset);
    if (!tensor_count(got, &n) || !tensor_count(want, count) ||
        got->bytes < n * rlx_dtype_size(got->dtype) ||
        want->bytes < *count * rlx_dtype_size(want->dtype))
        return diag_fail(d, RLX_ERROR_SIZE, "a tensor's rank, dims, dtype or bytes make no sense");
    if ((n && !got->data) || (*count && !want->data))
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s: data is NULL",
                         n && !got->data ? "got" : "want");
    for (int32_t i = 0; same && i < got->rank; i++)
        same = got->dim[i] == want->dim[i];
    if (!same)
        return diag_fail(d, RLX_ERROR_SHAPE, "the tensors differ in shape");
    if ((got->dtype == RLX_DTYPE_c64) != (want->dtype == RLX_DTYPE_c64))
        return diag_fail(d, RLX_ERROR_DTYPE, "%s and %s cannot be compared",
                         rlx_dtype_name(got->dtype), rlx_dtype_name(want->dtype));
    return RLX_OK;
}

rlx_status tensor_compare(const rlx_tensor *got, const rlx_tensor *want, rlx_tolerance preset,
                          rlx_comparison *out, struct diag *d)
{
    enum { CHUNK = 256 };
    double a[CHUNK], b[CHUNK];
    struct sums sums = {0};
    rlx_comparison c = {.worst_index = -1};
    size_t count;

    TRY(check(got, want, preset, &count, d));
    bool complex = got->dtype == RLX_DTYPE_c64;
    rlx_dtype ta = complex ? RLX_DTYPE_f32 : got->dtype, tb = complex ? RLX_DTYPE_f32 : want->dtype;
    count *= complex ? 2 : 1;
    for (size_t at = 0; at < count; at += CHUNK) {
        size_t n = count - at < CHUNK ? count - at : CHUNK;
        convert(RLX_DTYPE_f64, a, ta, (const uint8_t *)got->data + at * rlx_dtype_size(ta), n);
        convert(RLX_DTYPE_f64, b, tb, (const uint8_t *)want->data + at * rlx_dtype_size(tb), n);
        for (size_t i = 0; i < n; i++)
            add_pair(&c, &sums, a[i], b[i]);
    }
    finish(&c, &sums, &presets[preset]);
    if (complex && c.count) { /* they were counted by parts */
        c.count /= 2;
        c.worst_index /= 2;
    }
    *out = c;
    return RLX_OK;
}
