/* fusion_test.c: fusing, reusing memory and working in place change no result: the same bits where
 * the same kernels run, else within the tolerance of the ops (runtime.md 10, line 3). */
#include "fusion_run.h"

struct mode {
    const char *name;
    rlx_session_desc desc;
    bool same_bits; /* as the default */
};

static const struct mode modes[] = {
    {"reuse off",
     {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_reuse = true, .check_plan = true)},
     true},
    {"in-place off",
     {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_in_place = true, .check_plan = true)},
     true},
    {"fusion off", {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_fusion = true)}, false},
    {"matmul fusion off",
     {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_matmul_fusion = true)},
     false},
    {"residual fusion off",
     {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_residual_fusion = true)},
     false},
    {"weight concatenation off",
     {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_weight_concat = true)},
     false},
    {"steps apart",
     {RLX_SIZED(rlx_session_desc),
      .debug = DEBUG(.no_qkv_split = true, .no_packed_qkv = true, .no_norm_tee = true)},
     false},
    {"no passes", {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_optimize = true)}, false},
};
#define MODE_COUNT (sizeof modes / sizeof modes[0])

static bool expect_device(struct test *t, const char *device, rlx_context *ctx, rlx_device **dev)
{
    rlx_error err = {0};
    rlx_status s = rlx_device_open(ctx, device, dev, &err);

    return !test_no_device(t, device, s, err.message);
}

/* false: nothing is open. */
static bool open_level(struct test *t, const char *device, rlx_context **ctx, rlx_device **dev)
{
    *ctx = NULL;
    *dev = NULL;
    if (!expect_ok(
            t, rlx_context_create(RLX_VERSION,
                                  &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .threads = 2},
                                  ctx, NULL)))
        return false;
    if (expect_device(t, device, *ctx, dev))
        return true;
    rlx_context_destroy(*ctx);
    return false;
}

/* How many graphs to draw: on a GPU each has kernels to make. */
static uint64_t seeds(const struct test *t, uint64_t usual, uint64_t full)
{
    if (test_full())
        return full;
    return strcmp(test_device(t), "cpu") == 0 ? usual : 1;
}

static bool open_cpu(struct test *t, rlx_context **ctx, rlx_device **dev)
{
    return open_level(t, test_device(t), ctx, dev);
}

static void close_cpu(rlx_context *ctx, rlx_device *dev)
{
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
}

static void compare_modes(struct test *t, rlx_context *ctx, rlx_device *dev, const char *text,
                          int times, double tolerance)
{
    struct outcome want, got;

    if (run_source(
            t, ctx, dev, text,
            &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .debug = DEBUG(.check_plan = true)},
            times, &want))
        for (size_t i = 0; i < MODE_COUNT; i++) {
            if (run_source(t, ctx, dev, text, &modes[i].desc, times, &got))
                same_outcome(t, &got, &want, modes[i].same_bits ? 0 : tolerance, modes[i].name,
                             text);
            outcome_free(&got);
        }
    outcome_free(&want);
}

/* How many nodes of the op the model has once it is fused for the device. */
struct found {
    char text[8192];
    size_t len;
};

static void collect(void *user, const char *text, size_t len)
{
    struct found *f = user;

    if (f->len + len < sizeof f->text) {
        memcpy(f->text + f->len, text, len);
        f->len += len;
    }
    f->text[f->len] = 0;
}

static void expect_fused(struct test *t, rlx_context *ctx, rlx_device *dev, const char *text,
                         const char *part)
{
    static struct found f;
    rlx_model *m = NULL;
    rlx_error err = {0};

    f.len = 0;
    if (expect_ok(t, rlx_model_parse(ctx, rlx_cstr(text), &m, &err)) &&
        expect_ok(t, rlx_model_fusion(m, dev, true, collect, &f, &err)))
        expect_contains(t, f.text, part);
    rlx_model_destroy(m);
}

/* ---- elementwise graphs ---- */

static const char *const shapes[] = {"3,40,130", "130", "40,1", "1,1,130", "", "3,1,130"};
#define SHAPE_COUNT 6

