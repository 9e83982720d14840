/* limits_test.c: runtime.md 10, lines 9 and 10: programs whose memory is more than a kernel
 * can see at once, in buffers as large as the device makes them and in smaller ones, and more
 * groups than a row of a grid has. Every tensor is within the limit, so each kernel does the same,
 * and the results are those of a device without it, bit for bit. */
#include "session/required.h"

enum { COLUMNS = 64, LEAST_BUFFER = 512 << 10 };

/* Rows of as many bytes as the limit is, through kernels of all kinds; most of them are alive at
 * the end. */
static const char network[] =
    "graph (input %%x: f32[%lld,64], param %%w: f32[64,64], param %%g: f32[64])"
    " { %%a = softmax %%x axis=1 %%b = matmul %%a, %%w %%c = rms_norm %%b, %%g"
    " %%d = add %%c, %%x %%e = gelu %%d %%f = transpose %%e perm=[1,0] %%h = transpose %%f "
    "perm=[1,0]"
    " %%i = sort %%h axis=1 %%j = cumsum %%i axis=1 %%k = add %%j, %%b %%l = mul %%k, %%k"
    " %%m = reduce_sum %%l axes=[1] %%n = reduce_max %%e axes=[0] return %%m, %%n, %%l }";

struct run {
    const rlx_flag *flags;
    size_t flag_count;
    rlx_session_desc session;
};

/* Numbers that are not all alike. */
static void fill(float *x, size_t n, size_t seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((i * 7919 + seed * 104729 + 13) % 101) / 25.0f - 2.0f;
}

static bool set_params(struct test *t, struct place *p)
{
    static float w[COLUMNS * COLUMNS], g[COLUMNS];
    rlx_tensor matrix = {RLX_DTYPE_f32, 2, {COLUMNS, COLUMNS}, w, sizeof w};
    rlx_tensor vector = {RLX_DTYPE_f32, 1, {COLUMNS}, g, sizeof g};

    fill(w, COLUMNS * COLUMNS, 1);
    fill(g, COLUMNS, 2);
    return expect_ok(t, rlx_session_set_param(p->session, "w", &matrix, &p->err)) &&
           expect_ok(t, rlx_session_set_param(p->session, "g", &vector, &p->err));
}

/* Room for the outputs: a number for each row, one for each column, and all. */
static size_t room_for(int64_t rows)
{
    return (size_t)rows * (COLUMNS + 1) + COLUMNS;
}

static bool run_rows(struct test *t, struct place *p, int64_t rows, float *out)
{
    size_t count = (size_t)rows * COLUMNS;
    float *x = malloc(count * sizeof *x);
    rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {rows, COLUMNS}, x, count * sizeof *x}};
    rlx_binding want[3] = {{"m", {.dtype = RLX_DTYPE_f32, .data = out}},
                           {"n", {.dtype = RLX_DTYPE_f32, .data = out + rows}},
                           {"l", {.dtype = RLX_DTYPE_f32, .data = out + rows + COLUMNS}}};

    if (!expect(t, x != NULL))
        return false;
    fill(x, count, 3);
    want[0].tensor.bytes = (size_t)rows * sizeof *out;
    want[1].tensor.bytes = COLUMNS * sizeof *out;
    want[2].tensor.bytes = count * sizeof *out;
    bool ran = expect_ok(
        t, rlx_session_run(p->session,
                           &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, want, 3, NULL, 0},
                           &p->err));
    free(x);
    return ran || fail(t, "%s", p->err.message);
}

/* Its activations take more than `least` bytes. */
static bool run_network(struct test *t, const struct run *r, int64_t rows, float *out,
                        uint64_t least)
{
    struct place p;
    rlx_memory_info memory = {RLX_SIZED(rlx_memory_info)};
    char text[1024];
    bool ran = false;

    snprintf(text, sizeof text, network, (long long)rows);
    if (!place_open(t, &p, test_device(t),
                    &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .flags = r->flags,
                                        .flag_count = r->flag_count}))
        return false;
    if (!expect_ok(t, place_build(&p, text, &r->session)))
        fail(t, "%s", p.err.message);
    else
        ran = set_params(t, &p) && run_rows(t, &p, rows, out) &&
              expect_ok(t, rlx_session_memory(p.session, &memory, &p.err));
    expect(t, !ran || memory.activations > least);
    expect(t, !ran || !r->session.max_buffer || memory.buffers > 1);
    place_close(&p);
    return ran;
}

