/* along_test.c: every row of cases.def once more: how its values move along a direction, and how
 * its gradients do, which is what second derivatives are made of. */
#include "along.h"

TEST(along, values_move_as_differences_say)
{
#define GRAD(op, tol, graph) expect(t, moves(t, 10 * tol, 1e-5, graph, false));
#define FLAT(op, graph) expect(t, moves(t, 1e-6, 1e-5, graph, false));
#include "cases.def"
}

/* The steps of mamba2 are rounded to f32, which differences over 1e-5 would show. */
static void gradients_move(struct test *t, rlx_op op, double tol, const char *graph)
{
    bool rounded = op == RLX_OP_mamba2;
    bool found = moves(t, rounded ? 1e-2 : tol, rounded ? 1e-3 : 1e-5, graph, true);

    if (!expect(t, found))
        fail(t, "%s: its gradient has none\n  in: %s", op_info(op)->name, graph);
}

TEST(along, gradients_move_as_differences_say)
{
#define GRAD(op, tol, graph) gradients_move(t, RLX_OP_##op, 10 * tol, graph);
#define FLAT(op, graph) gradients_move(t, RLX_OP_##op, 1e-6, graph);
#include "cases.def"
}
