/* registry.c: the backends there are, in the order "auto" prefers them. */
#include <stdio.h>

#include "backend/backend.h"
#include "base/str.h"

extern const struct backend_ops cpu_backend, null_backend, vulkan_backend, webgpu_backend;

/* In the place of one that this build is without: it can only say so. */
#define ABSENT(kind, why)                                                                          \
    static rlx_status kind##_absent_open(const struct device_desc *desc, struct backend **out,     \
                                         struct diag *d)                                           \
    {                                                                                              \
        (void)desc, (void)out;                                                                     \
        return diag_fail(d, RLX_ERROR_NO_DEVICE, why);                                             \
    }                                                                                              \
    static void kind##_absent_describe(const struct backend *b, struct target *out)                \
    {                                                                                              \
        (void)b;                                                                                   \
        *out = (struct target){.backend = #kind, .alignment = 256};                                \
        snprintf(out->description, sizeof out->description, why);                                  \
    }                                                                                              \
    static void kind##_absent_list(const struct device_desc *desc, device_row_fn each, void *user) \
    {                                                                                              \
        (void)desc;                                                                                \
        each(user, "", NULL, why);                                                                 \
    }                                                                                              \
    const struct backend_ops kind##_backend = {.abi = BACKEND_ABI,                                 \
                                               .name = #kind,                                      \
                                               .open = kind##_absent_open,                         \
                                               .describe = kind##_absent_describe,                 \
                                               .list = kind##_absent_list};

#ifndef RLX_HAVE_VULKAN
ABSENT(vulkan,
       "this rlx was built without vulkan/vulkan.h (Debian: libvulkan-dev); build it again with it")
#endif
#ifndef RLX_HAVE_WEBGPU
ABSENT(webgpu,
       "this rlx was built without webgpu.h (the PyPI package wgpu has it, and `tools/setup "
       "test` gets that); build it again with it")
#endif

static const struct backend_ops *const backends[] = {&cpu_backend, &vulkan_backend, &webgpu_backend,
                                                     &null_backend};

const struct backend_ops *backend_at(size_t i)
{
    return i < sizeof backends / sizeof backends[0] ? backends[i] : NULL;
}

const struct backend_ops *backend_find(rlx_str name)
{
    for (size_t i = 0; backend_at(i); i++)
        if (str_eq(name, rlx_cstr(backends[i]->name)))
            return backends[i];
    return NULL;
}
