/* splat_project.c: splats as the camera sees them: colour, local frame and footprint of each, and
 * the ray of each pixel (ops-special.md 7.2 to 7.6). */
#include "backend/cpu/kernels/splat/splat.h"
#include "base/str.h"

#define RADIAN 57.29577951308232088 /* degrees */

/* The camera's axes in the world, and its lens: pixels per unit of slope, and the middle. */
struct camera {
    struct v3 at, right, up, forward;
    double focus, cx, cy, far;
};

struct project_job {
    const struct splat_canvas *s;
    struct splat_scene to;
    struct camera k;
    const float *position, *scale, *turn, *opacity, *colour, *sh;
    bool plain;
    struct splat_footprint *footprint;
    double *distance;
};

/* ---- camera -------------------------------------------------------------------------------- */

rlx_status splat_check(const struct cpu_call *c, struct diag *d)
{
    float fov = ((const float *)c->in[6].data)[SPLAT_META_FOV];
    char text[32];

    if (fov > 0 && fov < 180)
        return RLX_OK;
    str_from_f32(text, fov);
    return diag_fail(d, RLX_ERROR_ATTRIBUTE,
                     "%s: the field of view in meta[%d] is %s, must be above 0 and below 180",
                     op_info(c->op)->name, SPLAT_META_FOV, text);
}

static struct v3 unit(struct v3 v)
{
    double length = v3_length(v);

    return length <= 1e-8 ? (struct v3){0, 0, 1} : v3_scale(v, 1 / length);
}

static struct camera camera_of(const struct splat_canvas *s, const float *meta)
{
    struct camera k = {.at = splat_v3(meta), .far = (double)meta[SPLAT_META_FAR]};

    k.forward = unit(v3_sub(splat_v3(meta + 3), k.at));
    k.right = unit(v3_cross(unit(splat_v3(meta + 6)), k.forward));
    k.up = unit(v3_cross(k.forward, k.right));
    k.focus = 0.5 * (double)s->height / tan(0.5 * (double)meta[SPLAT_META_FOV] / RADIAN);
    k.cx = 0.5 * (double)s->width;
    k.cy = 0.5 * (double)s->height;
    return k;
}

static void cast_rays(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct project_job *j = ctx;
    const struct camera *k = &j->k;

    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        int64_t column = i % j->s->width, row = i / j->s->width;
        double x = ((double)column + 0.5 - k->cx) / k->focus;
        double y = ((double)row + 0.5 - k->cy) / k->focus;
        struct v3 at = v3_add(v3_scale(k->right, x), v3_scale(k->up, y));
        splat_put(j->to.ray + 3 * i, unit(v3_add(at, k->forward)));
    }
}

/* ---- colour -------------------------------------------------------------------------------- */

bool splat_plain(const struct cpu_call *c, const struct splat_canvas *s)
{
    const float *sh = c->in[5].data;

    if (s->coeffs == 0 || s->coeffs >= 16)
        return s->coeffs == 0;
    for (int64_t i = 0; i < s->count; i++)
        for (int64_t ch = 0; ch < 3; ch++)
            if (!(fabs((double)sh[i * s->coeffs * 3 + ch]) <= 1e-8))
                return false;
    return true;
}

static struct v3 colour_of(const struct project_job *j, int64_t i, struct v3 direction)
{
    const float *sh = j->s->coeffs ? j->sh + i * j->s->coeffs * 3 : NULL,
                *given = j->colour + 3 * i;
    const double band[4] = {SPLAT_SH0, -SPLAT_SH1 * direction.y, SPLAT_SH1 * direction.z,
                            -SPLAT_SH1 * direction.x};
    struct v3 rgb = {0.5, 0.5, 0.5};

    if (j->plain)
        rgb = (struct v3){splat_clamp((double)given[0], 0, 1), splat_clamp((double)given[1], 0, 1),
                          splat_clamp((double)given[2], 0, 1)};
    for (int64_t k = j->plain; k < cpu_min_i64(j->s->coeffs, 4); k++)
        rgb = v3_add(rgb, v3_scale(splat_v3(sh + 3 * k), band[k]));
    return rgb;
}

/* ---- footprint ----------------------------------------------------------------------------- */

/* The ellipsoid on which alpha is the cutoff, in front of the camera. */
struct ellipsoid {
    struct splat_turn turn;
    struct v3 inverse; /* one over its semi-axes */
    struct v3 u;       /* from its centre to the camera, in its axes and in units of them */
    struct v3 centre;  /* as the camera sees it: right, up, forward */
    double largest;    /* semi-axis */
};

