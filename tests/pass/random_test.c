/* random_test.c: random graphs, cleaned up and as they were written, give the same numbers.
 * Constants are mostly those that rewrites care about: zeros of both signs, ones, NaN and
 * infinities. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../test.h"
#include "rlx/tools.h"

#define ROWS 2
#define COLS 3
#define COUNT (ROWS * COLS)
#define NODES 24

struct random {
    uint64_t state;
};

static uint32_t draw(struct random *r, uint32_t below)
{
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((r->state >> 33) % below);
}

/* Graphs as text, every value f32[2,3], so that any two meet; detours lead through other types and
 * shapes and come back. */
static void write_node(struct random *r, char *text, size_t room, int i)
{
    static const char *const unary[] = {"neg", "abs", "relu", "sin", "floor", "neg"};
    static const char *const binary[] = {"add", "sub", "mul", "div", "max", "min", "add", "mul"};
    static const char *const number[] = {"0", "-0", "1", "-0", "1", "nan", "inf", "2"};
    static const char *const type[] = {"f16", "f64", "bf16", "i32", "f32", "i16"};
    int a = (int)draw(r, (uint32_t)i), b = (int)draw(r, (uint32_t)i);
    size_t len = strlen(text);
    char *at = text + len;

    room -= len;
    switch (draw(r, 12)) {
    case 0:
    case 1: snprintf(at, room, "%%v%d = %s %%v%d\n", i, unary[draw(r, 6)], a); break;
    case 2:
    case 3: snprintf(at, room, "%%v%d = %s %%v%d, %%v%d\n", i, binary[draw(r, 8)], a, b); break;
    case 4:
    case 5:
        snprintf(at, room, "%%c%d = const f32[1] {%s}\n%%v%d = %s %%v%d, %%c%d\n", i,
                 number[draw(r, 8)], i, binary[draw(r, 8)], a, i);
        break;
    case 6:
        snprintf(at, room,
                 "%%c%d = const f32[3] {%s %s 3}\n%%d%d = sin %%c%d\n%%v%d = mul %%v%d, %%d%d\n", i,
                 number[draw(r, 8)], number[draw(r, 8)], i, i, i, a, i);
        break;
    case 7:
        snprintf(at, room, "%%c%d = cast %%v%d to=%s\n%%v%d = cast %%c%d to=f32\n", i, a,
                 type[draw(r, 6)], i, i);
        break;
    case 8:
        snprintf(at, room, "%%c%d = reshape %%v%d shape=[%s]\n%%v%d = reshape %%c%d shape=[2,3]\n",
                 i, a, draw(r, 2) ? "6" : "3,2", i, i);
        break;
    case 9:
        snprintf(at, room,
                 "%%c%d = transpose %%v%d perm=[1,0]\n%%d%d = transpose %%c%d perm=[1,0]\n"
                 "%%v%d = %s %%d%d\n",
                 i, a, i, i, i, unary[draw(r, 6)], i);
        break;
    case 10:
        snprintf(at, room, "%%c%d = lt %%v%d, %%v%d\n%%v%d = where %%c%d, %%v%d, %%v%d\n", i, a, b,
                 i, i, a, b);
        break;
    default:
        snprintf(at, room,
                 "%%c%d = narrow %%v%d axis=0 start=%u len=%u\n%%v%d = max %%c%d, %%v%d\n", i, a,
                 draw(r, 2) ? 0u : 1u, 1u, i, i, b);
        break;
    }
}

static void write_graph(struct random *r, char *text, size_t room)
{
    snprintf(text, room,
             "rlx 1\ngraph (input %%v0: f32[2,3], state %%s: f32[2,3], input %%at: i32[]) {\n"
             "%%v1 = reshape %%s shape=[2,3]\n%%r = narrow %%v0 axis=0 start=0 len=1\n");
    int writer = 2 + (int)draw(r, NODES - 2);
    for (int i = 2; i < NODES; i++) {
        size_t len = strlen(text);
        if (i == writer)
            snprintf(text + len, room - len,
                     "%%w = cache_append %%s, %%r, %%at\n%%v%d = add %%s, %%v%d\n", i, i - 1);
        else
            write_node(r, text, room, i);
    }
    snprintf(text + strlen(text), room - strlen(text), "return %%v%d, %%v%d, %%v%d }\n", NODES - 1,
             NODES - 2, NODES / 2);
}

static bool run(struct test *t, rlx_model *m, rlx_device *dev, const rlx_session_desc *desc,
                float out[3][COUNT])
{
    float x[COUNT] = {-1.5f, -0.0f, 0, 1, 300000, NAN}, s[COUNT] = {1, 2, 3, -0.0f, 0.25f, -7};
    int32_t at = 1;
    rlx_session *session = NULL;
    rlx_error err = {0};
    rlx_binding to[3];
    char name[3][32];
    const rlx_tensor old = {RLX_DTYPE_f32, 2, {ROWS, COLS}, s, sizeof s};
    const rlx_binding in[] = {{"v0", {RLX_DTYPE_f32, 2, {ROWS, COLS}, x, sizeof x}},
                              {"at", {RLX_DTYPE_i32, 0, {0}, &at, sizeof at}}};

    for (size_t i = 0; i < 3; i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        rlx_model_io(m, RLX_IO_OUTPUT, i, &info, NULL);
        snprintf(name[i], sizeof name[i], "%.*s", (int)info.name.len, info.name.ptr);
        to[i] = (rlx_binding){name[i], {.dtype = RLX_DTYPE_f32, .data = out[i], .bytes = sizeof x}};
    }
    if (rlx_session_create(m, dev, desc, &session, &err) == RLX_OK &&
        rlx_session_set_state(session, "s", &old, &err) == RLX_OK)
        rlx_session_run(session, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 2, to, 3, NULL, 0},
                        &err);
    rlx_session_destroy(session);
    if (err.status != RLX_OK)
        fail(t, "%s", err.message);
    return err.status == RLX_OK;
}

static bool same(float a, float b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

TEST(pass, random_graphs_mean_the_same)
{
    const rlx_session_desc cleaned = {RLX_SIZED(rlx_session_desc),
                                      .debug = DEBUG(.no_fusion = true)},
                           written = {RLX_SIZED(rlx_session_desc),
                                      .debug = DEBUG(.no_optimize = true)};
    rlx_context *ctx = NULL;
    rlx_device *dev = NULL;
    rlx_error err;
    int graphs = test_full() ? 20000 : 600;

    require_ok(t, rlx_context_create(RLX_VERSION,
                                     &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .threads = 1},
                                     &ctx, &err));
    require_ok(t, rlx_device_open(ctx, "cpu", &dev, &err));
    for (int g = 0; g < graphs; g++) {
        struct random r = {(uint64_t)g * 977 + 5};
        static char text[8192];
        float a[3][COUNT], b[3][COUNT];
        rlx_model *m = NULL;

        write_graph(&r, text, sizeof text);
        test_note(t, "graph %d", g);
        if (rlx_model_parse(ctx, rlx_cstr(text), &m, &err) != RLX_OK) {
            fail(t, "%s in\n%s", err.message, text);
            break;
        }
        bool ok = run(t, m, dev, &cleaned, a) && run(t, m, dev, &written, b);
        for (size_t k = 0; ok && k < 3 * COUNT; k++)
            ok = expect(t, same(a[k / COUNT][k % COUNT], b[k / COUNT][k % COUNT]));
        if (!ok)
            fail(t, "%s", text);
        rlx_model_destroy(m);
        if (!ok)
            break;
    }
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
}
