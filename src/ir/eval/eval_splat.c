/* eval_splat.c: the image of a splat scene: rendered at once, or prepared and then rasterised
 * (ops-special.md 7.5, 7.8, 7.9).
 *
 * Both ways must give the same image to the last bit, so what prepare writes as f32 is rounded to
 * f32 on the direct way too. */
#include "ir/eval/eval_splat.h"
#include "base/half.h"

#define PER_SPLAT 15
#define PARAMS 11
#define NO_ENTRY 4294967296.0 /* the start of an empty range */

/* ---- compositing --------------------------------------------------------------------------- */

double splat_gamma(double v)
{
    return v > 0 ? pow(v, 2.2) : isnan(v) ? v : 0;
}

/* What the splat covers of this ray. */
static double alpha_on(const struct splat *p, double cutoff, struct v3 ray)
{
    double reach = splat_reach(p->opacity, cutoff);
    struct v3 a = p->local, b = v3_mul(splat_to_local(p->turn, ray), p->inverse);
    double bb = v3_dot(b, b);

    if (reach == 0 || bb * 9 / (reach * reach) <= 1e-10)
        return 0;
    double t = -v3_dot(a, b) / bb;
    if (t <= 0)
        return 0;
    struct v3 off = v3_add(a, v3_scale(b, t));
    return splat_clamp(p->opacity, 0, 1) * exp(-4.5 * v3_dot(off, off));
}

const struct splat_range *splat_range_of(const struct splat_scene *s, int64_t x, int64_t y)
{
    return &s->range[y / s->tile_size * s->across + x / s->tile_size];
}

rlx_status splat_hits_new(struct eval_call *c, const struct splat_scene *s, struct splat_hit **out)
{
    int64_t longest = 0;

    for (int64_t i = 0; i < s->across * s->down; i++)
        if (s->range[i].end - s->range[i].start > longest)
            longest = s->range[i].end - s->range[i].start;
    *out = arena_array(c->arena, struct splat_hit, (size_t)longest);
    return *out ? RLX_OK : diag_no_memory(c->diag, (size_t)longest * sizeof **out);
}

int64_t splat_trace(const struct splat_scene *s, int64_t x, int64_t y, int64_t most,
                    struct splat_hit *hit, double *left)
{
    const struct splat_range *r = splat_range_of(s, x, y);
    int64_t hits = 0;

    *left = 1;
    for (int64_t i = r->start; i < r->end && (most == 0 || hits < most); i++) {
        double alpha = alpha_on(&s->splat[s->list[i]], s->cutoff, s->ray[y * s->width + x]);
        if (!(alpha >= s->cutoff))
            continue;
        hit[hits++] = (struct splat_hit){s->list[i], alpha, *left};
        *left *= 1 - alpha;
        if (*left < s->threshold)
            break;
    }
    return hits;
}

static rlx_status draw(struct eval_call *c, const struct splat_scene *s)
{
    struct splat_hit *hit;

    TRY(splat_hits_new(c, s, &hit));
    for (int64_t k = 0; k < s->width * s->height; k++) {
        const struct splat_range *r = splat_range_of(s, k % s->width, k / s->width);
        double left;
        int64_t hits = splat_trace(s, k % s->width, k / s->width, 0, hit, &left);
        struct v3 sum = v3_scale(s->background, left);
        for (int64_t i = 0; i < hits; i++)
            sum = v3_add(sum, v3_scale(s->splat[hit[i].splat].rgb, hit[i].before * hit[i].alpha));
        struct eval_cell *out = c->out->at + 4 * k;
        v3_put(out, (struct v3){splat_gamma(sum.x), splat_gamma(sum.y), splat_gamma(sum.z)});
        out[3].f = r->end <= r->start ? 1 : 1 - left; /* a tile without splats counts as full */
    }
    return RLX_OK;
}

/* ---- render -------------------------------------------------------------------------------- */

static double single(double v)
{
    return f64_through_f32(v);
}

static struct v3 v3_single(struct v3 v)
{
    return (struct v3){single(v.x), single(v.y), single(v.z)};
}

/* As if it had been written by prepare. */
static void round_scene(struct splat_scene *s)
{
    for (int64_t i = 0; i < s->count; i++) {
        struct splat *p = &s->splat[i];
        p->rgb = v3_single(p->rgb);
        p->opacity = single(p->opacity);
        p->local = v3_single(p->local);
        p->inverse = v3_single(p->inverse);
        p->turn = (struct splat_quat){single(p->turn.w), v3_single(p->turn.v)};
    }
    for (int64_t i = 0; i < s->width * s->height; i++)
        s->ray[i] = v3_single(s->ray[i]);
}

static rlx_status render(struct eval_call *c)
{
    struct splat_scene s;

    TRY(splat_scene_make(c, &s));
    round_scene(&s);
    return draw(c, &s);
}

/* ---- prepare ------------------------------------------------------------------------------- */

/* Where the parts of a prepared scene are. */
struct parts {
    struct eval_cell *colour, *valid, *local, *inverse, *turn, *list, *range, *ray, *params;
};

static struct parts parts_of(struct eval_cell *at, const struct splat_scene *s, int64_t list)
{
    struct parts p = {.colour = at};

