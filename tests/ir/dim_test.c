/* dim_test.c: symbolic sizes: one handle per form, and arithmetic that agrees with plain numbers.
 */
#include "ir/dim.h"

#include <string.h>

#include "test.h"

/* ---- helpers ------------------------------------------------------------------------------- */

enum { SIZES = 24 };

static ir_dim symbol(struct dim_table *t, const char *name)
{
    return dim_symbol(t, rlx_cstr(name));
}

static void expect_text(struct test *t, struct dim_table *dims, ir_dim d, const char *want)
{
    struct text out;

    text_init(&out, mem_default());
    dim_print(dims, d, &out);
    expect_str(t, out.at, want);
    text_free(&out);
}

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    return z ^ (z >> 27);
}

static int64_t below(uint64_t *rng, int64_t n)
{
    return (int64_t)(next(rng) % (uint64_t)n);
}

static int64_t floor_of(int64_t a, int64_t by)
{
    return a >= 0 ? a / by : -((-a + by - 1) / by);
}

/* An expression beside what it must come to under SIZES different bindings. */
struct both {
    ir_dim dim;
    int64_t value[SIZES];
};

struct trial {
    struct dim_table *dims;
    uint64_t rng;
    int64_t size[SIZES][20]; /* by binding, then by symbol */
};

static void trial_init(struct trial *s, uint64_t seed)
{
    *s = (struct trial){.dims = dim_table_create(mem_default()), .rng = seed};
    symbol(s->dims, "a"), symbol(s->dims, "b"), symbol(s->dims, "c");
    for (int i = 0; i < SIZES; i++) {
        for (int k = 0; k < 20; k++)
            s->size[i][k] = below(&s->rng, 40);
    }
}

static struct both leaf(struct trial *s)
{
    static const char *const names[] = {"a", "b", "c", "batch"};
    struct both r;

    if (below(&s->rng, 3) == 0) {
        r.dim = below(&s->rng, 7);
        for (int i = 0; i < SIZES; i++)
            r.value[i] = r.dim;
        return r;
    }
    const char *name = names[below(&s->rng, 4)];
    size_t number = 0;
    r.dim = symbol(s->dims, name);
    dim_find_symbol(s->dims, rlx_cstr(name), &number);
    for (int i = 0; i < SIZES; i++)
        r.value[i] = s->size[i][number];
    return r;
}

static struct both grow(struct trial *s, int depth)
{
    if (depth == 0)
        return leaf(s);
    struct both a = grow(s, depth - 1), b = grow(s, (int)below(&s->rng, depth)), r;
    int64_t by = 1 + below(&s->rng, 6);
    int64_t what = below(&s->rng, 5);
    r.dim = what == 0   ? dim_add(s->dims, a.dim, b.dim)
            : what == 1 ? dim_sub(s->dims, a.dim, b.dim)
            : what == 2 ? dim_mul(s->dims, a.dim, b.dim)
                        : dim_floor_div(s->dims, a.dim, by);
    for (int i = 0; i < SIZES; i++) {
        r.value[i] = what == 0   ? a.value[i] + b.value[i]
                     : what == 1 ? a.value[i] - b.value[i]
                     : what == 2 ? a.value[i] * b.value[i]
                                 : floor_of(a.value[i], by);
    }
    return r;
}

/* ---- forms --------------------------------------------------------------------------------- */

TEST(dim, equal_forms_are_equal_handles)
{
    struct dim_table *d = dim_table_create(mem_default());
    ir_dim s = symbol(d, "s"), u = symbol(d, "u");

    expect(t, s != u);
    expect_eq(t, symbol(d, "s"), s);
    expect_eq(t, dim_add(d, s, u), dim_add(d, u, s));
    expect_eq(t, dim_mul(d, dim_add(d, s, 1), dim_add(d, s, 1)),
              dim_add(d, dim_add(d, dim_mul(d, s, s), dim_mul(d, 2, s)), 1));
    expect_eq(t, dim_sub(d, dim_add(d, s, u), s), u);
    expect_eq(t, dim_sub(d, s, s), 0);
    expect_eq(t, dim_mul(d, s, 0), 0);
    expect_eq(t, dim_mul(d, s, 1), s);
    expect_eq(t, dim_add(d, dim_sub(d, s, 3), 3), s);
    expect_eq(t, dim_add(d, 2, 3), 5);
    expect_eq(t, dim_sub(d, 3, 3), 0);
    expect_eq(t, dim_sub(d, 2, 3), RLX_DIM_FAILED);
    expect_eq(t, dim_sub(d, dim_sub(d, s, 3), s), RLX_DIM_FAILED);
    dim_table_destroy(d);
}

