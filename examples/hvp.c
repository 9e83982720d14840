/* hvp.c: where does a chain of springs come to rest? Only its energy is written down. The forces
 * are the gradient of that, and a step s of Newton's method solves H s = -gradient by conjugate
 * gradients, which take products of the Hessian H with vectors: H itself is never there. */
#define RLX_UNSTABLE
#include "example.h"

#include <math.h>

#include "rlx/autodiff.h"

enum { BALLS = 16, COUNT = 2 * BALLS };

/* Springs of length 1 hold the balls x [BALLS, 2] between two walls, further apart than that, and
 * weight pulls them down: half the sum of squared stretches, and a little of each height. */
static rlx_value energy_of(rlx_graph *g, rlx_value x)
{
    static const float walls[] = {0, 0, 1.2f * (BALLS + 1), 0};
    rlx_value wall = rlx_const(g, RLX_DTYPE_f32, RLX_LIST(2, 2), walls, sizeof walls);
    rlx_value row[] = {rlx_narrow(g, wall, 0, 0, 1), x, rlx_narrow(g, wall, 0, 1, 1)};
    rlx_value all = rlx_concat(g, row, 3, 0);
    rlx_value next = rlx_narrow(g, all, 0, 1, BALLS + 1),
              last = rlx_narrow(g, all, 0, 0, BALLS + 1);
    rlx_value apart = rlx_sub(g, next, last);
    rlx_value length = rlx_sqrt(g, rlx_reduce_sum(g, rlx_mul(g, apart, apart), RLX_LIST(1), false));
    rlx_value stretch = rlx_sub(g, length, rlx_scalar(g, x, 1));
    rlx_value springs = rlx_reduce_sum(g, rlx_mul(g, stretch, stretch), RLX_LIST(0), false);
    rlx_value height = rlx_reduce_sum(g, rlx_narrow(g, x, 1, 1, 1), RLX_LIST(0, 1), false);

    return rlx_add(g, rlx_mul(g, springs, rlx_scalar(g, x, 0.5)),
                   rlx_mul(g, height, rlx_scalar(g, x, 0.05)));
}

static rlx_model *make_model(struct world w)
{
    rlx_value gradient, along;
    rlx_model *model;
    rlx_graph *g;
    rlx_error err;

    check(rlx_graph_create(w.ctx, &g, &err), &err);
    rlx_value x = rlx_input(g, "x", RLX_DTYPE_f32, RLX_LIST(BALLS, 2));
    rlx_value v = rlx_input(g, "v", RLX_DTYPE_f32, RLX_LIST(BALLS, 2));
    rlx_value energy = energy_of(g, x);
    check(rlx_gradient(g, energy, &x, 1, &gradient, &err), &err);
    check(rlx_hvp(g, energy, &x, &v, 1, &along, &err), &err);
    rlx_output(g, gradient);
    rlx_output(g, along);
    check(rlx_model_create(g, &model, &err), &err);
    return model;
}

/* The gradient at x, and the Hessian there times v. */
static void derivatives(rlx_session *s, float *x, float *v, float *gradient, float *along)
{
    const size_t bytes = COUNT * sizeof(float);
    rlx_binding in[] = {{"x", {RLX_DTYPE_f32, 2, {BALLS, 2}, x, bytes}},
                        {"v", {RLX_DTYPE_f32, 2, {BALLS, 2}, v, bytes}}};
    rlx_binding out[] = {{"out0", {RLX_DTYPE_f32, 2, {0}, gradient, bytes}},
                         {"out1", {RLX_DTYPE_f32, 2, {0}, along, bytes}}};
    rlx_error err;

    check(
        rlx_session_run(s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 2, out, 2, NULL, 0}, &err),
        &err);
}

static double dot(const float *a, const float *b)
{
    double sum = 0;

    for (int i = 0; i < COUNT; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* step: about -H^-1 gradient. rest: what is left of -gradient - H step. */
static void solve(rlx_session *s, float *x, const float *gradient, float *step)
{
    float rest[COUNT], v[COUNT], hv[COUNT], again[COUNT];

    for (int i = 0; i < COUNT; i++) {
        step[i] = 0;
        v[i] = rest[i] = -gradient[i];
    }
    double before = dot(rest, rest), end = 1e-10 * before;
    for (int k = 0; k < 2 * COUNT && before > end; k++) {
        derivatives(s, x, v, again, hv);
        double far = before / dot(v, hv);
        for (int i = 0; i < COUNT; i++) {
            step[i] += (float)far * v[i];
            rest[i] -= (float)far * hv[i];
        }
        double now = dot(rest, rest);
        for (int i = 0; i < COUNT; i++)
            v[i] = rest[i] + (float)(now / before) * v[i];
        before = now;
    }
}

int main(void)
{
    struct world w = open_world(NULL);
    rlx_model *model = make_model(w);
    rlx_session *session;
    rlx_error err;
    float x[COUNT], gradient[COUNT], step[COUNT] = {0}, along[COUNT];
    double force = 0;

    check(rlx_session_create(model, w.dev, NULL, &session, &err), &err);
    for (int i = 0; i < BALLS; i++) { /* in a row, level */
        x[2 * i] = 1.2f * (float)(i + 1);
        x[2 * i + 1] = 0;
    }
    for (int round = 0; round < 12; round++) {
        derivatives(session, x, step, gradient, along);
        force = sqrt(dot(gradient, gradient));
        printf("round %d: the forces are %.2e, the middle hangs at %.4f\n", round, force,
               (double)x[BALLS + 1]);
        if (force < 1e-5)
            break;
        solve(session, x, gradient, step);
        for (int i = 0; i < COUNT; i++)
            x[i] += step[i];
    }
    rlx_session_destroy(session);
    rlx_model_destroy(model);
    close_world(w);
    /* No forces are left, the chain hangs, and it is the same from both walls. */
    double middle = (double)x[BALLS + 1], other = (double)x[BALLS - 1];
    return !(force < 1e-5 && middle < -0.5 && fabs(middle - other) < 1e-3);
}
