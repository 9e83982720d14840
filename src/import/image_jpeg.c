/* image_jpeg.c: JPEG, by libturbojpeg, opened at run time, so that rlx works where there is none.
 */
#include <limits.h>
#include <string.h>

#include "base/library.h"
#include "import/image.h"

/* Its interface, as far as it is used here. */
enum { PIXELS_RGB = 0, PIXELS_GREY = 6, COLOURS_GREY = 2 };
struct turbo {
    void *(*init)(void);
    int (*header)(void *handle, const unsigned char *bytes, unsigned long size, int *width,
                  int *height, int *subsampling, int *colours);
    int (*decompress)(void *handle, const unsigned char *bytes, unsigned long size,
                      unsigned char *out, int width, int pitch, int height, int format, int flags);
    int (*destroy)(void *handle);
};

static rlx_status open_turbo(struct turbo *t, struct diag *d)
{
    static const char *const names[] = {"libturbojpeg.so.0", "libturbojpeg.so",
                                        "libturbojpeg.0.dylib"};
    void *library = library_open(names, sizeof names / sizeof names[0]);

    if (library && library_find(library, "tjInitDecompress", &t->init) &&
        library_find(library, "tjDecompressHeader3", &t->header) &&
        library_find(library, "tjDecompress2", &t->decompress) &&
        library_find(library, "tjDestroy", &t->destroy))
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_UNSUPPORTED,
                     "a JPEG picture needs libturbojpeg (%s): install it (Debian: libturbojpeg0, "
                     "Ubuntu: libturbojpeg), or save the picture as PNG",
                     names[0]);
}

bool jpeg_is(const uint8_t *bytes, size_t size)
{
    return size >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0;
}

static rlx_status decode(const struct turbo *t, void *handle, const uint8_t *bytes, size_t size,
                         const rlx_allocator *mem, struct image *out, struct diag *d)
{
    int width = 0, height = 0, subsampling = 0, colours = 0;

    /* Of a header that is cut off it says that all is well, and gives no sizes. */
    if (size > LONG_MAX ||
        t->header(handle, bytes, (unsigned long)size, &width, &height, &subsampling, &colours) ||
        width < 1 || height < 1)
        return diag_fail(d, RLX_ERROR_FORMAT, "jpeg: its header is damaged");
    bool grey = colours == COLOURS_GREY;
    TRY(image_make(width, height, grey ? 1 : 3, mem, out, d));
    if (t->decompress(handle, bytes, (unsigned long)size, out->data, width, 0, height,
                      grey ? PIXELS_GREY : PIXELS_RGB, 0) != 0)
        return diag_fail(d, RLX_ERROR_FORMAT, "jpeg: its pixels are damaged, or missing");
    return RLX_OK;
}

rlx_status jpeg_read(const uint8_t *bytes, size_t size, const rlx_allocator *mem, struct image *out,
                     struct diag *d)
{
    struct turbo t;

    TRY(open_turbo(&t, d));
    void *handle = t.init();
    rlx_status s =
        handle ? decode(&t, handle, bytes, size, mem, out, d) : diag_no_memory(d, 1 << 16);
    if (handle)
        t.destroy(handle);
    return s;
}
