/* refusal_test.c: what rlx_train_graph refuses, by name, leaving the graph as it was; which params
 * it trains; and memory that there is none of. */
#include "graph/builder.h"
#include "train/train.h"
#include "train_world.h"

struct world {
    rlx_context *ctx;
    rlx_graph *g;
    rlx_value loss, vector, whole, alone;
};

/* loss depends on w and b; `table` holds integers; nothing depends on `idle`. */
static bool open_graph(struct test *t, const rlx_allocator *mem, struct world *o)
{
    rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = mem};

    *o = (struct world){0};
    rlx_status s = rlx_context_create(RLX_VERSION, &desc, &o->ctx, NULL);
    if (s == RLX_OK)
        s = rlx_graph_create(o->ctx, &o->g, NULL);
    if (s != RLX_OK)
        return mem ? false : expect_ok(t, s);
    rlx_value x = rlx_input(o->g, "x", RLX_DTYPE_f32, RLX_LIST(3, 4));
    rlx_value w = rlx_param(o->g, "layer.w", RLX_DTYPE_f32, RLX_LIST(4, 4));
    rlx_value b = rlx_param(o->g, "layer.b", RLX_DTYPE_f32, RLX_LIST(4));
    rlx_value table = rlx_param(o->g, "table", RLX_DTYPE_i32, RLX_LIST(4));
    rlx_value y = rlx_add(o->g, rlx_matmul(o->g, x, w, false, false), b);
    y = rlx_mul(o->g, y, rlx_cast(o->g, table, RLX_DTYPE_f32));
    rlx_param(o->g, "idle", RLX_DTYPE_f32, RLX_LIST(2));
    o->vector = rlx_reduce_sum(o->g, y, RLX_LIST(0), false);
    o->loss = rlx_reduce_mean(o->g, rlx_mul(o->g, y, y), RLX_LIST(0, 1), false);
    o->whole = rlx_cast(o->g, o->loss, RLX_DTYPE_i32);
    o->alone = rlx_reduce_mean(o->g, x, RLX_LIST(0, 1), false);
    return mem || expect_ok(t, rlx_graph_check(o->g, NULL));
}

static void close_graph(struct world *o)
{
    rlx_graph_destroy(o->g);
    rlx_context_destroy(o->ctx);
}

static rlx_op op_of(const struct world *o, const char *name)
{
    rlx_value v = rlx_graph_leaf(o->g, name);

    return v == RLX_NO_VALUE ? RLX_OP_const : ir_node(o->g->g, v)->op;
}

static void refused(struct test *t, const rlx_train_desc *with, const char *loss, rlx_status status,
                    const char *part)
{
    rlx_train_desc desc = with ? *with : (rlx_train_desc){0};
    struct world o;
    rlx_error err = {0};

    if (!desc.size)
        desc.size = sizeof desc;
    test_note(t, "%s", part);
    if (open_graph(t, NULL, &o)) {
        size_t nodes = o.g->g->node.len;
        rlx_value v = strcmp(loss, "vector") == 0  ? o.vector
                      : strcmp(loss, "whole") == 0 ? o.whole
                      : strcmp(loss, "alone") == 0 ? o.alone
                      : strcmp(loss, "none") == 0  ? 999
                                                   : o.loss;
        expect_status(t, rlx_train_graph(o.g, v, &desc, &err), status);
        expect_contains(t, err.message, part);
        expect_eq_u64(t, o.g->g->node.len, nodes);
        expect_eq(t, op_of(&o, "layer.w"), RLX_OP_param);
        expect_ok(t, rlx_graph_check(o.g, NULL)); /* and can be asked again */
        expect_ok(t, rlx_train_graph(o.g, o.loss, NULL, &err));
    }
    close_graph(&o);
    test_note(t, "%s", "");
}

