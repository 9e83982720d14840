/* vk_cache.c: compiled pipelines on disk, so that the next process need not wait for the driver.
 *
 *     <folder>/vulkan-<uuid>-<driver>-<version>.bin    header, then what the driver gave us
 *
 * The folder is RLX_GPU_CACHE, the context's cache_dir, or rlx in the user's cache folder. A file
 * appears in one step, and is read as warily as any: the driver gets only what it once gave, from a
 * folder that nobody else can write to. */
#include "backend/vulkan/vk_cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/str.h"

#define MAGIC UINT64_C(0x3145504950584c52) /* "RLXPIPE1" */
#define MOST_PATH 1024

struct header {
    uint64_t magic;
    struct vk_cache_key key;
    uint64_t bytes, hash;
};
_Static_assert(sizeof(struct header) == 56, "no byte of it is left to chance");

/* ---- the file ---- */

/* The same in every process. */
static uint64_t hash_of(const void *data, size_t bytes)
{
    static const uint64_t key[2] = {MAGIC, 0};

    return hash_bytes_keyed(key, data, bytes);
}

bool vk_cache_check(const struct vk_cache_key *key, const uint8_t *file, size_t size,
                    const uint8_t **data, size_t *bytes)
{
    struct header h;

    if (size < sizeof h)
        return false;
    memcpy(&h, file, sizeof h);
    if (h.magic != MAGIC || memcmp(&h.key, key, sizeof *key) != 0 || h.bytes != size - sizeof h ||
        h.hash != hash_of(file + sizeof h, size - sizeof h))
        return false;
    *data = file + sizeof h;
    *bytes = size - sizeof h;
    return true;
}

static rlx_status add_all(struct file_writer *w, const struct header *h, const void *data,
                          struct diag *d)
{
    TRY(file_add(w, h, sizeof *h, d));
    TRY(file_add(w, data, (size_t)h->bytes, d));
    return file_commit(w, d);
}

rlx_status vk_cache_write(const char *path, const struct vk_cache_key *key, const void *data,
                          size_t bytes, struct diag *d)
{
    const struct header h = {MAGIC, *key, bytes, hash_of(data, bytes)};
    struct file_writer w;

    TRY(file_begin(&w, path, FILE_PRIVATE, d));
    rlx_status s = add_all(&w, &h, data, d);
    file_abandon(&w);
    return s;
}

/* ---- where it is ---- */

/* The user's cache folder, made if it is not there; false: there is none. */
static bool user_folder(char *out, size_t size)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int len;

    if (cache && cache[0] == '/')
        len = snprintf(out, size, "%s", cache);
    else if (home && home[0] == '/')
        len = snprintf(out, size, "%s/.cache", home);
    else
        return false;
    if (len < 0 || (size_t)len + sizeof "/rlx" > size)
        return false;
    mkdir(out, 0700);
    memcpy(out + len, "/rlx", sizeof "/rlx");
    return true;
}

static bool choose_folder(const struct device_desc *desc, char *out, size_t size)
{
    const char *said = desc->flags ? desc->flags->at[FLAG_GPU_CACHE].text : "";

    if (!*said)
        said = desc->cache_dir ? desc->cache_dir : "";
    else if (!flag_text_is_on(rlx_cstr(said)))
        return false;
    if (!*said)
        return user_folder(out, size);
    int len = snprintf(out, size, "%s", said);
    return len > 0 && (size_t)len < size;
}

static struct vk_cache_key key_of(const struct vk_device *dev)
{
    struct vk_cache_key key = {.vendor = dev->properties.vendorID,
                               .device = dev->properties.deviceID,
                               .driver = dev->properties.driverVersion,
                               .rlx_version = RLX_VERSION};

    memcpy(key.uuid, dev->uuid, sizeof key.uuid);
    return key;
}

void vk_cache_choose(struct vk_device *dev, const struct device_desc *desc)
{
    char path[MOST_PATH], uuid[2 * VK_UUID_SIZE + 1], folder[MOST_PATH - 128];

    if (!choose_folder(desc, folder, sizeof folder))
        return;
    for (size_t i = 0; i < VK_UUID_SIZE; i++)
        snprintf(uuid + 2 * i, 3, "%02x", dev->uuid[i]);
    int len = snprintf(path, sizeof path, "%s/vulkan-%s-%08x-%d.bin", folder, uuid,
                       dev->properties.driverVersion, RLX_VERSION);
    dev->cache_path = mem_alloc(dev->gpu.base.mem, (size_t)len + 1);
    if (dev->cache_path)
        memcpy(dev->cache_path, path, (size_t)len + 1);
}

void vk_cache_forget(struct vk_device *dev)
{
    if (dev->cache_path)
        mem_free(dev->gpu.base.mem, dev->cache_path, strlen(dev->cache_path) + 1);
    dev->cache_path = NULL;
}

/* ---- loading and saving ---- */

static bool create(struct vk_device *dev, const void *data, size_t bytes)
{
    const VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                            .initialDataSize = bytes,
                                            .pInitialData = data};

    return dev->vk.CreatePipelineCache(dev->device, &info, NULL, &dev->cache) == VK_SUCCESS;
}

void vk_cache_load(struct vk_device *dev)
{
    const struct vk_cache_key key = key_of(dev);
    const uint8_t *data = NULL;
    size_t bytes = 0;
    struct file f = {0};
    struct diag d;

    diag_init(&d, "cache");
    if (dev->cache_path && access(dev->cache_path, F_OK) == 0) {
        if (file_open_own(&f, dev->cache_path, FILE_READ, dev->gpu.base.mem, &d) != RLX_OK)
            gpu_log(&dev->gpu, 1, "vulkan: pipelines not read: %s", d.first.message);
        else if (!vk_cache_check(&key, f.data, f.size, &data, &bytes))
            gpu_log(&dev->gpu, 1, "vulkan: %s is damaged or of another device; it is not used",
                    dev->cache_path);
        else
            dev->cache_hash = hash_of(data, bytes);
    }
    if (!create(dev, data, bytes) && !create(dev, NULL, 0))
        dev->cache = VK_NULL_HANDLE; /* it works without */
    file_close(&f);
}

/* The folder is made when there is something to put into it. */
static void make_folder(const char *path)
{
    char folder[MOST_PATH];
    const char *slash = strrchr(path, '/');

    if (slash && slash > path && (size_t)(slash - path) < sizeof folder) {
        memcpy(folder, path, (size_t)(slash - path));
        folder[slash - path] = 0;
        mkdir(folder, 0700);
    }
}

void vk_cache_save(struct vk_device *dev)
{
    const struct vk_cache_key key = key_of(dev);
    size_t bytes = 0, room;
    struct diag d;

    diag_init(&d, "cache");
    if (!dev->cache_path || !dev->cache || !dev->built || dev->gpu.lost ||
        dev->vk.GetPipelineCacheData(dev->device, dev->cache, &bytes, NULL) < 0 || !bytes)
        return;
    room = bytes;
    void *data = mem_alloc(dev->gpu.base.mem, room);
    if (!data)
        return;
    if (dev->vk.GetPipelineCacheData(dev->device, dev->cache, &bytes, data) == VK_SUCCESS &&
        hash_of(data, bytes) != dev->cache_hash) {
        make_folder(dev->cache_path);
        if (file_check_own_folder(dev->cache_path, &d) != RLX_OK ||
            vk_cache_write(dev->cache_path, &key, data, bytes, &d) != RLX_OK)
            gpu_log(&dev->gpu, 1, "vulkan: pipelines are not kept: %s", d.first.message);
    }
    mem_free(dev->gpu.base.mem, data, room);
}
