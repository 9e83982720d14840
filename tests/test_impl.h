/* test_impl.h: what the harness's own files share. Tests need only test.h. */
#ifndef TESTS_TEST_IMPL_H
#define TESTS_TEST_IMPL_H

#include "test.h"

/* Something to free when the test ends. */
struct test_kept {
    struct test_kept *next;
    bool is_path; /* text is a file to remove as well */
    char text[];
};

struct test {
    const struct test_case *about;
    uint64_t checks, failures; /* changed atomically: a check may come from any thread */
    bool skipped;
    bool quiet;     /* failures are counted, not printed: for tests of the checks themselves */
    char why[256];  /* it was skipped */
    char note[256]; /* see test_note */
    struct test_kept *kept;
};

/* Counts a check that held; always true. */
static inline bool test_held(struct test *t)
{
    __atomic_fetch_add(&t->checks, 1, __ATOMIC_RELAXED);
    return true;
}

void test_free_kept(struct test *t);

#endif
