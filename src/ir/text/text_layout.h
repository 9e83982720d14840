/* text_layout.h: boxes and arrows on paper: a graph without cycles in layers, top to bottom. */
#ifndef IR_TEXT_LAYOUT_H
#define IR_TEXT_LAYOUT_H

#include "base/arena.h"
#include "base/diag.h"

struct layout_box {
    double width, height; /* given */
    bool floats; /* given: has no reason to be at the top, so it goes next to its readers */
    int32_t layer;
    double x, y; /* of its centre, and of its upper edge */
};

/* from < to, both numbers of boxes. */
struct layout_arc {
    int32_t from, to;
};

/* A piece of one or more arcs, from an upper point to a lower one. */
struct layout_line {
    double x0, y0, x1, y1;
    bool arrow; /* it ends at a box */
};

struct layout {
    struct layout_box *box; /* sizes given, places found */
    size_t boxes;
    const struct layout_arc *arc;
    size_t arcs;

    struct layout_line *line;
    size_t lines;
    double width, height;
};

/* Everything comes from the arena. */
rlx_status layout_place(struct layout *l, struct arena *arena, struct diag *d);

#endif
