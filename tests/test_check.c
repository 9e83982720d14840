/* test_check.c: the checks of test.h, and how their failures read. */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "test_impl.h"

enum { SHOWN_FAILURES = 10, SHOWN_TEXT = 2000 };

/* One failure is several writes; this keeps those of two threads apart. */
static pthread_mutex_t print_lock = PTHREAD_MUTEX_INITIALIZER;

bool test_fail(struct test *t, const char *file, int line, const char *fmt, ...)
{
    __atomic_fetch_add(&t->checks, 1, __ATOMIC_RELAXED);
    uint64_t before = __atomic_fetch_add(&t->failures, 1, __ATOMIC_RELAXED);
    va_list ap;

    if (t->quiet || before >= SHOWN_FAILURES)
        return false; /* the runner says how many there were */
    pthread_mutex_lock(&print_lock);
    printf("%s:%d: %s.%s: ", file, line, t->about->suite, t->about->name);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    if (t->note[0])
        printf(" [%s]", t->note);
    putchar('\n');
    fflush(stdout);
    pthread_mutex_unlock(&print_lock);
    return false;
}

void test_skip(struct test *t, const char *fmt, ...)
{
    va_list ap;

    t->skipped = true;
    va_start(ap, fmt);
    vsnprintf(t->why, sizeof t->why, fmt, ap);
    va_end(ap);
}

void test_note(struct test *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(t->note, sizeof t->note, fmt, ap);
    va_end(ap);
}

bool test_expect(struct test *t, const char *file, int line, bool held, const char *text)
{
    return held ? test_held(t) : test_fail(t, file, line, "does not hold: %s", text);
}

/* A number written out needs no name beside it. */
static bool is_number(const char *text)
{
    return text[strspn(text, "-+(")] >= '0' && text[strspn(text, "-+(")] <= '9';
}

bool test_expect_i64(struct test *t, const char *file, int line, int64_t got, int64_t want,
                     const char *got_text, const char *want_text)
{
    bool plain = is_number(want_text);

    if (got == want)
        return test_held(t);
    return test_fail(t, file, line, "%s is %" PRId64 ", not %s%s%" PRId64, got_text, got,
                     plain ? "" : want_text, plain ? "" : " = ", want);
}

bool test_expect_u64(struct test *t, const char *file, int line, uint64_t got, uint64_t want,
                     const char *got_text, const char *want_text)
{
    bool plain = is_number(want_text);

    if (got == want)
        return test_held(t);
    return test_fail(t, file, line,
                     "%s is %" PRIu64 " (0x%" PRIx64 "), not %s%s%" PRIu64 " (0x%" PRIx64 ")",
                     got_text, got, got, plain ? "" : want_text, plain ? "" : " = ", want, want);
}

/* How far got is from want: 0 for two NaNs and for equal infinities, infinite for one NaN. */
static double distance(double got, double want)
{
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want) ? 0 : (double)INFINITY;
    if (isinf(got) || isinf(want)) {
        bool same = isinf(got) && isinf(want) && signbit(got) == signbit(want);
        return same ? 0 : (double)INFINITY;
    }
    return fabs(got - want);
}

bool test_expect_near(struct test *t, const char *file, int line, double got, double want,
                      double tol, const char *text)
{
    double off = distance(got, want);

    if (off == 0 || (isfinite(off) && off <= tol))
        return test_held(t);
    return test_fail(t, file, line, "%s is %.17g, not %.17g: off by %.3g, allowed %.3g", text, got,
                     want, off, tol);
}

