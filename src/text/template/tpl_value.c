/* tpl_value.c: truth, equality, order, and what is inside of a value, as in Python. */
#include <string.h>

#include "text/template/tpl_node.h"
#include "text/template/tpl_value.h"
#include "text/unicode.h"

const char *tpl_kind_name(enum tpl_kind k)
{
    static const char *const names[] = {
        [TPL_UNDEFINED] = "an undefined value",
        [TPL_NONE] = "none",
        [TPL_BOOL] = "a bool",
        [TPL_INT] = "an integer",
        [TPL_FLOAT] = "a float",
        [TPL_STR] = "a string",
        [TPL_LIST] = "a list",
        [TPL_TUPLE] = "a tuple",
        [TPL_DICT] = "a dict",
        [TPL_NAMESPACE] = "a namespace",
        [TPL_LOOP] = "a loop",
        [TPL_FUNCTION] = "a function",
        [TPL_METHOD] = "a method",
        [TPL_MACRO_VALUE] = "a macro",
    };

    return names[k];
}

rlx_status tpl_no_memory(struct tpl_run *r, size_t bytes)
{
    return diag_no_memory(r->d, bytes);
}

rlx_status tpl_charge(struct tpl_run *r, size_t steps)
{
    if (steps > r->most_steps || r->steps > r->most_steps - steps)
        return tpl_bad(r, RLX_ERROR_LIMIT, "the template takes more than %llu steps",
                       (unsigned long long)r->most_steps);
    r->steps += steps;
    return RLX_OK;
}

rlx_status tpl_charge_bytes(struct tpl_run *r, size_t bytes)
{
    return tpl_charge(r, bytes / 32);
}

rlx_status tpl_charge_chars(struct tpl_run *r, size_t bytes)
{
    return tpl_charge(r, bytes / 2);
}

/* ---- one value --------------------------------------------------------------------------- */

bool tpl_truth(struct tpl_value v)
{
    switch (v.kind) {
    case TPL_UNDEFINED:
    case TPL_NONE: return false;
    case TPL_BOOL: return v.u.b;
    case TPL_INT: return v.u.i != 0;
    case TPL_FLOAT: return v.u.f != 0;
    case TPL_STR: return v.u.s->text.len != 0;
    case TPL_LIST:
    case TPL_TUPLE: return v.u.list->count != 0;
    case TPL_DICT: return v.u.dict->count != 0;
    default: return true;
    }
}

bool tpl_as_int(struct tpl_value v, int64_t *out)
{
    if (v.kind != TPL_INT && v.kind != TPL_BOOL)
        return false;
    *out = v.kind == TPL_INT ? v.u.i : v.u.b;
    return true;
}

bool tpl_as_float(struct tpl_value v, double *out)
{
    int64_t i;

    if (v.kind == TPL_FLOAT)
        *out = v.u.f;
    else if (tpl_as_int(v, &i))
        *out = (double)i;
    else
        return false;
    return true;
}

/* ---- two values -------------------------------------------------------------------------- */

static rlx_status too_deep(struct tpl_run *r)
{
    return tpl_bad(r, RLX_ERROR_LIMIT, "more than %d lists and dicts are in each other",
                   TPL_MOST_NESTING);
}

static rlx_status equal(struct tpl_run *r, struct tpl_value a, struct tpl_value b, uint32_t depth,
                        bool *out);

static rlx_status equal_dicts(struct tpl_run *r, const struct tpl_dict *a, const struct tpl_dict *b,
                              uint32_t depth, bool *out)
{
    *out = a->count == b->count;
    for (size_t i = 0; *out && i < a->count; i++) {
        struct tpl_value other;
        TRY(tpl_dict_get(r, b, a->at[i].key, &other, out));
        if (*out)
            TRY(equal(r, a->at[i].value, other, depth, out));
    }
    return RLX_OK;
}

