/* recompute.c: values that wait for their last readers are computed again, where they would take
 * more memory than there is to be: what training does with activations that its backward pass
 * reads.
 *
 *     %a = gelu %x               %a = gelu %x
 *     %y = matmul %a, %w         %y = matmul %a, %w
 *     ... much memory      =>    ... %a's bytes are free
 *     %d = mul %a, %e            %a2 = gelu %x
 *                                %d = mul %a2, %e
 *
 * At the moment when most bytes are alive, the value goes that frees most of them for the least
 * work; what it is computed from is computed again as well, unless it is alive then or much
 * smaller. That is repeated until the bytes are within the budget, or no value is left to go. Bytes
 * are counted without what the planner gains by working in place, so that plans are smaller.
 *
 * Needs:  a budget; types that are static.      Keeps: every bit of every result: the same ops on
 * the same values. What is random, writes a state or reads one that is written is done once. */
#include "pass/recompute.h"

#include <string.h>

#include "ir/cost.h"
#include "pass/facts.h"
#include "pass/pass.h"
#include "pass/rebuild.h"

#define ALIGN 64          /* of slots, as the planner has it */
#define FLOPS_PER_BYTE 16 /* that take as long as a byte of memory */
#define MUCH_SMALLER 8    /* so many times smaller than what is freed: it is kept */
#define MOST_AT_ONCE 64   /* nodes that one value takes to be made again */
#define ROUNDS_PER_NODE 4 /* and then it is enough */
#define NOWHERE INT32_MAX

/* ---- a schedule: nodes in the order they run, some of them several times ---- */

struct schedule {
    const struct ir_graph *g;
    const rlx_allocator *mem;
    ir_value *at;
    size_t len, cap;
};

/* What is known of it, by moment: a moment is an index into the schedule. */
struct look {
    int32_t *root; /* the moment whose bytes it has: its own, or of what it is a view of */
    int32_t *last; /* when these bytes are read for the last time */
    int64_t *live; /* bytes that are alive at that moment */
    int32_t *before, *after; /* of roots: when they are read last before the peak, and next after */
    int32_t *now;            /* by node: when it was computed last */
    int32_t *then;           /* the same at the peak */
    int32_t *mark;           /* by node: the value, plus 1, that it was looked at for */
    bool *refused;           /* by node: it does not help at this peak */
    size_t moments, nodes;   /* that there is room for */
    int32_t peak;
};

static bool is_view(const struct ir_node *n)
{
    return op_has_trait(n->op, IS_VIEW) && n->in_count == 1;
}

