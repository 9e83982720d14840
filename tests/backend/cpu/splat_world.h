/* splat_world.h: for the tests of splat kernels: scenes, running an op on one, and what a ray sees
 * of it, by rotation matrices and without tiles. */
#ifndef TESTS_BACKEND_CPU_SPLAT_WORLD_H
#define TESTS_BACKEND_CPU_SPLAT_WORLD_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "rlx/rlx.h"
#include "test.h"

enum { POSITIONS, SCALES, TURNS, OPACITIES, COLOURS, COEFFS, PARTS };
enum { MOST_SPLATS = 64 };

/* The operands, as numbers that a test can change by a little. */
struct splats {
    int64_t n, coeffs;
    double part[PARTS][MOST_SPLATS * 16]; /* room for five coefficients */
    double meta[23];
};

static inline int64_t part_each(const struct splats *s, int part)
{
    static const int64_t each[PARTS] = {3, 3, 4, 1, 3, 3};

    return part == COEFFS ? 3 * s->coeffs : each[part];
}

static inline double draw_number(uint64_t seed, int64_t k, double low, double high)
{
    uint32_t bits = rng_threefry((uint32_t)k, 7, (uint32_t)seed, 0).x0;

    return (double)(float)(low + (high - low) * (double)rng_uniform(bits));
}

/* Splats of all shapes about the origin; spread 4 puts some of them out of sight. */
static inline void splats_random(struct splats *s, int64_t n, int64_t coeffs, double spread,
                                 uint64_t seed)
{
    const double from[PARTS] = {-spread, -2.5, -1, 0.05, 0.1, -0.6};
    const double to[PARTS] = {spread, -0.3, 1, 0.95, 0.9, 0.6};
    const double meta[15] = {0.25, 0.5, -5, 0, 0, 0, 0, 1, 0, 60, 0.1, 100, 0.25, 0.5, 0.75};

    memset(s, 0, sizeof *s);
    s->n = n;
    s->coeffs = coeffs;
    memcpy(s->meta, meta, sizeof meta);
    for (int p = 0; p < PARTS; p++)
        for (int64_t k = 0; k < n * part_each(s, p); k++)
            s->part[p][k] = draw_number(seed * 100 + (uint64_t)p, k, from[p], to[p]);
    for (int64_t i = 0; i < n; i++) {
        double *q = &s->part[TURNS][4 * i], length = 0;
        for (int k = 0; k < 4; k++)
            length += q[k] * q[k];
        for (int k = 0; k < 4; k++)
            q[k] = (double)(float)(q[k] / sqrt(length));
    }
}

/* The same splats, the last one first. */
static inline void splats_turn_round(const struct splats *from, struct splats *to)
{
    *to = *from;
    for (int p = 0; p < PARTS; p++) {
        int64_t each = part_each(from, p);
        for (int64_t k = 0; k < from->n * each; k++)
            to->part[p][k] = from->part[p][(from->n - 1 - k / each) * each + k % each];
    }
}

/* ---- running ------------------------------------------------------------------------------- */

struct how {
    const char *device; /* "cpu:avx2"; NULL: "cpu" */
    int32_t threads;
};

static inline bool has_device(const char *name)
{
    rlx_context *ctx;
    rlx_device *dev = NULL;
    bool has = false;

    if (rlx_context_create(RLX_VERSION, NULL, &ctx, NULL) != RLX_OK)
        return false;
    has = rlx_device_open(ctx, name, &dev, NULL) == RLX_OK;
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
    return has;
}

/* A graph of one output, on inputs of f32; the result is the caller's to free. NULL: err tells. */
static inline float *run_text(const struct how *how, const char *text, rlx_binding *in,
                              size_t count, size_t *elements, rlx_error *err)
{
    rlx_context *ctx = NULL;
    rlx_device *dev = NULL;
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    rlx_binding out = {.name = "out0"};
    float *data = NULL;

    rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .threads = how ? how->threads : 0};
    const char *name = how && how->device ? how->device : "cpu";
    if (rlx_context_create(RLX_VERSION, &desc, &ctx, err) == RLX_OK &&
        rlx_device_open(ctx, name, &dev, err) == RLX_OK &&
        rlx_model_parse(ctx, rlx_cstr(text), &m, err) == RLX_OK &&
        rlx_session_create(
            m, dev,
            &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .debug = DEBUG(.check_plan = true)},
            &s, err) == RLX_OK &&
        rlx_session_prepare(s,
                            &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, count, NULL, 0, NULL, 0},
                            err) == RLX_OK &&
        rlx_session_output_shape(s, 0, &out.tensor, err) == RLX_OK) {
        out.tensor.data = data = malloc(out.tensor.bytes + 1);
        *elements = out.tensor.bytes / sizeof *data;
        if (rlx_session_run(s,
                            &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, count, &out, 1, NULL, 0},
                            err) != RLX_OK) {
            free(data);
            data = NULL;
        }
    }
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
    return data;
}

