/* static_pack.c: cut out what depends on params and constants alone (runtime.md 1.4).
 *
 *     param %w: f32[k,n]                        param %w: f32[k,n]
 *     %h = cast %w to=f16                  =>   %h = cast %w to=f16
 *     %t = transpose %h perm=[1,0]              %t = transpose %h perm=[1,0]
 *     %y = matmul %x, %t                        return %t
 *     return %y                            and
 *                                               param %pack.ad59...: f16[n,k]
 *                                               %y = matmul %x, %pack.ad59...
 *                                               return %y
 *
 * A node is static if it computes something from static operands only, is as large at most as
 * GROWTH times the params it reads, and its sizes are known. A pack is a static value that depends
 * on a param, is not a view, and is needed, itself or through views, by a node that is not static
 * or as an output. Expressions of constants alone are left to folding.
 *
 * Needs:  nothing; best after folding and fusion.      Keeps: order, labels, inputs. */
#include "pass/static_pack.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/text/text.h"
#include "pass/rebuild.h"

enum {
    GROWTH = 4,        /* a pack takes at most this many times the memory of what it is made of */
    MOST_VISITED = 256 /* nodes looked at to find out what that is; beyond them nothing counts */
};

/* Same in every process: packs are named by it. */
static const uint64_t expression_key[2] = {UINT64_C(0x9d1c0b7fe2a46853),
                                           UINT64_C(0x35f8e6a10c7d92b4)};

struct expression {
    uint64_t key;
    int32_t pack; /* which one it is; -1: none */
};

struct split {
    struct ir_graph *g;
    const rlx_allocator *mem;
    struct diag *diag;

    /* By node of g. */
    bool *is_static; /* a param, a constant, or computed from such */
    bool *has_param; /* of the static: a param is among what it is computed from */
    bool *is_pack;
    bool *needed;   /* after the split, by the module or, if static, by a pack */
    ir_value *copy; /* of what packs need: where it is in the static part */
    uint32_t *seen; /* stamps of a search */
    uint32_t stamp;

    /* The static part. */
    struct ir_module *mod;
    struct ir_graph *part;
    struct map by_key;           /* nodes of part: equal expressions are one */
    VEC(struct expression) expr; /* by node of part */
    size_t count;
    struct static_pack *pack;
    ir_value *leaf; /* by pack: what stands for it in the new graph; RLX_NO_VALUE: not added yet */
};

/* ---- which nodes are static ---- */

/* Any op that is a function of its operands. Control flow stays where its sub-graphs are, custom
 * ops may do what they like, random numbers are drawn per run. */
static bool may_run_once(const struct ir_graph *g, const struct ir_node *n)
{
    switch (op_info(n->op)->category) {
    case CATEGORY_ELEMENTWISE:
    case CATEGORY_MOVEMENT:
    case CATEGORY_INDEX:
    case CATEGORY_REDUCTION:
    case CATEGORY_CONTRACTION:
    case CATEGORY_NORMALISATION:
    case CATEGORY_WINDOW:
    case CATEGORY_SEQUENCE:
    case CATEGORY_FUSED:
    case CATEGORY_GRADIENT: break;
    case CATEGORY_IO:
    case CATEGORY_RANDOM:
    case CATEGORY_CONTROL: return false;
    }
    return !op_is(n->op, OP_RANDOM) && !op_has_trait(n->op, RUNS_GRAPHS) &&
           ir_written_state(g, n) == RLX_NO_VALUE;
}

static bool attrs_are_static(const struct ir_node *n)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(n->op)->family, &count);

    for (size_t i = 0; i < count; i++) {
        const void *at = (const char *)&n->attr + a[i].offset;
        if (a[i].kind == ATTR_DIM && !dim_is_static(*(const ir_dim *)at))
            return false;
        const rlx_list *l = at;
        for (int32_t k = 0; a[i].kind == ATTR_DIMS && k < l->count; k++)
            if (!dim_is_static(l->at[k]))
                return false;
    }
    return true;
}

/* Do the params that v is computed from come to `bytes` or more? Looks at the nearest nodes first
 * and says no when it does not find enough of them soon. */
