/* row_view.c: operands that are not laid out like the output, read a row at a time. */
#include "backend/cpu/kernels/common.h"

/* Axes of size 1 go, and an axis joins its right neighbour when one stride serves both. */
void cpu_view_make(struct cpu_view *v, const void *data, rlx_dtype dtype, int32_t rank,
                   const int64_t *dim, const int64_t *stride)
{
    int32_t out = RLX_MAX_RANK; /* filled from the right */
    int64_t d[RLX_MAX_RANK], s[RLX_MAX_RANK];

    for (int32_t a = rank - 1; a >= 0; a--) {
        if (dim[a] == 1)
            continue;
        if (out < RLX_MAX_RANK && stride[a] == s[out] * d[out]) {
            d[out] *= dim[a];
            continue;
        }
        out--;
        d[out] = dim[a];
        s[out] = stride[a];
    }
    *v = (struct cpu_view){.data = data, .size = (int32_t)cpu_size(dtype)};
    if (out == RLX_MAX_RANK) {
        v->rank = 1;
        v->dim[0] = 1;
        return;
    }
    v->rank = RLX_MAX_RANK - out;
    for (int32_t a = 0; a < v->rank; a++) {
        v->dim[a] = d[out + a];
        v->stride[a] = s[out + a];
    }
}

void cpu_view_broadcast(struct cpu_view *v, const struct cpu_tensor *t,
                        const struct cpu_tensor *out)
{
    int64_t stride[RLX_MAX_RANK] = {0};
    int64_t step = 1;

    for (int32_t a = 1; a <= t->rank && a <= out->rank; a++) {
        int64_t n = t->dim[t->rank - a];
        stride[out->rank - a] = n == 1 ? 0 : step;
        step *= n;
    }
    cpu_view_make(v, t->data, t->dtype, out->rank, out->dim, stride);
}

/* Elements are moved as bytes, whatever their type. */
#define COPY_LOOP(bytes)            \
    for (int64_t i = 0; i < n; i++) \
    memcpy((char *)dst + i * (bytes), (const char *)src + i * stride * (bytes), bytes)

void cpu_copy_strided(void *dst, const void *src, int32_t size, int64_t n, int64_t stride)
{
    if (stride == 1) {
        memcpy(dst, src, (size_t)n * (size_t)size);
        return;
    }
    switch (size) {
    case 1: COPY_LOOP(1); break;
    case 2: COPY_LOOP(2); break;
    case 4: COPY_LOOP(4); break;
    default: COPY_LOOP(8); break;
    }
}

/* The offset of element pos, and its index on each axis. */
static int64_t locate(const struct cpu_view *v, int64_t pos, int64_t *index)
{
    int64_t at = 0;

    for (int32_t a = v->rank - 1; a > 0; a--) {
        index[a] = pos % v->dim[a];
        pos /= v->dim[a];
        at += index[a] * v->stride[a];
    }
    index[0] = pos;
    return at + pos * v->stride[0];
}

/* To the start of the next inner row; at: offset of the present row's first element. */
static int64_t next_row(const struct cpu_view *v, int64_t *index, int64_t at)
{
    for (int32_t a = v->rank - 2; a >= 0; a--) {
        at += v->stride[a];
        if (++index[a] < v->dim[a])
            break;
        at -= v->dim[a] * v->stride[a];
        index[a] = 0;
    }
    return at;
}

/* Rows of a few elements, one element after another: a call per row would cost more. */
#define GATHER_SHORT(bytes)                                                            \
    for (int64_t i = 0; i < n; i++) {                                                  \
        memcpy(buffer + i * (bytes), v->data + (at + from * stride) * (bytes), bytes); \
        if (++from == width) {                                                         \
            from = 0;                                                                  \
            at = next_row(v, index, at);                                               \
        }                                                                              \
    }

static void gather_short(const struct cpu_view *v, int64_t *index, int64_t at, int64_t n,
                         char *buffer)
{
    int32_t last = v->rank - 1;
    int64_t width = v->dim[last], stride = v->stride[last], from = index[last];

    switch (v->size) {
    case 1: GATHER_SHORT(1) break;
    case 2: GATHER_SHORT(2) break;
    case 4: GATHER_SHORT(4) break;
    default: GATHER_SHORT(8) break;
    }
}

