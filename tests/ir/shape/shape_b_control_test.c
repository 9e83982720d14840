/* shape_b_control_test.c: sub-graphs, registered ops and functions: signatures and refusals. */
#include "ir/custom.h"
#include "shape_given.h"

/* A sub-graph under construction: build's functions add to it until sub_end. */
struct sub {
    struct ir_graph *outer;
};

static struct sub sub_begin(struct build *b, const char *name)
{
    struct sub s = {b->g};
    struct diag d;

    diag_init(&d, "build");
    if (ir_graph_add(b->mod, rlx_cstr(name), &b->g, &d) != RLX_OK)
        fail(b->t, "no sub-graph: %s", d.first.message);
    return s;
}

static void sub_output(struct build *b, ir_value v)
{
    struct diag d;

    diag_init(&d, "build");
    if (ir_add_output(b->g, v, &d) != RLX_OK)
        fail(b->t, "no output: %s", d.first.message);
}

static int32_t sub_end(struct build *b, struct sub s)
{
    int32_t id = b->g->id;

    b->g = s.outer;
    return id;
}

/* Inputs of these types; outputs the first of them, `outputs` times. */
static int32_t sub_of(struct build *b, size_t outputs, const char *const *types, size_t count)
{
    struct sub s = sub_begin(b, "sub");
    ir_value first = RLX_NO_VALUE;

    for (size_t i = 0; i < count; i++) {
        ir_value v = given(b, types[i]);
        if (i == 0)
            first = v;
    }
    for (size_t i = 0; i < outputs; i++)
        sub_output(b, first);
    return sub_end(b, s);
}
#define SUB(b, outputs, ...)                                   \
    sub_of((b), (outputs), (const char *const[]){__VA_ARGS__}, \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* Inputs of these types; outputs those of these numbers. */
static int32_t sub_picking(struct build *b, const char *const *types, size_t count, const int *pick,
                           size_t picks)
{
    struct sub s = sub_begin(b, "sub");
    ir_value v[8];

    for (size_t i = 0; i < count; i++)
        v[i] = given(b, types[i]);
    for (size_t i = 0; i < picks; i++)
        sub_output(b, v[pick[i]]);
    return sub_end(b, s);
}

TEST(shape_control, if_)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_if);
    ir_value p = given(&b, "bool[]"), x = given(&b, "f32[n,4]"), y = given(&b, "i32[3]");
    const char *const types[] = {"f32[n,4]", "i32[3]"};
    base.if_.then_graph = sub_picking(&b, types, 2, (const int[]){0, 1}, 2);
    base.if_.else_graph = sub_picking(&b, types, 2, (const int[]){0, 1}, 2);
    int32_t swapped = sub_picking(&b, types, 2, (const int[]){1, 0}, 2);
    int32_t one = SUB(&b, 1, "f32[n,4]", "i32[3]"), short_ = SUB(&b, 2, "f32[n,4]");
    int32_t other = SUB(&b, 2, "f32[n,5]", "i32[3]"), retyped = SUB(&b, 2, "f16[n,4]", "i32[3]");
    int32_t mute = SUB(&b, 0, "f32[n,4]", "i32[3]");

    gives(&b, if, &base, "f32[n,4]", p, x, y);
    accepts(&b, if, base, attr.if_.result = 1, "i32[3]", p, x, y);
    gives(&b, if, &base, "f32[n,4]", given(&b, "f32[1,1]"), x, y);
    accepts(&b, if, base, attr.if_.else_graph = base.if_.then_graph, "f32[n,4]", p, x, y);
    refuses(&b, if, base, attr.if_.result = 2, ATTRIBUTE, "result is 2, there are 2", p, x, y);
    refuses(&b, if, base, attr.if_.result = -1, ATTRIBUTE, "result is -1", p, x, y);
    refuses(&b, if, base, attr.if_.else_graph = one, GRAPH, "else_graph has 1 outputs, must have 2",
            p, x, y);
    refuses(&b, if, base, attr.if_.else_graph = swapped, DTYPE, "output 0 of else_graph", p, x, y);
    refuses(&b, if, base, attr.if_.else_graph = short_, GRAPH, "else_graph has 1 inputs", p, x, y);
    refuses(&b, if, base, attr.if_.then_graph = other, SHAPE,
            "input 0 of then_graph is f32[n,5], must be f32[n,4]", p, x, y);
    refuses(&b, if, base, attr.if_.then_graph = retyped, DTYPE, "f16[n,4]", p, x, y);
    refuses(&b, if, base, attr.if_.then_graph = mute, GRAPH, "then_graph has no output", p, x, y);
    refuses(&b, if, base, attr.if_.then_graph = -1, GRAPH, "then_graph", p, x, y);
    refuses(&b, if, base, attr.if_.then_graph = 0, GRAPH, "then_graph", p, x, y);
    refuses(&b, if, base, attr.if_.else_graph = 1000, GRAPH, "else_graph", p, x, y);
    fails(&b, if, &base, GRAPH, "then_graph has 2 inputs, must have 1", p, x);
    fails(&b, if, &base, DTYPE, "f32[n,4]", p, y, x);
    fails(&b, if, &base, SHAPE, "predicate must have one element, not bool[2]",
          given(&b, "bool[2]"), x, y);
    fails(&b, if, &base, SHAPE, "predicate", given(&b, "bool[1,0]"), x, y);
    fails(&b, if, &base, DTYPE, "c64", given(&b, "c64[]"), x, y);
    fails(&b, if, &base, SHAPE, "f32[s,4]", p, given(&b, "f32[s,4]"), y); /* another symbol */
    build_close(&b);
}

