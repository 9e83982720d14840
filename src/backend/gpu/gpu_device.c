/* gpu_device.c: opening and closing a GPU, what is said of it, and the parts of a backend's table
 * that lowering answers. */
#include <stdarg.h>
#include <stdio.h>

#include "backend/gpu/gpu_run.h"

#define MOST_GROUPS 65535

void gpu_log(const struct gpu_device *g, int level, const char *format, ...)
{
    char line[512];
    va_list args;

    if (!g->log)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    g->log(g->log_user, level, line);
}

/* ---- opening ---- */

static void read_options(const struct flags *f, struct gpu_options *o)
{
    if (!f)
        return;
    o->validation = f->at[FLAG_GPU_VALIDATION].on;
    o->no_coop = f->at[FLAG_GPU_NO_COOP].on;
    o->full_barrier = f->at[FLAG_GPU_FULLBARRIER].on;
    o->no_cache = f->at[FLAG_GPU_NOCACHE].on;
    o->mode = (enum gpu_memory_mode)f->at[FLAG_GPU_MEMORY].number;
    o->max_binding = (uint64_t)f->at[FLAG_GPU_MAX_BINDING].number;
    o->max_groups = (uint64_t)f->at[FLAG_GPU_MAX_GROUPS].number;
    o->max_memory = (uint64_t)f->at[FLAG_GPU_MAX_MEMORY].number;
    o->lose_after = (uint64_t)f->at[FLAG_GPU_LOSE_AFTER].number;
}

rlx_status gpu_choose(const char *backend, rlx_str variant, uint32_t count, uint32_t *out,
                      struct diag *d)
{
    int64_t wanted = 0;

    if (variant.len && (!str_to_i64(variant, &wanted) || wanted < 0))
        return diag_fail(d, RLX_ERROR_NO_DEVICE, "\"%s:%.*s\": after the colon comes a number",
                         backend, STR_ARG(variant));
    if (wanted >= (int64_t)count)
        return diag_fail(d, RLX_ERROR_NO_DEVICE,
                         "there are %u such devices, from %s:0 on, and no number %lld", count,
                         backend, (long long)wanted);
    *out = (uint32_t)wanted;
    return RLX_OK;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return b && b < a ? b : a;
}

/* The limits of the flags lower what kernels see, not what the driver is asked for. */
static rlx_status open_kernels(struct gpu_device *g, struct diag *d)
{
    uint64_t groups = least(least(MOST_GROUPS, g->max_groups), g->options.max_groups);

    g->kernels.target =
        (struct gpu_target){.backend = &g->base,
                            .features = g->features,
                            .max_groups = (uint32_t)groups,
                            .max_binding = least(g->max_binding, g->options.max_binding),
                            .max_bindings = g->max_bindings};
    return gpu_kernels_open(&g->kernels, &g->driver->pipelines, d);
}

static rlx_status open_all(struct gpu_device *g, const struct device_desc *desc, struct diag *d)
{
    TRY(g->driver->open(g, desc, d));
    g->open = true;
    g->hazards.mem = g->base.mem;
    TRY(gpu_open_batches(g, d));
    TRY(gpu_make_buffer(g, GPU_FOR_WORK, GPU_BINDINGS * GPU_ALIGN, &g->nothing, d));
    TRY(open_kernels(g, d));
    return g->driver->check ? g->driver->check(g, d) : RLX_OK;
}

rlx_status gpu_open(const struct gpu_driver *driver, const struct backend_ops *ops,
                    const struct device_desc *desc, struct backend **out, struct diag *d)
{
    struct gpu_device *g = mem_alloc(desc->mem, driver->device_bytes);

    if (!g)
        return diag_no_memory(d, driver->device_bytes);
    g->base = (struct backend){ops, desc->mem};
    g->driver = driver;
    g->log = desc->log;
    g->log_user = desc->log_user;
    read_options(desc->flags, &g->options);
    if (pthread_mutex_init(&g->lock, NULL) != 0) {
        mem_free(desc->mem, g, driver->device_bytes);
        return diag_fail(d, RLX_ERROR_MEMORY, "no lock could be made");
    }
    rlx_status s = open_all(g, desc, d);
    if (s != RLX_OK) {
        gpu_close(&g->base);
        return s;
    }
    *out = &g->base;
    return RLX_OK;
}

