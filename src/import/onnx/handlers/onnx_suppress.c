/* onnx_suppress.c: NonMaxSuppression: of boxes that overlap, the one with the highest score.
 *
 * All classes of all batches are gone through at once. In each step every one of them chooses the
 * best box it has left and drops those that overlap it too much:
 *
 *     carry [batch, class, boxes + steps]     scores of what is left (-inf: gone), then the choices
 *
 * A scan carries one value, hence both in one. What was chosen, -1 where there was nothing left, is
 * then joined. */
#include <math.h>
#include <string.h>

#include "base/str.h"
#include "import/onnx/read/onnx_build.h"
#include "import/onnx/read/onnx_scope.h"

enum corner { TOP, LEFT, BOTTOM, RIGHT, AREA, CORNERS };

struct suppression {
    ir_dim batch, classes, boxes, steps;
    ir_value corner[CORNERS]; /* [batch, boxes] */
    ir_value alive;           /* [batch, class, boxes]: the score, or -inf */
    ir_value limit;           /* scalar: of the overlap */
};

/* ---- boxes ---- */

static void find_corners(struct onnx_call *c, struct suppression *s)
{
    struct formula *f = &c->f;
    bool centred = onnx_int(c, "center_point_box", 0) != 0;
    ir_value boxes = onnx_in(c, 0), at[4];
    ir_value *k = s->corner;

    for (int i = 0; i < 4; i++)
        at[i] = formula_reshape(f, formula_narrow(f, boxes, 2, i, 1), RLX_LIST(s->batch, s->boxes));
    for (int i = 0; i < 2; i++) {
        /* Two corners, whichever: y, x, y, x; or the middle and the size: x, y, width, height. */
        ir_value half = centred ? onnx_times(f, at[3 - i], 0.5) : at[i + 2];
        ir_value low = centred ? formula_2(f, RLX_OP_sub, at[1 - i], half)
                               : formula_2(f, RLX_OP_min, at[i], half);
        ir_value high = centred ? formula_2(f, RLX_OP_add, at[1 - i], half)
                                : formula_2(f, RLX_OP_max, at[i], half);
        k[TOP + i] = low;
        k[BOTTOM + i] = high;
    }
    k[AREA] = formula_2(f, RLX_OP_mul, formula_2(f, RLX_OP_sub, k[BOTTOM], k[TOP]),
                        formula_2(f, RLX_OP_sub, k[RIGHT], k[LEFT]));
}

/* ---- a step ---- */

static ir_value body_input(struct formula *f, const char *name, const struct ir_type *t)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_input, &attr);
    attr.leaf.name = (struct ir_blob){name, strlen(name)};
    attr.leaf.dtype = t->dtype;
    attr.leaf.shape = formula_shape(t);
    return formula_node(f, RLX_OP_input, NULL, 0, &attr);
}

/* How much of each box lies in the chosen one, along one axis. */
static ir_value common_length(struct formula *f, const ir_value *box, const ir_value *chosen,
                              int axis)
{
    ir_value from = formula_2(f, RLX_OP_max, box[TOP + axis], chosen[TOP + axis]);
    ir_value to = formula_2(f, RLX_OP_min, box[BOTTOM + axis], chosen[BOTTOM + axis]);

    return formula_1(f, RLX_OP_relu, formula_2(f, RLX_OP_sub, to, from));
}

static ir_value elements(struct formula *f, ir_value x, ir_value index, int64_t axis)
{
    ir_value in[] = {x, index};
    union ir_attr attr;

    attr_defaults(RLX_OP_gather_elements, &attr);
    attr.gather_elements.axis = axis;
    return formula_node(f, RLX_OP_gather_elements, in, 2, &attr);
}

/* Does a box share more with the best one than it may? corner [batch, boxes], best [batch, class]
 */
static ir_value overlaps(struct formula *f, const struct suppression *s, const ir_value *corner,
                         ir_value best, ir_value limit)
{
    ir_value chosen[CORNERS], box[CORNERS];

    for (int i = 0; i < CORNERS; i++) {
        chosen[i] =
            formula_reshape(f, elements(f, corner[i], best, 1), RLX_LIST(s->batch, s->classes, 1));
        box[i] = formula_reshape(f, corner[i], RLX_LIST(s->batch, 1, s->boxes));
    }
    ir_value common = formula_2(f, RLX_OP_mul, common_length(f, box, chosen, 0),
                                common_length(f, box, chosen, 1));
    ir_value both =
        formula_2(f, RLX_OP_sub, formula_2(f, RLX_OP_add, box[AREA], chosen[AREA]), common);
    return formula_2(f, RLX_OP_gt, common, formula_2(f, RLX_OP_mul, both, limit));
}

