/* dim_eval.c: dims with numbers for their symbols: their value, and which number gives a value. */
#include <math.h>

#include "ir/dim_impl.h"

/* What symbols stand for: size[symbol], but `value` for the one symbol of a solve. */
struct env {
    const struct dim_table *t;
    const int64_t *size;
    size_t count;
    size_t symbol; /* SIZE_MAX: none */
    int64_t value;
};

enum outcome { VALUE, UNBOUND, OVERFLOW };

static enum outcome eval_poly(const struct env *e, const struct dim_poly *p, int64_t *out);

static enum outcome eval_atom(const struct env *e, uint32_t atom, int64_t *out)
{
    if (atom & ATOM_QUOTIENT) {
        const struct dim_quotient *q = &e->t->quotient.at[atom & ~ATOM_QUOTIENT];
        enum outcome o = eval_poly(e, &e->t->poly.at[q->poly], out);
        if (o == VALUE)
            *out = dim_floor(*out, q->by);
        return o;
    }
    if (atom == e->symbol)
        *out = e->value;
    else if (atom < e->count && e->size[atom] >= 0)
        *out = e->size[atom];
    else
        return UNBOUND;
    return VALUE;
}

/* A factor of 0 makes it 0, even if another one is too large to tell. */
static enum outcome eval_term(const struct env *e, const struct dim_term *term, int64_t *out)
{
    enum outcome worst = VALUE;
    int64_t product = term->coef;
    bool zero = false;

    for (uint32_t i = 0; i < term->degree; i++) {
        int64_t v;
        enum outcome o = eval_atom(e, term->atom[i], &v);
        if (o == UNBOUND)
            return UNBOUND;
        zero |= o == VALUE && v == 0;
        if (o == OVERFLOW || __builtin_mul_overflow(product, v, &product)) {
            worst = OVERFLOW;
            product = 1;
        }
    }
    *out = zero ? 0 : product;
    return zero ? VALUE : worst;
}

static enum outcome eval_poly(const struct env *e, const struct dim_poly *p, int64_t *out)
{
    enum outcome worst = VALUE;
    int64_t sum = 0;

    for (uint32_t i = 0; i < p->count; i++) {
        int64_t v = 0;
        enum outcome o = eval_term(e, &p->term[i], &v);
        if (o == UNBOUND)
            return UNBOUND;
        if (o == OVERFLOW || __builtin_add_overflow(sum, v, &sum)) {
            worst = OVERFLOW;
            sum = 0;
        }
    }
    *out = sum;
    return worst;
}

rlx_status dim_size(const struct dim_table *t, ir_dim d, const int64_t *size, size_t count,
                    int64_t *out, const char **why)
{
    const struct env e = {t, size, count, SIZE_MAX, 0};
    const struct dim_poly *p = dim_poly_of(t, d);
    int64_t v = d;

    if (d < 0 && !p) {
        *why = d == RLX_DIM_UNKNOWN ? "its size is unknown" : "it is not a size";
        return d == RLX_DIM_UNKNOWN ? RLX_ERROR_UNBOUND_DIM : RLX_ERROR_BINDING;
    }
    switch (p ? eval_poly(&e, p, &v) : VALUE) {
    case VALUE:
        if (v >= 0) {
            *out = v;
            return RLX_OK;
        }
        *why = "it is negative";
        return RLX_ERROR_BINDING;
    case UNBOUND: *why = "not all its symbols have a size"; return RLX_ERROR_UNBOUND_DIM;
    case OVERFLOW: break;
    }
    *why = "it is too large";
    return RLX_ERROR_LIMIT;
}

int64_t dim_eval(const struct dim_table *t, ir_dim d, const int64_t *size, size_t count,
                 const char **why)
{
    const char *unused;
    int64_t v;

    return dim_size(t, d, size, count, &v, why ? why : &unused) == RLX_OK ? v : -1;
}

/* ---- which symbols ------------------------------------------------------------------------- */

static bool poly_uses(const struct dim_table *t, const struct dim_poly *p, size_t symbol);

static bool term_uses(const struct dim_table *t, const struct dim_term *term, size_t symbol)
{
    for (uint32_t i = 0; i < term->degree; i++) {
        uint32_t atom = term->atom[i];
        if (atom & ATOM_QUOTIENT
                ? poly_uses(t, &t->poly.at[t->quotient.at[atom & ~ATOM_QUOTIENT].poly], symbol)
                : atom == symbol)
            return true;
    }
    return false;
}

static bool poly_uses(const struct dim_table *t, const struct dim_poly *p, size_t symbol)
{
    for (uint32_t i = 0; i < p->count; i++) {
        if (term_uses(t, &p->term[i], symbol))
            return true;
    }
    return false;
}

bool dim_symbol_is_used(const struct dim_table *t, size_t symbol)
{
    for (size_t i = 0; i < t->poly.len; i++) {
        if (poly_uses(t, &t->poly.at[i], symbol))
            return true;
    }
    return false;
}

bool dim_uses(const struct dim_table *t, ir_dim d, size_t symbol)
{
    const struct dim_poly *p = dim_poly_of(t, d);

    return p && poly_uses(t, p, symbol);
}

/* Atoms are never negative and never fall, so only coefficients matter. */
bool dim_grows(const struct dim_table *t, ir_dim d)
{
    const struct dim_poly *p = dim_poly_of(t, d);

    for (uint32_t i = 0; p && i < p->count; i++)
        if (p->term[i].degree && p->term[i].coef < 0)
            return false;
    return true;
}

struct unbound {
    const struct dim_table *t;
    const int64_t *size;
    size_t count;
    size_t *out;
    size_t len, max;
};

