/* custom.h: the ops a program registers with its context. */
#ifndef IR_CUSTOM_H
#define IR_CUSTOM_H

#include "ir/type.h"

struct ir_customs {
    const rlx_custom_op *op; /* names and strings live as long as this */
    size_t count;
};

const rlx_custom_op *custom_find(const struct ir_customs *c, rlx_str name); /* NULL: none */

#endif