TEST(dim, floor_division_pulls_out_what_divides)
{
    struct dim_table *d = dim_table_create(mem_default());
    ir_dim s = symbol(d, "s"), u = symbol(d, "u");
    ir_dim s4_6 = dim_add(d, dim_mul(d, 4, s), 6), s2_3 = dim_add(d, dim_mul(d, 2, s), 3);

    expect_eq(t, dim_floor_div(d, s4_6, 2), s2_3);
    expect_eq(t, dim_floor_div(d, s2_3, 2), dim_add(d, s, 1));
    expect_eq(t, dim_floor_div(d, dim_floor_div(d, s, 2), 3), dim_floor_div(d, s, 6));
    expect_eq(t, dim_floor_div(d, s, 1), s);
    expect_eq(t, dim_floor_div(d, dim_mul(d, s, 6), 4), dim_add(d, s, dim_floor_div(d, s, 2)));
    expect_eq(t, dim_floor_div(d, dim_add(d, dim_mul(d, 2, s), 3), 4),
              dim_floor_div(d, dim_add(d, s, 1), 2));
    /* (x/2 + u)/3 = (x + 2u)/6 */
    expect_eq(t, dim_floor_div(d, dim_add(d, dim_floor_div(d, s, 2), u), 3),
              dim_floor_div(d, dim_add(d, s, dim_mul(d, 2, u)), 6));
    expect_eq(t, dim_floor_div(d, 7, 2), 3);
    expect_eq(t, dim_floor_div(d, s, 0), RLX_DIM_FAILED);
    expect_eq(t, dim_floor_div(d, s, -1), RLX_DIM_FAILED);
    /* (len-3)/2 + 1 = (len-1)/2 */
    expect_eq(t, dim_add(d, dim_floor_div(d, dim_sub(d, s, 3), 2), 1),
              dim_floor_div(d, dim_sub(d, s, 1), 2));
    dim_table_destroy(d);
}

TEST(dim, exact_division_cancels)
{
    struct dim_table *d = dim_table_create(mem_default());
    ir_dim s = symbol(d, "s"), u = symbol(d, "u");
    ir_dim product = dim_mul(d, dim_add(d, s, 2), dim_sub(d, u, 1));

    expect_eq(t, dim_exact_div(d, dim_mul(d, s, u), s), u);
    expect_eq(t, dim_exact_div(d, dim_mul(d, dim_mul(d, s, u), 12), dim_mul(d, s, 4)),
              dim_mul(d, u, 3));
    expect_eq(t, dim_exact_div(d, product, dim_sub(d, u, 1)), dim_add(d, s, 2));
    expect_eq(t, dim_exact_div(d, product, dim_add(d, s, 2)), dim_sub(d, u, 1));
    expect_eq(t, dim_exact_div(d, product, product), 1);
    expect_eq(t, dim_exact_div(d, dim_mul(d, s, s), s), s);
    expect_eq(t, dim_exact_div(d, 0, s), 0);
    expect_eq(t, dim_exact_div(d, 12, 4), 3);
    expect_eq(t, dim_exact_div(d, 13, 4), RLX_DIM_FAILED);
    expect_eq(t, dim_exact_div(d, s, 0), RLX_DIM_FAILED);
    expect_eq(t, dim_exact_div(d, 0, 0), RLX_DIM_FAILED);
    expect_eq(t, dim_exact_div(d, dim_add(d, s, 1), 2), RLX_DIM_FAILED);
    expect_eq(t, dim_exact_div(d, dim_add(d, s, 1), s), RLX_DIM_FAILED);
    expect_eq(t, dim_exact_div(d, s, u), RLX_DIM_FAILED);
    expect_eq(t, dim_exact_div(d, 4, s), RLX_DIM_FAILED);
    dim_table_destroy(d);
}

