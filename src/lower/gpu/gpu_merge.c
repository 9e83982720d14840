/* gpu_merge.c: launches for an API in which no two buffers of a launch may overlap (WebGPU).
 *
 *     add x, x  =>  one binding, in which both operands begin at the same element
 *
 * Buffers that do overlap become one binding of all their bytes, and the kernel a variant of itself
 * that finds each operand at an offset in it. */
#include <stdio.h>

#include "lower/gpu/gpu_core.h"

struct merging {
    const struct gpu_kernel *kernel;
    uint32_t root[GPU_BUFFERS];
    struct span all[GPU_BUFFERS]; /* of a root: the bytes of all in it */
};

static struct span both(const struct span *a, const struct span *b)
{
    uint64_t from = a->offset < b->offset ? a->offset : b->offset;
    uint64_t a_end = a->offset + a->bytes, b_end = b->offset + b->bytes;

    return (struct span){a->buffer, from, (a_end > b_end ? a_end : b_end) - from};
}

/* Elements of different types cannot be one array; such stay apart, and it is the API's turn. */
static bool join(struct merging *m, uint32_t i, uint32_t j)
{
    uint32_t a = m->root[i], b = m->root[j];

    if (a == b || !spans_overlap(m->all[a], m->all[b]) || m->kernel->type[a] != m->kernel->type[b])
        return false;
    uint32_t first = a < b ? a : b, other = a < b ? b : a;
    m->all[first] = both(&m->all[a], &m->all[b]);
    for (uint32_t k = 0; k < m->kernel->buffers; k++)
        if (m->root[k] == other)
            m->root[k] = first;
    return true;
}

/* What is joined may reach another, so until nothing changes. */
static bool join_all(struct merging *m)
{
    bool any = false, more = true;

    while (more) {
        more = false;
        for (uint32_t i = 0; i < m->kernel->buffers; i++)
            for (uint32_t j = i + 1; j < m->kernel->buffers; j++)
                more |= join(m, i, j);
        any |= more;
    }
    return any;
}

/* Through how many windows the kernel sees what was joined; the others stay as they are. */
static void count_windows(const struct merging *m, uint64_t window, uint32_t *windows)
{
    for (uint32_t i = 0; i < m->kernel->buffers; i++)
        windows[i] = m->kernel->windows[i];
    for (uint32_t i = 0; i < m->kernel->buffers; i++)
        if (m->root[i] != i)
            windows[m->root[i]] = (uint32_t)gpu_ceil(m->all[m->root[i]].bytes, window);
}

/* The same kernel for buffers that overlap; merge and windows as in struct kc_binding. */
static rlx_status find_variant(struct gpu_target *t, const struct gpu_kernel *k,
                               const uint32_t *merge, const uint32_t *windows,
                               const struct gpu_kernel **out, struct diag *d)
{
    const struct kc_binding bind = {merge, k->begins_at, windows, k->window};
    char key[GPU_KEY + 8 * GPU_BUFFERS];
    size_t len = (size_t)snprintf(key, sizeof key, "%s &", k->key);

    for (uint32_t i = 0; i < k->buffers; i++)
        key[len++] = (char)('0' + merge[i]);
    key[len] = 0;
    for (uint32_t i = 0; i < k->buffers; i++)
        if (merge[i] == i && windows[i] != k->windows[i])
            len += (size_t)snprintf(key + len, sizeof key - len, " %%%u:%u", i, windows[i]);
    return gpu_find_kernel(t, key, k->source, &bind, k->buffers, k->words, out, d);
}

rlx_status gpu_bind_apart(struct gpu_target *t, const struct gpu_work *w,
                          const struct gpu_launch *l, const struct command *c, struct span fault,
                          uint64_t align, uint32_t *word, struct gpu_bound *out,
                          const struct gpu_kernel **kernel, struct diag *d)
{
    struct merging m = {.kernel = l->kernel};
    struct gpu_placed at = {.word = word};
    uint32_t next = l->kernel->words, windows[GPU_BUFFERS];
    uint64_t start[GPU_BUFFERS];

    *kernel = l->kernel;
    TRY(gpu_place_buffers(w, l, c, fault, align, &at, d));
    for (uint32_t i = 0; i < l->kernel->buffers; i++) {
        m.root[i] = i;
        m.all[i] = at.span[i];
        start[i] = at.span[i].offset;
        if (l->kernel->begins_at[i])
            start[i] += (uint64_t)word[next++] * l->kernel->element[i];
    }
    if (join_all(&m)) {
        count_windows(&m, l->kernel->window, windows);
        TRY(find_variant(t, l->kernel, m.root, windows, kernel, d));
        at.words = l->kernel->words;
        for (uint32_t i = 0; i < l->kernel->buffers; i++) {
            at.span[i] = m.all[m.root[i]];
            if ((*kernel)->begins_at[i])
                word[at.words++] =
                    (uint32_t)((start[i] - at.span[i].offset) / l->kernel->element[i]);
        }
    }
    gpu_open_windows(*kernel, at.span, out);
    out->words = at.words;
    return RLX_OK;
}
