/* verify_test.c: a good module, damaged by hand in every way: each damage must be heard of, all of
 * them at once, and none may be followed into memory that is not there. */
#include <string.h>

#include "ir/text/text_check.h"

#define GOOD                                                                           \
    "rlx 1 graph @main (input %a: f32[2,3], param %w: f32[3,4], state %s: f32[8,4],\n" \
    "                   input %p: i32[], state %s2: f32[8,4], input %n: f32[n,3]) {\n" \
    "    %c = const f32[4] {1 2 3 4}\n"                                                \
    "    %m = matmul %a, %w\n"                                                         \
    "    %y = add %m, %c\n"                                                            \
    "    %r = reduce_sum %y axes=[1]\n"                                                \
    "    %k = cache_append %s, %y, %p\n"                                               \
    "    %k2 = cache_append %s2, %y, %p\n"                                             \
    "    %q = gt %p, %p\n"                                                             \
    "    %i = if %q, %y then_graph=@yes else_graph=@no\n"                              \
    "    %e = exp %n\n"                                                                \
    "    return %y, %k, %i, %r, %e\n"                                                  \
    "}\n"                                                                              \
    "graph @yes (input %x: f32[2,4]) { %z = neg %x return %z }\n"                      \
    "graph @no (input %x: f32[2,4]) { %u = const f32[] {2} %z = mul %x, %u return %z }\n"

struct heard {
    struct ir_module *mod;
    struct ir_graph *g, *yes, *no;
    size_t count;
    rlx_error error[32];
};

static void hear(void *user, const rlx_error *e)
{
    struct heard *h = user;

    if (h->count < 32)
        h->error[h->count] = *e;
    h->count++;
}

static bool open_good(struct test *t, struct heard *h)
{
    *h = (struct heard){.mod = parse(t, GOOD)};
    if (!h->mod)
        return false;
    h->g = h->mod->graph.at[0];
    h->yes = h->mod->graph.at[1];
    h->no = h->mod->graph.at[2];
    return true;
}

static struct ir_node *node_of(struct ir_graph *g, const char *label)
{
    IR_EACH(n, g) {
        if (str_eq(n->label, rlx_cstr(label)))
            return n;
    }
    return &g->node.at[0];
}

static rlx_status verify(struct heard *h)
{
    struct diag d;

    h->count = 0;
    diag_init(&d, "verify");
    d.each = hear;
    d.user = h;
    return ir_verify(h->mod, &d);
}

/* One violation was heard, of this status, with these words, about the node of that label. */
static void expect_heard(struct test *t, const struct heard *h, rlx_status status, const char *part,
                         const char *label)
{
    for (size_t i = 0; i < h->count && i < 32; i++) {
        const rlx_error *e = &h->error[i];
        if (e->status == status && strstr(e->message, part) && strcmp(e->label, label) == 0) {
            expect(t, e->node >= 0 || label[0] == 0);
            return;
        }
    }
    fail(t, "%s \"%s\" about \"%s\" was not heard among %zu; first: %s", rlx_status_name(status),
         part, label, h->count, h->count ? h->error[0].message : "");
}

/* Exactly one, and it is what ir_verify returns. */
static void expect_only(struct test *t, struct heard *h, rlx_status status, const char *part,
                        const char *label)
{
    expect_status(t, verify(h), status);
    expect_eq_u64(t, h->count, 1);
    expect_heard(t, h, status, part, label);
}

