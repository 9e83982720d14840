/* registry.c: the backends there are, in the order "auto" prefers them. */
#include "backend/backend.h"
#include "base/str.h"

extern const struct backend_ops cpu_backend, null_backend, vulkan_backend, webgpu_backend;

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
