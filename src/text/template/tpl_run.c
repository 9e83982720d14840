/* tpl_run.c: statements, and the names that they set. */
#include <string.h>

#include "text/template/tpl_call.h"

/* ---- names ------------------------------------------------------------------------------- */

rlx_status tpl_scope_new(struct tpl_run *r, struct tpl_scope *up, struct tpl_scope **out)
{
    *out = arena_new(r->arena, struct tpl_scope);
    if (!*out)
        return tpl_no_memory(r, sizeof **out);
    (*out)->up = up;
    return RLX_OK;
}

static struct tpl_name *find(const struct tpl_scope *s, rlx_str name)
{
    for (size_t i = 0; i < s->count; i++)
        if (str_eq(s->at[i].name, name))
            return &s->at[i];
    return NULL;
}

rlx_status tpl_scope_set(struct tpl_run *r, struct tpl_scope *s, rlx_str name,
                         struct tpl_value value)
{
    struct tpl_name *have = find(s, name);

    TRY(tpl_charge(r, s->count / 8));
    if (!have) {
        if (!tpl_room(r->arena, &s->at, &s->room, s->count, sizeof *s->at))
            return tpl_no_memory(r, sizeof *s->at);
        have = &s->at[s->count++];
        have->name = name;
    }
    have->value = value;
    return RLX_OK;
}

rlx_status tpl_scope_get(struct tpl_run *r, rlx_str name, struct tpl_value *out, bool *found)
{
    *found = false;
    for (const struct tpl_scope *s = r->scope; s && !*found; s = s->up) {
        const struct tpl_name *have = find(s, name);
        TRY(tpl_charge(r, s->count / 8));
        *found = have != NULL;
        if (have)
            *out = have->value;
    }
    return RLX_OK;
}

/* What a macro refers to is not used again, nor is what that refers to. */
static void keep(struct tpl_scope *s)
{
    for (; s && !s->kept; s = s->up)
        s->kept = true;
}

/* ---- set --------------------------------------------------------------------------------- */

static rlx_status assign(struct tpl_run *r, const struct tpl_node *target, struct tpl_value v);

static rlx_status unpack(struct tpl_run *r, const struct tpl_node *target, struct tpl_value v)
{
    struct tpl_list *items;

    TRY(tpl_items_of(r, v, &items));
    if (items->count != target->count)
        return tpl_bad(r, RLX_ERROR_ARGUMENT, "%zu values are given to %zu names", items->count,
                       target->count);
    for (size_t i = 0; i < items->count; i++)
        TRY(assign(r, target->at[i], items->at[i]));
    return RLX_OK;
}

static rlx_status assign(struct tpl_run *r, const struct tpl_node *target, struct tpl_value v)
{
    struct tpl_value of;

    if (target->kind == TPL_NAME)
        return tpl_scope_set(r, r->scope, target->name, v);
    if (target->kind == TPL_TUPLE_OF)
        return unpack(r, target, v);
    TRY(tpl_eval(r, target->a, &of));
    if (of.kind != TPL_NAMESPACE)
        return tpl_bad(r, RLX_ERROR_ARGUMENT,
                       "\"%.*s\" is %s; only a namespace has attributes to set",
                       STR_ARG(target->a->name), tpl_kind_name(of.kind));
    return tpl_dict_set_name(r, of.u.dict, target->name, v);
}

/* ---- text that goes elsewhere ---------------------------------------------------------------- */

rlx_status tpl_exec_to_str(struct tpl_run *r, const struct tpl_node *n, struct tpl_value *out)
{
    struct tpl_text *before = r->out, t;

    tpl_text_begin(&t, r);
    r->out = &t;
    rlx_status s = tpl_exec(r, n);
    r->out = before;
    TRY(s);
    return tpl_text_end(&t, out);
}

/* A body with names of its own, as text that goes through filters (NULL: none). */
static rlx_status captured(struct tpl_run *r, const struct tpl_node *body,
                           const struct tpl_node *filters, struct tpl_value *out)
{
    struct tpl_scope *outer = r->scope;
    struct tpl_value self;

    TRY(tpl_scope_new(r, outer, &r->scope));
    rlx_status s = tpl_exec_to_str(r, body, out);
    r->scope = outer;
    TRY(s);
    if (!filters || r->flow != TPL_FLOW_ON)
        return RLX_OK;
    /* The innermost of them takes the text, which it finds under a name that nobody can write. */
    self = *out;
    TRY(tpl_scope_new(r, outer, &r->scope));
    s = tpl_scope_set(r, r->scope, STR("|"), self);
    s = s == RLX_OK ? tpl_eval(r, filters, out) : s;
    r->scope = outer;
    return s;
}

static rlx_status exec_scoped(struct tpl_run *r, const struct tpl_node *body)
{
    struct tpl_scope *outer = r->scope;

    TRY(tpl_scope_new(r, outer, &r->scope));
    const rlx_status s = tpl_exec(r, body);
    r->scope = outer;
    return s;
}

/* ---- loops ------------------------------------------------------------------------------- */

/* What the loop's condition lets through. */
static rlx_status filter_items(struct tpl_run *r, const struct tpl_node *n, struct tpl_list **items)
{
    const struct tpl_list *all = *items;
    struct tpl_value yes;

    TRY(tpl_list_new(r, items));
    for (size_t i = 0; i < all->count; i++) {
        TRY(assign(r, n->a, all->at[i]));
        TRY(tpl_eval(r, n->c, &yes));
        if (tpl_truth(yes))
            TRY(tpl_list_add(r, *items, all->at[i]));
    }
    return RLX_OK;
}

