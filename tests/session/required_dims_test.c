/* required_dims_test.c: runtime.md 8, the rows about symbolic sizes, resident states and
 * indices in the data: what happens from one run to the next. */
#include "required.h"

/* One run of a model with an input x of a shape and an output out0; the output's shape comes back.
 */
static rlx_status run_x(struct place *p, int32_t rank, const int64_t *dim, float *x, float *y,
                        size_t room, rlx_tensor *shape)
{
    rlx_binding in = {"x", {.dtype = RLX_DTYPE_f32, .rank = rank, .data = x, .bytes = sizeof *x}};
    rlx_binding out = {"out0", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = room * sizeof *y}};

    for (int32_t i = 0; i < rank; i++) {
        in.tensor.dim[i] = dim[i];
        in.tensor.bytes *= (size_t)dim[i];
    }
    memset(&p->err, 0, sizeof p->err);
    rlx_status s = rlx_session_run(
        p->session, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0}, &p->err);
    if (shape)
        *shape = out.tensor;
    return s;
}

#define TWO_DIMS                                                                    \
    "dim n dim m graph (input %x: f32[n,m], input %b: f32[2*n], param %w: f32[]) {" \
    " %s = reduce_sum %x axes=[1] %c = concat %s, %s axis=0 %d = add %c, %b"        \
    " %y = mul %d, %w return %y }"