TEST(shape_control, while_)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_while);
    ir_value x = given(&b, "i32[]"), y = given(&b, "f32[n]");
    const char *const types[] = {"i32[]", "f32[n]"};
    base.while_.cond_graph = SUB(&b, 1, "i32[]", "f32[n]");
    base.while_.body_graph = sub_picking(&b, types, 2, (const int[]){0, 1}, 2);
    int32_t swapped = sub_picking(&b, types, 2, (const int[]){1, 0}, 2);
    int32_t complex = SUB(&b, 1, "c64[]"), same = SUB(&b, 1, "c64[]"),
            two = SUB(&b, 2, "i32[]", "f32[n]");
    union ir_attr wave = base;
    wave.while_.cond_graph = complex;
    wave.while_.body_graph = same;

    gives(&b, while, &base, "i32[]", x, y);
    accepts(&b, while, base, attr.while_.result = 1, "f32[n]", x, y);
    accepts(&b, while, base, attr.while_.max_iterations = 0, "i32[]", x, y);
    refuses(&b, while, base, attr.while_.max_iterations = -1, ATTRIBUTE, "max_iterations is -1", x,
            y);
    refuses(&b, while, base, attr.while_.result = 2, ATTRIBUTE, "result is 2", x, y);
    refuses(&b, while, base, attr.while_.cond_graph = two, GRAPH, "cond_graph has 2 outputs", x, y);
    refuses(&b, while, base, attr.while_.body_graph = base.while_.cond_graph, GRAPH,
            "body_graph has 1 outputs, must have 2", x, y);
    refuses(&b, while, base, attr.while_.body_graph = swapped, DTYPE, "output 0 of body_graph", x,
            y);
    fails(&b, while, &base, GRAPH, "cond_graph has 2 inputs, must have 1", x);
    fails(&b, while, &wave, DTYPE, "cond_graph yields c64[]", given(&b, "c64[]"));
    build_close(&b);
}

