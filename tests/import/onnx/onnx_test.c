/* onnx_test.c: ONNX files that the tests write themselves: what becomes of them, what is refused,
 * and what happens to files that somebody broke. */
#include "onnx_world.h"

/* y = relu(x + w), w a weight of 32 elements */
static struct bytes small_model(void)
{
    struct bytes g = {.len = 0};
    float w[32];

    for (int i = 0; i < 32; i++)
        w[i] = (float)i;
    put_tensor(&g, "w", 1, (const int64_t[]){4, 8}, 2, w, sizeof w);
    NODE(&g, "Add", LIST("x", "w"), "s");
    NODE(&g, "Relu", "s", "y");
    put_value(&g, 11, "x", 1, (const char *const[]){"4", "8", NULL});
    put_value(&g, 12, "y", 1, NULL);
    return finish(&g, 13);
}

TEST(onnx, weights_are_params_and_stay_in_the_file)
{
    struct bytes m = small_model();
    struct result r = import(m.at, m.len);

    require_ok(t, r.status);
    expect_eq(t, r.m.weight.len, 1);
    const uint8_t *at = r.m.weight.at[0].data;
    expect(t, at >= m.at && at + 128 <= m.at + m.len);
    expect_eq(t, r.m.output_name[0].len, 1);
    onnx_imported_free(&r.m);
    expect_text(t, &m,
                "rlx 1\n"
                "graph @main (input %x: f32[4,8], param %w: f32[4,8]) {\n"
                "    %s = add %x, %w\n"
                "    %y = relu %s\n"
                "    return %y\n"
                "}\n");
}

/* Reshape(x, Concat(Shape(x)[0], -1)): the batch stays a symbol. */
TEST(onnx, shape_arithmetic_keeps_symbols)
{
    struct bytes g = {.len = 0};
    const int64_t zero = 0, rest = -1, one[] = {1};

    put_tensor(&g, "zero", 7, NULL, 0, &zero, 8);
    put_tensor(&g, "axes", 7, one, 1, &zero, 8);
    put_tensor(&g, "rest", 7, one, 1, &rest, 8);
    NODE(&g, "Shape", "x", "shape");
    put_node(&g, "Gather", (const char *const[]){"shape", "zero", NULL},
             (const char *const[]){"n", NULL}, "axis", 0);
    NODE(&g, "Unsqueeze", LIST("n", "axes"), "n1");
    put_node(&g, "Concat", (const char *const[]){"n1", "rest", NULL},
             (const char *const[]){"to", NULL}, "axis", 0);
    NODE(&g, "Reshape", LIST("x", "to"), "y");
    put_value(&g, 11, "x", 1, (const char *const[]){"n", "3", "seq", NULL});
    put_value(&g, 12, "y", 1, NULL);
    struct bytes m = finish(&g, 13);
    expect_text(t, &m,
                "rlx 1\n"
                "dim seq\n"
                "dim n\n"
                "graph @main (input %x: f32[n,3,seq]) {\n"
                "    %y = reshape %x shape=[n,3*seq]\n"
                "    return %y\n"
                "}\n");
}

TEST(onnx, constants_are_worked_out_at_load)
{
    struct bytes g = {.len = 0};
    const int64_t two[] = {2}, a[] = {3, 4}, b[] = {10, -20};

    put_tensor(&g, "a", 7, two, 1, a, sizeof a);
    put_tensor(&g, "b", 7, two, 1, b, sizeof b);
    NODE(&g, "Mul", LIST("a", "b"), "y");
    put_value(&g, 12, "y", 7, NULL);
    struct bytes m = finish(&g, 13);
    expect_text(t, &m,
                "rlx 1\n"
                "graph @main () {\n"
                "    %v0 = const i64[2] {30 -80}\n"
                "    return %v0\n"
                "}\n");
}

/* A node of its own already, passed on as it is: what came of it is not looked for among new nodes.
 */
