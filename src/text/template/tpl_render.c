/* tpl_render.c: a template from its source, and one rendering of it: variables in, text out. */
#include <string.h>

#include "text/template/template.h"
#include "text/template/tpl_call.h"
#include "text/text.h"

/* ---- made -------------------------------------------------------------------------------- */

static rlx_status read_source(struct rlx_template *t, rlx_str source, struct diag *d)
{
    struct tpl_parse p = {.arena = &t->arena, .d = d};

    if (source.len > TPL_MOST_SOURCE)
        return diag_fail(d, RLX_ERROR_LIMIT, "the template has %zu bytes; %zu are the most",
                         source.len, TPL_MOST_SOURCE);
    TRY(tpl_normalise(&t->arena, source, &t->source, d));
    p.lex =
        (struct tpl_lex){.source = t->source, .line_starting = true, .arena = &t->arena, .d = d};
    return tpl_parse_template(&p, &t->body);
}

rlx_status tpl_create(rlx_str source, const rlx_allocator *mem, struct rlx_template **out,
                      struct diag *d)
{
    struct arena arena;
    struct rlx_template *t;

    arena_init(&arena, mem);
    if (!(t = arena_new(&arena, struct rlx_template)))
        return diag_no_memory(d, sizeof *t);
    t->mem = mem;
    t->arena = arena;
    const rlx_status s = read_source(t, source, d);
    if (s == RLX_OK)
        *out = t;
    else
        tpl_free(t);
    return s;
}

void tpl_free(struct rlx_template *t)
{
    if (!t)
        return;
    struct arena arena = t->arena;
    arena_free(&arena);
}

/* ---- variables --------------------------------------------------------------------------- */

/* Roles are the program's, as templates look at them; whoever writes content does not choose them.
 */
static rlx_status trust_roles(struct tpl_run *r, struct tpl_value messages)
{
    if (messages.kind != TPL_LIST)
        return RLX_OK;
    for (size_t i = 0; i < messages.u.list->count; i++) {
        const struct tpl_value m = messages.u.list->at[i];
        struct tpl_value role;
        bool found = false;
        if (m.kind == TPL_DICT)
            TRY(tpl_dict_get_name(r, m.u.dict, STR("role"), &role, &found));
        if (!found || role.kind != TPL_STR)
            continue;
        TRY(tpl_string(r, role.u.s->text, false, &role));
        TRY(tpl_dict_set_name(r, m.u.dict, STR("role"), role));
    }
    return RLX_OK;
}

static rlx_status set_members(struct tpl_run *r, rlx_str json)
{
    struct tpl_value all;

    TRY(tpl_from_json(r, json, true, "variables", &all));
    if (all.kind != TPL_DICT)
        return diag_fail(r->d, RLX_ERROR_FORMAT, "variables: an object was expected");
    for (size_t i = 0; i < all.u.dict->count; i++) {
        const rlx_str name = all.u.dict->at[i].key.u.s->text;
        struct tpl_value v = all.u.dict->at[i].value;
        if (str_ends(name, STR("_token")) && v.kind == TPL_STR)
            TRY(tpl_string(r, v.u.s->text, false, &v));
        if (str_eq(name, STR("messages")))
            TRY(trust_roles(r, v));
        TRY(tpl_scope_set(r, r->scope, name, v));
    }
    return RLX_OK;
}

static rlx_status set_messages(struct tpl_run *r, const rlx_chat_desc *chat)
{
    struct tpl_value message, role, content;
    struct tpl_list *l;

    TRY(tpl_list_new(r, &l));
    for (size_t i = 0; i < chat->message_count; i++) {
        message.kind = TPL_DICT;
        TRY(tpl_dict_new(r, &message.u.dict));
        TRY(tpl_string(r, chat->messages[i].role, false, &role));
        TRY(tpl_string(r, chat->messages[i].content, true, &content));
        TRY(tpl_dict_set_name(r, message.u.dict, STR("role"), role));
        TRY(tpl_dict_set_name(r, message.u.dict, STR("content"), content));
        TRY(tpl_list_add(r, l, message));
    }
    return tpl_scope_set(r, r->scope, STR("messages"),
                         (struct tpl_value){.kind = TPL_LIST, .u.list = l});
}

static rlx_status set_token(struct tpl_run *r, rlx_str name, rlx_str token)
{
    struct tpl_value v;
    bool found;

    TRY(tpl_scope_get(r, name, &v, &found));
    if (found && !token.ptr)
        return RLX_OK;
    TRY(tpl_string(r, token, false, &v));
    return tpl_scope_set(r, r->scope, name, v);
}

