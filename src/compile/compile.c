/* compile.c: the compiler, in order. Read this first.
 *
 *     bind     symbols get their sizes, those with a bound stay; all is inferred and checked again
 *     reuse    a file may have what the passes and the planner would find
 *     passes   rewrite, fuse, expand what the device has no kernels for
 *     split    what depends on weights alone is computed apart
 *     size     a copy with the bounds in place of the symbols that stayed
 *     select   nodes become steps: kernel, operands, scratch
 *     plan     lifetimes over the steps, an offset for every value
 *     load     memory, constants, addresses into the steps */
#include "compile/compile.h"

#include <string.h>

#include "compile/compilation.h"

rlx_status compile_optimised(struct compilation *k)
{
    TRY(ir_module_copy(k->mod, k->request->mem, &k->out->optimised,
                       k->d)); /* for those who save it */
    TRY(stage_split(k));
    TRY(stage_size(k));
    return stage_program(k); /* select, plan and load */
}

static rlx_status run_stages(struct compilation *k)
{
    bool made;

    TRY(stage_bind(k));
    TRY(stage_reuse(k, &made));
    if (!made) {
        TRY(stage_passes(k));
        TRY(stage_compare(k));
        TRY(compile_optimised(k));
    }
    return reuse_done(k->request, &k->reuse, k->out, k->d);
}

/* Where the compiler itself ran out of what it may have, that is the failure. */
static rlx_status make_within_bound(struct compilation *k)
{
    struct mem_bound *b = k->request->mem_bound;
    struct diag own, *d = k->d;
    rlx_error why = {0};

    diag_init(&own, "compile");
    atomic_store(&b->refused, false);
    k->d = &own;
    rlx_status status = run_stages(k);
    k->d = d;
    if (status == RLX_OK)
        return RLX_OK;
    if (status == RLX_ERROR_MEMORY && atomic_load(&b->refused))
        return diag_fail(d, status, "compiling takes more than %zu bytes of the host's memory, %s",
                         b->most,
                         k->request->desc->memory_limit ? "which memory_limit allows"
                                                        : "out of proportion to the model");
    diag_report(&own, &why);
    return diag_again(d, &why, status);
}

/* ---- options ---- */

/* What the rows of base/options.def leave open: the device's alignment, and what debug builds
 * check. */
static void choose_options(struct compilation *k)
{
    struct stage_options *o = &k->stage;
    uint64_t own = k->request->target->alignment,
             asked = debug_options(k->request->desc)->alignment;

    stage_options_of(k->request->desc, o);
    o->pass.verify_passes |= CHECK_ALWAYS;
    o->plan.check_plan |= CHECK_ALWAYS;
    o->plan.align = asked ? asked : own;
    o->select.slot_align = asked < own ? asked : 0;
}

/* ---- programs ---- */

void compiled_program_destroy(struct compiled_program *p)
{
    const rlx_allocator *mem = p->mem;

    readers_leave(p);
    program_destroy(p->program);
    ir_module_destroy(p->optimised);
    ir_module_destroy(p->fixed.mod);
    mem_free(mem, p->fixed.pack, p->fixed.count * sizeof *p->fixed.pack);
    mem_free(mem, p->fixed.leaf, p->fixed.count * sizeof *p->fixed.leaf);
    p->program = NULL;
    p->optimised = NULL;
    p->fixed = (struct static_program){0};
}

rlx_status compile(const struct compile_request *r, struct compiled_program *out, struct diag *d)
{
    struct compilation k = {.request = r, .out = out, .d = d};

    *out = (struct compiled_program){.mem = r->mem};
    choose_options(&k);
    compile_watch_begin(&k.watch, r->model->ctx, r->device->backend, r->target, &k.stage.pass,
                        &k.stage.select.joint);
    arena_init(&k.scratch, r->mem);
    rlx_status status = make_within_bound(&k);
    if (status == RLX_OK && r->store->plain)
        status = readers_join(r->store, out, d);
    ir_module_destroy(k.mod);
    ir_module_destroy(k.symbolic);
    ir_module_destroy(k.reuse.mod);
    arena_free(&k.scratch);
    compile_watch_end(&k.watch, status == RLX_OK ? out : NULL);
    if (status != RLX_OK)
        compiled_program_destroy(out);
    return status;
}
