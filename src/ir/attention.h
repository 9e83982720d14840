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
    DO(layout)                  \
    DO(value_dim)               \
    DO(has_sinks)               \
    DO(alibi_max_bias)

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

/* The operands after q, k and v, or after dy: a mask, then the sinks, each where the attributes ask
 * for it. `first` is the number of the first of them; -1: there is none. */
static inline int32_t attention_mask_operand(const struct attr_attention *a, int32_t first)
{
    return attention_has_mask(a->mask_kind) ? first : -1;
}

static inline int32_t attention_sinks_operand(const struct attr_attention *a, int32_t first)
{
    return a->has_sinks ? first + attention_has_mask(a->mask_kind) : -1;
}

/* Queries in f32 meet the keys and values of a cache in halves as they are: nothing is cast. */
static inline bool attention_mixes(rlx_dtype q, rlx_dtype k, rlx_dtype v)
{
    return q == RLX_DTYPE_f32 && k == v && (k == RLX_DTYPE_f16 || k == RLX_DTYPE_bf16);
}

/* Elements of a head of v and of the result. */
static inline int64_t attention_value_dim(const struct attr_attention *a)
{
    return a->value_dim == RLX_ABSENT ? a->head_dim : a->value_dim;
}

/* Of that many heads, slopes of the first `attention_alibi_period` are the powers of one number,
 * the others lie between them (ops-core.md 13.1). */
static inline int64_t attention_alibi_period(int64_t heads)
{
    int64_t period = 1;

    while (period <= heads / 2)
        period *= 2;
    return period;
}

#endif
