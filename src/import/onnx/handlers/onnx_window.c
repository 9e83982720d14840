/* onnx_window.c: see onnx_window.h. */
#include "import/onnx/handlers/onnx_window.h"

#include "base/str.h"

#define MAX_SPATIAL (RLX_MAX_RANK - 2)
#define MAX_EXTENT                                                                \
    ((int64_t)1 << 31) /* of kernels, strides, pads: products stay within 64 bits \
                        */

bool onnx_spatial(struct onnx_call *c, const char *name, int32_t n, rlx_list *out)
{
    if (!onnx_ints(c, name, out)) {
        out->count = n;
        for (int32_t i = 0; i < n; i++)
            out->at[i] = 1;
    }
    for (int32_t i = 0; i < out->count; i++)
        if (out->at[i] < 1 || out->at[i] > MAX_EXTENT)
            formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "%s holds %lld", name, (long long)out->at[i]);
    if (out->count != n)
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "%s has %d entries for %d axes", name, out->count,
                     n);
    return !onnx_failed(c);
}

bool onnx_pads(struct onnx_call *c, int32_t n, rlx_list *before, rlx_list *after)
{
    const struct onnx_attr *a = onnx_attr_as(c, "pads", ONNX_ATTR_INTS);

    *before = *after = (rlx_list){.count = n};
    if (a && a->ints.count != 2 * (size_t)n)
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "%zu pads for %d axes", a->ints.count, n);
    for (int32_t i = 0; a && !onnx_failed(c) && i < n; i++) {
        before->at[i] = a->ints.at[i];
        after->at[i] = a->ints.at[i + n];
        if (before->at[i] < 0 || after->at[i] < 0 || before->at[i] > MAX_EXTENT ||
            after->at[i] > MAX_EXTENT)
            formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "a pad below 0 or far too large");
    }
    return !onnx_failed(c);
}

/* SAME: as many results as the axis has strides; odd padding goes to the end, or to the front. */
static bool same_pads(struct onnx_call *c, const struct ir_type *x, bool lower,
                      struct onnx_window *w)
{
    for (int32_t i = 0; i < w->n; i++) {
        ir_dim len = x->dim[2 + i];
        int64_t reach = w->dilation.at[i] * (w->kernel.at[i] - 1) + 1, s = w->stride.at[i];
        if (!dim_is_static(len) && s != 1) {
            onnx_unsupported(c, "auto_pad on a symbolic axis with a stride");
            return false;
        }
        int64_t all = reach - 1;
        if (s != 1)
            all = ((len + s - 1) / s - 1) * s + reach - len;
        all = all < 0 ? 0 : all;
        w->before.at[i] = lower ? all - all / 2 : all / 2;
        w->after.at[i] = all - w->before.at[i];
    }
    return true;
}

/* One window more where the last one would reach past the end, unless it began there. */
static bool ceil_pads(struct onnx_call *c, const struct ir_type *x, struct onnx_window *w)
{
    for (int32_t i = 0; i < w->n; i++) {
        ir_dim len = x->dim[2 + i];
        int64_t reach = w->dilation.at[i] * (w->kernel.at[i] - 1) + 1, s = w->stride.at[i];
        if (!dim_is_static(len)) {
            onnx_unsupported(c, "ceil_mode on a symbolic axis");
            return false;
        }
        int64_t room = len + w->before.at[i] + w->after.at[i] - reach;
        if (room < 0 || room % s == 0)
            continue;
        int64_t last = (room / s + 1) * s; /* where the further window begins */
        if (last < len + w->before.at[i])
            w->extra.at[i] = last - room;
    }
    return true;
}

bool onnx_window_of(struct onnx_call *c, const struct ir_type *x, const rlx_list *kernel,
                    struct onnx_window *out)
{
    rlx_str mode = onnx_text(c, "auto_pad", "NOTSET");

    *out = (struct onnx_window){.n = x->rank - 2, .extra = {.count = x->rank - 2}};
    if (out->n < 1 || out->n > MAX_SPATIAL) {
        formula_fail(&c->f, RLX_ERROR_SHAPE, "a tensor of rank %d has no spatial axes", x->rank);
        return false;
    }
    if (kernel)
        out->kernel = *kernel;
    else if (!onnx_spatial(c, "kernel_shape", out->n, &out->kernel))
        return false;
    if (!onnx_spatial(c, "strides", out->n, &out->stride) ||
        !onnx_spatial(c, "dilations", out->n, &out->dilation) ||
        !onnx_pads(c, out->n, &out->before, &out->after))
        return false;
    if (str_starts(mode, STR("SAME_")) && !same_pads(c, x, str_eq(mode, STR("SAME_LOWER")), out))
        return false;
    if (onnx_int(c, "ceil_mode", 0) && !ceil_pads(c, x, out))
        return false;
    out->even = true;
    for (int32_t i = 0; i < out->n; i++)
        out->even &= out->before.at[i] == out->after.at[i] && out->extra.at[i] == 0;
    return true;
}

ir_value onnx_window_pad(struct onnx_call *c, const struct onnx_window *w, ir_value x, double value,
                         bool with_extra)
{
    rlx_list before = {.count = w->n + 2}, after = {.count = w->n + 2};

    for (int32_t i = 0; i < w->n; i++) {
        before.at[2 + i] = w->before.at[i];
        after.at[2 + i] = w->after.at[i] + (with_extra ? w->extra.at[i] : 0);
    }
    return onnx_pad_of(&c->f, x, before, after, value);
}
