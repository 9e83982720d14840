/* mlp.c: a two-layer perceptron for any batch size: one symbolic dim, one program per size. */
#include "example.h"

static rlx_value layer(rlx_graph *g, rlx_value x, const char *w_name, const char *b_name,
                       int64_t in, int64_t out)
{
    rlx_value w = rlx_param(g, w_name, RLX_DTYPE_f32, RLX_LIST(in, out));
    rlx_value b = rlx_param(g, b_name, RLX_DTYPE_f32, RLX_LIST(out));

    return rlx_add(g, rlx_matmul(g, x, w, false, false), b);
}

int main(void)
{
    struct world world = open_world(NULL);
    rlx_graph *g;
    rlx_model *model;
    rlx_session *session;
    rlx_error err;
    float x[3 * 8], y[3 * 4], first[4];

    check(rlx_graph_create(world.ctx, &g, &err), &err);
    rlx_value in = rlx_input(g, "x", RLX_DTYPE_f32, RLX_LIST(rlx_dim_symbol(g, "batch"), 8));
    rlx_value h = rlx_gelu(g, layer(g, in, "w1", "b1", 8, 16));
    rlx_value p = rlx_softmax(g, layer(g, h, "w2", "b2", 16, 4), -1);
    rlx_output(g, p);
    check(rlx_model_create(g, &model, &err), &err);
    set_params(world.ctx, model);
    check(rlx_session_create(model, world.dev, NULL, &session, &err), &err);

    for (size_t i = 0; i < 3 * 8; i++)
        x[i] = pattern(9, i);
    for (int64_t batch = 1; batch <= 3; batch += 2) { /* each size is compiled once and kept */
        rlx_binding input = {"x", {RLX_DTYPE_f32, 2, {batch, 8}, x, (size_t)batch * 8 * sizeof *x}};
        rlx_binding output = {"out0", {RLX_DTYPE_f32, 2, {0}, y, sizeof y}};
        rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &input, 1, &output, 1, NULL, 0};
        check(rlx_session_run(session, &run, &err), &err);
        printf("batch %d, first row: %.4f %.4f %.4f %.4f\n", (int)batch, (double)y[0], (double)y[1],
               (double)y[2], (double)y[3]);
        for (int i = 0; i < 4 && batch == 1; i++)
            first[i] = y[i];
    }
    double sum = 0, difference = 0;
    for (int i = 0; i < 4; i++) {
        sum += (double)y[i];
        difference += (double)(y[i] > first[i] ? y[i] - first[i] : first[i] - y[i]);
    }
    rlx_session_destroy(session);
    rlx_model_destroy(model);
    close_world(world);
    return !(sum > 0.999 && sum < 1.001 && difference < 1e-5);
}
