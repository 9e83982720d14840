/* mask.c: which tokens may come: a walk over the tree of their bytes, which leaves out what lies
 * below a byte that may not. Masks are kept for the configurations that were asked for last. */
#include "grammar/machine.h"

#include <string.h>

/* The walk. Where a row says what a byte leads to, that is all it takes. */
static rlx_status walk(struct gram_machine *m, struct gram_mask *mask, struct diag *d)
{
    const struct tok_prefixes *p = m->tokens;
    const uint8_t *class_of = m->grammar->class_of;
    uint32_t *path = m->path.at;

    for (uint32_t i = 0; i < p->nodes;) {
        const struct tok_prefix n = p->node[i];
        const uint32_t row = m->store.config.at[path[n.depth - 1]].row;
        uint32_t to = row == GRAM_NOTHING ? GRAM_NOTHING : m->store.row.at[row + class_of[n.byte]];
        if (to == GRAM_NOTHING) {
            TRY(gram_step(m, n.depth - 1, (uint8_t)n.byte, d));
            to = path[n.depth];
        }
        path[n.depth] = to;
        if (to == GRAM_DEAD) {
            i += n.skip;
            continue;
        }
        if (n.token != TOK_NO_TOKEN) {
            mask->bits[n.token / 32] |= UINT32_C(1) << n.token % 32;
            mask->any = true;
        }
        i++;
    }
    for (size_t i = 0; i < p->same.len; i++) {
        const struct tok_same s = p->same.at[i];
        mask->bits[s.token / 32] |= (mask->bits[s.first / 32] >> s.first % 32 & 1) << s.token % 32;
    }
    return RLX_OK;
}

/* A slot to write to: a new one while there may be more, then the oldest. */
static rlx_status take_slot(struct gram_machine *m, uint32_t *out, struct diag *d)
{
    const size_t words = (m->tokens->vocab + 31) / 32, bytes = words * sizeof(uint32_t);
    const size_t most = GRAM_MOST_MASKS / (bytes + 1) + 8;

    if (m->mask.len < most) {
        struct gram_mask mask = {.config = GRAM_NOTHING};
        if (!vec_room(m->mem, &m->mask) || !(mask.bits = mem_alloc(m->mem, bytes)))
            return diag_no_memory(d, bytes);
        m->next_mask = m->mask.len;
        m->mask.at[m->mask.len++] = mask;
    }
    m->next_mask %= m->mask.len;
    struct gram_mask *mask = &m->mask.at[m->next_mask];
    if (mask->config != GRAM_NOTHING)
        m->store.config.at[mask->config].mask = GRAM_NOTHING;
    mask->config = GRAM_NOTHING;
    mask->any = false;
    memset(mask->bits, 0, bytes);
    *out = (uint32_t)m->next_mask++;
    return RLX_OK;
}

rlx_status gram_find_mask(struct gram_machine *m, const struct gram_mask **out, struct diag *d)
{
    uint32_t slot = m->store.config.at[m->path.at[0]].mask;

    if (slot == GRAM_NOTHING) {
        TRY(take_slot(m, &slot, d));
        TRY(walk(m, &m->mask.at[slot], d));
        m->mask.at[slot].config = m->path.at[0];
        m->store.config.at[m->path.at[0]].mask = slot;
    }
    *out = &m->mask.at[slot];
    return RLX_OK;
}
