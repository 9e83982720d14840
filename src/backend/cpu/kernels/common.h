/* common.h: what the kernels share: element types, tiles, operands read by strides, indices.
 *
 * A tile is a short row of elements on the stack. f16 and bf16 are computed in f32 tiles, other
 * types in their own; a broadcast operand becomes a row of its elements, or a single one with step
 * 0, so that inner loops only ever see step 1 and step 0:
 *
 *     cpu_elementwise(c, grain, fn)     cuts the output into spans
 *       cpu_view_read                   gives each operand's elements of a span
 *         fn                            runs the loop over them
 *
 * Functions that are not inline are in tile.c and row_view.c, one copy per ISA level. */
#ifndef CPU_KERNELS_COMMON_H
#define CPU_KERNELS_COMMON_H

#include "backend/cpu/cpu_kernel.h"
#include "base/half.h"

#include <math.h>
#include <string.h>

/* Elements of a tile, and the bytes that hold a tile of any type. */
enum { CPU_TILE = 512, CPU_TILE_BYTES = CPU_TILE * 8 };

/* Memory for a tile of any type: `CPU_TILE_OF(float, x);` or `CPU_TILE_ANY(buffer);`. */
#define CPU_TILE_OF(type, name) _Alignas(64) type name[CPU_TILE]
#define CPU_TILE_ANY(name) _Alignas(64) unsigned char name[CPU_TILE_BYTES]

/* Before a loop whose iterations are independent even if its output is exactly one of its inputs.
 * `restrict` would promise more than kernels that work in place can keep. */
#if defined(__clang__)
#define CPU_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed" /* it says so of every loop it cannot turn */
#else
#define CPU_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* ---- element types ------------------------------------------------------------------------- */

/* X(dtype, C type): types that C computes in directly. */
#define CPU_EACH_WIDE_FLOAT(X) X(f32, float) X(f64, double)
#define CPU_EACH_SIGNED(X) X(i8, int8_t) X(i16, int16_t) X(i32, int32_t) X(i64, int64_t)
#define CPU_EACH_UNSIGNED(X) X(u8, uint8_t) X(u16, uint16_t) X(u32, uint32_t) X(u64, uint64_t)
#define CPU_EACH_INT(X) CPU_EACH_SIGNED(X) CPU_EACH_UNSIGNED(X)

/* Elements as bits, for loops that only move or choose them: these may look at any type. */
typedef uint8_t __attribute__((may_alias)) cpu_bits8;
typedef uint16_t __attribute__((may_alias)) cpu_bits16;
typedef uint32_t __attribute__((may_alias)) cpu_bits32;
typedef uint64_t __attribute__((may_alias)) cpu_bits64;

static inline size_t cpu_size(rlx_dtype d)
{
    static const uint8_t size[RLX_DTYPE_count + 1] = {
#define X(name, number, bytes, cls, text) [RLX_DTYPE_##name] = bytes,
        RLX_DTYPE_MAP(X)
#undef X
    };
    return size[d];
}

static inline bool cpu_is_half(rlx_dtype d)
{
    return d == RLX_DTYPE_f16 || d == RLX_DTYPE_bf16;
}

static inline bool cpu_is_float(rlx_dtype d)
{
    return cpu_is_half(d) || d == RLX_DTYPE_f32 || d == RLX_DTYPE_f64;
}

static inline bool cpu_is_signed(rlx_dtype d)
{
    return d == RLX_DTYPE_i8 || d == RLX_DTYPE_i16 || d == RLX_DTYPE_i32 || d == RLX_DTYPE_i64;
}

static inline bool cpu_is_unsigned(rlx_dtype d)
{
    return d == RLX_DTYPE_u8 || d == RLX_DTYPE_u16 || d == RLX_DTYPE_u32 || d == RLX_DTYPE_u64;
}

/* Element k of a tensor that is not empty. */
static inline void *cpu_at(const struct cpu_tensor *t, int64_t k)
{
    return (char *)t->data + k * (int64_t)cpu_size(t->dtype);
}

/* ---- tiles (tile.c) ------------------------------------------------------------------------ */

#define cpu_load_f32 CPU_NAME(cpu_load_f32)
#define cpu_load_f64 CPU_NAME(cpu_load_f64)
#define cpu_load_i64 CPU_NAME(cpu_load_i64)
#define cpu_store_f32 CPU_NAME(cpu_store_f32)
#define cpu_store_f64 CPU_NAME(cpu_store_f64)
#define cpu_store_i64 CPU_NAME(cpu_store_i64)

