/* dim.c: the table of symbols and expressions, in which each form stands once. */
#include "ir/dim.h"

#include <string.h>

#include "ir/dim_impl.h"

/* ---- symbols ------------------------------------------------------------------------------- */

static bool name_is(const void *owner, uint32_t value, const void *key)
{
    const struct dim_table *t = owner;
    const rlx_str *name = key;

    return str_eq(t->symbol.at[value].name, *name);
}

static bool is_name(rlx_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return s.len > 0;
}

static bool no_memory(struct dim_table *t)
{
    t->no_memory = true;
    return false;
}

bool dim_no_memory(const struct dim_table *t)
{
    return t->no_memory;
}

/* A symbol at the end of the list; name NULL: a gap. */
static bool add_symbol(struct dim_table *t, rlx_str name)
{
    struct dim_symbol_info info = {.name = {NULL, 0}};

    if (t->symbol.len >= ATOM_QUOTIENT)
        return false;
    if (!vec_room(t->mem, &t->symbol))
        return no_memory(t);
    if (name.ptr) {
        info.name = arena_str(&t->arena, name);
        if (!info.name.ptr ||
            !map_add(&t->by_name, hash_bytes(name.ptr, name.len), (uint32_t)t->symbol.len))
            return no_memory(t);
    }
    t->symbol.at[t->symbol.len++] = info;
    return true;
}

static struct dim_table *create_empty(const rlx_allocator *mem)
{
    struct dim_table *t = mem_alloc(mem, sizeof *t);

    if (!t)
        return NULL;
    t->mem = mem;
    arena_init(&t->arena, mem);
    map_init(&t->by_name, mem);
    map_init(&t->by_terms, mem);
    map_init(&t->by_quotient, mem);
    return t;
}

struct dim_table *dim_table_create(const rlx_allocator *mem)
{
    static const char *const reserved[SYMBOL_FIRST_USER] = {
        [SYMBOL_BATCH] = "batch",
        [SYMBOL_SEQ] = "seq",
        [SYMBOL_ROWS] = "rows",
        [SYMBOL_PAST_SEQ] = "past_seq",
    };
    struct dim_table *t = create_empty(mem);

    for (size_t i = 0; t && i < SYMBOL_FIRST_USER; i++) {
        if (!add_symbol(t, rlx_cstr(reserved[i]))) {
            dim_table_destroy(t);
            return NULL;
        }
    }
    return t;
}

void dim_table_destroy(struct dim_table *t)
{
    if (!t)
        return;
    vec_free(t->mem, &t->symbol);
    vec_free(t->mem, &t->poly);
    vec_free(t->mem, &t->quotient);
    map_free(&t->by_name);
    map_free(&t->by_terms);
    map_free(&t->by_quotient);
    arena_free(&t->arena);
    mem_free(t->mem, t, sizeof *t);
}

size_t dim_symbol_count(const struct dim_table *t)
{
    return t->symbol.len;
}

rlx_str dim_symbol_name(const struct dim_table *t, size_t symbol)
{
    return symbol < t->symbol.len ? t->symbol.at[symbol].name : (rlx_str){NULL, 0};
}

bool dim_find_symbol(const struct dim_table *t, rlx_str name, size_t *symbol)
{
    uint32_t found;

    if (!map_find(&t->by_name, hash_bytes(name.ptr, name.len), name_is, t, &name, &found))
        return false;
    *symbol = found;
    return true;
}

int64_t dim_symbol_bound(const struct dim_table *t, size_t symbol)
{
    return symbol < t->symbol.len ? t->symbol.at[symbol].bound : 0;
}

void dim_set_bound(struct dim_table *t, size_t symbol, int64_t upper)
{
    if (symbol < t->symbol.len)
        t->symbol.at[symbol].bound = upper > 0 ? upper : 0;
}

ir_dim dim_symbol(struct dim_table *t, rlx_str name)
{
    struct dim_sum sum = {.count = 1, .term[0] = {.coef = 1, .degree = 1}};
    size_t symbol;

    if (!is_name(name))
        return RLX_DIM_FAILED;
    if (!dim_find_symbol(t, name, &symbol)) {
        symbol = t->symbol.len;
        if (!add_symbol(t, name))
            return RLX_DIM_FAILED;
    }
    sum.term[0].atom[0] = (uint32_t)symbol;
    return dim_intern(t, &sum);
}

/* ---- order --------------------------------------------------------------------------------- */

const struct dim_poly *dim_poly_of(const struct dim_table *t, ir_dim d)
{
    if (d > DIM_FIRST_HANDLE || d <= DIM_FIRST_HANDLE - (int64_t)t->poly.len)
        return NULL;
    return &t->poly.at[DIM_FIRST_HANDLE - d];
}

_Static_assert((int)DIM_MAX_ATOMS >= (int)DIM_MAX_DEGREE, "a term fits");

