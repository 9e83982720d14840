/* rwkv.c: RWKV's tokenizer (kind "rwkv"): from the left, always the longest token that the text
 * goes on with. Tokens are bytes, written like literals: "\n", "\xe4", "it's". */
#include <string.h>

#include "text/tokenizer.h"

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Writes what the literal means to out, which has room for as many bytes. */
static size_t unescape(rlx_str s, char *out)
{
    size_t len = 0;

    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (c != '\\' || i + 1 == s.len) {
            out[len++] = c;
            continue;
        }
        c = s.ptr[++i];
        if (c == 'x' && i + 2 < s.len && hex(s.ptr[i + 1]) >= 0 && hex(s.ptr[i + 2]) >= 0) {
            out[len++] = (char)(hex(s.ptr[i + 1]) * 16 + hex(s.ptr[i + 2]));
            i += 2;
        } else
            out[len++] = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
    }
    return len;
}

rlx_status tok_rwkv_build(struct rlx_tokenizer *t, struct diag *d)
{
    uint32_t *id = arena_array(&t->arena, uint32_t, t->vocab), count = 0;

    t->plain = arena_array(&t->arena, rlx_str, t->vocab);
    if (!id || !t->plain)
        return diag_no_memory(d, t->vocab * sizeof *t->plain);
    for (uint32_t i = 0; i < t->vocab; i++) {
        char *bytes = arena_alloc(&t->arena, t->text[i].len, 1);
        if (!bytes)
            return diag_no_memory(d, t->text[i].len);
        t->plain[i] = (rlx_str){bytes, unescape(t->text[i], bytes)};
        if (t->type[i] == RLX_TOKEN_NORMAL || t->type[i] == RLX_TOKEN_USER_DEFINED ||
            t->type[i] == RLX_TOKEN_BYTE)
            id[count++] = i;
    }
    return trie_build(&t->trie, t->plain, id, count, t->mem, d);
}

rlx_status tok_rwkv_encode(struct tok_run *r, rlx_str text)
{
    while (text.len) {
        struct trie_walk w = trie_begin(&r->t->trie, text);
        uint32_t id = TOK_NONE;
        size_t bytes = 1;
        for (uint32_t found; trie_next(&w, &found);) {
            id = found;
            bytes = w.depth;
        }
        if (id == TOK_NONE)
            TRY(tok_emit_unknown(r, (rlx_str){text.ptr, 1}));
        else
            TRY(tok_emit(r, id));
        text.ptr += bytes;
        text.len -= bytes;
    }
    return RLX_OK;
}
