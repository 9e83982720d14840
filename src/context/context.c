/* context.c: what all objects of a program share, and the devices it has open. */
#include <stdio.h>
#include <string.h>

#include "base/desc.h"
#include "base/str.h"
#include "context/context.h"
#include "context/trace.h"
#include "rlx/tools.h"

extern char **environ;

/* The caller's ops, which lie as far apart as the first says, as an array of our own. */
static rlx_status take_customs(const rlx_context_desc *desc, rlx_custom_op *own, struct diag *d)
{
    const char *at = (const char *)desc->custom_ops;
    uint32_t first, size;

    for (size_t i = 0; i < desc->custom_op_count; i++) {
        own[i] = (rlx_custom_op){RLX_SIZED(rlx_custom_op)};
        memcpy(&first, desc->custom_ops, sizeof first);
        memcpy(&size, at + i * first, sizeof size);
        TRY(DESC_READ(rlx_custom_op, &own[i], at + i * first, d));
        if (size != first)
            return diag_fail(d, RLX_ERROR_ARGUMENT, "custom op %zu has size %u, the first has %u",
                             i, size, first);
    }
    return RLX_OK;
}

static rlx_status check_customs(const rlx_custom_op *ops, size_t count, struct diag *d)
{
    for (size_t i = 0; i < count; i++) {
        const rlx_custom_op *op = &ops[i];
        if (!op->name || !*op->name || !op->infer || op->inputs < 0)
            return diag_fail(d, RLX_ERROR_ARGUMENT,
                             "custom op %zu needs a name, an infer function and an input count", i);
        if (op->outputs < 0 || op->outputs > CUSTOM_RESULTS)
            return diag_fail(d, RLX_ERROR_ARGUMENT, "custom op \"%s\" has %d results; 1 to %d fit",
                             op->name, op->outputs, CUSTOM_RESULTS);
        for (size_t k = 0; k < i; k++)
            if (strcmp(ops[k].name, op->name) == 0)
                return diag_fail(d, RLX_ERROR_ARGUMENT, "custom op \"%s\" is registered twice",
                                 op->name);
    }
    return RLX_OK;
}

static rlx_status read_customs(rlx_context *ctx, const rlx_context_desc *desc, struct diag *d)
{
    size_t count = desc->custom_op_count, bytes = 0;

    ctx->customs.owner = ctx;
    if (count == 0)
        return RLX_OK;
    rlx_custom_op *own = size_mul(count, sizeof *own, &bytes) ? mem_alloc(&ctx->mem, bytes) : NULL;
    if (!own)
        return diag_no_memory(d, bytes);
    rlx_status s = take_customs(desc, own, d);
    if (s == RLX_OK)
        s = check_customs(own, count, d);
    if (s != RLX_OK) {
        mem_free(&ctx->mem, own, bytes);
        return s;
    }
    ctx->custom = own;
    ctx->customs = (struct ir_customs){.op = own, .count = count, .owner = ctx};
    return RLX_OK;
}

static void free_customs(rlx_context *ctx)
{
    mem_free(&ctx->mem, ctx->custom, ctx->customs.count * sizeof *ctx->custom);
}

static void warn(void *user, const char *line)
{
    context_log(user, 1, "%s", line);
}

/* What the flags decide once for all objects of the context. */
static rlx_status read_flags(rlx_context *ctx, const rlx_context_desc *desc, struct diag *d)
{
    TRY(flags_read(&ctx->flags, desc->flags, desc->flag_count, environ, &ctx->mem, warn, ctx, d));
    const char *path = desc->trace ? desc->trace : context_flag(ctx, FLAG_TRACE_PERFETTO)->text;
    int64_t workers = context_flag(ctx, FLAG_WORKERS)->number;
    if (!ctx->threads)
        ctx->threads = workers < INT32_MAX ? (int32_t)workers : INT32_MAX;
    rlx_status s = *path ? trace_open(&ctx->trace, path, &ctx->mem, d) : RLX_OK;
    if (s != RLX_OK)
        flags_free(&ctx->flags);
    return s;
}

#define CACHE_BYTES (UINT64_C(1) << 30)

static rlx_status take_cache(rlx_context *ctx, const rlx_context_desc *desc, struct diag *d)
{
    size_t len = desc->cache_dir ? strlen(desc->cache_dir) : 0;

    if (len == 0)
        return RLX_OK;
    ctx->cache_dir = mem_alloc(&ctx->mem, len + 1);
    if (!ctx->cache_dir)
        return diag_no_memory(d, len + 1);
    memcpy(ctx->cache_dir, desc->cache_dir, len);
    ctx->cache_bytes = desc->cache_bytes ? desc->cache_bytes : CACHE_BYTES;
    return RLX_OK;
}

