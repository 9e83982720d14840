/* tpl_sort.c: sorting by merging, bottom up: stable, and without a bad case. */
#include <string.h>

#include "text/template/tpl_value.h"

/* from[low, mid) and from[mid, high), each sorted, into to. */
static rlx_status merge(struct tpl_run *r, const struct tpl_pair *from, struct tpl_pair *to,
                        const size_t at[3], bool reverse)
{
    size_t a = at[0], b = at[1];

    for (size_t i = at[0]; i < at[2]; i++) {
        int order = 0;
        if (a < at[1] && b < at[2])
            TRY(tpl_order(r, from[a].key, from[b].key, &order));
        const bool left = b == at[2] || (a < at[1] && (reverse ? order >= 0 : order <= 0));
        to[i] = left ? from[a++] : from[b++];
    }
    return RLX_OK;
}

rlx_status tpl_sorted(struct tpl_run *r, const struct tpl_pair *pairs, size_t count, bool reverse,
                      struct tpl_pair **out)
{
    struct tpl_pair *from = arena_array(r->arena, struct tpl_pair, count);
    struct tpl_pair *to = arena_array(r->arena, struct tpl_pair, count);

    if (!from || !to)
        return tpl_no_memory(r, count * sizeof *from);
    if (count)
        memcpy(from, pairs, count * sizeof *from);
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t low = 0; low < count; low += 2 * width) {
            const size_t mid = count - low < width ? count : low + width;
            const size_t high = count - mid < width ? count : mid + width;
            TRY(merge(r, from, to, (size_t[]){low, mid, high}, reverse));
        }
        struct tpl_pair *swap = from;
        from = to;
        to = swap;
    }
    *out = from;
    return RLX_OK;
}
