/* lower_selective_scan_backward.c: forth once, keeping every so many states, then back; sums that
 * groups share are added up at the end. Items take turns where all of them would need too much
 * scratch. */
#include "lower/gpu/sequence/lower_sequence.h"

#define WORK_MOST (UINT64_C(1) << 28) /* numbers of scratch */

struct job {
    uint64_t first, items; /* those whose turn it is */
    uint64_t steps, channels, n, blocks, tasks, tile;
    struct sequence_share share;
    uint64_t kept, rows; /* numbers in scratch: states, one part of dB */
    uint64_t da;         /* and before those: parts of dA, of all items */
    struct gpu_arg work;
};

static void describe(const struct gpu_call *c, struct job *j)
{
    const int64_t *dim = c->in[0].dim;
    uint64_t n = (uint64_t)c->attr->selective_scan_backward.state_size;

    *j = (struct job){.steps = (uint64_t)dim[1],
                      .channels = (uint64_t)dim[2],
                      .n = n,
                      .share = sequence_share(n)};
    j->da = gpu_ceil((uint64_t)dim[0] * j->channels * n, 64) * 64; /* what follows is aligned */
    j->blocks = gpu_ceil(j->channels, SEQUENCE_GROUP / j->share.lanes);
    /* 2 + 2 each numbers of every step and invocation lie in 16 KiB of shared memory. */
    j->tile = 32 / (2 + 2 * j->share.each);
    j->tile = j->tile < 1 ? 1 : j->tile;
}

static void set_items(struct job *j, uint64_t first, uint64_t items)
{
    j->first = first;
    j->items = items;
    j->tasks = items * j->blocks;
    j->kept = items * gpu_ceil(j->steps, j->tile) * j->channels * j->n;
    j->rows = items * j->steps * j->n;
}

static uint64_t work_numbers(const struct job *j)
{
    return j->da + j->kept + 2 * j->blocks * j->rows;
}

/* The part of a tensor [all items, ..] that belongs to those whose turn it is. */
static struct gpu_arg of_items(const struct job *j, struct gpu_arg a, uint64_t per_item)
{
    return gpu_part(a, j->first * per_item * sizeof(float), j->items * per_item * sizeof(float));
}

/* x, delta, a, b, c, dy: as many as wanted. */
static void begin(struct gpu_call *c, const struct job *j, const char *kernel, int32_t operands)
{
    gpu_kernel(c, "selective_scan_backward", kernel);
    gpu_const(c, "NL", (int64_t)j->share.lanes);
    gpu_const(c, "K", (int64_t)j->share.each);
    gpu_const(c, "T", (int64_t)j->tile);
    for (int32_t i = 0; i < operands; i++) {
        uint64_t width = i == 3 || i == 4 ? j->n : j->channels;
        gpu_bind(c, i == 2 ? gpu_in(c, i) : of_items(j, gpu_in(c, i), j->steps * width));
    }
}

static void keep_states(struct gpu_call *c, const struct job *j)
{
    begin(c, j, "keep", 4);
    gpu_bind(c, gpu_part(j->work, j->da * sizeof(float), j->kept * sizeof(float)));
    gpu_u32(c, "steps", j->steps);
    gpu_u32(c, "channels", j->channels);
    gpu_u32(c, "n", j->n);
    gpu_u32(c, "blocks", j->blocks);
    gpu_u32(c, "tasks", j->tasks);
    gpu_groups(c, j->tasks);
}

static void go_back(struct gpu_call *c, const struct job *j)
{
    begin(c, j, "back", 6);
    gpu_bind(c, gpu_out(c));
    gpu_bind(c, gpu_part(j->work, 0, work_numbers(j) * sizeof(float)));
    gpu_u32(c, "items", j->items);
    gpu_u32(c, "steps", j->steps);
    gpu_u32(c, "channels", j->channels);
    gpu_u32(c, "n", j->n);
    gpu_u32(c, "blocks", j->blocks);
    gpu_u32(c, "first_item", j->first);
    gpu_u32(c, "ddelta_at", gpu_count(&c->in[0]));
    gpu_u32(c, "kept_at", j->da);
    gpu_u32(c, "parts", j->da + j->kept);
    gpu_u32(c, "tasks", j->tasks);
    gpu_groups(c, j->tasks);
}

/* The parts from number `from` of the scratch on become `count` numbers of the result, from `to`
 * on. */
static void add_up(struct gpu_call *c, struct gpu_arg work, uint64_t from, uint64_t parts,
                   uint64_t to, uint64_t count)
{
    gpu_kernel(c, "selective_scan_backward", "add_parts");
    gpu_bind(c, gpu_part(work, from * sizeof(float), parts * count * sizeof(float)));
    gpu_bind(c, gpu_part(gpu_out(c), to * sizeof(float), count * sizeof(float)));
    gpu_u32(c, "parts", parts);
    gpu_u32(c, "count", count);
    gpu_invocations(c, count, GPU_GROUP);
}

static void run_items(struct gpu_call *c, const struct job *j)
{
    uint64_t x = gpu_count(&c->in[0]), a = gpu_count(&c->in[2]), b = gpu_count(&c->in[3]);
    uint64_t from = j->da + j->kept, to = 2 * x + a + j->first * j->steps * j->n;

    keep_states(c, j);
    go_back(c, j);
    add_up(c, j->work, from, j->blocks, to, j->rows);
    add_up(c, j->work, from + j->blocks * j->rows, j->blocks, to + b, j->rows);
}

void gpu_lower_selective_scan_backward(struct gpu_call *c)
{
    uint64_t x = gpu_count(&c->in[0]), a = gpu_count(&c->in[2]);
    uint64_t items = (uint64_t)c->in[0].dim[0];
    struct job j;

    if (x == 0) { /* sums of nothing */
        add_up(c, gpu_temp(c, 16), 0, 0, 0, gpu_count(c->out));
        return;
    }
    describe(c, &j);
    set_items(&j, 0, 1);
    uint64_t at_once = WORK_MOST / (work_numbers(&j) - j.da);
    at_once = at_once < 1 ? 1 : at_once > items ? items : at_once;
    set_items(&j, 0, at_once);
    uint64_t numbers = work_numbers(&j), most = WORK_MOST + j.da;
    if (at_once < items && numbers < most)
        numbers = most; /* shorter items fill it better */
    j.work = gpu_temp(c, numbers * sizeof(float));
    for (uint64_t first = 0; first < items; first += at_once) {
        set_items(&j, first, first + at_once < items ? at_once : items - first);
        run_items(c, &j);
    }
    add_up(c, j.work, 0, items, 2 * x, a);
}