#define REFUSED(status, part, ...) \
    refused(t, &(rlx_train_desc){__VA_ARGS__}, "loss", RLX_ERROR_##status, part)

TEST(train_refusal, losses_that_are_none)
{
    rlx_error err;

    refused(t, NULL, "vector", RLX_ERROR_SHAPE, "take the mean or the sum");
    refused(t, NULL, "whole", RLX_ERROR_DTYPE, "is i32 and must be floats");
    refused(t, NULL, "alone", RLX_ERROR_GRAPH, "depends on no param that is to be trained");
    refused(t, NULL, "none", RLX_ERROR_GRAPH, "not a node of this graph (999)");
    expect_status(t, rlx_train_graph(NULL, 0, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_contains(t, err.message, "g is NULL");
}

TEST(train_refusal, names)
{
    const char *const wrong[] = {"layer.*", "layer.v"}, *const whole[] = {"table"};
    const char *const idle[] = {"idle"}, *const all[] = {"*"}, *const null[] = {NULL};

    REFUSED(NAME, "no param \"layer.v\", which train names", .train = wrong, .train_count = 2);
    REFUSED(NAME, "no param \"layer.v\", which keep names", .keep = wrong, .keep_count = 2);
    REFUSED(NAME, "which plain names", .optimiser = RLX_OPTIMISER_MUON, .plain = wrong,
            .plain_count = 2);
    REFUSED(DTYPE, "\"table\" is i32: only floats", .train = whole, .train_count = 1);
    REFUSED(GRAPH, "does not depend on the param \"idle\"", .train = idle, .train_count = 1);
    REFUSED(GRAPH, "depends on no param", .keep = all, .keep_count = 1);
    REFUSED(ARGUMENT, "train[0] is NULL", .train = null, .train_count = 1);
    REFUSED(ARGUMENT, "keep is NULL", .keep_count = 1);
}

TEST(train_refusal, numbers)
{
    REFUSED(ATTRIBUTE, "rate is -1; it must be from 0", .rate = -1);
    REFUSED(ATTRIBUTE, "rate is nan", .rate = NAN);
    REFUSED(ATTRIBUTE, "decay is inf", .decay = INFINITY);
    REFUSED(ATTRIBUTE, "beta1 is 1;", .beta1 = 1);
    REFUSED(ATTRIBUTE, "beta2 is -0.5", .beta2 = -0.5f);
    REFUSED(ATTRIBUTE, "eps is nan", .eps = NAN);
    REFUSED(ATTRIBUTE, "momentum is 1.5", .momentum = 1.5f);
    REFUSED(ATTRIBUTE, "clip_norm is -2", .clip_norm = -2);
    REFUSED(ATTRIBUTE, "loss_scale is inf", .loss_scale = INFINITY);
    REFUSED(ATTRIBUTE, "accumulate is -3", .accumulate = -3);
    REFUSED(ATTRIBUTE, "loss_scale_steps -1", .loss_scale_steps = -1);
    REFUSED(ATTRIBUTE, "needs total_steps", .schedule = RLX_SCHEDULE_COSINE);
    REFUSED(ATTRIBUTE, "9 warmup_steps are more than 5", .warmup_steps = 9, .total_steps = 5);
    REFUSED(ATTRIBUTE, "must be at least 0", .total_steps = -5);
    REFUSED(ARGUMENT, "no optimiser number 77", .optimiser = (rlx_optimiser)77);
    REFUSED(ARGUMENT, "no schedule number -1", .schedule = (rlx_schedule)-1);
    REFUSED(ARGUMENT, "rlx_train_desc.size is 1", .size = 1);
}

/* A state has an axis along which it is written. */
TEST(train_refusal, params_without_axes)
{
    struct world o;
    rlx_error err;

    if (open_graph(t, NULL, &o)) {
        rlx_value odd = rlx_param(o.g, "odd", RLX_DTYPE_f32, RLX_EMPTY);
        rlx_value loss = rlx_mul(o.g, o.loss, odd);
        expect_status(t, rlx_train_graph(o.g, loss, NULL, &err), RLX_ERROR_SHAPE);
        expect_contains(t, err.message, "\"odd\" has no axis");
        expect_eq(t, op_of(&o, "layer.w"), RLX_OP_param);
    }
    close_graph(&o);
}

/* A leaf of the graph has a name that a state of the optimiser wants. */
TEST(train_refusal, taken_names)
{
    struct world o;
    rlx_error err;

    if (open_graph(t, NULL, &o)) {
        rlx_input(o.g, "adamw.m:layer.w", RLX_DTYPE_f32, RLX_LIST(1));
        expect_status(t, rlx_train_graph(o.g, o.loss, NULL, &err), RLX_ERROR_GRAPH);
        expect_contains(t, err.message, "adamw.m:layer.w");
    }
    close_graph(&o);
}

/* ---- which params ---- */

static void chosen(struct test *t, const rlx_train_desc *with, const char *states)
{
    static const char *const names[] = {"layer.w", "layer.b", "table", "idle"};
    rlx_train_desc desc = *with;
    struct world o;
    char got[64] = "";
    rlx_error err = {0};

    desc.size = sizeof desc;
    if (open_graph(t, NULL, &o) && expect_ok(t, rlx_train_graph(o.g, o.loss, &desc, &err)))
        for (size_t i = 0; i < 4; i++)
            if (op_of(&o, names[i]) == RLX_OP_state)
                strcat(strcat(got, names[i]), " ");
    expect_str(t, got, states);
    close_graph(&o);
}

TEST(train, chooses_params_by_name)
{
    const char *const layer[] = {"layer.*"}, *const b[] = {"*.b"}, *const w[] = {"layer.w"};

    chosen(t, &(rlx_train_desc){.rate = 0}, "layer.w layer.b ");
    chosen(t, &(rlx_train_desc){.train = layer, .train_count = 1}, "layer.w layer.b ");
    chosen(t, &(rlx_train_desc){.train = b, .train_count = 1}, "layer.b ");
    chosen(t, &(rlx_train_desc){.keep = b, .keep_count = 1}, "layer.w ");
    chosen(t, &(rlx_train_desc){.train = layer, .train_count = 1, .keep = w, .keep_count = 1},
           "layer.b ");
}

TEST(train, stars_stand_for_anything)
{
    static const struct {
        const char *pattern, *name;
        bool matches;
    } rows[] = {{"", "", true},          {"*", "", true},
                {"*", "abc", true},      {"abc", "abc", true},
                {"ab", "abc", false},    {"abc", "ab", false},
                {"a*c", "abbc", true},   {"a*c", "abcb", false},
                {"*b*", "abc", true},    {"a*b*c", "axbybc", true},
                {"a*b*c", "acb", false}, {"**a", "bba", true},
                {"*ab", "aab", true}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_note(t, "%s %s", rows[i].pattern, rows[i].name);
        expect_eq(t, train_matches(rows[i].pattern, rlx_cstr(rows[i].name)), rows[i].matches);
    }
    test_note(t, "%s", "");
}

/* ---- no memory ---- */

static rlx_status train_once(struct test *t, const rlx_allocator *mem, void *user)
{
    rlx_train_desc desc = {RLX_SIZED(rlx_train_desc), .clip_norm = 1, .accumulate = 2,
                           .loss_scale = 8};
    struct world o;
    rlx_error err = {.status = RLX_ERROR_MEMORY};
    rlx_status s = RLX_ERROR_MEMORY;

    (void)user;
    if (open_graph(t, mem, &o))
        s = rlx_train_graph(o.g, o.loss, &desc, &err);
    close_graph(&o);
    return s;
}

TEST(train, survives_without_memory)
{
    expect_survives_no_memory(t, train_once, NULL);
}
