/* onnx_sample.c: pictures of ONNX read between their elements: GridSample and AffineGrid.
 *
 * Every point of the grid is a weighted sum of the elements around it. Each of those is one gather,
 * from space laid out flat, with the weight and the index worked out when it runs. */
#include <math.h>

#include "base/str.h"
#include "import/onnx/read/onnx_build.h"

#define MAX_SPACE 3

enum padding { ZEROS, BORDER, REFLECTION };

struct grid {
    int32_t space;
    int64_t len[MAX_SPACE]; /* of the picture's axes */
    ir_value at[MAX_SPACE]; /* [N, P]: where each point lies along them */
    ir_dim points;
    enum padding padding;
    bool align;
    ir_value flat; /* the picture as [N, C, all of space] */
    struct ir_type x;
};

static ir_value number(struct onnx_call *c, double v)
{
    return formula_number(&c->f, v);
}

static ir_value add(struct onnx_call *c, ir_value a, double n)
{
    return onnx_plus(&c->f, a, n);
}

/* ---- coordinates ---- */

static ir_value clamp(struct onnx_call *c, ir_value x, double lo, double hi)
{
    return onnx_clamp_of(&c->f, x, lo, hi);
}

/* Back and forth between lo and hi. */
static ir_value reflect(struct onnx_call *c, ir_value x, double lo, double hi)
{
    struct formula *f = &c->f;
    double range = hi - lo;

    if (range <= 0)
        return onnx_times(f, x, 0);
    ir_value away = formula_1(f, RLX_OP_abs, add(c, x, -lo));
    ir_value turns = formula_1(f, RLX_OP_floor, onnx_times(f, away, 1 / range));
    ir_value rest = formula_2(f, RLX_OP_sub, away, onnx_times(f, turns, range));
    ir_value odd = formula_2(f, RLX_OP_mod, turns, number(c, 2));
    ir_value back = formula_2(f, RLX_OP_sub, number(c, hi), rest);
    return formula_where(f, formula_2(f, RLX_OP_ne, odd, number(c, 0)), back, add(c, rest, lo));
}

/* Into the picture, as the padding says; zeros are left outside. */
static ir_value into(struct onnx_call *c, const struct grid *g, int32_t axis, ir_value x)
{
    double last = (double)g->len[axis] - 1;

    if (g->padding == ZEROS)
        return x;
    if (g->padding == REFLECTION)
        x = reflect(c, x, g->align ? 0 : -0.5, g->align ? last : last + 0.5);
    return clamp(c, x, 0, last);
}

/* ---- elements ---- */

/* The elements at whole coordinates, [N, C, P]; what lies outside is 0. */
static ir_value pick(struct onnx_call *c, const struct grid *g, const ir_value *at)
{
    struct formula *f = &c->f;
    ir_value index = RLX_NO_VALUE, inside = RLX_NO_VALUE;
    rlx_list line = RLX_LIST(g->x.dim[0], 1, g->points);
    union ir_attr attr;

    for (int32_t i = 0; i < g->space; i++) {
        double last = (double)g->len[i] - 1;
        ir_value held = clamp(c, at[i], 0, last);
        ir_value in = formula_2(f, RLX_OP_eq, held, at[i]);
        ir_value whole = formula_cast(f, held, RLX_DTYPE_i64);
        inside = i ? formula_2(f, RLX_OP_bit_and, inside, in) : in;
        if (i) {
            ir_value row = formula_number_of(f, RLX_DTYPE_i64, (double)g->len[i]);
            index = formula_2(f, RLX_OP_add, formula_2(f, RLX_OP_mul, index, row), whole);
        } else
            index = whole;
    }
    index = formula_expand(f, formula_reshape(f, index, line),
                           RLX_LIST(g->x.dim[0], g->x.dim[1], g->points));
    attr_defaults(RLX_OP_gather_elements, &attr);
    attr.gather_elements.axis = 2;
    ir_value in[] = {g->flat, index};
    ir_value v = formula_node(f, RLX_OP_gather_elements, in, 2, &attr);
    if (g->padding != ZEROS)
        return v;
    return formula_where(f, formula_reshape(f, inside, line), v,
                         formula_number_of(f, g->x.dtype, 0));
}

