/* lower_matmul_select.c: which kernel makes a product. Each row of the table says whether it can,
 * what it would cost, in units of one product of f32 on one of some hundred processors, and how it
 * is launched. The cheapest is taken. */
#include "lower/gpu/gemm/lower_coop.h"
#include "lower/gpu/gemm/lower_matmul.h"

struct choice {
    const char *name;
    bool (*fits)(const struct gpu_call *c, const struct gpu_matmul *p);
    double (*cost)(const struct gpu_matmul *p, uint32_t tile);
    void (*launch)(struct gpu_call *c, const struct gpu_matmul *p, uint32_t tile);
    uint32_t tile; /* lines of a tile's side */
};

/* ---- shared by all ---- */

void gpu_matmul_item_words(struct gpu_call *c, const struct gpu_matmul *p)
{
    gpu_u32s(c, "size", p->size, p->rank);
    gpu_u32s(c, "a_step", p->a_step, p->rank);
    gpu_u32s(c, "b_step", p->b_step, p->rank);
}

/* Can so many elements at a time be read, lines `stride` apart and items by `step`? */
static bool in_vectors(const struct gpu_call *c, struct gpu_arg a, rlx_dtype t, uint64_t elements,
                       uint64_t stride, const uint64_t *step, int32_t rank)
{
    bool whole = stride % elements == 0 && gpu_aligned(c, a, elements * rlx_dtype_size(t));

    for (int32_t i = 0; i < rank; i++)
        whole = whole && step[i] % elements == 0;
    return whole;
}

