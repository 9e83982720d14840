/* selective_scan_backward.c: the gradients of selective_scan, packed flat (ops-special.md 3.1).
 *
 * A task is a group of channels of one item, LANES of them side by side as in selective_scan.c. It
 * goes forth once and keeps every so many states, then back stretch by stretch, making the states
 * of a stretch again. dx, ddelta are its own. What other tasks add to, too, it leaves in scratch,
 * and these parts are then added up in their order:
 *
 *     dB, dC   sums over channels: a part per group       [groups][b, s, n]
 *     dA       sums over items and steps: a part per item [b][h, n] */
#include "backend/cpu/kernels/sequence/lanes.h"

enum { GROUPS = 8 }; /* of channels, at most */

struct job {
    const struct cpu_call *c;
    int64_t items, steps, channels, n;
    int64_t blocks, groups; /* of LANES channels; of blocks */
    int64_t per;            /* blocks of a group, at most */
    int64_t stretch;        /* steps between states that are kept */
    float *db, *dc, *da;    /* parts */
    char *room;             /* of worker 0 */
    uint64_t room_bytes;
};

/* A worker's room. A state is [per][n][LANES]. */
struct room {
    float *a, *gh, *da, *da_stretch; /* states */
    float *kept;                     /* [stretch] states, each before a stretch */
    float *before, *root;            /* [stretch] states of one stretch; roots of their decays */
    float *sums;                     /* [2][n][VEC_F32]: dB and dC of one step */
};

static void describe(const struct cpu_call *c, struct job *j)
{
    const int64_t *dim = c->in[0].dim;

    *j = (struct job){.c = c,
                      .items = dim[0],
                      .steps = dim[1],
                      .channels = dim[2],
                      .n = c->attr->selective_scan_backward.state_size,
                      .blocks = lanes_blocks(dim[2]),
                      .stretch = lanes_stretch(dim[1])};
    j->per = (j->blocks + GROUPS - 1) / GROUPS;
    j->groups = j->per ? (j->blocks + j->per - 1) / j->per : 0;
}

static int64_t state_floats(const struct job *j)
{
    return j->per * j->n * LANES;
}

static uint64_t room_bytes(const struct job *j)
{
    return lanes_bytes((4 + 3 * j->stretch) * state_floats(j) + 2 * j->n * VEC_F32);
}

static void carve(const struct job *j, int worker, struct room *r)
{
    float *at = (float *)(void *)(j->room + (uint64_t)worker * j->room_bytes);
    int64_t state = state_floats(j);

    r->a = at;
    r->gh = r->a + state;
    r->da = r->gh + state;
    r->da_stretch = r->da + state;
    r->kept = r->da_stretch + state;
    r->before = r->kept + j->stretch * state;
    r->root = r->before + j->stretch * state;
    r->sums = r->root + j->stretch * state;
}

/* ---- one block of channels ----------------------------------------------------------------- */

struct block {
    int64_t first, w; /* channels */
    int64_t at;       /* of its part of a state */
};

static struct block block_of(const struct job *j, int64_t group, int64_t k)
{
    int64_t first = (group * j->per + k) * LANES;

    return (struct block){first, cpu_min_i64(LANES, j->channels - first), k * j->n * LANES};
}

static int64_t blocks_of(const struct job *j, int64_t group)
{
    return cpu_min_i64(j->per, j->blocks - group * j->per);
}

static void take_a(const struct job *j, const struct block *b, float *a)
{
    const float *from = (const float *)j->c->in[2].data + b->first * j->n;

    for (int64_t i = 0; i < j->n; i++)
        for (int64_t l = 0; l < LANES; l++)
            a[i * LANES + l] = l < b->w ? from[l * j->n + i] : 0;
}

/* h after a step from h before it, to the same place or another; and the root of its decay, NULL:
 * not wanted. */
static void step_forth(const struct job *j, const struct block *b, int64_t row, const float *a,
                       const float *h, float *next, float *root)
{
    const struct cpu_tensor *in = j->c->in;
    const float *bs = cpu_at(&in[3], row * j->n);
    LANES_OF(x);
    LANES_OF(delta);

    lanes_load(RLX_DTYPE_f32, cpu_at(&in[0], row * j->channels + b->first), b->w, x);
    lanes_load(RLX_DTYPE_f32, cpu_at(&in[1], row * j->channels + b->first), b->w, delta);
    for (int64_t i = 0; i < j->n; i++)
        for (int v = 0; v < LANES_VECS; v++) {
            int64_t at = i * LANES + v * VEC_F32;
            vec_f32 d = vec_load(delta + v * VEC_F32);
            vec_f32 r = lanes_exp_root(d * vec_load(a + at)), held = r * vec_load(h + at);
            vec_store(next + at, F32_MADD(r, held, d * bs[i] * vec_load(x + v * VEC_F32)));
            if (root)
                vec_store(root + at, r);
        }
}

