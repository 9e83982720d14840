/* wgpu_loader.c: the library that has WebGPU, opened at run time, and the adapters it knows. It
 * stays open until the process ends, as it has threads of its own. */
#include <dlfcn.h>
#include <stdio.h>

#include "backend/webgpu/webgpu.h"
#include "base/library.h"

/* The version that third_party/webgpu/webgpu.h is of, as wgpuGetVersion has it: the first two of
 * its four numbers. Structs and values change with them, and a call with the wrong ones may do
 * anything.
 */
#define VERSION 0x1d00

/* A build of the tree has a folder in its search path where tools/setup puts one. */
static const char *const names[] = {"libwgpu_native.so", "libwgpu_native.dylib"};

/* ---- the library ---- */

static rlx_status open_library(const char *said, void **out, struct diag *d)
{
    *out = *said ? library_open(&said, 1) : library_open(names, sizeof names / sizeof names[0]);
    if (!*out && *said)
        return diag_fail(d, RLX_ERROR_NO_DEVICE, "RLX_WEBGPU_LIB: %s", dlerror());
    if (!*out)
        return diag_fail(d, RLX_ERROR_NO_DEVICE,
                         "no WebGPU library (%s): in a checkout of rlx `tools/setup webgpu` gets "
                         "one; else set RLX_WEBGPU_LIB to that of the PyPI package wgpu",
                         names[0]);
    return RLX_OK;
}

static rlx_status check_version(void *library, struct wg_functions *wg, struct diag *d)
{
    if (!library_find(library, "wgpuGetVersion", &wg->GetVersion))
        return diag_fail(d, RLX_ERROR_NO_DEVICE,
                         "the WebGPU library does not say which version it is: rlx needs "
                         "wgpu-native %d.%d",
                         VERSION >> 8, VERSION & 255);
    uint32_t v = wg->GetVersion();
    if (v >> 16 != VERSION)
        return diag_fail(d, RLX_ERROR_NO_DEVICE,
                         "the WebGPU library is wgpu-native %u.%u.%u.%u, and rlx needs %d.%d",
                         v >> 24, v >> 16 & 255, v >> 8 & 255, v & 255, VERSION >> 8,
                         VERSION & 255);
    return RLX_OK;
}

rlx_status wg_load(struct wg_functions *wg, const struct flags *flags, struct diag *d)
{
    const char *lacks = NULL;
    void *library;

    TRY(open_library(flags ? flags->at[FLAG_WEBGPU_LIB].text : "", &library, d));
    TRY(check_version(library, wg, d));
#define WG_FUNCTION(name)                                \
    if (!library_find(library, "wgpu" #name, &wg->name)) \
        lacks = "wgpu" #name;
#define WG_NATIVE(name) WG_FUNCTION(name)
#include "backend/webgpu/wgpu_functions.def"
    if (lacks)
        return diag_fail(d, RLX_ERROR_NO_DEVICE, "the WebGPU library has no %s", lacks);
    return RLX_OK;
}

/* ---- adapters ---- */

struct answer {
    WGPUAdapter adapter;
    bool came;
};

static void on_adapter(WGPURequestAdapterStatus status, WGPUAdapter adapter, WGPUStringView message,
                       void *answer, void *unused)
{
    struct answer *a = answer;

    (void)message, (void)unused;
    a->adapter = status == WGPURequestAdapterStatus_Success ? adapter : NULL;
    a->came = true;
}

/* The one that the library prefers. */
static WGPUAdapter request_adapter(struct wg_device *dev)
{
    const WGPURequestAdapterOptions options = {.featureLevel = WGPUFeatureLevel_Core,
                                               .powerPreference =
                                                   WGPUPowerPreference_HighPerformance};
    struct answer a = {0};

    dev->wg.InstanceRequestAdapter(
        dev->instance, &options,
        (WGPURequestAdapterCallbackInfo){
            .mode = WGPUCallbackMode_AllowProcessEvents, .callback = on_adapter, .userdata1 = &a});
    while (!a.came)
        wg_turn(dev, true);
    return a.adapter;
}

/* OpenGL is left out: it lacks what kernels need. */
static int rank_of(struct wg_device *dev, WGPUAdapter adapter)
{
    WGPUAdapterInfo info = {0};
    int rank = 4;

    if (dev->wg.AdapterGetInfo(adapter, &info) != WGPUStatus_Success)
        return rank;
    if (info.backendType != WGPUBackendType_OpenGL && info.backendType != WGPUBackendType_OpenGLES)
        rank = info.adapterType == WGPUAdapterType_DiscreteGPU     ? 0
               : info.adapterType == WGPUAdapterType_IntegratedGPU ? 1
               : info.adapterType == WGPUAdapterType_Unknown       ? 2
                                                                   : 3;
    dev->wg.AdapterInfoFreeMembers(info);
    return rank;
}

uint32_t wg_adapters(struct wg_device *dev, WGPUAdapter out[WG_MOST_ADAPTERS])
{
    WGPUAdapter found[WG_MOST_ADAPTERS];
    uint32_t kept = 0;
    size_t count = dev->wg.InstanceEnumerateAdapters(dev->instance, NULL, NULL);

    if (count == 0 || count > WG_MOST_ADAPTERS) {
        out[0] = request_adapter(dev);
        return out[0] != NULL;
    }
    count = dev->wg.InstanceEnumerateAdapters(dev->instance, NULL, found);
    for (int rank = 0; rank < 5; rank++)
        for (size_t i = 0; i < count; i++) {
            if (!found[i] || rank_of(dev, found[i]) != rank)
                continue;
            if (rank < 4)
                out[kept++] = found[i];
            else
                dev->wg.AdapterRelease(found[i]);
            found[i] = NULL;
        }
    return kept;
}

static void describe(struct wg_device *dev, const WGPUAdapterInfo *info)
{
    static const char *const kinds[] = {"?",     "null",   "WebGPU", "D3D11",    "D3D12",
                                        "Metal", "Vulkan", "OpenGL", "OpenGL ES"};
    size_t kind = (size_t)info->backendType;
    char device[80], driver[48];

    wg_copy_text(device, sizeof device, info->device);
    wg_copy_text(driver, sizeof driver, info->description);
    snprintf(dev->gpu.name, sizeof dev->gpu.name, "%.50s (WebGPU on %s%s%.36s)", device,
             kind < sizeof kinds / sizeof kinds[0] ? kinds[kind] : kinds[0], *driver ? ", " : "",
             driver);
    dev->gpu.is_cpu = info->adapterType == WGPUAdapterType_CPU;
}

void wg_look_at(struct wg_device *dev)
{
    WGPUAdapterInfo info = {0};

    snprintf(dev->gpu.name, sizeof dev->gpu.name, "an adapter");
    if (dev->wg.AdapterGetInfo(dev->adapter, &info) == WGPUStatus_Success) {
        describe(dev, &info);
        dev->wg.AdapterInfoFreeMembers(info);
    }
    snprintf(dev->gpu.description, sizeof dev->gpu.description, "%s", dev->gpu.name);
}