/* n elements of any real type or bool, n unlimited, converted as cast does (ops-core.md 2.3): one
 * rounding to nearest even; floats to integers truncate and saturate, NaN gives 0. u64 goes through
 * i64 as its bits, and comes out of cpu_load_f32 and cpu_load_f64 as the number it is. src and dst
 * do not overlap, unless the types are the same and src == dst. */
void cpu_load_f32(rlx_dtype from, const void *src, float *dst, int64_t n);
void cpu_load_f64(rlx_dtype from, const void *src, double *dst, int64_t n);
void cpu_load_i64(rlx_dtype from, const void *src, int64_t *dst, int64_t n);
void cpu_store_f32(rlx_dtype to, const float *src, void *dst, int64_t n);
void cpu_store_f64(rlx_dtype to, const double *src, void *dst, int64_t n);
void cpu_store_i64(rlx_dtype to, const int64_t *src, void *dst, int64_t n);

/* n elements of a float type as f32: the elements themselves if they are f32 already, otherwise
 * converted into buffer, which holds n. */
static inline const float *cpu_as_f32(rlx_dtype from, const void *src, float *buffer, int64_t n)
{
    if (from == RLX_DTYPE_f32)
        return src;
    cpu_load_f32(from, src, buffer, n);
    return buffer;
}

/* One element as a number. For loops that matter use the tiles. */
static inline double cpu_get_f64(rlx_dtype from, const void *src, int64_t k)
{
    double v;
    cpu_load_f64(from, (const char *)src + k * (int64_t)cpu_size(from), &v, 1);
    return v;
}

static inline void cpu_set_f64(rlx_dtype to, void *dst, int64_t k, double v)
{
    cpu_store_f64(to, &v, (char *)dst + k * (int64_t)cpu_size(to), 1);
}

static inline int64_t cpu_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t cpu_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The larger and the smaller, NaN if either is (C's fmax and fmin drop it). */
static inline float cpu_max_f32(float a, float b)
{
    float m = a > b ? a : b; /* b if a is NaN */
    return a != a ? a : m;
}

static inline float cpu_min_f32(float a, float b)
{
    float m = a < b ? a : b;
    return a != a ? a : m;
}

static inline double cpu_max_f64(double a, double b)
{
    double m = a > b ? a : b;
    return a != a ? a : m;
}

static inline double cpu_min_f64(double a, double b)
{
    double m = a < b ? a : b;
    return a != a ? a : m;
}

/* Floats to integers without undefined behaviour: truncated, saturated, NaN gives 0. */
static inline int64_t cpu_trunc_i64(double v)
{
    if (v != v)
        return 0;
    if (v >= 0x1p63)
        return INT64_MAX;
    return v < -0x1p63 ? INT64_MIN : (int64_t)v;
}

/* ---- rows that pass through the cache ------------------------------------------------------- */

/* Asks for memory that will be read soon. While a row's result is computed and written, nothing
 * would be fetched otherwise, and the next row would come all at once. */
static inline void cpu_prefetch(const void *p, int64_t bytes)
{
    __asm__ volatile(""); /* gcc drops calls of functions that do nothing else */
    for (int64_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const char *)p + i, 0, 2);
}

/* Results larger than any cache that will be there when they are read go past the caches: a store
 * would fetch the line that it overwrites. Not where the result takes an input's place, which is in
 * the cache then. A range function that streams calls cpu_stream_end last. */
#define cpu_streams CPU_NAME(cpu_streams)
#define cpu_stream_out CPU_NAME(cpu_stream_out)
#define cpu_stream_end CPU_NAME(cpu_stream_end)
#define cpu_stream_worth CPU_NAME(cpu_stream_worth)
bool cpu_stream_worth(uint64_t bytes); /* of a result that takes no input's place */
bool cpu_streams(const struct cpu_call *c);
void cpu_stream_out(void *dst, const void *src, int64_t bytes);
void cpu_stream_end(void);

/* Elements of a block where rows are read and written once: enough blocks to share, and blocks
 * long enough for the memory to get going. */
static inline int64_t cpu_stream_block(int64_t count)
{
    return cpu_max_i64(4096, cpu_min_i64(65536, count / 64));
}

/* ---- indices (ops-core.md 1.9) --------------------------------------------------------------- */