static struct v3 in_units(const struct ellipsoid *e, struct v3 v)
{
    return v3_mul(e->inverse, splat_to_axes(e->turn, v));
}

/* The ellipse that its outline is on the screen, with its larger and smaller semi-axis; false: the
 * outline is none. Rays that touch it satisfy s^T Q s = 0 for s = (x, y, 1) in pixels, with
 * Q = P^T (kappa I - u u^T) P, where P takes s to the ellipsoid's units. */
static bool outline(const struct camera *k, const struct ellipsoid *e, struct splat_footprint *f,
                    double *larger, double *smaller)
{
    struct v3 px = v3_scale(in_units(e, k->right), 1 / k->focus);
    struct v3 py = v3_scale(in_units(e, k->up), 1 / k->focus);
    struct v3 corner = v3_add(v3_scale(px, k->cx), v3_scale(py, k->cy));
    struct v3 p1 = v3_sub(in_units(e, k->forward), corner);
    double ux = v3_dot(e->u, px), uy = v3_dot(e->u, py), u1 = v3_dot(e->u, p1);
    double kappa = v3_dot(e->u, e->u) - 1;
    double xx = kappa * v3_dot(px, px) - ux * ux, xy = kappa * v3_dot(px, py) - ux * uy;
    double yy = kappa * v3_dot(py, py) - uy * uy, x1 = kappa * v3_dot(px, p1) - ux * u1;
    double y1 = kappa * v3_dot(py, p1) - uy * u1, one = kappa * v3_dot(p1, p1) - u1 * u1;
    double det = xx * yy - xy * xy;

    f->mx = (xy * y1 - yy * x1) / det;
    f->my = (xy * x1 - xx * y1) / det;
    double level = -(one + x1 * f->mx + y1 * f->my);
    f->a = xx / level;
    f->b = xy / level;
    f->c = yy / level;
    double area = f->a * f->c - f->b * f->b;
    if (!isfinite(f->mx) || !isfinite(f->my) || !isfinite(f->a) || !isfinite(f->b) ||
        !isfinite(f->c) || !(level > 0 && f->a > 0 && area > 0))
        return false;
    double half = 0.5 * (f->a - f->c), eigen; /* the larger one */
    eigen = 0.5 * (f->a + f->c) + sqrt(half * half + f->b * f->b);
    *smaller = 1 / sqrt(eigen);
    *larger = sqrt(eigen / area);
    return true;
}

/* Whether a ball around that point before the camera touches what it sees. */
static bool ball_in_view(const struct project_job *j, struct v3 centre, double r)
{
    const struct camera *k = &j->k;
    double right = (double)j->s->width - k->cx, top = (double)j->s->height - k->cy;
    const struct v3 plane[4] = {
        {k->focus, 0, k->cx}, {-k->focus, 0, right}, {0, k->focus, k->cy}, {0, -k->focus, top}};

    if (!(centre.z + r > 1e-4 && centre.z - r < k->far))
        return false;
    for (int i = 0; i < 4; i++)
        if (!(v3_dot(plane[i], centre) >= -r * v3_length(plane[i])))
            return false;
    return true;
}

static bool footprint_of(const struct project_job *j, const struct ellipsoid *e,
                         struct splat_footprint *f)
{
    double width = (double)j->s->width, height = (double)j->s->height, larger, smaller, radius;

    f->whole = !(v3_length(e->u) > 1 + 1e-6 && e->centre.z > 1e-12 &&
                 outline(&j->k, e, f, &larger, &smaller));
    if (f->whole) {
        if (!ball_in_view(j, e->centre, e->largest))
            return false;
        radius = width > height ? width : height;
        f->mx = 0.5 * width;
        f->my = 0.5 * height;
        f->a = f->c = 1 / (radius * radius);
        f->b = 0;
    } else {
        if (smaller < 0.125)
            return false;
        radius = larger + 1;
    }
    return e->centre.z > 1e-4 && f->mx + radius >= 0 && f->mx - radius < width &&
           f->my + radius >= 0 && f->my - radius < height;
}

/* ---- one splat ----------------------------------------------------------------------------- */

static bool finite3(struct v3 v)
{
    return isfinite(v.x) && isfinite(v.y) && isfinite(v.z);
}

static double at_least(double v, double least) /* NaN stays */
{
    return v < least ? least : v;
}

