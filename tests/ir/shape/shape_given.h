/* shape_given.h: on top of shape_build.h: operands written as types, and attributes varied one by
 * one.
 *
 *     ir_value a = given(&b, "f32[batch,8]"), w = given(&b, "f32[9,2]");
 *     fails(&b, matmul, NULL, SHAPE, "inner dimensions differ: 8 and 9", a, w);
 *     refuses(&b, conv, base, attr.conv.groups = 3, ATTRIBUTE, "groups 3 does not divide", x, w);
 */
#ifndef TESTS_IR_SHAPE_GIVEN_H
#define TESTS_IR_SHAPE_GIVEN_H

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "shape_build.h"

/* "8", "n", "2*n", "n+1", "?": an operator is applied to what stands on its left. */
static inline ir_dim given_dim(struct build *b, const char **at)
{
    struct dim_table *t = b->mod->dims;
    ir_dim d = 0;
    char op = 0;

    for (;;) {
        const char *p = *at;
        ir_dim next;
        if (*p == '?') {
            next = RLX_DIM_UNKNOWN;
            p++;
        } else if (isdigit((unsigned char)*p)) {
            next = strtoll(p, (char **)&p, 10);
        } else {
            while (isalnum((unsigned char)*p) || *p == '_')
                p++;
            next = dim_symbol(t, (rlx_str){*at, (size_t)(p - *at)});
        }
        d = !op ? next : op == '*' ? dim_mul(t, d, next) : dim_add(t, d, next);
        op = *p;
        *at = p;
        if (op != '*' && op != '+')
            return d;
        ++*at;
    }
}

static inline struct ir_type given_type(struct build *b, const char *text)
{
    const char *at = strchr(text, '[');
    struct ir_type type = {0};

    if (!dtype_from_name((rlx_str){text, (size_t)(at - text)}, &type.dtype))
        fail(b->t, "no element type: %s", text);
    for (at++; *at != ']' && type.rank < RLX_MAX_RANK; at += *at == ',')
        type.dim[type.rank++] = given_dim(b, &at);
    return type;
}

static inline ir_value given_leaf(struct build *b, rlx_op op, const char *text)
{
    struct ir_type type = given_type(b, text);
    rlx_list shape = {.count = type.rank};

    memcpy(shape.at, type.dim, sizeof shape.at);
    return build_leaf(b, op, type.dtype, shape);
}

/* An input of that type, in the graph being built. */
static inline ir_value given(struct build *b, const char *text)
{
    return given_leaf(b, RLX_OP_input, text);
}

/* The op with `base`, changed by the statement `change` on `attr`, is refused. */
#define refuses(b, op, base, change, status, part, ...)   \
    do {                                                  \
        union ir_attr attr = (base);                      \
        change;                                           \
        fails((b), op, &attr, status, part, __VA_ARGS__); \
    } while (0)
/* ... or taken. */
#define accepts(b, op, base, change, want, ...)   \
    do {                                          \
        union ir_attr attr = (base);              \
        change;                                   \
        gives((b), op, &attr, want, __VA_ARGS__); \
    } while (0)

#endif
