/* attention_backward.c: the gradient of attention for one operand (ops-core.md 13.2).
 *
 * Nothing of the forward op is kept; scores are made again, tile by tile:
 *
 *     P = e^(z - max) / total    dP = dy v^T    dz = P (dP - delta)    delta = sum of P dP by row
 *
 *     query    a task is a block of rows:  max, total, delta first, then dq = sum over keys of ds k
 *     key      a task is a block of keys:  dk = sum over rows of ds q
 *     value    a task is a block of keys:  dv = sum over rows of P dy
 *     bias     a task is a block of keys of some rows of the mask: dz, summed over whatever shares
 *              an element of the mask
 *
 * Tasks of the last three need max, total and delta of all rows, which lie in scratch by then.
 * Every sum runs in one task, in one order. A pair whose P is 0, masked or not, contributes
 * nothing, whatever else belongs to it. */
#include "backend/cpu/kernels/sequence/attention.h"

struct job {
    struct attention a;
    struct attention_operand dy, out;
    int32_t wrt;
    unsigned needs;
    char *room; /* of worker 0; others follow */
    uint64_t room_bytes;
    char *stats; /* [batch, kv_heads, blocks][max, total, delta][ROWS] */
    const struct cpu_tensor *out_bias;

    /* wrt bias: the mask read as [batches, heads, queries, keys], and how tasks share it. */
    int64_t batches, heads, queries;
    int64_t per_task, parts; /* queries of the mask that a task takes, tasks for all of them */
    int64_t key_parts;
    int64_t lines; /* of the mask, in a task */
    double *sums;  /* [lines][KEYS] of worker 0 */
};

/* ---- pieces -------------------------------------------------------------------------------- */

static void find_room(const struct job *j, int worker, struct attention_room *room)
{
    attention_carve(&j->a, j->needs, j->room + (uint64_t)worker * j->room_bytes, room);
}

/* dp[key][row] of the tile, in the shape of z. */
static void make_dp(const struct job *j, const struct attention_tile *t,
                    const struct attention_room *room)
{
    const struct attention *a = &j->a;
    const void *v = a->math->keys(&a->v, t, room->v);

    a->math->product(&(struct attention_product){.m = t->keys,
                                                 .n = t->lanes,
                                                 .k = a->value_dim,
                                                 .a = v,
                                                 .a_i = a->v.width,
                                                 .a_k = 1,
                                                 .b = room->dy_panel,
                                                 .b_ld = ATTENTION_ROWS,
                                                 .c = room->dp,
                                                 .c_ld = ATTENTION_ROWS});
}

/* Panels of the tile's rows. */
static void make_panels(const struct job *j, const struct attention_tile *t,
                        const struct attention_room *room)
{
    const struct attention *a = &j->a;

    a->math->panel(a, &a->q, t, room->q_panel);
    if (room->dy_panel)
        a->math->panel(a, &j->dy, t, room->dy_panel);
}

/* max, total and delta over all keys; leaves total inverted. */
static void make_stats(const struct job *j, struct attention_tile *t,
                       const struct attention_room *room)
{
    const struct attention *a = &j->a;

    a->math->start(room, 0);
    for (int64_t key = t->first; key < t->end; key += ATTENTION_KEYS) {
        attention_keys(t, key, t->end);
        const void *k = a->math->keys(&a->k, t, room->k);
        a->math->scores(a, t, k, room);
        if (room->dp)
            make_dp(j, t, room);
        a->math->softmax(a, t, room, 0);
    }
    if (a->sinks)
        a->math->sink(a, t, room);
    a->math->invert(t, room);
}

/* z becomes P or dz. The statistics are in room. */
static void make_tile(const struct job *j, struct attention_tile *t,
                      const struct attention_room *room, const void *k)
{
    const struct attention *a = &j->a;

    a->math->scores(a, t, k, room);
    if (room->dp)
        make_dp(j, t, room);
    a->math->probability(t, room);
}

/* ---- query --------------------------------------------------------------------------------- */

