/* pipeline.c: the passes there are and the order a compile makes them in. */
#include "pass/pass.h"

#include "base/str.h"
#include "pass/dispatch.h"

extern const struct pass pass_inline_custom_fn, pass_lower_control_flow, pass_simplify, pass_fold,
    pass_cse, pass_dce, pass_fake_quant_propagate, pass_fold_batch_norm, pass_fuse_matmul_bias,
    pass_fuse_conv_bias, pass_fuse_residual_ln, pass_fuse_residual_rms, pass_move_norm_reshape,
    pass_fuse_dual_matmul, pass_fuse_shared_matmul, pass_fuse_swiglu, pass_check_fusion,
    pass_mark_regions, pass_expand, pass_precision, pass_expand_broadcasts, pass_share_scans,
    pass_share_recurrent, pass_recompute;

enum when {
    OPTIONAL, /* not when nothing is to be optimised */
    REQUIRED, /* without it a device may meet ops that it has no kernels for */
    CLEANUP   /* optional; neighbours are made again and again until nothing changes */
};

/* In the order of a compile. A pass may stand here twice. */
static const struct {
    const struct pass *pass;
    enum when when;
} passes[] = {
    {&pass_inline_custom_fn, REQUIRED},
    {&pass_lower_control_flow, REQUIRED},
    {&pass_expand, REQUIRED}, /* so that what blocks and contractions are made of can fuse */
    {&pass_lower_control_flow, REQUIRED}, /* the scans that recurrent layers became */
    {&pass_share_scans, OPTIONAL},
    {&pass_fake_quant_propagate, OPTIONAL},
    {&pass_simplify, CLEANUP},
    {&pass_fold, CLEANUP},
    {&pass_cse, CLEANUP},
    {&pass_dce, CLEANUP},
    {&pass_share_recurrent, OPTIONAL},
    /* Fusions: targeted patterns first, regions last. */
    {&pass_fold_batch_norm, OPTIONAL},
    {&pass_fuse_matmul_bias, OPTIONAL},
    {&pass_fuse_conv_bias, OPTIONAL},
    {&pass_fuse_residual_ln, OPTIONAL},
    {&pass_fuse_residual_rms, OPTIONAL},
    {&pass_move_norm_reshape, OPTIONAL},
    {&pass_fuse_dual_matmul, OPTIONAL},
    {&pass_fuse_shared_matmul, OPTIONAL},
    {&pass_fuse_swiglu, OPTIONAL},
    {&pass_check_fusion, OPTIONAL},
    {&pass_mark_regions, OPTIONAL},
    {&pass_expand, REQUIRED}, /* what fusions made and the device does not have after all */
    {&pass_expand_broadcasts, REQUIRED},
    {&pass_precision, REQUIRED}, /* after the fusions, so that its casts break no pattern */
    {&pass_fold, OPTIONAL},
    {&pass_cse, OPTIONAL},
    {&pass_dce, REQUIRED},
    {&pass_recompute, OPTIONAL}, /* last: equal nodes would be merged again */
};
#define PASS_COUNT (sizeof passes / sizeof passes[0])
#define MAX_ROUNDS 8 /* of a clean-up */

static bool stands_before(size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (passes[k].pass == passes[i].pass)
            return true;
    return false;
}

const struct pass *pass_at(size_t i)
{
    for (size_t k = 0; k < PASS_COUNT; k++)
        if (!stands_before(k) && i-- == 0)
            return passes[k].pass;
    return NULL;
}

const struct pass *pass_find(rlx_str name)
{
    for (size_t i = 0; i < PASS_COUNT; i++)
        if (str_eq(name, rlx_cstr(passes[i].pass->name)))
            return passes[i].pass;
    return NULL;
}

rlx_status pass_one(const struct pass *pass, struct ir_module *m, const struct target *t,
                    const struct pass_options *o, uint64_t *changes, struct diag *d)
{
    static const struct pass_options defaults;
    struct pass_run p = {.target = t, .options = o ? o : &defaults, .diag = d};

    TRY(pass->run(&p, m));
    if (changes)
        *changes += p.changes;
    /* Verifying costs about as much as inferring; a pass that changed nothing broke nothing. */
    if (p.changes || p.options->verify_passes)
        TRY(ir_verify(m, d));
    if (p.options->after)
        p.options->after(p.options->after_user, pass, m, p.changes);
    return RLX_OK;
}

/* passes[from .. to) in turn, up to MAX_ROUNDS times, until a round changes nothing. */
static rlx_status clean_up(size_t from, size_t to, struct ir_module *m, const struct target *t,
                           const struct pass_options *o, struct diag *d)
{
    uint64_t changes = 1;

    for (int round = 0; changes && round < MAX_ROUNDS; round++) {
        changes = 0;
        for (size_t i = from; i < to; i++)
            TRY(pass_one(passes[i].pass, m, t, o, &changes, d));
    }
    return RLX_OK;
}

rlx_status pass_all(struct ir_module *m, const struct target *t, const struct pass_options *o,
                    struct diag *d)
{
    for (size_t i = 0, next; i < PASS_COUNT; i = next) {
        next = i + 1;
        while (passes[i].when == CLEANUP && next < PASS_COUNT && passes[next].when == CLEANUP)
            next++;
        if (o->no_optimize && passes[i].when != REQUIRED)
            continue;
        if (!t && passes[i].pass == &pass_expand)
            continue; /* no device in particular takes every op */
        if (passes[i].when == CLEANUP)
            TRY(clean_up(i, next, m, t, o, d));
        else
            TRY(pass_one(passes[i].pass, m, t, o, NULL, d));
    }
    return t ? dispatch_check(m, t, d) : RLX_OK;
}
