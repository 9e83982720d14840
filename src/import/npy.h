/* npy.h: NumPy's array files, read and written. */
#ifndef IMPORT_NPY_H
#define IMPORT_NPY_H

#include "base/arena.h"
#include "base/str.h"
#include "ir/type.h"

/* What a header says about the data after it. */
struct npy_layout {
    struct ir_type type;
    bool columns;  /* the first axis is the fastest */
    bool swap;     /* bytes of each element are in the other order */
    size_t data;   /* where it begins */
    uint64_t need; /* bytes of it */
};
/* bytes: a file, or as much of it as holds the header. The data may be missing. */
rlx_status npy_parse(const uint8_t *bytes, size_t size, const rlx_allocator *mem,
                     struct npy_layout *out, struct diag *d);
/* l->need bytes, as the file has them, in row-major little-endian order. They do not overlap. */
void npy_arrange(const struct npy_layout *l, const uint8_t *data, uint8_t *out);

/* bytes: a whole file. The elements are copied into the arena, in row-major little-endian order. */
rlx_status npy_read(const uint8_t *bytes, size_t size, struct arena *arena, struct ir_type *type,
                    const void **data, struct diag *d);
/* The header for elements of that type; the data follows it. Types NumPy lacks (bf16) fail. */
rlx_status npy_header(const struct ir_type *type, struct text *out, struct diag *d);

#endif
