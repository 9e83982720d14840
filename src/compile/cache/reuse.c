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

uint64_t reuse_options_key(const struct rlx_session *s)
{
    uint64_t h = program_options_key(&s->desc);

    for (size_t i = 0; i < s->handle_count; i++)
        if (s->handle[i].buffer && s->handle[i].direct)
            h = fingerprint_u64(h, i);
    return h;
}

rlx_status reuse_sizes(const struct rlx_session *s, const int64_t *binding, struct arena *scratch,
                       int64_t **out, struct diag *d)
{
    int64_t *size = arena_array(scratch, int64_t, s->symbol_count);

    if (!size)
        return diag_no_memory(d, s->symbol_count * sizeof *size);
    for (size_t i = 0; i < s->symbol_count; i++)
        size[i] = binding[i] == SYMBOL_KEPT ? -2 - s->bound[i] : binding[i];
    *out = size;
    return RLX_OK;
}

/* Why something was not as it could have been, for the log and for rlx_session_compiled. */
static void say_why(struct rlx_session *s, const char *what, const char *why)
{
    snprintf(s->compiled.why, sizeof s->compiled.why, "%.100s: %.*s", what,
             (int)sizeof s->compiled.why - 103, why);
    context_log(s->model->ctx, 2, "%s", s->compiled.why);
}

/* The program of the artefact for these sizes; NULL, and why, if none can be used. */
static const struct saved_program *choose(struct rlx_session *s, const struct target_note *here,
                                          const int64_t *binding, size_t count)
{
    const struct artefact *a = s->model->artefact;
    const char *why = "the artefact has no program for these sizes";

    for (size_t i = 0; i < a->program_count; i++) {
        const struct saved_program *p = &a->program[i];
        if (!saved_program_has_sizes(p, s->model->mod->dims, binding, count))
            continue;
        if (a->file.library != RLX_VERSION)
            why = "the artefact was written by another version of rlx";
        else if (!target_same_kernels(&a->target, here))
            why = "the artefact was made for another device";
        else if (p->options != reuse_options_key(s))
            why = "the artefact was made with other options";
        else
            return p;
    }
    say_why(s, "compiled anew", why);
    return NULL;
}

static rlx_status find_in_artefact(struct rlx_session *s, const struct ir_module *bound,
                                   const int64_t *binding, size_t count, struct arena *scratch,
                                   struct reuse *out, struct diag *d)
{
    const struct artefact *a = s->model->artefact;
    struct plan_saved *plan = arena_new(scratch, struct plan_saved);
    struct target_note here;
    struct reader text;

    if (!plan)
        return diag_no_memory(d, sizeof *plan);
    target_note_of(&s->target, &here);
    const struct saved_program *p = choose(s, &here, binding, count);
    if (!p)
        return RLX_OK;
    TRY(artefact_need(&a->file, SECTION_OPTIMISED, (uint32_t)(p - a->program), &text, d));
    TRY(saved_program_parse(&a->blobs, text, p, bound, false, s->model->ctx, &out->mod, d));
    uint64_t align = s->debug.alignment ? s->debug.alignment : s->target.alignment;
    *plan = p->plan;
    plan->max_buffer = a->target.max_buffer;
    out->from = REUSE_ARTEFACT;
    out->plan = plan;
    out->derive = !a->trusted;
    out->must_fit = target_same_limits(&a->target, &here) && p->plan.align == align &&
                    s->store->max_buffer == s->desc.max_buffer;
    return RLX_OK;
}

rlx_status reuse_find(struct rlx_session *s, const struct ir_module *bound, struct arena *scratch,
                      struct reuse *out, struct diag *d)
{
    int64_t *size;

    *out = (struct reuse){0};
    TRY(reuse_sizes(s, s->key, scratch, &size, d));
    if (s->model->artefact)
        TRY(find_in_artefact(s, bound, size, s->symbol_count, scratch, out, d));
    if (!out->mod && s->model->ctx->cache_dir)
        cache_find(s, bound, size, s->symbol_count, scratch, out);
    return RLX_OK;
}

/* A graph can be valid, fit its plan and still be another than the model's. What the passes make of
 * the model is run in its place, so it does not matter that fingerprints can be forged. */
rlx_status reuse_compare(struct rlx_session *s, struct reuse *r, const struct ir_module *mod,
                         struct diag *d)
{
    uint64_t ours, theirs;

    TRY(ir_fingerprint(mod, true, &ours, d));
    TRY(ir_fingerprint(r->mod, true, &theirs, d));
    if (ours == theirs)
        return RLX_OK;
    if (r->must_fit)
        return diag_fail(d, RLX_ERROR_FORMAT,
                         "the artefact's compiled graph is not what its model compiles to");
    say_why(s, "compiled anew", "the artefact's compiled graph is not what its model compiles to");
    r->from = REUSE_NOTHING;
    r->plan = NULL;
    return RLX_OK;
}

static rlx_status keep(struct rlx_session *s, const struct session_program *p, struct diag *d)
{
    struct arena scratch;
    int64_t *size;

    arena_init(&scratch, &s->model->ctx->mem);
    rlx_status status = reuse_sizes(s, s->key, &scratch, &size, d);
    if (status == RLX_OK)
        cache_keep(s, p, size, s->symbol_count);
    arena_free(&scratch);
    return status;
}

rlx_status reuse_done(struct rlx_session *s, const struct reuse *r, const struct session_program *p,
                      struct diag *d)
{
    const struct plan *plan = p->program->plan;
    bool restored = plan->restored;

    if (r->from != REUSE_NOTHING && !restored) {
        if (r->must_fit && r->from == REUSE_ARTEFACT)
            return diag_fail(d, RLX_ERROR_FORMAT, "the artefact's plan does not fit its steps: %s",
                             plan->misfit);
        say_why(s, "planned anew", plan->misfit);
    }
    s->compiled.programs++;
    s->compiled.from_artefact += r->from == REUSE_ARTEFACT;
    s->compiled.from_cache += r->from == REUSE_CACHE;
    s->compiled.restored += restored;
    if (s->model->ctx->cache_dir && r->from != REUSE_ARTEFACT && !restored)
        TRY(keep(s, p, d));
    return RLX_OK;
}

void reuse_failed(struct rlx_session *s, const struct diag *why)
{
    say_why(s, "the saved program is of no use", why->first.message);
}

rlx_status rlx_session_compiled(const rlx_session *s, rlx_compiled_info *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "session");
    if (!s || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", s ? "out" : "s");
    else if (session_is_whole(s, "tell of one program", &d) == RLX_OK)
        *out = s->compiled;
    return diag_report(&d, err);
}
