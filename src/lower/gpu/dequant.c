/* dequant.c: packed weights in blocks: dequant_matmul, dequant_grouped_matmul, dequant_moe_weights,
 * dequant_gather (ops-special 1.6). Weights with scales beside them: dequant_side.c. */
#include "lower/gpu/dequant.h"
#include "lower/gpu/index_check.h"

#define FEW 8 /* rows of x that are met at once, one pass over the weight for all of them */

/* ---- packed operands ---- */

struct packed {
    int32_t scheme;
    const struct quant_scheme *format;
    struct gpu_arg w;
    bool wide; /* can be read in words */
    uint64_t k, row_bytes;
};

static struct packed packed_operand(const struct gpu_call *c, int32_t i, int32_t scheme, int64_t k)
{
    const struct quant_scheme *s = quant_scheme(scheme);

    return (struct packed){.scheme = scheme,
                           .format = s,
                           .w = gpu_in(c, i),
                           .wide = gpu_aligned(c, gpu_in(c, i), 4),
                           .k = (uint64_t)k,
                           .row_bytes = (uint64_t)(k / s->block_elems * s->block_bytes)};
}

static void packed_constants(struct gpu_call *c, const struct packed *p)
{
    gpu_name(c, "W", p->wide ? "u32" : "u8");
    gpu_flag(c, "WIDE", p->wide);
    gpu_const(c, "SCHEME", p->scheme);
    gpu_const(c, "BLOCK", p->format->block_elems);
    gpu_const(c, "BYTES", p->format->block_bytes);
}

/* ---- activations ---- */

/* x as the product sees it. */
struct activations {
    struct gpu_arg x;
    uint64_t rows;
};

static struct activations exact_or_q8(struct gpu_call *c, const struct packed *p, int32_t act)
{
    uint64_t count = gpu_count(&c->in[0]);
    struct activations a = {gpu_in(c, 0), p->k ? count / p->k : 0};

    if (act != RLX_ACT_PRECISION_q8 || count == 0)
        return a;
    a.x = gpu_temp(c, count * sizeof(float));
    gpu_kernel(c, "dequant", "through_q8");
    gpu_const(c, "RUN", p->format->block_elems);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, a.x);
    gpu_u32(c, count);
    gpu_invocations(c, count, GPU_GROUP);
    return a;
}

static int64_t x_width(const struct gpu_call *c, struct gpu_arg x, uint64_t k)
{
    return k % 4 == 0 && gpu_aligned(c, x, 16) ? 4 : 1;
}

/* ---- products ---- */

/* id: operand of expert ids; -1: there is one weight for all rows. */
static void launch_rows(struct gpu_call *c, const struct packed *p, struct gpu_arg x, uint64_t m,
                        uint64_t n, uint64_t experts, int32_t id)
{
    uint64_t most = id >= 0 ? 1 : m < FEW ? m : FEW, at_once = 1;
    uint64_t columns;

    while (at_once < most)
        at_once *= 2;
    columns = at_once >= 8 ? 1 : at_once == 4 ? 2 : 4;
    uint64_t groups = gpu_ceil(m, at_once) * gpu_ceil(n, 8 * columns);
    gpu_kernel(c, "dequant", "rows");
    packed_constants(c, p);
    gpu_const(c, "MM", (int64_t)at_once);
    gpu_const(c, "R", (int64_t)columns);
    gpu_const(c, "V", x_width(c, x, p->k));
    gpu_flag(c, "GROUPED", id >= 0);
    if (id >= 0)
        gpu_index_type(c, c->in[id].dtype);
    else
        gpu_name(c, "I", "f32");
    gpu_bind(c, x);
    gpu_bind(c, p->w);
    gpu_bind(c, id >= 0 ? gpu_in(c, id) : x);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, groups);
    gpu_u32(c, m);
    gpu_u32(c, n);
    gpu_u32(c, p->k);
    gpu_u32(c, p->row_bytes);
    gpu_u32(c, experts);
    gpu_groups(c, groups);
}

static void launch_tiles(struct gpu_call *c, const struct packed *p, struct gpu_arg x,
                         const struct gpu_product *of, struct gpu_arg room)
{
    struct gpu_tiling t = gpu_best_tiling(of, true);
    struct gpu_epilogue none = gpu_no_epilogue();
    uint64_t count = of->m * of->n, parts = t.split.parts;

    gpu_kernel(c, "dequant", "tiled");
    packed_constants(c, p);
    gpu_tile_constants(c, t.tile);
    gpu_const(c, "V", x_width(c, x, p->k));
    gpu_bind(c, x);
    gpu_bind(c, p->w);
    gpu_bind(c, parts > 1 ? gpu_part(room, 0, parts * count * sizeof(float)) : gpu_out(c));
    gpu_u32(c, t.groups);
    gpu_u32(c, of->m);
    gpu_u32(c, of->n);
    gpu_u32(c, of->k);
    gpu_u32(c, t.split.part);
    gpu_u32(c, parts);
    gpu_u32(c, p->row_bytes);
    gpu_groups(c, t.groups);
    if (parts > 1)
        gpu_add_parts(c, &none, room, gpu_out(c), count, parts);
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
    const struct gpu_product of = {.items = 1, .m = outputs / n, .n = n, .k = p.k};
    struct gpu_arg room = gpu_split_room(c, &of);
    struct activations x = exact_or_q8(c, &p, a->act);
    if (of.m <= FEW || p.k == 0)
        launch_rows(c, &p, x.x, of.m, n, 1, -1);
    else
        launch_tiles(c, &p, x.x, &of, room);
}

void gpu_lower_dequant_grouped_matmul(struct gpu_call *c)
{
    const struct attr_dequant_grouped_matmul *a = &c->attr->dequant_grouped_matmul;
    struct packed p = packed_operand(c, 1, a->scheme, a->k);

    if (gpu_count(c->out) == 0)
        return;
    gpu_check_indices(c, gpu_in(c, 2), c->in[2].dtype, (uint64_t)c->in[2].dim[0], 0,
                      c->in[1].dim[0]);
    struct activations x = exact_or_q8(c, &p, a->act);
    launch_rows(c, &p, x.x, (uint64_t)c->out->dim[0], (uint64_t)c->out->dim[1],
                (uint64_t)c->in[1].dim[0], 2);
}

/* ---- rows as numbers ---- */

void gpu_lower_dequant_moe_weights(struct gpu_call *c)
{
    const struct attr_dequant_moe_weights *a = &c->attr->dequant_moe_weights;
    struct packed p = packed_operand(c, 0, a->scheme, a->k);
    uint64_t count = gpu_count(c->out) / 4;

    gpu_kernel(c, "dequant", "unpack");
    packed_constants(c, &p);
    gpu_bind(c, p.w);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, count);
    gpu_u32(c, (uint64_t)c->out->dim[2]);
    gpu_u32(c, p.k);
    gpu_u32(c, p.row_bytes);
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
    packed_constants(c, &p);
    gpu_index_type(c, c->in[1].dtype);
    gpu_bind(c, p.w);
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, count);
    gpu_u32(c, p.k);
    gpu_u32(c, p.row_bytes);
    gpu_u32(c, (uint64_t)c->in[0].dim[0]);
    gpu_invocations(c, count, GPU_GROUP);
}