static ir_value nearest(struct onnx_call *c, const struct grid *g)
{
    ir_value at[MAX_SPACE];

    for (int32_t i = 0; i < g->space; i++)
        at[i] = formula_1(&c->f, RLX_OP_round, into(c, g, i, g->at[i]));
    return pick(c, g, at);
}

/* Weights of the elements around a fraction t: two, or four. */
static ir_value weight(struct onnx_call *c, ir_value t, int taps, int k)
{
    struct formula *f = &c->f;
    const double a = -0.75;

    if (taps == 2)
        return k ? t : formula_2(f, RLX_OP_sub, number(c, 1), t);
    /* |distance| from element k - 1: 1 + t, t, 1 - t, 2 - t */
    ir_value d = k < 2 ? add(c, t, 1 - k) : formula_2(f, RLX_OP_sub, number(c, k - 1), t);
    bool near = k == 1 || k == 2;
    double c3 = near ? a + 2 : a, c2 = near ? -(a + 3) : -5 * a;
    double c1 = near ? 0 : 8 * a, c0 = near ? 1 : -4 * a;
    ir_value y = add(c, onnx_times(f, d, c3), c2);
    y = add(c, formula_2(f, RLX_OP_mul, y, d), c1);
    return add(c, formula_2(f, RLX_OP_mul, y, d), c0);
}

static ir_value between(struct onnx_call *c, const struct grid *g, int taps)
{
    struct formula *f = &c->f;
    ir_value floor_at[MAX_SPACE], part[MAX_SPACE], sum = RLX_NO_VALUE;
    int all = 1;

    for (int32_t i = 0; i < g->space; i++) {
        ir_value x = taps == 2 ? into(c, g, i, g->at[i]) : g->at[i];
        floor_at[i] = formula_1(f, RLX_OP_floor, x);
        part[i] = formula_2(f, RLX_OP_sub, x, floor_at[i]);
        all *= taps;
    }
    for (int k = 0; k < all && !onnx_failed(c); k++) {
        ir_value at[MAX_SPACE], w = RLX_NO_VALUE;
        for (int32_t i = g->space - 1, rest = k; i >= 0; i--, rest /= taps) {
            int tap = rest % taps;
            ir_value own = weight(c, part[i], taps, tap);
            at[i] = add(c, floor_at[i], taps == 2 ? tap : tap - 1);
            if (taps == 4 || g->padding != ZEROS)
                at[i] = into(c, g, i, at[i]);
            w = w == RLX_NO_VALUE ? own : formula_2(f, RLX_OP_mul, w, own);
        }
        w = formula_reshape(f, w, RLX_LIST(g->x.dim[0], 1, g->points));
        ir_value term = formula_2(f, RLX_OP_mul, pick(c, g, at), formula_cast(f, w, g->x.dtype));
        sum = k ? formula_2(f, RLX_OP_add, sum, term) : term;
    }
    return sum;
}

/* ---- GridSample ---- */

static bool begin(struct onnx_call *c, struct grid *g)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 1);
    rlx_str padding = onnx_text(c, "padding_mode", "zeros");

    *g = (struct grid){.x = *onnx_type(c, 0), .align = onnx_int(c, "align_corners", 0) != 0};
    g->space = g->x.rank - 2;
    g->padding = str_eq(padding, STR("border"))       ? BORDER
                 : str_eq(padding, STR("reflection")) ? REFLECTION
                                                      : ZEROS;
    f->dtype = t.dtype;
    if (g->space < 1 || g->space > MAX_SPACE || t.rank != g->x.rank ||
        t.dim[t.rank - 1] != g->space) {
        onnx_unsupported(c, "a picture of rank %d and a grid of rank %d", g->x.rank, t.rank);
        return false;
    }
    ir_dim all = 1;
    for (int32_t i = 0; i < g->space; i++) {
        g->len[i] = g->x.dim[2 + i];
        if (!dim_is_static(g->len[i]) || g->len[i] < 1)
            onnx_unsupported(c, "a picture of symbolic or no size");
        all = dim_mul(onnx_dims(c), all, g->x.dim[2 + i]);
    }
    g->points = onnx_product(c, &t, 1, t.rank - 1);
    g->flat = formula_reshape(f, onnx_in(c, 0), RLX_LIST(g->x.dim[0], g->x.dim[1], all));
    ir_value flat = formula_reshape(f, onnx_in(c, 1), RLX_LIST(t.dim[0], g->points, g->space));
    for (int32_t i = 0; i < g->space; i++) { /* the last coordinate is that of the first axis */
        double len = (double)g->len[i];
        ir_value v = formula_narrow(f, flat, 2, g->space - 1 - i, 1);
        v = add(c, formula_reshape(f, v, RLX_LIST(t.dim[0], g->points)), 1);
        g->at[i] =
            g->align ? onnx_times(f, v, (len - 1) / 2) : add(c, onnx_times(f, v, len / 2), -0.5);
    }
    return !onnx_failed(c);
}

