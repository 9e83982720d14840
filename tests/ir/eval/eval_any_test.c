/* eval_any_test.c: whatever node the shape rules accept can be evaluated: random ops on random
 * operands with random attributes, most of which are refused, run on values that hurt. */
#include "eval_run.h"

struct dice {
    uint64_t state;
};

static uint64_t roll(struct dice *d, uint64_t sides)
{
    d->state = d->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (d->state >> 33) % sides;
}

static double nasty(struct dice *d)
{
    static const double v[] = {0,        -0.0,      1,    -1,    2,   3,    0.5,   -2.5,  7,   NAN,
                               INFINITY, -INFINITY, 1e30, -1e30, 127, -128, 1e-40, 65504, 9e18};

    return v[roll(d, sizeof v / sizeof v[0])];
}

static rlx_list random_list(struct dice *d, int64_t from, uint64_t sides)
{
    rlx_list l = {.count = (int32_t)roll(d, 4)};

    for (int32_t i = 0; i < l.count; i++)
        l.at[i] = from + (int64_t)roll(d, sides);
    return l;
}

/* Chains and floats outlive ir_add's look at them, which copies. */
struct blobs {
    rlx_chain_step step[4];
    float number[4];
};

static struct ir_blob random_chain(struct dice *d, struct blobs *b)
{
    static const rlx_op ops[] = {RLX_OP_add,  RLX_OP_max, RLX_OP_pow,   RLX_OP_shr,
                                 RLX_OP_lt,   RLX_OP_neg, RLX_OP_gelu,  RLX_OP_not,
                                 RLX_OP_cast, RLX_OP_div, RLX_OP_where, RLX_OP_resize_nearest_2x};
    size_t len = 1 + roll(d, 4);

    for (size_t i = 0; i < len; i++) {
        b->step[i] = (rlx_chain_step){.op = (int32_t)ops[roll(d, 12)],
                                      .to = (int32_t)roll(d, RLX_DTYPE_count)};
        for (int k = 0; k < 3; k++)
            b->step[i].in[k] = i && roll(d, 2) ? (int32_t)roll(d, i) : -1 - (int32_t)roll(d, 2);
    }
    return (struct ir_blob){b->step, len};
}

static void random_attr(struct dice *d, const struct attr_info *a, void *at, struct blobs *b)
{
    static const float reals[] = {0, 1, 0.5f, 1e-5f, -1, 0.9f};

    switch (a->kind) {
    case ATTR_BOOL: *(bool *)at = roll(d, 2); break;
    case ATTR_I64: *(int64_t *)at = (int64_t)roll(d, 9) - 3; break;
    case ATTR_U64: *(uint64_t *)at = roll(d, 1000); break;
    case ATTR_F32: *(float *)at = reals[roll(d, 6)]; break;
    case ATTR_F64: *(double *)at = nasty(d); break;
    case ATTR_ENUM: *(int32_t *)at = (int32_t)roll(d, 5); break;
    case ATTR_DTYPE: *(rlx_dtype *)at = (rlx_dtype)roll(d, RLX_DTYPE_count); break;
    case ATTR_DIM: *(ir_dim *)at = (ir_dim)roll(d, 4); break;
    case ATTR_AXES:
    case ATTR_INTS: *(rlx_list *)at = random_list(d, -1, 4); break;
    case ATTR_DIMS: *(rlx_list *)at = random_list(d, 0, 4); break;
    case ATTR_FLOATS:
        for (int i = 0; i < 4; i++)
            b->number[i] = reals[roll(d, 6)];
        *(struct ir_blob *)at = (struct ir_blob){b->number, roll(d, 4)};
        break;
    case ATTR_CHAIN: *(struct ir_blob *)at = random_chain(d, b); break;
    case ATTR_UNARY: *(rlx_op *)at = (rlx_op)(RLX_OP_relu + roll(d, 30)); break;
    default: break;
    }
}

/* Most attributes stay at their defaults, so that some nodes are accepted. */
static void random_attrs(struct dice *d, rlx_op op, union ir_attr *attr, struct blobs *b)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(op)->family, &count);

    attr_defaults(op, attr);
    for (size_t i = 0; i < count; i++)
        if (a[i].default_text[0] == 'R' || roll(d, 3) == 0)
            random_attr(d, &a[i], (char *)attr + a[i].offset, b);
}

static bool has_sub_graph(rlx_op op)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(op)->family, &count);

    for (size_t i = 0; i < count; i++)
        if (a[i].kind == ATTR_GRAPH)
            return true;
    return op == RLX_OP_custom;
}

