/* eval_splat_scene.c: a splat scene as its camera sees it: colours, local frames, footprints and
 * rays (ops-special.md 7.1 to 7.6). */
#include "base/str.h"
#include "ir/eval/eval_splat.h"

#define DEGREE 0.017453292519943295769

/* The camera's axes in the world, and its lens. */
struct camera {
    struct v3 at, right, up, forward;
    double fx, fy, cx, cy, far;
};

double splat_clamp(double v, double lo, double hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* M(q) v = v + 2 ((v x qv + w v) x qv). */
struct v3 splat_to_local(struct splat_quat q, struct v3 v)
{
    struct v3 inner = v3_add(v3_cross(v, q.v), v3_scale(v, q.w));

    return v3_add(v, v3_scale(v3_cross(inner, q.v), 2));
}

struct v3 splat_from_local(struct splat_quat q, struct v3 v)
{
    struct v3 once = v3_cross(q.v, v);

    return v3_add(v, v3_scale(v3_add(v3_cross(q.v, once), v3_scale(once, q.w)), 2));
}

double splat_reach(double opacity, double cutoff)
{
    double square = -2 * log(cutoff / splat_clamp(opacity, 0, 1));
    double reach = square > 0 ? sqrt(square) : 0;

    return reach > 1e-10 ? reach : 0;
}

/* ---- camera -------------------------------------------------------------------------------- */

static struct v3 unit(struct v3 v)
{
    double length = v3_length(v);

    return length <= 1e-8 ? (struct v3){0, 0, 1} : v3_scale(v, 1 / length);
}

static rlx_status camera_make(struct eval_call *c, const struct splat_scene *s, struct camera *out)
{
    const struct eval_cell *meta = c->in[6]->at;
    double fov = meta[9].f;
    struct camera k = {.at = v3_at(meta), .far = meta[11].f};
    char text[32];

    if (!(fov > 0 && fov < 180)) {
        str_from_f32(text, (float)fov);
        return diag_fail(c->diag, RLX_ERROR_ATTRIBUTE,
                         "%s: the field of view in meta[9] is %s, must be above 0 and below 180",
                         op_info(c->op)->name, text);
    }
    k.forward = unit(v3_sub(v3_at(meta + 3), k.at));
    k.right = unit(v3_cross(unit(v3_at(meta + 6)), k.forward));
    k.up = unit(v3_cross(k.forward, k.right));
    k.fy = 0.5 * (double)s->height / tan(0.5 * fov * DEGREE);
    k.fx = k.fy;
    k.cx = (double)s->width / 2;
    k.cy = (double)s->height / 2;
    *out = k;
    return RLX_OK;
}

static struct v3 pixel_ray(const struct camera *k, int64_t x, int64_t y)
{
    struct v3 across = v3_scale(k->right, ((double)x + 0.5 - k->cx) / k->fx);
    struct v3 down = v3_scale(k->up, ((double)y + 0.5 - k->cy) / k->fy);

    return unit(v3_add(v3_add(across, down), k->forward));
}

/* ---- colour -------------------------------------------------------------------------------- */

/* Without coefficients, or where those of the constant band are all zero, the colors operand takes
 * their place. */
static bool colours_are_plain(const struct eval_tensor *sh, int64_t count, int64_t coeffs)
{
    if (coeffs == 0)
        return true;
    if (coeffs >= 16)
        return false;
    for (int64_t i = 0; i < count; i++)
        for (int ch = 0; ch < 3; ch++)
            if (!(fabs(sh->at[i * coeffs * 3 + ch].f) <= 1e-8))
                return false;
    return true;
}

static struct v3 coefficient(const struct eval_call *c, const struct splat_scene *s, int64_t i,
                             int64_t k)
{
    return k < s->coeffs ? v3_at(c->in[5]->at + (i * s->coeffs + k) * 3) : (struct v3){0, 0, 0};
}

static struct v3 colour(const struct eval_call *c, const struct splat_scene *s, int64_t i)
{
    const struct splat *p = &s->splat[i];
    struct v3 first = v3_scale(coefficient(c, s, i, 0), SPLAT_SH0),
              given = v3_at(c->in[4]->at + 3 * i);

    if (s->plain)
        first = (struct v3){splat_clamp(given.x, 0, 1) - 0.5, splat_clamp(given.y, 0, 1) - 0.5,
                            splat_clamp(given.z, 0, 1) - 0.5};
    struct v3 rgb = v3_add((struct v3){0.5, 0.5, 0.5}, first);
    rgb = v3_sub(rgb, v3_scale(coefficient(c, s, i, 1), SPLAT_SH1 * p->direction.y));
    rgb = v3_add(rgb, v3_scale(coefficient(c, s, i, 2), SPLAT_SH1 * p->direction.z));
    return v3_sub(rgb, v3_scale(coefficient(c, s, i, 3), SPLAT_SH1 * p->direction.x));
}

/* ---- one splat ----------------------------------------------------------------------------- */

/* The standard deviation along an axis, from its logarithm. */
static double deviation(const struct eval_call *c, int64_t i, int axis)
{
    return (double)c->attr->gaussian_splat.radius_scale * exp(c->in[1]->at[3 * i + axis].f);
}

static double at_least(double v, double least)
{
    return v < least ? least : v;
}

static void splat_make(struct eval_call *c, struct splat_scene *s, const struct camera *k,
                       int64_t i)
{
    const struct eval_cell *q = c->in[2]->at + 4 * i;
    struct splat *p = &s->splat[i];
    double radius[3], grows[3];

    for (int axis = 0; axis < 3; axis++) {
        double r = 3 * deviation(c, i, axis);
        radius[axis] = at_least(r, 1e-6);
        grows[axis] = r < 1e-6 ? 0 : 1;
    }
    p->turn = (struct splat_quat){q[0].f, v3_at(q + 1)};
    p->opacity = c->in[3]->at[i].f;
    p->inverse = (struct v3){1 / radius[0], 1 / radius[1], 1 / radius[2]};
    p->grows = (struct v3){grows[0], grows[1], grows[2]};
    p->to_camera = v3_sub(k->at, v3_at(c->in[0]->at + 3 * i));
    double length = v3_length(p->to_camera);
    p->direction = length <= 1e-8 ? (struct v3){0, 0, 0} : v3_scale(p->to_camera, 1 / length);
    p->local = v3_mul(splat_to_local(p->turn, p->to_camera), p->inverse);
    p->rgb = colour(c, s, i);
}

static bool v3_finite(struct v3 v)
{
    return isfinite(v.x) && isfinite(v.y) && isfinite(v.z);
}

/* A splat with a NaN or an infinity in what it is drawn from is not drawn. */
static bool is_sound(const struct eval_call *c, const struct splat *p, int64_t i)
{
    return v3_finite(v3_at(c->in[0]->at + 3 * i)) && v3_finite(v3_at(c->in[1]->at + 3 * i)) &&
           isfinite(p->turn.w) && v3_finite(p->turn.v) && isfinite(p->opacity) && v3_finite(p->rgb);
}

/* ---- footprint ----------------------------------------------------------------------------- */

/* The splat's ellipsoid, on which alpha is the cutoff: its semi-axes, the camera in units of them,
 * and where its centre is before the camera. */
struct ellipsoid {
    struct v3 inverse, u, centre;
    double largest;
};

static struct ellipsoid ellipsoid_of(const struct eval_call *c, const struct splat *p,
                                     const struct camera *k, int64_t i, double reach)
{
    struct ellipsoid e = {0};
    double w[3];

    for (int axis = 0; axis < 3; axis++) {
        w[axis] = at_least(deviation(c, i, axis) * reach, 1e-6);
        e.largest = at_least(e.largest, w[axis]);
    }
    e.inverse = (struct v3){1 / w[0], 1 / w[1], 1 / w[2]};
    e.u = v3_mul(e.inverse, splat_to_local(p->turn, p->to_camera));
    e.centre = (struct v3){-v3_dot(k->right, p->to_camera), -v3_dot(k->up, p->to_camera),
                           -v3_dot(k->forward, p->to_camera)};
    return e;
}

/* The conic of rays that touch the ellipsoid, s^T Q s = 0 for s = (x,y,1) in pixels, as an ellipse
 * about its centre; false: it is none. r1 and r0 are its larger and smaller semi-axis. */
static bool ellipse_of(const struct ellipsoid *e, const struct splat *p, const struct camera *k,
                       struct splat_footprint *f, double *r1, double *r0)
{
    struct v3 right = v3_mul(e->inverse, splat_to_local(p->turn, k->right));
    struct v3 up = v3_mul(e->inverse, splat_to_local(p->turn, k->up));
    struct v3 forward = v3_mul(e->inverse, splat_to_local(p->turn, k->forward));
    struct v3 column[3] = {v3_scale(right, 1 / k->fx), v3_scale(up, 1 / k->fy), forward};
    double kappa = v3_dot(e->u, e->u) - 1, q[3][3];

    column[2] = v3_sub(column[2], v3_scale(column[0], k->cx));
    column[2] = v3_sub(column[2], v3_scale(column[1], k->cy));
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            q[i][j] = kappa * v3_dot(column[i], column[j]) -
                      v3_dot(e->u, column[i]) * v3_dot(e->u, column[j]);
    double det = q[0][0] * q[1][1] - q[0][1] * q[0][1];
    f->mx = -(q[1][1] * q[0][2] - q[0][1] * q[1][2]) / det;
    f->my = -(q[0][0] * q[1][2] - q[0][1] * q[0][2]) / det;
    double minus_f = -(q[2][2] + q[0][2] * f->mx + q[1][2] * f->my);
    f->a = q[0][0] / minus_f;
    f->b = q[0][1] / minus_f;
    f->c = q[1][1] / minus_f;
    double area = f->a * f->c - f->b * f->b; /* det A */
    if (!isfinite(f->mx) || !isfinite(f->my) || !isfinite(f->a) || !isfinite(f->b) ||
        !isfinite(f->c) || !(f->a > 0 && area > 0 && minus_f > 0))
        return false;
    double most = (f->a + f->c) / 2 + hypot((f->a - f->c) / 2, f->b); /* eigenvalue */
    *r0 = 1 / sqrt(most);
    *r1 = sqrt(most / area); /* the product of both eigenvalues is det A */
    return true;
}

/* Does a sphere before the camera touch what the camera sees? */
static bool sphere_in_view(const struct splat_scene *s, const struct camera *k, struct v3 centre,
                           double r)
{
    const struct v3 plane[] = {{k->fx, 0, k->cx},
                               {-k->fx, 0, (double)s->width - k->cx},
                               {0, k->fy, k->cy},
                               {0, -k->fy, (double)s->height - k->cy}};

    if (!(centre.z + r > 1e-4 && centre.z - r < k->far))
        return false;
    for (int i = 0; i < 4; i++)
        if (!(v3_dot(plane[i], centre) >= -r * v3_length(plane[i])))
            return false;
    return true;
}

/* Whether splat i can be seen, and where. */
static bool footprint_of(const struct eval_call *c, const struct splat_scene *s,
                         const struct camera *k, int64_t i, struct splat_footprint *f)
{
    const struct splat *p = &s->splat[i];
    double reach = splat_reach(p->opacity, s->cutoff), radius, r1, r0;
    double width = (double)s->width, height = (double)s->height;

    if (!is_sound(c, p, i) || splat_clamp(p->opacity, 0, 1) < s->cutoff || reach == 0)
        return false;
    struct ellipsoid e = ellipsoid_of(c, p, k, i, reach);
    f->whole =
        !(v3_length(e.u) > 1 + 1e-6 && e.centre.z > 1e-12 && ellipse_of(&e, p, k, f, &r1, &r0));
    if (f->whole) {
        if (!sphere_in_view(s, k, e.centre, e.largest))
            return false;
        radius = width > height ? width : height;
        *f = (struct splat_footprint){
            width / 2, height / 2, 1 / (radius * radius), 0, 1 / (radius * radius), true};
    } else {
        if (r0 < 0.125)
            return false;
        radius = at_least(r1 + 1, 1);
    }
    return e.centre.z > 1e-4 && f->mx + radius >= 0 && f->mx - radius < width &&
           f->my + radius >= 0 && f->my - radius < height;
}

/* ---- the whole ----------------------------------------------------------------------------- */

rlx_status splat_scene_make(struct eval_call *c, struct splat_scene *s)
{
    const struct attr_gaussian_splat *attr = &c->attr->gaussian_splat;
    int64_t count = c->in[3]->count;
    struct camera k;

    TRY(splat_scene_new(c, count, attr->max_list_entries, s));
    int64_t most = count * s->across * s->down; /* below 2^52 */
    most = most < attr->max_list_entries ? most : attr->max_list_entries;
    s->cutoff = (double)attr->alpha_cutoff;
    s->threshold = (double)attr->transmittance_threshold;
    s->background = v3_at(c->in[6]->at + 12);
    s->coeffs = c->in[5]->count / (3 * count);
    s->plain = colours_are_plain(c->in[5], count, s->coeffs);
    TRY(camera_make(c, s, &k));
    struct splat_footprint *footprint =
        arena_array(c->arena, struct splat_footprint, (size_t)count);
    struct eval_cell *distance = arena_array(c->arena, struct eval_cell, (size_t)count);
    if (!footprint || !distance)
        return diag_no_memory(c->diag, (size_t)count * sizeof *footprint);
    for (int64_t i = 0; i < count; i++) {
        splat_make(c, s, &k, i);
        s->splat[i].visible = footprint_of(c, s, &k, i, &footprint[i]);
        distance[i].f = v3_length(s->splat[i].to_camera);
    }
    for (int64_t i = 0; i < s->width * s->height; i++)
        s->ray[i] = pixel_ray(&k, i % s->width, i / s->width);
    return splat_sort(c, s, footprint, distance, most);
}
