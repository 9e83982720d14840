/* rule_control_test.c: gradients of branches, loops, scans and functions, against central
 * differences. */
#include "central.h"
#include "ir/custom.h"
#include "ir/formula.h"

/* ---- if ---- */

#define SQUARE_OR_PRODUCT                                                                     \
    "graph @yes (input %a: f64[3], input %b: f64[3], input %i: i32[3]) { %s = mul %a, %a "    \
    "%t = tanh %s return %a, %t } "                                                           \
    "graph @no (input %a: f64[3], input %b: f64[3], input %i: i32[3]) { %c = cast %i to=f64 " \
    "%p = mul %b, %a %q = mul %p, %b %r = add %q, %c return %b, %r } "

TEST(grad, if_takes_the_gradients_of_one_branch)
{
    static const char *const choice[] = {"f64[1] {0}", "f64[1,1] {2}", "bool[] {1}", "i32[] {0}"};
    char graph[1024];

    for (size_t i = 0; i < 4; i++)
        for (int result = 0; result < 2; result++) {
            snprintf(graph, sizeof graph,
                     "(input %%a: f64[3], input %%b: f64[3], input %%idx4: i32[3]) { "
                     "%%p = const %s %%y = if %%p, %%a, %%b, %%idx4 then_graph=@yes "
                     "else_graph=@no result=%d return %%y } %s",
                     choice[i], result, SQUARE_OR_PRODUCT);
            agrees(t, 1e-6, graph);
        }
    /* an operand twice, and one that is the predicate too */
    agrees(t, 1e-6,
           "(input %a: f64[1]) { %y = if %a, %a, %a then_graph=@yes else_graph=@no return %y } "
           "graph @yes (input %a: f64[1], input %b: f64[1]) { %p = mul %a, %b return %p } "
           "graph @no (input %a: f64[1], input %b: f64[1]) { %p = sub %a, %b return %p }");
}

/* What is not finite in the branch that is not taken stays there. */
TEST(grad, if_keeps_branches_apart)
{
    agrees(t, 1e-6,
           "(input %a: f64[2]) { %p = const bool[] {1} %y = if %p, %a then_graph=@yes "
           "else_graph=@no return %y } "
           "graph @yes (input %a: f64[2]) { %s = exp %a return %s } "
           "graph @no (input %a: f64[2]) { %z = sub %a, %a %r = recip %z %q = mul %r, %a return %q "
           "}");
}

/* ---- while ---- */

#define UNTIL(n)                                                                                \
    "graph @more (input %i: i32[], input %a: f64[2], input %b: f64[2]) { %z = const i32[] {" #n \
    "} %y = lt %i, %z return %y } "
#define TURN                                                                                    \
    "graph @turn (input %i: i32[], input %a: f64[2], input %b: f64[2]) { %o = const i32[] {1} " \
    "%j = add %i, %o %s = mul %a, %b %u = tanh %s return %j, %b, %u }"

TEST(grad, while_goes_back_through_its_rounds)
{
    static const char *const more[] = {UNTIL(0) TURN, UNTIL(3) TURN, UNTIL(9) TURN};
    char graph[1024];

    for (size_t i = 0; i < 3; i++)
        for (int most = 0; most < 6; most += 5)
            for (int result = 1; result < 3; result++) {
                snprintf(graph, sizeof graph,
                         "(input %%a: f64[2], input %%b: f64[2]) { %%i = const i32[] {0} "
                         "%%y = while %%i, %%a, %%b cond_graph=@more body_graph=@turn result=%d "
                         "max_iterations=%d return %%y } %s",
                         result, most, more[i]);
                agrees(t, 1e-6, graph);
            }
}

/* The rounds after the last would divide by zero. */
TEST(grad, while_selects_the_rounds_that_took_place)
{
    agrees(t, 1e-6,
           "(input %a: f64[1], input %near: f64[1]) { %i = const f64[1] {2} "
           "%y = while %i, %a, %near cond_graph=@more body_graph=@turn result=1 max_iterations=4 "
           "return %y } "
           "graph @more (input %i: f64[1], input %a: f64[1], input %b: f64[1]) { return %i } "
           "graph @turn (input %i: f64[1], input %a: f64[1], input %b: f64[1]) { "
           "%o = const f64[] {1} %j = sub %i, %o %q = div %a, %i %s = mul %q, %b "
           "return %j, %s, %b }");
}

