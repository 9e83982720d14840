/* tpl_json.c: values as JSON, as Python's json.dumps writes it, and JSON as values. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json_read.h"
#include "text/template/tpl_node.h"
#include "text/template/tpl_value.h"
#include "text/unicode.h"

/* ---- writing ----------------------------------------------------------------------------- */

struct writing {
    struct tpl_text *t;
    const struct tpl_json_style *style;
};

static void add(struct writing *w, const char *s)
{
    tpl_text_add(w->t, rlx_cstr(s), false);
}

static void add_char(struct writing *w, uint32_t c, rlx_str bytes, bool data)
{
    static const char from[] = "\"\\\n\r\t\f\b", to[] = "\"\\nrtfb";
    const char *known = c && c < 0x80 ? strchr(from, (int)c) : NULL;
    char text[16];
    int len;

    if (known)
        len = snprintf(text, sizeof text, "\\%c", to[known - from]);
    else if (c < 0x20 || (w->style->ascii && c >= 0x80 && c < 0x10000))
        len = snprintf(text, sizeof text, "\\u%04x", c);
    else if (w->style->ascii && c >= 0x10000)
        len = snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                       0xdc00 + ((c - 0x10000) & 0x3ff));
    else {
        tpl_text_add(w->t, bytes, data);
        return;
    }
    tpl_text_add(w->t, (rlx_str){text, (size_t)len}, data);
}

static void add_string(struct writing *w, const struct tpl_str *s)
{
    rlx_str piece;
    bool data;

    add(w, "\"");
    for (size_t pos = 0; tpl_next_piece(s, &pos, &piece, &data);) {
        size_t plain = 0; /* where bytes begin that stay as they are */
        for (size_t at = 0, bytes; at < piece.len; at += bytes) {
            const uint32_t c = utf8_next(piece.ptr + at, piece.len - at, &bytes);
            if (c >= 0x20 && c != '"' && c != '\\' && (c < 0x80 || !w->style->ascii))
                continue;
            tpl_text_add(w->t, (rlx_str){piece.ptr + plain, at - plain}, data);
            add_char(w, c, (rlx_str){piece.ptr + at, bytes}, data);
            plain = at + bytes;
        }
        tpl_text_add(w->t, (rlx_str){piece.ptr + plain, piece.len - plain}, data);
    }
    add(w, "\"");
}

static void new_line(struct writing *w, uint32_t depth)
{
    if (!w->style->indent)
        return;
    add(w, "\n");
    for (uint32_t i = 0; i < depth; i++)
        tpl_text_add_str(w->t, w->style->indent);
}

static rlx_status write_value(struct writing *w, struct tpl_value v, uint32_t depth);

static rlx_status write_list(struct writing *w, const struct tpl_list *l, uint32_t depth)
{
    if (!l->count) {
        add(w, "[]");
        return RLX_OK;
    }
    for (size_t i = 0; i < l->count; i++) {
        if (i)
            tpl_text_add(w->t, w->style->item, false);
        else
            add(w, "[");
        new_line(w, depth + 1);
        TRY(write_value(w, l->at[i], depth + 1));
    }
    new_line(w, depth);
    add(w, "]");
    return RLX_OK;
}

/* Keys that are no strings are written as strings. */
static rlx_status write_key(struct writing *w, struct tpl_value key)
{
    if (key.kind == TPL_STR) {
        add_string(w, key.u.s);
        return RLX_OK;
    }
    if (key.kind == TPL_TUPLE)
        return tpl_bad(w->t->r, RLX_ERROR_ARGUMENT, "tojson: a tuple cannot be a key");
    add(w, "\"");
    TRY(write_value(w, key, 0));
    add(w, "\"");
    return RLX_OK;
}

static rlx_status write_dict(struct writing *w, const struct tpl_dict *d, uint32_t depth)
{
    struct tpl_pair *at = d->at;

    if (!d->count) {
        add(w, "{}");
        return RLX_OK;
    }
    if (w->style->sorted)
        TRY(tpl_sorted(w->t->r, d->at, d->count, false, &at));
    for (size_t i = 0; i < d->count; i++) {
        if (i)
            tpl_text_add(w->t, w->style->item, false);
        else
            add(w, "{");
        new_line(w, depth + 1);
        TRY(write_key(w, at[i].key));
        tpl_text_add(w->t, w->style->key, false);
        TRY(write_value(w, at[i].value, depth + 1));
    }
    new_line(w, depth);
    add(w, "}");
    return RLX_OK;
}

