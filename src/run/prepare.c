/* prepare.c: the kernels that a program with bounds may need at smaller sizes.
 *
 * Which kernel a step takes depends on its sizes: on their bits, on limits, on their product. Only
 * the lowering itself knows, so it is asked for all sizes that a run may have, once for steps that
 * are alike. Where dims are so many or so large that this would be too often, each is varied alone,
 * with the others at their bounds, and then all together. */
#include <string.h>

#include "base/map.h"
#include "run/prepare.h"

#define DENSE 512 /* sizes up to this are all looked at */
#define TILE 64   /* above that, some of the sizes */
#define MOST_ROWS 4096

int64_t prepare_next(int64_t v)
{
    static const int64_t some[] = {0, 1, 2, 4, 8, 16, 32, TILE - 1};
    int64_t tile = v / TILE * TILE, rest = v % TILE;
    size_t i = 0;

    if (v < DENSE)
        return v + 1;
    while (i < sizeof some / sizeof some[0] && some[i] <= rest)
        i++;
    return i < sizeof some / sizeof some[0] ? tile + some[i] : tile + TILE;
}

/* ---- steps that are alike ---- */

static uint64_t hash_type(uint64_t h, const struct ir_type *t)
{
    h = hash_mix(h, (uint64_t)t->dtype << 32 | (uint32_t)t->rank);
    for (int32_t i = 0; i < t->rank; i++)
        h = hash_mix(h, (uint64_t)t->dim[i]);
    return h;
}

/* How an operand lies: at the start of its slot or not, and over which others. */
static uint64_t hash_places(uint64_t h, const struct steps *s, const struct step *st,
                            const struct ir_graph *symbolic)
{
    for (uint32_t i = 0; i < st->count; i++) {
        const struct value *v = &s->value[s->operand[st->first + i].value];
        const struct value *root = &s->value[v->root];
        h = hash_mix(h, s->operand[st->first + i].role);
        h = hash_mix(h, v->view_offset != 0);
        for (int32_t at = v->node; at >= 0 && s->value[at].root != at;
             at = ir_node(symbolic, at)->in[0])
            if (ir_node(symbolic, at)->op == RLX_OP_narrow)
                h = hash_mix(h, (uint64_t)ir_node(symbolic, at)->attr.narrow.start);
        for (uint32_t k = 0; k < i; k++) {
            const struct value *other = &s->value[s->operand[st->first + k].value];
            const struct value *place = &s->value[other->root];
            if (root->region == place->region && root->offset == place->offset)
                h = hash_mix(h, hash_mix(k, v->view_offset - other->view_offset));
        }
    }
    return h;
}

/* All that a lowering may look at, except for sizes. */
static uint64_t hash_step(const struct program *p, const struct step *st)
{
    const struct ir_graph *g = ir_entry(p->symbolic);
    const struct ir_node *n = ir_node(g, st->node);
    uint64_t h = hash_mix((uint64_t)n->op, attr_hash(n->op, &n->attr));

    h = hash_type(h, &n->type);
    for (int32_t i = 0; i < n->in_count; i++) {
        const struct ir_node *in = ir_node(g, n->in[i]);
        h = hash_type(h, &in->type);
        if (in->op == RLX_OP_const)
            h = hash_mix(h, attr_hash(in->op, &in->attr));
    }
    return hash_places(h, p->steps, st, g);
}

/* The steps to ask: of those that are alike, the first. */
static rlx_status find_steps(const struct program *p, struct arena *arena, uint32_t **out,
                             size_t *count, struct diag *d)
{
    size_t n = p->steps->step_count;
    uint64_t *seen = arena_array(arena, uint64_t, n);
    uint32_t *list = arena_array(arena, uint32_t, n);

    if (!seen || !list)
        return diag_no_memory(d, n * sizeof *seen);
    *count = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t h = hash_step(p, &p->steps->step[i]);
        size_t k = 0;
        while (k < *count && seen[k] != h)
            k++;
        if (k < *count)
            continue;
        seen[*count] = h;
        list[(*count)++] = (uint32_t)i;
    }
    *out = list;
    return RLX_OK;
}

/* ---- one set of sizes ---- */

struct preparing {
    struct program *p;
    const struct size_probes *probes;
    uint32_t *step;
    size_t steps;
    int64_t *size; /* by symbol */
    struct diag *diag;
};