static void query_block(const struct job *j, int64_t block, const struct attention_room *room)
{
    const struct attention *a = &j->a;
    const struct attention_math *m = a->math;
    struct attention_tile t;
    int64_t head = block / a->blocks;

    attention_rows(a, &t, head / a->kv_heads, head % a->kv_heads,
                   block % a->blocks * ATTENTION_ROWS, a->rows);
    make_panels(j, &t, room);
    make_stats(j, &t, room);
    memset(room->sum, 0, (size_t)(t.rows * a->k.width * m->size));
    for (int64_t key = t.first; key < t.end; key += ATTENTION_KEYS) {
        attention_keys(&t, key, t.end);
        const void *k = m->keys(&a->k, &t, room->k);
        make_tile(j, &t, room, k);
        m->chain(a, &t, room);
        m->product(
            &(struct attention_product){.m = t.rows,
                                        .n = a->k.width,
                                        .k = t.keys,
                                        .a = room->z,
                                        .a_i = 1,
                                        .a_k = ATTENTION_ROWS,
                                        .b = k,
                                        .b_ld = a->k.width,
                                        .c = room->sum,
                                        .c_ld = a->k.width,
                                        .add = true,
                                        .keep = m->finite(&a->k, k, t.keys) ? NULL : room->keep});
    }
    m->put_rows(a, &j->out, &t, room->sum);
}

static void query_blocks(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *j = ctx;
    struct attention_room room;

    find_room(j, worker, &room);
    for (int64_t b = begin; b < end; b++)
        query_block(j, b, &room);
}

/* ---- statistics of all rows ---------------------------------------------------------------- */

/* Where those of a block are: three rows of ROWS. */
static char *stats_at(const struct job *j, int64_t block)
{
    return j->stats + block * 3 * ATTENTION_ROWS * j->a.math->size;
}

static void stats_blocks(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *j = ctx;
    const struct attention *a = &j->a;
    size_t bytes = (size_t)(ATTENTION_ROWS * a->math->size);
    struct attention_room room;
    struct attention_tile t;

    find_room(j, worker, &room);
    for (int64_t b = begin; b < end; b++) {
        int64_t head = b / a->blocks;
        attention_rows(a, &t, head / a->kv_heads, head % a->kv_heads,
                       b % a->blocks * ATTENTION_ROWS, a->rows);
        make_panels(j, &t, &room);
        make_stats(j, &t, &room);
        memcpy(stats_at(j, b), room.max, bytes);
        memcpy(stats_at(j, b) + bytes, room.total, bytes);
        if (room.delta)
            memcpy(stats_at(j, b) + 2 * bytes, room.delta, bytes);
    }
}

static void copy_stat(const struct job *j, const struct attention_tile *t, int which, void *to)
{
    const struct attention *a = &j->a;
    int64_t size = a->math->size, done = 0;
    int64_t base = (t->batch * a->kv_heads + t->kv) * a->blocks;

    while (done < t->lanes) { /* a tile need not begin where a block does */
        int64_t row = t->row + done, at = row % ATTENTION_ROWS;
        int64_t n = cpu_min_i64(ATTENTION_ROWS - at, t->lanes - done);
        if (row >= a->rows)
            break;
        const char *from = stats_at(j, base + row / ATTENTION_ROWS);
        memcpy((char *)to + done * size, from + (which * ATTENTION_ROWS + at) * size,
               (size_t)(n * size));
        done += n;
    }
    memset((char *)to + done * size, 0, (size_t)((t->lanes - done) * size));
}

/* Panels and statistics of the tile's rows. */
static void take_rows(const struct job *j, const struct attention_tile *t,
                      const struct attention_room *room)
{
    make_panels(j, t, room);
    copy_stat(j, t, 0, room->max);
    copy_stat(j, t, 1, room->total);
    if (room->delta)
        copy_stat(j, t, 2, room->delta);
}

/* ---- key and value ------------------------------------------------------------------------- */

static void key_block(const struct job *j, int64_t task, const struct attention_room *room)
{
    const struct attention *a = &j->a;
    const struct attention_math *m = a->math;
    const struct attention_operand *other = j->wrt == RLX_ATTENTION_WRT_value ? &j->dy : &a->q;
    struct attention_tile t = {.keys = 0};
    const int64_t width = other->width;
    int64_t head = task / j->key_parts, key = task % j->key_parts * ATTENTION_KEYS;

    t.batch = head / a->kv_heads;
    t.kv = head % a->kv_heads;
    attention_keys(&t, key, a->keys);
    const void *k = m->keys(&a->k, &t, room->k);
    memset(room->sum, 0, (size_t)(t.keys * width * m->size));
    for (int64_t row = 0; row < a->rows; row += ATTENTION_ROWS) {
        attention_rows(a, &t, t.batch, t.kv, row, a->rows);
        if (key >= t.end || key + t.keys <= t.first)
            continue;
        take_rows(j, &t, room);
        make_tile(j, &t, room, k);
        if (j->wrt == RLX_ATTENTION_WRT_key)
            m->chain(a, &t, room);
        m->gather(a, other, &t, room->gathered);
        m->product(&(struct attention_product){
            .m = t.keys,
            .n = width,
            .k = t.rows,
            .a = room->z,
            .a_i = ATTENTION_ROWS,
            .a_k = 1,
            .b = room->gathered,
            .b_ld = width,
            .c = room->sum,
            .c_ld = width,
            .add = true,
            .keep = m->finite(other, room->gathered, t.rows) ? NULL : room->keep});
    }
    m->put_keys(&j->out, &t, room->sum);
}

