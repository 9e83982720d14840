/* gpu_kernels.c: the kernels a device has made, by what they were made of. */
#include <stdio.h>
#include <string.h>

#include "backend/gpu/gpu_kernels.h"

#define MOST_DEFINES 48

static rlx_status find(struct gpu_target *t, const char *key, rlx_str source,
                       const struct kc_binding *bind, uint32_t buffers, uint32_t words,
                       const struct gpu_kernel **out, struct diag *d)
{
    return gpu_kernels_find((struct gpu_kernels *)t, key, source, bind, buffers, words, out, d);
}

rlx_status gpu_kernels_open(struct gpu_kernels *g, const struct gpu_pipelines *pipelines,
                            struct diag *d)
{
    g->pipelines = pipelines;
    g->mem = g->target.backend->mem;
    g->target.find = find;
    TRY(gpu_target_open(&g->target, d));
    if (pthread_mutex_init(&g->lock, NULL) != 0) {
        gpu_target_close(&g->target);
        return diag_fail(d, RLX_ERROR_MEMORY, "no lock could be made");
    }
    arena_init(&g->arena, g->mem);
    map_init(&g->index, g->mem);
    g->open = true;
    return RLX_OK;
}

void gpu_kernels_close(struct gpu_kernels *g)
{
    if (!g->open)
        return;
    for (size_t i = 0; i < g->kernel.len; i++)
        g->pipelines->drop(g->target.backend, g->kernel.at[i]->pipeline);
    vec_free(g->mem, &g->kernel);
    map_free(&g->index);
    arena_free(&g->arena);
    pthread_mutex_destroy(&g->lock);
    gpu_target_close(&g->target);
    g->open = false;
}

/* ---- making one ---- */

/* A generated file stands before the library's. */
struct generated {
    rlx_str name, text;
};

static bool find_source(void *user, rlx_str name, rlx_str *text)
{
    const struct generated *g = user;

    if (g->text.len && str_eq(name, g->name)) {
        *text = g->text;
        return true;
    }
    return kc_library.find(kc_library.user, name, text);
}

/* "file:kernel NAME=VALUE ... @1 %0:2 &001": what the compiler is asked for. */
struct wish {
    rlx_str file, kernel;
    struct kc_define define[MOST_DEFINES];
    size_t defines;
};

static rlx_status read_key(const char *key, struct wish *out, struct diag *d)
{
    const char *colon = strchr(key, ':'), *at = key + strcspn(key, " ");

    out->file = (rlx_str){key, (size_t)(colon - key)};
    out->kernel = (rlx_str){colon + 1, (size_t)(at - colon - 1)};
    out->defines = 0;
    while (*at) {
        size_t len = strcspn(++at, " ");
        const char *equals = memchr(at, '=', len);
        if (*at != '@' && *at != '%' && *at != '&') {
            if (out->defines == MOST_DEFINES)
                return diag_fail(d, RLX_ERROR_INTERNAL, "kernel %s has too many constants", key);
            out->define[out->defines++] = (struct kc_define){
                {at, (size_t)(equals - at)}, {equals + 1, (size_t)(at + len - equals - 1)}};
        }
        at += len;
    }
    return RLX_OK;
}

static void describe(const struct kir *k, const struct kc_binding *how, struct gpu_kernel *out)
{
    out->buffers = k->buffers;
    out->words = k->param_words;
    out->window = how->window;
    memcpy(out->group, k->group, sizeof out->group);
    for (uint32_t i = 0; i < k->buffers; i++) {
        struct kir_type t = k->buffer[i].type;
        uint32_t windows = how->windows ? how->windows[how->merge ? how->merge[i] : i] : 1;
        out->mode[i] = (uint8_t)k->buffer[i].mode;
        out->element[i] = (uint8_t)(kir_scalar_bytes(t.scalar) * t.lanes);
        out->begins_at[i] = kc_begins_inside(how, i, k->buffers);
        out->windows[i] = (uint8_t)(windows ? windows : 1);
        out->type[i] =
            (uint32_t)t.scalar | (uint32_t)t.lanes << 8 | (uint32_t)k->buffer[i].atomic << 16;
    }
}

/* The kernel with its bindings, as the driver's pipeline. */
static rlx_status build(struct gpu_kernels *g, const struct kir *k, const struct kc_binding *bind,
                        struct arena *scratch, struct gpu_kernel *out, struct diag *d)
{
    const struct kc_emit how = {.features = &g->target.features};
    uint32_t first[GPU_BUFFERS];
    struct kir bound;