/* Row 35: sizes that contradict each other, have no solution or are not given. */
TEST_DEVICES(required, sizes_that_cannot_be_are_errors)
{
    struct place p;
    float x[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, b[8] = {0}, y[8], w = 2;
    rlx_tensor weight = {RLX_DTYPE_f32, 0, {0}, &w, 4};

    if (!place_open(t, &p, test_device(t), NULL) || !expect_ok(t, place_build(&p, TWO_DIMS, NULL)))
        return place_close(&p);
    expect_ok(t, rlx_session_set_param(p.session, "w", &weight, &p.err)); /* row 52 */
    rlx_binding in[2] = {{"x", {RLX_DTYPE_f32, 2, {2, 3}, x, 24}},
                         {"b", {RLX_DTYPE_f32, 1, {4}, b, 16}}};
    rlx_binding out = {"y", {RLX_DTYPE_f32, 0, {0}, y, sizeof y}};
    rlx_dim_size given[2] = {{"n", 2}, {"m", 3}};
    rlx_run_desc good = {RLX_SIZED(rlx_run_desc), in, 2, &out, 1, NULL, 0},
                 run = {RLX_SIZED(rlx_run_desc)};
    static const struct {
        int64_t n, m, b;  /* of the inputs */
        int64_t dims[2];  /* given; -1: not */
        const char *name; /* instead of n; NULL: as it is */
        size_t inputs;
        rlx_status status;
        const char *part;
    } rows[] = {
        {2, 3, 6, {-1, -1}, NULL, 2, RLX_ERROR_BINDING, "2*n, which is 4"},
        {2, 3, 5, {-1, -1}, NULL, 2, RLX_ERROR_BINDING, "but 5 was given"},
        {2, 3, 4, {3, -1}, NULL, 2, RLX_ERROR_BINDING, "axis 0 is n, which is 3"},
        {2, 3, 4, {2, 4}, NULL, 2, RLX_ERROR_BINDING, "axis 1 is m, which is 4"},
        {2, 3, 4, {-2, -1}, NULL, 2, RLX_ERROR_ARGUMENT, "-2"},
        {2, 3, 4, {2, -1}, "q", 2, RLX_ERROR_NAME, "\"q\""},
        {2, 3, 4, {-1, -1}, NULL, 0, RLX_ERROR_UNBOUND_DIM, "n"},
        {2, 3, 4, {2, -1}, NULL, 0, RLX_ERROR_UNBOUND_DIM, "m"},
        {2, 3, 4, {2, 3}, NULL, 1, RLX_ERROR_MISSING_INPUT, "\"b\""},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        test_note(t, "row 35, case %zu", i);
        rlx_dim_size dims[2];
        size_t count = 0;
        for (int k = 0; k < 2; k++)
            if (rows[i].dims[k] != -1)
                dims[count++] = (rlx_dim_size){
                    k == 0 && rows[i].name ? rows[i].name : given[k].name, rows[i].dims[k]};
        in[0].tensor.dim[0] = rows[i].n, in[0].tensor.dim[1] = rows[i].m;
        in[1].tensor.dim[0] = rows[i].b;
        in[1].tensor.bytes = (size_t)rows[i].b * 4;
        run = (rlx_run_desc){RLX_SIZED(rlx_run_desc), in, rows[i].inputs, &out, 1, dims, count};
        memset(&p.err, 0, sizeof p.err);
        rlx_session_run(p.session, &run, &p.err);
        expect_error(t, rows[i].status, rows[i].part, &p.err);
        in[0].tensor.dim[0] = 2, in[1].tensor.dim[0] = 4, in[1].tensor.bytes = 16;
        expect_ok(t, rlx_session_run(p.session, &good, &p.err));
        expect_near(t, y[0], 12, 0);
        expect_near(t, y[3], 30, 0);
    }
    in[0].tensor.rank = 1;
    rlx_session_run(p.session, &good, &p.err);
    expect_error(t, RLX_ERROR_SHAPE, "f32[2] was given", &p.err);
    place_close(&p);
}

/* Rows 34 and 52: one session, many sizes; params set before the first run reach all of them. */
TEST_DEVICES(required, params_reach_every_size)
{
    struct place p;
    float x[64], y[64], w[2] = {10, 20};
    rlx_tensor weight = {RLX_DTYPE_f32, 1, {2}, w, sizeof w}, shape;

    for (int i = 0; i < 64; i++)
        x[i] = (float)i;
    if (!place_open(t, &p, test_device(t), NULL) ||
        !expect_ok(t, place_build(&p,
                                  "dim n graph (input %x: f32[n,2], param %w: f32[2]) {"
                                  " %y = elementwise_region %x, %w chain=[[add,i0,i1],[neg,s0]]"
                                  " return %y }",
                                  NULL)))
        return place_close(&p);
    expect_ok(t, rlx_session_set_param(p.session, "w", &weight, &p.err));
    for (int round = 0; round < 2; round++) {
        for (int64_t n = 0; n < 9; n++) { /* more sizes than programs are kept */
            int64_t dim[2] = {n, 2};
            test_note(t, "rows 34, 51, 52, %d rows", (int)n);
            expect_ok(t, run_x(&p, 2, dim, x, y, 64, &shape));
            expect_eq(t, shape.dim[0], n);
            if (n)
                expect_near(t, y[2 * n - 1], -(x[2 * n - 1] + w[1]), 0);
        }
        w[1] = 30; /* and a change of mind, too */
        expect_ok(t, rlx_session_set_param(p.session, "w", &weight, &p.err));
    }
    place_close(&p);
}

/* Rows 13, 19: what fits depends on the size, is checked per size and never clamped. */
TEST_DEVICES(required, sizes_are_checked_after_binding)
{
    struct place p;
    float x[64], y[64];
    rlx_tensor shape;

    for (int i = 0; i < 64; i++)
        x[i] = (float)i;
    if (!place_open(t, &p, test_device(t), NULL) ||
        !expect_ok(t, place_build(&p,
                                  "dim n graph (input %x: f32[n])"
                                  " { %y = narrow %x axis=0 start=3 len=2 return %y }",
                                  NULL)))
        return place_close(&p);
    for (int64_t n = 0; n < 9; n++) {
        test_note(t, "row 13, a narrow of %d", (int)n);
        rlx_status s = run_x(&p, 1, &n, x, y, 64, NULL);
        if (n >= 5 && expect_ok(t, s))
            expect_near(t, y[1], 4, 0);
        else if (n < 5)
            expect_error(t, RLX_ERROR_ATTRIBUTE, "narrow", &p.err);
    }
    expect_ok(t, place_build(&p,
                             "dim n graph (input %x: f32[n,1,2,3])"
                             " { %y = im2col %x kernel_size=[2,2] return %y }",
                             NULL));
    for (int64_t n = 3; n >= 0; n--) {
        int64_t dim[4] = {n, 1, 2, 3};
        test_note(t, "row 19, a batch of %d", (int)n);
        expect_ok(t, run_x(&p, 4, dim, x, y, 64, &shape));
        expect_eq(t, shape.dim[0], 2 * n);
        if (n)
            expect_near(t, y[8 * n - 1], (double)(6 * n - 1), 0);
    }
    expect_ok(
        t, place_build(
               &p, "dim n graph (input %x: f32[n,4]) { %y = reshape %x shape=[n,2,-1] return %y }",
               NULL));
    for (int64_t n = 0; n < 3; n++) {
        int64_t dim[2] = {n, 4};
        test_note(t, "row 51, an inferred size beside %d", (int)n);
        expect_ok(t, run_x(&p, 2, dim, x, y, 64, &shape));
        expect_eq(t, shape.dim[2], 2);
    }
    place_close(&p);
}

/* Row 55: the same buffer with other numbers in it is another input. */
TEST_DEVICES(required, changed_data_is_seen)
{
    enum { N = 3000 }; /* more than 4 KiB */
    struct place p;
    static float x[N], y[N];
    int64_t n = N;

    if (!place_open(t, &p, test_device(t), NULL) ||
        !expect_ok(t,
                   place_build(&p, "graph (input %x: f32[3000]) { %y = neg %x return %y }", NULL)))
        return place_close(&p);
    test_note(t, "row 55");
    for (int i = 0; i < 5; i++) {
        x[N - 1] = (float)i;
        expect_ok(t, run_x(&p, 1, &n, x, y, N, NULL));
        expect_near(t, y[N - 1], -i, 0);
        expect_near(t, x[N - 1], i, 0); /* nobody writes to it */
    }
    place_close(&p);
}

/* Rows 46, 49, 54, 61, 64: a state stays from run to run and size to size; rows that do not fit are
 * refused whole; it is written whether or not an output is read. */
#define APPEND                                                                     \
    "dim n graph (state %cache: f32[4,2], input %x: f32[n,2], input %at: i64[]) {" \
    " %all = cache_append %cache, %x, %at axis=0 %y = reduce_sum %all axes=[0] return %y }"

static void append(struct test *t, struct place *p, int64_t rows, int64_t at, size_t outputs,
                   rlx_status want)
{
    float x[16] = {1, 2, 10, 20, 100, 200, 1000, 2000}, y[2] = {0};
    rlx_binding in[2] = {{"x", {RLX_DTYPE_f32, 2, {rows, 2}, x, (size_t)rows * 8}},
                         {"at", {RLX_DTYPE_i64, 0, {0}, &at, 8}}};
    rlx_binding out = {"y", {RLX_DTYPE_f32, 0, {0}, y, sizeof y}};

    memset(&p->err, 0, sizeof p->err);
    expect_status(
        t,
        rlx_session_run(p->session,
                        &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 2, &out, outputs, NULL, 0},
                        &p->err),
        want);
}