static void key_blocks(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *j = ctx;
    struct attention_room room;

    find_room(j, worker, &room);
    for (int64_t b = begin; b < end; b++)
        key_block(j, b, &room);
}

/* ---- bias ---------------------------------------------------------------------------------- */

/* The line of the mask, in its task, that a row of the tile belongs to. */
static int64_t line_of(const struct job *j, int64_t first_query, int64_t row)
{
    int64_t query = j->queries == 1 ? 0 : row / j->a.group - first_query;
    return j->heads == 1 ? query : query * j->a.group + row % j->a.group;
}

#define ADD_TILE(T)                                                                      \
    do {                                                                                 \
        const T *z_ = room->z;                                                           \
        for (int64_t r = 0; r < t->rows; r++) {                                          \
            double *line_ = sums + line_of(j, first_query, t->row + r) * ATTENTION_KEYS; \
            for (int64_t k = 0; k < t->keys; k++)                                        \
                line_[k] += (double)z_[k * ATTENTION_ROWS + r];                          \
        }                                                                                \
    } while (0)

static void add_tile(const struct job *j, const struct attention_tile *t,
                     const struct attention_room *room, int64_t first_query, double *sums)
{
    if (j->a.math->dtype == RLX_DTYPE_f64)
        ADD_TILE(double);
    else
        ADD_TILE(float);
}

/* dz of all rows of one batch item and key head that belong to the task. */
static void bias_rows(const struct job *j, struct attention_tile *t,
                      const struct attention_room *room, int64_t first_query, int64_t queries,
                      double *sums)
{
    const struct attention *a = &j->a;
    int64_t from = first_query * a->group, to = from + queries * a->group;
    const void *k = a->math->keys(&a->k, t, room->k);

    for (int64_t row = from; row < to; row += ATTENTION_ROWS) {
        attention_rows(a, t, t->batch, t->kv, row, to);
        take_rows(j, t, room);
        make_tile(j, t, room, k);
        add_tile(j, t, room, first_query, sums);
    }
}

/* A task's lines lie in the mask as queries of one head, or of the heads of a group. */
static void put_lines(const struct job *j, int64_t batch, int64_t kv, int64_t first_query,
                      int64_t queries, const struct attention_tile *t, const double *sums)
{
    int64_t heads = j->heads == 1 ? 1 : j->a.group, lines = (j->queries == 1 ? 1 : queries) * heads;

    for (int64_t l = 0; l < lines; l++) {
        int64_t head = j->heads == 1 ? 0 : kv * heads + l % heads;
        int64_t query = j->queries == 1 ? 0 : first_query + l / heads;
        int64_t at = ((batch * j->heads + head) * j->queries + query) * j->a.keys + t->key;
        cpu_store_f64(j->out_bias->dtype, sums + l * ATTENTION_KEYS, cpu_at(j->out_bias, at),
                      t->keys);
    }
}

static void bias_task(const struct job *j, int64_t task, const struct attention_room *room,
                      double *sums)
{
    const struct attention *a = &j->a;
    int64_t kv_parts = j->heads == 1 ? 1 : a->kv_heads;
    int64_t key = task % j->key_parts * ATTENTION_KEYS, rest = task / j->key_parts;
    int64_t first = rest % j->parts * j->per_task, kv = rest / j->parts % kv_parts;
    int64_t batch = rest / j->parts / kv_parts;
    int64_t queries = cpu_min_i64(j->per_task, a->queries - first);
    struct attention_tile t = {.keys = 0};

    attention_keys(&t, key, a->keys);
    memset(sums, 0, (size_t)(j->lines * ATTENTION_KEYS) * sizeof *sums);
    for (int64_t b = batch; b < (j->batches == 1 ? a->batch : batch + 1); b++) {
        for (int64_t h = kv; h < (j->heads == 1 ? a->kv_heads : kv + 1); h++) {
            t.batch = b;
            t.kv = h;
            bias_rows(j, &t, room, first, queries, sums);
        }
    }
    put_lines(j, batch, kv, first, queries, &t, sums);
}

static void bias_tasks(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *j = ctx;
    struct attention_room room;

    find_room(j, worker, &room);
    for (int64_t b = begin; b < end; b++)
        bias_task(j, b, &room, j->sums + worker * j->lines * ATTENTION_KEYS);
}