static inline rlx_binding f32_input(const char *name, float *data, int64_t n)
{
    return (rlx_binding){name, {RLX_DTYPE_f32, 1, {n}, data, (size_t)n * sizeof *data}};
}

/* op: "render", "prepare", "two steps" (rasterize of prepare) or "backward", whose gradient of the
 * image is dl. dim: "" or a declaration of the dim n, which the operands then have. */
static inline float *splats_try(const struct how *how, const char *op, const struct splats *s,
                                const char *dim, const char *attrs, float *dl, int64_t pixels,
                                size_t *elements, rlx_error *err)
{
    static const char names[] = "%p, %s, %q, %o, %c, %h, %m";
    char text[2048], body[1024], n[24], last[64] = "";
    rlx_binding in[8];
    float *data[7];

    snprintf(n, sizeof n, *dim ? "n" : "%d", (int)s->n);
    if (!strcmp(op, "two steps"))
        snprintf(body, sizeof body,
                 "%%a = gaussian_splat_prepare %s %s %%y = gaussian_splat_rasterize %%a, %%m %s",
                 names, attrs, attrs);
    else if (!strcmp(op, "backward"))
        snprintf(body, sizeof body, "%%y = gaussian_splat_render_backward %s, %%dl %s", names,
                 attrs);
    else
        snprintf(body, sizeof body, "%%y = gaussian_splat_%s %s %s", op, names, attrs);
    if (dl)
        snprintf(last, sizeof last, ", input %%dl: f32[%d]", (int)(4 * pixels));
    snprintf(text, sizeof text,
             "rlx 1 %s graph (input %%p: f32[3*%s], input %%s: f32[3*%s], input %%q: f32[4*%s], "
             "input %%o: f32[%s], input %%c: f32[3*%s], input %%h: f32[%d*%s], "
             "input %%m: f32[23]%s) { %s return %%y }",
             dim, n, n, n, n, n, (int)(3 * s->coeffs), n, last, body);
    for (int p = 0; p < PARTS; p++) {
        int64_t count = s->n * part_each(s, p);
        static const char *const name[] = {"p", "s", "q", "o", "c", "h"};
        data[p] = malloc((size_t)count * sizeof(float) + 1);
        for (int64_t k = 0; k < count; k++)
            data[p][k] = (float)s->part[p][k];
        in[p] = f32_input(name[p], data[p], count);
    }
    data[6] = malloc(23 * sizeof(float));
    for (int k = 0; k < 23; k++)
        data[6][k] = (float)s->meta[k];
    in[6] = f32_input("m", data[6], 23);
    in[7] = f32_input("dl", dl, 4 * pixels);
    float *out = run_text(how, text, in, dl ? 8 : 7, elements, err);
    for (int p = 0; p < 7; p++)
        free(data[p]);
    return out;
}

/* The same, which must work. */
static inline float *splats_run(struct test *t, const struct how *how, const char *op,
                                const struct splats *s, const char *attrs, float *dl,
                                int64_t pixels, size_t *elements)
{
    rlx_error err = {0};
    float *out = splats_try(how, op, s, "", attrs, dl, pixels, elements, &err);

    if (!out)
        fail(t, "%s %s: %s: %s", op, attrs, rlx_status_name(err.status), err.message);
    return out;
}

/* ---- what a ray sees ----------------------------------------------------------------------- */

/* Which of its splats a ray hits, so that a changed scene can be asked about the same ones. */
struct ray_hits {
    int64_t count, splat[MOST_SPLATS];
};

static inline void camera_axes(const struct splats *s, double axis[3][3])
{
    double length = 0, flat;

    for (int i = 0; i < 3; i++)
        length += (s->meta[3 + i] - s->meta[i]) * (s->meta[3 + i] - s->meta[i]);
    for (int i = 0; i < 3; i++)
        axis[2][i] = (s->meta[3 + i] - s->meta[i]) / sqrt(length);
    flat = hypot(axis[2][0], axis[2][2]); /* up is (0,1,0): right is (fz, 0, -fx) */
    axis[0][0] = axis[2][2] / flat;
    axis[0][1] = 0;
    axis[0][2] = -axis[2][0] / flat;
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3, k = (i + 2) % 3;
        axis[1][i] = axis[2][j] * axis[0][k] - axis[2][k] * axis[0][j];
    }
}