    describe(k, bind, out);
    TRY(kc_bind(k, bind, scratch, &bound, first, d));
    out->bindings = bound.buffers;
    out->all_words = bound.param_words;
    for (uint32_t i = 0; i < k->buffers; i++)
        out->first[i] = (uint8_t)first[i];
    return g->pipelines->make(g->target.backend, &bound, &how, out->key, &out->pipeline, d);
}

static rlx_status make(struct gpu_kernels *g, const struct wish *w, rlx_str source,
                       const struct kc_binding *bind, uint32_t buffers, uint32_t words,
                       struct arena *scratch, struct gpu_kernel *out, struct diag *d)
{
    struct generated generated = {w->file, source};
    const struct kc_sources sources = {find_source, &generated};
    struct kir k;

    TRY(kc_specialise(&sources, w->file, w->kernel, w->define, w->defines, &g->target.features,
                      scratch, &k, d));
    if (k.buffers != buffers || k.param_words != words)
        return diag_fail(d, RLX_ERROR_INTERNAL,
                         "kernel %s takes %u buffers and %u words, and is given %u and %u",
                         out->key, k.buffers, k.param_words, buffers, words);
    return build(g, &k, bind, scratch, out, d);
}

rlx_status gpu_build_kernel(struct gpu_kernels *g, const struct kir *k, const char *key,
                            struct arena *scratch, struct gpu_kernel *out, struct diag *d)
{
    static const bool begins_at[GPU_BUFFERS];
    const struct kc_binding bind = {.offset = begins_at};

    if (k->buffers > GPU_BUFFERS)
        return diag_fail(d, RLX_ERROR_LIMIT, "kernel %s has %u buffers, at most %d fit", key,
                         k->buffers, GPU_BUFFERS);
    *out = (struct gpu_kernel){.key = key};
    return build(g, k, &bind, scratch, out, d);
}

void gpu_drop_kernel(struct gpu_kernels *g, struct gpu_kernel *k)
{
    g->pipelines->drop(g->target.backend, k->pipeline);
}

static bool same_key(const void *owner, uint32_t value, const void *key)
{
    const struct gpu_kernels *g = owner;

    return strcmp(g->kernel.at[value]->key, key) == 0;
}

static rlx_status add_kernel(struct gpu_kernels *g, const char *key, rlx_str source,
                             const struct kc_binding *bind, uint32_t buffers, uint32_t words,
                             const struct gpu_kernel **out, struct diag *d)
{
    struct gpu_kernel *k = arena_new(&g->arena, struct gpu_kernel);
    rlx_str name = arena_str(&g->arena, rlx_cstr(key));
    struct arena scratch;
    struct wish wish;

    rlx_str kept = source.len ? arena_str(&g->arena, source) : source;
    if (!k || !name.ptr || (source.len && !kept.ptr) || !vec_room(g->mem, &g->kernel))
        return diag_no_memory(d, sizeof *k);
    k->key = name.ptr;
    k->source = kept;
    TRY(read_key(k->key, &wish, d));
    arena_init(&scratch, g->mem);
    rlx_status s = make(g, &wish, source, bind, buffers, words, &scratch, k, d);
    arena_free(&scratch);
    TRY(s);
    if (!map_add(&g->index, hash_bytes(key, strlen(key)), (uint32_t)g->kernel.len)) {
        g->pipelines->drop(g->target.backend, k->pipeline);
        return diag_no_memory(d, sizeof *k);
    }
    g->kernel.at[g->kernel.len++] = k;
    g->target.kernels++;
    *out = k;
    return RLX_OK;
}

rlx_status gpu_kernels_find(struct gpu_kernels *g, const char *key, rlx_str source,
                            const struct kc_binding *bind, uint32_t buffers, uint32_t words,
                            const struct gpu_kernel **out, struct diag *d)
{
    rlx_status s = RLX_OK;
    uint32_t at;

    pthread_mutex_lock(&g->lock);
    if (map_find(&g->index, hash_bytes(key, strlen(key)), same_key, g, key, &at))
        *out = g->kernel.at[at];
    else
        s = add_kernel(g, key, source, bind, buffers, words, out, d);
    pthread_mutex_unlock(&g->lock);
    return s;
}
