/* lower_channel.c: reductions to one number per channel, in two stages. */
#include "lower/gpu/rows/lower_channel.h"

#define WIDE 32            /* channels of a group, where they are beside each other */
#define ENOUGH_GROUPS 1024 /* for a device to be busy */
#define LEAST_TURNS 8      /* of an invocation, before a channel is shared out */

/* ---- which elements ---- */

static void walk(struct channel_walk *w, const struct ir_type *t, const bool *keep)
{
    int64_t step = 1;
    bool first = true, was_kept = false;

    *w = (struct channel_walk){.channels = 1, .count = 1};
    for (int32_t i = t->rank; i-- > 0; step *= t->dim[i]) { /* from the last, which moves fastest */
        int32_t *axes = keep[i] ? &w->kept : &w->rest;
        int64_t *sizes = keep[i] ? w->kept_size : w->rest_size;
        int64_t *steps = keep[i] ? w->kept_step : w->rest_step;
        *(keep[i] ? &w->channels : &w->count) *= (uint64_t)t->dim[i];
        if (t->dim[i] == 1)
            continue;
        if (first)
            w->beside = keep[i];
        if (!first && was_kept == keep[i]) {
            sizes[*axes - 1] *= t->dim[i];
        } else {
            sizes[*axes] = t->dim[i];
            steps[(*axes)++] = step;
        }
        first = false;
        was_kept = keep[i];
    }
    if (w->kept == 0)
        w->kept_size[w->kept++] = 1;
    if (w->rest == 0)
        w->rest_size[w->rest++] = 1;
}

void channel_walk_axis(struct channel_walk *w, const struct ir_type *t, int64_t axis)
{
    bool keep[RLX_MAX_RANK] = {false};

    if (axis != RLX_ABSENT)
        keep[axis] = true;
    walk(w, t, keep);
}

void channel_walk_like(struct channel_walk *w, const struct ir_type *t, const struct ir_type *small)
{
    bool keep[RLX_MAX_RANK] = {false};
    int32_t missing = t->rank - small->rank;

    for (int32_t i = missing; i < t->rank; i++)
        keep[i] = small->dim[i - missing] != 1 || t->dim[i] == 1;
    walk(w, t, keep);
}

/* ---- launches ---- */

static rlx_dtype sums_in(rlx_dtype t)
{
    return t == RLX_DTYPE_f64 ? t : RLX_DTYPE_f32;
}

/* The kernel counts axes the other way round. */
static void add_axes(struct gpu_call *c, const char *name, int32_t axes, const int64_t *value)
{
    for (int32_t i = axes; i-- > 0;)
        gpu_u32(c, name, (uint64_t)value[i]);
}

/* Room for the parts does not grow when sizes shrink: it is that of the most parts. */
struct channel_parts channel_reduce(struct gpu_call *c, const struct channel_walk *w,
                                    enum channel_kind kind, struct gpu_arg a, struct gpu_arg b,
                                    struct gpu_arg s, rlx_dtype t, double most)
{
    uint64_t wide = w->beside ? WIDE : 1, tall = GPU_GROUP / wide;
    uint64_t tiles = gpu_ceil(w->channels, wide), useful = gpu_ceil(w->count, tall * LEAST_TURNS);
    uint64_t parts = tiles < ENOUGH_GROUPS ? ENOUGH_GROUPS / (tiles ? tiles : 1) : 1;
    rlx_dtype sum = sums_in(t);

    parts = useful == 0 ? 1 : useful < parts ? useful : parts;
    struct gpu_arg room = gpu_temp(c, (ENOUGH_GROUPS * WIDE + w->channels) * rlx_dtype_size(sum));
    struct channel_parts p = {gpu_part(room, 0, parts * w->channels * rlx_dtype_size(sum)), parts};

    gpu_kernel(c, "channel", "parts");
    gpu_type(c, "T", t);
    gpu_type(c, "A", sum);
    gpu_const(c, "KIND", kind);
    gpu_const(c, "KEPT", w->kept);
    gpu_const(c, "REST", w->rest);
    gpu_const(c, "WIDE", (int64_t)wide);
    gpu_bind(c, a);
    gpu_bind(c, b);
    gpu_bind(c, s);
    gpu_bind(c, p.arg);
    gpu_u32(c, "channels", w->channels);
    gpu_u32(c, "parts", parts);
    gpu_u32(c, "count", w->count);
    gpu_u32(c, "groups_in_all", tiles * parts);
    gpu_f32(c, "most", most);
    add_axes(c, "kept_size", w->kept, w->kept_size);
    add_axes(c, "kept_step", w->kept, w->kept_step);
    add_axes(c, "rest_size", w->rest, w->rest_size);
    add_axes(c, "rest_step", w->rest, w->rest_step);
    gpu_groups(c, tiles * parts);
    return p;
}

void channel_sums(struct gpu_call *c, const struct channel_walk *w, enum channel_kind kind,
                  struct gpu_arg a, struct gpu_arg b, struct gpu_arg s, rlx_dtype t, double most,
                  struct gpu_arg out)
{
    struct channel_parts p;

    if (w->channels == 0)
        return;
    p = channel_reduce(c, w, kind, a, b, s, t, most);
    gpu_kernel(c, "channel", "sums");
    gpu_type(c, "T", t);
    gpu_type(c, "A", sums_in(t));
    gpu_bind(c, p.arg);
    gpu_bind(c, out);
    gpu_u32(c, "channels", w->channels);
    gpu_u32(c, "parts", p.parts);
    gpu_invocations(c, w->channels, GPU_GROUP);
}
