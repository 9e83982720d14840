/* conv_planes.c: images become planes for a convolution to read (conv_planes.h). */
#include "backend/cpu/kernels/conv/conv_planes.h"
#include "backend/cpu/kernels/gemm/gemm_vec.h"

static const double waste_most = 1.6;             /* positions computed for each output */
static const int64_t part_most = 4 << 20;         /* bytes of a part, if it can be cut */
static const double planes_most = 256.0 * 0x1p20; /* bytes, where it cannot */

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static bool is_pointwise(const struct conv *v)
{
    for (int i = 0; i < 3; i++)
        if (v->kernel[i] != 1 || v->stride[i] != 1 || v->pad[i] != 0)
            return false;
    return v->src->dtype == RLX_DTYPE_f32;
}

static bool takes_planes(const struct conv *v)
{
    rlx_dtype d = v->src->dtype;

    return !v->transposed && !v->store && v->src->count > 0 && v->out->count > 0 &&
           (d == RLX_DTYPE_f32 || cpu_is_half(d));
}

/* Bytes of one image whose outputs along the band's axis are `band`. */
static double image_bytes(const struct conv *v, const struct conv_planes *p, int64_t band)
{
    double bytes = 4.0 * (double)v->groups * (double)v->ch;

    for (int i = 0; i < 3; i++) {
        int64_t out = i == p->band_axis ? band : v->out_dim[i];
        bytes *= (double)p->every[i] * ((double)out + (double)p->extra[i]);
    }
    return bytes;
}

/* Bands no larger than a cache likes, several small images together. */
static void cut_bands(const struct conv *v, struct conv_planes *p)
{
    int64_t all = v->out_dim[p->band_axis];
    double whole = image_bytes(v, p, all);

    p->band = all;
    while (p->band > 1 && image_bytes(v, p, p->band) > (double)part_most &&
           p->band > 4 * p->extra[p->band_axis])
        p->band = (p->band + 1) / 2;
    p->bands = (all + p->band - 1) / p->band;
    p->images = 1;
    if (p->bands == 1 && whole < (double)part_most)
        p->images = cpu_min_i64(v->images, part_most / (int64_t)(whole + 1) + 1);
}

bool conv_planes_make(const struct conv *v, struct conv_planes *p)
{
    double outs = 1, positions = 0;

    *p = (struct conv_planes){.band_axis = 2, .band = 1, .bands = 1, .images = 1};
    if (!takes_planes(v))
        return false;
    for (int i = 2; i >= 0; i--) {
        int64_t s = v->stride[i], d = v->dilation[i];
        p->every[i] = cpu_min_i64(v->kernel[i], s / gcd(s, d));
        p->extra[i] = (v->kernel[i] - 1) * d / s;
        if (v->out_dim[i] > 1)
            p->band_axis = i;
    }
    for (int i = 0; i < 3; i++) {
        outs *= (double)v->out_dim[i];
        positions *= (double)v->out_dim[i] + (double)p->extra[i];
        positions += (double)v->out_dim[i] - 1;
    }
    if (is_pointwise(v)) {
        p->in_place = true;
        p->band = v->out_dim[p->band_axis];
        p->images = v->images;
        return true;
    }
    if (positions > waste_most * outs + 64)
        return false;
    cut_bands(v, p);
    return image_bytes(v, p, p->band) <= planes_most;
}

struct conv_band conv_band_at(const struct conv *v, const struct conv_planes *p, int64_t at)
{
    struct conv_band b = {.image = at / p->bands * p->images, .plane = 1, .positions = 0};

    b.images = cpu_min_i64(p->images, v->images - b.image);
    b.channel = 1;
    for (int i = 0; i < 3; i++) {
        b.out[i] = v->out_dim[i];
        if (i == p->band_axis) {
            b.first[i] = at % p->bands * p->band;
            b.out[i] = cpu_min_i64(p->band, v->out_dim[i] - b.first[i]);
        }
        b.grid[i] = b.out[i] + p->extra[i];
        b.plane *= b.grid[i];
        b.channel *= p->every[i];
        b.positions = b.positions * b.grid[i] + b.out[i] - 1;
    }
    b.positions++;
    b.channel *= b.plane;
    return b;
}

int64_t conv_planes_size(const struct conv *v, const struct conv_planes *p)
{
    struct conv_band b = conv_band_at(v, p, 0);
    return p->in_place ? 0 : p->images * v->groups * v->ch * b.channel + CONV_PLANES_SLACK;
}

/* ---- laying out ---------------------------------------------------------------------------- */

struct fill_job {
    const struct conv *v;
    const struct conv_planes *p;
    const struct conv_band *b;
    float *to;
};

/* n elements of the source, `step` apart from element `at` on, as f32. */
static void copy_elements(const struct cpu_tensor *src, int64_t at, int64_t step, int64_t n,
                          float *restrict to)
{
    CPU_TILE_OF(uint16_t, dense);

    if (src->dtype == RLX_DTYPE_f32) {
        const float *restrict from = (const float *)src->data + at;
        if (step == 1)
            memcpy(to, from, (size_t)n * sizeof *to);
        else if (step == 2)
            for (int64_t j = 0; j < n; j++)
                to[j] = from[2 * j];
        else
            for (int64_t j = 0; j < n; j++)
                to[j] = from[j * step];
        return;
    }
    for (int64_t j = 0; j < n; j += CPU_TILE) {
        int64_t part = cpu_min_i64(CPU_TILE, n - j);
        cpu_copy_strided(dense, cpu_at(src, at + j * step), 2, part, step);
        cpu_load_f32(src->dtype, dense, to + j, part);
    }
}

