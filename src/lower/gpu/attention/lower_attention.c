/* lower_attention.c: attention, a group per block of rows; where there are few of those and many
 * keys, groups share the keys of a block, and their results are combined afterwards. Where a
 * kernel cannot see the keys of all heads at once, some heads go after others. */
#include "lower/gpu/attention/lower_attention.h"
#include "lower/gpu/gpu_core.h"

enum {
    FEW_ROWS = 16,     /* of one block */
    MORE_ROWS = 64,    /* whose keys may be shared out */
    BUSY_GROUPS = 512, /* of few rows: from so many on a device has enough to do */
    PART_KEYS = 256,   /* a part has at least as many keys */
    TEAM_ROWS = 8      /* that teams of invocations can hold: kernels/attention_decode */
};

/* How the work is cut: units are slices of parts of blocks of bundles of heads. */
struct cut {
    struct gpu_attention_tile tile;
    bool teams; /* by kernels/attention_decode, without blocks or slices */
    uint64_t heads, bundles, rows, blocks; /* heads: of a bundle, done together */
    uint64_t parts, per_part;
    uint64_t units;
};

/* Parts by the number of groups without them. They are rounded to whole tiles of keys. */
static void share_keys(struct cut *t, const struct gpu_attention *a)
{
    uint64_t busy = t->rows <= FEW_ROWS ? BUSY_GROUPS : BUSY_GROUPS * FEW_ROWS / MORE_ROWS;
    uint64_t want = busy / t->units, most = a->keys / PART_KEYS;

    t->parts = 1;
    t->per_part = a->keys;
    if (t->rows > MORE_ROWS || want < 2 || most < 2)
        return;
    t->parts = want < most ? want : most;
    t->per_part = gpu_ceil(gpu_ceil(a->keys, t->parts), t->tile.other) * t->tile.other;
    t->parts = gpu_ceil(a->keys, t->per_part);
}

/* A line of 16 bytes to each of a team, which is part of a subgroup. */
static bool fits_teams(const struct gpu_attention *a, const struct gpu_call *c, uint64_t rows)
{
    uint64_t size = rlx_dtype_size(a->kv_dtype), bytes = a->head_dim * size, team = bytes / 16;
    uint64_t steps =
        (a->k.batch | a->k.head | a->k.line | a->v.batch | a->v.head | a->v.line) * size;
    bool power = bytes % 16 == 0 && steps % 16 == 0 && (team & (team - 1)) == 0 &&
                 a->value_dim == a->head_dim;

    return power && rows <= TEAM_ROWS && a->sums == RLX_DTYPE_f32 && c->features->subgroups &&
           team >= 4 && team <= c->features->subgroup_size && gpu_aligned(c, gpu_in(c, 1), 16) &&
           gpu_aligned(c, gpu_in(c, 2), 16);
}

/* Few queries: heads that share keys are done together, so that those are read once. */
static struct cut cut_of(const struct gpu_attention *a, const struct gpu_call *c)
{
    struct cut t = {.heads = 1};
    uint64_t ratio = a->heads / a->kv_heads;

    if (ratio * a->queries <= MORE_ROWS)
        t.heads = ratio;
    t.bundles = a->heads / t.heads;
    t.rows = a->queries * t.heads;
    t.teams = fits_teams(a, c, t.rows);
    t.tile = gpu_attention_tiles(a, c, t.rows, a->value_dim);
    if (t.teams)
        t.tile = (struct gpu_attention_tile){.own = TEAM_ROWS, .other = PART_KEYS, .slices = 1};
    t.blocks = gpu_ceil(t.rows, t.tile.own);
    t.units = t.tile.slices * t.blocks * t.bundles * a->batch;
    share_keys(&t, a);
    t.units *= t.parts;
    return t;
}

/* Sizes may shrink until keys are shared out, so room for that is kept: as many rows as can be
 * shared out at all, or as these sizes have. */
static struct gpu_arg room_for_parts(struct gpu_call *c, const struct gpu_attention *a)
{
    uint64_t most = (uint64_t)BUSY_GROUPS * FEW_ROWS;
    uint64_t rows = a->batch * a->heads * a->queries * (a->keys / PART_KEYS);

    rows = rows < most ? rows : most;
    return gpu_temp(c, rows * (a->value_dim + 2) * rlx_dtype_size(a->sums));
}

