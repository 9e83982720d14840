/* text_fold.c: see text_fold.h. */
#include "ir/text/text_fold.h"

struct readers {
    int32_t *count; /* by node: different nodes that read it, and outputs that it is */
    int32_t *last;  /* by node: the reader that came last */
};

static void count_readers(const struct ir_graph *g, struct readers *r)
{
    for (size_t i = 0; i < g->node.len; i++)
        r->last[i] = -1;
    IR_EACH(n, g) {
        for (int32_t i = 0; i < n->in_count; i++) {
            ir_value v = n->in[i];
            if (r->last[v] == ir_id(g, n))
                continue;
            r->last[v] = ir_id(g, n);
            r->count[v]++;
        }
    }
}

static bool *find_outputs(const struct ir_graph *g, struct arena *arena)
{
    bool *is_output = arena_array(arena, bool, g->node.len + 1);

    for (size_t i = 0; is_output && i < g->output.len; i++)
        is_output[g->output.at[i]] = true;
    return is_output;
}

/* By node: a param, a constant, or what is computed from these alone. */
static bool *find_weights(const struct ir_graph *g, struct arena *arena)
{
    bool *is_weight = arena_array(arena, bool, g->node.len + 1);
    bool any_input = false;

    IR_EACH(n, g) {
        any_input |= n->op == RLX_OP_input || n->op == RLX_OP_state;
    }
    if (!is_weight)
        return NULL;
    IR_EACH(n, g) {
        bool all = any_input && n->in_count > 0; /* else that is all there is to see */
        for (int32_t i = 0; i < n->in_count && all; i++)
            all = is_weight[n->in[i]];
        is_weight[ir_id(g, n)] = all || n->op == RLX_OP_param || n->op == RLX_OP_const;
    }
    return is_weight;
}

/* The one box that all operands with boxes are in; -1: there are none, or several. */
static int32_t only_box(const struct ir_node *n, const int32_t *box_of)
{
    int32_t only = -1;

    for (int32_t i = 0; i < n->in_count; i++) {
        int32_t box = box_of[n->in[i]];
        if (box < 0 || box == only)
            continue;
        if (only >= 0)
            return -1;
        only = box;
    }
    return only;
}

static bool reads(const struct ir_node *n, ir_value v)
{
    for (int32_t i = 0; i < n->in_count; i++)
        if (n->in[i] == v)
            return true;
    return false;
}

/* v is read by n and by one more node, which reads n: x and sigmoid(x) meet in a mul. `end` is that
 * node; it reads nothing else that has a box. */
static bool is_detour(const struct ir_graph *g, const struct readers *r, const bool *is_weight,
                      ir_value v, ir_value n, ir_value end)
{
    const struct ir_node *last = ir_node(g, end);

    if (r->count[v] != 2 || r->last[v] != end || r->count[n] != 1 || r->last[n] != end ||
        !reads(ir_node(g, n), v))
        return false;
    for (int32_t i = 0; i < last->in_count; i++)
        if (last->in[i] != v && last->in[i] != n && !is_weight[last->in[i]])
            return false;
    return true;
}

/* May the node be in the box of its operand v? Nobody outside of the box may read v. */
static bool ends_at(const struct ir_graph *g, const struct readers *r, const bool *is_weight,
                    ir_value v, ir_value id)
{
    const struct ir_node *n = ir_node(g, id);

    if (r->count[v] == 1 || is_detour(g, r, is_weight, v, id, r->last[v]))
        return true;
    for (int32_t i = 0; i < n->in_count; i++)
        if (is_detour(g, r, is_weight, v, n->in[i], id))
            return true;
    return false;
}

static bool joins(const struct ir_graph *g, const struct readers *r, const bool *is_output,
                  const bool *is_weight, const int32_t *box_of, ir_value id)
{
    const struct ir_node *n = ir_node(g, id);

    for (int32_t i = 0; i < n->in_count; i++) {
        ir_value v = n->in[i];
        if (box_of[v] >= 0 &&
            (is_output[v] || op_is(ir_node(g, v)->op, OP_LEAF) || !ends_at(g, r, is_weight, v, id)))
            return false;
    }
    return true;
}