TEST(grad, while_needs_a_bound)
{
    static const char loop[] = "(input %%a: f64[2], input %%b: f64[2]) { %%i = const i32[] {0} "
                               "%%y = while %%i, %%a, %%b cond_graph=@more body_graph=@turn "
                               "result=1 %s return %%y } %s";
    char graph[1024];

    snprintf(graph, sizeof graph, loop, "", UNTIL(3) TURN);
    refuses(t, RLX_ERROR_NO_RULE, "max_iterations", graph);
    snprintf(graph, sizeof graph, loop, "max_iterations=100000", UNTIL(3) TURN);
    refuses(t, RLX_ERROR_NO_RULE, "100000 rounds", graph);
}

/* ---- scan ---- */

/* c' = tanh(c b + x) + y */
#define STEP                                                                                \
    "graph @step (input %c: f64[2], input %b: f64[], input %x: f64[2], input %n: i32[], "   \
    "input %y: f64[1]) { %p = mul %c, %b %s = add %p, %x %u = tanh %s %m = cast %n to=f64 " \
    "%v = mul %y, %m %w = add %u, %v return %w }"

TEST(grad, scan_goes_back)
{
    static const char *const form[] = {"",
                                       "save_trajectory=true",
                                       "num_checkpoints=2",
                                       "save_trajectory=true num_checkpoints=2",
                                       "save_trajectory=true num_checkpoints=5",
                                       "num_checkpoints=1"};
    char graph[1024];

    for (size_t i = 0; i < sizeof form / sizeof form[0]; i++) {
        snprintf(graph, sizeof graph,
                 "(input %%c: f64[2], input %%b: f64[], input %%x: f64[5,2], input %%idx4: i32[5], "
                 "input %%y: f64[5,1]) { %%r = scan %%c, %%b, %%x, %%idx4, %%y body=@step length=5 "
                 "num_bcast=1 num_xs=3 %s %%z = exp %%r return %%z } %s",
                 form[i], STEP);
        agrees(t, 1e-6, graph);
    }
    agrees(t, 1e-6,
           "(input %skip: f64[2], input %b: f64[], input %skipx: f64[5,2], input %idx4: i32[5], "
           "input %y: f64[5,1]) { %r = scan %skip, %b, %skipx, %idx4, %y body=@step length=5 "
           "num_bcast=1 num_xs=3 return %r } " STEP);
    agrees(t, 1e-6,
           "(input %c: f64[2], input %b: f64[2], input %x: f64[0,2]) { %r = scan %c, %b, %x "
           "body=@s length=0 num_bcast=1 num_xs=1 return %r } "
           "graph @s (input %c: f64[2], input %b: f64[2], input %x: f64[2]) { %p = mul %c, %b "
           "%s = add %p, %x return %s }");
    agrees(t, 1e-6,
           "(input %c: f64[2]) { %r = scan %c body=@s length=3 return %r } "
           "graph @s (input %c: f64[2]) { %s = sin %c return %s }");
    agrees(
        t, 2e-2 /* sub-graphs round */,
        "(input %c: f32[2], input %b: f32[2]) { %r = scan %c, %b body=@s length=3 num_bcast=1 "
        "return %r } graph @s (input %c: f32[2], input %b: f32[2]) { %s = mul %c, %b return %s }");
}

#define PRODUCT                                                                                    \
    "graph @product (input %c: f64[B,4], input %w: f64[4,4]) { %y = matmul %c, %w return %y } "    \
    "graph @product_vjp (input %c: f64[B,4], input %w: f64[4,4], input %primal_output: f64[B,4], " \
    "input %d_output: f64[B,4]) { %dc = matmul %d_output, %w transpose_b=true "                    \
    "%dw = matmul %c, %d_output transpose_a=true return %dc, %dw } "

/* Weights whose gradients are products of few rows, or of many; that are small, or are not. */
TEST(grad, scan_sums_the_gradients_of_weights)
{
    static const char layer[] =
        "(input %c: f64[B,4], input %w: f64[4,4], input %b: f64[4], input %x: f64[5,B,4]) { "
        "%r = scan %c, %w, %b, %x body=@step length=5 num_bcast=2 num_xs=1 FORM return %r } "
        "graph @step (input %c: f64[B,4], input %w: f64[4,4], input %b: f64[4], input %x: "
        "f64[B,4]) { %p = custom_fn %c, %w fwd_graph=@product vjp_graph=@product_vjp "
        "%q = add %p, %b %z = add %q, %x %u = tanh %z return %u } " PRODUCT;
    static const char *const size[] = {"1", "3"}, *const form[] = {"", "save_trajectory=true"};

    for (int i = 0; i < 4; i++) {
        struct text s;
        text_init(&s, mem_default());
        for (const char *at = layer; *at; at++) {
            bool is_size = *at == 'B', is_form = !strncmp(at, "FORM", 4);
            text_addf(&s, "%s", is_size ? size[i % 2] : is_form ? form[i / 2] : "");
            at += is_form ? 3 : 0;
            if (!is_size && !is_form)
                text_addf(&s, "%c", *at);
        }
        agrees(t, 1e-6, s.at);
        text_free(&s);
    }
    agrees(t, 1e-6,
           "(input %c: f64[], input %w: f64[3], input %skip: f64[4]) { %r = scan %c, %w, %skip "
           "body=@step length=4 num_bcast=1 num_xs=1 return %r } "
           "graph @step (input %c: f64[], input %w: f64[3], input %x: f64[]) { "
           "%s = sin %w %p = custom_fn %s fwd_graph=@sum vjp_graph=@sum_vjp %q = mul %p, %c "
           "%z = mul %q, %x return %z } "
           "graph @sum (input %w: f64[3]) { %y = reduce_sum %w axes=[0] return %y } "
           "graph @sum_vjp (input %w: f64[3], input %primal_output: f64[], input %d_output: f64[]) "
           "{ %y = expand %d_output shape=[3] return %y }");
}

