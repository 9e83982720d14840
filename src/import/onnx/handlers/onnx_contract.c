/* onnx_contract.c: ONNX ops that multiply matrices. */
#include <string.h>

#include "base/str.h"
#include "import/onnx/read/onnx_build.h"

/* Our products take floats, i32 and i64. */
static rlx_dtype product_dtype(rlx_dtype t)
{
    return dtype_is(t, CLASS_F | CLASS_C) || t == RLX_DTYPE_i32 ? t : RLX_DTYPE_i64;
}

/* A vector on the left is a row, on the right a column; the axis goes again afterwards. */
void onnx_matmul(struct onnx_call *c)
{
    struct formula *f = &c->f;
    rlx_dtype to = onnx_type(c, 0)->dtype, in = product_dtype(to);
    ir_value a = formula_cast(f, onnx_in(c, 0), in), b = formula_cast(f, onnx_in(c, 1), in);

    if (onnx_failed(c))
        return;
    const struct ir_type ta = *formula_type(f, a), tb = *formula_type(f, b);
    if (ta.rank == 1)
        a = formula_reshape(f, a, RLX_LIST(1, ta.dim[0]));
    if (tb.rank == 1)
        b = formula_reshape(f, b, RLX_LIST(tb.dim[0], 1));
    ir_value y = formula_cast(f, formula_matmul(f, a, b, false, false), to);
    if (onnx_failed(c))
        return;
    const struct ir_type ty = *formula_type(f, y);
    rlx_list shape = {0};
    for (int32_t i = 0; i < ty.rank; i++)
        if (!(ta.rank == 1 && i == ty.rank - 2) && !(tb.rank == 1 && i == ty.rank - 1))
            shape.at[shape.count++] = ty.dim[i];
    onnx_give(c, 0, formula_reshape(f, y, shape));
}

/* alpha A' B' + beta C */
ir_value onnx_gemm_of(struct onnx_call *c)
{
    struct formula *f = &c->f;
    double alpha = onnx_float(c, "alpha", 1), beta = onnx_float(c, "beta", 1);
    rlx_dtype to = onnx_type(c, 0)->dtype, in = product_dtype(to);

    f->dtype = in;
    ir_value y =
        formula_matmul(f, formula_cast(f, onnx_in(c, 0), in), formula_cast(f, onnx_in(c, 1), in),
                       onnx_int(c, "transA", 0) != 0, onnx_int(c, "transB", 0) != 0);
    if (alpha != 1)
        y = formula_2(f, RLX_OP_mul, y, formula_number(f, alpha));
    if (onnx_has(c, 2) && beta != 0) {
        ir_value bias = formula_cast(f, onnx_in(c, 2), in);
        if (beta != 1)
            bias = formula_2(f, RLX_OP_mul, bias, formula_number(f, beta));
        y = formula_2(f, RLX_OP_add, y, bias);
    }
    return formula_cast(f, y, to);
}

void onnx_gemm(struct onnx_call *c)
{
    onnx_give(c, 0, onnx_gemm_of(c));
}

/* Per matrix, where there are several. */
void onnx_det(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    ir_value x = onnx_in(c, 0), part[64];
    int64_t batch = 1;

    if (t.rank < 2 || !type_is_static(&t)) {
        onnx_unsupported(c, "matrices of a rank below 2 or of symbolic size");
        return;
    }
    for (int32_t i = 0; i < t.rank - 2; i++)
        batch *= t.dim[i];
    if (batch > 64)
        onnx_unsupported(c, "more than 64 matrices");
    int64_t n = t.dim[t.rank - 1];
    ir_value flat = formula_reshape(f, x, RLX_LIST(batch, n, n));
    for (int64_t i = 0; !onnx_failed(c) && i < batch; i++) {
        ir_value one = formula_reshape(f, formula_narrow(f, flat, 0, i, 1), RLX_LIST(n, n));
        part[i] = formula_reshape(f, formula_1(f, RLX_OP_det, one), RLX_LIST(1));
    }
    if (batch < 1)
        onnx_unsupported(c, "no matrices at all");
    if (!onnx_failed(c))
        onnx_give(c, 0,
                  formula_reshape(f, formula_concat(f, part, (int32_t)batch, 0),
                                  rlx_list_of(t.rank - 2, t.dim)));
}

/* ---- Einsum ---- */

#define MAX_TERMS 16

/* One operand's letters, or the result's; '.' stands for each axis of an ellipsis. */
struct term {
    char letter[RLX_MAX_RANK + 1];
    int32_t count;
};

struct einsum {
    struct term in[MAX_TERMS], out;
    size_t terms;
    bool has_out;
    int32_t dots; /* the largest number of axes an ellipsis stands for */
};

static bool is_letter(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
}

