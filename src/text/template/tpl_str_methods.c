/* tpl_str_methods.c: methods of strings, as in Python. */
#include <string.h>

#include "text/template/tpl_filters.h"
#include "text/unicode.h"

static const struct tpl_str *self(const struct tpl_call *c)
{
    return c->self.u.s;
}

/* ---- the ends ---------------------------------------------------------------------------- */

/* Is the character in the set? No set: is it white space? */
static bool in_set(rlx_str one, uint32_t code, const struct tpl_str *set)
{
    if (!set)
        return tpl_is_space(code);
    for (size_t at = 0, bytes; at < set->text.len; at += bytes) {
        utf8_next(set->text.ptr + at, set->text.len - at, &bytes);
        if (str_eq(one, (rlx_str){set->text.ptr + at, bytes}))
            return true;
    }
    return false;
}

rlx_status tpl_strip(struct tpl_run *r, const struct tpl_str *s, const struct tpl_str *set,
                     bool left, bool right, struct tpl_value *out)
{
    size_t from = 0, to = s->text.len, bytes;

    while (left && from < to) {
        const uint32_t c = utf8_next(s->text.ptr + from, to - from, &bytes);
        TRY(tpl_charge_bytes(r, set ? set->text.len : 8));
        if (!in_set((rlx_str){s->text.ptr + from, bytes}, c, set))
            break;
        from += bytes;
    }
    while (right && from < to) {
        const size_t at = tpl_char_before(s->text.ptr + from, to - from) + from;
        const uint32_t c = utf8_next(s->text.ptr + at, to - at, &bytes);
        TRY(tpl_charge_bytes(r, set ? set->text.len : 8));
        if (!in_set((rlx_str){s->text.ptr + at, to - at}, c, set))
            break;
        to = at;
    }
    TRY(tpl_charge_bytes(r, s->text.len - (to - from)));
    return tpl_substring(r, s, from, to, out);
}

static rlx_status strip_by(struct tpl_call *c, bool left, bool right)
{
    const struct tpl_str *set = NULL;

    if (tpl_given(c, 0) && c->arg[0].kind != TPL_NONE)
        TRY(tpl_arg_str(c, 0, &set));
    return tpl_strip(c->r, self(c), set, left, right, &c->out);
}

static rlx_status str_strip(struct tpl_call *c)
{
    return strip_by(c, true, true);
}

static rlx_status str_lstrip(struct tpl_call *c)
{
    return strip_by(c, true, false);
}

static rlx_status str_rstrip(struct tpl_call *c)
{
    return strip_by(c, false, true);
}

/* Does it begin, or end, with one of them: a string, or a tuple of some? */
static rlx_status has_end(struct tpl_call *c, bool front)
{
    const struct tpl_value one = c->arg[0];
    const struct tpl_value *at = one.kind == TPL_TUPLE ? one.u.list->at : &one;
    const size_t count = one.kind == TPL_TUPLE ? one.u.list->count : 1;
    bool has = false;

    for (size_t i = 0; i < count; i++) {
        if (at[i].kind != TPL_STR)
            return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "%s takes a string here, and gets %s",
                           c->fn->name, tpl_kind_name(at[i].kind));
        has = has || (front ? str_starts(self(c)->text, at[i].u.s->text)
                            : str_ends(self(c)->text, at[i].u.s->text));
        TRY(tpl_charge_bytes(c->r, at[i].u.s->text.len));
    }
    c->out = tpl_bool(has);
    return tpl_charge(c->r, count);
}

static rlx_status str_startswith(struct tpl_call *c)
{
    return has_end(c, true);
}

static rlx_status str_endswith(struct tpl_call *c)
{
    return has_end(c, false);
}

static rlx_status str_removeprefix(struct tpl_call *c)
{
    const struct tpl_str *part;

    TRY(tpl_arg_str(c, 0, &part));
    const bool has = str_starts(self(c)->text, part->text);
    return tpl_substring(c->r, self(c), has ? part->text.len : 0, self(c)->text.len, &c->out);
}

