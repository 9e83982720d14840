/* reuse_stage.c: a program compiled earlier replaces the passes and the planner. Where it
 * lies and whether it fits is in cache/reuse.c. */
#include "compile/compilation.h"
#include "pass/dispatch.h"

/* What is there of a program that was not finished. */
static void drop(struct compilation *k)
{
    compiled_program_destroy(k->out);
    ir_module_destroy(k->mod);
    ir_module_destroy(k->symbolic);
    k->mod = k->symbolic = NULL;
    k->fixed = (struct static_part){0};
}

/* What a cache has may turn out useless as late as this: then the passes are made after all. An
 * artefact that does is damaged, unless it was made for larger buffers than there are here: passes
 * join less where these are small. */
static rlx_status use_saved(struct compilation *k, bool *made)
{
    bool final = k->reuse.from == REUSE_ARTEFACT && k->reuse.must_fit;
    struct ir_module *bound = k->mod;
    struct diag own, *d = k->d;
    rlx_error why = {0};

    diag_init(&own, "compile");
    k->mod = k->reuse.mod;
    k->reuse.mod = NULL;
    k->d = final ? d : &own;
    rlx_status status = ir_adopt_dims(k->mod, bound->dims, k->d);
    if (status == RLX_OK)
        status = dispatch_check(k->mod, k->request->target, k->d);
    if (status == RLX_OK)
        status = compile_optimised(k);
    k->d = d;
    *made = status == RLX_OK;
    if (*made) {
        ir_module_destroy(bound);
        return RLX_OK;
    }
    drop(k);
    k->mod = bound;
    if (final)
        return status;
    diag_report(&own, &why);
    if (status == RLX_ERROR_MEMORY ||
        (k->reuse.from == REUSE_ARTEFACT && status != RLX_ERROR_LIMIT)) {
        return diag_again(d, &why, status);
    }
    reuse_failed(k->request, &own);
    k->reuse = (struct reuse){0};
    return RLX_OK;
}

rlx_status stage_reuse(struct compilation *k, bool *made)
{
    *made = false;
    TRY(reuse_find(k->request, k->mod, &k->scratch, &k->reuse, k->d));
    return k->reuse.mod && !k->reuse.derive ? use_saved(k, made) : RLX_OK;
}

rlx_status stage_compare(struct compilation *k)
{
    return k->reuse.mod ? reuse_compare(k->request, &k->reuse, k->mod, k->d) : RLX_OK;
}