TEST(dim, unknown_and_failed_pass_through)
{
    struct dim_table *d = dim_table_create(mem_default());
    ir_dim s = symbol(d, "s"), what = RLX_DIM_UNKNOWN, bad = RLX_DIM_FAILED;

    expect_eq(t, dim_add(d, what, 1), what);
    expect_eq(t, dim_mul(d, s, what), what);
    expect_eq(t, dim_floor_div(d, what, 2), what);
    expect_eq(t, dim_exact_div(d, what, s), what);
    expect_eq(t, dim_sub(d, bad, what), bad);
    expect_eq(t, dim_add(d, what, bad), bad);
    expect_eq(t, dim_add(d, RLX_DIM_INFER, 1), bad);
    expect_eq(t, dim_add(d, -1, 1), bad); /* no handle */
    expect_eq(t, dim_add(d, s - 100, s), bad);
    expect_eq(t, dim_eval(d, what, NULL, 0, NULL), -1);
    dim_table_destroy(d);
}

TEST(dim, symbols_by_name_and_number)
{
    struct dim_table *d = dim_table_create(mem_default());
    size_t number = 99;

    expect_eq(t, dim_symbol_count(d), SYMBOL_FIRST_USER);
    expect(t, dim_find_symbol(d, STR("past_seq"), &number));
    expect_eq(t, number, SYMBOL_PAST_SEQ);
    expect(t, !dim_find_symbol(d, STR("len"), &number));
    expect(t, dim_symbol_name(d, 4).ptr == NULL);
    ir_dim len = symbol(d, "len");
    expect(t, dim_find_symbol(d, STR("len"), &number));
    expect_eq(t, number, SYMBOL_FIRST_USER);
    expect(t, str_eq(dim_symbol_name(d, number), STR("len")));
    expect_eq(t, dim_symbol_bound(d, number), 0);
    dim_set_bound(d, number, 512);
    expect_eq(t, dim_symbol_bound(d, number), 512);
    expect_eq(t, dim_symbol_bound(d, 1000), 0);
    expect(t, dim_uses(d, dim_add(d, len, 1), number));
    expect(t, !dim_uses(d, dim_add(d, len, 1), SYMBOL_SEQ));
    expect(t, dim_uses(d, dim_floor_div(d, len, 2), number));
    expect(t, !dim_uses(d, 7, number));
    static const char *const bad[] = {"", "1a", "a b", "a.b", "-", "é"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_eq(t, symbol(d, bad[i]), RLX_DIM_FAILED);
    dim_table_destroy(d);
}

TEST(dim, prints_canonically)
{
    struct dim_table *d = dim_table_create(mem_default());
    ir_dim s = symbol(d, "s"), u = symbol(d, "u"), half = dim_floor_div(d, s, 2);

    expect_text(t, d, 12, "12");
    expect_text(t, d, RLX_DIM_UNKNOWN, "?");
    expect_text(t, d, RLX_DIM_INFER, "-1");
    expect_text(t, d, dim_add(d, 1, s), "s+1");
    expect_text(t, d, dim_sub(d, s, 3), "s-3");
    expect_text(t, d, dim_sub(d, 5, s), "-s+5");
    expect_text(t, d, dim_mul(d, u, dim_mul(d, s, 3)), "3*s*u");
    expect_text(t, d, dim_mul(d, dim_add(d, u, s), dim_add(d, s, u)), "s*s+2*s*u+u*u");
    expect_text(t, d, dim_add(d, half, 1), "s/2+1");
    expect_text(t, d, dim_floor_div(d, dim_sub(d, s, 1), 2), "(s-1)/2");
    expect_text(t, d, dim_mul(d, half, 2), "2*(s/2)");
    expect_text(t, d, dim_mul(d, half, u), "u*(s/2)");
    expect_text(t, d, dim_sub(d, 0, half), "-s/2");
    expect_text(t, d, dim_floor_div(d, dim_mul(d, s, u), 4), "s*u/4");
    expect_text(t, d, dim_sub(d, u, dim_floor_div(d, dim_add(d, s, 1), 3)), "u-(s+1)/3");
    dim_table_destroy(d);
}

/* ---- numbers ------------------------------------------------------------------------------- */

TEST(dim, agrees_with_plain_arithmetic)
{
    int compared = 0;

    for (uint64_t seed = 0; seed < 300; seed++) {
        struct trial s;
        trial_init(&s, seed);
        struct both e = grow(&s, (int)(seed % 5));
        for (int i = 0; i < SIZES; i++) {
            int64_t want = e.value[i] < 0 ? -1 : e.value[i];
            if (e.dim == RLX_DIM_FAILED) /* a negative constant on the way */
                continue;
            test_note(t, "seed %d, binding %d", (int)seed, i);
            expect_eq(t, dim_eval(s.dims, e.dim, s.size[i], 20, NULL), want);
            compared++;
        }
        dim_table_destroy(s.dims);
    }
    expect(t, compared > 3000);
}

TEST(dim, division_undoes_multiplication)
{
    int done = 0;

    for (uint64_t seed = 1000; seed < 1300; seed++) {
        struct trial s;
        trial_init(&s, seed);
        struct both a = grow(&s, 2), b = grow(&s, 2);
        ir_dim product = dim_mul(s.dims, a.dim, b.dim);
        if (product > RLX_DIM_FAILED && b.dim != 0) {
            test_note(t, "seed %d", (int)seed);
            expect_eq(t, dim_exact_div(s.dims, product, b.dim), a.dim);
            done++;
        }
        dim_table_destroy(s.dims);
    }
    expect(t, done > 150);
}

TEST(dim, eval_says_why_not)
{
    struct dim_table *d = dim_table_create(mem_default());
    ir_dim s = symbol(d, "s");
    int64_t size[17];
    const char *why = "";

    memset(size, -1, sizeof size);
    expect_eq(t, dim_eval(d, dim_add(d, s, 1), size, 17, &why), -1);
    expect_contains(t, why, "symbols");
    expect_eq(t, dim_eval(d, dim_add(d, s, 1), size, 3, &why), -1);
    size[16] = 2;
    expect_eq(t, dim_eval(d, dim_sub(d, s, 3), size, 17, &why), -1);
    expect_contains(t, why, "negative");
    size[16] = INT64_MAX;
    expect_eq(t, dim_eval(d, dim_add(d, s, 1), size, 17, &why), -1);
    expect_contains(t, why, "large");
    expect_eq(t, dim_eval(d, s, size, 17, &why), INT64_MAX);
    expect_eq(t, dim_eval(d, dim_mul(d, s, s), size, 17, &why), -1);
    dim_table_destroy(d);
}

TEST(dim, unbound_symbols)
{
    struct dim_table *d = dim_table_create(mem_default());
    ir_dim s = symbol(d, "s"), u = symbol(d, "u");
    ir_dim e = dim_mul(d, dim_floor_div(d, dim_add(d, s, u), 2), s);
    int64_t size[18];
    size_t out[4];

    memset(size, -1, sizeof size);
    expect_eq(t, dim_unbound(d, e, size, 18, out, 4), 2);
    expect_eq(t, dim_unbound(d, e, size, 18, out, 1), 1);
    size[16] = 0;
    expect_eq(t, dim_unbound(d, e, size, 18, out, 4), 1);
    expect_eq(t, out[0], 17);
    expect_eq(t, dim_unbound(d, 5, size, 18, out, 4), 0);
    dim_table_destroy(d);
}

/* ---- solving ------------------------------------------------------------------------------- */

TEST(dim, solves_for_one_symbol)
{
    struct dim_table *d = dim_table_create(mem_default());
    ir_dim s = symbol(d, "s"), u = symbol(d, "u");
    ir_dim half = dim_floor_div(d, s, 2), cube = dim_mul(d, dim_mul(d, s, s), s);
    const struct {
        ir_dim dim;
        int64_t n, want; /* -1: none */
    } row[] = {
        {s, 7, 7},
        {s, 0, 0},
        {s, INT64_MAX - 1, INT64_MAX - 1},
        {dim_add(d, s, 3), 10, 7},
        {dim_add(d, s, 3), 2, -1},
        {dim_mul(d, s, 3), 12, 4},
        {dim_mul(d, s, 3), 13, -1},
        {dim_sub(d, 9, s), 2, 7},
        {dim_sub(d, 9, s), 10, -1},
        {cube, 1000000, 100},
        {cube, 1000001, -1},
        {dim_mul(d, dim_mul(d, s, s), u), 300, 10}, /* u is 3 */
        {half, 6, 12},
        {dim_add(d, dim_floor_div(d, dim_sub(d, s, 3), 2), 1), 5, 11},
        {dim_sub(d, s, half), 6, 11}, /* s - s/2 rounds up */
        {dim_sub(d, s, half), 1000000, 1999999},
        {dim_sub(d, dim_mul(d, 2, s), dim_floor_div(d, s, 3)), 50, 30},
        {dim_sub(d, dim_mul(d, s, s), s), 90, 10},
        {dim_sub(d, dim_mul(d, s, s), s), 91, -1},
        {s, -4, -1},
        {5, 5, -1},
        {u, 3, -1}, /* does not hold s */
    };
    int64_t size[18];

    memset(size, -1, sizeof size);
    size[17] = 3;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        int64_t got = -1;
        test_note(t, "row %d", (int)i);
        bool found = dim_solve(d, row[i].dim, row[i].n, size, 18, 16, &got);
        expect_eq(t, found, row[i].want >= 0);
        expect_eq(t, got, row[i].want);
    }
    /* 0 * s says nothing about s; and u unbound leaves two unknowns. */
    int64_t got = -1;
    size[17] = 0;
    expect(t, !dim_solve(d, dim_mul(d, s, u), 0, size, 18, 16, &got));
    size[17] = -1;
    expect(t, !dim_solve(d, dim_mul(d, s, u), 6, size, 18, 16, &got));
    expect_eq(t, got, -1);
    dim_table_destroy(d);
}

