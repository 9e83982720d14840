/* onnx_conv.c: convolutions of ONNX, forth and back. */
#include "base/str.h"
#include "import/onnx/handlers/onnx_window.h"

static bool kernel_of(struct onnx_call *c, const struct ir_type *w, rlx_list *out)
{
    out->count = w->rank - 2;
    for (int32_t i = 2; i < w->rank; i++) {
        if (!dim_is_static(w->dim[i])) {
            onnx_unsupported(c, "a kernel of symbolic size");
            return false;
        }
        out->at[i - 2] = w->dim[i];
    }
    if (w->rank < 3)
        formula_fail(&c->f, RLX_ERROR_SHAPE, "weights of rank %d", w->rank);
    return !onnx_failed(c);
}

ir_value onnx_per_channel(struct formula *f, ir_value v, int32_t rank)
{
    rlx_list shape = {.count = rank};

    for (int32_t i = 0; i < rank; i++)
        shape.at[i] = i == 1 ? RLX_DIM_INFER : 1;
    return rank < 2 ? v : formula_reshape(f, v, shape);
}

static ir_value add_bias(struct onnx_call *c, ir_value y)
{
    struct formula *f = &c->f;

    if (!onnx_has(c, 2) || onnx_failed(c))
        return y;
    return formula_2(f, RLX_OP_add, y,
                     onnx_per_channel(f, onnx_in(c, 2), formula_type(f, y)->rank));
}

ir_value onnx_convolve(struct onnx_call *c, ir_value x, ir_value w)
{
    struct formula *f = &c->f;
    struct onnx_window win;
    rlx_list kernel;
    union ir_attr attr;

    if (onnx_failed(c))
        return RLX_NO_VALUE;
    const struct ir_type t = *formula_type(f, x), tw = *formula_type(f, w);
    if (!kernel_of(c, &tw, &kernel) || !onnx_window_of(c, &t, &kernel, &win))
        return RLX_NO_VALUE;
    ir_value in[] = {win.even ? x : onnx_window_pad(c, &win, x, 0, true), w};
    attr_defaults(RLX_OP_conv, &attr);
    attr.conv.kernel_size = win.kernel;
    attr.conv.stride = win.stride;
    attr.conv.dilation = win.dilation;
    attr.conv.groups = onnx_int(c, "group", 1);
    if (win.even)
        attr.conv.padding = win.before;
    return formula_node(f, RLX_OP_conv, in, 2, &attr);
}

void onnx_conv(struct onnx_call *c)
{
    ir_value x = onnx_in(c, 0), w = onnx_in(c, 1);

    onnx_give(c, 0, add_bias(c, onnx_convolve(c, x, w)));
}

/* ---- ConvTranspose ---- */

/* What of the whole result, (L-1)s + d(k-1) + 1 long, is wanted: from `before` on; `more` zeros
 * after it where the wanted length reaches past its end. */
struct cut {
    int64_t before, len, more;
};

static bool cut_of(struct onnx_call *c, const struct onnx_window *w, const struct ir_type *t,
                   int32_t i, int64_t wanted, int64_t output_padding, struct cut *out)
{
    int64_t len = t->dim[2 + i], k = w->kernel.at[i], s = w->stride.at[i];
    rlx_str mode = onnx_text(c, "auto_pad", "NOTSET");
    int64_t before = w->before.at[i], after = w->after.at[i];

    if (!dim_is_static(len) || len < 1 || len > INT32_MAX) {
        onnx_unsupported(c, "a symbolic or empty axis");
        return false;
    }
    int64_t whole = (len - 1) * s + w->dilation.at[i] * (k - 1) + 1;
    bool same = str_starts(mode, STR("SAME_"));
    if (same && wanted < 0)
        wanted = len * s;
    if (wanted >= 0) {
        int64_t all = whole + output_padding - wanted;
        all = all < 0 ? 0 : all;
        before = str_eq(mode, STR("SAME_UPPER")) || !same ? all / 2 : all - all / 2;
        after = all - before;
    }
    /* Where what is wanted ends; it may be more than there is. */
    int64_t end = wanted >= 0 ? before + wanted : whole + output_padding - after;
    if (end < before || before > whole) {
        formula_fail(&c->f, RLX_ERROR_SHAPE, "axis %d: more is cut off than there is", i);
        return false;
    }
    out->before = before;
    out->len = (end < whole ? end : whole) - before;
    out->more = end > whole ? end - whole : 0;
    return true;
}

