/* lower_dequant.c: packed weights in blocks: dequant_matmul, dequant_grouped_matmul,
 * dequant_moe_weights, dequant_gather (ops-special.md 1.6). Weights with scales beside them:
 * lower_dequant_side.c. */
#include "lower/gpu/gemm/lower_dequant.h"
#include "lower/gpu/gemm/lower_grouped.h"

#define FEW 8 /* rows of x that are met at once, one pass over the weight for all of them */

/* ---- packed operands ---- */

struct packed {
    int32_t scheme;
    const struct quant_scheme *format;
    struct gpu_arg w;
    uint64_t k, row_bytes;
};

static struct packed packed_operand(const struct gpu_call *c, int32_t i, int32_t scheme, int64_t k)
{
    const struct quant_scheme *s = quant_scheme(scheme);

    return (struct packed){.scheme = scheme,
                           .format = s,
                           .w = gpu_in(c, i),
                           .k = (uint64_t)k,
                           .row_bytes = (uint64_t)(k / s->block_elems * s->block_bytes)};
}

/* most: how many bytes are read at once, 4 or 16, where they may be. */
static void packed_constants(struct gpu_call *c, const struct packed *p, int most)
{
    bool vectors = most == 16 && p->format->block_bytes % 16 == 0 && gpu_aligned(c, p->w, 16);

    gpu_name(c, "W", vectors ? "u32x4" : gpu_aligned(c, p->w, 4) ? "u32" : "u8");
    gpu_const(c, "SCHEME", p->scheme);
    gpu_const(c, "BLOCK", p->format->block_elems);
    gpu_const(c, "BYTES", p->format->block_bytes);
}

/* ---- activations in eight bits ---- */

/* Elements of x that share a scale. */
static int64_t run_of(const struct packed *p)
{
    return p->format->block_elems == 256 ? 256 : 32;
}

static void begin_q8(struct gpu_call *c, const struct packed *p, const char *kernel)
{
    gpu_kernel(c, "dequant_q8", kernel);
    gpu_const(c, "RUN", run_of(p));
    gpu_bind(c, gpu_in(c, 0));
}

/* x, or x as eight bits leave it. */
static struct gpu_arg x_in_f32(struct gpu_call *c, const struct packed *p, int32_t act)
{
    uint64_t count = gpu_count(&c->in[0]);

    if (act != RLX_ACT_PRECISION_q8 || count == 0)
        return gpu_in(c, 0);
    struct gpu_arg x = gpu_temp(c, count * sizeof(float));
    begin_q8(c, p, "through");
    gpu_bind(c, x);
    gpu_u32(c, "count", count);
    gpu_invocations(c, count, GPU_GROUP);
    return x;
}

/* Codes, and a scale per run. */
struct q8 {
    struct gpu_arg codes, scales;
};

static struct q8 x_in_q8(struct gpu_call *c, const struct packed *p)
{
    uint64_t count = gpu_count(&c->in[0]);
    struct q8 x = {gpu_temp(c, count), gpu_temp(c, count / (uint64_t)run_of(p) * sizeof(float))};

    begin_q8(c, p, "pack");
    gpu_bind(c, x.codes);
    gpu_bind(c, x.scales);
    gpu_u32(c, "count", count);
    gpu_invocations(c, count, GPU_GROUP);
    return x;
}

static int64_t x_width(const struct gpu_call *c, struct gpu_arg x, uint64_t k)
{
    return k % 4 == 0 && gpu_aligned(c, x, 16) ? 4 : 1;
}

/* ---- products ---- */

/* How few rows meet the weight. */
struct few {
    uint64_t m, n, experts;
    uint64_t from, own; /* experts that the weight is of */
    int32_t id;         /* operand of expert ids; -1: there is one weight for all rows */
    struct gpu_teams teams;
};

/* Of how many runs of 16 elements an invocation takes the codes at once: parts_of of
 * kernels/lib/packed. */
static uint64_t parts_of(int32_t scheme)
{
    switch (scheme) {
    case RLX_QUANT_SCHEME_q8_0:
    case RLX_QUANT_SCHEME_q8_1:
    case RLX_QUANT_SCHEME_q8_k:
    case RLX_QUANT_SCHEME_nvfp4:
    case RLX_QUANT_SCHEME_tq1_0: return 1;
    case RLX_QUANT_SCHEME_q2_k:
    case RLX_QUANT_SCHEME_q3_k:
    case RLX_QUANT_SCHEME_q6_k:
    case RLX_QUANT_SCHEME_tq2_0: return 4;
    default: return 2;
    }
}

