/* user_kernel_run.c: a kernel of the user's, run once on a GPU: its buffers are filled, one launch
 * is submitted as a program of one step, and what it wrote is read. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/gpu/gpu_kernels.h"
#include "base/str.h"
#include "inspect/user_kernel.h"

#define ROOM 16 /* bytes that a buffer is a multiple of, so that its last word is all there */

struct running {
    const rlx_kernel_run_desc *run;
    struct backend *backend;
    struct gpu_kernels *gpu;
    struct kir kir;
    struct gpu_kernel kernel;
    const rlx_kernel_buffer *given[GPU_BUFFERS]; /* by buffer of the kernel */
    struct span span[GPU_BUFFERS];
    uint32_t word[GPU_WORDS];
    struct arena *arena;
    struct diag *diag;
};

/* ---- what is given, and what the kernel takes ---- */

static void add_type(struct text *out, struct kir_type t, bool buffer)
{
    text_addf(out, "%s%s", buffer || t.count ? "[" : "", kir_scalar_name(t.scalar));
    if (t.lanes > 1)
        text_addf(out, "x%u", t.lanes);
    if (t.count)
        text_addf(out, "; %u", t.count);
    text_addf(out, "%s", buffer || t.count ? "]" : "");
}

/* "x: in [f32], y: out [f32], n: u32" */
static void list_parameters(const struct kir *k, struct text *out)
{
    static const char *const mode[] = {[KIR_IN] = "in", [KIR_OUT] = "out", [KIR_INOUT] = "inout"};

    for (uint32_t i = 0; i < k->buffers; i++) {
        text_addf(out, "%s%.*s: %s ", i ? ", " : "", STR_ARG(k->buffer[i].name),
                  mode[k->buffer[i].mode]);
        add_type(out, k->buffer[i].type, true);
    }
    for (uint32_t i = 0; i < k->params; i++) {
        text_addf(out, "%s%.*s: ", i || k->buffers ? ", " : "", STR_ARG(k->param[i].name));
        add_type(out, k->param[i].type, false);
    }
}

/* A sentence about what is wrong, and what the kernel takes. */
__attribute__((format(printf, 3, 4))) static rlx_status
refuse(const struct running *r, rlx_status status, const char *format, ...)
{
    char what[160];
    struct text list;
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    text_init(&list, r->backend->mem);
    list_parameters(&r->kir, &list);
    rlx_status s = diag_fail(r->diag, status, "%s; kernel %.*s takes (%s)", what,
                             STR_ARG(r->kir.name), list.at ? list.at : "");
    text_free(&list);
    return s;
}

/* ---- buffers ---- */

static bool find_buffer(const struct kir *k, rlx_str name, uint32_t *out)
{
    for (*out = 0; *out < k->buffers; ++*out)
        if (str_eq(k->buffer[*out].name, name))
            return true;
    return false;
}

static rlx_status match_buffers(struct running *r)
{
    uint32_t at, next = 0;

    for (size_t i = 0; i < r->run->buffer_count; i++) {
        const rlx_kernel_buffer *b = &r->run->buffers[i];
        if (!b->name)
            continue;
        if (!find_buffer(&r->kir, rlx_cstr(b->name), &at))
            return refuse(r, RLX_ERROR_NAME, "there is no buffer \"%s\"", b->name);
        if (r->given[at])
            return refuse(r, RLX_ERROR_ARGUMENT, "buffer \"%s\" is given twice", b->name);
        r->given[at] = b;
    }
    for (size_t i = 0; i < r->run->buffer_count; i++) {
        if (r->run->buffers[i].name)
            continue;
        while (next < r->kir.buffers && r->given[next])
            next++;
        if (next == r->kir.buffers)
            return refuse(r, RLX_ERROR_ARGUMENT, "%zu buffers are given", r->run->buffer_count);
        r->given[next] = &r->run->buffers[i];
    }
    for (uint32_t i = 0; i < r->kir.buffers; i++)
        if (!r->given[i])
            return refuse(r, RLX_ERROR_ARGUMENT, "buffer \"%.*s\" is missing",
                          STR_ARG(r->kir.buffer[i].name));
    return RLX_OK;
}

