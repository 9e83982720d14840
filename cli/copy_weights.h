/* copy_weights.h: what `rlx convert` and `rlx quantize` share: one file of tensors into another
 * with different types, a piece at a time. */
#ifndef CLI_COPY_WEIGHTS_H
#define CLI_COPY_WEIGHTS_H

#include "cli.h"
#include "rlx/weights.h"

struct copy {
    struct cli *c;
    const char *from, *to; /* paths */
    rlx_weights *in;
    rlx_weights_info info;
    rlx_file_kind kind; /* of the new file */
    rlx_weight *tensor; /* what it will hold: by number as in the old one */
    rlx_meta *meta;
    size_t meta_count;
    /* Memory of values that were made for it. */
    struct made {
        struct made *next;
        rlx_str value; /* followed by the text */
    } * made;
};

/* Opens the old file and takes over all it holds. EXIT_DONE, or what to return; close either way.
 */
int copy_open(struct copy *x, struct cli *c, const char *from, const char *to);
/* A copy of the text that lives as long as x, as a value of metadata; NULL: no memory. */
rlx_str *copy_string(struct copy *x, const char *text);
/* Adds a key, or replaces the value of an existing one; false: no memory. value must stay valid. */
bool copy_set_meta(struct copy *x, const rlx_meta *m);
void copy_drop_meta(struct copy *x, const char *prefix);
/* Writes the new file; progress says which tensor it is at. */
int copy_write(struct copy *x);
void copy_close(struct copy *x);
uint64_t copy_bytes(const struct copy *x); /* of the new tensors */

/* Elements of a tensor. */
uint64_t weight_elements(const rlx_weight *t);
const char *weight_type_text(rlx_weight_type t);

/* quantize.c: what general.file_type says of a GGUF file whose weights are mostly of a type; -1: it
 * has no number. */
int weight_file_type(rlx_weight_type t);

#endif
