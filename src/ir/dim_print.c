/* dim_print.c: dims as text that reads back as the same dim. */
#include <inttypes.h>

#include "ir/dim_impl.h"

static void print_poly(const struct dim_table *t, const struct dim_poly *p, int64_t constant,
                       struct text *out);

static int64_t constant_of(const struct dim_poly *p)
{
    const struct dim_term *last = &p->term[p->count - 1];

    return last->degree == 0 ? last->coef : 0;
}

/* x/by, with more inside: (x + by*more)/by */
static void print_quotient(const struct dim_table *t, uint32_t atom, int64_t more, struct text *out)
{
    const struct dim_quotient *q = &t->quotient.at[atom & ~ATOM_QUOTIENT];
    const struct dim_poly *p = &t->poly.at[q->poly];
    bool alone = p->count == 1; /* a product needs no parentheses: it is divided last */

    if (!alone)
        text_add(out, STR("("));
    print_poly(t, p, constant_of(p) + q->by * more, out);
    if (!alone)
        text_add(out, STR(")"));
    text_addf(out, "/%" PRId64, q->by);
}

static void print_atom(const struct dim_table *t, uint32_t atom, struct text *out)
{
    if (!(atom & ATOM_QUOTIENT)) {
        text_add(out, t->symbol.at[atom].name);
        return;
    }
    text_add(out, STR("("));
    print_quotient(t, atom, 0, out);
    text_add(out, STR(")"));
}

static void print_term(const struct dim_table *t, const struct dim_term *term, bool first,
                       struct text *out)
{
    uint64_t size = term->coef < 0 ? -(uint64_t)term->coef : (uint64_t)term->coef;
    bool number = size != 1 || term->degree == 0;

    if (term->coef < 0 || !first)
        text_add(out, term->coef < 0 ? STR("-") : STR("+"));
    if (number)
        text_addf(out, "%" PRIu64, size);
    if (term->degree == 1 && !number && (term->atom[0] & ATOM_QUOTIENT)) {
        print_quotient(t, term->atom[0], 0, out);
        return;
    }
    for (uint32_t i = 0; i < term->degree; i++) {
        if (number || i > 0)
            text_add(out, STR("*"));
        print_atom(t, term->atom[i], out);
    }
}

/* p with another constant term. */
static void print_poly(const struct dim_table *t, const struct dim_poly *p, int64_t constant,
                       struct text *out)
{
    const struct dim_term last = {.coef = constant};

    for (uint32_t i = 0; i < p->count && p->term[i].degree; i++)
        print_term(t, &p->term[i], i == 0, out);
    if (constant)
        print_term(t, &last, false, out);
}

/* (len+1)/2 - 1 reads better as (len-1)/2: if so, the quotient; else 0, which is not a quotient. */
static uint32_t joined(const struct dim_table *t, const struct dim_poly *p)
{
    const struct dim_term *term = p->term;
    int64_t inside;

    if (p->count != 2 || term->degree != 1 || term->coef != 1 || term[1].degree != 0 ||
        !(term->atom[0] & ATOM_QUOTIENT))
        return 0;
    const struct dim_quotient *q = &t->quotient.at[term->atom[0] & ~ATOM_QUOTIENT];
    int64_t own = constant_of(&t->poly.at[q->poly]);
    bool fits = own != 0 && !__builtin_mul_overflow(q->by, term[1].coef, &inside) &&
                !__builtin_add_overflow(own, inside, &inside);
    return fits ? term->atom[0] : 0;
}

void dim_print(const struct dim_table *t, ir_dim d, struct text *out)
{
    const struct dim_poly *p = dim_poly_of(t, d);

    if (d >= 0)
        text_addf(out, "%" PRId64, d);
    else if (p && joined(t, p))
        print_quotient(t, joined(t, p), p->term[1].coef, out);
    else if (p)
        print_poly(t, p, constant_of(p), out);
    else if (d == RLX_DIM_INFER)
        text_add(out, STR("-1"));
    else
        text_add(out, d == RLX_DIM_UNKNOWN ? STR("?") : STR("failed"));
}