/* A c64 is two floats, and a bool a byte. */
static bool has_type(const rlx_tensor *t, struct kir_type k)
{
    if (t->dtype == RLX_DTYPE_c64)
        return k.scalar == KIR_F32 && k.lanes == 2;
    if (t->dtype == RLX_DTYPE_bool)
        return k.scalar == KIR_B8 || k.scalar == KIR_BOOL || k.scalar == KIR_U8;
    return strcmp(rlx_dtype_name(t->dtype), kir_scalar_name(k.scalar)) == 0;
}

static rlx_status check_tensors(const struct running *r)
{
    for (uint32_t i = 0; i < r->kir.buffers; i++) {
        const struct kir_buffer *k = &r->kir.buffer[i];
        const rlx_tensor *t = &r->given[i]->tensor;
        size_t element = kir_scalar_bytes(k->type.scalar) * (size_t)k->type.lanes;
        if (!has_type(t, k->type))
            return refuse(r, RLX_ERROR_DTYPE, "buffer \"%.*s\" is given %s", STR_ARG(k->name),
                          rlx_dtype_name(t->dtype));
        if (!t->data && t->bytes)
            return refuse(r, RLX_ERROR_ARGUMENT, "buffer \"%.*s\" has no data", STR_ARG(k->name));
        if (t->bytes > r->gpu->target.max_binding)
            return refuse(r, RLX_ERROR_LIMIT, "buffer \"%.*s\" has %zu bytes, more than %llu",
                          STR_ARG(k->name), t->bytes,
                          (unsigned long long)r->gpu->target.max_binding);
        if (t->bytes == 0 || t->bytes % element)
            return refuse(r, RLX_ERROR_SIZE,
                          "buffer \"%.*s\" has %zu bytes, and an element has %zu", STR_ARG(k->name),
                          t->bytes, element);
    }
    return RLX_OK;
}

static rlx_status fill_buffers(struct running *r)
{
    for (uint32_t i = 0; i < r->kir.buffers; i++) {
        const rlx_tensor *t = &r->given[i]->tensor;
        uint64_t room = (t->bytes + ROOM - 1) / ROOM * ROOM;
        struct buffer *b;
        TRY(r->backend->ops->alloc(r->backend, room, &b, r->diag));
        r->span[i] = (struct span){b, 0, room};
        if (r->kir.buffer[i].mode & KIR_IN)
            TRY(r->backend->ops->write(r->backend, (struct span){b, 0, t->bytes}, t->data,
                                       r->diag));
    }
    return RLX_OK;
}

static rlx_status read_buffers(const struct running *r)
{
    for (uint32_t i = 0; i < r->kir.buffers; i++) {
        const rlx_tensor *t = &r->given[i]->tensor;
        struct span s = {r->span[i].buffer, 0, t->bytes};
        if (r->kir.buffer[i].mode & KIR_OUT)
            TRY(r->backend->ops->read(r->backend, s, t->data, r->diag));
    }
    return RLX_OK;
}

/* ---- words ---- */

/* One number of the parameter's type; false: it is none. */
static bool read_word(const char *text, char **end, uint8_t scalar, uint32_t *out)
{
    errno = 0;
    if (scalar == KIR_F32) {
        float f = strtof(text, end);
        memcpy(out, &f, sizeof f);
        return *end != text;
    }
    long long n = strtoll(text, end, 0);
    *out = (uint32_t)n;
    if (*end == text || errno)
        return false;
    return scalar == KIR_I32 ? n >= INT32_MIN && n <= INT32_MAX : n >= 0 && n <= UINT32_MAX;
}

static rlx_status read_words(struct running *r, const struct kir_param *p, const char *text)
{
    uint32_t count = p->type.count ? p->type.count : 1;
    const char *at = text;

    for (uint32_t i = 0; i < count; i++) {
        char *end;
        if (!read_word(at, &end, p->type.scalar, &r->word[p->word + i]) ||
            *end != (i + 1 < count ? ',' : 0))
            return refuse(r, RLX_ERROR_ARGUMENT, "\"%.*s\" is given \"%s\", not %u numbers",
                          STR_ARG(p->name), text, count);
        at = end + 1;
    }
    return RLX_OK;
}

