/* gemm_i8.c: panels of 8-bit integers (gemm.h).
 *
 * The instructions that multiply bytes take unsigned ones on the left, so rows hold x + 128; who
 * reads the sums takes that out again. Both kinds want b's k in groups of four:
 *
 *     group 0: 4 k of column 0, 4 k of column 1, ..    group 1: ..
 *
 * a is alike for GEMM_I8, and has 64 k of each line together for GEMM_I8_AMX (gemm_amx.h). */
#include "backend/cpu/kernels/gemm/gemm.h"

/* n bytes of x + 128 and zeros up to `all`. */
static void move_unsigned(uint8_t *to, const int8_t *from, int64_t n, int64_t all)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (uint8_t)((uint8_t)from[i] ^ 0x80);
    if (n < all)
        memset(to + n, 0, (size_t)(all - n));
}

void gemm_pack_u8_a(const int8_t *x, int64_t ld, int64_t group, const struct gemm_part *p)
{
    const int8_t *src = x + p->line * ld + p->k;
    int64_t groups = (p->ks + group - 1) / group;
    uint8_t *panel = p->panel;

    for (int64_t l = 0; l < gemm_up(p->lines, p->width); l++) {
        uint8_t *to = panel + (l / p->width * groups * p->width + l % p->width) * group;
        for (int64_t j = 0; j < groups; j++, to += p->width * group) {
            int64_t n = l < p->lines ? cpu_min_i64(group, p->ks - j * group) : 0;
            if (n == 4 && group == 4)
                move_unsigned(to, src + l * ld + j * 4, 4, 4);
            else
                move_unsigned(to, src + l * ld + j * group, n, group);
        }
    }
}

void gemm_pack_i8_b(const int8_t *w, int64_t ld, int64_t step, const struct gemm_part *p)
{
    const int8_t *src = w + p->k * ld + p->line;
    int64_t groups = gemm_up(p->ks, step) / 4;
    int8_t *to = p->panel;

    memset(to, 0, (size_t)(gemm_up(p->lines, p->width) * groups * 4));
    for (int64_t l = 0; l < p->lines; l += p->width, to += groups * 4 * p->width) {
        int64_t n = cpu_min_i64(p->width, p->lines - l);
        for (int64_t j = 0; j < p->ks; j++)
            for (int64_t i = 0; i < n; i++)
                to[(j / 4 * p->width + i) * 4 + j % 4] = src[j * ld + l + i];
    }
}