/* Operands and words are the same for both kernels, but for the blocks that teams do without. */
static void launch(struct gpu_call *c, const struct gpu_attention *a, const struct cut *t,
                   struct gpu_arg to)
{
    for (int32_t i = 0; i < 3; i++)
        gpu_bind(c, gpu_in(c, i));
    gpu_bind(c, a->mask_arg);
    gpu_bind(c, a->sinks_arg);
    gpu_bind(c, to);
    gpu_u32(c, "units", t->units);
    if (!t->teams)
        gpu_u32(c, "blocks", t->blocks);
    gpu_u32(c, "bundles", t->bundles);
    gpu_u32(c, "parts", t->parts);
    gpu_u32(c, "per_part", t->per_part);
    gpu_u32(c, "rows", t->rows);
    gpu_u32(c, "keys", a->keys);
    gpu_u32(c, "heads", t->heads);
    gpu_u32(c, "share", t->bundles / a->kv_heads);
    gpu_attention_words(c, a);
    gpu_groups(c, t->units);
}

/* repair: only where the result so far is not finite. */
static void attend(struct gpu_call *c, const struct gpu_attention *a, const struct cut *t,
                   struct gpu_arg to, bool repair)
{
    gpu_kernel(c, "attention", "attention");
    gpu_attention_constants(c, a, &t->tile);
    gpu_attention_sinks(c, a);
    gpu_type(c, "KV", a->kv_dtype);
    gpu_type(c, "Y", t->parts > 1 ? a->sums : a->dtype);
    gpu_const(c, "ZC", t->tile.lines);
    gpu_const(c, "COLS", t->tile.columns);
    gpu_flag(c, "SHARED", t->heads > 1);
    gpu_flag(c, "PARTS", t->parts > 1);
    gpu_flag(c, "REPAIR", repair);
    launch(c, a, t, to);
}

static void attend_in_teams(struct gpu_call *c, const struct gpu_attention *a, const struct cut *t,
                            struct gpu_arg to)
{
    uint32_t rows = t->rows > 4 ? 8 : t->rows > 2 ? 4 : (uint32_t)t->rows;
    bool all = a->mask == GPU_MASK_RANGE && a->window == UINT32_MAX && a->queries == 1;

    gpu_kernel(c, "attention_decode", "decode");
    gpu_type(c, "T", a->dtype);
    gpu_type(c, "KV", a->kv_dtype);
    gpu_type(c, "M", a->mask_dtype);
    gpu_type(c, "Y", t->parts > 1 ? a->sums : a->dtype);
    gpu_const(c, "ROWS", rows);
    gpu_const(c, "SPARE", rows < 4 ? 4 : rows);
    gpu_const(c, "D", (int64_t)a->head_dim);
    gpu_const(c, "EACH", (int64_t)(16 / rlx_dtype_size(a->kv_dtype)));
    gpu_const(c, "MASK", all ? GPU_MASK_NONE : a->mask); /* the last query sees all keys */
    gpu_flag(c, "CAP", a->cap > 0);
    gpu_flag(c, "ALIBI", a->max_bias > 0);
    gpu_attention_sinks(c, a);
    gpu_flag(c, "PARTS", t->parts > 1);
    launch(c, a, t, to);
}

static void combine(struct gpu_call *c, const struct gpu_attention *a, const struct cut *t,
                    struct gpu_arg from)
{
    uint64_t lines = a->batch * a->heads * a->queries;

    gpu_kernel(c, "attention", "combine");
    gpu_type(c, "T", a->dtype);
    gpu_type(c, "A", a->sums);
    gpu_const(c, "D", (int64_t)a->value_dim);
    gpu_const(c, "MOST", BUSY_GROUPS);
    gpu_attention_sinks(c, a);
    gpu_bind(c, from);
    gpu_bind(c, a->sinks_arg);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "lines", lines);
    gpu_u32(c, "parts", t->parts);
    gpu_u32(c, "bundles", t->bundles);
    gpu_u32(c, "rows", t->rows);
    gpu_u32(c, "heads", t->heads);
    gpu_u32(c, "first_head", a->first_head);
    gpu_attention_line_words(c, (const char *const[]){"y_step.batch", "y_step.head", "y_step.line"},
                             &a->y);
    gpu_groups(c, lines);
}

