/* image_test.c: pictures: every kind of PNG, PGM and PPM, the same cut at every byte, and what is
 * refused. The deflated streams here are made of stored blocks, so that no compressor is needed. */
#include "import/image.h"

#include "bytes_world.h"
#include "import/inflate.h"

static void put_be(struct made *m, uint32_t v)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        put(m, v >> shift & 255, 1);
}

static void put_chunk(struct made *m, const char *type, const void *data, size_t len)
{
    size_t start = m->len + 4;

    put_be(m, (uint32_t)len);
    put_bytes(m, type, 4);
    put_bytes(m, data, len);
    put_be(m, crc32_of(0, m->at + start, len + 4));
}

struct png_of {
    uint32_t width, height;
    int depth, colour, interlaced;
    const uint8_t *rows; /* with a filter in front of each */
    size_t rows_len;
    size_t palette; /* colours: 0 1 2, 3 4 5, ... */
    size_t pieces;  /* of the pixels; 0: one */
};

static void put_png(struct made *m, const struct png_of *p)
{
    static struct made part;
    uint8_t colours[768];

    *m = (struct made){.len = 0};
    put_bytes(m, "\x89PNG\r\n\x1a\n", 8);
    part = (struct made){.len = 0};
    put_be(&part, p->width);
    put_be(&part, p->height);
    put(&part, (uint64_t)p->depth, 1);
    put(&part, (uint64_t)p->colour, 1);
    put(&part, 0, 2);
    put(&part, (uint64_t)p->interlaced, 1);
    put_chunk(m, "IHDR", part.at, part.len);
    for (size_t i = 0; i < sizeof colours; i++)
        colours[i] = (uint8_t)i;
    if (p->palette)
        put_chunk(m, "PLTE", colours, p->palette * 3);
    put_chunk(m, "tEXt", "a\0b", 3); /* what need not be understood is left out */
    part = (struct made){.len = 0};
    put_bytes(&part, "\x78\x01\x01", 3); /* zlib, then the last block, stored */
    put(&part, p->rows_len, 2);
    put(&part, ~p->rows_len, 2);
    put_bytes(&part, p->rows, p->rows_len);
    put_be(&part, 0); /* a checksum that nobody looks at: chunks have their own */
    size_t pieces = p->pieces ? p->pieces : 1, each = part.len / pieces;
    for (size_t i = 0; i < pieces; i++)
        put_chunk(m, "IDAT", part.at + i * each, i + 1 < pieces ? each : part.len - i * each);
    put_chunk(m, "IEND", "", 0);
}

/* Reads exactly so many bytes of it, so that one read past them shows. */
static rlx_status read_picture(const struct made *m, size_t len, struct image *out, struct diag *d)
{
    uint8_t *copy = malloc(len ? len : 1);

    memcpy(copy, m->at, len);
    diag_init(d, "load");
    rlx_status s = image_read(copy, len, mem_default(), out, d);
    free(copy);
    return s;
}

static void expect_picture(struct test *t, const struct made *m, int64_t width, int64_t height,
                           int64_t channels, const uint8_t *want)
{
    struct image i;
    struct diag d;

    if (expect_status(t, read_picture(m, m->len, &i, &d), RLX_OK)) {
        expect_eq(t, i.width, width);
        expect_eq(t, i.height, height);
        expect_eq(t, i.channels, channels);
        expect(t, i.bytes == (size_t)(width * height * channels) &&
                      memcmp(i.data, want, i.bytes) == 0);
    }
    image_free(&i, mem_default());
}

static void expect_no_picture(struct test *t, const struct made *m, rlx_status status,
                              const char *part)
{
    struct image i;
    struct diag d;

    expect_status(t, read_picture(m, m->len, &i, &d), status);
    expect_contains(t, d.first.message, part);
    expect(t, !i.data);
}

/* Any cut of it is refused, or, of what nothing needs, read; nothing else happens. */
static void expect_cuts_refused(struct test *t, const struct made *m, size_t from)
{
    struct image i;
    struct diag d;

    for (size_t len = from; len < m->len; len++) {
        expect(t, read_picture(m, len, &i, &d) != RLX_OK && d.first.message[0] && !i.data);
        image_free(&i, mem_default());
    }
}

