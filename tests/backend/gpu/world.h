/* world.h: a GPU for a test, checked by Vulkan's validation layer where that is installed, and
 * commands made of the test's own kernels. */
#ifndef TESTS_BACKEND_GPU_WORLD_H
#define TESTS_BACKEND_GPU_WORLD_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../test.h"
#include "backend/gpu/gpu_kernels.h"
#include "base/str.h"

enum { MOST_FLAGS = 8 };

struct world {
    const char *device;
    struct flags flags;
    struct test_alloc count;
    rlx_allocator mem;
    struct backend *b;
    struct diag diag;
    atomic_int errors; /* lines that the device logged as errors */
    char first[256];
};

static inline void world_hear(void *user, int level, const char *line)
{
    struct world *w = user;

    if (level == 0 && atomic_fetch_add(&w->errors, 1) == 0)
        snprintf(w->first, sizeof w->first, "%s", line);
}

static inline rlx_status world_try(struct world *w, const rlx_flag *flags, size_t count, bool check)
{
    rlx_flag all[MOST_FLAGS + 2] = {{"GPU_VALIDATION", check ? "1" : "0"}, {"GPU_CACHE", "0"}};

    for (size_t i = 0; i < count; i++)
        all[2 + i] = flags[i]; /* the last of a name counts */
    diag_init(&w->diag, "test");
    TRY(flags_read(&w->flags, all, count + 2, NULL, mem_default(), NULL, NULL, &w->diag));
    const struct device_desc desc = {
        .mem = &w->mem, .flags = &w->flags, .log = world_hear, .log_user = w};
    rlx_status s = backend_find(rlx_cstr(w->device))->open(&desc, &w->b, &w->diag);
    if (s != RLX_OK)
        flags_free(&w->flags);
    return s;
}

/* false: there is no such device here, and the test is skipped. */
static inline bool world_open_on(struct test *t, struct world *w, const char *device,
                                 const rlx_flag *flags, size_t count)
{
    *w = (struct world){.device = device};
    w->mem = test_allocator(&w->count);
    rlx_status s = world_try(w, flags, count, true);
    if (s == RLX_ERROR_NO_DEVICE) /* perhaps it is the layer that is missing */
        s = world_try(w, flags, count, false);
    return !test_no_device(t, device, s, w->diag.first.message);
}

static inline bool world_open(struct test *t, struct world *w, const rlx_flag *flags, size_t count)
{
    return world_open_on(t, w, test_device(t), flags, count);
}

static inline struct gpu_kernels *world_gpu(const struct world *w)
{
    return w->b->ops->gpu(w->b);
}

/* Everything was given back, and the layer had nothing to say. */
static inline void world_close(struct test *t, struct world *w)
{
    w->b->ops->close(w->b);
    flags_free(&w->flags);
    expect_no_leak(t, &w->count);
    if (!expect_eq(t, w->errors, 0))
        fail(t, "%s", w->first);
}

/* A kernel of the test's own, made for a command. */
struct world_step {
    const struct gpu_kernel *kernel;
    struct gpu_launch launch;
    struct gpu_work work;
    struct span span[GPU_BUFFERS];
    struct command command;
};

/* fault: the last buffer is where bad indices are reported. */
static inline bool world_step(struct test *t, struct world *w, struct world_step *s,
                              const char *source, const char *kernel, const struct span *span,
                              uint32_t spans, bool fault, uint32_t *word, uint32_t words)
{
    const struct kc_binding whole = {.window = world_gpu(w)->target.max_binding};
    uint32_t buffers = spans + fault;
    char key[80];

    snprintf(key, sizeof key, "=%zu:%s", strlen(source), kernel);
    *s = (struct world_step){0};
    if (!expect_ok(t, gpu_kernels_find(world_gpu(w), key, rlx_cstr(source), &whole, buffers, words,
                                       &s->kernel, &w->diag)))
        return fail(t, "%s", w->diag.first.message);
    s->launch = (struct gpu_launch){.kernel = s->kernel, .grid = {1, 1, 1}};
    for (uint32_t i = 0; i < spans; i++) {
        s->span[i] = span[i];
        s->launch.arg[i] = (struct gpu_arg){(int32_t)i, 0, span[i].bytes};
    }
    if (fault)
        s->launch.arg[spans] = (struct gpu_arg){GPU_FAULT, 0, 64};
    s->work = (struct gpu_work){
        .launch = &s->launch, .launches = 1, .word = word, .words = words, .stamp = 1};
    s->command = (struct command){
        .kind = COMMAND_DISPATCH, .work = &s->work, .operand = s->span, .operand_count = spans};
    return true;
}

static inline rlx_status world_run(struct world *w, const struct command *list, size_t count,
                                   struct run_report *report)
{
    uint64_t ticket;

    TRY(w->b->ops->submit(w->b, list, count, NULL, report, &ticket, &w->diag));
    return w->b->ops->wait(w->b, ticket, &w->diag);
}

#endif
