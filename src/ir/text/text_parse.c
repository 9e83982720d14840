/* text_parse.c: the text form as a module. Recursive descent, one function per rule.
 *
 *     file  = "rlx" "1" { "dim" NAME [ "<=" INT ] } graph { graph }
 *     graph = "graph" [ @NAME ] "(" [ leaf { "," leaf } ] ")" "{" { node } "return" %v { "," %v }
 * "}"
 *
 * A first look at the whole text finds where each graph begins and how it is called. Then the entry
 * is parsed, and every other graph when it is first named: an op that runs a sub-graph needs it
 * whole, to know its types. */
#include <stdio.h>
#include <string.h>

#include "ir/text/text_impl.h"
#include "rlx/tools.h"

enum { MAX_GRAPHS = 4096, MAX_NESTED_GRAPHS = 64, MAX_NODES = 1 << 20 };

struct graph_place {
    rlx_str name; /* ptr NULL: none */
    size_t at;    /* of its name, else of the word graph */
    size_t body;  /* of its "(" */
    enum { NOT_YET, BEING_PARSED, PARSED } state;
};

struct file_parser {
    struct text_parser p; /* first, so that find_graph gets back to the file */
    VEC(struct graph_place) place;
    int nested;
    size_t nodes; /* of all graphs */
};

/* The values of one graph by name. */
struct scope {
    struct ir_graph *graph;
    struct map map;
    VEC(struct scope_value {
        rlx_str name;
        ir_value value;
    })
    value;
    VEC(ir_value) operand; /* of the node in front */
};

/* ---- values -------------------------------------------------------------------------------- */

static bool value_has_name(const void *owner, uint32_t index, const void *key)
{
    const struct scope *s = owner;
    const rlx_str *name = key;

    return str_eq(s->value.at[index].name, *name);
}

static bool find_value(const struct scope *s, rlx_str name, ir_value *out)
{
    uint32_t index;

    if (!map_find(&s->map, hash_bytes(name.ptr, name.len), value_has_name, s, &name, &index))
        return false;
    *out = s->value.at[index].value;
    return true;
}

static rlx_status define_value(struct text_parser *p, struct scope *s, rlx_str name, ir_value v)
{
    if (!vec_room(p->mod->mem, &s->value) ||
        !map_add(&s->map, hash_bytes(name.ptr, name.len), (uint32_t)s->value.len))
        return diag_no_memory(p->diag, sizeof *s->value.at);
    s->value.at[s->value.len++] = (struct scope_value){name, v};
    return RLX_OK;
}

/* A name nobody has defined so far: perhaps further down? A cycle looks like that. */
static rlx_status undefined_value(struct text_parser *p)
{
    struct text_parser ahead = *p;
    rlx_str name = p->tok.text;
    size_t line, column;

    while (ahead.tok.kind != TEXT_END && ahead.tok.kind != TEXT_BAD &&
           !text_token_is(&ahead.tok, "graph")) {
        bool same = ahead.tok.kind == TEXT_VALUE && str_eq(ahead.tok.text, name);
        size_t at = ahead.tok.at;
        text_next(&ahead);
        if (!same || !text_token_is(&ahead.tok, "="))
            continue;
        text_position(p->lex.source, at, &line, &column);
        return text_fail(p, p->tok.at, RLX_ERROR_FORMAT,
                         "%%%.*s is used before it is defined, on line %zu", STR_ARG(name), line);
    }
    return text_fail(p, p->tok.at, RLX_ERROR_FORMAT, "%%%.*s is not defined", STR_ARG(name));
}

static rlx_status parse_use(struct text_parser *p, const struct scope *s, ir_value *out)
{
    if (p->tok.kind != TEXT_VALUE)
        return text_unexpected(p, "a value such as %x");
    if (!find_value(s, p->tok.text, out))
        return undefined_value(p);
    text_next(p);
    return RLX_OK;
}

/* The name of a new value: nobody has it yet. */
static rlx_status parse_definition(struct text_parser *p, const struct scope *s, rlx_str *out)
{
    ir_value other;

    if (p->tok.kind != TEXT_VALUE)
        return text_unexpected(p, "a value such as %x");
    if (find_value(s, p->tok.text, &other))
        return text_fail(p, p->tok.at, RLX_ERROR_FORMAT, "%%%.*s is already defined",
                         STR_ARG(p->tok.text));
    *out = p->tok.text;
    text_next(p);
    return RLX_OK;
}

/* ---- nodes --------------------------------------------------------------------------------- */

