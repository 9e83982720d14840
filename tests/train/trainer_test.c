/* trainer_test.c: training runs, reports, finds NaN, and goes on from a checkpoint bit for bit. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

#include "trainer_world.h"

static const rlx_train_desc adamw = {RLX_SIZED(rlx_train_desc), .rate = 0.02f, .decay = 0.01f,
                                     .clip_norm = 1};
static const rlx_trainer_desc usual = {RLX_SIZED(rlx_trainer_desc), .train = &adamw, .seed = 3,
                                       .name = "small"};

TEST_DEVICES(trainer, learns)
{
    struct learning l;
    rlx_train_report first = {RLX_SIZED(rlx_train_report)}, last = first;

    if (open_learning(t, &l, test_device(t), NULL, &usual) && open_data(t, &l, 0, 0) &&
        learn(t, &l, 0, 10) && expect_ok(t, rlx_trainer_report(l.trainer, &first, &l.err)) &&
        learn(t, &l, 10, 290) && expect_ok(t, rlx_trainer_report(l.trainer, &last, &l.err))) {
        expect_eq(t, first.updates, 10);
        expect_eq(t, first.runs, 10);
        expect_eq(t, last.updates, 300);
        expect_eq(t, last.runs, 290);
        expect_eq(t, rlx_trainer_runs(l.trainer), 300);
        expect(t, first.loss > 0.8 && first.loss < 3);
        expect(t, last.loss < 0.3 * first.loss);
        expect(t, last.grad_norm > 0 && last.grad_norm < 100);
        expect_near(t, last.rate, 0.02f, 1e-8);
        expect_eq(t, rlx_trainer_bad_run(l.trainer), -1);
    }
    close_learning(&l);
}

/* The first numbers follow from seed and name alone. */
TEST_DEVICES(trainer, begins_alike_everywhere)
{
    struct learning l, cpu;
    float w[64];
    rlx_tensor x = {.dtype = RLX_DTYPE_f32, .data = w, .bytes = sizeof w};
    double square = 0;

    if (open_learning(t, &l, test_device(t), NULL, &usual) &&
        open_learning(t, &cpu, "cpu", NULL, &usual)) {
        expect_same_values(t, &l, &cpu);
        require_ok(t, rlx_trainer_get(l.trainer, "w1", &x, &l.err));
        for (int i = 0; i < 64; i++)
            square += (double)w[i] * (double)w[i];
        expect_near(t, sqrt(square / 64), 0.5, 0.15); /* 1 / sqrt(4) */
        x.bytes = 64;
        require_ok(t, rlx_trainer_get(l.trainer, "b1", &x, &l.err));
        expect(t, w[0] == 0 && w[15] == 0);
        close_learning(&cpu);
    }
    close_learning(&l);
}

TEST(trainer, params_begin_as_rules_or_the_model_say)
{
    static const rlx_init_rule rules[] = {{"b*", RLX_INIT_CONSTANT, 0.25f},
                                          {"w2", RLX_INIT_NORMAL, 0.01f}};
    rlx_trainer_desc desc = usual;
    struct learning l;
    float w[64] = {7}, b[16];
    rlx_tensor x = {RLX_DTYPE_f32, 2, {4, 16}, w, sizeof w};
    rlx_tensor y = {.dtype = RLX_DTYPE_f32, .data = b, .bytes = sizeof b};

    desc.init = rules;
    desc.init_count = 2;
    require(t, open_learning(t, &l, "cpu", NULL, &desc));
    require_ok(t, rlx_trainer_get(l.trainer, "b1", &y, &l.err));
    expect(t, b[0] == 0.25f && b[15] == 0.25f);
    rlx_trainer_destroy(l.trainer);
    l.trainer = NULL;
    require_ok(t, rlx_model_set_param(l.model, "w1", &x, &l.err));
    require_ok(t, rlx_trainer_create(l.model, l.dev, &desc, &l.trainer, &l.err));
    memset(w, 0, sizeof w);
    require_ok(t, rlx_trainer_get(l.trainer, "w1", &x, &l.err));
    expect(t, w[0] == 7 && w[63] == 0);
    close_learning(&l);
}

/* ---- checkpoints ---- */

