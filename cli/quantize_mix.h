/* quantize_mix.h: mixes of types, by the names that files of language models go by: most matrices
 * become one type, and those where errors do most harm a better one. docs/formats.md lists them. */
#ifndef CLI_QUANTIZE_MIX_H
#define CLI_QUANTIZE_MIX_H

#include "rlx/weights.h"

struct mix {
    const char *name;     /* "Q4_K_M" */
    rlx_weight_type most; /* what most matrices become */
    int file_type;        /* what general.file_type says of such a file */
};

/* Mix number i; NULL: there are no more. */
const struct mix *mix_at(size_t i);
/* By its name, in either case; NULL: there is none. */
const struct mix *mix_find(const char *name);

/* What there is in a file that a choice depends on. */
struct mix_model {
    int64_t layers; /* "blk.0." to "blk.<layers - 1>." */
    bool tied;      /* there is no output.weight: the table of tokens is used twice */
};
/* Looks at one more tensor of the file; begin with {0, true}. */
void mix_see(struct mix_model *m, rlx_str name);
rlx_weight_type mix_type(const struct mix *mix, const struct mix_model *m, rlx_str name);

#endif