#define damaged(t, h, damage, status, part, label)                \
    do {                                                          \
        struct heard h_;                                          \
        struct heard *h = &h_;                                    \
        if (!open_good((t), h))                                   \
            break;                                                \
        test_note((t), "%s", #damage);                            \
        damage;                                                   \
        expect_only((t), h, RLX_ERROR_##status, (part), (label)); \
        ir_module_destroy(h->mod);                                \
        test_note((t), "%s", "");                                 \
    } while (0)

TEST(verify, a_good_module_is_good)
{
    struct heard h;

    require(t, open_good(t, &h));
    size_t checks = h.mod->check.len;
    expect_ok(t, verify(&h));
    expect_eq_u64(t, h.count, 0);
    expect_ok(t, verify(&h));
    expect_eq_u64(t, h.mod->check.len, checks); /* none is noted a second time */
    ir_module_destroy(h.mod);
}

TEST(verify, a_module_needs_a_graph)
{
    struct heard h = {0};
    struct diag d;

    diag_init(&d, "test");
    require_ok(t, ir_module_create(mem_default(), &h.mod, &d));
    expect_only(t, &h, RLX_ERROR_GRAPH, "at least one graph", "");
    ir_module_destroy(h.mod);
}

TEST(verify, references)
{
    damaged(t, h, node_of(h->g, "r")->in[0] = 10, GRAPH, "input 0 is node 10", "r");
    damaged(t, h, node_of(h->g, "m")->in[1] = 7, GRAPH, "does not come before node 7", "m");
    damaged(t, h, node_of(h->g, "e")->in[0] = -1, GRAPH, "input 0 is node -1", "e");
    damaged(t, h, node_of(h->g, "e")->in[0] = INT32_MAX, GRAPH, "is node 2147483647", "e");
    damaged(t, h, node_of(h->g, "e")->in[0] = INT32_MIN, GRAPH, "is node -2147483648", "e");
    damaged(t, h, node_of(h->g, "k")->in[0] = 99, GRAPH, "input 0 is node 99", "k");
    damaged(t, h, node_of(h->g, "e")->in_count = -1, GRAPH, "has -1 inputs", "e");
    damaged(t, h, node_of(h->g, "e")->in = NULL, GRAPH, "no list of them", "e");
}

TEST(verify, arity_and_ops)
{
    damaged(t, h, node_of(h->g, "r")->in_count = 0, GRAPH, "takes 1 inputs, got 0", "r");
    damaged(t, h, node_of(h->g, "i")->in_count = 1, GRAPH, "", "i");
    damaged(t, h, node_of(h->g, "k")->in_count = 2, GRAPH, "takes 3 inputs, got 2", "k");
    damaged(t, h, node_of(h->g, "r")->op = RLX_OP_none, GRAPH, "no op number 0", "r");
    damaged(t, h, node_of(h->g, "r")->op = (rlx_op)31337, GRAPH, "no op number 31337", "r");
    damaged(t, h, node_of(h->g, "r")->op = (rlx_op)-1, GRAPH, "no op number -1", "r");
    damaged(t, h, node_of(h->g, "m")->op = RLX_OP_add, SHAPE, "do not broadcast", "m");
}

TEST(verify, stored_types)
{
    damaged(t, h, node_of(h->g, "r")->type.dim[0] = 3, INTERNAL,
            "the type stored is f32[3], but the inferred one is f32[2]", "r");
    damaged(t, h, node_of(h->g, "r")->type.dtype = RLX_DTYPE_f16, INTERNAL, "f16[2]", "r");
    damaged(t, h, node_of(h->g, "r")->type.rank = 2, INTERNAL, "the type stored", "r");
    damaged(t, h, node_of(h->g, "e")->type.dim[0] = 5, INTERNAL, "one is f32[n,3]", "e");
    damaged(t, h, node_of(h->g, "r")->type.rank = 9, INTERNAL, "has rank 9", "r");
    damaged(t, h, node_of(h->g, "r")->type.rank = -1, INTERNAL, "has rank -1", "r");
    damaged(t, h, node_of(h->g, "r")->type.dtype = RLX_DTYPE_count, INTERNAL, "number 14", "r");
    /* what reads it is not asked for its rule */
    damaged(t, h, node_of(h->g, "m")->type.rank = 1000000, INTERNAL, "has rank 1000000", "m");
    damaged(t, h, node_of(h->yes, "z")->type.rank = 77, INTERNAL, "has rank 77", "z");
}

TEST(verify, a_changed_type_is_heard_of_at_its_readers_too)
{
    struct heard h;

    require(t, open_good(t, &h));
    node_of(h.g, "a")->type.dim[0] = 5;
    expect_status(t, verify(&h), RLX_ERROR_INTERNAL);
    expect_heard(t, &h, RLX_ERROR_INTERNAL, "stored is f32[5,3]", "a");
    expect_heard(t, &h, RLX_ERROR_INTERNAL, "stored is f32[2,4]", "m");
    expect_eq_u64(t, h.count, 2);
    ir_module_destroy(h.mod);
}

TEST(verify, attributes)
{
    damaged(t, h, node_of(h->g, "r")->attr.reduce.axes.at[0] = -1, ATTRIBUTE, "normal form", "r");
    damaged(t, h, node_of(h->g, "r")->attr.reduce.axes.at[0] = 2, ATTRIBUTE, "axes is 2", "r");
    damaged(t, h, node_of(h->g, "r")->attr.reduce.axes.count = 9, LIMIT, "9 entries", "r");
    damaged(t, h, node_of(h->g, "r")->attr.reduce.axes.count = -1, LIMIT, "-1 entries", "r");
    damaged(t, h, node_of(h->g, "k")->attr.cache_append.axis = -2, ATTRIBUTE, "normal form", "k");
    damaged(t, h, node_of(h->g, "a")->attr.leaf.dtype = (rlx_dtype)99, ATTRIBUTE, "(99)", "a");
    damaged(t, h, node_of(h->g, "m")->attr.matmul.transpose_a = true, SHAPE, "inner", "m");
    damaged(t, h, node_of(h->g, "i")->attr.if_.then_graph = 7, GRAPH, "is not a sub-graph", "i");
    damaged(t, h, node_of(h->g, "i")->attr.if_.else_graph = 0, GRAPH, "is not a sub-graph", "i");
    damaged(t, h, node_of(h->g, "i")->attr.if_.result = 1, ATTRIBUTE, "result is 1", "i");
}

TEST(verify, constants)
{
    damaged(t, h, node_of(h->g, "c")->attr.const_.data.len = 15, SIZE, "16 bytes, but 15", "c");
    damaged(t, h, node_of(h->g, "c")->attr.const_.data.len = 17, SIZE, "16 bytes, but 17", "c");
    damaged(t, h, node_of(h->g, "c")->attr.const_.data.ptr = NULL, ARGUMENT, "data is NULL", "c");
    damaged(t, h, node_of(h->g, "c")->attr.const_.shape.at[0] = 5, SIZE, "20 bytes, but 16", "c");
}

TEST(verify, leaf_names)
{
    static char a[] = "a", none[] = "";

    damaged(t, h, node_of(h->g, "w")->attr.leaf.name.ptr = a, GRAPH, "\"a\" is used twice", "w");
    damaged(t, h, node_of(h->g, "p")->attr.leaf.name.ptr = a, GRAPH, "\"a\" is used twice", "p");
    damaged(t, h, (node_of(h->g, "p")->attr.leaf.name = (struct ir_blob){"new", 3}), INTERNAL,
            "do not list the name \"new\"", "p");
    damaged(t, h, (node_of(h->g, "p")->attr.leaf.name = (struct ir_blob){none, 0}), GRAPH,
            "name is empty", "p");
    damaged(t, h, node_of(h->g, "p")->attr.leaf.name.ptr = NULL, ARGUMENT, "name is NULL", "p");
}

TEST(verify, a_name_may_be_wrong_in_two_ways)
{
    struct heard h;

    require(t, open_good(t, &h));
    node_of(h.g, "p")->attr.leaf.name.ptr = "\xff";
    expect_status(t, verify(&h), RLX_ERROR_GRAPH);
    expect_heard(t, &h, RLX_ERROR_GRAPH, "not UTF-8", "p");
    expect_heard(t, &h, RLX_ERROR_INTERNAL, "do not list the name", "p");
    expect_eq_u64(t, h.count, 2);
    ir_module_destroy(h.mod);
}

TEST(verify, names_of_nodes_that_are_gone_are_not_followed)
{
    struct heard h;

    require(t, open_good(t, &h));
    h.g->output.len = 1;
    h.g->output.at[0] = 0;
    h.g->node.len = 1; /* the table of leaves still lists the others */
    expect_ok(t, verify(&h));
    node_of(h.g, "a")->attr.leaf.name.ptr = "p";
    expect_status(t, verify(&h), RLX_ERROR_INTERNAL);
    ir_module_destroy(h.mod);
}

TEST(verify, states)
{
    damaged(t, h, node_of(h->g, "k2")->in[0] = node_of(h->g, "k")->in[0], GRAPH,
            "both write the state \"s\"", "k2");
    damaged(t, h, node_of(h->g, "s")->op = RLX_OP_param, GRAPH, "must be a state leaf", "k");
}

/* An input of a sub-graph that became a param or a state: said there, and where it is used. */
TEST(verify, sub_graphs_hold_no_params_or_states)
{
    for (int state = 0; state < 2; state++) {
        struct heard h;
        require(t, open_good(t, &h));
        node_of(h.no, "x")->op = state ? RLX_OP_state : RLX_OP_param;
        expect_status(t, verify(&h), RLX_ERROR_GRAPH);
        expect_heard(t, &h, RLX_ERROR_GRAPH, "inputs and constants only", "x");
        expect_heard(t, &h, RLX_ERROR_GRAPH, state ? "holds a state" : "holds a param", "i");
        expect_eq_u64(t, h.count, 2);
        ir_module_destroy(h.mod);
    }
}

TEST(verify, outputs)
{
    damaged(t, h, h->g->output.len = 0, GRAPH, "graph \"main\" has no output", "");
    damaged(t, h, h->g->output.at[1] = 1000, GRAPH, "output 1 of graph \"main\" is not a node", "");
    damaged(t, h, h->g->output.at[4] = -1, GRAPH, "is not a node (-1)", "");
    /* seen at the sub-graph, and not followed from the node that names it */
    damaged(t, h, h->yes->output.at[0] = 1000000, GRAPH, "output 0 of graph \"yes\"", "");
    damaged(t, h, h->no->output.at[0] = INT32_MIN, GRAPH, "output 0 of graph \"no\"", "");
}

TEST(verify, a_sub_graph_without_outputs_is_missed_twice)
{
    struct heard h;

    require(t, open_good(t, &h));
    h.yes->output.len = 0;
    expect_status(t, verify(&h), RLX_ERROR_GRAPH);
    expect_heard(t, &h, RLX_ERROR_GRAPH, "then_graph has no output", "i");
    expect_heard(t, &h, RLX_ERROR_GRAPH, "graph \"yes\" has no output", "");
    expect_eq_u64(t, h.count, 2);
    ir_module_destroy(h.mod);
}

/* @yes names @no, which names @yes: the entry's node and both others say so, and all return. */
TEST(verify, circles_of_graphs_end)
{
    struct heard h;

    require(t, open_good(t, &h));
    struct ir_node call = *node_of(h.g, "i");
    node_of(h.yes, "z")->op = node_of(h.no, "z")->op = call.op;
    node_of(h.yes, "z")->attr = node_of(h.no, "z")->attr = call.attr;
    node_of(h.yes, "z")->attr.if_.then_graph = node_of(h.yes, "z")->attr.if_.else_graph = 2;
    node_of(h.no, "z")->attr.if_.then_graph = node_of(h.no, "z")->attr.if_.else_graph = 1;
    expect(t, verify(&h) != RLX_OK);
    expect(t, h.count >= 3);
    ir_module_destroy(h.mod);
}

TEST(verify, all_violations_are_heard)
{
    struct heard h;

    require(t, open_good(t, &h));
    node_of(h.g, "c")->attr.const_.data.len = 12;
    node_of(h.g, "w")->attr.leaf.name.ptr = "a";
    node_of(h.g, "r")->type.dim[0] = 9;
    node_of(h.g, "e")->in[0] = 200;
    node_of(h.g, "k")->attr.cache_append.axis = -2;
    node_of(h.g, "k2")->in[0] = node_of(h.g, "k")->in[0];
    node_of(h.yes, "x")->attr.leaf.dtype = (rlx_dtype)50;
    node_of(h.no, "u")->attr.const_.shape.count = 11;
    h.g->output.at[0] = -5;
    h.g->output.at[3] = 5000;

    expect_status(t, verify(&h), RLX_ERROR_GRAPH); /* w is the first of them */
    expect_heard(t, &h, RLX_ERROR_SIZE, "16 bytes, but 12", "c");
    expect_heard(t, &h, RLX_ERROR_GRAPH, "used twice", "w");
    expect_heard(t, &h, RLX_ERROR_INTERNAL, "f32[9]", "r");
    expect_heard(t, &h, RLX_ERROR_GRAPH, "input 0 is node 200", "e");
    expect_heard(t, &h, RLX_ERROR_ATTRIBUTE, "normal form", "k");
    expect_heard(t, &h, RLX_ERROR_GRAPH, "both write", "k2");
    expect_heard(t, &h, RLX_ERROR_ATTRIBUTE, "dtype is not an element type", "x");
    expect_heard(t, &h, RLX_ERROR_LIMIT, "11 entries", "u");
    expect_heard(t, &h, RLX_ERROR_GRAPH, "output 0 of graph \"main\"", "");
    expect_heard(t, &h, RLX_ERROR_GRAPH, "output 3 of graph \"main\"", "");
    expect_eq_u64(t, h.count, 10);
    ir_module_destroy(h.mod);
}

/* Any one word of any node, set to something else: verify may say what it likes, but it returns. */
TEST(verify, random_damage_is_survived)
{
    static const int32_t nasty[] = {-1, 0, 1, 2, 7, 8, 9, 15, 100, 65536, INT32_MAX, INT32_MIN};
    const int rounds = test_full() ? 20000 : 1000;
    uint64_t seed = 12345;

    for (int round = 0; round < rounds; round++) {
        struct heard h;
        if (!open_good(t, &h))
            return;
        for (int k = 0; k < 3; k++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            uint32_t r = (uint32_t)(seed >> 33);
            struct ir_graph *g = h.mod->graph.at[r % 3];
            struct ir_node *n = &g->node.at[(r / 3) % g->node.len];
            int32_t v = nasty[(r >> 12) % (sizeof nasty / sizeof nasty[0])];
            switch ((r >> 20) % 8) {
            case 0: n->op = v < 9 ? RLX_OP_none : (rlx_op)(RLX_OP_count + v % 9); break;
            case 1: n->in_count = n->in_count > v ? v : n->in_count; break;
            case 2:
                if (n->in_count)
                    n->in[0] = v;
                break;
            case 3: n->type.rank = v; break;
            case 4: n->type.dtype = (rlx_dtype)v; break;
            case 5: n->type.dim[r & 7] = v; break;
            case 6: g->output.at[0] = v; break;
            default:
                if (op_info(n->op)->family == FAMILY_if_)
                    n->attr.if_.then_graph = v;
                else if (op_info(n->op)->family == FAMILY_leaf)
                    n->attr.leaf.shape.at[r & 7] = v;
                else if (op_info(n->op)->family == FAMILY_reduce)
                    n->attr.reduce.axes.count = v;
            }
        }
        rlx_status s = verify(&h);
        expect_eq(t, s != RLX_OK, h.count > 0);
        ir_module_destroy(h.mod);
    }
}
