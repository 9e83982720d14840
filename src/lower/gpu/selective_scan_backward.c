/* selective_scan_backward.c: forth once, keeping every so many states, then back; sums that groups
 * share are added up at the end. */
#include "lower/gpu/sequence.h"

struct job {
    uint64_t items, steps, channels, n, blocks, tasks, tile;
    struct sequence_share share;
    uint64_t kept, shared_rows; /* numbers in scratch: states; of one part of dB */
    struct gpu_arg work;
};

static void describe(struct gpu_call *c, struct job *j)
{
    const int64_t *dim = c->in[0].dim;
    uint64_t n = (uint64_t)c->attr->selective_scan_backward.state_size;

    *j = (struct job){.items = (uint64_t)dim[0],
                      .steps = (uint64_t)dim[1],
                      .channels = (uint64_t)dim[2],
                      .n = n,
                      .share = sequence_share(n)};
    j->blocks = gpu_ceil(j->channels, SEQUENCE_GROUP / j->share.lanes);
    j->tasks = j->items * j->blocks;
    /* 2 + 2 each numbers of every step and invocation lie in 16 KiB of shared memory. */
    j->tile = 32 / (2 + 2 * j->share.each);
    j->tile = j->tile < 1 ? 1 : j->tile;
    j->kept = j->items * gpu_ceil(j->steps, j->tile) * j->channels * n;
    j->shared_rows = j->items * j->steps * n;
    uint64_t parts = 2 * j->blocks * j->shared_rows + j->items * j->channels * n;
    j->work = gpu_temp(c, (j->kept + parts) * sizeof(float));
}

static void begin(struct gpu_call *c, const struct job *j, const char *kernel, int32_t operands)
{
    gpu_kernel(c, "selective_scan_backward", kernel);
    gpu_const(c, "NL", (int64_t)j->share.lanes);
    gpu_const(c, "K", (int64_t)j->share.each);
    gpu_const(c, "T", (int64_t)j->tile);
    for (int32_t i = 0; i < operands; i++)
        gpu_bind(c, gpu_in(c, i));
}

static void keep_states(struct gpu_call *c, const struct job *j)
{
    begin(c, j, "keep", 4);
    gpu_bind(c, j->work);
    gpu_u32(c, j->steps);
    gpu_u32(c, j->channels);
    gpu_u32(c, j->n);
    gpu_u32(c, j->blocks);
    gpu_u32(c, j->tasks);
    gpu_groups(c, j->tasks);
}

static void go_back(struct gpu_call *c, const struct job *j)
{
    begin(c, j, "back", 6);
    gpu_bind(c, gpu_out(c));
    gpu_bind(c, j->work);
    gpu_u32(c, j->items);
    gpu_u32(c, j->steps);
    gpu_u32(c, j->channels);
    gpu_u32(c, j->n);
    gpu_u32(c, j->blocks);
    gpu_u32(c, j->kept);
    gpu_u32(c, j->tasks);
    gpu_groups(c, j->tasks);
}

/* The parts from number `from` of the scratch on become `count` numbers of the result, from `to`
 * on. */
static void add_up(struct gpu_call *c, const struct job *j, uint64_t from, uint64_t parts,
                   uint64_t to, uint64_t count)
{
    gpu_kernel(c, "selective_scan_backward", "add_parts");
    gpu_bind(c, gpu_part(j->work, from * sizeof(float), parts * count * sizeof(float)));
    gpu_bind(c, gpu_part(gpu_out(c), to * sizeof(float), count * sizeof(float)));
    gpu_u32(c, parts);
    gpu_u32(c, count);
    gpu_invocations(c, count, GPU_GROUP);
}

void gpu_lower_selective_scan_backward(struct gpu_call *c)
{
    uint64_t x = gpu_count(&c->in[0]), a = gpu_count(&c->in[2]), all = gpu_count(c->out);
    struct job j;

    if (x == 0) { /* sums of nothing */
        struct job none = {.work = gpu_temp(c, 16)};
        add_up(c, &none, 0, 0, 0, all);
        return;
    }
    describe(c, &j);
    keep_states(c, &j);
    go_back(c, &j);
    uint64_t b = j.kept, rows = j.blocks * j.shared_rows;
    add_up(c, &j, b + 2 * rows, j.items, 2 * x, a);
    add_up(c, &j, b, j.blocks, 2 * x + a, j.shared_rows);
    add_up(c, &j, b + rows, j.blocks, 2 * x + a + j.shared_rows, j.shared_rows);
}
