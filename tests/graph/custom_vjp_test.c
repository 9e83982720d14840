/* custom_vjp_test.c: a registered op adds its own gradient with the builders of rlx/graph.h. */
#include "autodiff/autodiff.h"
#include "graph/builder.h"
#include "ir/eval/eval_run.h"
#include "rlx/graph.h"
#include "session/session.h"

static rlx_status like_first(void *user, const rlx_tensor *in, int32_t count, const void *attrs,
                             size_t size, rlx_tensor *out, char *message)
{
    (void)user, (void)count, (void)attrs, (void)size, (void)message;
    *out = in[0];
    return RLX_OK;
}

/* y = a b: da = dy b, db = dy a. The first attribute byte asks for trouble instead. */
static rlx_status product_vjp(void *user, rlx_graph *g, const rlx_value *in, int32_t count,
                              const void *attrs, size_t size, rlx_value y, rlx_value dy,
                              rlx_value *dx)
{
    const char trouble = size ? *(const char *)attrs : 0;
    struct test *t = user;

    expect_eq(t, count, 2);
    expect(t, dx[0] == RLX_NO_VALUE && y != dy);
    if (trouble == 's') /* it fails */
        return RLX_ERROR_NUMERIC;
    if (trouble == 'b') /* a builder does */
        rlx_reshape(g, dy, RLX_LIST(3, 3));
    if (trouble == '?') /* it returns something that is not a status */
        return (rlx_status)1234;
    dx[0] = rlx_mul(g, dy, in[1]);
    dx[1] = rlx_mul(g, dy, in[0]);
    return RLX_OK;
}

static void check(struct test *t, rlx_context *ctx, const char *attrs, rlx_status want)
{
    rlx_graph *g;
    struct diag d;
    ir_value wrt[2], dx[2];

    diag_init(&d, "grad");
    require(t, rlx_graph_create(ctx, &g, NULL) == RLX_OK);
    wrt[0] = rlx_input(g, "a", RLX_DTYPE_f32, RLX_LIST(2));
    wrt[1] = rlx_input(g, "b", RLX_DTYPE_f32, RLX_LIST(2));
    rlx_value dy = rlx_input(g, "d", RLX_DTYPE_f32, RLX_LIST(2));
    rlx_value y = rlx_custom(g, wrt, 2, "product", attrs, strlen(attrs));
    rlx_status s = grad_walk(g->g, 0, y, dy, wrt, 2, dx, &d);
    expect_status(t, s, want);
    if (s == RLX_OK) {
        const struct ir_node *da = ir_node(g->g, dx[0]), *db = ir_node(g->g, dx[1]);
        expect(t, da->op == RLX_OP_mul && da->in[0] == dy && da->in[1] == wrt[1]);
        expect(t, db->op == RLX_OP_mul && db->in[0] == dy && db->in[1] == wrt[0]);
    }
    expect_ok(t, rlx_graph_check(g, NULL)); /* its own builders' state is another */
    rlx_graph_destroy(g);
}

TEST(custom_vjp, adds_nodes_with_builders)
{
    const rlx_custom_op op = {RLX_SIZED(rlx_custom_op), .name = "product",  .inputs = 2,
                              .infer = like_first,      .vjp = product_vjp, .user = t};
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .custom_ops = &op,
                                   .custom_op_count = 1};
    rlx_context *ctx;

    require(t, rlx_context_create(RLX_VERSION, &desc, &ctx, NULL) == RLX_OK);
    check(t, ctx, "", RLX_OK);
    check(t, ctx, "s", RLX_ERROR_NUMERIC);
    check(t, ctx, "b", RLX_ERROR_SHAPE);
    check(t, ctx, "?", RLX_ERROR_ARGUMENT);
    rlx_context_destroy(ctx);
}
