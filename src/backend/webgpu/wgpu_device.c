/* wgpu_device.c: opening a device, what it says of itself, and what goes wrong with it. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backend/webgpu/webgpu.h"
#include "base/library.h"
#include "base/str.h"

#define TURN_NS 50000

/* ---- errors ---- */

void wg_copy_text(char *out, size_t size, WGPUStringView text)
{
    size_t len = !text.data ? 0 : text.length == WGPU_STRLEN ? strlen(text.data) : text.length;

    len = len < size ? len : size - 1;
    if (len)
        memcpy(out, text.data, len);
    out[len] = 0;
}

void wg_note_error(struct wg_device *dev, WGPUErrorType type, WGPUStringView text)
{
    pthread_mutex_lock(&dev->errors);
    if (!dev->error) {
        dev->error = type;
        wg_copy_text(dev->message, sizeof dev->message, text);
    }
    pthread_mutex_unlock(&dev->errors);
}

static void hear_error(WGPUDevice const *device, WGPUErrorType type, WGPUStringView message,
                       void *dev, void *unused)
{
    (void)device, (void)unused;
    wg_note_error(dev, type, message);
}

static void hear_loss(WGPUDevice const *device, WGPUDeviceLostReason reason, WGPUStringView message,
                      void *user, void *unused)
{
    struct wg_device *dev = user;

    (void)device, (void)unused;
    if (reason == WGPUDeviceLostReason_Destroyed ||
        reason == WGPUDeviceLostReason_CallbackCancelled)
        return; /* we closed it */
    wg_note_error(dev, WGPUErrorType_Unknown, message);
    dev->lost = true;
}

static rlx_status tell(WGPUErrorType type, const char *message, struct diag *d)
{
    if (type == WGPUErrorType_OutOfMemory)
        return diag_fail(d, RLX_ERROR_MEMORY, "the device has no more memory: %s", message);
    return diag_fail(d, RLX_ERROR_INTERNAL, "WebGPU: %s", message);
}

rlx_status wg_check(struct wg_device *dev, struct diag *d)
{
    char message[sizeof dev->message];

    if (dev->lost)
        return diag_fail(d, RLX_ERROR_DEVICE_LOST, "%s is lost: close it and open it again",
                         dev->name);
    pthread_mutex_lock(&dev->errors);
    WGPUErrorType type = dev->error;
    dev->error = (WGPUErrorType)0;
    memcpy(message, dev->message, sizeof message);
    pthread_mutex_unlock(&dev->errors);
    return type ? tell(type, message, d) : RLX_OK;
}

/* Nobody spins. wgpu-native blocks on the driver's fence until all that was submitted is done, and
 * calls back from there; its InstanceWaitAny, the standard's way, is not there yet and would end
 * the process. Before there is a device the thread sleeps for a moment between two looks. */
void wg_turn(struct wg_device *dev, bool wait)
{
    if (dev->device) {
        dev->wg.DevicePoll(dev->device, wait, NULL);
        return;
    }
    if (dev->instance)
        dev->wg.InstanceProcessEvents(dev->instance);
    if (wait)
        nanosleep(&(struct timespec){0, TURN_NS}, NULL);
}

/* ---- opening ---- */

static void read_options(const struct flags *f, struct wg_options *o)
{
    if (!f)
        return;
    o->no_cache = f->at[FLAG_GPU_NOCACHE].on;
    o->max_binding = (uint64_t)f->at[FLAG_GPU_MAX_BINDING].number;
    o->max_groups = (uint64_t)f->at[FLAG_GPU_MAX_GROUPS].number;
    o->max_memory = (uint64_t)f->at[FLAG_GPU_MAX_MEMORY].number;
    o->lose_after = (uint64_t)f->at[FLAG_GPU_LOSE_AFTER].number;
}

/* What wgpu-native adds to an instance's descriptor: which backends it may use, and more that is
 * left at 0. It reads all of it, so this is no shorter than its struct. */
struct instance_extras {
    WGPUChainedStruct chain;
    uint64_t backends;
    uint64_t others[16];
};
enum { INSTANCE_EXTRAS = 0x00030004, VULKAN_METAL_D3D12_BROWSER = 0x2d };

/* wgpu-native would start OpenGL too, which is of no use to us and talks to window systems. */
static WGPUInstance create_instance(const struct wg_device *dev)
{
    const struct instance_extras extras = {.chain.sType = (WGPUSType)INSTANCE_EXTRAS,
                                           .backends = VULKAN_METAL_D3D12_BROWSER};

    return dev->wg.CreateInstance(
        &(WGPUInstanceDescriptor){.nextInChain = (WGPUChainedStruct *)&extras.chain});
}

