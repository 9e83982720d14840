/* undo_moves.h: a param out of what a static part made of it. Parts that only move elements (joins,
 * transposes, other shapes) have all that their params have, so those need not be kept besides. */
#ifndef MODEL_UNDO_MOVES_H
#define MODEL_UNDO_MOVES_H

#include "backend/backend.h"
#include "ir/graph.h"

/* A module from the value `made` of a static part to that param of it; NULL: it did more than move
 * elements.
 */
rlx_status undo_moves_find(const struct ir_graph *part, ir_value made, ir_value param,
                           const struct target *t, const rlx_allocator *mem, struct ir_module **out,
                           struct diag *d);
/* from: the bytes of the value; to: room for those of the param. */
rlx_status undo_moves_run(const struct ir_module *undo, struct backend *b, const rlx_allocator *mem,
                          const void *from, void *to, struct diag *d);

#endif
