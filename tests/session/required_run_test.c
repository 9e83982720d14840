/* required_run_test.c: runtime.md 8.2, row by row, and what 4.4 and 4.5 say of params,
 * inputs and outputs: what a run may not ignore, clamp or overwrite. Those about sizes and states
 * are in required_dims_test.c, those about handles in required_handle_test.c. */
#include <math.h>

#include "required.h"
#include "rlx/cache.h"

static rlx_tensor floats(float *data, int64_t n)
{
    return (rlx_tensor){RLX_DTYPE_f32, 1, {n}, data, (size_t)n * sizeof *data};
}

/* Two params around one another, so that a write past an end shows in the neighbour. */
#define PAIR                                                                                \
    "graph (input %x: f32[3], param %w: f32[3], param %u: f32[3], input %unread: f32[5]) {" \
    " %y = mul %x, %w %z = add %y, %u return %y, %z, %y }"

struct pair {
    struct place p;
    float x[8], w[8], u[8], y[3], z[3];
    rlx_binding in, out[2];
    rlx_run_desc run;
};

static bool open_pair(struct test *t, struct pair *s)
{
    memset(s, 0, sizeof *s);
    if (!place_open(t, &s->p, test_device(t), NULL) ||
        !expect_ok(t, place_build(&s->p, PAIR, NULL)))
        return false;
    for (int i = 0; i < 8; i++)
        s->x[i] = (float)(i + 1), s->w[i] = 2, s->u[i] = 100;
    s->in = (rlx_binding){"x", floats(s->x, 3)};
    s->out[0] = (rlx_binding){"y", floats(s->y, 3)};
    s->out[1] = (rlx_binding){"z", floats(s->z, 3)};
    s->run = (rlx_run_desc){RLX_SIZED(rlx_run_desc), &s->in, 1, s->out, 2, NULL, 0};
    rlx_tensor w = floats(s->w, 3), u = floats(s->u, 3);
    return expect_ok(t, rlx_session_set_param(s->p.session, "w", &w, &s->p.err)) &&
           expect_ok(t, rlx_session_set_param(s->p.session, "u", &u, &s->p.err));
}

/* Whatever was refused before: y = 2 x, z = 2 x + 100. */
static void expect_pair(struct test *t, struct pair *s)
{
    static const float y[3] = {2, 4, 6}, z[3] = {102, 104, 106};

    memset(s->y, 0, sizeof s->y);
    memset(s->z, 0, sizeof s->z);
    expect_ok(t, rlx_session_run(s->p.session, &s->run, &s->p.err));
    expect_close(t, s->y, y, 3, 0, 0);
    expect_close(t, s->z, z, 3, 0, 0);
}

static void expect_run_error(struct test *t, struct pair *s, const rlx_run_desc *run,
                             rlx_status status, const char *part)
{
    memset(&s->p.err, 0, sizeof s->p.err);
    rlx_session_run(s->p.session, run, &s->p.err);
    expect_error(t, status, part, &s->p.err);
    expect_pair(t, s);
}

TEST_DEVICES(required, params_of_wrong_name_or_length_write_nothing)
{
    struct pair s;

    if (!open_pair(t, &s))
        return place_close(&s.p);
    test_note(t, "row 40, unknown param");
    rlx_tensor v = floats(s.x, 3);
    rlx_session_set_param(s.p.session, "nobody", &v, &s.p.err);
    expect_error(t, RLX_ERROR_NAME, "w, u", &s.p.err);     /* those there are */
    rlx_session_set_param(s.p.session, "x", &v, &s.p.err); /* an input is not a param */
    expect_error(t, RLX_ERROR_NAME, "\"x\"", &s.p.err);
    rlx_session_set_param_bytes(s.p.session, "", s.x, 12, &s.p.err);
    expect_error(t, RLX_ERROR_NAME, "w, u", &s.p.err);
    expect_pair(t, &s);
    for (int64_t n = 0; n <= 8; n++) {
        if (n == 3)
            continue;
        test_note(t, "rows 41 to 43, %d elements", (int)n);
        v = floats(s.x, n);
        rlx_session_set_param(s.p.session, "w", &v, &s.p.err);
        expect_error(t, RLX_ERROR_SIZE, "[3] is wanted", &s.p.err);
        rlx_session_set_param_bytes(s.p.session, "w", s.x, (size_t)n * 4 + 1, &s.p.err);
        expect_error(t, RLX_ERROR_SIZE, "has 12 bytes", &s.p.err);
        expect_pair(t, &s);
    }
    test_note(t, "rows 41, 42, bytes that do not go with the dims");
    v = floats(s.x, 3);
    v.bytes = 16;
    rlx_session_set_param(s.p.session, "w", &v, &s.p.err);
    expect_error(t, RLX_ERROR_SIZE, "12 bytes", &s.p.err);
    v.bytes = 12, v.data = NULL;
    rlx_session_set_param(s.p.session, "w", &v, &s.p.err);
    expect_error(t, RLX_ERROR_ARGUMENT, "NULL", &s.p.err);
    expect_pair(t, &s);
    place_close(&s.p);
}

