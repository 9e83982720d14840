/* parse.c: files, declarations and statements.
 *
 *     file   := { "use" STRING | const | struct | fn | kernel }
 *     const  := "const" NAME [ ":" type ] "=" expr
 *     struct := "struct" NAME "{" NAME ":" type { "," NAME ":" type } "}"
 *     fn     := "fn" NAME [generics] "(" params ")" [ "->" type ] block
 *     kernel := "kernel" NAME [generics] "(" params ")" "group" "(" expr { "," expr } ")" block
 *     generics := "<" NAME ":" kind [ "=" literal ] { "," ... } ">"
 *     params := [ NAME ":" [mode] type { "," ... } ]      mode := var const shared in out inout
 *     block  := "{" { stmt } "}"
 *     stmt   := "let" NAME [ ":" type ] "=" expr | "var" NAME [ ":" type ] [ "=" expr ]
 *             | "shared" NAME ":" type | const | place assign expr | call
 *             | "if" expr block { "else" "if" expr block } [ "else" block ]
 *             | [ "unroll" ] "for" NAME "in" expr ".." expr [ "by" expr ] block
 *             | "while" expr block | "break" | "continue" | "return" [ expr ] | block
 *
 * Statements end with their line. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernel/parse.h"
#include "rlx/tools.h"

#define MAX_DEPTH 64

/* ---- failing ---- */

static const struct kc_file *file_at(const struct kc_program *p, uint32_t at)
{
    const struct kc_file *f = p->file;

    while (f->next && (at < f->base || at > f->base + f->text.len))
        f = f->next;
    return f;
}

rlx_status kc_fail(const struct kc_program *p, uint32_t at, const char *format, ...)
{
    const struct kc_file *f = file_at(p, at);
    size_t place = at >= f->base && at - f->base <= f->text.len ? at - f->base : f->text.len;
    size_t line = 1, start = 0, end;
    char message[256];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    for (size_t i = 0; i < place; i++)
        if (f->text.ptr[i] == '\n') {
            line++;
            start = i + 1;
        }
    for (end = start; end < f->text.len && f->text.ptr[end] != '\n' && end < start + 120;)
        end++;
    return diag_fail(p->diag, RLX_ERROR_FORMAT, "%.*s:%zu:%zu: %s\n%.*s\n%*s^", STR_ARG(f->name),
                     line, place - start + 1, message, (int)(end - start), f->text.ptr + start,
                     (int)(place - start), "");
}

void kc_parse_fail(struct kc_parser *p, uint32_t at, const char *message)
{
    if (!kc_failed(p))
        p->status = kc_fail(p->program, at, "%s", message);
}

void kc_expected(struct kc_parser *p, const char *what)
{
    if (kc_failed(p))
        return;
    if (p->token.kind == KC_BAD)
        p->status = kc_fail(p->program, p->token.at, "%s", p->token.why);
    else if (p->token.kind == KC_END)
        p->status = kc_fail(p->program, p->token.at, "the file ends where %s is expected", what);
    else
        p->status = kc_fail(p->program, p->token.at, "%s is expected, not %.*s", what,
                            STR_ARG(p->token.text));
}

/* ---- tokens ---- */

void kc_advance(struct kc_parser *p)
{
    p->token = kc_next(&p->lex);
}

bool kc_is(const struct kc_parser *p, const char *text)
{
    return (p->token.kind == KC_PUNCT || p->token.kind == KC_NAME) &&
           str_eq(p->token.text, rlx_cstr(text));
}

bool kc_take(struct kc_parser *p, const char *text)
{
    bool is = !kc_failed(p) && kc_is(p, text);

    if (is)
        kc_advance(p);
    return is;
}

bool kc_need(struct kc_parser *p, const char *text)
{
    if (kc_take(p, text))
        return true;
    kc_expected(p, text);
    return false;
}

rlx_str kc_need_name(struct kc_parser *p, const char *what)
{
    rlx_str name = p->token.text;

    if (kc_failed(p) || p->token.kind != KC_NAME) {
        kc_expected(p, what);
        return (rlx_str){NULL, 0};
    }
    kc_advance(p);
    return name;
}

bool kc_enter(struct kc_parser *p)
{
    if (++p->depth > MAX_DEPTH)
        kc_parse_fail(p, p->token.at, "this is nested too deeply");
    return !kc_failed(p);
}

void kc_leave(struct kc_parser *p)
{
    p->depth--;
}

