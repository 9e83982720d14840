/* joint.c: which nodes share a step: see joint.h. */
#include "lower/joint.h"

#include "backend/backend.h"
#include "ir/attention.h"

struct finder {
    const struct ir_graph *g, *sized;
    struct backend *backend;
    struct joints *out;
    uint32_t *uses; /* by node: edges, and occurrences among the outputs */
    bool *carries;  /* by node: scratch of one search */
};

const char *joint_step_name(enum joint j)
{
    switch (j) {
    case JOINT_SPLIT: return "qkv_split";
    case JOINT_PACKED: return "packed_qkv_attention";
    case JOINT_TEE: return "residual_norm_tee";
    case JOINT_LAYER: return "lstm_with_cell";
    default: return NULL;
    }
}

bool joint_writes_both(enum joint j)
{
    return j == JOINT_TEE || j == JOINT_LAYER;
}

static bool is_free(const struct finder *f, ir_value v)
{
    return f->out->as[v] == JOINT_NONE;
}

static bool joins(const struct finder *f, enum joint kind, ir_value v)
{
    return f->backend->ops->joins(f->backend, kind, f->sized, v);
}

/* A reshape, or what else gives the same elements in the same order. */
static bool renames(const struct ir_graph *g, const struct ir_node *n)
{
    return n->op == RLX_OP_reshape || n->op == RLX_OP_stop_gradient ||
           (n->op == RLX_OP_cast && ir_type_of(g, n->in[0])->dtype == n->type.dtype);
}

ir_value joint_renamed(const struct ir_graph *g, ir_value v)
{
    while (renames(g, ir_node(g, v)))
        v = ir_node(g, v)->in[0];
    return v;
}

static bool is_state(const struct ir_graph *g, ir_value v)
{
    while (ir_is_view(g, ir_node(g, v)) || ir_node(g, v)->op == RLX_OP_cache_append)
        v = ir_node(g, v)->in[0];
    return ir_node(g, v)->op == RLX_OP_state;
}

/* ---- split ---- */

static bool is_row(const struct ir_type *bias, ir_dim width)
{
    for (int32_t i = 0; i + 1 < bias->rank; i++)
        if (bias->dim[i] != 1)
            return false;
    return bias->rank > 0 && bias->dim[bias->rank - 1] == width;
}

/* A product with one matrix, and with a bias at most: any columns of it are products by themselves.
 */
static bool may_split(const struct ir_graph *g, const struct ir_node *n)
{
    ir_dim width = n->type.rank ? n->type.dim[n->type.rank - 1] : 0;

    if (!dim_is_static(width) || width == 0 || width % 3 || n->in_count < 2 ||
        ir_type_of(g, n->in[1])->rank != 2)
        return false;
    if (n->op == RLX_OP_matmul)
        return !n->attr.matmul.transpose_a;
    const struct attr_fused_matmul_bias_act *a = &n->attr.fused_matmul_bias_act;
    return n->op == RLX_OP_fused_matmul_bias_act && !a->transpose_a &&
           a->activation == RLX_OP_none && is_row(ir_type_of(g, n->in[2]), width);
}

/* Which third of y the node is; -1: none. */
static int third_of(const struct finder *f, ir_value y, const struct ir_node *n)
{
    const struct ir_type *t = ir_type_of(f->g, y);
    const struct attr_narrow *a = &n->attr.narrow;
    ir_dim third = t->dim[t->rank - 1] / 3;

    if (n->op != RLX_OP_narrow || n->in[0] != y || a->axis != t->rank - 1 || a->len != third ||
        !dim_is_static(a->start) || a->start % third ||
        ir_is_view(f->sized, ir_node(f->sized, ir_id(f->g, n))))
        return -1;
    return (int)(a->start / third);
}

static void find_split(struct finder *f, ir_value y)
{
    const struct ir_node *n = ir_node(f->g, y);
    ir_value part[3] = {RLX_NO_VALUE, RLX_NO_VALUE, RLX_NO_VALUE};

    if (f->uses[y] != 3 || !is_free(f, y) || !may_split(f->g, n) || !joins(f, JOINT_SPLIT, y))
        return;
    for (size_t i = (size_t)y + 1; i < f->g->node.len; i++) {
        int k = third_of(f, y, &f->g->node.at[i]);
        if (k >= 0)
            part[k] = (ir_value)i;
    }
    if (part[0] == RLX_NO_VALUE || part[1] == RLX_NO_VALUE || part[2] == RLX_NO_VALUE)
        return;
    f->out->as[y] = JOINT_SPLIT;
    for (int k = 0; k < 3; k++)
        f->out->as[part[k]] = JOINT_THIRD;
}

/* ---- packed ---- */

struct columns joint_columns(const struct ir_graph *g, const struct ir_node *narrow)
{
    const struct ir_type *from = ir_type_of(g, narrow->in[0]);
    int64_t axis = narrow->attr.narrow.axis;
    struct columns c = {.rows = 1};
    uint64_t inner = 1;