TEST_DEVICES(required, inputs_are_checked_before_anything_is_written)
{
    struct pair s;
    rlx_binding in[3];

    if (!open_pair(t, &s))
        return place_close(&s.p);
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), in, 2, s.out, 2, NULL, 0};
    in[0] = in[1] = in[2] = s.in;
    test_note(t, "row 40, unknown input after a good one");
    in[1].name = "nobody";
    expect_run_error(t, &s, &run, RLX_ERROR_NAME, "x, unread");
    in[1].name = "w"; /* a param is not an input */
    expect_run_error(t, &s, &run, RLX_ERROR_NAME, "\"w\"");
    test_note(t, "4.5, duplicates");
    in[1].name = "x";
    expect_run_error(t, &s, &run, RLX_ERROR_ARGUMENT, "twice");
    test_note(t, "rows 41, 42");
    run.input_count = 1;
    for (int64_t n = 0; n <= 8; n++) {
        if (n == 3)
            continue;
        in[0].tensor = floats(s.x, n);
        expect_run_error(t, &s, &run, RLX_ERROR_SIZE, "[3] is wanted");
    }
    in[0].tensor = floats(s.x, -3);
    in[0].tensor.bytes = 12;
    expect_run_error(t, &s, &run, RLX_ERROR_SIZE, "dims");
    in[0].tensor = floats(s.x, INT64_MAX);
    expect_run_error(t, &s, &run, RLX_ERROR_SIZE, "x");
    test_note(t, "row 44");
    run.input_count = 0;
    expect_run_error(t, &s, &run, RLX_ERROR_MISSING_INPUT, "\"x\"");
    test_note(t, "an input that nothing reads: may be left out or given, but not wrong");
    run.input_count = 2;
    in[0] = s.in;
    in[1] = (rlx_binding){"unread", floats(s.x, 5)};
    expect_ok(t, rlx_session_run(s.p.session, &run, &s.p.err));
    in[1].tensor = floats(s.x, 4);
    expect_run_error(t, &s, &run, RLX_ERROR_SIZE, "unread");
    test_note(t, "the order does not matter");
    in[1] = in[0];
    in[0] = (rlx_binding){"unread", floats(s.x, 5)};
    expect_ok(t, rlx_session_run(s.p.session, &run, &s.p.err));
    expect_near(t, s.z[2], 106, 0);
    place_close(&s.p);
}

/* Row 44 for params, and the option that reads them as zero. */
TEST_DEVICES(required, unset_params_are_missing_inputs)
{
    struct pair s;
    rlx_tensor v;

    if (!open_pair(t, &s))
        return place_close(&s.p);
    test_note(t, "row 44, a fresh model");
    expect_ok(t, place_build(&s.p, PAIR, NULL));
    rlx_session_run(s.p.session, &s.run, &s.p.err);
    expect_error(t, RLX_ERROR_MISSING_INPUT, "w, u", &s.p.err);
    v = floats(s.w, 3);
    expect_ok(t, rlx_session_set_param(s.p.session, "w", &v, &s.p.err));
    rlx_session_run(s.p.session, &s.run, &s.p.err);
    expect_error(t, RLX_ERROR_MISSING_INPUT, "1 params have no value: u", &s.p.err);
    v = floats(s.u, 3);
    expect_ok(t, rlx_session_set_param(s.p.session, "u", &v, &s.p.err));
    expect_pair(t, &s);
    expect_ok(t, place_build(&s.p, PAIR,
                             &(rlx_session_desc){RLX_SIZED(rlx_session_desc),
                                                 .params_default_zero = true}));
    expect_ok(t, rlx_session_run(s.p.session, &s.run, &s.p.err));
    expect_near(t, s.z[1], 0, 0);
    place_close(&s.p);
}