size_t dim_term_count(const struct dim_table *t, ir_dim d)
{
    const struct dim_poly *p = dim_poly_of(t, d);

    return p ? p->count : 0;
}

int64_t dim_term_at(const struct dim_table *t, ir_dim d, size_t i,
                    struct dim_atom atom[DIM_MAX_ATOMS], size_t *atoms)
{
    const struct dim_term *term = &dim_poly_of(t, d)->term[i];

    *atoms = term->degree;
    for (uint32_t k = 0; k < term->degree; k++) {
        uint32_t a = term->atom[k];
        if (!(a & ATOM_QUOTIENT)) {
            atom[k] = (struct dim_atom){.is_symbol = true, .symbol = a};
            continue;
        }
        const struct dim_quotient *q = &t->quotient.at[a & ~ATOM_QUOTIENT];
        atom[k] = (struct dim_atom){.of = DIM_FIRST_HANDLE - (ir_dim)q->poly, .by = q->by};
    }
    return term->coef;
}

static int poly_order(const struct dim_table *t, uint32_t a, uint32_t b)
{
    const struct dim_poly *p = &t->poly.at[a], *q = &t->poly.at[b];

    for (uint32_t i = 0; i < p->count && i < q->count; i++) {
        int order = dim_term_order(t, &p->term[i], &q->term[i]);
        if (order)
            return order;
        if (p->term[i].coef != q->term[i].coef)
            return p->term[i].coef < q->term[i].coef ? -1 : 1;
    }
    return p->count < q->count ? -1 : p->count > q->count;
}

/* By what it says, not by when it was made, so that every table writes an expression alike. Symbols
 * first. Equal atoms are the same number, so this goes down one path only. */
int dim_atom_order(const struct dim_table *t, uint32_t a, uint32_t b)
{
    if (a == b)
        return 0;
    if (!(a & b & ATOM_QUOTIENT))
        return a < b ? -1 : 1;
    const struct dim_quotient *p = &t->quotient.at[a & ~ATOM_QUOTIENT];
    const struct dim_quotient *q = &t->quotient.at[b & ~ATOM_QUOTIENT];
    if (p->by != q->by)
        return p->by < q->by ? -1 : 1;
    return poly_order(t, p->poly, q->poly);
}

int dim_term_order(const struct dim_table *t, const struct dim_term *a, const struct dim_term *b)
{
    if (a->degree != b->degree)
        return a->degree > b->degree ? -1 : 1;
    for (uint32_t i = 0; i < a->degree; i++) {
        int order = dim_atom_order(t, a->atom[i], b->atom[i]);
        if (order)
            return order;
    }
    return 0;
}

void dim_sum_add(const struct dim_table *t, struct dim_sum *sum, const struct dim_term *term,
                 int64_t scale)
{
    struct dim_term add = *term;
    uint32_t at = 0;
    int order = 1;

    if (sum->failed || __builtin_mul_overflow(term->coef, scale, &add.coef)) {
        sum->failed = true;
        return;
    }
    if (add.coef == 0)
        return;
    while (at < sum->count && (order = dim_term_order(t, &sum->term[at], &add)) < 0)
        at++;
    if (at < sum->count && order == 0) {
        struct dim_term *same = &sum->term[at];
        if (__builtin_add_overflow(same->coef, add.coef, &same->coef))
            sum->failed = true;
        else if (same->coef == 0)
            memmove(same, same + 1, (--sum->count - at) * sizeof *same);
        return;
    }
    if (sum->count == DIM_MAX_TERMS) {
        sum->failed = true;
        return;
    }
    memmove(&sum->term[at + 1], &sum->term[at], (sum->count++ - at) * sizeof add);
    sum->term[at] = add;
}

/* ---- each form once ------------------------------------------------------------------------ */

static uint64_t hash_terms(const struct dim_sum *sum)
{
    uint64_t h = sum->count;

    for (uint32_t i = 0; i < sum->count; i++) {
        const struct dim_term *term = &sum->term[i];
        h = hash_mix(h, (uint64_t)term->coef);
        for (uint32_t k = 0; k < term->degree; k++)
            h = hash_mix(h, term->atom[k]);
        h = hash_mix(h, term->degree);
    }
    return h;
}

static bool terms_are(const void *owner, uint32_t value, const void *key)
{
    const struct dim_table *t = owner;
    const struct dim_poly *p = &t->poly.at[value];
    const struct dim_sum *sum = key;

    if (p->count != sum->count)
        return false;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct dim_term *a = &p->term[i], *b = &sum->term[i];
        if (a->coef != b->coef || a->degree != b->degree ||
            memcmp(a->atom, b->atom, a->degree * sizeof *a->atom) != 0)
            return false;
    }
    return true;
}