static bool reads_params_of(struct split *s, ir_value v, uint64_t bytes)
{
    ir_value queue[MOST_VISITED];
    size_t from = 0, to = 1;
    uint64_t found = 0, size;

    s->stamp++;
    s->seen[v] = s->stamp;
    queue[0] = v;
    while (from < to) {
        const struct ir_node *n = ir_node(s->g, queue[from++]);
        if (n->op == RLX_OP_param && type_bytes(&n->type, &size))
            found = size > UINT64_MAX - found ? UINT64_MAX : found + size;
        if (found >= bytes)
            return true;
        for (int32_t i = 0; i < n->in_count && to < MOST_VISITED; i++) {
            if (s->seen[n->in[i]] == s->stamp)
                continue;
            s->seen[n->in[i]] = s->stamp;
            queue[to++] = n->in[i];
        }
    }
    return false;
}

static void classify(struct split *s, const struct ir_node *n)
{
    ir_value v = ir_id(s->g, n);
    uint64_t bytes;

    if (!type_is_static(&n->type))
        return;
    if (op_is(n->op, OP_LEAF)) {
        s->has_param[v] = n->op == RLX_OP_param;
        s->is_static[v] = n->op == RLX_OP_param || n->op == RLX_OP_const;
        return;
    }
    if (!may_run_once(s->g, n) || !attrs_are_static(n) || n->in_count == 0)
        return;
    bool all = true, param = false;
    for (int32_t i = 0; i < n->in_count; i++) {
        all &= s->is_static[n->in[i]];
        param |= s->has_param[n->in[i]];
    }
    if (!all || !type_bytes(&n->type, &bytes) || bytes == 0)
        return;
    if (param && !reads_params_of(s, v, bytes / GROWTH + (bytes % GROWTH != 0)))
        return;
    s->is_static[v] = true;
    s->has_param[v] = param;
}

/* ---- which of them are packs ---- */

/* v is needed in every run: the nearest value it is computed from that is not a view becomes a
 * pack. */
static void mark_pack(struct split *s, ir_value v)
{
    if (!s->is_static[v] || !s->has_param[v])
        return;
    while (ir_is_view(s->g, ir_node(s->g, v)))
        v = ir_node(s->g, v)->in[0];
    s->is_pack[v] = ir_node(s->g, v)->op != RLX_OP_param;
}

static size_t mark_packs(struct split *s)
{
    size_t count = 0;

    IR_EACH(n, s->g) {
        classify(s, n);
        for (int32_t i = 0; i < n->in_count && !s->is_static[ir_id(s->g, n)]; i++)
            mark_pack(s, n->in[i]);
    }
    for (size_t i = 0; i < s->g->output.len; i++)
        mark_pack(s, s->g->output.at[i]);
    for (size_t i = 0; i < s->g->node.len; i++)
        count += s->is_pack[i];
    return count;
}

/* What each side needs once the packs are leaves of the module. Static nodes can be needed by both;
 * needed[] is asked for one side at a time. */
static void mark_needed_by_packs(struct split *s)
{
    for (size_t i = s->g->node.len; i-- > 0;) {
        const struct ir_node *n = &s->g->node.at[i];
        s->needed[i] |= s->is_pack[i];
        for (int32_t k = 0; s->needed[i] && k < n->in_count; k++)
            s->needed[n->in[k]] = true;
    }
}

static void mark_needed_by_module(struct split *s)
{
    for (size_t i = 0; i < s->g->output.len; i++)
        s->needed[s->g->output.at[i]] = true;
    for (size_t i = s->g->node.len; i-- > 0;) {
        const struct ir_node *n = &s->g->node.at[i];
        s->needed[i] |= !s->is_static[i]; /* what is dead otherwise is not our business */
        for (int32_t k = 0; s->needed[i] && !s->is_pack[i] && k < n->in_count; k++)
            s->needed[n->in[k]] = true;
    }
}

/* ---- the static part ---- */

static uint64_t hash_pair(uint64_t a, uint64_t b)
{
    return hash_bytes_keyed(expression_key, (const uint64_t[]){a, b}, 2 * sizeof a);
}

