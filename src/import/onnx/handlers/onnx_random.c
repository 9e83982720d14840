/* onnx_random.c: random numbers of ONNX, and what is made of them.
 *
 * ONNX leaves the generator open. Ours counts: a node's numbers follow from its seed, or its name
 * where it has none, and are the same in every run and on every device. */
#include <string.h>

#include "import/onnx/read/onnx_build.h"

#define MAX_SAMPLES (1 << 24)

static uint64_t seed_of(const struct onnx_call *c)
{
    const struct onnx_attr *a = onnx_attr(c, "seed");
    rlx_str name = c->node->name;
    uint32_t bits;

    if (a) { /* a float, but an integer of Dropout */
        memcpy(&bits, &a->f, sizeof bits);
        return bits ^ (uint64_t)a->i << 32;
    }
    if (name.len == 0 && c->node->output.count)
        name = c->node->output.at[0];
    return hash_bytes(name.ptr, name.len);
}

/* The type asked for by the attribute, which must be a type of floats; otherwise a failure. */
static rlx_dtype dtype_asked(struct onnx_call *c, rlx_dtype otherwise, unsigned classes)
{
    int64_t asked = onnx_int(c, "dtype", 0);
    rlx_dtype t = otherwise;

    if ((asked && !onnx_dtype(asked, &t)) || !dtype_is(t, classes))
        onnx_unsupported(c, "random elements of type %s",
                         asked ? onnx_dtype_name(asked) : rlx_dtype_name(otherwise));
    return t;
}

/* Of f32, from 0 up to 1. */
static ir_value uniform(struct onnx_call *c, rlx_list shape, double low, double high)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_rng_uniform, &attr);
    attr.rng_uniform.shape = shape;
    attr.rng_uniform.low = (float)low;
    attr.rng_uniform.high = (float)high;
    attr.rng_uniform.seed = seed_of(c);
    return formula_node(&c->f, RLX_OP_rng_uniform, NULL, 0, &attr);
}

static ir_value normal(struct onnx_call *c, rlx_list shape)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_rng_normal, &attr);
    attr.rng_normal.shape = shape;
    attr.rng_normal.mean = (float)onnx_float(c, "mean", 0);
    attr.rng_normal.scale = (float)onnx_float(c, "scale", 1);
    attr.rng_normal.seed = seed_of(c);
    return formula_node(&c->f, RLX_OP_rng_normal, NULL, 0, &attr);
}

/* ---- RandomNormal, RandomUniform, and those of an input's shape ---- */

static bool shape_asked(struct onnx_call *c, rlx_list *out)
{
    if (!onnx_ints(c, "shape", out)) {
        formula_fail(&c->f, RLX_ERROR_FORMAT, "there is no shape");
        return false;
    }
    for (int32_t i = 0; i < out->count; i++)
        if (out->at[i] < 0)
            formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "axis %d has %lld elements", i,
                         (long long)out->at[i]);
    return !onnx_failed(c);
}

static void give_random(struct onnx_call *c, rlx_list shape, rlx_dtype otherwise, bool is_normal)
{
    rlx_dtype t = dtype_asked(c, otherwise, CLASS_F);
    ir_value v = is_normal ? normal(c, shape)
                           : uniform(c, shape, onnx_float(c, "low", 0), onnx_float(c, "high", 1));

    onnx_give(c, 0, formula_cast(&c->f, v, t));
}

void onnx_random_normal(struct onnx_call *c)
{
    rlx_list shape;

    if (shape_asked(c, &shape))
        give_random(c, shape, RLX_DTYPE_f32, true);
}

void onnx_random_uniform(struct onnx_call *c)
{
    rlx_list shape;

    if (shape_asked(c, &shape))
        give_random(c, shape, RLX_DTYPE_f32, false);
}

void onnx_random_normal_like(struct onnx_call *c)
{
    const struct ir_type t = *onnx_type(c, 0);

    give_random(c, formula_shape(&t), t.dtype, true);
}

void onnx_random_uniform_like(struct onnx_call *c)
{
    const struct ir_type t = *onnx_type(c, 0);

    give_random(c, formula_shape(&t), t.dtype, false);
}

/* ---- what is drawn by them ---- */

void onnx_bernoulli(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    rlx_dtype to = dtype_asked(c, t.dtype, CLASS_REAL | CLASS_B);
    ir_value p = formula_cast(f, onnx_in(c, 0), RLX_DTYPE_f32);
    ir_value u = uniform(c, formula_shape(&t), 0, 1);

    onnx_give(c, 0, formula_cast(f, formula_2(f, RLX_OP_lt, u, p), to));
}

/* sample_size draws from each row of logarithms of shares, [B, C] to [B, sample_size]. */
void onnx_multinomial(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    int64_t draws = onnx_int(c, "sample_size", 1);
    rlx_dtype to = dtype_asked(c, RLX_DTYPE_i32, CLASS_INT);
    union ir_attr attr;

    if (t.rank != 2 || draws < 1 || draws > MAX_SAMPLES) {
        onnx_unsupported(c, "%lld samples of a tensor of rank %d", (long long)draws, t.rank);
        return;
    }
    ir_value x = formula_reshape(f, formula_cast(f, onnx_in(c, 0), RLX_DTYPE_f32),
                                 RLX_LIST(t.dim[0], 1, t.dim[1]));
    x = formula_expand(f, x, RLX_LIST(t.dim[0], draws, t.dim[1]));
    attr_defaults(RLX_OP_sample, &attr);
    attr.sample.seed = seed_of(c);
    onnx_give(c, 0, formula_cast(f, formula_node(f, RLX_OP_sample, &x, 1, &attr), to));
}

/* The input itself, unless it trains and drops some. */
void onnx_dropout(struct onnx_call *c)
{
    struct formula *f = &c->f;
    struct ir_type t = *onnx_type(c, 0);
    double training = 0, ratio = 0.5;
    ir_value x = onnx_in(c, 0), kept;

    if (onnx_has(c, 2))
        onnx_number_in(c, 2, &training);
    if (training != 0 && onnx_has(c, 1))
        onnx_number_in(c, 1, &ratio);
    if (!(ratio >= 0 && ratio < 1))
        formula_fail(f, RLX_ERROR_FORMAT, "a ratio of %g", ratio);
    f->dtype = t.dtype;
    if (training != 0 && ratio > 0) {
        ir_value u = uniform(c, formula_shape(&t), 0, 1);
        kept = formula_2(f, RLX_OP_ge, u, formula_number_of(f, RLX_DTYPE_f32, ratio));
        x = formula_where(f, kept, onnx_times(f, x, 1 / (1 - ratio)), formula_number(f, 0));
    } else {
        t.dtype = RLX_DTYPE_bool;
        kept = c->out_count > 1 ? formula_fill(f, &t, 1) : RLX_NO_VALUE;
    }
    onnx_give(c, 0, x);
    onnx_give(c, 1, kept);
}