/* What a type may meet; smooth: no step that a rounding can push over an edge. */
static const char *one_operand(struct source *s, char type, bool smooth)
{
    static const char *const bounded[] = {"tanh", "sigmoid", "softsign", "neg", "abs", "relu"};
    static const char *const more[] = {
        "sin",          "cos",         "exp",         "log",   "sqrt",  "rsqrt",
        "gelu",         "gelu_approx", "silu",        "round", "recip", "floor",
        "ceil",         "sign",        "softplus",    "elu",   "erf",   "hard_swish",
        "hard_sigmoid", "mish",        "log_sigmoid", "atan",  "tan"};
    static const char *const whole[] = {"relu", "abs", "sign", "neg"};

    if (type == 'f')
        return smooth || source_draw(s, 3) == 0 ? bounded[source_draw(s, 6)]
                                                : more[source_draw(s, 23)];
    return type == 'b' ? "not" : type == 'c' ? "neg" : whole[source_draw(s, type == 'u' ? 3 : 4)];
}

static const char *two_operands(struct source *s, char type, bool smooth)
{
    static const char *const any[] = {"add", "sub", "max",   "min", "mul",
                                      "div", "pow", "atan2", "mod"};
    static const char *const whole[] = {"add", "sub",     "mul", "max", "min",
                                        "div", "bit_and", "shl", "mod"};
    static const char *const of_complex[] = {"add", "sub", "mul", "div"};

    if (type == 'c')
        return of_complex[source_draw(s, 4)];
    if (type == 'b')
        return source_draw(s, 2) ? "max" : "min";
    return type == 'f' ? any[source_draw(s, smooth ? 4 : 9)] : whole[source_draw(s, 9)];
}

/* Values v0 .. ; all of one type but for the conditions c0 .. */
static void draw_elementwise(struct source *s, const char *dtype, char type, bool smooth)
{
    unsigned values = SHAPE_COUNT, steps = 4 + source_draw(s, smooth ? 6 : 20);

    for (unsigned i = 0; i < SHAPE_COUNT; i++)
        source_leaf(s, "input %%i%u: f32[%s]", i, shapes[i]);
    source_node(s, "%%k = const f32[] {%s}", type == 'f' || type == 'c' ? "2" : "90");
    for (unsigned i = 0; i < SHAPE_COUNT; i++)
        source_node(s, "%%w%u = mul %%i%u, %%k %%v%u = cast %%w%u to=%s", i, i, i, i, dtype);
    for (unsigned i = 0; i < steps; i++, values++) {
        unsigned near = source_draw(s, 2) ? 1 : 6, kind = source_draw(s, 8);
        unsigned a = values - 1 - source_draw(s, near), b = source_draw(s, values);
        if (kind < 3)
            source_node(s, "%%v%u = %s %%v%u", values, one_operand(s, type, smooth), a);
        else if (kind < 7 || smooth)
            source_node(s, "%%v%u = %s %%v%u, %%v%u", values, two_operands(s, type, smooth), a, b);
        else
            source_node(s, "%%c%u = %s %%v%u, %%v%u %%v%u = where %%c%u, %%v%u, %%v%u", values,
                        type == 'b' || type == 'c' ? "ne" : "lt", a, b, values, values, b, a);
    }
    source_node(s, "return %%v%u, %%v%u", values - 1, values - 2);
}