static void collect_unbound(struct unbound *u, const struct dim_poly *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        for (uint32_t k = 0; k < p->term[i].degree; k++) {
            uint32_t atom = p->term[i].atom[k];
            bool seen = atom < u->count && u->size[atom] >= 0;
            if (atom & ATOM_QUOTIENT) {
                collect_unbound(u, &u->t->poly.at[u->t->quotient.at[atom & ~ATOM_QUOTIENT].poly]);
                continue;
            }
            for (size_t j = 0; j < u->len && !seen; j++)
                seen = u->out[j] == atom;
            if (!seen && u->len < u->max)
                u->out[u->len++] = atom;
        }
    }
}

size_t dim_unbound(const struct dim_table *t, ir_dim d, const int64_t *size, size_t count,
                   size_t *out, size_t max)
{
    struct unbound u = {.t = t, .size = size, .count = count, .max = max};
    const struct dim_poly *p = dim_poly_of(t, d);

    u.out = out;
    if (p)
        collect_unbound(&u, p);
    return u.len;
}

/* ---- solving ------------------------------------------------------------------------------- */

/* The smallest x that gives n when the expression never falls (rising) or never rises as x grows.
 * What overflows lies beyond n on the far side. */
static bool solve_monotone(struct env *e, const struct dim_poly *p, int64_t n, bool rising,
                           int64_t *out)
{
    int64_t low = 0, high = INT64_MAX, v;

    while (low < high) {
        e->value = low + (high - low) / 2;
        enum outcome o = eval_poly(e, p, &v);
        bool reached = o == OVERFLOW || (rising ? v >= n : v <= n);
        if (reached)
            high = e->value;
        else
            low = e->value + 1;
    }
    e->value = low;
    *out = low;
    return eval_poly(e, p, &v) == VALUE && v == n;
}

/* The expression as slope * x + offset, give or take `off` for what is rounded down. */
struct line {
    bool straight; /* no products of x with itself */
    double slope, offset, off;
};

static struct line line_of(struct env *e, const struct dim_poly *p);

static struct line line_of_term(struct env *e, const struct dim_term *term)
{
    struct line r = {.straight = true, .offset = (double)term->coef};
    bool used = false;

    for (uint32_t i = 0; i < term->degree; i++) {
        uint32_t atom = term->atom[i];
        const struct dim_term alone = {.coef = 1, .degree = 1, .atom = {atom}};
        int64_t v = 0;
        if (!term_uses(e->t, &alone, e->symbol)) {
            if (eval_atom(e, atom, &v) != VALUE)
                r.straight = false;
            double by = (double)v;
            r = (struct line){r.straight, r.slope * by, r.offset * by, r.off * by};
            continue;
        }
        struct line x = {.straight = true, .slope = 1};
        if (atom & ATOM_QUOTIENT) {
            const struct dim_quotient *q = &e->t->quotient.at[atom & ~ATOM_QUOTIENT];
            x = line_of(e, &e->t->poly.at[q->poly]);
            double by = (double)q->by;
            x = (struct line){x.straight, x.slope / by, x.offset / by, x.off / by + 1};
        }
        double by = r.offset; /* a number so far, as x came once */
        r = (struct line){x.straight && !used, x.slope * by, x.offset * by, fabs(x.off * by)};
        used = true;
    }
    return r;
}

static struct line line_of(struct env *e, const struct dim_poly *p)
{
    struct line r = {.straight = true};

    for (uint32_t i = 0; i < p->count; i++) {
        struct line x = line_of_term(e, &p->term[i]);
        r = (struct line){r.straight && x.straight, r.slope + x.slope, r.offset + x.offset,
                          r.off + fabs(x.off)};
    }
    return r;
}

/* Terms of both signs, such as x - x/2: try every x that may give n, in turn. */
static bool solve_search(struct env *e, const struct dim_poly *p, int64_t n, int64_t *out)
{
    enum { MAX_TRIES = 1 << 16 };
    struct line line = line_of(e, p);
    double first = 0, last = MAX_TRIES;

    if (line.straight && line.slope != 0) {
        double middle = ((double)n - line.offset) / line.slope;
        double spread = line.off / fabs(line.slope) + 2 + fabs(middle) * 1e-12;
        first = floor(middle - spread);
        last = ceil(middle + spread);
    }
    if (!(last >= 0 && first < 0x1p62))
        return false;
    int64_t x = first > 0 ? (int64_t)first : 0;
    int64_t end = last < 0x1p62 ? (int64_t)last : INT64_MAX;
    for (int tries = 0; tries <= MAX_TRIES && x <= end; tries++, x++) {
        int64_t v;
        e->value = x;
        if (eval_poly(e, p, &v) == VALUE && v == n) {
            *out = x;
            return true;
        }
    }
    return false;
}

bool dim_solve(const struct dim_table *t, ir_dim d, int64_t n, const int64_t *size, size_t count,
               size_t symbol, int64_t *out)
{
    struct env e = {t, size, count, symbol, 0};
    const struct dim_poly *p = dim_poly_of(t, d);
    bool rises = false, falls = false;
    int64_t x, far;

    if (!p || n < 0 || !poly_uses(t, p, symbol) || eval_poly(&e, p, &far) == UNBOUND)
        return false;
    for (uint32_t i = 0; i < p->count; i++) {
        if (!term_uses(t, &p->term[i], symbol))
            continue;
        rises |= p->term[i].coef > 0;
        falls |= p->term[i].coef < 0;
    }
    bool found = rises && falls ? solve_search(&e, p, n, &x) : solve_monotone(&e, p, n, rises, &x);
    if (!found)
        return false;
    /* A factor of 0 beside the symbol: every x would do, so none is meant. */
    e.value = INT64_MAX;
    if (eval_poly(&e, p, &far) == VALUE && far == n)
        return false;
    *out = x;
    return true;
}
