/* bound_model_test.c: runtime.md 10, line 5, for whole models: several bounded symbols at a
 * time, every precision, control flow, and programs from an artefact or the folder of
 * compiled ones. */
#include <dirent.h>
#include <unistd.h>

#include "rlx/artefact.h"
#include "rlx/tools.h"
#include "sized.h"

enum { SEQ = 12, BATCH = 3 };

/* Two layers of a decoder: embedding, rotary positions, grouped heads, a gated hidden layer. */
#define LAYER(i, x, y)                                                                            \
    " %" i "n = rms_norm %" x ", %g %" i "q = matmul %" i "n, %wq %" i "k = matmul %" i "n, %wk"  \
    " %" i "v = matmul %" i "n, %wv %" i "qr = rope %" i "q, %cos, %sin head_dim=4"               \
    " %" i "kr = rope %" i "k, %cos, %sin head_dim=4"                                             \
    " %" i "a = attention %" i "qr, %" i "kr, %" i "v num_heads=2 num_kv_heads=1 head_dim=4"      \
    " layout=packed mask_kind=causal %" i "o = matmul %" i "a, %wo %" i "r = add %" x ", %" i "o" \
    " %" i "m = layer_norm %" i "r, %g, %bias %" i "u = matmul %" i "m, %wu"                      \
    " %" i "w = matmul %" i "m, %wg %" i "s = silu %" i "w %" i "h = mul %" i "s, %" i "u"        \
    " %" i "d = matmul %" i "h, %wd %" i "e = add %" i "d, %bias %" y " = add %" i "r, %" i "e"
#define FIRST LAYER("a", "x", "y")
#define SECOND LAYER("b", "y", "z")
#define LEAVES                                                                             \
    "graph (input %t: i32[batch,seq], input %cos: f32[seq,2], input %sin: f32[seq,2],"     \
    " param %table: f32[5,8], param %g: f32[8], param %bias: f32[8], param %wq: f32[8,8]," \
    " param %wk: f32[8,4], param %wv: f32[8,4], param %wo: f32[8,8], param %wu: f32[8,6]," \
    " param %wg: f32[8,6], param %wd: f32[6,8]) { %x = gather %table, %t axis=0"
#define HEAD                                                                       \
    " %f = reshape %z shape=[batch*seq,8] %l = matmul %f, %table transpose_b=true" \
    " %p = softmax %l %last = reduce_max %z axes=[1] return %p, %z, %last }"
#define DECODER LEAVES FIRST SECOND HEAD
#define BOUNDS "dim batch <= 3 dim seq <= 12 "
#define FREE "dim batch dim seq "

static const int64_t seqs[] = {SEQ, 1, SEQ / 2, SEQ - 1, 0, SEQ};
static const int64_t batches[] = {BATCH, 1, 2};

static bool build(struct test *t, struct place *p, const char *graph, const rlx_session_desc *desc)
{
    if (expect_ok(t, place_build(p, graph, desc)))
        return sized_params(t, p);
    return fail(t, "%s", p->err.message);
}

/* The same within the tolerance of half precision. */
static bool close_enough(struct test *t, const struct sized *a, const struct sized *b)
{
    bool ok = expect_status(t, a->status, b->status);

    for (size_t k = 0; ok && k < a->outputs && a->status == RLX_OK; k++) {
        rlx_tensor x = a->shape[k], y = b->shape[k];
        rlx_comparison c = {0};
        x.bytes = sized_count(&x) * sizeof(float);
        y.bytes = sized_count(&y) * sizeof(float);
        ok = expect_ok(t, rlx_compare(&x, &y, RLX_TOLERANCE_HALF, &c, NULL)) &&
             expect(t, c.passed || c.count == 0);
    }
    return ok;
}

/* Every pair of sizes; `plain` has a session without bounds. exact: bit by bit. */
static void compare(struct test *t, struct place *bounded, struct place *plain, bool exact)
{
    static struct sized a, b;
    size_t answers = 0;

    for (size_t i = 0; i < COUNT_OF(seqs); i++)
        for (size_t k = 0; k < COUNT_OF(batches); k++) {
            const rlx_dim_size dims[] = {{"batch", batches[k]}, {"seq", seqs[i]}};
            sized_run(bounded, dims, 2, &a);
            sized_run(plain, dims, 2, &b);
            if (!(exact ? sized_same : close_enough)(t, &a, &b))
                fail(t, "batch %lld, seq %lld: %s / %s", (long long)batches[k], (long long)seqs[i],
                     bounded->err.message, plain->err.message);
            answers += a.status == RLX_OK;
        }
    expect(t, answers >= 15);
}

