/* bind_test.c: kernels made for the way their buffers are bound: offsets, buffers that overlap, and
 * windows of buffers that are larger than a binding. Run by the interpreter, on the bindings. */
#include "interpret.h"

enum { COUNT = 300, MOST = 16 };

static const char copy[] = "kernel k<T: type>(x: in [T], y: out [T], count: u32) group(1) {\n"
                           "    for i in 0..count { y[count - 1 - i] = x[i] }\n}\n";

/* Both buffers of `bytes` in windows of `window`; what lies after the last of them stays. */
static void turn(struct test *t, const char *defines, const struct kc_features *f, size_t element,
                 size_t window)
{
    enum { ROOM = COUNT * 16 };
    static uint8_t x[ROOM], y[ROOM + 16];
    size_t bytes = COUNT * element;
    uint32_t count = (uint32_t)((bytes + window - 1) / window), first[2], word = COUNT;
    uint32_t windows[] = {count, count};
    const struct kc_binding how = {.windows = windows, .window = window};
    void *binding[2 * MOST];
    struct source s;
    struct kir k;

    test_note(t, "%s in windows of %zu", defines, window);
    if (!expect_ok(t, source_open(&s, copy, defines, f)) || !expect(t, count <= MOST) ||
        !expect_ok(t, kc_bind(&s.kir, &how, &s.arena, &k, first, &s.diag))) {
        source_close(&s);
        return;
    }
    expect_eq_u64(t, k.buffers, 2 * count);
    expect(t, first[0] == 0 && first[1] == count);
    for (size_t i = 0; i < bytes; i++)
        x[i] = (uint8_t)(i * 7 + i / 256);
    memset(y, 0xee, sizeof y);
    for (uint32_t i = 0; i < count; i++) {
        binding[i] = x + i * window;
        binding[count + i] = y + i * window;
    }
    s.kir = k;
    interpret(&s, binding, &word, 1);
    for (size_t i = 0; i < COUNT; i++)
        expect(t, memcmp(y + i * element, x + (COUNT - 1 - i) * element, element) == 0);
    expect(t, y[bytes] == 0xee);
    source_close(&s);
}

TEST(kernel_bind, windows_of_all_elements)
{
    turn(t, "T=f32", &kc_least_features, 4, 256);
    turn(t, "T=f32", &source_all, 4, 512);
    turn(t, "T=u8", &source_all, 1, 256);
    turn(t, "T=bf16", &kc_least_features, 2, 256);
    turn(t, "T=i64", &source_all, 8, 256);
    turn(t, "T=i64", &kc_least_features, 8, 768);
    turn(t, "T=f32", &kc_least_features, 4, 2048); /* one is enough */
}

/* Operands that begin inside of one binding, which is two windows. */
TEST(kernel_bind, overlapping_buffers_are_one)
{
    const uint32_t merge[] = {0, 0, 2}, windows[] = {2, 0, 1};
    const bool offset[] = {false, false, true};
    const struct kc_binding how = {merge, offset, windows, 256};
    float both[128], sum[8] = {0};
    void *binding[] = {both, both + 64, sum};
    uint32_t first[3], word[] = {8, 3, 60, 0}; /* the count, then where each begins */
    struct source s;
    struct kir k;

    if (!open_kernel(t, &s,
                     "kernel k(a: in [f32], b: in [f32], y: out [f32], count: u32) group(1) {\n"
                     "    for i in 0..count { y[i] = a[i] + b[i] }\n}\n",
                     ""))
        return;
    for (size_t i = 0; i < 128; i++)
        both[i] = (float)(i * i);
    if (expect_ok(t, kc_bind(&s.kir, &how, &s.arena, &k, first, &s.diag))) {
        expect_eq_u64(t, k.buffers, 3);
        expect_eq_u64(t, k.param_words, 4);
        expect(t, first[0] == 0 && first[1] == 0 && first[2] == 2);
        s.kir = k;
        interpret(&s, binding, word, 1);
        for (size_t i = 0; i < 8; i++)
            expect_near(t, (double)sum[i], (double)(both[i + 3] + both[i + 60]), 0);
    }
    source_close(&s);
}

