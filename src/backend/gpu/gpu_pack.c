/* gpu_pack.c: copies of f32 weights in f16 (lower/gpu/gpu_half_weights.c), made on the device a
 * part at a time, as much as a kernel sees at once. */
#include "backend/gpu/gpu_kernels.h"

#define WHOLE 128 /* weights: their bytes begin where a buffer can */

static rlx_status halve(struct gpu_kernels *k, const struct span both[2], uint64_t count,
                        struct diag *d)
{
    const struct kc_binding whole = {.window = k->target.max_binding};
    struct backend *b = k->target.backend;
    uint32_t word = (uint32_t)count;
    struct gpu_launch launch = {.arg = {{0, 0, both[0].bytes}, {1, 0, both[1].bytes}}};
    struct gpu_work work = {.launch = &launch, .launches = 1, .word = &word, .words = 1};
    const struct command one = {
        .kind = COMMAND_DISPATCH, .work = &work, .operand = both, .operand_count = 2};
    struct run_report report;

    TRY(gpu_kernels_find(k, "half:halve", (rlx_str){NULL, 0}, &whole, 2, 1, &launch.kernel, d));
    if (!gpu_fold_grid(gpu_ceil(gpu_ceil(count, 2), GPU_GROUP), k->target.max_groups, launch.grid))
        return diag_fail(d, RLX_ERROR_LIMIT, "%llu weights are too many for a launch",
                         (unsigned long long)count);
    rlx_status s = backend_run(b, &one, 1, NULL, &report, d);
    b->ops->unload(b, &one);
    return s;
}

rlx_status gpu_pack(struct gpu_kernels *k, struct command *c, struct span from, struct diag *d)
{
    const struct gpu_work *w = c->work;
    struct span to = c->operand[w->half_place];
    uint64_t count = from.bytes / 4, most = k->target.max_binding / 4 / WHOLE * WHOLE;

    most = most ? most : WHOLE;
    for (uint64_t at = 0; at < count; at += most) {
        uint64_t n = count - at < most ? count - at : most;
        const struct span both[2] = {{from.buffer, from.offset + 4 * at, 4 * n},
                                     {to.buffer, to.offset + 2 * at, (n + 1) / 2 * 4}};
        TRY(halve(k, both, n, d));
    }
    return RLX_OK;
}
