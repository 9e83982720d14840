/* gpu_target.c: the device that is lowered for: kernels by their names, and texts to write their
 * sources into. */
#include "lower/gpu/gpu_core.h"

rlx_status gpu_target_open(struct gpu_target *t, struct diag *d)
{
    /* Windows begin where a buffer can, however far the limit was lowered. */
    t->max_binding = t->max_binding < GPU_ALIGN ? GPU_ALIGN : t->max_binding;
    t->max_binding = t->max_binding / GPU_ALIGN * GPU_ALIGN;
    if (t->max_bindings > GPU_BINDINGS)
        t->max_bindings = GPU_BINDINGS;
    if (pthread_mutex_init(&t->lock, NULL) != 0)
        return diag_fail(d, RLX_ERROR_MEMORY, "no lock could be made");
    return RLX_OK;
}

void gpu_target_close(struct gpu_target *t)
{
    while (t->texts)
        text_free(&t->text[--t->texts]);
    pthread_mutex_destroy(&t->lock);
}

rlx_status gpu_find_kernel(struct gpu_target *t, const char *key, rlx_str source,
                           const struct kc_binding *how, uint32_t buffers, uint32_t words,
                           const struct gpu_kernel **out, struct diag *d)
{
    return t->find(t, key, source, how, buffers, words, out, d);
}

void gpu_take_text(struct gpu_target *t, struct text *out)
{
    pthread_mutex_lock(&t->lock);
    if (t->texts)
        *out = t->text[--t->texts];
    else
        text_init(out, t->backend->mem);
    pthread_mutex_unlock(&t->lock);
}

void gpu_give_text(struct gpu_target *t, struct text *text)
{
    text->len = 0;
    text->failed = false;
    if (text->at)
        text->at[0] = 0;
    pthread_mutex_lock(&t->lock);
    bool kept = t->texts < GPU_TEXTS;
    if (kept)
        t->text[t->texts++] = *text;
    pthread_mutex_unlock(&t->lock);
    if (kept)
        text_init(text, t->backend->mem);
    else
        text_free(text);
}
