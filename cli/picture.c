/* picture.c: see picture.h. */
#include "picture.h"

#include <stdlib.h>
#include <string.h>

#include "tensor_text.h"

/* Where rows, columns and channels are in a shape. */
struct layout {
    const char *name;
    int32_t rank, height, width, channels;
};

static const struct layout layouts[] = {{"nchw", 4, 2, 3, 1},
                                        {"nhwc", 4, 1, 2, 3},
                                        {"chw", 3, 1, 2, 0},
                                        {"hwc", 3, 0, 1, 2},
                                        {"hw", 2, 0, 1, -1}};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

struct job {
    struct cli *c;
    const char *path;
    const struct picture_options *opt;
    const rlx_io_info *input;
    const struct layout *layout;
    rlx_tensor picture; /* u8[height,width,channels] */
};

bool picture_is(const char *path)
{
    unsigned char head[8] = {0};
    FILE *f = strcmp(path, "-") == 0 ? NULL : fopen(path, "rb");

    if (!f)
        return false;
    size_t n = fread(head, 1, sizeof head, f);
    fclose(f);
    return n == sizeof head &&
           (memcmp(head, "\x89PNG\r\n\x1a\n", 8) == 0 || memcmp(head, "\xff\xd8\xff", 3) == 0 ||
            (head[0] == 'P' && head[1] && strchr("2356", head[1]) && strchr(" \t\r\n", head[2])));
}

static int refuse(const struct job *j, const char *why)
{
    char shape[SHAPE_TEXT];

    fprintf(stderr, "rlx %s: %s cannot be the input \"%.*s\", %s%s: %s\n", j->c->command->name,
            j->path, (int)j->input->name.len, j->input->name.ptr, rlx_dtype_name(j->input->dtype),
            shape_text(j->input->rank, j->input->dim, shape), why);
    return EXIT_FAILED;
}

static bool is_channels(int64_t n)
{
    return n == 1 || n == 3 || n == 4;
}

/* The layout that --layout names, or the one whose channels are where the shape has 1, 3 or 4. */
static const struct layout *find_layout(const struct job *j)
{
    for (size_t i = 0; i < LAYOUTS; i++) {
        const struct layout *l = &layouts[i];
        bool wanted = j->opt->layout ? strcmp(j->opt->layout, l->name) == 0
                                     : l->channels < 0 || is_channels(j->input->dim[l->channels]);
        if (l->rank == j->input->rank && wanted)
            return l;
    }
    return NULL;
}

/* ---- size ---- */

/* Pixel (x, y) between its four neighbours. */
static double blend(const rlx_tensor *p, double y, double x, int64_t channel)
{
    const uint8_t *at = p->data;
    int64_t h = p->dim[0], w = p->dim[1], n = p->dim[2];
    y = y < 0 ? 0 : y > (double)(h - 1) ? (double)(h - 1) : y;
    x = x < 0 ? 0 : x > (double)(w - 1) ? (double)(w - 1) : x;
    int64_t y0 = (int64_t)y, x0 = (int64_t)x, y1 = y0 + (y0 + 1 < h), x1 = x0 + (x0 + 1 < w);
    double fy = y - (double)y0, fx = x - (double)x0;
    double top = at[(y0 * w + x0) * n + channel] * (1 - fx) + at[(y0 * w + x1) * n + channel] * fx;
    double low = at[(y1 * w + x0) * n + channel] * (1 - fx) + at[(y1 * w + x1) * n + channel] * fx;

    return top * (1 - fy) + low * fy;
}

/* Bilinear, aligning the corners of the pictures, not the centres of their corner pixels. */
static int resize(struct job *j)
{
    const rlx_tensor *from = &j->picture;
    rlx_tensor to = {.dtype = RLX_DTYPE_u8, .rank = 3, .dim = {0, 0, from->dim[2]}};
    char *end, *last;
    rlx_error err;

    to.dim[1] = strtoll(j->opt->resize, &end, 10);
    to.dim[0] = *end == 'x' ? strtoll(end + 1, &last, 10) : 0;
    if (*end != 'x' || *last || to.dim[0] < 1 || to.dim[1] < 1 || to.dim[0] > 65536 ||
        to.dim[1] > 65536)
        return cli_misuse(j->c, "--resize takes WIDTHxHEIGHT, as in 224x224, not \"%s\"",
                          j->opt->resize);
    if (rlx_tensor_alloc(j->c->ctx, &to, &err) != RLX_OK)
        return cli_fail(j->c, &err, "cannot resize", j->path);
    double sy = (double)from->dim[0] / (double)to.dim[0];
    double sx = (double)from->dim[1] / (double)to.dim[1];
    uint8_t *out = to.data;
    for (int64_t y = 0; y < to.dim[0]; y++)
        for (int64_t x = 0; x < to.dim[1]; x++)
            for (int64_t k = 0; k < to.dim[2]; k++)
                *out++ = (uint8_t)(blend(from, ((double)y + 0.5) * sy - 0.5,
                                         ((double)x + 0.5) * sx - 0.5, k) +
                                   0.5);
    rlx_tensor_free(j->c->ctx, &j->picture);
    j->picture = to;
    return EXIT_DONE;
}