static rlx_status str_removesuffix(struct tpl_call *c)
{
    const struct tpl_str *part;

    TRY(tpl_arg_str(c, 0, &part));
    const bool has = str_ends(self(c)->text, part->text);
    return tpl_substring(c->r, self(c), 0, self(c)->text.len - (has ? part->text.len : 0), &c->out);
}

/* ---- split ------------------------------------------------------------------------------- */

static rlx_status add_part(struct tpl_call *c, struct tpl_list *l, size_t from, size_t to)
{
    struct tpl_value v;

    TRY(tpl_substring(c->r, self(c), from, to, &v));
    return tpl_list_add(c->r, l, v);
}

/* The last place of a separator that ends at `end` at the latest; SIZE_MAX: none. */
static size_t find_last(rlx_str s, size_t end, rlx_str sep)
{
    for (size_t at = end < sep.len ? SIZE_MAX : end - sep.len; at != SIZE_MAX; at--)
        if (memcmp(s.ptr + at, sep.ptr, sep.len) == 0)
            return at;
    return SIZE_MAX;
}

static void turn_around(struct tpl_list *l)
{
    for (size_t i = 0; i < l->count / 2; i++) {
        const struct tpl_value swap = l->at[i];
        l->at[i] = l->at[l->count - 1 - i];
        l->at[l->count - 1 - i] = swap;
    }
}

static rlx_status split_at(struct tpl_call *c, rlx_str sep, int64_t most, bool back,
                           struct tpl_list *l)
{
    const rlx_str s = self(c)->text;
    size_t from = 0, end = s.len;

    if (!sep.len)
        return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "split: the separator is empty");
    TRY(tpl_charge_bytes(c->r, back ? s.len * sep.len : s.len));
    for (; most != 0; most--) {
        if (back) {
            const size_t at = find_last(s, end, sep);
            if (at == SIZE_MAX)
                break;
            TRY(add_part(c, l, at + sep.len, end));
            end = at;
        } else {
            const char *p =
                from < s.len ? memmem(s.ptr + from, s.len - from, sep.ptr, sep.len) : NULL;
            if (!p)
                break;
            TRY(add_part(c, l, from, (size_t)(p - s.ptr)));
            from = (size_t)(p - s.ptr) + sep.len;
        }
    }
    return add_part(c, l, from, end);
}

/* At white space, of which any amount is one separator. */
static rlx_status split_words(struct tpl_call *c, int64_t most, struct tpl_list *l)
{
    const rlx_str s = self(c)->text;
    size_t bytes;

    TRY(tpl_charge_bytes(c->r, s.len));
    for (size_t at = 0, end; at < s.len; at = end) {
        end = at;
        while (end < s.len && tpl_is_space(utf8_next(s.ptr + end, s.len - end, &bytes)))
            end += bytes;
        at = end;
        if (at == s.len)
            break;
        if (most-- == 0)
            return add_part(c, l, at, s.len);
        while (end < s.len && !tpl_is_space(utf8_next(s.ptr + end, s.len - end, &bytes)))
            end += bytes;
        TRY(add_part(c, l, at, end));
    }
    return RLX_OK;
}

static rlx_status split(struct tpl_call *c, bool back)
{
    const struct tpl_str *sep;
    struct tpl_list *l;
    int64_t most;

    TRY(tpl_arg_int(c, 1, -1, &most));
    TRY(tpl_list_new(c->r, &l));
    c->out = (struct tpl_value){.kind = TPL_LIST, .u.list = l};
    if (!tpl_given(c, 0) || c->arg[0].kind == TPL_NONE) {
        if (back && most >= 0)
            return tpl_bad(c->r, RLX_ERROR_UNSUPPORTED,
                           "rsplit with a limit needs a separator here");
        return split_words(c, most, l);
    }
    TRY(tpl_arg_str(c, 0, &sep));
    TRY(split_at(c, sep->text, most, back, l));
    if (back)
        turn_around(l);
    return RLX_OK;
}

