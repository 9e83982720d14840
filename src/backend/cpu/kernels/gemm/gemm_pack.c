/* gemm_pack.c: panels for gemm.c from matrices in memory (gemm.h).
 *
 * Three ways to read a panel, by the strides of its source:
 *
 *     line stride 1    the lines of one k lie together: copy rows
 *     k stride 1       a line's k lie together: turn 4 x 4 pieces around
 *     neither          one element at a time
 *
 * Elements are moved as bits of their size; f16 and bf16 are widened on the way. */
#include "backend/cpu/kernels/gemm/gemm.h"

typedef uint16_t half_bits __attribute__((may_alias));
typedef uint32_t word __attribute__((may_alias));
typedef uint64_t pair __attribute__((may_alias));
typedef uint32_t word4 __attribute__((vector_size(16), aligned(4), may_alias));

enum { WIDEST = 32, CHUNK = 64 }; /* lines of a panel at most; k widened at a time */

/* One panel: n lines of `width`, ks of k, read with these strides. */
struct panel {
    int64_t n, width, ks;
    int64_t line, k;
};

#define EACH_LANE(p, dst, expr)                     \
    do {                                            \
        for (int64_t j = 0; j < (p)->ks; j++)       \
            for (int64_t l = 0; l < (p)->n; l++)    \
                (dst)[j * (p)->width + l] = (expr); \
    } while (0)

/* A row of constant length becomes a few vector moves. */
#define COPY_ROWS(count)                                                     \
    case count:                                                              \
        for (int64_t j = 0; j < p->ks; j++)                                  \
            memcpy(dst + j * p->width, src + j * p->k, count * sizeof *dst); \
        break;

static void copy_rows_4(const struct panel *p, const word *src, word *dst)
{
    switch (p->n) {
        COPY_ROWS(32)
        COPY_ROWS(16)
        COPY_ROWS(12)
        COPY_ROWS(8)
        COPY_ROWS(6)
    default: EACH_LANE(p, dst, src[j * p->k + l]); break;
    }
}

static void copy_rows_8(const struct panel *p, const pair *src, pair *dst)
{
    switch (p->n) {
        COPY_ROWS(16)
        COPY_ROWS(12)
        COPY_ROWS(8)
        COPY_ROWS(6)
        COPY_ROWS(4)
    default: EACH_LANE(p, dst, src[j * p->k + l]); break;
    }
}

/* Four lines, four k: rows of src become columns of dst. */
static inline void turn_4x4(const word *src, int64_t line, word *dst, int64_t width)
{
#if defined(__has_builtin) && __has_builtin(__builtin_shufflevector)
    word4 a = *(const word4 *)src, b = *(const word4 *)(src + line);
    word4 c = *(const word4 *)(src + 2 * line), d = *(const word4 *)(src + 3 * line);
    word4 ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    word4 ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    word4 cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    word4 cd1 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(word4 *)dst = __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5);
    *(word4 *)(dst + width) = __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7);
    *(word4 *)(dst + 2 * width) = __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5);
    *(word4 *)(dst + 3 * width) = __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7);
#else
    for (int64_t j = 0; j < 4; j++)
        for (int64_t l = 0; l < 4; l++)
            dst[j * width + l] = src[l * line + j];
#endif
}

/* k stride 1. */
static void turn(const struct panel *p, const word *src, word *dst)
{
    int64_t whole = p->ks / 4 * 4, l = 0;

    for (; l + 4 <= p->n; l += 4)
        for (int64_t j = 0; j < whole; j += 4)
            turn_4x4(src + l * p->line + j, p->line, dst + j * p->width + l, p->width);
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t j = i < l ? whole : 0; j < p->ks; j++)
            dst[j * p->width + i] = src[i * p->line + j];
}

static void pack_4(const struct panel *p, const word *src, word *dst)
{
    if (p->line == 1)
        copy_rows_4(p, src, dst);
    else if (p->k == 1)
        turn(p, src, dst);
    else
        EACH_LANE(p, dst, src[j * p->k + l * p->line]);
}

static void pack_8(const struct panel *p, const pair *src, pair *dst)
{
    if (p->line == 1)
        copy_rows_8(p, src, dst);
    else
        EACH_LANE(p, dst, src[j * p->k + l * p->line]);
}

/* Rows of 16 or 32, and others one element at a time: so that most become vector code. */
#define WIDEN_ROWS(to_f32)                                                                    \
    do {                                                                                      \
        if (p->n % 16 != 0 || p->line != 1) {                                                 \
            EACH_LANE(p, dst, half_f32_bits(to_f32(src[j * p->k + l * p->line])));            \
            break;                                                                            \
        }                                                                                     \
        for (int64_t j = 0; j < p->ks; j++)                                                   \
            for (int64_t l = 0; l < p->n; l += 16)                                            \
                for (int64_t i = 0; i < 16; i++)                                              \
                    dst[j * p->width + l + i] = half_f32_bits(to_f32(src[j * p->k + l + i])); \
    } while (0)

static void widen_rows(const struct panel *p, rlx_dtype dtype, const half_bits *restrict src,
                       word *restrict dst)
{
    if (dtype == RLX_DTYPE_f16)
        WIDEN_ROWS(f16_to_f32);
    else
        WIDEN_ROWS(bf16_to_f32);
}

