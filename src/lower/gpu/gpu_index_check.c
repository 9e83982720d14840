/* gpu_index_check.c: a launch that looks for indices out of range. Kernels are safe from them
 * anyway: reads clamp, writes drop. */
#include "lower/gpu/gpu_index_check.h"

void gpu_index_type(struct gpu_call *c, rlx_dtype t)
{
    enum { SIGNED, UNSIGNED, WIDE_SIGNED, WIDE_UNSIGNED, SINGLE, DOUBLE } kind = SIGNED;

    switch (t) {
    case RLX_DTYPE_i64: kind = WIDE_SIGNED; break;
    case RLX_DTYPE_u64: kind = WIDE_UNSIGNED; break;
    case RLX_DTYPE_f32: kind = SINGLE; break;
    case RLX_DTYPE_f64: kind = DOUBLE; break;
    default: kind = dtype_is(t, CLASS_I) ? SIGNED : UNSIGNED; break;
    }
    gpu_type(c, "I", t == RLX_DTYPE_f64 ? RLX_DTYPE_u64 : t);
    gpu_const(c, "IK", kind);
}

static void add_wide(struct gpu_call *c, const char *name, int64_t v)
{
    gpu_u32(c, name, (uint64_t)v & UINT32_MAX);
    gpu_u32(c, name, (uint64_t)v >> 32);
}

static void check(struct gpu_call *c, struct gpu_arg index, rlx_dtype dtype, uint64_t count,
                  int64_t lowest, const int64_t *limit, int32_t parts)
{
    gpu_kernel(c, "index_check", "index_check");
    gpu_index_type(c, dtype);
    gpu_const(c, "PARTS", parts);
    gpu_bind(c, index);
    gpu_bind(c, gpu_fault());
    gpu_u32(c, "count", count);
    gpu_u32(c, "step", (uint64_t)c->step);
    add_wide(c, "lowest", lowest);
    for (int32_t i = 0; i < parts; i++)
        add_wide(c, "limit", limit[i]);
    gpu_groups(c, count > 0);
}

void gpu_check_indices(struct gpu_call *c, struct gpu_arg index, rlx_dtype dtype, uint64_t count,
                       int64_t lowest, int64_t limit)
{
    check(c, index, dtype, count, lowest, &limit, 1);
}

void gpu_check_coordinates(struct gpu_call *c, struct gpu_arg index, rlx_dtype dtype,
                           uint64_t count, const int64_t *limit, int32_t parts)
{
    check(c, index, dtype, count, 0, limit, parts);
}