static void expect_cache(struct test *t, struct place *p, const float *want)
{
    float got[8];
    rlx_tensor value = {RLX_DTYPE_f32, 0, {0}, got, sizeof got};

    expect_ok(t, rlx_session_get_state(p->session, "cache", &value, &p->err));
    expect_eq(t, value.dim[0], 4);
    expect_close(t, got, want, 8, 0, 0);
}

TEST_DEVICES(required, states_stay_and_are_never_overrun)
{
    static const int64_t wrong[] = {4, 5, -1, INT64_MAX, INT64_MIN, INT64_C(1) << 33};
    float zero[8] = {0}, one[8] = {1, 2, 10, 20}, two[8] = {1, 2, 1, 2, 10, 20, 0, 0}, set[9] = {9};
    struct place p;

    if (!place_open(t, &p, test_device(t), NULL) || !expect_ok(t, place_build(&p, APPEND, NULL)))
        return place_close(&p);
    test_note(t, "row 64, zero until set");
    expect_cache(t, &p, zero);
    append(t, &p, 2, 0, 1, RLX_OK);
    expect_cache(t, &p, one);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        test_note(t, "rows 46, 61: one row at %lld", (long long)wrong[i]);
        append(t, &p, 1, wrong[i], 1, RLX_ERROR_INDEX);
        expect_contains(t, p.err.message, "cache_append");
        expect_cache(t, &p, one);
    }
    test_note(t, "rows 46, 61: two rows, of which one fits");
    append(t, &p, 2, 3, 1, RLX_ERROR_INDEX);
    expect_cache(t, &p, one);
    test_note(t, "row 49: nothing is read back");
    append(t, &p, 2, 1, 0, RLX_OK);
    expect_cache(t, &p, two);
    for (int64_t n = 0; n < 4; n++) {
        test_note(t, "row 54: %d rows at once", (int)n);
        append(t, &p, n, 4 - n, 1, RLX_OK);
    }
    test_note(t, "rows 40 to 43 for states");
    rlx_tensor value = {RLX_DTYPE_f32, 2, {4, 2}, set, 32};
    expect_ok(t, rlx_session_set_state(p.session, "cache", &value, &p.err));
    value.dim[0] = 3, value.bytes = 24;
    rlx_session_set_state(p.session, "cache", &value, &p.err);
    expect_error(t, RLX_ERROR_SIZE, "f32[4,2] is wanted", &p.err);
    rlx_session_set_state(p.session, "x", &value, &p.err);
    expect_error(t, RLX_ERROR_NAME, "cache", &p.err);
    rlx_session_get_state(p.session, "cache", &value, &p.err);
    expect_error(t, RLX_ERROR_SIZE, "32 bytes", &p.err);
    expect_cache(t, &p, set);
    place_close(&p);
}