TEST_DEVICES(required, outputs_are_selected_in_any_order)
{
    struct pair s;
    float more[3][3] = {{0}};
    rlx_tensor shape;

    if (!open_pair(t, &s))
        return place_close(&s.p);
    test_note(t, "4.5, duplicates of one output in one run; out2 is y again");
    rlx_binding out[] = {{"z", floats(more[0], 3)},
                         {"out2", floats(more[1], 3)},
                         {"y", floats(s.y, 3)},
                         {"z", floats(more[2], 3)}};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &s.in, 1, out, 4, NULL, 0};
    expect_ok(t, rlx_session_run(s.p.session, &run, &s.p.err));
    expect_near(t, more[0][0], 102, 0);
    expect_near(t, more[1][1], 4, 0);
    expect_near(t, s.y[2], 6, 0);
    expect_near(t, more[2][2], 106, 0);
    test_note(t, "4.5, an empty list executes only");
    run.output_count = 0;
    expect_ok(t, rlx_session_run(s.p.session, &run, &s.p.err));
    test_note(t, "row 48");
    run.output_count = 1;
    out[0].name = "out3";
    expect_run_error(t, &s, &run, RLX_ERROR_NAME, "out3");
    out[0].name = NULL;
    expect_run_error(t, &s, &run, RLX_ERROR_NAME, "output");
    rlx_session_output_shape(s.p.session, 3, &shape, &s.p.err);
    expect_error(t, RLX_ERROR_ARGUMENT, "3", &s.p.err);
    rlx_session_output_shape(s.p.session, SIZE_MAX, &shape, &s.p.err);
    expect_error(t, RLX_ERROR_ARGUMENT, "3 outputs", &s.p.err);
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};
    rlx_model_io(s.p.model, RLX_IO_OUTPUT, 3, &info, &s.p.err);
    expect_error(t, RLX_ERROR_ARGUMENT, "3", &s.p.err);
    test_note(t, "4.5, no room, or none of that type");
    out[0] = (rlx_binding){"y", floats(more[0], 2)};
    expect_run_error(t, &s, &run, RLX_ERROR_SIZE, "12 bytes");
    out[0].tensor = (rlx_tensor){RLX_DTYPE_i64, 1, {3}, more, sizeof more};
    expect_run_error(t, &s, &run, RLX_ERROR_DTYPE, "i64");
    out[0].tensor = (rlx_tensor){RLX_DTYPE_f32, 1, {3}, NULL, 12};
    expect_run_error(t, &s, &run, RLX_ERROR_ARGUMENT, "NULL");
    run = (rlx_run_desc){RLX_SIZED(rlx_run_desc), NULL, 1, out, 0, NULL, 0};
    expect_run_error(t, &s, &run, RLX_ERROR_ARGUMENT, "NULL");
    place_close(&s.p);
}

/* Row 45: what is not there yet is not read as zeros. */
TEST_DEVICES(required, nothing_is_read_before_it_exists)
{
    struct pair s;
    rlx_tensor shape;
    rlx_memory_info memory = {RLX_SIZED(rlx_memory_info)};

    if (!open_pair(t, &s))
        return place_close(&s.p);
    test_note(t, "row 45");
    rlx_tensor v = floats(s.x, 3);
    expect_ok(t, place_build(&s.p, PAIR, NULL));
    rlx_session_get_param(s.p.session, "w", &v, &s.p.err);
    expect_error(t, RLX_ERROR_STATE, "\"w\"", &s.p.err);
    expect_near(t, s.x[0], 1, 0);
    expect_ok(t,
              place_build(&s.p, "dim n graph (input %x: f32[n]) { %y = neg %x return %y }", NULL));
    rlx_session_output_shape(s.p.session, 0, &shape, &s.p.err);
    expect_error(t, RLX_ERROR_STATE, "symbolic", &s.p.err);
    rlx_session_memory(s.p.session, &memory, &s.p.err);
    expect_error(t, RLX_ERROR_STATE, "symbolic", &s.p.err);
    s.run.output_count = 1;
    s.out[0].name = "y";
    expect_ok(t, rlx_session_run(s.p.session, &s.run, &s.p.err));
    expect_ok(t, rlx_session_output_shape(s.p.session, 0, &shape, &s.p.err));
    expect_eq(t, shape.dim[0], 3);
    place_close(&s.p);
}