/* The same bits with the limits and without. */
static void compare(struct test *t, const struct run *limited, int64_t rows, uint64_t limit)
{
    const struct run plain = {
        .session = {RLX_SIZED(rlx_session_desc), .debug = limited->session.debug}};
    size_t room = room_for(rows);
    float *a = calloc(room, sizeof *a), *b = calloc(room, sizeof *b);

    if (expect(t, a && b) && run_network(t, limited, rows, a, limit) &&
        run_network(t, &plain, rows, b, limit))
        expect(t, memcmp(a, b, room * sizeof *a) == 0);
    free(a);
    free(b);
}

/* Activations are as large as the limit, the arena several times that. */
static void check_limit(struct test *t, const char *bytes, uint64_t limit)
{
    const int64_t rows = (int64_t)(limit / (COLUMNS * sizeof(float)));
    const rlx_flag binding = {"GPU_MAX_BINDING", bytes};

    for (int i = 0; i < 3; i++) {
        struct run r = {
            .flags = &binding,
            .flag_count = 1,
            .session = {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_reuse = i > 0)}};
        if (i == 2) /* in several buffers; scratch wants some room in one */
            r.session.max_buffer = limit < LEAST_BUFFER ? LEAST_BUFFER : limit;
        test_note(t, "%s bytes to a binding, way %d", bytes, i);
        compare(t, &r, rows, limit);
    }
    test_note(t, "%s", "");
}

TEST_GPUS(gpu_limits, an_arena_above_a_binding_of_64_kib)
{
    check_limit(t, "65536", UINT64_C(64) << 10);
}

TEST_GPUS_SLOW(gpu_limits, an_arena_above_a_binding_of_1_mib)
{
    check_limit(t, "1048576", UINT64_C(1) << 20);
}

/* Grids of more than one row, and of more than one plane. */
TEST_GPUS(gpu_limits, more_groups_than_a_grid_has_in_a_row)
{
    static const char *const most[] = {"7", "20"};

    for (size_t i = 0; i < 2; i++) {
        const rlx_flag groups = {"GPU_MAX_GROUPS", most[i]};
        const struct run r = {
            .flags = &groups, .flag_count = 1, .session = {RLX_SIZED(rlx_session_desc)}};
        test_note(t, "%s groups", most[i]);
        compare(t, &r, 200, 0);
    }
}

/* ---- as devices are ---- */

/* A tensor of 128 MiB, all that WebGPU promises of a binding, in an arena of more than one buffer;
 * and more groups than the 65,535 of a row. */
TEST_GPUS_SLOW(gpu_limits, an_arena_above_a_binding_of_128_mib)
{
    enum { COUNT = 1 << 25 };
    const rlx_flag limit = {"GPU_MAX_BINDING", "134217728"};
    float *x = malloc(COUNT * sizeof *x), y[2] = {0};
    rlx_binding in = {"x", {RLX_DTYPE_f32, 1, {COUNT}, x, COUNT * sizeof *x}};
    rlx_binding out = {"y", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}};
    struct place p;

    require(t, x != NULL);
    for (size_t i = 0; i < COUNT; i++)
        x[i] = (float)(i % 3);
    if (place_open(
            t, &p, test_device(t),
            &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .flags = &limit, .flag_count = 1})) {
        rlx_memory_info memory = {RLX_SIZED(rlx_memory_info)};
        expect_ok(t, place_build(
                         &p,
                         "graph (input %x: f32[33554432]) { %a = neg %x %b = mul %a, %a"
                         " %c = add %b, %a %r = reshape %c shape=[2,16777216]"
                         " %y = reduce_max %r axes=[1] return %y }",
                         &(rlx_session_desc){RLX_SIZED(rlx_session_desc),
                                             .debug = DEBUG(.no_fusion = true, .no_reuse = true)}));
        expect_ok(
            t, rlx_session_run(p.session,
                               &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0},
                               &p.err));
        expect_ok(t, rlx_session_memory(p.session, &memory, &p.err));
        expect(t, memory.activations > UINT64_C(256) << 20);
        expect(t, y[0] == 2 && y[1] == 2); /* 2 * 2 - 2 */
    }
    place_close(&p);
    free(x);
}