/* ---- pixels ---- */

/* Channel k of `wanted` of a pixel: grey goes to all, colour becomes its brightness, alpha is
 * opaque where there is none and dropped where none is wanted. */
static double channel_of(const uint8_t *pixel, int64_t has, int64_t wanted, int64_t k)
{
    bool grey = has <= 2;

    if (k == 3)
        return has == 4 ? pixel[3] : has == 2 ? pixel[1] : 255;
    if (grey)
        return pixel[0];
    return wanted == 1 ? 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2] : pixel[k];
}

static void store(const struct job *j, rlx_tensor *out, int64_t i, double v, int64_t channel)
{
    const struct picture_options *o = j->opt;

    if (out->dtype == RLX_DTYPE_u8) {
        ((uint8_t *)out->data)[i] = (uint8_t)(v + 0.5);
        return;
    }
    if (j->input->dtype <= RLX_DTYPE_f64) {
        size_t mean = (size_t)channel < o->mean_count ? (size_t)channel : 0;
        size_t std = (size_t)channel < o->std_count ? (size_t)channel : 0;
        v = v / 255 * o->scale - (o->mean_count ? o->mean[mean] : 0);
        v /= o->std_count ? o->std[std] : 1;
    }
    ((float *)out->data)[i] = (float)v;
}

static void fill(const struct job *j, rlx_tensor *out)
{
    const struct layout *l = j->layout;
    int64_t h = out->dim[l->height], w = out->dim[l->width], has = j->picture.dim[2];
    int64_t channels = l->channels < 0 ? 1 : out->dim[l->channels];
    bool planes = l->channels >= 0 && l->channels < l->height;

    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            for (int64_t k = 0; k < channels; k++) {
                const uint8_t *pixel = (const uint8_t *)j->picture.data + (y * w + x) * has;
                int64_t i = planes ? (k * h + y) * w + x : (y * w + x) * channels + k;
                store(j, out, i, channel_of(pixel, has, channels, k), k);
            }
}

/* The input's shape, with the picture's sizes where it leaves them open. */
static int take_shape(struct job *j, rlx_tensor *out)
{
    const struct layout *l = j->layout;
    const int64_t *want = j->input->dim;
    int64_t h = j->picture.dim[0], w = j->picture.dim[1];
    char why[160];

    out->rank = l->rank;
    for (int32_t i = 0; i < l->rank; i++)
        out->dim[i] = i == l->height     ? h
                      : i == l->width    ? w
                      : i == l->channels ? (want[i] < 0 ? 3 : want[i])
                      : want[i] < 0      ? 1
                                         : want[i];
    int64_t channels = l->channels < 0 ? 1 : out->dim[l->channels];
    if (!is_channels(channels))
        return refuse(j, "it does not have 1, 3 or 4 channels there; --layout says where they are");
    if (l->rank == 4 && out->dim[0] != 1)
        return refuse(j, "a picture is a batch of one");
    if ((want[l->height] >= 0 && want[l->height] != h) ||
        (want[l->width] >= 0 && want[l->width] != w)) {
        snprintf(why, sizeof why, "the picture is %lldx%lld; use --resize %lldx%lld", (long long)w,
                 (long long)h, (long long)(want[l->width] < 0 ? w : want[l->width]),
                 (long long)(want[l->height] < 0 ? h : want[l->height]));
        return refuse(j, why);
    }
    return EXIT_DONE;
}

static int convert(struct job *j, rlx_tensor *out)
{
    rlx_error err;
    int code = j->opt->resize ? resize(j) : EXIT_DONE;

    if (code == EXIT_DONE)
        code = take_shape(j, out);
    if (code != EXIT_DONE)
        return code;
    out->dtype = j->input->dtype == RLX_DTYPE_u8 ? RLX_DTYPE_u8 : RLX_DTYPE_f32;
    if (rlx_tensor_alloc(j->c->ctx, out, &err) != RLX_OK)
        return cli_fail(j->c, &err, "cannot make room for", j->path);
    fill(j, out);
    return EXIT_DONE;
}

static int check_layout(struct job *j)
{
    bool known = !j->opt->layout;

    for (size_t i = 0; i < LAYOUTS; i++)
        known = known || strcmp(j->opt->layout, layouts[i].name) == 0;
    if (!known)
        return cli_misuse(j->c, "--layout takes nchw, nhwc, chw, hwc or hw, not \"%s\"",
                          j->opt->layout);
    j->layout = find_layout(j);
    if (j->layout)
        return EXIT_DONE;
    return refuse(j, j->opt->layout ? "--layout is for a different rank"
                                    : "no axis has 1, 3 or 4 channels: --layout nchw, nhwc, chw or "
                                      "hwc says which it is");
}

int picture_load(struct cli *c, const char *path, const struct picture_options *options,
                 const rlx_io_info *input, rlx_tensor *out)
{
    struct job j = {.c = c, .path = path, .opt = options, .input = input};
    rlx_error err;
    int code = check_layout(&j);

    if (code != EXIT_DONE)
        return code;
    if (rlx_image_load(c->ctx, path, &j.picture, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot read", path);
    code = convert(&j, out);
    rlx_tensor_free(c->ctx, &j.picture);
    return code;
}