bool test_expect_close(struct test *t, const char *file, int line, const float *got,
                       const float *want, size_t n, double rtol, double atol, const char *text)
{
    double worst_excess = 0;
    size_t worst = 0, bad = 0;

    for (size_t i = 0; i < n; i++) {
        double off = distance((double)got[i], (double)want[i]);
        /* A want that is not finite allows nothing: it must be met exactly. */
        double allowed = isfinite(want[i]) ? atol + rtol * fabs((double)want[i]) : 0;
        if (off == 0 || (isfinite(off) && off <= allowed))
            continue;
        bad++;
        if (bad == 1 || off - allowed > worst_excess) {
            worst_excess = off - allowed;
            worst = i;
        }
    }
    if (bad == 0)
        return test_held(t);
    return test_fail(t, file, line,
                     "%s: %zu of %zu are off (rtol %.3g, atol %.3g); worst [%zu] is %.9g, not %.9g",
                     text, bad, n, rtol, atol, worst, (double)got[worst], (double)want[worst]);
}

/* The line on which two texts first differ, from 1; line breaks count to the line they end. */
static int first_differing_line(const char *a, const char *b)
{
    int line = 1;

    for (; *a && *a == *b; a++, b++)
        line += *a == '\n';
    return line;
}

bool test_expect_str(struct test *t, const char *file, int line, const char *got, const char *want,
                     const char *text)
{
    if (got && want ? strcmp(got, want) == 0 : got == want)
        return test_held(t);
    if (!got || !want)
        return test_fail(t, file, line, "%s is %s%.*s%s, not %s%.*s%s", text, got ? "\"" : "",
                         SHOWN_TEXT, got ? got : "NULL", got ? "\"" : "", want ? "\"" : "",
                         SHOWN_TEXT, want ? want : "NULL", want ? "\"" : "");
    if (strchr(got, '\n') || strchr(want, '\n'))
        return test_fail(t, file, line,
                         "%s differs from line %d on\n--- got\n%.*s\n--- want\n%.*s\n---", text,
                         first_differing_line(got, want), SHOWN_TEXT, got, SHOWN_TEXT, want);
    return test_fail(t, file, line, "%s is \"%.*s\", not \"%.*s\"", text, SHOWN_TEXT, got,
                     SHOWN_TEXT, want);
}

bool test_expect_contains(struct test *t, const char *file, int line, const char *got,
                          const char *part, const char *text)
{
    if (got && part && strstr(got, part))
        return test_held(t);
    return test_fail(t, file, line, "%s is \"%.*s\", without \"%.*s\" in it", text, SHOWN_TEXT,
                     got ? got : "(NULL)", SHOWN_TEXT, part ? part : "(NULL)");
}

bool test_expect_bytes(struct test *t, const char *file, int line, const void *got,
                       const void *want, size_t n, const char *text)
{
    const unsigned char *g = got, *w = want;
    size_t at = 0;

    while (at < n && g[at] == w[at])
        at++;
    if (at == n)
        return test_held(t);
    return test_fail(t, file, line, "%s: byte %zu of %zu is 0x%02x, not 0x%02x", text, at, n, g[at],
                     w[at]);
}

/* From the table itself, so that the harness works before the library's own names do. */
static const char *status_name(rlx_status s)
{
    switch (s) {
#define X(name, value, text) \
    case RLX_##name: return #name;
        RLX_STATUS_MAP(X)
#undef X
    }
    return "no status at all";
}

bool test_expect_status(struct test *t, const char *file, int line, rlx_status got, rlx_status want,
                        const char *text)
{
    if (got == want)
        return test_held(t);
    return test_fail(t, file, line, "%s is %s (%d), not %s (%d)", text, status_name(got), (int)got,
                     status_name(want), (int)want);
}

bool test_expect_error(struct test *t, const char *file, int line, rlx_status want,
                       const char *part, const rlx_error *err, const char *text)
{
    if (!err)
        return test_fail(t, file, line, "%s is NULL", text);
    if (err->status != want)
        return test_fail(t, file, line, "%s is %s, \"%s\", not %s", text, status_name(err->status),
                         err->status == RLX_OK ? "" : err->message, status_name(want));
    if (!strstr(err->message, part))
        return test_fail(t, file, line, "%s says \"%s\", without \"%s\" in it", text, err->message,
                         part);
    return test_held(t);
}