static rlx_status add_node(struct file_parser *f, struct scope *s, struct ir_new_node *n, size_t at,
                           rlx_str name, ir_value *out)
{
    struct text_parser *p = &f->p;
    size_t before = s->graph->node.len;
    struct diag inner;

    diag_init(&inner, NULL);
    n->label = text_is_numbered(name) ? (rlx_str){NULL, 0} : name;
    if (f->nodes >= MAX_NODES)
        return text_fail(p, at, RLX_ERROR_LIMIT, "a text has at most %d nodes", MAX_NODES);
    if (ir_add(s->graph, n, out, &inner) != RLX_OK)
        return text_fail_with(p, at, &inner);
    f->nodes += s->graph->node.len - before;
    return define_value(p, s, name, *out);
}

static rlx_status unknown_op(struct text_parser *p)
{
    rlx_nearest near = {.wanted = p->tok.text};
    char hint[RLX_NEAREST_HINT];

    for (int op = RLX_OP_none + 1; op < RLX_OP_count; op++)
        rlx_nearest_offer(&near, rlx_cstr(op_info((rlx_op)op)->name));
    return text_fail(p, p->tok.at, RLX_ERROR_FORMAT, "there is no op '%.*s'%s",
                     STR_ARG(near.wanted), rlx_nearest_hint(&near, hint));
}

static rlx_status parse_op(struct text_parser *p, rlx_op *out)
{
    if (p->tok.kind != TEXT_WORD)
        return text_unexpected(p, "the name of an op");
    if (!op_from_name(p->tok.text, out))
        return unknown_op(p);
    if (op_info(*out)->family == FAMILY_leaf)
        return text_fail(p, p->tok.at, RLX_ERROR_FORMAT,
                         "an %s is declared in the parentheses of its graph", op_info(*out)->name);
    text_next(p);
    return RLX_OK;
}

static rlx_status parse_operands(struct text_parser *p, struct scope *s)
{
    s->operand.len = 0;
    if (p->tok.kind != TEXT_VALUE)
        return RLX_OK;
    /* `%y = op` may end a line: what follows is then an operand only if no "=" stands after it. */
    struct text_token next = text_peek(p);
    if (text_token_is(&next, "="))
        return RLX_OK;
    do {
        if (!vec_room(p->mod->mem, &s->operand))
            return diag_no_memory(p->diag, sizeof *s->operand.at);
        TRY(parse_use(p, s, &s->operand.at[s->operand.len]));
        s->operand.len++;
    } while (text_take(p, ","));
    next = text_peek(p);
    if (p->tok.kind == TEXT_VALUE && !text_token_is(&next, "="))
        return text_unexpected(p, "',' between operands");
    return RLX_OK;
}

/* ": type", if it is there, says what the node's type has to be. */
static rlx_status parse_type_check(struct text_parser *p, const struct ir_type *is)
{
    struct ir_type said;
    struct text a, b;

    if (!text_take(p, ":"))
        return RLX_OK;
    size_t at = p->tok.at;
    TRY(text_parse_type(p, &said));
    if (type_same(&said, is))
        return RLX_OK;
    text_init(&a, p->mod->mem);
    text_init(&b, p->mod->mem);
    ir_print_type(p->mod, &said, &a);
    ir_print_type(p->mod, is, &b);
    rlx_status s = a.failed || b.failed
                       ? diag_no_memory(p->diag, 0)
                       : text_fail(p, at, RLX_ERROR_FORMAT,
                                   "the type is declared as %s, but it is %s", a.at, b.at);
    text_free(&a);
    text_free(&b);
    return s;
}

static rlx_status parse_node(struct file_parser *f, struct scope *s)
{
    struct text_parser *p = &f->p;
    struct ir_new_node n = {0};
    rlx_str name = {NULL, 0};
    ir_value v = RLX_NO_VALUE;

    TRY(parse_definition(p, s, &name));
    TRY(text_need(p, "="));
    size_t at = p->tok.at;
    TRY(parse_op(p, &n.op));
    attr_defaults(n.op, &n.attr);
    if (n.op == RLX_OP_const) {
        TRY(text_parse_const(p, &n));
    } else {
        TRY(parse_operands(p, s));
        TRY(text_parse_attrs(p, n.op, &n.attr));
        n.in = s->operand.at;
        n.in_count = (int32_t)s->operand.len;
    }
    TRY(add_node(f, s, &n, at, name, &v));
    return parse_type_check(p, ir_type_of(s->graph, v));
}

