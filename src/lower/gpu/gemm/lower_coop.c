/* lower_coop.c: products with cooperative matrices: which tiles they are cut into. */
#include "lower/gpu/gemm/lower_coop.h"

#define GAIN 10.0 /* over products one at a time */

/* good: how near it comes to what the device can do. */
static const struct shape {
    uint32_t rows, columns, step; /* step: of the depth */
    uint32_t threads;
    double good;
} shapes[GPU_COOP_TILES] = {[GPU_COOP_64] = {64, 64, 32, 128, 0.4},
                            [GPU_COOP_128] = {128, 128, 32, 128, 0.97},
                            [GPU_COOP_WIDE] = {128, 256, 32, 256, 1},
                            [GPU_COOP_TALL] = {256, 128, 32, 256, 1}};

/* ---- which ---- */

static bool whole_vectors(const struct gpu_call *c, struct gpu_arg a, uint64_t line,
                          const uint64_t *step, int32_t rank)
{
    bool whole = line % 8 == 0 && gpu_aligned(c, a, 16);

    for (int32_t i = 0; i < rank; i++)
        whole = whole && step[i] % 8 == 0;
    return whole;
}

bool gpu_coop_fits(const struct gpu_call *c, const struct gpu_matmul *p)
{
    const struct kc_features *f = c->features;
    bool dtype = p->dtype == RLX_DTYPE_f16 || (p->dtype == RLX_DTYPE_bf16 && f->coop_bf16);

    return dtype && f->coop && f->subgroups && (f->subgroup_size == 32 || f->subgroup_size == 64) &&
           f->max_group >= GPU_GROUP && f->shared_bytes >= 49152 &&
           whole_vectors(c, p->a, gpu_a_row(p), p->a_step, p->rank) &&
           whole_vectors(c, p->b, gpu_b_row(p), p->b_step, p->rank);
}

static uint64_t tiles_of(const struct gpu_matmul *p, const struct shape *s)
{
    return p->of.items * gpu_ceil(p->of.m, s->rows) * gpu_ceil(p->of.n, s->columns);
}

static struct gpu_split split_of(const struct gpu_matmul *p, const struct shape *s)
{
    return gpu_split_depth(&p->of, tiles_of(p, s), GPU_PROCESSORS, 2 * (uint64_t)s->step);
}

double gpu_coop_cost(const struct gpu_matmul *p, uint32_t tile)
{
    const struct shape *s = &shapes[tile];
    struct gpu_split split = split_of(p, s);
    uint64_t waves = gpu_ceil(tiles_of(p, s) * split.parts, GPU_PROCESSORS);
    double cost = (double)(waves * GPU_PROCESSORS * s->rows * s->columns) / s->good / GAIN *
                  (double)(split.part + s->step);

    if (split.parts > 1)
        cost += 20.0 * (double)(p->of.items * p->of.m * p->of.n * split.parts);
    return cost;
}

/* ---- how ---- */

static void shape_constants(struct gpu_call *c, const struct gpu_matmul *p, const struct shape *s)
{
    gpu_type(c, "T", p->dtype);
    gpu_const(c, "BM", s->rows);
    gpu_const(c, "BN", s->columns);
    gpu_flag(c, "AT", p->at);
    gpu_flag(c, "BT", p->bt);
    gpu_const(c, "RANK", p->rank);
}

/* Vectors of shared memory for one step, with one left out after each line. A second buffer is
 * worth less than a second group beside this one. */
static uint32_t room_of(const struct gpu_matmul *p, const struct shape *s)
{
    uint32_t a = p->at ? s->step * (s->rows / 8 + 1) : s->rows * (s->step / 8 + 1);
    uint32_t b = p->bt ? s->columns * (s->step / 8 + 1) : s->step * (s->columns / 8 + 1);

    return a + b;
}

/* Is nothing left over after tiles and pairs of steps? Parts of the depth are whole pairs. */
static bool whole_tiles(const struct gpu_matmul *p, const struct shape *s)
{
    return p->of.m % s->rows == 0 && p->of.n % s->columns == 0 && p->of.k > 0 &&
           p->of.k % (2 * (uint64_t)s->step) == 0;
}

static void launch_product(struct gpu_call *c, const struct gpu_matmul *p, const struct shape *s)
{
    struct gpu_split split = split_of(p, s);
    uint64_t groups = tiles_of(p, s) * split.parts, outputs = p->of.items * p->of.m * p->of.n;
    uint32_t subgroups = s->threads / c->features->subgroup_size;
    uint32_t down = s->rows > s->columns ? subgroups / 2 : 2;
    struct gpu_epilogue none = gpu_no_epilogue(c);
    const struct gpu_epilogue *end = split.parts > 1 ? &none : &p->end;
    struct gpu_arg y = p->y;
    rlx_dtype stored = p->end.stored;

    if (split.parts > 1) {
        y = gpu_part(p->room, 0, split.parts * outputs * sizeof(float));
        stored = RLX_DTYPE_f32;
    }
    gpu_kernel(c, "coop_matmul", "product");
    shape_constants(c, p, s);
    gpu_type(c, "Y", stored);
    gpu_const(c, "STEP", s->step);
    gpu_const(c, "WG", s->threads);
    gpu_flag(c, "WHOLE", whole_tiles(p, s));
    gpu_const(c, "DOWN", down);
    gpu_const(c, "ACROSS", subgroups / down);
    gpu_const(c, "BUFFERS", 2 * 16 * room_of(p, s) <= c->features->shared_bytes / 2 ? 2 : 1);
    gpu_const(c, "VY", p->of.n % 4 == 0 && gpu_aligned(c, y, 4 * rlx_dtype_size(stored)) ? 4 : 1);
    gpu_epilogue_constants(c, end);
    gpu_bind(c, p->a);
    gpu_bind(c, p->b);
    gpu_epilogue_bind(c, end);
    gpu_bind(c, y);
    gpu_u32(c, "count", groups);
    gpu_u32(c, "m", p->of.m);
    gpu_u32(c, "n", p->of.n);
    gpu_u32(c, "k", p->of.k);
    gpu_u32(c, "b_row", gpu_b_row(p));
    gpu_u32(c, "part", split.part);
    gpu_u32(c, "parts", split.parts);
    gpu_matmul_item_words(c, p);
    gpu_epilogue_words(c, end);
    gpu_groups(c, groups);
    if (split.parts > 1)
        gpu_add_parts(c, &p->end, p->room, p->y, outputs, split.parts);
}

void gpu_coop_launch(struct gpu_call *c, const struct gpu_matmul *p, uint32_t tile)
{
    launch_product(c, p, &shapes[tile]);
}
