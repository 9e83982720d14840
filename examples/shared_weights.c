/* shared_weights.c: two sessions of one model on one device: one copy of the weights, and a param
 * set through one of them is seen by both. */
#include "example.h"

static float run_once(rlx_session *s, float value)
{
    float x[4] = {value, value, value, value}, y = 0;
    rlx_binding in = {"x", {RLX_DTYPE_f32, 1, {4}, x, sizeof x}};
    rlx_binding out = {"dot", {RLX_DTYPE_f32, 0, {0}, &y, sizeof y}};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0};
    rlx_error err;

    check(rlx_session_run(s, &run, &err), &err);
    return y;
}

int main(void)
{
    static const char text[] = "rlx 1\n"
                               "graph (input %x: f32[4], param %w: f32[4]) {\n"
                               "    %p = mul %x, %w\n"
                               "    %dot = reduce_sum %p axes=[0]\n"
                               "    return %dot\n"
                               "}\n";
    struct world world = open_world(NULL);
    rlx_model *model;
    rlx_session *a, *b;
    rlx_error err;
    float ones[4] = {1, 1, 1, 1}, twos[4] = {2, 2, 2, 2};
    rlx_tensor w = {RLX_DTYPE_f32, 1, {4}, ones, sizeof ones};

    check(rlx_model_parse(world.ctx, rlx_cstr(text), &model, &err), &err);
    check(rlx_model_set_param(model, "w", &w, &err), &err);
    check(rlx_session_create(model, world.dev, NULL, &a, &err), &err);
    check(rlx_session_create(model, world.dev, NULL, &b, &err), &err);
    rlx_model_destroy(model); /* the sessions keep what they need */

    float before = run_once(b, 1);
    w.data = twos;
    check(rlx_session_set_param(a, "w", &w, &err), &err);
    float after = run_once(b, 1);
    printf("before %g, after a param was set through the other session %g\n", (double)before,
           (double)after);
    rlx_session_destroy(a);
    rlx_session_destroy(b);
    close_world(world);
    return !(before == 4 && after == 8);
}