void *kc_new(struct kc_parser *p, size_t bytes)
{
    void *made = kc_failed(p) ? NULL : arena_alloc(p->program->arena, bytes, 8);

    if (!made && !kc_failed(p))
        p->status = diag_no_memory(p->program->diag, bytes);
    return made;
}

/* ---- statements ---- */

static struct kc_stmt *new_stmt(struct kc_parser *p, enum kc_stmt_kind kind)
{
    struct kc_stmt *s = KC_NEW(p, struct kc_stmt);

    if (s)
        *s = (struct kc_stmt){.kind = kind, .at = p->token.at};
    return s;
}

/* let, var, const, shared: name, type and value, those that there are. */
static void named(struct kc_parser *p, struct kc_stmt *s)
{
    kc_advance(p);
    s->name = kc_need_name(p, "a name");
    if (kc_take(p, ":")) {
        s->atomic = s->kind == KC_S_SHARED && kc_take(p, "atomic");
        s->type = kc_parse_type(p);
    }
    if (kc_take(p, "="))
        s->a = kc_parse_expr(p);
    if (kc_failed(p))
        return;
    if (s->kind == KC_S_SHARED && (!s->type || s->a))
        kc_parse_fail(p, s->at, "shared memory has a type and no value");
    else if (s->kind == KC_S_VAR && !s->type && !s->a)
        kc_parse_fail(p, s->at, "a variable has a type, a value, or both");
    else if ((s->kind == KC_S_LET || s->kind == KC_S_CONST) && !s->a)
        kc_parse_fail(p, s->at, "it needs a value");
}

static void if_else(struct kc_parser *p, struct kc_stmt *s)
{
    kc_advance(p);
    s->a = kc_parse_expr(p);
    s->body = kc_parse_block(p);
    if (!kc_take(p, "else"))
        return;
    if (!kc_is(p, "if")) {
        s->other = kc_parse_block(p);
        return;
    }
    s->other = new_stmt(p, KC_S_IF);
    if (s->other && kc_enter(p)) {
        if_else(p, s->other);
        kc_leave(p);
    }
}

static void counted(struct kc_parser *p, struct kc_stmt *s)
{
    s->unroll = kc_take(p, "unroll");
    kc_need(p, "for");
    s->name = kc_need_name(p, "a name");
    kc_need(p, "in");
    s->a = kc_parse_expr(p);
    kc_need(p, "..");
    s->b = kc_parse_expr(p);
    if (kc_take(p, "by"))
        s->c = kc_parse_expr(p);
    s->body = kc_parse_block(p);
}

/* place = expr, place += expr, or a call. */
static void assignment(struct kc_parser *p, struct kc_stmt *s)
{
    static const char *const ops[] = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="};

    s->a = kc_parse_expr(p);
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (!kc_failed(p) && !p->token.first && kc_is(p, ops[i])) {
            memcpy(s->op, ops[i], strlen(ops[i]));
            kc_advance(p);
            s->b = kc_parse_expr(p);
            return;
        }
    s->kind = KC_S_CALL;
    if (!kc_failed(p) && s->a->kind != KC_T_CALL)
        kc_parse_fail(p, s->at, "a statement is expected; this is a value that nothing uses");
}

static const struct {
    const char *word;
    enum kc_stmt_kind kind;
} words[] = {{"let", KC_S_LET},
             {"var", KC_S_VAR},
             {"shared", KC_S_SHARED},
             {"const", KC_S_CONST},
             {"if", KC_S_IF},
             {"for", KC_S_FOR},
             {"unroll", KC_S_FOR},
             {"while", KC_S_WHILE},
             {"break", KC_S_BREAK},
             {"return", KC_S_RETURN},
             {"continue", KC_S_CONTINUE},
             {"{", KC_S_BLOCK}};

static struct kc_stmt *statement(struct kc_parser *p)
{
    struct kc_stmt *s = new_stmt(p, KC_S_ASSIGN);

    if (!s)
        return NULL;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (kc_is(p, words[i].word))
            s->kind = words[i].kind;
    switch (s->kind) {
    case KC_S_LET:
    case KC_S_VAR:
    case KC_S_SHARED:
    case KC_S_CONST: named(p, s); break;
    case KC_S_IF: if_else(p, s); break;
    case KC_S_FOR: counted(p, s); break;
    case KC_S_WHILE:
        kc_advance(p);
        s->a = kc_parse_expr(p);
        s->body = kc_parse_block(p);
        break;
    case KC_S_RETURN:
        kc_advance(p);
        if (!p->token.first && !kc_is(p, "}"))
            s->a = kc_parse_expr(p);
        break;
    case KC_S_BREAK:
    case KC_S_CONTINUE: kc_advance(p); break;
    case KC_S_BLOCK: s->body = kc_parse_block(p); break;
    default: assignment(p, s); break;
    }
    return s;
}