void gpu_close(struct backend *b)
{
    struct gpu_device *g = gpu_device_of(b);
    const struct gpu_driver *driver = g->driver;

    if (g->open) {
        gpu_settle(g);
        gpu_drop_programs(g);
        vec_free(b->mem, &g->hazards.touched);
        gpu_kernels_close(&g->kernels);
        gpu_close_batches(g);
        gpu_drop_buffer(g, &g->nothing);
    }
    driver->close(g);
    pthread_mutex_destroy(&g->lock);
    mem_free(b->mem, g, driver->device_bytes);
}

/* ---- what is said of it ---- */

static void name_features(const struct gpu_device *g, char *out, size_t size)
{
    const struct kc_features *f = &g->features;
    static const char *const modes[] = {"", " memory=mapped", " memory=bar", " memory=staging"};
    size_t len = 0;
    const struct {
        bool on;
        const char *word;
    } words[] = {{f->f16, "f16"},
                 {f->f64, "f64"},
                 {f->int64, "int64"},
                 {f->storage16, "storage16"},
                 {f->storage8, "storage8"},
                 {f->dot8, "dot8"},
                 {f->small_preserve, "denormals"},
                 {f->coop, "coop"},
                 {f->coop_group, "coop-group"},
                 {f->coop_rows, "coop-rows"},
                 {g->clock, "timestamps"}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (words[i].on)
            len += (size_t)snprintf(out + len, size - len, "%s ", words[i].word);
    snprintf(out + len, size - len, "subgroups=%u group=%u shared=%u%s",
             f->subgroups ? f->subgroup_size : 0, f->max_group, f->shared_bytes, modes[g->mode]);
}

void gpu_describe_device(const char *backend, const struct backend *b, struct target *out)
{
    const struct gpu_device *g = (const struct gpu_device *)b;

    *out =
        (struct target){.backend = backend, .alignment = GPU_ALIGN, .least_alignment = GPU_ALIGN};
    gpu_describe(out);
    if (!g)
        return;
    snprintf(out->description, sizeof out->description, "%s", g->description);
    name_features(g, out->features, sizeof out->features);
    out->memory = g->memory;
    out->max_buffer = g->max_buffer; /* kernels see less of it, in parts if need be */
    out->slow_uploads = g->mode != GPU_MODE_MAPPED;
    out->flushes_small = !g->is_cpu;
}

/* ---- lowering ---- */

static struct gpu_target *target_of(struct backend *b)
{
    return &gpu_device_of(b)->kernels.target;
}

rlx_status gpu_select_step(struct backend *b, struct select_call *c)
{
    return gpu_select(target_of(b), c);
}

bool gpu_joins_step(struct backend *b, enum joint kind, const struct ir_graph *g, ir_value v)
{
    return gpu_joins(target_of(b), kind, g, v);
}

rlx_status gpu_load_step(struct backend *b, struct command *c, struct diag *d)
{
    return gpu_load(target_of(b), c, d);
}

rlx_status gpu_prepare_step(struct backend *b, struct command *c, struct diag *d)
{
    TRY(gpu_prepare(target_of(b), c, d));
    return gpu_prepare_launches(gpu_device_of(b), c, d);
}

rlx_status gpu_pack_step(struct backend *b, struct command *c, int32_t operand, struct span source,
                         struct diag *d)
{
    (void)operand;
    return gpu_pack(&gpu_device_of(b)->kernels, c, source, d);
}

struct gpu_kernels *gpu_kernels_of(struct backend *b)
{
    return &gpu_device_of(b)->kernels;
}
