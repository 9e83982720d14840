/* tpl_filters.c: filters of single values. Those of lists are in tpl_list_filters.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/template/tpl_call.h"
#include "text/template/tpl_filters.h"

/* ---- text -------------------------------------------------------------------------------- */

static rlx_status to_case(struct tpl_call *c, enum tpl_case to)
{
    const struct tpl_str *s;

    TRY(tpl_self_str(c, &s));
    return tpl_change_case(c->r, s, to, &c->out);
}

static rlx_status filter_upper(struct tpl_call *c)
{
    return to_case(c, TPL_UPPER);
}

static rlx_status filter_lower(struct tpl_call *c)
{
    return to_case(c, TPL_LOWER);
}

static rlx_status filter_title(struct tpl_call *c)
{
    return to_case(c, TPL_TITLE_WORDS);
}

static rlx_status filter_capitalize(struct tpl_call *c)
{
    return to_case(c, TPL_CAPITALIZE);
}

static rlx_status filter_trim(struct tpl_call *c)
{
    const struct tpl_str *s, *set = NULL;

    TRY(tpl_self_str(c, &s));
    if (tpl_given(c, 0) && c->arg[0].kind != TPL_NONE)
        TRY(tpl_arg_str(c, 0, &set));
    return tpl_strip(c->r, s, set, true, true, &c->out);
}

static rlx_status filter_string(struct tpl_call *c)
{
    c->out.kind = TPL_STR;
    return tpl_self_str(c, &c->out.u.s);
}

static rlx_status filter_replace(struct tpl_call *c)
{
    const struct tpl_str *s, *old, *new;
    int64_t most;

    TRY(tpl_self_str(c, &s));
    TRY(tpl_to_str(c->r, c->arg[0], &old));
    TRY(tpl_to_str(c->r, c->arg[1], &new));
    TRY(tpl_arg_int(c, 2, -1, &most));
    return tpl_replace(c->r, s, old, new, most, &c->out);
}

/* The width that stands for so many spaces, or is text already. */
static rlx_status indentation(struct tpl_call *c, int i, int64_t otherwise,
                              const struct tpl_str **out)
{
    struct tpl_value v;
    struct tpl_text t;
    int64_t width;

    if (c->arg[i].kind == TPL_STR)
        return tpl_arg_str(c, i, out);
    TRY(tpl_arg_int(c, i, otherwise, &width));
    tpl_text_begin(&t, c->r);
    for (; width > 0 && t.failed == RLX_OK; width--)
        tpl_text_add(&t, STR(" "), false);
    TRY(tpl_text_end(&t, &v));
    *out = v.u.s;
    return RLX_OK;
}

static rlx_status filter_indent(struct tpl_call *c)
{
    const bool first = tpl_arg_bool(c, 1, false), blank = tpl_arg_bool(c, 2, false);
    const struct tpl_str *s, *with;
    struct tpl_text t;

    TRY(tpl_self_str(c, &s));
    TRY(indentation(c, 0, 4, &with));
    tpl_text_begin(&t, c->r);
    for (size_t at = 0, end; at <= s->text.len; at = end + 1) {
        const char *line =
            at < s->text.len ? memchr(s->text.ptr + at, '\n', s->text.len - at) : NULL;
        end = line ? (size_t)(line - s->text.ptr) : s->text.len;
        if (at ? blank || end > at : first)
            tpl_text_add_str(&t, with);
        tpl_text_add_part(&t, s, at, line ? end + 1 : end);
        TRY(t.failed);
    }
    return tpl_text_end(&t, &c->out);
}

/* ---- JSON -------------------------------------------------------------------------------- */

static rlx_status separators(struct tpl_call *c, struct tpl_json_style *style)
{
    struct tpl_list *l;

    if (!tpl_given(c, 2) || c->arg[2].kind == TPL_NONE)
        return RLX_OK;
    TRY(tpl_items_of(c->r, c->arg[2], &l));
    if (l->count != 2 || l->at[0].kind != TPL_STR || l->at[1].kind != TPL_STR)
        return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "tojson: separators are two strings");
    style->item = l->at[0].u.s->text;
    style->key = l->at[1].u.s->text;
    return RLX_OK;
}