static void compare_regions(struct test *t, const char *device)
{
    static const struct {
        const char *dtype;
        char type;
        double tolerance;
    } types[] = {/* first what a device may lack */
                 {"f64", 'f', 0},  {"f32", 'f', 0}, {"f16", 'f', 0.05}, {"bf16", 'f', 0.3},
                 {"i8", 'i', 0},   {"i16", 'i', 0}, {"i32", 'i', 0},    {"i64", 'i', 0},
                 {"u8", 'u', 0},   {"u16", 'u', 0}, {"u32", 'u', 0},    {"u64", 'u', 0},
                 {"bool", 'b', 0}, {"c64", 'c', 0}};
    static struct source s;
    rlx_context *ctx;
    rlx_device *dev;

    if (!open_level(t, device, &ctx, &dev))
        return;
    for (size_t i = test_has_f64(t, ctx) ? 0 : 1; i < sizeof types / sizeof types[0]; i++)
        for (uint64_t seed = 0; seed < seeds(t, 12, 300); seed++) {
            struct outcome with, without;
            source_start(&s, seed * 1000 + i);
            draw_elementwise(&s, types[i].dtype, types[i].type, types[i].tolerance > 0);
            const char *text = source_text(&s);
            bool ok = run_source(t, ctx, dev, text,
                                 &(rlx_session_desc){RLX_SIZED(rlx_session_desc),
                                                     .debug = DEBUG(.check_plan = true)},
                                 1, &with);
            ok = run_source(t, ctx, dev, text,
                            &(rlx_session_desc){RLX_SIZED(rlx_session_desc),
                                                .debug = DEBUG(.no_regions = true)},
                            1, &without) &&
                 ok;
            if (ok)
                same_outcome(t, &with, &without, types[i].tolerance, types[i].dtype, text);
            outcome_free(&with);
            outcome_free(&without);
        }
    close_cpu(ctx, dev);
}

TEST_DEVICES_SLOW(fusion, regions_give_the_same_bits)
{
    compare_regions(t, test_device(t));
    if (strcmp(test_device(t), "cpu") == 0)
        compare_regions(t, "cpu:baseline");
}

/* A large angle has a slower formula, which its neighbours must not get. */
TEST(fusion, elements_do_not_depend_on_their_neighbours)
{
    static const char text[] =
        "rlx 1\ngraph (input %x: f32[300]) {"
        " %big = const f32[1] {1e6} %c = concat %x, %big axis=0 %s = sin %c %t = cos %c"
        " %sin = narrow %s axis=0 start=0 len=300 %cos = narrow %t axis=0 start=0 len=300"
        " %y = sin %x %z = cos %x %d = sub %sin, %y %e = sub %cos, %z return %d, %e }";
    struct outcome out;
    rlx_context *ctx;
    rlx_device *dev;

    if (!open_cpu(t, &ctx, &dev))
        return;
    if (run_source(t, ctx, dev, text, NULL, 1, &out))
        for (size_t i = 0; i < 600; i++)
            expect_near(t, outcome_at(&out, i / 300, i % 300), 0, 0);
    outcome_free(&out);
    close_cpu(ctx, dev);
}

/* 40 operands and 400 steps in one region. */
TEST_DEVICES_SLOW(fusion, regions_have_no_size_limit)
{
    static struct source s;
    struct outcome with, without;
    rlx_context *ctx;
    rlx_device *dev;

    if (!open_cpu(t, &ctx, &dev))
        return;
    source_start(&s, 1);
    source_leaf(&s, "input %%v0: f32[30,70]");
    for (int i = 0; i < 40; i++)
        source_leaf(&s, "param %%p%d: f32[%s]", i, i % 3 ? "70" : "30,1");
    for (int i = 0; i < 400; i++)
        if (i % 2)
            source_node(&s, "%%v%d = sin %%v%d", i + 1, i);
        else
            source_node(&s, "%%v%d = %s %%v%d, %%p%d", i + 1, i % 4 ? "add" : "mul", i, i % 40);
    source_node(&s, "return %%v400");
    const char *text = source_text(&s);
    expect_fused(t, ctx, dev, text, "\"nodes\":{\"before\":400,\"after\":1}");
    if (run_source(t, ctx, dev, text, NULL, 1, &with) &&
        run_source(
            t, ctx, dev, text,
            &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_fusion = true)}, 1,
            &without))
        same_outcome(t, &with, &without, 0, "regions off", text);
    outcome_free(&with);
    outcome_free(&without);
    close_cpu(ctx, dev);
}

/* ---- models ---- */

enum { WIDE = 32, INNER = 48 };

/* How the weights of a layer are stored and whether they have biases; MIXED: each as it comes. */
enum { STORED = 1, BIAS = 2, MIXED = 4 };

