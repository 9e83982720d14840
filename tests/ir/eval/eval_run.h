/* eval_run.h: for the tests of ir/eval: graphs as text, run, and their outputs as numbers.
 *
 *     evals(t, 0, "%x = const f32[3] {1 2 3} %y = neg %x return %y", "-1 -2 -3");
 *
 * A text that does not begin with "rlx" is the inside of a graph without leaves. */
#ifndef TESTS_IR_EVAL_RUN_H
#define TESTS_IR_EVAL_RUN_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/eval/eval.h"
#include "ir/text/text.h"
#include "test.h"

struct run {
    struct ir_module *mod;
    struct arena arena;
    struct eval_tensor *result; /* by node of the entry */
    struct diag diag;
};

static inline void run_close(struct run *r)
{
    arena_free(&r->arena);
    ir_module_destroy(r->mod);
}

/* Parse and verify; false, with a failure noted, if that does not go well. */
static inline bool run_open(struct test *t, struct run *r, const char *source,
                            const struct ir_customs *customs)
{
    struct text_parse_options o = {.customs = customs};
    struct text s;

    *r = (struct run){0};
    diag_init(&r->diag, "eval");
    arena_init(&r->arena, mem_default());
    text_init(&s, mem_default());
    bool whole = str_starts(rlx_cstr(source), STR("rlx"));
    text_addf(&s, "%s%s%s", whole ? "" : "rlx 1 graph () { ", source, whole ? "" : " }");
    rlx_status status = ir_parse((rlx_str){s.at, s.len}, &o, mem_default(), &r->mod, &r->diag);
    text_free(&s);
    if (status == RLX_OK)
        status = ir_verify(r->mod, &r->diag);
    if (status == RLX_OK)
        return true;
    fail(t, "%s\n  in: %s", r->diag.first.message, source);
    run_close(r);
    return false;
}

/* leaf: values by node, NULL for none at all. */
static inline rlx_status run_graph(struct run *r, struct eval_tensor *const *leaf)
{
    const struct ir_graph *g = ir_entry(r->mod);

    r->result = arena_array(&r->arena, struct eval_tensor, g->node.len);
    return eval_graph(g, leaf, r->result, &r->arena, &r->diag);
}

static inline const struct eval_tensor *run_output(const struct run *r, size_t i)
{
    return &r->result[ir_entry(r->mod)->output.at[i]];
}

/* Numbers apart by spaces, as strtod reads them; c64: pairs. -0 must be -0 when tol is 0. */
static inline void expect_cells(struct test *t, const char *file, int line,
                                const struct eval_tensor *got, double tol, const char *want,
                                const char *source)
{
    rlx_dtype d = got->type.dtype;
    const char *at = want;
    char *end;
    int parts = d == RLX_DTYPE_c64 ? 2 : 1;

    for (int64_t k = 0; k < got->count * parts; k++) {
        struct eval_cell x = got->at[k / parts];
        double have = k % parts ? x.im : eval_cell_real(d, x), wish = strtod(at, &end);
        if (end == at) {
            test_fail(t, file, line, "%lld values are more than wanted: %s\n  in: %s",
                      (long long)got->count, want, source);
            return;
        }
        bool same = isnan(wish)   ? isnan(have)
                    : isinf(wish) ? have == wish
                                  : fabs(have - wish) <= tol * fmax(1, fabs(wish));
        if (same && tol == 0 && wish == 0)
            same = dtype_is(d, CLASS_F) == 0 || signbit(wish) == signbit(have);
        if (!test_expect(t, file, line, same, "the value"))
            test_fail(t, file, line, "value %lld is %.17g, wanted %.17g\n  in: %s", (long long)k,
                      have, wish, source);
        at = end;
    }
    test_expect(t, file, line, at[strspn(at, " ")] == 0, "no value is missing");
}

/* The outputs, in order, are these. */
static inline void check_evals(struct test *t, const char *file, int line, double tol,
                               const char *source, const char *const *want, size_t count)
{
    struct run r;

    if (!run_open(t, &r, source, NULL))
        return;
    if (run_graph(&r, NULL) != RLX_OK)
        test_fail(t, file, line, "%s\n  in: %s", r.diag.first.message, source);
    else
        for (size_t i = 0; i < count; i++)
            expect_cells(t, file, line, run_output(&r, i), tol, want[i], source);
    run_close(&r);
}
#define evals(t, tol, source, ...)                                                            \
    check_evals((t), __FILE__, __LINE__, (tol), (source), (const char *const[]){__VA_ARGS__}, \
                sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

#endif
