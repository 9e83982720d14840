/* concat.c: parts one after another along an axis, and rows put into a state (cache_append). */
#include "backend/cpu/kernels/move/move.h"

/* part takes the places from `start` on of whole's axis. */
static void put(struct pool *pool, const struct cpu_tensor *whole, const struct cpu_tensor *part,
                int64_t axis, int64_t start)
{
    struct move m = move_between(whole, part);

    if (part->count == 0)
        return;
    int64_t inner = cpu_product(part, axis + 1, part->rank), width = part->dim[axis] * inner;
    m.dst += start * inner * m.size;
    move_axis(&m, cpu_product(part, 0, axis), whole->dim[axis] * inner, width);
    move_axis(&m, width, 1, 1);
    move_run(pool, &m);
}

static void concat(const struct cpu_call *c)
{
    int64_t axis = c->attr->concat.axis, start = 0;

    for (int32_t i = 0; i < c->in_count; i++) {
        put(c->pool, c->out, &c->in[i], axis, start);
        start += c->in[i].dim[axis];
    }
}

/* The output is the state's own memory: what is not written is already there. */
static void cache_append(const struct cpu_call *c)
{
    const struct cpu_tensor *state = &c->in[0], *rows = &c->in[1];
    int64_t axis = c->attr->cache_append.axis;
    int64_t at = cpu_index(&c->in[2], 0), room = state->dim[axis] - rows->dim[axis];

    if (at < 0 || at > room)
        cpu_report_index(c, 0, at);
    else
        put(c->pool, state, rows, axis, at);
}

extern const struct cpu_kernel CPU_NAME(cpu_concat), CPU_NAME(cpu_cache_append);
const struct cpu_kernel CPU_NAME(cpu_concat) = {.run = concat};
const struct cpu_kernel CPU_NAME(cpu_cache_append) = {.run = cache_append};
