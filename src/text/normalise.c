/* normalise.c: SentencePiece's map of characters, as it lies in tokenizer.ggml.precompiled_charsmap
 * (ops-special.md 9.5): the bytes of a double array, the array, and the texts it points to. */
#include "text/normalise.h"

#include <string.h>

#include "text/unicode.h"

static uint32_t read_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

rlx_status charsmap_read(struct charsmap *m, const void *blob, size_t size, struct diag *d)
{
    const uint8_t *p = blob;

    *m = (struct charsmap){0};
    if (size == 0)
        return RLX_OK;
    if (size < 4)
        return diag_fail(d, RLX_ERROR_FORMAT, "tokenizer.ggml.precompiled_charsmap has %zu bytes",
                         size);
    size_t array = read_u32(p);
    if (array % 4 || array == 0 || array >= size - 4)
        return diag_fail(d, RLX_ERROR_FORMAT,
                         "tokenizer.ggml.precompiled_charsmap: an array of %zu bytes in a map of "
                         "%zu",
                         array, size);
    if (p[size - 1] != 0)
        return diag_fail(d, RLX_ERROR_FORMAT,
                         "tokenizer.ggml.precompiled_charsmap: its last text does not end");
    *m = (struct charsmap){p + 4, array / 4, (const char *)p + 4 + array, size - 4 - array};
    return RLX_OK;
}

static uint32_t unit(const struct charsmap *m, size_t i)
{
    return i < m->units ? read_u32(m->unit + 4 * i) : 0;
}

static size_t base(uint32_t u)
{
    return (size_t)(u >> 10) << ((u & 0x200) >> 6);
}

/* The longest text of the map that s begins with: its bytes, and where its replacement is. */
static size_t find(const struct charsmap *m, rlx_str s, size_t *at)
{
    size_t node = base(unit(m, 0)), best = 0;

    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c == 0)
            break;
        node ^= c;
        uint32_t u = unit(m, node);
        if ((u & 0x800000ffu) != c)
            break;
        node ^= base(u);
        if (u >> 8 & 1) {
            size_t where = unit(m, node) & 0x7fffffff;
            if (where < m->text_len) {
                best = i + 1;
                *at = where;
            }
        }
    }
    return best;
}

rlx_str charsmap_next(const struct charsmap *m, rlx_str text, size_t *used)
{
    size_t at = 0;

    *used = m->units ? find(m, text, &at) : 0;
    if (*used)
        return (rlx_str){m->text + at, strlen(m->text + at)};
    if (utf8_next(text.ptr, text.len, used) == UNICODE_REPLACEMENT && *used == 1)
        return STR("\xef\xbf\xbd");
    return (rlx_str){text.ptr, *used};
}