/* A block that is empty is a statement that does nothing. */
struct kc_stmt *kc_parse_block(struct kc_parser *p)
{
    struct kc_stmt *first = NULL, **last = &first;
    uint32_t brackets = p->brackets;

    if (!kc_need(p, "{") || !kc_enter(p))
        return NULL;
    p->brackets = 0;
    while (!kc_failed(p) && !kc_is(p, "}")) {
        struct kc_stmt *s = statement(p);
        if (!s || kc_failed(p))
            break;
        *last = s;
        last = &s->next;
        if (!p->token.first && !kc_is(p, "}"))
            kc_expected(p, "the end of the line");
    }
    p->brackets = brackets;
    kc_leave(p);
    if (!first)
        first = new_stmt(p, KC_S_BLOCK);
    kc_need(p, "}");
    return kc_failed(p) ? NULL : first;
}

/* ---- declarations ---- */

static struct kc_generic *generics(struct kc_parser *p)
{
    struct kc_generic *first = NULL, **last = &first;

    do {
        struct kc_generic *g = KC_NEW(p, struct kc_generic);
        if (!g)
            return NULL;
        g->at = p->token.at;
        g->name = kc_need_name(p, "a name");
        kc_need(p, ":");
        g->kind = kc_need_name(p, "type, float, int, size, number or flag");
        if (kc_take(p, "="))
            g->value = kc_parse_literal(p);
        *last = g;
        last = &g->next;
    } while (!kc_failed(p) && kc_take(p, ","));
    kc_need(p, ">");
    return first;
}

/* Of a function or a kernel, between ( and ), or the fields of a struct, between { and }. */
static struct kc_param *params(struct kc_parser *p, const char *open, const char *close)
{
    static const char *const modes[] = {
        [KC_BY_NAME] = "var", [KC_AS_CONST] = "const", [KC_AS_SHARED] = "shared",
        [KC_AS_IN] = "in",    [KC_AS_OUT] = "out",     [KC_AS_INOUT] = "inout"};
    struct kc_param *first = NULL, **last = &first;

    kc_need(p, open);
    while (!kc_failed(p) && !kc_is(p, close)) {
        struct kc_param *q = KC_NEW(p, struct kc_param);
        if (!q)
            return NULL;
        q->at = p->token.at;
        q->name = kc_need_name(p, "a name");
        kc_need(p, ":");
        for (int m = KC_BY_NAME; m <= KC_AS_INOUT; m++)
            if (q->mode == KC_BY_VALUE && kc_take(p, modes[m]))
                q->mode = (enum kc_param_mode)m;
        q->type = kc_parse_type(p);
        *last = q;
        last = &q->next;
        if (!kc_take(p, ","))
            break;
    }
    kc_need(p, close);
    return first;
}

static void fields(struct kc_parser *p, struct kc_decl *d)
{
    d->param = params(p, "{", "}");
    if (!kc_failed(p) && !d->param)
        kc_parse_fail(p, d->at, "a struct has at least one field");
    for (const struct kc_param *f = d->param; f && !kc_failed(p); f = f->next) {
        const struct kc_param *other = d->param;
        while (other != f && !str_eq(other->name, f->name))
            other = other->next;
        if (other != f)
            kc_parse_fail(p, f->at, "the struct has another field of this name");
        else if (f->mode != KC_BY_VALUE)
            kc_parse_fail(p, f->at, "a field is a u32, i32 or f32, or an array of them");
    }
}

static void group_size(struct kc_parser *p, struct kc_decl *d)
{
    size_t count = 0;

    kc_need(p, "group");
    kc_need(p, "(");
    p->brackets++;
    do {
        if (count == 3)
            kc_parse_fail(p, p->token.at, "a group has at most three sizes");
        else
            d->group[count++] = kc_parse_expr(p);
    } while (!kc_failed(p) && kc_take(p, ","));
    p->brackets--;
    kc_need(p, ")");
}