static void add_leaves(struct dice *d, struct ir_graph *g, struct diag *diag)
{
    static const rlx_dtype common[] = {RLX_DTYPE_f32, RLX_DTYPE_f32, RLX_DTYPE_i32};
    rlx_dtype theme = common[roll(d, 3)];

    for (int i = 0; i < 10; i++) {
        char name[16];
        ir_value v;
        rlx_op op = roll(d, 4) ? RLX_OP_input : RLX_OP_state;
        struct ir_new_node n = {.op = op};
        attr_defaults(op, &n.attr);
        snprintf(name, sizeof name, "v%d", i);
        n.attr.leaf.name = (struct ir_blob){name, strlen(name)};
        n.attr.leaf.dtype = roll(d, 3) ? theme : (rlx_dtype)roll(d, RLX_DTYPE_count);
        n.attr.leaf.shape = random_list(d, roll(d, 4) != 0, 3);
        if (roll(d, 8) == 0)
            n.attr.leaf.shape = RLX_LIST(1, 2, 2, 2);
        ir_add(g, &n, &v, diag);
    }
}

/* Nodes that are refused are simply not there. */
static void add_nodes(struct dice *d, struct ir_graph *g, struct diag *diag, uint64_t *accepted)
{
    for (int i = 0; i < 60; i++) {
        rlx_op op = (rlx_op)(1 + roll(d, RLX_OP_count - 1));
        struct ir_new_node n = {.op = op};
        struct blobs blobs;
        ir_value in[9], v;
        int32_t most = op_info(op)->inputs_max < 0 ? 3 : op_info(op)->inputs_max;

        if (!eval_fn_of(op_info(op)->family) || has_sub_graph(op) || op == RLX_OP_const || most > 8)
            continue;
        n.in = in;
        n.in_count = op_info(op)->inputs_min;
        n.in_count += (int32_t)roll(d, (uint64_t)(most - n.in_count) + 1);
        for (int32_t k = 0; k < n.in_count; k++)
            in[k] = (ir_value)roll(d, g->node.len);
        if (n.in_count == 2 && roll(d, 3) == 0)
            in[1] = in[0];
        if (op == RLX_OP_cache_append) /* or it is hardly ever accepted */
            in[1] = in[0] = (ir_value)roll(d, 10);
        random_attrs(d, op, &n.attr, &blobs);
        if (ir_add(g, &n, &v, diag) == RLX_OK)
            accepted[op]++;
    }
}

static bool run_one(struct test *t, uint64_t seed, uint64_t *accepted)
{
    struct dice d = {seed * UINT64_C(0x9e3779b97f4a7c15)};
    struct run r = {0};
    struct ir_graph *g;

    diag_init(&r.diag, "eval");
    arena_init(&r.arena, mem_default());
    if (ir_module_create(mem_default(), &r.mod, &r.diag) != RLX_OK ||
        ir_graph_add(r.mod, STR("main"), &g, &r.diag) != RLX_OK)
        return fail(t, "%s", r.diag.first.message);
    add_leaves(&d, g, &r.diag);
    add_nodes(&d, g, &r.diag, accepted);
    struct eval_tensor *value = arena_array(&r.arena, struct eval_tensor, g->node.len);
    struct eval_tensor **leaf = arena_array(&r.arena, struct eval_tensor *, g->node.len);
    for (size_t v = 0; v < g->node.len; v++) {
        if (op_info(g->node.at[v].op)->family != FAMILY_leaf)
            continue;
        eval_tensor_new(&r.arena, &g->node.at[v].type, &value[v], &r.diag);
        for (int64_t k = 0; k < value[v].count; k++)
            eval_set(&value[v], k, nasty(&d));
        eval_round(&value[v]);
        leaf[v] = &value[v];
    }
    diag_init(&r.diag, "eval");
    rlx_status s = run_graph(&r, leaf);
    bool ok = expect(t, s == RLX_OK || s == RLX_ERROR_INDEX);
    if (!ok)
        fail(t, "seed %llu: %s", (unsigned long long)seed, r.diag.first.message);
    run_close(&r);
    return ok;
}

TEST(eval, whatever_is_accepted_runs)
{
    uint64_t accepted[RLX_OP_count] = {0};
    uint64_t runs = test_full() ? 20000 : 2000;

    for (uint64_t seed = 0; seed < runs; seed++)
        if (!run_one(t, seed, accepted))
            break;
    /* the dice must be good enough to get past the rules */
    expect(t, accepted[RLX_OP_add] > 10 && accepted[RLX_OP_gather] > 10);
    expect(t, accepted[RLX_OP_scatter_nd] > 0 && accepted[RLX_OP_elementwise_region] > 0);
    expect(t, accepted[RLX_OP_cache_append] > 0 && accepted[RLX_OP_topk] > 0);
}
