/* cpu_control.c: branches, loops and scans run sub-programs over memory that is their step's
 * scratch.
 *
 *     if      [ then or else                 ]
 *     while   [ carried values ][ cond, body ]
 *     scan    [ carried value  ][ body       ]
 *
 * Values move between the parts by copying: sub-programs keep their inputs in their own slots.
 */
#include "backend/cpu/cpu.h"

#include <string.h>

#include "backend/cpu/cpu_sub_program.h"
#include "base/half.h"

struct cpu_control {
    struct cpu_sub_program *sub[2]; /* then, else; cond, body; body; body, its gradient */
    int64_t loop_limit;
    uint64_t sub_at;    /* where the sub-programs' memory begins in the scratch */
    uint64_t *carry_at; /* where each carried value lies in the scratch */
    size_t carry_count;
};

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + CPU_ALIGN - 1) / CPU_ALIGN * CPU_ALIGN;
}

static uint64_t tensor_bytes(const struct cpu_tensor *t)
{
    return (uint64_t)t->count * rlx_dtype_size(t->dtype);
}

static void copy(void *to, const void *from, uint64_t bytes)
{
    if (bytes)
        memcpy(to, from, (size_t)bytes);
}

/* Is element k of a tensor different from zero? NaN is. */
static bool is_true(const void *data, rlx_dtype dtype, int64_t k)
{
    const uint8_t *at = (const uint8_t *)data + (size_t)k * rlx_dtype_size(dtype);
    uint64_t bits = 0;

    memcpy(&bits, at, rlx_dtype_size(dtype));
    switch (dtype) { /* a negative zero is zero */
    case RLX_DTYPE_f32: return (bits & 0x7fffffffu) != 0;
    case RLX_DTYPE_f64: return (bits & 0x7fffffffffffffffu) != 0;
    case RLX_DTYPE_f16:
    case RLX_DTYPE_bf16: return (bits & 0x7fffu) != 0;
    default: return bits != 0;
    }
}

static bool all_true(const struct cpu_sub_value *v)
{
    int64_t count = 0;

    type_count(&v->type, &count);
    for (int64_t k = 0; k < count; k++)
        if (!is_true(v->data, v->type.dtype, k))
            return false;
    return true;
}

static uint8_t *carried(const struct cpu_work *w, size_t i)
{
    return (uint8_t *)w->call.scratch + w->control->carry_at[i];
}

/* Room for the carried values first, then for whichever sub-program needs more. */
static rlx_status lay_out(struct select_call *c, struct cpu_control *k, const struct cpu_tensor *t,
                          size_t carries, uint64_t *scratch)
{
    uint64_t subs = 0, at = 0;

    k->carry_at = arena_array(c->arena, uint64_t, carries);
    if (!k->carry_at)
        return diag_no_memory(c->diag, carries * sizeof(uint64_t));
    k->carry_count = carries;
    for (size_t i = 0; i < carries; i++) {
        k->carry_at[i] = at;
        at += aligned(tensor_bytes(&t[i]));
    }
    for (int i = 0; i < 2; i++)
        if (k->sub[i] && cpu_sub_bytes(k->sub[i]) > subs)
            subs = cpu_sub_bytes(k->sub[i]);
    k->sub_at = at;
    *scratch = at + subs;
    return RLX_OK;
}

static rlx_status load_control(struct cpu_work *w, void *const *operand, struct diag *d)
{
    struct cpu_control *k = w->control;

    (void)d;
    cpu_load_tensors(w, operand);
    for (int i = 0; i < 2; i++)
        if (k->sub[i])
            k->sub[i]->is_loaded = false; /* sizes may be others */
    return RLX_OK;
}

static rlx_status enter(const struct cpu_work *w, struct cpu_sub_program *p, struct diag *d)
{
    uint8_t *scratch = w->scratch_bytes ? w->call.scratch : NULL;

    return cpu_sub_enter(p, scratch ? scratch + w->control->sub_at : NULL, d);
}

/* ---- if ---- */

static rlx_status run_if(struct cpu_work *w, struct diag *d)
{
    bool yes = is_true(w->in[0].data, w->in[0].dtype, 0);
    struct cpu_sub_program *p = w->control->sub[yes ? 0 : 1];

    TRY(enter(w, p, d));
    for (size_t i = 0; i < p->in_count; i++)
        copy(p->in[i].data, w->in[i + 1].data, p->in[i].bytes);
    TRY(cpu_sub_run(p, &w->fault, d));
    copy(w->out.data, p->out[w->call.attr->if_.result].data, tensor_bytes(&w->out));
    return RLX_OK;
}

/* ---- while ---- */

