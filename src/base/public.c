/* public.c: the parts of rlx/rlx.h that need nothing but the tables in it. */
#include <string.h>

#include "rlx/graph.h"

uint32_t rlx_version(void)
{
    return RLX_VERSION;
}

rlx_str rlx_cstr(const char *s)
{
    return s ? (rlx_str){s, strlen(s)} : (rlx_str){NULL, 0};
}

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
#define X(name, number, bytes, cls, text) [number] = {#name, bytes},
    RLX_DTYPE_MAP(X)
#undef X
};

const char *rlx_dtype_name(rlx_dtype d)
{
    return (unsigned)d < RLX_DTYPE_count ? dtypes[d].name : "?";
}

size_t rlx_dtype_size(rlx_dtype d)
{
    return (unsigned)d < RLX_DTYPE_count ? dtypes[d].bytes : 0;
}

rlx_list rlx_list_of(int32_t count, const int64_t *at)
{
    rlx_list l = {0};

    l.count = count < 0 || !at ? 0 : count > RLX_MAX_RANK ? RLX_MAX_RANK : count;
    if (l.count)
        memcpy(l.at, at, (size_t)l.count * sizeof *at);
    return l;
}