/* parts: room for what groups that share keys have found. */
static void attend_heads(struct gpu_call *c, const struct gpu_attention *a, struct gpu_arg parts)
{
    struct cut t = cut_of(a, c);

    if (t.parts > 1)
        parts.bytes = t.parts * a->batch * a->heads * a->queries * (a->value_dim + 2) *
                      rlx_dtype_size(a->sums);
    struct gpu_arg to = t.parts > 1 ? parts : gpu_out(c);
    if (t.teams)
        attend_in_teams(c, a, &t, to);
    else
        attend(c, a, &t, to,
               t.parts == 1 && t.rows > FEW_ROWS && gpu_coop_attention(c, a, t.heads));
    if (t.parts > 1)
        combine(c, a, &t, parts);
}

/* ---- some heads after others ---- */

/* How many heads of keys and values of one item a kernel sees at once; 0: all of all items, or
 * heads do not lie one after another. */
static uint64_t heads_at_once(const struct gpu_call *c, const struct gpu_attention *a,
                              struct gpu_arg parts)
{
    uint64_t dim = a->head_dim > a->value_dim ? a->head_dim : a->value_dim;
    uint64_t head = a->keys * dim * rlx_dtype_size(a->kv_dtype);
    uint64_t y = gpu_windows(c, gpu_out(c)), found = gpu_windows(c, parts);
    uint64_t others = gpu_windows(c, gpu_in(c, 0)) + gpu_windows(c, a->mask_arg) + 1; /* sinks */
    uint64_t most = c->max_bindings;

    others += y > found ? y : found;
    if (gpu_windows(c, gpu_in(c, 1)) + gpu_windows(c, gpu_in(c, 2)) + others <= most ||
        c->columns || a->k.head != a->keys * a->head_dim)
        return 0;
    uint64_t windows = most > others + 2 ? (most - others) / 2 : 1;
    uint64_t fit = (windows * c->max_binding - GPU_ALIGN) / head;
    return fit < 1 ? 1 : fit < a->kv_heads ? fit : a->kv_heads;
}

/* Of one item, heads [first, first + count) of the keys, with the queries that meet them. */
static void attend_some(struct gpu_call *c, const struct gpu_attention *all, uint64_t item,
                        uint64_t first, uint64_t count, struct gpu_arg parts)
{
    const struct gpu_attention_lines *const step[] = {&all->q, &all->k, &all->v};
    uint64_t ratio = all->heads / all->kv_heads, size = rlx_dtype_size(all->dtype);
    uint64_t lines = all->queries * all->value_dim;
    uint64_t mask = all->m.head ? ratio * count * all->m.head : all->mask_queries * all->keys;
    const struct gpu_call whole = *c;
    struct gpu_attention a = *all;
    struct gpu_arg in[3];

    for (int32_t i = 0; i < 3; i++) {
        uint64_t heads = i ? count : ratio * count, before = i ? first : ratio * first;
        uint64_t each = i ? rlx_dtype_size(all->kv_dtype) : size;
        before = before * step[i]->head + item * step[i]->batch;
        in[i] = gpu_part(gpu_in(c, i), before * each, heads * step[i]->head * each);
    }
    a.batch = 1;
    a.heads = ratio * count;
    a.kv_heads = count;
    a.first_head = ratio * first;
    a.mask_arg = in[0];
    if (!a.has_sinks)
        a.sinks_arg = gpu_attention_no_sinks(in[0]);
    if (all->mask >= GPU_MASK_BIAS && all->mask <= GPU_MASK_REAL) {
        uint64_t each = rlx_dtype_size(all->mask_dtype);
        uint64_t at = item * all->m.batch + ratio * first * all->m.head;
        a.mask_arg = gpu_part(all->mask_arg, at * each, mask * each);
    }
    c->arg_in = in;
    c->arg_out = gpu_part(gpu_out(c), (item * all->y.batch + ratio * first * lines) * size,
                          ratio * count * lines * size);
    attend_heads(c, &a, parts);
    c->arg_in = whole.arg_in;
    c->arg_out = whole.arg_out;
}

void gpu_lower_attention(struct gpu_call *c)
{
    struct gpu_attention a;

    if (gpu_count(c->out) == 0)
        return;
    gpu_attention_describe(&a, c, &c->attr->attention, 3);
    struct gpu_arg parts = room_for_parts(c, &a);
    uint64_t each = heads_at_once(c, &a, parts);
    if (each == 0) {
        attend_heads(c, &a, parts);
        return;
    }
    for (uint64_t item = 0; item < a.batch; item++)
        for (uint64_t first = 0; first < a.kv_heads && c->status == RLX_OK; first += each)
            attend_some(c, &a, item, first, a.kv_heads - first < each ? a.kv_heads - first : each,
                        parts);
}
