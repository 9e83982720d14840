/* insert_qdq_test.c: quantise and dequantise after calibrated values. */
#include <math.h>
#include <stdio.h>

#include "../test.h"
#include "rlx/tools.h"
#include "run_model.h"

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])

static const char *const source =
    "rlx 1\n"
    "graph (input %x: f32[2,3], param %w: f16[3,4], state %s: f32[2]) {\n"
    "    %h = cast %w to=f32\n"
    "    %m = matmul %x, %h\n"
    "    %y = relu %m\n"
    "    %i = cast %y to=i32\n"
    "    return %y, %i, %m\n"
    "}\n";

struct printed {
    char text[4096];
    size_t len;
};

static void collect(void *user, const char *text, size_t len)
{
    struct printed *p = user;

    if (p->len + len < sizeof p->text)
        memcpy(p->text + p->len, text, len);
    p->len += len;
    p->text[p->len < sizeof p->text ? p->len : 0] = 0;
}

struct setup {
    rlx_context *ctx;
    rlx_model *m, *out;
    rlx_error err;
};

static bool begin(struct test *t, struct setup *s)
{
    *s = (struct setup){0};
    return expect_ok(t, rlx_context_create(RLX_VERSION, NULL, &s->ctx, &s->err)) &&
           expect_ok(t, rlx_model_parse(s->ctx, rlx_cstr(source), &s->m, &s->err));
}

static void end(struct setup *s)
{
    rlx_model_destroy(s->out);
    rlx_model_destroy(s->m);
    rlx_context_destroy(s->ctx);
}

static const float one[] = {0.25f}, four[] = {0.5f, 0.25f, 1, 2}, zeros[] = {0, -3, 4, 127};
static const rlx_qdq_record records[] = {
    {.name = "x", .scales = one, .count = 1},
    {.name = "w",
     .per_channel = true,
     .axis = -1,
     .scales = four,
     .zero_points = zeros,
     .count = 4},
    {.name = "y", .scales = one, .count = 1},
};

TEST(insert_qdq, readers_see_the_dequantised_value)
{
    struct setup s;
    static struct printed got;

    require(t, begin(t, &s));
    got.len = 0;
    if (expect_ok(t, rlx_model_insert_qdq(s.m, records, COUNT_OF(records), &s.out, &s.err)) &&
        expect_ok(t, rlx_model_print(s.out, false, false, collect, &got, &s.err)))
        expect_str(t, got.text,
                   "rlx 1\n"
                   "graph (input %x: f32[2,3], param %w: f16[3,4], state %s: f32[2]) {\n"
                   "    %x.q = quantize %x scales=[0.25]\n"
                   "    %x.dq = dequantize %x.q scales=[0.25]\n"
                   "    %w.q = quantize %w axis=1 scales=[0.5,0.25,1,2] zero_points=[0,-3,4,127]\n"
                   "    %w.dq = dequantize %w.q axis=1 scales=[0.5,0.25,1,2] "
                   "zero_points=[0,-3,4,127]\n"
                   "    %v7 = cast %w.dq to=f16\n"
                   "    %h = cast %v7 to=f32\n"
                   "    %m = matmul %x.dq, %h\n"
                   "    %y.raw = relu %m\n"
                   "    %y.q = quantize %y.raw scales=[0.25]\n"
                   "    %y = dequantize %y.q scales=[0.25]\n"
                   "    %i = cast %y to=i32\n"
                   "    return %y, %i, %m\n"
                   "}\n");
    end(&s);
}

TEST(insert_qdq, no_records_change_nothing)
{
    struct setup s;
    static struct printed got, was;

    require(t, begin(t, &s));
    got.len = was.len = 0;
    if (expect_ok(t, rlx_model_insert_qdq(s.m, NULL, 0, &s.out, &s.err))) {
        expect_ok(t, rlx_model_print(s.out, false, false, collect, &got, &s.err));
        expect_ok(t, rlx_model_print(s.m, false, false, collect, &was, &s.err));
        expect_str(t, got.text, was.text);
    }
    end(&s);
}