static rlx_status parse_leaf(struct file_parser *f, struct scope *s)
{
    struct text_parser *p = &f->p;
    struct ir_new_node n = {0};
    size_t at = p->tok.at;
    rlx_str name = {NULL, 0}, public_name;
    struct ir_type t = {0};
    ir_value v;

    if (p->tok.kind != TEXT_WORD || !op_from_name(p->tok.text, &n.op) ||
        op_info(n.op)->family != FAMILY_leaf)
        return text_unexpected(p, "input, param or state");
    text_next(p);
    attr_defaults(n.op, &n.attr);
    TRY(parse_definition(p, s, &name));
    public_name = name;
    if (p->tok.kind == TEXT_STRING)
        TRY(text_parse_string(p, &public_name));
    TRY(text_need(p, ":"));
    TRY(text_parse_type(p, &t));
    n.attr.leaf.name = (struct ir_blob){public_name.ptr, public_name.len};
    n.attr.leaf.dtype = t.dtype;
    n.attr.leaf.shape.count = t.rank;
    memcpy(n.attr.leaf.shape.at, t.dim, sizeof t.dim);
    return add_node(f, s, &n, at, name, &v);
}

/* ---- graphs -------------------------------------------------------------------------------- */

static rlx_status parse_body(struct file_parser *f, struct scope *s)
{
    struct text_parser *p = &f->p;
    ir_value v = RLX_NO_VALUE;

    TRY(text_need(p, "("));
    if (!text_token_is(&p->tok, ")")) {
        do
            TRY(parse_leaf(f, s));
        while (text_take(p, ","));
    }
    if (!text_take(p, ")"))
        return text_unexpected(p, "',' or ')'");
    TRY(text_need(p, "{"));
    while (p->tok.kind == TEXT_VALUE)
        TRY(parse_node(f, s));
    if (!text_take(p, "return"))
        return text_unexpected(p, "a node such as '%y = relu %x', or 'return'");
    do {
        TRY(parse_use(p, s, &v));
        TRY(ir_add_output(s->graph, v, p->diag));
    } while (text_take(p, ","));
    return text_need(p, "}");
}

static rlx_status parse_graph(struct file_parser *f, size_t number)
{
    struct graph_place *place = &f->place.at[number];
    struct scope s = {.graph = f->p.mod->graph.at[number]};

    map_init(&s.map, f->p.mod->mem);
    place->state = BEING_PARSED;
    f->p.lex.at = place->body;
    text_next(&f->p);
    rlx_status status = parse_body(f, &s);
    f->place.at[number].state = PARSED;
    map_free(&s.map);
    vec_free(f->p.mod->mem, &s.value);
    vec_free(f->p.mod->mem, &s.operand);
    return status;
}

/* A graph that a node names: parsed now, if it has not been. */
static rlx_status find_graph(struct text_parser *p, int32_t *id)
{
    struct file_parser *f = (struct file_parser *)p;
    struct text_token name = p->tok;
    size_t i = 0;

    while (i < f->place.len && !str_eq(f->place.at[i].name, name.text))
        i++;
    if (i == f->place.len)
        return text_fail(p, name.at, RLX_ERROR_FORMAT, "there is no graph @%.*s",
                         STR_ARG(name.text));
    if (i == 0)
        return text_fail(p, name.at, RLX_ERROR_FORMAT, "@%.*s is the entry, which no graph can run",
                         STR_ARG(name.text));
    if (f->place.at[i].state == BEING_PARSED)
        return text_fail(p, name.at, RLX_ERROR_FORMAT,
                         "@%.*s would run itself: graphs do not name each other in a circle",
                         STR_ARG(name.text));
    if (f->place.at[i].state == NOT_YET) {
        struct text_lexer here = p->lex;
        if (f->nested == MAX_NESTED_GRAPHS)
            return text_fail(p, name.at, RLX_ERROR_LIMIT, "graphs are nested more than %d deep",
                             MAX_NESTED_GRAPHS);
        f->nested++;
        TRY(parse_graph(f, i));
        f->nested--;
        p->lex = here;
    }
    *id = (int32_t)i;
    text_next(p);
    return RLX_OK;
}

/* ---- the file ------------------------------------------------------------------------------ */

static rlx_status parse_header(struct text_parser *p)
{
    if (!text_take(p, "rlx"))
        return text_unexpected(p, "'rlx 1', which opens every text");
    if (p->tok.kind != TEXT_NUMBER)
        return text_unexpected(p, "the version: 'rlx 1'");
    if (!str_eq(p->tok.text, STR("1")))
        return text_fail(p, p->tok.at, RLX_ERROR_VERSION,
                         "the text is of version %.*s; this reads version 1", STR_ARG(p->tok.text));
    text_next(p);
    return RLX_OK;
}