    for (int32_t i = 0; i < from->rank; i++) {
        if (i < axis)
            c.rows *= (uint64_t)from->dim[i];
        else if (i > axis)
            inner *= (uint64_t)from->dim[i];
    }
    c.first = (uint64_t)narrow->attr.narrow.start * inner;
    c.width = (uint64_t)narrow->attr.narrow.len * inner;
    c.pitch = (uint64_t)from->dim[axis] * inner;
    return c;
}

uint64_t joint_extent(const struct columns *c)
{
    return c->rows && c->width ? (c->rows - 1) * c->pitch + c->width : 0;
}

/* Is everything from the narrow's axis on known, and the same for all sizes? */
static bool has_fixed_rows(const struct ir_graph *g, const struct ir_node *narrow)
{
    const struct ir_type *from = ir_type_of(g, narrow->in[0]);

    for (int32_t i = (int32_t)narrow->attr.narrow.axis; i < from->rank; i++)
        if (!dim_is_static(from->dim[i]))
            return false;
    return dim_is_static(narrow->attr.narrow.start) && dim_is_static(narrow->attr.narrow.len);
}

/* Do `count` steps of so many elements go from row to row of the narrow, or stay within one? count
 * 0: it is not known. */
static bool keeps_to_rows(uint64_t step, uint64_t count, uint64_t width)
{
    return step % width == 0 || (count && step * count <= width && width % (step * count) == 0);
}

/* Heads, lines and batches of an operand of attention must have steps in the narrow's rows too. */
static bool has_steps(const struct ir_graph *g, const struct ir_node *attention, int32_t operand,
                      const struct ir_node *narrow)
{
    const struct attr_attention *a = &attention->attr.attention;
    const struct ir_type *t = ir_type_of(g, attention->in[operand]);
    bool apart = a->layout == RLX_ATTENTION_LAYOUT_bhsd || a->layout == RLX_ATTENTION_LAYOUT_folded;
    ir_dim lines = t->dim[a->layout == RLX_ATTENTION_LAYOUT_bhsd ? 2 : 1];
    uint64_t known = dim_is_static(lines) ? (uint64_t)lines : 0, width = 1;
    uint64_t heads = (uint64_t)(operand ? a->num_kv_heads : a->num_heads);
    uint64_t dim = (uint64_t)(operand == 2 ? attention_value_dim(a) : a->head_dim);
    uint64_t line = dim * (apart ? 1 : heads), head = dim * (!apart ? 1 : known ? known : 1);

    for (int32_t i = (int32_t)narrow->attr.narrow.axis; i < narrow->type.rank; i++)
        width *= (uint64_t)narrow->type.dim[i];
    return width && keeps_to_rows(line, known, width) &&
           keeps_to_rows(head, apart && !known ? 0 : heads, width) &&
           keeps_to_rows(dim * heads * (known ? known : 1), 0, width);
}

/* Is the value read by this attention alone, under whatever name, and by nobody afterwards? */
static bool only_for(struct finder *f, ir_value v, ir_value attention)
{
    const struct ir_graph *g = f->g;

    for (size_t i = 0; i < g->node.len; i++)
        f->carries[i] = (ir_value)i == v;
    for (size_t i = (size_t)v + 1; i < g->node.len; i++) {
        const struct ir_node *n = &g->node.at[i];
        for (int32_t k = 0; k < n->in_count; k++) {
            if (!f->carries[n->in[k]])
                continue;
            if (renames(g, n))
                f->carries[i] = true;
            else if ((ir_value)i != attention || k > 2)
                return false;
        }
    }
    for (size_t i = 0; i < g->output.len; i++)
        if (f->carries[g->output.at[i]])
            return false;
    return true;
}

static void find_packed(struct finder *f, ir_value v)
{
    const struct ir_graph *g = f->g;
    const struct ir_node *n = ir_node(g, v), *first = NULL;
    ir_value part[3];

    for (int32_t i = 0; i < 3; i++) {
        part[i] = joint_renamed(g, n->in[i]);
        const struct ir_node *p = ir_node(g, part[i]);
        if (p->op != RLX_OP_narrow || !is_free(f, part[i]) ||
            ir_is_view(f->sized, ir_node(f->sized, part[i])) || !has_fixed_rows(g, p) ||
            !has_steps(g, n, i, p) || is_state(g, p->in[0]))
            return;
        first = first ? first : p;
        if (p->in[0] != first->in[0] || p->attr.narrow.axis != first->attr.narrow.axis)
            return;
    }
    for (int32_t i = 0; i < 3; i++)
        if (!only_for(f, part[i], v))
            return;
    if (!joins(f, JOINT_PACKED, v))
        return;
    f->out->as[v] = JOINT_PACKED;
    for (int32_t i = 0; i < 3; i++)
        f->out->as[part[i]] = JOINT_COLUMNS;
}

/* ---- tee ---- */

/* Is the value there before the step of `by`, and the same then as later? */
static bool is_there(const struct ir_graph *g, ir_value v, ir_value by)
{
    if (is_state(g, v))
        return false;
    while (v >= by && ir_is_view(g, ir_node(g, v)))
        v = ir_node(g, v)->in[0];
    return v < by || op_is(ir_node(g, v)->op, OP_LEAF);
}