/* Values are off by half a step of the grid at most, and on it. */
TEST(insert_qdq, values_land_on_the_grid)
{
    struct setup s;
    struct ran plain = {0}, grid = {0};
    rlx_device *dev = NULL;
    const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc)};
    const rlx_qdq_record only_m = {.name = "m", .scales = one, .count = 1};

    require(t, begin(t, &s));
    if (expect_ok(t, rlx_device_open(s.ctx, "cpu", &dev, &s.err)) &&
        expect_ok(t, rlx_model_insert_qdq(s.m, &only_m, 1, &s.out, &s.err)) &&
        expect_ok(t, run_model(s.m, dev, &desc, NULL, 0, 5, &plain, &s.err)) &&
        expect_ok(t, run_model(s.out, dev, &desc, NULL, 0, 5, &grid, &s.err))) {
        for (size_t i = 0; i < 8; i++) {
            double v = ran_element(&grid.out[2], i);
            expect(t, v == rint(v * 4) / 4);
            expect_near(t, v, ran_element(&plain.out[2], i), 0.125);
        }
    }
    ran_free(&plain);
    ran_free(&grid);
    rlx_device_close(dev);
    end(&s);
}

TEST(insert_qdq, bad_records_are_refused)
{
    static const struct {
        rlx_qdq_record record;
        rlx_status status;
        const char *part;
    } bad[] = {
        {{.name = "nobody", .scales = one, .count = 1}, RLX_ERROR_NAME, "\"nobody\""},
        {{.name = "s", .scales = one, .count = 1}, RLX_ERROR_GRAPH, "\"s\" is a state"},
        {{.name = "i", .scales = one, .count = 1}, RLX_ERROR_DTYPE, "i32"},
        {{.name = "x", .scales = four, .count = 4}, RLX_ERROR_ATTRIBUTE, "4 scales"},
        {{.name = "x", .per_channel = true, .axis = 1, .scales = four, .count = 4},
         RLX_ERROR_ATTRIBUTE,
         "4 scales for 3 channels"},
        {{.name = "x", .per_channel = true, .axis = 2, .scales = four, .count = 4},
         RLX_ERROR_ATTRIBUTE,
         "axis"},
        {{.name = "x", .scales = one, .count = 0}, RLX_ERROR_ARGUMENT, "no scales"},
        {{.name = "x", .count = 1}, RLX_ERROR_ARGUMENT, "scales is NULL"},
        {{.scales = one, .count = 1}, RLX_ERROR_ARGUMENT, "name is NULL"},
    };
    const rlx_qdq_record twice[] = {{.name = "x", .scales = one, .count = 1},
                                    {.name = "x", .scales = one, .count = 1}};
    struct setup s;

    require(t, begin(t, &s));
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        test_note(t, "row %zu", i);
        expect_status(t, rlx_model_insert_qdq(s.m, &bad[i].record, 1, &s.out, &s.err),
                      bad[i].status);
        expect_contains(t, s.err.message, bad[i].part);
    }
    test_note(t, "%s", "");
    expect_status(t, rlx_model_insert_qdq(s.m, twice, 2, &s.out, &s.err), RLX_ERROR_NAME);
    expect_contains(t, s.err.message, "both name \"x\"");
    expect_status(t, rlx_model_insert_qdq(NULL, twice, 2, &s.out, &s.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_model_insert_qdq(s.m, NULL, 2, &s.out, &s.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_model_insert_qdq(s.m, twice, 2, NULL, &s.err), RLX_ERROR_ARGUMENT);
    expect(t, s.out == NULL);
    end(&s);
}

static rlx_status insert_with(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct setup s = {0};

    (void)t, (void)ctx;
    rlx_status status = rlx_context_create(
        RLX_VERSION, &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .allocator = mem}, &s.ctx,
        &s.err);
    if (status == RLX_OK)
        status = rlx_model_parse(s.ctx, rlx_cstr(source), &s.m, &s.err);
    if (status == RLX_OK)
        status = rlx_model_insert_qdq(s.m, records, COUNT_OF(records), &s.out, &s.err);
    end(&s);
    return status;
}

TEST(insert_qdq, survives_no_memory)
{
    expect_survives_no_memory(t, insert_with, NULL);
}
