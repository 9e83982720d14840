/* gpu_rows.c: the rules of the ROWS rows of ops.def. A rule is given the axis along which the
 * result is to be cut; it says which operands are cut as well, and refuses where rows depend on
 * others. */
#include "lower/gpu/gpu_rows.h"

#include <string.h>

#include "base/str.h"
#include "ir/op.h"

static int64_t attr(const struct gpu_call *c, const char *name)
{
    return attr_integer(c->op, c->attr, name, 0);
}

/* Is operand i named in the row of ops.def? */
static bool is_named(const struct gpu_call *c, int32_t i, const char *operands)
{
    rlx_str name = op_input_name(c->op, i, c->in_count);

    while (*operands) {
        rlx_str word = {operands, strcspn(operands, " ")};
        if (name.len && str_eq(word, name))
            return true;
        operands += word.len;
        operands += *operands == ' ';
    }
    return false;
}

static void follow(struct split *s, int32_t i, int32_t axis)
{
    s->follows |= UINT64_C(1) << i;
    s->in_axis[i] = axis;
}

/* An operand that is broadcast to the result, from its last axis on. */
static void follow_broadcast(const struct gpu_call *c, struct split *s, int32_t i)
{
    int32_t axis = s->axis - (c->out->rank - c->in[i].rank);

    if (axis >= 0 && c->in[i].dim[axis] != 1)
        follow(s, i, axis);
}

/* ---- the same row of each operand, up to the axis that is worked along ---- */

static bool split_before(const struct gpu_call *c, struct split *s, int64_t axis,
                         const char *operands)
{
    for (int32_t i = 0; i < c->in_count && i < 64; i++) {
        if (!is_named(c, i, operands))
            continue;
        if (s->axis >= c->in[i].rank || c->in[i].dim[s->axis] != c->out->dim[s->axis])
            return false;
        follow(s, i, s->axis);
    }
    return s->axis < axis;
}

static bool split_before_axis(const struct gpu_call *c, struct split *s, const char *operands)
{
    return split_before(c, s, attr(c, "axis"), operands);
}

static bool split_before_last(const struct gpu_call *c, struct split *s, const char *operands)
{
    return split_before(c, s, c->out->rank - 1, operands);
}

static bool split_all_axes(const struct gpu_call *c, struct split *s, const char *operands)
{
    return split_before(c, s, c->out->rank, operands);
}

/* Items of a batch: images, sequences. */
static bool split_items(const struct gpu_call *c, struct split *s, const char *operands)
{
    return split_before(c, s, 1, operands);
}

/* Matrices of a batch. */
static bool split_matrices(const struct gpu_call *c, struct split *s, const char *operands)
{
    return split_before(c, s, c->in[0].rank - 2, operands);
}

/* Images of a batch; of a single image channels, each with weights of its own. */
static bool split_images(const struct gpu_call *c, struct split *s, const char *operands)
{
    (void)operands;
    if (s->axis != 1 || attr(c, "groups") != 1)
        return split_items(c, s, "x");
    follow(s, 1, 0);
    return true;
}

/* Items of a batch, which comes first in all operands; a mask may be the same for all of them. */
static bool split_attention(const struct gpu_call *c, struct split *s, const char *operands)
{
    if (attr(c, "layout") == RLX_ATTENTION_LAYOUT_folded || s->axis != 0)
        return false;
    int32_t count = c->in_count - (attr(c, "has_sinks") == 1); /* sinks are those of any item */
    for (int32_t i = 0; i < count; i++) {
        if (!is_named(c, i, operands) || c->in[i].dim[0] == 1)
            continue;
        if (c->in[i].dim[0] != c->out->dim[0])
            return false;
        follow(s, i, 0);
    }
    return true;
}

/* ---- products ---- */

