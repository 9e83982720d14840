/* onnx_ml.c: ops of ai.onnx.ml on rows of numbers: scaling, looking up, linear models. Features are
 * the last axis. */
#include "import/onnx/handlers/onnx_ml.h"

#include <math.h>

#include "base/str.h"

ir_value onnx_list_of(struct onnx_call *c, const double *at, rlx_dtype dtype, rlx_list shape)
{
    struct ir_type t = {.dtype = RLX_DTYPE_f64, .rank = shape.count};
    int64_t count = 1;

    for (int32_t i = 0; i < shape.count; i++) {
        t.dim[i] = shape.at[i];
        count *= shape.at[i];
    }
    if (dtype == RLX_DTYPE_f64)
        return onnx_table_of(c, &t, at);
    /* Not every device has f64: such numbers are made what they are to be here. */
    t.dtype = dtype_is(dtype, CLASS_F) ? RLX_DTYPE_f32 : RLX_DTYPE_i64;
    void *own = arena_alloc(onnx_arena(c), (size_t)count * rlx_dtype_size(t.dtype), 16);
    if (!own) {
        c->f.status = diag_no_memory(c->f.diag, (size_t)count * rlx_dtype_size(t.dtype));
        return RLX_NO_VALUE;
    }
    for (int64_t i = 0; i < count; i++) {
        if (t.dtype == RLX_DTYPE_f32)
            ((float *)own)[i] = (float)at[i];
        else
            ((int64_t *)own)[i] = fabs(at[i]) < 0x1p63 ? (int64_t)at[i] : INT64_MIN;
    }
    return formula_cast(&c->f, onnx_table_of(c, &t, own), dtype);
}

/* ---- elements ---- */

void onnx_binarizer(struct onnx_call *c)
{
    struct formula *f = &c->f;
    rlx_dtype t = onnx_type(c, 0)->dtype;
    ir_value edge = formula_number_of(f, t, onnx_float(c, "threshold", 0));

    onnx_give(c, 0, formula_cast(f, formula_2(f, RLX_OP_gt, onnx_in(c, 0), edge), t));
}

/* x[.., y] along the last axis; rows of one axis become [1, n]. */
void onnx_array_feature_extractor(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0), y = *onnx_type(c, 1);
    union ir_attr attr;

    if (t.rank < 1) {
        formula_fail(f, RLX_ERROR_SHAPE, "features of rank 0");
        return;
    }
    ir_dim count = onnx_product(c, &y, 0, y.rank);
    attr_defaults(RLX_OP_gather, &attr);
    attr.gather.axis = t.rank - 1;
    ir_value in[] = {onnx_in(c, 0), formula_reshape(f, onnx_in(c, 1), RLX_LIST(count))};
    ir_value v = formula_node(f, RLX_OP_gather, in, 2, &attr);
    onnx_give(c, 0, t.rank == 1 ? formula_reshape(f, v, RLX_LIST(1, count)) : v);
}

/* A list of the attribute that goes with the features: one for all, or one for each. */
static ir_value per_feature(struct onnx_call *c, const char *name, rlx_dtype dtype)
{
    const struct ir_type t = *onnx_type(c, 0);
    size_t count;
    const double *at = onnx_numbers(c, name, &count);

    if (!at || (count != 1 && (t.rank < 1 || (ir_dim)count != t.dim[t.rank - 1]))) {
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "%s has %zu entries", name, count);
        return RLX_NO_VALUE;
    }
    return onnx_list_of(c, at, dtype, count == 1 ? RLX_EMPTY : RLX_LIST((int64_t)count));
}

void onnx_scaler(struct onnx_call *c)
{
    struct formula *f = &c->f;
    ir_value x = formula_cast(f, onnx_in(c, 0), RLX_DTYPE_f32);

    x = formula_2(f, RLX_OP_sub, x, per_feature(c, "offset", RLX_DTYPE_f32));
    onnx_give(c, 0, formula_2(f, RLX_OP_mul, x, per_feature(c, "scale", RLX_DTYPE_f32)));
}

void onnx_imputer(struct onnx_call *c)
{
    struct formula *f = &c->f;
    rlx_dtype t = onnx_type(c, 0)->dtype;
    bool floats = dtype_is(t, CLASS_F);
    double old = floats ? onnx_float(c, "replaced_value_float", 0)
                        : (double)onnx_int(c, "replaced_value_int64", 0);
    ir_value x = onnx_in(c, 0);
    ir_value is = isnan(old) ? formula_2(f, RLX_OP_ne, x, x)
                             : formula_2(f, RLX_OP_eq, x, formula_number_of(f, t, old));
    ir_value by = per_feature(c, floats ? "imputed_value_floats" : "imputed_value_int64s", t);

    onnx_give(c, 0, formula_where(f, is, by, x));
}