static rlx_status equal(struct tpl_run *r, struct tpl_value a, struct tpl_value b, uint32_t depth,
                        bool *out)
{
    int64_t i, k;
    double x, y;

    TRY(tpl_charge(r, 1));
    if (depth > TPL_MOST_NESTING)
        return too_deep(r);
    *out = false;
    if (tpl_as_int(a, &i) && tpl_as_int(b, &k))
        *out = i == k;
    else if (tpl_as_float(a, &x) && tpl_as_float(b, &y))
        *out = x == y;
    else if (a.kind != b.kind)
        return RLX_OK;
    else if (a.kind == TPL_STR) {
        *out = str_eq(a.u.s->text, b.u.s->text);
        return tpl_charge_bytes(r, a.u.s->text.len == b.u.s->text.len ? a.u.s->text.len : 0);
    } else if (tpl_is_list(a)) {
        *out = a.u.list->count == b.u.list->count;
        for (size_t at = 0; *out && at < a.u.list->count; at++)
            TRY(equal(r, a.u.list->at[at], b.u.list->at[at], depth + 1, out));
    } else if (a.kind == TPL_DICT)
        return equal_dicts(r, a.u.dict, b.u.dict, depth + 1, out);
    else if (a.kind == TPL_UNDEFINED || a.kind == TPL_NONE)
        *out = true;
    else
        *out = a.u.dict == b.u.dict; /* the same object; all pointers lie at one place */
    return RLX_OK;
}

rlx_status tpl_equal(struct tpl_run *r, struct tpl_value a, struct tpl_value b, bool *out)
{
    return equal(r, a, b, 0, out);
}

static rlx_status order(struct tpl_run *r, struct tpl_value a, struct tpl_value b, uint32_t depth,
                        int *out)
{
    int64_t i, k;
    double x, y;

    TRY(tpl_charge(r, 1));
    if (depth > TPL_MOST_NESTING)
        return too_deep(r);
    if (tpl_as_int(a, &i) && tpl_as_int(b, &k))
        *out = (i > k) - (i < k);
    else if (tpl_as_float(a, &x) && tpl_as_float(b, &y))
        *out = (x > y) - (x < y);
    else if (a.kind == TPL_STR && b.kind == TPL_STR) {
        const rlx_str m = a.u.s->text, n = b.u.s->text;
        *out = str_cmp(m, n); /* UTF-8 is in the order of its characters */
        return tpl_charge_bytes(r, m.len < n.len ? m.len : n.len);
    } else if (a.kind == b.kind && tpl_is_list(a)) {
        const struct tpl_list *m = a.u.list, *n = b.u.list;
        *out = 0;
        for (size_t at = 0; *out == 0 && at < m->count && at < n->count; at++) {
            bool same;
            TRY(equal(r, m->at[at], n->at[at], depth + 1, &same));
            if (!same)
                return order(r, m->at[at], n->at[at], depth + 1, out);
        }
        *out = (m->count > n->count) - (m->count < n->count);
    } else if (a.kind == TPL_UNDEFINED || b.kind == TPL_UNDEFINED)
        return tpl_bad(r, RLX_ERROR_ARGUMENT, "an undefined value is compared");
    else
        return tpl_bad(r, RLX_ERROR_ARGUMENT, "%s and %s have no order", tpl_kind_name(a.kind),
                       tpl_kind_name(b.kind));
    return RLX_OK;
}

rlx_status tpl_order(struct tpl_run *r, struct tpl_value a, struct tpl_value b, int *out)
{
    return order(r, a, b, 0, out);
}

rlx_status tpl_contains(struct tpl_run *r, struct tpl_value in, struct tpl_value what, bool *out)
{
    struct tpl_value unused;

    *out = false;
    switch (in.kind) {
    case TPL_UNDEFINED: return RLX_OK;
    case TPL_STR:
        if (what.kind != TPL_STR)
            return tpl_bad(r, RLX_ERROR_ARGUMENT, "%s cannot be in a string",
                           tpl_kind_name(what.kind));
        TRY(tpl_charge_bytes(r, in.u.s->text.len));
        *out = what.u.s->text.len == 0 ||
               (in.u.s->text.len &&
                memmem(in.u.s->text.ptr, in.u.s->text.len, what.u.s->text.ptr, what.u.s->text.len));
        return RLX_OK;
    case TPL_LIST:
    case TPL_TUPLE:
        for (size_t i = 0; !*out && i < in.u.list->count; i++)
            TRY(tpl_equal(r, in.u.list->at[i], what, out));
        return RLX_OK;
    case TPL_DICT:
        if (what.kind == TPL_LIST || what.kind == TPL_DICT)
            return RLX_OK;
        return tpl_dict_get(r, in.u.dict, what, &unused, out);
    default: return tpl_bad(r, RLX_ERROR_ARGUMENT, "nothing can be in %s", tpl_kind_name(in.kind));
    }
}