/* Finite in all that it is drawn from, and not too faint to be seen. */
static bool shows(const struct project_job *j, int64_t i, struct v3 rgb, double reach)
{
    struct splat_turn q = splat_turn_at(j->turn + 4 * i);
    double opacity = (double)j->opacity[i], cutoff = (double)j->s->cutoff;

    return finite3(splat_v3(j->position + 3 * i)) && finite3(splat_v3(j->scale + 3 * i)) &&
           isfinite(q.w) && finite3(q.v) && isfinite(opacity) && finite3(rgb) &&
           !(splat_clamp(opacity, 0, 1) < cutoff) && reach > 0;
}

static struct ellipsoid ellipsoid_of(const struct camera *k, struct splat_turn turn,
                                     struct v3 sigma, double reach, struct v3 to_camera)
{
    struct v3 w = v3_scale(sigma, sqrt(reach));
    struct ellipsoid e = {.turn = turn};

    w = (struct v3){at_least(w.x, 1e-6), at_least(w.y, 1e-6), at_least(w.z, 1e-6)};
    e.inverse = (struct v3){1 / w.x, 1 / w.y, 1 / w.z};
    e.largest = at_least(at_least(w.x, w.y), w.z);
    e.u = in_units(&e, to_camera);
    e.centre = (struct v3){-v3_dot(k->right, to_camera), -v3_dot(k->up, to_camera),
                           -v3_dot(k->forward, to_camera)};
    return e;
}

static void project_one(const struct project_job *j, int64_t i)
{
    struct splat_turn turn = splat_turn_at(j->turn + 4 * i);
    struct v3 log_sigma = splat_v3(j->scale + 3 * i);
    struct v3 sigma = {exp(log_sigma.x), exp(log_sigma.y), exp(log_sigma.z)};
    struct v3 to_camera = v3_sub(j->k.at, splat_v3(j->position + 3 * i)), direction = {0, 0, 0};
    double length = v3_length(to_camera);
    double reach = splat_reach((double)j->opacity[i], (double)j->s->cutoff);

    if (!(length <= 1e-8))
        direction = v3_scale(to_camera, 1 / length);
    sigma = v3_scale(sigma, (double)j->s->radius_scale);
    struct v3 inverse = {1 / at_least(3 * sigma.x, 1e-6), 1 / at_least(3 * sigma.y, 1e-6),
                         1 / at_least(3 * sigma.z, 1e-6)};
    struct v3 rgb = colour_of(j, i, direction);
    struct ellipsoid e = ellipsoid_of(&j->k, turn, sigma, reach, to_camera);

    splat_put(j->to.colour + 4 * i, rgb);
    j->to.colour[4 * i + 3] = j->opacity[i];
    j->to.valid[i] = shows(j, i, rgb, reach) && footprint_of(j, &e, &j->footprint[i]);
    splat_put(j->to.local + 3 * i, v3_mul(splat_to_axes(turn, to_camera), inverse));
    splat_put(j->to.inverse + 3 * i, inverse);
    memcpy(j->to.turn + 4 * i, j->turn + 4 * i, 4 * sizeof *j->turn);
    j->distance[i] = length;
}

static void project(void *ctx, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    for (int64_t i = begin; i < end; i++)
        project_one(ctx, i);
}

/* ---- the whole ----------------------------------------------------------------------------- */

static float display(float v)
{
    return v > 0 ? (float)pow((double)v, 2.2) : v != v ? v : 0;
}

static void put_params(const struct splat_canvas *s, const float *background, float *to)
{
    const float value[SPLAT_PARAMS] = {(float)s->width,
                                       (float)s->height,
                                       (float)s->tile,
                                       (float)s->across,
                                       s->cutoff,
                                       s->threshold,
                                       display(background[0]),
                                       display(background[1]),
                                       display(background[2]),
                                       0,
                                       0};

    memcpy(to, value, sizeof value);
}

void splat_project(const struct cpu_call *c, const struct splat_canvas *s,
                   const struct splat_scene *to, struct splat_footprint *footprint,
                   double *distance)
{
    const float *meta = c->in[6].data;
    struct project_job j = {
        .s = s,
        .to = *to,
        .k = camera_of(s, meta),
        .position = c->in[0].data,
        .scale = c->in[1].data,
        .turn = c->in[2].data,
        .opacity = c->in[3].data,
        .colour = c->in[4].data,
        .sh = c->in[5].data,
        .plain = splat_plain(c, s),
        .footprint = footprint,
        .distance = distance,
    };

    cpu_for(c->pool, s->count, 64, project, &j);
    cpu_for(c->pool, s->width * s->height, 4096, cast_rays, &j);
    put_params(s, meta + SPLAT_META_BACKGROUND, to->params);
}