/* Our op wants two spatial axes or three: one more of size 1 goes in front, and away again. Padding
 * and output padding only where they are asked for. */
static ir_value transposed(struct onnx_call *c, const struct onnx_window *w,
                           const rlx_list *padding, const rlx_list *extra)
{
    struct formula *f = &c->f;
    ir_value in[] = {onnx_in(c, 0), onnx_in(c, 1)};
    union ir_attr attr;

    attr_defaults(RLX_OP_conv_transpose, &attr);
    attr.conv_transpose.kernel_size = w->kernel;
    attr.conv_transpose.stride = w->stride;
    attr.conv_transpose.dilation = w->dilation;
    attr.conv_transpose.groups = onnx_int(c, "group", 1);
    attr.conv_transpose.padding = *padding;
    attr.conv_transpose.output_padding = *extra;
    if (w->n != 1)
        return formula_node(f, RLX_OP_conv_transpose, in, 2, &attr);
    for (int i = 0; !onnx_failed(c) && i < 2; i++) {
        const struct ir_type t = *formula_type(f, in[i]);
        in[i] = formula_reshape(f, in[i], RLX_LIST(t.dim[0], t.dim[1], 1, t.dim[2]));
    }
    attr.conv_transpose.kernel_size = RLX_LIST(1, w->kernel.at[0]);
    attr.conv_transpose.stride = RLX_LIST(1, w->stride.at[0]);
    attr.conv_transpose.dilation = RLX_LIST(1, w->dilation.at[0]);
    if (padding->count)
        attr.conv_transpose.padding = RLX_LIST(0, padding->at[0]);
    if (extra->count)
        attr.conv_transpose.output_padding = RLX_LIST(0, extra->at[0]);
    ir_value y = formula_node(f, RLX_OP_conv_transpose, in, 2, &attr);
    if (onnx_failed(c))
        return y;
    const struct ir_type t = *formula_type(f, y);
    return formula_reshape(f, y, RLX_LIST(t.dim[0], t.dim[1], t.dim[3]));
}

/* Even padding, and output padding within a stride or a dilation. */
static bool fits_ours(const struct onnx_window *w, const rlx_list *extra)
{
    for (int32_t i = 0; i < w->n; i++) {
        int64_t more = i < extra->count ? extra->at[i] : 0;
        if (more < 0 || (more >= w->stride.at[i] && more >= w->dilation.at[i]))
            return false;
    }
    return w->even && (extra->count == 0 || extra->count == w->n) && w->n <= 3;
}

void onnx_conv_transpose(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    rlx_list kernel, extra = {0}, wanted = {0};
    rlx_list before = {.count = t.rank}, after = {.count = t.rank};
    struct onnx_window w;
    rlx_str mode = onnx_text(c, "auto_pad", "NOTSET");

    if (!kernel_of(c, onnx_type(c, 1), &kernel))
        return;
    if (str_starts(mode, STR("SAME_")) && !type_is_static(&t))
        onnx_unsupported(c, "auto_pad on a symbolic axis");
    if (!onnx_window_of(c, &t, &kernel, &w))
        return;
    onnx_ints(c, "output_padding", &extra);
    onnx_ints(c, "output_shape", &wanted);
    if (!wanted.count && !str_starts(mode, STR("SAME_")) && fits_ours(&w, &extra)) {
        onnx_give(c, 0, add_bias(c, transposed(c, &w, &w.before, &extra)));
        return;
    }
    ir_value y = transposed(c, &w, &(rlx_list){0}, &(rlx_list){0});
    for (int32_t i = 0; i < w.n && !onnx_failed(c); i++) {
        struct cut cut;
        int32_t skip = wanted.count == w.n ? 0 : wanted.count - w.n;
        int64_t want = skip >= 0 && wanted.count ? wanted.at[i + skip] : -1;
        if (!cut_of(c, &w, &t, i, want, extra.count > i ? extra.at[i] : 0, &cut))
            return;
        y = formula_narrow(f, y, 2 + i, cut.before, cut.len);
        after.at[2 + i] = cut.more;
    }
    onnx_give(c, 0, add_bias(c, onnx_pad_of(f, y, before, after, 0)));
}