/* Row 61: reads clamp, writes drop, and checked mode reports; experts always report. */
TEST_DEVICES(required, indices_out_of_range_are_harmless)
{
    static const struct {
        const char *graph, *in, *want;
    } rows[] = {
        {"graph (input %x: f32[3], input %i: i32[4]) { %y = gather %x, %i return %y }",
         "10 20 30 | -1 3 1 2000000000", "10 30 20 30"},
        {"graph (input %x: f32[3], input %i: f32[3]) { %y = gather %x, %i return %y }",
         "10 20 30 | nan inf -inf", "10 30 10"},
        {"graph (input %x: f32[2,2], input %i: i64[2,2]) { %y = gather_elements %x, %i axis=1 "
         "return %y }",
         "1 2 3 4 | -7 9 0 1", "1 2 3 4"},
        {"graph (input %x: f32[2,2], input %i: i32[1,2]) { %y = gather_nd %x, %i return %y }",
         "1 2 3 4 | 5 -5", "3"},
        {"graph (input %x: f32[4], input %i: i32[4]) { %y = scatter_add %x, %i out_dim=2 return %y "
         "}",
         "1 2 4 8 | 0 2 1 -1", "1 4"},
        {"graph (input %x: f32[2], input %i: i32[3], input %u: f32[3])"
         " { %y = scatter_elements %x, %i, %u return %y }",
         "1 2 | 1 2 -1 | 7 8 9", "1 7"},
        {"graph (input %x: f32[2], input %i: i32[3,1], input %u: f32[3])"
         " { %y = scatter_nd %x, %i, %u return %y }",
         "1 2 | 0 2 -1 | 7 8 9", "7 2"},
    };
    struct place p;

    if (!place_open(t, &p, test_device(t), NULL))
        return place_close(&p);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        rlx_binding in[MOST_INPUTS];
        char name[MOST_INPUTS][32];
        float data[MOST_INPUTS][MOST_NUMBERS];
        test_note(t, "row 61: %s", rows[i].graph);
        expect_numbers(t, &p, rows[i].graph, rows[i].in, rows[i].want);
        if (!expect_ok(t, place_build(&p, rows[i].graph,
                                      &(rlx_session_desc){RLX_SIZED(rlx_session_desc),
                                                          .check_indices = true})))
            continue;
        size_t count = read_inputs(p.model, rows[i].in, in, name, data);
        rlx_run_desc run = {RLX_SIZED(rlx_run_desc), in, count, NULL, 0, NULL, 0};
        rlx_session_run(p.session, &run, &p.err);
        expect_error(t, RLX_ERROR_INDEX, "position", &p.err);
        expect_str(t, p.err.label, "y");
        memset(data[1], 0, sizeof data[1]); /* in range */
        expect_ok(t, rlx_session_run(p.session, &run, &p.err));
    }
    place_close(&p);
}

static void check_unknown_experts(struct test *t, const char *op, const char *graph)
{
    struct place p;
    float x[2] = {1, 2}, y[2] = {0}, want[2] = {20, 20};
    int32_t expert[2] = {1, 2};

    if (!place_open(t, &p, test_device(t), NULL) || !expect_ok(t, place_build(&p, graph, NULL)))
        return place_close(&p);
    rlx_binding in[2] = {{"x", {RLX_DTYPE_f32, 2, {2, 1}, x, 8}},
                         {"e", {RLX_DTYPE_i32, 1, {2}, expert, 8}}};
    rlx_binding out = {"y", {RLX_DTYPE_f32, 0, {0}, y, sizeof y}};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), in, 2, &out, 1, NULL, 0};
    for (int i = 0; i < 3; i++) {
        static const int32_t wrong[] = {2, -1, INT32_MAX};
        char part[64];
        test_note(t, "row 61: %s, expert %d", op, wrong[i]);
        snprintf(part, sizeof part, "%s: index %d at position 1", op, wrong[i]);
        expert[1] = wrong[i];
        memset(&p.err, 0, sizeof p.err);
        rlx_session_run(p.session, &run, &p.err);
        expect_error(t, RLX_ERROR_INDEX, part, &p.err);
        expert[1] = 0;
        expect_ok(t, rlx_session_run(p.session, &run, &p.err));
        expect_close(t, y, want, 2, 1e-4, 0); /* x goes through eight bits in one of them */
    }
    place_close(&p);
}

