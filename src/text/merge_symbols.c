/* merge_symbols.c: merges the symbols of a word. Short words are searched for the best pair each
 * time; long ones keep candidates in a heap, so that a word of a million bytes takes no quadratic
 * time. */
#include "text/merge_symbols.h"

rlx_status merge_begin(struct tok_run *r, rlx_str word)
{
    if (word.len > INT32_MAX)
        return diag_fail(r->d, RLX_ERROR_LIMIT, "a word of %zu bytes", word.len);
    r->node.len = 0;
    return vec_room_for(r->t->mem, &r->node, word.len)
               ? RLX_OK
               : diag_no_memory(r->d, word.len * sizeof *r->node.at);
}

void merge_add(struct tok_run *r, uint32_t symbol, size_t at, size_t len)
{
    uint32_t n = (uint32_t)r->node.len++;

    r->node.at[n] =
        (struct merge_node){symbol, (uint32_t)at, (uint32_t)len, TOK_NONE, n ? n - 1 : TOK_NONE};
    if (n)
        r->node.at[n - 1].next = n;
}

/* Of a node and the next one. */
static uint32_t rank_at(const struct tok_run *r, merge_rank_fn rank, uint32_t node,
                        uint32_t *result)
{
    const struct merge_node *n = &r->node.at[node];

    return n->next == TOK_NONE ? TOK_NONE : rank(r, n, &r->node.at[n->next], result);
}

static void join(struct tok_run *r, uint32_t node, uint32_t result)
{
    struct merge_node *n = &r->node.at[node], *gone = &r->node.at[n->next];

    n->symbol = result;
    n->len += gone->len;
    n->next = gone->next;
    if (n->next != TOK_NONE)
        r->node.at[n->next].prev = node;
    gone->len = 0;
}

/* ---- short words ------------------------------------------------------------------------- */

enum { SHORT = 32 };

static void merge_short(struct tok_run *r, merge_rank_fn rank_of)
{
    uint32_t rank[SHORT], result[SHORT];

    for (uint32_t i = 0; i < r->node.len; i++)
        rank[i] = rank_at(r, rank_of, i, &result[i]);
    for (;;) {
        uint32_t best = 0;
        for (uint32_t i = r->node.at[0].next; i != TOK_NONE; i = r->node.at[i].next)
            if (rank[i] < rank[best])
                best = i;
        if (rank[best] == TOK_NONE)
            return;
        join(r, best, result[best]);
        rank[best] = rank_at(r, rank_of, best, &result[best]);
        if (best) {
            uint32_t prev = r->node.at[best].prev;
            rank[prev] = rank_at(r, rank_of, prev, &result[prev]);
        }
    }
}

/* ---- long words -------------------------------------------------------------------------- */

static bool before(const struct merge_candidate *a, const struct merge_candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->node < b->node;
}

static rlx_status push(struct tok_run *r, merge_rank_fn rank_of, uint32_t node)
{
    struct merge_candidate c = {.node = node, .rank = TOK_NONE};

    if (node != TOK_NONE)
        c.rank = rank_at(r, rank_of, node, &c.result);
    if (c.rank == TOK_NONE)
        return RLX_OK;
    if (!vec_room(r->t->mem, &r->heap))
        return diag_no_memory(r->d, sizeof *r->heap.at);
    const struct merge_node *n = &r->node.at[node];
    c.left = n->symbol;
    c.right = r->node.at[n->next].symbol;
    size_t at = r->heap.len++;
    for (; at && before(&c, &r->heap.at[(at - 1) / 2]); at = (at - 1) / 2)
        r->heap.at[at] = r->heap.at[(at - 1) / 2];
    r->heap.at[at] = c;
    return RLX_OK;
}

static struct merge_candidate pop(struct tok_run *r)
{
    struct merge_candidate *h = r->heap.at, top = h[0], last = h[--r->heap.len];
    size_t at = 0, child;

    for (; (child = 2 * at + 1) < r->heap.len; at = child) {
        if (child + 1 < r->heap.len && before(&h[child + 1], &h[child]))
            child++;
        if (!before(&h[child], &last))
            break;
        h[at] = h[child];
    }
    h[at] = last;
    return top;
}

static rlx_status merge_long(struct tok_run *r, merge_rank_fn rank_of)
{
    r->heap.len = 0;
    for (uint32_t i = 0; i < r->node.len; i++)
        TRY(push(r, rank_of, i));
    while (r->heap.len) {
        struct merge_candidate c = pop(r);
        const struct merge_node *n = &r->node.at[c.node];
        if (n->len == 0 || n->next == TOK_NONE || n->symbol != c.left ||
            r->node.at[n->next].symbol != c.right)
            continue;
        join(r, c.node, c.result);
        TRY(push(r, rank_of, n->prev));
        TRY(push(r, rank_of, c.node));
    }
    return RLX_OK;
}

rlx_status merge_all(struct tok_run *r, merge_rank_fn rank)
{
    if (r->node.len > SHORT)
        return merge_long(r, rank);
    merge_short(r, rank);
    return RLX_OK;
}