rlx_status context_create(const rlx_context_desc *desc, rlx_context **out, struct diag *d)
{
    const rlx_allocator *mem;
    rlx_context *ctx;

    mem = desc->allocator ? desc->allocator : mem_default();
    if (!mem->resize)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "the allocator has no resize function");
    if (desc->custom_op_count && !desc->custom_ops)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "custom_ops is NULL");
    if (desc->threads < 0)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "threads is %d", desc->threads);
    if (desc->flag_count && !desc->flags)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "flags is NULL");
    ctx = mem_alloc(mem, sizeof *ctx);
    if (!ctx)
        return diag_no_memory(d, sizeof *ctx);
    atomic_init(&ctx->refs, 1);
    ctx->mem = *mem;
    ctx->log = desc->log;
    ctx->log_user = desc->log_user;
    ctx->threads = desc->threads;
    rlx_status s = read_customs(ctx, desc, d);
    if (s == RLX_OK && (s = read_flags(ctx, desc, d)) == RLX_OK &&
        (s = take_cache(ctx, desc, d)) != RLX_OK) {
        trace_close(ctx->trace);
        flags_free(&ctx->flags);
    }
    if (s != RLX_OK) {
        rlx_allocator last = ctx->mem;
        free_customs(ctx);
        mem_free(&last, ctx, sizeof *ctx);
        return s;
    }
    pthread_mutex_init(&ctx->lock, NULL);
    *out = ctx;
    return RLX_OK;
}

struct rlx_context *context_retain(struct rlx_context *ctx)
{
    atomic_fetch_add(&ctx->refs, 1);
    return ctx;
}

void context_release(struct rlx_context *ctx)
{
    if (!ctx || atomic_fetch_sub(&ctx->refs, 1) != 1)
        return;
    rlx_allocator mem = ctx->mem;
    vec_free(&mem, &ctx->device);
    vec_free(&mem, &ctx->known);
    trace_close(ctx->trace);
    flags_free(&ctx->flags);
    free_customs(ctx);
    if (ctx->cache_dir)
        mem_free(&mem, ctx->cache_dir, strlen(ctx->cache_dir) + 1);
    pthread_mutex_destroy(&ctx->lock);
    mem_free(&mem, ctx, sizeof *ctx);
}

static struct rlx_device *find_open(rlx_context *ctx, rlx_str name)
{
    for (size_t i = 0; i < ctx->device.len; i++)
        if (str_eq(name, rlx_cstr(ctx->device.at[i]->name)))
            return ctx->device.at[i];
    return NULL;
}

static void list_backends(char *out, size_t size)
{
    size_t len = 0;

    for (size_t i = 0; backend_at(i) && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, "%s%s", i ? ", " : "", backend_at(i)->name);
}

static struct device_desc describe_device(const rlx_context *ctx)
{
    return (struct device_desc){.mem = &ctx->mem,
                                .threads = ctx->threads,
                                .flags = &ctx->flags,
                                .cache_dir = ctx->cache_dir,
                                .log = ctx->log,
                                .log_user = ctx->log_user};
}

/* "vulkan:1" is device "1" of "vulkan". */
static rlx_status open_backend(rlx_context *ctx, rlx_str name, struct backend **out, struct diag *d)
{
    const char *colon = memchr(name.ptr, ':', name.len);
    rlx_str kind = {name.ptr, colon ? (size_t)(colon - name.ptr) : name.len};
    struct device_desc desc = describe_device(ctx);
    const struct backend_ops *ops = backend_find(kind);
    rlx_nearest near = {.wanted = kind};
    char known[128], hint[RLX_NEAREST_HINT];
    struct diag own;

    if (colon)
        desc.variant = (rlx_str){colon + 1, name.len - kind.len - 1};
    diag_init(&own, "device");
    rlx_status s = ops ? ops->open(&desc, out, &own) : RLX_ERROR_NO_DEVICE;
    if (s == RLX_OK)
        return RLX_OK;
    if (s != RLX_ERROR_NO_DEVICE)
        return diag_again(d, &own.first, s);
    list_backends(known, sizeof known);
    if (ops)
        return diag_fail(d, s, "there is no device \"%.*s\": %s; kinds of devices: %s",
                         STR_ARG(name), own.first.message, known);
    for (size_t i = 0; backend_at(i); i++)
        rlx_nearest_offer(&near, rlx_cstr(backend_at(i)->name));
    if (str_eq(kind, STR("gpu")) || str_eq(kind, STR("cuda"))) /* and not cpu */
        near.best = STR("vulkan");
    return diag_fail(
        d, s,
        "there is no device \"%.*s\"; kinds of devices: %s (rlx devices lists those of "
        "this machine)%s",
        STR_ARG(name), known, rlx_nearest_hint(&near, hint));
}

