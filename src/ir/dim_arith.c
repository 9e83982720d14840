/* dim_arith.c: sums, products and quotients of dims, brought into their canonical form. */
#include "ir/dim_impl.h"

/* ---- operands ------------------------------------------------------------------------------ */

/* true: the result is decided by an operand that is not a size; it is in *out. */
static bool special(const struct dim_table *t, ir_dim a, ir_dim b, ir_dim *out)
{
    const ir_dim operand[] = {a, b};
    bool unknown = false;

    for (int i = 0; i < 2; i++) {
        ir_dim d = operand[i];
        unknown |= d == RLX_DIM_UNKNOWN;
        if (d < 0 && d != RLX_DIM_UNKNOWN && !dim_poly_of(t, d)) {
            *out = RLX_DIM_FAILED;
            return true;
        }
    }
    *out = RLX_DIM_UNKNOWN;
    return unknown;
}

static void add_scaled(const struct dim_table *t, struct dim_sum *sum, ir_dim d, int64_t scale)
{
    const struct dim_poly *p = dim_poly_of(t, d);
    const struct dim_term constant = {.coef = d};

    if (!p) {
        dim_sum_add(t, sum, &constant, scale);
        return;
    }
    for (uint32_t i = 0; i < p->count; i++)
        dim_sum_add(t, sum, &p->term[i], scale);
}

/* out = a * b; false: too high a degree or too large a coefficient. */
static bool term_mul(const struct dim_table *t, const struct dim_term *a, const struct dim_term *b,
                     struct dim_term *out)
{
    struct dim_term r = {.degree = a->degree + b->degree};
    uint32_t i = 0, k = 0;

    if (r.degree > DIM_MAX_DEGREE || __builtin_mul_overflow(a->coef, b->coef, &r.coef))
        return false;
    while (i + k < r.degree) {
        bool first =
            k == b->degree || (i < a->degree && dim_atom_order(t, a->atom[i], b->atom[k]) <= 0);
        r.atom[i + k] = first ? a->atom[i] : b->atom[k];
        i += first;
        k += !first;
    }
    *out = r;
    return true;
}

/* out = a / b, if there is no remainder. */
static bool term_div(const struct dim_term *a, const struct dim_term *b, struct dim_term *out)
{
    struct dim_term r = {0};
    uint32_t k = 0;

    if ((a->coef == INT64_MIN && b->coef == -1) || a->coef % b->coef != 0)
        return false;
    r.coef = a->coef / b->coef;
    for (uint32_t i = 0; i < a->degree; i++) {
        if (k < b->degree && a->atom[i] == b->atom[k])
            k++;
        else
            r.atom[r.degree++] = a->atom[i];
    }
    *out = r;
    return k == b->degree;
}

/* sum += scale * a * b */
static void add_product(const struct dim_table *t, struct dim_sum *sum, const struct dim_term *a,
                        ir_dim b, int64_t scale)
{
    const struct dim_poly *p = dim_poly_of(t, b);
    const struct dim_term constant = {.coef = b};
    const struct dim_term *term = p ? p->term : &constant;
    uint32_t count = p ? p->count : 1;

    for (uint32_t i = 0; i < count && !sum->failed; i++) {
        struct dim_term product;
        if (term_mul(t, a, &term[i], &product))
            dim_sum_add(t, sum, &product, scale);
        else
            sum->failed = true;
    }
}

/* ---- + - * --------------------------------------------------------------------------------- */

ir_dim dim_add(struct dim_table *t, ir_dim a, ir_dim b)
{
    ir_dim r;

    if (a >= 0 && b >= 0)
        return __builtin_add_overflow(a, b, &r) ? RLX_DIM_FAILED : r;
    if (special(t, a, b, &r))
        return r;
    struct dim_sum sum = {0};
    add_scaled(t, &sum, a, 1);
    add_scaled(t, &sum, b, 1);
    return dim_intern(t, &sum);
}