static rlx_status set_variables(struct tpl_run *r, const rlx_chat_desc *chat)
{
    const rlx_str prompt = STR("add_generation_prompt");
    struct tpl_value v;
    bool found;

    if (chat->variables.ptr)
        TRY(set_members(r, chat->variables));
    TRY(tpl_scope_get(r, STR("messages"), &v, &found));
    if (chat->message_count || !found)
        TRY(set_messages(r, chat));
    if (chat->tools.ptr) {
        TRY(tpl_from_json(r, chat->tools, true, "tools", &v));
        TRY(tpl_scope_set(r, r->scope, STR("tools"), v));
    }
    TRY(tpl_scope_get(r, prompt, &v, &found));
    if (chat->add_generation_prompt || !found)
        TRY(tpl_scope_set(r, r->scope, prompt, tpl_bool(chat->add_generation_prompt)));
    if (chat->thinking != RLX_THINKING_DEFAULT)
        TRY(tpl_scope_set(r, r->scope, STR("enable_thinking"),
                          tpl_bool(chat->thinking == RLX_THINKING_ON)));
    TRY(set_token(r, STR("bos_token"), chat->bos_token));
    return set_token(r, STR("eos_token"), chat->eos_token);
}

/* ---- rendered ---------------------------------------------------------------------------- */

/* The result in memory of its own. */
static rlx_status give(const struct rlx_template *t, const struct tpl_text *text, rlx_rendered *out,
                       struct diag *d)
{
    const size_t count = text->len ? text->cuts + 1 : 0;
    char *own = mem_alloc(t->mem, text->len + 1);
    rlx_text_span *span = mem_alloc(t->mem, count * sizeof *span);

    if (!own || (count && !span)) {
        mem_free(t->mem, own, text->len + 1);
        mem_free(t->mem, span, count * sizeof *span);
        return diag_no_memory(d, text->len + 1);
    }
    if (text->len)
        memcpy(own, text->at, text->len);
    for (size_t i = 0; i < count; i++) {
        const size_t from = i ? text->cut[i - 1] : 0,
                     to = i < text->cuts ? text->cut[i] : text->len;
        span[i] = (rlx_text_span){to - from, text->data ^ (i & 1)};
    }
    *out = (rlx_rendered){{own, text->len}, span, count};
    return RLX_OK;
}

static rlx_status run(const struct rlx_template *t, const rlx_chat_desc *chat, struct arena *arena,
                      rlx_rendered *out, struct diag *d)
{
    struct tpl_run r = {.arena = arena,
                        .d = d,
                        .source = t->source,
                        .most_steps = chat->max_steps ? chat->max_steps : 20000000,
                        .most_output = chat->max_output ? chat->max_output : (size_t)64 << 20,
                        .now = chat->now};
    struct tpl_text text;

    tpl_text_begin(&text, &r);
    r.out = &text;
    TRY(tpl_scope_new(&r, NULL, &r.scope));
    TRY(set_variables(&r, chat));
    TRY(tpl_exec(&r, t->body));
    TRY(text.failed);
    return give(t, &text, out, d);
}

rlx_status tpl_render(const struct rlx_template *t, const rlx_chat_desc *chat, rlx_rendered *out,
                      struct diag *d)
{
    const size_t most = chat->max_memory ? chat->max_memory : (size_t)512 << 20;
    struct diag inner = *d; /* what ran out is known at the end only */
    struct mem_bound bound;
    const rlx_allocator mem = mem_bounded(&bound, t->mem, most);
    struct arena arena;

    arena_init(&arena, &mem);
    const rlx_status s = run(t, chat, &arena, out, &inner);
    arena_free(&arena);
    if (s == RLX_ERROR_MEMORY && bound.refused)
        return diag_fail(d, RLX_ERROR_LIMIT, "template: it takes more than %zu bytes of memory",
                         most);
    *d = inner;
    return s;
}

void tpl_rendered_free(const struct rlx_template *t, rlx_rendered *r)
{
    mem_free(t->mem, (void *)r->text.ptr, r->text.len + 1);
    mem_free(t->mem, (void *)r->span, r->span_count * sizeof *r->span);
    *r = (rlx_rendered){0};
}

rlx_status tpl_encode(const rlx_tokenizer *t, const rlx_rendered *r, rlx_token_ids *out,
                      struct diag *d)
{
    size_t at = 0;

    for (size_t i = 0; i < r->span_count; i++)
        if (!size_add(at, r->span[i].len, &at))
            return diag_fail(d, RLX_ERROR_ARGUMENT, "the spans are too long");
    if (at != r->text.len)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "the spans have %zu bytes, and the text has %zu",
                         at, r->text.len);
    return tok_encode_spans(t, r->text, r->span, r->span_count, out, d);
}
