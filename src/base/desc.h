/* desc.h: structs that grow. Each begins with `uint32_t size`, which says how much of it its caller
 * knows: a caller may be older than this library, or newer (rlx/rlx.h, RLX_SIZED). */
#ifndef BASE_DESC_H
#define BASE_DESC_H

#include "base/diag.h"

/* What the caller's struct has goes into *own, which holds the defaults of the type; NULL: nothing
 * does. ARGUMENT, with the struct's name: its size was not set, or it has a field set that this
 * library does not know. */
rlx_status desc_read(void *own, size_t own_size, const void *theirs, const char *name,
                     struct diag *d);
/* As much of *own as the caller's struct has room for goes there. ARGUMENT as above, and for NULL.
 */
rlx_status info_write(const void *own, size_t own_size, void *theirs, const char *name,
                      struct diag *d);
/* Would info_write succeed? For calls that must not fail after they have done something. */
rlx_status info_check(const void *theirs, const char *name, struct diag *d);

#define DESC_READ(type, own, theirs, d) desc_read((type *){own}, sizeof(type), theirs, #type, d)
#define INFO_WRITE(type, own, theirs, d) \
    info_write((const type *){own}, sizeof(type), theirs, #type, d)
#define INFO_CHECK(type, theirs, d) info_check((const type *){theirs}, #type, d)

#endif
