/* dequant_q8_rows.c: few rows of x times packed rows of w, in plain C (dequant_q8.h).
 *
 * Every block of w becomes codes once, and is multiplied with all rows of x. */
#include "backend/cpu/kernels/dequant/dequant_q8.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

static inline int32_t dot_16(const int8_t *a, const int8_t *b)
{
#if defined(__AVX2__)
    __m256i x = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)a));
    __m256i y = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)b));
    __m256i p = _mm256_madd_epi16(x, y);
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(p), _mm256_extracti128_si256(p, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
#else
    int32_t sum = 0;

    for (int i = 0; i < 16; i++)
        sum += a[i] * b[i];
    return sum;
#endif
}

struct block_codes {
    _Alignas(64) int8_t code[256];
    float scale[16], min[16];
};

/* One block with one row's runs. */
static float block_dot(const struct block_codes *b, const struct q8_run *x, int64_t elems,
                       int64_t group, bool with_min)
{
    float sum = 0;

    for (int64_t i = 0; i < elems / 32; i++, x++) {
        int32_t low = dot_16(b->code + 32 * i, x->code);
        int32_t high = dot_16(b->code + 32 * i + 16, x->code + 16);
        float part;
        if (group == 32)
            part = b->scale[i] * (float)(low + high);
        else
            part = b->scale[2 * i] * (float)low + b->scale[2 * i + 1] * (float)high;
        if (with_min && group == 32)
            part += b->min[i] * (float)(x->sum[0] + x->sum[1]);
        else if (with_min)
            part += b->min[2 * i] * (float)x->sum[0] + b->min[2 * i + 1] * (float)x->sum[1];
        sum += part * x->scale;
    }
    return sum;
}

static void plain(const struct q8_few *f, int64_t begin, int64_t end)
{
    const struct q8_weight *w = f->w;
    q8_codes_fn codes = q8_codes_of(w->scheme);
    bool with_min = q8_has_min(w->scheme);
    struct block_codes b;

    for (int64_t n = begin; n < end; n++) {
        const uint8_t *at = q8_row(w, n);
        float sum[Q8_FEW] = {0};
        cpu_prefetch(at + w->row_bytes, w->row_bytes);
        for (int64_t i = 0; i < w->blocks; i++, at += w->block_bytes) {
            codes(at, 1, b.code, b.scale, b.min);
            for (int64_t r = 0; r < f->rows; r++) {
                const struct q8_run *x = f->x[r];
                sum[r] += block_dot(&b, x + i * (w->block_elems / 32), w->block_elems, w->group,
                                    with_min);
            }
        }
        for (int64_t r = 0; r < f->rows; r++)
            f->out[r][n] = sum[r];
    }
}

void q8_few_run(const struct q8_few *f, int64_t begin, int64_t end)
{
#ifdef Q8_VNNI
    if (q8_form_of(f->w->scheme, f->w->block_elems) != Q8_LINEAR) {
        q8_vnni_run(f, begin, end);
        return;
    }
#endif
    plain(f, begin, end);
}
