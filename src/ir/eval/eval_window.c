/* eval_window.c: convolution, pooling and their gradients (ops-core.md 12). Every op here walks
 * pairs of an output position and a position in its window; `tap` says where in the input such a
 * pair is.
 */
#include <math.h>

#include "ir/eval/eval.h"

struct window {
    int32_t axes;                                        /* spatial axes */
    const int64_t *kernel, *stride, *padding, *dilation; /* dilation NULL: 1 */
    const int64_t *in, *out;                             /* spatial sizes */
    int64_t kernel_count, in_count, out_count;
};

static int64_t product(const int64_t *n, int32_t count)
{
    int64_t p = 1;

    for (int32_t i = 0; i < count; i++)
        p *= n[i];
    return p;
}

static struct window make_window(const rlx_list *kernel, const rlx_list *stride,
                                 const rlx_list *padding, const rlx_list *dilation,
                                 const struct eval_tensor *x, const struct eval_tensor *y)
{
    struct window w = {.axes = x->type.rank - 2,
                       .kernel = kernel->at,
                       .stride = stride->at,
                       .padding = padding->at,
                       .dilation = dilation ? dilation->at : NULL,
                       .in = x->type.dim + 2,
                       .out = y->type.dim + 2};

    w.kernel_count = product(w.kernel, w.axes);
    w.in_count = product(w.in, w.axes);
    w.out_count = product(w.out, w.axes);
    return w;
}

/* The input position (flattened) that output o and kernel position k meet at; -1: in the padding.
 */
static int64_t tap(const struct window *w, int64_t o, int64_t k)
{
    int64_t at = 0, scale = 1;

    for (int32_t a = w->axes; a-- > 0;) {
        int64_t i = o % w->out[a] * w->stride[a] +
                    k % w->kernel[a] * (w->dilation ? w->dilation[a] : 1) - w->padding[a];
        if (i < 0 || i >= w->in[a])
            return -1;
        at += i * scale;
        scale *= w->in[a];
        o /= w->out[a];
        k /= w->kernel[a];
    }
    return at;
}

/* Calls visit for every product of a convolution of x [N,C,*] with w [O,C/groups,*] giving y. */
struct conv_term {
    int64_t x, w, y;
};
typedef void (*conv_visit)(void *user, const struct conv_term *t);

static void each_term(const struct window *win, int64_t items, int64_t channels, int64_t outputs,
                      int64_t groups, conv_visit visit, void *user)
{
    int64_t per_in = channels / groups, per_out = outputs / groups;

    for (int64_t n = 0; n < items; n++)
        for (int64_t co = 0; co < outputs; co++)
            for (int64_t ci = 0; ci < per_in; ci++)
                for (int64_t o = 0; o < win->out_count; o++)
                    for (int64_t k = 0; k < win->kernel_count; k++) {
                        int64_t i = tap(win, o, k);
                        struct conv_term t;
                        if (i < 0)
                            continue;
                        t.x = (n * channels + co / per_out * per_in + ci) * win->in_count + i;
                        t.w = (co * per_in + ci) * win->kernel_count + k;
                        t.y = (n * outputs + co) * win->out_count + o;
                        visit(user, &t);
                    }
}

struct conv_data {
    const struct eval_cell *x, *w, *y;
    struct eval_cell *to;
};

static void to_output(void *user, const struct conv_term *t)
{
    struct conv_data *d = user;
    d->to[t->y].f += d->x[t->x].f * d->w[t->w].f;
}

static void to_input(void *user, const struct conv_term *t)
{
    struct conv_data *d = user;
    d->to[t->x].f += d->y[t->y].f * d->w[t->w].f;
}

static void to_weight(void *user, const struct conv_term *t)
{
    struct conv_data *d = user;
    d->to[t->w].f += d->x[t->x].f * d->y[t->y].f;
}

rlx_status eval_conv(struct eval_call *c)
{
    const struct attr_conv *a = &c->attr->conv;
    struct window w =
        make_window(&a->kernel_size, &a->stride, &a->padding, &a->dilation, c->in[0], c->out);
    struct conv_data d = {.x = c->in[0]->at, .w = c->in[1]->at, .to = c->out->at};

    each_term(&w, c->out->type.dim[0], c->in[0]->type.dim[1], c->out->type.dim[1], a->groups,
              to_output, &d);
    return RLX_OK;
}

rlx_status eval_fused_conv_bias_act(struct eval_call *c)
{
    const struct attr_fused_conv_bias_act *a = &c->attr->fused_conv_bias_act;
    struct window w =
        make_window(&a->kernel_size, &a->stride, &a->padding, &a->dilation, c->in[0], c->out);
    struct conv_data d = {.x = c->in[0]->at, .w = c->in[1]->at, .to = c->out->at};

    each_term(&w, c->out->type.dim[0], c->in[0]->type.dim[1], c->out->type.dim[1], a->groups,
              to_output, &d);
    for (int64_t k = 0; k < c->out->count; k++) {
        double v = c->out->at[k].f + c->in[2]->at[k / w.out_count % c->out->type.dim[1]].f;
        if (a->has_residual)
            v += c->in[3]->at[k].f;
        bool bare = a->activation == RLX_OP_none || c->sizes;
        c->out->at[k].f = bare ? v : eval_unary_value(a->activation, v);
    }
    return RLX_OK;
}