/* %to = %from times a matrix, maybe with a bias. */
static void draw_projection(struct source *s, unsigned style, const char *to, const char *from,
                            int rows, int cols)
{
    unsigned drawn = style >= MIXED ? source_draw(s, 4) : style;
    bool stored = drawn & STORED, bias = drawn & BIAS;
    int a = stored ? cols : rows, b = stored ? rows : cols;

    source_leaf(s, "param %%%s.w: f32[%d,%d]", to, a, b);
    source_node(s, "%%%s%s = matmul %%%s, %%%s.w transpose_b=%s", to, bias ? ".m" : "", from, to,
                stored ? "true" : "false");
    if (!bias)
        return;
    source_leaf(s, "param %%%s.b: f32[%d]", to, cols);
    source_node(s, source_draw(s, 2) ? "%%%s = add %%%s.m, %%%s.b" : "%%%s = add %%%s.b, %%%s.m",
                to, to, to);
}

static void draw_norm(struct source *s, const char *to, const char *from)
{
    unsigned kind = source_draw(s, 3);

    source_leaf(s, "param %%%s.g: f32[%d]", to, WIDE);
    if (kind < 2)
        source_leaf(s, "param %%%s.b: f32[%d]", to, WIDE);
    source_node(s, "%%%s = %s %%%s, %%%s.g%s%s%s eps=0.01", to,
                kind == 0 ? "layer_norm" : "rms_norm", from, to, kind < 2 ? ", %" : "",
                kind < 2 ? to : "", kind < 2 ? ".b" : "");
}

/* Names of layer n: "h2.q". */
#define NAME(buffer, n, what) (snprintf(buffer, sizeof buffer, "h%d.%s", n, what), buffer)

static void draw_layer(struct source *s, int n)
{
    char in[16], x[16], q[16], k[16], v[16], a[16], o[16], r[16], y[16], g[16], u[16], d[16];

    unsigned style = source_draw(s, MIXED + 2);

    NAME(in, n, "x");
    draw_norm(s, NAME(x, n, "n1"), in);
    draw_projection(s, style, NAME(q, n, "q"), x, WIDE, WIDE);
    draw_projection(s, style, NAME(k, n, "k"), x, WIDE, WIDE);
    draw_projection(s, style, NAME(v, n, "v"), x, WIDE, WIDE);
    source_node(s,
                "%%%s = attention %%%s, %%%s, %%%s num_heads=4 head_dim=8 mask_kind=causal "
                "layout=packed",
                NAME(a, n, "a"), q, k, v);
    draw_projection(s, style, NAME(o, n, "o"), a, WIDE, WIDE);
    source_node(s, "%%%s = add %%%s, %%%s", NAME(r, n, "r"), in, o);
    draw_norm(s, NAME(y, n, "n2"), r);
    draw_projection(s, style, NAME(g, n, "g"), y, WIDE, INNER);
    draw_projection(s, style, NAME(u, n, "u"), y, WIDE, INNER);
    source_node(s, "%%%s.s = %s %%%s", g, source_draw(s, 3) ? "silu" : "gelu", g);
    source_node(s, "%%%s.z = mul %%%s.s, %%%s", g, g, u);
    snprintf(g + strlen(g), sizeof g - strlen(g), ".z");
    draw_projection(s, style, NAME(d, n, "d"), g, INNER, WIDE);
    /* Pre-norm adds to the stream, post-norm to what was normalised. */
    source_node(s, "%%h%d.x = add %%%s, %%%s", n + 1, source_draw(s, 2) ? r : y, d);
}

TEST_DEVICES_SLOW(fusion, transformers_agree_in_every_mode)
{
    static struct source s;
    rlx_context *ctx;
    rlx_device *dev;

    if (!open_cpu(t, &ctx, &dev))
        return;
    for (uint64_t seed = 0; seed < seeds(t, 10, 200); seed++) {
        source_start(&s, 77 + seed);
        source_leaf(&s, "input %%h0.x: f32[2,9,%d]", WIDE);
        draw_layer(&s, 0);
        draw_layer(&s, 1);
        source_node(&s, "return %%h2.x, %%h1.n2");
        compare_modes(t, ctx, dev, source_text(&s), 1, 2e-3);
    }
    close_cpu(ctx, dev);
}

