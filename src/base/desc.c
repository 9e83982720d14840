/* desc.c: reading and writing structs that callers say the size of (desc.h). */
#include "base/desc.h"

#include <string.h>

enum { SIZE_MOST = 1 << 16 }; /* no struct is nearly as large: its size was never set */

static rlx_status size_of(const void *theirs, const char *name, uint32_t *out, struct diag *d)
{
    memcpy(out, theirs, sizeof *out);
    if (*out >= sizeof *out && *out <= SIZE_MOST)
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_ARGUMENT,
                     "%s.size is %u: begin the struct with {RLX_SIZED(%s)}, or set size to what "
                     "it takes",
                     name, *out, name);
}

rlx_status desc_read(void *own, size_t own_size, const void *theirs, const char *name,
                     struct diag *d)
{
    const uint32_t known = (uint32_t)own_size;
    uint32_t size;

    if (!theirs)
        return RLX_OK;
    TRY(size_of(theirs, name, &size, d));
    for (uint32_t i = known; i < size; i++)
        if (((const unsigned char *)theirs)[i])
            return diag_fail(
                d, RLX_ERROR_ARGUMENT,
                "%s is newer than this library: it has %u bytes, of which %u are known "
                "here, and byte %u is set",
                name, size, known, i);
    memcpy(own, theirs, size < known ? size : known);
    memcpy(own, &known, sizeof known);
    return RLX_OK;
}

rlx_status info_check(const void *theirs, const char *name, struct diag *d)
{
    uint32_t size;

    if (!theirs)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "out, a %s, is NULL", name);
    return size_of(theirs, name, &size, d);
}

rlx_status info_write(const void *own, size_t own_size, void *theirs, const char *name,
                      struct diag *d)
{
    uint32_t size;

    TRY(info_check(theirs, name, d));
    memcpy(&size, theirs, sizeof size);
    memcpy(theirs, own, size < own_size ? size : own_size);
    memcpy(theirs, &size, sizeof size);
    return RLX_OK;
}