TEST_DEVICES(trainer, goes_on_bit_for_bit)
{
    const char *path = test_temp(t, "half.safetensors");
    rlx_checkpoint at = {RLX_SIZED(rlx_checkpoint), .cursor = 20, .seed = ~UINT64_C(0),
                         .note = "mine"};
    rlx_checkpoint got = {RLX_SIZED(rlx_checkpoint)};
    struct learning straight, first, second;
    rlx_trainer_desc other = usual;

    other.seed = 99; /* what it begins with must not matter */
    if (!open_learning(t, &straight, test_device(t), NULL, &usual)) {
        close_learning(&straight);
        return;
    }
    require(t, open_data(t, &straight, 0, 0.2) && learn(t, &straight, 0, 40));
    require(t, open_learning(t, &first, test_device(t), NULL, &usual));
    require(t, open_data(t, &first, 0, 0.2) && learn(t, &first, 0, 20));
    require_ok(t, rlx_trainer_save(first.trainer, path, &at, &first.err));
    require(t, open_learning(t, &second, test_device(t), NULL, &other));
    require(t, open_data(t, &second, 0, 0.2));
    require_ok(t, rlx_trainer_load(second.trainer, path, &got, &second.err));
    expect_eq_u64(t, got.cursor, 20);
    expect_eq_u64(t, got.seed, ~UINT64_C(0));
    expect_str(t, got.note, "mine");
    expect_eq(t, rlx_trainer_runs(second.trainer), 20);
    require(t, learn(t, &second, got.cursor, 20));
    expect_same_values(t, &straight, &second);
    close_learning(&straight);
    close_learning(&first);
    close_learning(&second);
}

/* Params that are not trained, but were drawn from the seed, are in it, too. */
TEST(trainer, keeps_what_was_drawn_and_is_not_trained)
{
    static const char *const kept[] = {"w1"};
    const char *path = test_temp(t, "a.safetensors");
    rlx_train_desc train = adamw;
    rlx_trainer_desc desc = usual;
    struct learning a, b;

    train.keep = kept;
    train.keep_count = 1;
    desc.train = &train;
    require(t, open_learning(t, &a, "cpu", NULL, &desc) && open_data(t, &a, 0, 0.2));
    desc.seed++;
    require(t, open_learning(t, &b, "cpu", NULL, &desc) && open_data(t, &b, 0, 0.2));
    require(t, learn(t, &a, 0, 3) && learn(t, &b, 0, 1));
    require_ok(t, rlx_trainer_save(a.trainer, path, NULL, &a.err));
    require_ok(t, rlx_trainer_load(b.trainer, path, NULL, &b.err));
    expect_same_values(t, &a, &b);
    const rlx_binding *in;
    size_t n;
    double x = 0, y = 1;
    require_ok(t, rlx_dataset_batch(a.data, RLX_SPLIT_VALIDATION, 0, &in, &n, &a.err));
    require_ok(t, rlx_trainer_evaluate(a.trainer, in, n, &x, &a.err));
    require_ok(t, rlx_trainer_evaluate(b.trainer, in, n, &y, &b.err));
    expect(t, x == y);
    close_learning(&a);
    close_learning(&b);
}

