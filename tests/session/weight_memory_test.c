/* weight_memory_test.c: weights that only copies are read of are dropped, and come back when
 * somebody asks. What that saves is measured in weight_peak_test.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "required.h"
#include "rlx/artefact.h"
#include "test.h"

/* ---- what was dropped comes back ---- */

enum { ROWS = 5, K = 33, N = 45 }; /* panels that are not full, in both directions */

static const char product[] =
    "graph (input %x: f32[5,33], param %w: f32[33,45], param %v: f32[45,33], param %h: f16[33,45],"
    " param %b: f32[45])"
    " { %y = matmul %x, %w %z = matmul %x, %v transpose_b=true %c = cast %x to=f16"
    "   %u = matmul %c, %h %s = add %y, %b return %s, %z, %u }";

static uint32_t bits(size_t i)
{
    uint32_t v = (uint32_t)i * 2654435761u + 12345;

    return v ^ v >> 15;
}

static void fill(float *x, size_t n, size_t seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(int32_t)(bits(i + seed * 7919) % 2001 - 1000) / 512.0f;
}

struct numbers {
    float x[ROWS * K], w[K * N], v[N * K], b[N];
    uint16_t h[K * N];
    float y[3][ROWS * N];
};

static void fill_all(struct numbers *n, size_t seed)
{
    fill(n->x, ROWS * K, 1);
    fill(n->w, K * N, seed + 2);
    fill(n->v, N * K, seed + 3);
    fill(n->b, N, seed + 4);
    for (size_t i = 0; i < K * N; i++) /* halves between 1 and 2, and below 0 */
        n->h[i] = (uint16_t)(0x3c00 | (bits(i + seed) & 0x83ff));
}

static rlx_tensor of(rlx_dtype dtype, int32_t rank, int64_t rows, int64_t cols, void *data,
                     size_t bytes)
{
    return (rlx_tensor){dtype, rank, {rows, cols}, data, bytes};
}

static void set_all(struct test *t, rlx_session *s, struct numbers *n)
{
    rlx_tensor w = of(RLX_DTYPE_f32, 2, K, N, n->w, sizeof n->w);
    rlx_tensor v = of(RLX_DTYPE_f32, 2, N, K, n->v, sizeof n->v);
    rlx_tensor h = of(RLX_DTYPE_f16, 2, K, N, n->h, sizeof n->h);
    rlx_tensor b = of(RLX_DTYPE_f32, 1, N, 0, n->b, sizeof n->b);
    rlx_error err;

    expect_ok(t, rlx_session_set_param(s, "w", &w, &err));
    expect_ok(t, rlx_session_set_param(s, "v", &v, &err));
    expect_ok(t, rlx_session_set_param(s, "h", &h, &err));
    expect_ok(t, rlx_session_set_param(s, "b", &b, &err));
}

static void run(struct test *t, rlx_session *s, struct numbers *n)
{
    rlx_binding in = {"x", of(RLX_DTYPE_f32, 2, ROWS, K, n->x, sizeof n->x)}, out[3];
    rlx_error err = {0};

    memset(n->y, 0, sizeof n->y);
    for (int i = 0; i < 3; i++)
        out[i] = (rlx_binding){(const char *[]){"s", "z", "u"}[i],
                               of(RLX_DTYPE_f32, 2, ROWS, N, n->y[i], sizeof n->y[i])};
    if (!expect_ok(
            t, rlx_session_run(s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, out, 3, NULL, 0},
                               &err)))
        fail(t, "%s", err.message);
}

/* What the session reads back is what was set, bit by bit. */
static void expect_params(struct test *t, rlx_session *s, const struct numbers *n)
{
    static struct numbers got;
    rlx_tensor w = of(RLX_DTYPE_f32, 2, K, N, got.w, sizeof got.w);
    rlx_tensor v = of(RLX_DTYPE_f32, 2, N, K, got.v, sizeof got.v);
    rlx_tensor h = of(RLX_DTYPE_f16, 2, K, N, got.h, sizeof got.h);
    rlx_error err;

    memset(&got, 0, sizeof got);
    expect_ok(t, rlx_session_get_param(s, "w", &w, &err));
    expect_ok(t, rlx_session_get_param(s, "v", &v, &err));
    expect_ok(t, rlx_session_get_param(s, "h", &h, &err));
    expect_bytes(t, got.w, n->w, sizeof n->w);
    expect_bytes(t, got.v, n->v, sizeof n->v);
    expect_bytes(t, got.h, n->h, sizeof n->h);
}