/* How the mask is shared: whole queries, as many as fill a tile, or all where they share. */
static void share_mask(struct job *j, const struct cpu_tensor *mask)
{
    const struct attention *a = &j->a;

    j->batches = mask->dim[0];
    j->heads = mask->rank == 4 ? mask->dim[1] : 1;
    j->queries = mask->rank > 2 ? mask->dim[mask->rank - 2] : 1;
    j->per_task = j->queries == 1 ? a->queries : cpu_max_i64(1, ATTENTION_ROWS / a->group);
    j->parts = j->queries == 1 ? 1 : (j->queries + j->per_task - 1) / j->per_task;
    j->lines = (j->queries == 1 ? 1 : j->per_task) * (j->heads == 1 ? 1 : a->group);
}

/* ---- the kernel ---------------------------------------------------------------------------- */

static int64_t workers(const struct cpu_call *c)
{
    return c->pool ? pool_threads(c->pool) : 1;
}

static void describe(const struct cpu_call *c, struct job *j)
{
    *j = (struct job){.wrt = c->attr->attention_backward.wrt, .out_bias = c->out};
    struct attention *a = &j->a;
    struct attr_attention forward;
    struct attention_room room;

    attention_of_backward(&c->attr->attention_backward, &forward);
    attention_describe(a, c, &forward, 4);
    j->dy = attention_operand_of(a, &c->in[3], true, a->value_dim);
    if (j->wrt != RLX_ATTENTION_WRT_bias)
        j->out =
            attention_operand_of(a, c->out, j->wrt == RLX_ATTENTION_WRT_query,
                                 j->wrt == RLX_ATTENTION_WRT_value ? a->value_dim : a->head_dim);
    else
        share_mask(j, c->out);
    if (j->wrt != RLX_ATTENTION_WRT_value)
        j->needs |= ATTENTION_NEEDS_DP;
    if (a->cap > 0 && (j->wrt == RLX_ATTENTION_WRT_query || j->wrt == RLX_ATTENTION_WRT_key))
        j->needs |= ATTENTION_NEEDS_SLOPE;
    if (j->wrt == RLX_ATTENTION_WRT_key || j->wrt == RLX_ATTENTION_WRT_value)
        j->needs |= ATTENTION_NEEDS_GATHER;
    j->room_bytes = attention_carve(a, j->needs, NULL, &room);
    j->key_parts = (a->keys + ATTENTION_KEYS - 1) / ATTENTION_KEYS;
}

static uint64_t stats_bytes(const struct job *j)
{
    const struct attention *a = &j->a;

    if (j->wrt == RLX_ATTENTION_WRT_query)
        return 0;
    return (uint64_t)(a->batch * a->kv_heads * a->blocks * 3 * ATTENTION_ROWS * a->math->size);
}

/* Scratch: statistics, the workers' rooms, the workers' sums of the bias. */
static uint64_t scratch(const struct cpu_call *c)
{
    struct job j;

    if (c->out->count == 0)
        return 0;
    describe(c, &j);
    uint64_t sums = (uint64_t)(j.lines * ATTENTION_KEYS) * sizeof(double);
    return stats_bytes(&j) + (uint64_t)workers(c) * (j.room_bytes + sums);
}

static void run(const struct cpu_call *c)
{
    struct job j;

    if (c->out->count == 0)
        return;
    describe(c, &j);
    const struct attention *a = &j.a;
    if (a->batch == 0 || a->rows == 0) { /* nothing to sum up */
        memset(c->out->data, 0, (size_t)c->out->count * cpu_size(c->out->dtype));
        return;
    }
    int64_t heads = a->batch * a->kv_heads;
    j.stats = c->scratch;
    j.room = j.stats + stats_bytes(&j);
    j.sums = (double *)(void *)(j.room + (uint64_t)workers(c) * j.room_bytes);
    if (j.wrt == RLX_ATTENTION_WRT_query) {
        cpu_for(c->pool, heads * a->blocks, 1, query_blocks, &j);
        return;
    }
    cpu_for(c->pool, heads * a->blocks, 1, stats_blocks, &j);
    if (j.wrt == RLX_ATTENTION_WRT_bias) {
        int64_t kv_parts = j.heads == 1 ? 1 : a->kv_heads;
        cpu_for(c->pool, j.batches * kv_parts * j.parts * j.key_parts, 1, bias_tasks, &j);
    } else {
        cpu_for(c->pool, heads * j.key_parts, 1, key_blocks, &j);
    }
}

extern const struct cpu_kernel CPU_NAME(cpu_attention_backward);
const struct cpu_kernel CPU_NAME(cpu_attention_backward) = {.run = run, .scratch = scratch};
