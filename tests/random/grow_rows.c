/* grow_rows.c: nodes as the self-test's table has them: every op that has a row there is grown here
 * as well, with operands that the graph has already where these may be any numbers. */
#include <math.h>
#include <string.h>

#include "grow.h"

/* Is it said what becomes of NaN and Inf? */
static bool takes_any(const struct case_row *row)
{
    return selftest_has_word(row->profiles, "nasty") || selftest_has_word(row->profiles, "special");
}

/* The rows of an op, one of them drawn; NULL: it has none. */
static const struct case_row *draw_row(struct grower *g, const char *op)
{
    const struct case_row *found = NULL, *row;
    int64_t seen = 0;

    for (size_t i = 0; (row = selftest_row(i)); i++)
        if (row->dtypes && selftest_has_word(row->ops, op) && (g->tame || takes_any(row)) &&
            dice_below(g->dice, ++seen) == 0)
            found = row;
    return found;
}

bool has_row(rlx_op op)
{
    const struct case_row *row;

    for (size_t i = 0; (row = selftest_row(i)); i++)
        if (row->dtypes && selftest_has_word(row->ops, op_info(op)->name))
            return true;
    return false;
}

static bool draw_dtype(struct grower *g, const struct case_row *row, rlx_dtype *out)
{
    rlx_str rest = rlx_cstr(row->dtypes), word, found = {0};
    int64_t seen = 0;

    while ((word = selftest_word(&rest)).len)
        if (dice_below(g->dice, ++seen) == 0 ||
            (str_eq(word, STR("f32")) && dice_percent(g->dice, 50)))
            found = word;
    return dtype_from_name(found, out);
}

/* "f32[2,3]" as a type. */
static bool read_type(rlx_str dtype, rlx_str shape, struct ir_type *out)
{
    *out = (struct ir_type){0};
    if (!dtype_from_name(dtype, &out->dtype) || shape.len < 2)
        return false;
    for (size_t i = 1; i < shape.len && shape.ptr[i] != ']'; i++) {
        if (shape.ptr[i] == ',')
            continue;
        if (shape.ptr[i] < '0' || shape.ptr[i] > '9' || out->rank == RLX_MAX_RANK)
            return false;
        int64_t n = 0;
        while (i < shape.len && shape.ptr[i] >= '0' && shape.ptr[i] <= '9')
            n = 10 * n + (shape.ptr[i++] - '0');
        out->dim[out->rank++] = n;
        i--;
    }
    return true;
}

/* Some ops overflow on their way to a small result: they get numbers of the self-test's size. */
static ir_value made_small(struct grower *g, ir_value x)
{
    const struct eval_tensor *t = x >= 0 ? &g->spread->center[x] : NULL;

    for (int64_t k = 0; t && k < t->count; k++)
        if (fabs(t->at[k].f) > 4 && dtype_is(t->type.dtype, CLASS_F))
            return put_1(g, RLX_OP_tanh, x);
    return x;
}

/* A value for it: one that the graph has, where any will do. */
static ir_value operand(struct grower *g, const struct case_operand *o, int64_t unknown)
{
    struct value_spec spec = o->spec;
    struct ir_type type;
    int64_t count;
    ir_value x = RLX_NO_VALUE;

    if (o->state || !read_type(o->dtype, o->shape, &type) || !type_count(&type, &count) ||
        count > 3000)
        return RLX_NO_VALUE;
    for (int32_t i = 0; i < type.rank && unknown > 0; i++)
        if (type.dim[i] == unknown)
            type.dim[i] = g->symbol;
    if (spec.kind == KIND_INDEX)
        spec.kind = KIND_VALID; /* what others are is another test's matter */
    if (spec.kind == KIND_ANY && dtype_is(type.dtype, CLASS_F | CLASS_C) &&
        dice_percent(g->dice, 70))
        x = made_small(g, adapt(g, pick_like(g, &type), &type));
    return x >= 0 ? x : add_leaf(g, &type, &spec);
}

/* A size of the first operand, which the symbol replaces in all of them; 0: none. */
static int64_t draw_unknown(struct grower *g, const struct case_row *row, rlx_dtype dtype)
{
    rlx_str rest = rlx_cstr(row->operands);
    struct case_operand o;
    struct ir_type type;

    if (!g->symbol || !selftest_operand(&rest, rlx_dtype_name(dtype), &o) ||
        !read_type(o.dtype, o.shape, &type) || type.rank == 0 || dice_percent(g->dice, 20))
        return 0;
    return type.dim[dice_below(g->dice, type.rank)];
}

/* Values that are not unique, or that a state outlives. */
static bool is_unfit(rlx_op op, const union ir_attr *attr)
{
    return op == RLX_OP_svd && attr->svd.part != RLX_SVD_PART_s;
}

bool grow_row(struct grower *g, rlx_op op)
{
    const struct case_row *row = g->inner || left_out(op) ? NULL : draw_row(g, op_info(op)->name);
    ir_value in[16];
    int32_t count = 0;
    union ir_attr attr;
    struct diag d;
    rlx_dtype dtype;

    if (!row || !draw_dtype(g, row, &dtype))
        return false;
    rlx_str rest = rlx_cstr(row->operands);
    struct case_operand o;
    int64_t unknown = draw_unknown(g, row, dtype);
    while (count < 16 && selftest_operand(&rest, rlx_dtype_name(dtype), &o)) {
        in[count] = operand(g, &o, unknown);
        if (in[count++] < 0)
            return false;
    }
    diag_init(&d, "grow");
    attr_defaults(op, &attr);
    if (ir_parse_attrs(g->g->mod, op, rlx_cstr(row->attrs), &attr, &d) != RLX_OK ||
        is_unfit(op, &attr))
        return false;
    return put(g, op, in, count, &attr) >= 0;
}
