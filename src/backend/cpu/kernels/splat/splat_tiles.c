/* splat_tiles.c: which splats each tile of the screen has, nearest first (ops-special.md 7.7).
 *
 *     valid splats by distance -> tiles of each, counted -> (tile, splat), written -> dealt by tile
 *
 * Counting first gives each splat the place where its entries begin, so that all of them can be
 * written in parallel, and shows which do not fit in the list. */
#include "backend/cpu/kernels/order/order.h"
#include "backend/cpu/kernels/splat/splat.h"

struct entry {
    int32_t tile, splat;
};

struct list_job {
    const struct splat_canvas *s;
    const struct splat_footprint *footprint;
    struct order_pair *near, *spare; /* valid splats; key: bits of the distance */
    int64_t valid;
    int64_t *first; /* [valid+1] how many tiles each has; then, where its entries begin */
    struct entry *entry;
    int32_t *next; /* [tiles] */
};

static uint64_t carve(const struct splat_canvas *s, char *room, struct list_job *j)
{
    uint64_t n = (uint64_t)s->count, at = 0;

    j->near = splat_take(room, &at, n * sizeof *j->near);
    j->spare = splat_take(room, &at, n * sizeof *j->spare);
    j->first = splat_take(room, &at, (n + 1) * sizeof *j->first);
    j->entry = splat_take(room, &at, (uint64_t)s->most * sizeof *j->entry);
    j->next = splat_take(room, &at, (uint64_t)s->tiles * sizeof *j->next);
    return at;
}

uint64_t splat_list_bytes(const struct splat_canvas *s)
{
    struct list_job j;

    return carve(s, NULL, &j);
}

/* ---- footprints and tiles ------------------------------------------------------------------- */

/* The least of a x^2 + 2 b x y + c y^2 for this x and low <= y <= high. */
static double least_on_edge(double a, double b, double c, double x, double low, double high)
{
    double y = splat_clamp(-b * x / c, low, high);

    return a * x * x + 2 * b * x * y + c * y * y;
}

static bool meets(const struct splat_canvas *s, const struct splat_footprint *f, int64_t column,
                  int64_t row)
{
    double left = (double)(column * s->tile) - f->mx, right = left + (double)s->tile;
    double low = (double)(row * s->tile) - f->my, high = low + (double)s->tile;

    if (f->whole || (left <= 0 && right >= 0 && low <= 0 && high >= 0))
        return true;
    double at_left = least_on_edge(f->a, f->b, f->c, left, low, high);
    double at_right = least_on_edge(f->a, f->b, f->c, right, low, high);
    double at_low = least_on_edge(f->c, f->b, f->a, low, left, right);
    double at_high = least_on_edge(f->c, f->b, f->a, high, left, right);
    return fmin(fmin(at_left, at_right), fmin(at_low, at_high)) <= 1 + 1e-6;
}

struct box {
    int64_t left, right, low, high; /* tiles; right and high are not in it */
};

/* Tiles from m - reach to m + reach and one more on each side. */
static void span(double m, double reach, int64_t tile, int64_t count, int64_t *from, int64_t *to)
{
    double first = floor((m - reach) / (double)tile) - 1;
    double last = floor((m + reach) / (double)tile) + 2;

    *from = first > 0 ? first < (double)count ? (int64_t)first : count : 0;
    *to = last < (double)count ? last > 0 ? (int64_t)last : 0 : count;
}

/* A box that has all tiles the footprint meets. An ellipse so thin that its area is lost in
 * rounding may be anywhere. */
static struct box box_of(const struct splat_canvas *s, const struct splat_footprint *f)
{
    struct box b = {0, s->across, 0, s->down};
    double area = f->a * f->c - f->b * f->b;

    if (f->whole || !(area > 1e-9 * f->a * f->c))
        return b;
    span(f->mx, 1.0001 * sqrt(f->c / area), s->tile, s->across, &b.left, &b.right);
    span(f->my, 1.0001 * sqrt(f->a / area), s->tile, s->down, &b.low, &b.high);
    return b;
}

static void count_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct list_job *j = ctx;

    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const struct splat_footprint *f = &j->footprint[j->near[i].index];
        struct box b = box_of(j->s, f);
        int64_t met = 0;
        for (int64_t row = b.low; row < b.high; row++)
            for (int64_t column = b.left; column < b.right; column++)
                met += meets(j->s, f, column, row);
        j->first[i] = met;
    }
}

static void write_entries(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct list_job *j = ctx;

    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const struct splat_footprint *f = &j->footprint[j->near[i].index];
        struct box b = box_of(j->s, f);
        int64_t at = j->first[i], stop = cpu_min_i64(j->first[i + 1], j->s->most);
        for (int64_t row = b.low; row < b.high && at < stop; row++)
            for (int64_t column = b.left; column < b.right && at < stop; column++)
                if (meets(j->s, f, column, row))
                    j->entry[at++] = (struct entry){(int32_t)(row * j->s->across + column),
                                                    (int32_t)j->near[i].index};
    }
}

/* ---- the list ------------------------------------------------------------------------------- */

/* A distance is not negative, so its bits are in the order of its value. */
static void take_valid(struct list_job *j, const float *valid, const double *distance)
{
    j->valid = 0;
    for (int64_t i = 0; i < j->s->count; i++)
        if (valid[i] != 0) {
            uint64_t key;
            memcpy(&key, &distance[i], sizeof key);
            j->near[j->valid++] = (struct order_pair){key, i};
        }
    order_sort_pairs(j->near, j->spare, j->valid);
}

/* Counts become places; returns how many entries there are room for. */
static int64_t add_up(struct list_job *j)
{
    int64_t sum = 0;

    for (int64_t i = 0; i < j->valid; i++) {
        int64_t count = j->first[i];
        j->first[i] = sum;
        sum += count;
    }
    j->first[j->valid] = sum;
    return cpu_min_i64(sum, j->s->most);
}

static void distribute(const struct list_job *j, int64_t entries, const struct splat_scene *to)
{
    const struct splat_canvas *s = j->s;
    int64_t at = 0;

    memset(j->next, 0, (size_t)s->tiles * sizeof *j->next);
    for (int64_t i = 0; i < entries; i++)
        j->next[j->entry[i].tile]++;
    for (int64_t tile = 0; tile < s->tiles; tile++) {
        int32_t here = j->next[tile];
        j->next[tile] = (int32_t)at;
        to->range[2 * tile] = here ? (float)at : 4294967296.0f;
        to->range[2 * tile + 1] = here ? (float)(at + here) : 0;
        at += here;
    }
    for (int64_t i = 0; i < entries; i++)
        to->list[j->next[j->entry[i].tile]++] = (float)j->entry[i].splat;
    memset(to->list + entries, 0, (size_t)(s->list - entries) * sizeof *to->list);
}

void splat_list(struct pool *pool, const struct splat_canvas *s,
                const struct splat_footprint *footprint, const double *distance, void *room,
                const struct splat_scene *to)
{
    struct list_job j = {.s = s, .footprint = footprint};

    carve(s, room, &j);
    take_valid(&j, to->valid, distance);
    cpu_for(pool, j.valid, 64, count_tiles, &j);
    int64_t entries = add_up(&j);
    cpu_for(pool, j.valid, 64, write_entries, &j);
    distribute(&j, entries, to);
}
