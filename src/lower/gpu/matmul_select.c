/* matmul_select.c: which kernel makes a product. Each row of the table says whether it can, what it
 * would cost, in units of one product of f32 on one of some hundred processors, and how it is
 * launched. The cheapest is taken. */
#include "lower/gpu/coop.h"
#include "lower/gpu/matmul.h"

struct choice {
    const char *name;
    bool (*fits)(const struct gpu_call *c, const struct gpu_matmul *p);
    double (*cost)(const struct gpu_matmul *p, uint32_t tile);
    void (*launch)(struct gpu_call *c, const struct gpu_matmul *p, uint32_t tile);
    uint32_t tile; /* lines of a tile's side */
};

/* ---- shared by all ---- */

static void item_words(struct gpu_call *c, const struct gpu_matmul *p)
{
    for (int32_t i = 0; i < p->rank; i++)
        gpu_u32(c, p->size[i]);
    for (int32_t i = 0; i < p->rank; i++)
        gpu_u32(c, p->a_step[i]);
    for (int32_t i = 0; i < p->rank; i++)
        gpu_u32(c, p->b_step[i]);
}

/* Can four elements at a time be read, lines `stride` apart and items by `step`? */
static int64_t vector_width(const struct gpu_call *c, struct gpu_arg a, rlx_dtype t,
                            uint64_t stride, const uint64_t *step, int32_t rank)
{
    bool whole = stride % 4 == 0 && gpu_aligned(c, a, 4 * rlx_dtype_size(t));

    for (int32_t i = 0; i < rank; i++)
        whole = whole && step[i] % 4 == 0;
    return whole ? 4 : 1;
}

/* ---- any dtype, one sum per invocation ---- */

static bool fits_any(const struct gpu_call *c, const struct gpu_matmul *p)
{
    (void)c;
    (void)p;
    return true;
}

static double cost_direct(const struct gpu_matmul *p, uint32_t tile)
{
    (void)tile;
    return 20.0 * (double)(p->of.items * p->of.m * p->of.n) * (double)p->of.k;
}

static void launch_direct(struct gpu_call *c, const struct gpu_matmul *p, uint32_t tile)
{
    uint64_t count = p->of.items * p->of.m * p->of.n;

    (void)tile;
    gpu_kernel(c, "matmul", "direct");
    gpu_type(c, "T", p->dtype);
    gpu_type(c, "A", p->sum);
    gpu_flag(c, "COMPLEX", p->dtype == RLX_DTYPE_c64);
    gpu_const(c, "RANK", p->rank);
    gpu_epilogue_constants(c, &p->end);
    gpu_bind(c, p->a);
    gpu_bind(c, p->b);
    gpu_epilogue_bind(c, &p->end);
    gpu_bind(c, p->y);
    gpu_u32(c, count);
    gpu_u32(c, p->of.m);
    gpu_u32(c, p->of.n);
    gpu_u32(c, p->of.k);
    gpu_u32(c, p->at ? 1 : p->of.k);
    gpu_u32(c, p->at ? p->of.m : 1);
    gpu_u32(c, p->bt ? p->of.k : 1);
    gpu_u32(c, p->bt ? 1 : p->of.n);
    item_words(c, p);
    gpu_epilogue_words(c, &p->end);
    gpu_invocations(c, count, GPU_GROUP);
}

/* ---- tiles in shared memory ---- */

/* Sums of 32 bits. */
static bool fits_tiles(const struct gpu_call *c, const struct gpu_matmul *p)
{
    (void)c;
    return rlx_dtype_size(p->sum) == 4;
}

static double cost_tiles(const struct gpu_matmul *p, uint32_t tile)
{
    return gpu_tiling_of(&p->of, tile, true).cost;
}

static void launch_tiles(struct gpu_call *c, const struct gpu_matmul *p, uint32_t tile)
{
    struct gpu_tiling t = gpu_tiling_of(&p->of, tile, true);
    struct gpu_split s = t.split;
    uint64_t outputs = p->of.items * p->of.m * p->of.n;
    struct gpu_epilogue none = gpu_no_epilogue();
    const struct gpu_epilogue *end = s.parts > 1 ? &none : &p->end;
    struct gpu_arg room = gpu_split_room(c, &p->of);
    struct gpu_arg y = s.parts > 1 ? gpu_part(room, 0, s.parts * outputs * sizeof(float)) : p->y;
    rlx_dtype stored = s.parts > 1 ? p->sum : p->dtype;

    gpu_kernel(c, "matmul", "tiled");
    gpu_type(c, "T", p->dtype);
    gpu_type(c, "Y", stored);
    gpu_type(c, "A", p->sum);
    gpu_flag(c, "REAL", p->sum == RLX_DTYPE_f32);
    gpu_tile_constants(c, tile);
    gpu_flag(c, "AT", p->at);
    gpu_flag(c, "BT", p->bt);
    gpu_const(c, "VA",
              vector_width(c, p->a, p->dtype, p->at ? p->of.m : p->of.k, p->a_step, p->rank));
    gpu_const(c, "VB",
              vector_width(c, p->b, p->dtype, p->bt ? p->of.k : p->of.n, p->b_step, p->rank));
    gpu_const(c, "VY", vector_width(c, y, stored, p->of.n, NULL, 0));
    gpu_const(c, "RANK", p->rank);
    gpu_epilogue_constants(c, end);
    gpu_bind(c, p->a);
    gpu_bind(c, p->b);
    gpu_epilogue_bind(c, end);
    gpu_bind(c, y);
    gpu_u32(c, t.groups);
    gpu_u32(c, p->of.m);
    gpu_u32(c, p->of.n);
    gpu_u32(c, p->of.k);
    gpu_u32(c, s.part);
    gpu_u32(c, s.parts);
    item_words(c, p);
    gpu_epilogue_words(c, end);
    gpu_groups(c, t.groups);
    if (s.parts > 1)
        gpu_add_parts(c, &p->end, room, p->y, outputs, s.parts);
}

/* ---- the table ---- */

static const struct choice choices[] = {
    {"direct", fits_any, cost_direct, launch_direct, 0},
    {"tiles of 32", fits_tiles, cost_tiles, launch_tiles, 32},
    {"tiles of 64", fits_tiles, cost_tiles, launch_tiles, 64},
    {"tiles of 128", fits_tiles, cost_tiles, launch_tiles, 128},
    {"matrices, 64 x 64", gpu_coop_fits, gpu_coop_cost, gpu_coop_launch, GPU_COOP_64},
    {"matrices, 128 x 128", gpu_coop_fits, gpu_coop_cost, gpu_coop_launch, GPU_COOP_128},
    {"matrices, 128 x 256", gpu_coop_fits, gpu_coop_cost, gpu_coop_launch, GPU_COOP_WIDE},
    {"matrices, 256 x 128", gpu_coop_fits, gpu_coop_cost, gpu_coop_launch, GPU_COOP_TALL},
};

void gpu_matmul_launch(struct gpu_call *c, const struct gpu_matmul *p)
{
    const struct choice *best = &choices[0];
    double least = best->cost(p, 0);

    for (size_t i = 1; i < sizeof choices / sizeof choices[0]; i++) {
        double cost = choices[i].fits(c, p) ? choices[i].cost(p, choices[i].tile) : least;
        if (cost < least) {
            best = &choices[i];
            least = cost;
        }
    }
    best->launch(c, p, best->tile);
}
