/* lower_splat_tiles.c: which splats each tile of the screen has, nearest first
 * (ops-special.md 7.7): kernels/splat_tiles.rlk tells how. */
#include "lower/gpu/splat/lower_splat.h"

enum { SORTED = 512, SCANNED = 1024, WORDS = 4 }; /* as in the kernels */

/* ---- sorting ---- */

/* A power of two that holds so many, and a group's part. */
static uint64_t sorted_room(uint64_t count)
{
    uint64_t room = SORTED;

    while (room < count)
        room *= 2;
    return room;
}

static void sort_step(struct gpu_call *c, struct gpu_arg x, uint64_t size, uint64_t stride,
                      uint64_t count)
{
    gpu_kernel(c, "splat_tiles", "sort_step");
    gpu_bind(c, x);
    gpu_u32(c, "size", size);
    gpu_u32(c, "stride", stride);
    gpu_u32(c, "count", count / 2);
    gpu_invocations(c, count / 2, GPU_GROUP);
}

/* count: as sorted_room gives it. */
static void sort(struct gpu_call *c, struct gpu_arg x, uint64_t count)
{
    gpu_kernel(c, "splat_tiles", "sort_block");
    gpu_bind(c, x);
    gpu_u32(c, "groups_used", count / SORTED);
    gpu_groups(c, count / SORTED);
    for (uint64_t size = 2 * SORTED; size <= count; size *= 2) {
        for (uint64_t stride = size / 2; stride >= SORTED; stride /= 2)
            sort_step(c, x, size, stride, count);
        gpu_kernel(c, "splat_tiles", "sort_merge");
        gpu_bind(c, x);
        gpu_u32(c, "size", size);
        gpu_u32(c, "groups_used", count / SORTED);
        gpu_groups(c, count / SORTED);
    }
}

/* ---- entries ---- */

struct listing {
    const struct splat_canvas *s;
    struct gpu_arg scene, footprint;
    struct splat_lists to;
};

static void sort_splats(struct gpu_call *c, const struct listing *l)
{
    gpu_kernel(c, "splat_tiles", "keys");
    gpu_type(c, "R", dense_real(c));
    gpu_bind(c, l->scene);
    gpu_bind(c, l->footprint);
    gpu_bind(c, l->to.order);
    gpu_u32(c, "n", l->s->count);
    gpu_u32(c, "count", l->to.order_room);
    gpu_invocations(c, l->to.order_room, GPU_GROUP);
    sort(c, l->to.order, l->to.order_room);
}

static void count_tiles(struct gpu_call *c, const struct listing *l)
{
    gpu_kernel(c, "splat_tiles", "count");
    gpu_type(c, "R", dense_real(c));
    gpu_bind(c, l->to.order);
    gpu_bind(c, l->scene);
    gpu_bind(c, l->footprint);
    gpu_bind(c, l->to.first);
    gpu_u32(c, "n", l->s->count);
    gpu_u32(c, "tile", l->s->tile);
    gpu_u32(c, "across", l->s->across);
    gpu_u32(c, "down", l->s->down);
    gpu_invocations(c, l->s->count, GPU_GROUP);
    gpu_kernel(c, "splat_tiles", "scan_block");
    gpu_bind(c, l->to.first);
    gpu_bind(c, l->to.sums);
    gpu_u32(c, "n", l->s->count);
    gpu_u32(c, "groups_used", l->to.parts);
    gpu_groups(c, l->to.parts);
    gpu_kernel(c, "splat_tiles", "scan_sums");
    gpu_bind(c, l->to.sums);
    gpu_u32(c, "count", l->to.parts);
    gpu_groups(c, 1);
}

static void write_entries(struct gpu_call *c, const struct listing *l)
{
    gpu_kernel(c, "splat_tiles", "fill");
    gpu_bind(c, l->to.entry);
    gpu_u32(c, "count", l->to.entry_room);
    gpu_invocations(c, l->to.entry_room, GPU_GROUP);
    gpu_kernel(c, "splat_tiles", "write");
    gpu_type(c, "R", dense_real(c));
    gpu_bind(c, l->to.order);
    gpu_bind(c, l->scene);
    gpu_bind(c, l->footprint);
    gpu_bind(c, l->to.first);
    gpu_bind(c, l->to.sums);
    gpu_bind(c, l->to.entry);
    gpu_u32(c, "n", l->s->count);
    gpu_u32(c, "tile", l->s->tile);
    gpu_u32(c, "across", l->s->across);
    gpu_u32(c, "down", l->s->down);
    gpu_u32(c, "most", l->s->most);
    gpu_invocations(c, l->s->count, GPU_GROUP);
    sort(c, l->to.entry, l->to.entry_room);
}

struct splat_lists splat_list(struct gpu_call *c, const struct splat_canvas *s,
                              struct gpu_arg scene, struct gpu_arg footprint)
{
    struct listing l = {.s = s, .scene = scene, .footprint = footprint};
    struct splat_lists *to = &l.to;

    to->order_room = sorted_room(s->count);
    to->entry_room = sorted_room(s->most);
    to->parts = gpu_ceil(s->count, SCANNED);
    to->order = gpu_temp(c, to->order_room * WORDS * 4);
    to->entry = gpu_temp(c, to->entry_room * WORDS * 4);
    to->first = gpu_temp(c, s->count * 4);
    to->sums = gpu_temp(c, (to->parts + 1) * 4);
    sort_splats(c, &l);
    count_tiles(c, &l);
    write_entries(c, &l);
    gpu_kernel(c, "splat_tiles", "lists");
    gpu_bind(c, to->entry);
    gpu_bind(c, scene);
    gpu_u32(c, "n", s->count);
    gpu_u32(c, "entries", to->entry_room);
    gpu_u32(c, "room", s->list);
    gpu_u32(c, "tiles", s->tiles);
    gpu_u32(c, "count", s->list + s->tiles);
    gpu_invocations(c, s->list + s->tiles, GPU_GROUP);
    return l.to;
}