static rlx_status filter_tojson(struct tpl_call *c)
{
    struct tpl_json_style style = {.item = STR(", "),
                                   .key = STR(": "),
                                   .ascii = tpl_arg_bool(c, 0, false),
                                   .sorted = tpl_arg_bool(c, 3, false)};
    struct tpl_text t;

    if (tpl_given(c, 1) && c->arg[1].kind != TPL_NONE) {
        TRY(indentation(c, 1, 0, &style.indent));
        style.item = STR(",");
    }
    TRY(separators(c, &style));
    tpl_text_begin(&t, c->r);
    TRY(tpl_to_json(&t, c->self, &style));
    return tpl_text_end(&t, &c->out);
}

static rlx_status filter_from_json(struct tpl_call *c)
{
    const struct tpl_str *s;

    TRY(tpl_self_str(c, &s));
    /* One origin for all of it: data, if any byte is. */
    return tpl_from_json(c->r, s->text, s->data || s->cuts, "template: from_json", &c->out);
}

/* ---- numbers ----------------------------------------------------------------------------- */

/* A number at all? Text is read as one. */
static bool number_of(struct tpl_value v, struct tpl_value *out)
{
    double f;
    int64_t i;

    if (tpl_as_float(v, &f)) {
        *out = v.kind == TPL_FLOAT ? v : tpl_int(v.kind == TPL_INT ? v.u.i : v.u.b);
        return true;
    }
    if (v.kind != TPL_STR)
        return false;
    rlx_str s = v.u.s->text;
    if (s.len > 1000) /* that is no number that anybody means */
        return false;
    s.len = tpl_end_without_space(s.ptr, s.len);
    while (s.len && (*s.ptr == ' ' || (*s.ptr >= 9 && *s.ptr <= 13))) {
        s.ptr++;
        s.len--;
    }
    if (s.len > 1 && *s.ptr == '+' && s.ptr[1] != '-') {
        s.ptr++;
        s.len--;
    }
    if (str_to_i64(s, &i))
        *out = tpl_int(i);
    else if (str_to_f64(s, &f))
        *out = tpl_float(f);
    else
        return false;
    return true;
}

static rlx_status filter_int(struct tpl_call *c)
{
    struct tpl_value v;
    int64_t base;

    TRY(tpl_arg_int(c, 1, 10, &base));
    if (base != 10)
        return tpl_bad(c->r, RLX_ERROR_UNSUPPORTED, "int: only base 10 is supported");
    c->out = tpl_given(c, 0) ? c->arg[0] : tpl_int(0);
    if (!number_of(c->self, &v))
        return RLX_OK;
    if (v.kind == TPL_INT)
        c->out = v;
    else if (v.u.f > -9.2e18 && v.u.f < 9.2e18)
        c->out = tpl_int((int64_t)v.u.f);
    else if (isfinite(v.u.f))
        return tpl_bad(c->r, RLX_ERROR_LIMIT, "int: the number does not fit 64 bits");
    return RLX_OK;
}

static rlx_status filter_float(struct tpl_call *c)
{
    struct tpl_value v;
    double f;

    c->out = tpl_given(c, 0) ? c->arg[0] : tpl_float(0);
    if (number_of(c->self, &v) && tpl_as_float(v, &f))
        c->out = tpl_float(f);
    return RLX_OK;
}

static rlx_status filter_abs(struct tpl_call *c)
{
    const struct tpl_value zero = tpl_int(0);
    struct tpl_value v;
    double f;

    if (!tpl_as_float(c->self, &f))
        return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "abs: %s is no number",
                       tpl_kind_name(c->self.kind));
    if (c->self.kind == TPL_FLOAT)
        c->out = tpl_float(fabs(f));
    else if (f >= 0)
        c->out = c->self.kind == TPL_BOOL ? tpl_int(c->self.u.b) : c->self;
    else {
        TRY(tpl_math(c->r, TPL_SUB, zero, c->self, &v));
        c->out = v;
    }
    return RLX_OK;
}