TEST(trainer, refuses_checkpoints_of_others)
{
    static const char wide[] =
        "rlx 1\ngraph (input %x: f32[8,4], input %y: i32[8], param %w1: f32[4,3]) {\n"
        "    %m = matmul %x, %w1\n    %e = softmax_cross_entropy_with_logits %m, %y\n"
        "    %loss = reduce_mean %e axes=[0]\n    return %loss\n}\n";
    const rlx_train_desc sgd = {RLX_SIZED(rlx_train_desc), .optimiser = RLX_OPTIMISER_SGD};
    const char *path = test_temp(t, "a.safetensors"), *text = test_temp(t, "b.safetensors");
    rlx_trainer_desc desc = usual;
    struct learning a, b, c;

    require(t, open_learning(t, &a, "cpu", NULL, &usual));
    require_ok(t, rlx_trainer_save(a.trainer, path, NULL, &a.err));
    desc.name = "wide";
    require(t, open_learning(t, &b, "cpu", wide, &desc));
    rlx_trainer_load(b.trainer, path, NULL, &b.err);
    expect_error(t, RLX_ERROR_NAME, "is a checkpoint of \"small\"", &b.err);
    expect_contains(t, b.err.message, "not of \"wide\"");
    desc.train = &sgd;
    require(t, open_learning(t, &c, "cpu", NULL, &desc));
    rlx_trainer_load(c.trainer, path, NULL, &c.err);
    expect_error(t, RLX_ERROR_NAME, "another optimiser", &c.err);
    require_ok(t, rlx_trainer_export(a.trainer, text, &a.err));
    rlx_trainer_load(a.trainer, text, NULL, &a.err);
    expect_error(t, RLX_ERROR_FORMAT, "is not a checkpoint", &a.err);
    rlx_trainer_load(a.trainer, test_temp(t, "none"), NULL, &a.err);
    expect_error(t, RLX_ERROR_IO, "none", &a.err);
    close_learning(&a);
    close_learning(&b);
    close_learning(&c);
}

/* A file that may not grow is as good as a disk that is full. */
TEST(trainer, a_full_disk_leaves_the_old_checkpoint)
{
    const char *path = test_temp(t, "a.safetensors");
    struct rlimit before, small;
    struct learning l;
    size_t old_len = 0, new_len = 0;

    require(t, open_learning(t, &l, "cpu", NULL, &usual) && open_data(t, &l, 0, 0));
    require_ok(t, rlx_trainer_save(l.trainer, path, NULL, &l.err));
    const char *old = test_read(t, path, &old_len);
    require(t, old && learn(t, &l, 0, 5));
    require(t, getrlimit(RLIMIT_FSIZE, &before) == 0);
    small = before;
    small.rlim_cur = 1024;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    rlx_status s = rlx_trainer_save(l.trainer, path, NULL, &l.err);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    expect_status(t, s, RLX_ERROR_IO);
    const char *now = test_read(t, path, &new_len);
    expect_eq_u64(t, new_len, old_len);
    if (now && new_len == old_len)
        expect_bytes(t, now, old, old_len);
    expect_ok(t, rlx_trainer_load(l.trainer, path, NULL, &l.err));
    close_learning(&l);
}

/* ---- numbers that are not ---- */

TEST_DEVICES(trainer, stops_at_a_nan_and_names_the_node)
{
    static const char root[] =
        "rlx 1\ngraph (input %x: f32[8,4], input %y: i32[8], param %w: f32[4,3]) {\n"
        "    %m = matmul %x, %w\n    %root = sqrt %m\n"
        "    %e = softmax_cross_entropy_with_logits %root, %y\n"
        "    %loss = reduce_mean %e axes=[0]\n    return %loss\n}\n";
    static const rlx_init_rule ones[] = {{"*", RLX_INIT_CONSTANT, 1}};
    rlx_trainer_desc desc = usual;
    rlx_train_report r = {RLX_SIZED(rlx_train_report)};
    rlx_numerics found;
    struct learning l;
    const rlx_binding *in;
    size_t n;

    desc.init = ones;
    desc.init_count = 1;
    if (!open_learning(t, &l, test_device(t), root, &desc)) {
        close_learning(&l);
        return;
    }
    for (int i = 0; i < EXAMPLES; i++) /* the root of what is positive, until run 5 */
        for (int k = 0; k < 4; k++)
            l.x[i][k] = 1 + fabsf(l.x[i][k]);
    require(t, open_data(t, &l, 0, 0) && learn(t, &l, 0, 5));
    require_ok(t, rlx_trainer_report(l.trainer, &r, &l.err));
    for (int i = 0; i < EXAMPLES; i++)
        l.x[i][0] = -1000;
    require(t, learn(t, &l, 5, 4));
    rlx_trainer_report(l.trainer, &r, &l.err);
    expect_error(t, RLX_ERROR_NUMERIC, "update 6 ", &l.err);
    expect_eq(t, rlx_trainer_bad_run(l.trainer), 5);
    expect_status(t, rlx_trainer_save(l.trainer, test_temp(t, "a"), NULL, &l.err),
                  RLX_ERROR_NUMERIC);
    require_ok(t, rlx_dataset_batch(l.data, RLX_SPLIT_TRAIN, 5, &in, &n, &l.err));
    require_ok(t, rlx_trainer_find_bad(l.trainer, in, n, &found, &l.err));
    require(t, found.bad_count > 0);
    expect_str(t, found.bad[0].name, "root");
    expect_str(t, found.bad[0].op, "sqrt");
    close_learning(&l);
}

