/* conv_core.h: convolution as a product over windows, in both directions.
 *
 *     out[image, group m, position] = sum over channels ch and taps t of
 *                                         w[group, m, ch, t] * src[image, group ch, position + t]
 *
 * Forward, an output element is a position, and the formula is the definition. The transposed
 * convolution (and so the gradient for the input) scatters: src[i] goes to out[i * s + t * d - p].
 * To gather instead, take the outputs o that have the same (o + p) mod s: they are reached by the
 * same taps, every s / gcd(s, d) -th one, and neighbours among them read neighbours in src. Such
 * outputs are a class; along each axis there are s classes, and each class has the form above. */
#ifndef BACKEND_CONV_CORE_H
#define BACKEND_CONV_CORE_H

#include "backend/cpu/kernels/conv/windows.h"
#include "backend/cpu/kernels/gemm/gemm.h"

struct conv {
    const struct cpu_tensor *src, *w, *out;
    bool transposed;
    int64_t images, groups;
    int64_t m, ch; /* channels per group: of out, of src */
    int64_t src_dim[3], out_dim[3];
    int64_t kernel[3], stride[3], pad[3], dilation[3];
    int64_t w_line, w_ch;        /* strides of w along m and ch; along taps it is dense */
    int64_t x_zero, w_zero;      /* i8 only */
    gemm_store_fn store;         /* its context is struct conv; NULL: by out's dtype */
    const struct cpu_call *call; /* for that function */

    /* Forward and of floats only: what is done to sums before they are stored. */
    const struct cpu_tensor *bias, *residual; /* [groups * m], like out; NULL: none */
    rlx_op act;                               /* RLX_OP_none */

    bool folded; /* positions of all images are columns of one product */
    int64_t classes[3];
};

/* One class of outputs. */
struct conv_class {
    struct windows win;        /* src: NULL */
    int64_t first[3], step[3]; /* a position's place in out: first + position * step */
    int64_t w_first, w_tap[3]; /* where taps are in w */
};

#define conv_prepare CPU_NAME(conv_prepare)
#define conv_class_at CPU_NAME(conv_class_at)
#define conv_scratch CPU_NAME(conv_scratch)
#define conv_run CPU_NAME(conv_run)
#define conv_store_row CPU_NAME(conv_store_row)
#define conv_direct CPU_NAME(conv_direct)
#define conv_direct_weight CPU_NAME(conv_direct_weight)
#define conv_any_special CPU_NAME(conv_any_special)

struct conv_lists {
    const rlx_list *stride, *padding, *dilation; /* as attributes hold them */
};

/* Everything that follows from the tensors' shapes, from `transposed` and from attributes. bias,
 * residual and act may be set afterwards. */
void conv_prepare(struct conv *v, const struct conv_lists *l, int64_t groups);
void conv_class_at(const struct conv *v, int64_t at, struct conv_class *c);
uint64_t conv_scratch(const struct conv *v, const struct pool *pool);
void conv_run(const struct conv *v, struct pool *pool, void *scratch);

/* conv_direct.c: by loops over the definition, floats only: where there are too few channels for a
 * product, and where an infinity or NaN must not be multiplied with a zero of the padding. */
void conv_direct(const struct conv *v, struct pool *pool);
/* dw from x (as src) and dy (as out): w's shape [groups * m, ch, taps]. */
void conv_direct_weight(const struct conv *v, const struct cpu_tensor *dw, struct pool *pool);

/* n sums (f64 for f64, else f32) of one channel to elements of out, `step` apart from element `to`
 * on, with bias, residual and activation. */
void conv_store_row(const struct conv *v, const void *sum, int64_t to, int64_t step, int64_t n);

/* Whether a float tensor has an infinity or a NaN. */
bool conv_any_special(const struct cpu_tensor *t, struct pool *pool);

/* Fewer rows than this do not fill a panel well enough. */
enum { CONV_DIRECT_ROWS = 4 };

static inline int64_t conv_class_count(const struct conv *v)
{
    return windows_volume(v->classes);
}

/* Three axes from a tensor's last ones, or a list; `fill` in front. */
static inline void conv_three(const int64_t *at, int32_t count, int64_t fill, int64_t *out)
{
    for (int32_t i = 0; i < 3; i++)
        out[i] = i + count < 3 ? fill : at[i + count - 3];
}

#endif