void onnx_grid_sample(struct onnx_call *c)
{
    rlx_str mode = onnx_text(c, "mode", "linear");
    struct grid g;
    rlx_list shape = {0};

    if (!begin(c, &g))
        return;
    ir_value y = str_eq(mode, STR("nearest"))                                 ? nearest(c, &g)
                 : str_eq(mode, STR("cubic")) || str_eq(mode, STR("bicubic")) ? between(c, &g, 4)
                                                                              : between(c, &g, 2);
    const struct ir_type t = *onnx_type(c, 1);
    shape.at[shape.count++] = g.x.dim[0];
    shape.at[shape.count++] = g.x.dim[1];
    for (int32_t i = 1; i < t.rank - 1; i++)
        shape.at[shape.count++] = t.dim[i];
    onnx_give(c, 0, formula_reshape(&c->f, y, shape));
}

/* ---- AffineGrid ---- */

/* [P, space + 1]: every point of a grid from -1 to 1, and a one; the last axis first. */
static ir_value base_grid(struct onnx_call *c, const rlx_list *size, int32_t space, bool align,
                          int64_t points)
{
    struct ir_type t = {.dtype = RLX_DTYPE_f64, .rank = 2, .dim = {points, space + 1}};
    double *data = arena_array(onnx_arena(c), double, (size_t)(points * (space + 1)));

    if (!data) {
        c->f.status = diag_no_memory(c->f.diag, (size_t)points * sizeof *data);
        return RLX_NO_VALUE;
    }
    for (int64_t p = 0; p < points; p++) {
        int64_t rest = p;
        for (int32_t i = space - 1; i >= 0; i--) {
            double n = (double)size->at[2 + i], k = (double)(rest % size->at[2 + i]);
            double at = align ? (n > 1 ? 2 * k / (n - 1) - 1 : -1) : (2 * k + 1) / n - 1;
            data[p * (space + 1) + (space - 1 - i)] = at;
            rest /= size->at[2 + i];
        }
        data[p * (space + 1) + space] = 1;
    }
    return onnx_table_of(c, &t, data);
}

void onnx_affine_grid(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    rlx_list size;
    int64_t points = 1;

    if (!onnx_ints_in(c, 1, &size))
        return;
    int32_t space = size.count - 2;
    for (int32_t i = 0; i < space; i++)
        if (size.at[2 + i] < 1 || __builtin_mul_overflow(points, size.at[2 + i], &points) ||
            points > 1 << 26)
            onnx_unsupported(c, "a grid of that size");
    if (space < 1 || space > MAX_SPACE || t.rank != 3 || onnx_failed(c)) {
        onnx_unsupported(c, "%d axes of space", space);
        return;
    }
    ir_value base = base_grid(c, &size, space, onnx_int(c, "align_corners", 0) != 0, points);
    ir_value y = formula_matmul(f, formula_cast(f, base, t.dtype), onnx_in(c, 0), false, true);
    rlx_list shape = {.count = 1, .at = {t.dim[0]}};
    for (int32_t i = 0; i < space; i++)
        shape.at[shape.count++] = size.at[2 + i];
    shape.at[shape.count++] = space;
    onnx_give(c, 0, formula_reshape(f, y, shape));
}