/* The rows of a plane have their elements lo .. hi-1 from the source. */
struct inside {
    int64_t lo, hi;
};

#if defined(__AVX512F__)
/* Bits lo .. hi-1 of 32. */
static inline uint32_t bits_between(int64_t lo, int64_t hi)
{
    lo = cpu_max_i64(lo, 0);
    hi = cpu_min_i64(hi, 32);
    return lo < hi ? UINT32_MAX >> (32 - hi) & UINT32_MAX << lo : 0;
}

/* Rows are short, often shorter than a vector: zeros and elements go together, by masks. from:
 * where element 0 would be, which may be outside and is not read then. */
static void fill_row_f32(const struct inside *in, uintptr_t from, int64_t step, int64_t n,
                         float *to)
{
    const __m512i even =
        _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);

    for (int64_t j = 0; j < n; j += 16) {
        int64_t lo = in->lo - j, hi = in->hi - j;
        const float *at = (const float *)(from + (uintptr_t)(j * step * 4));
        __mmask16 inside = (__mmask16)bits_between(lo, cpu_min_i64(hi, 16));
        __m512 x;
        if (step == 1) {
            x = _mm512_maskz_loadu_ps(inside, at);
        } else {
            uint32_t read = bits_between(2 * lo, 2 * cpu_min_i64(hi, 16) - 1);
            __m512 low = _mm512_maskz_loadu_ps((__mmask16)read, at);
            __m512 high = _mm512_maskz_loadu_ps((__mmask16)(read >> 16), at + 16);
            x = _mm512_permutex2var_ps(low, even, high);
        }
        _mm512_mask_storeu_ps(to + j, (__mmask16)bits_between(0, cpu_min_i64(n - j, 16)), x);
    }
}
#endif

/* One row of n elements; at: where element lo is in the source. */
static void fill_row(const struct conv *v, const struct inside *in, int64_t at, int64_t n,
                     float *to)
{
#if defined(__AVX512F__)
    int64_t step = v->stride[2];
    if (v->src->dtype == RLX_DTYPE_f32 && step <= 2) {
        uintptr_t first = (uintptr_t)v->src->data + (uintptr_t)((at - in->lo * step) * 4);
        fill_row_f32(in, first, step, n, to);
        return;
    }
#endif
    for (int64_t j = 0; j < in->lo; j++)
        to[j] = 0;
    if (in->lo < in->hi)
        copy_elements(v->src, at, v->stride[2], in->hi - in->lo, to + in->lo);
    for (int64_t j = in->hi; j < n; j++)
        to[j] = 0;
}

/* The plane that begins with element start[] of a channel, which may be outside. */
static float *fill_plane(const struct fill_job *job, int64_t channel, const int64_t *start,
                         float *to)
{
    const struct conv *v = job->v;
    const int64_t *grid = job->b->grid, *in = v->src_dim;
    struct inside cols;

    windows_inside(start[2], v->stride[2], in[2], grid[2], &cols.lo, &cols.hi);
    for (int64_t g0 = 0; g0 < grid[0]; g0++) {
        int64_t i0 = start[0] + g0 * v->stride[0];
        for (int64_t g1 = 0; g1 < grid[1]; g1++, to += grid[2]) {
            int64_t i1 = start[1] + g1 * v->stride[1];
            int64_t row = ((channel * in[0] + i0) * in[1] + i1) * in[2];
            if ((uint64_t)i0 < (uint64_t)in[0] && (uint64_t)i1 < (uint64_t)in[1])
                fill_row(v, &cols, row + start[2] + cols.lo * v->stride[2], grid[2], to);
            else
                memset(to, 0, (size_t)grid[2] * sizeof *to);
        }
    }
    return to;
}

/* All planes of channels begin .. end-1, counted through the images of the band. */
static void fill_channels(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct fill_job *job = ctx;
    const struct conv *v = job->v;
    const struct conv_planes *p = job->p;
    int64_t slots = windows_volume(p->every);

    (void)worker;
    for (int64_t c = begin; c < end; c++) {
        float *to = job->to + c * job->b->channel;
        for (int64_t slot = 0; slot < slots; slot++) {
            int64_t start[3], rest = slot;
            for (int i = 2; i >= 0; i--) {
                int64_t residue = rest % p->every[i] * v->dilation[i] % v->stride[i];
                rest /= p->every[i];
                start[i] = job->b->first[i] * v->stride[i] + residue - v->pad[i];
            }
            to = fill_plane(job, job->b->image * v->groups * v->ch + c, start, to);
        }
    }
}

void conv_planes_fill(const struct conv *v, const struct conv_planes *p, const struct conv_band *b,
                      struct pool *pool, float *to)
{
    struct fill_job job = {v, p, b, to};
    int64_t channels = b->images * v->groups * v->ch;

    if (p->in_place)
        return;
    cpu_for(pool, channels, cpu_max_i64(1, 16384 / b->channel), fill_channels, &job);
    memset(to + channels * b->channel, 0, CONV_PLANES_SLACK * sizeof *to);
}