TEST(shape_control, scan)
{
    struct build b;
    struct ir_type type = {0};
    rlx_error err;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_scan), kept;
    base.scan.body = SUB(&b, 1, "f32[4]", "f32[2]", "i32[7]");
    base.scan.length = 10;
    base.scan.num_bcast = 1;
    base.scan.num_xs = 1;
    kept = base;
    kept.scan.save_trajectory = true;
    ir_value c0 = given(&b, "f32[4]"), bc = given(&b, "f32[2]"), xs = given(&b, "i32[10,7]");

    gives(&b, scan, &base, "f32[4]", c0, bc, xs);
    gives(&b, scan, &kept, "f32[10,4]", c0, bc, xs);
    accepts(&b, scan, kept, attr.scan.num_checkpoints = 3, "f32[3,4]", c0, bc, xs);
    accepts(&b, scan, kept, attr.scan.num_checkpoints = 10, "f32[10,4]", c0, bc, xs);
    accepts(&b, scan, base, attr.scan.num_checkpoints = 3, "f32[4]", c0, bc, xs);
    accepts(&b, scan, kept, attr.scan.length = 0, "f32[0,4]", c0, bc, given(&b, "i32[0,7]"));
    refuses(&b, scan, kept, attr.scan.num_checkpoints = 11, ATTRIBUTE,
            "num_checkpoints 11 is above length 10", c0, bc, xs);
    refuses(&b, scan, kept, attr.scan.num_checkpoints = -1, ATTRIBUTE, "num_checkpoints is -1", c0,
            bc, xs);
    refuses(&b, scan, base, attr.scan.num_bcast = -1, ATTRIBUTE, "num_bcast is -1", c0, bc, xs);
    refuses(&b, scan, base, attr.scan.num_xs = -1, ATTRIBUTE, "num_xs is -1", c0, bc, xs);
    refuses(&b, scan, base, attr.scan.num_xs = 2, GRAPH, "1 bcasts and 2 xs, got 3 inputs", c0, bc,
            xs);
    refuses(&b, scan, base, attr.scan.length = 9, SHAPE, "xs and length differ: 10 and 9", c0, bc,
            xs);
    refuses(&b, scan, base, attr.scan.length = -1, ATTRIBUTE, "length", c0, bc, xs);
    refuses(&b, scan, base, attr.scan.length = RLX_DIM_UNKNOWN, ATTRIBUTE, "length", c0, bc, xs);
    refuses(&b, scan, base, attr.scan.body = SUB(&b, 2, "f32[4]", "f32[2]", "i32[7]"), GRAPH,
            "body has 2 outputs, must have 1", c0, bc, xs);
    refuses(&b, scan, base, attr.scan.body = SUB(&b, 1, "f32[4]", "f32[2]"), GRAPH,
            "body has 2 inputs, must have 3", c0, bc, xs);
    refuses(&b, scan, base, attr.scan.body = SUB(&b, 1, "f32[4]", "f32[2]", "i32[10,7]"), SHAPE,
            "input 2 of body", c0, bc, xs);
    refuses(&b, scan, base, attr.scan.body = SUB(&b, 1, "f32[5]", "f32[2]", "i32[7]"), SHAPE,
            "input 0 of body", c0, bc, xs);
    fails(&b, scan, &base, SHAPE, "rank", c0, bc, given(&b, "i32[]"));

    /* the body must hand on what it was handed */
    const char *const types[] = {"f32[4]", "f32[2]", "i32[7]"};
    refuses(&b, scan, base, attr.scan.body = sub_picking(&b, types, 3, (const int[]){1}, 1), SHAPE,
            "output 0 of body is f32[2], must be f32[4]", c0, bc, xs);

    /* a ninth axis */
    union ir_attr deep = defaults(RLX_OP_scan);
    deep.scan.body = SUB(&b, 1, "f32[1,1,1,1,1,1,1,1]");
    deep.scan.length = 2;
    gives(&b, scan, &deep, "f32[1,1,1,1,1,1,1,1]", given(&b, "f32[1,1,1,1,1,1,1,1]"));
    deep.scan.save_trajectory = true;
    fails(&b, scan, &deep, LIMIT, "rank 9", given(&b, "f32[1,1,1,1,1,1,1,1]"));

    /* a length that is a symbol */
    kept.scan.length = symbol(&b, "s");
    kept.scan.num_checkpoints = 3;
    gives(&b, scan, &kept, "f32[3,4]", c0, bc, given(&b, "i32[s,7]"));
    kept.scan.num_checkpoints = 0;
    gives(&b, scan, &kept, "f32[s,4]", c0, bc, given(&b, "i32[s,7]"));
    expect_ok(t, bind_symbols(&b, "s", 3, NULL, 0, &type, NULL));
    expect_eq(t, type.dim[0], 3);
    expect_status(t, bind_symbols(&b, "s", 2, NULL, 0, NULL, &err), RLX_ERROR_ATTRIBUTE);
    build_close(&b);
}