TEST_DEVICES(weight_memory, dropped_weights_come_back)
{
    static struct numbers a, b, plain;
    const rlx_session_desc as_they_are = {RLX_SIZED(rlx_session_desc),
                                          .debug = DEBUG(.no_packed_weights = true)};
    rlx_session *other = NULL, *own = NULL;
    struct place p;
    rlx_error err;

    if (!place_open(t, &p, test_device(t), NULL))
        return;
    if (!expect_ok(t, place_build(&p, product, NULL)))
        return place_close(&p);
    fill_all(&a, 0);
    set_all(t, p.session, &a);
    run(t, p.session, &a);
    expect_params(t, p.session, &a);
    run(t, p.session, &a);

    /* A session that reads them as they are, while the first goes on. */
    memcpy(&plain, &a, sizeof a);
    expect_ok(t, rlx_session_create(p.model, p.dev, &as_they_are, &other, &err));
    run(t, other, &plain);
    for (int i = 0; i < 3; i++)
        expect_close(t, plain.y[i], a.y[i], ROWS * N, 1e-3, 1e-3);

    /* A clone of its own, others after that, and back to none but the first. */
    expect_ok(t, rlx_session_clone(p.session, RLX_CLONE_OWN_WEIGHTS, &own, &err));
    fill_all(&b, 100);
    set_all(t, p.session, &b);
    run(t, p.session, &b);
    expect_params(t, p.session, &b);
    expect(t, memcmp(a.y, b.y, sizeof a.y) != 0);
    run(t, own, &plain);
    expect_bytes(t, plain.y, a.y, sizeof a.y);
    expect_params(t, own, &a);
    rlx_session_destroy(own);
    memcpy(&plain, &b, sizeof b);
    run(t, other, &plain);
    for (int i = 0; i < 3; i++)
        expect_close(t, plain.y[i], b.y[i], ROWS * N, 1e-3, 1e-3);
    rlx_session_destroy(other);
    run(t, p.session, &plain);
    expect_bytes(t, plain.y, b.y, sizeof b.y);

    /* The model has them when no session is left. */
    rlx_session_destroy(p.session);
    expect_ok(t, rlx_session_create(p.model, p.dev, NULL, &p.session, &err));
    expect_params(t, p.session, &b);
    run(t, p.session, &plain);
    expect_bytes(t, plain.y, b.y, sizeof b.y);
    place_close(&p);
}

/* A session of another device, and an artefact, of weights that are only there packed. */
TEST_DEVICES(weight_memory, dropped_weights_go_elsewhere)
{
    static struct numbers a, got;
    const char *path = test_temp(t, "product.rlxa");
    rlx_device *cpu = NULL;
    rlx_session *s = NULL;
    rlx_model *loaded = NULL;
    struct place p;
    rlx_error err;

    if (!place_open(t, &p, test_device(t), NULL))
        return;
    if (!expect_ok(t, rlx_device_open(p.ctx, "cpu:baseline", &cpu, &err)) ||
        !expect_ok(t, place_build(&p, product, NULL)))
        return rlx_device_close(cpu), place_close(&p);
    fill_all(&a, 7);
    set_all(t, p.session, &a);
    run(t, p.session, &a);
    memcpy(&got, &a, sizeof a);
    expect_ok(t, rlx_session_create(p.model, cpu, NULL, &s, &err));
    run(t, s, &got);
    for (int i = 0; i < 3; i++)
        expect_close(t, got.y[i], a.y[i], ROWS * N, 1e-3, 1e-3);
    expect_params(t, s, &a);
    rlx_session_destroy(s);
    run(t, p.session, &got);
    expect_bytes(t, got.y, a.y, sizeof a.y);

    expect_ok(t, rlx_session_save(p.session, path, RLX_SAVE_WEIGHTS, &err));
    expect_ok(t, rlx_model_load(p.ctx, path, NULL, &loaded, &err));
    expect_ok(t, rlx_session_create(loaded, p.dev, NULL, &s, &err));
    run(t, s, &got);
    expect_bytes(t, got.y, a.y, sizeof a.y);
    expect_params(t, s, &a);
    rlx_session_destroy(s);
    rlx_model_destroy(loaded);
    rlx_device_close(cpu);
    place_close(&p);
}

/* ---- several that were made into one ---- */

enum { JOINED = 5 };
static const char *const joined_name[JOINED] = {"a", "b", "c", "d", "e"};

/* Products of one input are one product with joined weights; d is read transposed, and e in another
 * shape as well. */
static const char joined[] =
    "graph (input %x: f32[5,33], param %a: f32[33,33], param %b: f32[33,33], param %c: f32[33,33],"
    " param %d: f32[33,33], param %e: f32[11,99])"
    " { %p = matmul %x, %a %q = matmul %x, %b %r = matmul %x, %c %u = add %p, %q %v = mul %u, %r"
    "   %t = transpose %d perm=[1,0] %w = matmul %v, %t"
    "   %f = reshape %e shape=[33,33] %g = transpose %f perm=[1,0] %j = concat %f, %g axis=0"
    "   %k = transpose %j perm=[1,0] %y = matmul %w, %k return %y }";

