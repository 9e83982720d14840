/* text_layout.c: the layered drawing of a graph, in four steps.
 *
 *  1. Layers: the longest way from the top. Boxes that float sink to just above their first reader.
 *  2. Points: an arc that passes layers gets a point in each of them, one chain per source, so that
 *     everything that follows deals with neighbouring layers only.
 *  3. Order: each layer is sorted by the mean place of its neighbours above, then below, a few
 * times; the order with the fewest crossings is kept.
 *  4. Places: as near to the mean of the neighbours as order and widths allow, which is a least
 *     squares problem with one exact solution per layer. */
#include "ir/text/text_layout.h"

#include <math.h>
#include <string.h>

enum { SWEEPS = 12, SHIFTS = 24, SETTLING = 8, MAX_POINTS = 1 << 18 };
static const double GAP = 22, POINT_GAP = 12, LAYER_GAP = 40, MARGIN = 24;
static const double PORT_GAP = 26, CORNER = 14; /* where arrows meet a box */
static const double HOLD = 0.96; /* of its way from the middle a box may keep in each layer */

struct vertex {
    int32_t layer, order;                 /* order: its place in the layer */
    int32_t above, aboves, below, belows; /* neighbours: first in paper.near, how many */
    double width, x, mean;
};

struct link {
    int32_t from, to; /* in neighbouring layers, unless there were too many points */
};

/* What the steps work on. Vertices: first the boxes, then the points. */
struct paper {
    struct layout *l;
    struct arena *arena;
    struct vertex *v;
    size_t vertices;
    struct link *link;
    size_t links;
    int32_t *near; /* neighbours of all vertices */
    int32_t layers;
    int32_t *first; /* of layer i in `row`; first[layers] is the end */
    int32_t *row;   /* vertices by layer, then in order */
    int32_t *best;
    int32_t *tree; /* counts for crossings */
};

static rlx_status no_room(struct diag *d, size_t bytes)
{
    return diag_no_memory(d, bytes);
}

/* ---- 1: layers ----------------------------------------------------------------------------- */

static void find_layers(struct layout *l)
{
    for (size_t i = 0; i < l->boxes; i++)
        l->box[i].layer = 0;
    for (size_t i = 0; i < l->arcs; i++) { /* arcs come by target, so sources are settled */
        const struct layout_arc *a = &l->arc[i];
        int32_t at = l->box[a->from].layer + 1;
        if (l->box[a->to].layer < at)
            l->box[a->to].layer = at;
    }
    for (size_t i = l->boxes; i-- > 0;) {
        if (l->box[i].floats)
            l->box[i].layer = INT32_MAX;
    }
    for (size_t i = l->arcs; i-- > 0;) {
        const struct layout_arc *a = &l->arc[i];
        struct layout_box *from = &l->box[a->from];
        if (from->floats && l->box[a->to].layer - 1 < from->layer)
            from->layer = l->box[a->to].layer - 1;
    }
    for (size_t i = 0; i < l->boxes; i++) {
        if (l->box[i].layer == INT32_MAX) /* nobody reads it */
            l->box[i].layer = 0;
    }
}

/* ---- 2: points ----------------------------------------------------------------------------- */

/* How far down each box is read. */
static void find_reach(const struct layout *l, int32_t *reach)
{
    for (size_t i = 0; i < l->boxes; i++)
        reach[i] = l->box[i].layer + 1;
    for (size_t i = 0; i < l->arcs; i++) {
        const struct layout_arc *a = &l->arc[i];
        if (l->box[a->to].layer > reach[a->from])
            reach[a->from] = l->box[a->to].layer;
    }
}