/* Matrices are loaded and stored at offsets, and their other operands, values or numbers, stay. */
TEST(kernel_bind, matrices)
{
    static const char text[] =
        "kernel k(a: in [f16], b: in [f16], y: out [f32], k: u32) group(32) {\n"
        "    var sum = matrix_acc<f32, 16, 16>(0.0)\n"
        "    var p: matrix_a<f16, 16, 16>\n    var q: matrix_b<f16, 16, 16>\n"
        "    for i in 0..k by 16 {\n"
        "        coop_load(p, a[i], k, false)\n        coop_load_tile(q, b[i], u32x3(k, k, k),"
        " u32x2(0, i), true, false)\n"
        "        sum = coop_muladd(p, q, sum)\n    }\n"
        "    coop_store(sum, y[0], 16, false)\n}\n";
    const struct kc_binding plain = {.window = 256};
    const bool offset[] = {true, true, false};
    const struct kc_binding moved = {.offset = offset, .window = 256};
    uint32_t first[3], adds = 0;
    struct source s;
    struct kir k;

    if (!expect_ok(t, source_open(&s, text, "", &source_all))) {
        source_close(&s);
        return;
    }
    expect_ok(t, kc_bind(&s.kir, &plain, &s.arena, &k, first, &s.diag));
    if (expect_eq_u64(t, k.instrs, s.kir.instrs)) /* nothing to do: nothing changes */
        expect(t, memcmp(k.instr, s.kir.instr, k.instrs * sizeof *k.instr) == 0);
    expect_ok(t, kc_bind(&s.kir, &moved, &s.arena, &k, first, &s.diag));
    expect_eq_u64(t, k.instrs, s.kir.instrs + 4); /* two offsets, and two sums with them */
    for (uint32_t i = 0; i < k.instrs; i++) {
        const struct kir_instr *n = &k.instr[i];
        if (n->op != KIR_COOP_LOAD && n->op != KIR_COOP_LOAD_TILE)
            continue;
        adds += k.instr[n->a].op == KIR_ADD && k.instr[k.instr[n->a].b].op == KIR_PARAM;
        expect_eq_u64(t, n->d, n->op == KIR_COOP_LOAD_TILE); /* turned, or not: no value */
    }
    expect_eq_u64(t, adds, 2);
    source_close(&s);
}

static void refused(struct test *t, const char *text, const struct kc_binding *how,
                    rlx_status status, const char *why)
{
    uint32_t first[3];
    struct source s;
    struct kir k;

    if (expect_ok(t, source_open(&s, text, "", &source_all))) {
        expect_status(t, kc_bind(&s.kir, how, &s.arena, &k, first, &s.diag), status);
        expect_contains(t, s.diag.first.message, why);
    }
    source_close(&s);
}

TEST(kernel_bind, what_cannot_be_bound)
{
    const uint32_t merge[] = {0, 0}, windows[] = {2, 1}, many[] = {5, 1};
    const struct kc_binding one = {.merge = merge}, two = {.windows = windows, .window = 256};
    const struct kc_binding large = {.windows = many, .window = UINT64_C(1) << 32};

    refused(t, "kernel k(a: in [f32], y: out [u32]) group(1) { y[0] = u32(a[0]) }\n", &one,
            RLX_ERROR_UNSUPPORTED, "buffers y and a overlap");
    refused(t,
            "kernel k(a: in [f16], y: out [f32]) group(32) {\n"
            "    var m: matrix_a<f16, 16, 16>\n"
            "    coop_load(m, a[0], 16, false)\n}\n",
            &two, RLX_ERROR_LIMIT, "buffer a is larger than what the device binds at once");
    refused(t, "kernel k(a: in [u32], y: out [u32]) group(1) { y[0] = a[0] }\n", &large,
            RLX_ERROR_LIMIT, "buffer a has more elements than a kernel can count");
}

/* Atomics choose their window too, in both languages. */
TEST(kernel_bind, windows_in_wgsl)
{
    const uint32_t windows[] = {3, 2};
    const struct kc_binding how = {.windows = windows, .window = 1024};
    const struct kc_emit emit = {.features = &kc_least_features};
    uint32_t first[2];
    struct source s;
    struct text out;
    struct kir k;

    text_init(&out, mem_default());
    if (open_kernel(t, &s,
                    "kernel k(x: in [u8], y: inout [atomic u32], i: u32) group(1) {\n"
                    "    let was = atomic_add(y[i], u32(x[i]))\n}\n",
                    "")) {
        expect_ok(t, kc_bind(&s.kir, &how, &s.arena, &k, first, &s.diag));
        expect_ok(t, kc_emit_wgsl(&k, &emit, &out, &s.diag));
        expect_contains(t, out.at, "@binding(4) var<storage, read_write> b4: array<atomic<u32>>;");
        expect_contains(t, out.at, "@binding(5) var<uniform> params");
        expect_contains(t, out.at, " < 1024u;");
        expect_contains(t, out.at, " < 2048u;");
        expect_contains(t, out.at, " < 256u;");
        expect_contains(t, out.at, "atomicAdd(&b4[");
        source_close(&s);
    }
    text_free(&out);
}
