/* fingerprint.h: a module as one number, the same in every process and on every machine. */
#ifndef IR_FINGERPRINT_H
#define IR_FINGERPRINT_H

#include "ir/graph.h"

/* Of the structure: ops, all attributes, types, edges, outputs, the bytes of constants, sub-graphs
 * and the bounds of dims, with leaves before all other nodes as in the text form. So a module has
 * the number of its own text. names: the public names of leaves count too. Labels never do. */
rlx_status ir_fingerprint(const struct ir_module *m, bool names, uint64_t *out, struct diag *d);

/* What it is made of, for keys that hold more than a module: each call folds something in, and
 * nothing depends on the process. Start from 0. */
uint64_t fingerprint_bytes(uint64_t h, const void *data, size_t len);
uint64_t fingerprint_u64(uint64_t h, uint64_t v);
uint64_t fingerprint_str(uint64_t h, rlx_str s);

#endif
