/* decode_text.c: ids to text, one token at a time. The end of a character may come with a later
 * token, and until then its bytes are held. */
#include <string.h>

#include "text/tokenizer.h"
#include "text/unicode.h"

/* ---- bytes that become text -------------------------------------------------------------- */

struct writing {
    rlx_token_stream *s;
    rlx_write_fn write;
    void *user;
    char part[256]; /* not written yet; the last bytes may begin a character */
    size_t len;
};

/* Bytes at the end of s that may be the beginning of a character. */
static size_t unfinished(rlx_str s)
{
    for (size_t k = 1; k <= 3 && k <= s.len; k++) {
        unsigned char c = (unsigned char)s.ptr[s.len - k];
        if (c < 0x80)
            return 0;
        if (c < 0xc0)
            continue;
        size_t wants = c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
        if (wants <= k)
            return 0;
        /* Could it be finished? The last possible bytes tell. */
        char whole[4] = {(char)c, 0, 0, 0};
        for (int high = 0; high < 2; high++) {
            memset(whole + 1, high ? 0xbf : 0x80, 3);
            memcpy(whole, s.ptr + s.len - k, k);
            if (str_utf8_step((rlx_str){whole, wants}) == wants)
                return k;
        }
        return 0;
    }
    return 0;
}

static void flush(struct writing *w)
{
    size_t keep = unfinished((rlx_str){w->part, w->len});

    if (w->len > keep)
        w->write(w->user, w->part, w->len - keep);
    memmove(w->part, w->part + w->len - keep, keep);
    w->len = keep;
}

static void put(struct writing *w, rlx_str bytes)
{
    if (bytes.len)
        w->s->begun = true;
    while (bytes.len) {
        size_t room = sizeof w->part - w->len, n = bytes.len < room ? bytes.len : room;
        memcpy(w->part + w->len, bytes.ptr, n);
        w->len += n;
        bytes.ptr += n;
        bytes.len -= n;
        if (w->len == sizeof w->part)
            flush(w);
    }
}

/* ---- spellings --------------------------------------------------------------------------- */

static void put_mapped(struct writing *w, rlx_str text)
{
    for (size_t step; text.len; text.ptr += step, text.len -= step) {
        int byte = tok_char_byte(utf8_next(text.ptr, text.len, &step));
        char c = (char)byte;
        put(w, byte >= 0 ? (rlx_str){&c, 1} : (rlx_str){text.ptr, step});
    }
}

/* U+2581 as a space. */
static void put_spaced(struct writing *w, rlx_str text)
{
    while (text.len) {
        const char *mark = memmem(text.ptr, text.len, TOK_SPACE, strlen(TOK_SPACE));
        size_t len = mark ? (size_t)(mark - text.ptr) : text.len;
        put(w, (rlx_str){text.ptr, len});
        if (mark) {
            put(w, STR(" "));
            len += strlen(TOK_SPACE);
        }
        text.ptr += len;
        text.len -= len;
    }
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* <0xHH> */
static bool put_byte(struct writing *w, rlx_str text)
{
    if (text.len != 6 || memcmp(text.ptr, "<0x", 3) != 0 || text.ptr[5] != '>' ||
        hex(text.ptr[3]) < 0 || hex(text.ptr[4]) < 0)
        return false;
    char c = (char)(hex(text.ptr[3]) * 16 + hex(text.ptr[4]));
    put(w, (rlx_str){&c, 1});
    return true;
}

/* A word begins with U+2581, or what goes on begins with ##. */
static void put_word(struct writing *w, rlx_str text, bool marked)
{
    if (!marked && str_starts(text, STR("##"))) {
        put(w, (rlx_str){text.ptr + 2, text.len - 2});
        return;
    }
    if (!marked && w->s->begun)
        put(w, STR(" "));
    if (marked && !w->s->begun && str_starts(text, STR(TOK_SPACE))) {
        text.ptr += strlen(TOK_SPACE);
        text.len -= strlen(TOK_SPACE);
    }
    put_spaced(w, text);
}

static void put_normal(const struct rlx_tokenizer *t, struct writing *w, uint32_t id)
{
    rlx_str text = t->text[id];

    switch (t->spelling) {
    case TOK_MAPPED: put_mapped(w, text); return;
    case TOK_WORDS: put_word(w, text, t->words_marked); return;
    case TOK_ESCAPED: put(w, t->plain[id]); return;
    case TOK_SPACED: break;
    }
    if (!w->s->begun && t->space_prefix && str_starts(text, STR(TOK_SPACE))) {
        w->s->begun = true; /* the space that encoding put there */
        text.ptr += strlen(TOK_SPACE);
        text.len -= strlen(TOK_SPACE);
    }
    put_spaced(w, text);
}

static void put_token(const struct rlx_tokenizer *t, struct writing *w, uint32_t id)
{
    switch ((rlx_token_type)t->type[id]) {
    case RLX_TOKEN_CONTROL:
    case RLX_TOKEN_UNKNOWN:
        if (w->s->flags & RLX_DECODE_SPECIAL)
            put(w, t->text[id]);
        return;
    case RLX_TOKEN_USER_DEFINED: put(w, t->text[id]); return;
    case RLX_TOKEN_BYTE:
        if (put_byte(w, t->text[id]))
            return;
        break;
    default: break;
    }
    put_normal(t, w, id);
}

rlx_status tok_stream_add(const struct rlx_tokenizer *t, rlx_token_stream *s, int32_t id,
                          rlx_write_fn write, void *user, struct diag *d)
{
    struct writing w = {.s = s, .write = write, .user = user};

    if (id < 0 || (uint32_t)id >= t->vocab)
        return diag_fail(d, RLX_ERROR_INDEX, "id %d: the vocabulary has %u tokens", id, t->vocab);
    w.len = s->count <= sizeof s->held ? s->count : 0;
    memcpy(w.part, s->held, w.len);
    put_token(t, &w, (uint32_t)id);
    flush(&w);
    s->count = (uint8_t)w.len;
    memcpy(s->held, w.part, w.len);
    return RLX_OK;
}

void tok_stream_end(rlx_token_stream *s, rlx_write_fn write, void *user)
{
    if (s->count && s->count <= sizeof s->held)
        write(user, (const char *)s->held, s->count);
    s->count = 0;
}