struct joined_numbers {
    float x[ROWS * K], value[JOINED][K * K], y[ROWS * 2 * K];
};

static rlx_tensor joined_tensor(int i, float *data)
{
    const size_t bytes = sizeof(float) * K * K;

    return i == 4 ? of(RLX_DTYPE_f32, 2, 11, 99, data, bytes)
                  : of(RLX_DTYPE_f32, 2, K, K, data, bytes);
}

static void set_joined(struct test *t, rlx_session *s, struct joined_numbers *n, int i, size_t seed)
{
    rlx_tensor value = joined_tensor(i, n->value[i]);
    rlx_error err;

    fill(n->value[i], K * K, seed);
    expect_ok(t, rlx_session_set_param(s, joined_name[i], &value, &err));
}

static void run_joined(struct test *t, rlx_session *s, struct joined_numbers *n)
{
    rlx_binding in = {"x", of(RLX_DTYPE_f32, 2, ROWS, K, n->x, sizeof n->x)};
    rlx_binding out = {"y", of(RLX_DTYPE_f32, 2, ROWS, 2 * K, n->y, sizeof n->y)};
    rlx_error err = {0};

    if (!expect_ok(
            t, rlx_session_run(
                   s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0}, &err)))
        fail(t, "%s", err.message);
}

static void expect_joined(struct test *t, rlx_session *s, const struct joined_numbers *n)
{
    static float got[K * K];

    for (int i = 0; i < JOINED; i++) {
        rlx_tensor value = joined_tensor(i, got);
        rlx_error err;
        memset(got, 0, sizeof got);
        test_note(t, "param %s", joined_name[i]);
        expect_ok(t, rlx_session_get_param(s, joined_name[i], &value, &err));
        expect_bytes(t, got, n->value[i], sizeof got);
    }
}

static void expect_joined_like(struct test *t, rlx_session *s, struct joined_numbers *n)
{
    static struct joined_numbers other;

    other = *n;
    run_joined(t, s, &other);
    expect_close(t, other.y, n->y, ROWS * 2 * K, 1e-3, 1e-3);
}

TEST_DEVICES(weight_memory, joined_weights_come_back)
{
    static struct joined_numbers n, old;
    const rlx_session_desc as_written = {RLX_SIZED(rlx_session_desc),
                                         .debug = DEBUG(.no_optimize = true)},
                           no_packs = {RLX_SIZED(rlx_session_desc),
                                       .debug = DEBUG(.no_static_pack = true)};
    rlx_session *written = NULL, *plain = NULL, *own = NULL;
    struct place p;
    rlx_error err;

    if (!place_open(t, &p, test_device(t), NULL))
        return;
    if (!expect_ok(t, place_build(&p, joined, NULL)))
        return place_close(&p);
    fill(n.x, ROWS * K, 1);
    for (int i = 0; i < JOINED; i++)
        set_joined(t, p.session, &n, i, (size_t)i + 2);
    run_joined(t, p.session, &n);
    expect_joined(t, p.session, &n);

    /* One of those that were joined is set; the others are still what they were. */
    expect_ok(t, rlx_session_clone(p.session, RLX_CLONE_OWN_WEIGHTS, &own, &err));
    old = n;
    set_joined(t, p.session, &n, 1, 99);
    run_joined(t, p.session, &n);
    expect(t, memcmp(n.y, old.y, sizeof n.y) != 0);
    expect_joined(t, p.session, &n);
    expect_joined_like(t, own, &old);
    expect_joined(t, own, &old);
    rlx_session_destroy(own);

    /* Sessions that read them as they are, while the first goes on. */
    expect_ok(t, rlx_session_create(p.model, p.dev, &as_written, &written, &err));
    expect_joined_like(t, written, &n);
    expect_ok(t, rlx_session_create(p.model, p.dev, &no_packs, &plain, &err));
    expect_joined_like(t, plain, &n);
    set_joined(t, plain, &n, 4, 77);
    run_joined(t, p.session, &n);
    expect_joined_like(t, written, &n);
    rlx_session_destroy(written);
    rlx_session_destroy(plain);
    set_joined(t, p.session, &n, 0, 55);
    run_joined(t, p.session, &n);
    expect_joined(t, p.session, &n);

    /* The model has them when no session is left. */
    rlx_session_destroy(p.session);
    expect_ok(t, rlx_session_create(p.model, p.dev, NULL, &p.session, &err));
    expect_joined(t, p.session, &n);
    expect_joined_like(t, p.session, &n);
    place_close(&p);
}