static const char *given_word(const struct running *r, rlx_str name)
{
    for (size_t i = 0; i < r->run->word_count; i++) {
        const char *text = r->run->words[i], *equals = text ? strchr(text, '=') : NULL;
        if (equals && str_eq((rlx_str){text, (size_t)(equals - text)}, name))
            return equals + 1;
    }
    return NULL;
}

static rlx_status take_words(struct running *r)
{
    size_t used = 0;

    if (r->kir.param_words > GPU_WORDS)
        return refuse(r, RLX_ERROR_LIMIT, "%u words are more than %d", r->kir.param_words,
                      GPU_WORDS);
    for (uint32_t i = 0; i < r->kir.params; i++) {
        const char *text = given_word(r, r->kir.param[i].name);
        if (!text)
            return refuse(r, RLX_ERROR_ARGUMENT, "\"%.*s\" is missing",
                          STR_ARG(r->kir.param[i].name));
        TRY(read_words(r, &r->kir.param[i], text));
        used++;
    }
    if (used != r->run->word_count)
        return refuse(r, RLX_ERROR_NAME, "%zu words are given, and %zu are its parameters",
                      r->run->word_count, used);
    return RLX_OK;
}

/* ---- the run ---- */

static rlx_status submit(struct running *r)
{
    struct gpu_launch launch = {.kernel = &r->kernel};
    struct gpu_work work = {
        .launch = &launch, .launches = 1, .word = r->word, .words = r->kir.param_words, .stamp = 1};
    struct command c = {.kind = COMMAND_DISPATCH,
                        .work = &work,
                        .operand = r->span,
                        .operand_count = r->kir.buffers};
    struct run_report report = {.step = -1};
    uint32_t most = r->gpu->target.max_groups;

    for (int i = 0; i < 3; i++) {
        launch.grid[i] = r->run->groups[i] ? r->run->groups[i] : 1;
        if (launch.grid[i] > most)
            return diag_fail(r->diag, RLX_ERROR_LIMIT, "%u groups along an axis; at most %u fit",
                             launch.grid[i], most);
    }
    for (uint32_t i = 0; i < r->kir.buffers; i++)
        launch.arg[i] = (struct gpu_arg){.operand = (int32_t)i, .bytes = r->span[i].bytes};
    rlx_status s = backend_run(r->backend, &c, 1, NULL, &report, r->diag);
    if (r->backend->ops->unload)
        r->backend->ops->unload(r->backend, &c);
    return s;
}

static rlx_status run_made(struct running *r)
{
    TRY(match_buffers(r));
    TRY(check_tensors(r));
    TRY(take_words(r));
    rlx_status s =
        gpu_build_kernel(r->gpu, &r->kir, r->run->kernel->file, r->arena, &r->kernel, r->diag);
    if (s != RLX_OK)
        return s;
    s = fill_buffers(r);
    s = s == RLX_OK ? submit(r) : s;
    s = s == RLX_OK ? read_buffers(r) : s;
    for (uint32_t i = 0; i < r->kir.buffers; i++)
        if (r->span[i].buffer)
            r->backend->ops->release(r->backend, r->span[i].buffer);
    gpu_drop_kernel(r->gpu, &r->kernel);
    return s;
}

rlx_status user_kernel_run(rlx_context *ctx, rlx_device *dev, const rlx_kernel_run_desc *run,
                           struct diag *d)
{
    struct arena arena;
    struct running r = {.run = run, .backend = dev->backend, .arena = &arena, .diag = d};
    struct kernel_files files;

    r.gpu = dev->backend->ops->gpu ? dev->backend->ops->gpu(dev->backend) : NULL;
    if (!r.gpu)
        return diag_fail(d, RLX_ERROR_UNSUPPORTED,
                         "\"%s\" runs no kernels of this kind; vulkan "
                         "and webgpu do",
                         dev->name);
    arena_init(&arena, &ctx->mem);
    const struct kc_sources sources = kernel_files_open(&files, ctx, run->kernel, &arena, d);
    rlx_status s = kernel_make(&sources, run->kernel, &r.gpu->target.features, &arena, &r.kir, d);
    if (s == RLX_OK && r.kir.buffers > GPU_BUFFERS)
        s = refuse(&r, RLX_ERROR_LIMIT, "%u buffers are more than %d", r.kir.buffers, GPU_BUFFERS);
    if (s == RLX_OK)
        s = run_made(&r);
    arena_free(&arena);
    return s;
}