/* chain[i]: the first point of box i, which has reach[i] - layer - 1 of them. */
static rlx_status make_vertices(struct paper *p, int32_t *reach, int32_t *chain, struct diag *d)
{
    struct layout *l = p->l;
    size_t points = 0;

    for (size_t i = 0; i < l->boxes; i++)
        points += (size_t)(reach[i] - l->box[i].layer - 1);
    if (points > MAX_POINTS) { /* then arcs go straight, across whatever is there */
        for (size_t i = 0; i < l->boxes; i++)
            reach[i] = l->box[i].layer + 1;
        points = 0;
    }
    p->vertices = l->boxes + points;
    p->v = arena_array(p->arena, struct vertex, p->vertices);
    p->link = arena_array(p->arena, struct link, points + l->arcs);
    if (!p->v || !p->link)
        return no_room(d, p->vertices * sizeof *p->v);
    int32_t next = (int32_t)l->boxes;
    for (size_t i = 0; i < l->boxes; i++) {
        p->v[i] = (struct vertex){.layer = l->box[i].layer, .width = l->box[i].width};
        p->layers = p->v[i].layer >= p->layers ? p->v[i].layer + 1 : p->layers;
        chain[i] = next;
        int32_t before = (int32_t)i;
        for (int32_t layer = l->box[i].layer + 1; layer < reach[i]; layer++) {
            p->v[next] = (struct vertex){.layer = layer};
            p->link[p->links++] = (struct link){before, next};
            before = next++;
        }
    }
    return RLX_OK;
}

/* An arc is now the last link of its source's chain. */
static void add_arcs(struct paper *p, const int32_t *reach, const int32_t *chain)
{
    const struct layout *l = p->l;

    for (size_t i = 0; i < l->arcs; i++) {
        const struct layout_arc *a = &l->arc[i];
        int32_t passed = l->box[a->to].layer - l->box[a->from].layer - 1;
        int32_t points = reach[a->from] - l->box[a->from].layer - 1;
        bool straight = passed == 0 || points == 0;
        p->link[p->links++] =
            (struct link){straight ? a->from : chain[a->from] + passed - 1, a->to};
    }
}

static rlx_status find_neighbours(struct paper *p, struct diag *d)
{
    int32_t next = 0;

    p->near = arena_array(p->arena, int32_t, 2 * p->links);
    if (!p->near)
        return no_room(d, 2 * p->links * sizeof *p->near);
    for (size_t i = 0; i < p->links; i++) {
        p->v[p->link[i].from].belows++;
        p->v[p->link[i].to].aboves++;
    }
    for (size_t i = 0; i < p->vertices; i++) {
        struct vertex *v = &p->v[i];
        v->above = next;
        v->below = next + v->aboves;
        next = v->below + v->belows;
        v->aboves = v->belows = 0;
    }
    for (size_t i = 0; i < p->links; i++) {
        struct vertex *from = &p->v[p->link[i].from], *to = &p->v[p->link[i].to];
        p->near[from->below + from->belows++] = p->link[i].to;
        p->near[to->above + to->aboves++] = p->link[i].from;
    }
    return RLX_OK;
}

static rlx_status make_rows(struct paper *p, struct diag *d)
{
    p->first = arena_array(p->arena, int32_t, (size_t)p->layers + 1);
    p->row = arena_array(p->arena, int32_t, p->vertices);
    p->best = arena_array(p->arena, int32_t, p->vertices);
    p->tree = arena_array(p->arena, int32_t, p->vertices + 1);
    if (!p->first || !p->row || !p->best || !p->tree)
        return no_room(d, p->vertices * sizeof *p->row);
    for (size_t i = 0; i < p->vertices; i++)
        p->first[p->v[i].layer + 1]++;
    for (int32_t i = 0; i < p->layers; i++)
        p->first[i + 1] += p->first[i];
    for (size_t i = p->vertices;
         i-- > 0;) { /* by number within a layer: boxes as they were given */
        int32_t layer = p->v[i].layer;
        p->v[i].order = 0;
        p->row[--p->first[layer + 1]] = (int32_t)i;
    }
    /* Each entry now begins the layer before its own; move them back. */
    memmove(p->first, p->first + 1, (size_t)p->layers * sizeof *p->first);
    p->first[p->layers] = (int32_t)p->vertices;
    return RLX_OK;
}

/* ---- 3: order ------------------------------------------------------------------------------ */