/* The programs that the session made: one, whatever the sizes were. */
static void expect_programs(struct test *t, struct place *p, uint32_t want)
{
    rlx_compiled_info info = {RLX_SIZED(rlx_compiled_info)};

    expect_ok(t, rlx_session_compiled(p->session, &info, &p->err));
    expect_eq(t, info.programs, want);
}

TEST_DEVICES_SLOW(bound_model, a_decoder_in_batch_and_sequence)
{
    const rlx_session_desc modes[] = {
        {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.check_plan = true)},
        {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_fusion = true)},
        {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_reuse = true)},
        {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_optimize = true)},
        {RLX_SIZED(rlx_session_desc),
         .debug = DEBUG(.no_packed_weights = true, .no_static_pack = true)},
    };
    struct place bounded = {0}, plain = {0};

    if (place_open(t, &bounded, test_device(t), NULL) &&
        place_open(t, &plain, test_device(t), NULL))
        for (size_t i = 0; i < COUNT_OF(modes); i++) {
            test_note(t, "mode %zu", i);
            if (!build(t, &bounded, BOUNDS DECODER, &modes[i]) ||
                !build(t, &plain, FREE DECODER, &modes[i]))
                break;
            compare(t, &bounded, &plain, true);
            expect_programs(t, &bounded, 1);
        }
    place_close(&bounded);
    place_close(&plain);
}

/* A single row may be fused as if it were a bias, which rounds to halves once less. */
TEST_DEVICES_SLOW(bound_model, every_precision)
{
    static const rlx_precision policies[] = {
        RLX_PRECISION_F32,   RLX_PRECISION_F16,        RLX_PRECISION_MIXED_CONSERVATIVE,
        RLX_PRECISION_MIXED, RLX_PRECISION_MIXED_BF16, RLX_PRECISION_CUSTOM};
    struct place bounded = {0}, plain = {0};

    if (place_open(t, &bounded, test_device(t), NULL) &&
        place_open(t, &plain, test_device(t), NULL))
        for (size_t i = 0; i < COUNT_OF(policies); i++) {
            const rlx_session_desc desc = {
                RLX_SIZED(rlx_session_desc), .precision = policies[i],
                .precision_map = {.compute = RLX_DTYPE_bf16, .movement = RLX_DTYPE_f16}};
            test_note(t, "policy %d", (int)policies[i]);
            if (!build(t, &bounded, BOUNDS DECODER, &desc) ||
                !build(t, &plain, FREE DECODER, &desc))
                break;
            compare(t, &bounded, &plain, policies[i] == RLX_PRECISION_F32);
            expect_programs(t, &bounded, 1);
        }
    place_close(&bounded);
    place_close(&plain);
}

/* ---- several symbols, and what joins them ---- */

static const char *const joined[] = {
    "graph (input %a: f32[batch,seq,4], input %b: f32[seq,batch,4])"
    " { %t = transpose %b perm=[1,0,2] %y = add %a, %t return %y }",
    "graph (input %a: f32[batch,4], input %b: f32[seq,4])"
    " { %y = matmul %a, %b transpose_b=true return %y }",
    "graph (input %a: f32[batch,4], input %b: f32[seq,4])"
    " { %c = concat %a, %b, %a axis=0 %s = softmax %c axis=0"
    " %n = narrow %s axis=0 start=batch len=seq return %n, %s }",
    "graph (input %a: f32[batch,seq]) { %f = reshape %a shape=[batch*seq] %s = sort %f"
    " %c = cumsum %s %b = reshape %c shape=[seq,batch] return %b }",
    "graph (input %a: f32[batch,1,4], input %b: f32[1,seq,4])"
    " { %s = sub %a, %b %e = exp %s %y = reduce_sum %e axes=[0,2] return %y, %e }",
    "graph (input %a: f32[2*batch,seq+1])"
    " { %r = reshape %a shape=[batch,2,seq+1] %y = reduce_mean %r axes=[0,2] return %y, %r }",
    "graph (input %q: f32[batch,2,seq,4], input %k: f32[batch,2,seq+1,4])"
    " { %y = attention %q, %k, %k num_heads=2 head_dim=4 return %y }",
    "graph (input %a: f32[batch,4], input %i: i32[seq]) { %g = gather %a, %i"
    " %y = scatter_add %g, %i out_dim=batch return %y, %g }",
    "graph (input %x: f32[batch,3,seq,5], param %w: f32[2,3,3,3])"
    " { %c = conv %x, %w padding=[1,1] %y = pool %c kind=max kernel_size=[1,2] return %y }",
};

