/* limited.h: graphs on a GPU that claims to have less than it has. */
#ifndef TESTS_LOWER_GPU_LIMITED_H
#define TESTS_LOWER_GPU_LIMITED_H

#include "session/sized.h"

/* flag NULL: with all it has. */
static inline bool open_limited(struct test *t, struct place *p, const char *flag,
                                const char *value)
{
    const rlx_flag flags = {flag, value};

    return place_open(t, p, test_device(t),
                      &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .flags = &flags,
                                          .flag_count = flag != NULL});
}

static inline bool run_one(struct test *t, struct place *p, const char *graph, struct sized *r)
{
    if (!expect_ok(t, place_build(p, graph, NULL)))
        return fail(t, "%s", p->err.message);
    if (!sized_params(t, p))
        return false;
    sized_run(p, NULL, 0, r);
    return expect_ok(t, r->status) || fail(t, "%s", p->err.message);
}

#endif