/* How large it is written out; false: larger than we take. */
static bool measure(const struct dim_table *t, const struct dim_sum *sum, struct dim_poly *out)
{
    uint32_t size = 0, nesting = 0;

    for (uint32_t i = 0; i < sum->count; i++) {
        size += 1 + sum->term[i].degree;
        for (uint32_t k = 0; k < sum->term[i].degree; k++) {
            uint32_t atom = sum->term[i].atom[k];
            if (!(atom & ATOM_QUOTIENT))
                continue;
            const struct dim_poly *p = &t->poly.at[t->quotient.at[atom & ~ATOM_QUOTIENT].poly];
            size += p->size; /* at most 64 * 16 * 1024 in all */
            nesting = p->nesting + 1 > nesting ? p->nesting + 1 : nesting;
        }
    }
    out->size = size;
    out->nesting = nesting;
    return size <= DIM_MAX_SIZE && nesting <= DIM_MAX_NESTING;
}

static bool intern_poly(struct dim_table *t, const struct dim_sum *sum, uint32_t *out)
{
    struct dim_poly p = {.count = sum->count};
    uint64_t hash = hash_terms(sum);

    if (map_find(&t->by_terms, hash, terms_are, t, sum, out))
        return true;
    if (!measure(t, sum, &p) || t->poly.len >= INT32_MAX)
        return false;
    struct dim_term *term = arena_array(&t->arena, struct dim_term, sum->count);
    if (!term || !vec_room(t->mem, &t->poly) || !map_add(&t->by_terms, hash, (uint32_t)t->poly.len))
        return no_memory(t);
    memcpy(term, sum->term, sum->count * sizeof *term);
    p.term = term;
    *out = (uint32_t)t->poly.len;
    t->poly.at[t->poly.len++] = p;
    return true;
}

ir_dim dim_intern(struct dim_table *t, const struct dim_sum *sum)
{
    uint32_t poly;

    if (sum->failed)
        return RLX_DIM_FAILED;
    if (sum->count == 0)
        return 0;
    if (sum->term[0].degree == 0)
        return sum->term[0].coef > 0 ? sum->term[0].coef : RLX_DIM_FAILED;
    return intern_poly(t, sum, &poly) ? DIM_FIRST_HANDLE - (int64_t)poly : RLX_DIM_FAILED;
}

static bool quotient_is(const void *owner, uint32_t value, const void *key)
{
    const struct dim_table *t = owner;
    const struct dim_quotient *q = key;

    return t->quotient.at[value].poly == q->poly && t->quotient.at[value].by == q->by;
}

bool dim_intern_quotient(struct dim_table *t, const struct dim_sum *sum, int64_t by, uint32_t *atom)
{
    struct dim_quotient q = {.by = by};
    uint32_t number;

    if (sum->failed || !intern_poly(t, sum, &q.poly))
        return false;
    uint64_t hash = hash_mix(q.poly, (uint64_t)by);
    if (!map_find(&t->by_quotient, hash, quotient_is, t, &q, &number)) {
        number = (uint32_t)t->quotient.len;
        if (t->quotient.len >= INT32_MAX)
            return false;
        if (!vec_room(t->mem, &t->quotient) || !map_add(&t->by_quotient, hash, number))
            return no_memory(t);
        t->quotient.at[t->quotient.len++] = q;
    }
    *atom = number | ATOM_QUOTIENT;
    return true;
}

/* ---- a copy -------------------------------------------------------------------------------- */

static bool copy_polys(struct dim_table *to, const struct dim_table *from)
{
    /* Forms are made in order, an inner one before the outer, so the numbers are the same:
     * quotients first, as polys only refer to them by number. */
    struct dim_sum sum = {0};
    uint32_t number;

    if (!vec_room_for(to->mem, &to->quotient, from->quotient.len))
        return false;
    for (size_t i = 0; i < from->quotient.len; i++) {
        const struct dim_quotient *q = &from->quotient.at[i];
        if (!map_add(&to->by_quotient, hash_mix(q->poly, (uint64_t)q->by), (uint32_t)i))
            return false;
        to->quotient.at[to->quotient.len++] = *q;
    }
    for (size_t i = 0; i < from->poly.len; i++) {
        const struct dim_poly *p = &from->poly.at[i];
        sum.count = p->count;
        memcpy(sum.term, p->term, p->count * sizeof *p->term);
        if (!intern_poly(to, &sum, &number))
            return false;
    }
    return true;
}

struct dim_table *dim_table_copy(const struct dim_table *t, const rlx_allocator *mem)
{
    struct dim_table *to = create_empty(mem);

    if (!to)
        return NULL;
    for (size_t i = 0; i < t->symbol.len; i++) {
        if (!add_symbol(to, t->symbol.at[i].name)) {
            dim_table_destroy(to);
            return NULL;
        }
        to->symbol.at[i].bound = t->symbol.at[i].bound;
    }
    if (!copy_polys(to, t)) {
        dim_table_destroy(to);
        return NULL;
    }
    return to;
}