void onnx_normalizer(struct onnx_call *c)
{
    struct formula *f = &c->f;
    rlx_str norm = onnx_text(c, "norm", "MAX");
    int32_t rank = onnx_type(c, 0)->rank;
    ir_value x = formula_cast(f, onnx_in(c, 0), RLX_DTYPE_f32), by = RLX_NO_VALUE;
    rlx_list last = RLX_LIST(rank - 1);

    f->dtype = RLX_DTYPE_f32;
    if (rank < 1 || rank > 2)
        formula_fail(f, RLX_ERROR_SHAPE, "rows of rank %d", rank);
    if (str_eq(norm, STR("MAX")))
        by = formula_reduce(f, RLX_OP_reduce_max, x, last, true);
    else if (str_eq(norm, STR("L1")))
        by = formula_reduce(f, RLX_OP_reduce_sum, formula_1(f, RLX_OP_abs, x), last, true);
    else if (str_eq(norm, STR("L2"))) {
        by = formula_reduce(f, RLX_OP_reduce_sum, formula_2(f, RLX_OP_mul, x, x), last, true);
        by = formula_1(f, RLX_OP_sqrt, by);
    } else
        formula_fail(f, RLX_ERROR_ATTRIBUTE, "norm \"%.*s\"", STR_ARG(norm));
    ir_value none = formula_2(f, RLX_OP_eq, by, formula_number(f, 0));
    by = formula_where(f, none, formula_number(f, 1), by);
    onnx_give(c, 0, formula_2(f, RLX_OP_div, x, by));
}

/* An axis more, of a place for each category: 1 where the element is it. */
void onnx_one_hot_encoder(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    const struct onnx_attr *a = onnx_attr(c, "cats_int64s");
    struct ir_type all = {.dtype = RLX_DTYPE_i64, .rank = 1};
    rlx_list apart = {.count = t.rank + 1};

    if (!a || !a->ints.count || t.rank >= RLX_MAX_RANK || !onnx_int(c, "zeros", 1)) {
        onnx_unsupported(c, "categories that are not integers, or must all be known");
        return;
    }
    all.dim[0] = (ir_dim)a->ints.count;
    for (int32_t i = 0; i <= t.rank; i++)
        apart.at[i] = i < t.rank ? t.dim[i] : 1;
    ir_value x = formula_reshape(f, formula_cast(f, onnx_in(c, 0), RLX_DTYPE_i64), apart);
    ir_value is = formula_2(f, RLX_OP_eq, x, onnx_table_of(c, &all, a->ints.at));
    onnx_give(c, 0, formula_cast(f, is, RLX_DTYPE_f32));
}

/* Rows side by side, as f32. */
void onnx_feature_vectorizer(struct onnx_call *c)
{
    ir_value *part = arena_array(onnx_arena(c), ir_value, c->in_count);

    if (!part) {
        c->f.status = diag_no_memory(c->f.diag, c->in_count * sizeof *part);
        return;
    }
    for (size_t i = 0; i < c->in_count && !onnx_failed(c); i++) {
        const struct ir_type t = *onnx_type(c, i);
        if (t.rank < 1 || t.rank > 2)
            formula_fail(&c->f, RLX_ERROR_SHAPE, "input %zu has rank %d", i, t.rank);
        part[i] = formula_cast(&c->f, onnx_in(c, i), RLX_DTYPE_f32);
        if (t.rank == 1)
            part[i] = formula_reshape(&c->f, part[i], RLX_LIST(1, t.dim[0]));
    }
    if (c->in_count && !onnx_failed(c))
        onnx_give(c, 0, formula_concat(&c->f, part, (int32_t)c->in_count, 1));
}

/* ---- LabelEncoder ---- */

struct labels {
    const double *key, *value;
    size_t count;
    rlx_dtype dtype; /* of the values */
    double otherwise;
};

/* The first of these attributes that there is. */
static const double *first_of(struct onnx_call *c, const char *const *name, size_t *count,
                              const char **which)
{
    const double *at = NULL;

    for (*which = *name; *name && !at; name++)
        if ((at = onnx_numbers(c, *name, count)))
            *which = *name;
    return at;
}

