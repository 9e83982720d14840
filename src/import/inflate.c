/* inflate.c: zlib, opened at run time, so that rlx works where there is none: only archives that
 * are deflated need it. */
#include "import/inflate.h"

#include <limits.h>
#include <string.h>

#include "base/library.h"

/* zlib's stream as its interface declares it; the library is given its size and refuses to work
 * with any other. */
struct stream {
    const uint8_t *next_in;
    unsigned avail_in;
    unsigned long total_in;
    uint8_t *next_out;
    unsigned avail_out;
    unsigned long total_out;
    const char *message;
    void *state;
    void *(*alloc)(void *user, unsigned count, unsigned size);
    void (*free)(void *user, void *ptr);
    void *user;
    int data_type;
    unsigned long adler, reserved;
};
enum { RAW = -15, NO_FLUSH = 0, FINE = 0, AT_END = 1, NO_MEMORY = -4, NO_ROOM = -5 };

struct zlib {
    int (*init)(struct stream *s, int window_bits, const char *version, int stream_size);
    int (*inflate)(struct stream *s, int flush);
    int (*end)(struct stream *s);
};

static rlx_status open_zlib(struct zlib *z, struct diag *d)
{
    static const char *const names[] = {"libz.so.1", "libz.so", "libz.1.dylib"};
    void *library = library_open(names, sizeof names / sizeof names[0]);

    if (library && library_find(library, "inflateInit2_", &z->init) &&
        library_find(library, "inflate", &z->inflate) &&
        library_find(library, "inflateEnd", &z->end))
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_UNSUPPORTED,
                     "deflated data needs zlib (%s): on Debian install zlib1g, or write the "
                     "archive without compression",
                     names[0]);
}

/* ---- its memory: ours, with the size in front, which giving it back asks for ---- */

enum { FRONT = 16 };

static void *take_memory(void *user, unsigned count, unsigned size)
{
    size_t bytes;

    if (!size_mul(count, size, &bytes) || !size_add(bytes, FRONT, &bytes))
        return NULL;
    uint8_t *at = mem_alloc(user, bytes);
    if (!at)
        return NULL;
    memcpy(at, &bytes, sizeof bytes);
    return at + FRONT;
}

static void give_memory(void *user, void *ptr)
{
    size_t bytes;

    if (!ptr)
        return;
    memcpy(&bytes, (uint8_t *)ptr - FRONT, sizeof bytes);
    mem_free(user, (uint8_t *)ptr - FRONT, bytes);
}

/* ---- streams ---- */

/* Inflates until the stream ends, out is full, or it is broken; what zlib said last. */
static int run(const struct zlib *z, struct stream *s, size_t in_left, size_t out_left, size_t *got)
{
    size_t room = out_left;
    int said = FINE;

    while (said == FINE) {
        unsigned in = (unsigned)(in_left < UINT_MAX ? in_left : UINT_MAX);
        unsigned out = (unsigned)(out_left < UINT_MAX ? out_left : UINT_MAX);
        s->avail_in = in;
        s->avail_out = out;
        said = z->inflate(s, NO_FLUSH);
        in_left -= in - s->avail_in;
        out_left -= out - s->avail_out;
        if (said == FINE && s->avail_in == in && s->avail_out == out)
            said = NO_ROOM; /* no step forward */
    }
    *got = room - out_left;
    return said;
}

static rlx_status inflate_into(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size,
                               size_t *got, int *said, const rlx_allocator *mem, struct diag *d)
{
    struct zlib z;
    struct stream s = {.next_in = in,
                       .next_out = out,
                       .alloc = take_memory,
                       .free = give_memory,
                       .user = (void *)mem};

    TRY(open_zlib(&z, d));
    rlx_status status = RLX_OK;
    if (z.init(&s, RAW, "1.2.11", (int)sizeof s) != FINE) {
        status = diag_no_memory(d, 1 << 15);
    } else {
        *said = run(&z, &s, in_size, out_size, got);
        z.end(&s);
        if (*said == NO_MEMORY)
            status = diag_no_memory(d, 1 << 15);
    }
    return status;
}

rlx_status inflate_whole(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size,
                         const rlx_allocator *mem, struct diag *d)
{
    size_t got = 0;
    int said = FINE;

    TRY(inflate_into(in, in_size, out, out_size, &got, &said, mem, d));
    if (said == AT_END && got == out_size)
        return RLX_OK;
    if (said == AT_END || (said == NO_ROOM && got < out_size))
        return diag_fail(d, RLX_ERROR_FORMAT, "deflated bytes become %zu, not the %zu declared",
                         got, out_size);
    if (said == NO_ROOM)
        return diag_fail(d, RLX_ERROR_FORMAT, "deflated bytes become more than the %zu declared",
                         out_size);
    return diag_fail(d, RLX_ERROR_FORMAT, "deflated bytes are broken after the first %zu", got);
}

rlx_status inflate_front(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size,
                         size_t *got, const rlx_allocator *mem, struct diag *d)
{
    int said = FINE;

    TRY(inflate_into(in, in_size, out, out_size, got, &said, mem, d));
    if (said != AT_END && *got < out_size)
        return diag_fail(d, RLX_ERROR_FORMAT, "deflated bytes are broken after the first %zu",
                         *got);
    return RLX_OK;
}

uint32_t crc32_of(uint32_t crc, const uint8_t *bytes, size_t size)
{
    uint32_t table[256];

    for (uint32_t i = 0; i < 256; i++) {
        uint32_t v = i;
        for (int k = 0; k < 8; k++)
            v = v & 1 ? 0xedb88320u ^ v >> 1 : v >> 1;
        table[i] = v;
    }
    crc = ~crc;
    for (size_t i = 0; i < size; i++)
        crc = table[(crc ^ bytes[i]) & 255] ^ crc >> 8;
    return ~crc;
}
