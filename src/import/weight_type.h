/* weight_type.h: the element types of files, as a table. */
#ifndef IMPORT_WEIGHT_TYPE_H
#define IMPORT_WEIGHT_TYPE_H

#include "rlx/weights.h"

struct weight_type {
    const char *name;
    int32_t elems, bytes;    /* of a block; of most types, one element */
    int32_t gguf;            /* its id there; -1: GGUF has none */
    const char *safetensors; /* its name there, or "" */
    const char *npy;         /* its code there, or "" */
    rlx_weight_use use;
    rlx_dtype dtype;         /* PLAIN: of its elements; otherwise u8 */
    rlx_quant_scheme scheme; /* PACKED */
};

const struct weight_type *weight_type(rlx_weight_type t); /* t is one there is */

/* false: there is none. */
bool weight_type_of_gguf(uint32_t id, rlx_weight_type *out);
bool weight_type_of_safetensors(rlx_str name, rlx_weight_type *out);
bool weight_type_of_dtype(rlx_dtype d, rlx_weight_type *out);

/* Elements and bytes of those dims: false where they overflow 62 bits, or are not a whole number of
 * blocks. Whether each row is one is for the format to ask. */
bool weight_bytes(rlx_weight_type t, const int64_t *dim, int32_t rank, uint64_t *elements,
                  uint64_t *bytes);

#endif