TEST(onnx, constants_may_be_passed_on)
{
    struct bytes g = {.len = 0};

    put_tensor(&g, "k", 1, NULL, 0, &(float){3}, 4);
    put_value(&g, 11, "x", 1, (const char *const[]){"2", NULL});
    NODE(&g, "Add", LIST("x", "k"), "a");
    put_node(&g, "Cast", (const char *const[]){"k", NULL}, (const char *const[]){"c", NULL}, "to",
             1);
    NODE(&g, "Mul", LIST("a", "c"), "y");
    put_value(&g, 12, "y", 1, NULL);
    struct bytes m = finish(&g, 13);
    expect_text(t, &m,
                "rlx 1\n"
                "graph @main (input %x: f32[2]) {\n"
                "    %v1 = const f32[] {3}\n"
                "    %a = add %x, %v1\n"
                "    %v3 = const f32[] {3}\n"
                "    %y = mul %a, %v3\n"
                "    return %y\n"
                "}\n");
}

/* CastLike looks at its second input's type alone, so that its result can be known without it. */
TEST(onnx, inputs_of_which_the_type_matters_need_not_be_known)
{
    struct bytes g = {.len = 0};

    put_tensor(&g, "k", 1, NULL, 0, &(float){3.5f}, 4);
    put_tensor(&g, "p", 7, (const int64_t[]){2}, 1, (const int64_t[]){0, 1}, 16);
    put_value(&g, 11, "x", 6, (const char *const[]){"2", NULL});
    NODE(&g, "CastLike", LIST("k", "x"), "c");
    NODE(&g, "Pad", LIST("x", "p", "c"), "y");
    put_value(&g, 12, "y", 1, NULL);
    struct bytes m = finish(&g, 18);
    expect_text(t, &m,
                "rlx 1\n"
                "graph @main (input %x: i32[2]) {\n"
                "    %y = pad %x before=[0] after=[1] value=3\n"
                "    return %y\n"
                "}\n");
}

/* 3^39 has more digits than an f64. */
TEST(onnx, whole_powers_are_exact)
{
    static const struct {
        int64_t elem; /* of the exponents: i64, i32, u8 */
        int64_t base[8];
        int8_t by[8];
        const char *want;
    } cases[] = {
        {7,
         {3, -3, 2, 7, 0, 0, 1, -1},
         {39, 3, 62, 0, 0, 5, 63, 63},
         "{4052555153018976267 -27 4611686018427387904 1 1 0 1 -1}"},
        {6,
         {5, 2, 1, -1, -1, 0, 10, -2},
         {-1, -3, -4, -3, -2, 64, 18, 2},
         "{0 0 1 -1 1 0 1000000000000000000 4}"},
        {2,
         {5, 2, 1, -1, -1, 0, 10, -2},
         {1, 3, 127, 127, 126, 0, 2, 9},
         "{5 8 1 -1 1 1 100 -512}"},
    };
    const int64_t eight[] = {8};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bytes g = {.len = 0};
        size_t size = cases[i].elem == 7 ? 8 : cases[i].elem == 6 ? 4 : 1;
        uint8_t by[64];
        char want[256];
        for (size_t k = 0; k < 8; k++)
            memcpy(by + k * size, &(int64_t){cases[i].by[k]}, size);
        put_tensor(&g, "a", 7, eight, 1, cases[i].base, sizeof cases[i].base);
        put_tensor(&g, "b", cases[i].elem, eight, 1, by, 8 * size);
        NODE(&g, "Pow", LIST("a", "b"), "y");
        put_value(&g, 12, "y", 7, NULL);
        struct bytes m = finish(&g, 15);
        snprintf(want, sizeof want,
                 "rlx 1\ngraph @main () {\n    %%v0 = const i64[8] %s\n    return %%v0\n}\n",
                 cases[i].want);
        test_note(t, "case %zu", i);
        expect_text(t, &m, want);
    }
}