/* Lines whose k lie together are widened a chunk at a time, then turned around. */
static void pack_half(const struct panel *p, rlx_dtype dtype, const half_bits *src, word *dst)
{
    float wide[WIDEST][CHUNK];
    struct panel chunk = *p;

    if (p->k != 1 || p->line == 1) {
        widen_rows(p, dtype, src, dst);
        return;
    }
    chunk.line = CHUNK;
    for (int64_t j = 0; j < p->ks; j += CHUNK) {
        chunk.ks = cpu_min_i64(CHUNK, p->ks - j);
        for (int64_t l = 0; l < p->n; l++)
            cpu_load_f32(dtype, src + l * p->line + j, wide[l], chunk.ks);
        turn(&chunk, (const word *)&wide[0][0], dst + j * p->width);
    }
}

static void pack_panel(const struct panel *p, rlx_dtype dtype, const void *src, void *dst)
{
    switch (cpu_size(dtype)) {
    case 2: pack_half(p, dtype, src, dst); break;
    case 4: pack_4(p, src, dst); break;
    default: pack_8(p, src, dst); break;
    }
}

/* The lanes past the last line. */
static void clear_lanes(const struct panel *p, char *dst, int64_t size)
{
    for (int64_t j = 0; j < p->ks && p->n < p->width; j++)
        memset(dst + (j * p->width + p->n) * size, 0, (size_t)((p->width - p->n) * size));
}

void gemm_pack_run(const struct gemm_view *v, const struct gemm_part *p, int64_t at, int64_t ks)
{
    int64_t from = (int64_t)cpu_size(v->dtype), size = from == 8 ? 8 : 4;
    const char *src = v->data;
    char *dst = (char *)p->panel + at * p->width * size;

    for (int64_t l = 0; l < p->lines; l += p->width) {
        struct panel panel = {.n = cpu_min_i64(p->width, p->lines - l),
                              .width = p->width,
                              .ks = ks,
                              .line = v->line,
                              .k = v->k};
        pack_panel(&panel, v->dtype, src + l * v->line * from, dst);
        clear_lanes(&panel, dst, size);
        dst += p->ks * p->width * size;
    }
}

void gemm_pack_view(const struct gemm_view *v, const struct gemm_part *p)
{
    struct gemm_view from = *v;

    from.data =
        (const char *)v->data + (p->line * v->line + p->k * v->k) * (int64_t)cpu_size(v->dtype);
    gemm_pack_run(&from, p, 0, p->ks);
}

/* ---- f16 and bf16 as they are -------------------------------------------------------------- */

static void pack_2(const struct panel *p, const half_bits *src, half_bits *dst)
{
    EACH_LANE(p, dst, src[j * p->k + l * p->line]);
}

void gemm_pack_half(const struct gemm_view *v, const struct gemm_part *p)
{
    const half_bits *src = (const half_bits *)v->data + p->line * v->line + p->k * v->k;
    half_bits *dst = p->panel;

    for (int64_t l = 0; l < p->lines; l += p->width, dst += p->ks * p->width) {
        struct panel panel = {.n = cpu_min_i64(p->width, p->lines - l),
                              .width = p->width,
                              .ks = p->ks,
                              .line = v->line,
                              .k = v->k};
        pack_2(&panel, src + l * v->line, dst);
        clear_lanes(&panel, (char *)dst, sizeof *dst);
    }
}

/* ---- c64 ----------------------------------------------------------------------------------- */

static void clear(const struct gemm_part *p)
{
    int64_t lanes = gemm_up(p->lines, p->width) * p->ks;
    memset(p->panel, 0, (size_t)lanes * sizeof(float));
}

static float *panel_lane(const struct gemm_part *p, int64_t line, int64_t j)
{
    return (float *)p->panel + (line / p->width * p->ks + j) * p->width + line % p->width;
}

void gemm_pack_c64_a(const struct gemm_view *v, const struct gemm_part *p)
{
    const float *src = v->data;

    clear(p);
    src += 2 * (p->line * v->line + p->k / 2 * v->k);
    for (int64_t l = 0; l < p->lines; l++)
        for (int64_t j = 0; j < p->ks; j += 2) {
            const float *z = src + 2 * (l * v->line + j / 2 * v->k);
            *panel_lane(p, l, j) = z[0];
            *panel_lane(p, l, j + 1) = z[1];
        }
}

void gemm_pack_c64_b(const struct gemm_view *v, const struct gemm_part *p)
{
    const float *src = v->data;

    clear(p);
    src += 2 * (p->line / 2 * v->line + p->k / 2 * v->k);
    for (int64_t l = 0; l < p->lines; l += 2)
        for (int64_t j = 0; j < p->ks; j += 2) {
            const float *z = src + 2 * (l / 2 * v->line + j / 2 * v->k);
            float *even = panel_lane(p, l, j), *odd = panel_lane(p, l, j + 1);
            even[0] = z[0], even[1] = z[1];
            odd[0] = -z[1], odd[1] = z[0];
        }
}