/* Whether the status is about the device rather than the sizes. */
static bool is_serious(rlx_status s)
{
    return s == RLX_ERROR_MEMORY || s == RLX_ERROR_DEVICE_LOST || s == RLX_ERROR_INTERNAL;
}

static rlx_status ask_step(const struct preparing *k, uint32_t i)
{
    struct program *p = k->p;
    const struct step *st = &p->steps->step[i];
    struct diag quiet;

    for (uint32_t o = st->first; o < st->first + st->count; o++)
        p->span[o] = program_span(p, p->steps->operand[o].value);
    diag_init(&quiet, "prepare");
    rlx_status s = p->backend->ops->prepare(p->backend, &p->command[i], &quiet);
    return is_serious(s) ? diag_fail(k->diag, s, "%s", quiet.first.message) : RLX_OK;
}

static rlx_status ask(const struct preparing *k)
{
    struct program *p = k->p;
    struct diag quiet;

    diag_init(&quiet, "prepare");
    if (ir_check_sizes(p->symbolic, k->size, p->symbol_count, &quiet) != RLX_OK ||
        ir_resize(p->symbolic, p->mod, k->size, p->symbol_count, &quiet) != RLX_OK ||
        lower_resize(ir_entry(p->mod), p->steps, &quiet) != RLX_OK)
        return RLX_OK; /* no run can have them */
    for (size_t i = 0; i < k->steps; i++)
        TRY(ask_step(k, k->step[i]));
    return RLX_OK;
}

/* ---- all of them ---- */

/* How many these are, or some number above the limit. */
static int64_t rows_of(int64_t upper)
{
    int64_t n = 1;

    for (int64_t v = 0; v < upper && n <= MOST_ROWS; v = prepare_next(v))
        n++;
    return n;
}

static int64_t product_of_rows(const struct size_probes *b)
{
    int64_t rows = 1;

    for (size_t i = 0; i < b->symbol_count && rows <= MOST_ROWS; i++)
        if (b->varies[i])
            rows *= rows_of(b->upper[i]);
    return rows;
}

/* The next of all combinations; false: there are no more. */
static bool next_row(const struct preparing *k)
{
    const struct size_probes *b = k->probes;

    for (size_t i = 0; i < b->symbol_count; i++) {
        if (!b->varies[i])
            continue;
        if (k->size[i] < b->upper[i]) {
            int64_t next = prepare_next(k->size[i]);
            k->size[i] = next < b->upper[i] ? next : b->upper[i];
            return true;
        }
        k->size[i] = 0;
    }
    return false;
}

static rlx_status ask_all(const struct preparing *k)
{
    for (size_t i = 0; i < k->probes->symbol_count; i++)
        k->size[i] = k->probes->varies[i] ? 0 : k->probes->upper[i];
    do
        TRY(ask(k));
    while (next_row(k));
    return RLX_OK;
}

/* Each symbol alone. */
static rlx_status ask_each(const struct preparing *k)
{
    const struct size_probes *b = k->probes;

    for (size_t i = 0; i < b->symbol_count; i++) {
        int64_t asked = 0;
        memcpy(k->size, b->upper, b->symbol_count * sizeof *k->size);
        for (int64_t v = 0; b->varies[i] && v < b->upper[i] && asked < MOST_ROWS;
             v = prepare_next(v), asked++) {
            k->size[i] = v;
            TRY(ask(k));
        }
    }
    for (size_t i = 0; i < b->count; i++) {
        memcpy(k->size, b->size + i * b->symbol_count, b->symbol_count * sizeof *k->size);
        TRY(ask(k));
    }
    return RLX_OK;
}

rlx_status program_prepare(struct program *p, const struct size_probes *probes, struct diag *d)
{
    struct preparing k = {.p = p, .probes = probes, .diag = d};
    struct arena arena;

    if (!p->symbolic || !p->backend->ops->prepare)
        return RLX_OK;
    arena_init(&arena, p->mem);
    k.size = arena_array(&arena, int64_t, p->symbol_count);
    rlx_status s = k.size ? find_steps(p, &arena, &k.step, &k.steps, d)
                          : diag_no_memory(d, p->symbol_count * sizeof *k.size);
    if (s == RLX_OK)
        s = product_of_rows(probes) <= MOST_ROWS ? ask_all(&k) : ask_each(&k);
    arena_free(&arena);
    TRY(s);
    TRY(ir_resize(p->symbolic, p->mod, probes->upper, p->symbol_count, d)); /* as it was */
    return lower_resize(ir_entry(p->mod), p->steps, d);
}
