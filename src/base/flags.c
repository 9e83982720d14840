/* flags.c: reading the flags of flags.def. */
#include "base/flags.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "rlx/tools.h"

static const struct flag_info infos[FLAG_count] = {
#define STABLE "stable"
#define DEBUG "debug"
#define FLAG(name, kind, values, def, stability, layer, summary) \
    [FLAG_##name] = {"RLX_" #name, FLAG_KIND_##kind, values, def, stability, layer, summary, NULL},
#include "base/flags.def"
#define USER STABLE
#define DEFAULT_SWITCH "0"
#define DEFAULT_NUMBER "0"
#define DEFAULT_CHOICE ""
#define DEFAULT_TEXT ""
#define PASS(name) ", pass"
#define JOINT(name) ", joint"
#define SELECT(name) ", select"
#define SELECT_UNLESS(name, field) ", select"
#define PLAN(name) ", plan"
#define SESSION(name) ", session"
#define OPTION(desc, name, kind, type, values, tells, flag, readers, summary) \
    [FLAG_##flag] = {"RLX_" #flag, FLAG_KIND_##kind, values,  DEFAULT_##kind, \
                     desc,         &(readers)[2],    summary, #name},
#include "base/options.def"
};

const struct flag_info *flag_info(enum flag_id id)
{
    return &infos[id];
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static rlx_str trim(rlx_str s)
{
    while (s.len && is_space(s.ptr[0]))
        s.ptr++, s.len--;
    while (s.len && is_space(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

static bool same_word(rlx_str a, const char *word)
{
    return a.len == strlen(word) && strncasecmp(a.ptr, word, a.len) == 0;
}

bool flag_text_is_on(rlx_str text)
{
    static const char *const off[] = {"", "0", "false", "off", "no"};

    text = trim(text);
    for (size_t i = 0; i < sizeof off / sizeof off[0]; i++)
        if (same_word(text, off[i]))
            return false;
    return true;
}

/* The number of a word in "a|b|c", from 1; 0: it is none of them. */
static int64_t find_word(const char *words, rlx_str text)
{
    int64_t number = 1;

    for (const char *at = words; *at; number++) {
        size_t len = strcspn(at, "|");
        if (text.len == len && strncasecmp(at, text.ptr, len) == 0)
            return number;
        at += len + (at[len] == '|');
    }
    return 0;
}

/* Of a CHOICE, from 1; 0: none. One of the form "1|fail" is a switch with more to it, so that the
 * words of switches are good for its first. */
static int64_t find_choice(const char *words, rlx_str text)
{
    static const char *const on[] = {"true", "on", "yes"};

    for (size_t i = 0; i < sizeof on / sizeof on[0]; i++)
        if (same_word(text, on[i]))
            text = STR("1");
    return flag_text_is_on(text) ? find_word(words, text) : 0;
}

/* false: the text makes no sense for this flag. */
static bool take(const struct flag_info *info, rlx_str text, struct flag_value *v)
{
    switch (info->kind) {
    case FLAG_KIND_SWITCH: v->on = flag_text_is_on(text); return true;
    case FLAG_KIND_NUMBER: return str_to_i64(text, &v->number) && v->number >= 0;
    case FLAG_KIND_CHOICE:
        v->number = find_choice(info->values, text);
        return v->number > 0 || !flag_text_is_on(text);
    case FLAG_KIND_TEXT: return true;
    }
    return true;
}

static void set_default(enum flag_id id, struct flag_value *v)
{
    *v = (struct flag_value){.text = infos[id].default_text};
    take(&infos[id], rlx_cstr(v->text), v);
}

struct reading {
    struct flags *f;
    flags_warn warn;
    void *user;
    struct diag *diag;
};

static rlx_status set(struct reading *r, enum flag_id id, rlx_str text, enum flag_source source)
{
    struct flag_value v = {.source = source};
    char line[256];

    text = arena_str(&r->f->arena, trim(text));
    if (!text.ptr)
        return diag_no_memory(r->diag, 1);
    v.text = text.ptr;
    if (take(&infos[id], text, &v)) {
        r->f->at[id] = v;
        return RLX_OK;
    }
    if (source == FLAG_OVERRIDE)
        return diag_fail(r->diag, RLX_ERROR_ARGUMENT, "%s takes %s, not \"%.60s\"", infos[id].name,
                         infos[id].values, v.text);
    snprintf(line, sizeof line, "%s takes %s, not \"%.60s\"; it stays at its default%s%s",
             infos[id].name, infos[id].values, v.text, infos[id].default_text[0] ? ", " : "",
             infos[id].default_text);
    if (r->warn)
        r->warn(r->user, line);
    set_default(id, &r->f->at[id]);
    return RLX_OK;
}

static bool find(rlx_str name, enum flag_id *out)
{
    for (int i = 0; i < FLAG_count; i++) {
        const char *option = infos[i].option;
        if (!str_eq(name, rlx_cstr(infos[i].name)) && !(option && str_eq(name, rlx_cstr(option))))
            continue;
        *out = (enum flag_id)i;
        return true;
    }
    return false;
}

/* All names that are none of ours, in one line. */
struct strangers {
    char names[200];
    size_t len, count;
};

static void note_unknown(struct strangers *s, rlx_str name)
{
    s->count++;
    if (s->len + name.len + 3 > sizeof s->names)
        return;
    s->len += (size_t)snprintf(s->names + s->len, sizeof s->names - s->len, "%s%.*s",
                               s->len ? ", " : "", STR_ARG(name));
}

static rlx_status read_environment(struct reading *r, char *const *environment)
{
    struct strangers strangers = {0};
    char line[300];

    for (; environment && *environment; environment++) {
        const char *equals = strchr(*environment, '=');
        enum flag_id id;
        if (strncmp(*environment, "RLX_", 4) != 0 || !equals)
            continue;
        rlx_str name = {*environment, (size_t)(equals - *environment)};
        if (find(name, &id))
            TRY(set(r, id, rlx_cstr(equals + 1), FLAG_ENVIRONMENT));
        else
            note_unknown(&strangers, name);
    }
    if (strangers.count && r->warn) {
        snprintf(line, sizeof line, "the environment has %zu RLX_ names that mean nothing: %s%s",
                 strangers.count, strangers.names, strangers.len ? "" : "(too long to show)");
        r->warn(r->user, line);
    }
    return RLX_OK;
}

/* The nearest of all names of flags and options. */
static rlx_status unknown_flag(struct reading *r, const char *name)
{
    rlx_nearest near = {.wanted = rlx_cstr(name)};
    char hint[RLX_NEAREST_HINT];

    for (int i = 0; i < FLAG_count; i++) {
        const struct flag_info *f = flag_info((enum flag_id)i);
        rlx_nearest_offer(&near, rlx_cstr(f->name));
        if (f->option)
            rlx_nearest_offer(&near, rlx_cstr(f->option));
    }
    return diag_fail(r->diag, RLX_ERROR_NAME, "unknown flag \"%s\"%s; rlx flags lists them all",
                     name, rlx_nearest_hint(&near, hint));
}

static rlx_status read_overrides(struct reading *r, const rlx_flag *overrides, size_t count)
{
    char full[80];

    for (size_t i = 0; i < count; i++) {
        const char *name = overrides[i].name;
        enum flag_id id;
        if (!name)
            return diag_fail(r->diag, RLX_ERROR_ARGUMENT, "flag %zu has no name", i);
        snprintf(full, sizeof full, "%s%s", strncmp(name, "RLX_", 4) == 0 ? "" : "RLX_", name);
        if (!find(rlx_cstr(full), &id) && !find(rlx_cstr(name), &id))
            return unknown_flag(r, name);
        TRY(set(r, id, rlx_cstr(overrides[i].value ? overrides[i].value : ""), FLAG_OVERRIDE));
    }
    return RLX_OK;
}

rlx_status flags_read(struct flags *f, const rlx_flag *overrides, size_t count,
                      char *const *environment, const rlx_allocator *mem, flags_warn warn,
                      void *user, struct diag *d)
{
    struct reading r = {f, warn, user, d};

    arena_init(&f->arena, mem);
    for (int i = 0; i < FLAG_count; i++)
        set_default((enum flag_id)i, &f->at[i]);
    rlx_status s = read_environment(&r, environment);
    if (s == RLX_OK)
        s = read_overrides(&r, overrides, count);
    if (s != RLX_OK)
        flags_free(f);
    return s;
}

void flags_free(struct flags *f)
{
    arena_free(&f->arena);
}
