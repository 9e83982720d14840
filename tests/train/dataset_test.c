/* dataset_test.c: batches are a function of their number, fit the model, and hold out what they
 * should. */
#include "trainer_world.h"

/* A dataset of examples that are their own number. */
struct numbered {
    struct learning l;
};

static bool open_numbered(struct test *t, struct numbered *n, int64_t batch, double validation,
                          uint64_t seed)
{
    const rlx_trainer_desc desc = {RLX_SIZED(rlx_trainer_desc)};
    rlx_binding arrays[2];

    if (!open_learning(t, &n->l, "cpu", NETWORK("dim rows\n", "rows"), &desc))
        return false;
    examples_of(&n->l, arrays);
    for (int i = 0; i < EXAMPLES; i++)
        n->l.x[i][0] = (float)i;
    rlx_dataset_desc data = {RLX_SIZED(rlx_dataset_desc),
                             .batch = batch,
                             .validation = validation,
                             .seed = seed,
                             .arrays = arrays,
                             .array_count = 2};
    return expect_ok(t, rlx_dataset_create(n->l.ctx, &data, &n->l.data, &n->l.err)) &&
           expect_ok(t, rlx_dataset_fit(n->l.data, n->l.model, &n->l.err));
}

/* Marks the examples of a batch, and checks that labels go with them. */
static int mark(struct test *t, struct numbered *n, rlx_split split, uint64_t i, int seen[EXAMPLES])
{
    const rlx_binding *in;
    size_t count;

    if (!expect_ok(t, rlx_dataset_batch(n->l.data, split, i, &in, &count, &n->l.err)))
        return 0;
    expect_eq(t, count, 2);
    const float *x = in[0].tensor.data;
    const int32_t *y = in[1].tensor.data;
    for (int64_t r = 0; r < in[0].tensor.dim[0]; r++) {
        int e = (int)x[4 * r];
        seen[e]++;
        expect_eq(t, y[r], n->l.y[e]);
    }
    return (int)in[0].tensor.dim[0];
}

TEST(dataset, an_epoch_has_each_example_once)
{
    rlx_dataset_info info = {RLX_SIZED(rlx_dataset_info)};
    int seen[EXAMPLES] = {0}, held[EXAMPLES] = {0}, order[2][7] = {{0}};
    struct numbered n;
    int once = 0, out = 0;

    require(t, open_numbered(t, &n, 7, 0.25, 11));
    require_ok(t, rlx_dataset_describe(n.l.data, &info, &n.l.err));
    expect_eq(t, info.examples, 45);
    expect_eq(t, info.held_out, 15);
    expect_eq(t, info.epoch, 6);
    expect_eq(t, info.validation, 2);
    for (uint64_t i = 0; i < 6; i++)
        mark(t, &n, RLX_SPLIT_TRAIN, i, seen);
    for (uint64_t i = 0; i < 2; i++)
        mark(t, &n, RLX_SPLIT_VALIDATION, i, held);
    for (int i = 0; i < EXAMPLES; i++) {
        once += seen[i] == 1;
        out += held[i] == 1;
        expect(t, seen[i] <= 1 && held[i] <= 1 && !(seen[i] && held[i]));
    }
    expect_eq(t, once, 42);
    expect_eq(t, out, 14);
    for (int e = 0; e < 2; e++) {
        const rlx_binding *in;
        size_t count;
        require_ok(t, rlx_dataset_batch(n.l.data, RLX_SPLIT_TRAIN, (uint64_t)e * 6, &in, &count,
                                        &n.l.err));
        for (int r = 0; r < 7; r++)
            order[e][r] = (int)((const float *)in[0].tensor.data)[4 * r];
    }
    expect(t, memcmp(order[0], order[1], sizeof order[0]) != 0);
    close_learning(&n.l);
}

