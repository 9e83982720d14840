/* gemm_amx.c: inner loops on AMX tiles, and the panels they read (gemm_amx.h).
 *
 * A tile is 16 rows of 64 bytes. Four of the eight hold sums, 32 rows x 32 columns:
 *
 *                     b: tiles 6, 7
 *     a: tile 4       sums: tile 0, 1
 *        tile 5             tile 2, 3
 */
#include "backend/cpu/kernels/gemm/gemm_amx.h"

#ifdef GEMM_AMX

#include "backend/cpu/kernels/gemm/amx_tiles.h"

enum { ROW = 64, TILE = AMX_TILE * ROW, B_ROW = 2 * ROW, LANE = AMX_LINES * ROW };

struct tile_config {
    uint8_t palette, start_row, unused[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

USES_AMX void amx_enter(void)
{
    struct tile_config c = {.palette = 1};

    for (int i = 0; i < 8; i++) {
        c.row_bytes[i] = ROW;
        c.rows[i] = AMX_TILE;
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(c));
}

USES_AMX void amx_leave(void)
{
    __asm__ volatile("tilerelease" ::);
}

/* Sums to start from: those in c, or zeros. */
#define BEGIN(c, ld, add)                                           \
    do {                                                            \
        if (add) {                                                  \
            TILE_LOAD(0, c, (ld)*4);                                \
            TILE_LOAD(1, (c) + AMX_TILE, (ld)*4);                   \
            TILE_LOAD(2, (c) + AMX_TILE * (ld), (ld)*4);            \
            TILE_LOAD(3, (c) + AMX_TILE * (ld) + AMX_TILE, (ld)*4); \
        } else {                                                    \
            TILE_ZERO(0);                                           \
            TILE_ZERO(1);                                           \
            TILE_ZERO(2);                                           \
            TILE_ZERO(3);                                           \
        }                                                           \
    } while (0)

#define END(c, ld)                                               \
    do {                                                         \
        TILE_STORE(0, c, (ld)*4);                                \
        TILE_STORE(1, (c) + AMX_TILE, (ld)*4);                   \
        TILE_STORE(2, (c) + AMX_TILE * (ld), (ld)*4);            \
        TILE_STORE(3, (c) + AMX_TILE * (ld) + AMX_TILE, (ld)*4); \
    } while (0)

/* The loops of one kind. tall: there are more than 16 rows; those past the last are zeros. */
#define LANES(name, TILE_MADD)                                                          \
    USES_AMX static void name(int64_t lanes, const char *a, const char *b, uint32_t *c, \
                              int64_t ld, bool add, bool tall)                          \
    {                                                                                   \
        BEGIN(c, ld, add);                                                              \
        for (int64_t i = 0; i < lanes && tall; i++, a += LANE, b += LANE) {             \
            TILE_LOAD(6, b, B_ROW);                                                     \
            TILE_LOAD(4, a, ROW);                                                       \
            TILE_LOAD(7, b + ROW, B_ROW);                                               \
            TILE_MADD(0, 4, 6);                                                         \
            TILE_LOAD(5, a + TILE, ROW);                                                \
            TILE_MADD(1, 4, 7);                                                         \
            TILE_MADD(2, 5, 6);                                                         \
            TILE_MADD(3, 5, 7);                                                         \
        }                                                                               \
        for (int64_t i = 0; i < lanes && !tall; i++, a += LANE, b += LANE) {            \
            TILE_LOAD(6, b, B_ROW);                                                     \
            TILE_LOAD(4, a, ROW);                                                       \
            TILE_LOAD(7, b + ROW, B_ROW);                                               \
            TILE_MADD(0, 4, 6);                                                         \
            TILE_MADD(1, 4, 7);                                                         \
        }                                                                               \
        END(c, ld);                                                                     \
    }
LANES(lanes_bf16, TILE_BF16)
LANES(lanes_u8_i8, TILE_U8_I8)

typedef uint32_t sum_bits __attribute__((may_alias));
typedef float sum_f32 __attribute__((may_alias));

void amx_micro_bf16(int64_t lanes, const void *a, int64_t width, const void *b, void *c, int64_t ld,
                    bool add, int64_t m, int64_t n)
{
    _Alignas(64) sum_f32 part[AMX_LINES * AMX_LINES];
    sum_f32 *to = c;

    (void)width;
    if (m == AMX_LINES && n == AMX_LINES) {
        lanes_bf16(lanes, a, b, c, ld, add, true);
        return;
    }
    lanes_bf16(lanes, a, b, (sum_bits *)part, AMX_LINES, false, m > AMX_TILE);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            to[i * ld + j] = part[i * AMX_LINES + j] + (add ? to[i * ld + j] : 0);
}

void amx_micro_u8_i8(int64_t lanes, const void *a, int64_t width, const void *b, void *c,
                     int64_t ld, bool add, int64_t m, int64_t n)
{
    _Alignas(64) sum_bits part[AMX_LINES * AMX_LINES];
    sum_bits *to = c;

    (void)width;
    if (m == AMX_LINES && n == AMX_LINES) {
        lanes_u8_i8(lanes, a, b, c, ld, add, true);
        return;
    }
    lanes_u8_i8(lanes, a, b, part, AMX_LINES, false, m > AMX_TILE);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            to[i * ld + j] = part[i * AMX_LINES + j] + (add ? to[i * ld + j] : 0);
}

/* ---- packing ------------------------------------------------------------------------------- */

typedef uint16_t half_bits __attribute__((may_alias));
typedef uint32_t pair_bits __attribute__((may_alias));

enum { LANE_K = ROW / 2 }; /* bf16 in a lane */

void amx_pack_bf16_a(const struct gemm_view *v, const struct gemm_part *p)
{
    const half_bits *src = (const half_bits *)v->data + p->line * v->line + p->k * v->k;
    int64_t lanes = (p->ks + LANE_K - 1) / LANE_K;
    half_bits *panel = p->panel;

    for (int64_t l = 0; l < gemm_up(p->lines, AMX_LINES); l++) {
        half_bits *to = panel + l / AMX_LINES * lanes * AMX_LINES * LANE_K + l % AMX_LINES * LANE_K;
        const half_bits *from = src + l * v->line;
        for (int64_t j = 0; j < lanes; j++, to += AMX_LINES * LANE_K) {
            int64_t n = l < p->lines ? cpu_min_i64(LANE_K, p->ks - j * LANE_K) : 0;
            if (n == LANE_K && v->k == 1) {
                memcpy(to, from + j * LANE_K, ROW);
                continue;
            }
            for (int64_t i = 0; i < LANE_K; i++)
                to[i] = i < n ? from[(j * LANE_K + i) * v->k] : 0;
        }
    }
}

/* One panel's pair of k: of n columns, two elements each (the second 0 past the last k). */
static void pack_pair(const half_bits *src, const struct gemm_view *v, int64_t n, bool both,
                      pair_bits *to)
{
    if (v->line == 1 && both && n == AMX_LINES) {
        for (int64_t l = 0; l < AMX_LINES; l++)
            to[l] = src[l] | (uint32_t)src[l + v->k] << 16;
        return;
    }
    for (int64_t l = 0; l < AMX_LINES; l++) {
        const half_bits *at = src + l * v->line;
        to[l] = l >= n ? 0 : at[0] | (both ? (uint32_t)at[v->k] << 16 : 0);
    }
}

void amx_pack_bf16_b(const struct gemm_view *v, const struct gemm_part *p)
{
    const half_bits *src = (const half_bits *)v->data + p->line * v->line + p->k * v->k;
    int64_t pairs = gemm_up(p->ks, LANE_K) / 2;
    pair_bits *to = p->panel;

    for (int64_t l = 0; l < p->lines; l += AMX_LINES)
        for (int64_t j = 0; j < pairs; j++, to += AMX_LINES) {
            int64_t left = p->ks - 2 * j;
            if (left > 0)
                pack_pair(src + l * v->line + 2 * j * v->k, v, cpu_min_i64(AMX_LINES, p->lines - l),
                          left > 1, to);
            else
                memset(to, 0, AMX_LINES * sizeof *to);
        }
}

#else
typedef int gemm_amx_is_not_here; /* a file must declare something */
#endif
