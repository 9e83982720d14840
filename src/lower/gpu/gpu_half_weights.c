/* gpu_half_weights.c: copies of f32 weights in f16 (runtime.md 3.3), where a session asks for them.
 *
 *     matmul x, w  =>  a step that reads x, w and the copy of w, which its kernel takes instead
 *
 * A copy is made on the device whenever its param is set; sums stay in f32. */
#include "base/str.h"
#include "lower/gpu/gpu_device.h"

#define LAYOUT UINT64_C(0x6631362d636f7079) /* of all such copies */
#define WHOLE 128                           /* weights: their bytes begin where a buffer can */

/* The same in every run, and of one size. */
static bool is_weight(const struct select_call *c, ir_value v)
{
    return ir_node(c->graph, v)->op == RLX_OP_param &&
           ir_type_of(c->graph, v)->dtype == RLX_DTYPE_f32 &&
           (!c->symbolic || type_is_static(ir_type_of(c->symbolic, v)));
}

int32_t gpu_half_operand(const struct select_call *c)
{
    const struct ir_node *n = c->node;

    if (!c->options->f16_weights || !c->options->pack_weights)
        return 0;
    for (int32_t i = n->in_count; i > 0; i--)
        if (op_input_role(n->op, i - 1, n->in_count) == ROLE_WEIGHT && is_weight(c, n->in[i - 1]))
            return i;
    return 0;
}

rlx_status gpu_select_half(struct select_call *c, const struct gpu_work *w)
{
    ir_value source = c->node->in[w->half - 1];
    uint64_t count = gpu_count(ir_type_of(c->graph, source));

    const struct packing what = {.source = source, .operand = w->half - 1, .layout = LAYOUT};
    return select_packed(c, &what, (count + 1) / 2 * 4);
}

/* ---- making one ---- */

static rlx_status halve(struct gpu_device *g, const struct span both[2], uint64_t count,
                        struct diag *d)
{
    const struct kc_binding whole = {.window = gpu_device_desc(g)->max_binding};
    struct backend *b = gpu_device_desc(g)->backend;
    uint32_t word = (uint32_t)count;
    struct gpu_launch launch = {.arg = {{0, 0, both[0].bytes}, {1, 0, both[1].bytes}}};
    struct gpu_work work = {.launch = &launch, .launches = 1, .word = &word, .words = 1};
    const struct command one = {
        .kind = COMMAND_DISPATCH, .work = &work, .operand = both, .operand_count = 2};
    struct run_report report;

    TRY(gpu_find_kernel(g, "half:halve", (rlx_str){NULL, 0}, &whole, 2, 1, &launch.kernel, d));
    if (!gpu_fold_grid(gpu_ceil(gpu_ceil(count, 2), GPU_GROUP), gpu_device_max_groups(g),
                       launch.grid))
        return diag_fail(d, RLX_ERROR_LIMIT, "%llu weights are too many for a launch",
                         (unsigned long long)count);
    rlx_status s = backend_run(b, &one, 1, NULL, &report, d);
    b->ops->unload(b, &one);
    return s;
}

rlx_status gpu_pack(struct gpu_device *g, struct command *c, struct span from, struct diag *d)
{
    const struct gpu_work *w = c->work;
    struct span to = c->operand[w->half_place];
    uint64_t count = from.bytes / 4, most = gpu_device_desc(g)->max_binding / 4 / WHOLE * WHOLE;

    most = most ? most : WHOLE;
    for (uint64_t at = 0; at < count; at += most) {
        uint64_t n = count - at < most ? count - at : most;
        const struct span both[2] = {{from.buffer, from.offset + 4 * at, 4 * n},
                                     {to.buffer, to.offset + 2 * at, (n + 1) / 2 * 4}};
        TRY(halve(g, both, n, d));
    }
    return RLX_OK;
}
