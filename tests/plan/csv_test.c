/* csv_test.c: planning problems from files, good and hostile. */
#include <stdlib.h>
#include <string.h>

#include "problems.h"
#include "test.h"

struct parsed {
    struct plan_csv csv;
    struct arena arena;
    struct diag diag;
};

static rlx_status parse(struct parsed *p, const char *text)
{
    arena_init(&p->arena, mem_default());
    diag_init(&p->diag, "plan");
    p->csv = (struct plan_csv){0};
    return plan_csv_read(rlx_cstr(text), &p->arena, &p->csv, &p->diag);
}

TEST(plan_csv, half_open_becomes_closed)
{
    struct parsed p;
    require_ok(t, parse(&p, "id,lower,upper,size\nb0,0,3,4096\nb1,3,4,0\n"));
    expect_eq(t, p.csv.count, 2);
    expect_eq(t, p.csv.item[0].birth, 0);
    expect_eq(t, p.csv.item[0].death, 2);
    expect_eq_u64(t, p.csv.item[0].size, 4096);
    expect_eq(t, p.csv.item[1].birth, 3);
    expect_eq(t, p.csv.item[1].death, 3);
    expect_eq_u64(t, p.csv.item[1].size, 0);
    expect_str(t, p.csv.id[0].ptr, "b0");
    expect_str(t, p.csv.id[1].ptr, "b1");
    arena_free(&p.arena);
}

TEST(plan_csv, columns_in_any_order_with_others_between)
{
    struct parsed p;
    require_ok(t, parse(&p, "\xef\xbb\xbfsize, why ,upper,id,lower,\r\n"
                            "\r\n 7 ,because, 2147483647 ,\tx y\t,2147483646,\r\n\n\n"));
    expect_eq(t, p.csv.count, 1);
    expect_eq(t, p.csv.item[0].birth, 2147483646);
    expect_eq(t, p.csv.item[0].death, 2147483646);
    expect_eq_u64(t, p.csv.item[0].size, 7);
    expect_str(t, p.csv.id[0].ptr, "x y");
    arena_free(&p.arena);
}

TEST(plan_csv, a_header_alone_is_an_empty_problem)
{
    struct parsed p;
    require_ok(t, parse(&p, "lower,upper,size,id"));
    expect_eq(t, p.csv.count, 0);
    arena_free(&p.arena);
}

TEST(plan_csv, the_last_line_needs_no_end)
{
    struct parsed p;
    require_ok(t, parse(&p, "lower,upper,size,id\n0,1,9223372036854775807,"));
    expect_eq(t, p.csv.count, 1);
    expect_eq_u64(t, p.csv.item[0].size, INT64_MAX);
    expect_str(t, p.csv.id[0].ptr, "");
    arena_free(&p.arena);
}

TEST(plan_csv, what_does_not_fit_is_refused_with_its_line)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "empty"},
        {"\n\r\n \n", "empty"},
        {"id,lower,upper\n", "no column size"},
        {"id;lower;upper;size\n", "no column id"},
        {"ID,lower,upper,size\n", "no column id"},
        {"id,lower,upper,size,lower\n", "column lower is named twice"},
        {"id,lower,upper,size\n1,2,3\n", "line 2: 3 fields where the first line names 4"},
        {"id,lower,upper,size\n1,2,3,4,5\n", "line 2: 5 fields"},
        {"id,lower,upper,size\n\n\n1,2,3,4x\n", "line 4: size is '4x'"},
        {"id,lower,upper,size\n1,2,3,\n", "line 2: size is ''"},
        {"id,lower,upper,size\n1,2,3,1e3\n", "line 2: size is '1e3'"},
        {"id,lower,upper,size\n1,2,3,+4\n", "line 2: size is '+4'"},
        {"id,lower,upper,size\n1,-1,3,4\n", "line 2: lower is '-1'"},
        {"id,lower,upper,size\n1,0,3,-4\n", "line 2: size is '-4'"},
        {"id,lower,upper,size\n1,0,2147483648,4\n", "line 2: upper is '2147483648'"},
        {"id,lower,upper,size\n1,0,99999999999999999999,4\n", "line 2: upper is"},
        {"id,lower,upper,size\n1,0,3,9223372036854775808\n", "line 2: size is"},
        {"id,lower,upper,size\n1,3,3,4\n", "line 2: lower 3 must be below upper 3"},
        {"id,lower,upper,size\n1,0,1,4\n1,4,3,4\n", "line 3: lower 4 must be below upper 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct parsed p;
        test_note(t, "case %zu", i);
        expect_status(t, parse(&p, cases[i].text), RLX_ERROR_FORMAT);
        expect_error(t, RLX_ERROR_FORMAT, cases[i].part, &p.diag.first);
        expect_eq(t, p.csv.count, 0);
        arena_free(&p.arena);
    }
}

TEST(plan_csv, any_bytes_at_all)
{
    static const char alphabet[] = "id,lower,upper,size\n\r 0123456789-x\0\xff";
    const char *head = "id,lower,upper,size\n";
    struct dice dice = {1};
    char text[400];

    for (int round = 0; round < 3000; round++) {
        struct parsed p;
        size_t n = 0;
        if (roll(&dice, 4)) {
            n = strlen(head);
            memcpy(text, head, n);
        }
        for (size_t end = n + roll(&dice, 200); n < end; n++)
            text[n] = alphabet[roll(&dice, sizeof alphabet - 1)];
        char *exact = malloc(n ? n : 1); /* so that reading past the end shows */
        memcpy(exact, text, n);
        arena_init(&p.arena, mem_default());
        diag_init(&p.diag, "plan");
        rlx_status s = plan_csv_read((rlx_str){exact, n}, &p.arena, &p.csv, &p.diag);
        require(t, s == RLX_OK || s == RLX_ERROR_FORMAT);
        arena_free(&p.arena);
        free(exact);
    }
}

static rlx_status read_it(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct plan_csv csv;
    struct arena a;
    struct diag d;

    (void)t;
    arena_init(&a, mem);
    diag_init(&d, "plan");
    rlx_status s = plan_csv_read(rlx_cstr(ctx), &a, &csv, &d);
    arena_free(&a);
    return s;
}

TEST(plan_csv, survives_no_memory)
{
    char text[] = "id,lower,upper,size\na,0,1,2\nb,1,2,3\n";
    expect_survives_no_memory(t, read_it, text);
}
