/* expand_scan.c: recurrences over time, step by step: the selective state-space scan and the gated
 * delta rule (ops-special.md 3). A fallback for devices without kernels: it is short or refused. */
#include "pass/expand/expand.h"

#define MOST_NODES 4096
#define NODES_PER_STEP 24 /* no step takes more */

static rlx_status check_length(struct rebuild *r, const struct ir_node *n, int64_t steps)
{
    if (steps <= MOST_NODES / NODES_PER_STEP)
        return RLX_OK;
    return diag_fail(r->diag, RLX_ERROR_LIMIT,
                     "%s: %lld steps would be unrolled, which is done for %d at most; the device "
                     "has no kernel for it",
                     op_info(n->op)->name, (long long)steps, MOST_NODES / NODES_PER_STEP);
}

/* Step t of x along axis 1, in that shape and in the type that is computed in. */
static ir_value step(struct formula *f, ir_value x, int64_t t, rlx_list shape)
{
    return formula_cast(f, formula_reshape(f, formula_narrow(f, x, 1, t, 1), shape), f->dtype);
}

static ir_value sum_over(struct formula *f, ir_value x, int64_t axis, bool keep)
{
    return formula_reduce(f, RLX_OP_reduce_sum, x, rlx_list_of(1, &axis), keep);
}

/* One step's result with its axis of time, in the type of the node. */
static ir_value as_step(struct formula *f, const struct ir_node *n, ir_value y)
{
    rlx_list shape = formula_shape(&n->type);

    shape.at[1] = 1;
    return formula_reshape(f, formula_cast(f, y, n->type.dtype), shape);
}

#define MUL(a, b) formula_2(f, RLX_OP_mul, (a), (b))
#define ADD(a, b) formula_2(f, RLX_OP_add, (a), (b))
#define LIST(...)                                                              \
    rlx_list_of((int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                (const int64_t[]){__VA_ARGS__})

/* h = exp(delta a) h + delta b x;  y = sum of c h. The state begins as the number 0, which takes on
 * its shape [B, H, n] in the first step. It is multiplied by the root of exp(delta a) twice, and
 * that is at most the largest number: where exp(delta a) is infinite in f32, 0 stays 0. */
static ir_value selective_step(struct formula *f, const struct ir_node *n, const ir_value *in,
                               int64_t t, ir_value *h)
{
    ir_dim batch = n->type.dim[0], channels = n->type.dim[2],
           state = n->attr.selective_scan.state_size;
    ir_value x = step(f, in[0], t, LIST(batch, channels, 1));
    ir_value delta = step(f, in[1], t, LIST(batch, channels, 1));
    ir_value b = step(f, in[3], t, LIST(batch, 1, state));
    ir_value c = step(f, in[4], t, LIST(batch, 1, state));
    ir_value half = MUL(MUL(delta, formula_cast(f, in[2], f->dtype)), formula_number(f, 0.5));
    ir_value root =
        formula_1(f, RLX_OP_exp, formula_2(f, RLX_OP_min, half, formula_number(f, 88.7)));

    *h = ADD(MUL(root, MUL(root, *h)), MUL(MUL(delta, b), x));
    return sum_over(f, MUL(c, *h), 2, false);
}

/* S = exp(g) S;  d = (v - S^T k) beta;  S += k d^T;  o = S^T q / sqrt(n), S being [B, H, n, n]. */
static ir_value delta_step(struct formula *f, const struct ir_node *n, const ir_value *in,
                           int64_t t, ir_value *s)
{
    ir_dim batch = n->type.dim[0], heads = n->type.dim[2], size = n->type.dim[3];
    ir_value q = step(f, in[0], t, LIST(batch, heads, size, 1));
    ir_value k = step(f, in[1], t, LIST(batch, heads, size, 1));
    ir_value v = step(f, in[2], t, LIST(batch, heads, 1, size));
    ir_value g = step(f, in[3], t, LIST(batch, heads, 1, 1));
    ir_value beta = step(f, in[4], t, LIST(batch, heads, 1, 1));

    *s = MUL(*s, formula_1(f, RLX_OP_exp, g));
    ir_value held = sum_over(f, MUL(*s, k), 2, true);
    *s = ADD(*s, MUL(k, MUL(formula_2(f, RLX_OP_sub, v, held), beta)));
    ir_value root = formula_1(f, RLX_OP_rsqrt, formula_number(f, (double)size));
    return MUL(sum_over(f, MUL(*s, q), 2, true), root);
}

static rlx_status unroll(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                         ir_value *out)
{
    struct formula f = expand_formula(r, n->type.dtype);
    int64_t steps = n->type.dim[1];
    ir_value state = formula_number(&f, 0);

    TRY(check_length(r, n, steps));
    *out = in[0]; /* of no steps: as empty as the first operand */
    if (steps == 0)
        return f.status;
    ir_value *part = arena_array(&r->old->mod->arena, ir_value, (size_t)steps);
    if (!part)
        return diag_no_memory(r->diag, (size_t)steps * sizeof *part);
    for (int64_t t = 0; t < steps; t++) {
        ir_value y = n->op == RLX_OP_selective_scan ? selective_step(&f, n, in, t, &state)
                                                    : delta_step(&f, n, in, t, &state);
        part[t] = as_step(&f, n, y);
    }
    *out = formula_concat(&f, part, (int32_t)steps, 1);
    return f.status;
}

rlx_status expand_selective_scan(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                 ir_value *out)
{
    return unroll(r, n, in, out);
}

rlx_status expand_gated_delta_net(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                  ir_value *out)
{
    return unroll(r, n, in, out);
}