static void choose_boxes(const struct ir_graph *g, const struct readers *r, const bool *is_output,
                         const bool *is_weight, struct fold *f)
{
    IR_EACH(n, g) {
        ir_value id = ir_id(g, n);
        f->box_of[id] = -1;
        if (is_weight[id] && r->count[id] > 0 && !is_output[id])
            continue;
        int32_t box = only_box(n, f->box_of);
        bool in = box >= 0 && joins(g, r, is_output, is_weight, f->box_of, id);
        f->box_of[id] = in ? box : (int32_t)f->boxes++;
    }
}

static void list_nodes(const struct ir_graph *g, struct fold *f)
{
    for (size_t i = 0; i < g->node.len; i++)
        if (f->box_of[i] >= 0)
            f->first[f->box_of[i] + 1]++;
    for (size_t i = 0; i < f->boxes; i++)
        f->first[i + 1] += f->first[i];
    for (size_t i = g->node.len; i-- > 0;) /* from the end: first[] moves to the front of each */
        if (f->box_of[i] >= 0)
            f->node[--f->first[f->box_of[i] + 1]] = (ir_value)i;
    for (size_t i = 0; i < f->boxes; i++)
        f->first[i] = f->first[i + 1];
    size_t shown = 0;
    for (size_t i = 0; i < g->node.len; i++)
        shown += f->box_of[i] >= 0;
    f->first[f->boxes] = (int32_t)shown;
}

/* Only a box's first node reads other boxes. */
static void list_arcs(const struct ir_graph *g, struct fold *f)
{
    for (size_t b = 0; b < f->boxes; b++) {
        const struct ir_node *n = ir_node(g, f->node[f->first[b]]);
        size_t begin = f->arcs;
        for (int32_t i = 0; i < n->in_count; i++) {
            int32_t from = f->box_of[n->in[i]];
            bool again = from < 0;
            for (size_t k = begin; k < f->arcs && k < begin + 64 && !again; k++)
                again = f->arc[k].from == from;
            if (!again)
                f->arc[f->arcs++] = (struct layout_arc){from, (int32_t)b};
        }
    }
}

rlx_status fold_graph(const struct ir_graph *g, struct arena *arena, struct fold *out,
                      struct diag *d)
{
    size_t nodes = g->node.len, operands = g->output.len; /* room for the arcs of outputs */
    struct readers r = {arena_array(arena, int32_t, nodes + 1),
                        arena_array(arena, int32_t, nodes + 1)};
    bool *is_output = find_outputs(g, arena), *is_weight = find_weights(g, arena);

    IR_EACH(n, g) {
        operands += (size_t)n->in_count;
    }
    *out = (struct fold){.box_of = arena_array(arena, int32_t, nodes + 1),
                         .node = arena_array(arena, ir_value, nodes + 1),
                         .first = arena_array(arena, int32_t, nodes + 2),
                         .arc = arena_array(arena, struct layout_arc, operands + 1)};
    if (!r.count || !r.last || !is_output || !is_weight || !out->box_of || !out->node ||
        !out->first || !out->arc)
        return diag_no_memory(d, (nodes + operands) * sizeof(struct layout_arc));
    count_readers(g, &r);
    choose_boxes(g, &r, is_output, is_weight, out);
    list_nodes(g, out);
    list_arcs(g, out);
    return RLX_OK;
}

rlx_str fold_name(const struct ir_graph *g, const struct text_names *names, ir_value v)
{
    const struct ir_node *n = ir_node(g, v);
    rlx_str leaf = ir_leaf_name(n);

    return leaf.len ? leaf : n->label.len ? n->label : names->name[v];
}

ir_value fold_source(const struct ir_graph *g, ir_value v)
{
    for (;;) {
        const struct ir_node *n = ir_node(g, v);
        if (n->label.len || ir_leaf_name(n).len || n->in_count == 0)
            return v;
        v = n->in[0];
    }
}