static rlx_status open_instance(struct wg_device *dev, const struct flags *flags, struct diag *d)
{
    TRY(wg_load(&dev->wg, flags, d));
    dev->instance = create_instance(dev);
    library_keep(LIBRARY_OF_VULKAN);
    if (!dev->instance)
        return diag_fail(d, RLX_ERROR_NO_DEVICE, "the WebGPU library could not be started");
    return RLX_OK;
}

static rlx_status no_adapter(struct diag *d)
{
    return diag_fail(d, RLX_ERROR_NO_DEVICE,
                     "the WebGPU library finds no device: it needs a driver of Vulkan (Debian's "
                     "mesa-vulkan-drivers has one for the CPU), Metal or D3D12");
}

static rlx_status choose_adapter(struct wg_device *dev, rlx_str variant, struct diag *d)
{
    WGPUAdapter found[WG_MOST_ADAPTERS];
    int64_t wanted = 0;

    if (variant.len && (!str_to_i64(variant, &wanted) || wanted < 0))
        return diag_fail(d, RLX_ERROR_NO_DEVICE,
                         "\"webgpu:%.*s\": a number stands behind the colon", STR_ARG(variant));
    uint32_t count = wg_adapters(dev, found);
    for (uint32_t i = 0; i < count; i++)
        if (i == wanted)
            dev->adapter = found[i];
        else
            dev->wg.AdapterRelease(found[i]);
    if (dev->adapter)
        return RLX_OK;
    if (count == 0)
        return no_adapter(d);
    return diag_fail(d, RLX_ERROR_NO_DEVICE,
                     "there are %u WebGPU devices, from webgpu:0 on, and no number %lld", count,
                     (long long)wanted);
}

struct answer {
    WGPUDevice device;
    bool came;
    char message[200];
};

static void hear_device(WGPURequestDeviceStatus status, WGPUDevice device, WGPUStringView message,
                        void *answer, void *unused)
{
    struct answer *a = answer;

    (void)unused;
    a->device = status == WGPURequestDeviceStatus_Success ? device : NULL;
    wg_copy_text(a->message, sizeof a->message, message);
    a->came = true;
}

static rlx_status make_device(struct wg_device *dev, const struct wg_wish *wish, struct diag *d)
{
    struct answer a = {0};

    const WGPUDeviceDescriptor desc = {
        .requiredFeatureCount = wish->features,
        .requiredFeatures = wish->feature,
        .requiredLimits = &wish->limits,
        .deviceLostCallbackInfo = {.mode = WGPUCallbackMode_AllowSpontaneous,
                                   .callback = hear_loss,
                                   .userdata1 = dev},
        .uncapturedErrorCallbackInfo = {.callback = hear_error, .userdata1 = dev}};
    dev->wg.AdapterRequestDevice(
        dev->adapter, &desc,
        (WGPURequestDeviceCallbackInfo){
            .mode = WGPUCallbackMode_AllowProcessEvents, .callback = hear_device, .userdata1 = &a});
    while (!a.came)
        wg_turn(dev, true);
    if (!a.device)
        return diag_fail(d, RLX_ERROR_NO_DEVICE, "%s cannot be opened: %s", dev->name, a.message);
    dev->device = a.device;
    dev->queue = dev->wg.DeviceGetQueue(dev->device);
    return RLX_OK;
}

static rlx_status open_all(struct wg_device *dev, const struct device_desc *desc, struct diag *d)
{
    struct wg_wish wish;

    TRY(open_instance(dev, desc->flags, d));
    TRY(choose_adapter(dev, desc->variant, d));
    wg_look_at(dev);
    TRY(wg_choose(dev, desc->flags, &wish, d));
    dev->programs.no_times = !dev->timestamps;
    TRY(make_device(dev, &wish, d));
    TRY(wg_make_buffer(dev, WG_FOR_WORK, GPU_BINDINGS * GPU_ALIGN, &dev->nothing, d));
    wg_try(dev);
    dev->kernels.target = (struct gpu_target){.backend = &dev->base,
                                              .features = dev->features,
                                              .max_groups = dev->max_groups,
                                              .max_binding = dev->max_binding,
                                              .max_bindings = dev->max_bindings};
    TRY(gpu_kernels_open(&dev->kernels, &wg_pipelines, d));
    return wg_check(dev, d);
}

static void close_instance(struct wg_device *dev)
{
    if (dev->queue)
        dev->wg.QueueRelease(dev->queue);
    if (dev->device)
        dev->wg.DeviceRelease(dev->device);
    if (dev->adapter)
        dev->wg.AdapterRelease(dev->adapter);
    if (dev->instance)
        dev->wg.InstanceRelease(dev->instance);
}