/* carry; corners, limit, 0 .. boxes-1 and 0 .. steps-1 as they are; the step's number. */
#define BCASTS (CORNERS + 3)
#define OPERANDS (1 + BCASTS + 1)

/* The carry after a step; in: what the body sees. */
static ir_value step(struct formula *f, const struct suppression *s, const ir_value *in)
{
    const ir_value *corner = in + 1, limit = in[1 + CORNERS], box = in[2 + CORNERS],
                   place = in[3 + CORNERS], number = in[4 + CORNERS];
    ir_value alive = formula_narrow(f, in[0], 2, 0, s->boxes);
    ir_value chosen = formula_narrow(f, in[0], 2, s->boxes, s->steps);
    ir_value gone = formula_number(f, -INFINITY), nothing = formula_number(f, -1);
    union ir_attr attr;

    attr_defaults(RLX_OP_argmax, &attr);
    attr.arg_extreme.axis = 2;
    attr.arg_extreme.keep_dim = true;
    ir_value at = formula_node(f, RLX_OP_argmax, &alive, 1, &attr);
    ir_value score = elements(f, alive, at, 2), best = formula_cast(f, at, f->dtype);
    ir_value flat = formula_reshape(f, at, RLX_LIST(s->batch, s->classes));
    ir_value drop = formula_2(f, RLX_OP_bit_or, formula_2(f, RLX_OP_eq, box, best),
                              overlaps(f, s, corner, flat, limit));
    ir_value choice = formula_where(f, formula_2(f, RLX_OP_gt, score, gone), best, nothing);
    ir_value part[] = {
        formula_where(f, drop, gone, alive),
        formula_where(f, formula_2(f, RLX_OP_eq, place, number), choice, chosen),
    };
    return formula_concat(f, part, 2, 2);
}

/* The graph of a step; in: the scan's operands, the last of which it gets one element of. */
static struct ir_graph *write_body(struct onnx_call *c, const struct suppression *s,
                                   const ir_value *in)
{
    static const char *const name[OPERANDS] = {"carry", "top",   "left", "bottom", "right",
                                               "area",  "limit", "box",  "place",  "step"};
    struct formula f = {.diag = c->f.diag, .dtype = RLX_DTYPE_f32};
    ir_value own[OPERANDS];

    if (onnx_failed(c))
        return NULL;
    rlx_str title = ir_free_graph_name(c->im->mod, STR("suppress"));
    f.status = ir_graph_add(c->im->mod, title, &f.g, f.diag);
    for (int i = 0; i < OPERANDS && f.status == RLX_OK; i++) {
        struct ir_type t = *formula_type(&c->f, in[i]);
        t.rank = i == OPERANDS - 1 ? 0 : t.rank;
        own[i] = body_input(&f, name[i], &t);
    }
    ir_value next = f.status == RLX_OK ? step(&f, s, own) : RLX_NO_VALUE;
    if (f.status == RLX_OK)
        f.status = ir_add_output(f.g, next, f.diag);
    c->f.status = f.status;
    return f.status == RLX_OK ? f.g : NULL;
}

/* ---- all steps ---- */

/* [batch, class, steps] f32: which box each step chose; -1: none. */
static ir_value choose_boxes(struct onnx_call *c, const struct suppression *s)
{
    struct formula *f = &c->f;
    struct ir_type chosen = {
        .dtype = RLX_DTYPE_f32, .rank = 3, .dim = {s->batch, s->classes, s->steps}};
    ir_value part[] = {s->alive, formula_fill(f, &chosen, -1)}, in[OPERANDS];
    union ir_attr attr;

    in[0] = formula_concat(f, part, 2, 2);
    memcpy(in + 1, s->corner, sizeof s->corner);
    in[1 + CORNERS] = s->limit;
    in[2 + CORNERS] = onnx_iota(c, s->boxes, RLX_DTYPE_f32);
    in[3 + CORNERS] = in[4 + CORNERS] = onnx_iota(c, s->steps, RLX_DTYPE_f32);
    struct ir_graph *body = write_body(c, s, in);
    if (!body)
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_scan, &attr);
    attr.scan.body = body->id;
    attr.scan.length = s->steps;
    attr.scan.num_bcast = BCASTS;
    attr.scan.num_xs = 1;
    ir_value last = formula_node(f, RLX_OP_scan, in, OPERANDS, &attr);
    return formula_narrow(f, last, 2, s->boxes, s->steps);
}