static void draw_conv(struct source *s, int n)
{
    bool residual = source_draw(s, 2);
    static const char *const act[] = {"relu", "silu", "hard_swish"};

    source_leaf(s, "param %%w%d: f32[6,6,3,3], param %%b%d: f32[%s6,1,1]", n, n,
                source_draw(s, 2) ? "1," : "");
    source_node(s, "%%c%d = conv %%x%d, %%w%d padding=[1,1]", n, n, n);
    source_node(s, "%%a%d = add %%c%d, %%b%d", n, n, n);
    if (residual)
        source_node(s, "%%r%d = add %%a%d, %%x%d", n, n, n);
    source_node(s, "%%y%d = %s %%%s%d", n, act[source_draw(s, 3)], residual ? "r" : "a", n);
    source_node(s, "%%t%d = tanh %%y%d", n, n);
    source_node(s, "%%x%d = sub %%t%d, %%y%d", n + 1, n, n);
}

TEST_DEVICES_SLOW(fusion, convolutions_agree_in_every_mode)
{
    static struct source s;
    rlx_context *ctx;
    rlx_device *dev;

    if (!open_cpu(t, &ctx, &dev))
        return;
    for (uint64_t seed = 0; seed < seeds(t, 6, 60); seed++) {
        source_start(&s, seed);
        source_leaf(&s, "input %%x0: f32[2,6,11,13]");
        for (int n = 0; n < 4; n++)
            draw_conv(&s, n);
        source_node(&s, "%%p = pool %%x4 kind=mean kernel_size=[3,3]");
        source_node(&s, "return %%p, %%c3");
        compare_modes(t, ctx, dev, source_text(&s), 1, 2e-3);
    }
    close_cpu(ctx, dev);
}

/* Reads before and after a writer, each in a pattern that would like to move. */
TEST_DEVICES_SLOW(fusion, states_are_read_when_they_were)
{
    static const char text[] =
        "rlx 1\n"
        "graph (state %s: f32[4,8], input %x: f32[1,8], param %w: f32[8,8], param %b: f32[8],"
        " param %u: f32[8,8], param %g: f32[8]) {\n"
        " %at = const i32[] {2}\n"
        " %m = matmul %s, %w %e = exp %s %v = reshape %s shape=[8,4] %h = tanh %v\n"
        " %t = add %s, %e\n"
        " %all = cache_append %s, %x, %at\n"
        " %y = add %m, %b %n = neg %e %q = sqrt %n %z = rms_norm %t, %g\n"
        " %k = matmul %s, %u %f = add %k, %b %i = relu %f\n"
        " %j = cos %h\n"
        " %o = add %y, %i %p = add %o, %z\n"
        " return %p, %q, %j\n"
        "}\n";
    rlx_context *ctx;
    rlx_device *dev;

    if (!open_cpu(t, &ctx, &dev))
        return;
    for (int times = 1; times <= 3; times++)
        compare_modes(t, ctx, dev, text, times, 1e-4);
    close_cpu(ctx, dev);
}

/* ---- options and the contract ---- */

#define SMALL                                                                     \
    "rlx 1\ngraph (input %x: f32[2,4], param %w: f32[4,4], param %b: f32[4]) {\n" \
    " %m = matmul %x, %w %a = add %m, %b %y = gelu %a %e = exp %y %n = neg %e"

TEST_DEVICES_SLOW(fusion, a_session_does_what_its_options_say)
{
    const struct {
        rlx_session_desc desc;
        uint32_t steps;
    } row[] = {{{RLX_SIZED(rlx_session_desc)}, 2},
               {{RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_fusion = true)}, 5},
               {{RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_optimize = true)}, 5},
               {{RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_matmul_fusion = true)}, 2},
               {{RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_regions = true)}, 3}};
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *m = NULL;

    if (!open_cpu(t, &ctx, &dev))
        return;
    expect_ok(t, rlx_model_parse(ctx, rlx_cstr(SMALL " return %n }"), &m, NULL));
    for (size_t i = 0; m && i < sizeof row / sizeof row[0]; i++) {
        rlx_session *s = NULL;
        rlx_memory_info info = {RLX_SIZED(rlx_memory_info)};
        test_note(t, "row %zu", i);
        if (expect_ok(t, rlx_session_create(m, dev, &row[i].desc, &s, NULL)) &&
            expect_ok(t, rlx_session_memory(s, &info, NULL)))
            expect_eq(t, info.steps, row[i].steps);
        rlx_session_destroy(s);
    }
    rlx_model_destroy(m);
    close_cpu(ctx, dev);
}