static void wg_close(struct backend *b)
{
    struct wg_device *dev = wg_device_of(b);
    struct diag quiet;

    diag_init(&quiet, "close");
    if (dev->device) {
        wg_await(dev, dev->tickets, &quiet);
        gpu_drop_programs(&dev->programs);
        vec_free(dev->base.mem, &dev->words);
        gpu_kernels_close(&dev->kernels);
        wg_close_readback(dev);
        wg_close_transfers(dev);
        wg_drop_buffer(dev, &dev->nothing);
    }
    close_instance(dev);
    pthread_mutex_destroy(&dev->lock);
    pthread_mutex_destroy(&dev->errors);
    mem_free(b->mem, dev, sizeof *dev);
}

static rlx_status wg_open(const struct device_desc *desc, struct backend **out, struct diag *d)
{
    struct wg_device *dev = mem_alloc(desc->mem, sizeof *dev);

    if (!dev)
        return diag_no_memory(d, sizeof *dev);
    dev->base = (struct backend){&webgpu_backend, desc->mem};
    read_options(desc->flags, &dev->options);
    if (pthread_mutex_init(&dev->lock, NULL) != 0) {
        mem_free(desc->mem, dev, sizeof *dev);
        return diag_fail(d, RLX_ERROR_MEMORY, "no lock could be made");
    }
    if (pthread_mutex_init(&dev->errors, NULL) != 0) {
        pthread_mutex_destroy(&dev->lock);
        mem_free(desc->mem, dev, sizeof *dev);
        return diag_fail(d, RLX_ERROR_MEMORY, "no lock could be made");
    }
    dev->programs = (struct gpu_programs){.backend = &dev->base,
                                          .queue = &wg_programs_queue,
                                          .lock = &dev->lock,
                                          .lost = &dev->lost,
                                          .lose_after = dev->options.lose_after,
                                          .no_cache = dev->options.no_cache};
    rlx_status s = open_all(dev, desc, d);
    if (s != RLX_OK) {
        wg_close(&dev->base);
        return s;
    }
    *out = &dev->base;
    return RLX_OK;
}

rlx_status wg_count_adapters(const struct device_desc *desc, uint32_t *count, struct diag *d)
{
    struct wg_device dev = {.base.mem = desc->mem};
    WGPUAdapter found[WG_MOST_ADAPTERS];

    rlx_status s = open_instance(&dev, desc->flags, d);
    if (s == RLX_OK) {
        *count = wg_adapters(&dev, found);
        for (uint32_t i = 0; i < *count; i++)
            dev.wg.AdapterRelease(found[i]);
        s = *count ? RLX_OK : no_adapter(d);
    }
    close_instance(&dev);
    return s;
}

/* ---- the table ---- */

static void wg_describe(const struct backend *b, struct target *out)
{
    *out =
        (struct target){.backend = "webgpu", .alignment = GPU_ALIGN, .least_alignment = GPU_ALIGN};
    gpu_describe(out);
    if (b)
        wg_describe_device((const struct wg_device *)b, out);
}

static rlx_status wg_select(struct backend *b, struct select_call *c)
{
    return gpu_select(&wg_device_of(b)->kernels.target, c);
}

static bool wg_joins(struct backend *b, enum joint kind, const struct ir_graph *g, ir_value v)
{
    return gpu_joins(&wg_device_of(b)->kernels.target, kind, g, v);
}

static rlx_status wg_load_step(struct backend *b, struct command *c, struct diag *d)
{
    return gpu_load(&wg_device_of(b)->kernels.target, c, d);
}

static rlx_status wg_prepare(struct backend *b, struct command *c, struct diag *d)
{
    TRY(gpu_prepare(&wg_device_of(b)->kernels.target, c, d));
    return wg_prepare_launches(wg_device_of(b), c, d);
}

static rlx_status wg_pack(struct backend *b, struct command *c, int32_t operand, struct span source,
                          struct diag *d)
{
    (void)operand;
    return gpu_pack(&wg_device_of(b)->kernels, c, source, d);
}

static struct gpu_kernels *wg_gpu(struct backend *b)
{
    return &wg_device_of(b)->kernels;
}

const struct backend_ops webgpu_backend = {
    .abi = BACKEND_ABI,
    .name = "webgpu",
    .open = wg_open,
    .close = wg_close,
    .describe = wg_describe,
    .alloc = wg_alloc,
    .release = wg_release,
    .write = wg_write,
    .read = wg_read,
    .copy = wg_copy,
    .fill = wg_fill,
    .fetch = wg_fetch,
    .select = wg_select,
    .joins = wg_joins,
    .load = wg_load_step,
    .prepare = wg_prepare,
    .pack = wg_pack,
    .unload = wg_unload,
    .submit = wg_submit,
    .poll = wg_poll,
    .wait = wg_wait,
    .gpu = wg_gpu,
    .list = wg_list,
};