/* ---- the rest ---- */

TEST(trainer, evaluates_without_learning)
{
    struct learning l, other;
    const rlx_binding *in;
    size_t n;
    double before = 0, again = 0, after = 0;

    require(t, open_learning(t, &l, "cpu", NULL, &usual) && open_data(t, &l, 0, 0.2));
    require(t, open_learning(t, &other, "cpu", NULL, &usual) && open_data(t, &other, 0, 0.2));
    require_ok(t, rlx_dataset_batch(l.data, RLX_SPLIT_VALIDATION, 0, &in, &n, &l.err));
    require_ok(t, rlx_trainer_evaluate(l.trainer, in, n, &before, &l.err));
    require_ok(t, rlx_trainer_evaluate(l.trainer, in, n, &again, &l.err));
    expect(t, before == again && before > 0.5);
    require(t, learn(t, &l, 0, 200) && learn(t, &other, 0, 200));
    require_ok(t, rlx_dataset_batch(l.data, RLX_SPLIT_VALIDATION, 0, &in, &n, &l.err));
    require_ok(t, rlx_trainer_evaluate(l.trainer, in, n, &after, &l.err));
    expect(t, after < 0.7 * before);
    expect_same_values(t, &l, &other);
    close_learning(&l);
    close_learning(&other);
}

TEST(trainer, batches_of_any_size_where_the_model_leaves_it_open)
{
    struct learning l;
    rlx_train_report r = {RLX_SIZED(rlx_train_report)};

    require(t, open_learning(t, &l, "cpu", NETWORK("dim rows\n", "rows"), &usual));
    require(t, open_data(t, &l, 7, 0.1) && learn(t, &l, 0, 20));
    require_ok(t, rlx_trainer_report(l.trainer, &r, &l.err));
    expect_eq(t, r.updates, 20);
    close_learning(&l);
}

TEST(trainer, exports_params_alone)
{
    const char *path[] = {test_temp(t, "p.safetensors"), test_temp(t, "p.npz")};
    struct learning l;

    require(t, open_learning(t, &l, "cpu", NULL, &usual) && open_data(t, &l, 0, 0));
    require(t, learn(t, &l, 0, 3));
    for (int i = 0; i < 2; i++) {
        rlx_weights *w;
        rlx_weights_info info = {RLX_SIZED(rlx_weights_info)};
        rlx_weights_use use = {RLX_SIZED(rlx_weights_use)};
        require_ok(t, rlx_trainer_export(l.trainer, path[i], &l.err));
        require_ok(t, rlx_weights_open(l.ctx, path[i], NULL, &w, &l.err));
        require_ok(t, rlx_weights_describe(w, &info, &l.err));
        expect_eq(t, info.tensor_count, 4);
        expect_eq(t, info.kind, i ? RLX_FILE_npz : RLX_FILE_safetensors);
        rlx_model *again;
        require_ok(t, rlx_model_parse(l.ctx, rlx_cstr(NETWORK("", "8")), &again, &l.err));
        require_ok(t, rlx_model_load_weights(again, w, &use, &l.err));
        expect_eq(t, use.set, 4);
        rlx_model_destroy(again);
        rlx_weights_close(w);
    }
    close_learning(&l);
}