/* An index operand's element k as an integer that may be out of range. Floats truncate; NaN gives
 * INT64_MIN, which is out of range everywhere and reads element 0 when clamped. */
static inline int64_t cpu_index(const struct cpu_tensor *t, int64_t k)
{
    switch (t->dtype) {
#define X(name, type) \
    case RLX_DTYPE_##name: return (int64_t)((const type *)t->data)[k];
        CPU_EACH_SIGNED(X)
        X(u8, uint8_t)
        X(u16, uint16_t)
        X(u32, uint32_t)
#undef X
    case RLX_DTYPE_u64: {
        uint64_t v = ((const uint64_t *)t->data)[k];
        return v > INT64_MAX ? INT64_MAX : (int64_t)v;
    }
    case RLX_DTYPE_f32: {
        float v = ((const float *)t->data)[k];
        return v != v ? INT64_MIN : cpu_trunc_i64((double)v);
    }
    case RLX_DTYPE_f64: {
        double v = ((const double *)t->data)[k];
        return v != v ? INT64_MIN : cpu_trunc_i64(v);
    }
    default: return INT64_MIN;
    }
}

static inline bool cpu_index_valid(int64_t i, int64_t n)
{
    return (uint64_t)i < (uint64_t)n;
}

/* What an op that reads does with an index: clamp it to [0, n-1]; n >= 1. */
static inline int64_t cpu_index_clamp(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* ---- operands read by strides (row_view.c) -------------------------------------------------- */

/* One operand as an output-shaped row of elements: element p of it, in row-major order over dim, is
 * at the sum of index times stride. Neighbouring axes that can be walked as one have been joined:
 * a dense operand has rank 1 and stride 1, a scalar one rank 1 and stride 0. */
struct cpu_view {
    const char *data;
    int32_t size; /* bytes per element */
    int32_t rank; /* >= 1 */
    int64_t dim[RLX_MAX_RANK];
    int64_t stride[RLX_MAX_RANK]; /* in elements; 0 where it broadcasts */
};

#define cpu_view_make CPU_NAME(cpu_view_make)
#define cpu_view_broadcast CPU_NAME(cpu_view_broadcast)
#define cpu_view_read CPU_NAME(cpu_view_read)
#define cpu_view_span CPU_NAME(cpu_view_span)
#define cpu_copy_strided CPU_NAME(cpu_copy_strided)
#define cpu_elementwise CPU_NAME(cpu_elementwise)

/* Any strides, negative ones too; no dim is 0. */
void cpu_view_make(struct cpu_view *v, const void *data, rlx_dtype dtype, int32_t rank,
                   const int64_t *dim, const int64_t *stride);
/* t broadcast to out's shape (ops-core.md 1.5); out is not empty. */
void cpu_view_broadcast(struct cpu_view *v, const struct cpu_tensor *t,
                        const struct cpu_tensor *out);

/* Elements pos .. pos+n-1, n <= CPU_TILE, or more where cpu_view_span said so. They are at the
 * result, one after another (*step 1) or all the same (*step 0): either where they lie, or copied
 * into buffer, which holds CPU_TILE of them. */
const void *cpu_view_read(const struct cpu_view *v, int64_t pos, int64_t n, void *buffer,
                          int *step);
/* How many elements from pos on, n at most, are best read together from all these views. */
int64_t cpu_view_span(const struct cpu_view *v, int32_t count, int64_t pos, int64_t n);

/* n elements of `size` bytes (1, 2, 4 or 8), `stride` elements apart, to a dense row. */
void cpu_copy_strided(void *dst, const void *src, int32_t size, int64_t n, int64_t stride);

/* Part of a dense output and what the inputs hold for it. */
struct cpu_span {
    int64_t pos, n; /* n >= 1, not limited to a tile */
    void *out;      /* element pos */
    const void *in[3];
    int step[3]; /* 1: in[i][0 .. n-1]; 0: in[i][0] for all of them */
};

/* fn over all of the output, with the inputs (three at most) broadcast to it. fn's loop must read
 * element k of an input before it writes element k of out, and then works in place too. grain:
 * elements per block, at least CPU_TILE. */
typedef void (*cpu_span_fn)(const struct cpu_call *c, const struct cpu_span *s);
void cpu_elementwise(const struct cpu_call *c, int64_t grain, cpu_span_fn fn);

#endif
