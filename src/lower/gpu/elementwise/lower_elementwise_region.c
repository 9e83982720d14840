/* lower_elementwise_region.c: chains of elementwise ops in one pass (ops-core.md 16).
 *
 * A chain whose operands fit a kernel's buffers is one kernel. Else it is cut into runs of steps
 * that do fit: what a later run needs of an earlier one goes through scratch, in the type that it
 * is carried in, so that nothing is rounded which would not be in one kernel. */
#include <stdio.h>
#include <string.h>

#include "ir/op.h"
#include "lower/gpu/elementwise/lower_elementwise.h"

#define MOST_STEPS 64 /* of one kernel */

/* How the elements of the result lie over those of the operands. */
struct shape {
    const struct ir_type *out;
    int64_t enlarged; /* by how much both axes of an image are; 1: it is none */
};

/* [n, c, h, w] enlarged is walked as [n, c, h, k, w, k]. */
static void begin(struct ew *e, struct gpu_call *c, const struct shape *s)
{
    const int64_t *dim = s->out->dim, k = s->enlarged;

    if (k == 1) {
        ew_begin(e, c, s->out);
        return;
    }
    const int64_t size[6] = {dim[0], dim[1], dim[2] / k, k, dim[3] / k, k};
    ew_begin_sizes(e, c, 6, size);
}

static struct ew_value plain_input(struct ew *e, const struct shape *s, struct gpu_arg a,
                                   const struct ir_type *t)
{
    int64_t step[4] = {0}, at = 1, k = s->enlarged;

    if (k == 1)
        return ew_input(e, a, t);
    for (int32_t i = t->rank; i-- > 0;) {
        step[4 - t->rank + i] = t->dim[i] == 1 ? 0 : at;
        at *= t->dim[i];
    }
    const int64_t split[6] = {step[0], step[1], k * step[2], step[2], k * step[3], step[3]};
    return ew_input_steps(e, a, t->dtype, split);
}

/* Each of its elements is seen k times along both axes. */
static struct ew_value image_input(struct ew *e, struct gpu_arg a, const struct ir_type *t)
{
    int64_t h = t->dim[2], w = t->dim[3];
    const int64_t step[6] = {t->dim[1] * h * w, h * w, w, 0, 1, 0};

    return ew_input_steps(e, a, t->dtype, step);
}

/* ---- a chain ---- */

/* A step's value, where another run of steps needs it. */
struct kept {
    rlx_dtype dtype;
    int32_t last_use;
    int32_t slot; /* in scratch; -1: nowhere */
    struct ew_value now;
};

struct chain {
    struct gpu_call *c;
    const rlx_chain_step *step;
    int32_t len, inputs;
    const struct ir_type *in;
    const struct gpu_arg *arg;
    struct shape shape;
    int32_t image; /* the input that is enlarged; -1: none */
    struct kept *kept;
    struct gpu_arg out;
    struct gpu_arg *slot;
    int32_t *busy; /* until which step */
    int32_t slots;
};

static void find_uses(struct chain *h)
{
    for (int32_t k = 0; k < h->len; k++) {
        h->kept[k] = (struct kept){.last_use = k, .slot = -1};
        for (int32_t i = 0; i < ew_step_operands((rlx_op)h->step[k].op); i++)
            if (h->step[k].in[i] >= 0)
                h->kept[h->step[k].in[i]].last_use = k;
    }
    h->kept[h->len - 1].last_use = h->len;
}

/* Is the operand of step k met there for the first time, of steps from `first` on? */
static bool is_new(const struct chain *h, int32_t first, int32_t k, int32_t operand)
{
    int32_t from = h->step[k].in[operand];

    for (int32_t j = first; j <= k; j++)
        for (int32_t i = 0; i < ew_step_operands((rlx_op)h->step[j].op); i++)
            if (h->step[j].in[i] == from)
                return j == k && i == operand;
    return true;
}

/* The end of the longest run from `first` on whose operands and results fit. One step always does.
 */
static int32_t run_end(const struct chain *h, int32_t first)
{
    int32_t end = first + 1, reads = 0;

    for (int32_t k = first; k < h->len && k < first + MOST_STEPS; k++) {
        int32_t results = 0;
        for (int32_t i = 0; i < ew_step_operands((rlx_op)h->step[k].op); i++)
            if (h->step[k].in[i] < first && is_new(h, first, k, i))
                reads++;
        for (int32_t j = first; j <= k; j++)
            results += h->kept[j].last_use > k;
        if (reads + results <= GPU_BUFFERS)
            end = k + 1;
    }
    return end;
}

/* Scratch for a value of the run from `first` on; slots hold any type. */
static int32_t take_slot(struct chain *h, int32_t first, int32_t last_use)
{
    int32_t i = 0;

    while (i < h->slots && h->busy[i] >= first)
        i++;
    if (i == h->slots)
        h->slot[h->slots++] = gpu_temp(h->c, gpu_count(h->shape.out) * 8);
    h->busy[i] = last_use;
    return i;
}