TEST(fusion, a_clean_contract_fails_with_the_list)
{
    const rlx_session_desc strict = {RLX_SIZED(rlx_session_desc),
                                     .debug = DEBUG(.assert_fusion_clean = true)};
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *clean = NULL, *dirty = NULL;
    rlx_session *s = NULL;
    rlx_error err = {0};

    if (!open_cpu(t, &ctx, &dev))
        return;
    expect_ok(t, rlx_model_parse(ctx, rlx_cstr(SMALL " return %n }"), &clean, NULL));
    expect_ok(t, rlx_model_parse(ctx, rlx_cstr(SMALL " return %n, %m }"), &dirty, NULL));
    expect_ok(t, rlx_session_create(clean, dev, &strict, &s, &err));
    rlx_session_destroy(s);
    expect_status(t, rlx_session_create(dirty, dev, &strict, &s, &err), RLX_ERROR_GRAPH);
    expect_contains(t, err.message, "1 fusion was missed: %m (matmul): multi-consumer");
    s = NULL; /* and the model still works */
    expect_ok(t, rlx_session_create(dirty, dev, NULL, &s, &err));
    rlx_session_destroy(s);
    rlx_model_destroy(clean);
    rlx_model_destroy(dirty);
    close_cpu(ctx, dev);
}

TEST(fusion, the_report_names_what_was_missed)
{
    static const struct {
        const char *graph, *part;
    } row[] = {
        {SMALL " return %n }", "\"missed\":[]"},
        {SMALL " return %n }", "\"fused_matmul_bias_act\":{\"before\":0,\"after\":1}"},
        {SMALL " return %n }", "\"elementwise_region\":{\"before\":0,\"after\":1}"},
        {SMALL " return %n }", "\"nodes\":{\"before\":5,\"after\":2}"},
        {SMALL " return %n, %m }", "\"label\":\"m\",\"graph\":0,\"node\":3,\"reason\":"
                                   "\"multi-consumer\",\"hint\":\"let only"},
        {"rlx 1 graph (input %x: f32[2,4], param %w: f32[4,4]) { %m = matmul %x, %w %y = relu %m "
         "return %y }",
         "consumer is not a bias add"},
        {"rlx 1 graph (input %x: f32[2,4], param %w: f32[4,4], param %b: f32[4]) { %m = matmul %x, "
         "%w %y = sub %m, %b return %y }",
         "add the negated bias"},
        {"rlx 1 graph (input %x: f16[2,4], param %w: f16[4,4], param %b: f32[4]) { %m = matmul %x, "
         "%w %y = add %m, %b return %y }",
         "give the bias the product's type"},
        {"rlx 1 graph (input %x: f32[2,4], param %w: f32[4,4], param %b: f32[2,4]) { %m = matmul "
         "%x, %w %y = add %m, %b return %y }",
         "bias rank too high"},
        {"rlx 1 graph (input %x: f32[2,4], param %w: f32[4,4], param %b: f32[1,1,4]) { %m = matmul "
         "%x, %w %y = add %m, %b return %y }",
         "bias rank too high"},
        {"rlx 1 graph (input %x: f32[2,4], param %w: f32[4,4], input %r: f32[2,4]) { %m = matmul "
         "%x, %w %y = add %m, %r return %y }",
         "\"missed\":[]"},
        {"rlx 1 graph (input %x: f32[2,4], param %w: f32[4,4], param %b: f32[4]) { %m = "
         "fused_matmul_bias_act %x, %w, %b %y = relu %m return %y }",
         "unsupported epilogue activation"},
        {"rlx 1 graph (input %x: f32[2,4], param %w: f32[4,4], param %v: f32[2,4,4], param %u: "
         "f32[4,4]) { %a = matmul %x, %w %b = matmul %x, %u %c = matmul %x, %v return %a, %b, %c }",
         "shared-matmul count"},
        {"rlx 1 graph (input %x: f32[2,4], input %z: f32[2,4], param %w: f32[4,4], param %u: "
         "f32[4,4]) { %a = matmul %x, %w %b = matmul %z, %u %s = silu %a %y = mul %s, %b return %y "
         "}",
         "SwiGLU inputs differ"},
        {"rlx 1 graph (input %x: f32[2,4], input %z: f32[2,4]) { %a = narrow %x axis=1 start=0 "
         "len=2 %b = narrow %z axis=1 start=2 len=2 %s = silu %a %y = mul %s, %b return %y }",
         "SwiGLU inputs differ"},
        {"rlx 1 graph (input %x: f32[2,5]) { %a = narrow %x axis=1 start=0 len=2 %b = narrow %x "
         "axis=1 start=2 len=2 %s = silu %a %y = mul %s, %b return %y }",
         "\"not fused\""},
        {"rlx 1 graph (input %x: f32[2,4]) { %a = narrow %x axis=1 start=0 len=2 %b = narrow %x "
         "axis=1 start=2 len=2 %s = silu %a %y = mul %s, %b return %y, %s }",
         "multi-consumer"},
        {"rlx 1 graph (input %x: f32[4,4], param %g: f32[4]) { %e = exp %x %a = add %x, %e %y = "
         "rms_norm %a, %g axis=0 return %y }",
         "normalise the last axis"},
        {"rlx 1 graph (input %x: f32[n,4], param %w: f32[4,4], param %b: f32[4]) { %m = matmul %x, "
         "%w %y = add %m, %b return %y }",
         "\"fused_matmul_bias_act\":{\"before\":0,\"after\":1}"},
    };
    rlx_context *ctx;
    rlx_device *dev;

    if (!open_cpu(t, &ctx, &dev))
        return;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        test_note(t, "row %zu", i);
        expect_fused(t, ctx, dev, row[i].graph, row[i].part);
        expect_fused(t, ctx, NULL, row[i].graph, row[i].part);
    }
    expect_status(t, rlx_model_fusion(NULL, dev, true, collect, NULL, NULL), RLX_ERROR_ARGUMENT);
    close_cpu(ctx, dev);
}

