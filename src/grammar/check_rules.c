/* check_rules.c: what must hold of rules before they are matched: none begins with itself, as a
 * matcher would go on calling it for ever, and each can end. */
#include "grammar/program.h"

/* Which rules can be gone through to their end, with characters or without any, by trying nodes
 * until they are done; a call waits until the rule that it calls is found to be one. */
struct reaching {
    const struct rlx_grammar *g;
    bool characters; /* may be gone through */
    bool *node;      /* reached from the start of its rule */
    bool *rule;      /* its end was reached */
    uint32_t *work;
    size_t count;
    uint32_t *waiting; /* by rule: the first call of it that waits; 0: none */
    uint32_t *more;    /* by node: the next that waits for the same rule */
};

static void reach(struct reaching *r, uint32_t node)
{
    if (!r->node[node]) {
        r->node[node] = true;
        r->work[r->count++] = node;
    }
}

/* The end of a rule was reached: calls of it are tried again. */
static void finish(struct reaching *r, uint32_t rule)
{
    if (r->rule[rule])
        return;
    r->rule[rule] = true;
    for (uint32_t n = r->waiting[rule]; n; n = r->more[n])
        r->work[r->count++] = n;
    r->waiting[rule] = 0;
}

static void go_on(struct reaching *r, uint32_t from, uint32_t to)
{
    if (to == GRAM_NODE_END)
        finish(r, r->g->node.at[from].rule);
    else
        reach(r, to);
}

static void try_node(struct reaching *r, uint32_t number)
{
    const struct gram_node *n = &r->g->node.at[number];

    switch ((enum gram_op)n->op) {
    case GRAM_SPLIT:
        go_on(r, number, n->a);
        go_on(r, number, n->b);
        break;
    case GRAM_CHAR:
        if (r->characters)
            go_on(r, number, n->b);
        break;
    case GRAM_CALL:
        if (r->rule[n->a])
            go_on(r, number, n->b);
        else {
            r->more[number] = r->waiting[n->a];
            r->waiting[n->a] = number;
        }
        break;
    case GRAM_END: break;
    }
}

static void reach_all(struct reaching *r)
{
    const struct rlx_grammar *g = r->g;

    for (uint32_t i = 0; i < g->rule.len; i++) {
        if (g->rule.at[i].start == GRAM_NODE_END)
            finish(r, i);
        else
            reach(r, g->rule.at[i].start);
    }
    while (r->count)
        try_node(r, r->work[--r->count]);
}

/* ---- rules that begin with themselves ---------------------------------------------------- */

struct walk { /* a rule that is gone through, and its node that comes next */
    uint32_t rule, node;
};
enum { UNSEEN, OPEN, DONE };

/* Depth first, along calls that are reached without a character. */
static rlx_status find_cycle(const struct rlx_grammar *g, const bool *reached, uint8_t *seen,
                             struct walk *walk, uint32_t from, struct diag *d)
{
    size_t depth = 0;

    if (seen[from] != UNSEEN)
        return RLX_OK;
    seen[from] = OPEN;
    walk[depth++] = (struct walk){from, g->rule.at[from].first};
    while (depth) {
        struct walk *w = &walk[depth - 1];
        if (w->node == g->rule.at[w->rule].last) {
            seen[w->rule] = DONE;
            depth--;
            continue;
        }
        const uint32_t at = w->node++;
        const struct gram_node *n = &g->node.at[at];
        if (n->op != GRAM_CALL || !reached[at])
            continue;
        if (seen[n->a] == OPEN)
            return diag_fail(d, RLX_ERROR_FORMAT,
                             "the rule \"%.*s\" begins with itself: put what is repeated after "
                             "something else, or use * or +",
                             STR_ARG(g->rule.at[n->a].name));
        if (seen[n->a] == UNSEEN) {
            seen[n->a] = OPEN;
            walk[depth++] = (struct walk){n->a, g->rule.at[n->a].first};
        }
    }
    return RLX_OK;
}

/* ---- both -------------------------------------------------------------------------------- */

static rlx_status check(struct reaching *r, uint8_t *seen, struct walk *walk, struct diag *d)
{
    const struct rlx_grammar *g = r->g;

    reach_all(r);
    for (uint32_t i = 0; r->characters && i < g->rule.len; i++)
        if (!r->rule[i])
            return diag_fail(d, RLX_ERROR_FORMAT,
                             "the rule \"%.*s\" never ends: each of its alternatives needs itself",
                             STR_ARG(g->rule.at[i].name));
    for (uint32_t i = 0; !r->characters && i < g->rule.len; i++)
        TRY(find_cycle(g, r->node, seen, walk, i, d));
    return RLX_OK;
}

static rlx_status check_with(const struct rlx_grammar *g, bool characters, struct diag *d)
{
    struct arena a;

    arena_init(&a, g->mem);
    struct reaching r = {
        .g = g,
        .characters = characters,
        .node = arena_array(&a, bool, g->node.len),
        .rule = arena_array(&a, bool, g->rule.len),
        .work = arena_array(&a, uint32_t, 2 * g->node.len),
        .waiting = arena_array(&a, uint32_t, g->rule.len),
        .more = arena_array(&a, uint32_t, g->node.len),
    };
    uint8_t *seen = arena_array(&a, uint8_t, g->rule.len);
    struct walk *walk = arena_array(&a, struct walk, g->rule.len);
    rlx_status s = r.node && r.rule && r.work && r.waiting && r.more && seen && walk
                       ? check(&r, seen, walk, d)
                       : diag_no_memory(d, g->node.len * sizeof(uint32_t));
    arena_free(&a);
    return s;
}

rlx_status gram_check_rules(const struct rlx_grammar *g, struct diag *d)
{
    TRY(check_with(g, false, d));
    return check_with(g, true, d);
}