static rlx_dtype carried(rlx_dtype t)
{
    return t == RLX_DTYPE_f16 || t == RLX_DTYPE_bf16 ? RLX_DTYPE_f32 : t;
}

static struct gpu_arg slot_arg(const struct chain *h, const struct kept *k)
{
    return gpu_part(h->slot[k->slot], 0,
                    gpu_count(h->shape.out) * rlx_dtype_size(carried(k->dtype)));
}

static struct ew_value operand(struct chain *h, struct ew *e, int32_t first, int32_t from)
{
    struct ir_type t = *h->shape.out;

    if (from < 0) {
        int32_t i = -1 - from;
        return i == h->image ? image_input(e, h->arg[i], &h->in[i])
                             : plain_input(e, &h->shape, h->arg[i], &h->in[i]);
    }
    if (from >= first)
        return h->kept[from].now;
    t.dtype = carried(h->kept[from].dtype);
    struct ew_value v = plain_input(e, &h->shape, slot_arg(h, &h->kept[from]), &t);
    v.dtype = h->kept[from].dtype;
    return v;
}

static void lower_run(struct chain *h, int32_t first, int32_t end)
{
    struct ew e;
    char name[16];

    begin(&e, h->c, &h->shape);
    for (int32_t k = first; k < end; k++) {
        const rlx_chain_step *s = &h->step[k];
        struct ew_value in[3] = {{{0}, RLX_DTYPE_f32}};
        for (int32_t i = 0; i < ew_step_operands((rlx_op)s->op); i++)
            in[i] = operand(h, &e, first, s->in[i]);
        snprintf(name, sizeof name, "s%d", k);
        h->kept[k].now = ew_step(&e, name, (rlx_op)s->op, (rlx_dtype)s->to, in);
        h->kept[k].dtype = h->kept[k].now.dtype;
    }
    for (int32_t k = first; k < end; k++) {
        struct kept *v = &h->kept[k];
        if (k == h->len - 1) {
            ew_store(&e, h->out, h->shape.out->dtype, v->now.name);
        } else if (v->last_use >= end) {
            v->slot = take_slot(h, first, v->last_use);
            ew_store(&e, slot_arg(h, v), carried(v->dtype), v->now.name);
        }
    }
    ew_end(&e);
}

static void lower_chain(struct chain *h, const struct ir_blob *blob)
{
    size_t len = blob->len, each = sizeof *h->kept + sizeof *h->slot + sizeof *h->busy;
    char *room = gpu_room(h->c, len * each);

    if (!room)
        return;
    memset(room, 0, len * each);
    h->step = blob->ptr;
    h->len = (int32_t)len;
    h->slot = (struct gpu_arg *)(void *)room;
    h->kept = (struct kept *)(void *)(h->slot + len);
    h->busy = (int32_t *)(void *)(h->kept + len);
    find_uses(h);
    for (int32_t first = 0; first < h->len;) {
        int32_t end = run_end(h, first);
        lower_run(h, first, end);
        first = end;
    }
}

/* ---- the families ---- */

void gpu_lower_elementwise_region(struct gpu_call *c)
{
    const struct attr_elementwise_region *a = &c->attr->elementwise_region;
    bool resized = a->prologue == RLX_REGION_PROLOGUE_resize_nearest_2x;
    struct chain h = {.c = c,
                      .inputs = c->in_count,
                      .in = c->in,
                      .arg = c->arg_in,
                      .shape = {c->out, resized ? 2 : 1},
                      .image = resized ? (int32_t)a->prologue_input : -1,
                      .out = gpu_out(c)};

    if (gpu_count(c->out))
        lower_chain(&h, &a->chain);
}

/* Each input alone, its result straight into its part of the output. */
void gpu_lower_batch_elementwise_region(struct gpu_call *c)
{
    const struct attr_batch_elementwise_region *a = &c->attr->batch_elementwise_region;
    bool resized = a->prologue == RLX_REGION_PROLOGUE_resize_nearest_2x;
    uint64_t bytes = gpu_out(c).bytes / (uint64_t)c->in_count;
    struct ir_type part = *c->out;

    if (gpu_count(c->out) == 0)
        return;
    part.dim[0] = c->in[0].dim[0];
    for (int32_t i = 0; i < c->in_count; i++) {
        struct chain h = {.c = c,
                          .inputs = 1,
                          .in = &c->in[i],
                          .arg = &c->arg_in[i],
                          .shape = {&part, resized ? 2 : 1},
                          .image = resized ? 0 : -1,
                          .out = gpu_part(gpu_out(c), (uint64_t)i * bytes, bytes)};
        lower_chain(&h, &a->chain);
    }
}

void gpu_lower_transform_region(struct gpu_call *c)
{
    struct shape s = {c->out, INT64_C(1) << c->attr->transform_region.chain.len};
    struct ir_type raw = c->in[0];
    struct ew e;

    if (gpu_count(c->out) == 0)
        return;
    raw.dtype = ew_raw(raw.dtype);
    begin(&e, c, &s);
    struct ew_value x = image_input(&e, gpu_in(c, 0), &raw);
    ew_store(&e, gpu_out(c), raw.dtype, x.name);
    ew_end(&e);
}
