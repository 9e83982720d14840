/* registry.c: the backends there are, in the order "auto" prefers them. */
#include <stdio.h>

#include "backend/backend.h"
#include "base/str.h"

extern const struct backend_ops cpu_backend, null_backend, vulkan_backend;

#ifndef RLX_HAVE_VULKAN
/* In the place of one that this build is without: it can only say so. */
#define WITHOUT_VULKAN \
    "this rlx was built without vulkan/vulkan.h (Debian: libvulkan-dev); build it again with it"

static rlx_status absent_open(const struct device_desc *desc, struct backend **out, struct diag *d)
{
    (void)desc, (void)out;
    return diag_fail(d, RLX_ERROR_NO_DEVICE, WITHOUT_VULKAN);
}

static void absent_describe(const struct backend *b, struct target *out)
{
    (void)b;
    *out = (struct target){.backend = "vulkan", .alignment = 256};
    snprintf(out->description, sizeof out->description, WITHOUT_VULKAN);
}

static void absent_list(const struct device_desc *desc, device_row_fn each, void *user)
{
    (void)desc;
    each(user, "", NULL, WITHOUT_VULKAN);
}

const struct backend_ops vulkan_backend = {.abi = BACKEND_ABI,
                                           .name = "vulkan",
                                           .open = absent_open,
                                           .describe = absent_describe,
                                           .list = absent_list};
#endif

static const struct backend_ops *const backends[] = {&cpu_backend, &vulkan_backend, &null_backend};

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