static rlx_status run_while(struct cpu_work *w, struct diag *d)
{
    struct cpu_control *k = w->control;
    struct cpu_sub_program *cond = k->sub[0], *body = k->sub[1];
    int64_t most = w->call.attr->while_.max_iterations;

    for (size_t i = 0; i < k->carry_count; i++)
        copy(carried(w, i), w->in[i].data, tensor_bytes(&w->in[i]));
    for (int64_t t = 0; most == RLX_ABSENT || t < most; t++) {
        TRY(enter(w, cond, d));
        for (size_t i = 0; i < k->carry_count; i++)
            copy(cond->in[i].data, carried(w, i), cond->in[i].bytes);
        TRY(cpu_sub_run(cond, &w->fault, d));
        if (!all_true(&cond->out[0]))
            break;
        if (k->loop_limit > 0 && most == RLX_ABSENT && t >= k->loop_limit)
            return diag_fail(d, RLX_ERROR_LIMIT, "while: still going after %lld iterations",
                             (long long)k->loop_limit);
        TRY(enter(w, body, d));
        for (size_t i = 0; i < k->carry_count; i++)
            copy(body->in[i].data, carried(w, i), body->in[i].bytes);
        TRY(cpu_sub_run(body, &w->fault, d));
        for (size_t i = 0; i < k->carry_count; i++)
            copy(carried(w, i), body->out[i].data, body->out[i].bytes);
    }
    copy(w->out.data, carried(w, (size_t)w->call.attr->while_.result), tensor_bytes(&w->out));
    return RLX_OK;
}

/* ---- scan ---- */

static void feed_slices(struct cpu_sub_program *p, const struct cpu_work *w, size_t first_in,
                        size_t first_operand, size_t count, int64_t t)
{
    for (size_t j = 0; j < count; j++) {
        const struct cpu_sub_value *slot = &p->in[first_in + j];
        const uint8_t *xs = w->in[first_operand + j].data;
        if (slot->bytes)
            copy(slot->data, xs + (size_t)t * slot->bytes, slot->bytes);
    }
}

static rlx_status run_scan(struct cpu_work *w, struct diag *d)
{
    const struct attr_scan *a = &w->call.attr->scan;
    struct cpu_sub_program *body = w->control->sub[0];
    uint64_t bytes = tensor_bytes(&w->in[0]);
    size_t bcasts = (size_t)a->num_bcast, xs = (size_t)a->num_xs;
    int64_t length = a->length, rows = a->save_trajectory ? w->out.dim[0] : 0;

    TRY(enter(w, body, d));
    copy(carried(w, 0), w->in[0].data, bytes);
    for (size_t i = 0; i < bcasts; i++)
        copy(body->in[1 + i].data, w->in[1 + i].data, body->in[1 + i].bytes);
    for (int64_t t = 0; t < length; t++) {
        copy(body->in[0].data, carried(w, 0), bytes);
        feed_slices(body, w, 1 + bcasts, 1 + bcasts, xs, t);
        TRY(cpu_sub_run(body, &w->fault, d));
        copy(carried(w, 0), body->out[0].data, bytes);
        int64_t row = rows ? lower_trajectory_row(t, rows, length) : -1;
        if (row >= 0)
            copy((uint8_t *)w->out.data + (uint64_t)row * bytes, carried(w, 0), bytes);
    }
    if (!a->save_trajectory)
        copy(w->out.data, carried(w, 0), bytes);
    return RLX_OK;
}

/* ---- scan backward ---- */

static void add_into(void *to, const void *from, rlx_dtype dtype, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        switch (dtype) {
        case RLX_DTYPE_f32: ((float *)to)[i] += ((const float *)from)[i]; break;
        case RLX_DTYPE_f64: ((double *)to)[i] += ((const double *)from)[i]; break;
        case RLX_DTYPE_f16: {
            uint16_t *x = (uint16_t *)to + i;
            *x = f32_to_f16(f16_to_f32(*x) + f16_to_f32(((const uint16_t *)from)[i]));
            break;
        }
        case RLX_DTYPE_bf16: {
            uint16_t *x = (uint16_t *)to + i;
            *x = f32_to_bf16(bf16_to_f32(*x) + bf16_to_f32(((const uint16_t *)from)[i]));
            break;
        }
        default: break; /* the shape rule lets floats through only */
        }
    }
}

/* Leaves c_t, the carry before step t, in the body-gradient's first input: from the start, from the
 * trajectory, or recomputed from the nearest row before it. */
