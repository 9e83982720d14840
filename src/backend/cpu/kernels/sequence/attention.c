/* attention.c: softmax(scale q k^T + mask) v, without ever holding all scores (ops-core.md 13.1).
 *
 *     for each block of rows, in parallel
 *         for each block of keys
 *             z = scores, masked
 *             raise the row's maximum, and shrink what has been summed up so far accordingly
 *             sum += e^(z - max) v
 *         divide */
#include "backend/cpu/kernels/sequence/attention.h"

struct job {
    struct attention a;
    struct attention_operand out;
    char *room; /* of worker 0; others follow */
    uint64_t room_bytes;
};

static void run_block(const struct job *j, int64_t block, const struct attention_room *room)
{
    const struct attention *a = &j->a;
    const struct attention_math *m = a->math;
    struct attention_tile t;
    int64_t head = block / a->blocks;

    attention_rows(a, &t, head / a->kv_heads, head % a->kv_heads,
                   block % a->blocks * ATTENTION_ROWS, a->rows);
    m->start(room, t.rows * a->v.width);
    m->panel(a, &a->q, &t, room->q_panel);
    for (int64_t key = t.first; key < t.end; key += ATTENTION_KEYS) {
        attention_keys(&t, key, t.end);
        const void *k = m->keys(&a->k, &t, room->k);
        const void *v = m->keys(&a->v, &t, room->v);
        m->scores(a, &t, k, room);
        m->softmax(a, &t, room, t.rows);
        m->product(&(struct attention_product){
            .m = t.rows,
            .n = a->v.width,
            .k = t.keys,
            .a = room->z,
            .a_i = 1,
            .a_k = ATTENTION_ROWS,
            .b = v,
            .b_ld = a->v.width,
            .c = room->sum,
            .c_ld = a->v.width,
            .add = true,
            .keep = t.partial && !m->finite(&a->v, v, t.keys) ? room->keep : NULL});
    }
    if (a->sinks)
        m->sink(a, &t, room);
    m->divide(a, &t, room);
    m->put_rows(a, &j->out, &t, room->sum);
}

static void run_blocks(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *j = ctx;
    struct attention_room room;

    attention_carve(&j->a, 0, j->room + (uint64_t)worker * j->room_bytes, &room);
    for (int64_t b = begin; b < end; b++)
        run_block(j, b, &room);
}

static uint64_t scratch(const struct cpu_call *c)
{
    struct attention a;
    struct attention_room room;

    if (c->out->count == 0)
        return 0;
    attention_describe(&a, c, &c->attr->attention, 3);
    return attention_carve(&a, 0, NULL, &room) * (uint64_t)(c->pool ? pool_threads(c->pool) : 1);
}

static void run(const struct cpu_call *c)
{
    enum { WORK = 1 << 17 }; /* products that are worth a thread's while */
    struct attention_room room;
    struct job j;

    if (c->out->count == 0)
        return;
    attention_describe(&j.a, c, &c->attr->attention, 3);
    j.out = attention_operand_of(&j.a, c->out, true, j.a.value_dim);
    j.room = c->scratch;
    j.room_bytes = attention_carve(&j.a, 0, NULL, &room);
    int64_t rows = cpu_min_i64(j.a.rows, ATTENTION_ROWS);
    int64_t grain =
        cpu_max_i64(1, WORK / rows / cpu_max_i64(j.a.head_dim, j.a.value_dim) / (j.a.keys + 1));
    cpu_for(c->pool, j.a.batch * j.a.kv_heads * j.a.blocks, grain, run_blocks, &j);
}

extern const struct cpu_kernel CPU_NAME(cpu_attention);
const struct cpu_kernel CPU_NAME(cpu_attention) = {.run = run, .scratch = scratch};