/* Through the middle of a pixel, for a field of view of 60 degrees. */
static inline void pixel_ray(const struct splats *s, int width, int height, int64_t pixel,
                             double *ray)
{
    double axis[3][3], f = 0.5 * height / tan(M_PI / 6);
    double x = ((double)(pixel % width) + 0.5 - 0.5 * width) / f;
    double y = ((double)(pixel / width) + 0.5 - 0.5 * height) / f;

    camera_axes(s, axis);
    for (int i = 0; i < 3; i++)
        ray[i] = x * axis[0][i] + y * axis[1][i] + axis[2][i];
}

static inline double distance_of(const struct splats *s, int64_t i)
{
    double square = 0;

    for (int k = 0; k < 3; k++)
        square += pow(s->meta[k] - s->part[POSITIONS][3 * i + k], 2);
    return sqrt(square);
}

/* diag(1/sigma) R^T v with the rotation matrix R of the splat's quaternion. */
static inline void whiten(const struct splats *s, int64_t i, const double *v, double *out)
{
    const double *q = &s->part[TURNS][4 * i], w = q[0], x = q[1], y = q[2], z = q[3];
    const double r[3][3] = {
        {1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
        {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
        {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)},
    };

    for (int a = 0; a < 3; a++) {
        double sigma = (double)1.6f * exp(s->part[SCALES][3 * i + a]);
        out[a] = (r[0][a] * v[0] + r[1][a] * v[1] + r[2][a] * v[2]) / sigma;
    }
}

static inline double alpha_of(const struct splats *s, int64_t i, const double *ray)
{
    double from[3], u[3], b[3], uu = 0, ub = 0, bb = 0, o = s->part[OPACITIES][i];

    for (int k = 0; k < 3; k++)
        from[k] = s->meta[k] - s->part[POSITIONS][3 * i + k];
    whiten(s, i, from, u);
    whiten(s, i, ray, b);
    for (int k = 0; k < 3; k++) {
        uu += u[k] * u[k];
        ub += u[k] * b[k];
        bb += b[k] * b[k];
    }
    return ub >= 0 ? 0 : fmin(fmax(o, 0), 1) * exp(-0.5 * (uu - ub * ub / bb));
}

/* With four coefficients, or none. */
static inline double colour_of(const struct splats *s, int64_t i, int ch)
{
    const double *sh = &s->part[COEFFS][12 * i + ch], *p = &s->part[POSITIONS][3 * i];
    double d = distance_of(s, i), x = (s->meta[0] - p[0]) / d, y = (s->meta[1] - p[1]) / d;
    double z = (s->meta[2] - p[2]) / d;

    if (s->coeffs == 0)
        return fmin(fmax(s->part[COLOURS][3 * i + ch], 0), 1);
    return 0.5 + 0.28209479177387814 * sh[0] +
           0.4886025119029199 * (-y * sh[3] + z * sh[6] - x * sh[9]);
}

/* Indices of the valid ones, nearest first. */
static inline int64_t by_distance(const struct splats *s, const float *valid, int64_t *order)
{
    int64_t found = 0;

    for (int64_t i = 0; i < s->n; i++) {
        int64_t at = found;
        if (valid[i] == 0)
            continue;
        for (; at > 0 && distance_of(s, i) < distance_of(s, order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = i;
        found++;
    }
    return found;
}

/* What the ray hits of these, at most `most` (0: all), until little light is left. */
static inline void find_hits(const struct splats *s, const int64_t *order, int64_t count,
                             const double *ray, double threshold, int64_t most,
                             struct ray_hits *out)
{
    double left = 1;

    out->count = 0;
    for (int64_t i = 0; i < count && left >= threshold && (!most || out->count < most); i++) {
        double alpha = alpha_of(s, order[i], ray);
        if (alpha < (double)(1.0f / 255))
            continue;
        out->splat[out->count++] = order[i];
        left *= 1 - alpha;
    }
}

/* Their light over the background, not yet as the display wants it. */
static inline void add_light(const struct splats *s, const struct ray_hits *hits, const double *ray,
                             const double *background, double *rgb)
{
    double left = 1;

    rgb[0] = rgb[1] = rgb[2] = 0;
    for (int64_t i = 0; i < hits->count; i++) {
        double alpha = alpha_of(s, hits->splat[i], ray);
        for (int ch = 0; ch < 3; ch++)
            rgb[ch] += left * alpha * colour_of(s, hits->splat[i], ch);
        left *= 1 - alpha;
    }
    for (int ch = 0; ch < 3; ch++)
        rgb[ch] += left * background[ch];
}

#endif
