/* hello_matmul.c: the smallest whole program: y = x w, on the fastest device there is. */
#include <stdio.h>

#include "rlx/graph.h"

int main(void)
{
    rlx_context *ctx = NULL;
    rlx_device *dev = NULL;
    rlx_graph *g = NULL;
    rlx_model *model = NULL;
    rlx_session *session = NULL;
    rlx_error err;
    float x[6] = {1, 2, 3, 4, 5, 6}, w[6] = {1, 0, 0, 1, 1, 1}, y[4];
    int failed = 1;

    if (rlx_context_create(RLX_VERSION, NULL, &ctx, &err) != RLX_OK ||
        rlx_device_open(ctx, "auto", &dev, &err) != RLX_OK ||
        rlx_graph_create(ctx, &g, &err) != RLX_OK)
        goto end;

    rlx_value a = rlx_input(g, "x", RLX_DTYPE_f32, RLX_LIST(2, 3));
    rlx_value b = rlx_param(g, "w", RLX_DTYPE_f32, RLX_LIST(3, 2));
    rlx_value c = rlx_matmul(g, a, b, false, false);
    rlx_label(g, c, "y");
    rlx_output(g, c);
    if (rlx_model_create(g, &model, &err) != RLX_OK)
        goto end;
    g = NULL; /* it is the model's now */

    rlx_tensor weight = {RLX_DTYPE_f32, 2, {3, 2}, w, sizeof w};
    rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {2, 3}, x, sizeof x}};
    rlx_binding out = {"y", {RLX_DTYPE_f32, 2, {0}, y, sizeof y}};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0};
    if (rlx_model_set_param(model, "w", &weight, &err) != RLX_OK ||
        rlx_session_create(model, dev, NULL, &session, &err) != RLX_OK ||
        rlx_session_run(session, &run, &err) != RLX_OK)
        goto end;

    printf("y = [[%g, %g], [%g, %g]]\n", (double)y[0], (double)y[1], (double)y[2], (double)y[3]);
    failed = !(y[0] == 4 && y[1] == 5 && y[2] == 10 && y[3] == 11);
    err.message[0] = 0;
end:
    if (failed)
        fprintf(stderr, "hello_matmul: %s\n", err.message);
    rlx_session_destroy(session);
    rlx_model_destroy(model);
    rlx_graph_destroy(g);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
    return failed;
}