/* Where an invocation takes much at once, more rows of the weight share what is read of x. */
static struct few few_of(const struct packed *p, uint64_t m, uint64_t n, uint64_t experts,
                         int32_t id)
{
    struct few f = {.m = m, .n = n, .experts = experts, .own = experts, .id = id};
    uint64_t parts = parts_of(p->scheme), units = p->k / (16 * parts);
    struct gpu_teams most = {.lines = parts == 4 ? 4 : 2, .teams = units < 64 ? 8 : 4};

    f.teams = gpu_teams_of(id < 0 ? m : 1, n, id < 0 ? gpu_ceil(m, FEW) : m, units, most);
    return f;
}

static void few_constants(struct gpu_call *c, const struct packed *p, const struct few *f)
{
    packed_constants(c, p, 16);
    gpu_team_constants(c, &f->teams);
    gpu_flag(c, "GROUPED", f->id >= 0);
    if (f->id >= 0)
        gpu_index_type(c, c->in[f->id].dtype);
    else
        gpu_name(c, "I", "f32");
}

static void few_operands(struct gpu_call *c, const struct packed *p, const struct few *f)
{
    gpu_bind(c, p->w);
    gpu_bind(c, gpu_in(c, f->id >= 0 ? f->id : 0));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", f->teams.groups);
    gpu_u32(c, "m", f->m);
    gpu_u32(c, "n", f->n);
    gpu_u32(c, "k", p->k);
    gpu_u32(c, "row_bytes", p->row_bytes);
    gpu_u32(c, "experts", f->experts);
    gpu_u32(c, "from", f->from);
    gpu_u32(c, "own", f->own);
    gpu_groups(c, f->teams.groups);
}

/* x: in eight bits; NULL: as it is. */
static void launch_rows(struct gpu_call *c, const struct packed *p, const struct few *f,
                        const struct q8 *x)
{
    if (x) {
        gpu_kernel(c, "dequant_q8", "rows");
        few_constants(c, p, f);
        gpu_bind(c, x->codes);
        gpu_bind(c, x->scales);
    } else {
        gpu_kernel(c, "dequant", "rows");
        few_constants(c, p, f);
        gpu_const(c, "V", x_width(c, gpu_in(c, 0), p->k));
        gpu_bind(c, gpu_in(c, 0));
    }
    few_operands(c, p, f);
}

static void launch_few(struct gpu_call *c, const struct packed *p, const struct few *f, int32_t act)
{
    if (act == RLX_ACT_PRECISION_q8 && p->k) {
        struct q8 x = x_in_q8(c, p);
        launch_rows(c, p, f, &x);
    } else {
        launch_rows(c, p, f, NULL);
    }
}

/* e: rows in the order of their experts; NULL: there is one weight for all. */
static void launch_tiles(struct gpu_call *c, const struct packed *p, struct gpu_arg x,
                         const struct gpu_product *of, const struct gpu_tiling *t, struct gpu_arg y,
                         const struct gpu_experts *e)
{
    gpu_kernel(c, "dequant", "tiled");
    packed_constants(c, p, 4);
    gpu_tile_constants(c, t->tile);
    gpu_const(c, "V", x_width(c, x, p->k));
    gpu_flag(c, "GROUPED", e != NULL);
    gpu_bind(c, x);
    gpu_bind(c, p->w);
    gpu_bind(c, e ? gpu_experts_first(e) : x);
    gpu_bind(c, e ? e->order : x);
    gpu_bind(c, y);
    gpu_u32(c, "count", t->groups);
    gpu_u32(c, "m", of->m);
    gpu_u32(c, "n", of->n);
    gpu_u32(c, "k", of->k);
    gpu_u32(c, "part", t->split.part);
    gpu_u32(c, "parts", t->split.parts);
    gpu_u32(c, "row_bytes", p->row_bytes);
    gpu_u32(c, "experts", e ? e->own : 1);
    gpu_groups(c, t->groups);
}

static void launch_many(struct gpu_call *c, const struct packed *p, struct gpu_arg x,
                        const struct gpu_product *of, struct gpu_arg room)
{
    struct gpu_tiling t = gpu_best_tiling(of, true);
    struct gpu_epilogue none = gpu_no_epilogue(c);
    uint64_t count = of->m * of->n, parts = t.split.parts;

    if (parts == 1) {
        launch_tiles(c, p, x, of, &t, gpu_out(c), NULL);
        return;
    }
    launch_tiles(c, p, x, of, &t, gpu_part(room, 0, parts * count * sizeof(float)), NULL);
    gpu_add_parts(c, &none, room, gpu_out(c), count, parts);
}

static void launch_sorted(struct gpu_call *c, const struct packed *p, struct gpu_arg x,
                          const struct gpu_product *of, const struct gpu_experts *e)
{
    struct gpu_tiling t = {.tile = e->rows / e->experts >= 64 && of->n >= 64 ? 64 : 32,
                           .split = {1, of->k}};
    struct packed some = *p;

    gpu_experts_sort(c, e);
    gpu_experts_clear(c, e, of->n);
    for (uint64_t from = 0; from < e->experts && c->status == RLX_OK;) {
        struct gpu_experts part = gpu_some_experts(c, e, from);
        some.w = part.w;
        t.groups = gpu_experts_tiles(&part, t.tile) * gpu_ceil(of->n, t.tile);
        launch_tiles(c, &some, x, of, &t, gpu_out(c), &part);
        from += part.own;
    }
}