/* One step back. h is the state before it, root that of its decay; gh and da are updated, the
 * block's share of dB and dC is added to db and dc, [n][VEC_F32]. */
static void step_back(const struct job *j, const struct block *b, int64_t row, const float *a,
                      const float *h, const float *root, float *gh, float *da, float *db, float *dc)
{
    const struct cpu_tensor *in = j->c->in;
    const float *bs = cpu_at(&in[3], row * j->n), *cs = cpu_at(&in[4], row * j->n);
    int64_t at = row * j->channels + b->first;
    LANES_OF(x);
    LANES_OF(delta);
    LANES_OF(dy);

    lanes_load(RLX_DTYPE_f32, cpu_at(&in[0], at), b->w, x);
    lanes_load(RLX_DTYPE_f32, cpu_at(&in[1], at), b->w, delta);
    lanes_load(RLX_DTYPE_f32, cpu_at(&in[5], at), b->w, dy);
    for (int v = 0; v < LANES_VECS; v++) {
        vec_f32 xv = vec_load(x + v * VEC_F32), d = vec_load(delta + v * VEC_F32);
        vec_f32 g = vec_load(dy + v * VEC_F32), dx = {0}, ddelta = {0};
        vec_i32 real = lanes_mask(b->w - v * VEC_F32);
        for (int64_t i = 0; i < j->n; i++) {
            int64_t k = i * LANES + v * VEC_F32;
            vec_f32 r = vec_load(root + k), eh = r * (r * vec_load(h + k)), in_v = d * bs[i] * xv;
            vec_f32 ghv = F32_MADD(g, vec_all(cs[i]), vec_load(gh + k));
            float *db_i = db + i * VEC_F32, *dc_i = dc + i * VEC_F32;
            vec_store(dc_i, vec_load(dc_i) + lanes_only(real, g * (eh + in_v)));
            vec_store(db_i, vec_load(db_i) + lanes_only(real, ghv * d * xv));
            dx = F32_MADD(ghv, d * bs[i], dx);
            ddelta = F32_MADD(ghv, F32_MADD(vec_load(a + k), eh, xv * bs[i]), ddelta);
            vec_store(da + k, F32_MADD(ghv, d * eh, vec_load(da + k)));
            vec_store(gh + k, ghv * r * r);
        }
        vec_store(x + v * VEC_F32, dx);
        vec_store(delta + v * VEC_F32, ddelta);
    }
    memcpy(cpu_at(j->c->out, at), x, (size_t)b->w * sizeof *x);
    memcpy(cpu_at(j->c->out, in[0].count + at), delta, (size_t)b->w * sizeof *delta);
}

/* ---- one group of one item ----------------------------------------------------------------- */

/* Keeps the states before each stretch. */
static void go_forth(const struct job *j, int64_t item, int64_t group, const struct room *r)
{
    int64_t state = state_floats(j);

    for (int64_t k = 0; k < blocks_of(j, group); k++) {
        struct block b = block_of(j, group, k);
        float *h = r->before + b.at; /* nothing else is there yet */
        take_a(j, &b, r->a + b.at);
        memset(h, 0, (size_t)(j->n * LANES) * sizeof *h);
        for (int64_t t = 0; t < j->steps; t++) {
            if (t % j->stretch == 0)
                memcpy(r->kept + t / j->stretch * state + b.at, h,
                       (size_t)(j->n * LANES) * sizeof *h);
            step_forth(j, &b, item * j->steps + t, r->a + b.at, h, h, NULL);
        }
    }
}

/* The states of the stretch from step `from` on, and the roots of their decays. */
static void make_stretch(const struct job *j, int64_t item, int64_t group, int64_t from,
                         int64_t count, const struct room *r)
{
    int64_t state = state_floats(j);

    for (int64_t k = 0; k < blocks_of(j, group); k++) {
        struct block b = block_of(j, group, k);
        float *last = r->da_stretch + b.at; /* the state after the stretch, which is not needed */
        memcpy(r->before + b.at, r->kept + from / j->stretch * state + b.at,
               (size_t)(j->n * LANES) * sizeof(float));
        for (int64_t t = 0; t < count; t++) {
            float *h = r->before + t * state + b.at;
            step_forth(j, &b, item * j->steps + from + t, r->a + b.at, h,
                       t + 1 < count ? h + state : last, r->root + t * state + b.at);
        }
    }
}

static float lane_sum(const float *v)
{
    return (float)vec_sum(vec_load(v));
}

