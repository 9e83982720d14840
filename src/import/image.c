/* image.c: what kind of picture it is, and those of Netpbm: PGM and PPM, as text and as bytes.
 *
 *     P5 <width> <height> <largest> <one white space> bytes       P6: three per pixel
 *     P2, P3: the same, with the numbers written out
 *
 * Between the numbers of the head there may be comments, from '#' to the end of the line. */
#include "import/image.h"

#include <string.h>

enum { MOST_SIDE = 1 << 16 };
#define MOST_BYTES ((size_t)1 << 30)

rlx_status image_make(int64_t width, int64_t height, int64_t channels, const rlx_allocator *mem,
                      struct image *out, struct diag *d)
{
    size_t bytes;

    if (width < 1 || height < 1)
        return diag_fail(d, RLX_ERROR_FORMAT, "the picture is %lld by %lld pixels",
                         (long long)width, (long long)height);
    if (width > MOST_SIDE || height > MOST_SIDE ||
        !size_mul((size_t)width, (size_t)height, &bytes) ||
        !size_mul(bytes, (size_t)channels, &bytes) || bytes > MOST_BYTES)
        return diag_fail(d, RLX_ERROR_LIMIT, "a picture of %lld by %lld pixels is too large",
                         (long long)width, (long long)height);
    *out = (struct image){width, height, channels, mem_alloc(mem, bytes), bytes};
    return out->data ? RLX_OK : diag_no_memory(d, bytes);
}

void image_free(struct image *i, const rlx_allocator *mem)
{
    mem_free(mem, i->data, i->bytes);
    *i = (struct image){0};
}

/* ---- Netpbm ---- */

struct pnm {
    const uint8_t *at, *end;
};

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Past spaces and comments, and a number of at most six digits. */
static bool take_number(struct pnm *p, int64_t *out)
{
    while (p->at < p->end && (is_space(*p->at) || *p->at == '#')) {
        if (*p->at++ != '#')
            continue;
        while (p->at < p->end && *p->at != '\n')
            p->at++;
    }
    int digits = 0;
    for (*out = 0; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++, digits++)
        if (digits < 6)
            *out = *out * 10 + (*p->at - '0');
    return digits > 0 && digits <= 6;
}

static bool pnm_is(const uint8_t *bytes, size_t size)
{
    return size > 2 && bytes[0] == 'P' && strchr("2356", bytes[1]) && bytes[1] &&
           is_space(bytes[2]);
}

static rlx_status read_samples(struct pnm *p, bool text, int64_t largest, struct image *out,
                               struct diag *d)
{
    size_t width = largest > 255 ? 2 : 1;

    for (size_t i = 0; i < out->bytes; i++) {
        int64_t v = 0;
        if (text && !take_number(p, &v))
            return diag_fail(d, RLX_ERROR_FORMAT, "pnm: it ends at sample %zu of %zu", i,
                             out->bytes);
        for (size_t k = 0; k < width && !text; k++)
            v = v << 8 | *p->at++;
        if (v > largest)
            return diag_fail(d, RLX_ERROR_FORMAT,
                             "pnm: sample %zu is %lld, above the largest, %lld", i, (long long)v,
                             (long long)largest);
        out->data[i] = (uint8_t)((v * 255 + largest / 2) / largest);
    }
    return RLX_OK;
}

static rlx_status pnm_read(const uint8_t *bytes, size_t size, const rlx_allocator *mem,
                           struct image *out, struct diag *d)
{
    struct pnm p = {bytes + 2, bytes + size};
    bool text = bytes[1] == '2' || bytes[1] == '3';
    int64_t width, height, largest, channels = bytes[1] == '3' || bytes[1] == '6' ? 3 : 1;

    if (!take_number(&p, &width) || !take_number(&p, &height) || !take_number(&p, &largest) ||
        largest < 1 || largest > 65535 || p.at == p.end || !is_space(*p.at))
        return diag_fail(d, RLX_ERROR_FORMAT,
                         "pnm: its header is not a width, a height and the largest sample");
    p.at++;
    /* The file's size bounds what is allocated: at least a byte per sample. */
    size_t left = (size_t)(p.end - p.at), each = !text && largest > 255 ? 2 : 1;
    if (width && height && left / each / (size_t)channels / (size_t)width < (size_t)height)
        return diag_fail(d, RLX_ERROR_FORMAT,
                         "pnm: %zu bytes are not enough for %lld by %lld pixels", left,
                         (long long)width, (long long)height);
    TRY(image_make(width, height, channels, mem, out, d));
    return read_samples(&p, text, largest, out, d);
}

/* ---- any of them ---- */

rlx_status image_read(const uint8_t *bytes, size_t size, const rlx_allocator *mem,
                      struct image *out, struct diag *d)
{
    rlx_status s;

    *out = (struct image){0};
    if (png_is(bytes, size))
        s = png_read(bytes, size, mem, out, d);
    else if (jpeg_is(bytes, size))
        s = jpeg_read(bytes, size, mem, out, d);
    else if (pnm_is(bytes, size))
        s = pnm_read(bytes, size, mem, out, d);
    else
        s = diag_fail(d, RLX_ERROR_FORMAT, "a picture was expected: PNG, JPEG, PPM or PGM");
    if (s != RLX_OK)
        image_free(out, mem);
    return s;
}
