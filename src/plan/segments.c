/* segments.c: where things may lie in a region that is cut into several buffers. */
#include "plan/segments.h"

rlx_status segment_size(uint64_t max_buffer, uint64_t align, uint64_t *out, struct diag *d)
{
    *out = max_buffer / align * align;
    if (max_buffer && !*out)
        return diag_fail(d, RLX_ERROR_LIMIT,
                         "buffers of at most %llu bytes hold nothing that is aligned to %llu",
                         (unsigned long long)max_buffer, (unsigned long long)align);
    return RLX_OK;
}

static bool round_up(uint64_t x, uint64_t align, uint64_t *out)
{
    uint64_t rest = x % align;

    return !__builtin_add_overflow(x, rest ? align - rest : 0, out);
}

bool segment_append(uint64_t segment, uint64_t align, uint64_t bytes, uint64_t *end,
                    uint64_t *offset)
{
    if (!round_up(*end, align, offset))
        return false;
    if (segment && bytes > segment - *offset % segment && !round_up(*offset, segment, offset))
        return false;
    return !__builtin_add_overflow(*offset, bytes, end);
}

/* ---- gaps ---- */

static void consider(struct segment_gap *g, uint64_t size, uint64_t at, uint64_t room)
{
    if (room < size || room >= g->room)
        return;
    g->at = at;
    g->room = room;
}

bool segment_fit(uint64_t segment, uint64_t size, struct segment_gap *gap)
{
    uint64_t left = segment - gap->from % segment; /* to the first cut after its start */

    gap->room = UINT64_MAX;
    if (gap->to <= gap->from)
        return false;
    if (gap->to - gap->from <= left) {
        consider(gap, size, gap->from, gap->to - gap->from);
    } else {
        uint64_t cut = gap->from + left, last = gap->to - gap->to % segment;
        consider(gap, size, gap->from, left);
        if (last > cut)
            consider(gap, size, cut, segment);
        consider(gap, size, last, gap->to - last);
    }
    return gap->room != UINT64_MAX;
}

uint64_t segment_above(uint64_t segment, uint64_t size, uint64_t from)
{
    uint64_t left = segment - from % segment;

    return size <= left ? from : from + left;
}

/* ---- buffers ---- */

size_t segment_count(uint64_t segment, uint64_t bytes)
{
    return segment && bytes > segment ? (size_t)((bytes - 1) / segment + 1) : 1;
}

rlx_status segment_bytes(const struct plan *p, enum region region, struct arena *arena,
                         uint64_t **out, size_t *count, struct diag *d)
{
    const struct steps *s = p->steps;

    *count = segment_count(p->segment, p->size[region]);
    *out = arena_array(arena, uint64_t, *count);
    if (!*out)
        return diag_no_memory(d, *count * sizeof **out);
    if (*count == 1)
        (*out)[0] = p->size[region];
    for (size_t i = 0; i<s->value_count && * count> 1; i++) {
        const struct value *v = &s->value[i];
        if (v->region != region || v->root != (int32_t)i || v->bytes == 0)
            continue;
        uint64_t *top = &(*out)[v->offset / p->segment], end = v->offset % p->segment + v->bytes;
        end += (p->align - end % p->align) % p->align; /* a segment is a multiple of it, too */
        *top = end > *top ? end : *top;
    }
    return RLX_OK;
}
