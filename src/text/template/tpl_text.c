/* tpl_text.c: strings that know which of their bytes are data: built, cut, taken apart. */
#include <string.h>

#include "text/template/tpl_node.h"
#include "text/template/tpl_value.h"
#include "text/unicode.h"

/* ---- built ------------------------------------------------------------------------------- */

void tpl_text_begin(struct tpl_text *t, struct tpl_run *r)
{
    *t = (struct tpl_text){.r = r, .failed = RLX_OK};
}

static rlx_status make_room(struct tpl_text *t, size_t more, size_t room)
{
    struct tpl_run *r = t->r;

    if (more > r->most_output || t->len > r->most_output - more)
        return tpl_bad(r, RLX_ERROR_LIMIT, "a text of more than %zu bytes is written",
                       r->most_output);
    if (t->len + more > t->room) {
        char *own = arena_alloc(r->arena, room, 1);
        if (!own)
            return tpl_no_memory(r, room);
        if (t->len)
            memcpy(own, t->at, t->len);
        t->at = own;
        t->room = room;
    }
    return RLX_OK;
}

void tpl_text_reserve(struct tpl_text *t, size_t bytes)
{
    if (t->failed == RLX_OK)
        t->failed = make_room(t, bytes, t->len + bytes);
}

void tpl_text_add(struct tpl_text *t, rlx_str s, bool data)
{
    if (t->failed != RLX_OK || !s.len)
        return;
    t->failed = make_room(t, s.len, 2 * (t->len + s.len) + 32);
    if (t->failed == RLX_OK)
        t->failed = tpl_charge_bytes(t->r, s.len);
    if (t->failed != RLX_OK)
        return;
    if (!t->len)
        t->data = data;
    else if (data != t->last) {
        if (!tpl_room(t->r->arena, &t->cut, &t->cut_room, t->cuts, sizeof *t->cut)) {
            t->failed = tpl_no_memory(t->r, sizeof *t->cut);
            return;
        }
        t->cut[t->cuts++] = t->len;
    }
    t->last = data;
    memcpy(t->at + t->len, s.ptr, s.len);
    t->len += s.len;
}

bool tpl_next_piece(const struct tpl_str *s, size_t *pos, rlx_str *piece, bool *data)
{
    size_t low = 0, high = s->cuts;

    if (*pos >= s->text.len)
        return false;
    while (low < high) { /* the number of cuts at or before pos */
        const size_t mid = low + (high - low) / 2;
        if (s->cut[mid] <= *pos)
            low = mid + 1;
        else
            high = mid;
    }
    const size_t end = low < s->cuts ? s->cut[low] : s->text.len;
    *piece = (rlx_str){s->text.ptr + *pos, end - *pos};
    *data = s->data ^ (low & 1);
    *pos = end;
    return true;
}

void tpl_text_add_part(struct tpl_text *t, const struct tpl_str *s, size_t from, size_t to)
{
    rlx_str piece;
    bool data;

    while (from < to && tpl_next_piece(s, &from, &piece, &data)) {
        if (from > to)
            piece.len -= from - to;
        tpl_text_add(t, piece, data);
    }
}

void tpl_text_add_str(struct tpl_text *t, const struct tpl_str *s)
{
    tpl_text_add_part(t, s, 0, s->text.len);
}

void tpl_text_add_char(struct tpl_text *t, uint32_t c, bool data)
{
    char bytes[4];

    tpl_text_add(t, (rlx_str){bytes, utf8_put(c, bytes)}, data);
}

rlx_status tpl_text_end(struct tpl_text *t, struct tpl_value *out)
{
    if (t->failed != RLX_OK)
        return t->failed;
    struct tpl_str *s = arena_new(t->r->arena, struct tpl_str);
    if (!s)
        return tpl_no_memory(t->r, sizeof *s);
    *s = (struct tpl_str){{t->at, t->len}, t->cut, t->cuts, t->data};
    *out = (struct tpl_value){.kind = TPL_STR, .u.s = s};
    return RLX_OK;
}

