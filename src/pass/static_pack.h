/* static_pack.h: what depends on params and constants alone, cut out of a module, so that it can be
 * computed once and not in every run. */
#ifndef PASS_STATIC_PACK_H
#define PASS_STATIC_PACK_H

#include "ir/graph.h"

struct static_pack {
    rlx_str name; /* of the param that stands for it: "pack.<key, 16 digits of hex>" */
    uint64_t key; /* of the expression: ops, attributes, params' names and types, constants; the
                     same in every process, so that programs of a model can share what is equal */
};

/* The static part: a module of its own. Everything here lives in it; it owns its constants. */
struct static_part {
    struct ir_module
        *mod; /* its params are the model's, its outputs the packs; NULL: there are none */
    size_t count;
    const struct static_pack *pack; /* pack[i] is output i of mod */
};

/* Cuts the static part out of m, where each pack becomes a param leaf. What only the packs read is
 * gone from m; views (reshape and the like) stay, as they cost nothing. mem must outlive out->mod.
 * On failure m is as it was and *out is empty. */
rlx_status pass_split_static(struct ir_module *m, const rlx_allocator *mem, struct static_part *out,
                             struct diag *d);

#endif
