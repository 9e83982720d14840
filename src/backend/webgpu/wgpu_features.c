/* wgpu_features.c: what an adapter offers, what of it is asked for, and what the device then is.
 *
 * Limits are asked for as the adapter has them: a device has no more than what it was opened with.
 * Features are taken where they are, and kernels made without them where they are not. */
#include <stdio.h>

#include "backend/webgpu/webgpu.h"
#include "base/str.h"

/* What every WebGPU device has. */
#define LEAST_BINDING (UINT64_C(128) << 20)
#define LEAST_BUFFER (UINT64_C(256) << 20)
#define LEAST_SHARED 16384
#define MOST_GROUP 1024 /* invocations: more than that no kernel asks for */
#define MOST_GROUPS 65535
#define NATIVE_SUBGROUPS ((WGPUFeatureName)0x00030021) /* wgpu-native's number for Subgroups */

/* ---- limits ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return b < a ? b : a;
}

/* What the adapter has; what every device has where it does not say. */
static void read_limits(struct wg_device *dev, WGPULimits *has)
{
    *has = (WGPULimits)WGPU_LIMITS_INIT;
    if (dev->wg.AdapterGetLimits(dev->adapter, has) == WGPUStatus_Success)
        return;
    has->maxStorageBufferBindingSize = LEAST_BINDING;
    has->maxBufferSize = LEAST_BUFFER;
    has->maxStorageBuffersPerShaderStage = GPU_BUFFERS;
    has->maxComputeInvocationsPerWorkgroup = has->maxComputeWorkgroupSizeX = GPU_GROUP;
    has->maxComputeWorkgroupStorageSize = LEAST_SHARED;
}

static void choose_limits(struct wg_device *dev, WGPULimits *ask)
{
    struct gpu_device *g = &dev->gpu;
    WGPULimits has;

    read_limits(dev, &has);
    g->max_buffer = ask->maxBufferSize = has.maxBufferSize;
    ask->maxStorageBufferBindingSize =
        least(has.maxStorageBufferBindingSize, g->max_buffer) / GPU_ALIGN * GPU_ALIGN;
    g->max_binding = ask->maxStorageBufferBindingSize;
    g->max_bindings = (uint32_t)least(has.maxStorageBuffersPerShaderStage, GPU_BINDINGS);
    ask->maxStorageBuffersPerShaderStage = g->max_bindings;
    g->max_groups = MOST_GROUPS;
    g->align = GPU_ALIGN;
    g->mode = GPU_MODE_STAGING;
    dev->max_group = (uint32_t)least(
        MOST_GROUP, least(has.maxComputeInvocationsPerWorkgroup, has.maxComputeWorkgroupSizeX));
    ask->maxComputeInvocationsPerWorkgroup = ask->maxComputeWorkgroupSizeX = dev->max_group;
    dev->max_shared = ask->maxComputeWorkgroupStorageSize = has.maxComputeWorkgroupStorageSize;
}

/* ---- features ---- */

/* Is it there? Then it is asked for. */
static bool take(struct wg_device *dev, struct wg_wish *w, WGPUFeatureName name)
{
    if (!dev->wg.AdapterHasFeature(dev->adapter, name))
        return false;
    w->feature[w->features++] = name;
    return true;
}

rlx_status wg_choose(struct wg_device *dev, const struct flags *flags, struct wg_wish *w,
                     struct diag *d)
{
    *w = (struct wg_wish){.limits = WGPU_LIMITS_INIT};
    choose_limits(dev, &w->limits);
    dev->gpu.features =
        (struct kc_features){.f16 = true, .subgroups = true, .dot8 = true, .fma = !dev->gpu.is_cpu};
    dev->gpu.clock = true;
    TRY(gpu_disable_features(flags, &dev->gpu.features, &dev->gpu.clock, d));
    dev->gpu.features.max_group = dev->max_group;
    dev->gpu.features.shared_bytes = dev->max_shared;
    dev->gpu.features.f16 = dev->gpu.features.f16 && take(dev, w, WGPUFeatureName_ShaderF16);
    dev->gpu.features.subgroups =
        dev->gpu.features.subgroups &&
        (take(dev, w, WGPUFeatureName_Subgroups) || take(dev, w, NATIVE_SUBGROUPS));
    dev->gpu.clock = dev->gpu.clock && take(dev, w, WGPUFeatureName_TimestampQuery);
    return RLX_OK;
}

/* ---- what only a kernel can tell ---- */

#define TRIAL_GROUP 256
#define TRIAL_BYTES (TRIAL_GROUP * sizeof(uint32_t))

