/* onnx_col2im.c: Col2Im of ONNX: every element of every window is added where it came from. Which
 * place that is depends on sizes alone, so it is a table of indices. */
#include "import/onnx/handlers/onnx_window.h"

#define MAX_PLACES ((int64_t)1 << 26)

struct blocks {
    int32_t n;
    rlx_list image, block, stride, dilation, before;
    int64_t windows[RLX_MAX_RANK];
    int64_t places, block_size, count; /* of the picture, of a block, of windows */
};

static bool begin(struct onnx_call *c, struct blocks *b)
{
    rlx_list after;

    *b = (struct blocks){.places = 1, .block_size = 1, .count = 1};
    if (!onnx_ints_in(c, 1, &b->image) || !onnx_ints_in(c, 2, &b->block))
        return false;
    b->n = b->image.count;
    if (b->n < 1 || b->n > RLX_MAX_RANK - 2 || b->block.count != b->n) {
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "pictures of %d axes, blocks of %d", b->n,
                     b->block.count);
        return false;
    }
    if (!onnx_spatial(c, "strides", b->n, &b->stride) ||
        !onnx_spatial(c, "dilations", b->n, &b->dilation) ||
        !onnx_pads(c, b->n, &b->before, &after))
        return false;
    for (int32_t i = 0; i < b->n; i++) {
        int64_t len = b->image.at[i], k = b->block.at[i];
        bool sane = len >= 1 && len <= MAX_PLACES && k >= 1 && k <= MAX_PLACES;
        int64_t reach = sane ? b->dilation.at[i] * (k - 1) + 1 : 0;
        int64_t room = sane ? len + b->before.at[i] + after.at[i] - reach : -1;
        if (room < 0) {
            formula_fail(&c->f, RLX_ERROR_SHAPE, "axis %d: blocks do not fit the picture", i);
            return false;
        }
        b->windows[i] = room / b->stride.at[i] + 1;
        b->places *= len;
        b->block_size *= k;
        b->count *= b->windows[i];
        if (b->places > MAX_PLACES || b->block_size > MAX_PLACES || b->count > MAX_PLACES ||
            b->block_size * b->count > MAX_PLACES) {
            onnx_unsupported(c, "more than %lld places", (long long)MAX_PLACES);
            return false;
        }
    }
    return true;
}

/* Where element k of window w lies; -1: in the padding, which is thrown away. */
static int64_t place(const struct blocks *b, int64_t k, int64_t w)
{
    int64_t at = 0, row = 1;

    for (int32_t i = b->n - 1; i >= 0; i--) {
        int64_t x = w % b->windows[i] * b->stride.at[i] + k % b->block.at[i] * b->dilation.at[i] -
                    b->before.at[i];
        if (x < 0 || x >= b->image.at[i])
            return -1;
        at += x * row;
        row *= b->image.at[i];
        k /= b->block.at[i];
        w /= b->windows[i];
    }
    return at;
}

/* [N, C block, windows] -> [N, C, picture] */
void onnx_col2im(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    struct blocks b;
    union ir_attr attr;

    if (!begin(c, &b))
        return;
    if (t.rank != 3 || !dim_is_static(t.dim[1]) || t.dim[1] % b.block_size || t.dim[2] != b.count) {
        formula_fail(f, RLX_ERROR_SHAPE, "the columns are not %lld windows of %lld elements",
                     (long long)b.count, (long long)b.block_size);
        return;
    }
    int64_t all = b.block_size * b.count, channels = t.dim[1] / b.block_size;
    struct ir_type index = {.dtype = RLX_DTYPE_i64, .rank = 1, .dim = {all}};
    int64_t *at = arena_array(onnx_arena(c), int64_t, (size_t)all);
    if (!at) {
        c->f.status = diag_no_memory(c->f.diag, (size_t)all * sizeof *at);
        return;
    }
    for (int64_t i = 0; i < all; i++)
        at[i] = place(&b, i / b.count, i % b.count);
    ir_value x =
        formula_reshape(f, onnx_in(c, 0), RLX_LIST(t.dim[0], channels, b.block_size, b.count));
    x = formula_transpose(f, x, RLX_LIST(2, 3, 0, 1));
    ir_value in[] = {formula_reshape(f, x, RLX_LIST(all, t.dim[0], channels)),
                     onnx_table_of(c, &index, at)};
    attr_defaults(RLX_OP_scatter_add, &attr);
    attr.scatter_add.out_dim = b.places;
    ir_value y = formula_node(f, RLX_OP_scatter_add, in, 2, &attr);
    rlx_list shape = {.count = 2, .at = {t.dim[0], channels}};
    for (int32_t i = 0; i < b.n; i++)
        shape.at[shape.count++] = b.image.at[i];
    onnx_give(c, 0, formula_reshape(f, formula_transpose(f, y, RLX_LIST(1, 2, 0)), shape));
}
