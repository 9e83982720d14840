/* eval_special.h: for the tests of the special ops: graphs with leaves that a test fills, and
 * numbers to fill them with. */
#ifndef TESTS_IR_EVAL_SPECIAL_H
#define TESTS_IR_EVAL_SPECIAL_H

#include "eval_run.h"

struct special {
    struct run run;
    struct eval_tensor *value, **leaf; /* by node; all leaves have a value, of zeros */
};

static inline bool special_open(struct test *t, struct special *s, const char *source)
{
    if (!run_open(t, &s->run, source, NULL))
        return false;
    const struct ir_graph *g = ir_entry(s->run.mod);
    s->value = arena_array(&s->run.arena, struct eval_tensor, g->node.len);
    s->leaf = arena_array(&s->run.arena, struct eval_tensor *, g->node.len);
    for (size_t v = 0; s->value && s->leaf && v < g->node.len; v++) {
        if (op_info(g->node.at[v].op)->family != FAMILY_leaf)
            continue;
        if (eval_tensor_new(&s->run.arena, &g->node.at[v].type, &s->value[v], &s->run.diag))
            return fail(t, "%s", s->run.diag.first.message);
        s->leaf[v] = &s->value[v];
    }
    return true;
}

static inline void special_close(struct special *s)
{
    run_close(&s->run);
}

/* The value of a leaf, to be filled; NULL, with a failure noted: there is no such leaf. */
static inline struct eval_tensor *special_leaf(struct test *t, struct special *s, const char *name)
{
    ir_value v;

    if (ir_find_leaf(ir_entry(s->run.mod), rlx_cstr(name), &v))
        return &s->value[v];
    fail(t, "no leaf is called %s", name);
    return NULL;
}

static inline bool special_run(struct test *t, struct special *s)
{
    return run_graph(&s->run, s->leaf) == RLX_OK || fail(t, "%s", s->run.diag.first.message);
}

static inline double special_out(const struct special *s, size_t output, int64_t k)
{
    return eval_real(run_output(&s->run, output), k);
}

/* ---- numbers ------------------------------------------------------------------------------- */

static inline uint64_t dice(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* From lo up to hi, as an f32. */
static inline double real_between(uint64_t *state, double lo, double hi)
{
    return (double)(float)(lo + (hi - lo) * (double)dice(state) / 0x1p31);
}

static inline void fill_reals(struct eval_tensor *x, uint64_t seed, double lo, double hi)
{
    uint64_t state = seed * 77 + 1;

    for (int64_t k = 0; k < x->count; k++)
        eval_set(x, k, real_between(&state, lo, hi));
}

static inline void fill_bytes(struct eval_tensor *x, uint64_t seed)
{
    uint64_t state = seed * 77 + 1;

    for (int64_t k = 0; k < x->count; k++)
        x->at[k].i = (int64_t)(dice(&state) & 255);
}

#endif
