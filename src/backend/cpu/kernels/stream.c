/* stream.c: stores past the caches, for results that are larger than they are (common.h). */
#include "backend/cpu/kernels/common.h"
#include "backend/cpu/kernels/gemm/gemm_vec.h"

/* Bytes of a result from which on it pays. */
#if defined(__SSE2__)
static const uint64_t stream_least = 16 << 20;
#else
static const uint64_t stream_least = UINT64_MAX; /* there are no such stores */
#endif

bool cpu_stream_worth(uint64_t bytes)
{
    return bytes >= stream_least;
}

bool cpu_streams(const struct cpu_call *c)
{
    for (int32_t i = 0; i < c->in_count; i++)
        if (c->in[i].data == c->out->data)
            return false;
    return cpu_stream_worth((uint64_t)c->out->count * cpu_size(c->out->dtype));
}

void cpu_stream_out(void *dst, const void *src, int64_t bytes)
{
#if defined(__SSE2__)
    int64_t head = cpu_min_i64(-(int64_t)(uintptr_t)dst & 63, bytes);
    int64_t end = head + (bytes - head) / 64 * 64;
    char *to = dst;
    const char *from = src;

    memcpy(to, from, (size_t)head);
    for (int64_t i = head; i < end; i += 64) {
#if defined(__AVX512F__)
        _mm512_stream_si512((void *)(to + i), _mm512_loadu_si512(from + i));
#else
        for (int k = 0; k < 64; k += 16)
            _mm_stream_si128((void *)(to + i + k),
                             _mm_loadu_si128((const __m128i *)(const void *)(from + i + k)));
#endif
    }
    memcpy(to + end, from + end, (size_t)(bytes - end));
#else
    memcpy(dst, src, (size_t)bytes);
#endif
}

/* Such stores are not ordered with others; they must be visible before the result is announced. */
void cpu_stream_end(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}