/* Each allocation fails once; whatever happens, nothing leaks and the answer is a status. */
TEST(fusion, survives_without_memory)
{
    static const char text[] =
        "rlx 1\ngraph (input %x: f32[2,4], param %w: f32[4,4], param %u: f32[4,4], param %g: "
        "f32[4], param %b: f32[4]) {"
        " %q = matmul %x, %w %k = matmul %x, %u %s = silu %q %m = mul %s, %k"
        " %a = matmul %m, %w %c = add %a, %b %d = gelu %c %r = add %d, %x %n = rms_norm %r, %g"
        " %i = matmul %n, %w %j = matmul %n, %u %o = sub %i, %j %p = exp %o %y = relu %p"
        " %l = matmul %y, %w return %y, %l, %a }";
    struct test_alloc count = {0};

    for (uint64_t at = 1; at < 4000; at++) {
        struct test_alloc a = {.fail_at = at};
        rlx_allocator mem = test_allocator(&a);
        rlx_context *ctx = NULL;
        rlx_device *dev = NULL;
        rlx_model *m = NULL;
        struct found f = {.len = 0};
        if (rlx_context_create(
                RLX_VERSION,
                &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .allocator = &mem, .threads = 1},
                &ctx, NULL) == RLX_OK &&
            rlx_device_open(ctx, "cpu", &dev, NULL) == RLX_OK &&
            rlx_model_parse(ctx, rlx_cstr(text), &m, NULL) == RLX_OK) {
            rlx_status s = rlx_model_fusion(m, dev, false, collect, &f, NULL);
            if (s != RLX_OK)
                expect_status(t, s, RLX_ERROR_MEMORY);
        }
        rlx_model_destroy(m);
        close_cpu(ctx, dev);
        expect_eq_u64(t, a.live_blocks, 0);
        expect_eq_u64(t, a.misused, 0);
        count = a;
        if (!a.refused)
            break;
    }
    expect_eq_u64(t, count.refused, 0); /* the last one ran to the end */
}
