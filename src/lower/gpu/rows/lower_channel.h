/* lower_channel.h: one number per channel, of all elements that share it (kernels/channel.rlk). */
#ifndef LOWER_CHANNEL_H
#define LOWER_CHANNEL_H

#include "lower/gpu.h"

/* Which elements of a dense tensor share a channel: some axes tell channels apart, the rest are the
 * elements of one. Neighbours of a kind are one axis. */
struct channel_walk {
    uint64_t channels, count; /* count: elements of a channel */
    int32_t kept, rest;       /* axes, at least one each */
    int64_t kept_size[RLX_MAX_RANK], kept_step[RLX_MAX_RANK];
    int64_t rest_size[RLX_MAX_RANK], rest_step[RLX_MAX_RANK];
    bool beside; /* channels are beside each other in memory */
};
/* Positions on an axis; RLX_ABSENT: one channel. */
void channel_walk_axis(struct channel_walk *w, const struct ir_type *t, int64_t axis);
/* Elements of `small`, which is broadcast to t. */
void channel_walk_like(struct channel_walk *w, const struct ir_type *t,
                       const struct ir_type *small);

enum channel_kind { CHANNEL_MAX, CHANNEL_PRODUCT, CHANNEL_LSQ }; /* as the kernel counts them */
struct channel_parts {
    struct gpu_arg arg; /* [parts, channels], f64 where t is that, else f32 */
    uint64_t parts;
};
/* a, b and s as the kernel's KIND wants them; those it does not read may be any. */
struct channel_parts channel_reduce(struct gpu_call *c, const struct channel_walk *w,
                                    enum channel_kind kind, struct gpu_arg a, struct gpu_arg b,
                                    struct gpu_arg s, rlx_dtype t, double most);
/* The same, summed up into `out`, of dtype t. */
void channel_sums(struct gpu_call *c, const struct channel_walk *w, enum channel_kind kind,
                  struct gpu_arg a, struct gpu_arg b, struct gpu_arg s, rlx_dtype t, double most,
                  struct gpu_arg out);

#endif