static void find_tee(struct finder *f, ir_value norm)
{
    const struct ir_node *n = ir_node(f->g, norm), *sum = ir_node(f->g, n->in[0]);
    ir_value s = n->in[0];

    if (sum->op != RLX_OP_add || f->uses[s] < 2 || !is_free(f, s) || !is_free(f, norm) ||
        !type_same(ir_type_of(f->g, sum->in[0]), &sum->type) ||
        !type_same(ir_type_of(f->g, sum->in[1]), &sum->type))
        return;
    for (int32_t i = 1; i < n->in_count; i++)
        if (!is_there(f->g, n->in[i], s))
            return;
    if (!joins(f, JOINT_TEE, norm))
        return;
    f->out->as[norm] = JOINT_TEE;
    f->out->as[s] = JOINT_SUM;
    f->out->with[norm] = s;
    f->out->with[s] = norm;
}

ir_value *joint_tee_operands(const struct ir_graph *g, const struct ir_node *norm,
                             struct arena *arena)
{
    const struct ir_node *sum = ir_node(g, norm->in[0]);
    ir_value *in = arena_array(arena, ir_value, (size_t)norm->in_count + 1);

    for (int32_t i = 0; in && i <= norm->in_count; i++)
        in[i] = i < 2 ? sum->in[i] : norm->in[i - 1];
    return in;
}

/* ---- cell ---- */

/* Does the step of one have all that the other needs, wherever either stands? */
static bool is_same_layer(const struct finder *f, const struct ir_node *cell,
                          const struct ir_node *n)
{
    union ir_attr attr = n->attr;

    attr.recurrent.result = cell->attr.recurrent.result;
    if (n->op != cell->op || n->in_count != cell->in_count ||
        !attr_same(cell->op, &cell->attr, &attr))
        return false;
    for (int32_t i = 0; i < n->in_count; i++)
        if (n->in[i] != cell->in[i] || is_state(f->g, n->in[i]))
            return false;
    return true;
}

static void find_cell(struct finder *f, ir_value cell)
{
    const struct ir_node *n = ir_node(f->g, cell);
    uint64_t bytes;

    if (n->attr.recurrent.result != RLX_RNN_RESULT_c || !is_free(f, cell) ||
        !type_bytes(ir_type_of(f->sized, cell), &bytes) || bytes == 0)
        return;
    for (size_t i = 0; i < f->g->node.len; i++) {
        const struct ir_node *layer = &f->g->node.at[i];
        ir_value v = (ir_value)i;
        if (v == cell || !is_free(f, v) || !is_same_layer(f, n, layer) ||
            layer->attr.recurrent.result == RLX_RNN_RESULT_c ||
            !type_bytes(ir_type_of(f->sized, v), &bytes) || bytes == 0 || !joins(f, JOINT_LAYER, v))
            continue;
        f->out->as[v] = JOINT_LAYER;
        f->out->as[cell] = JOINT_CELL;
        f->out->with[v] = cell;
        f->out->with[cell] = v;
        return;
    }
}

/* ---- all of it ---- */

static void count_uses(struct finder *f)
{
    IR_EACH(n, f->g)
        for (int32_t k = 0; k < n->in_count; k++)
            f->uses[n->in[k]]++;
    for (size_t i = 0; i < f->g->output.len; i++)
        f->uses[f->g->output.at[i]]++;
}

/* Splits first: what is dense is read faster. */
static void search(struct finder *f, const struct joint_options *o)
{
    const struct ir_graph *g = f->g;
    bool no_tee = o->no_residual_fusion || o->no_norm_tee;

    if (o->no_optimize || o->no_fusion)
        return;
    for (size_t i = 0; i < g->node.len && !o->no_qkv_split; i++)
        find_split(f, (ir_value)i);
    for (size_t i = 0; i < g->node.len; i++) {
        rlx_op op = g->node.at[i].op;
        if (op == RLX_OP_attention && !o->no_packed_qkv)
            find_packed(f, (ir_value)i);
        if ((op == RLX_OP_layer_norm || op == RLX_OP_rms_norm) && !no_tee)
            find_tee(f, (ir_value)i);
        if (op == RLX_OP_lstm)
            find_cell(f, (ir_value)i);
    }
}

rlx_status joint_find(const struct ir_graph *g, const struct ir_graph *sized, struct backend *b,
                      const struct joint_options *o, struct arena *arena, struct joints *out,
                      struct diag *d)
{
    size_t count = g->node.len;
    struct finder f = {.g = g,
                       .sized = sized,
                       .backend = b,
                       .out = out,
                       .uses = arena_array(arena, uint32_t, count),
                       .carries = arena_array(arena, bool, count)};

    out->as = arena_array(arena, uint8_t, count);
    out->with = arena_array(arena, ir_value, count);
    if (!f.uses || !f.carries || !out->as || !out->with)
        return diag_no_memory(d, count * sizeof *out->with);
    for (size_t i = 0; i < count; i++)
        out->with[i] = RLX_NO_VALUE;
    if (!b->ops->joins)
        return RLX_OK;
    count_uses(&f);
    search(&f, o);
    return RLX_OK;
}
