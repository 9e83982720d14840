/* wgpu_device.c: opening a device, what it says of itself, and what goes wrong with it. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backend/webgpu/webgpu.h"
#include "base/library.h"

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

static void on_error(WGPUDevice const *device, WGPUErrorType type, WGPUStringView message,
                     void *dev, void *unused)
{
    (void)device, (void)unused;
    wg_note_error(dev, type, message);
}

static void on_loss(WGPUDevice const *device, WGPUDeviceLostReason reason, WGPUStringView message,
                    void *user, void *unused)
{
    struct wg_device *dev = user;

    (void)device, (void)unused;
    if (reason == WGPUDeviceLostReason_Destroyed ||
        reason == WGPUDeviceLostReason_CallbackCancelled)
        return; /* we closed it */
    wg_note_error(dev, WGPUErrorType_Unknown, message);
    dev->gpu.lost = true;
}

static rlx_status fail_with(WGPUErrorType type, const char *message, struct diag *d)
{
    if (type == WGPUErrorType_OutOfMemory)
        return diag_fail(d, RLX_ERROR_MEMORY, "the device has no more memory: %s", message);
    return diag_fail(d, RLX_ERROR_INTERNAL, "WebGPU: %s", message);
}

rlx_status wg_check(struct wg_device *dev, struct diag *d)
{
    char message[sizeof dev->message];

    TRY(gpu_check(&dev->gpu, d));
    pthread_mutex_lock(&dev->errors);
    WGPUErrorType type = dev->error;
    dev->error = (WGPUErrorType)0;
    memcpy(message, dev->message, sizeof message);
    pthread_mutex_unlock(&dev->errors);
    return type ? fail_with(type, message, d) : RLX_OK;
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

/* What wgpu-native adds to an instance's descriptor: which backends it may use, and more that is
 * left at 0. It reads all of it, so this must not be shorter than its struct. */
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
    uint32_t count = wg_adapters(dev, found), at = 0;

    rlx_status s = count ? gpu_choose("webgpu", variant, count, &at, d) : no_adapter(d);
    for (uint32_t i = 0; i < count; i++)
        if (s == RLX_OK && i == at)
            dev->adapter = found[i];
        else
            dev->wg.AdapterRelease(found[i]);
    return s;
}

struct answer {
    WGPUDevice device;
    bool came;
    char message[200];
};

static void on_device(WGPURequestDeviceStatus status, WGPUDevice device, WGPUStringView message,
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
                                   .callback = on_loss,
                                   .userdata1 = dev},
        .uncapturedErrorCallbackInfo = {.callback = on_error, .userdata1 = dev}};
    dev->wg.AdapterRequestDevice(
        dev->adapter, &desc,
        (WGPURequestDeviceCallbackInfo){
            .mode = WGPUCallbackMode_AllowProcessEvents, .callback = on_device, .userdata1 = &a});
    while (!a.came)
        wg_turn(dev, true);
    if (!a.device)
        return diag_fail(d, RLX_ERROR_NO_DEVICE, "%s cannot be opened: %s", dev->gpu.name,
                         a.message);
    dev->device = a.device;
    dev->queue = dev->wg.DeviceGetQueue(dev->device);
    return RLX_OK;
}

static rlx_status wg_open(struct gpu_device *g, const struct device_desc *desc, struct diag *d)
{
    struct wg_device *dev = wg_of(g);
    struct wg_wish wish;

    if (pthread_mutex_init(&dev->errors, NULL) != 0)
        return diag_fail(d, RLX_ERROR_MEMORY, "no lock could be made");
    dev->has_errors = true;
    TRY(open_instance(dev, desc->flags, d));
    TRY(choose_adapter(dev, desc->variant, d));
    wg_look_at(dev);
    TRY(wg_choose(dev, desc->flags, &wish, d));
    TRY(make_device(dev, &wish, d));
    wg_try(dev);
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

static void wg_close(struct gpu_device *g)
{
    struct wg_device *dev = wg_of(g);

    if (dev->device) {
        wg_close_readback(dev);
        wg_close_transfers(dev);
    }
    close_instance(dev);
    if (dev->has_errors)
        pthread_mutex_destroy(&dev->errors);
}

rlx_status wg_count_adapters(const struct device_desc *desc, uint32_t *count, struct diag *d)
{
    struct wg_device dev = {.gpu.base.mem = desc->mem};
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

/* ---- the tables ---- */

static rlx_status check(struct gpu_device *g, struct diag *d)
{
    return wg_check(wg_of(g), d);
}

static const struct gpu_driver driver = {
    .device_bytes = sizeof(struct wg_device),
    .recording_bytes = sizeof(struct wg_recording),
    .spare_words = 1, /* a zero ends them */
    .apart = true,
    .zeroes = true,
    .transfers = &wg_transfers,
    .pipelines = {wg_make_kernel, wg_drop_kernel},
    .open = wg_open,
    .close = wg_close,
    .check = check,
    .make_buffer = wg_make_buffer,
    .drop_buffer = wg_drop_buffer,
    .submit = wg_submit,
    .done = wg_done,
    .wait = wg_wait,
    .turn = wg_look,
    .reserve = wg_reserve,
    .prepare = wg_prepare,
    .launch = wg_launch_one,
    .read_times = wg_read_times,
    .drop = wg_drop_recording,
};

static rlx_status open_webgpu(const struct device_desc *desc, struct backend **out, struct diag *d)
{
    return gpu_open(&driver, &webgpu_backend, desc, out, d);
}

const struct backend_ops webgpu_backend = {
    .name = "webgpu",
    .open = open_webgpu,
    .describe = wg_describe,
    .fetch = gpu_fetch,
    .list = wg_list,
    GPU_BACKEND_OPS,
};
