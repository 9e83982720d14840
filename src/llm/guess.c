/* guess.c: texts repeat themselves: names, code, what was quoted. Where the last few tokens stood
 * before, what followed them there is a good guess, and costs nothing. */
#include "llm/guess.h"

#include <string.h>

enum { LONGEST = 4, SHORTEST = 2 }; /* runs of tokens that are looked for */

/* Where the last n tokens stood before: the place after them; 0: nowhere. */
static size_t place_after(const int32_t *id, size_t count, size_t n)
{
    const int32_t *end = id + count - n;

    for (size_t at = count - n; at-- > 0;)
        if (id[at] == *end && memcmp(id + at, end, n * sizeof *id) == 0)
            return at + n;
    return 0;
}

size_t llm_guess(const int32_t *id, size_t count, size_t most, int32_t *out)
{
    size_t at = 0, made = 0;

    for (size_t n = LONGEST; n >= SHORTEST && at == 0; n--)
        at = count > n ? place_after(id, count, n) : 0;
    /* A place close to the end goes on with what was guessed so far. */
    for (; at && made < most; made++)
        out[made] = at + made < count ? id[at + made] : out[at + made - count];
    return made;
}