static rlx_status write_value(struct writing *w, struct tpl_value v, uint32_t depth)
{
    struct tpl_run *r = w->t->r;
    char text[40];

    if (depth > TPL_MOST_NESTING)
        return tpl_bad(r, RLX_ERROR_LIMIT, "tojson: more than %d lists and dicts are in each other",
                       TPL_MOST_NESTING);
    TRY(tpl_charge(r, 1));
    TRY(w->t->failed);
    switch (v.kind) {
    case TPL_NONE: add(w, "null"); return RLX_OK;
    case TPL_BOOL: add(w, v.u.b ? "true" : "false"); return RLX_OK;
    case TPL_INT: return tpl_repr(w->t, v, 0);
    case TPL_FLOAT:
        tpl_float_text(v.u.f, text);
        add(w, isnan(v.u.f) ? "NaN" : !isinf(v.u.f) ? text : v.u.f > 0 ? "Infinity" : "-Infinity");
        return RLX_OK;
    case TPL_STR:
        TRY(tpl_charge_chars(r, v.u.s->text.len));
        add_string(w, v.u.s);
        return RLX_OK;
    case TPL_LIST:
    case TPL_TUPLE: return write_list(w, v.u.list, depth);
    case TPL_DICT: return write_dict(w, v.u.dict, depth);
    default:
        return tpl_bad(r, RLX_ERROR_ARGUMENT, "tojson: %s cannot be written as JSON",
                       tpl_kind_name(v.kind));
    }
}

rlx_status tpl_to_json(struct tpl_text *t, struct tpl_value v, const struct tpl_json_style *s)
{
    struct writing w = {t, s};

    TRY(write_value(&w, v, 0));
    return t->failed;
}

/* ---- reading ----------------------------------------------------------------------------- */

struct reading {
    struct json_in j;
    struct tpl_run *r;
    bool data;
};

static rlx_status read_value(struct reading *in, struct tpl_value *out);

static rlx_status read_string(struct reading *in, struct tpl_value *out)
{
    rlx_str s;

    TRY(json_read_string(&in->j, &s));
    return tpl_string(in->r, s, in->data, out);
}

static rlx_status read_list(struct reading *in, struct tpl_value *out)
{
    struct tpl_list *l;

    TRY(tpl_list_new(in->r, &l));
    *out = (struct tpl_value){.kind = TPL_LIST, .u.list = l};
    TRY(json_read_open(&in->j, '['));
    for (bool first = true, more;; first = false) {
        struct tpl_value v;
        TRY(json_read_more(&in->j, ']', first, &more));
        if (!more)
            return RLX_OK;
        TRY(read_value(in, &v));
        TRY(tpl_list_add(in->r, l, v));
    }
}

static rlx_status read_dict(struct reading *in, struct tpl_value *out)
{
    struct tpl_dict *d;

    TRY(tpl_dict_new(in->r, &d));
    *out = (struct tpl_value){.kind = TPL_DICT, .u.dict = d};
    TRY(json_read_open(&in->j, '{'));
    for (bool first = true, more;; first = false) {
        struct tpl_value key, v;
        rlx_str name;
        TRY(json_read_more(&in->j, '}', first, &more));
        if (!more)
            return RLX_OK;
        TRY(json_read_key(&in->j, &name));
        TRY(tpl_string(in->r, name, in->data, &key));
        TRY(read_value(in, &v));
        TRY(tpl_dict_set(in->r, d, key, v));
    }
}

static rlx_status read_value(struct reading *in, struct tpl_value *out)
{
    struct json_word w;

    TRY(tpl_charge(in->r, 1));
    switch (json_read_peek(&in->j)) {
    case '"': return read_string(in, out);
    case '[': return read_list(in, out);
    case '{': return read_dict(in, out);
    default: break;
    }
    TRY(json_read_word(&in->j, &w));
    *out = w.kind == JSON_WORD_NULL   ? tpl_none()
           : w.kind == JSON_WORD_BOOL ? tpl_bool(w.b)
           : w.kind == JSON_WORD_INT  ? tpl_int(w.i)
                                      : tpl_float(w.f);
    return RLX_OK;
}

rlx_status tpl_from_json(struct tpl_run *r, rlx_str text, bool data, const char *what,
                         struct tpl_value *out)
{
    struct reading in = {.r = r, .data = data};

    in.j = (struct json_in){.text = text,
                            .max_depth = TPL_MOST_NESTING - 2,
                            .what = what,
                            .arena = r->arena,
                            .d = r->d};
    TRY(tpl_charge_bytes(r, text.len));
    TRY(read_value(&in, out));
    return json_read_end(&in.j);
}
