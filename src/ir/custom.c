/* custom.c: finding a registered op by its name. */
#include "ir/custom.h"

#include "base/str.h"

const rlx_custom_op *custom_find(const struct ir_customs *c, rlx_str name)
{
    if (!c)
        return NULL;
    for (size_t i = 0; i < c->count; i++)
        if (str_eq(rlx_cstr(c->op[i].name), name))
            return &c->op[i];
    return NULL;
}