static bool read_labels(struct onnx_call *c, struct labels *l)
{
    static const char *const keys[] = {"keys_int64s", "keys_floats", "keys_tensor", NULL};
    static const char *const values[] = {"values_int64s", "values_floats", "values_tensor", NULL};
    const char *key, *value;
    size_t count, ignored;

    l->key = first_of(c, keys, &l->count, &key);
    l->value = first_of(c, values, &count, &value);
    if (!l->key || !l->value || l->count != count) {
        onnx_unsupported(c, "keys and values that are not lists of numbers of equal length");
        return false;
    }
    const struct onnx_attr *a = onnx_attr(c, "values_tensor");
    bool ints = str_eq(rlx_cstr(value), STR("values_int64s"));
    l->dtype = ints ? RLX_DTYPE_i64 : RLX_DTYPE_f32;
    if (str_eq(rlx_cstr(value), STR("values_tensor")) && !onnx_dtype(a->t->data_type, &l->dtype))
        return false;
    const double *own = onnx_numbers(c, "default_tensor", &ignored);
    l->otherwise = own && ignored                ? own[0]
                   : dtype_is(l->dtype, CLASS_F) ? onnx_float(c, "default_float", -0.0)
                                                 : (double)onnx_int(c, "default_int64", -1);
    return !onnx_failed(c);
}

/* Each element is compared with all keys, and takes the value of the one it is. */
void onnx_label_encoder(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    rlx_list apart = {.count = t.rank + 1};
    struct labels l;
    union ir_attr attr;

    if (!read_labels(c, &l))
        return;
    if (t.rank >= RLX_MAX_RANK) {
        onnx_unsupported(c, "a tensor of rank %d", t.rank);
        return;
    }
    rlx_list all = RLX_LIST((int64_t)l.count);
    for (int32_t i = 0; i <= t.rank; i++)
        apart.at[i] = i < t.rank ? t.dim[i] : 1;
    ir_value x = formula_reshape(f, onnx_in(c, 0), apart);
    ir_value key = onnx_list_of(c, l.key, t.dtype, all);
    ir_value value = onnx_list_of(c, l.value, l.dtype, all);
    if (c->opset >= 4) { /* the last of equal keys counts */
        key = formula_reverse(f, key, 0);
        value = formula_reverse(f, value, 0);
    }
    ir_value is = formula_2(f, RLX_OP_eq, x, key);
    if (dtype_is(t.dtype, CLASS_F)) { /* NaN is found, too */
        ir_value nan = formula_2(f, RLX_OP_bit_and, formula_2(f, RLX_OP_ne, x, x),
                                 formula_2(f, RLX_OP_ne, key, key));
        is = formula_2(f, RLX_OP_bit_or, is, nan);
    }
    is = formula_cast(f, is, RLX_DTYPE_i32);
    attr_defaults(RLX_OP_argmax, &attr);
    attr.arg_extreme.axis = t.rank;
    ir_value at = formula_node(f, RLX_OP_argmax, &is, 1, &attr);
    ir_value any = formula_reduce(f, RLX_OP_reduce_max, is, RLX_LIST(t.rank), false);
    any = formula_2(f, RLX_OP_ne, any, formula_number_of(f, RLX_DTYPE_i32, 0));
    onnx_give(c, 0,
              formula_where(f, any, formula_2(f, RLX_OP_gather, value, at),
                            formula_number_of(f, l.dtype, l.otherwise)));
}

/* ---- scores ---- */

