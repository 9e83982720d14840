/* gpu_control.c: branches, loops and scans as launches of their bodies.
 *
 *     scan, while with few rounds   the launches of all rounds, one after the other
 *     any other while, if           those of one, for the host to have repeated (struct gpu_loop)
 *
 * Values move between rounds by copies, as sub-programs keep their inputs in slots of their own. */
#include "lower/gpu/gpu_sub_program.h"
#include "lower/gpu/move/lower_move.h"

#define MOST_LAUNCHES 4096 /* of all rounds of a while that is written out */

/* Memory for whichever of the sub-programs needs more; they never run at the same time. */
static struct gpu_arg sub_memory(struct gpu_call *c)
{
    uint64_t most = 0;

    for (int i = 0; i < 2; i++) {
        struct gpu_sub_program *p = c->work->control->sub[i];
        if (!p)
            continue;
        gpu_sub_place(c, p);
        most = gpu_sub_bytes(p) > most ? gpu_sub_bytes(p) : most;
    }
    return gpu_temp(c, most);
}

/* All bytes of `to`. */
static void copy(struct gpu_call *c, struct gpu_arg to, struct gpu_arg from)
{
    gpu_copy(c, gpu_part(from, 0, to.bytes), to, RLX_DTYPE_u8);
}

static struct gpu_arg slice(struct gpu_arg a, int64_t row, uint64_t bytes)
{
    return gpu_part(a, (uint64_t)row * bytes, bytes);
}

/* ---- whether to go on ---- */

static void start(struct gpu_call *c, struct gpu_arg active)
{
    gpu_kernel(c, "control", "start");
    gpu_bind(c, active);
    gpu_groups(c, 1);
}

/* Unless all elements of the condition are other than zero, `active` becomes 0. */
static void stop_unless(struct gpu_call *c, struct gpu_arg cond, const struct ir_type *t,
                        struct gpu_arg active)
{
    gpu_kernel(c, "control", "go_on");
    gpu_type(c, "T", t->dtype == RLX_DTYPE_bool ? RLX_DTYPE_u8 : t->dtype);
    gpu_type(c, "A", gpu_sum_type(t->dtype));
    gpu_bind(c, cond);
    gpu_bind(c, active);
    gpu_u32(c, "count", gpu_count(t));
    gpu_groups(c, 1);
}

/* ---- if ---- */

/* A loop of at most one round. Only such branches come here as may hold a loop without a bound (the
 * others are computed both), so that the one not taken cannot go on for ever. */
static void branch(struct gpu_call *c, const struct gpu_sub_program *p, struct gpu_arg memory)
{
    for (size_t i = 0; i < p->in_count; i++)
        copy(c, gpu_sub_in(c, p, memory, i), gpu_in(c, 1 + (int32_t)i));
    gpu_sub_run(c, p, memory);
    copy(c, gpu_out(c), gpu_sub_out(c, p, memory, (size_t)c->attr->if_.result));
}

void gpu_lower_if(struct gpu_call *c)
{
    struct gpu_arg active = gpu_temp(c, 4), memory = sub_memory(c);
    const struct gpu_loop once = {.go_on = active, .most = 1};

    uint32_t yes = gpu_begin_loop(c, &once);
    start(c, active);
    stop_unless(c, gpu_in(c, 0), &c->in[0], active);
    gpu_begin_round(c, yes);
    branch(c, c->work->control->sub[0], memory);
    gpu_end_loop(c, yes);
    uint32_t no = gpu_begin_loop(c, &once);
    gpu_kernel(c, "control", "turn");
    gpu_bind(c, active);
    gpu_groups(c, 1);
    gpu_begin_round(c, no);
    branch(c, c->work->control->sub[1], memory);
    gpu_end_loop(c, no);
}

/* ---- while ---- */

/* A loop as it is lowered; its condition and its body take turns in `memory`. */
struct rounds {
    struct gpu_sub_program *cond, *body;
    struct gpu_arg memory, active, carried[GPU_OPERANDS];
};

static void check_condition(struct gpu_call *c, const struct rounds *r)
{
    for (int32_t i = 0; i < c->in_count; i++)
        copy(c, gpu_sub_in(c, r->cond, r->memory, (size_t)i), r->carried[i]);
    gpu_sub_run(c, r->cond, r->memory);
    stop_unless(c, gpu_sub_out(c, r->cond, r->memory, 0),
                ir_type_of(r->cond->graph, r->cond->graph->output.at[0]), r->active);
}

