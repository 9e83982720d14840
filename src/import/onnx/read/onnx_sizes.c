/* onnx_sizes.c: arithmetic on shapes whose sizes hold symbols.
 *
 * Exporters write Reshape(x, Concat(Shape(x)[0], -1)). Those integers are known at load but for
 * their symbols; here they stay known, so that shapes are expressions of those symbols. */
#include <string.h>

#include "base/str.h"
#include "import/onnx/read/onnx_call.h"

#define MAX_SIZES 64

struct sizes {
    struct onnx_size at[MAX_SIZES];
    size_t count;
    int32_t rank; /* 0 or 1 */
    rlx_dtype dtype;
};

typedef bool (*fold_fn)(struct onnx_call *c, const struct sizes *in, struct sizes *out);

static struct onnx_size number(int64_t n)
{
    return (struct onnx_size){.number = n};
}

static struct onnx_size size_of(ir_dim d)
{
    return dim_is_static(d) ? number(d) : (struct onnx_size){.is_dim = true, .dim = d};
}

static bool same_size(const struct onnx_size *a, const struct onnx_size *b)
{
    return a->is_dim == b->is_dim && (a->is_dim ? a->dim == b->dim : a->number == b->number);
}

/* ---- two numbers ---- */

/* A sum with a number below 0 is a difference: dims have no negative constants. */
static ir_dim add_number(struct dim_table *t, ir_dim d, int64_t n)
{
    return n >= 0 ? dim_add(t, d, n) : n == INT64_MIN ? RLX_DIM_FAILED : dim_sub(t, d, -n);
}

static bool add(struct dim_table *t, struct onnx_size a, struct onnx_size b, struct onnx_size *out)
{
    int64_t n;

    if (!a.is_dim && !b.is_dim) {
        *out = number(__builtin_add_overflow(a.number, b.number, &n) ? 0 : n);
        return !__builtin_add_overflow(a.number, b.number, &n);
    }
    ir_dim d = a.is_dim && b.is_dim ? dim_add(t, a.dim, b.dim)
               : a.is_dim           ? add_number(t, a.dim, b.number)
                                    : add_number(t, b.dim, a.number);
    *out = size_of(d);
    return d != RLX_DIM_FAILED;
}

static bool sub(struct dim_table *t, struct onnx_size a, struct onnx_size b, struct onnx_size *out)
{
    if (same_size(&a, &b)) {
        *out = number(0);
        return true;
    }
    if (!b.is_dim)
        return b.number != INT64_MIN && add(t, a, number(-b.number), out);
    if (!a.is_dim && a.number < 0)
        return false;
    ir_dim d = dim_sub(t, a.is_dim ? a.dim : a.number, b.dim);
    *out = size_of(d);
    return d != RLX_DIM_FAILED;
}

static bool mul(struct dim_table *t, struct onnx_size a, struct onnx_size b, struct onnx_size *out)
{
    int64_t n = 0;

    if (!a.is_dim && !b.is_dim) {
        bool fits = !__builtin_mul_overflow(a.number, b.number, &n);
        *out = number(n);
        return fits;
    }
    if ((!a.is_dim && a.number < 0) || (!b.is_dim && b.number < 0))
        return false;
    ir_dim d = dim_mul(t, a.is_dim ? a.dim : a.number, b.is_dim ? b.dim : b.number);
    *out = size_of(d);
    return d != RLX_DIM_FAILED;
}

static bool divide(struct dim_table *t, struct onnx_size a, struct onnx_size b,
                   struct onnx_size *out)
{
    if (!a.is_dim && !b.is_dim) {
        *out = number(b.number ? a.number / b.number : 0);
        return b.number != 0 && !(a.number == INT64_MIN && b.number == -1);
    }
    ir_dim d = RLX_DIM_FAILED;
    if (!b.is_dim && b.number >= 1)
        d = dim_floor_div(t, a.dim, b.number);
    else if (b.is_dim)
        d = dim_exact_div(t, a.is_dim ? a.dim : a.number, b.dim);
    *out = size_of(d);
    return d != RLX_DIM_FAILED;
}

typedef bool (*pair_fn)(struct dim_table *t, struct onnx_size a, struct onnx_size b,
                        struct onnx_size *out);

/* Elementwise, a single element going with all. */
static bool pairs(struct onnx_call *c, const struct sizes *in, struct sizes *out, pair_fn f)
{
    const struct sizes *a = &in[0], *b = &in[1];

    if (c->in_count != 2 || (a->count != b->count && a->count != 1 && b->count != 1))
        return false;
    out->count = a->count == 1 ? b->count : a->count;
    out->rank = a->rank > b->rank ? a->rank : b->rank;
    for (size_t i = 0; i < out->count; i++)
        if (!f(onnx_dims(c), a->at[a->count == 1 ? 0 : i], b->at[b->count == 1 ? 0 : i],
               &out->at[i]))
            return false;
    return true;
}