/* The chosen ones as rows of batch, class and box. */
static void give_rows(struct onnx_call *c, const struct suppression *s, ir_value chosen,
                      ir_value most)
{
    struct formula *f = &c->f;
    ir_value mask = formula_2(f, RLX_OP_ge, chosen, formula_number(f, 0)), column[3];
    struct ir_type t = {.rank = 3, .dim = {s->batch, s->classes, s->steps}};
    ir_dim all = onnx_product(c, &t, 0, 3), per_batch = onnx_product(c, &t, 1, 3);

    if (most != RLX_NO_VALUE)
        mask = formula_2(f, RLX_OP_bit_and, mask,
                         formula_2(f, RLX_OP_lt, onnx_iota(c, s->steps, RLX_DTYPE_i64), most));
    struct onnx_kept kept = onnx_keep(c, formula_reshape(f, mask, RLX_LIST(all)));
    ir_value box = formula_cast(f, formula_reshape(f, chosen, RLX_LIST(all)), RLX_DTYPE_i64);
    column[0] = onnx_quotient(f, kept.index, per_batch);
    column[1] = onnx_remainder(f, onnx_quotient(f, kept.index, s->steps), s->classes);
    column[2] = onnx_pick(f, box, kept.index, 0);
    for (int i = 0; i < 3; i++)
        column[i] = formula_reshape(f, column[i], RLX_LIST(all, 1));
    onnx_give_counted(c, 0, formula_concat(f, column, 3, 1), 0, kept.count);
}

/* An input of one element, as a scalar of that type. */
static ir_value scalar_in(struct onnx_call *c, size_t i, rlx_dtype dtype)
{
    return formula_cast(&c->f, formula_reshape(&c->f, onnx_in(c, i), RLX_EMPTY), dtype);
}

static bool check_types(struct onnx_call *c, struct suppression *s)
{
    const struct ir_type boxes = *onnx_type(c, 0), scores = *onnx_type(c, 1);

    if (boxes.rank != 3 || scores.rank != 3 || boxes.dim[2] != 4)
        formula_fail(&c->f, RLX_ERROR_SHAPE,
                     "boxes are [batch, boxes, 4] and scores [batch, classes, boxes]");
    else if (boxes.dtype != RLX_DTYPE_f32 || scores.dtype != RLX_DTYPE_f32)
        formula_fail(&c->f, RLX_ERROR_DTYPE, "boxes and scores are f32");
    *s = (struct suppression){.batch = scores.dim[0],
                              .classes = scores.dim[1],
                              .boxes = boxes.dim[1],
                              .steps = boxes.dim[1]};
    return !onnx_failed(c);
}

void onnx_non_max_suppression(struct onnx_call *c)
{
    static const struct ir_type none = {.dtype = RLX_DTYPE_i64, .rank = 2, .dim = {0, 3}};
    struct formula *f = &c->f;
    struct suppression s;
    double known = 0;
    ir_value most = RLX_NO_VALUE;

    if (!check_types(c, &s))
        return;
    if (onnx_has(c, 2) && !onnx_is_known(c, 2))
        most = scalar_in(c, 2, RLX_DTYPE_i64);
    else if (onnx_has(c, 2) && !onnx_number_in(c, 2, &known))
        return;
    if (most == RLX_NO_VALUE && !onnx_failed(c)) {
        if (known < 1 || s.boxes == 0) {
            onnx_give_known(c, 0, &none, "");
            return;
        }
        /* More steps than boxes find nothing to choose. */
        bool fewer = dim_is_static(s.boxes) ? known < (double)s.boxes : known <= 1 << 20;
        s.steps = fewer ? (ir_dim)known : s.boxes;
    }
    find_corners(c, &s);
    s.limit = onnx_has(c, 3) ? scalar_in(c, 3, RLX_DTYPE_f32) : formula_number(f, 0);
    s.alive = onnx_in(c, 1);
    if (onnx_has(c, 4))
        s.alive = formula_where(f, formula_2(f, RLX_OP_ge, s.alive, scalar_in(c, 4, RLX_DTYPE_f32)),
                                s.alive, formula_number(f, -INFINITY));
    give_rows(c, &s, choose_boxes(c, &s), most);
}