static void run_body(struct gpu_call *c, const struct rounds *r)
{
    for (int32_t i = 0; i < c->in_count; i++)
        copy(c, gpu_sub_in(c, r->body, r->memory, (size_t)i), r->carried[i]);
    gpu_sub_run(c, r->body, r->memory);
}

static void keep_if_active(struct gpu_call *c, struct gpu_arg from, struct gpu_arg active,
                           struct gpu_arg to)
{
    uint64_t width = to.bytes % 4 == 0 ? 4 : 1;

    gpu_kernel(c, "control", "keep");
    gpu_name(c, "W", width == 4 ? "u32" : "u8");
    gpu_bind(c, from);
    gpu_bind(c, active);
    gpu_bind(c, to);
    gpu_u32(c, "count", to.bytes / width);
    gpu_invocations(c, to.bytes / width, GPU_GROUP);
}

/* Round after round, as many as there may be; those after the end are computed and not kept. */
static void write_out(struct gpu_call *c, const struct rounds *r, int64_t most)
{
    for (int64_t t = 0; t < most && c->status == RLX_OK; t++) {
        check_condition(c, r);
        run_body(c, r);
        for (int32_t i = 0; i < c->in_count; i++)
            keep_if_active(c, gpu_sub_out(c, r->body, r->memory, (size_t)i), r->active,
                           r->carried[i]);
    }
}

/* One round, which the host repeats. */
static void have_repeated(struct gpu_call *c, const struct rounds *r, int64_t most)
{
    struct gpu_loop l = {.go_on = r->active, .most = most};

    if (most == RLX_ABSENT)
        l.limit = c->work->control->loop_limit;
    uint32_t loop = gpu_begin_loop(c, &l);
    check_condition(c, r);
    gpu_begin_round(c, loop);
    run_body(c, r);
    for (int32_t i = 0; i < c->in_count; i++)
        copy(c, r->carried[i], gpu_sub_out(c, r->body, r->memory, (size_t)i));
    gpu_end_loop(c, loop);
}

/* What is not kept is computed all the same, so nothing in it may go on for ever. */
static bool can_write_out(const struct gpu_call *c, const struct rounds *r, int64_t most)
{
    uint64_t round = gpu_sub_launches(r->cond) + gpu_sub_launches(r->body) + (uint64_t)c->in_count;

    return most != RLX_ABSENT && most <= (int64_t)(MOST_LAUNCHES / round) &&
           !gpu_sub_loops(r->cond) && !gpu_sub_loops(r->body);
}

void gpu_lower_while(struct gpu_call *c)
{
    struct rounds r = {.cond = c->work->control->sub[0], .body = c->work->control->sub[1]};
    int64_t most = c->attr->while_.max_iterations;

    r.active = gpu_temp(c, 4);
    r.memory = sub_memory(c);
    for (int32_t i = 0; i < c->in_count; i++) {
        r.carried[i] = gpu_temp(c, gpu_in(c, i).bytes);
        copy(c, r.carried[i], gpu_in(c, i));
    }
    start(c, r.active);
    if (can_write_out(c, &r, most))
        write_out(c, &r, most);
    else
        have_repeated(c, &r, most);
    copy(c, gpu_out(c), r.carried[c->attr->while_.result]);
}

/* ---- scan ---- */

static void feed_slices(struct gpu_call *c, const struct gpu_sub_program *p, struct gpu_arg memory,
                        size_t first_in, int32_t first_operand, int64_t count, int64_t t)
{
    for (int64_t j = 0; j < count; j++) {
        struct gpu_arg to = gpu_sub_in(c, p, memory, first_in + (size_t)j);
        copy(c, to, slice(gpu_in(c, first_operand + (int32_t)j), t, to.bytes));
    }
}

void gpu_lower_scan(struct gpu_call *c)
{
    const struct attr_scan *a = &c->attr->scan;
    struct gpu_sub_program *body = c->work->control->sub[0];
    struct gpu_arg memory = sub_memory(c), carry = gpu_temp(c, gpu_in(c, 0).bytes);
    int64_t rows = a->save_trajectory ? c->out->dim[0] : 0;

    if (a->length > 0 && gpu_sub_launches(body) > (uint64_t)(GPU_LAUNCHES / a->length))
        gpu_refuse(c, RLX_ERROR_LIMIT,
                   "scan: %lld rounds of %llu launches; a step has at most %d launches",
                   (long long)a->length, (unsigned long long)gpu_sub_launches(body), GPU_LAUNCHES);
    copy(c, carry, gpu_in(c, 0));
    for (int64_t i = 0; i < a->num_bcast; i++)
        copy(c, gpu_sub_in(c, body, memory, 1 + (size_t)i), gpu_in(c, 1 + (int32_t)i));
    for (int64_t t = 0; t < a->length && c->status == RLX_OK; t++) {
        copy(c, gpu_sub_in(c, body, memory, 0), carry);
        feed_slices(c, body, memory, 1 + (size_t)a->num_bcast, 1 + (int32_t)a->num_bcast, a->num_xs,
                    t);
        gpu_sub_run(c, body, memory);
        copy(c, carry, gpu_sub_out(c, body, memory, 0));
        int64_t row = rows ? lower_trajectory_row(t, rows, a->length) : -1;
        if (row >= 0)
            copy(c, slice(gpu_out(c), row, carry.bytes), carry);
    }
    if (!a->save_trajectory)
        copy(c, gpu_out(c), carry);
}