TEST(onnx, all_that_is_missing_is_reported_at_once)
{
    struct bytes g = {.len = 0};

    NODE(&g, "Frobnicate", "x", "a");
    NODE(&g, "Relu", "a", "b");
    NODE(&g, "Transmogrify", "b", "c");
    NODE(&g, "Gather", LIST("x", "x"), "d");
    put_value(&g, 11, "x", 1, (const char *const[]){"4", NULL});
    put_value(&g, 12, "c", 1, NULL);
    struct bytes m = finish(&g, 13);
    struct result r = import(m.at, m.len);

    expect_status(t, r.status, RLX_ERROR_UNSUPPORTED);
    expect_contains(t, r.diag.first.message, "2 nodes cannot be imported");
    expect_contains(t, r.m.report.at, "Frobnicate (opset 13) for \"a\"");
    expect_contains(t, r.m.report.at, "Transmogrify (opset 13) for \"c\"");
    expect(t, strstr(r.m.report.at, "Relu") == NULL);
    onnx_imported_free(&r.m);
}

/* A fuzzer's: the report had an empty line first, and the refusal no sentence. */
TEST(onnx, names_cannot_break_the_report)
{
    struct bytes g = {.len = 0};

    NODE(&g, "\nFrob\x1b[31m\nnicate", "x", "a\n");
    put_value(&g, 11, "x", 1, (const char *const[]){"4", NULL});
    put_value(&g, 12, "a\n", 1, NULL);
    struct bytes m = finish(&g, 13);
    struct result r = import(m.at, m.len);

    expect_status(t, r.status, RLX_ERROR_UNSUPPORTED);
    expect_contains(t, r.diag.first.message, "?Frob?[31m?nicate (opset 13) for \"a?\"");
    expect(t, strchr(r.m.report.at, '\n') == r.m.report.at + r.m.report.len - 1);
    onnx_imported_free(&r.m);
}

/* A fuzzer's: a scan of two results around a body that gives one. */
TEST(onnx, a_body_gives_all_that_is_asked_of_it)
{
    struct bytes g = {.len = 0}, body = {.len = 0}, n = {.len = 0}, a = {.len = 0};

    NODE(&body, "Identity", "a", "b");
    put_value(&body, 11, "a", 1, NULL);
    put_value(&body, 12, "b", 1, NULL);
    put_text(&n, 1, "x");
    put_text(&n, 2, "y");
    put_text(&n, 2, "z");
    put_text(&n, 4, "Scan");
    put_text(&a, 1, "body");
    put_sub(&a, 6, &body);
    put_sub(&n, 5, &a);
    a.len = 0;
    put_text(&a, 1, "num_scan_inputs");
    put_int(&a, 3, 1);
    put_sub(&n, 5, &a);
    put_sub(&g, 1, &n);
    put_value(&g, 11, "x", 1, (const char *const[]){"4", NULL});
    put_value(&g, 12, "y", 1, NULL);
    struct bytes m = finish(&g, 13);
    expect_refused(t, &m, RLX_ERROR_FORMAT, "the body does not fit the scan");
}

/* ---- refusals ----------------------------------------------------------------------------------
 */

TEST(onnx, names_must_lead_somewhere)
{
    struct bytes g = {.len = 0};

    NODE(&g, "Relu", "nowhere", "y");
    put_value(&g, 12, "y", 1, NULL);
    struct bytes m = finish(&g, 13);
    expect_refused(t, &m, RLX_ERROR_FORMAT, "nothing before it gives \"nowhere\"");

    struct bytes twice = {.len = 0};
    put_value(&twice, 11, "x", 1, (const char *const[]){"4", NULL});
    NODE(&twice, "Relu", "x", "y");
    NODE(&twice, "Relu", "x", "y");
    put_value(&twice, 12, "y", 1, NULL);
    m = finish(&twice, 13);
    expect_refused(t, &m, RLX_ERROR_FORMAT, "\"y\" is given twice");
}