static rlx_status open_new(rlx_context *ctx, rlx_str name, rlx_device **out, struct diag *d)
{
    rlx_device *dev = mem_alloc(&ctx->mem, sizeof *dev);
    rlx_status s;

    if (!dev || !vec_room(&ctx->mem, &ctx->device)) {
        mem_free(&ctx->mem, dev, sizeof *dev);
        return diag_no_memory(d, sizeof *dev);
    }
    s = open_backend(ctx, name, &dev->backend, d);
    if (s != RLX_OK) {
        mem_free(&ctx->mem, dev, sizeof *dev);
        return s;
    }
    dev->ctx = context_retain(ctx);
    dev->refs = 1;
    snprintf(dev->name, sizeof dev->name, "%.*s", STR_ARG(name));
    ctx->device.at[ctx->device.len++] = dev;
    *out = dev;
    return RLX_OK;
}

rlx_status device_open(rlx_context *ctx, rlx_str name, rlx_device **out, struct diag *d)
{
    if (str_eq(name, STR("auto")))
        name = flags_auto_device(ctx);
    if (!name.ptr || name.len == 0 || name.len >= sizeof(((rlx_device *)0)->name))
        return diag_fail(d, RLX_ERROR_ARGUMENT, "a device name has 1 to 31 bytes, not %zu",
                         name.len);
    if (!flags_allow_device(ctx, name, false))
        return diag_fail(d, RLX_ERROR_NO_DEVICE, "RLX_DEVICES does not allow \"%.*s\", only: %s",
                         STR_ARG(name), context_flag(ctx, FLAG_DEVICES)->text);
    pthread_mutex_lock(&ctx->lock);
    rlx_device *dev = find_open(ctx, name);
    rlx_status s = RLX_OK;
    if (dev)
        dev->refs++;
    else
        s = open_new(ctx, name, &dev, d);
    pthread_mutex_unlock(&ctx->lock);
    if (s == RLX_OK)
        *out = dev;
    return s;
}

void device_retain(struct rlx_device *dev)
{
    pthread_mutex_lock(&dev->ctx->lock);
    dev->refs++;
    pthread_mutex_unlock(&dev->ctx->lock);
}

void device_release(struct rlx_device *dev)
{
    if (!dev)
        return;
    rlx_context *ctx = dev->ctx;
    pthread_mutex_lock(&ctx->lock);
    bool last = --dev->refs == 0;
    for (size_t i = 0; last && i < ctx->device.len; i++) {
        if (ctx->device.at[i] != dev)
            continue;
        ctx->device.at[i] = ctx->device.at[--ctx->device.len];
        break;
    }
    pthread_mutex_unlock(&ctx->lock);
    if (!last)
        return;
    dev->backend->ops->close(dev->backend);
    mem_free(&ctx->mem, dev, sizeof *dev);
    context_release(ctx);
}

/* ---- the list ---- */

/* What the backends say, kept: asking one may mean to load its driver. */
struct listing {
    rlx_context *ctx;
    const struct backend_ops *ops;
    bool complete;
};

static void add_row(void *user, const char *variant, const struct target *t, const char *missing)
{
    struct listing *l = user;
    rlx_context *ctx = l->ctx;

    if (!vec_room(&ctx->mem, &ctx->known)) {
        l->complete = false;
        return;
    }
    rlx_device_info *out = &ctx->known.at[ctx->known.len++];
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s%s%s", l->ops->name, *variant ? ":" : "", variant);
    out->present = !missing && flags_allow_device(ctx, rlx_cstr(out->name), true);
    snprintf(out->description, sizeof out->description, "%s",
             missing        ? missing
             : out->present ? t->description
                            : "not allowed by RLX_DEVICES");
    if (missing)
        return;
    snprintf(out->features, sizeof out->features, "%s", t->features);
    out->threads = t->threads;
    out->memory = t->memory;
    out->max_buffer = t->max_buffer;
    out->alignment = t->alignment;
}

static void list_devices(rlx_context *ctx)
{
    const struct device_desc desc = describe_device(ctx);
    struct listing l = {ctx, NULL, true};
    struct target t;

    ctx->known.len = 0;
    for (size_t i = 0; backend_at(i); i++) {
        l.ops = backend_at(i);
        if (l.ops->list && flags_allow_device(ctx, rlx_cstr(l.ops->name), true)) {
            l.ops->list(&desc, add_row, &l);
            continue;
        }
        l.ops->describe(NULL, &t);
        add_row(&l, "", &t, NULL);
    }
    ctx->listed = l.complete;
}

bool device_at(struct rlx_context *ctx, size_t i, rlx_device_info *out)
{
    pthread_mutex_lock(&ctx->lock);
    if (!ctx->listed)
        list_devices(ctx);
    bool there = i < ctx->known.len;
    if (there)
        *out = ctx->known.at[i];
    pthread_mutex_unlock(&ctx->lock);
    return there;
}