TEST(shape_control, scan_backward)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_scan_backward), kept;
    const char *const vjp[] = {"f32[4]", "f32[2]", "f32[3]", "f32[4]"};
    base.scan_backward.body = SUB(&b, 1, "f32[4]", "f32[2]", "f32[3]");
    base.scan_backward.body_vjp = sub_picking(&b, vjp, 4, (const int[]){3, 1, 2}, 3);
    base.scan_backward.length = 10;
    base.scan_backward.num_xs = 2;
    kept = base;
    kept.scan_backward.save_trajectory = true;
    ir_value c0 = given(&b, "f32[4]"), tr = given(&b, "f32[10,4]"), few = given(&b, "f32[5,4]"),
             x1 = given(&b, "f32[10,2]"), x2 = given(&b, "f32[10,3]");

    gives(&b, scan_backward, &base, "f32[4]", c0, tr, c0, x1, x2);
    gives(&b, scan_backward, &kept, "f32[4]", c0, tr, tr, x1, x2);
    gives(&b, scan_backward_xs, &base, "f32[10,2]", c0, tr, c0, x1, x2);
    accepts(&b, scan_backward_xs, base, attr.scan_backward.xs_idx = 1, "f32[10,3]", c0, tr, c0, x1,
            x2);
    accepts(&b, scan_backward, base, attr.scan_backward.num_checkpoints = 5, "f32[4]", c0, few, c0,
            x1, x2);
    accepts(&b, scan_backward, kept, attr.scan_backward.num_checkpoints = 5, "f32[4]", c0, few, few,
            x1, x2);
    refuses(&b, scan_backward_xs, base, attr.scan_backward.xs_idx = 2, ATTRIBUTE,
            "xs_idx is 2, there are 2 xs", c0, tr, c0, x1, x2);
    refuses(&b, scan_backward_xs, base, attr.scan_backward.xs_idx = -1, ATTRIBUTE, "xs_idx is -1",
            c0, tr, c0, x1, x2);
    refuses(&b, scan_backward, base, attr.scan_backward.num_checkpoints = 11, ATTRIBUTE,
            "num_checkpoints", c0, tr, c0, x1, x2);
    refuses(&b, scan_backward, base, attr.scan_backward.body_vjp = base.scan_backward.body, GRAPH,
            "body_vjp has 3 inputs, must have 4", c0, tr, c0, x1, x2);
    refuses(&b, scan_backward, base,
            attr.scan_backward.body_vjp = sub_picking(&b, vjp, 4, (const int[]){3, 2, 1}, 3), SHAPE,
            "output 1 of body_vjp", c0, tr, c0, x1, x2);
    refuses(&b, scan_backward, base,
            attr.scan_backward.body_vjp = sub_picking(&b, vjp, 4, (const int[]){3}, 1), GRAPH,
            "body_vjp has 1 outputs", c0, tr, c0, x1, x2);
    refuses(&b, scan_backward, base,
            attr.scan_backward.body = SUB(&b, 1, "f32[4]", "f32[3]", "f32[3]"), SHAPE,
            "input 1 of body", c0, tr, c0, x1, x2);
    fails(&b, scan_backward, &base, GRAPH, "2 xs, got 4 inputs", c0, tr, c0, x1);
    fails(&b, scan_backward, &base, SHAPE, "trajectory must be f32[10,4]", c0, few, c0, x1, x2);
    fails(&b, scan_backward, &kept, SHAPE, "upstream must be f32[10,4]", c0, tr, c0, x1, x2);
    fails(&b, scan_backward, &base, SHAPE, "upstream", c0, tr, tr, x1, x2);
    fails(&b, scan_backward, &base, DTYPE, "f16", c0, given(&b, "f16[10,4]"), c0, x1, x2);
    fails(&b, scan_backward, &base, SHAPE, "xs and length differ: 9 and 10", c0, tr, c0, x1,
          given(&b, "f32[9,3]"));
    build_close(&b);
}