static void launch_unsorted(struct gpu_call *c, const struct packed *p, int32_t act,
                            const struct gpu_product *of, const struct gpu_experts *e)
{
    bool in_q8 = act == RLX_ACT_PRECISION_q8 && p->k;
    struct q8 x = in_q8 ? x_in_q8(c, p) : (struct q8){.codes = gpu_in(c, 0)};
    struct few few = few_of(p, of->m, of->n, e->experts, e->id);
    struct packed some = *p;

    do {
        struct gpu_experts part = gpu_some_experts(c, e, few.from);
        some.w = part.w;
        few.own = part.own;
        launch_rows(c, &some, &few, in_q8 ? &x : NULL);
        few.from += part.own;
    } while (few.from < e->experts && c->status == RLX_OK);
}

void gpu_lower_dequant_matmul(struct gpu_call *c)
{
    const struct attr_dequant_matmul *a = &c->attr->dequant_matmul;
    uint64_t outputs = gpu_count(c->out), n = (uint64_t)c->out->dim[c->out->rank - 1];

    if (outputs == 0)
        return;
    if (!quant_scheme(a->scheme)->is_gguf) {
        gpu_lower_dequant_side(c);
        return;
    }
    struct packed p = packed_operand(c, 1, a->scheme, a->k);
    const struct gpu_product of = {
        .items = 1, .m = outputs / n, .n = n, .k = p.k, .split_sums = gpu_split_sums(c)};
    struct gpu_arg room = gpu_split_room(c, &of);
    struct few few = few_of(&p, of.m, n, 1, -1);
    if (of.m <= FEW || p.k == 0)
        launch_few(c, &p, &few, a->act);
    else
        launch_many(c, &p, x_in_f32(c, &p, a->act), &of, room);
}

void gpu_lower_dequant_grouped_matmul(struct gpu_call *c)
{
    const struct attr_dequant_grouped_matmul *a = &c->attr->dequant_grouped_matmul;
    struct packed p = packed_operand(c, 1, a->scheme, a->k);
    uint64_t experts = (uint64_t)c->in[1].dim[0];
    struct gpu_experts e = gpu_experts_room(c, 2, experts);
    const struct gpu_product of = {
        .items = 1, .m = e.rows, .n = (uint64_t)c->out->dim[1], .k = p.k};

    gpu_check_indices(c, gpu_in(c, 2), c->in[2].dtype, e.rows, 0, (int64_t)experts);
    if (gpu_count(c->out) == 0)
        return;
    if (p.k && gpu_experts_sortable(e.rows, experts, 4))
        launch_sorted(c, &p, x_in_f32(c, &p, a->act), &of, &e);
    else
        launch_unsorted(c, &p, a->act, &of, &e);
}

/* ---- rows as numbers ---- */

void gpu_lower_dequant_moe_weights(struct gpu_call *c)
{
    const struct attr_dequant_moe_weights *a = &c->attr->dequant_moe_weights;
    struct packed p = packed_operand(c, 0, a->scheme, a->k);
    uint64_t count = gpu_count(c->out) / 4;

    gpu_kernel(c, "dequant", "unpack");
    packed_constants(c, &p, 4);
    gpu_bind(c, p.w);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", count);
    gpu_u32(c, "n", (uint64_t)c->out->dim[2]);
    gpu_u32(c, "k", p.k);
    gpu_u32(c, "row_bytes", p.row_bytes);
    gpu_invocations(c, count, GPU_GROUP);
}

void gpu_lower_dequant_gather(struct gpu_call *c)
{
    const struct attr_dequant_gather *a = &c->attr->dequant_gather;
    struct packed p = packed_operand(c, 0, a->scheme, a->k);
    uint64_t count = gpu_count(c->out) / 4;

    if (c->check_indices)
        gpu_check_indices(c, gpu_in(c, 1), c->in[1].dtype, gpu_count(&c->in[1]), 0,
                          c->in[0].dim[0]);
    gpu_kernel(c, "dequant", "gather");
    packed_constants(c, &p, 4);
    gpu_index_type(c, c->in[1].dtype);
    gpu_bind(c, p.w);
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", count);
    gpu_u32(c, "k", p.k);
    gpu_u32(c, "row_bytes", p.row_bytes);
    gpu_u32(c, "entries", (uint64_t)c->in[0].dim[0]);
    gpu_invocations(c, count, GPU_GROUP);
}
