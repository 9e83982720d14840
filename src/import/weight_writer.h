/* weight_writer.h: files of tensors, written piece by piece.
 *
 * A format says what comes before the first tensor, around each one, and at the end; the bytes in
 * between go straight to the file. */
#ifndef IMPORT_WEIGHT_WRITER_H
#define IMPORT_WEIGHT_WRITER_H

#include "base/arena.h"
#include "base/file.h"
#include "base/str.h"
#include "import/weight_type.h"

struct weight_writer;
struct weight_format {
    rlx_file_kind kind;
    /* Fails where the format cannot hold the content. Names and sizes are fine already. */
    rlx_status (*check)(struct weight_writer *w, const rlx_weights_content *content);
    rlx_status (*begin)(struct weight_writer *w, const rlx_weights_content *content);
    /* Hears the bytes of tensors as they go by; may be NULL. */
    void (*pass)(struct weight_writer *w, const void *data, size_t bytes);
    /* Around the bytes of tensor i; either may be NULL. */
    rlx_status (*before)(struct weight_writer *w, size_t i);
    rlx_status (*after)(struct weight_writer *w, size_t i);
    rlx_status (*end)(struct weight_writer *w); /* may be NULL */
};

struct weight_writer {
    const rlx_allocator *mem;
    struct arena arena;
    const struct weight_format *format;
    struct file_writer file;
    rlx_weight *tensor; /* with their bytes */
    size_t count;
    uint32_t *order; /* that their bytes come in */
    size_t next;     /* in order */
    uint64_t done;   /* bytes of that tensor */
    uint32_t alignment;
    uint32_t crc;        /* npz: of the member so far */
    struct zip_row *row; /* npz: by tensor */
    struct diag *d;      /* of the call */
};

extern const struct weight_format gguf_format, safetensors_format, npz_format, npy_format;

/* A failed call has given the file up. */
rlx_status writer_begin(struct weight_writer *w, const rlx_allocator *mem, const char *path,
                        const rlx_weights_content *content, struct diag *d);
bool writer_next(const struct weight_writer *w, size_t *i, uint64_t *left);
rlx_status writer_write(struct weight_writer *w, const void *data, size_t bytes, struct diag *d);
rlx_status writer_finish(struct weight_writer *w, struct diag *d);
void writer_free(struct weight_writer *w); /* abandons what was not finished */

/* For formats. */
rlx_status writer_add(struct weight_writer *w, const struct text *t);
rlx_status writer_fill(struct weight_writer *w, size_t zeros);
rlx_status writer_refuse(struct weight_writer *w, const rlx_weight *t, rlx_status s,
                         const char *why); /* "tensor "x": why" */

/* Numbers at the end of a text, little-endian. */
void put_number(struct text *t, uint64_t v, size_t width);

#endif