static bool fold_add(struct onnx_call *c, const struct sizes *in, struct sizes *out)
{
    return pairs(c, in, out, add);
}

static bool fold_sub(struct onnx_call *c, const struct sizes *in, struct sizes *out)
{
    return pairs(c, in, out, sub);
}

static bool fold_mul(struct onnx_call *c, const struct sizes *in, struct sizes *out)
{
    return pairs(c, in, out, mul);
}

static bool fold_div(struct onnx_call *c, const struct sizes *in, struct sizes *out)
{
    return !dtype_is(in[0].dtype, CLASS_F) && pairs(c, in, out, divide);
}

/* ---- moving them about ---- */

static bool fold_same(struct onnx_call *c, const struct sizes *in, struct sizes *out)
{
    (void)c;
    *out = in[0];
    return true;
}

/* A size is one in every type that can count it. */
static bool fold_cast(struct onnx_call *c, const struct sizes *in, struct sizes *out)
{
    *out = in[0];
    return onnx_dtype(onnx_int(c, "to", 0), &out->dtype) &&
           (out->dtype == RLX_DTYPE_i64 || out->dtype == RLX_DTYPE_i32 ||
            out->dtype == RLX_DTYPE_f32 || out->dtype == RLX_DTYPE_f64);
}

static bool fold_gather(struct onnx_call *c, const struct sizes *in, struct sizes *out)
{
    out->rank = in[1].rank;
    out->count = in[1].count;
    for (size_t i = 0; i < in[1].count; i++) {
        int64_t k = in[1].at[i].number, n = (int64_t)in[0].count;
        if (in[1].at[i].is_dim || k < -n || k >= n || in[0].rank != 1)
            return false;
        out->at[i] = in[0].at[k < 0 ? k + n : k];
    }
    return onnx_int(c, "axis", 0) == 0;
}

static bool fold_concat(struct onnx_call *c, const struct sizes *in, struct sizes *out)
{
    out->rank = 1;
    for (size_t i = 0; i < c->in_count; i++) {
        if (in[i].rank != 1 || out->count + in[i].count > MAX_SIZES)
            return false;
        memcpy(&out->at[out->count], in[i].at, in[i].count * sizeof in[i].at[0]);
        out->count += in[i].count;
    }
    return true;
}

static bool fold_unsqueeze(struct onnx_call *c, const struct sizes *in, struct sizes *out)
{
    (void)c;
    *out = in[0];
    out->rank = 1;
    return in[0].rank == 0; /* one element */
}

static bool fold_squeeze(struct onnx_call *c, const struct sizes *in, struct sizes *out)
{
    (void)c;
    *out = in[0];
    out->rank = 0;
    return in[0].count == 1;
}

/* To rank 0 or 1. */
static bool fold_reshape(struct onnx_call *c, const struct sizes *in, struct sizes *out)
{
    (void)c;
    *out = in[0];
    out->rank = (int32_t)in[1].count;
    return in[1].count <= 1 && (in[1].count == 1 || in[0].count == 1);
}