TEST_DEVICES_SLOW(bound_model, several_symbols_at_a_time)
{
    struct place bounded = {0}, plain = {0};
    char text[1024];

    if (place_open(t, &bounded, test_device(t), NULL) &&
        place_open(t, &plain, test_device(t), NULL))
        for (size_t i = 0; i < COUNT_OF(joined); i++) {
            test_note(t, "%s", joined[i]);
            snprintf(text, sizeof text, BOUNDS "%s", joined[i]);
            if (!build(t, &bounded, text, NULL))
                continue;
            snprintf(text, sizeof text, FREE "%s", joined[i]);
            if (build(t, &plain, text, NULL))
                compare(t, &bounded, &plain, true);
            expect_programs(t, &bounded, 1);
        }
    place_close(&bounded);
    place_close(&plain);
}

/* ---- control flow ---- */

static const char *const flows[] = {
    /* rows are carried through a loop that stops by their values */
    "graph @main (input %x: f32[batch,seq])"
    " { %y = while %x max_iterations=12 cond_graph=@small body_graph=@twice return %y }"
    " graph @small (input %x: f32[batch,seq]) { %m = reduce_max %x axes=[0,1]"
    " %l = const f32[] {30} %z = const f32[] {0} %a = lt %m, %l %b = gt %m, %z"
    " %ai = cast %a to=f32 %bi = cast %b to=f32 %c = mul %ai, %bi %t = gt %c, %z return %t }"
    " graph @twice (input %x: f32[batch,seq]) { %a = add %x, %x return %a }",
    /* a branch by a value, with a product over the symbol in it */
    "graph @main (input %x: f32[seq,4], input %z: f32[batch,4])"
    " { %s = reduce_sum %x axes=[0,1] %o = const f32[] {0} %p = gt %s, %o"
    " %y = if %p, %x, %z then_graph=@f else_graph=@g return %y }"
    " graph @f (input %x: f32[seq,4], input %z: f32[batch,4])"
    " { %a = matmul %x, %z transpose_b=true return %a }"
    " graph @g (input %x: f32[seq,4], input %z: f32[batch,4])"
    " { %b = matmul %x, %z transpose_b=true %a = neg %b return %a }",
    /* a scan over one symbol that carries the other */
    "graph @main (input %c: f32[batch,2], input %x: f32[seq,2])"
    " { %y = scan %c, %x body=@b length=seq num_xs=1 return %y }"
    " graph @b (input %c: f32[batch,2], input %x: f32[2])"
    " { %a = add %c, %x %t = tanh %a return %t }",
    "graph @main (input %c: f32[batch,2], input %x: f32[seq,2])"
    " { %y = scan %c, %x body=@b length=seq num_xs=1 save_trajectory=true return %y }"
    " graph @b (input %c: f32[batch,2], input %x: f32[2])"
    " { %a = mul %c, %x %t = tanh %a return %t }",
};

TEST_DEVICES_SLOW(bound_model, control_flow)
{
    struct place bounded = {0}, plain = {0};
    char text[1536];

    if (place_open(t, &bounded, test_device(t), NULL) &&
        place_open(t, &plain, test_device(t), NULL))
        for (size_t i = 0; i < COUNT_OF(flows); i++) {
            test_note(t, "%s", flows[i]);
            snprintf(text, sizeof text, BOUNDS "%s", flows[i]);
            if (!build(t, &bounded, text, NULL))
                continue;
            snprintf(text, sizeof text, FREE "%s", flows[i]);
            if (build(t, &plain, text, NULL))
                compare(t, &bounded, &plain, true);
        }
    place_close(&bounded);
    place_close(&plain);
}

/* ---- from files ---- */

