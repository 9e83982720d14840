/* type.h: what a value is: an element type and dims. Also what an element type is. */
#ifndef IR_TYPE_H
#define IR_TYPE_H

#include "base/diag.h"
#include "rlx/graph.h"

typedef rlx_value ir_value; /* a node's index in its graph; RLX_NO_VALUE: none */
typedef rlx_dim ir_dim;     /* >= 0: a size; < 0: a handle into the module's dim table */

struct ir_type {
    rlx_dtype dtype;
    int32_t rank;
    ir_dim dim[RLX_MAX_RANK];
};

enum dtype_class { CLASS_F = 1, CLASS_I = 2, CLASS_U = 4, CLASS_B = 8, CLASS_C = 16 };
#define CLASS_INT (CLASS_I | CLASS_U)            /* what the manual calls I */
#define CLASS_REAL (CLASS_F | CLASS_I | CLASS_U) /* R */
#define CLASS_ANY (CLASS_REAL | CLASS_B | CLASS_C)

enum dtype_class dtype_class(rlx_dtype d);
static inline bool dtype_is(rlx_dtype d, unsigned classes)
{
    return ((unsigned)dtype_class(d) & classes) != 0;
}
bool dtype_from_name(rlx_str name, rlx_dtype *out);
/* The type two operands meet in (ops-core.md 2.2); false: they cannot. */
bool dtype_promote(rlx_dtype a, rlx_dtype b, rlx_dtype *out);

static inline bool dim_is_static(ir_dim d)
{
    return d >= 0;
}
bool type_is_static(const struct ir_type *t);
bool type_same(const struct ir_type *a, const struct ir_type *b);
/* Elements and bytes of a static type; false when a dim is not static or the product overflows. */
bool type_count(const struct ir_type *t, int64_t *count);
bool type_bytes(const struct ir_type *t, uint64_t *bytes);

#endif
