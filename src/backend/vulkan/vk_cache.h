/* vk_cache.h: the file that pipelines are kept in. */
#ifndef BACKEND_VK_CACHE_H
#define BACKEND_VK_CACHE_H

#include "backend/vulkan/vulkan.h"

/* Whose pipelines they are: no other driver, and no other rlx, may have them. */
struct vk_cache_key {
    uint8_t uuid[VK_UUID_SIZE];
    uint32_t vendor, device, driver; /* driver: its version */
    uint32_t rlx_version;
};

/* The data of a file of that key; false: it is damaged, or another's. */
bool vk_cache_check(const struct vk_cache_key *key, const uint8_t *file, size_t size,
                    const uint8_t **data, size_t *bytes);
rlx_status vk_cache_write(const char *path, const struct vk_cache_key *key, const void *data,
                          size_t bytes, struct diag *d);

#endif
