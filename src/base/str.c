/* str.c: string views compared and checked, and text built piece by piece.
 * Numbers are in number.c. */
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- comparing --------------------------------------------------------------------------- */

/* memcmp may not be given NULL, not even for no bytes. */
static int compare(const char *a, const char *b, size_t len)
{
    return len ? memcmp(a, b, len) : 0;
}

bool str_eq(rlx_str a, rlx_str b)
{
    return a.len == b.len && compare(a.ptr, b.ptr, a.len) == 0;
}

bool str_starts(rlx_str s, rlx_str prefix)
{
    return s.len >= prefix.len && compare(s.ptr, prefix.ptr, prefix.len) == 0;
}

bool str_ends(rlx_str s, rlx_str suffix)
{
    return s.len >= suffix.len &&
           (suffix.len == 0 || memcmp(s.ptr + (s.len - suffix.len), suffix.ptr, suffix.len) == 0);
}

int str_cmp(rlx_str a, rlx_str b)
{
    int c = compare(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);

    return c ? c : (a.len > b.len) - (a.len < b.len);
}

/* ---- UTF-8 ------------------------------------------------------------------------------- */

/* By the first byte: how many bytes, and what the second one must lie between. The narrow ranges
 * are what keeps out overlong forms (E0, F0), surrogates (ED) and all above U+10FFFF (F4). */
static const struct lead {
    unsigned char first, last, bytes, lo, hi;
} leads[] = {
    {0x00, 0x7f, 1, 0x00, 0x00}, {0xc2, 0xdf, 2, 0x80, 0xbf}, {0xe0, 0xe0, 3, 0xa0, 0xbf},
    {0xe1, 0xec, 3, 0x80, 0xbf}, {0xed, 0xed, 3, 0x80, 0x9f}, {0xee, 0xef, 3, 0x80, 0xbf},
    {0xf0, 0xf0, 4, 0x90, 0xbf}, {0xf1, 0xf3, 4, 0x80, 0xbf}, {0xf4, 0xf4, 4, 0x80, 0x8f},
};

size_t str_utf8_step(rlx_str s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;

    for (size_t i = 0; s.len && i < sizeof leads / sizeof *leads; i++) {
        const struct lead *l = &leads[i];
        if (p[0] < l->first || p[0] > l->last)
            continue;
        if (s.len < l->bytes || (l->bytes > 1 && (p[1] < l->lo || p[1] > l->hi)))
            return 0;
        for (size_t k = 2; k < l->bytes; k++) {
            if ((p[k] & 0xc0) != 0x80)
                return 0;
        }
        return l->bytes;
    }
    return 0;
}

bool str_is_utf8(rlx_str s)
{
    while (s.len) {
        size_t step = str_utf8_step(s);
        if (step == 0)
            return false;
        s.ptr += step;
        s.len -= step;
    }
    return true;
}

/* ---- text under construction ------------------------------------------------------------- */

void text_init(struct text *t, const rlx_allocator *mem)
{
    *t = (struct text){.mem = mem};
}

void text_free(struct text *t)
{
    mem_free(t->mem, t->at, t->cap);
    text_init(t, t->mem);
}

/* Room for len more bytes and the NUL. */
static bool text_room(struct text *t, size_t len)
{
    size_t extra;

    if (!t->failed)
        t->failed =
            !size_add(len, 1, &extra) || !vec_grow(t->mem, &t->at, &t->cap, t->len, extra, 1);
    return !t->failed;
}

void text_add(struct text *t, rlx_str s)
{
    if (!text_room(t, s.len))
        return;
    if (s.len)
        memcpy(t->at + t->len, s.ptr, s.len);
    t->len += s.len;
    t->at[t->len] = 0;
}

void text_addf(struct text *t, const char *fmt, ...)
{
    va_list args, again;

    if (t->failed)
        return;
    va_start(args, fmt);
    va_copy(again, args);
    size_t room = t->cap - t->len; /* often enough, and then one pass does */
    int len = vsnprintf(room ? t->at + t->len : NULL, room, fmt, args);
    if (len < 0)
        t->failed = true;
    else if ((size_t)len >= room && text_room(t, (size_t)len))
        vsnprintf(t->at + t->len, (size_t)len + 1, fmt, again);
    if (!t->failed)
        t->len += (size_t)len;
    else if (t->at)
        t->at[t->len] = 0; /* what the first pass began is taken back */
    va_end(again);
    va_end(args);
}

void text_end_line(struct text *t, size_t start)
{
    for (size_t i = start; !t->failed && i < t->len; i++)
        if ((unsigned char)t->at[i] < 0x20 || t->at[i] == 0x7f)
            t->at[i] = '?';
    text_addf(t, "\n");
}
