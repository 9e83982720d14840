/* image_png.c: PNG.
 *
 *     89 'P' 'N' 'G' 0d 0a 1a 0a, then chunks: u32 length, type, data, u32 CRC of type and data
 *
 *     IHDR  width, height (u32), depth, colour, compression, filter, interlacing (u8)
 *     PLTE  up to 256 times RGB, of which colour 3 has the numbers
 *     IDAT  once or more: together a zlib stream of rows; each is a filter and its samples
 *     IEND
 *
 * Numbers are big-endian. A row's samples are packed into bytes, and each byte is the difference to
 * what the filter makes of those to the left and above. An interlaced picture is seven smaller
 * ones, one after the other, each of which has pixels between those of the ones before (Adam7). */
#include <string.h>

#include "import/image.h"
#include "import/inflate.h"

enum { GREY = 0, RGB = 2, PALETTE = 3, GREY_ALPHA = 4, RGBA = 6 };
enum { HEADER = 13, FRAME = 12 }; /* of IHDR; length, type and CRC of a chunk */
#define MOST_INFLATED 1032        /* bytes that deflate makes of one, at most */

struct png {
    int64_t width, height;
    int depth, colour;
    bool interlaced;
    uint8_t palette[256][3];
    size_t palette_count;
    size_t packed; /* bytes of all IDAT */
    const uint8_t *bytes;
    size_t size;
    const rlx_allocator *mem;
    struct diag *d;
};

struct chunk {
    uint32_t len;
    char type[5];
    const uint8_t *data;
};