TEST_DEVICES_SLOW(bound_model, comes_back_from_an_artefact)
{
    const char *path = test_temp(t, "bound.rlxa");
    struct place plain = {0}, bounded = {0};
    static struct sized a;
    rlx_compiled_info info = {RLX_SIZED(rlx_compiled_info)};
    rlx_bound_info bound = {RLX_SIZED(rlx_bound_info)};
    const rlx_dim_size some[] = {{"batch", 2}, {"seq", 5}};

    if (place_open(t, &plain, test_device(t), NULL) &&
        place_open(t, &bounded, test_device(t), NULL) && build(t, &plain, BOUNDS DECODER, NULL)) {
        sized_run(&plain, some, 2, &a);
        expect_ok(t, a.status);
        expect_ok(t, rlx_session_save(plain.session, path, RLX_SAVE_WEIGHTS, &plain.err));
        if (expect_ok(t, rlx_session_load(bounded.dev, path, NULL, NULL, &bounded.model,
                                          &bounded.session, &bounded.err)) &&
            build(t, &plain, FREE DECODER, NULL))
            compare(t, &bounded, &plain, true);
        expect_ok(t, rlx_session_compiled(bounded.session, &info, &bounded.err));
        expect_eq(t, info.programs, 1);
        expect_eq(t, info.from_artefact, 1);
        expect_eq(t, info.restored, 1);
        expect_str(t, info.why, "");
        expect_ok(t, rlx_session_bound(bounded.session, "seq", &bound, &bounded.err));
        expect_eq(t, bound.bound, SEQ);
        rlx_artefact_program saved = {0};
        expect(t, rlx_model_artefact_program(bounded.model, 0, &saved));
        expect_str(t, saved.sizes, "batch<=3 seq<=12");
        const rlx_dim_size more[] = {{"batch", 2}, {"seq", SEQ + 1}};
        sized_run(&bounded, more, 2, &a);
        expect_status(t, a.status, RLX_ERROR_EXTENT);
    }
    place_close(&bounded);
    place_close(&plain);
}

/* A bound that is none of the graph's but was set on the session comes back as well. */
TEST_DEVICES_SLOW(bound_model, an_artefact_has_the_bounds_of_its_session)
{
    const char *path = test_temp(t, "bound.rlxa");
    struct place plain = {0}, bounded = {0};
    static struct sized a;
    const rlx_dim_size some[] = {{"batch", 2}, {"seq", 5}};
    rlx_bound_info bound = {RLX_SIZED(rlx_bound_info)};

    if (place_open(t, &plain, test_device(t), NULL) &&
        place_open(t, &bounded, test_device(t), NULL) && build(t, &plain, FREE DECODER, NULL)) {
        expect_ok(t, rlx_session_set_bound(plain.session, "seq", 7, &plain.err));
        sized_run(&plain, some, 2, &a);
        expect_ok(t, rlx_session_save(plain.session, path, RLX_SAVE_WEIGHTS, &plain.err));
        expect_ok(t, rlx_session_load(bounded.dev, path, NULL, NULL, &bounded.model,
                                      &bounded.session, &bounded.err));
        expect_ok(t, rlx_session_bound(bounded.session, "seq", &bound, &bounded.err));
        expect_eq(t, bound.bound, 7);
        expect_ok(t, rlx_session_bound(bounded.session, "batch", &bound, &bounded.err));
        expect_eq(t, bound.bound, 0);
        sized_run(&bounded, some, 2, &a);
        expect_ok(t, a.status);
        expect_programs(t, &bounded, 1);
    }
    place_close(&bounded);
    place_close(&plain);
}

static void remove_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *e;
    char path[4096];

    while (dir && (e = readdir(dir)))
        if (e->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
            remove(path);
        }
    if (dir)
        closedir(dir);
    rmdir(folder);
}

TEST_DEVICES_SLOW(bound_model, comes_back_from_the_cache_folder)
{
    const char *folder = test_temp(t, "cache");
    const rlx_context_desc cached = {RLX_SIZED(rlx_context_desc), .cache_dir = folder};
    struct place plain = {0}, bounded = {0};

    if (!place_open(t, &plain, test_device(t), NULL) || !build(t, &plain, FREE DECODER, NULL))
        return place_close(&plain);
    for (uint32_t i = 0; i < 2; i++) {
        rlx_compiled_info info = {RLX_SIZED(rlx_compiled_info)};
        test_note(t, "time %u", i + 1);
        if (place_open(t, &bounded, test_device(t), &cached) &&
            build(t, &bounded, BOUNDS DECODER, NULL)) {
            compare(t, &bounded, &plain, true);
            expect_ok(t, rlx_session_compiled(bounded.session, &info, &bounded.err));
            expect_eq(t, info.programs, 1);
            expect_eq(t, info.from_cache, i);
            expect_eq(t, info.restored, i);
        }
        place_close(&bounded);
    }
    place_close(&plain);
    remove_folder(folder);
}