/* By the text form, which is the same in every process; constants by their bytes. */
static rlx_status expression_hash(const struct split *s, const struct ir_new_node *n, uint64_t *out)
{
    const struct ir_blob data = n->op == RLX_OP_const ? n->attr.const_.data : (struct ir_blob){0};
    union ir_attr attr = n->attr;
    struct text text;

    if (n->op == RLX_OP_const)
        attr.const_.data = (struct ir_blob){NULL, 0};
    text_init(&text, s->mem);
    text_addf(&text, "%s ", op_info(n->op)->name);
    ir_print_attrs(s->mod, n->op, &attr, &text);
    bool failed = text.failed;
    uint64_t h = failed ? 0 : hash_bytes_keyed(expression_key, text.at, text.len);
    text_free(&text);
    if (failed)
        return diag_no_memory(s->diag, 0);
    if (n->op == RLX_OP_const)
        h = hash_pair(h, hash_bytes_keyed(expression_key, data.ptr, data.len));
    for (int32_t i = 0; i < n->in_count; i++)
        h = hash_pair(h, s->expr.at[n->in[i]].key);
    *out = h;
    return RLX_OK;
}

static bool is_same_expression(const void *owner, uint32_t value, const void *key)
{
    const struct split *s = owner;
    const struct ir_new_node *n = key;
    const struct ir_node *have = &s->part->node.at[value];

    return have->op == n->op && have->in_count == n->in_count &&
           (n->in_count == 0 ||
            memcmp(have->in, n->in, (size_t)n->in_count * sizeof n->in[0]) == 0) &&
           attr_same(n->op, &have->attr, &n->attr);
}

static rlx_status add_to_part(struct split *s, const struct ir_new_node *n, ir_value *out)
{
    uint64_t key;
    uint32_t have;

    TRY(expression_hash(s, n, &key));
    if (map_find(&s->by_key, key, is_same_expression, s, n, &have)) {
        *out = (ir_value)have;
        return RLX_OK;
    }
    if (!vec_room(s->mem, &s->expr) || !map_add(&s->by_key, key, (uint32_t)s->part->node.len))
        return diag_no_memory(s->diag, sizeof key);
    TRY(ir_add(s->part, n, out, s->diag));
    s->expr.at[s->expr.len++] = (struct expression){key, -1};
    return s->expr.len == s->part->node.len
               ? RLX_OK
               : diag_fail(s->diag, RLX_ERROR_INTERNAL, "%s: not typed when packed",
                           op_info(n->op)->name);
}

static rlx_status copy_to_part(struct split *s, const struct ir_node *n)
{
    struct ir_new_node copy = {
        .op = n->op, .in_count = n->in_count, .attr = n->attr, .label = n->label};
    size_t bytes = (size_t)n->in_count * sizeof(ir_value);
    ir_value *in = mem_alloc(s->mem, bytes);

    if (n->in_count && !in)
        return diag_no_memory(s->diag, bytes);
    for (int32_t i = 0; i < n->in_count; i++)
        in[i] = s->copy[n->in[i]];
    copy.in = in;
    rlx_status status = add_to_part(s, &copy, &s->copy[ir_id(s->g, n)]);
    mem_free(s->mem, in, bytes);
    return status;
}

static rlx_status build_part(struct split *s)
{
    TRY(ir_module_create(s->mem, &s->mod, s->diag));
    TRY(ir_graph_add(s->mod, rlx_cstr("static"), &s->part, s->diag));
    mark_needed_by_packs(s);
    IR_EACH(n, s->g) {
        ir_value v = ir_id(s->g, n);
        if (!s->needed[v])
            continue;
        TRY(copy_to_part(s, n));
        struct expression *e = &s->expr.at[s->copy[v]];
        if (!s->is_pack[v] || e->pack >= 0)
            continue;
        TRY(ir_add_output(s->part, s->copy[v], s->diag));
        e->pack = (int32_t)s->count++;
    }
    s->pack = arena_array(&s->mod->arena, struct static_pack, s->count);
    s->leaf = arena_array(&s->mod->arena, ir_value, s->count);
    if (!s->pack || !s->leaf)
        return diag_no_memory(s->diag, s->count * sizeof *s->pack);
    for (size_t i = 0; i < s->count; i++) {
        s->pack[i].key = s->expr.at[s->part->output.at[i]].key;
        s->leaf[i] = RLX_NO_VALUE;
    }
    return ir_verify(s->mod, s->diag);
}