/* An `if` in the graph being built, both of whose branches are `id`. */
static ir_value nest(struct build *b, int32_t id, rlx_status want, const char *part)
{
    union ir_attr a = defaults(RLX_OP_if);
    ir_value x = given(b, "f32[]");

    a.if_.then_graph = a.if_.else_graph = id;
    if (want == RLX_OK)
        return gives(b, if, &a, "f32[]", x, x);
    check_fails(b, __FILE__, __LINE__, RLX_OP_if, &a, want, part,
                (const ir_value[]){x, x, RLX_NO_VALUE});
    return RLX_NO_VALUE;
}

/* A sub-graph with an `if` on each of these, one after another; what the last gives is its output.
 */
static int32_t level_over(struct build *b, const int32_t *below, size_t count)
{
    struct sub s = sub_begin(b, "level");
    ir_value v = RLX_NO_VALUE;

    ir_value x = given(b, "f32[]");
    for (size_t i = 0; i < count; i++) {
        union ir_attr a = defaults(RLX_OP_if);
        a.if_.then_graph = a.if_.else_graph = below[i];
        v = gives(b, if, &a, "f32[]", x, x);
    }
    if (v != RLX_NO_VALUE)
        sub_output(b, v);
    return sub_end(b, s);
}

/* Both branches of every level are the level below: a walk without memory would never end. */
TEST(shape_control, nesting_is_bounded)
{
    struct build b;
    require(t, build_open(t, &b));
    int32_t id[66];

    id[1] = SUB(&b, 1, "f32[]");
    for (int level = 2; level <= 65; level++)
        id[level] = level_over(&b, &id[level - 1], 1);
    nest(&b, id[64], RLX_OK, "");
    nest(&b, id[65], RLX_ERROR_LIMIT, "deeper than 64");

    /* found again further down, where it reaches too deep */
    int32_t both = level_over(&b, (const int32_t[]){id[60], id[63]}, 2);
    nest(&b, both, RLX_OK, "");
    int32_t side = level_over(&b, &id[60], 1);
    for (int i = 0; i < 3; i++)
        side = level_over(&b, &side, 1);
    nest(&b, side, RLX_OK, "");
    both = level_over(&b, (const int32_t[]){id[60], side}, 2);
    nest(&b, both, RLX_ERROR_LIMIT, "deeper than 64");
    build_close(&b);
}

TEST(shape_control, circles_are_refused)
{
    struct build b;
    struct diag d;
    require(t, build_open(t, &b));

    /* q names p, which may then not name q, nor itself */
    int32_t p = SUB(&b, 1, "f32[]");
    struct sub s = sub_begin(&b, "q");
    sub_output(&b, nest(&b, p, RLX_OK, ""));
    int32_t q = sub_end(&b, s);
    struct ir_graph *outer = b.g;
    b.g = b.mod->graph.at[p];
    nest(&b, q, RLX_ERROR_GRAPH, "the graph it is used in");
    nest(&b, p, RLX_ERROR_GRAPH, "then_graph");
    b.g = outer;

    /* a circle somebody wrote into memory: seen from inside and from outside */
    ir_value v = nest(&b, q, RLX_OK, "");
    struct ir_graph *gp = b.mod->graph.at[p], *gq = b.mod->graph.at[q];
    sub_output(&b, v);
    b.g = gp;
    int32_t r = SUB(&b, 1, "f32[]");
    ir_value inner = nest(&b, r, RLX_OK, "");
    if (inner != RLX_NO_VALUE)
        ir_node(gp, inner)->attr.if_.then_graph = q;
    b.g = outer;
    diag_init(&d, "verify");
    expect(t, ir_verify(b.mod, &d) != RLX_OK);
    expect(t, gq->node.len > 0);
    build_close(&b);
}