enum { WORDS = 32000, WIDTH = 1152 };

/* Of the products with the table, those whose rows lie before, across and after its middle edge.
 */
static void expect_products(struct test *t, const float *w, const int32_t *id, const float *y)
{
    static const size_t column[] = {0, 1, 29126, 29127, 29128, WORDS - 1};

    for (size_t r = 0; r < 2; r++)
        for (size_t k = 0; k < COUNT_OF(column); k++) {
            const float *a = w + (size_t)id[r] * WIDTH, *b = w + column[k] * WIDTH;
            double sum = 0;
            for (size_t i = 0; i < WIDTH; i++)
                sum += (double)a[i] * (double)b[i];
            test_note(t, "row %zu, column %zu", r, column[k]);
            expect_near(t, (double)y[r * WORDS + column[k]], sum, 1e-3);
        }
}

/* An embedding table of 147 MB, which is a weight as well: 128 MiB can be bound at once on the
 * least of devices, and on Mesa's software driver. */
TEST_GPUS_SLOW(gpu_limits, a_table_above_a_binding_of_128_mib)
{
    const rlx_flag limit = {"GPU_MAX_BINDING", "134217728"};
    size_t count = (size_t)WORDS * WIDTH;
    float *w = malloc(count * sizeof *w), *y = malloc(2 * WORDS * sizeof *y), x[2 * WIDTH];
    int32_t id[] = {5, 31000};
    rlx_tensor table = {RLX_DTYPE_f32, 2, {WORDS, WIDTH}, w, count * sizeof *w};
    rlx_binding in = {"i", {RLX_DTYPE_i32, 1, {2}, id, sizeof id}};
    rlx_binding out[] = {
        {"x", {.dtype = RLX_DTYPE_f32, .data = x, .bytes = sizeof x}},
        {"y", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = 2 * WORDS * sizeof *y}}};
    struct place p;

    require(t, w && y);
    fill(w, count, 5);
    if (place_open(
            t, &p, test_device(t),
            &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .flags = &limit, .flag_count = 1}) &&
        expect_ok(t, place_build(&p,
                                 "graph (input %i: i32[2], param %w: f32[32000,1152])"
                                 " { %x = gather %w, %i axis=0 %y = matmul %x, %w transpose_b=true"
                                 " return %x, %y }",
                                 NULL)) &&
        expect_ok(t, rlx_session_set_param(p.session, "w", &table, &p.err)) &&
        expect_ok(t,
                  rlx_session_run(p.session,
                                  &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, out, 2, NULL, 0},
                                  &p.err))) {
        for (size_t r = 0; r < 2; r++)
            expect(t, memcmp(x + r * WIDTH, w + (size_t)id[r] * WIDTH, WIDTH * sizeof *x) == 0);
        expect_products(t, w, id, y);
    }
    place_close(&p);
    free(w);
    free(y);
}

/* One tensor that is larger than what can be bound at once is processed in parts or seen through
 * windows; one that needs too many of them is refused by name. */
TEST_GPUS(gpu_limits, one_operand_above_the_limit)
{
    static const rlx_flag limit = {"GPU_MAX_BINDING", "65536"};
    struct place p;

    if (!place_open(
            t, &p, test_device(t),
            &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .flags = &limit, .flag_count = 1}))
        return;
    expect_ok(
        t, place_build(&p, "graph (input %x: f32[20000]) { %y = sort %x axis=0 return %y }", NULL));
    expect_status(
        t,
        place_build(&p, "graph (input %x: f32[2000000]) { %y = sort %x axis=0 return %y }", NULL),
        RLX_ERROR_LIMIT);
    expect_contains(t, p.err.message, "sort");
    expect_contains(t, p.err.message, "windows of 65536 bytes");
    expect_working(t, &p);
    expect_status(
        t,
        place_build(&p, "graph (input %x: f32[20000]) { %y = neg %x return %y }",
                    &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .max_buffer = 65536}),
        RLX_ERROR_LIMIT);
    expect_contains(t, p.err.message, "\"x\"");
    expect_working(t, &p);
    place_close(&p);
}