/* To the nearest, of two the even one; or up, or down. */
static rlx_status filter_round(struct tpl_call *c)
{
    const struct tpl_str *how = NULL;
    char text[64];
    int64_t digits;
    double f, scale;

    if (!tpl_as_float(c->self, &f))
        return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "round: %s is no number",
                       tpl_kind_name(c->self.kind));
    TRY(tpl_arg_int(c, 0, 0, &digits));
    if (tpl_given(c, 1))
        TRY(tpl_arg_str(c, 1, &how));
    if (c->self.kind != TPL_FLOAT && digits >= 0 && (!how || str_eq(how->text, STR("common")))) {
        c->out = c->self.kind == TPL_INT ? c->self : tpl_int(c->self.u.b);
        return RLX_OK;
    }
    if (digits < -300 || digits > 300 || !isfinite(f)) {
        c->out = tpl_float(digits < 0 && isfinite(f) ? 0 : f);
        return RLX_OK;
    }
    scale = pow(10, (double)digits);
    if (how && str_eq(how->text, STR("ceil")))
        f = ceil(f * scale) / scale;
    else if (how && str_eq(how->text, STR("floor")))
        f = floor(f * scale) / scale;
    else if (how && !str_eq(how->text, STR("common")))
        return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "round: the method is common, ceil or floor");
    else if (digits <= 0)
        f = rint(f * scale) / scale;
    else if (digits <= 20 && fabs(f) < 1e15) { /* as the digits that are written say */
        snprintf(text, sizeof text, "%.*f", (int)digits, f);
        for (char *p = text; *p; p++)
            *p = *p == ',' ? '.' : *p; /* whatever the locale */
        str_to_f64(rlx_cstr(text), &f);
    }
    c->out = tpl_float(f);
    return RLX_OK;
}

/* ---- others ------------------------------------------------------------------------------ */

static rlx_status filter_default(struct tpl_call *c)
{
    const bool falsy = tpl_arg_bool(c, 1, false);
    const bool has = falsy ? tpl_truth(c->self) : c->self.kind != TPL_UNDEFINED;

    c->out = c->self;
    if (has)
        return RLX_OK;
    if (c->all.count)
        c->out = c->arg[0];
    else
        return tpl_string(c->r, STR(""), false, &c->out);
    return RLX_OK;
}

static rlx_status filter_length(struct tpl_call *c)
{
    int64_t n;

    TRY(tpl_length(c->r, c->self, &n));
    c->out = tpl_int(n);
    return RLX_OK;
}

static rlx_status filter_safe(struct tpl_call *c)
{
    return filter_string(c);
}

const struct tpl_builtin tpl_filters[] = {
    {"upper", "", 0, filter_upper},
    {"lower", "", 0, filter_lower},
    {"title", "", 0, filter_title},
    {"capitalize", "", 0, filter_capitalize},
    {"trim", "chars", 0, filter_trim},
    {"string", "", 0, filter_string},
    {"safe", "", 0, filter_safe},
    {"replace", "old new count", 2, filter_replace},
    {"indent", "width first blank", 0, filter_indent},
    {"tojson", "ensure_ascii indent separators sort_keys", 0, filter_tojson},
    {"from_json", "", 0, filter_from_json},
    {"int", "default base", 0, filter_int},
    {"float", "default", 0, filter_float},
    {"abs", "", 0, filter_abs},
    {"round", "precision method", 0, filter_round},
    {"default", "default_value boolean", 0, filter_default},
    {"d", "default_value boolean", 0, filter_default},
    {"length", "", 0, filter_length},
    {"count", "", 0, filter_length},
#define X(name, params, need) {#name, params, need, tpl_filter_##name},
    TPL_LIST_FILTER_MAP(X)
#undef X
        {0}};
