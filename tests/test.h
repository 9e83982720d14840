/* test.h: the test harness. A test registers itself; tests/test_main.c runs them all.
 *
 *   TEST(plan, one_buffer_starts_at_zero)
 *   {
 *       const char *path = test_data(t, "minimalloc/A.csv");
 *       if (!path)
 *           return;                              // marked as skipped, by name
 *       require(t, load(path, &p));              // leaves the test if it does not hold
 *       expect_eq(t, p.offset[0], 0);            // notes a failure and goes on
 *   }
 *
 * An expect_ answers whether it held, takes the value got before the value wanted, and may be used
 * from any thread. A test that made no check has failed. See `rlx-tests --help` for the command. */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rlx/debug.h"
#include "rlx/load.h"
#include "rlx/session.h"

/* What rlx_session_desc.debug points to, as in .debug = DEBUG(.no_cse = true). Within a function it
 * is gone with the block it is in. */
#define DEBUG(...) (&(const rlx_debug_desc){RLX_SIZED(rlx_debug_desc), __VA_ARGS__})

/* ---- a test -------------------------------------------------------------------------------- */

struct test; /* one run of one test; every helper takes it first */

struct test_case {
    const char *suite, *name, *file;
    int line;
    bool slow; /* left out by --fast */
    void (*run)(struct test *t);
    const char *device; /* it runs on, if it is one of TEST_DEVICES */
    struct test_case *next;
};
void test_register(struct test_case *c);

#define TEST(suite, name) TEST_DEFINE(suite, name, false)
#define TEST_SLOW(suite, name) TEST_DEFINE(suite, name, true)