/* 4.4: conversions to the declared type are exact, or to a declared narrower float. */
TEST_DEVICES(required, params_convert_or_are_refused)
{
    static const struct {
        rlx_dtype declared, given;
        bool allowed;
    } pairs[] = {
        {RLX_DTYPE_f32, RLX_DTYPE_f16, true},  {RLX_DTYPE_f32, RLX_DTYPE_bf16, true},
        {RLX_DTYPE_f32, RLX_DTYPE_f64, true},  {RLX_DTYPE_f16, RLX_DTYPE_f32, true},
        {RLX_DTYPE_bf16, RLX_DTYPE_f32, true}, {RLX_DTYPE_f64, RLX_DTYPE_f32, true},
        {RLX_DTYPE_i64, RLX_DTYPE_i8, true},   {RLX_DTYPE_c64, RLX_DTYPE_f32, true},
        {RLX_DTYPE_f32, RLX_DTYPE_c64, false},
    };
    static const char *const name[] = {"f32", "f16", "bf16", "f64", "i8",  "i16",  "i32",
                                       "i64", "u8",  "u16",  "u32", "u64", "bool", "c64"};
    struct place p;

    if (!place_open(t, &p, test_device(t), NULL))
        return place_close(&p);
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        unsigned char zero[32] = {0};
        char graph[128];
        rlx_dtype to = pairs[i].declared, from = pairs[i].given;
        test_note(t, "4.4, %s for a param of %s", name[from], name[to]);
        snprintf(graph, sizeof graph,
                 "graph (param %%w: %s[2]) { %%y = reshape %%w shape=[2,1] return %%y }", name[to]);
        expect_ok(t, place_build(&p, graph, NULL));
        rlx_tensor v = {from, 1, {2}, zero, 2 * rlx_dtype_size(from)};
        expect_status(t, rlx_session_set_param(p.session, "w", &v, &p.err),
                      pairs[i].allowed ? RLX_OK : RLX_ERROR_DTYPE);
    }
    test_note(t, "4.4, f64 to f32 rounds once; raw bytes of u8");
    double third[2] = {1.0 / 3, 1e300};
    float back[2];
    expect_ok(t, place_build(&p, "graph (param %w: f32[2]) { %y = neg %w return %y }", NULL));
    rlx_tensor v = {RLX_DTYPE_f64, 1, {2}, third, sizeof third}, got = floats(back, 2);
    expect_ok(t, rlx_session_set_param(p.session, "w", &v, &p.err));
    expect_ok(t, rlx_session_get_param(p.session, "w", &got, &p.err));
    expect(t, back[0] == 1.0f / 3 && back[1] == INFINITY);
    unsigned char raw[6] = {0, 1, 127, 128, 254, 255}, same[6];
    expect_ok(
        t,
        place_build(&p, "graph (param %w: u8[2,3]) { %y = reshape %w shape=[6] return %y }", NULL));
    expect_ok(t, rlx_session_set_param_bytes(p.session, "w", raw, 6, &p.err));
    rlx_session_set_param_bytes(p.session, "w", same, 7, &p.err);
    expect_error(t, RLX_ERROR_SIZE, "7", &p.err);
    rlx_binding out = {"y", {RLX_DTYPE_u8, 0, {0}, same, 6}};
    expect_ok(t, rlx_session_run(
                     p.session,
                     &(rlx_run_desc){RLX_SIZED(rlx_run_desc), .outputs = &out, .output_count = 1},
                     &p.err));
    expect_bytes(t, same, raw, 6);
    place_close(&p);
}