static void number_row(struct paper *p, int32_t layer)
{
    for (int32_t i = p->first[layer]; i < p->first[layer + 1]; i++)
        p->v[p->row[i]].order = i - p->first[layer];
}

/* Stable, and quick on rows that are nearly sorted: merge runs bottom up through p->tree. */
static void sort_row(struct paper *p, int32_t *row, int32_t *spare, int32_t count)
{
    for (int32_t width = 1; width < count; width *= 2) {
        for (int32_t begin = 0; begin < count; begin += 2 * width) {
            int32_t middle = begin + width < count ? begin + width : count;
            int32_t end = begin + 2 * width < count ? begin + 2 * width : count;
            int32_t a = begin, b = middle;
            for (int32_t i = begin; i < end; i++) {
                bool left = b == end || (a < middle && p->v[row[a]].mean <= p->v[row[b]].mean);
                spare[i] = left ? row[a++] : row[b++];
            }
        }
        memcpy(row, spare, (size_t)count * sizeof *row);
    }
}

static void sweep_row(struct paper *p, int32_t layer, bool down)
{
    int32_t *row = p->row + p->first[layer], count = p->first[layer + 1] - p->first[layer];

    for (int32_t i = 0; i < count; i++) {
        struct vertex *v = &p->v[row[i]];
        int32_t n = down ? v->aboves : v->belows;
        const int32_t *near = p->near + (down ? v->above : v->below);
        double sum = 0;
        for (int32_t k = 0; k < n; k++)
            sum += p->v[near[k]].order;
        v->mean = n ? sum / n : v->order; /* whoever has none stays about where it was */
    }
    sort_row(p, row, p->tree, count);
    number_row(p, layer);
}

/* Crossings of the links above a layer: each link meets those that came before it from further
 * right and end further left. The tree sums prefixes. */
static int64_t crossings_above(struct paper *p, int32_t layer)
{
    int32_t width = p->first[layer] - p->first[layer - 1], total = 0;
    int64_t crossings = 0;

    memset(p->tree, 0, ((size_t)width + 1) * sizeof *p->tree);
    for (int32_t i = p->first[layer]; i < p->first[layer + 1]; i++) {
        const struct vertex *v = &p->v[p->row[i]];
        for (int32_t k = 0; k < v->aboves; k++) {
            const struct vertex *up = &p->v[p->near[v->above + k]];
            int32_t not_right = 0;
            if (up->layer != layer - 1)
                continue;
            for (int32_t at = up->order + 1; at > 0; at &= at - 1)
                not_right += p->tree[at];
            crossings += total - not_right;
        }
        for (int32_t k = 0; k < v->aboves; k++) {
            const struct vertex *up = &p->v[p->near[v->above + k]];
            if (up->layer != layer - 1)
                continue;
            for (int32_t at = up->order + 1; at <= width; at += at & -at)
                p->tree[at]++;
            total++;
        }
    }
    return crossings;
}

static int64_t crossings(struct paper *p)
{
    int64_t sum = 0;

    for (int32_t layer = 1; layer < p->layers; layer++)
        sum += crossings_above(p, layer);
    return sum;
}

static void find_order(struct paper *p)
{
    size_t bytes = p->vertices * sizeof *p->row;
    int64_t fewest;

    for (int32_t i = 0; i < p->layers; i++)
        number_row(p, i);
    fewest = crossings(p);
    memcpy(p->best, p->row, bytes);
    for (int sweep = 0; sweep < SWEEPS && fewest; sweep++) {
        bool down = sweep % 2 == 0;
        for (int32_t i = 1; i < p->layers; i++)
            sweep_row(p, down ? i : p->layers - 1 - i, down);
        int64_t now = crossings(p);
        if (now < fewest) {
            fewest = now;
            memcpy(p->best, p->row, bytes);
        }
    }
    memcpy(p->row, p->best, bytes);
    for (int32_t i = 0; i < p->layers; i++)
        number_row(p, i);
}

/* ---- 4: places ----------------------------------------------------------------------------- */