static void declaration(struct kc_parser *p, struct kc_decl *d)
{
    static const char *const kinds[] = {[KC_D_CONST] = "const",
                                        [KC_D_FN] = "fn",
                                        [KC_D_KERNEL] = "kernel",
                                        [KC_D_STRUCT] = "struct"};
    int kind = KC_D_CONST;

    while (kind <= KC_D_STRUCT && !kc_is(p, kinds[kind]))
        kind++;
    if (kind > KC_D_STRUCT) {
        kc_expected(p, "use, const, struct, fn or kernel");
        return;
    }
    d->kind = (enum kc_decl_kind)kind;
    kc_advance(p);
    d->at = p->token.at;
    d->name = kc_need_name(p, "a name");
    if (d->kind == KC_D_CONST) {
        if (kc_take(p, ":"))
            d->type = kc_parse_type(p);
        kc_need(p, "=");
        d->value = kc_parse_expr(p);
        return;
    }
    if (d->kind == KC_D_STRUCT) {
        fields(p, d);
        return;
    }
    if (kc_take(p, "<"))
        d->generic = generics(p);
    d->param = params(p, "(", ")");
    if (d->kind == KC_D_KERNEL)
        group_size(p, d);
    else if (kc_take(p, "->"))
        d->type = kc_parse_type(p);
    d->body = kc_parse_block(p);
}

/* ---- files ---- */

rlx_status kc_parse_file(struct kc_program *program, struct kc_file *f, rlx_str *uses,
                         size_t *count)
{
    struct kc_parser p = {.program = program, .file = f, .lex = {.text = f->text, .base = f->base}};
    struct kc_decl **last = &f->decl;

    kc_advance(&p);
    while (!kc_failed(&p) && p.token.kind != KC_END) {
        if (kc_take(&p, "use")) {
            rlx_str name = p.token.text;
            if (p.token.kind != KC_STRING)
                kc_expected(&p, "the name of a file, in quotes");
            else if (*count == KC_MAX_USES)
                kc_parse_fail(&p, p.token.at, "a file uses too many others");
            else
                uses[(*count)++] = (rlx_str){name.ptr + 1, name.len - 2};
            kc_advance(&p);
            continue;
        }
        struct kc_decl *d = KC_NEW(&p, struct kc_decl);
        if (!d)
            break;
        d->file = f;
        declaration(&p, d);
        *last = d;
        last = &d->next;
    }
    return p.status;
}

static bool is_read(const struct kc_program *p, rlx_str name)
{
    for (const struct kc_file *f = p->file; f; f = f->next)
        if (str_eq(f->name, name))
            return true;
    return false;
}

static rlx_status no_such_file(const struct kc_program *p, rlx_str name)
{
    rlx_nearest near = {.wanted = name};
    char hint[RLX_NEAREST_HINT];

    for (size_t i = 0; kc_library_name(i); i++)
        rlx_nearest_offer(&near, rlx_cstr(kc_library_name(i)));
    return diag_fail(p->diag, RLX_ERROR_NAME, "there is no kernel file called \"%.*s\"%s",
                     STR_ARG(name), rlx_nearest_hint(&near, hint));
}

static rlx_status read_file(struct kc_program *p, rlx_str name, struct kc_file **out)
{
    struct kc_file *f = arena_new(p->arena, struct kc_file), **last = &p->file;

    if (!f)
        return diag_no_memory(p->diag, sizeof *f);
    *f = (struct kc_file){.name = name, .base = p->end};
    if (!p->sources->find(p->sources->user, name, &f->text))
        return no_such_file(p, name);
    if (f->text.len >= UINT32_MAX - p->end - 1 || f->text.len > (1 << 20))
        return diag_fail(p->diag, RLX_ERROR_LIMIT, "%.*s: kernel files are at most 1 MiB",
                         STR_ARG(name));
    p->end += (uint32_t)f->text.len + 1;
    while (*last)
        last = &(*last)->next;
    *last = f;
    *out = f;
    return RLX_OK;
}

/* Files are read in the order in which they are met, each once. */
rlx_status kc_parse(struct kc_program *p, rlx_str name)
{
    rlx_str wanted[KC_MAX_USES + 1] = {name};
    size_t count = 1;

    for (size_t i = 0; i < count; i++) {
        struct kc_file *f;
        rlx_str uses[KC_MAX_USES];
        size_t used = 0;
        if (is_read(p, wanted[i]))
            continue;
        TRY(read_file(p, wanted[i], &f));
        TRY(kc_parse_file(p, f, uses, &used));
        for (size_t k = 0; k < used; k++) {
            bool seen = false;
            for (size_t n = 0; n < count; n++)
                seen |= str_eq(wanted[n], uses[k]);
            if (!seen && count > KC_MAX_USES)
                return diag_fail(p->diag, RLX_ERROR_LIMIT, "%.*s uses too many files",
                                 STR_ARG(name));
            if (!seen)
                wanted[count++] = uses[k];
        }
    }
    return RLX_OK;
}
