/* dim_impl.h: how the dim table keeps its expressions. For the dim*.c files only.
 *
 * A poly is a sorted list of terms, the highest degree first and the constant last; a term is a
 * coefficient and a sorted list of atoms, an atom being listed once per power:
 *
 *     2*s*s + 3*t - 1     =     { 2, [s s] }  { 3, [t] }  { -1, [] }
 *
 * An atom is the number of a symbol, or ATOM_QUOTIENT and the number of a quotient: a poly divided
 * by a constant and rounded down. The poly of a quotient has only coefficients from 0 to by - 1,
 * the constant too: the rest stands outside of it. So every atom is >= 0 and never falls when a
 * symbol grows, which dim_solve relies on. */
#ifndef IR_DIM_IMPL_H
#define IR_DIM_IMPL_H

#include "ir/dim.h"

/* What an expression may have at most; honest ones come nowhere near. */
enum {
    DIM_MAX_TERMS = 64,
    DIM_MAX_DEGREE = 16,
    DIM_MAX_NESTING = 16, /* quotients within quotients */
    DIM_MAX_SIZE = 1024   /* terms and atoms when it is written out: bounds every walk over it */
};

/* Handles begin well below the small negative numbers that callers pass by mistake. */
#define DIM_FIRST_HANDLE INT64_C(-65536)
#define ATOM_QUOTIENT 0x80000000u

struct dim_term {
    int64_t coef; /* never 0 */
    uint32_t degree;
    uint32_t atom[DIM_MAX_DEGREE];
};

struct dim_poly {
    const struct dim_term *term;
    uint32_t count, nesting, size;
};

struct dim_quotient {
    uint32_t poly;
    int64_t by; /* >= 2 */
};

struct dim_symbol_info {
    rlx_str name; /* ptr NULL: a reserved gap */
    int64_t bound;
};

struct dim_table {
    const rlx_allocator *mem;
    struct arena arena; /* names and terms */
    VEC(struct dim_symbol_info) symbol;
    VEC(struct dim_poly) poly;
    VEC(struct dim_quotient) quotient;
    struct map by_name, by_terms, by_quotient;
    bool no_memory; /* something failed for want of it */
};

/* A poly being worked on. Once failed it stays so. */
struct dim_sum {
    bool failed;
    uint32_t count;
    struct dim_term term[DIM_MAX_TERMS];
};

/* The poly behind a handle; NULL: a constant, or no handle of this table. */
const struct dim_poly *dim_poly_of(const struct dim_table *t, ir_dim d);
/* Where a term of those atoms stands: < 0 before, 0 the same monomial, > 0 after. */
int dim_term_order(const struct dim_table *t, const struct dim_term *a, const struct dim_term *b);
int dim_atom_order(const struct dim_table *t, uint32_t a, uint32_t b);
/* sum += scale * term */
void dim_sum_add(const struct dim_table *t, struct dim_sum *sum, const struct dim_term *term,
                 int64_t scale);
/* The dim of that sum, RLX_DIM_FAILED if there is none. */
ir_dim dim_intern(struct dim_table *t, const struct dim_sum *sum);
/* The atom of a poly, not a constant, divided by `by`; false: a limit, or no memory. */
bool dim_intern_quotient(struct dim_table *t, const struct dim_sum *sum, int64_t by,
                         uint32_t *atom);

static inline int64_t dim_floor(int64_t a, int64_t by) /* by >= 1 */
{
    return a / by - (a % by < 0);
}

#endif
