/* lower_eigh.c: eigenvalues and eigenvectors of symmetric matrices: eigh, eigh_batch (ops-core.md
 * 21). */
#include "lower/gpu/linalg/lower_dense.h"

enum {
    SWEEPS = 30,    /* as in the kernels */
    ROUNDS_OF = 15, /* sweeps of what is large: each round is a launch, and seven or so suffice */
    SMALL = 96,     /* axes that one group turns, if matrices are few */
    FEW = 64,       /* matrices */
    SIDE = 16,      /* pairs along a tile */
    TINY = 4,       /* axes that one invocation turns */
    TINY_GROUP = 64
};

struct eigen {
    uint64_t items, n, even;
    struct gpu_arg w, other, v, angle, state, flags, place;
    bool by_rounds;
};

static void step(struct gpu_call *c, const char *kernel)
{
    gpu_kernel(c, "eigh", kernel);
    gpu_type(c, "R", dense_real(c));
}

static void begin(struct gpu_call *c, const struct eigen *e)
{
    step(c, "begin");
    gpu_type(c, "T", c->in[0].dtype);
    gpu_const(c, "WG", e->n <= 8 ? 32 : GPU_GROUP);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, e->w);
    gpu_bind(c, e->v);
    gpu_bind(c, e->state);
    gpu_bind(c, e->flags);
    gpu_u32(c, "n", e->n);
    gpu_u32(c, "even", e->even);
    gpu_u32(c, "items", e->items);
    gpu_groups(c, e->items);
}

static void turn(struct gpu_call *c, const struct eigen *e)
{
    step(c, "turn");
    gpu_const(c, "WG", e->n <= 8 ? 32 : e->n <= 24 ? 64 : GPU_GROUP);
    gpu_bind(c, e->w);
    gpu_bind(c, e->v);
    gpu_bind(c, e->angle);
    gpu_bind(c, e->flags);
    gpu_u32(c, "even", e->even);
    gpu_u32(c, "items", e->items);
    gpu_groups(c, e->items);
}

static void turn_round(struct gpu_call *c, const struct eigen *e, uint64_t sweep, uint64_t number)
{
    uint64_t side = gpu_ceil(e->even / 2, SIDE), count = e->items * side * side;
    bool back = (sweep * (e->even - 1) + number) % 2;

    step(c, "round");
    gpu_bind(c, back ? e->other : e->w);
    gpu_bind(c, back ? e->w : e->other);
    gpu_bind(c, e->v);
    gpu_bind(c, e->flags);
    gpu_u32(c, "even", e->even);
    gpu_u32(c, "sweep", sweep);
    gpu_u32(c, "number", number);
    gpu_u32(c, "side", side);
    gpu_u32(c, "count", count);
    gpu_groups(c, count);
}

static void finish(struct gpu_call *c, const struct eigen *e)
{
    step(c, "order");
    gpu_const(c, "WG", e->n <= 32 ? 32 : GPU_GROUP);
    gpu_bind(c, e->w);
    gpu_bind(c, e->other);
    gpu_bind(c, e->v);
    gpu_bind(c, e->flags);
    gpu_bind(c, e->state);
    gpu_bind(c, e->place);
    gpu_u32(c, "n", e->n);
    gpu_u32(c, "even", e->even);
    gpu_u32(c, "rounds", e->by_rounds ? e->even - 1 : 0);
    gpu_u32(c, "items", e->items);
    gpu_groups(c, e->items);
    step(c, "put");
    gpu_type(c, "O", c->out->dtype);
    gpu_bind(c, e->v);
    gpu_bind(c, e->state);
    gpu_bind(c, e->place);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "n", e->n);
    gpu_u32(c, "even", e->even);
    gpu_u32(c, "count", gpu_count(c->out));
    gpu_invocations(c, gpu_count(c->out), GPU_GROUP);
}

/* Many small matrices: an invocation for each. */
static void small(struct gpu_call *c, uint64_t n, uint64_t items)
{
    gpu_kernel(c, "eigh", "small");
    gpu_type(c, "T", c->in[0].dtype);
    gpu_type(c, "R", dense_real(c));
    gpu_const(c, "N", (int64_t)n);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "items", items);
    gpu_invocations(c, items, TINY_GROUP);
}

void gpu_lower_eigh(struct gpu_call *c)
{
    const struct ir_type *a = &c->in[0];
    uint64_t n = (uint64_t)a->dim[a->rank - 1], real = dense_bytes(c), square;
    struct eigen e = {.items = n ? gpu_count(a) / (n * n) : 0, .n = n, .even = n + n % 2};

    if (e.items == 0)
        return;
    if (n <= TINY) {
        small(c, n, e.items);
        return;
    }
    e.by_rounds = n > SMALL && e.items < FEW;
    square = e.items * e.even * e.even * real;
    e.w = gpu_temp(c, square);
    e.other = n > SMALL ? gpu_temp(c, square) : e.w; /* fewer matrices never need more */
    e.v = gpu_temp(c, square);
    e.angle = gpu_temp(c, e.items * e.even * real);
    e.state = gpu_temp(c, e.items * (1 + 2 * n) * real);
    e.flags = gpu_temp(c, e.items * (SWEEPS + 1) * 4);
    e.place = gpu_temp(c, e.items * n * 4);
    begin(c, &e);
    if (!e.by_rounds)
        turn(c, &e);
    for (uint64_t sweep = 0; e.by_rounds && sweep < ROUNDS_OF; sweep++)
        for (uint64_t number = 0; number < e.even - 1; number++)
            turn_round(c, &e, sweep, number);
    finish(c, &e);
}