TEST(shape_control, sub_graphs_are_closed)
{
    struct build b;
    require(t, build_open(t, &b));
    int32_t id = SUB(&b, 1, "f32[]");
    struct ir_graph *g = b.mod->graph.at[id];

    /* ir_add refuses a param there; one that gets in otherwise is refused where it is used */
    g->node.at[0].op = RLX_OP_param;
    nest(&b, id, RLX_ERROR_GRAPH, "holds a param");
    g->node.at[0].op = RLX_OP_state;
    nest(&b, id, RLX_ERROR_GRAPH, "holds a state");
    g->node.at[0].op = RLX_OP_input;
    nest(&b, id, RLX_OK, "");
    build_close(&b);
}

/* ---- registered ops ------------------------------------------------------------------------ */

/* Doubles the last axis; refuses rank 0; with one attribute byte, misbehaves in that way. */
static rlx_status infer_double(void *user, const rlx_tensor *in, int32_t in_count,
                               const void *attrs, size_t attrs_size, rlx_tensor *out, char *message)
{
    const char way = attrs_size ? *(const char *)attrs : 0;

    (void)user;
    (void)in_count;
    if (in[0].rank == 0 || in[0].data) {
        snprintf(message, 256, "needs an axis");
        return RLX_ERROR_SHAPE;
    }
    *out = in[0];
    out->dim[out->rank - 1] *= 2;
    if (way == 'd')
        out->dtype = (rlx_dtype)77;
    else if (way == 'r')
        out->rank = 9;
    else if (way == 'n')
        out->rank = -1;
    else if (way == 's')
        out->dim[0] = -5;
    else if (way == 'l')
        out->dim[0] = INT64_MAX;
    else if (way == 'x')
        return (rlx_status)1000;
    else if (way == 'm')
        memset(message, 'm', 256); /* not even terminated */
    return way == 'm' ? RLX_ERROR_UNSUPPORTED : RLX_OK;
}

static union ir_attr custom_attr(const char *name, const char *bytes)
{
    union ir_attr a = defaults(RLX_OP_custom);

    a.custom.name = (struct ir_blob){name, strlen(name)};
    a.custom.attrs = (struct ir_blob){bytes, strlen(bytes)};
    return a;
}