TEST(dim, solutions_give_the_value_back)
{
    int solved = 0;

    for (uint64_t seed = 5000; seed < 5400; seed++) {
        struct trial s;
        trial_init(&s, seed);
        struct both e = grow(&s, 3);
        for (int i = 0; i < SIZES; i++) {
            int64_t n = e.value[i], kept = s.size[i][16], x;
            if (e.dim == RLX_DIM_FAILED || n < 0 || !dim_uses(s.dims, e.dim, 16))
                continue;
            s.size[i][16] = -1;
            if (dim_solve(s.dims, e.dim, n, s.size[i], 20, 16, &x)) {
                s.size[i][16] = x;
                test_note(t, "seed %d, binding %d", (int)seed, i);
                expect_eq(t, dim_eval(s.dims, e.dim, s.size[i], 20, NULL), n);
                expect(t, x <= kept);
                solved++;
            }
            s.size[i][16] = kept;
        }
        dim_table_destroy(s.dims);
    }
    expect(t, solved > 500);
}

/* ---- tables -------------------------------------------------------------------------------- */

TEST(dim, copy_keeps_handles)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct trial s;
        trial_init(&s, seed);
        struct both e = grow(&s, 4);
        dim_set_bound(s.dims, 16, 77);
        struct dim_table *copy = dim_table_copy(s.dims, mem_default());
        require(t, copy != NULL);
        expect_eq(t, dim_symbol_bound(copy, 16), 77);
        for (int i = 0; i < SIZES; i++)
            expect_eq(t, dim_eval(copy, e.dim, s.size[i], 20, NULL),
                      dim_eval(s.dims, e.dim, s.size[i], 20, NULL));
        if (e.dim > RLX_DIM_FAILED)
            expect_eq(t, dim_add(copy, e.dim, 1), dim_add(s.dims, e.dim, 1));
        dim_table_destroy(copy);
        dim_table_destroy(s.dims);
    }
}

