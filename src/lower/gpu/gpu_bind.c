/* gpu_bind.c: where a launch's buffers lie, and through which bindings its kernel sees them.
 *
 *     operand, offset, bytes  =>  a span of a buffer  =>  a binding, or several windows in a row
 */
#include <string.h>

#include "lower/gpu/gpu_core.h"

static rlx_status place(const struct gpu_arg *a, const struct command *c, struct span fault,
                        struct span *out, struct diag *d)
{
    const struct span *of = a->operand == GPU_FAULT ? &fault : &c->operand[a->operand];

    if (a->operand >= (int32_t)c->operand_count || a->offset > of->bytes ||
        a->bytes > of->bytes - a->offset)
        return diag_fail(d, RLX_ERROR_INTERNAL,
                         "step %d: a kernel wants bytes %llu+%llu of operand %d", c->step,
                         (unsigned long long)a->offset, (unsigned long long)a->bytes, a->operand);
    *out = (struct span){of->buffer, of->offset + a->offset, a->bytes};
    return RLX_OK;
}

rlx_status gpu_place_buffers(const struct gpu_work *w, const struct gpu_launch *l,
                             const struct command *c, struct span fault, uint64_t align,
                             struct gpu_placed *out, struct diag *d)
{
    const struct gpu_kernel *k = l->kernel;

    if (k->words)
        memcpy(out->word, w->word + l->first_word, k->words * sizeof *out->word);
    out->words = k->words;
    for (uint32_t i = 0; i < k->buffers; i++) {
        struct span *s = &out->span[i];
        TRY(place(&l->arg[i], c, fault, s, d));
        uint64_t rest = s->offset % align;
        if (rest && (!k->begins_at[i] || rest % k->element[i]))
            return diag_fail(d, RLX_ERROR_INTERNAL,
                             "step %d: kernel %s has buffer %u at byte %llu of its slot", c->step,
                             k->key, i, (unsigned long long)rest);
        s->offset -= rest;
        s->bytes += rest;
        if (k->begins_at[i])
            out->word[out->words++] = (uint32_t)(rest / k->element[i]);
    }
    return RLX_OK;
}

/* Of buffers that overlap each has the span of all of them, so that it is the same windows. */
void gpu_open_windows(const struct gpu_kernel *k, const struct span *whole, struct gpu_bound *out)
{
    out->bindings = k->bindings;
    memset(out->writes, 0, sizeof out->writes);
    for (uint32_t i = 0; i < k->buffers; i++)
        for (uint32_t w = 0; w < k->windows[i]; w++) {
            struct span s = whole[i];
            uint64_t skip = w * k->window < s.bytes ? w * k->window : s.bytes;
            s.offset += skip;
            s.bytes -= skip;
            if (k->windows[i] > 1 && s.bytes > k->window)
                s.bytes = k->window;
            out->span[k->first[i] + w] = s;
            out->writes[k->first[i] + w] |= (k->mode[i] & KIR_OUT) != 0;
        }
}

rlx_status gpu_bind_launch(const struct gpu_work *w, const struct gpu_launch *l,
                           const struct command *c, struct span fault, uint64_t align,
                           uint32_t *word, struct gpu_bound *out, struct diag *d)
{
    struct gpu_placed at = {.word = word};

    TRY(gpu_place_buffers(w, l, c, fault, align, &at, d));
    gpu_open_windows(l->kernel, at.span, out);
    out->words = at.words;
    return RLX_OK;
}