/* ---- PNG ---- */

static struct made made;

TEST(image, png_of_every_colour)
{
    static const uint8_t grey[] = {0, 10, 20, 0, 30, 40}, rgb[] = {0, 1, 2, 3, 4, 5, 6};
    static const uint8_t ga[] = {0, 7, 255}, rgba[] = {0, 1, 2, 3, 4};
    static const uint8_t wide[] = {0, 0x12, 0x34, 0xff, 0xff};
    static const uint8_t grey_want[] = {10, 20, 30, 40}, wide_want[] = {0x12, 0xff};

    put_png(&made, &(struct png_of){2, 2, 8, 0, 0, grey, sizeof grey, 0, 0});
    expect_picture(t, &made, 2, 2, 1, grey_want);
    put_png(&made, &(struct png_of){2, 1, 8, 2, 0, rgb, sizeof rgb, 0, 3}); /* in three pieces */
    expect_picture(t, &made, 2, 1, 3, rgb + 1);
    check_seed(t, "image/rgb.png", &made);
    put_png(&made, &(struct png_of){1, 1, 8, 4, 0, ga, sizeof ga, 0, 0});
    expect_picture(t, &made, 1, 1, 2, ga + 1);
    put_png(&made, &(struct png_of){1, 1, 8, 6, 0, rgba, sizeof rgba, 0, 0});
    expect_picture(t, &made, 1, 1, 4, rgba + 1);
    put_png(&made, &(struct png_of){2, 1, 16, 0, 0, wide, sizeof wide, 0, 0});
    expect_picture(t, &made, 2, 1, 1, wide_want);
}

TEST(image, png_of_few_bits_and_palettes)
{
    static const uint8_t bits[] = {0, 0xa0}, twos[] = {0, 0x1b}, index[] = {0, 0x10};
    static const uint8_t bits_want[] = {255, 0, 255}, twos_want[] = {0, 85, 170, 255};
    static const uint8_t index_want[] = {3, 4, 5, 0, 1, 2};

    put_png(&made, &(struct png_of){3, 1, 1, 0, 0, bits, sizeof bits, 0, 0});
    expect_picture(t, &made, 3, 1, 1, bits_want);
    put_png(&made, &(struct png_of){4, 1, 2, 0, 0, twos, sizeof twos, 0, 0});
    expect_picture(t, &made, 4, 1, 1, twos_want);
    put_png(&made, &(struct png_of){2, 1, 4, 3, 0, index, sizeof index, 2, 0});
    expect_picture(t, &made, 2, 1, 3, index_want);
    check_seed(t, "image/palette.png", &made);
    put_png(&made, &(struct png_of){2, 1, 4, 3, 0, index, sizeof index, 1, 0});
    expect_no_picture(t, &made, RLX_ERROR_FORMAT, "a pixel has colour 1 of a palette of 1");
    put_png(&made, &(struct png_of){2, 1, 4, 3, 0, index, sizeof index, 0, 0});
    expect_no_picture(t, &made, RLX_ERROR_FORMAT, "no palette");
}

/* Each row of 10 11 13 16 as every filter writes it, under 10 11 13 16 or nothing. */
TEST(image, png_filters)
{
    static const uint8_t rows[] = {1, 10, 1, 2, 3,  /* from the left */
                                   2, 0,  0, 0, 0,  /* from above */
                                   3, 5,  1, 2, 2,  /* from the mean of both */
                                   4, 0,  0, 0, 0}; /* from the nearest of three */
    static const uint8_t want[] = {10, 11, 13, 16, 10, 11, 13, 16, 10, 11, 14, 17, 10, 11, 14, 17};

    put_png(&made, &(struct png_of){4, 4, 8, 0, 0, rows, sizeof rows, 0, 0});
    expect_picture(t, &made, 4, 4, 1, want);
    check_seed(t, "image/filters.png", &made);
    static const uint8_t unknown[] = {5, 1, 2};
    put_png(&made, &(struct png_of){2, 1, 8, 0, 0, unknown, sizeof unknown, 0, 0});
    expect_no_picture(t, &made, RLX_ERROR_FORMAT, "a filter 5");
}