/* at: the offset of the first element's row. */
static void gather(const struct cpu_view *v, int64_t *index, int64_t at, int64_t n, char *buffer)
{
    enum { SHORT_ROW = 8 };
    int32_t last = v->rank - 1;
    int64_t width = v->dim[last], stride = v->stride[last];
    int64_t from = index[last], done = 0;
    bool repeats = v->rank == 2 && v->stride[0] == 0; /* each row is like the one before */

    if (width <= SHORT_ROW && !repeats) {
        gather_short(v, index, at, n, buffer);
        return;
    }
    while (done < n) {
        if (repeats && done >= width) {
            /* Whole rows that are there already are used again. */
            int64_t have = done - done % width;
            int64_t run = cpu_min_i64(n - done, have);
            memcpy(buffer + done * v->size, buffer + (done - have) * v->size,
                   (size_t)(run * v->size));
            done += run;
            continue;
        }
        int64_t run = cpu_min_i64(n - done, width - from);
        cpu_copy_strided(buffer + done * v->size, v->data + (at + from * stride) * v->size, v->size,
                         run, stride);
        done += run;
        from = 0;
        if (done < n)
            at = next_row(v, index, at);
    }
}

const void *cpu_view_read(const struct cpu_view *v, int64_t pos, int64_t n, void *buffer, int *step)
{
    int64_t index[RLX_MAX_RANK];
    int64_t at = locate(v, pos, index);
    int32_t last = v->rank - 1;
    bool one_row = n <= v->dim[last] - index[last];

    *step = 1;
    if (one_row && (v->stride[last] == 0 || v->stride[last] == 1)) {
        *step = (int)v->stride[last];
        return v->data + at * v->size;
    }
    gather(v, index, at - index[last] * v->stride[last], n, buffer);
    return buffer;
}

int64_t cpu_view_span(const struct cpu_view *v, int32_t count, int64_t pos, int64_t n)
{
    enum { WORTHWHILE = CPU_TILE / 4 }; /* a row as long as this is read in place */

    for (int32_t i = 0; i < count; i++) {
        int32_t last = v[i].rank - 1;
        int64_t stride = v[i].stride[last];
        int64_t left = last > 0 ? v[i].dim[last] - pos % v[i].dim[last] : v[i].dim[0] - pos;
        if ((stride == 0 || stride == 1) && (left >= WORTHWHILE || left >= n))
            n = cpu_min_i64(n, left);
        else
            n = cpu_min_i64(n, CPU_TILE);
    }
    return n;
}

/* ---- walking a dense output ---------------------------------------------------------------- */

enum { STREAM_PIECE = 2048 }; /* bytes */

struct walk {
    const struct cpu_call *c;
    cpu_span_fn fn;
    int32_t inputs;
    struct cpu_view view[3];
    int64_t piece; /* elements that are computed and then streamed; 0: straight to the output */
};

/* What dense inputs hold two pieces further on. */
static void fetch_ahead(const struct walk *w, const struct cpu_span *s)
{
    for (int32_t i = 0; i < w->inputs; i++) {
        const struct cpu_view *v = &w->view[i];
        if (v->rank == 1 && v->stride[0] == 1)
            cpu_prefetch((const char *)s->in[i] + 2 * w->piece * v->size, w->piece * v->size);
    }
}

static void walk_block(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct walk *w = ctx;
    CPU_TILE_ANY(buffer0);
    CPU_TILE_ANY(buffer1);
    CPU_TILE_ANY(buffer2);
    void *const buffer[3] = {buffer0, buffer1, buffer2};
    _Alignas(64) unsigned char result[STREAM_PIECE];

    (void)worker;
    for (int64_t pos = begin; pos < end;) {
        struct cpu_span s = {.pos = pos, .out = w->piece ? result : cpu_at(w->c->out, pos)};
        int64_t most = w->piece ? cpu_min_i64(end - pos, w->piece) : end - pos;
        s.n = cpu_view_span(w->view, w->inputs, pos, most);
        for (int32_t i = 0; i < w->inputs; i++)
            s.in[i] = cpu_view_read(&w->view[i], pos, s.n, buffer[i], &s.step[i]);
        if (w->piece && pos + 3 * w->piece <= end)
            fetch_ahead(w, &s);
        w->fn(w->c, &s);
        if (w->piece)
            cpu_stream_out(cpu_at(w->c->out, pos), result,
                           s.n * (int64_t)cpu_size(w->c->out->dtype));
        pos += s.n;
    }
    if (w->piece)
        cpu_stream_end();
}

void cpu_elementwise(const struct cpu_call *c, int64_t grain, cpu_span_fn fn)
{
    struct walk w = {.c = c, .fn = fn, .inputs = c->in_count < 3 ? c->in_count : 3};

    if (c->out->count == 0)
        return;
    for (int32_t i = 0; i < w.inputs; i++)
        cpu_view_broadcast(&w.view[i], &c->in[i], c->out);
    if (cpu_streams(c))
        w.piece = STREAM_PIECE / (int64_t)cpu_size(c->out->dtype);
    cpu_for(c->pool, c->out->count, cpu_max_i64(grain, CPU_TILE), walk_block, &w);
}