enum onnx_post onnx_post_of(struct onnx_call *c, int64_t scores)
{
    static const char *const words[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"};
    const struct onnx_attr *a = onnx_attr(c, "post_transform");
    int64_t how = a && !a->s.len ? a->i : 0; /* TreeEnsemble has numbers */

    for (int64_t i = 0; a && a->s.len && i < 4; i++)
        how = str_eq(a->s, rlx_cstr(words[i])) ? i : i ? how : -1;
    if (how < 0 || how > 3)
        onnx_unsupported(c, "post_transform \"%.*s\" (%lld)", STR_ARG(a->s), (long long)how);
    else if (how && scores == 1) /* which is done by some and not by others */
        onnx_unsupported(c, "post_transform %s of a single score", words[how]);
    return onnx_failed(c) ? ONNX_POST_NONE : (enum onnx_post)how;
}

ir_value onnx_post(struct onnx_call *c, enum onnx_post how, ir_value scores)
{
    struct formula *f = &c->f;
    union ir_attr attr;

    if (onnx_failed(c) || how == ONNX_POST_NONE)
        return scores;
    if (how == ONNX_POST_LOGISTIC)
        return formula_1(f, RLX_OP_sigmoid, scores);
    rlx_dtype t = formula_type(f, scores)->dtype;
    if (how == ONNX_POST_SOFTMAX_ZERO) { /* zeros stay out of it */
        ir_value none = formula_2(f, RLX_OP_eq, scores, formula_number_of(f, t, 0));
        scores = formula_where(f, none, formula_number_of(f, t, -INFINITY), scores);
    }
    attr_defaults(RLX_OP_softmax, &attr);
    attr.softmax.axis = 1;
    return formula_node(f, RLX_OP_softmax, &scores, 1, &attr);
}

ir_value onnx_post_pair(struct onnx_call *c, enum onnx_post how, ir_value s, double rest)
{
    struct formula *f = &c->f;

    if (onnx_failed(c))
        return RLX_NO_VALUE;
    rlx_dtype t = formula_type(f, s)->dtype;
    if (how == ONNX_POST_SOFTMAX || how == ONNX_POST_SOFTMAX_ZERO)
        onnx_unsupported(c, "a softmax over the score of one of two classes");
    if (how == ONNX_POST_LOGISTIC)
        rest = 0;
    ir_value other = formula_2(f, RLX_OP_sub, formula_number_of(f, t, rest), s);
    ir_value both = formula_concat(f, (const ir_value[]){other, s}, 2, 1);
    return how == ONNX_POST_LOGISTIC ? onnx_post(c, how, both) : both;
}

ir_value onnx_label(struct onnx_call *c, const char *name, ir_value number)
{
    const struct onnx_attr *a = onnx_attr(c, name);
    struct ir_type t = {.dtype = RLX_DTYPE_i64, .rank = 1};

    if (!a || !a->ints.count) {
        onnx_unsupported(c, "class labels that are not integers (%s)", name);
        return RLX_NO_VALUE;
    }
    t.dim[0] = (ir_dim)a->ints.count;
    return formula_2(&c->f, RLX_OP_gather, onnx_table_of(c, &t, a->ints.at), number);
}

/* ---- linear models ---- */

/* x [N, F] or [F] times the coefficients of each score, and the intercepts: [N, K]. */
static ir_value linear(struct onnx_call *c, int64_t *scores)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    size_t count, starts;
    const double *at = onnx_numbers(c, "coefficients", &count);
    const double *start = onnx_numbers(c, "intercepts", &starts);
    ir_dim features = t.rank ? t.dim[t.rank - 1] : 0;

    *scores = 1;
    if (t.rank < 1 || t.rank > 2 || !dim_is_static(features) || features < 1 || !at ||
        count % (size_t)features || (start && starts != count / (size_t)features)) {
        formula_fail(f, RLX_ERROR_SHAPE, "%zu coefficients and %zu intercepts for %lld features",
                     count, starts, (long long)features);
        return RLX_NO_VALUE;
    }
    *scores = (int64_t)count / features;
    f->dtype = RLX_DTYPE_f32;
    ir_value x = formula_cast(f, onnx_in(c, 0), f->dtype);
    x = formula_reshape(f, x, RLX_LIST(t.rank == 1 ? 1 : t.dim[0], features));
    ir_value w = onnx_list_of(c, at, f->dtype, RLX_LIST(*scores, features));
    ir_value y = formula_matmul(f, x, w, false, true);
    return start ? formula_2(f, RLX_OP_add, y, onnx_list_of(c, start, f->dtype, RLX_LIST(*scores)))
                 : y;
}

void onnx_linear_regressor(struct onnx_call *c)
{
    int64_t scores;
    ir_value y = linear(c, &scores);

    if (scores != onnx_int(c, "targets", 1))
        formula_fail(&c->f, RLX_ERROR_SHAPE, "coefficients of %lld targets, not %lld",
                     (long long)scores, (long long)onnx_int(c, "targets", 1));
    onnx_give(c, 0, onnx_post(c, onnx_post_of(c, scores), y));
}

void onnx_linear_classifier(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct onnx_attr *labels = onnx_attr(c, "classlabels_ints");
    int64_t scores, classes = labels ? (int64_t)labels->ints.count : 0;
    ir_value y = linear(c, &scores), number;
    union ir_attr attr;

    if (classes != scores && !(classes == 2 && scores == 1))
        formula_fail(f, RLX_ERROR_SHAPE, "%lld scores of %lld classes with labels of numbers",
                     (long long)scores, (long long)classes);
    enum onnx_post how = onnx_post_of(c, classes);
    if (classes == 2 && scores == 1 && !onnx_failed(c)) {
        number = formula_2(f, RLX_OP_gt, y, formula_number(f, 0));
        number = formula_reshape(f, formula_cast(f, number, RLX_DTYPE_i32),
                                 RLX_LIST(formula_type(f, y)->dim[0]));
        y = onnx_post_pair(c, how, y, 1);
    } else {
        attr_defaults(RLX_OP_argmax, &attr);
        attr.arg_extreme.axis = 1;
        number = formula_node(f, RLX_OP_argmax, &y, 1, &attr);
        y = onnx_post(c, how, y);
    }
    onnx_give(c, 0, onnx_label(c, "classlabels_ints", number));
    onnx_give(c, 1, y);
}