/* Graphs in graphs: a scan of scans, and of branches. */
TEST(grad, scan_of_scans)
{
    agrees(t, 1e-6,
           "(input %c: f64[2], input %b: f64[3,2], input %x: f64[4,2]) { %r = scan %c, %b, %x "
           "body=@outer length=4 num_bcast=1 num_xs=1 return %r } "
           "graph @outer (input %c: f64[2], input %b: f64[3,2], input %x: f64[2]) { "
           "%i = scan %c, %b body=@inner length=3 num_xs=1 %s = add %i, %x return %s } "
           "graph @inner (input %c: f64[2], input %b: f64[2]) { %p = mul %c, %b %s = sin %p "
           "return %s }");
    agrees(t, 1e-6,
           "(input %c: f64[2], input %x: f64[4,2], input %idx2: i32[4]) { "
           "%r = scan %c, %x, %idx2 body=@outer length=4 num_xs=2 return %r } "
           "graph @outer (input %c: f64[2], input %x: f64[2], input %p: i32[]) { "
           "%s = if %p, %c, %x then_graph=@yes else_graph=@no return %s } "
           "graph @yes (input %c: f64[2], input %x: f64[2]) { %s = mul %c, %x return %s } "
           "graph @no (input %c: f64[2], input %x: f64[2]) { %s = atan2 %c, %x return %s }");
}

/* The op in the way is named, and nothing is built; out of the way it does not matter. */
/* The end of a graph of something that has no gradient rule. */
#define NO_RULE_FOR(a, b) \
    "%i = const i32[2] {1 0} %s = scatter_elements " a ", %i, " b " reduction=mul return %s }"

TEST(grad, sub_graphs_without_a_rule)
{
    refuses(t, RLX_ERROR_NO_RULE, "scatter_elements",
            "(input %c: f64[2], input %x: f64[3,2]) { %r = scan %c, %x body=@s length=3 num_xs=1 "
            "return %r } graph @s (input %c: f64[2], input %x: f64[2]) { " NO_RULE_FOR("%c", "%x"));
    agrees(t, 1e-6,
           "(input %c: f64[2], input %skip: f64[3,2]) { %r = scan %c, %skip body=@s length=3 "
           "num_xs=1 return %r } graph @s (input %c: f64[2], input %x: f64[2]) { "
           "%i = const i32[2] {1 0} %q = scatter_elements %x, %i, %x reduction=mul "
           "%s = mul %c, %q return %s }");
    refuses(t, RLX_ERROR_NO_RULE, "scatter_elements",
            "(input %a: f64[2]) { %p = const bool[] {1} %y = if %p, %a then_graph=@yes "
            "else_graph=@no return %y } graph @yes (input %a: f64[2]) { return %a } "
            "graph @no (input %a: f64[2]) { " NO_RULE_FOR("%a", "%a"));
    refuses(t, RLX_ERROR_NO_RULE, "scatter_elements",
            "(input %a: f64[2]) { %y = while %a cond_graph=@c body_graph=@b max_iterations=2 "
            "return %y } graph @c (input %a: f64[2]) { return %a } "
            "graph @b (input %a: f64[2]) { " NO_RULE_FOR("%a", "%a"));
    refuses(t, RLX_ERROR_NO_RULE, "scatter_elements",
            "(input %a: f64[2]) { %y = custom_fn %a fwd_graph=@f return %y } "
            "graph @f (input %a: f64[2]) { " NO_RULE_FOR("%a", "%a"));
}

/* ---- functions ---- */