/* ---- lists ------------------------------------------------------------------------------- */

rlx_status tpl_list_new(struct tpl_run *r, struct tpl_list **out)
{
    *out = arena_new(r->arena, struct tpl_list);
    return *out ? RLX_OK : tpl_no_memory(r, sizeof **out);
}

rlx_status tpl_list_add(struct tpl_run *r, struct tpl_list *l, struct tpl_value v)
{
    if (!tpl_room(r->arena, &l->at, &l->room, l->count, sizeof *l->at))
        return tpl_no_memory(r, l->count * sizeof *l->at);
    l->at[l->count++] = v;
    return tpl_charge(r, 1);
}

rlx_status tpl_pair_new(struct tpl_run *r, struct tpl_value a, struct tpl_value b,
                        struct tpl_value *out)
{
    struct tpl_list *l;

    TRY(tpl_list_new(r, &l));
    TRY(tpl_list_add(r, l, a));
    *out = (struct tpl_value){.kind = TPL_TUPLE, .u.list = l};
    return tpl_list_add(r, l, b);
}

static rlx_status characters(struct tpl_run *r, const struct tpl_str *s, struct tpl_list *l)
{
    for (size_t at = 0, bytes; at < s->text.len; at += bytes) {
        struct tpl_value c;
        utf8_next(s->text.ptr + at, s->text.len - at, &bytes);
        TRY(tpl_substring(r, s, at, at + bytes, &c));
        TRY(tpl_list_add(r, l, c));
    }
    return RLX_OK;
}

rlx_status tpl_items_of(struct tpl_run *r, struct tpl_value v, struct tpl_list **out)
{
    TRY(tpl_list_new(r, out));
    switch (v.kind) {
    case TPL_UNDEFINED: return RLX_OK;
    case TPL_STR: return characters(r, v.u.s, *out);
    case TPL_LIST:
    case TPL_TUPLE:
        for (size_t i = 0; i < v.u.list->count; i++)
            TRY(tpl_list_add(r, *out, v.u.list->at[i]));
        return RLX_OK;
    case TPL_DICT:
        for (size_t i = 0; i < v.u.dict->count; i++)
            TRY(tpl_list_add(r, *out, v.u.dict->at[i].key));
        return RLX_OK;
    default: return tpl_bad(r, RLX_ERROR_ARGUMENT, "%s has no items", tpl_kind_name(v.kind));
    }
}

rlx_status tpl_length(struct tpl_run *r, struct tpl_value v, int64_t *out)
{
    switch (v.kind) {
    case TPL_UNDEFINED: *out = 0; return RLX_OK;
    case TPL_STR:
        *out = (int64_t)tpl_char_count(v.u.s->text);
        return tpl_charge_bytes(r, v.u.s->text.len);
    case TPL_LIST:
    case TPL_TUPLE: *out = (int64_t)v.u.list->count; return RLX_OK;
    case TPL_DICT: *out = (int64_t)v.u.dict->count; return RLX_OK;
    default: return tpl_bad(r, RLX_ERROR_ARGUMENT, "%s has no length", tpl_kind_name(v.kind));
    }
}

/* ---- parts ------------------------------------------------------------------------------- */

/* The byte where character n begins; n may be the number of characters. */
static size_t byte_of(rlx_str s, int64_t n)
{
    size_t at = 0;

    for (size_t bytes; n > 0 && at < s.len; n--, at += bytes)
        utf8_next(s.ptr + at, s.len - at, &bytes);
    return at;
}

