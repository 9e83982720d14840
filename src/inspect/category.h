/* category.h: what the kinds of ops are called. */
#ifndef INSPECT_CATEGORY_H
#define INSPECT_CATEGORY_H

#include "ir/op.h"

static inline const char *category_name(enum op_category c)
{
    static const char *const names[] = {"io",        "elementwise", "movement",    "index",
                                        "reduction", "random",      "contraction", "normalisation",
                                        "window",    "sequence",    "fused",       "control",
                                        "gradient"};

    return names[c];
}

#endif
