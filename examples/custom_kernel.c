/* custom_kernel.c: an op of your own with a kernel for GPUs, a grid of its own and two results: the
 * mean of each row and its variance, by a group per row. It runs on the CPU and on every GPU. */
#include <math.h>

#include "example.h"
#include "rlx/custom.h"

enum { ROWS = 3, COLUMNS = 1000 };

/* x [r,c] gives the means [r] and the variances [r]. */
static rlx_status infer(void *user, const rlx_tensor *in, int32_t count, const void *attrs,
                        size_t attrs_size, rlx_tensor *out, char *message)
{
    (void)user, (void)count, (void)attrs, (void)attrs_size;
    if (in[0].dtype != RLX_DTYPE_f32 || in[0].rank != 2) {
        snprintf(message, 256, "takes f32 of rank 2, not %s of rank %d",
                 rlx_dtype_name(in[0].dtype), in[0].rank);
        return RLX_ERROR_SHAPE;
    }
    for (int i = 0; i < 2; i++) {
        out[i].dtype = RLX_DTYPE_f32;
        out[i].rank = 1;
        out[i].dim[0] = in[0].dim[0];
    }
    return RLX_OK;
}

static rlx_status compute(void *user, const rlx_tensor *in, int32_t count, const void *attrs,
                          size_t attrs_size, rlx_tensor *out)
{
    const float *x = in[0].data;
    float *mean = out[0].data, *variance = out[1].data;

    (void)user, (void)count, (void)attrs, (void)attrs_size;
    for (int64_t r = 0; r < in[0].dim[0]; r++, x += in[0].dim[1]) {
        double sum = 0, squares = 0, n = (double)in[0].dim[1];
        for (int64_t i = 0; i < in[0].dim[1]; i++)
            sum += (double)x[i];
        for (int64_t i = 0; i < in[0].dim[1]; i++)
            squares += ((double)x[i] - sum / n) * ((double)x[i] - sum / n);
        mean[r] = (float)(sum / n);
        variance[r] = (float)(squares / n);
    }
    return RLX_OK;
}

/* A group per row. */
static rlx_status grid(void *user, const rlx_tensor *in, int32_t count, const void *attrs,
                       size_t attrs_size, const rlx_tensor *out, uint32_t groups[3])
{
    (void)user, (void)count, (void)attrs, (void)attrs_size, (void)out;
    groups[0] = (uint32_t)in[0].dim[0];
    groups[1] = groups[2] = 1;
    return RLX_OK;
}

/* dims: eight sizes of x, of the means and of the variances. */
static const char kernel[] =
    "use \"lib/reduce\"\n"
    "\n"
    "kernel custom(x: in [f32], mean: out [f32], variance: out [f32], count: u32,\n"
    "              dims: [u32; 24]) group(64) {\n"
    "    shared part: [f32; 64]\n"
    "    let n = dims[1]\n"
    "    let base = group.x * n\n"
    "    var sum = 0.0\n"
    "    for i in local.x..n by 64 { sum += x[base + i] }\n"
    "    let middle = group_sum(part, sum) / f32(n)\n"
    "    var squares = 0.0\n"
    "    for i in local.x..n by 64 {\n"
    "        let off = x[base + i] - middle\n"
    "        squares += off * off\n"
    "    }\n"
    "    squares = group_sum(part, squares)\n"
    "    if local.x == 0 {\n"
    "        mean[group.x] = middle\n"
    "        variance[group.x] = squares / f32(n)\n"
    "    }\n"
    "}\n";

/* A node has one result; two nodes have both. */
static const char text[] = "rlx 1\n"
                           "dim n\n"
                           "graph (input %x: f32[n,1000]) {\n"
                           "    %mean = custom %x name=\"example.moments\"\n"
                           "    %variance = custom %x name=\"example.moments\" result=1\n"
                           "    return %mean, %variance\n"
                           "}\n";

/* 0: as it should be. Row r is r plus numbers from -1 to 1, which have a variance of a third. */
static int run_on(rlx_context *ctx, rlx_device *dev, const char *name)
{
    static float x[ROWS][COLUMNS];
    float mean[ROWS], variance[ROWS];
    rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {ROWS, COLUMNS}, x, sizeof x}};
    rlx_binding out[] = {{"mean", {RLX_DTYPE_f32, 1, {0}, mean, sizeof mean}},
                         {"variance", {RLX_DTYPE_f32, 1, {0}, variance, sizeof variance}}};
    rlx_model *model;
    rlx_session *session;
    rlx_error err;
    int bad = 0;

    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < COLUMNS; i++)
            x[r][i] = (float)r + (float)(2 * i - COLUMNS + 1) / COLUMNS;
    check(rlx_model_parse(ctx, rlx_cstr(text), &model, &err), &err);
    check(rlx_session_create(model, dev, NULL, &session, &err), &err);
    check(rlx_session_run(session,
                          &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, out, 2, NULL, 0}, &err),
          &err);
    for (int r = 0; r < ROWS; r++) {
        printf("%s: row %d has a mean of %.4f and a variance of %.4f\n", name, r, (double)mean[r],
               (double)variance[r]);
        bad |= fabsf(mean[r] - (float)r) > 1e-4f || fabsf(variance[r] - 1 / 3.0f) > 1e-4f;
    }
    rlx_session_destroy(session);
    rlx_model_destroy(model);
    return bad;
}

int main(void)
{
    static const rlx_custom_op op = {
        RLX_SIZED(rlx_custom_op), .name = "example.moments", .inputs = 1,  .infer = infer,
        .cpu = compute,           .kernel = kernel,          .outputs = 2, .grid = grid};
    static const char *const devices[] = {"cpu", "vulkan", "webgpu"};
    struct world world = open_world(
        &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .custom_ops = &op, .custom_op_count = 1});
    int bad = 0;

    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        rlx_device *dev;
        rlx_error err;
        if (rlx_device_open(world.ctx, devices[i], &dev, &err) != RLX_OK) {
            printf("%s: %s\n", devices[i], err.message);
            bad |= err.status != RLX_ERROR_NO_DEVICE;
            continue;
        }
        bad |= run_on(world.ctx, dev, devices[i]);
        rlx_device_close(dev);
    }
    close_world(world);
    return bad;
}
