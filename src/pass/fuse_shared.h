/* fuse_shared.h: products that share their left side, for the pass and for the report. */
#ifndef PASS_FUSE_SHARED_H
#define PASS_FUSE_SHARED_H

#include "pass/fuse.h"

/* Columns of a product that several are merged into: beyond this one product fills the device. */
#define FUSE_WIDEST 65536

struct fuse_shared {
    ir_value *product; /* matmul nodes, in order */
    size_t count;
    bool merge;
};
/* By node: the products that it is the left side of. */
rlx_status fuse_shared_list(const struct fuse *f, struct arena *arena, struct fuse_shared **out,
                            struct diag *d);
/* Can they be one product? If not, *why says why. */
bool fuse_shared_fits(const struct fuse *f, const struct fuse_shared *s, const char **why);

#endif
