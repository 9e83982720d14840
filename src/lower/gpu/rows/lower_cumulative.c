/* lower_cumulative.c: running sums, products and maxima along an axis, and the running sum from the
 * end. Long lines are cut into pieces; their totals are scanned first, in the same way. */
#include "lower/gpu/move/lower_move.h"
#include "lower/gpu/rows/lower_combine.h"

#define EACH 8    /* elements that an invocation goes through */
#define ACROSS 32 /* neighbouring lines of a group at least, where lines run across memory */

struct scan {
    struct gpu_acc acc;
    bool exclusive, backward, carry, totals, raw; /* raw: of totals */
    uint64_t lines, n, inner;
    struct gpu_arg from, before, to;
};

/* As many as leave enough lanes for each line. */
static uint64_t lines_of_group(const struct scan *s)
{
    uint64_t least = s->inner > 1 ? ACROSS : 1, lines = GPU_GROUP;

    while (lines > least && GPU_GROUP / lines * EACH < s->n)
        lines /= 2;
    return lines;
}

static uint64_t pieces_of(const struct scan *s)
{
    return gpu_ceil(s->n, GPU_GROUP / lines_of_group(s) * EACH);
}

static void launch(struct gpu_call *c, const struct scan *s)
{
    uint64_t pieces = pieces_of(s), lines = lines_of_group(s);

    gpu_kernel(c, "cumulative", "scan");
    gpu_name(c, "T", s->raw ? s->acc.type : s->acc.element);
    gpu_name(c, "A", s->acc.type);
    gpu_name(c, "S", s->acc.shared);
    gpu_name(c, "D", s->raw || s->totals ? s->acc.type : s->acc.element);
    gpu_const(c, "OP", s->acc.op);
    gpu_const(c, "TAKE", s->raw ? COMBINE_LAST : s->acc.op);
    gpu_flag(c, "WIDE", s->acc.wide);
    gpu_flag(c, "EXCLUSIVE", s->exclusive);
    gpu_flag(c, "BACKWARD", s->backward);
    gpu_flag(c, "CARRY", s->carry);
    gpu_flag(c, "TOTALS", s->totals);
    gpu_const(c, "LINES", (int64_t)lines);
    gpu_bind(c, s->from);
    gpu_bind(c, s->before);
    gpu_bind(c, s->to);
    gpu_u32(c, "lines", s->lines);
    gpu_u32(c, "n", s->n);
    gpu_u32(c, "inner", s->inner);
    gpu_u32(c, "pieces", pieces);
    gpu_u32(c, "low", s->acc.start[0]);
    gpu_u32(c, "high", s->acc.start[1]);
    gpu_groups(c, gpu_ceil(s->lines, lines) * pieces);
}

/* Each turn has lines that are shorter by a factor of 64 at least. */
static void scan(struct gpu_call *c, const struct scan *s)
{
    uint64_t pieces = pieces_of(s), bytes = s->lines * pieces * s->acc.bytes;
    struct scan whole = *s, part = *s, total = *s;

    whole.before = gpu_temp(c, pieces > 1 ? bytes : s->acc.bytes);
    if (pieces > 1) {
        total.to = gpu_temp(c, bytes);
        total.totals = true;
        total.before = whole.before;
        launch(c, &total);
        part.from = total.to;
        part.to = whole.before;
        part.raw = part.exclusive = true;
        part.backward = false;
        part.n = pieces;
        part.inner = 1;
        scan(c, &part);
        whole.carry = true;
    }
    launch(c, &whole);
}

static void lower_scan(struct gpu_call *c, rlx_op op, int64_t axis, bool exclusive, bool backward)
{
    const struct ir_type *x = &c->in[0];
    struct scan s = {.acc = gpu_accumulator(c, op, x->dtype),
                     .exclusive = exclusive,
                     .backward = backward,
                     .from = gpu_in(c, 0),
                     .to = gpu_out(c)};

    if (gpu_count(x) == 0)
        return;
    s.n = (uint64_t)x->dim[axis];
    s.inner = gpu_product(x, axis + 1, x->rank);
    s.lines = gpu_count(x) / s.n;
    scan(c, &s);
}

void gpu_lower_cumulative(struct gpu_call *c)
{
    const struct attr_cumulative *a = &c->attr->cumulative;
    rlx_op op = c->op == RLX_OP_cumprod  ? RLX_OP_mul
                : c->op == RLX_OP_cummax ? RLX_OP_max
                                         : RLX_OP_add;

    lower_scan(c, op, a->axis, a->exclusive, false);
}

void gpu_lower_cumsum_backward(struct gpu_call *c)
{
    const struct attr_cumsum_backward *a = &c->attr->cumsum_backward;

    lower_scan(c, RLX_OP_add, a->axis, a->exclusive, true);
}
