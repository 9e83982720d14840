/* cumulative.c: running sums, products and maxima along an axis, and the running sum from the end.
 * Long lines are cut into pieces; their totals are scanned first, in the same way. */
#include <math.h>
#include <string.h>

#include "lower/gpu/move.h"

#define EACH 8    /* elements that an invocation goes through */
#define ACROSS 32 /* neighbouring lines of a group, where lines run across memory */

enum scan_op { SUM, PRODUCT, SCALED, LARGEST, LARGEST_F32, LARGEST_F64 };

struct scan {
    enum scan_op op;
    rlx_dtype dtype;
    const char *acc, *shared; /* types of what is computed, and what shared memory holds of it */
    uint64_t acc_bytes;
    uint32_t start[2];
    bool exclusive, backward, carry, totals, raw;
    uint64_t lines, n, inner;
    struct gpu_arg from, before, to;
};

static uint64_t lines_of_group(const struct scan *s)
{
    return s->inner > 1 ? ACROSS : 1;
}

static uint64_t pieces_of(const struct scan *s)
{
    return gpu_ceil(s->n, GPU_GROUP / lines_of_group(s) * EACH);
}

static void launch(struct gpu_call *c, const struct scan *s)
{
    uint64_t pieces = pieces_of(s), lines = lines_of_group(s);

    gpu_kernel(c, "cumulative", "scan");
    gpu_name(c, "T", s->raw ? s->acc : gpu_dtype(s->dtype));
    gpu_name(c, "A", s->acc);
    gpu_name(c, "S", s->shared);
    gpu_name(c, "D", s->raw || s->totals ? s->acc : gpu_dtype(s->dtype));
    gpu_const(c, "OP", s->op);
    gpu_flag(c, "WIDE", s->acc_bytes == 8 && s->op != SCALED);
    gpu_flag(c, "EXCLUSIVE", s->exclusive);
    gpu_flag(c, "BACKWARD", s->backward);
    gpu_flag(c, "CARRY", s->carry);
    gpu_flag(c, "TOTALS", s->totals);
    gpu_flag(c, "RAW", s->raw);
    gpu_const(c, "LINES", (int64_t)lines);
    gpu_bind(c, s->from);
    gpu_bind(c, s->before);
    gpu_bind(c, s->to);
    gpu_u32(c, s->lines);
    gpu_u32(c, s->n);
    gpu_u32(c, s->inner);
    gpu_u32(c, pieces);
    gpu_u32(c, s->start[0]);
    gpu_u32(c, s->start[1]);
    gpu_groups(c, gpu_ceil(s->lines, lines) * pieces);
}

/* Each turn has lines that are shorter by a factor of 64 at least. */
static void scan(struct gpu_call *c, const struct scan *s)
{
    uint64_t pieces = pieces_of(s), bytes = s->lines * pieces * s->acc_bytes;
    struct scan whole = *s, part = *s, total = *s;

    whole.before = gpu_temp(c, pieces > 1 ? bytes : s->acc_bytes);
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

/* What a scan begins with: the least number there is, for a maximum. */
static void least_of(rlx_dtype t, uint32_t start[2])
{
    unsigned bits = 8 * (unsigned)rlx_dtype_size(t);
    float low = -INFINITY;
    uint64_t wide = dtype_is(t, CLASS_I) ? (uint64_t)(INT64_MIN >> (64 - bits)) : 0;

    if (t == RLX_DTYPE_f64)
        memcpy(&wide, &(double){(double)low}, sizeof wide);
    else if (dtype_is(t, CLASS_F))
        memcpy(&wide, &low, sizeof low);
    start[0] = (uint32_t)wide;
    start[1] = (uint32_t)(wide >> 32);
}

static void set_types(struct scan *s, rlx_op op)
{
    rlx_dtype t = s->dtype;
    bool floats = dtype_is(t, CLASS_F), wide = rlx_dtype_size(t) == 8;

    s->acc = wide ? gpu_dtype(t) : floats ? "f32" : dtype_is(t, CLASS_I) ? "i32" : "u32";
    s->op = SUM;
    if (op == RLX_OP_cumprod) {
        s->op = floats && !wide ? SCALED : PRODUCT;
        s->start[0] = 1;
        if (t == RLX_DTYPE_f64)
            s->start[0] = 0, s->start[1] = 0x3ff00000;
        if (s->op == SCALED)
            s->acc = "f32x2";
    } else if (op == RLX_OP_cummax) {
        s->op = !floats ? LARGEST : wide ? LARGEST_F64 : LARGEST_F32;
        least_of(t, s->start);
    }
    s->acc_bytes = wide || s->op == SCALED ? 8 : 4;
    s->shared = wide ? "u32x2" : s->acc;
}

static void lower_scan(struct gpu_call *c, rlx_op op, int64_t axis, bool exclusive, bool backward)
{
    const struct ir_type *x = &c->in[0];
    struct scan s = {.dtype = x->dtype,
                     .exclusive = exclusive,
                     .backward = backward,
                     .from = gpu_in(c, 0),
                     .to = gpu_out(c)};

    if (gpu_count(x) == 0)
        return;
    if (x->dtype == RLX_DTYPE_f64 && !c->features->f64)
        gpu_refuse(c, RLX_ERROR_UNSUPPORTED, "%s of f64: this device has no 64-bit floats",
                   op_info(c->op)->name);
    s.n = (uint64_t)x->dim[axis];
    s.inner = gpu_product(x, axis + 1, x->rank);
    s.lines = gpu_count(x) / s.n;
    set_types(&s, op);
    scan(c, &s);
}

void gpu_lower_cumulative(struct gpu_call *c)
{
    lower_scan(c, c->op, c->attr->cumulative.axis, c->attr->cumulative.exclusive, false);
}

void gpu_lower_cumsum_backward(struct gpu_call *c)
{
    lower_scan(c, RLX_OP_cumsum, c->attr->cumsum_backward.axis, c->attr->cumsum_backward.exclusive,
               true);
}
