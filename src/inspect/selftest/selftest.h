/* selftest.h: the self-test's parts.
 *
 *     selftest_cases.def   what is tried: ops, dtypes, operand types, attributes, values
 *     selftest_rows.c      that table, and what its words mean
 *     selftest_values.c    the numbers that go in
 *     selftest_compare.c   how far a result may be from its definition (ops-core.md 22)
 *     selftest_terms.c     how many terms an element of a sum has
 *     selftest_undecided.c where rounding may decide which of several answers is given
 *     selftest_factors.c   factors of matrices, which are not unique
 *     selftest.c           each case through ir/eval and through the device */
#ifndef INSPECT_SELFTEST_H
#define INSPECT_SELFTEST_H

#include "ir/eval/eval.h"
#include "ir/graph.h"

/* How values are drawn. A case names one profile or several ("plain nasty"). */
enum value_profile {
    VALUES_PLAIN,   /* floats in [-2, 2), small integers */
    VALUES_WIDE,    /* floats over many magnitudes, integers of any bits */
    VALUES_NASTY,   /* zeros of both signs, NaN, Inf, the largest, the smallest, ties */
    VALUES_SPECIAL, /* plain, with NaN and Inf here and there: for sums */
    VALUES_COUNT
};
const char *profile_name(enum value_profile p);

/* What an operand holds besides its profile: words after a colon in its type. */
enum value_kind {
    KIND_ANY,
    KIND_INDEX,    /* :index=N  integers from -1 to N, out of range at both ends */
    KIND_VALID,    /* :valid=N  integers from 0 to N-1 */
    KIND_POSITIVE, /* :positive in (0.1, 2) */
    KIND_UNIT,     /* :unit     in [-1, 1) */
    KIND_SPD,      /* :spd      a well-conditioned symmetric positive definite matrix */
    KIND_TRIANGLE, /* :triangle a matrix with a strong diagonal */
    KIND_DISTINCT, /* :distinct a permutation: no ties */
    KIND_BYTES,    /* :bytes    any bits of an integer type */
    KIND_LOW_RANK, /* :lowrank=N  a matrix of that rank, of small integers */
    KIND_REPEATED, /* :repeated=N a matrix of zeros, with N different numbers on its diagonal */
    KIND_LOG,      /* :log      in [-3, -0.5): logarithms of lengths below 1 */
    KIND_TURN,     /* :turn     unit quaternions along the last axis */
    KIND_CAMERA,   /* :camera   the meta of a splat scene, looking at the origin */
    KIND_SMALL,    /* :small    in (0.001, 0.02) */
    KIND_LAYER,    /* :layer    weights that leave the size of what they are multiplied with about
                    *           as it is: 1 over the root of the last extent, at most */
    KIND_PACKED    /* :packed=S u8: blocks of scheme S whose scales make weights of about 1; for
                    *           nvfp4_block, its scales */
};
struct value_spec {
    enum value_kind kind;
    int64_t n; /* KIND_PACKED: the scheme */
};

/* A row of the table, from 0 on; NULL: there are no more.
 * CASE(ops, dtypes, operands, attributes, profiles): T in an operand is each dtype in turn.
 * GRAPH_CASE(op, profiles, text): a whole graph, for ops that need sub-graphs: its dtypes are NULL,
 * and its text is in operands. */
struct case_row {
    const char *ops, *dtypes, *operands, *attrs, *profiles;
};
const struct case_row *selftest_row(size_t i);
/* Where the numbers of one case come from: what the row says of it, and the user's seed. The row's
 * place in the table does not enter, so rows that come and go leave the others' numbers alone. */
uint64_t selftest_seed(const struct case_row *row, const char *op, const char *dtype,
                       enum value_profile profile, uint64_t seed);
/* The next of some words with spaces between them; empty: there are no more. */
rlx_str selftest_word(rlx_str *rest);
bool selftest_has_word(const char *list, const char *word);
/* One operand of a row: its type with T replaced, what it holds, and whether it is a state. */
struct case_operand {
    rlx_str dtype, shape;
    struct value_spec spec;
    bool state;
};
bool selftest_operand(rlx_str *rest, const char *dtype, struct case_operand *out);

/* Fill a tensor with the numbers of this seed; already rounded to its dtype. */
void selftest_fill(struct eval_tensor *t, const struct value_spec *spec, enum value_profile profile,
                   uint64_t seed);

/* Numbers below the normal ones of f32 become zeros, as GPUs may make them (ops-core.md 1.6). */
void selftest_flush(struct eval_tensor *t);

struct comparison {
    double worst;     /* error as a multiple of what is allowed */
    int64_t position; /* of the worst; -1: all equal */
    double got, want;
    bool ok;
};
/* want: unrounded. abs_want: the op on absolute values, for sums; the largest |v| throughout, for
 * attention; may be NULL. */
void selftest_compare(const struct ir_graph *g, const struct ir_node *n,
                      const struct eval_tensor *want, const struct eval_tensor *abs_want,
                      const struct eval_tensor *got, struct comparison *out);
/* What each element of such a result may be off: `out` has want->count of them. */
void selftest_allowed(const struct ir_graph *g, const struct ir_node *n,
                      const struct eval_tensor *want, const struct eval_tensor *abs_want,
                      double *out);
/* How many terms go into one element of the result, where its tolerance grows with them; 1 at
 * least. */
double selftest_terms(const struct ir_graph *g, const struct ir_node *n);
/* Where that comparison failed: how many ways there are to read the definition of this op when
 * numbers that it compares are within rounding of each other; 0: just the one. */
int selftest_variants(rlx_op op);
/* A node as it is to be evaluated for that variant. */
void selftest_vary(const struct ir_graph *g, struct ir_node *n, int variant);
/* want becomes the nearest to got that it may be by that variant, which gave `other`. */
rlx_status selftest_settle(const struct ir_node *n, struct eval_tensor *want,
                           const struct eval_tensor *other, const struct eval_tensor *got,
                           struct arena *arena, struct diag *d);
/* For a decomposition of a, where that comparison failed: *out becomes a verdict in proportion to
 * the matrix, and by what factors are for where they are not unique. Other ops: nothing happens. */
rlx_status selftest_compare_factors(const struct ir_node *n, const struct eval_tensor *a,
                                    const struct eval_tensor *want, const struct eval_tensor *got,
                                    struct arena *arena, struct diag *d, struct comparison *out);
/* Does the tolerance of this op need abs_want? */
bool selftest_wants_abs(rlx_op op);

#endif