TEST(image, damaged_pngs_are_refused)
{
    static const uint8_t rows[] = {0, 1, 2, 0, 3, 4};
    struct png_of good = {2, 2, 8, 0, 0, rows, sizeof rows, 0, 0}, p = good;

    put_png(&made, &good);
    expect_cuts_refused(t, &made, 8);
    for (size_t i = 8; i < made.len; i++) { /* a bit turned anywhere is in a chunk with a sum */
        struct image im;
        struct diag d;
        made.at[i] ^= 4;
        expect(t, read_picture(&made, made.len, &im, &d) != RLX_OK && !im.data);
        made.at[i] ^= 4;
    }
    p.height = 3;
    put_png(&made, &p);
    expect_no_picture(t, &made, RLX_ERROR_FORMAT, "deflated bytes become 6, not the 9 declared");
    p.height = 1;
    put_png(&made, &p);
    expect_no_picture(t, &made, RLX_ERROR_FORMAT, "more than the 3 declared");
    p = good;
    p.depth = 3;
    put_png(&made, &p);
    expect_no_picture(t, &made, RLX_ERROR_FORMAT, "no colour type 0 of 3 bits");
    p = good;
    p.interlaced = 2;
    put_png(&made, &p);
    expect_no_picture(t, &made, RLX_ERROR_FORMAT, "interlacing is unknown");
    p = good;
    p.width = 0;
    put_png(&made, &p);
    expect_no_picture(t, &made, RLX_ERROR_FORMAT, "0 by 2 pixels");
}

/* ---- interlaced ---- */

/* Pass by pass, row by row, pixel by pixel, as a writer does it: which pixel belongs to which pass
 * is read off the eight by eight pixels that the format's description draws. */
static size_t interlace(const uint8_t *pixels, int width, int height, int channels, int depth,
                        uint8_t *out)
{
    static const char drawn[8][9] = {"16462646", "77777777", "56565656", "77777777",
                                     "36463646", "77777777", "56565656", "77777777"};
    size_t len = 0;

    for (char pass = '1'; pass <= '7'; pass++)
        for (int y = 0; y < height; y++) {
            size_t start = len, bits = 0;
            for (int x = 0; x < width; x++) {
                if (drawn[y % 8][x % 8] != pass)
                    continue;
                if (len == start)
                    out[len++] = 0; /* the filter */
                for (int c = 0; c < channels; c++, bits += (size_t)depth) {
                    if (bits % 8 == 0)
                        out[len++] = 0;
                    int v = pixels[(y * width + x) * channels + c];
                    out[len - 1] |= (uint8_t)((depth < 8 ? v & ((1 << depth) - 1) : v)
                                              << (8 - depth - (int)(bits % 8)));
                }
            }
        }
    return len;
}

TEST(image, interlaced_pngs_are_the_same_pictures)
{
    enum { MOST = 19 };
    static uint8_t pixels[MOST * MOST * 3], want[MOST * MOST * 3], rows[4 * MOST * MOST];
    static const struct {
        int depth, colour, channels;
    } kinds[] = {{8, 2, 3}, {8, 0, 1}, {1, 0, 1}, {4, 3, 1}};

    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * 37 + i / 7);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (int width = 1; width <= MOST; width += width < 10 ? 1 : 9)
            for (int height = 1; height <= MOST; height += height < 10 ? 1 : 9) {
                int depth = kinds[k].depth, ch = kinds[k].channels, top = (1 << depth) - 1;
                bool palette = kinds[k].colour == 3;
                size_t len = interlace(pixels, width, height, ch, depth, rows);
                for (int i = 0; i < width * height * ch; i++)
                    for (int c = 0; c < (palette ? 3 : 1); c++)
                        want[palette ? 3 * i + c : i] =
                            (uint8_t)(palette ? 3 * (pixels[i] & top) + c
                                              : (pixels[i] & top) * 255 / top);
                put_png(&made,
                        &(struct png_of){(uint32_t)width, (uint32_t)height, depth, kinds[k].colour,
                                         1, rows, len, palette ? 16 : 0, 0});
                test_note(t, "kind %zu, %d by %d", k, width, height);
                expect_picture(t, &made, width, height, palette ? 3 : ch, want);
            }
    put_png(&made,
            &(struct png_of){9, 9, 8, 0, 1, rows, interlace(pixels, 9, 9, 1, 8, rows), 0, 0});
    expect_cuts_refused(t, &made, 8);
}