/* Columns of a single row, each the product with a row of the weights. */
static bool split_columns(const struct gpu_call *c, struct split *s)
{
    if (s->axis != c->out->rank - 1 || c->in[1].rank != 2)
        return false;
    follow(s, 1, 0);
    for (int32_t i = 2; i < c->in_count; i++)
        follow_broadcast(c, s, i);
    return true;
}

static bool split_product(const struct gpu_call *c, struct split *s, const char *operands)
{
    int32_t rows = c->out->rank - 2;
    bool turned = attr(c, "transpose_a"), weight_rows = attr(c, "transpose_b");

    if (weight_rows && split_columns(c, s))
        return true;
    if (s->axis > rows || c->in[0].rank < 2 || c->in[1].rank < 2 || (turned && s->axis == rows))
        return false;
    for (int32_t i = 0; i < c->in_count; i++)
        if (is_named(c, i, operands) && (i != 1 || s->axis < rows))
            follow_broadcast(c, s, i);
    return true;
}

/* ---- moves ---- */

static bool split_reduce(const struct gpu_call *c, struct split *s, const char *operands)
{
    for (int32_t i = 0; i < c->attr->reduce.axes.count; i++)
        if (c->attr->reduce.axes.at[i] <= s->axis)
            return false;
    return split_before(c, s, c->out->rank, operands);
}

static bool split_transpose(const struct gpu_call *c, struct split *s, const char *operands)
{
    for (int32_t i = 0; i <= s->axis; i++)
        if (c->attr->transpose.perm.at[i] != i)
            return false;
    return split_all_axes(c, s, operands);
}

static bool split_pad(const struct gpu_call *c, struct split *s, const char *operands)
{
    for (int32_t i = 0; i <= s->axis; i++)
        if (c->attr->pad.before.at[i] || c->attr->pad.after.at[i])
            return false;
    return split_all_axes(c, s, operands);
}

static bool split_concat(const struct gpu_call *c, struct split *s, const char *operands)
{
    return c->in_count <= 64 && split_before_axis(c, s, operands);
}

/* What each row has of operands that are broadcast. */
static bool split_expand(const struct gpu_call *c, struct split *s, const char *operands)
{
    for (int32_t i = 0; i < c->in_count; i++)
        if (is_named(c, i, operands))
            follow_broadcast(c, s, i);
    return true;
}

/* The same; rows are along the last axis. */
static bool split_broadcast(const struct gpu_call *c, struct split *s, const char *operands)
{
    return s->axis < c->out->rank - 1 && split_expand(c, s, operands);
}

/* Rows that are picked, or rows of what they are picked from. Where indices are reported by their
 * place, they are seen whole. */
static bool split_gather(const struct gpu_call *c, struct split *s, const char *operands)
{
    int64_t axis = attr(c, "axis");

    (void)operands;
    if (c->check_indices || s->axis >= axis + c->in[1].rank)
        return false;
    if (s->axis < axis)
        follow(s, 0, s->axis);
    else
        follow(s, 1, s->axis - (int32_t)axis);
    return true;
}

/* ---- the table ---- */

static const struct {
    bool (*find)(const struct gpu_call *c, struct split *s, const char *operands);
    const char *operands;
} rules[FAMILY_count] = {
#define ROWS(family, rule, operands) [FAMILY_##family] = {split_##rule, operands},
#include "ir/ops.def"
};

/* Gradients for weights, which are added up over all rows. */
static bool adds_rows(const struct gpu_call *c)
{
    return op_info(c->op)->category == CATEGORY_GRADIENT && c->out->rank != c->in[0].rank;
}

bool gpu_find_split(const struct gpu_call *c, struct split *s)
{
    enum op_family family = op_info(c->op)->family;

    *s = (struct split){0};
    while (s->axis < c->out->rank && c->out->dim[s->axis] == 1)
        s->axis++;
    return s->axis < c->out->rank && c->out->dim[s->axis] > 0 && rules[family].find &&
           !adds_rows(c) && rules[family].find(c, s, rules[family].operands);
}
