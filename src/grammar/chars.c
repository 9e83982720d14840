/* chars.c: sets of characters, and the states that their bytes lead through. Equal states are the
 * same one, so all classes of a grammar share what they can. */
#include <stdlib.h>
#include <string.h>

#include "grammar/program.h"

/* ---- sets -------------------------------------------------------------------------------- */

bool gram_chars_add(struct gram_chars *c, uint32_t lo, uint32_t hi)
{
    if (!vec_room(c->mem, &c->range))
        return false;
    c->range.at[c->range.len++] = (struct gram_range){lo, hi};
    return true;
}

static int by_start(const void *a, const void *b)
{
    const struct gram_range *x = a, *y = b;

    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static void merge(struct gram_chars *c)
{
    struct gram_range *r = c->range.at;
    size_t to = 0;

    if (c->range.len)
        qsort(r, c->range.len, sizeof *r, by_start);
    for (size_t i = 0; i < c->range.len; i++) {
        if (to && r[i].lo <= r[to - 1].hi + 1) {
            if (r[i].hi > r[to - 1].hi)
                r[to - 1].hi = r[i].hi;
        } else
            r[to++] = r[i];
    }
    c->range.len = to;
}

/* Of merged ranges; room for one more is there. */
static void complement(struct gram_chars *c)
{
    uint32_t from = 0;
    size_t to = 0;

    for (size_t i = 0; i < c->range.len; i++) {
        struct gram_range r = c->range.at[i];
        if (r.lo > from)
            c->range.at[to++] = (struct gram_range){from, r.lo - 1};
        from = r.hi + 1;
    }
    if (from <= GRAM_LAST_CHAR)
        c->range.at[to++] = (struct gram_range){from, GRAM_LAST_CHAR};
    c->range.len = to;
}

bool gram_chars_finish(struct gram_chars *c, bool negate)
{
    /* Surrogates are put into what is left out. */
    merge(c);
    if (!vec_room_for(c->mem, &c->range, 3))
        return false;
    if (!negate)
        complement(c);
    c->range.at[c->range.len++] = (struct gram_range){0xd800, 0xdfff};
    merge(c);
    complement(c);
    return true;
}

/* ---- byte states ------------------------------------------------------------------------- */

struct wanted {
    const struct gram_bytes *at;
    size_t count;
};

static bool same_state(const void *owner, uint32_t i, const void *key)
{
    const struct rlx_grammar *g = owner;
    const struct wanted *w = key;
    const struct gram_byte_state *s = &g->byte_state.at[i];

    return s->count == w->count &&
           memcmp(&g->bytes.at[s->first], w->at, w->count * sizeof *w->at) == 0;
}

/* The state with those bytes. */
static rlx_status intern(struct rlx_grammar *g, const struct gram_bytes *at, size_t count,
                         uint32_t *state, struct diag *d)
{
    const struct wanted w = {at, count};
    const uint64_t hash = hash_bytes(at, count * sizeof *at);

    if (map_find(&g->by_bytes, hash, same_state, g, &w, state))
        return RLX_OK;
    if (g->byte_state.len >= GRAM_MOST_BYTE_STATES)
        return diag_fail(d, RLX_ERROR_LIMIT, "the grammar's classes of characters are too many");
    *state = (uint32_t)g->byte_state.len;
    if (!vec_room(g->mem, &g->byte_state) || !vec_room_for(g->mem, &g->bytes, count) ||
        !map_add(&g->by_bytes, hash, *state))
        return diag_no_memory(d, count * sizeof *at);
    g->byte_state.at[g->byte_state.len++] =
        (struct gram_byte_state){(uint32_t)g->bytes.len, (uint32_t)count};
    memcpy(&g->bytes.at[g->bytes.len], at, count * sizeof *at);
    g->bytes.len += count;
    return RLX_OK;
}

/* A state under construction: bytes rise. */
struct making {
    struct rlx_grammar *g;
    const struct gram_chars *chars;
    uint32_t least; /* character of so many bytes in all */
    struct diag *d;
};
struct state_bytes {
    struct gram_bytes at[256];
    size_t count;
};

static void put(struct state_bytes *s, uint32_t lo, uint32_t hi, uint32_t next)
{
    struct gram_bytes *last = s->count ? &s->at[s->count - 1] : NULL;

    if (last && last->hi + 1 == lo && last->next == next)
        last->hi = hi;
    else
        s->at[s->count++] = (struct gram_bytes){lo, hi, next};
}

/* The first range that does not end before c; may be one past the last. */
static size_t find_range(const struct gram_chars *chars, uint32_t c)
{
    size_t lo = 0, hi = chars->range.len;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (chars->range.at[mid].hi < c)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Any `more` bytes that go on a character. */
static rlx_status any_bytes(struct making *m, unsigned more, uint32_t *state)
{
    struct gram_bytes b = {0x80, 0xbf, GRAM_WHOLE};

    *state = GRAM_WHOLE;
    for (unsigned i = 0; i < more; i++, b.next = *state)
        TRY(intern(m->g, &b, 1, state, m->d));
    return RLX_OK;
}

/* The state in which `more` bytes are to come of a character in [base, base + 64^more); *none:
 * there is no such character in the set. */
static rlx_status rest(struct making *m, uint32_t base, unsigned more, uint32_t *state, bool *none)
{
    const uint32_t last = base + (UINT32_C(1) << (6 * more)) - 1;
    const uint32_t from = base > m->least ? base : m->least;
    const size_t i = find_range(m->chars, from);
    struct state_bytes s;

    *none = from > last || i == m->chars->range.len || m->chars->range.at[i].lo > last;
    if (*none)
        return RLX_OK;
    const struct gram_range r = m->chars->range.at[i];
    if (more == 0 || (from == base && r.lo <= base && r.hi >= last))
        return any_bytes(m, more, state);
    s.count = 0;
    for (uint32_t v = 0; v < 64; v++) {
        uint32_t next;
        bool nothing;
        TRY(rest(m, base + (v << (6 * (more - 1))), more - 1, &next, &nothing));
        if (!nothing)
            put(&s, 0x80 + v, 0x80 + v, next);
    }
    return intern(m->g, s.at, s.count, state, m->d);
}

rlx_status gram_chars_state(struct rlx_grammar *g, const struct gram_chars *c, uint32_t *state,
                            struct diag *d)
{
    static const struct {
        uint32_t least, lead, leads;
    } by_length[] = {{0x80, 0xc0, 32}, {0x800, 0xe0, 16}, {0x10000, 0xf0, 5}};
    struct making m = {.g = g, .chars = c, .d = d};
    struct state_bytes s = {.count = 0};

    for (size_t i = 0; i < c->range.len && c->range.at[i].lo < 0x80; i++)
        put(&s, c->range.at[i].lo, c->range.at[i].hi < 0x80 ? c->range.at[i].hi : 0x7f, GRAM_WHOLE);
    for (unsigned k = 0; k < 3; k++) {
        m.least = by_length[k].least;
        for (uint32_t v = 0; v < by_length[k].leads; v++) {
            uint32_t next;
            bool none;
            TRY(rest(&m, v << (6 * (k + 1)), k + 1, &next, &none));
            if (!none)
                put(&s, by_length[k].lead + v, by_length[k].lead + v, next);
        }
    }
    return intern(g, s.at, s.count, state, d);
}

void gram_byte_classes(struct rlx_grammar *g)
{
    bool begins[257] = {false};

    for (size_t i = 0; i < g->bytes.len; i++)
        begins[g->bytes.at[i].lo] = begins[g->bytes.at[i].hi + 1] = true;
    g->classes = 0;
    for (unsigned b = 0; b < 256; b++) {
        g->classes += b && begins[b];
        g->class_of[b] = (uint8_t)g->classes;
    }
    g->classes++;
}

bool gram_next_byte(const struct rlx_grammar *g, uint32_t state, uint8_t byte, uint32_t *next)
{
    const struct gram_byte_state *s = &g->byte_state.at[state];

    for (uint32_t i = 0; i < s->count; i++) {
        const struct gram_bytes *b = &g->bytes.at[s->first + i];
        if (byte <= b->hi) {
            *next = b->next;
            return byte >= b->lo;
        }
    }
    return false;
}
