/* machine.c: from one configuration to the next, by a byte. */
#include "grammar/machine.h"

#include <stdlib.h>
#include <string.h>

/* ---- what was seen in this step ---------------------------------------------------------- */

static size_t spread(uint32_t node, uint32_t frame)
{
    return (size_t)((((uint64_t)node << 32 | frame) * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

static struct gram_seen *slot_of(const struct gram_machine *m, uint32_t node, uint32_t frame)
{
    size_t i = spread(node, frame) & (m->seen_cap - 1);

    while (m->seen[i].round == m->round && (m->seen[i].node != node || m->seen[i].frame != frame))
        i = (i + 1) & (m->seen_cap - 1);
    return &m->seen[i];
}

static bool grow_seen(struct gram_machine *m)
{
    const size_t cap = m->seen_cap ? m->seen_cap * 2 : 64, old_cap = m->seen_cap;
    struct gram_seen *old = m->seen, *fresh = mem_alloc(m->mem, cap * sizeof *fresh);

    if (!fresh)
        return false;
    m->seen = fresh;
    m->seen_cap = cap;
    for (size_t i = 0; i < old_cap; i++)
        if (old[i].round == m->round)
            *slot_of(m, old[i].node, old[i].frame) = old[i];
    mem_free(m->mem, old, old_cap * sizeof *old);
    return true;
}

/* Goes on from that node, too, unless it did already. */
static rlx_status visit(struct gram_machine *m, uint32_t node, uint32_t frame, struct diag *d)
{
    if (m->seen_len * 2 >= m->seen_cap && !grow_seen(m))
        return diag_no_memory(d, m->seen_cap * sizeof *m->seen);
    struct gram_seen *s = slot_of(m, node, frame);
    if (s->round == m->round)
        return RLX_OK;
    *s = (struct gram_seen){node, frame, m->round};
    if (++m->seen_len > GRAM_MOST_WAYS)
        return diag_fail(d, RLX_ERROR_LIMIT,
                         "the grammar is too ambiguous: a text can be read in more than %d ways",
                         GRAM_MOST_WAYS);
    if (!vec_room(m->mem, &m->work))
        return diag_no_memory(d, sizeof *m->work.at);
    m->work.at[m->work.len++] = (struct gram_place){node, frame};
    return RLX_OK;
}

static void begin_round(struct gram_machine *m)
{
    m->work.len = m->next.len = m->seen_len = 0;
    m->may_end = false;
    if (++m->round == 0) { /* after 2^32 of them */
        memset(m->seen, 0, m->seen_cap * sizeof *m->seen);
        m->round = 1;
    }
}

/* ---- one step ---------------------------------------------------------------------------- */

static rlx_status add_thread(struct gram_machine *m, uint32_t at, uint32_t state, uint32_t frame,
                             struct diag *d)
{
    if (!vec_room(m->mem, &m->next))
        return diag_no_memory(d, sizeof *m->next.at);
    m->next.at[m->next.len++] = (struct gram_thread){at, state, frame};
    return RLX_OK;
}

static rlx_status call(struct gram_machine *m, const struct gram_node *n, uint32_t frame,
                       struct diag *d)
{
    /* The last call of a rule needs no frame: what it called ends where the rule does. */
    if (n->b != GRAM_NODE_END)
        TRY(gram_store_frame(&m->store, m->mem, n->b, frame, &frame, d));
    return visit(m, m->grammar->rule.at[n->a].start, frame, d);
}

static rlx_status go_on(struct gram_machine *m, struct gram_place p, struct diag *d)
{
    const struct gram_node *n = &m->grammar->node.at[p.node];

    switch ((enum gram_op)n->op) {
    case GRAM_CHAR: return add_thread(m, p.node, n->a, p.frame, d);
    case GRAM_CALL: return call(m, n, p.frame, d);
    case GRAM_SPLIT: TRY(visit(m, n->a, p.frame, d)); return visit(m, n->b, p.frame, d);
    case GRAM_END: break;
    }
    if (p.frame != GRAM_BOTTOM) {
        const struct gram_frame f = m->store.frame.at[p.frame];
        return visit(m, f.node, f.parent, d);
    }
    m->may_end = true;
    return RLX_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct gram_thread *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    if (x->state != y->state)
        return x->state < y->state ? -1 : 1;
    return x->frame < y->frame ? -1 : x->frame > y->frame;
}

/* All that is left to visit, and the configuration that it makes. */
static rlx_status finish_round(struct gram_machine *m, uint32_t *out, struct diag *d)
{
    while (m->work.len) {
        if (++m->steps > GRAM_MOST_STEPS)
            return diag_fail(d, RLX_ERROR_LIMIT,
                             "the grammar is too ambiguous: following it took more than %d steps",
                             GRAM_MOST_STEPS);
        TRY(go_on(m, m->work.at[--m->work.len], d));
    }
    if (m->next.len > 1)
        qsort(m->next.at, m->next.len, sizeof *m->next.at, by_place);
    return gram_store_config(&m->store, m->mem, m->next.at, m->next.len, m->may_end, out, d);
}

static rlx_status compute(struct gram_machine *m, uint32_t config, uint8_t byte, uint32_t *out,
                          struct diag *d)
{
    const struct gram_config c = m->store.config.at[config];

    begin_round(m);
    for (uint32_t i = 0; i < c.count; i++) {
        const struct gram_thread t = m->store.thread.at[c.first + i];
        uint32_t next;
        m->steps++;
        if (!gram_next_byte(m->grammar, t.state, byte, &next))
            continue;
        if (next == GRAM_WHOLE)
            TRY(visit(m, m->grammar->node.at[t.at].b, t.frame, d));
        else
            TRY(add_thread(m, t.at, next, t.frame, d));
    }
    return finish_round(m, out, d);
}

static rlx_status add_row(struct gram_machine *m, uint32_t config, struct diag *d)
{
    const uint32_t classes = m->grammar->classes;

    if (!vec_room_for(m->mem, &m->store.row, classes))
        return diag_no_memory(d, classes * sizeof(uint32_t));
    memset(&m->store.row.at[m->store.row.len], 0xff, classes * sizeof(uint32_t));
    m->store.config.at[config].row = (uint32_t)m->store.row.len;
    m->store.row.len += classes;
    return RLX_OK;
}

rlx_status gram_step(struct gram_machine *m, size_t from, uint8_t byte, struct diag *d)
{
    const uint32_t class = m->grammar->class_of[byte];

    TRY(gram_forget(m, d));
    const uint32_t config = m->path.at[from];
    if (m->store.config.at[config].row == GRAM_NOTHING)
        TRY(add_row(m, config, d));
    const size_t cell = m->store.config.at[config].row + class;
    uint32_t to = m->store.row.at[cell];
    if (to == GRAM_NOTHING) {
        TRY(compute(m, config, byte, &to, d));
        m->store.row.at[cell] = to;
    }
    m->path.at[from + 1] = to;
    return RLX_OK;
}

rlx_status gram_begin(struct gram_machine *m, struct diag *d)
{
    begin_round(m);
    TRY(visit(m, m->grammar->rule.at[m->grammar->root].start, GRAM_BOTTOM, d));
    return finish_round(m, &m->path.at[0], d);
}

/* ---- made and freed ---------------------------------------------------------------------- */

static rlx_status build(struct gram_machine *m, struct diag *d)
{
    const size_t depth = (m->tokens ? m->tokens->depth : 0) + 2;
    uint32_t first;

    if (!vec_room_for(m->mem, &m->path, depth))
        return diag_no_memory(d, depth * sizeof first);
    memset(m->path.at, 0, depth * sizeof first);
    TRY(gram_store_frame(&m->store, m->mem, GRAM_NODE_END, 0, &first, d)); /* GRAM_BOTTOM */
    TRY(gram_store_config(&m->store, m->mem, NULL, 0, false, &first, d));  /* GRAM_DEAD */
    m->path.len = depth;
    return RLX_OK;
}

rlx_status gram_machine_create(struct rlx_grammar *g, const struct tok_prefixes *tokens,
                               const rlx_allocator *mem, struct gram_machine **out, struct diag *d)
{
    struct gram_machine *m = mem_alloc(mem, sizeof *m);

    if (!m)
        return diag_no_memory(d, sizeof *m);
    m->mem = mem;
    m->grammar = gram_retain(g);
    m->tokens = tokens;
    pthread_mutex_init(&m->lock, NULL);
    gram_store_init(&m->store, mem);
    rlx_status s = build(m, d);
    if (s != RLX_OK)
        gram_machine_free(m);
    else
        *out = m;
    return s;
}

void gram_machine_free(struct gram_machine *m)
{
    const size_t words = m->tokens ? (m->tokens->vocab + 31) / 32 : 0;

    for (size_t i = 0; i < m->mask.len; i++)
        mem_free(m->mem, m->mask.at[i].bits, words * sizeof(uint32_t));
    vec_free(m->mem, &m->mask);
    vec_free(m->mem, &m->path);
    vec_free(m->mem, &m->work);
    vec_free(m->mem, &m->next);
    mem_free(m->mem, m->seen, m->seen_cap * sizeof *m->seen);
    gram_store_free(&m->store, m->mem);
    gram_release(m->grammar);
    pthread_mutex_destroy(&m->lock);
    mem_free(m->mem, m, sizeof *m);
}