/* ---- scan backward ---- */

struct way_back {
    struct gpu_sub_program *body, *vjp;
    struct gpu_arg memory, gradient, carry;
    uint64_t bytes; /* of a carry */
    int64_t length, xs;
};

static void add_into(struct gpu_call *c, struct gpu_arg to, struct gpu_arg from)
{
    rlx_dtype t = c->in[0].dtype;

    gpu_kernel(c, "control", "accumulate");
    gpu_type(c, "T", t);
    gpu_type(c, "A", t == RLX_DTYPE_f64 ? RLX_DTYPE_f64 : RLX_DTYPE_f32);
    gpu_bind(c, from);
    gpu_bind(c, to);
    gpu_u32(c, "count", gpu_count(&c->in[0]));
    gpu_invocations(c, gpu_count(&c->in[0]), GPU_GROUP);
}

/* The carry before step t: from the start, from the trajectory, or computed again from the nearest
 * row before it. */
static void restore_carry(struct gpu_call *c, const struct way_back *b, int64_t t)
{
    int64_t from = t, row = -1;

    while (from > 0 && (row = lower_trajectory_row(from - 1, c->in[1].dim[0], b->length)) < 0)
        from--;
    copy(c, b->carry, from == 0 ? gpu_in(c, 0) : slice(gpu_in(c, 1), row, b->bytes));
    for (; from < t && c->status == RLX_OK; from++) {
        copy(c, gpu_sub_in(c, b->body, b->memory, 0), b->carry);
        feed_slices(c, b->body, b->memory, 1, 3, b->xs, from);
        gpu_sub_run(c, b->body, b->memory);
        copy(c, b->carry, gpu_sub_out(c, b->body, b->memory, 0));
    }
}

static void step_back(struct gpu_call *c, const struct way_back *b, int64_t t)
{
    const struct attr_scan_backward *a = &c->attr->scan_backward;
    int64_t row = a->save_trajectory ? lower_trajectory_row(t, c->in[2].dim[0], b->length) : -1;

    if (row >= 0)
        add_into(c, b->gradient, slice(gpu_in(c, 2), row, b->bytes));
    restore_carry(c, b, t);
    copy(c, gpu_sub_in(c, b->vjp, b->memory, 0), b->carry);
    feed_slices(c, b->vjp, b->memory, 1, 3, b->xs, t);
    copy(c, gpu_sub_in(c, b->vjp, b->memory, 1 + (size_t)b->xs), b->gradient);
    gpu_sub_run(c, b->vjp, b->memory);
    copy(c, b->gradient, gpu_sub_out(c, b->vjp, b->memory, 0));
    if (c->op == RLX_OP_scan_backward_xs) {
        struct gpu_arg dx = gpu_sub_out(c, b->vjp, b->memory, 1 + (size_t)a->xs_idx);
        copy(c, slice(gpu_out(c), t, dx.bytes), dx);
    }
}

void gpu_lower_scan_backward(struct gpu_call *c)
{
    const struct attr_scan_backward *a = &c->attr->scan_backward;
    struct way_back b = {.body = c->work->control->sub[0],
                         .vjp = c->work->control->sub[1],
                         .memory = sub_memory(c),
                         .bytes = gpu_in(c, 0).bytes,
                         .length = a->length,
                         .xs = a->num_xs};

    b.gradient = gpu_temp(c, b.bytes);
    b.carry = gpu_temp(c, b.bytes);
    if (a->save_trajectory)
        gpu_zero(c, b.gradient, RLX_DTYPE_u8);
    else
        copy(c, b.gradient, gpu_in(c, 2));
    for (int64_t t = b.length - 1; t >= 0 && c->status == RLX_OK; t--)
        step_back(c, &b, t);
    if (c->op == RLX_OP_scan_backward)
        copy(c, gpu_out(c), b.gradient);
}