ir_dim dim_sub(struct dim_table *t, ir_dim a, ir_dim b)
{
    ir_dim r;

    if (a >= 0 && b >= 0)
        return a < b ? RLX_DIM_FAILED : a - b;
    if (special(t, a, b, &r))
        return r;
    struct dim_sum sum = {0};
    add_scaled(t, &sum, a, 1);
    add_scaled(t, &sum, b, -1);
    return dim_intern(t, &sum);
}

ir_dim dim_mul(struct dim_table *t, ir_dim a, ir_dim b)
{
    ir_dim r;

    if (a >= 0 && b >= 0)
        return __builtin_mul_overflow(a, b, &r) ? RLX_DIM_FAILED : r;
    if (special(t, a, b, &r))
        return r;
    struct dim_sum sum = {0};
    if (a >= 0) {
        add_scaled(t, &sum, b, a);
        return dim_intern(t, &sum);
    }
    const struct dim_poly *p = dim_poly_of(t, a);
    for (uint32_t i = 0; i < p->count; i++)
        add_product(t, &sum, &p->term[i], b, 1);
    return dim_intern(t, &sum);
}

/* ---- division ------------------------------------------------------------------------------ */

/* p = by * whole + p, with coefficients 0 .. by - 1 left in p. */
static void split_whole(const struct dim_table *t, struct dim_sum *p, int64_t by,
                        struct dim_sum *whole)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < p->count; i++) {
        struct dim_term term = p->term[i];
        int64_t q = dim_floor(term.coef, by), rest = term.coef - q * by;
        if (q) {
            term.coef = q;
            dim_sum_add(t, whole, &term, 1);
        }
        term.coef = rest;
        if (rest)
            p->term[kept++] = term;
    }
    p->count = kept;
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* (g*x + c) / (g*by) = (x + c/g) / by, for coefficients >= 0. */
static void cancel_common(struct dim_sum *p, int64_t *by)
{
    int64_t g = *by;

    for (uint32_t i = 0; i < p->count; i++)
        g = p->term[i].degree ? gcd(g, p->term[i].coef) : g;
    *by /= g;
    for (uint32_t i = 0; i < p->count; i++)
        p->term[i].coef /= g;
    if (p->count && p->term[p->count - 1].coef == 0) /* the constant may be gone */
        p->count--;
}

/* (x/m + y) / by = (x + m*y) / (m*by): if p has just one quotient on its own, take it apart.
 * true: done, or p has failed. */
static bool unnest(const struct dim_table *t, struct dim_sum *p, int64_t *by)
{
    uint32_t found = p->count;

    for (uint32_t i = 0; i < p->count; i++) {
        const struct dim_term *term = &p->term[i];
        if (term->degree != 1 || term->coef != 1 || !(term->atom[0] & ATOM_QUOTIENT))
            continue;
        if (found != p->count)
            return false; /* which one first would be a matter of taste */
        found = i;
    }
    if (found == p->count)
        return false;
    const struct dim_quotient *q = &t->quotient.at[p->term[found].atom[0] & ~ATOM_QUOTIENT];
    const struct dim_poly *x = &t->poly.at[q->poly];
    struct dim_sum r = {0};
    for (uint32_t i = 0; i < p->count; i++) {
        if (i != found)
            dim_sum_add(t, &r, &p->term[i], q->by);
    }
    for (uint32_t i = 0; i < x->count; i++)
        dim_sum_add(t, &r, &x->term[i], 1);
    r.failed |= __builtin_mul_overflow(*by, q->by, by);
    *p = r;
    return true;
}