TEST(dim, import_goes_by_name)
{
    for (uint64_t seed = 100; seed < 140; seed++) {
        struct trial s;
        trial_init(&s, seed);
        struct both e = grow(&s, 4);
        struct dim_table *to = dim_table_create(mem_default());
        symbol(to, "other"), symbol(to, "c"), symbol(to, "b"), symbol(to, "a");
        ir_dim d = dim_import(to, s.dims, e.dim);
        for (int i = 0; i < SIZES; i++) {
            int64_t size[20];
            memcpy(size, s.size[i], sizeof size);
            size[17] = s.size[i][18], size[18] = s.size[i][17], size[19] = s.size[i][16];
            expect_eq(t, dim_eval(to, d, size, 20, NULL),
                      dim_eval(s.dims, e.dim, s.size[i], 20, NULL));
        }
        expect_eq(t, dim_import(s.dims, to, d), e.dim);
        dim_table_destroy(to);
        dim_table_destroy(s.dims);
    }
}

/* ---- hostile ------------------------------------------------------------------------------- */

/* 3*n*n + (n+1)/2 - 4, part by part. */
TEST(dim, terms_are_what_it_is_made_of)
{
    struct dim_table *dims = dim_table_create(mem_default());
    ir_dim n = symbol(dims, "n"), half = dim_floor_div(dims, dim_add(dims, n, 1), 2);
    ir_dim d = dim_sub(dims, dim_add(dims, dim_mul(dims, 3, dim_mul(dims, n, n)), half), 4);
    struct dim_atom atom[DIM_MAX_ATOMS];
    size_t atoms, number = 0;

    expect(t, dim_find_symbol(dims, rlx_cstr("n"), &number));
    expect_eq(t, dim_term_count(dims, 7), 0);
    expect_eq(t, dim_term_count(dims, n), 1);
    if (expect_eq(t, dim_term_count(dims, d), 3)) {
        expect_eq(t, dim_term_at(dims, d, 0, atom, &atoms), 3);
        expect(t, atoms == 2 && atom[0].is_symbol && atom[1].is_symbol);
        expect_eq(t, atom[1].symbol, number);
        expect_eq(t, dim_term_at(dims, d, 1, atom, &atoms), 1);
        expect(t, atoms == 1 && !atom[0].is_symbol);
        expect_eq(t, atom[0].by, 2);
        expect_eq(t, atom[0].of, dim_add(dims, n, 1));
        expect_eq(t, dim_term_at(dims, d, 2, atom, &atoms), -4);
        expect_eq(t, atoms, 0);
    }
    dim_table_destroy(dims);
}

