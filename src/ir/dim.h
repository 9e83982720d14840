/* dim.h: sizes that may hold symbols, in a canonical form, so that equal sizes are equal handles.
 *
 * A dim is a polynomial with integer coefficients over atoms; an atom is a symbol or a floor
 * division of such a polynomial by a constant. Constants are the dim itself (>= 0 is that size);
 * everything else is a handle into the module's table, where each form stands once:
 *
 *     past+1     batch*seq     (len-3)/2+1
 *
 * A negative constant is only ever part of an expression. Every operation gives RLX_DIM_FAILED when
 * a coefficient overflows 64 bits or memory runs out, and passes on a failed operand; with an
 * unknown operand the result is unknown. Expressions are bounded too: 64 terms at most, of degree
 * 16, with quotients nested 16 deep. */
#ifndef IR_DIM_H
#define IR_DIM_H

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "ir/type.h"

struct dim_table; /* in dim.c */

enum { SYMBOL_BATCH, SYMBOL_SEQ, SYMBOL_ROWS, SYMBOL_PAST_SEQ, SYMBOL_FIRST_USER = 16 };

struct dim_table *dim_table_create(const rlx_allocator *mem); /* NULL: no memory */
struct dim_table *dim_table_copy(const struct dim_table *t, const rlx_allocator *mem);
void dim_table_destroy(struct dim_table *t);
/* Has an operation on the table ever failed for want of memory? Else RLX_DIM_FAILED means that the
 * expression has no size or is too large. */
bool dim_no_memory(const struct dim_table *t);

/* The symbol of that name, made if it is new. Names are [A-Za-z_][A-Za-z0-9_]*. */
ir_dim dim_symbol(struct dim_table *t, rlx_str name);
/* Symbols by number, 0 .. count-1; the reserved ones exist from the start, unused until asked for.
 */
size_t dim_symbol_count(const struct dim_table *t);
rlx_str dim_symbol_name(const struct dim_table *t, size_t symbol); /* "none": a reserved gap */
/* Is it part of any expression? */
bool dim_symbol_is_used(const struct dim_table *t, size_t symbol);
bool dim_find_symbol(const struct dim_table *t, rlx_str name, size_t *symbol);
int64_t dim_symbol_bound(const struct dim_table *t, size_t symbol); /* 0: none declared */
void dim_set_bound(struct dim_table *t, size_t symbol, int64_t upper);

ir_dim dim_add(struct dim_table *t, ir_dim a, ir_dim b);
ir_dim dim_sub(struct dim_table *t, ir_dim a, ir_dim b); /* constants: fails below 0 */
ir_dim dim_mul(struct dim_table *t, ir_dim a, ir_dim b);
ir_dim dim_floor_div(struct dim_table *t, ir_dim a, int64_t by); /* by >= 1 */
/* a / b where no binding leaves a remainder (common symbols cancel); else RLX_DIM_FAILED. */
ir_dim dim_exact_div(struct dim_table *t, ir_dim a, ir_dim b);

/* size[symbol], -1 where it is not bound. Gives the size; -1: not all bound, or negative, or
 * overflow (*why says which). */
int64_t dim_eval(const struct dim_table *t, ir_dim d, const int64_t *size, size_t count,
                 const char **why);
/* The same as a status: UNBOUND_DIM, BINDING (negative) or LIMIT (overflow), and *why. */
rlx_status dim_size(const struct dim_table *t, ir_dim d, const int64_t *size, size_t count,
                    int64_t *out, const char **why);
/* Does it hold that symbol? And: the symbols it holds that size does not bind, at most max. */
bool dim_uses(const struct dim_table *t, ir_dim d, size_t symbol);
size_t dim_unbound(const struct dim_table *t, ir_dim d, const int64_t *size, size_t count,
                   size_t *out, size_t max);
/* The one non-negative value of the only unbound symbol in d that makes d equal n; false: none.
 * Linear expressions and pure powers are solved, floor divisions by search over the interval that
 * can give n, the smallest solution; several solutions of a floor division: the smallest. */
bool dim_solve(const struct dim_table *t, ir_dim d, int64_t n, const int64_t *size, size_t count,
               size_t symbol, int64_t *out);

/* The same with sizes for those symbols that have one; RLX_DIM_FAILED: overflow, or no
 * memory. */
ir_dim dim_substitute(struct dim_table *t, ir_dim d, const int64_t *size, size_t count);
/* Does it never fall when a symbol grows? Then its value at the symbols' bounds is its largest. */
bool dim_grows(const struct dim_table *t, ir_dim d);

/* What an expression is made of, for writing it in another language: terms that are added up, each
 * a number times atoms. An atom is a symbol, or `of` divided by `by` and rounded down, where `of`
 * is never below 0. */
#define DIM_MAX_ATOMS 16
struct dim_atom {
    bool is_symbol;
    size_t symbol;
    ir_dim of;
    int64_t by;
};
size_t dim_term_count(const struct dim_table *t, ir_dim d); /* 0: a plain size, or no expression */
/* The number in front of term i, and its atoms. */
int64_t dim_term_at(const struct dim_table *t, ir_dim d, size_t i,
                    struct dim_atom atom[DIM_MAX_ATOMS], size_t *atoms);

/* Canonical text: terms by degree, then by symbol; `?` for unknown, `-1` for infer. */
void dim_print(const struct dim_table *t, ir_dim d, struct text *out);
/* The same expression in another table (symbols by name). */
ir_dim dim_import(struct dim_table *to, const struct dim_table *from, ir_dim d);

#endif
