/* no_driver.h: a GPU without a driver, for what lowering does and no device has to: ops become
 * launches of kernels that are compiled and never built, and where their buffers would lie is
 * checked. It is the null device with the lowering of GPUs, so it runs anywhere. */
#ifndef TESTS_LOWER_GPU_NO_DRIVER_H
#define TESTS_LOWER_GPU_NO_DRIVER_H

#include "backend/gpu/gpu_kernels.h"
#include "session/required.h"
#include "session/session.h"

struct no_driver {
    struct backend_ops ops;
    const struct backend_ops *null;
    struct gpu_kernels gpu;
};
static struct no_driver no_driver; /* one at a time: a table of functions has no place for it */

static inline rlx_status no_driver_build(struct backend *b, const struct kir *k,
                                         const struct kc_emit *how, const char *key,
                                         void **pipeline, struct diag *d)
{
    (void)b, (void)k, (void)how, (void)key, (void)d;
    *pipeline = NULL;
    return RLX_OK;
}

static inline void no_driver_drop(struct backend *b, void *pipeline)
{
    (void)b, (void)pipeline;
}

static inline void no_driver_describe(const struct backend *b, struct target *out)
{
    (void)b;
    *out = (struct target){.backend = "null", .alignment = GPU_ALIGN, .computes_nothing = true};
    gpu_describe(out);
}

static inline rlx_status no_driver_select(struct backend *b, struct select_call *c)
{
    (void)b;
    return gpu_select(&no_driver.gpu.target, c);
}

static inline bool no_driver_joins(struct backend *b, enum joint kind, const struct ir_graph *g,
                                   ir_value v)
{
    (void)b;
    return gpu_joins(&no_driver.gpu.target, kind, g, v);
}

static inline rlx_status no_driver_load(struct backend *b, struct command *c, struct diag *d)
{
    (void)b;
    return gpu_load(&no_driver.gpu.target, c, d);
}

static inline rlx_status no_driver_prepare(struct backend *b, struct command *c, struct diag *d)
{
    (void)b;
    return gpu_prepare(&no_driver.gpu.target, c, d);
}

/* Nothing runs, but every launch has its buffers where its operands lie. */
static inline rlx_status no_driver_submit(struct backend *b, const struct command *list,
                                          size_t count, const struct run_hooks *hooks,
                                          struct run_report *report, uint64_t *ticket,
                                          struct diag *d)
{
    struct span fault = {.bytes = 64};
    struct gpu_bound bound;
    uint32_t word[256];

    for (size_t i = 0; i < count; i++) {
        const struct gpu_work *w = list[i].work;
        for (uint32_t k = 0; !list[i].idle && k < w->launches; k++)
            TRY(gpu_bind_launch(w, &w->launch[k], &list[i], fault, GPU_ALIGN, word, &bound, d));
    }
    return no_driver.null->submit(b, list, count, hooks, report, ticket, d);
}

/* Opens one in `p`, with these features, whose kernels see so much at once. */
static inline bool no_driver_open_small(struct test *t, struct place *p,
                                        const struct kc_features *f, uint64_t max_binding,
                                        uint32_t max_bindings)
{
    static const struct gpu_pipelines pipelines = {no_driver_build, no_driver_drop};
    struct diag d;

    if (!place_open(t, p, "null", NULL))
        return false;
    diag_init(&d, "test");
    no_driver.gpu = (struct gpu_kernels){.target = {.backend = p->dev->backend,
                                                    .features = *f,
                                                    .max_groups = 65535,
                                                    .max_binding = max_binding,
                                                    .max_bindings = max_bindings}};
    if (!expect_ok(t, gpu_kernels_open(&no_driver.gpu, &pipelines, &d)))
        return false;
    no_driver.null = p->dev->backend->ops;
    no_driver.ops = *no_driver.null;
    no_driver.ops.describe = no_driver_describe;
    no_driver.ops.select = no_driver_select;
    no_driver.ops.joins = no_driver_joins;
    no_driver.ops.load = no_driver_load;
    no_driver.ops.prepare = no_driver_prepare;
    no_driver.ops.submit = no_driver_submit;
    p->dev->backend->ops = &no_driver.ops;
    return true;
}

static inline bool no_driver_open(struct test *t, struct place *p, const struct kc_features *f)
{
    return no_driver_open_small(t, p, f, UINT64_C(1) << 30, GPU_BUFFERS);
}

static inline void no_driver_close(struct place *p)
{
    place_drop(p);
    gpu_kernels_close(&no_driver.gpu);
    place_close(p);
}

#endif