TEST(dataset, a_batch_depends_on_seed_and_number_alone)
{
    struct numbered a, b, c;
    const rlx_binding *x, *y, *z;
    size_t count;
    int seen[EXAMPLES] = {0};

    require(t, open_numbered(t, &a, 8, 0.1, 4) && open_numbered(t, &b, 8, 0.1, 4) &&
                   open_numbered(t, &c, 8, 0.1, 5));
    for (uint64_t i = 0; i < 23; i++)
        mark(t, &a, RLX_SPLIT_TRAIN, i, seen);
    require_ok(t, rlx_dataset_batch(a.l.data, RLX_SPLIT_TRAIN, 23, &x, &count, NULL));
    require_ok(t, rlx_dataset_batch(b.l.data, RLX_SPLIT_TRAIN, 23, &y, &count, NULL));
    require_ok(t, rlx_dataset_batch(c.l.data, RLX_SPLIT_TRAIN, 23, &z, &count, NULL));
    expect_bytes(t, y[0].tensor.data, x[0].tensor.data, x[0].tensor.bytes);
    expect(t, memcmp(z[0].tensor.data, x[0].tensor.data, x[0].tensor.bytes) != 0);
    close_learning(&a.l);
    close_learning(&b.l);
    close_learning(&c.l);
}

TEST(dataset, what_does_not_fit_is_refused_with_both_shapes)
{
    const rlx_trainer_desc desc = {RLX_SIZED(rlx_trainer_desc)};
    static float wrong[EXAMPLES][3][2];
    static int64_t large[EXAMPLES] = {[7] = INT64_C(1) << 40};
    struct learning l;
    rlx_binding good[2], bad[3];
    rlx_dataset *s;
    const struct {
        rlx_binding x;
        rlx_status status;
        const char *part;
    } rows[] = {
        {{"x", {RLX_DTYPE_f32, 3, {EXAMPLES, 3, 2}, wrong, sizeof wrong}},
         RLX_ERROR_SHAPE,
         "the data is f32[60,3,2], so that an example is f32[3,2]; the input is f32[8,4]"},
        {{"z", {RLX_DTYPE_f32, 3, {EXAMPLES, 3, 2}, wrong, sizeof wrong}},
         RLX_ERROR_NAME,
         "no input \"z\""},
        {{"y", {RLX_DTYPE_f32, 1, {EXAMPLES}, wrong, sizeof(float) * EXAMPLES}},
         RLX_ERROR_DTYPE,
         "floats do not become integers"},
    };

    require(t, open_learning(t, &l, "cpu", NULL, &desc));
    examples_of(&l, good);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memcpy(bad, good, sizeof good);
        bad[i == 2] = rows[i].x;
        rlx_dataset_desc data = {RLX_SIZED(rlx_dataset_desc), .arrays = bad, .array_count = 2};
        require_ok(t, rlx_dataset_create(l.ctx, &data, &s, &l.err));
        rlx_dataset_fit(s, l.model, &l.err);
        expect_error(t, rows[i].status, rows[i].part, &l.err);
        rlx_dataset_destroy(s);
    }
    rlx_dataset_desc data = {RLX_SIZED(rlx_dataset_desc), .arrays = good, .array_count = 1};
    require_ok(t, rlx_dataset_create(l.ctx, &data, &s, &l.err));
    rlx_dataset_fit(s, l.model, &l.err);
    expect_error(t, RLX_ERROR_NAME, "no data for the input \"y\"", &l.err);
    rlx_dataset_destroy(s);
    data.array_count = 2;
    data.batch = 16;
    require_ok(t, rlx_dataset_create(l.ctx, &data, &s, &l.err));
    rlx_dataset_fit(s, l.model, &l.err);
    expect_error(t, RLX_ERROR_SHAPE, "a batch of 16 examples does not fit", &l.err);
    rlx_dataset_destroy(s);
    good[1].tensor.data = large;
    data.batch = 0;
    const rlx_binding *in;
    size_t n;
    require_ok(t, rlx_dataset_create(l.ctx, &data, &s, &l.err));
    require_ok(t, rlx_dataset_fit(s, l.model, &l.err));
    rlx_status status = RLX_OK;
    for (uint64_t i = 0; i < 14 && status == RLX_OK; i++)
        status = rlx_dataset_batch(s, RLX_SPLIT_TRAIN, i, &in, &n, &l.err);
    expect_error(t, RLX_ERROR_INDEX, "a number of example 7 does not fit i32", &l.err);
    rlx_dataset_destroy(s);
    close_learning(&l);
}