rlx_status eval_conv_backward_input(struct eval_call *c) /* dy, w -> x */
{
    const struct attr_conv_backward_input *a = &c->attr->conv_backward_input;
    struct window w =
        make_window(&a->kernel_size, &a->stride, &a->padding, &a->dilation, c->out, c->in[0]);
    struct conv_data d = {.y = c->in[0]->at, .w = c->in[1]->at, .to = c->out->at};

    each_term(&w, c->out->type.dim[0], c->out->type.dim[1], c->in[0]->type.dim[1], a->groups,
              to_input, &d);
    return RLX_OK;
}

rlx_status eval_conv_backward_weight(struct eval_call *c) /* x, dy -> w */
{
    const struct attr_conv_backward_weight *a = &c->attr->conv_backward_weight;
    struct window w =
        make_window(&a->kernel_size, &a->stride, &a->padding, &a->dilation, c->in[0], c->in[1]);
    struct conv_data d = {.x = c->in[0]->at, .y = c->in[1]->at, .to = c->out->at};

    each_term(&w, c->in[0]->type.dim[0], c->in[0]->type.dim[1], c->in[1]->type.dim[1], a->groups,
              to_weight, &d);
    return RLX_OK;
}

/* Its own x is the y of the convolution that it turns around. */
rlx_status eval_conv_transpose(struct eval_call *c)
{
    const struct attr_conv_transpose *a = &c->attr->conv_transpose;
    struct window w =
        make_window(&a->kernel_size, &a->stride, &a->padding, &a->dilation, c->out, c->in[0]);
    struct conv_data d = {.y = c->in[0]->at, .w = c->in[1]->at, .to = c->out->at};

    each_term(&w, c->out->type.dim[0], c->out->type.dim[1], c->in[0]->type.dim[1], a->groups,
              to_input, &d);
    return RLX_OK;
}

/* ---- pooling ---- */

static rlx_op pool_op(int32_t kind)
{
    switch (kind) {
    case RLX_POOL_KIND_max: return RLX_OP_max;
    case RLX_POOL_KIND_min: return RLX_OP_min;
    case RLX_POOL_KIND_prod: return RLX_OP_mul;
    default: return RLX_OP_add;
    }
}

rlx_status eval_pool(struct eval_call *c)
{
    const struct attr_pool *a = &c->attr->pool;
    const struct eval_tensor *x = c->in[0];
    struct window w = make_window(&a->kernel_size, &a->stride, &a->padding, NULL, x, c->out);
    rlx_dtype t = c->out->type.dtype;

    for (int64_t k = 0; k < c->out->count; k++) {
        int64_t inside = 0, plane = k / w.out_count * w.in_count;
        struct eval_cell v = {0};
        for (int64_t p = 0; p < w.kernel_count; p++) {
            int64_t i = tap(&w, k % w.out_count, p);
            if (i < 0)
                continue;
            v = inside++ ? eval_cell_binary(pool_op(a->kind), t, v, x->at[plane + i])
                         : x->at[plane + i];
        }
        if (a->kind == RLX_POOL_KIND_mean)
            v.f /= (double)(a->count_include_pad ? w.kernel_count : inside);
        c->out->at[k] = v;
    }
    return RLX_OK;
}

rlx_status eval_max_pool_backward(struct eval_call *c)
{
    const struct attr_max_pool_backward *a = &c->attr->max_pool_backward;
    const struct eval_tensor *x = c->in[0], *dy = c->in[1];
    struct window w = make_window(&a->kernel_size, &a->stride, &a->padding, NULL, x, dy);

    for (int64_t k = 0; k < dy->count; k++) {
        int64_t best = -1, plane = k / w.out_count * w.in_count;
        for (int64_t p = 0; p < w.kernel_count; p++) {
            int64_t i = tap(&w, k % w.out_count, p);
            if (i < 0)
                continue;
            double v = x->at[plane + i].f;
            if (best < 0 ||
                (!isnan(x->at[plane + best].f) && (isnan(v) || v > x->at[plane + best].f)))
                best = i;
        }
        if (best >= 0)
            c->out->at[plane + best].f += dy->at[k].f;
    }
    return RLX_OK;
}

rlx_status eval_im2col(struct eval_call *c)
{
    const struct attr_im2col *a = &c->attr->im2col;
    const struct eval_tensor *x = c->in[0];
    int64_t out[2], channels = x->type.dim[1];
    struct eval_tensor shape = {.type = {.rank = 4, .dim = {0}}};

    for (int i = 0; i < 2; i++)
        out[i] = (x->type.dim[2 + i] + 2 * a->padding.at[i] -
                  a->dilation.at[i] * (a->kernel_size.at[i] - 1) - 1) /
                     a->stride.at[i] +
                 1;
    shape.type.dim[2] = out[0];
    shape.type.dim[3] = out[1];
    struct window w =
        make_window(&a->kernel_size, &a->stride, &a->padding, &a->dilation, x, &shape);
    int64_t columns = channels * w.kernel_count;
    for (int64_t k = 0; k < c->out->count; k++) {
        int64_t row = k / columns, ch = k % columns / w.kernel_count;
        int64_t i = tap(&w, row % w.out_count, k % w.kernel_count);
        if (i >= 0)
            c->out->at[k] = x->at[(row / w.out_count * channels + ch) * w.in_count + i];
    }
    return RLX_OK;
}