/* Rows 36, 58, 59: every type goes in and comes out bit for bit, above 2^24 too. */
TEST_DEVICES(required, every_type_is_exact)
{
    static const uint64_t odd = UINT64_C(0x7e5d3c1b2a493827);
    struct place p;

    if (!place_open(t, &p, test_device(t), NULL))
        return place_close(&p);
    for (int d = 0; d < RLX_DTYPE_count; d++) {
        unsigned char in[48], out[48] = {0};
        char graph[160];
        size_t bytes = 6 * rlx_dtype_size((rlx_dtype)d);
        test_note(t, "row 58, %s", rlx_dtype_name((rlx_dtype)d));
        for (size_t i = 0; i < sizeof in; i++)
            in[i] = (unsigned char)(d == RLX_DTYPE_bool ? i % 2 : (odd >> i % 8 * 8) + (i >= 24));
        snprintf(graph, sizeof graph,
                 "graph (input %%x: %s[2,3]) { %%a = transpose %%x perm=[1,0] %%b = reshape %%a "
                 "shape=[3,2]"
                 " %%y = transpose %%b perm=[1,0] return %%y }",
                 rlx_dtype_name((rlx_dtype)d));
        if (!expect_ok(t, place_build(&p, graph, NULL)))
            continue;
        rlx_binding x = {"x", {(rlx_dtype)d, 2, {2, 3}, in, bytes}};
        rlx_binding y = {"y", {(rlx_dtype)d, 0, {0}, out, bytes}};
        expect_ok(t, rlx_session_run(
                         p.session, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &x, 1, &y, 1, NULL, 0},
                         &p.err));
        expect_bytes(t, out, in, bytes);
    }
    test_note(t, "row 59");
    int64_t a[2] = {INT64_C(9007199254740993), -16777217}, sum[2];
    expect_ok(
        t, place_build(
               &p, "graph (input %x: i64[2]) { %c = const i64[2] {2 2} %y = add %x, %c return %y }",
               NULL));
    rlx_binding x = {"x", {RLX_DTYPE_i64, 1, {2}, a, sizeof a}};
    rlx_binding y = {"y", {RLX_DTYPE_i64, 0, {0}, sum, sizeof sum}};
    expect_ok(t, rlx_session_run(p.session,
                                 &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &x, 1, &y, 1, NULL, 0},
                                 &p.err));
    expect_eq(t, sum[0], INT64_C(9007199254740995));
    expect_eq(t, sum[1], -16777215);
    double f[2] = {1.0 + 1e-15, 0.1}, g[2];
    static const char of_f64[] = "graph (input %x: f64[2]) { %y = neg %x return %y }";
    if (!test_has_f64(t, p.ctx)) {
        expect_refused(t, &p, of_f64, RLX_ERROR_UNSUPPORTED, "f64");
        return place_close(&p);
    }
    expect_ok(t, place_build(&p, of_f64, NULL));
    x.tensor = (rlx_tensor){RLX_DTYPE_f64, 1, {2}, f, sizeof f};
    y.tensor = (rlx_tensor){RLX_DTYPE_f64, 0, {0}, g, sizeof g};
    expect_ok(t, rlx_session_run(p.session,
                                 &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &x, 1, &y, 1, NULL, 0},
                                 &p.err));
    expect(t, g[0] == -f[0] && g[1] == -f[1]);
    place_close(&p);
}

/* Row 66: padding and slicing with sizes that do not go together. */
TEST_DEVICES(required, padding_checks_its_sizes)
{
    float few[6] = {1, 2, 3, 4, 5, 6}, many[8], back[6];
    rlx_tensor from = {RLX_DTYPE_f32, 2, {3, 2}, few, sizeof few};
    rlx_tensor to = {RLX_DTYPE_f32, 2, {4, 2}, many, sizeof many};
    rlx_tensor out = {RLX_DTYPE_f32, 2, {3, 2}, back, sizeof back};
    rlx_error err;
    static const struct {
        int64_t inner, actual, upper;
    } bad[] = {{2, 5, 4}, {2, -1, 4}, {0, 3, 4}, {4, 3, 4}, {2, 2, 4}, {2, 3, 5}, {-2, 3, 4}};

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        test_note(t, "row 66, case %zu", i);
        expect_status(t, rlx_pad_rows(&from, bad[i].inner, bad[i].actual, bad[i].upper, &to, &err),
                      RLX_ERROR_ARGUMENT);
        if (bad[i].actual != 2) /* which is fewer rows than there are to pad, but fine to slice */
            expect_status(
                t, rlx_slice_rows(&to, bad[i].inner, bad[i].actual, bad[i].upper, &out, &err),
                RLX_ERROR_ARGUMENT);
    }
    expect_ok(t, rlx_pad_rows(&from, 2, 3, 4, &to, &err));
    expect(t, many[5] == 6 && many[6] == 0 && many[7] == 0);
    expect_ok(t, rlx_slice_rows(&to, 2, 3, 4, &out, &err));
    expect_close(t, back, few, 6, 0, 0);
}
