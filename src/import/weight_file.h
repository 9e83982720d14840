/* weight_file.h: a file of tensors, read: what GGUF, safetensors, npy and npz have in common.
 *
 *     struct weights   files it is made of, kept open
 *       struct weight  a name, a type, a shape, and where the bytes are
 *       rlx_meta       a key and a value, copied into the arena
 *
 * A reader takes a whole file as bytes and adds what it finds; after a failure some of it may have
 * been added, and the caller discards everything. */
#ifndef IMPORT_WEIGHT_FILE_H
#define IMPORT_WEIGHT_FILE_H

#include "base/arena.h"
#include "base/file.h"
#include "base/map.h"
#include "import/weight_type.h"

/* What has to be done to the bytes before they are the tensor. */
struct weight_recipe {
    bool check;      /* compare the crc first: of a member of an archive */
    bool deflated;   /* inflate them first */
    uint64_t packed; /* bytes, as they are deflated */
    uint64_t whole;  /* bytes of the member, which begins with an npy header */
    uint64_t skip;   /* bytes of that header */
    uint32_t crc;    /* of the whole */
    bool swap;       /* the bytes of each element */
    bool columns;    /* the first axis is the fastest */
};

struct weight {
    rlx_str name;
    rlx_weight_type type;
    int32_t rank;
    int64_t dim[RLX_WEIGHT_MAX_RANK];
    uint64_t bytes;
    const uint8_t *at;           /* in the file; deflated: the stream, otherwise the data */
    struct weight_recipe recipe; /* zeros: they are the tensor */
    const uint8_t *made;         /* that, once it was done; under the lock of whoever opened the
                                  * file */
};

struct weights {
    const rlx_allocator *mem;
    struct arena arena;
    rlx_file_kind kind;
    uint32_t version;
    uint64_t alignment;
    VEC(struct file) file;
    VEC(struct weight) tensor;
    VEC(rlx_meta) meta;
    struct map tensor_by_name, meta_by_key;
};

void weights_init(struct weights *w, const rlx_allocator *mem);
void weights_free(struct weights *w);

/* Reads a file of any kind that has tensors. name: what the tensor of an npy file is called. */
rlx_status weights_read(struct weights *w, const uint8_t *bytes, size_t size, rlx_str name,
                        struct diag *d);
/* Opens it, and those it names. */
rlx_status weights_open(struct weights *w, const char *path, const rlx_load_desc *desc,
                        struct diag *d);

/* For readers. FORMAT when there is one of that name already. Names are copied. */
rlx_status weights_add(struct weights *w, const struct weight *t, struct diag *d);
rlx_status weights_add_meta(struct weights *w, const rlx_meta *m, struct diag *d); /* not copied */

/* What the header of a NumPy array says about a tensor: its type, shape and bytes. */
struct npy_layout;
rlx_status weight_take_layout(struct weight *t, const struct npy_layout *l, struct diag *d);

bool weights_find(const struct weights *w, rlx_str name, size_t *i);
const rlx_meta *weights_meta(const struct weights *w, rlx_str key); /* NULL: none */

/* The tensor's bytes, made where they have to be; what is made stays as long as w. */
rlx_status weights_data(struct weights *w, size_t i, const uint8_t **out, struct diag *d);
/* Bytes that one tensor may take when it has to be made. */
#define WEIGHTS_MAKE_MOST ((uint64_t)4 << 30)

/* meta.c */
size_t meta_type_size(rlx_meta_type t); /* of a number; 0: a string, or no type */
/* *found: false where there is no such key; *out is then unchanged. */
rlx_status meta_get_u64(const struct weights *w, rlx_str key, uint64_t most, uint64_t *out,
                        bool *found, struct diag *d);
rlx_status meta_get_f32(const struct weights *w, rlx_str key, float *out, struct diag *d);
rlx_status meta_get_bool(const struct weights *w, rlx_str key, bool *out, struct diag *d);
rlx_status meta_get_str(const struct weights *w, rlx_str key, rlx_str *out, struct diag *d);

/* The readers of each format. */
rlx_status gguf_read(struct weights *w, const uint8_t *bytes, size_t size, struct diag *d);
rlx_status safetensors_read(struct weights *w, const uint8_t *bytes, size_t size, struct diag *d);
#define SAFETENSORS_MAX_HEADER 100000000 /* bytes; longer ones are refused */
rlx_status npz_read(struct weights *w, const uint8_t *bytes, size_t size, struct diag *d);

#endif
