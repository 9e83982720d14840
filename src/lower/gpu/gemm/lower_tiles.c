/* lower_tiles.c: how large tiles are, and parts of a depth that is split. */
#include "lower/gpu/gemm/lower_tiles.h"

#define LEAST_PART 256 /* of a depth that is split */
#define MOST_PARTS 32
#define MOST_SUMS (UINT64_C(1) << 21) /* of all parts together */

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- parts ---- */

static uint64_t outputs_of(const struct gpu_product *p)
{
    return p->items * p->m * p->n;
}

struct gpu_split gpu_split_depth(const struct gpu_product *p, uint64_t groups, uint64_t want,
                                 uint64_t step)
{
    uint64_t outputs = outputs_of(p), parts = least_of(want / (groups ? groups : 1), MOST_PARTS);
    struct gpu_split s = {1, p->k};

    parts = least_of(parts, p->k / LEAST_PART);
    parts = least_of(parts, p->split_sums / (outputs ? outputs : 1));
    if (parts < 2)
        return s;
    s.part = gpu_ceil(gpu_ceil(p->k, parts), step) * step;
    s.parts = gpu_ceil(p->k, s.part);
    return s;
}

uint64_t gpu_split_sums(const struct gpu_call *c)
{
    return least_of(MOST_SUMS, c->max_binding / sizeof(float));
}

struct gpu_arg gpu_split_room(struct gpu_call *c, const struct gpu_product *p)
{
    uint64_t parts = least_of(p->k / LEAST_PART, MOST_PARTS);

    return gpu_temp(c, least_of(parts * outputs_of(p), p->split_sums) * sizeof(float));
}

void gpu_add_parts(struct gpu_call *c, const struct gpu_epilogue *end, struct gpu_arg x,
                   struct gpu_arg y, uint64_t count, uint64_t parts)
{
    rlx_dtype sum = gpu_sum_type(c->out->dtype);

    gpu_kernel(c, "matmul", "add_parts");
    gpu_type(c, "T", c->out->dtype);
    gpu_type(c, "Y", end->stored);
    gpu_type(c, "A", sum);
    gpu_epilogue_constants(c, end);
    gpu_bind(c, gpu_part(x, 0, parts * count * rlx_dtype_size(sum)));
    gpu_epilogue_bind(c, end);
    gpu_bind(c, y);
    gpu_u32(c, "count", count);
    gpu_u32(c, "parts", parts);
    gpu_epilogue_words(c, end);
    gpu_invocations(c, count, GPU_GROUP);
}

/* ---- tiles ---- */

/* Large tiles read less, small ones leave less of the processors idle. */
struct gpu_tiling gpu_tiling_of(const struct gpu_product *p, uint32_t tile, bool may_split)
{
    uint64_t tiles = p->items * gpu_ceil(p->m, tile) * gpu_ceil(p->n, tile);
    struct gpu_tiling t = {.tile = tile, .split = {1, p->k}};
    double good = tile == 128 ? 1 : tile == 64 ? 0.75 : 0.4;

    if (may_split)
        t.split = gpu_split_depth(p, tiles, GPU_PROCESSORS, 16);
    t.groups = tiles * t.split.parts;
    t.cost = (double)gpu_ceil(t.groups, GPU_PROCESSORS) * GPU_PROCESSORS * tile * tile / good *
             (double)(t.split.part + 16);
    if (t.split.parts > 1)
        t.cost += 20.0 * (double)(outputs_of(p) * t.split.parts);
    return t;
}

struct gpu_tiling gpu_best_tiling(const struct gpu_product *p, bool may_split)
{
    struct gpu_tiling best = gpu_tiling_of(p, 32, may_split);

    for (uint32_t tile = 64; tile <= 128; tile *= 2) {
        struct gpu_tiling t = gpu_tiling_of(p, tile, may_split);
        if (t.cost < best.cost)
            best = t;
    }
    return best;
}

void gpu_tile_constants(struct gpu_call *c, uint32_t tile)
{
    gpu_const(c, "L", tile);
    gpu_const(c, "TM", tile == 32 ? 4 : 8);
    gpu_const(c, "TN", tile == 128 ? 8 : 4);
}

/* ---- teams ---- */

#define MOST_AT_ONCE 8

/* Several lines per team share what is read of the few; fewer lines and larger teams make more
 * groups of few lines. */
struct gpu_teams gpu_teams_of(uint64_t few, uint64_t many, uint64_t items, uint64_t steps,
                              struct gpu_teams most)
{
    struct gpu_teams t = {.at_once = 1, .lines = most.lines, .teams = most.teams};

    while (t.at_once < few && t.at_once < MOST_AT_ONCE)
        t.at_once *= 2;
    for (t.lines = least_of(t.lines, MOST_AT_ONCE / t.at_once);;) {
        t.groups = items * gpu_ceil(many, t.teams * t.lines);
        if (t.groups >= GPU_BUSY_GROUPS)
            break;
        if (t.lines > 1)
            t.lines /= 2;
        else if (t.teams > 1 && steps >= 512 / t.teams)
            t.teams /= 2;
        else
            break;
    }
    return t;
}

void gpu_team_constants(struct gpu_call *c, const struct gpu_teams *t)
{
    gpu_const(c, "MM", (int64_t)t->at_once);
    gpu_const(c, "R", (int64_t)t->lines);
    gpu_const(c, "TEAMS", (int64_t)t->teams);
}
