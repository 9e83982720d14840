/* unicode.c: properties of characters: the generated tables, and what never changes. */
#include "text/unicode.h"

struct lower_run {
    uint32_t first, last;
    int32_t step, distance;
};
struct decomposition {
    uint32_t from, first, second;
};
#include "text/unicode_table.inc"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- categories -------------------------------------------------------------------------- */

uint32_t unicode_category_bit(uint32_t c)
{
    if (c >= COUNT(category_block) * UNICODE_BLOCK)
        return CAT_BIT(Cn);
    return UINT32_C(1) << category_of[(size_t)category_block[c / UNICODE_BLOCK] * UNICODE_BLOCK +
                                      c % UNICODE_BLOCK];
}

/* Unicode promises that this property stays as it is. */
bool unicode_is_space(uint32_t c)
{
    if (c < 0x80)
        return c == ' ' || (c >= 9 && c <= 13);
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
           c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool unicode_is_han(uint32_t c)
{
    static const uint32_t han[][2] = {
        {0x2e80, 0x2e99},   {0x2e9b, 0x2ef3},   {0x2f00, 0x2fd5},   {0x3005, 0x3005},
        {0x3007, 0x3007},   {0x3021, 0x3029},   {0x3038, 0x303b},   {0x3400, 0x4dbf},
        {0x4e00, 0x9fff},   {0xf900, 0xfa6d},   {0xfa70, 0xfad9},   {0x16fe2, 0x16fe3},
        {0x16ff0, 0x16ff1}, {0x20000, 0x2a6df}, {0x2a700, 0x2b739}, {0x2b740, 0x2b81d},
        {0x2b820, 0x2cea1}, {0x2ceb0, 0x2ebe0}, {0x2ebf0, 0x2ee5d}, {0x2f800, 0x2fa1d},
        {0x30000, 0x3134a}, {0x31350, 0x323af},
    };
    for (size_t i = 0; i < COUNT(han) && han[i][0] <= c; i++)
        if (c <= han[i][1])
            return true;
    return false;
}

/* ---- other characters for one ------------------------------------------------------------ */

uint32_t unicode_lower(uint32_t c)
{
    size_t lo = 0, hi = COUNT(lower_runs);

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        const struct lower_run *r = &lower_runs[mid];
        if (c < r->first)
            hi = mid;
        else if (c > r->last)
            lo = mid + 1;
        else
            return (c - r->first) % (uint32_t)r->step ? c : c + (uint32_t)r->distance;
    }
    return c;
}

static const struct decomposition *find_parts(uint32_t c)
{
    size_t lo = 0, hi = COUNT(decompositions);

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (decompositions[mid].from == c)
            return &decompositions[mid];
        if (decompositions[mid].from < c)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* Hangul syllables are put together by arithmetic. */
static size_t decompose_hangul(uint32_t s, uint32_t *out)
{
    enum { LEAD = 0x1100, VOWEL = 0x1161, TAIL = 0x11a7, VOWELS = 21, TAILS = 28 };

    out[0] = LEAD + s / (VOWELS * TAILS);
    out[1] = VOWEL + s % (VOWELS * TAILS) / TAILS;
    out[2] = TAIL + s % TAILS;
    return s % TAILS ? 3 : 2;
}

size_t unicode_decompose(uint32_t c, uint32_t out[UNICODE_MOST_PARTS])
{
    enum { HANGUL = 0xac00, SYLLABLES = 11172 };
    uint32_t last[UNICODE_MOST_PARTS]; /* second parts, the outermost first */
    size_t count = 0, seconds = 0;

    if (c >= HANGUL && c < HANGUL + SYLLABLES)
        return decompose_hangul(c - HANGUL, out);
    for (const struct decomposition *d; seconds < UNICODE_MOST_PARTS - 1 && (d = find_parts(c));) {
        c = d->first;
        if (d->second)
            last[seconds++] = d->second;
    }
    out[count++] = c;
    while (seconds)
        out[count++] = last[--seconds];
    return count;
}

/* ---- UTF-8 ------------------------------------------------------------------------------- */

uint32_t utf8_next(const char *at, size_t len, size_t *bytes)
{
    const unsigned char *p = (const unsigned char *)at;

    *bytes = 1;
    if (p[0] < 0x80)
        return p[0];
    size_t step = str_utf8_step((rlx_str){at, len < 4 ? len : 4});
    if (step == 0)
        return UNICODE_REPLACEMENT;
    *bytes = step;
    if (step == 2)
        return (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
    if (step == 3)
        return (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    return (p[0] & 7u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu);
}

size_t utf8_put(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t extra = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(lead[extra] | c >> (6 * extra));
    for (size_t i = 1; i <= extra; i++)
        out[i] = (char)(0x80 | (c >> (6 * (extra - i)) & 0x3f));
    return extra + 1;
}