/* Params, constants and states lie elsewhere. */
static uint64_t bytes_of(const struct ir_node *n)
{
    uint64_t bytes;

    if ((op_is(n->op, OP_LEAF) && n->op != RLX_OP_input) || !type_bytes(&n->type, &bytes))
        return 0;
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static void free_look(struct look *l, const rlx_allocator *mem)
{
    mem_free(mem, l->root, l->moments * sizeof *l->root);
    mem_free(mem, l->last, l->moments * sizeof *l->last);
    mem_free(mem, l->live, (l->moments + 1) * sizeof *l->live);
    mem_free(mem, l->before, l->moments * sizeof *l->before);
    mem_free(mem, l->after, l->moments * sizeof *l->after);
    mem_free(mem, l->now, l->nodes * sizeof *l->now);
    mem_free(mem, l->then, l->nodes * sizeof *l->then);
    mem_free(mem, l->mark, l->nodes * sizeof *l->mark);
    mem_free(mem, l->refused, l->nodes * sizeof *l->refused);
    *l = (struct look){0};
}

static rlx_status make_room(struct look *l, const struct schedule *s, struct diag *d)
{
    size_t moments = s->len + MOST_AT_ONCE, nodes = s->g->node.len + 1;

    if (l->moments >= moments)
        return RLX_OK;
    free_look(l, s->mem);
    l->moments = moments += moments / 2;
    l->nodes = nodes;
    l->root = mem_alloc(s->mem, moments * sizeof *l->root);
    l->last = mem_alloc(s->mem, moments * sizeof *l->last);
    l->live = mem_alloc(s->mem, (moments + 1) * sizeof *l->live);
    l->before = mem_alloc(s->mem, moments * sizeof *l->before);
    l->after = mem_alloc(s->mem, moments * sizeof *l->after);
    l->now = mem_alloc(s->mem, nodes * sizeof *l->now);
    l->then = mem_alloc(s->mem, nodes * sizeof *l->then);
    l->mark = mem_alloc(s->mem, nodes * sizeof *l->mark);
    l->refused = mem_alloc(s->mem, nodes * sizeof *l->refused);
    if (!l->root || !l->last || !l->live || !l->before || !l->after || !l->now || !l->then ||
        !l->mark || !l->refused)
        return diag_no_memory(d, moments * 5 * sizeof *l->root);
    memset(l->mark, 0, nodes * sizeof *l->mark);
    memset(l->refused, 0, nodes * sizeof *l->refused);
    return RLX_OK;
}

static void find_lifetimes(struct look *l, const struct schedule *s)
{
    for (size_t i = 0; i < s->len; i++) {
        const struct ir_node *n = ir_node(s->g, s->at[i]);
        for (int32_t k = 0; k < n->in_count; k++)
            l->last[l->root[l->now[n->in[k]]]] = (int32_t)i;
        l->root[i] = is_view(n) ? l->root[l->now[n->in[0]]] : (int32_t)i;
        l->last[l->root[i]] = (int32_t)i;
        l->now[s->at[i]] = (int32_t)i;
    }
    for (size_t i = 0; i < s->g->output.len; i++)
        l->last[l->root[l->now[s->g->output.at[i]]]] = (int32_t)s->len - 1;
}

/* The most bytes that are alive at once; l->peak is when. */
static int64_t measure(struct look *l, const struct schedule *s)
{
    int64_t most = 0;

    find_lifetimes(l, s);
    memset(l->live, 0, (s->len + 1) * sizeof *l->live);
    for (size_t i = 0; i < s->len; i++)
        if (l->root[i] == (int32_t)i) {
            int64_t bytes = (int64_t)bytes_of(ir_node(s->g, s->at[i]));
            l->live[i] += bytes;
            l->live[l->last[i] + 1] -= bytes;
        }
    l->peak = 0;
    for (size_t i = 0; i < s->len; i++) {
        l->live[i] += i ? l->live[i - 1] : 0;
        if (l->live[i] > most) {
            most = l->live[i];
            l->peak = (int32_t)i;
        }
    }
    return most;
}

/* Who reads what before and after the peak, and what every node's value was then. */
static void look_around_peak(struct look *l, const struct schedule *s)
{
    for (size_t i = 0; i < s->len; i++) {
        l->before[i] = (int32_t)i;
        l->after[i] = NOWHERE;
    }
    for (size_t i = 0; i < s->len; i++) {
        const struct ir_node *n = ir_node(s->g, s->at[i]);
        for (int32_t k = 0; k < n->in_count; k++) {
            int32_t root = l->root[l->now[n->in[k]]];
            if ((int32_t)i <= l->peak)
                l->before[root] = (int32_t)i;
            else if (l->after[root] == NOWHERE)
                l->after[root] = (int32_t)i;
        }
        l->now[s->at[i]] = (int32_t)i;
        if ((int32_t)i == l->peak)
            memcpy(l->then, l->now, s->g->node.len * sizeof *l->then);
    }
}

/* ---- what it takes to make a value again ---- */

struct remake {
    const struct schedule *s;
    const struct look *l;
    const bool *once;  /* by node: it must not run twice */
    int32_t *mark, id; /* by node: id where this remake has it */
    int32_t root;      /* the moment whose bytes go */
    ir_value node[MOST_AT_ONCE];
    size_t count;
    int64_t kept;  /* bytes that stay alive for it across the peak */
    uint64_t work; /* in bytes moved, or as long as that takes */
};

static uint64_t work_of(const struct ir_graph *g, const struct ir_node *n)
{
    uint64_t bytes = bytes_of(n);

    for (int32_t k = 0; k < n->in_count; k++)
        bytes += bytes_of(ir_node(g, n->in[k]));
    return bytes + ir_node_flops(g, n) / FLOPS_PER_BYTE;
}

static bool has(struct remake *m, ir_value v);

static bool add_node(struct remake *m, ir_value v)
{
    const struct ir_graph *g = m->s->g;
    const struct ir_node *n = ir_node(g, v);

    m->mark[v] = m->id;
    for (int32_t k = 0; k < n->in_count; k++)
        if (!has(m, n->in[k]))
            return false;
    if (m->count == MOST_AT_ONCE)
        return false;
    m->node[m->count++] = v;
    m->work += is_view(n) ? 0 : work_of(g, n);
    return true;
}

/* The value is there when the others are made again: alive anyway, made again as well, or kept. */
static bool has(struct remake *m, ir_value v)
{
    const struct ir_node *n = ir_node(m->s->g, v);

    if (m->mark[v] == m->id || (op_is(n->op, OP_LEAF) && n->op != RLX_OP_input))
        return true;
    int32_t root = m->l->root[m->l->then[v]];
    if (root != m->root && m->l->last[root] > m->l->peak)
        return true;
    int64_t bytes = (int64_t)bytes_of(ir_node(m->s->g, m->s->at[root]));
    int64_t freed = (int64_t)bytes_of(ir_node(m->s->g, m->s->at[m->root]));
    if (root != m->root && (m->once[v] || (!is_view(n) && bytes * MUCH_SMALLER <= freed))) {
        m->mark[v] = m->id;
        m->kept += bytes;
        return true;
    }
    return !m->once[v] && m->count < MOST_AT_ONCE && add_node(m, v);
}

/* The root, and every view of it that is read after the peak. */
static bool remake_root(struct remake *m)
{
    const struct schedule *s = m->s;
    const struct look *l = m->l;

    for (size_t i = (size_t)l->after[m->root]; i < s->len; i++) {
        const struct ir_node *n = ir_node(s->g, s->at[i]);
        for (int32_t k = 0; k < n->in_count; k++) {
            int32_t was = l->then[n->in[k]];
            if (was <= l->peak && s->at[was] == n->in[k] && l->root[was] == m->root &&
                !has(m, n->in[k]))
                return false;
        }
    }
    return m->count > 0;
}

static double gain(const struct remake *m)
{
    int64_t freed = (int64_t)bytes_of(ir_node(m->s->g, m->s->at[m->root])) - m->kept;

    return freed <= 0 ? 0 : (double)freed / (double)(m->work + 1);
}

/* ---- one value after the other ---- */

struct search {
    struct schedule s;
    struct look look;
    bool *once;
    int32_t id;
    struct remake best, trial;
};

static bool waits_across_peak(const struct look *l, int32_t root)
{
    return l->root[root] == root && root < l->peak && l->before[root] < l->peak &&
           l->after[root] != NOWHERE && l->last[root] > l->peak;
}

static bool choose(struct search *c)
{
    const struct look *l = &c->look;
    double most = 0;

    for (int32_t i = 0; i < l->peak; i++) {
        ir_value v = c->s.at[i];
        if (!waits_across_peak(l, i) || c->once[v] || l->refused[v])
            continue;
        c->trial = (struct remake){
            .s = &c->s, .l = l, .once = c->once, .mark = l->mark, .id = ++c->id, .root = i};
        if (remake_root(&c->trial) && gain(&c->trial) > most) {
            most = gain(&c->trial);
            c->best = c->trial;
        }
    }
    return most > 0;
}

static rlx_status insert(struct schedule *s, size_t at, const ir_value *node, size_t count,
                         struct diag *d)
{
    if (!vec_room_for(s->mem, s, count))
        return diag_no_memory(d, count * sizeof *node);
    memmove(s->at + at + count, s->at + at, (s->len - at) * sizeof *node);
    memcpy(s->at + at, node, count * sizeof *node);
    s->len += count;
    return RLX_OK;
}

static void take_out(struct schedule *s, size_t at, size_t count)
{
    memmove(s->at + at, s->at + at + count, (s->len - at - count) * sizeof *s->at);
    s->len -= count;
}

/* Puts the best one in, and takes it out again where it does not help. */
static rlx_status try_best(struct search *c, int64_t *most, bool *better, struct diag *d)
{
    struct look *l = &c->look;
    int32_t peak = l->peak;
    int64_t there = l->live[peak], bytes;
    size_t at = (size_t)l->after[c->best.root];

    TRY(insert(&c->s, at, c->best.node, c->best.count, d));
    TRY(make_room(l, &c->s, d));
    bytes = measure(l, &c->s);
    *better = bytes <= *most && l->live[peak] < there;
    if (*better) {
        *most = bytes;
        return RLX_OK;
    }
    take_out(&c->s, at, c->best.count);
    *most = measure(l, &c->s);
    l->refused[c->s.at[c->best.root]] = true;
    return RLX_OK;
}

static rlx_status shrink(struct search *c, uint64_t budget, int64_t *most, struct diag *d)
{
    size_t rounds = ROUNDS_PER_NODE * c->s.g->node.len;
    int32_t peak = -1;

    while ((uint64_t)*most > budget && rounds-- > 0) {
        bool better = false;
        if (c->look.peak != peak)
            memset(c->look.refused, 0, c->s.g->node.len * sizeof *c->look.refused);
        peak = c->look.peak;
        look_around_peak(&c->look, &c->s);
        if (!choose(c))
            break;
        TRY(try_best(c, most, &better, d));
        peak = better ? -1 : peak;
    }
    return RLX_OK;
}

/* ---- the pass ---- */

static rlx_status begin(struct search *c, const struct ir_module *m, struct diag *d)
{
    const struct ir_graph *g = ir_entry(m);
    size_t count = g->node.len;

    c->s = (struct schedule){.g = g, .mem = m->mem};
    c->once = mem_alloc(m->mem, count + 1);
    if (!c->once || !vec_room_for(m->mem, &c->s, count))
        return diag_no_memory(d, count * sizeof *c->s.at);
    IR_EACH(n, g) {
        ir_value v = ir_id(g, n);
        c->once[v] = !node_is_pure(m, n);
        for (int32_t k = 0; k < n->in_count; k++)
            c->once[v] = c->once[v] || value_is_written_state(g, n->in[k]);
        c->s.at[c->s.len++] = v;
    }
    return make_room(&c->look, &c->s, d);
}

static rlx_status write_graph(struct ir_graph *g, const struct schedule *s, struct diag *d)
{
    struct rebuild r;
    rlx_status status = rebuild_begin(&r, g, d);

    for (size_t i = 0; status == RLX_OK && i < s->len; i++)
        status = rebuild_keep(&r, ir_node(g, s->at[i]));
    return rebuild_finish(&r, status);
}

static void count_work(const struct search *c, int64_t before, int64_t after,
                       struct recompute_report *out)
{
    uint64_t once = 0, all = 0;

    IR_EACH(n, c->s.g)
        once += ir_node_flops(c->s.g, n);
    for (size_t i = 0; i < c->s.len; i++)
        all += ir_node_flops(c->s.g, ir_node(c->s.g, c->s.at[i]));
    *out = (struct recompute_report){.nodes = c->s.len - c->s.g->node.len,
                                     .flops = all - once,
                                     .flops_once = once,
                                     .bytes_kept = (uint64_t)before,
                                     .bytes = (uint64_t)after};
}

static bool all_static(const struct ir_graph *g)
{
    IR_EACH(n, g) {
        if (!type_is_static(&n->type))
            return false;
    }
    return true;
}

static rlx_status shrink_entry(struct pass_run *p, struct ir_module *m, struct search *c)
{
    TRY(begin(c, m, p->diag));
    int64_t before = measure(&c->look, &c->s), after = before;
    TRY(shrink(c, p->options->activation_budget, &after, p->diag));
    if (p->options->recomputed)
        count_work(c, before, after, p->options->recomputed);
    p->changes = c->s.len - c->s.g->node.len;
    return p->changes ? write_graph(ir_entry(m), &c->s, p->diag) : RLX_OK;
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    struct search c = {0};
    size_t nodes = ir_entry(m)->node.len;

    if (p->options->activation_budget == 0 || !all_static(ir_entry(m)))
        return RLX_OK;
    rlx_status status = shrink_entry(p, m, &c);
    free_look(&c.look, m->mem);
    mem_free(m->mem, c.once, nodes + 1);
    vec_free(m->mem, &c.s);
    return status;
}

const struct pass pass_recompute = {
    "recompute", "compute values again rather than keep them, down to a budget of memory", run};