static int64_t vector_width(const struct gpu_call *c, struct gpu_arg a, rlx_dtype t,
                            uint64_t stride, const uint64_t *step, int32_t rank)
{
    return in_vectors(c, a, t, 4, stride, step, rank) ? 4 : 1;
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
    gpu_type(c, "TA", gpu_a_type(p));
    gpu_type(c, "TB", gpu_b_type(p));
    gpu_type(c, "Y", p->end.stored);
    gpu_type(c, "A", p->sum);
    gpu_flag(c, "COMPLEX", p->dtype == RLX_DTYPE_c64);
    gpu_const(c, "RANK", p->rank);
    gpu_epilogue_constants(c, &p->end);
    gpu_bind(c, p->a);
    gpu_bind(c, p->b);
    gpu_epilogue_bind(c, &p->end);
    gpu_bind(c, p->y);
    gpu_u32(c, "count", count);
    gpu_u32(c, "m", p->of.m);
    gpu_u32(c, "n", p->of.n);
    gpu_u32(c, "k", p->of.k);
    gpu_u32(c, "a_line", p->at ? 1 : p->of.k);
    gpu_u32(c, "a_depth", p->at ? p->of.m : 1);
    gpu_u32(c, "b_line", p->bt ? gpu_b_row(p) : 1);
    gpu_u32(c, "b_depth", p->bt ? 1 : gpu_b_row(p));
    gpu_matmul_item_words(c, p);
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

/* Large tiles have half as many invocations with twice as many sums: they read less of the tiles.
 */
static void tile_constants(struct gpu_call *c, const struct gpu_matmul *p, uint32_t tile)
{
    gpu_const(c, "L", tile);
    gpu_const(c, "TM", tile == 32 ? 4 : 8);
    gpu_const(c, "TN", tile < 128 ? 4 : p->sum == RLX_DTYPE_f32 ? 16 : 8);
}

static void launch_tiles(struct gpu_call *c, const struct gpu_matmul *p, uint32_t tile)
{
    struct gpu_tiling t = gpu_tiling_of(&p->of, tile, true);
    struct gpu_split s = t.split;
    uint64_t outputs = p->of.items * p->of.m * p->of.n;
    struct gpu_epilogue none = gpu_no_epilogue(c);
    const struct gpu_epilogue *end = s.parts > 1 ? &none : &p->end;
    struct gpu_arg y = s.parts > 1 ? gpu_part(p->room, 0, s.parts * outputs * sizeof(float)) : p->y;
    rlx_dtype stored = s.parts > 1 ? p->sum : p->end.stored;

    gpu_kernel(c, "matmul", "tiled");
    gpu_type(c, "T", p->dtype);
    gpu_type(c, "TA", gpu_a_type(p));
    gpu_type(c, "TB", gpu_b_type(p));
    gpu_type(c, "Y", stored);
    gpu_type(c, "A", p->sum);
    tile_constants(c, p, tile);
    gpu_flag(c, "AT", p->at);
    gpu_flag(c, "BT", p->bt);
    gpu_const(c, "VA", vector_width(c, p->a, gpu_a_type(p), gpu_a_row(p), p->a_step, p->rank));
    gpu_const(c, "VB", vector_width(c, p->b, gpu_b_type(p), gpu_b_row(p), p->b_step, p->rank));
    gpu_const(c, "VY", vector_width(c, y, stored, p->of.n, NULL, 0));
    gpu_const(c, "RANK", p->rank);
    gpu_epilogue_constants(c, end);
    gpu_bind(c, p->a);
    gpu_bind(c, p->b);
    gpu_epilogue_bind(c, end);
    gpu_bind(c, y);
    gpu_u32(c, "count", t.groups);
    gpu_u32(c, "m", p->of.m);
    gpu_u32(c, "n", p->of.n);
    gpu_u32(c, "k", p->of.k);
    gpu_u32(c, "b_row", gpu_b_row(p));
    gpu_u32(c, "part", s.part);
    gpu_u32(c, "parts", s.parts);
    gpu_matmul_item_words(c, p);
    gpu_epilogue_words(c, end);
    gpu_groups(c, t.groups);
    if (s.parts > 1)
        gpu_add_parts(c, &p->end, p->room, p->y, outputs, s.parts);
}

/* ---- a few lines on one side ---- */

#define FEW 8
#define LINE 128     /* bytes that memory is read in at best */
#define NARROWEST 64 /* bytes side by side that are still worth a group */

/* x has the few lines, w the many. */
struct few {
    struct gpu_arg x, w;
    rlx_dtype x_type, w_type;
    uint64_t few, many, x_line, x_depth;
    uint64_t w_row; /* from row to row of w, as it is stored */
    const uint64_t *x_step, *w_step;
    bool along; /* lines of w lie along the depth */
    uint64_t v; /* elements of w that are read at once: 16 bytes, or one */
    struct gpu_teams teams;
    uint64_t across, threads; /* unless along: invocations side by side, and of a group */
    uint64_t groups;
    struct gpu_split split;
};

static bool fits_few(const struct gpu_call *c, const struct gpu_matmul *p)
{
    (void)c;
    return p->sum == RLX_DTYPE_f32 && (p->of.m <= FEW || p->of.n <= FEW);
}

/* Wide groups read longer stretches of memory; narrow ones are more, and need no second launch that
 * adds parts of the depth. Every invocation should have a whole turn of eight loads. */
static uint64_t across_of(const struct gpu_matmul *p, const struct few *f)
{
    uint64_t across = 32, size = f->v * rlx_dtype_size(f->w_type);

    while (across * size > NARROWEST && p->of.k >= 2 * 8 * GPU_GROUP / across) {
        uint64_t groups = p->of.items * gpu_ceil(f->many, across * f->v);
        if (groups >= (across * size > LINE ? 3 * GPU_PROCESSORS : GPU_PROCESSORS))
            break;
        across /= 2;
    }
    return across;
}

/* Where each processor gets one group, that should be a large one. */
static uint64_t threads_of(const struct gpu_call *c, const struct gpu_matmul *p,
                           const struct few *f)
{
    uint64_t large = 2 * GPU_GROUP;
    bool deep = p->of.k >= 8 * large / f->across;

    return f->groups < 2 * GPU_PROCESSORS && deep && c->features->max_group >= large &&
                   c->features->shared_bytes >= large * f->v * sizeof(float)
               ? large
               : GPU_GROUP;
}

static struct few few_of(const struct gpu_call *c, const struct gpu_matmul *p)
{
    bool rows = p->of.m <= p->of.n; /* the few are rows of a */
    struct few f = {.x = rows ? p->a : p->b,
                    .w = rows ? p->b : p->a,
                    .x_type = rows ? gpu_a_type(p) : gpu_b_type(p),
                    .w_type = rows ? gpu_b_type(p) : gpu_a_type(p),
                    .few = rows ? p->of.m : p->of.n,
                    .many = rows ? p->of.n : p->of.m,
                    .w_row = rows ? gpu_b_row(p) : gpu_a_row(p),
                    .x_step = rows ? p->a_step : p->b_step,
                    .w_step = rows ? p->b_step : p->a_step,
                    .along = rows ? p->bt : !p->at};
    bool x_along = rows ? !p->at : p->bt;
    uint64_t most = 16 / rlx_dtype_size(f.w_type), x_row = rows ? gpu_a_row(p) : gpu_b_row(p);

    f.x_line = x_along ? x_row : 1;
    f.x_depth = x_along ? 1 : x_row;
    f.v = in_vectors(c, f.w, f.w_type, most, f.w_row, f.w_step, p->rank) ? most : 1;
    f.teams = gpu_teams_of(f.few, f.many, p->of.items, p->of.k / f.v,
                           (struct gpu_teams){.lines = 4, .teams = 8});
    f.across = across_of(p, &f);
    f.groups = f.along ? f.teams.groups : p->of.items * gpu_ceil(f.many, f.across * f.v);
    f.threads = threads_of(c, p, &f);
    f.split = gpu_split_depth(&p->of, f.groups, f.along ? GPU_BUSY_GROUPS : GPU_PROCESSORS, 128);
    f.groups *= f.split.parts;
    return f;
}

/* What is read decides; a group has its price too. */
static double cost_few(const struct gpu_matmul *p, uint32_t tile)
{
    uint64_t many = p->of.m <= p->of.n ? p->of.n : p->of.m;
    double products = (double)(p->of.items * p->of.m * p->of.n) * (double)p->of.k;

    (void)tile;
    return 2 * products + 4096.0 * (double)(p->of.items * gpu_ceil(many, 32));
}

/* Elements of x that are read at once where v of w are: 16 bytes, or one. */
static uint64_t x_vector(const struct gpu_call *c, const struct gpu_matmul *p, const struct few *f)
{
    uint64_t most = 16 / rlx_dtype_size(f->x_type);

    return f->along && f->v % most == 0 && f->x_depth == 1 &&
                   in_vectors(c, f->x, f->x_type, most, p->of.k, f->x_step, p->rank)
               ? most
               : 1;
}

static void few_constants(struct gpu_call *c, const struct gpu_matmul *p, const struct few *f,
                          rlx_dtype stored, const struct gpu_epilogue *end)
{
    uint64_t xv = x_vector(c, p, f);

    gpu_kernel(c, "matmul_few", f->along ? "along" : "across");
    gpu_type(c, "T", p->dtype);
    gpu_type(c, "Y", stored);
    gpu_name(c, "X", xv > 1 ? "u32x4" : rlx_dtype_name(f->x_type));
    gpu_name(c, "W", f->v > 1 ? "u32x4" : rlx_dtype_name(f->w_type));
    gpu_const(c, "V", (int64_t)f->v);
    if (f->along) {
        gpu_const(c, "XV", (int64_t)xv);
        gpu_team_constants(c, &f->teams);
    } else {
        gpu_const(c, "MM", (int64_t)f->teams.at_once);
        gpu_const(c, "ACROSS", (int64_t)f->across);
        gpu_const(c, "WG", (int64_t)f->threads);
    }
    gpu_const(c, "RANK", p->rank);
    gpu_epilogue_constants(c, end);
}

static void launch_few(struct gpu_call *c, const struct gpu_matmul *p, uint32_t tile)
{
    struct few f = few_of(c, p);
    uint64_t outputs = p->of.items * p->of.m * p->of.n;
    bool split = f.split.parts > 1, rows = p->of.m <= p->of.n;
    struct gpu_epilogue none = gpu_no_epilogue(c);
    const struct gpu_epilogue *end = split ? &none : &p->end;

    (void)tile;
    few_constants(c, p, &f, split ? RLX_DTYPE_f32 : p->end.stored, end);
    gpu_bind(c, f.x);
    gpu_bind(c, f.w);
    gpu_epilogue_bind(c, end);
    gpu_bind(c, split ? gpu_part(p->room, 0, f.split.parts * outputs * sizeof(float)) : p->y);
    gpu_u32(c, "count", f.groups);
    gpu_u32(c, "few", f.few);
    gpu_u32(c, "many", f.many);
    gpu_u32(c, "k", p->of.k);
    gpu_u32(c, "part", f.split.part);
    gpu_u32(c, "parts", f.split.parts);
    gpu_u32(c, "x_line", f.x_line);
    gpu_u32(c, "x_depth", f.x_depth);
    gpu_u32(c, "y_few", rows ? p->of.n : 1);
    gpu_u32(c, "y_many", rows ? 1 : p->of.n);
    if (!f.along)
        gpu_u32(c, "w_depth", f.w_row);
    gpu_u32s(c, "size", p->size, p->rank);
    gpu_u32s(c, "x_step", f.x_step, p->rank);
    gpu_u32s(c, "w_step", f.w_step, p->rank);
    gpu_epilogue_words(c, end);
    gpu_groups(c, f.groups);
    if (split)
        gpu_add_parts(c, &p->end, p->room, p->y, outputs, f.split.parts);
}

/* ---- the table ---- */

static const struct choice choices[] = {
    {"direct", fits_any, cost_direct, launch_direct, 0},
    {"few lines", fits_few, cost_few, launch_few, 0},
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

    if (gpu_matmul_in_pieces(c, p))
        return;
    for (size_t i = 1; i < sizeof choices / sizeof choices[0]; i++) {
        double cost = choices[i].fits(c, p) ? choices[i].cost(p, choices[i].tile) : least;
        if (cost < least) {
            best = &choices[i];
            least = cost;
        }
    }
    best->launch(c, p, best->tile);
}
