/* scan.c: see scan.h. */
#include "run/scan.h"

#include <math.h>

#include "run/convert.h"

void scan_begin(struct scan *s)
{
    *s = (struct scan){.first_bad = -1, .min = (double)INFINITY, .max = -(double)INFINITY};
}

static void note_size(struct scan *s, double v)
{
    s->min = v < s->min ? v : s->min;
    s->max = v > s->max ? v : s->max;
    s->max_abs = fabs(v) > s->max_abs ? fabs(v) : s->max_abs;
}

/* One element of one or two parts. */
static void add_element(struct scan *s, double a, double b)
{
    bool nan = isnan(a) || isnan(b), inf = !nan && (isinf(a) || isinf(b));

    s->nan += nan;
    s->inf += inf;
    s->nonzero += a != 0 || b != 0;
    if ((nan || inf) && s->first_bad < 0)
        s->first_bad = (int64_t)s->count;
    s->count++;
    if (isfinite(a))
        note_size(s, a);
    if (isfinite(b))
        note_size(s, b);
}

static void add_complex(struct scan *s, const float *part, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add_element(s, (double)part[2 * i], (double)part[2 * i + 1]);
}

void scan_add(struct scan *s, rlx_dtype dtype, const void *data, size_t n)
{
    enum { CHUNK = 256 };
    double chunk[CHUNK];
    const uint8_t *at = data;

    if (dtype == RLX_DTYPE_c64) {
        add_complex(s, data, n);
        return;
    }
    while (n) {
        size_t now = n < CHUNK ? n : CHUNK;
        convert(RLX_DTYPE_f64, chunk, dtype, at, now);
        for (size_t i = 0; i < now; i++)
            add_element(s, chunk[i], chunk[i]); /* a real number counts as both of its parts */
        at += now * rlx_dtype_size(dtype);
        n -= now;
    }
}
