/* lower_combine.c: which operation and which types combine values of a dtype. */
#include "lower/gpu/rows/lower_combine.h"

#include <math.h>
#include <string.h>

#include "lower/gpu/move/lower_move.h"

static void set_start(struct gpu_acc *a, uint64_t bits)
{
    a->start[0] = (uint32_t)bits;
    a->start[1] = (uint32_t)(bits >> 32);
}

static void start_at(struct gpu_acc *a, rlx_dtype t, double value)
{
    float single = (float)value;
    uint64_t bits = 0;

    if (t == RLX_DTYPE_f64)
        memcpy(&bits, &value, sizeof value);
    else
        memcpy(&bits, &single, sizeof single);
    set_start(a, bits);
}

/* The least or the greatest integer there is, in what is computed in. */
static void start_at_end(struct gpu_acc *a, rlx_dtype t, bool greatest)
{
    unsigned spare = 64 - 8 * (unsigned)rlx_dtype_size(t);

    if (t == RLX_DTYPE_bool)
        set_start(a, greatest);
    else if (dtype_is(t, CLASS_I))
        set_start(a, (uint64_t)(greatest ? INT64_MAX >> spare : INT64_MIN >> spare));
    else
        set_start(a, greatest ? UINT64_MAX >> spare : 0);
}

static void set_extreme(struct gpu_acc *a, rlx_dtype t, bool smallest)
{
    bool floats = dtype_is(t, CLASS_F);

    a->op = smallest ? COMBINE_SMALLEST : COMBINE_LARGEST;
    if (floats)
        a->op += t == RLX_DTYPE_f64 ? 2 : 1;
    if (floats)
        start_at(a, t, smallest ? (double)INFINITY : -(double)INFINITY);
    else
        start_at_end(a, t, smallest);
}

static void set_product(struct gpu_acc *a, rlx_dtype t)
{
    a->op = COMBINE_PRODUCT;
    if (t == RLX_DTYPE_c64) {
        a->op = COMBINE_COMPLEX;
        start_at(a, RLX_DTYPE_f32, 1);
    } else if (t == RLX_DTYPE_f64) {
        start_at(a, t, 1);
    } else if (dtype_is(t, CLASS_F)) {
        a->op = COMBINE_SCALED;
        a->type = a->shared = "f32x2";
        a->bytes = 8;
    } else {
        set_start(a, 1);
    }
}

struct gpu_acc gpu_accumulator(struct gpu_call *c, rlx_op op, rlx_dtype t)
{
    struct gpu_acc a = {.op = COMBINE_SUM, .element = rlx_dtype_name(t), .bytes = 4};
    bool eight = rlx_dtype_size(t) == 8;

    if (op == RLX_OP_none) {
        a.op = COMBINE_LAST;
        a.bytes = rlx_dtype_size(t);
        a.element = a.type = a.shared = gpu_word(a.bytes);
        return a;
    }
    gpu_need_type(c, t);
    a.wide = eight && t != RLX_DTYPE_c64;
    a.bytes = eight ? 8 : 4;
    a.type = eight                  ? a.element
             : dtype_is(t, CLASS_F) ? "f32"
             : dtype_is(t, CLASS_I) ? "i32"
                                    : "u32";
    a.shared = a.wide ? "u32x2" : a.type;
    if (op == RLX_OP_mul)
        set_product(&a, t);
    else if (op == RLX_OP_max || op == RLX_OP_min)
        set_extreme(&a, t, op == RLX_OP_min);
    return a;
}