static void stretch_back(const struct job *j, int64_t item, int64_t group, int64_t from,
                         int64_t count, const struct room *r)
{
    int64_t state = state_floats(j), n = j->n;
    float *db = r->sums, *dc = r->sums + n * VEC_F32;

    memset(r->da_stretch, 0, (size_t)state * sizeof(float));
    for (int64_t t = count - 1; t >= 0; t--) {
        int64_t row = item * j->steps + from + t, to = (group * j->items * j->steps + row) * n;
        memset(r->sums, 0, (size_t)(2 * n * VEC_F32) * sizeof(float));
        for (int64_t k = 0; k < blocks_of(j, group); k++) {
            struct block b = block_of(j, group, k);
            step_back(j, &b, row, r->a + b.at, r->before + t * state + b.at,
                      r->root + t * state + b.at, r->gh + b.at, r->da_stretch + b.at, db, dc);
        }
        for (int64_t i = 0; i < n; i++) {
            j->db[to + i] = lane_sum(db + i * VEC_F32);
            j->dc[to + i] = lane_sum(dc + i * VEC_F32);
        }
    }
    for (int64_t i = 0; i < state; i++)
        r->da[i] += r->da_stretch[i];
}

static void put_da(const struct job *j, int64_t item, int64_t group, const struct room *r)
{
    for (int64_t k = 0; k < blocks_of(j, group); k++) {
        struct block b = block_of(j, group, k);
        float *to = j->da + (item * j->channels + b.first) * j->n;
        for (int64_t l = 0; l < b.w; l++)
            for (int64_t i = 0; i < j->n; i++)
                to[l * j->n + i] = r->da[b.at + i * LANES + l];
    }
}

static void run_groups(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *j = ctx;
    struct room r;

    carve(j, worker, &r);
    for (int64_t at = begin; at < end; at++) {
        int64_t item = at / j->groups, group = at % j->groups;
        memset(r.gh, 0, (size_t)state_floats(j) * sizeof(float));
        memset(r.da, 0, (size_t)state_floats(j) * sizeof(float));
        go_forth(j, item, group, &r);
        for (int64_t from = (j->steps - 1) / j->stretch * j->stretch; from >= 0;
             from -= j->stretch) {
            int64_t count = cpu_min_i64(j->stretch, j->steps - from);
            make_stretch(j, item, group, from, count, &r);
            stretch_back(j, item, group, from, count, &r);
        }
        put_da(j, item, group, &r);
    }
}

/* ---- adding up the parts ------------------------------------------------------------------- */

struct addition {
    const float *part;
    int64_t parts, n; /* n sums, parts n apart */
    float *to;
};

static void add_parts(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct addition *a = ctx;

    (void)worker;
    for (int64_t i = begin; i < end; i++)
        a->to[i] = a->part[i];
    for (int64_t p = 1; p < a->parts; p++)
        for (int64_t i = begin; i < end; i++)
            a->to[i] += a->part[p * a->n + i];
}

static void add_up(const struct cpu_call *c, const float *part, int64_t parts, int64_t n, float *to)
{
    struct addition a = {part, parts, n, to};

    cpu_for(c->pool, n, 4096, add_parts, &a);
}

static uint64_t scratch(const struct cpu_call *c)
{
    struct job j;

    describe(c, &j);
    if (c->in[0].count == 0)
        return 0;
    /* As many groups as there are blocks: what fewer blocks need is never more. */
    int64_t groups = cpu_min_i64(GROUPS, j.blocks);
    return 2 * lanes_bytes(groups * c->in[3].count) + lanes_bytes(j.items * c->in[2].count) +
           (uint64_t)gemm_workers(c->pool) * room_bytes(&j);
}

static void run(const struct cpu_call *c)
{
    struct job j;
    float *to = c->out->data;

    if (c->out->count == 0)
        return;
    if (c->in[0].count == 0) { /* nothing was scanned: the others' gradients are 0 */
        memset(to, 0, (size_t)c->out->count * sizeof *to);
        return;
    }
    describe(c, &j);
    j.room_bytes = room_bytes(&j);
    j.room = c->scratch;
    j.db = (float *)(void *)(j.room + (uint64_t)gemm_workers(c->pool) * j.room_bytes);
    j.dc = j.db + lanes_bytes(j.groups * c->in[3].count) / sizeof(float);
    j.da = j.dc + lanes_bytes(j.groups * c->in[3].count) / sizeof(float);
    cpu_for(c->pool, j.items * j.groups, 1, run_groups, &j);
    to += 2 * c->in[0].count;
    add_up(c, j.da, j.items, c->in[2].count, to);
    to += c->in[2].count;
    add_up(c, j.db, j.groups, c->in[3].count, to);
    add_up(c, j.dc, j.groups, c->in[3].count, to + c->in[3].count);
}

extern const struct cpu_kernel CPU_NAME(cpu_selective_scan_backward);
const struct cpu_kernel CPU_NAME(cpu_selective_scan_backward) = {.run = run, .scratch = scratch};