TEST(dataset, numbers_become_the_inputs_type)
{
    const rlx_trainer_desc desc = {RLX_SIZED(rlx_trainer_desc)};
    static uint8_t pixels[EXAMPLES][4], labels[EXAMPLES];
    struct learning l;
    const rlx_binding *in;
    size_t n;

    require(t, open_learning(t, &l, "cpu", NULL, &desc));
    for (int i = 0; i < EXAMPLES; i++)
        labels[i] = pixels[i][2] = (uint8_t)(200 + i % 50);
    const rlx_binding arrays[] = {{"x", {RLX_DTYPE_u8, 2, {EXAMPLES, 4}, pixels, sizeof pixels}},
                                  {"y", {RLX_DTYPE_u8, 1, {EXAMPLES}, labels, sizeof labels}}};
    rlx_dataset_desc data = {RLX_SIZED(rlx_dataset_desc), .arrays = arrays, .array_count = 2};
    require_ok(t, rlx_dataset_create(l.ctx, &data, &l.data, &l.err));
    require_ok(t, rlx_dataset_fit(l.data, l.model, &l.err));
    require_ok(t, rlx_dataset_batch(l.data, RLX_SPLIT_TRAIN, 3, &in, &n, &l.err));
    const float *x = in[0].tensor.data;
    const int32_t *y = in[1].tensor.data;
    for (int r = 0; r < ROWS; r++)
        expect(t, x[4 * r + 2] == (float)y[r] && y[r] >= 200 && x[4 * r] == 0);
    close_learning(&l);
}

TEST(dataset, tokens_come_in_windows)
{
    enum { COUNT = 200, CONTEXT = 6 };
    static const char text[] =
        "rlx 1\ngraph (input %tokens: i32[5,6], input %targets: i32[5,6], param %emb: f32[200,4]) "
        "{\n    %a = gather %emb, %tokens axis=0\n    %b = gather %emb, %targets axis=0\n"
        "    %d = sub %a, %b\n    %q = mul %d, %d\n    %loss = reduce_mean %q axes=[0,1,2]\n"
        "    return %loss\n}\n";
    const rlx_trainer_desc desc = {RLX_SIZED(rlx_trainer_desc)};
    int32_t tokens[COUNT];
    struct learning l;
    rlx_dataset_info info = {RLX_SIZED(rlx_dataset_info)};
    const rlx_binding *in;
    size_t n;
    int most = 0;

    for (int i = 0; i < COUNT; i++)
        tokens[i] = i;
    rlx_dataset_desc data = {RLX_SIZED(rlx_dataset_desc), .validation = 0.2, .tokens = tokens,
                             .token_count = COUNT, .context = CONTEXT};
    require(t, open_learning(t, &l, "cpu", text, &desc));
    require_ok(t, rlx_dataset_create(l.ctx, &data, &l.data, &l.err));
    require_ok(t, rlx_dataset_fit(l.data, l.model, &l.err));
    require_ok(t, rlx_dataset_describe(l.data, &info, &l.err));
    expect_eq(t, info.batch, 5);
    expect_eq(t, info.tokens, 30);
    expect_eq(t, info.held_out, 6);
    expect_eq(t, info.validation, 1);
    for (uint64_t i = 0; i < 100; i++) {
        require_ok(t, rlx_dataset_batch(l.data, RLX_SPLIT_TRAIN, i, &in, &n, &l.err));
        const int32_t *x = in[0].tensor.data, *y = in[1].tensor.data;
        for (int r = 0; r < 30; r++) {
            expect(t, y[r] == x[r] + 1 && y[r] < 160);
            most = y[r] > most ? y[r] : most;
        }
    }
    expect_eq(t, most, 159); /* the last window is drawn, too */
    require_ok(t, rlx_dataset_batch(l.data, RLX_SPLIT_VALIDATION, 0, &in, &n, &l.err));
    expect_eq(t, ((const int32_t *)in[0].tensor.data)[0], 160);
    expect_eq(t, ((const int32_t *)in[0].tensor.data)[29], 189);
    rlx_dataset_batch(l.data, RLX_SPLIT_VALIDATION, 1, &in, &n, &l.err);
    expect_error(t, RLX_ERROR_ARGUMENT, "no batch 1 ", &l.err);
    close_learning(&l);
}