TEST(trainer, refuses_what_makes_no_sense)
{
    rlx_trainer_desc desc = usual;
    rlx_trainer *none = NULL;
    struct learning l;
    float x;
    rlx_tensor value = {.dtype = RLX_DTYPE_f32, .data = &x, .bytes = sizeof x};

    require(t, open_learning(t, &l, "cpu", NULL, &usual));
    desc.loss = "los";
    rlx_trainer_create(l.model, l.dev, &desc, &none, &l.err);
    expect_error(t, RLX_ERROR_NAME, "no output \"los\"", &l.err);
    expect_contains(t, l.err.message, "did you mean loss?");
    rlx_trainer_create(NULL, l.dev, NULL, &none, &l.err);
    expect_error(t, RLX_ERROR_ARGUMENT, "the model is NULL", &l.err);
    rlx_trainer_get(l.trainer, "w3", &value, &l.err);
    expect_error(t, RLX_ERROR_NAME, "no param or state \"w3\"", &l.err);
    expect_status(t, rlx_trainer_report(l.trainer, NULL, &l.err), RLX_ERROR_ARGUMENT);
    expect(t, !none);
    close_learning(&l);
}

TEST(trainer, refuses_updates_in_halves)
{
    static const struct {
        rlx_precision precision;
        rlx_dtype elementwise;
        bool fine;
    } rows[] = {
        {RLX_PRECISION_F32, RLX_DTYPE_f32, true},
        {RLX_PRECISION_F16, RLX_DTYPE_f32, false},
        {RLX_PRECISION_MIXED, RLX_DTYPE_f32, false},
        {RLX_PRECISION_MIXED_BF16, RLX_DTYPE_f32, false},
        {RLX_PRECISION_MIXED_CONSERVATIVE, RLX_DTYPE_f32, false},
        {RLX_PRECISION_CUSTOM, RLX_DTYPE_bf16, false},
        {RLX_PRECISION_CUSTOM, RLX_DTYPE_f32, true},
    };
    struct learning l;

    require(t, open_learning(t, &l, "cpu", NULL, &usual));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rlx_session_desc session = {
            RLX_SIZED(rlx_session_desc), .precision = rows[i].precision,
            .precision_map = {.compute = RLX_DTYPE_bf16, .elementwise = rows[i].elementwise}};
        rlx_trainer_desc desc = usual;
        rlx_trainer *other = NULL;
        desc.session = &session;
        rlx_status s = rlx_trainer_create(l.model, l.dev, &desc, &other, &l.err);
        if (rows[i].fine)
            expect_ok(t, s);
        else
            expect_error(t, RLX_ERROR_ARGUMENT, "updates in halves", &l.err);
        rlx_trainer_destroy(other);
    }
    close_learning(&l);
}

static rlx_status make_and_step(struct test *t, const rlx_allocator *mem, void *user)
{
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = mem, .threads = 1};
    const char *path = user;
    struct learning l;

    (void)t;
    memset(&l, 0, sizeof l);
    fill_examples(&l);
    rlx_binding arrays[2];
    examples_of(&l, arrays);
    rlx_dataset_desc data = {RLX_SIZED(rlx_dataset_desc), .validation = 0.2, .arrays = arrays,
                             .array_count = 2};
    const rlx_binding *in;
    size_t n;
    rlx_status s = rlx_context_create(RLX_VERSION, &desc, &l.ctx, NULL);
    if (s == RLX_OK)
        s = rlx_device_open(l.ctx, "cpu", &l.dev, NULL);
    if (s == RLX_OK)
        s = rlx_model_parse(l.ctx, rlx_cstr(NETWORK("", "8")), &l.model, NULL);
    if (s == RLX_OK)
        s = rlx_trainer_create(l.model, l.dev, &usual, &l.trainer, NULL);
    if (s == RLX_OK)
        s = rlx_dataset_create(l.ctx, &data, &l.data, NULL);
    if (s == RLX_OK)
        s = rlx_dataset_fit(l.data, l.model, NULL);
    if (s == RLX_OK)
        s = rlx_dataset_batch(l.data, RLX_SPLIT_TRAIN, 0, &in, &n, NULL);
    if (s == RLX_OK)
        s = rlx_trainer_step(l.trainer, in, n, NULL);
    if (s == RLX_OK)
        s = rlx_trainer_save(l.trainer, path, NULL, NULL);
    if (s == RLX_OK)
        s = rlx_trainer_load(l.trainer, path, NULL, NULL);
    close_learning(&l);
    return s;
}

TEST_SLOW(trainer, survives_no_memory)
{
    expect_survives_no_memory(t, make_and_step, (void *)test_temp(t, "a.safetensors"));
}
