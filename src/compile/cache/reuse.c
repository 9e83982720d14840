/* reuse.c: what a compile takes from a file instead of working it out.
 *
 *     the model's artefact     its program for these sizes, options and kernels
 *     the cache folder         the same, for models that came from anywhere
 *
 * A graph that was optimised for other kernels, with other options or by another version of rlx is
 * of no use; one that was planned for other limits is, but has to be planned again. The graphs of
 * an artefact are compared with what the passes make of its model, unless whoever loads it trusts
 * it. */
#include <stdio.h>
#include <string.h>

#include "compile/cache/artefact.h"
#include "compile/stage_options.h"
#include "ir/fingerprint.h"

uint64_t reuse_options_key(const struct compile_request *r)
{
    uint64_t h = program_options_key(r->desc), input = 0;

    IR_EACH(n, ir_entry(r->model->mod)) {
        if (n->op != RLX_OP_input)
            continue;
        if (r->input_buffer(r->user, ir_leaf_name(n)))
            h = fingerprint_u64(h, input);
        input++;
    }
    return h;
}

rlx_status reuse_sizes(const struct compile_request *r, const int64_t *binding,
                       struct arena *scratch, int64_t **out, struct diag *d)
{
    int64_t *size = arena_array(scratch, int64_t, r->symbol_count);

    if (!size)
        return diag_no_memory(d, r->symbol_count * sizeof *size);
    for (size_t i = 0; i < r->symbol_count; i++)
        size[i] = binding[i] == SYMBOL_KEPT ? -2 - r->bound[i] : binding[i];
    *out = size;
    return RLX_OK;
}

/* Why something was not as it could have been, for the log and for rlx_session_compiled. */
static void say_why(const struct compile_request *r, const char *what, const char *why)
{
    snprintf(r->compiled->why, sizeof r->compiled->why, "%.100s: %.*s", what,
             (int)sizeof r->compiled->why - 103, why);
    context_log(r->model->ctx, 2, "%s", r->compiled->why);
}

/* The program of the artefact for these sizes; NULL, and why, if none can be used. */
static const struct saved_program *choose(const struct compile_request *r,
                                          const struct target_note *here, const int64_t *binding,
                                          size_t count)
{
    const struct artefact *a = r->model->artefact;
    const char *why = "the artefact has no program for these sizes";

    for (size_t i = 0; i < a->program_count; i++) {
        const struct saved_program *p = &a->program[i];
        if (!saved_program_has_sizes(p, r->model->mod->dims, binding, count))
            continue;
        if (a->file.library != RLX_VERSION)
            why = "the artefact was written by another version of rlx";
        else if (!target_same_kernels(&a->target, here))
            why = "the artefact was made for another device";
        else if (p->options != reuse_options_key(r))
            why = "the artefact was made with other options";
        else
            return p;
    }
    say_why(r, "compiled again", why);
    return NULL;
}

static rlx_status find_in_artefact(const struct compile_request *r, const struct ir_module *bound,
                                   const int64_t *binding, size_t count, struct arena *scratch,
                                   struct reuse *out, struct diag *d)
{
    const struct artefact *a = r->model->artefact;
    struct plan_saved *plan = arena_new(scratch, struct plan_saved);
    struct target_note here;
    struct reader text;

    if (!plan)
        return diag_no_memory(d, sizeof *plan);
    target_note_of(r->target, &here);
    const struct saved_program *p = choose(r, &here, binding, count);
    if (!p)
        return RLX_OK;
    TRY(artefact_need(&a->file, SECTION_OPTIMISED, (uint32_t)(p - a->program), &text, d));
    TRY(saved_program_parse(&a->blobs, text, p, bound, false, r->model->ctx, &out->mod, d));
    uint64_t asked = debug_options(r->desc)->alignment;
    uint64_t align = asked ? asked : r->target->alignment;
    *plan = p->plan;
    plan->max_buffer = a->target.max_buffer;
    out->from = REUSE_ARTEFACT;
    out->plan = plan;
    out->derive = !a->trusted;
    out->must_fit = target_same_limits(&a->target, &here) && p->plan.align == align &&
                    r->store->max_buffer == r->desc->max_buffer;
    return RLX_OK;
}

rlx_status reuse_find(const struct compile_request *r, const struct ir_module *bound,
                      struct arena *scratch, struct reuse *out, struct diag *d)
{
    int64_t *size;

    *out = (struct reuse){0};
    TRY(reuse_sizes(r, r->size, scratch, &size, d));
    if (r->model->artefact)
        TRY(find_in_artefact(r, bound, size, r->symbol_count, scratch, out, d));
    if (!out->mod && r->model->ctx->cache_dir)
        cache_find(r, bound, size, r->symbol_count, scratch, out);
    return RLX_OK;
}

/* A graph can be valid, fit its plan and still be another than the model's. What the passes make of
 * the model is run in its place, so it does not matter that fingerprints can be forged. */
rlx_status reuse_compare(const struct compile_request *r, struct reuse *u,
                         const struct ir_module *mod, struct diag *d)
{
    uint64_t ours, theirs;

    TRY(ir_fingerprint(mod, true, &ours, d));
    TRY(ir_fingerprint(u->mod, true, &theirs, d));
    if (ours == theirs)
        return RLX_OK;
    if (u->must_fit)
        return diag_fail(d, RLX_ERROR_FORMAT,
                         "the artefact's compiled graph is not what its model compiles to");
    say_why(r, "compiled again", "the artefact's compiled graph is not what its model compiles to");
    u->from = REUSE_NOTHING;
    u->plan = NULL;
    return RLX_OK;
}

static rlx_status keep(const struct compile_request *r, const struct compiled_program *p,
                       struct diag *d)
{
    struct arena scratch;
    int64_t *size;

    arena_init(&scratch, &r->model->ctx->mem);
    rlx_status status = reuse_sizes(r, r->size, &scratch, &size, d);
    if (status == RLX_OK)
        cache_keep(r, p, size, r->symbol_count);
    arena_free(&scratch);
    return status;
}

rlx_status reuse_done(const struct compile_request *r, const struct reuse *u,
                      const struct compiled_program *p, struct diag *d)
{
    const struct plan *plan = p->program->plan;
    bool restored = plan->restored;

    if (u->from != REUSE_NOTHING && !restored) {
        if (u->must_fit && u->from == REUSE_ARTEFACT)
            return diag_fail(d, RLX_ERROR_FORMAT, "the artefact's plan does not fit its steps: %s",
                             plan->misfit);
        say_why(r, "planned again", plan->misfit);
    }
    r->compiled->programs++;
    r->compiled->from_artefact += u->from == REUSE_ARTEFACT;
    r->compiled->from_cache += u->from == REUSE_CACHE;
    r->compiled->restored += restored;
    if (r->model->ctx->cache_dir && u->from != REUSE_ARTEFACT && !restored)
        TRY(keep(r, p, d));
    return RLX_OK;
}

void reuse_failed(const struct compile_request *r, const struct diag *why)
{
    say_why(r, "the saved program is of no use", why->first.message);
}