/* ---- made -------------------------------------------------------------------------------- */

rlx_status tpl_string(struct tpl_run *r, rlx_str text, bool data, struct tpl_value *out)
{
    struct tpl_str *s = arena_new(r->arena, struct tpl_str);

    if (!s)
        return tpl_no_memory(r, sizeof *s);
    *s = (struct tpl_str){.text = text, .data = data};
    *out = (struct tpl_value){.kind = TPL_STR, .u.s = s};
    return RLX_OK;
}

/* A view of it, unless it is of both origins. */
rlx_status tpl_substring(struct tpl_run *r, const struct tpl_str *s, size_t from, size_t to,
                         struct tpl_value *out)
{
    struct tpl_text t;
    size_t pos = from;
    rlx_str piece;
    bool data = s->data;

    TRY(tpl_charge(r, 1));
    if (from >= to)
        return tpl_string(r, (rlx_str){"", 0}, s->data, out);
    if (s->cuts)
        tpl_next_piece(s, &pos, &piece, &data);
    if (!s->cuts || pos >= to)
        return tpl_string(r, (rlx_str){s->text.ptr + from, to - from}, data, out);
    tpl_text_begin(&t, r);
    tpl_text_add_part(&t, s, from, to);
    return tpl_text_end(&t, out);
}

size_t tpl_char_count(rlx_str s)
{
    size_t n = 0;

    for (size_t at = 0, bytes; at < s.len; at += bytes, n++)
        utf8_next(s.ptr + at, s.len - at, &bytes);
    return n;
}

/* ---- upper and lower case ---------------------------------------------------------------- */

/* Of the characters whose lower case is one character; few scripts have any. */
static uint32_t upper(uint32_t c)
{
    static const struct {
        uint32_t first, last;
        int32_t by;
    } near[] = {{'a', 'z', -32},         {0xe0, 0xfe, -32},       {0x3b1, 0x3c9, -32},
                {0x430, 0x44f, -32},     {0x450, 0x45f, -80},     {0x561, 0x586, -48},
                {0x1f00, 0x1fff, 8},     {0x24d0, 0x24e9, -26},   {0xff41, 0xff5a, -32},
                {0x10428, 0x1044f, -40}, {0x1e922, 0x1e943, -34}, {0, 0x10ffff, -1}};

    for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
        const uint32_t above = c + (uint32_t)near[i].by;
        if (c && c >= near[i].first && c <= near[i].last && unicode_lower(above) == c)
            return above;
    }
    return c == 0xff ? 0x178 : c;
}

rlx_status tpl_change_case(struct tpl_run *r, const struct tpl_str *s, enum tpl_case to,
                           struct tpl_value *out)
{
    struct tpl_text t;
    bool inside = false, data; /* of a word */
    rlx_str piece;

    tpl_text_begin(&t, r);
    TRY(tpl_charge_chars(r, s->text.len));
    for (size_t pos = 0; tpl_next_piece(s, &pos, &piece, &data);) {
        for (size_t at = 0, bytes; at < piece.len; at += bytes) {
            const uint32_t c = utf8_next(piece.ptr + at, piece.len - at, &bytes);
            const bool up = to == TPL_UPPER || (to != TPL_LOWER && !inside);
            const uint32_t changed = up ? upper(c) : unicode_lower(c);
            if (c == 0xdf && up)
                tpl_text_add(&t, to == TPL_UPPER ? STR("SS") : STR("Ss"), data);
            else if (changed == c) /* which keeps bytes that are no characters */
                tpl_text_add(&t, (rlx_str){piece.ptr + at, bytes}, data);
            else
                tpl_text_add_char(&t, changed, data);
            inside =
                to == TPL_CAPITALIZE ||
                (to == TPL_TITLE ? (unicode_category_bit(c) & CATS_L) != 0
                                 : !tpl_is_space(c) && !(c && c < 0x80 && strchr("-({[<", (int)c)));
        }
    }
    return tpl_text_end(&t, out);
}
