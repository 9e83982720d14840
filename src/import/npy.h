/* npy.h: NumPy's array files, read and written. */
#ifndef IMPORT_NPY_H
#define IMPORT_NPY_H

#include "base/arena.h"
#include "base/str.h"
#include "ir/type.h"

/* bytes: a whole file. The elements are copied into the arena, in row-major little-endian order. */
rlx_status npy_read(const uint8_t *bytes, size_t size, struct arena *arena, struct ir_type *type,
                    const void **data, struct diag *d);
/* The header for elements of that type; the data follows it. Types NumPy lacks (bf16) fail. */
rlx_status npy_header(const struct ir_type *type, struct text *out, struct diag *d);

#endif