    p.valid = p.colour + 4 * s->count;
    p.local = p.valid + s->count;
    p.inverse = p.local + 3 * s->count;
    p.turn = p.inverse + 3 * s->count;
    p.list = p.turn + 4 * s->count;
    p.range = p.list + list;
    p.ray = p.range + 2 * s->across * s->down;
    p.params = p.ray + 3 * s->width * s->height;
    return p;
}

static void put_params(const struct splat_scene *s, struct eval_cell *to)
{
    const double value[PARAMS] = {(double)s->width,
                                  (double)s->height,
                                  (double)s->tile_size,
                                  (double)s->across,
                                  s->cutoff,
                                  s->threshold,
                                  splat_gamma(s->background.x),
                                  splat_gamma(s->background.y),
                                  splat_gamma(s->background.z),
                                  0,
                                  0};

    for (int i = 0; i < PARAMS; i++)
        to[i].f = value[i];
}

static rlx_status prepare(struct eval_call *c)
{
    struct splat_scene s;

    TRY(splat_scene_make(c, &s));
    struct parts to = parts_of(c->out->at, &s, c->attr->gaussian_splat.max_list_entries);
    for (int64_t i = 0; i < s.count; i++) {
        const struct splat *p = &s.splat[i];
        v3_put(to.colour + 4 * i, p->rgb);
        to.colour[4 * i + 3].f = p->opacity;
        to.valid[i].f = p->visible;
        v3_put(to.local + 3 * i, p->local);
        v3_put(to.inverse + 3 * i, p->inverse);
        to.turn[4 * i].f = p->turn.w;
        v3_put(to.turn + 4 * i + 1, p->turn.v);
    }
    for (int64_t i = 0; i < s.entries; i++)
        to.list[i].f = (double)s.list[i];
    for (int64_t i = 0; i < s.across * s.down; i++) {
        bool empty = s.range[i].end <= s.range[i].start;
        to.range[2 * i].f = empty ? NO_ENTRY : (double)s.range[i].start;
        to.range[2 * i + 1].f = empty ? 0 : (double)s.range[i].end;
    }
    for (int64_t i = 0; i < s.width * s.height; i++)
        v3_put(to.ray + 3 * i, s.ray[i]);
    put_params(&s, to.params);
    return RLX_OK;
}

rlx_status eval_gaussian_splat(struct eval_call *c)
{
    return c->op == RLX_OP_gaussian_splat_prepare ? prepare(c) : render(c);
}

/* ---- rasterize ----------------------------------------------------------------------------- */

/* Lists and ranges as prepare wrote them, or as anyone else did. */
static rlx_status take_lists(struct eval_call *c, const struct parts *from, int64_t list,
                             struct splat_scene *s)
{
    struct eval_tensor ids = {.type = c->in[0]->type, .count = list, .at = from->list};
    struct eval_tensor ends = {
        .type = c->in[0]->type, .count = 2 * s->across * s->down, .at = from->range};

    for (int64_t i = 0; i < s->across * s->down; i++) {
        struct splat_range r = {eval_index(&ends, 2 * i), eval_index(&ends, 2 * i + 1)};
        s->range[i] = (struct splat_range){0, 0};
        if (r.end <= r.start)
            continue;
        if (r.start < 0 || r.end > list)
            return diag_fail(c->diag, RLX_ERROR_INDEX,
                             "gaussian_splat_rasterize: tile %lld has entries %lld to %lld of %lld",
                             (long long)i, (long long)r.start, (long long)r.end, (long long)list);
        s->range[i] = r;
        for (int64_t k = r.start; k < r.end; k++) {
            s->list[k] = eval_index(&ids, k);
            if (s->list[k] < 0 || s->list[k] >= s->count)
                return diag_fail(c->diag, RLX_ERROR_INDEX,
                                 "gaussian_splat_rasterize: entry %lld names splat %lld of %lld",
                                 (long long)k, (long long)s->list[k], (long long)s->count);
        }
    }
    return RLX_OK;
}

rlx_status eval_gaussian_splat_rasterize(struct eval_call *c)
{
    const struct attr_gaussian_splat_rasterize *attr = &c->attr->gaussian_splat_rasterize;
    int64_t across = (attr->width - 1) / attr->tile_size + 1;
    int64_t down = (attr->height - 1) / attr->tile_size + 1;
    int64_t rest = attr->max_list_entries + 2 * across * down + 3 * attr->width * attr->height;
    struct splat_scene s;

    TRY(splat_scene_new(c, (c->in[0]->count - rest - PARAMS) / PER_SPLAT, attr->max_list_entries,
                        &s));
    s.cutoff = (double)attr->alpha_cutoff;
    s.threshold = (double)attr->transmittance_threshold;
    s.background = v3_at(c->in[1]->at + 12);
    const struct parts from = parts_of(c->in[0]->at, &s, attr->max_list_entries);
    for (int64_t i = 0; i < s.count; i++)
        s.splat[i] = (struct splat){
            .rgb = v3_at(from.colour + 4 * i),
            .opacity = from.colour[4 * i + 3].f,
            .visible = from.valid[i].f != 0,
            .local = v3_at(from.local + 3 * i),
            .inverse = v3_at(from.inverse + 3 * i),
            .turn = {from.turn[4 * i].f, v3_at(from.turn + 4 * i + 1)},
        };
    for (int64_t i = 0; i < s.width * s.height; i++)
        s.ray[i] = v3_at(from.ray + 3 * i);
    TRY(take_lists(c, &from, attr->max_list_entries, &s));
    return draw(c, &s);
}
