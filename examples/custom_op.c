/* custom_op.c: an op of your own: its shape rule and its CPU function, used like any other. */
#include <math.h>
#include <string.h>

#include "example.h"
#include "rlx/custom.h"

/* "example.hypot": sqrt(a^2 + b^2), element by element, f32 only. */
static rlx_status infer(void *user, const rlx_tensor *in, int32_t count, const void *attrs,
                        size_t attrs_size, rlx_tensor *out, char *message)
{
    (void)user, (void)count, (void)attrs, (void)attrs_size;
    if (in[0].dtype != RLX_DTYPE_f32 || in[1].dtype != RLX_DTYPE_f32) {
        snprintf(message, 256, "takes f32, not %s and %s", rlx_dtype_name(in[0].dtype),
                 rlx_dtype_name(in[1].dtype));
        return RLX_ERROR_DTYPE;
    }
    if (in[0].rank != in[1].rank || memcmp(in[0].dim, in[1].dim, sizeof in[0].dim) != 0) {
        snprintf(message, 256, "takes two tensors of one shape");
        return RLX_ERROR_SHAPE;
    }
    *out = in[0];
    return RLX_OK;
}

static rlx_status compute(void *user, const rlx_tensor *in, int32_t count, const void *attrs,
                          size_t attrs_size, rlx_tensor *out)
{
    const float *a = in[0].data, *b = in[1].data;
    float *y = out->data;

    (void)user, (void)count, (void)attrs, (void)attrs_size;
    for (size_t i = 0; i < out->bytes / sizeof *y; i++)
        y[i] = hypotf(a[i], b[i]);
    return RLX_OK;
}

int main(void)
{
    static const rlx_custom_op op = {RLX_SIZED(rlx_custom_op), .name = "example.hypot", .inputs = 2,
                                     .infer = infer, .cpu = compute};
    static const char text[] = "rlx 1\n"
                               "graph (input %a: f32[3], input %b: f32[3]) {\n"
                               "    %h = custom %a, %b name=\"example.hypot\"\n"
                               "    %y = neg %h\n"
                               "    return %y\n"
                               "}\n";
    struct world world = open_world(
        &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .custom_ops = &op, .custom_op_count = 1});
    rlx_model *model;
    rlx_session *session;
    rlx_error err;
    float a[3] = {3, 5, 8}, b[3] = {4, 12, 15}, y[3];

    check(rlx_model_parse(world.ctx, rlx_cstr(text), &model, &err), &err);
    check(rlx_session_create(model, world.dev, NULL, &session, &err), &err);
    rlx_binding in[] = {{"a", {RLX_DTYPE_f32, 1, {3}, a, sizeof a}},
                        {"b", {RLX_DTYPE_f32, 1, {3}, b, sizeof b}}};
    rlx_binding out = {"y", {RLX_DTYPE_f32, 1, {0}, y, sizeof y}};
    check(rlx_session_run(session,
                          &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 2, &out, 1, NULL, 0}, &err),
          &err);
    printf("y = %g %g %g\n", (double)y[0], (double)y[1], (double)y[2]);
    rlx_session_destroy(session);
    rlx_model_destroy(model);
    close_world(world);
    return !(y[0] == -5 && y[1] == -13 && y[2] == -17);
}
