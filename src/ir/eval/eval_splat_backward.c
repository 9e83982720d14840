/* eval_splat_backward.c: the gradients of the linear training image of a splat scene
 * (ops-special.md 7.10).
 *
 * The image is acc + T bgl without the display's gamma; what is visible, the lists, their order,
 * the cutoff and the early stop are held fixed. Per pixel the hits are gone through from the back:
 * what is behind a hit tells what its alpha is worth. */
#include "ir/eval/eval_splat.h"

/* What is gathered, as the packed result has it, and the colours' gradients, from which the rest of
 * it follows. */
struct gradient {
    struct eval_cell *position, *scale, *turn, *opacity, *colour, *sh;
    struct v3 *rgb;
};

/* J(g,v): the gradient for the quaternion of g . M(q) v. */
static struct splat_quat turn_gradient(struct splat_quat q, struct v3 g, struct v3 v)
{
    struct v3 d = v3_scale(g, v3_dot(q.v, v));

    d = v3_add(d, v3_scale(v, v3_dot(g, q.v)));
    d = v3_sub(d, v3_scale(q.v, 2 * v3_dot(g, v)));
    d = v3_sub(d, v3_scale(v3_cross(v, g), q.w));
    return (struct splat_quat){-2 * v3_dot(g, v3_cross(q.v, v)), v3_scale(d, 2)};
}

static void add(struct eval_cell *to, struct v3 v)
{
    v3_put(to, v3_add(v3_at(to), v));
}

/* From the gradient ga of a splat's alpha on one ray to its shape, place and opacity. */
static void add_alpha(const struct splat_scene *s, const struct splat_hit *hit, struct v3 ray,
                      double ga, struct gradient *d)
{
    int64_t i = hit->splat;
    const struct splat *p = &s->splat[i];
    struct v3 per_sigma = v3_scale(p->inverse, 3); /* radii are of three deviations */
    struct v3 u = v3_scale(p->local, 3), b = v3_mul(splat_to_local(p->turn, ray), per_sigma);
    double t = -v3_dot(u, b) / v3_dot(b, b);
    struct v3 e = v3_add(u, v3_scale(b, t));
    struct v3 gu = v3_scale(e, -hit->alpha * ga), gb = v3_scale(gu, t);
    struct v3 vu = v3_mul(gu, per_sigma), vb = v3_mul(gb, per_sigma);
    struct v3 stretch = v3_add(v3_mul(gu, u), v3_mul(gb, b));

    if (p->opacity >= 0 && p->opacity <= 1)
        d->opacity[i].f += ga * hit->alpha / p->opacity;
    add(d->scale + 3 * i, v3_scale(v3_mul(stretch, p->grows), -1));
    add(d->position + 3 * i, v3_scale(splat_from_local(p->turn, vu), -1));
    struct splat_quat at_u = turn_gradient(p->turn, vu, p->to_camera);
    struct splat_quat at_b = turn_gradient(p->turn, vb, ray);
    d->turn[4 * i].f += at_u.w + at_b.w;
    add(d->turn + 4 * i + 1, v3_add(at_u.v, at_b.v));
}

/* One pixel, from its last hit to its first. */
static void add_pixel(const struct splat_scene *s, const struct splat_hit *hit, int64_t hits,
                      struct v3 ray, struct v3 given, double clip, struct gradient *d)
{
    struct v3 g = {splat_clamp(given.x, -clip, clip), splat_clamp(given.y, -clip, clip),
                   splat_clamp(given.z, -clip, clip)};
    struct v3 background = {splat_gamma(s->background.x), splat_gamma(s->background.y),
                            splat_gamma(s->background.z)};
    double behind = v3_dot(g, background);

    for (int64_t i = hits; i-- > 0;) {
        double own = v3_dot(g, s->splat[hit[i].splat].rgb);
        struct v3 *rgb = &d->rgb[hit[i].splat];
        *rgb = v3_add(*rgb, v3_scale(g, hit[i].before * hit[i].alpha));
        add_alpha(s, &hit[i], ray, splat_clamp(hit[i].before * (own - behind), -clip, clip), d);
        behind = hit[i].alpha * own + (1 - hit[i].alpha) * behind;
    }
}

static double inside(double colour, double g)
{
    return colour > 0 && colour < 1 ? g : 0;
}

/* From the gradient of a splat's colour to its coefficients, its plain colour and, by the direction
 * it is seen from, its place. */
static void add_colour(const struct eval_call *c, const struct splat_scene *s, int64_t i,
                       struct gradient *d)
{
    const struct splat *p = &s->splat[i];
    const struct eval_cell *sh = c->in[5]->at + i * s->coeffs * 3;
    struct eval_cell *dsh = d->sh + i * (s->coeffs > 1 ? s->coeffs : 1) * 3;
    struct v3 g = d->rgb[i], given = v3_at(c->in[4]->at + 3 * i);
    double length = v3_length(p->to_camera);

    if (s->plain)
        v3_put(d->colour + 3 * i,
               (struct v3){inside(given.x, g.x), inside(given.y, g.y), inside(given.z, g.z)});
    else
        v3_put(dsh, v3_scale(g, SPLAT_SH0));
    if (s->coeffs < 4)
        return;
    if (c->attr->gaussian_splat_render_backward.sh_band >= 1) {
        v3_put(dsh + 3, v3_scale(g, -SPLAT_SH1 * p->direction.y));
        v3_put(dsh + 6, v3_scale(g, SPLAT_SH1 * p->direction.z));
        v3_put(dsh + 9, v3_scale(g, -SPLAT_SH1 * p->direction.x));
    }
    if (length <= 1e-8)
        return;
    struct v3 k = {-SPLAT_SH1 * v3_dot(g, v3_at(sh + 9)), -SPLAT_SH1 * v3_dot(g, v3_at(sh + 3)),
                   SPLAT_SH1 * v3_dot(g, v3_at(sh + 6))};
    struct v3 across = v3_sub(k, v3_scale(p->direction, v3_dot(p->direction, k)));
    add(d->position + 3 * i, v3_scale(across, -1 / length));
}

rlx_status eval_gaussian_splat_render_backward(struct eval_call *c)
{
    const struct attr_gaussian_splat_render_backward *attr =
        &c->attr->gaussian_splat_render_backward;
    double clip = fmax((double)attr->loss_grad_clip, 1e-8);
    struct splat_scene s;
    struct splat_hit *hit;

    TRY(splat_scene_make(c, &s));
    TRY(splat_hits_new(c, &s, &hit));
    struct gradient d = {.position = c->out->at,
                         .scale = c->out->at + 3 * s.count,
                         .turn = c->out->at + 6 * s.count,
                         .opacity = c->out->at + 10 * s.count,
                         .colour = c->out->at + 11 * s.count,
                         .sh = c->out->at + 14 * s.count,
                         .rgb = arena_array(c->arena, struct v3, (size_t)s.count)};
    if (!d.rgb)
        return diag_no_memory(c->diag, (size_t)s.count * sizeof *d.rgb);
    for (int64_t k = 0; k < s.width * s.height; k++) {
        double left;
        int64_t hits = splat_trace(&s, k % s.width, k / s.width, attr->max_splat_steps, hit, &left);
        add_pixel(&s, hit, hits, s.ray[k], v3_at(c->in[7]->at + 4 * k), clip, &d);
    }
    for (int64_t i = 0; i < s.count; i++)
        if (s.splat[i].visible) /* others may hold NaN, and have no gradient */
            add_colour(c, &s, i, &d);
    return RLX_OK;
}