static rlx_status str_split(struct tpl_call *c)
{
    return split(c, false);
}

static rlx_status str_rsplit(struct tpl_call *c)
{
    return split(c, true);
}

static bool is_break(uint32_t c)
{
    return (c >= 10 && c <= 13) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
}

static rlx_status str_splitlines(struct tpl_call *c)
{
    const bool keep = tpl_arg_bool(c, 0, false);
    const rlx_str s = self(c)->text;
    struct tpl_list *l;
    size_t from = 0;

    TRY(tpl_list_new(c->r, &l));
    TRY(tpl_charge_bytes(c->r, s.len));
    for (size_t at = 0, bytes; at < s.len; at += bytes) {
        const uint32_t code = utf8_next(s.ptr + at, s.len - at, &bytes);
        if (!is_break(code))
            continue;
        bytes += code == '\r' && at + 1 < s.len && s.ptr[at + 1] == '\n';
        TRY(add_part(c, l, from, keep ? at + bytes : at));
        from = at + bytes;
    }
    c->out = (struct tpl_value){.kind = TPL_LIST, .u.list = l};
    return from < s.len ? add_part(c, l, from, s.len) : RLX_OK;
}

/* ---- looked for -------------------------------------------------------------------------- */

/* Byte of the first or last place; SIZE_MAX: none. */
static rlx_status find(struct tpl_call *c, bool back, size_t *out)
{
    const rlx_str s = self(c)->text;
    const struct tpl_str *part;

    TRY(tpl_arg_str(c, 0, &part));
    TRY(tpl_charge_bytes(c->r, back ? s.len * (part->text.len + 1) : s.len));
    if (!part->text.len)
        *out = back ? s.len : 0;
    else if (back)
        *out = find_last(s, s.len, part->text);
    else {
        const char *p = s.len ? memmem(s.ptr, s.len, part->text.ptr, part->text.len) : NULL;
        *out = p ? (size_t)(p - s.ptr) : SIZE_MAX;
    }
    return RLX_OK;
}

static rlx_status found_at(struct tpl_call *c, bool back)
{
    size_t at;

    TRY(find(c, back, &at));
    c->out =
        tpl_int(at == SIZE_MAX ? -1 : (int64_t)tpl_char_count((rlx_str){self(c)->text.ptr, at}));
    return RLX_OK;
}

static rlx_status str_find(struct tpl_call *c)
{
    return found_at(c, false);
}

static rlx_status str_rfind(struct tpl_call *c)
{
    return found_at(c, true);
}

static rlx_status str_index(struct tpl_call *c)
{
    TRY(found_at(c, false));
    return c->out.u.i >= 0
               ? RLX_OK
               : tpl_bad(c->r, RLX_ERROR_ARGUMENT, "index: the text is not in the string");
}

static rlx_status str_count(struct tpl_call *c)
{
    const rlx_str s = self(c)->text;
    const struct tpl_str *part;
    int64_t n = 0;

    TRY(tpl_arg_str(c, 0, &part));
    TRY(tpl_charge_bytes(c->r, s.len));
    if (!part->text.len)
        n = (int64_t)tpl_char_count(s) + 1;
    for (size_t at = 0; part->text.len && at < s.len; n++) {
        const char *p = memmem(s.ptr + at, s.len - at, part->text.ptr, part->text.len);
        if (!p)
            break;
        at = (size_t)(p - s.ptr) + part->text.len;
    }
    c->out = tpl_int(n);
    return RLX_OK;
}

/* ---- changed ----------------------------------------------------------------------------- */

