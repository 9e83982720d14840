/* wgpu_pipeline.c: a kernel as a compute pipeline. All its buffers are bound for reading and
 * writing: most lie in one buffer, which WebGPU lets one launch see in one way only. */
#include "backend/webgpu/webgpu.h"
#include "base/str.h"

void wg_drop_pipeline(struct wg_device *dev, struct wg_pipeline *p)
{
    if (p->handle)
        dev->wg.ComputePipelineRelease(p->handle);
    if (p->layout)
        dev->wg.BindGroupLayoutRelease(p->layout);
}

void wg_drop_kernel(struct backend *b, void *pipeline)
{
    if (!pipeline)
        return;
    wg_drop_pipeline(wg_device_of(b), pipeline);
    mem_free(b->mem, pipeline, sizeof(struct wg_pipeline));
}

static void make_layout(struct wg_device *dev, struct wg_pipeline *p)
{
    WGPUBindGroupLayoutEntry entry[GPU_BINDINGS + 1];
    size_t count = 0;

    for (uint32_t i = 0; i < p->buffers; i++)
        entry[count++] = (WGPUBindGroupLayoutEntry){.binding = i,
                                                    .visibility = WGPUShaderStage_Compute,
                                                    .buffer.type = WGPUBufferBindingType_Storage};
    if (p->words)
        entry[count++] = (WGPUBindGroupLayoutEntry){.binding = p->buffers,
                                                    .visibility = WGPUShaderStage_Compute,
                                                    .buffer.type = WGPUBufferBindingType_Uniform};
    p->layout = dev->wg.DeviceCreateBindGroupLayout(
        dev->device, &(WGPUBindGroupLayoutDescriptor){.entryCount = count, .entries = entry});
}

/* Kernels keep inside their arrays and end their loops, as on other devices. Checks of both after
 * them cost attention a third of its time, so they are left out. */
static WGPUShaderModule make_module(struct wg_device *dev, rlx_str source)
{
    const WGPUShaderSourceWGSL wgsl = {.chain.sType = WGPUSType_ShaderSourceWGSL,
                                       .code = wg_text(source.ptr, source.len)};
    const WGPUShaderModuleDescriptor module = {.nextInChain = (WGPUChainedStruct *)&wgsl};

    return dev->wg.DeviceCreateShaderModuleTrusted(dev->device, &module, 0);
}

static void make_pipeline(struct wg_device *dev, struct wg_pipeline *p, rlx_str source)
{
    WGPUShaderModule shader = make_module(dev, source);

    make_layout(dev, p);
    if (!shader || !p->layout)
        return;
    WGPUPipelineLayout layout = dev->wg.DeviceCreatePipelineLayout(
        dev->device,
        &(WGPUPipelineLayoutDescriptor){.bindGroupLayoutCount = 1, .bindGroupLayouts = &p->layout});
    if (layout) {
        p->handle = dev->wg.DeviceCreateComputePipeline(
            dev->device,
            &(WGPUComputePipelineDescriptor){
                .layout = layout, .compute = {.module = shader, .entryPoint = wg_text("main", 4)}});
        dev->wg.PipelineLayoutRelease(layout);
    }
    dev->wg.ShaderModuleRelease(shader);
}

/* ---- what the library thinks of it ---- */

struct verdict {
    bool came;
    WGPUErrorType type;
    char message[400];
};

static void on_popped(WGPUPopErrorScopeStatus status, WGPUErrorType type, WGPUStringView message,
                      void *verdict, void *unused)
{
    struct verdict *v = verdict;

    (void)unused;
    v->came = true;
    v->type = status == WGPUPopErrorScopeStatus_Success ? type : WGPUErrorType_Unknown;
    wg_copy_text(v->message, sizeof v->message, message);
}

static rlx_status judge(struct wg_device *dev, const char *key, struct diag *d)
{
    struct verdict v = {0};

    dev->wg.DevicePopErrorScope(
        dev->device, (WGPUPopErrorScopeCallbackInfo){.mode = WGPUCallbackMode_AllowProcessEvents,
                                                     .callback = on_popped,
                                                     .userdata1 = &v});
    while (!v.came && !dev->gpu.lost)
        wg_turn(dev, true);
    if (v.type == WGPUErrorType_NoError)
        return wg_check(dev, d);
    return diag_fail(d, v.type == WGPUErrorType_OutOfMemory ? RLX_ERROR_MEMORY : RLX_ERROR_INTERNAL,
                     "kernel %s: %s", key, v.message);
}

rlx_status wg_make_pipeline(struct wg_device *dev, rlx_str source, const char *key,
                            struct wg_pipeline *p, struct diag *d)
{
    dev->wg.DevicePushErrorScope(dev->device, WGPUErrorFilter_Validation);
    make_pipeline(dev, p, source);
    return judge(dev, key, d);
}

rlx_status wg_make_kernel(struct backend *b, const struct kir *k, const struct kc_emit *how,
                          const char *key, void **pipeline, struct diag *d)
{
    struct wg_device *dev = wg_device_of(b);
    struct wg_pipeline *p = mem_alloc(b->mem, sizeof *p);
    struct kc_emit mine = *how;
    struct text source;

    if (!p)
        return diag_no_memory(d, sizeof *p);
    mine.read_write = true;
    mine.plain_subgroups = dev->plain_subgroups;
    p->buffers = k->buffers;
    p->words = k->param_words + 1; /* a zero ends them */
    text_init(&source, b->mem);
    rlx_status s = kc_emit_wgsl(k, &mine, &source, d);
    if (s == RLX_OK)
        s = wg_make_pipeline(dev, (rlx_str){source.at, source.len}, key, p, d);
    text_free(&source);
    if (s != RLX_OK) {
        wg_drop_kernel(b, p);
        return s;
    }
    *pipeline = p;
    return RLX_OK;
}