TEST(onnx, tensors_hold_what_they_say)
{
    static const struct {
        int64_t elem, dims[9];
        size_t rank, len;
        rlx_status status;
        const char *part;
    } cases[] = {
        {1, {2, 2}, 2, 12, RLX_ERROR_FORMAT, "takes 16 bytes, it holds 12"},
        {1, {-1}, 1, 4, RLX_ERROR_FORMAT, "impossible dims"},
        {1, {INT64_MAX, 8}, 2, 4, RLX_ERROR_FORMAT, "impossible dims"},
        {8, {1}, 1, 4, RLX_ERROR_UNSUPPORTED, "STRING"},
        {99, {1}, 1, 4, RLX_ERROR_UNSUPPORTED, "type ? (99)"},
        {1, {1, 1, 1, 1, 1, 1, 1, 1, 1}, 9, 4, RLX_ERROR_LIMIT, "9 axes"},
    };
    static const uint8_t zeros[16];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bytes g = {.len = 0};
        put_tensor(&g, "w", cases[i].elem, cases[i].dims, cases[i].rank, zeros, cases[i].len);
        NODE(&g, "Identity", "w", "y");
        put_value(&g, 12, "y", 1, NULL);
        struct bytes m = finish(&g, 13);
        expect_refused(t, &m, cases[i].status, cases[i].part);
    }
}

/* A message inside a message, a hundred times. */
TEST(onnx, nesting_ends)
{
    struct bytes a = {.len = 0}, b;

    for (int i = 0; i < 101; i++) { /* attribute -> graph -> node -> attribute */
        uint32_t number = i % 3 == 0 ? 5 : i % 3 == 1 ? 1 : 6;
        b = (struct bytes){.len = 0};
        put_sub(&b, number, &a);
        a = b;
    }
    b = (struct bytes){.len = 0};
    put_int(&b, 1, 8);
    put_sub(&b, 7, &a);
    struct result r = import(b.at, b.len);
    expect_error(t, RLX_ERROR_LIMIT, "nest deeper than 64", &r.diag.first);
    onnx_imported_free(&r.m);
}

TEST(onnx, a_file_cut_anywhere_is_refused_or_read)
{
    struct bytes m = small_model();

    for (size_t len = 0; len < m.len; len++) {
        uint8_t *exact = malloc(len ? len : 1); /* so that a read past its end shows */
        require(t, exact);
        memcpy(exact, m.at, len);
        struct result r = import(exact, len);
        expect(t, r.status == RLX_OK || r.diag.first.message[0]);
        onnx_imported_free(&r.m);
        free(exact);
    }
}

TEST(onnx, a_flipped_bit_is_refused_or_read)
{
    struct bytes m = small_model();

    for (size_t i = 0; i < m.len * 8; i++) {
        m.at[i / 8] ^= (uint8_t)(1 << i % 8);
        struct result r = import(m.at, m.len);
        expect(t, r.status == RLX_OK || r.diag.first.message[0]);
        onnx_imported_free(&r.m);
        m.at[i / 8] ^= (uint8_t)(1 << i % 8);
    }
}

TEST(onnx, every_allocation_may_fail)
{
    struct bytes m = small_model();

    expect_survives_no_memory(t, import_with, &m);
}

/* A function that calls itself ends at a depth, one that doubles at a number of nodes. */
TEST(onnx, functions_that_call_themselves_end)
{
    struct bytes m, f = {.len = 0}, n = {.len = 0}, g = {.len = 0};

    put_text(&n, 1, "x");
    put_text(&n, 2, "h");
    put_text(&n, 4, "F");
    put_text(&n, 7, "own");
    put_text(&f, 1, "F");
    put_text(&f, 4, "x");
    put_text(&f, 5, "h");
    put_sub(&f, 7, &n);
    put_text(&f, 10, "own");
    put_value(&g, 11, "x", 1, (const char *const[]){"4", NULL});
    put_sub(&g, 1, &n);
    put_value(&g, 12, "h", 1, NULL);
    m = finish(&g, 13);
    put_sub(&m, 25, &f);
    struct result r = import(m.at, m.len);
    expect_status(t, r.status, RLX_ERROR_LIMIT);
    onnx_imported_free(&r.m);
}
