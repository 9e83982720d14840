/* text_fold.h: which nodes a picture shows as one box.
 *
 * Params, constants and what is computed from these alone are words in the boxes of their readers.
 * A node that is all its operand is read for, and that reads nothing else, is in its operand's box:
 * chains are one box each, and so is a detour in them, as in x * sigmoid(x). */
#ifndef IR_TEXT_FOLD_H
#define IR_TEXT_FOLD_H

#include "ir/text/text_impl.h"
#include "ir/text/text_layout.h"

struct fold {
    int32_t *box_of;        /* by node; -1: it is a word in the boxes of its readers */
    ir_value *node;         /* those that have a box, by box, in order */
    int32_t *first;         /* by box: of its nodes in `node`; first[boxes] is the end */
    size_t boxes;           /* in the order of their first nodes */
    struct layout_arc *arc; /* between boxes, by target, each once */
    size_t arcs;
};
/* Everything comes from the arena. */
rlx_status fold_graph(const struct ir_graph *g, struct arena *arena, struct fold *out,
                      struct diag *d);
/* What a node is called: in the file it came from, if it has a name there. */
rlx_str fold_name(const struct ir_graph *g, const struct text_names *names, ir_value v);
/* Of a word: itself, if it has a name of its own; else the first it is computed from that has. */
ir_value fold_source(const struct ir_graph *g, ir_value v);

#endif