/* Between characters too, where old is empty. */
static void replace_nothing(struct tpl_text *t, const struct tpl_str *s, const struct tpl_str *new,
                            int64_t most)
{
    for (size_t at = 0, bytes; at <= s->text.len; at += bytes, most--) {
        if (most != 0)
            tpl_text_add_str(t, new);
        if (most == 0 || at == s->text.len) {
            tpl_text_add_part(t, s, at, s->text.len);
            return;
        }
        utf8_next(s->text.ptr + at, s->text.len - at, &bytes);
        tpl_text_add_part(t, s, at, at + bytes);
    }
}

rlx_status tpl_replace(struct tpl_run *r, const struct tpl_str *s, const struct tpl_str *old,
                       const struct tpl_str *new, int64_t most, struct tpl_value *out)
{
    struct tpl_text t;
    size_t from = 0;

    tpl_text_begin(&t, r);
    TRY(tpl_charge_bytes(r, s->text.len));
    if (!old->text.len) {
        TRY(tpl_charge_chars(r, s->text.len));
        replace_nothing(&t, s, new, most);
        return tpl_text_end(&t, out);
    }
    for (; most != 0 && from < s->text.len; most--) {
        const char *p =
            memmem(s->text.ptr + from, s->text.len - from, old->text.ptr, old->text.len);
        if (!p)
            break;
        tpl_text_add_part(&t, s, from, (size_t)(p - s->text.ptr));
        tpl_text_add_str(&t, new);
        TRY(t.failed);
        from = (size_t)(p - s->text.ptr) + old->text.len;
    }
    tpl_text_add_part(&t, s, from, s->text.len);
    return tpl_text_end(&t, out);
}

static rlx_status str_replace(struct tpl_call *c)
{
    const struct tpl_str *old, *new;
    int64_t most;

    TRY(tpl_arg_str(c, 0, &old));
    TRY(tpl_arg_str(c, 1, &new));
    TRY(tpl_arg_int(c, 2, -1, &most));
    return tpl_replace(c->r, self(c), old, new, most, &c->out);
}

static rlx_status str_upper(struct tpl_call *c)
{
    return tpl_change_case(c->r, self(c), TPL_UPPER, &c->out);
}

static rlx_status str_lower(struct tpl_call *c)
{
    return tpl_change_case(c->r, self(c), TPL_LOWER, &c->out);
}

static rlx_status str_title(struct tpl_call *c)
{
    return tpl_change_case(c->r, self(c), TPL_TITLE, &c->out);
}

static rlx_status str_capitalize(struct tpl_call *c)
{
    return tpl_change_case(c->r, self(c), TPL_CAPITALIZE, &c->out);
}

static rlx_status str_join(struct tpl_call *c)
{
    struct tpl_list *l;
    struct tpl_text t;

    TRY(tpl_items_of(c->r, c->arg[0], &l));
    tpl_text_begin(&t, c->r);
    for (size_t i = 0; i < l->count; i++) {
        if (l->at[i].kind != TPL_STR)
            return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "join: item %zu is %s, not a string", i,
                           tpl_kind_name(l->at[i].kind));
        if (i)
            tpl_text_add_str(&t, self(c));
        tpl_text_add_str(&t, l->at[i].u.s);
    }
    return tpl_text_end(&t, &c->out);
}

/* ---- format ------------------------------------------------------------------------------ */

/* What "{..}" names: nothing, a position, or an argument's name. */
static rlx_status field(struct tpl_call *c, rlx_str name, size_t *next, struct tpl_value *out)
{
    const size_t plain = c->all.count - c->all.names;
    int64_t at = (int64_t)*next;

    for (size_t i = 0; i < c->all.names; i++) {
        if (str_eq(name, c->all.name[i])) {
            *out = c->all.at[plain + i];
            return RLX_OK;
        }
    }
    if (!name.len)
        ++*next;
    else if (!str_to_i64(name, &at))
        return tpl_bad(c->r, RLX_ERROR_UNSUPPORTED,
                       "format: \"{%.*s}\" is neither {}, a position nor an argument",
                       STR_ARG(name));
    if (at < 0 || at >= (int64_t)plain)
        return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "format: there is no argument %lld",
                       (long long)at);
    *out = c->all.at[at];
    return RLX_OK;
}

