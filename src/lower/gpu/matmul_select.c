/* matmul_select.c: which kernel makes a product. Each row of the table says whether it can, what it
 * would cost, in units of one product of f32 on one of some hundred processors, and how it is
 * launched. The cheapest is taken. */
#include "lower/gpu/matmul.h"

#define PROCESSORS 128
#define LEAST_PART 256 /* of a depth that is split */

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
    return 20.0 * (double)(p->items * p->m * p->n) * (double)p->k;
}

static void launch_direct(struct gpu_call *c, const struct gpu_matmul *p, uint32_t tile)
{
    uint64_t count = p->items * p->m * p->n;

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
    gpu_u32(c, p->m);
    gpu_u32(c, p->n);
    gpu_u32(c, p->k);
    gpu_u32(c, p->at ? 1 : p->k);
    gpu_u32(c, p->at ? p->m : 1);
    gpu_u32(c, p->bt ? p->k : 1);
    gpu_u32(c, p->bt ? 1 : p->n);
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

static uint64_t tiles_of(const struct gpu_matmul *p, uint32_t tile)
{
    return p->items * gpu_ceil(p->m, tile) * gpu_ceil(p->n, tile);
}

static struct gpu_split split_tiles(const struct gpu_matmul *p, uint32_t tile)
{
    return gpu_split_depth(p->k, p->items * p->m * p->n, tiles_of(p, tile), PROCESSORS, LEAST_PART,
                           16);
}

/* Large tiles read less, small ones leave less of the processors idle. */
static double cost_tiles(const struct gpu_matmul *p, uint32_t tile)
{
    struct gpu_split s = split_tiles(p, tile);
    double good = tile == 128 ? 1 : tile == 64 ? 0.75 : 0.4;
    double rounds = (double)gpu_ceil(tiles_of(p, tile) * s.parts, PROCESSORS);
    double parts = s.parts > 1 ? 20.0 * (double)(p->items * p->m * p->n * s.parts) : 0;

    return rounds * PROCESSORS * tile * tile / good * (double)(s.part + 16) + parts;
}

static void tile_constants(struct gpu_call *c, const struct gpu_matmul *p, uint32_t tile)
{
    gpu_type(c, "A", p->sum);
    gpu_flag(c, "REAL", p->sum == RLX_DTYPE_f32);
    gpu_const(c, "L", tile);
    gpu_const(c, "TM", tile == 32 ? 4 : 8);
    gpu_const(c, "TN", tile == 128 ? 8 : 4);
}

static void launch_tiles(struct gpu_call *c, const struct gpu_matmul *p, uint32_t tile)
{
    struct gpu_split s = split_tiles(p, tile);
    uint64_t outputs = p->items * p->m * p->n, groups = tiles_of(p, tile) * s.parts;
    struct gpu_epilogue none = gpu_no_epilogue();
    const struct gpu_epilogue *end = s.parts > 1 ? &none : &p->end;
    struct gpu_arg room = gpu_split_room(c, p->k, outputs, LEAST_PART);
    struct gpu_arg y = s.parts > 1 ? gpu_part(room, 0, s.parts * outputs * sizeof(float)) : p->y;
    rlx_dtype stored = s.parts > 1 ? p->sum : p->dtype;

    gpu_kernel(c, "matmul", "tiled");
    gpu_type(c, "T", p->dtype);
    gpu_type(c, "Y", stored);
    tile_constants(c, p, tile);
    gpu_flag(c, "AT", p->at);
    gpu_flag(c, "BT", p->bt);
    gpu_const(c, "VA", vector_width(c, p->a, p->dtype, p->at ? p->m : p->k, p->a_step, p->rank));
    gpu_const(c, "VB", vector_width(c, p->b, p->dtype, p->bt ? p->k : p->n, p->b_step, p->rank));
    gpu_const(c, "VY", vector_width(c, y, stored, p->n, NULL, 0));
    gpu_const(c, "RANK", p->rank);
    gpu_epilogue_constants(c, end);
    gpu_bind(c, p->a);
    gpu_bind(c, p->b);
    gpu_epilogue_bind(c, end);
    gpu_bind(c, y);
    gpu_u32(c, groups);
    gpu_u32(c, p->m);
    gpu_u32(c, p->n);
    gpu_u32(c, p->k);
    gpu_u32(c, s.part);
    gpu_u32(c, s.parts);
    item_words(c, p);
    gpu_epilogue_words(c, end);
    gpu_groups(c, groups);
    if (s.parts > 1)
        gpu_add_parts(c, &p->end, room, p->y, outputs, s.parts);
}

/* ---- the table ---- */

static const struct choice choices[] = {
    {"direct", fits_any, cost_direct, launch_direct, 0},
    {"tiles of 32", fits_tiles, cost_tiles, launch_tiles, 32},
    {"tiles of 64", fits_tiles, cost_tiles, launch_tiles, 64},
    {"tiles of 128", fits_tiles, cost_tiles, launch_tiles, 128},
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