/* One round, in names of its own; *names is used again unless a macro refers to it. */
static rlx_status round_of(struct tpl_run *r, const struct tpl_node *n, struct tpl_loop *loop,
                           struct tpl_scope *outer, struct tpl_scope **names)
{
    if ((*names)->kept)
        TRY(tpl_scope_new(r, outer, names));
    (*names)->count = 0;
    r->scope = *names;
    TRY(tpl_scope_set(r, *names, STR("loop"),
                      (struct tpl_value){.kind = TPL_LOOP, .u.loop = loop}));
    TRY(assign(r, n->a, loop->items->at[loop->at]));
    return tpl_exec(r, n->at[0]);
}

static rlx_status loop_over(struct tpl_run *r, const struct tpl_node *n, struct tpl_scope *outer)
{
    struct tpl_loop *loop = arena_new(r->arena, struct tpl_loop);
    struct tpl_scope *names;
    struct tpl_list *items;
    struct tpl_value over;

    if (!loop)
        return tpl_no_memory(r, sizeof *loop);
    TRY(tpl_eval(r, n->b, &over));
    r->place = n->place;
    TRY(tpl_items_of(r, over, &items));
    TRY(tpl_scope_new(r, outer, &names));
    r->scope = names;
    if (n->c)
        TRY(filter_items(r, n, &items));
    loop->items = items;
    for (loop->at = 0; loop->at < items->count; loop->at++) {
        TRY(round_of(r, n, loop, outer, &names));
        const bool leave = r->flow == TPL_FLOW_BREAK;
        r->flow = TPL_FLOW_ON;
        if (leave)
            break;
    }
    r->scope = outer;
    return !items->count && n->count > 1 ? tpl_exec(r, n->at[1]) : RLX_OK;
}

static rlx_status exec_for(struct tpl_run *r, const struct tpl_node *n)
{
    struct tpl_scope *outer = r->scope;
    const rlx_status s = loop_over(r, n, outer);

    r->scope = outer;
    return s;
}

/* ---- the rest ---------------------------------------------------------------------------- */

static rlx_status exec_if(struct tpl_run *r, const struct tpl_node *n)
{
    struct tpl_value yes;

    for (size_t i = 0; i + 1 < n->count; i += 2) {
        TRY(tpl_eval(r, n->at[i], &yes));
        if (tpl_truth(yes))
            return tpl_exec(r, n->at[i + 1]);
    }
    return n->count % 2 ? tpl_exec(r, n->at[n->count - 1]) : RLX_OK;
}

static rlx_status exec_macro(struct tpl_run *r, const struct tpl_node *n)
{
    struct tpl_macro *m = arena_new(r->arena, struct tpl_macro);

    if (!m)
        return tpl_no_memory(r, sizeof *m);
    *m = (struct tpl_macro){n, r->scope};
    keep(r->scope);
    return tpl_scope_set(r, r->scope, n->name,
                         (struct tpl_value){.kind = TPL_MACRO_VALUE, .u.macro = m});
}

static rlx_status exec_output(struct tpl_run *r, const struct tpl_node *n)
{
    struct tpl_value v;

    TRY(tpl_eval(r, n->a, &v));
    r->place = n->place;
    return tpl_print(r->out, v);
}

static rlx_status exec_body(struct tpl_run *r, const struct tpl_node *n)
{
    for (size_t i = 0; i < n->count && r->flow == TPL_FLOW_ON; i++)
        TRY(tpl_exec(r, n->at[i]));
    return RLX_OK;
}

static rlx_status exec_set(struct tpl_run *r, const struct tpl_node *n)
{
    struct tpl_value v;

    if (n->kind == TPL_SET)
        TRY(tpl_eval(r, n->b, &v));
    else
        TRY(captured(r, n->b, n->c, &v));
    r->place = n->place;
    return r->flow == TPL_FLOW_ON ? assign(r, n->a, v) : RLX_OK;
}

static rlx_status exec_filtered(struct tpl_run *r, const struct tpl_node *n)
{
    struct tpl_value v;

    TRY(captured(r, n->a, n->b, &v));
    return tpl_print(r->out, v);
}

static rlx_status exec_one(struct tpl_run *r, const struct tpl_node *n)
{
    switch (n->kind) {
    case TPL_TEXT: tpl_text_add(r->out, n->name, false); return r->out->failed;
    case TPL_OUTPUT: return exec_output(r, n);
    case TPL_BODY: return exec_body(r, n);
    case TPL_IF: return exec_if(r, n);
    case TPL_FOR: return exec_for(r, n);
    case TPL_SET:
    case TPL_SET_BLOCK: return exec_set(r, n);
    case TPL_FILTERED: return exec_filtered(r, n);
    case TPL_SCOPED: return exec_scoped(r, n->a);
    case TPL_MACRO: return exec_macro(r, n);
    case TPL_BREAK: r->flow = TPL_FLOW_BREAK; return RLX_OK;
    default: r->flow = TPL_FLOW_CONTINUE; return RLX_OK;
    }
}

rlx_status tpl_exec(struct tpl_run *r, const struct tpl_node *n)
{
    r->place = n->place;
    TRY(tpl_charge(r, 1));
    if (++r->depth > TPL_MOST_EVAL)
        return tpl_bad(r, RLX_ERROR_LIMIT, "blocks, brackets and macros are nested too deeply");
    const rlx_status s = exec_one(r, n);
    r->depth--;
    return s;
}
