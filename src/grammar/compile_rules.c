/* compile_rules.c: rules as nodes. An item is compiled with the node that comes after it, so nodes
 * are made from the last to the first, and nothing has to be filled in later but loops. */
#include "grammar/program.h"

struct compiling {
    struct rlx_grammar *g;
    struct gram_draft *draft;
    uint32_t rule; /* that nodes go to */
    struct diag *d;
};

static rlx_status add_node(struct compiling *c, enum gram_op op, uint32_t a, uint32_t b,
                           uint32_t *out)
{
    struct rlx_grammar *g = c->g;

    if (g->node.len >= GRAM_MOST_NODES)
        return diag_fail(c->d, RLX_ERROR_LIMIT,
                         "the grammar is too large, with all that is repeated, in rule \"%.*s\"",
                         STR_ARG(c->draft->rule.at[c->rule].name));
    if (!vec_room(g->mem, &g->node))
        return diag_no_memory(c->d, sizeof(struct gram_node));
    *out = (uint32_t)g->node.len;
    g->node.at[g->node.len++] = (struct gram_node){op, a, b, c->rule};
    return RLX_OK;
}

static rlx_status compile_alternatives(struct compiling *c, struct gram_alt *alt, uint32_t next,
                                       uint32_t *out);

/* The item once, then next. */
static rlx_status compile_once(struct compiling *c, const struct gram_item *item, uint32_t next,
                               uint32_t *out)
{
    switch (item->kind) {
    case GRAM_ITEM_CHAR: return add_node(c, GRAM_CHAR, item->value, next, out);
    case GRAM_ITEM_RULE: return add_node(c, GRAM_CALL, item->value, next, out);
    case GRAM_ITEM_GROUP: break;
    }
    return compile_alternatives(c, item->alt, next, out);
}

/* A group that is written several times becomes a rule, so that a copy is one node. */
static rlx_status group_as_rule(struct compiling *c, struct gram_item *item)
{
    struct gram_draft *f = c->draft;
    struct gram_draft_rule rule = f->rule.at[c->rule]; /* by the same name, for messages */

    if (item->kind != GRAM_ITEM_GROUP)
        return RLX_OK;
    if (f->rule.len >= GRAM_MOST_RULES)
        return diag_fail(c->d, RLX_ERROR_LIMIT, "there are more than %d rules and repeated groups",
                         GRAM_MOST_RULES);
    if (!vec_room(c->g->mem, &f->rule))
        return diag_no_memory(c->d, sizeof rule);
    rule.alt = item->alt;
    item->kind = GRAM_ITEM_RULE;
    item->value = (uint32_t)f->rule.len;
    f->rule.at[f->rule.len++] = rule;
    return RLX_OK;
}

/* As often as one likes: loop: SPLIT (item -> loop), next */
static rlx_status compile_loop(struct compiling *c, const struct gram_item *item, uint32_t next,
                               bool at_least_once, uint32_t *out)
{
    uint32_t loop, once;

    TRY(add_node(c, GRAM_SPLIT, next, next, &loop));
    TRY(compile_once(c, item, loop, &once));
    c->g->node.at[loop].a = once;
    *out = at_least_once ? once : loop;
    return RLX_OK;
}

static rlx_status compile_item(struct compiling *c, struct gram_item *item, uint32_t next,
                               uint32_t *out)
{
    const uint32_t end = next;
    uint32_t required = item->min;

    if (item->min == 1 && item->max == 1)
        return compile_once(c, item, next, out);
    if (item->max != 1 && !(item->max == GRAM_NO_MOST && item->min < 2))
        TRY(group_as_rule(c, item));
    *out = next;
    if (item->max == GRAM_NO_MOST) {
        TRY(compile_loop(c, item, next, required > 0, out));
        required -= required > 0;
    } else
        for (uint32_t i = item->min; i < item->max; i++) {
            TRY(compile_once(c, item, *out, out));
            TRY(add_node(c, GRAM_SPLIT, *out, end, out));
        }
    for (uint32_t i = 0; i < required; i++)
        TRY(compile_once(c, item, *out, out));
    return RLX_OK;
}

/* Items are linked from the first to the last, and compiled the other way: the list is turned.
 * Nothing is compiled twice, so it need not be turned back. */
static rlx_status compile_sequence(struct compiling *c, struct gram_alt *alt, uint32_t next,
                                   uint32_t *out)
{
    struct gram_item *turned = NULL;

    while (alt->item) {
        struct gram_item *item = alt->item;
        alt->item = item->next;
        item->next = turned;
        turned = item;
    }
    *out = next;
    while (turned) {
        struct gram_item *item = turned;
        TRY(compile_item(c, item, *out, out));
        turned = item->next;
    }
    return RLX_OK;
}

static rlx_status compile_alternatives(struct compiling *c, struct gram_alt *alt, uint32_t next,
                                       uint32_t *out)
{
    uint32_t first, split;

    TRY(compile_sequence(c, alt, next, out));
    for (struct gram_alt *a = alt->next; a; a = a->next) {
        TRY(compile_sequence(c, a, next, &first));
        TRY(add_node(c, GRAM_SPLIT, *out, first, &split));
        *out = split;
    }
    return RLX_OK;
}

rlx_status gram_compile_rules(struct rlx_grammar *g, struct gram_draft *draft, struct diag *d)
{
    struct compiling c = {.g = g, .draft = draft, .d = d};
    uint32_t end;

    TRY(add_node(&c, GRAM_END, 0, 0, &end)); /* GRAM_NODE_END */
    /* Repeated groups are added to the list while it is gone through. */
    for (size_t i = 0; i < draft->rule.len; i++) {
        struct gram_rule rule = {.first = (uint32_t)g->node.len};
        if (!vec_room(g->mem, &g->rule))
            return diag_no_memory(d, sizeof rule);
        c.rule = (uint32_t)i;
        rule.name = arena_str(&g->arena, draft->rule.at[i].name);
        if (!rule.name.ptr)
            return diag_no_memory(d, draft->rule.at[i].name.len);
        TRY(compile_alternatives(&c, draft->rule.at[i].alt, GRAM_NODE_END, &rule.start));
        rule.last = (uint32_t)g->node.len;
        g->rule.at[g->rule.len++] = rule;
    }
    return RLX_OK;
}