static double apart(const struct paper *p, int32_t a, int32_t b)
{
    bool boxes = (size_t)a < p->l->boxes && (size_t)b < p->l->boxes;

    return (p->v[a].width + p->v[b].width) / 2 + (boxes ? GAP : POINT_GAP);
}

/* Which neighbours a row is to follow. */
enum side { ABOVE = 1, BELOW = 2 };

/* Where a vertex would like to be, and how much it cares: points most, and they look at points
 * first, which keeps long lines straight. Boxes are drawn to the middle a little: a deep graph
 * whose blocks all lean to one side would become as wide as it is high. */
static double wanted_position(const struct paper *p, int32_t number, enum side side, double *weight)
{
    const struct vertex *v = &p->v[number];
    /* Those below stand after those above. */
    int32_t n = (side & ABOVE ? v->aboves : 0) + (side & BELOW ? v->belows : 0);
    const int32_t *near = p->near + (side & ABOVE ? v->above : v->below);
    double sum = 0, of_points = 0;
    int32_t points = 0;

    *weight = 0.1;
    if (n == 0)
        return v->x;
    for (int32_t k = 0; k < n; k++) {
        bool point = (size_t)near[k] >= p->l->boxes;
        sum += p->v[near[k]].x;
        of_points += point ? p->v[near[k]].x : 0;
        points += point;
    }
    if ((size_t)number < p->l->boxes) {
        *weight = n;
        return HOLD * sum / n;
    }
    *weight = 8;
    return points ? of_points / points : sum / n;
}

struct block {
    double sum, weight;
    int32_t count;
};

/* Least squares under x[i+1] - x[i] >= apart: less the room in front of them the x must not fall,
 * so neighbours that would are pooled at their common mean. */
static void place_row(struct paper *p, int32_t layer, enum side side, struct block *block)
{
    const int32_t *row = p->row + p->first[layer];
    int32_t count = p->first[layer + 1] - p->first[layer], blocks = 0;
    double room = 0;

    if (count == 1) { /* everything passes through it */
        p->v[row[0]].x = 0;
        return;
    }
    for (int32_t i = 0; i < count; i++) {
        double weight, x;
        room += i ? apart(p, row[i - 1], row[i]) : 0;
        x = wanted_position(p, row[i], side, &weight) - room;
        block[blocks++] = (struct block){x * weight, weight, 1};
        while (blocks > 1 && block[blocks - 2].sum * block[blocks - 1].weight >
                                 block[blocks - 1].sum * block[blocks - 2].weight) {
            block[blocks - 2].sum += block[blocks - 1].sum;
            block[blocks - 2].weight += block[blocks - 1].weight;
            block[blocks - 2].count += block[blocks - 1].count;
            blocks--;
        }
    }
    room = 0;
    for (int32_t i = 0, b = 0, left = block[0].count; i < count; i++, left--) {
        if (left == 0)
            left = block[++b].count;
        room += i ? apart(p, row[i - 1], row[i]) : 0;
        p->v[row[i]].x = block[b].sum / block[b].weight + room;
    }
}

static rlx_status find_places(struct paper *p, struct diag *d)
{
    struct block *block = arena_array(p->arena, struct block, p->vertices);
    double left = INFINITY, right = -INFINITY;

    if (!block)
        return no_room(d, p->vertices * sizeof *block);
    for (int32_t layer = 0; layer < p->layers; layer++) {
        double x = 0;
        for (int32_t i = p->first[layer]; i < p->first[layer + 1]; i++) {
            x += i > p->first[layer] ? apart(p, p->row[i - 1], p->row[i]) : 0;
            p->v[p->row[i]].x = x;
        }
        for (int32_t i = p->first[layer]; i < p->first[layer + 1]; i++)
            p->v[p->row[i]].x -= x / 2; /* around the middle */
    }
    for (int shift = 0; shift < SHIFTS; shift++) {
        bool down = shift % 2 == 0, settling = shift >= SHIFTS - SETTLING;
        enum side side = down ? ABOVE : BELOW;
        for (int32_t i = settling ? 0 : 1; i < p->layers; i++)
            place_row(p, down ? i : p->layers - 1 - i, settling ? ABOVE | BELOW : side, block);
    }
    for (size_t i = 0; i < p->vertices; i++) {
        left = fmin(left, p->v[i].x - p->v[i].width / 2);
        right = fmax(right, p->v[i].x + p->v[i].width / 2);
    }
    for (size_t i = 0; i < p->vertices; i++)
        p->v[i].x += MARGIN - left;
    p->l->width = right - left + 2 * MARGIN;
    return RLX_OK;
}

