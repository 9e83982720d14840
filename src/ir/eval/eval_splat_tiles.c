/* eval_splat_tiles.c: splats sorted into the tiles of the screen, nearest first
 * (ops-special.md 7.7).
 */
#include "ir/eval/eval_splat.h"

rlx_status splat_scene_new(struct eval_call *c, int64_t count, int64_t list, struct splat_scene *s)
{
    /* all splat ops begin with these, see shape_splat.c */
    const struct attr_gaussian_splat *attr = &c->attr->gaussian_splat;
    int64_t across = (attr->width - 1) / attr->tile_size + 1;
    int64_t down = (attr->height - 1) / attr->tile_size + 1;
    size_t pixels = (size_t)(attr->width * attr->height);

    *s = (struct splat_scene){.width = attr->width,
                              .height = attr->height,
                              .tile_size = attr->tile_size,
                              .across = across,
                              .down = down,
                              .count = count};
    s->splat = arena_array(c->arena, struct splat, (size_t)count);
    s->range = arena_array(c->arena, struct splat_range, (size_t)(across * down));
    s->list = arena_array(c->arena, int64_t, (size_t)list);
    s->ray = arena_array(c->arena, struct v3, pixels);
    if (!s->splat || !s->range || !s->list || !s->ray)
        return diag_no_memory(c->diag, pixels * sizeof *s->ray);
    return RLX_OK;
}

/* The least of a dx^2 + 2 b dx dy + c dy^2 for a given dx and dy between lo and hi. */
static double least_on_edge(double a, double b, double c, double dx, double lo, double hi)
{
    double dy = splat_clamp(-b * dx / c, lo, hi);

    return a * dx * dx + 2 * b * dx * dy + c * dy * dy;
}

/* Does the footprint meet the rectangle of this tile? */
static bool meets(const struct splat_footprint *f, const struct splat_scene *s, int64_t tile)
{
    int64_t column = tile % s->across, row = tile / s->across;
    double size = (double)s->tile_size;
    double x0 = (double)column * size - f->mx, x1 = x0 + size;
    double y0 = (double)row * size - f->my, y1 = y0 + size;

    if (f->whole || (x0 <= 0 && x1 >= 0 && y0 <= 0 && y1 >= 0))
        return true;
    double least = least_on_edge(f->a, f->b, f->c, x0, y0, y1);
    least = fmin(least, least_on_edge(f->a, f->b, f->c, x1, y0, y1));
    least = fmin(least, least_on_edge(f->c, f->b, f->a, y0, x0, x1));
    least = fmin(least, least_on_edge(f->c, f->b, f->a, y1, x0, x1));
    return least <= 1 + 1e-6;
}

/* A splat in a tile. */
struct entry {
    int64_t tile, splat;
};

/* Entries by tile, those of a tile in the order they have. */
static void by_tile(struct splat_scene *s, const struct entry *entry)
{
    int64_t at = 0;

    for (int64_t tile = 0; tile < s->across * s->down; tile++)
        s->range[tile] = (struct splat_range){0, 0};
    for (int64_t i = 0; i < s->entries; i++)
        s->range[entry[i].tile].end++; /* how many, for now */
    for (int64_t tile = 0; tile < s->across * s->down; tile++) {
        int64_t here = s->range[tile].end;
        s->range[tile] = (struct splat_range){at, at};
        at += here;
    }
    for (int64_t i = 0; i < s->entries; i++)
        s->list[s->range[entry[i].tile].end++] = entry[i].splat;
}

rlx_status splat_sort(struct eval_call *c, struct splat_scene *s,
                      const struct splat_footprint *footprint, const struct eval_cell *distance,
                      int64_t most)
{
    size_t count = (size_t)s->count;
    int64_t *order = arena_array(c->arena, int64_t, count);
    int64_t *spare = arena_array(c->arena, int64_t, count);
    struct entry *entry = arena_array(c->arena, struct entry, (size_t)most);

    if (!order || !spare || !entry)
        return diag_no_memory(c->diag, (size_t)most * sizeof *entry);
    eval_order_line(distance, s->count, 1, RLX_DTYPE_f64, false, order, spare);
    for (int64_t i = 0; i < s->count && s->entries < most; i++) {
        int64_t id = order[i];
        if (!s->splat[id].visible)
            continue;
        for (int64_t tile = 0; tile < s->across * s->down && s->entries < most; tile++)
            if (meets(&footprint[id], s, tile))
                entry[s->entries++] = (struct entry){tile, id};
    }
    by_tile(s, entry);
    return RLX_OK;
}