static rlx_status str_format(struct tpl_call *c)
{
    const rlx_str s = self(c)->text;
    struct tpl_value v;
    struct tpl_text t;
    size_t next = 0;

    tpl_text_begin(&t, c->r);
    TRY(tpl_charge_chars(c->r, s.len));
    for (size_t i = 0; i < s.len; i++) {
        const char ch = s.ptr[i];
        if (ch != '{' && ch != '}') {
            tpl_text_add_part(&t, self(c), i, i + 1);
            continue;
        }
        if (i + 1 < s.len && s.ptr[i + 1] == ch) { /* {{ is { */
            tpl_text_add_part(&t, self(c), i, i + 1);
            i++;
            continue;
        }
        const char *end = ch == '{' ? memchr(s.ptr + i, '}', s.len - i) : NULL;
        if (!end)
            return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "format: a bracket stands alone");
        const size_t len = (size_t)(end - s.ptr) - i - 1;
        TRY(field(c, (rlx_str){s.ptr + i + 1, len}, &next, &v));
        TRY(tpl_print(&t, v));
        i += len + 1;
    }
    return tpl_text_end(&t, &c->out);
}

/* ---- of what kind ------------------------------------------------------------------------ */

/* There are characters, and all are of those categories. */
static rlx_status all_of(struct tpl_call *c, uint32_t categories)
{
    const rlx_str s = self(c)->text;
    bool all = s.len > 0;

    TRY(tpl_charge_chars(c->r, s.len));
    for (size_t at = 0, bytes; all && at < s.len; at += bytes)
        all = (unicode_category_bit(utf8_next(s.ptr + at, s.len - at, &bytes)) & categories) != 0;
    c->out = tpl_bool(all);
    return RLX_OK;
}

static rlx_status str_isalpha(struct tpl_call *c)
{
    return all_of(c, CATS_L);
}

static rlx_status str_isdigit(struct tpl_call *c)
{
    return all_of(c, CAT_BIT(Nd));
}

static rlx_status str_isalnum(struct tpl_call *c)
{
    return all_of(c, CATS_L | CATS_N);
}

static rlx_status str_isspace(struct tpl_call *c)
{
    struct tpl_value rest;

    TRY(tpl_strip(c->r, self(c), NULL, true, false, &rest));
    c->out = tpl_bool(self(c)->text.len && !tpl_truth(rest));
    return RLX_OK;
}

const struct tpl_builtin tpl_str_methods[] = {{"split", "sep maxsplit", 0, str_split},
                                              {"rsplit", "sep maxsplit", 0, str_rsplit},
                                              {"splitlines", "keepends", 0, str_splitlines},
                                              {"strip", "chars", 0, str_strip},
                                              {"lstrip", "chars", 0, str_lstrip},
                                              {"rstrip", "chars", 0, str_rstrip},
                                              {"startswith", "prefix", 1, str_startswith},
                                              {"endswith", "suffix", 1, str_endswith},
                                              {"removeprefix", "prefix", 1, str_removeprefix},
                                              {"removesuffix", "suffix", 1, str_removesuffix},
                                              {"find", "sub", 1, str_find},
                                              {"rfind", "sub", 1, str_rfind},
                                              {"index", "sub", 1, str_index},
                                              {"count", "sub", 1, str_count},
                                              {"replace", "old new count", 2, str_replace},
                                              {"upper", "", 0, str_upper},
                                              {"lower", "", 0, str_lower},
                                              {"title", "", 0, str_title},
                                              {"capitalize", "", 0, str_capitalize},
                                              {"join", "iterable", 1, str_join},
                                              {"format", "*", 0, str_format},
                                              {"isalpha", "", 0, str_isalpha},
                                              {"isdigit", "", 0, str_isdigit},
                                              {"isalnum", "", 0, str_isalnum},
                                              {"isspace", "", 0, str_isspace},
                                              {0}};