TEST(shape_control, custom)
{
    static const rlx_custom_op ops[] = {
        {RLX_SIZED(rlx_custom_op), .name = "mine.double", .inputs = 1, .infer = infer_double},
        {RLX_SIZED(rlx_custom_op), .name = "mine.many", .inputs = 12, .infer = infer_double},
        {RLX_SIZED(rlx_custom_op), .name = "mine.mute", .inputs = 1},
    };
    static const struct ir_customs customs = {.op = ops, .count = 3};
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr twice = custom_attr("mine.double", ""), many = custom_attr("mine.many", ""),
                  mute = custom_attr("mine.mute", ""), bad = custom_attr("mine.dou", "");
    ir_value x = given(&b, "f16[3,4]");

    fails(&b, custom, &twice, GRAPH, "no op \"mine.double\" is registered", x);
    b.mod->customs = &customs;
    gives(&b, custom, &twice, "f16[3,8]", x);
    gives(&b, custom, &many, "f16[3,8]", x, x, x, x, x, x, x, x, x, x, x, x);
    fails(&b, custom, &bad, GRAPH, "no op \"mine.dou\" is registered", x);
    fails(&b, custom, &mute, GRAPH, "no op \"mine.mute\" is registered", x);
    fails(&b, custom, &twice, GRAPH, "\"mine.double\" takes 1 inputs, got 2", x, x);
    fails(&b, custom, &twice, GRAPH, "takes 1 inputs, got 0", NONE);
    fails(&b, custom, &twice, SHAPE, "needs an axis", given(&b, "f16[]"));
    gives(&b, custom, &twice, "f16[3,?]", given(&b, "f16[3,n]"));
    gives(&b, custom, &twice, "f16[n,8]", given(&b, "f16[n,4]"));
    gives(&b, custom, &twice, "f16[m,n*m,?]", given(&b, "f16[m,n*m,?]"));

    static const struct {
        const char *way;
        rlx_status status;
        const char *part;
    } rows[] = {
        {"d", RLX_ERROR_GRAPH, "no element type (77)"},
        {"r", RLX_ERROR_LIMIT, "rank 9"},
        {"n", RLX_ERROR_GRAPH, "rank -1"},
        {"s", RLX_ERROR_GRAPH, "the size -5"},
        {"l", RLX_ERROR_LIMIT, "too large"},
        {"x", RLX_ERROR_ARGUMENT, "\"mine.double\": its infer function returned 1000"},
        {"m", RLX_ERROR_UNSUPPORTED, "mmmm"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        union ir_attr a = custom_attr("mine.double", rows[i].way);
        test_note(t, "way %s", rows[i].way);
        check_fails(&b, __FILE__, __LINE__, RLX_OP_custom, &a, rows[i].status, rows[i].part,
                    (const ir_value[]){x, RLX_NO_VALUE});
    }
    expect(t, custom_find(NULL, rlx_cstr("mine.double")) == NULL);
    expect(t, custom_find(&customs, rlx_cstr("mine.mute")) == &ops[2]);
    expect(t, custom_find(&customs, rlx_cstr("")) == NULL);
    build_close(&b);
}

/* ---- custom_fn ----------------------------------------------------------------------------- */

static ir_value named(struct build *b, const char *name, const char *text)
{
    struct ir_type type = given_type(b, text);
    struct ir_new_node n = {.op = RLX_OP_input, .attr = defaults(RLX_OP_input)};
    struct diag d;
    ir_value v = RLX_NO_VALUE;

    diag_init(&d, "build");
    n.attr.leaf.name = (struct ir_blob){name, strlen(name)};
    n.attr.leaf.dtype = type.dtype;
    n.attr.leaf.shape.count = type.rank;
    memcpy(n.attr.leaf.shape.at, type.dim, sizeof type.dim);
    if (ir_add(b->g, &n, &v, &d) != RLX_OK)
        fail(b->t, "leaf refused: %s", d.first.message);
    return v;
}

/* A derivative of (f32[2], f32[3]) -> f32[2] with these further inputs; yields a, b or what has the
 * output's type. */
static int32_t derivative(struct build *b, const char *const *name, const char *const *type,
                          size_t count, bool jvp)
{
    struct sub s = sub_begin(b, "derivative");

    /* the named ones may stand anywhere: some first, some last */
    if (count)
        named(b, name[0], type[0]);
    ir_value x = named(b, "x", "f32[2]"), y = named(b, "y", "f32[3]");
    for (size_t i = 1; i < count; i++)
        named(b, name[i], type[i]);
    sub_output(b, x);
    if (!jvp)
        sub_output(b, y);
    return sub_end(b, s);
}
#define NAMES (const char *const[])

TEST(shape_control, custom_fn)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_custom_fn);
    ir_value x = given(&b, "f32[2]"), y = given(&b, "f32[3]");
    base.custom_fn.fwd_graph = SUB(&b, 1, "f32[2]", "f32[3]");
    int32_t vjp =
        derivative(&b, NAMES{"d_output", "primal_output"}, NAMES{"f32[2]", "f32[2]"}, 2, false);
    int32_t jvp =
        derivative(&b, NAMES{"tangent_1", "tangent_0"}, NAMES{"f32[3]", "f32[2]"}, 2, true);
    int32_t jvp3 = derivative(&b, NAMES{"tangent_1", "tangent_0", "primal_output"},
                              NAMES{"f32[3]", "f32[2]", "f32[2]"}, 3, true);

    gives(&b, custom_fn, &base, "f32[2]", x, y);
    accepts(&b, custom_fn, base, attr.custom_fn.vjp_graph = vjp, "f32[2]", x, y);
    accepts(&b, custom_fn, base, attr.custom_fn.jvp_graph = jvp, "f32[2]", x, y);
    accepts(&b, custom_fn, base, attr.custom_fn.jvp_graph = jvp3, "f32[2]", x, y);
    refuses(&b, custom_fn, base, attr.custom_fn.fwd_graph = -1, GRAPH, "fwd_graph", x, y);
    refuses(&b, custom_fn, base, attr.custom_fn.fwd_graph = SUB(&b, 2, "f32[2]", "f32[3]"), GRAPH,
            "fwd_graph has 2 outputs", x, y);
    fails(&b, custom_fn, &base, GRAPH, "fwd_graph has 2 inputs, must have 1", x);
    fails(&b, custom_fn, &base, SHAPE, "input 0 of fwd_graph", y, x);