ir_dim dim_floor_div(struct dim_table *t, ir_dim a, int64_t by)
{
    ir_dim r;

    if (by < 1)
        return RLX_DIM_FAILED;
    if (a >= 0)
        return a / by;
    if (special(t, a, a, &r))
        return r;
    struct dim_sum p = {0}, whole = {0};
    add_scaled(t, &p, a, 1);
    do {
        split_whole(t, &p, by, &whole);
        cancel_common(&p, &by);
    } while (unnest(t, &p, &by) && !p.failed);
    if (p.failed)
        return RLX_DIM_FAILED;
    if (p.count && p.term[0].degree) { /* a constant left over is below by: 0 */
        struct dim_term quotient = {.coef = 1, .degree = 1};
        if (!dim_intern_quotient(t, &p, by, &quotient.atom[0]))
            return RLX_DIM_FAILED;
        dim_sum_add(t, &whole, &quotient, 1);
    }
    return dim_intern(t, &whole);
}

ir_dim dim_exact_div(struct dim_table *t, ir_dim a, ir_dim b)
{
    enum { MAX_STEPS = 4 * DIM_MAX_TERMS };
    ir_dim r;

    if (a >= 0 && b >= 0)
        return b == 0 || a % b ? RLX_DIM_FAILED : a / b;
    if (special(t, a, b, &r))
        return r;
    if (b == 0)
        return RLX_DIM_FAILED;
    /* Long division: the leading term goes first, and what is left has a smaller one. */
    const struct dim_poly *p = dim_poly_of(t, b);
    const struct dim_term constant = {.coef = b};
    const struct dim_term *lead = p ? p->term : &constant;
    struct dim_sum rest = {0}, quotient = {0};
    add_scaled(t, &rest, a, 1);
    for (int step = 0; rest.count && !rest.failed; step++) {
        struct dim_term q;
        if (step == MAX_STEPS || !term_div(&rest.term[0], lead, &q))
            return RLX_DIM_FAILED;
        dim_sum_add(t, &quotient, &q, 1);
        add_product(t, &rest, &q, b, -1);
    }
    return rest.failed ? RLX_DIM_FAILED : dim_intern(t, &quotient);
}

/* ---- into another table, with sizes for some symbols --------------------------------------- */

/* Where an expression is written again. from may be to itself. */
struct copying {
    struct dim_table *to;
    const struct dim_table *from;
    const int64_t *size; /* size[symbol], -1: it stays */
    size_t count;
};

static ir_dim copy_poly(const struct copying *c, struct dim_poly p);

static ir_dim copy_atom(const struct copying *c, uint32_t atom)
{
    if (atom & ATOM_QUOTIENT) {
        const struct dim_quotient q = c->from->quotient.at[atom & ~ATOM_QUOTIENT];
        return dim_floor_div(c->to, copy_poly(c, c->from->poly.at[q.poly]), q.by);
    }
    if (atom < c->count && c->size[atom] >= 0)
        return c->size[atom];
    return dim_symbol(c->to, c->from->symbol.at[atom].name);
}

/* p by value: the table it came from may grow meanwhile. Its terms stay where they are. */
static ir_dim copy_poly(const struct copying *c, struct dim_poly p)
{
    struct dim_sum sum = {0};

    for (uint32_t i = 0; i < p.count; i++) {
        const struct dim_term *term = &p.term[i];
        ir_dim product = 1;
        for (uint32_t k = 0; k < term->degree; k++)
            product = dim_mul(c->to, product, copy_atom(c, term->atom[k]));
        if (product == RLX_DIM_FAILED)
            return RLX_DIM_FAILED;
        add_scaled(c->to, &sum, product, term->coef);
    }
    return dim_intern(c->to, &sum);
}

ir_dim dim_import(struct dim_table *to, const struct dim_table *from, ir_dim d)
{
    const struct copying c = {.to = to, .from = from};
    const struct dim_poly *p = dim_poly_of(from, d);

    if (p)
        return copy_poly(&c, *p);
    return d >= 0 || d == RLX_DIM_UNKNOWN || d == RLX_DIM_INFER ? d : RLX_DIM_FAILED;
}

ir_dim dim_substitute(struct dim_table *t, ir_dim d, const int64_t *size, size_t count)
{
    const struct copying c = {.to = t, .from = t, .size = size, .count = count};
    const struct dim_poly *p = dim_poly_of(t, d);

    return p ? copy_poly(&c, *p) : d;
}