static uint32_t u32_at(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

bool png_is(const uint8_t *bytes, size_t size)
{
    return size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

/* The chunk at *at, and past it. */
static rlx_status next_chunk(const struct png *p, size_t *at, struct chunk *out)
{
    if (p->size - *at < FRAME || u32_at(p->bytes + *at) > p->size - *at - FRAME)
        return diag_fail(p->d, RLX_ERROR_FORMAT, "png: it ends within the chunk at byte %zu", *at);
    *out = (struct chunk){.len = u32_at(p->bytes + *at), .data = p->bytes + *at + 8};
    memcpy(out->type, p->bytes + *at + 4, 4);
    if (crc32_of(0, p->bytes + *at + 4, (size_t)out->len + 4) != u32_at(out->data + out->len))
        return diag_fail(p->d, RLX_ERROR_FORMAT, "png: the chunk at byte %zu is damaged", *at);
    *at += (size_t)out->len + FRAME;
    return RLX_OK;
}

static int channels_of(int colour)
{
    return colour == GREY         ? 1
           : colour == GREY_ALPHA ? 2
           : colour == RGBA       ? 4
           : colour == PALETTE    ? 1
                                  : 3;
}

static bool depth_is_allowed(int colour, int depth)
{
    switch (colour) {
    case GREY: return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
    case PALETTE: return depth == 1 || depth == 2 || depth == 4 || depth == 8;
    case RGB:
    case GREY_ALPHA:
    case RGBA: return depth == 8 || depth == 16;
    default: return false;
    }
}

static rlx_status take_header(struct png *p, const struct chunk *c)
{
    if (strcmp(c->type, "IHDR") != 0 || c->len != HEADER)
        return diag_fail(p->d, RLX_ERROR_FORMAT, "png: it does not begin with a header");
    p->width = u32_at(c->data);
    p->height = u32_at(c->data + 4);
    p->depth = c->data[8];
    p->colour = c->data[9];
    if (!depth_is_allowed(p->colour, p->depth) || c->data[10] || c->data[11] || c->data[12] > 1)
        return diag_fail(p->d, RLX_ERROR_FORMAT,
                         "png: there is no colour type %d of %d bits, or its compression, filter "
                         "or interlacing is unknown",
                         p->colour, p->depth);
    p->interlaced = c->data[12];
    return RLX_OK;
}

/* Goes through all chunks; their bytes are looked at later. */
static rlx_status scan(struct png *p, size_t *first_data)
{
    size_t at = 8;
    struct chunk c;

    TRY(next_chunk(p, &at, &c));
    TRY(take_header(p, &c));
    for (;;) {
        size_t start = at;
        TRY(next_chunk(p, &at, &c));
        if (strcmp(c.type, "IEND") == 0)
            break;
        if (strcmp(c.type, "PLTE") == 0) {
            if (c.len % 3 || c.len > sizeof p->palette || c.len == 0)
                return diag_fail(p->d, RLX_ERROR_FORMAT, "png: a palette of %u bytes", c.len);
            memcpy(p->palette, c.data, c.len);
            p->palette_count = c.len / 3;
        } else if (strcmp(c.type, "IDAT") == 0) {
            *first_data = p->packed ? *first_data : start;
            p->packed += c.len;         /* less than the file's size */
        } else if (!(c.type[0] & 0x20)) /* a capital: nothing can be shown without it */
            return diag_fail(p->d, RLX_ERROR_UNSUPPORTED, "png: a chunk \"%s\", which is unknown",
                             c.type);
    }
    if (p->packed < 2 || (p->colour == PALETTE && !p->palette_count))
        return diag_fail(p->d, RLX_ERROR_FORMAT, "png: it has no %s",
                         p->packed < 2 ? "pixels" : "palette");
    return RLX_OK;
}

/* All IDAT together. */
static rlx_status join(const struct png *p, size_t at, uint8_t *out)
{
    struct chunk c;

    for (size_t done = 0; done < p->packed;) {
        TRY(next_chunk(p, &at, &c));
        if (strcmp(c.type, "IDAT") != 0)
            continue;
        memcpy(out + done, c.data, c.len);
        done += c.len;
    }
    return RLX_OK;
}

/* ---- rows ---- */

static int predict(int left, int up, int corner)
{
    int all = left + up - corner;
    int a = all > left ? all - left : left - all, b = all > up ? all - up : up - all;
    int c = all > corner ? all - corner : corner - all;

    return a <= b && a <= c ? left : b <= c ? up : corner;
}

/* Turns the row's differences into its bytes. above: the row before, or NULL; step: bytes between a
 * sample and the same one of the pixel to the left. */
static bool unfilter(int filter, uint8_t *row, const uint8_t *above, size_t len, size_t step)
{
    for (size_t i = 0; i < len; i++) {
        int left = i >= step ? row[i - step] : 0, up = above ? above[i] : 0;
        int corner = above && i >= step ? above[i - step] : 0;
        int from;
        switch (filter) {
        case 0: return true;
        case 1: from = left; break;
        case 2: from = up; break;
        case 3: from = (left + up) / 2; break;
        case 4: from = predict(left, up, corner); break;
        default: return false;
        }
        row[i] = (uint8_t)(row[i] + from);
    }
    return true;
}

/* Sample i of a row, as it is stored; of 16 bits the upper half. */
static unsigned sample_at(const uint8_t *row, size_t i, int depth)
{
    if (depth >= 8)
        return row[i * (size_t)depth / 8];
    unsigned shift = 8 - (unsigned)depth - (unsigned)(i * (size_t)depth % 8);
    return (unsigned)row[i * (size_t)depth / 8] >> shift & ((1u << depth) - 1);
}

/* Every step_x-th pixel of every step_y-th row, beginning at x, y. */
struct pass {
    int64_t x, y, step_x, step_y, width, height;
    size_t row_bytes;
};
enum { PASSES = 7 };

/* One that has no pixels has no rows either. */
static struct pass pass_at(const struct png *p, int i)
{
    static const int64_t grid[PASSES][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                            {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    struct pass s = {0, 0, 1, 1, p->width, p->height, 0};

    if (p->interlaced) {
        s = (struct pass){grid[i][0], grid[i][1], grid[i][2], grid[i][3], 0, 0, 0};
        s.width = (p->width - s.x + s.step_x - 1) / s.step_x;
        s.height = (p->height - s.y + s.step_y - 1) / s.step_y;
    }
    if (s.width <= 0 || s.height <= 0)
        s.width = s.height = 0;
    s.row_bytes = ((size_t)s.width * (size_t)channels_of(p->colour) * (size_t)p->depth + 7) / 8;
    return s;
}

static int passes_of(const struct png *p)
{
    return p->interlaced ? PASSES : 1;
}

/* to: where the row's first pixel goes, in a picture with that many channels. */
static rlx_status take_row(const struct png *p, const struct pass *s, const uint8_t *row,
                           int64_t channels, uint8_t *to)
{
    size_t each = (size_t)channels_of(p->colour), step = (size_t)(s->step_x * channels);
    unsigned top = p->depth < 8 ? (1u << p->depth) - 1 : 255;

    for (size_t i = 0; i < (size_t)s->width * each; i++) {
        unsigned v = sample_at(row, i, p->depth);
        if (p->colour != PALETTE) {
            to[i / each * step + i % each] = (uint8_t)(v * 255 / top);
            continue;
        }
        if (v >= p->palette_count)
            return diag_fail(p->d, RLX_ERROR_FORMAT,
                             "png: a pixel has colour %u of a palette of %zu", v, p->palette_count);
        memcpy(to + i * step, p->palette[v], 3);
    }
    return RLX_OK;
}

static rlx_status take_rows(const struct png *p, const struct pass *s, uint8_t *rows,
                            struct image *out)
{
    size_t bits = (size_t)channels_of(p->colour) * (size_t)p->depth, step = bits < 8 ? 1 : bits / 8;
    uint8_t *above = NULL;

    for (int64_t y = 0; y < s->height; y++) {
        uint8_t *row = rows + (size_t)y * (s->row_bytes + 1);
        int64_t at = (s->y + y * s->step_y) * out->width + s->x;
        if (!unfilter(row[0], row + 1, above, s->row_bytes, step))
            return diag_fail(p->d, RLX_ERROR_FORMAT,
                             "png: row %lld has a filter %d, which is unknown", (long long)y,
                             row[0]);
        above = row + 1;
        TRY(take_row(p, s, above, out->channels, out->data + (size_t)(at * out->channels)));
    }
    return RLX_OK;
}

static size_t rows_bytes(const struct pass *s)
{
    return (s->row_bytes + 1) * (size_t)s->height;
}

static rlx_status take_passes(const struct png *p, uint8_t *rows, struct image *out)
{
    for (int i = 0; i < passes_of(p); i++) {
        struct pass s = pass_at(p, i);
        TRY(take_rows(p, &s, rows, out));
        rows += rows_bytes(&s);
    }
    return RLX_OK;
}

/* stream: the zlib stream, whose head is two bytes; rows: as long as all rows are. */
static rlx_status inflate_rows(const struct png *p, size_t first, uint8_t *stream, uint8_t *rows,
                               size_t rows_size)
{
    TRY(join(p, first, stream));
    if ((stream[0] & 15) != 8 || (stream[0] << 8 | stream[1]) % 31 || stream[1] & 0x20)
        return diag_fail(p->d, RLX_ERROR_FORMAT, "png: its pixels are not a zlib stream");
    return inflate_whole(stream + 2, p->packed - 2, rows, rows_size, p->mem, p->d);
}

static rlx_status decode(const struct png *p, size_t first, struct image *out)
{
    size_t rows_size = 0;
    rlx_status s;

    /* Sides are at most 2^16 here, so that nothing overflows. */
    for (int i = 0; i < passes_of(p); i++) {
        struct pass one = pass_at(p, i);
        rows_size += rows_bytes(&one);
    }
    if (rows_size / MOST_INFLATED > p->packed)
        return diag_fail(p->d, RLX_ERROR_FORMAT, "png: %zu bytes cannot hold %lld by %lld pixels",
                         p->packed, (long long)p->width, (long long)p->height);
    uint8_t *stream = mem_alloc(p->mem, p->packed), *rows = mem_alloc(p->mem, rows_size);
    if (!stream || !rows)
        s = diag_no_memory(p->d, p->packed + rows_size);
    else if ((s = inflate_rows(p, first, stream, rows, rows_size)) == RLX_OK)
        s = take_passes(p, rows, out);
    mem_free(p->mem, stream, p->packed);
    mem_free(p->mem, rows, rows_size);
    return s;
}

rlx_status png_read(const uint8_t *bytes, size_t size, const rlx_allocator *mem, struct image *out,
                    struct diag *d)
{
    struct png p = {.bytes = bytes, .size = size, .mem = mem, .d = d};
    size_t first = 0;

    TRY(scan(&p, &first));
    int64_t channels = p.colour == PALETTE ? 3 : channels_of(p.colour);
    /* A head alone must not cost a gigabyte: the pixels' bytes bound it. */
    if ((uint64_t)p.width * (uint64_t)p.height / 8 / MOST_INFLATED > p.packed)
        return diag_fail(d, RLX_ERROR_FORMAT, "png: %zu bytes cannot hold %lld by %lld pixels",
                         p.packed, (long long)p.width, (long long)p.height);
    TRY(image_make(p.width, p.height, channels, mem, out, d));
    return decode(&p, first, out);
}