TEST(dim, limits_are_failures)
{
    struct dim_table *d = dim_table_create(mem_default());
    ir_dim s = symbol(d, "s"), sum = 0, power = 1, deep = s, wide = s;
    int i;

    for (i = 0; i < 100 && sum != RLX_DIM_FAILED; i++) {
        char name[8] = {'x', (char)('a' + i / 26), (char)('a' + i % 26)};
        sum = dim_add(d, sum, symbol(d, name));
    }
    expect_eq(t, i, 65);
    for (i = 0; i < 100 && power != RLX_DIM_FAILED; i++)
        power = dim_mul(d, power, s);
    expect_eq(t, i, 17);
    for (i = 0; i < 100 && deep != RLX_DIM_FAILED; i++)
        deep = dim_floor_div(d, dim_add(d, dim_mul(d, deep, 2), s), 5);
    expect(t, i > 10 && i < 100);
    /* Each step says the step before it sixteen times. */
    for (i = 0; i < 100 && wide != RLX_DIM_FAILED; i++) {
        ir_dim same = wide;
        for (int k = 0; k < 15; k++)
            wide = dim_mul(d, wide, same);
        wide = dim_floor_div(d, dim_mul(d, wide, 3), 7);
    }
    expect(t, i > 1 && i < 10);
    dim_table_destroy(d);
}

TEST(dim, coefficients_do_not_overflow)
{
    struct dim_table *d = dim_table_create(mem_default());
    ir_dim s = symbol(d, "s"), big = dim_mul(d, s, INT64_MAX);

    expect_eq(t, dim_add(d, INT64_MAX, 1), RLX_DIM_FAILED);
    expect_eq(t, dim_mul(d, INT64_MAX, 2), RLX_DIM_FAILED);
    expect_eq(t, dim_mul(d, big, 2), RLX_DIM_FAILED);
    expect_eq(t, dim_add(d, big, s), RLX_DIM_FAILED);
    ir_dim least = dim_sub(d, dim_sub(d, 0, big), s); /* INT64_MIN * s */
    expect_text(t, d, least, "-9223372036854775808*s");
    expect_eq(t, dim_sub(d, 0, least), RLX_DIM_FAILED);
    expect_eq(t, dim_exact_div(d, least, dim_sub(d, 0, s)), RLX_DIM_FAILED);
    expect_eq(t, dim_floor_div(d, big, INT64_MAX), s);
    ir_dim part = dim_floor_div(d, s, INT64_MAX);
    expect_eq(t, dim_floor_div(d, part, 2), RLX_DIM_FAILED);
    expect_eq(t, dim_sub(d, part, INT64_MAX) == RLX_DIM_FAILED, false);
    dim_table_destroy(d);
}

static rlx_status use_table(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct dim_table *d = dim_table_create(mem), *copy = NULL;
    rlx_status status = RLX_ERROR_MEMORY;

    (void)t, (void)ctx;
    if (!d)
        return status;
    ir_dim s = symbol(d, "s"), r = s;
    for (int i = 2; i < 30; i++)
        r = dim_add(d, r, dim_mul(d, dim_floor_div(d, s, i), symbol(d, "u")));
    copy = r == RLX_DIM_FAILED ? NULL : dim_table_copy(d, mem);
    if (copy && dim_import(copy, d, r) != RLX_DIM_FAILED)
        status = RLX_OK;
    dim_table_destroy(copy);
    dim_table_destroy(d);
    return status;
}

TEST(dim, survives_no_memory)
{
    expect_survives_no_memory(t, use_table, NULL);
}