/* Axes of an ellipsis become the characters '0' and up, counted from the right. */
static bool read_term(rlx_str s, int32_t rank, struct term *t)
{
    int32_t letters = 0, dots = 0;

    for (size_t i = 0; i < s.len; i++)
        letters += is_letter(s.ptr[i]);
    for (size_t i = 0; i < s.len; i++) {
        char ch = s.ptr[i];
        if (ch == ' ')
            continue;
        if (ch == '.' && i + 2 < s.len && s.ptr[i + 1] == '.' && s.ptr[i + 2] == '.') {
            dots = rank - letters;
            for (int32_t k = dots; k > 0; k--) {
                if (t->count == RLX_MAX_RANK)
                    return false;
                t->letter[t->count++] = (char)('0' + k - 1);
            }
            i += 2;
        } else if (is_letter(ch) && t->count < RLX_MAX_RANK)
            t->letter[t->count++] = ch;
        else
            return false;
    }
    return dots >= 0;
}

static int32_t place(const struct term *t, char letter)
{
    for (int32_t i = 0; i < t->count; i++)
        if (t->letter[i] == letter)
            return i;
    return -1;
}

/* Without an arrow: the ellipsis, then letters that occur once, by the alphabet. */
static void implied_output(struct einsum *e)
{
    for (int32_t k = e->dots; k > 0; k--)
        e->out.letter[e->out.count++] = (char)('0' + k - 1);
    for (int ch = 'A'; ch <= 'z'; ch++) {
        int times = 0;
        for (size_t t = 0; t < e->terms; t++)
            for (int32_t i = 0; i < e->in[t].count; i++)
                times += e->in[t].letter[i] == ch;
        if (times == 1 && e->out.count < RLX_MAX_RANK)
            e->out.letter[e->out.count++] = (char)ch;
    }
}

static bool read_equation(struct onnx_call *c, rlx_str s, struct einsum *e)
{
    size_t arrow = s.len, start = 0;

    for (size_t i = 0; i + 1 < s.len; i++)
        if (s.ptr[i] == '-' && s.ptr[i + 1] == '>')
            arrow = i;
    for (size_t i = 0; i <= arrow; i++) {
        if (i < arrow && s.ptr[i] != ',')
            continue;
        int32_t rank = e->terms < c->in_count ? onnx_type(c, e->terms)->rank : -1;
        if (e->terms == MAX_TERMS || rank < 0 ||
            !read_term((rlx_str){s.ptr + start, i - start}, rank, &e->in[e->terms]) ||
            e->in[e->terms].count != rank)
            return false;
        for (int32_t k = 0; k < rank; k++) {
            char ch = e->in[e->terms].letter[k];
            if (!is_letter(ch) && ch - '0' + 1 > e->dots)
                e->dots = ch - '0' + 1;
        }
        e->terms++;
        start = i + 1;
    }
    if (e->terms != c->in_count)
        return false;
    if (arrow == s.len) {
        implied_output(e);
        return true;
    }
    rlx_str right = {s.ptr + arrow + 2, s.len - arrow - 2};
    int32_t letters = 0;
    for (size_t i = 0; i < right.len; i++)
        letters += is_letter(right.ptr[i]);
    bool dotted = memchr(right.ptr, '.', right.len) != NULL;
    return read_term(right, letters + (dotted ? e->dots : 0), &e->out);
}

/* A letter twice in one operand: its diagonal, by a mask and a sum. */
static ir_value take_diagonals(struct onnx_call *c, ir_value x, struct term *t)
{
    struct formula *f = &c->f;

    for (int32_t i = 0; i < t->count; i++)
        for (int32_t k = i + 1; k < t->count; k++) {
            if (t->letter[i] != t->letter[k] || onnx_failed(c))
                continue;
            const struct ir_type type = *formula_type(f, x);
            if (!dim_is_static(type.dim[i])) {
                onnx_unsupported(c, "a diagonal of symbolic size");
                return x;
            }
            int64_t n = type.dim[i];
            struct ir_type square = {.dtype = RLX_DTYPE_f32, .rank = 2, .dim = {n, n}};
            ir_value ones = formula_fill(f, &square, 1);
            union ir_attr attr;
            for (int upper = 0; upper < 2; upper++) {
                attr_defaults(RLX_OP_trilu, &attr);
                attr.trilu.upper = upper;
                ones = formula_node(f, RLX_OP_trilu, &ones, 1, &attr);
            }
            rlx_list shape = {.count = type.rank};
            for (int32_t a = 0; a < type.rank; a++)
                shape.at[a] = a == i || a == k ? n : 1;
            ir_value zero = formula_number_of(f, type.dtype, 0);
            x = formula_where(f, formula_reshape(f, ones, shape), x, zero);
            x = formula_reduce(f, RLX_OP_reduce_sum, x, RLX_LIST(k), false);
            memmove(&t->letter[k], &t->letter[k + 1], (size_t)(t->count - k));
            t->count--;
            k--;
        }
    return x;
}

/* Is the letter needed after operand n was taken in? */
static bool needed_later(const struct einsum *e, size_t n, char letter)
{
    if (place(&e->out, letter) >= 0)
        return true;
    for (size_t i = n + 1; i < e->terms; i++)
        if (place(&e->in[i], letter) >= 0)
            return true;
    return false;
}

