/* passes_stage.c: rewrite, fuse, expand what the device has no kernels for (pass/pipeline.c). */
#include "compile/compilation.h"
#include "compile/fold_eval.h"
#include "compile/reports.h"

static void after_pass(void *user, const struct pass *pass, const struct ir_module *m,
                       uint64_t changes)
{
    struct compilation *k = user;

    k->request->compiled->passes++;
    compile_watch_pass(&k->watch, pass, m, changes);
}

rlx_status stage_passes(struct compilation *k)
{
    const struct compile_request *r = k->request;
    struct pass_options options = k->stage.pass;
    struct fold_eval fold;

    fold_eval_init(&fold, r->mem, r->device->backend);
    options.eval = fold_eval_node;
    options.eval_user = &fold;
    options.after = after_pass;
    options.after_user = k;
    options.recomputed = &k->out->recomputed;
    rlx_status status = pass_all(k->mod, r->target, &options, k->d);
    fold_eval_free(&fold);
    if (status == RLX_ERROR_UNSUPPORTED)
        log_dispatch(r->model->ctx, r->model->mod, r->target, &k->stage.pass);
    TRY(status);
    compile_watch_passed(&k->watch, k->mod);
    return pass_leaves_first(k->mod, k->d);
}