/* dim NAME [<= INT] */
static rlx_status parse_symbol(struct text_parser *p)
{
    struct text_token name = p->tok;
    size_t symbol;
    int64_t bound = 0;

    if (name.kind != TEXT_WORD)
        return text_unexpected(p, "the name of a dim");
    if (dim_symbol(p->mod->dims, name.text) == RLX_DIM_FAILED)
        return text_fail(p, name.at, RLX_ERROR_FORMAT, "'%.*s' cannot name a dim",
                         STR_ARG(name.text));
    text_next(p);
    if (text_take(p, "<="))
        TRY(text_parse_i64(p, 1, INT64_MAX, &bound));
    if (!dim_find_symbol(p->mod->dims, name.text, &symbol))
        return text_fail(p, name.at, RLX_ERROR_INTERNAL, "a dim was lost");
    int64_t before = dim_symbol_bound(p->mod->dims, symbol);
    if (before && before != bound)
        return text_fail(p, name.at, RLX_ERROR_FORMAT, "the dim %.*s has two bounds",
                         STR_ARG(name.text));
    dim_set_bound(p->mod->dims, symbol, bound);
    return RLX_OK;
}

/* Past everything up to the bracket that closes the one in front. */
static rlx_status skip_brackets(struct text_parser *p, const char *open, const char *close)
{
    size_t depth = 0, begin = p->tok.at, line, column;

    if (!text_token_is(&p->tok, open))
        return text_need(p, open);
    do {
        if (p->tok.kind == TEXT_BAD)
            return text_unexpected(p, "");
        if (p->tok.kind == TEXT_END) {
            text_position(p->lex.source, begin, &line, &column);
            return text_fail(p, p->tok.at, RLX_ERROR_FORMAT,
                             "the text ends inside the '%s' of line %zu", open, line);
        }
        depth += text_token_is(&p->tok, open);
        depth -= text_token_is(&p->tok, close);
        text_next(p);
    } while (depth);
    return RLX_OK;
}

static rlx_status note_graph(struct file_parser *f)
{
    struct text_parser *p = &f->p;
    struct graph_place place = {.at = p->tok.at};
    struct ir_graph *unused;

    if (!text_take(p, "graph"))
        return text_unexpected(p, f->place.len ? "'graph' or the end of the text" : "'graph'");
    if (p->tok.kind == TEXT_GRAPH) {
        place.name = p->tok.text;
        place.at = p->tok.at;
        text_next(p);
    }
    for (size_t i = 0; i < f->place.len && place.name.ptr; i++) {
        if (str_eq(f->place.at[i].name, place.name))
            return text_fail(p, place.at, RLX_ERROR_FORMAT, "there is another graph @%.*s",
                             STR_ARG(place.name));
    }
    if (f->place.len == MAX_GRAPHS)
        return text_fail(p, place.at, RLX_ERROR_LIMIT, "a text has at most %d graphs", MAX_GRAPHS);
    place.body = p->tok.at;
    TRY(skip_brackets(p, "(", ")"));
    TRY(skip_brackets(p, "{", "}"));
    if (!vec_room(p->mod->mem, &f->place))
        return diag_no_memory(p->diag, sizeof place);
    f->place.at[f->place.len++] = place;
    return ir_graph_add(p->mod, place.name, &unused, p->diag);
}

static rlx_status parse_file(struct file_parser *f)
{
    struct text_parser *p = &f->p;

    TRY(parse_header(p));
    while (text_take(p, "dim"))
        TRY(parse_symbol(p));
    do
        TRY(note_graph(f));
    while (p->tok.kind != TEXT_END);
    for (size_t i = 0; i < f->place.len; i++) {
        if (f->place.at[i].state == NOT_YET)
            TRY(parse_graph(f, i));
    }
    return RLX_OK;
}

static rlx_status check_encoding(struct text_parser *p)
{
    rlx_str s = p->lex.source;
    size_t at = 0, step = 1;

    while (at < s.len && s.ptr[at] &&
           (step = str_utf8_step((rlx_str){s.ptr + at, s.len - at})) != 0)
        at += step;
    if (at == s.len)
        return RLX_OK;
    return text_fail(p, at, RLX_ERROR_FORMAT,
                     step ? "the text holds a NUL byte" : "the text is not UTF-8 here");
}

rlx_status ir_parse(rlx_str source, const struct text_parse_options *o, const rlx_allocator *mem,
                    struct ir_module **out, struct diag *d)
{
    struct arena scratch;
    struct ir_module *m;
    struct file_parser f = {
        .p = {.scratch = &scratch, .diag = d, .options = o, .find_graph = find_graph}};

    TRY(ir_module_create(mem, &m, d));
    m->customs = o ? o->customs : NULL;
    f.p.mod = m;
    arena_init(&scratch, mem);
    text_start(&f.p, source);
    rlx_status s = check_encoding(&f.p);
    if (s == RLX_OK)
        s = parse_file(&f);
    vec_free(mem, &f.place);
    arena_free(&scratch);
    if (s != RLX_OK) {
        ir_module_destroy(m);
        return s;
    }
    *out = m;
    return RLX_OK;
}
