/* eval_splat_scene.h: for the tests of splats: scenes to look at, and what a ray meets in them, by
 * rotation matrices and distances to lines. */
#ifndef TESTS_IR_EVAL_SPLAT_SCENE_H
#define TESTS_IR_EVAL_SPLAT_SCENE_H

#include "eval_special.h"

/* op: "render", "prepare", "both" (render, then rasterize of prepare) or "backward", which has the
 * input dl besides. */
static inline bool scene_open(struct test *t, struct special *s, const char *op, int64_t count,
                              uint64_t coeffs, const char *attrs)
{
    static const char scene[] = "%positions, %scales, %rotations, %opacities, %colors, %sh, %meta";
    char source[2048], image[160] = "", body[1024];
    int n = (int)count, width = 64, height = 64;

    sscanf(attrs, "width=%d height=%d", &width, &height);
    if (!strcmp(op, "both"))
        snprintf(body, sizeof body,
                 "%%y = gaussian_splat_render %s %s %%p = gaussian_splat_prepare %s %s "
                 "%%z = gaussian_splat_rasterize %%p, %%meta %s return %%y, %%z",
                 scene, attrs, scene, attrs, attrs);
    else if (!strcmp(op, "backward"))
        snprintf(body, sizeof body, "%%y = gaussian_splat_render_backward %s, %%dl %s return %%y",
                 scene, attrs);
    else
        snprintf(body, sizeof body, "%%y = gaussian_splat_%s %s %s return %%y", op, scene, attrs);
    if (!strcmp(op, "backward"))
        snprintf(image, sizeof image, ", input %%dl: f32[%d]", width * height * 4);
    snprintf(source, sizeof source,
             "rlx 1 graph (input %%positions: f32[%d,3], input %%scales: f32[%d,3], "
             "input %%rotations: f32[%d,4], input %%opacities: f32[%d], input %%colors: f32[%d,3], "
             "input %%sh: f32[%d], input %%meta: f32[23]%s) { %s }",
             n, n, n, n, n, 3 * n * (int)coeffs, image, body);
    return special_open(t, s, source);
}

static inline void scene_camera(struct test *t, struct special *s)
{
    static const double meta[15] = {0, 0, -5, 0, 0, 0, 0, 1, 0, 60, 0.1, 100, 0, 0, 0};
    struct eval_tensor *m = special_leaf(t, s, "meta");

    for (int i = 0; m && i < 15; i++)
        m->at[i].f = meta[i];
}

/* Black, half opaque balls of deviation e^-1 at the origin, five before the camera. */
static inline void scene_default(struct test *t, struct special *s)
{
    struct eval_tensor *opacity = special_leaf(t, s, "opacities");

    scene_camera(t, s);
    for (int64_t i = 0; i < opacity->count; i++) {
        opacity->at[i].f = 0.5;
        special_leaf(t, s, "rotations")->at[4 * i].f = 1;
        for (int k = 0; k < 3; k++)
            special_leaf(t, s, "scales")->at[3 * i + k].f = -1;
    }
}

/* Splats of all shapes about the origin, some of them out of sight. */
static inline void scene_random(struct test *t, struct special *s, uint64_t seed)
{
    struct eval_tensor *q = special_leaf(t, s, "rotations"), *m = special_leaf(t, s, "meta");

    scene_camera(t, s);
    fill_reals(special_leaf(t, s, "positions"), seed + 100, -4, 4);
    fill_reals(special_leaf(t, s, "scales"), seed + 200, -2.5, -0.3);
    fill_reals(q, seed + 300, -1, 1);
    for (int64_t i = 0; i < q->count; i += 4) {
        double square = 0;
        for (int k = 0; k < 4; k++)
            square += q->at[i + k].f * q->at[i + k].f;
        for (int k = 0; k < 4; k++)
            q->at[i + k].f /= sqrt(square);
    }
    eval_round(q);
    fill_reals(special_leaf(t, s, "opacities"), seed + 400, 0.05, 0.95);
    fill_reals(special_leaf(t, s, "colors"), seed + 500, 0.1, 0.9);
    fill_reals(special_leaf(t, s, "sh"), seed + 600, -0.6, 0.6);
    for (int i = 0; i < 3; i++) {
        m->at[i].f += 0.25 * i; /* a camera that is not on the axes */
        m->at[12 + i].f = 0.25 * (i + 1);
    }
}

/* ---- what a ray meets ---------------------------------------------------------------------- */