/* The packed one: an expert of all tens of 1/32 and one of all twenties, q8_0 (d = 2^-5). */
#define TENS "00280a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"
#define TWENTIES "00281414141414141414141414141414141414141414141414141414141414141414"

TEST_DEVICES(required, unknown_experts_are_always_reported)
{
    check_unknown_experts(
        t, "grouped_matmul",
        "graph (input %x: f32[2,1], input %e: i32[2])"
        " { %w = const f32[2,1,1] {10 20} %y = grouped_matmul %x, %w, %e return %y }");
    check_unknown_experts(
        t, "dequant_grouped_matmul",
        "graph (input %x: f32[2,1], input %e: i32[2]) { %v = expand %x shape=[2,32]"
        " %w = const u8[2,1,34] bytes 0x" TENS TWENTIES
        " %y = dequant_grouped_matmul %v, %w, %e scheme=q8_0 k=32 return %y }");
    check_unknown_experts(
        t, "dequant_grouped_matmul",
        "graph (input %x: f32[2,1], input %e: i32[2]) { %v = expand %x shape=[2,32]"
        " %w = const u8[2,1,34] bytes 0x" TENS TWENTIES
        " %y = dequant_grouped_matmul %v, %w, %e scheme=q8_0 k=32 act=q8 return %y }");
}
#undef TENS
#undef TWENTIES

/* Row 50: what cannot shrink with its bound is compiled per value, and says so; or is refused. */
static void note_line(void *user, int level, const char *line)
{
    *(bool *)user |= level == 1 && strstr(line, "compiled per value") != NULL;
}

TEST_DEVICES(required, what_cannot_shrink_is_reported)
{
    static const char graph[] = "dim n <= 6 graph (input %x: f32[n]) {"
                                " %y = pad %x before=[6-n] after=[0] return %y }";
    float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
    bool said = false;
    rlx_bound_info info = {RLX_SIZED(rlx_bound_info)};
    struct place p;

    if (!place_open(
            t, &p, test_device(t),
            &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .log = note_line, .log_user = &said}))
        return place_close(&p);
    test_note(t, "row 50");
    expect_ok(t, place_build(&p, graph, NULL));
    for (int64_t n = 6; n >= 0; n--) {
        expect_ok(t, run_x(&p, 1, &n, x, y, 6, NULL));
        expect_near(t, y[5], (double)n, 0);
    }
    expect_ok(t, rlx_session_bound(p.session, "n", &info, &p.err));
    expect_eq(t, info.by_value, said);
    expect_ok(t, place_build(&p,
                             "dim n <= 6 graph (input %x: f32[n]) { %p = pad %x before=[6-n]"
                             " after=[0] %y = narrow %p axis=0 start=0 len=6-n return %y }",
                             NULL));
    int64_t n = 2;
    expect_ok(t, run_x(&p, 1, &n, x, y, 6, NULL));
    expect_ok(t, rlx_session_bound(p.session, "n", &info, &p.err));
    expect(t, info.by_value && said);
    expect_ok(t,
              place_build(&p,
                          "dim n <= 6 graph (input %x: f32[n]) { %p = pad %x before=[6-n]"
                          " after=[0] %y = narrow %p axis=0 start=0 len=6-n return %y }",
                          &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .strict_extent = true}));
    for (int i = 0; i < 2; i++) {
        run_x(&p, 1, &n, x, y, 6, NULL);
        expect_error(t, RLX_ERROR_EXTENT, "grows", &p.err);
    }
    expect_working(t, &p);
    place_close(&p);
}

/* Rows of 8.2 that are not here:
 *   40-45, 48, 58, 59, 66           required_run_test.c
 *   40-46, 48, 49, 54, 55, 57, 60, 63, 64   of handles, feeds and clones: required_handle_test.c
 *   52, 54    at length: deferred_test.c
 *   51, 62    values: required_values_test.c
 * and those that no CPU can meet:
 *   47, 65    f16 mirrors and tail steps belong to GPUs
 *   53        GPU FFT steps; the CPU's own tables: bound_ops_test.c
 *   56        a CPU is not lost */
