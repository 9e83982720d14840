/* lower_dequant_side.c: products with weights whose scales lie beside them
 * (ops-special.md 1.2, 1.6). */
#include "lower/gpu/gemm/lower_dequant.h"

#define FEW 8       /* rows of x that are met at once */
#define COLUMNS 128 /* of a group that makes few rows */

enum { SCALES_NONE, SCALES_ONE, SCALES_PER_COLUMN, SCALES_PER_GROUP };

struct side {
    int32_t scheme;
    const struct quant_scheme *format;
    struct gpu_product of;
    uint64_t run; /* rows of a group */
    bool quads;   /* four codes at a time, in words */
};

static int64_t scales_of(const struct gpu_call *c, const struct side *s)
{
    if (s->format->has_scale)
        return SCALES_PER_GROUP;
    if (gpu_count(&c->in[2]) == 0)
        return SCALES_NONE;
    return c->in[2].rank == 2 ? SCALES_PER_COLUMN : SCALES_ONE;
}

static void side_constants(struct gpu_call *c, const struct side *s)
{
    gpu_name(c, "W", s->quads ? "u32" : "u8");
    gpu_type(c, "S", c->in[2].dtype);
    gpu_const(c, "SCHEME", s->scheme);
    gpu_const(c, "SCALES", scales_of(c, s));
    gpu_flag(c, "NIBBLES", s->format->nibbles);
    gpu_flag(c, "QUAD", s->quads);
}

static void bind_and_words(struct gpu_call *c, const struct side *s, struct gpu_arg y,
                           uint64_t groups, const struct gpu_split *split)
{
    for (int32_t i = 0; i < 4; i++)
        gpu_bind(c, gpu_in(c, i));
    gpu_bind(c, y);
    gpu_u32(c, "count", groups);
    gpu_u32(c, "m", s->of.m);
    gpu_u32(c, "n", s->of.n);
    gpu_u32(c, "k", s->of.k);
    gpu_u32(c, "part", split->part);
    gpu_u32(c, "parts", split->parts);
    gpu_u32(c, "run", s->run);
    gpu_groups(c, groups);
}

void gpu_lower_dequant_side(struct gpu_call *c)
{
    const struct attr_dequant_matmul *a = &c->attr->dequant_matmul;
    uint64_t n = (uint64_t)c->out->dim[c->out->rank - 1], outputs = gpu_count(c->out);
    struct side s = {.scheme = a->scheme, .format = quant_scheme(a->scheme)};
    struct gpu_epilogue none = gpu_no_epilogue(c);

    s.of = (struct gpu_product){
        .items = 1, .m = outputs / n, .n = n, .k = (uint64_t)a->k, .split_sums = gpu_split_sums(c)};
    s.run = (uint64_t)(s.format->group ? s.format->group : a->block_size);
    s.quads = n % 4 == 0 && gpu_aligned(c, gpu_in(c, 1), 4);
    struct gpu_arg room = gpu_split_room(c, &s.of);
    bool few = s.of.m <= FEW;
    struct gpu_tiling t = gpu_best_tiling(&s.of, true);
    if (few) {
        t.groups = gpu_ceil(n, COLUMNS);
        t.split = gpu_split_depth(&s.of, t.groups, GPU_BUSY_GROUPS, 8);
        t.groups *= t.split.parts;
    }
    struct gpu_arg y = gpu_out(c);
    if (t.split.parts > 1)
        y = gpu_part(room, 0, t.split.parts * outputs * sizeof(float));
    gpu_kernel(c, "dequant_side", few ? "columns" : "tiled");
    side_constants(c, &s);
    if (few) {
        gpu_const(c, "MM", s.of.m == 1 ? 1 : s.of.m <= 4 ? 4 : FEW);
    } else {
        gpu_tile_constants(c, t.tile);
        gpu_const(c, "V", s.of.k % 4 == 0 && gpu_aligned(c, gpu_in(c, 0), 16) ? 4 : 1);
    }
    bind_and_words(c, &s, y, t.groups, &t.split);
    if (t.split.parts > 1)
        gpu_add_parts(c, &none, room, gpu_out(c), outputs, t.split.parts);
}