static rlx_status char_at(struct tpl_run *r, const struct tpl_str *s, int64_t n,
                          struct tpl_value *out)
{
    const size_t at = byte_of(s->text, n);
    size_t bytes;

    utf8_next(s->text.ptr + at, s->text.len - at, &bytes);
    TRY(tpl_charge_bytes(r, at));
    return tpl_substring(r, s, at, at + bytes, out);
}

rlx_status tpl_item(struct tpl_run *r, struct tpl_value v, struct tpl_value key,
                    struct tpl_value *out)
{
    int64_t i, count;
    bool found;

    *out = tpl_undefined(NULL);
    if (v.kind == TPL_DICT || v.kind == TPL_NAMESPACE) {
        if (key.kind == TPL_LIST || key.kind == TPL_DICT)
            return RLX_OK;
        TRY(tpl_dict_get(r, v.u.dict, key, out, &found));
        if (!found)
            *out = tpl_undefined(NULL);
        return RLX_OK;
    }
    if ((v.kind != TPL_STR && !tpl_is_list(v)) || !tpl_as_int(key, &i))
        return RLX_OK;
    TRY(tpl_length(r, v, &count));
    i += i < 0 ? count : 0;
    if (i < 0 || i >= count)
        return RLX_OK;
    if (v.kind == TPL_STR)
        return char_at(r, v.u.s, i, out);
    *out = v.u.list->at[i];
    return RLX_OK;
}

/* One end of a slice: within -1 .. count where step is below 0, else 0 .. count. */
static rlx_status slice_end(struct tpl_run *r, struct tpl_value v, int64_t count, int64_t otherwise,
                            bool back, int64_t *out)
{
    const int64_t low = back ? -1 : 0, high = back ? count - 1 : count;

    *out = otherwise;
    if (v.kind == TPL_NONE)
        return RLX_OK;
    if (!tpl_as_int(v, out))
        return tpl_bad(r, RLX_ERROR_ARGUMENT, "%s is no place to cut at", tpl_kind_name(v.kind));
    if (*out < 0)
        *out = *out < -count ? low : *out + count;
    *out = *out < low ? low : *out > high ? high : *out;
    return RLX_OK;
}

rlx_status tpl_slice(struct tpl_run *r, struct tpl_value v, const struct tpl_value part[3],
                     struct tpl_value *out)
{
    struct tpl_list *from, *l;
    struct tpl_text t;
    int64_t begin, end, step = 1, count;

    if (v.kind != TPL_STR && !tpl_is_list(v))
        return tpl_bad(r, RLX_ERROR_ARGUMENT, "%s cannot be cut", tpl_kind_name(v.kind));
    TRY(tpl_length(r, v, &count));
    if (part[2].kind != TPL_NONE && (!tpl_as_int(part[2], &step) || step == 0))
        return tpl_bad(r, RLX_ERROR_ARGUMENT, "the step of a slice is an integer that is not 0");
    TRY(slice_end(r, part[0], count, step < 0 ? count - 1 : 0, step < 0, &begin));
    TRY(slice_end(r, part[1], count, step < 0 ? -1 : count, step < 0, &end));
    if (v.kind == TPL_STR && step == 1) {
        const rlx_str s = v.u.s->text;
        TRY(tpl_charge_bytes(r, s.len));
        return tpl_substring(r, v.u.s, byte_of(s, begin), end > begin ? byte_of(s, end) : 0, out);
    }
    TRY(tpl_items_of(r, v, &from));
    TRY(tpl_list_new(r, &l));
    tpl_text_begin(&t, r);
    for (int64_t i = begin; step < 0 ? i > end : i < end;) {
        if (v.kind == TPL_STR)
            tpl_text_add_str(&t, from->at[i].u.s);
        else
            TRY(tpl_list_add(r, l, from->at[i]));
        if (__builtin_add_overflow(i, step, &i))
            break;
    }
    if (v.kind == TPL_STR)
        return tpl_text_end(&t, out);
    *out = (struct tpl_value){.kind = v.kind, .u.list = l};
    return RLX_OK;
}