static inline void scene_camera_axes(struct test *t, struct special *s, double axis[3][3])
{
    const struct eval_cell *m = special_leaf(t, s, "meta")->at;
    double f[3], length = 0;

    for (int i = 0; i < 3; i++) {
        f[i] = m[3 + i].f - m[i].f;
        length += f[i] * f[i];
    }
    for (int i = 0; i < 3; i++)
        axis[2][i] = f[i] / sqrt(length);
    /* up is (0,1,0): right = up x forward = (fz, 0, -fx), then made a unit vector */
    double flat = hypot(axis[2][0], axis[2][2]);
    axis[0][0] = axis[2][2] / flat;
    axis[0][1] = 0;
    axis[0][2] = -axis[2][0] / flat;
    for (int i = 0; i < 3; i++) { /* forward x right */
        int j = (i + 1) % 3, k = (i + 2) % 3;
        axis[1][i] = axis[2][j] * axis[0][k] - axis[2][k] * axis[0][j];
    }
}

/* Through the middle of pixel k; not of unit length. */
static inline void scene_ray(struct test *t, struct special *s, int width, int height, int64_t k,
                             double *ray)
{
    double axis[3][3], f = 0.5 * height / tan(30 * M_PI / 180);
    double x = ((double)(k % width) + 0.5 - width / 2.0) / f;
    double y = ((double)(k / width) + 0.5 - height / 2.0) / f;

    scene_camera_axes(t, s, axis);
    for (int i = 0; i < 3; i++)
        ray[i] = x * axis[0][i] + y * axis[1][i] + axis[2][i];
}

static inline double scene_to_camera(struct test *t, struct special *s, int64_t i, int k)
{
    return special_leaf(t, s, "meta")->at[k].f - special_leaf(t, s, "positions")->at[3 * i + k].f;
}

static inline double scene_distance(struct test *t, struct special *s, int64_t i)
{
    double square = 0;

    for (int k = 0; k < 3; k++)
        square += scene_to_camera(t, s, i, k) * scene_to_camera(t, s, i, k);
    return sqrt(square);
}

static inline double scene_depth(struct test *t, struct special *s, int64_t i)
{
    double axis[3][3], depth = 0;

    scene_camera_axes(t, s, axis);
    for (int k = 0; k < 3; k++)
        depth -= axis[2][k] * scene_to_camera(t, s, i, k);
    return depth;
}

/* v in the splat's axes, in deviations: diag(1/sigma) R^T v with the rotation matrix R of q. */
static inline void scene_whiten(struct test *t, struct special *s, int64_t i, const double *v,
                                double *out)
{
    const struct eval_cell *q = special_leaf(t, s, "rotations")->at + 4 * i;
    double w = q[0].f, x = q[1].f, y = q[2].f, z = q[3].f;
    const double r[3][3] = {
        {1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
        {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
        {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)},
    };

    for (int a = 0; a < 3; a++) {
        double sigma = (double)1.6f * exp(special_leaf(t, s, "scales")->at[3 * i + a].f);
        out[a] = (r[0][a] * v[0] + r[1][a] * v[1] + r[2][a] * v[2]) / sigma;
    }
}

static inline double scene_alpha(struct test *t, struct special *s, int64_t i, const double *ray)
{
    double from[3], u[3], b[3], uu = 0, ub = 0, bb = 0;

    for (int k = 0; k < 3; k++)
        from[k] = scene_to_camera(t, s, i, k);
    scene_whiten(t, s, i, from, u);
    scene_whiten(t, s, i, ray, b);
    for (int k = 0; k < 3; k++) {
        uu += u[k] * u[k];
        ub += u[k] * b[k];
        bb += b[k] * b[k];
    }
    if (ub >= 0) /* behind */
        return 0;
    return special_leaf(t, s, "opacities")->at[i].f * exp(-(uu - ub * ub / bb) / 2);
}

/* With four coefficients. */
static inline double scene_colour(struct test *t, struct special *s, int64_t i, int ch)
{
    const struct eval_cell *sh = special_leaf(t, s, "sh")->at + i * 12 + ch;
    double d = scene_distance(t, s, i);
    double band1 = -sh[3].f * scene_to_camera(t, s, i, 1) / d +
                   sh[6].f * scene_to_camera(t, s, i, 2) / d -
                   sh[9].f * scene_to_camera(t, s, i, 0) / d;

    return 0.5 + 0.28209479177387814 * sh[0].f + 0.4886025119029199 * band1;
}

#endif