/* A kernel of one buffer, and what it writes there for one group; false: it cannot be made. */
static bool try_kernel(struct wg_device *dev, rlx_str source, uint32_t *word, uint32_t words)
{
    const struct wg_functions *wg = &dev->wg;
    struct wg_pipeline p = {.buffers = 1};
    struct buffer buf = {0};
    struct span out = {&buf, 0, words * sizeof *word};
    struct diag quiet;

    diag_init(&quiet, "open");
    bool made = wg_make_pipeline(dev, source, "of a trial", &p, &quiet) == RLX_OK &&
                gpu_make_buffer(&dev->gpu, GPU_FOR_WORK, TRIAL_BYTES, &buf, &quiet) == RLX_OK;
    if (made && words) {
        const WGPUBindGroupEntry entry = {.buffer = buf.handle, .size = buf.bytes};
        WGPUBindGroup group = wg->DeviceCreateBindGroup(
            dev->device,
            &(WGPUBindGroupDescriptor){.layout = p.layout, .entryCount = 1, .entries = &entry});
        WGPUCommandEncoder e = wg->DeviceCreateCommandEncoder(dev->device, NULL);
        WGPUComputePassEncoder pass = wg->CommandEncoderBeginComputePass(e, NULL);
        wg->ComputePassEncoderSetPipeline(pass, p.handle);
        wg->ComputePassEncoderSetBindGroup(pass, 0, group, 0, NULL);
        wg->ComputePassEncoderDispatchWorkgroups(pass, 1, 1, 1);
        wg->ComputePassEncoderEnd(pass);
        wg->ComputePassEncoderRelease(pass);
        made = wg_queue(dev, e, &quiet) == RLX_OK && wg_get(&dev->gpu, out, word, &quiet) == RLX_OK;
        wg->BindGroupRelease(group);
    }
    gpu_drop_buffer(&dev->gpu, &buf);
    wg_drop_pipeline(dev, &p);
    return made;
}

/* The language has had packed products for some years; not every compiler knows them, and not every
 * library can be asked. */
static bool compiles_dot8(struct wg_device *dev)
{
    return try_kernel(dev,
                      STR("@group(0) @binding(0) var<storage, read_write> y: array<i32>;\n"
                          "@compute @workgroup_size(1) fn main() {\n"
                          "    y[0] = dot4I8Packed(bitcast<u32>(y[1]), bitcast<u32>(y[2]));\n"
                          "}\n"),
                      NULL, 0);
}

#define ENABLE "enable subgroups;\n"

static bool count_lanes(struct wg_device *dev, bool enable, uint32_t size[TRIAL_GROUP])
{
    rlx_str source = STR(ENABLE "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n"
                                "@compute @workgroup_size(256)\n"
                                "fn main(@builtin(local_invocation_index) i: u32,\n"
                                "        @builtin(subgroup_invocation_id) lane: u32,\n"
                                "        @builtin(subgroup_size) size: u32) {\n"
                                "    y[i] = select(0u, size, lane == i % size);\n"
                                "}\n");

    if (!enable) {
        source.ptr += sizeof ENABLE - 1;
        source.len -= sizeof ENABLE - 1;
    }
    return try_kernel(dev, source, size, TRIAL_GROUP);
}

/* The size of subgroups, if invocations lie in them one after the other; 0: it varies, or they do
 * not. The API names a range at best, and kernels are made for one size. naga knows subgroups, but
 * not the line that the standard wants before they are used. */
static uint32_t measure_subgroups(struct wg_device *dev)
{
    uint32_t size[TRIAL_GROUP];

    dev->plain_subgroups = !count_lanes(dev, true, size);
    if (dev->plain_subgroups && !count_lanes(dev, false, size))
        return 0;
    for (uint32_t i = 1; i < TRIAL_GROUP; i++)
        if (size[i] != size[0])
            return 0;
    return size[0] && TRIAL_GROUP % size[0] == 0 ? size[0] : 0;
}

static uint32_t subgroup_size(struct wg_device *dev)
{
    WGPUAdapterInfo info = {0};
    uint32_t from = 0, to = 0;

    if (dev->wg.AdapterGetInfo(dev->adapter, &info) == WGPUStatus_Success) {
        from = info.subgroupMinSize;
        to = info.subgroupMaxSize;
        dev->wg.AdapterInfoFreeMembers(info);
    }
    return from != to ? 0 : measure_subgroups(dev); /* both are 0 where nobody knows */
}

void wg_try(struct wg_device *dev)
{
    dev->gpu.features.dot8 = dev->gpu.features.dot8 && compiles_dot8(dev);
    if (dev->gpu.features.subgroups)
        dev->gpu.features.subgroup_size = subgroup_size(dev);
    dev->gpu.features.subgroups = dev->gpu.features.subgroup_size > 1;
    dev->tick_ns = (double)dev->wg.QueueGetTimestampPeriod(dev->queue);
}

/* ---- what is said of it ---- */

void wg_describe(const struct backend *b, struct target *out)
{
    gpu_describe_device("webgpu", b, out);
}

/* One of them, opened as a session would: some of what it is can only be tried. */
static void list_one(const struct device_desc *desc, uint32_t number, device_row_fn each,
                     void *user)
{
    struct device_desc one = *desc;
    char variant[16];
    struct backend *b;
    struct target t;
    struct diag d;

    diag_init(&d, "devices");
    snprintf(variant, sizeof variant, "%u", number);
    one.variant = rlx_cstr(variant);
    if (webgpu_backend.open(&one, &b, &d) != RLX_OK) {
        each(user, variant, NULL, d.first.message);
        return;
    }
    webgpu_backend.describe(b, &t);
    webgpu_backend.close(b);
    each(user, variant, &t, NULL);
}

void wg_list(const struct device_desc *desc, device_row_fn each, void *user)
{
    uint32_t count = 0;
    struct diag d;

    diag_init(&d, "devices");
    if (wg_count_adapters(desc, &count, &d) != RLX_OK)
        each(user, "", NULL, d.first.message);
    for (uint32_t i = 0; i < count; i++)
        list_one(desc, i, each, user);
}