/* ---- what is left of the module ---- */

/* "pack.0123456789abcdef", and something after it where that name is taken. */
static rlx_status name_pack(struct split *s, const struct rebuild *r, struct static_pack *p)
{
    char text[64];
    rlx_str name = {text, 0};
    ir_value taken;
    uint32_t turn = 0;

    do {
        int len = turn ? snprintf(text, sizeof text, "pack.%016" PRIx64 ".%" PRIu32, p->key, turn)
                       : snprintf(text, sizeof text, "pack.%016" PRIx64, p->key);
        name.len = (size_t)len;
        turn++;
    } while (ir_find_leaf(s->g, name, &taken) || ir_find_leaf(&r->made, name, &taken));
    p->name = arena_str(&s->mod->arena, name);
    return p->name.ptr ? RLX_OK : diag_no_memory(s->diag, name.len);
}

static rlx_status put_leaf(struct split *s, struct rebuild *r, const struct ir_node *n)
{
    int32_t i = s->expr.at[s->copy[ir_id(s->g, n)]].pack;
    union ir_attr attr;

    if (s->leaf[i] == RLX_NO_VALUE) {
        TRY(name_pack(s, r, &s->pack[i]));
        attr_defaults(RLX_OP_param, &attr);
        attr.leaf.name = (struct ir_blob){s->pack[i].name.ptr, s->pack[i].name.len};
        attr.leaf.dtype = n->type.dtype;
        attr.leaf.shape = rlx_list_of(n->type.rank, n->type.dim);
        TRY(rebuild_add(r, RLX_OP_param, NULL, 0, &attr, &s->leaf[i]));
    }
    rebuild_replace(r, n, s->leaf[i]);
    return RLX_OK;
}

static rlx_status rewrite(struct split *s)
{
    struct rebuild r;
    rlx_status status = rebuild_begin(&r, s->g, s->diag);

    memset(s->needed, 0, s->g->node.len * sizeof *s->needed);
    mark_needed_by_module(s);
    for (size_t i = 0; status == RLX_OK && i < s->g->node.len; i++) {
        const struct ir_node *n = &s->g->node.at[i];
        if (s->needed[i])
            status = s->is_pack[i] ? put_leaf(s, &r, n) : rebuild_keep(&r, n);
    }
    return rebuild_finish(&r, status);
}

static rlx_status split(struct split *s, struct arena *scratch)
{
    size_t nodes = s->g->node.len;

    s->is_static = arena_array(scratch, bool, nodes);
    s->has_param = arena_array(scratch, bool, nodes);
    s->is_pack = arena_array(scratch, bool, nodes);
    s->needed = arena_array(scratch, bool, nodes);
    s->copy = arena_array(scratch, ir_value, nodes);
    s->seen = arena_array(scratch, uint32_t, nodes);
    if (!s->is_static || !s->has_param || !s->is_pack || !s->needed || !s->copy || !s->seen)
        return diag_no_memory(s->diag, nodes * sizeof *s->copy);
    if (!mark_packs(s))
        return RLX_OK;
    TRY(build_part(s));
    return rewrite(s);
}

rlx_status pass_split_static(struct ir_module *m, const rlx_allocator *mem, struct static_part *out,
                             struct diag *d)
{
    struct split s = {.g = ir_entry(m), .mem = mem, .diag = d};
    struct arena scratch;

    *out = (struct static_part){0};
    arena_init(&scratch, mem);
    map_init(&s.by_key, mem);
    rlx_status status = split(&s, &scratch);
    map_free(&s.by_key);
    vec_free(mem, &s.expr);
    arena_free(&scratch);
    if (status != RLX_OK) {
        ir_module_destroy(s.mod);
        return status;
    }
    *out = (struct static_part){.mod = s.mod, .count = s.count, .pack = s.pack};
    return RLX_OK;
}