#define REFUSES(graph, is_jvp, status, part, names, types, count)                                \
    refuses(&b, custom_fn, base,                                                                 \
            attr.custom_fn.graph = derivative(&b, names, types, count, is_jvp), status, part, x, \
            y)
#define TYPES NAMES
    REFUSES(vjp_graph, false, GRAPH, "no input named d_output", (NAMES{"primal_output"}),
            (TYPES{"f32[2]"}), 1);
    REFUSES(vjp_graph, false, GRAPH, "no input named primal_output", (NAMES{"d_output"}),
            (TYPES{"f32[2]"}), 1);
    REFUSES(vjp_graph, false, GRAPH, "more than 2 inputs",
            (NAMES{"d_output", "primal_output", "z"}), (TYPES{"f32[2]", "f32[2]", "f32[2]"}), 3);
    REFUSES(vjp_graph, false, SHAPE, "f32[4]", (NAMES{"d_output", "primal_output"}),
            (TYPES{"f32[2]", "f32[4]"}), 2);
    REFUSES(vjp_graph, true, GRAPH, "vjp_graph has 1 outputs, must have 2",
            (NAMES{"d_output", "primal_output"}), (TYPES{"f32[2]", "f32[2]"}), 2);
    REFUSES(jvp_graph, true, GRAPH, "1 inputs named tangent_", (NAMES{"tangent_0"}),
            (TYPES{"f32[2]"}), 1);
    REFUSES(jvp_graph, true, GRAPH, "more than 2 inputs",
            (NAMES{"tangent_0", "tangent_1", "tangent_2"}), (TYPES{"f32[2]", "f32[3]", "f32[3]"}),
            3);
    REFUSES(jvp_graph, true, GRAPH, "more than 2 inputs", (NAMES{"tangent_0", "tangent_01"}),
            (TYPES{"f32[2]", "f32[3]"}), 2);
    REFUSES(jvp_graph, true, DTYPE, "f16[3]", (NAMES{"tangent_0", "tangent_1"}),
            (TYPES{"f32[2]", "f16[3]"}), 2);
    REFUSES(jvp_graph, false, GRAPH, "jvp_graph has 2 outputs, must have 1",
            (NAMES{"tangent_0", "tangent_1"}), (TYPES{"f32[2]", "f32[3]"}), 2);
#undef REFUSES
#undef TYPES
    build_close(&b);
}