TEST(grad, custom_fn)
{
    agrees(t, 1e-6,
           "(input %a: f64[2], input %b: f64[2]) { %y = custom_fn %a, %b, %a fwd_graph=@f %z = exp "
           "%y return %z } graph @f (input %a: f64[2], input %b: f64[2], input %c: f64[2]) { "
           "%p = mul %a, %b %s = mul %p, %c return %s }");
    agrees(t, 1e-6,
           "(input %a: f64[2], input %b: f64[2]) { %y = custom_fn %a, %b fwd_graph=@f return %y } "
           "graph @f (input %a: f64[2], input %b: f64[2]) { return %b }");
    /* with a derivative of its own, which names its inputs anywhere */
    agrees(t, 1e-6,
           "(input %a: f64[4], input %b: f64[4]) { %y = custom_fn %a, %b fwd_graph=@f "
           "vjp_graph=@g return %y } "
           "graph @f (input %a: f64[4], input %b: f64[4]) { %s = relu_backward %a, %b return %s } "
           "graph @g (input %d_output: f64[4], input %a: f64[4], input %primal_output: f64[4], "
           "input %b: f64[4]) { %z = const f64[4] {0 0 0 0} %s = relu_backward %a, %d_output "
           "return %z, %s }");
}

static rlx_status like_first(void *user, const rlx_tensor *in, int32_t count, const void *attrs,
                             size_t size, rlx_tensor *out, char *message)
{
    (void)user, (void)count, (void)attrs, (void)size, (void)message;
    *out = in[0];
    return RLX_OK;
}

static rlx_status some_vjp(void *user, rlx_graph *g, const rlx_value *in, int32_t count,
                           const void *attrs, size_t size, rlx_value y, rlx_value dy, rlx_value *dx)
{
    (void)user, (void)g, (void)in, (void)count, (void)attrs, (void)size, (void)y, (void)dy,
        (void)dx;
    return RLX_OK;
}

/* In the place of what a context would do: the gradient is 3 dy, or what `owner` says. */
static rlx_status triple(void *owner, const rlx_custom_op *op, struct ir_graph *g,
                         const struct ir_node *n, ir_value y, ir_value dy, ir_value *dx,
                         struct diag *d)
{
    struct formula f = {.g = g, .diag = d, .dtype = RLX_DTYPE_f32};
    ir_value *answer = owner;

    (void)op, (void)n, (void)y;
    dx[0] = *answer ? *answer : formula_2(&f, RLX_OP_mul, dy, formula_number(&f, 3));
    return f.status;
}

static void walk_custom(struct test *t, const struct ir_customs *customs, const char *name,
                        rlx_status want, const char *part, double factor)
{
    char source[256];
    struct run r;
    ir_value wrt[] = {0}, dx[1];

    snprintf(source, sizeof source,
             "rlx 1 graph (input %%x: f32[2], input %%d: f32[2], input %%o: f32[3]) { "
             "%%y = custom %%x name=\"%s\" return %%y }",
             name);
    if (!run_open(t, &r, source, customs))
        return;
    expect_status(t, grad_walk(ir_entry(r.mod), 0, 3, 1, wrt, 1, dx, &r.diag), want);
    if (want != RLX_OK)
        expect_contains(t, r.diag.first.message, part);
    else if (factor == 0)
        expect_eq(t, dx[0], RLX_NO_VALUE);
    else
        expect_eq(t, ir_node(ir_entry(r.mod), dx[0])->op, RLX_OP_mul);
    run_close(&r);
}

TEST(grad, custom_as_registered)
{
    const rlx_custom_op op[] = {
        {RLX_SIZED(rlx_custom_op), .name = "silent", .inputs = 1, .infer = like_first},
        {RLX_SIZED(rlx_custom_op), .name = "flat", .inputs = 1, .infer = like_first,
         .non_differentiable = true},
        {RLX_SIZED(rlx_custom_op), .name = "steep", .inputs = 1, .infer = like_first,
         .vjp = some_vjp},
    };
    ir_value answer = 0;
    const struct ir_customs customs = {.op = op, .count = 3, .vjp = triple, .owner = &answer};

    walk_custom(t, &customs, "silent", RLX_ERROR_NO_RULE, "silent", 0);
    walk_custom(t, &customs, "flat", RLX_OK, "", 0);
    walk_custom(t, &customs, "steep", RLX_OK, "", 3);
    answer = 1000;
    walk_custom(t, &customs, "steep", RLX_ERROR_GRAPH, "gradient 0", 0);
    answer = 2; /* of another shape */
    walk_custom(t, &customs, "steep", RLX_ERROR_SHAPE, "gradient 0", 0);
}
