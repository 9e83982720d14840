/* attention.h: attention and its gradient have the same attributes, at different places: what later
 * versions add comes last in the struct of either. Whoever computes both reads them as attention's.
 */
#ifndef IR_ATTENTION_H
#define IR_ATTENTION_H

#include "ir/op.h"

#define ATTENTION_EACH_ATTR(DO) \
    DO(num_heads)               \
    DO(num_kv_heads)            \
    DO(head_dim)                \
    DO(mask_kind)               \
    DO(window)                  \
    DO(score_scale)             \
    DO(logit_softcap)           \
    DO(layout)

static inline void attention_of_backward(const struct attr_attention_backward *from,
                                         struct attr_attention *to)
{
#define COPY(field) to->field = from->field;
    ATTENTION_EACH_ATTR(COPY)
#undef COPY
}

/* wrt stays as it is. */
static inline void attention_to_backward(const struct attr_attention *from,
                                         struct attr_attention_backward *to)
{
#define COPY(field) to->field = from->field;
    ATTENTION_EACH_ATTR(COPY)
#undef COPY
}

/* Of a node of either op. */
static inline struct attr_attention attention_attrs(rlx_op op, const union ir_attr *attr)
{
    struct attr_attention a = attr->attention;

    if (op == RLX_OP_attention_backward)
        attention_of_backward(&attr->attention_backward, &a);
    return a;
}

/* Do positions say which keys a query sees? */
static inline bool attention_is_by_place(int32_t mask_kind)
{
    return mask_kind == RLX_MASK_KIND_causal || mask_kind == RLX_MASK_KIND_sliding_window ||
           mask_kind == RLX_MASK_KIND_symmetric_window || mask_kind == RLX_MASK_KIND_chunked_window;
}

static inline bool attention_has_mask(int32_t mask_kind)
{
    return mask_kind == RLX_MASK_KIND_custom || mask_kind == RLX_MASK_KIND_bias;
}

#endif