static int64_t clamp(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* One axis: starts, ends, axes, steps as inputs or attributes. */
static bool fold_slice(struct onnx_call *c, const struct sizes *in, struct sizes *out)
{
    int64_t n = (int64_t)in[0].count, start, end, step = 1;
    rlx_list starts, ends;

    if (in[0].rank != 1)
        return false;
    if (c->in_count >= 3) {
        if (in[1].count != 1 || in[2].count != 1 || in[1].at[0].is_dim || in[2].at[0].is_dim)
            return false;
        start = in[1].at[0].number;
        end = in[2].at[0].number;
        if (c->in_count >= 5 && c->in[4])
            step = in[4].at[0].number;
    } else {
        if (!onnx_ints(c, "starts", &starts) || !onnx_ints(c, "ends", &ends) || starts.count != 1 ||
            ends.count != 1)
            return false;
        start = starts.at[0];
        end = ends.at[0];
    }
    if (step != 1 && step != -1)
        return false;
    start = clamp(start < 0 ? start + n : start, 0, step > 0 ? n : n - 1);
    end = end < -n ? -n - 1 : end;
    end = clamp(end < 0 ? end + n : end, step > 0 ? 0 : -1, n);
    out->rank = 1;
    for (int64_t i = start; step > 0 ? i < end : i > end; i += step)
        out->at[out->count++] = in[0].at[i];
    return true;
}

static bool fold_product(struct onnx_call *c, const struct sizes *in, struct sizes *out)
{
    out->rank = onnx_int(c, "keepdims", 1) ? in[0].rank : 0;
    out->count = 1;
    out->at[0] = number(1);
    for (size_t i = 0; i < in[0].count; i++)
        if (!mul(onnx_dims(c), out->at[0], in[0].at[i], &out->at[0]))
            return false;
    return in[0].rank == 1;
}

/* Where(Equal(shape, -1), ones, shape): a size is never a number below 0. */
static bool fold_where(struct onnx_call *c, const struct sizes *in, struct sizes *out)
{
    (void)c;
    out->count = in[0].count;
    out->rank = in[0].rank;
    for (int k = 1; k < 3; k++) {
        if (in[k].count != 1 && in[k].count > out->count) {
            out->count = in[k].count;
            out->rank = in[k].rank;
        }
    }
    for (size_t i = 0; i < out->count; i++) {
        const struct onnx_size *cond = &in[0].at[in[0].count == 1 ? 0 : i];
        const struct sizes *from = cond->number ? &in[1] : &in[2];
        if (cond->is_dim || (in[0].count != 1 && in[0].count != out->count) ||
            (from->count != 1 && from->count != out->count))
            return false;
        out->at[i] = from->at[from->count == 1 ? 0 : i];
    }
    return true;
}

/* Gives truth values, so it answers for itself. */
static bool fold_equal(struct onnx_call *c, const struct sizes *in, struct sizes *out)
{
    const struct sizes *a = &in[0], *b = &in[1];
    size_t n = a->count == 1 ? b->count : a->count;
    struct ir_type type = {
        .dtype = RLX_DTYPE_bool, .rank = a->rank > b->rank ? a->rank : b->rank, .dim = {(ir_dim)n}};
    uint8_t *data = arena_array(onnx_arena(c), uint8_t, n);

    (void)out;
    if (!data || (a->count != b->count && a->count != 1 && b->count != 1))
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct onnx_size *x = &a->at[a->count == 1 ? 0 : i];
        const struct onnx_size *y = &b->at[b->count == 1 ? 0 : i];
        bool apart = (!x->is_dim && x->number < 0) || (!y->is_dim && y->number < 0);
        data[i] = same_size(x, y);
        if (!data[i] && (x->is_dim || y->is_dim) && !apart)
            return false;
    }
    onnx_give_known(c, 0, &type, data);
    return true;
}

static const struct {
    const char *op;
    fold_fn fold;
} folds[] = {
    {"Add", fold_add},         {"Sub", fold_sub},
    {"Mul", fold_mul},         {"Div", fold_div},
    {"Identity", fold_same},   {"Cast", fold_cast},
    {"Gather", fold_gather},   {"Concat", fold_concat},
    {"Slice", fold_slice},     {"Unsqueeze", fold_unsqueeze},
    {"Squeeze", fold_squeeze}, {"Reshape", fold_reshape},
    {"Where", fold_where},     {"ReduceProd", fold_product},
    {"Equal", fold_equal},
};

/* An input as sizes; integers and truth values of rank 0 or 1. */
static bool take(struct onnx_call *c, size_t i, struct sizes *out)
{
    const struct onnx_value *v = c->in[i];
    size_t count;

    if (v->is_sequence || v->type.rank > 1 || (!v->data && !v->size))
        return false;
    out->rank = v->type.rank;
    out->dtype = v->type.dtype;
    if (v->data && !dtype_is(v->type.dtype, CLASS_F)) {
        const int64_t *at = onnx_i64s(c, i, &count);
        if (!at || count > MAX_SIZES)
            return false;
        for (size_t k = 0; k < count; k++)
            out->at[k] = number(at[k]);
        out->count = count;
        return true;
    }
    rlx_status before = c->f.status;
    bool good = onnx_sizes_in(c, i, out->at, MAX_SIZES, &out->count);
    c->f.status = before; /* something that is not an integer is not a failure yet */
    return good;
}

/* In the type it has; plain numbers of types other than i64 are not worth the trouble. */
static void give(struct onnx_call *c, const struct sizes *s)
{
    onnx_give_sizes(c, 0, s->rank, s->at, s->count);
    if (c->out[0].size)
        c->out[0].type.dtype = s->dtype;
}

bool onnx_fold_sizes(struct onnx_call *c)
{
    struct sizes in[MAX_SIZES], out = {.count = 0};
    fold_fn fold = NULL;
    bool any = false;

    for (size_t i = 0; i < c->in_count; i++)
        any |= c->in[i] && c->in[i]->size;
    if (!any || c->node->domain.len || c->in_count > MAX_SIZES)
        return false;
    for (size_t i = 0; i < sizeof folds / sizeof folds[0]; i++)
        if (str_eq(c->node->op, rlx_cstr(folds[i].op)))
            fold = folds[i].fold;
    if (!fold)
        return false;
    memset(in, 0, sizeof in);
    for (size_t i = 0; i < c->in_count; i++)
        if (c->in[i] && !take(c, i, &in[i]))
            return false;
    for (size_t i = 0; i < c->in_count; i++)
        if (c->in[i] && c->in[i]->size)
            out.dtype = c->in[i]->type.dtype;
    if (!fold(c, in, &out))
        return false;
    if (c->out_count && !c->out[0].data)
        give(c, &out);
    return true;
}