static rlx_status restore_carry(struct cpu_work *w, int64_t t, struct diag *d)
{
    struct cpu_sub_program *body = w->control->sub[0];
    uint64_t bytes = tensor_bytes(&w->in[0]);
    int64_t rows = w->in[1].dim[0], from = t, row = -1;
    const uint8_t *trajectory = w->in[1].data;

    while (from > 0 &&
           (row = lower_trajectory_row(from - 1, rows, w->call.attr->scan_backward.length)) < 0)
        from--;
    copy(carried(w, 1), from == 0 ? w->in[0].data : trajectory + (uint64_t)row * bytes, bytes);
    for (; from < t; from++) {
        TRY(enter(w, body, d));
        copy(body->in[0].data, carried(w, 1), bytes);
        feed_slices(body, w, 1, 3, (size_t)w->call.attr->scan_backward.num_xs, from);
        TRY(cpu_sub_run(body, &w->fault, d));
        copy(carried(w, 1), body->out[0].data, bytes);
    }
    return RLX_OK;
}

static rlx_status run_scan_backward(struct cpu_work *w, struct diag *d)
{
    const struct attr_scan_backward *a = &w->call.attr->scan_backward;
    struct cpu_sub_program *vjp = w->control->sub[1];
    uint64_t bytes = tensor_bytes(&w->in[0]);
    int64_t length = a->length;
    const uint8_t *upstream = w->in[2].data;

    if (a->save_trajectory)
        memset(carried(w, 0), 0, (size_t)bytes);
    else
        copy(carried(w, 0), upstream, bytes);
    for (int64_t t = length - 1; t >= 0; t--) {
        int64_t row = a->save_trajectory ? lower_trajectory_row(t, w->in[2].dim[0], length) : -1;
        if (row >= 0)
            add_into(carried(w, 0), upstream + (uint64_t)row * bytes, w->in[0].dtype,
                     w->in[0].count);
        TRY(restore_carry(w, t, d));
        TRY(enter(w, vjp, d));
        copy(vjp->in[0].data, carried(w, 1), bytes);
        feed_slices(vjp, w, 1, 3, (size_t)a->num_xs, t);
        copy(vjp->in[1 + a->num_xs].data, carried(w, 0), bytes);
        TRY(cpu_sub_run(vjp, &w->fault, d));
        copy(carried(w, 0), vjp->out[0].data, bytes);
        if (w->call.op == RLX_OP_scan_backward_xs) {
            const struct cpu_sub_value *dx = &vjp->out[1 + a->xs_idx];
            if (dx->bytes)
                copy((uint8_t *)w->out.data + (uint64_t)t * dx->bytes, dx->data, dx->bytes);
        }
    }
    if (w->call.op == RLX_OP_scan_backward)
        copy(w->out.data, carried(w, 0), bytes);
    return RLX_OK;
}

/* ---- selection ---- */

static rlx_status build(struct cpu_device *dev, struct select_call *c, struct cpu_work *w,
                        uint64_t *scratch)
{
    struct cpu_control *k = w->control;
    const union ir_attr *a = &c->node->attr;
    struct cpu_tensor twice[2] = {w->in[0], w->in[0]};

    switch (op_info(c->node->op)->family) {
    case FAMILY_if_:
        w->run = run_if;
        TRY(cpu_sub_build(dev, c, a->if_.then_graph, &k->sub[0]));
        TRY(cpu_sub_build(dev, c, a->if_.else_graph, &k->sub[1]));
        return lay_out(c, k, NULL, 0, scratch);
    case FAMILY_while_:
        w->run = run_while;
        TRY(cpu_sub_build(dev, c, a->while_.cond_graph, &k->sub[0]));
        TRY(cpu_sub_build(dev, c, a->while_.body_graph, &k->sub[1]));
        return lay_out(c, k, w->in, (size_t)c->node->in_count, scratch);
    case FAMILY_scan:
        w->run = run_scan;
        TRY(cpu_sub_build(dev, c, a->scan.body, &k->sub[0]));
        return lay_out(c, k, w->in, 1, scratch);
    default: /* its carried values: the gradient, and the carry it is taken at */
        w->run = run_scan_backward;
        TRY(cpu_sub_build(dev, c, a->scan_backward.body, &k->sub[0]));
        TRY(cpu_sub_build(dev, c, a->scan_backward.body_vjp, &k->sub[1]));
        return lay_out(c, k, twice, 2, scratch);
    }
}

rlx_status cpu_select_control(struct cpu_device *dev, struct select_call *c)
{
    struct cpu_work *w;
    uint64_t scratch = 0;

    TRY(cpu_new_work(dev, c, &w));
    w->control = arena_new(c->arena, struct cpu_control);
    if (!w->control)
        return diag_no_memory(c->diag, sizeof *w->control);
    w->load = load_control;
    w->control->loop_limit = c->options->loop_limit;
    TRY(build(dev, c, w, &scratch));
    diag_at(c->diag, op_info(c->node->op)->name, c->id, c->node->label);
    return cpu_emit(c, w, 0, scratch);
}
