/* gpu_features.c: what RLX_GPU_WITHOUT says not to use of a device, so that tests can see kernels
 * do without it. */
#include <stddef.h>
#include <string.h>

#include "backend/gpu/gpu_driver.h"
#include "base/str.h"

static const struct {
    const char *name;
    size_t at; /* in struct kc_features */
} features[] = {
    {"f16", offsetof(struct kc_features, f16)},
    {"subgroups", offsetof(struct kc_features, subgroups)},
    {"dot8", offsetof(struct kc_features, dot8)},
    {"fma", offsetof(struct kc_features, fma)},
    {"storage16", offsetof(struct kc_features, storage16)},
    {"storage8", offsetof(struct kc_features, storage8)},
};

static bool disable_feature(rlx_str name, struct kc_features *f)
{
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++)
        if (str_eq(name, rlx_cstr(features[i].name))) {
            *(bool *)((char *)f + features[i].at) = false;
            return true;
        }
    return false;
}

rlx_status gpu_disable_features(const struct flags *flags, struct kc_features *f, bool *clock,
                                struct diag *d)
{
    rlx_str rest = rlx_cstr(flags ? flags->at[FLAG_GPU_WITHOUT].text : "");

    while (rest.len) {
        const char *comma = memchr(rest.ptr, ',', rest.len);
        rlx_str name = {rest.ptr, comma ? (size_t)(comma - rest.ptr) : rest.len};
        if (str_eq(name, STR("timestamps")))
            *clock = false;
        else if (!disable_feature(name, f))
            return diag_fail(d, RLX_ERROR_ARGUMENT,
                             "RLX_GPU_WITHOUT: \"%.*s\" is none of f16, subgroups, dot8, fma, "
                             "storage16, storage8, timestamps",
                             STR_ARG(name));
        rest.ptr += name.len + (comma != NULL);
        rest.len -= name.len + (comma != NULL);
    }
    return RLX_OK;
}
