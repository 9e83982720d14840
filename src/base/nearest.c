/* nearest.c: which of the names that exist was meant by one that does not. */
#include <ctype.h>
#include <stdio.h>

#include "base/str.h"
#include "rlx/tools.h"

static int folded(char c)
{
    return tolower((unsigned char)c);
}

/* How many letters must be changed, added, left out or swapped with the next to turn one word into
 * the other, in whatever case. A word that is too long is far from all others. */
static size_t distance(rlx_str a, rlx_str b)
{
    enum { LONGEST = 63 };
    size_t rows[3][LONGEST + 1] = {{0}};

    if (a.len > LONGEST || b.len > LONGEST)
        return SIZE_MAX;
    for (size_t k = 0; k <= b.len; k++)
        rows[0][k] = k;
    for (size_t i = 1; i <= a.len; i++) {
        size_t *row = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t k = 1; k <= b.len; k++) {
            int x = folded(a.ptr[i - 1]), y = folded(b.ptr[k - 1]);
            size_t best = up[k - 1] + (x != y);
            best = up[k] + 1 < best ? up[k] + 1 : best;
            best = row[k - 1] + 1 < best ? row[k - 1] + 1 : best;
            if (i > 1 && k > 1 && x == folded(b.ptr[k - 2]) && folded(a.ptr[i - 2]) == y)
                best = up2[k - 2] + 1 < best ? up2[k - 2] + 1 : best;
            row[k] = best;
        }
    }
    return rows[a.len % 3][b.len];
}

/* Part of a name, as "--out" of "--output" and "ids" of "input_ids", is as good as one wrong
 * letter. */
static bool is_part(rlx_str wanted, rlx_str name)
{
    for (size_t i = 0; wanted.len >= 3 && i + wanted.len <= name.len; i++)
        if (str_starts((rlx_str){name.ptr + i, name.len - i}, wanted))
            return true;
    return false;
}

void rlx_nearest_offer(rlx_nearest *n, rlx_str name)
{
    if (!n || (name.len && !name.ptr) || (n->wanted.len && !n->wanted.ptr))
        return;
    size_t longer = name.len > n->wanted.len ? name.len : n->wanted.len;
    size_t most = n->best.ptr ? n->distance : 2 + n->wanted.len / 3; /* less is close enough */
    size_t d = is_part(n->wanted, name) ? 1 : distance(n->wanted, name);

    if (d >= most || d >= longer) /* the two words share nothing */
        return;
    n->best = name;
    n->distance = d;
}

const char *rlx_nearest_hint(const rlx_nearest *n, char out[RLX_NEAREST_HINT])
{
    if (!out)
        return "";
    out[0] = 0;
    if (n && n->best.ptr)
        snprintf(out, RLX_NEAREST_HINT, "; did you mean %.*s?", STR_ARG(n->best));
    return out;
}