/* The lines that come down to a vertex, side by side where it is a box, in the order they come. */
static void write_lines(struct paper *p, int32_t to, const double *top, const double *height)
{
    struct layout *l = p->l;
    const struct vertex *v = &p->v[to];
    bool box = (size_t)to < l->boxes;
    int32_t *near = p->near + v->above;
    double gap = box && v->aboves ? fmin(PORT_GAP, (v->width - 2 * CORNER) / v->aboves) : 0;

    for (int32_t i = 0; i < v->aboves; i++)
        p->v[near[i]].mean = p->v[near[i]].x;
    sort_row(p, near, p->tree, v->aboves);
    for (int32_t i = 0; i < v->aboves; i++) {
        int32_t a = near[i], layer = p->v[a].layer;
        double begin =
            (size_t)a < l->boxes ? l->box[a].y + l->box[a].height : top[layer] + height[layer];
        l->line[l->lines++] =
            (struct layout_line){p->v[a].x, begin, v->x + (i - (v->aboves - 1) / 2.0) * gap,
                                 box ? l->box[to].y : top[v->layer], box};
    }
    if (!box) /* a point is as high as its layer */
        l->line[l->lines++] = (struct layout_line){v->x, top[v->layer], v->x,
                                                   top[v->layer] + height[v->layer], false};
}

/* Layers from top to bottom, each as high as its highest box. */
static rlx_status write_places(struct paper *p, struct diag *d)
{
    struct layout *l = p->l;
    double *top = arena_array(p->arena, double, (size_t)p->layers);
    double *height = arena_array(p->arena, double, (size_t)p->layers), y = MARGIN;

    l->line = arena_array(p->arena, struct layout_line, p->links + p->vertices);
    if (!top || !height || !l->line)
        return no_room(d, (size_t)p->layers * sizeof *top);
    for (size_t i = 0; i < l->boxes; i++)
        height[p->v[i].layer] = fmax(height[p->v[i].layer], l->box[i].height);
    for (int32_t i = 0; i < p->layers; i++) {
        top[i] = y;
        y += height[i] + LAYER_GAP;
    }
    l->height = y - LAYER_GAP + MARGIN;
    for (size_t i = 0; i < l->boxes; i++) {
        l->box[i].x = p->v[i].x;
        l->box[i].y = top[p->v[i].layer] + (height[p->v[i].layer] - l->box[i].height) / 2;
    }
    for (size_t i = 0; i < p->vertices; i++)
        write_lines(p, (int32_t)i, top, height);
    return RLX_OK;
}

rlx_status layout_place(struct layout *l, struct arena *arena, struct diag *d)
{
    struct paper p = {.l = l, .arena = arena};
    int32_t *reach = arena_array(arena, int32_t, l->boxes);
    int32_t *chain = arena_array(arena, int32_t, l->boxes);

    l->lines = 0;
    l->width = l->height = 2 * MARGIN;
    if (!reach || !chain)
        return no_room(d, l->boxes * sizeof *reach);
    if (l->boxes == 0)
        return RLX_OK;
    find_layers(l);
    find_reach(l, reach);
    TRY(make_vertices(&p, reach, chain, d));
    add_arcs(&p, reach, chain);
    TRY(find_neighbours(&p, d));
    TRY(make_rows(&p, d));
    find_order(&p);
    TRY(find_places(&p, d));
    return write_places(&p, d);
}
