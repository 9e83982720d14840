/* gpu_kernels.c: the kernels a device has made, by what they were made of. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "lower/gpu/gpu_device.h"

#define MOST_DEFINES 48
#define KEPT_TEXTS 12

struct gpu_device {
    struct gpu_device_desc desc;
    const rlx_allocator *mem;
    pthread_mutex_t lock;
    struct arena arena; /* the kernels and their keys */
    struct map index;
    VEC(struct gpu_kernel *) kernel;
    struct text text[KEPT_TEXTS]; /* that nobody writes to now */
    size_t texts;
};

rlx_status gpu_device_create(const struct gpu_device_desc *desc, struct gpu_device **out,
                             struct diag *d)
{
    const rlx_allocator *mem = desc->backend->mem;
    struct gpu_device *g = mem_alloc(mem, sizeof *g);

    if (!g)
        return diag_no_memory(d, sizeof *g);
    g->desc = *desc;
    /* Windows begin where a buffer can, however far the limit was lowered. */
    g->desc.max_binding = desc->max_binding / GPU_ALIGN * GPU_ALIGN;
    if (desc->max_binding < GPU_ALIGN)
        g->desc.max_binding = GPU_ALIGN;
    if (desc->max_bindings > GPU_BINDINGS)
        g->desc.max_bindings = GPU_BINDINGS;
    g->mem = mem;
    arena_init(&g->arena, mem);
    map_init(&g->index, mem);
    if (pthread_mutex_init(&g->lock, NULL) != 0) {
        mem_free(mem, g, sizeof *g);
        return diag_fail(d, RLX_ERROR_MEMORY, "no lock could be made");
    }
    *out = g;
    return RLX_OK;
}

void gpu_device_destroy(struct gpu_device *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->kernel.len; i++)
        g->desc.driver->drop(g->desc.backend, g->kernel.at[i]->pipeline);
    while (g->texts)
        text_free(&g->text[--g->texts]);
    vec_free(g->mem, &g->kernel);
    map_free(&g->index);
    arena_free(&g->arena);
    pthread_mutex_destroy(&g->lock);
    mem_free(g->mem, g, sizeof *g);
}

uint32_t gpu_device_max_groups(const struct gpu_device *g)
{
    return g->desc.max_groups;
}

size_t gpu_device_kernels(struct gpu_device *g)
{
    pthread_mutex_lock(&g->lock);
    size_t count = g->kernel.len;
    pthread_mutex_unlock(&g->lock);
    return count;
}

const struct gpu_device_desc *gpu_device_desc(const struct gpu_device *g)
{
    return &g->desc;
}

/* ---- texts ---- */

void gpu_take_text(struct gpu_device *g, struct text *out)
{
    pthread_mutex_lock(&g->lock);
    if (g->texts)
        *out = g->text[--g->texts];
    else
        text_init(out, g->mem);
    pthread_mutex_unlock(&g->lock);
}

void gpu_give_text(struct gpu_device *g, struct text *t)
{
    t->len = 0;
    t->failed = false;
    if (t->at)
        t->at[0] = 0;
    pthread_mutex_lock(&g->lock);
    bool kept = g->texts < KEPT_TEXTS;
    if (kept)
        g->text[g->texts++] = *t;
    pthread_mutex_unlock(&g->lock);
    if (kept)
        text_init(t, g->mem);
    else
        text_free(t);
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

/* The names of its words, by which launches give them. */
static rlx_status keep_params(struct gpu_device *g, const struct kir *k, struct gpu_kernel *out,
                              struct diag *d)
{
    struct gpu_param *p = arena_array(&g->arena, struct gpu_param, k->params);

    if (!p)
        return diag_no_memory(d, k->params * sizeof *p);
    for (uint32_t i = 0; i < k->params; i++) {
        struct kir_type t = k->param[i].type;
        p[i] = (struct gpu_param){.name = arena_str(&g->arena, k->param[i].name).ptr,
                                  .first = k->param[i].word,
                                  .count = t.count ? t.count : 1,
                                  .type = t.scalar};
        if (!p[i].name)
            return diag_no_memory(d, k->param[i].name.len);
    }
    out->param = p;
    out->params = k->params;
    return RLX_OK;
}

/* The kernel with its bindings, as the driver's pipeline. */
static rlx_status build(struct gpu_device *g, const struct kir *k, const struct kc_binding *bind,
                        struct arena *scratch, struct gpu_kernel *out, struct diag *d)
{
    const struct kc_emit how = {.features = &g->desc.features};
    uint32_t first[GPU_BUFFERS];
    struct kir bound;

    describe(k, bind, out);
    TRY(kc_bind(k, bind, scratch, &bound, first, d));
    out->bindings = bound.buffers;
    for (uint32_t i = 0; i < k->buffers; i++)
        out->first[i] = (uint8_t)first[i];
    return g->desc.driver->build(g->desc.backend, &bound, &how, out->key, &out->pipeline, d);
}

static rlx_status make(struct gpu_device *g, const struct wish *w, rlx_str source,
                       const struct kc_binding *bind, uint32_t buffers, uint32_t words,
                       struct arena *scratch, struct gpu_kernel *out, struct diag *d)
{
    struct generated generated = {w->file, source};
    const struct kc_sources sources = {find_source, &generated};
    struct kir k;

    TRY(kc_specialise(&sources, w->file, w->kernel, w->define, w->defines, &g->desc.features,
                      scratch, &k, d));
    if (k.buffers != buffers)
        return diag_fail(d, RLX_ERROR_INTERNAL,
                         "kernel %s takes %u buffers and %u words, and is given %u and %u",
                         out->key, k.buffers, k.param_words, buffers, words);
    TRY(keep_params(g, &k, out, d));
    return build(g, &k, bind, scratch, out, d);
}

rlx_status gpu_build_kernel(struct gpu_device *g, const struct kir *k, const char *key,
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

void gpu_drop_kernel(struct gpu_device *g, struct gpu_kernel *k)
{
    g->desc.driver->drop(g->desc.backend, k->pipeline);
}

static bool same_key(const void *owner, uint32_t value, const void *key)
{
    const struct gpu_device *g = owner;

    return strcmp(g->kernel.at[value]->key, key) == 0;
}

static rlx_status add_kernel(struct gpu_device *g, const char *key, rlx_str source,
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
        g->desc.driver->drop(g->desc.backend, k->pipeline);
        return diag_no_memory(d, sizeof *k);
    }
    g->kernel.at[g->kernel.len++] = k;
    *out = k;
    return RLX_OK;
}

rlx_status gpu_find_kernel(struct gpu_device *g, const char *key, rlx_str source,
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

rlx_status gpu_find_variant(struct gpu_device *g, const struct gpu_kernel *k, const uint32_t *merge,
                            const uint32_t *windows, const struct gpu_kernel **out, struct diag *d)
{
    const struct kc_binding bind = {merge, k->begins_at, windows, k->window};
    char key[GPU_KEY + 8 * GPU_BUFFERS];
    size_t len = (size_t)snprintf(key, sizeof key, "%s &", k->key);

    for (uint32_t i = 0; i < k->buffers; i++)
        key[len++] = (char)('0' + merge[i]);
    key[len] = 0;
    for (uint32_t i = 0; i < k->buffers; i++)
        if (merge[i] == i && windows[i] != k->windows[i])
            len += (size_t)snprintf(key + len, sizeof key - len, " %%%u:%u", i, windows[i]);
    return gpu_find_kernel(g, key, k->source, &bind, k->buffers, k->words, out, d);
}