/* A head says what it likes; the bytes after it bound what is allocated. */
TEST(image, a_head_alone_costs_nothing)
{
    static const uint8_t rows[] = {0, 1, 2, 0, 3, 4};

    put_png(&made, &(struct png_of){60000, 60000, 16, 6, 0, rows, sizeof rows, 0, 0});
    expect_no_picture(t, &made, RLX_ERROR_FORMAT, "cannot hold 60000 by 60000 pixels");
    put_png(&made, &(struct png_of){UINT32_MAX, UINT32_MAX, 8, 2, 0, rows, sizeof rows, 0, 0});
    expect_no_picture(t, &made, RLX_ERROR_FORMAT, "cannot hold");
    put_png(&made, &(struct png_of){70000, 1, 8, 0, 0, rows, sizeof rows, 0, 0});
    expect_no_picture(t, &made, RLX_ERROR_LIMIT, "too large");
    made = (struct made){.len = 0};
    put_text(&made, "P6 60000 60000 255\n123");
    expect_no_picture(t, &made, RLX_ERROR_FORMAT, "not enough for 60000 by 60000 pixels");
}

/* ---- Netpbm ---- */

static void put_all(const char *text, size_t len)
{
    made = (struct made){.len = 0};
    put_bytes(&made, text, len);
}

TEST(image, pgm_and_ppm)
{
    static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6}, scaled[] = {0, 128, 255}, wide[] = {1, 255};

    put_all("P6 # a comment\n2 1\n255\n\1\2\3\4\5\6", 29);
    expect_picture(t, &made, 2, 1, 3, bytes);
    check_seed(t, "image/bytes.ppm", &made);
    expect_cuts_refused(t, &made, 0);
    put_all("P2\n3 1\n2\n0 1\n2\n", 15);
    expect_picture(t, &made, 3, 1, 1, scaled);
    check_seed(t, "image/text.pgm", &made);
    put_all("P5 2 1 65535\n\1\1\xff\xff", 17);
    expect_picture(t, &made, 2, 1, 1, wide);
}

TEST(image, damaged_pnms_are_refused)
{
    put_all("P5 2 1 0\n\1\2", 11);
    expect_no_picture(t, &made, RLX_ERROR_FORMAT, "its header is not");
    put_all("P5 2 1 70000\n\1\2\3\4", 17);
    expect_no_picture(t, &made, RLX_ERROR_FORMAT, "its header is not");
    put_all("P5 -2 1 255\n\1\2", 14);
    expect_no_picture(t, &made, RLX_ERROR_FORMAT, "its header is not");
    put_all("P5 99999999999999999999 1 255\n\1", 31);
    expect_no_picture(t, &made, RLX_ERROR_FORMAT, "its header is not");
    put_all("P5 0 5 255\n\1", 12);
    expect_no_picture(t, &made, RLX_ERROR_FORMAT, "0 by 5 pixels");
    put_all("P5 2 1 9\n\1\xff", 11);
    expect_no_picture(t, &made, RLX_ERROR_FORMAT, "sample 1 is 255, above the largest, 9");
    put_all("P2 2 1 9\n1 x", 12);
    expect_no_picture(t, &made, RLX_ERROR_FORMAT, "it ends at sample 1 of 2");
    put_all("hello", 5);
    expect_no_picture(t, &made, RLX_ERROR_FORMAT, "a picture was expected: PNG, JPEG, PPM or PGM");
}

/* Without the library a JPEG is refused with its name; with it, a broken one is. */
TEST(image, jpeg_says_what_it_needs)
{
    struct image i;
    struct diag d;

    put_all("\xff\xd8\xff\xe0 and nothing more", 20);
    rlx_status s = read_picture(&made, made.len, &i, &d);
    expect(t, s == RLX_ERROR_UNSUPPORTED || s == RLX_ERROR_FORMAT);
    expect_contains(t, d.first.message, s == RLX_ERROR_UNSUPPORTED ? "libturbojpeg0" : "jpeg: ");
}