#define TEST_DEFINE(suite_, name_, slow_)                                               \
    static void test_run_##suite_##_##name_(struct test *t);                            \
    static struct test_case test_case_##suite_##_##name_ = {                            \
        #suite_, #name_, __FILE__, __LINE__, slow_, test_run_##suite_##_##name_, 0, 0}; \
    __attribute__((constructor)) static void test_register_##suite_##_##name_(void)     \
    {                                                                                   \
        test_register(&test_case_##suite_##_##name_);                                   \
    }                                                                                   \
    static void test_run_##suite_##_##name_(struct test *t)

/* A test that is run once for each kind of device: as "suite.name" on the CPU, and on the others as
 * "suite.name@device". It opens test_device(t), and leaves when test_no_device says so. WebGPU
 * mostly does what Vulkan does, in more time, so it is left out by --fast. */
#define TEST_DEVICES(suite, name) TEST_DEVICES_DEFINE(suite, name, false)
/* The same where it is slow on all but the CPU. */
#define TEST_DEVICES_SLOW(suite, name) TEST_DEVICES_DEFINE(suite, name, true)
/* Only on GPUs. */
#define TEST_GPUS(suite, name) TEST_GPUS_DEFINE(suite, name, false)
#define TEST_GPUS_SLOW(suite, name) TEST_GPUS_DEFINE(suite, name, true)

#define TEST_DEVICES_DEFINE(suite_, name_, slow_)                                                \
    TEST_ON(suite_, name_,                                                                       \
            {#suite_, #name_, __FILE__, __LINE__, false, test_run_##suite_##_##name_, "cpu", 0}, \
            TEST_ON_GPUS(suite_, name_, slow_))
#define TEST_GPUS_DEFINE(suite_, name_, slow_) \
    TEST_ON(suite_, name_, TEST_ON_GPUS(suite_, name_, slow_))
#define TEST_ON_GPUS(suite_, name_, slow_)                                                        \
    {#suite_, #name_ "@vulkan", __FILE__, __LINE__, slow_, test_run_##suite_##_##name_, "vulkan", \
     0},                                                                                          \
    {                                                                                             \
#suite_, #name_ "@webgpu", __FILE__, __LINE__, true, test_run_##suite_##_##name_,         \
            "webgpu", 0                                                                           \
    }
#define TEST_ON(suite_, name_, ...)                                                             \
    static void test_run_##suite_##_##name_(struct test *t);                                    \
    static struct test_case test_cases_##suite_##_##name_[] = {__VA_ARGS__};                    \
    __attribute__((constructor)) static void test_register_##suite_##_##name_(void)             \
    {                                                                                           \
        for (size_t i = 0; i < sizeof test_cases_##suite_##_##name_ / sizeof(struct test_case); \
             i++)                                                                               \
            test_register(&test_cases_##suite_##_##name_[i]);                                   \
    }                                                                                           \
    static void test_run_##suite_##_##name_(struct test *t)

/* The device to open; "cpu" in a test that is not of TEST_DEVICES. */
const char *test_device(const struct test *t);
/* Whether opening that device, or another named one, failed: then the test is skipped if there is
 * none of the kind here and none has to be ($RLX_REQUIRE_DEVICE="vulkan webgpu", or 1 for all), and
 * failed otherwise. */
bool test_no_device(struct test *t, const char *device, rlx_status s, const char *why);
/* Whether test_device(t) computes with f64: where it does not, ops of f64 are UNSUPPORTED. */
bool test_has_f64(const struct test *t, rlx_context *ctx);

/* ---- checks -------------------------------------------------------------------------------- */

#define expect(t, cond) test_expect((t), __FILE__, __LINE__, (cond), #cond)

/* Integers of any width; a float or double argument does not compile. */
#define expect_eq(t, got, want)                                                                   \
    test_expect_i64((t), __FILE__, __LINE__, TEST_WHOLE(int64_t, got), TEST_WHOLE(int64_t, want), \
                    #got, #want)
#define expect_eq_u64(t, got, want)                                     \
    test_expect_u64((t), __FILE__, __LINE__, TEST_WHOLE(uint64_t, got), \
                    TEST_WHOLE(uint64_t, want), #got, #want)

/* |got - want| <= tol; two NaNs are equal, and so are two infinities of one sign. */
#define expect_near(t, got, want, tol) \
    test_expect_near((t), __FILE__, __LINE__, (double)(got), (double)(want), (double)(tol), #got)
/* The same for n floats, with |got - want| <= atol + rtol * |want|; names the worst one. */
#define expect_close(t, got, want, n, rtol, atol)                                                  \
    test_expect_close((t), __FILE__, __LINE__, (got), (want), (n), (double)(rtol), (double)(atol), \
                      #got)

#define expect_str(t, got, want) test_expect_str((t), __FILE__, __LINE__, (got), (want), #got)
#define expect_contains(t, got, part) \
    test_expect_contains((t), __FILE__, __LINE__, (got), (part), #got)
#define expect_bytes(t, got, want, n) \
    test_expect_bytes((t), __FILE__, __LINE__, (got), (want), (n), #got)

#define expect_status(t, got, want) test_expect_status((t), __FILE__, __LINE__, (got), (want), #got)
#define expect_ok(t, got) expect_status((t), (got), RLX_OK)
/* err: const rlx_error *, with this status and with part somewhere in its message. */
#define expect_error(t, want, part, err) \
    test_expect_error((t), __FILE__, __LINE__, (want), (part), (err), #err)

/* Like expect, and leaves the test when it does not hold. */
#define require(t, cond)        \
    do {                        \
        if (!expect((t), cond)) \
            return;             \
    } while (0)
#define require_ok(t, got)        \
    do {                          \
        if (!expect_ok((t), got)) \
            return;               \
    } while (0)

/* Leaves the test and counts it as skipped. Takes a printf format. */
#define skip(t, ...)                 \
    do {                             \
        test_skip((t), __VA_ARGS__); \
        return;                      \
    } while (0)

/* Said along with every failure from here on, such as which row of a table; "" says nothing. */
void test_note(struct test *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Fails the test with a sentence, where no expect_ fits. */
#define fail(t, ...) test_fail((t), __FILE__, __LINE__, __VA_ARGS__)

/* ---- files --------------------------------------------------------------------------------- */

/* All paths live until the test ends. */

/* Under $RLX_TEST_DATA. NULL without that variable: the test is then skipped, naming the file. With
 * it, a file that is not there is a failure, and NULL too. */
const char *test_data(struct test *t, const char *name);
/* In the source tree, such as "tests/ops/add.case". */
const char *test_source(struct test *t, const char *name);
/* In the build folder this binary belongs to, such as "rlx", the command. */
const char *test_built(struct test *t, const char *name);
/* A path of this test's own, not there yet; removed after the test. */
const char *test_temp(struct test *t, const char *name);
/* A whole file, NUL after the last byte; NULL, with a failure noted, if it cannot be read. */
const char *test_read(struct test *t, const char *path, size_t *len);
bool test_write(struct test *t, const char *path, const void *data, size_t len);

/* Whether long runs are wanted: $RLX_TEST_FULL is set to other than "" or "0". */
bool test_full(void);

/* ---- memory -------------------------------------------------------------------------------- */

/* An allocator that counts, and fails on demand. Start from {0}; any number of threads may use it.
 * A resize always moves, so that stale pointers show. */
struct test_alloc {
    uint64_t fail_at; /* refuse the fail_at'th request, from 1; 0: none */
    bool sticky;      /* and every request after it */

    uint64_t calls;   /* requests for memory so far; freeing is not one */
    uint64_t refused; /* of them */
    uint64_t live_blocks, live_bytes, peak_bytes;
    uint64_t misused; /* freed or resized with a wrong size, or what was never handed out */
};
rlx_allocator test_allocator(struct test_alloc *a); /* *a must outlive all that it hands out */

/* Nothing is live and nothing was misused. */
#define expect_no_leak(t, a) test_expect_no_leak((t), __FILE__, __LINE__, (a))

/* Runs fn with the 1st request refused, then the 2nd, and on until a run has none refused and
 * returns RLX_OK. Each refused run must return RLX_ERROR_MEMORY and leave nothing live. Past the
 * first few hundred requests only a sample is tried, unless test_full(). fn must do the same each
 * time, and free what it made. */
typedef rlx_status (*test_alloc_fn)(struct test *t, const rlx_allocator *mem, void *ctx);
#define expect_survives_no_memory(t, fn, ctx) \
    test_each_failure((t), __FILE__, __LINE__, (fn), (ctx), #fn)

/* ---- behind the macros --------------------------------------------------------------------- */

struct test_use_expect_near {
    char unused;
};
/* clang-format off */
#define TEST_WHOLE(T, x)                          \
    _Generic((x),                                 \
        float: (struct test_use_expect_near){0},  \
        double: (struct test_use_expect_near){0}, \
        default: (T)(x))
/* clang-format on */

bool test_expect(struct test *t, const char *file, int line, bool held, const char *text);
bool test_expect_i64(struct test *t, const char *file, int line, int64_t got, int64_t want,
                     const char *got_text, const char *want_text);
bool test_expect_u64(struct test *t, const char *file, int line, uint64_t got, uint64_t want,
                     const char *got_text, const char *want_text);
bool test_expect_near(struct test *t, const char *file, int line, double got, double want,
                      double tol, const char *text);
bool test_expect_close(struct test *t, const char *file, int line, const float *got,
                       const float *want, size_t n, double rtol, double atol, const char *text);
bool test_expect_str(struct test *t, const char *file, int line, const char *got, const char *want,
                     const char *text);
bool test_expect_contains(struct test *t, const char *file, int line, const char *got,
                          const char *part, const char *text);
bool test_expect_bytes(struct test *t, const char *file, int line, const void *got,
                       const void *want, size_t n, const char *text);
bool test_expect_status(struct test *t, const char *file, int line, rlx_status got, rlx_status want,
                        const char *text);
bool test_expect_error(struct test *t, const char *file, int line, rlx_status want,
                       const char *part, const rlx_error *err, const char *text);
bool test_expect_no_leak(struct test *t, const char *file, int line, const struct test_alloc *a);
bool test_each_failure(struct test *t, const char *file, int line, test_alloc_fn fn, void *ctx,
                       const char *text);
void test_skip(struct test *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool test_fail(struct test *t, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