/* a's axes in the order of `to`, with 1 where a lacks the letter. */
static ir_value spread(struct formula *f, ir_value x, const struct term *t, const struct term *to)
{
    rlx_list perm = {0}, shape = {.count = to->count};

    if (f->status != RLX_OK)
        return RLX_NO_VALUE;
    const struct ir_type type = *formula_type(f, x);
    for (int32_t i = 0; i < to->count; i++) {
        int32_t at = place(t, to->letter[i]);
        shape.at[i] = at < 0 ? 1 : type.dim[at];
        if (at >= 0)
            perm.at[perm.count++] = at;
    }
    return formula_reshape(f, formula_transpose(f, x, perm), shape);
}

/* Sum over the letters that nothing wants any more. */
static ir_value sum_rest(struct formula *f, const struct einsum *e, size_t n, ir_value x,
                         struct term *t)
{
    rlx_list axes = {0};
    struct term left = {.count = 0};

    for (int32_t i = 0; i < t->count; i++) {
        if (needed_later(e, n, t->letter[i]))
            left.letter[left.count++] = t->letter[i];
        else
            axes.at[axes.count++] = i;
    }
    *t = left;
    return axes.count ? formula_reduce(f, RLX_OP_reduce_sum, x, axes, false) : x;
}

/* Two operands as one batched product: shared letters that stay are batch, those that go are
 * contracted. Ellipsis axes of different size are left to the plain way. */
static bool contract(struct onnx_call *c, const struct einsum *e, size_t n, ir_value *x,
                     struct term *tx, ir_value y, const struct term *ty)
{
    struct formula *f = &c->f;
    union ir_attr attr;
    struct term out = {.count = 0};
    struct attr_dot_general *d = &attr.dot_general;

    attr_defaults(RLX_OP_dot_general, &attr);
    const struct ir_type a = *formula_type(f, *x), b = *formula_type(f, y);
    if (!dtype_is(a.dtype, CLASS_F))
        return false;
    for (int pass = 0; pass < 2; pass++) /* batch letters come first in the result */
        for (int32_t i = 0; i < tx->count; i++) {
            char letter = tx->letter[i];
            int32_t at = place(ty, letter);
            bool later = needed_later(e, n, letter);
            if (at >= 0 && a.dim[i] != b.dim[at])
                return false;
            if (pass == 0 && at >= 0) {
                rlx_list *l = later ? &d->lhs_batch : &d->lhs_contracting;
                rlx_list *r = later ? &d->rhs_batch : &d->rhs_contracting;
                l->at[l->count++] = i;
                r->at[r->count++] = at;
                if (later)
                    out.letter[out.count++] = letter;
            } else if (pass == 1 && at < 0)
                out.letter[out.count++] = letter;
        }
    for (int32_t i = 0; i < ty->count; i++)
        if (place(tx, ty->letter[i]) < 0) {
            if (out.count == RLX_MAX_RANK)
                return false;
            out.letter[out.count++] = ty->letter[i];
        }
    if (d->lhs_contracting.count == 0)
        return false;
    *x = formula_node(f, RLX_OP_dot_general, (const ir_value[]){*x, y}, 2, &attr);
    *tx = out;
    return true;
}

/* The plain way: both with all letters, multiplied. */
static ir_value multiply(struct onnx_call *c, ir_value x, struct term *tx, ir_value y,
                         const struct term *ty)
{
    struct formula *f = &c->f;
    struct term all = *tx;

    for (int32_t i = 0; i < ty->count; i++)
        if (place(&all, ty->letter[i]) < 0) {
            if (all.count == RLX_MAX_RANK) {
                onnx_unsupported(c, "more than %d letters at once", RLX_MAX_RANK);
                return x;
            }
            all.letter[all.count++] = ty->letter[i];
        }
    x = formula_2(f, RLX_OP_mul, spread(f, x, tx, &all), spread(f, y, ty, &all));
    *tx = all;
    return x;
}

void onnx_einsum(struct onnx_call *c)
{
    struct einsum e = {.terms = 0};
    struct formula *f = &c->f;

    if (!read_equation(c, onnx_text(c, "equation", ""), &e)) {
        formula_fail(f, RLX_ERROR_ATTRIBUTE, "the equation \"%.*s\" does not fit its operands",
                     STR_ARG(onnx_text(c, "equation", "")));
        return;
    }
    struct term t = e.in[0];
    ir_value x = take_diagonals(c, onnx_in(c, 0), &t);
    for (size_t n = 1; n < e.terms && !onnx_failed(c); n++) {
        struct term ty = e.in[n];
        ir_value y = take_diagonals(c, onnx_in(c, n), &ty);
        if (!onnx_failed(c) && !contract(c, &e, n, &x, &t, y, &ty))
            x = multiply(c, x, &t, y, &ty);
        x = sum_rest(f, &e, n, x, &t);
    }
    x = sum_rest(f, &e, e.terms - 1, x, &t);
    for (int32_t i = 0; i < e.out.count; i++)
        if (place(&t, e.out.letter[i]) < 0)
            onnx_unsupported(c, "the result names a letter that no operand has");
    onnx_give(c, 0, spread(f, x, &t, &e.out));
}
