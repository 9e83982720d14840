/* select.c: nodes become steps. What is a leaf or a view needs none; the backend says what the
 * others become. Nothing has an address yet: the planner needs the steps first. */
#include <string.h>

#include "backend/backend.h"
#include "lower/lower.h"

struct shared_table {
    uint64_t key;
    int32_t value;
};

struct step_builder {
    const rlx_allocator *mem;
    VEC(struct value) value;
    VEC(struct operand) operand;
    VEC(struct step) step;
    VEC(struct packing) packing;
    VEC(struct shared_table) table;
    int32_t *last_read; /* by node: the last one that reads its bytes, through views too */
    struct joints joints;
};

static uint64_t inner_bytes(const struct ir_type *t, int64_t axis)
{
    uint64_t n = rlx_dtype_size(t->dtype);

    for (int32_t i = (int32_t)axis + 1; i < t->rank; i++)
        n *= (uint64_t)t->dim[i];
    return n;
}

/* Bytes from the start of what a narrow is taken from to its first element. */
static uint64_t narrow_offset(const struct ir_graph *g, const struct ir_node *n)
{
    return (uint64_t)n->attr.narrow.start *
           inner_bytes(ir_type_of(g, n->in[0]), n->attr.narrow.axis);
}

bool lower_is_view(const struct ir_graph *g, const struct ir_node *n, uint64_t *offset)
{
    *offset = 0;
    if (!ir_is_view(g, n))
        return false;
    if (n->op == RLX_OP_narrow)
        *offset = narrow_offset(g, n);
    return true;
}

/* How far into its operand's bytes the view i lies; its own bytes, where rows lie apart. */
static uint64_t view_offset(const struct ir_graph *g, size_t i, struct value *v)
{
    const struct ir_node *n = &g->node.at[i];
    uint64_t offset = 0;

    if (v->flags & VALUE_THIRD)
        return (uint64_t)(n->attr.narrow.start / n->attr.narrow.len) * v->bytes;
    if (v->flags & VALUE_COLUMNS) {
        struct columns c = joint_columns(g, n);
        v->bytes = joint_extent(&c) * rlx_dtype_size(n->type.dtype);
        return v->bytes ? narrow_offset(g, n) : 0;
    }
    if (n->op != RLX_OP_cache_append)
        lower_is_view(g, n, &offset);
    return offset;
}

/* ---- views of states ---- */

#define READ_AFTER_THE_RUN INT32_MAX

/* Readers have larger ids than what they read, so from the end each node is complete when its turn
 * comes. */
static void find_last_reads(const struct ir_graph *g, int32_t *last)
{
    for (size_t i = 0; i < g->node.len; i++)
        last[i] = -1;
    for (size_t i = 0; i < g->output.len; i++)
        last[g->output.at[i]] = READ_AFTER_THE_RUN;
    for (size_t i = g->node.len; i-- > 0;) {
        const struct ir_node *n = &g->node.at[i];
        uint64_t offset;
        int32_t reads = lower_is_view(g, n, &offset) ? last[i] : (int32_t)i;
        for (int32_t k = 0; k < n->in_count; k++)
            if (last[n->in[k]] < reads)
                last[n->in[k]] = reads;
    }
}

/* Is the state written between the view and the last look at it? The view holds the old content
 * (ops-core.md 4), so it must be a copy then. */
static bool is_overwritten(const struct ir_graph *g, ir_value state, size_t view,
                           const int32_t *last_read)
{
    for (size_t i = view + 1; i < g->node.len && (int64_t)i <= last_read[view]; i++)
        if (op_is(g->node.at[i].op, OP_WRITES) && ir_written_state(g, &g->node.at[i]) == state)
            return true;
    return false;
}

/* ---- steps ---- */

static struct step *last_step(struct select_call *c)
{
    return &c->steps->step.at[c->steps->step.len - 1];
}

static rlx_status begin_step(struct select_call *c, const char *name, void *work)
{
    struct step_builder *s = c->steps;

    if (!vec_room(s->mem, &s->step))
        return diag_no_memory(c->diag, sizeof(struct step));
    s->step.at[s->step.len++] =
        (struct step){.name = name, .node = c->id, .first = (uint32_t)s->operand.len, .work = work};
    return RLX_OK;
}

/* A value that belongs to no node. */
static rlx_status add_value(struct select_call *c, enum region region, uint32_t flags,
                            uint64_t bytes, int32_t *out)
{
    struct step_builder *s = c->steps;

    if (!vec_room(s->mem, &s->value))
        return diag_no_memory(c->diag, sizeof(struct value));
    *out = (int32_t)s->value.len;
    s->value.at[s->value.len++] = (struct value){
        .node = -1, .root = *out, .region = region, .flags = flags, .bytes = bytes, .shares = -1};
    return RLX_OK;
}

static rlx_status add_operand(struct select_call *c, int32_t value, enum step_role role,
                              bool in_place)
{
    struct step_builder *s = c->steps;

    if (!vec_room(s->mem, &s->operand))
        return diag_no_memory(c->diag, sizeof(struct operand));
    s->operand.at[s->operand.len++] =
        (struct operand){.value = value, .role = (uint8_t)role, .in_place = in_place};
    last_step(c)->count++;
    return RLX_OK;
}

rlx_status select_scratch(struct select_call *c, uint64_t bytes)
{
    int32_t id;

    TRY(add_value(c, REGION_ACTS, VALUE_SCRATCH, bytes, &id));
    return add_operand(c, id, ROLE_WRITE, false);
}

rlx_status select_table(struct select_call *c, uint64_t bytes)
{
    int32_t id;

    TRY(add_value(c, REGION_CONSTS, VALUE_PINNED, bytes, &id));
    return add_operand(c, id, ROLE_READ, false);
}

rlx_status select_shared_table(struct select_call *c, uint64_t key, uint64_t bytes, bool *first)
{
    struct step_builder *s = c->steps;

    *first = false;
    for (size_t i = 0; i < s->table.len; i++)
        if (s->table.at[i].key == key)
            return add_operand(c, s->table.at[i].value, ROLE_READ, false);
    *first = true;
    if (!vec_room(s->mem, &s->table))
        return diag_no_memory(c->diag, sizeof *s->table.at);
    s->table.at[s->table.len++] = (struct shared_table){key, (int32_t)s->value.len};
    return select_table(c, bytes);
}

rlx_status select_packed(struct select_call *c, const struct packing *what, uint64_t bytes)
{
    struct step_builder *s = c->steps;
    int32_t id;

    if (!vec_room(s->mem, &s->packing))
        return diag_no_memory(c->diag, sizeof(struct packing));
    TRY(add_value(c, REGION_OUTSIDE, VALUE_PINNED | VALUE_FIXED, bytes, &id));
    s->packing.at[s->packing.len] = *what;
    s->packing.at[s->packing.len].value = id;
    s->packing.at[s->packing.len++].step = (uint32_t)s->step.len - 1;
    return add_operand(c, id, ROLE_READ, false);
}

/* ---- a node as one step ---- */

static bool same_shape(const struct ir_graph *g, ir_value x, ir_value y)
{
    const struct ir_type *a = ir_type_of(g, x), *b = ir_type_of(g, y);

    for (int32_t k = 0; k < a->rank && a->rank == b->rank; k++)
        if (a->dim[k] != b->dim[k])
            return false;
    return a->rank == b->rank;
}

/* Overwriting an operand is safe only if it has the result's exact shape, and has it for all sizes:
 * a broadcast one is read more than once, and one of another width at other bytes. */
static bool may_overwrite(const struct select_call *c, int32_t i, uint32_t in_place)
{
    ir_value from = c->node->in[i];

    return i < 32 && (in_place >> i & 1) &&
           rlx_dtype_size(ir_type_of(c->graph, from)->dtype) ==
               rlx_dtype_size(c->node->type.dtype) &&
           same_shape(c->graph, from, c->id) &&
           (!c->symbolic || same_shape(c->symbolic, from, c->id));
}

rlx_status select_node(struct select_call *c, void *work, uint32_t in_place)
{
    const struct ir_node *n = c->node;
    ir_value state = op_is(n->op, OP_WRITES) ? ir_written_state(c->graph, n) : RLX_NO_VALUE;

    TRY(begin_step(c, op_info(n->op)->name, work));
    for (int32_t i = 0; i < n->in_count; i++) {
        if (n->in[i] == state)
            TRY(add_operand(c, n->in[i], ROLE_UPDATE, false));
        else
            TRY(add_operand(c, n->in[i], ROLE_READ, may_overwrite(c, i, in_place)));
    }
    return n->op == RLX_OP_cache_append ? RLX_OK : add_operand(c, c->id, ROLE_WRITE, false);
}

rlx_status select_joint(struct select_call *c, const char *name, const ir_value *read,
                        int32_t count, void *work)
{
    TRY(begin_step(c, name, work));
    for (int32_t i = 0; i < count; i++)
        TRY(add_operand(c, read[i], ROLE_READ, false));
    TRY(add_operand(c, c->id, ROLE_WRITE, false));
    return joint_writes_both((enum joint)c->joints->as[c->id])
               ? add_operand(c, c->joints->with[c->id], ROLE_WRITE, false)
               : RLX_OK;
}

/* ---- values ---- */

bool select_type_at(const struct select_call *c, ir_value v, size_t i, struct ir_type *out)
{
    const struct size_probes *p = c->probes;
    const struct dim_table *dims = c->symbolic->mod->dims;
    int64_t count;

    *out = *ir_type_of(c->symbolic, v);
    for (int32_t k = 0; k < out->rank; k++)
        if (!dim_is_static(out->dim[k]))
            out->dim[k] =
                dim_eval(dims, out->dim[k], p->size + i * p->symbol_count, p->symbol_count, NULL);
    return type_count(out, &count);
}

static void place_leaf(struct value *v, rlx_op op, uint64_t leaf_offset)
{
    switch (op) {
    case RLX_OP_input: v->flags = VALUE_INPUT; break;
    case RLX_OP_param:
        v->region = REGION_WEIGHTS;
        v->flags = VALUE_PINNED | VALUE_FIXED;
        v->offset = leaf_offset;
        break;
    case RLX_OP_state:
        v->region = REGION_STATE;
        v->flags = VALUE_PINNED | VALUE_FIXED;
        v->offset = leaf_offset;
        break;
    default: /* const */
        v->region = REGION_CONSTS;
        v->flags = VALUE_PINNED;
        break;
    }
}

/* Where the value of node i lies if it is not a leaf: in its operand's place, or in its own. */
static void place_result(const struct ir_graph *g, size_t i, const struct step_builder *s,
                         struct value *v)
{
    const struct ir_node *n = &g->node.at[i];
    enum joint joint = s->joints.as[i];
    uint64_t offset;

    v->flags |= joint == JOINT_THIRD ? VALUE_THIRD : joint == JOINT_COLUMNS ? VALUE_COLUMNS : 0;
    if (!v->flags && n->op != RLX_OP_cache_append && !lower_is_view(g, n, &offset))
        return;
    const struct value *from = &s->value.at[n->in[0]];
    if (n->op != RLX_OP_cache_append && from->region == REGION_STATE &&
        is_overwritten(g, from->root, i, s->last_read))
        return;
    v->root = from->root;
    v->region = from->region;
    v->view_offset = from->view_offset + view_offset(g, i, v);
}

static rlx_status make_values(const struct select_graph *from, struct step_builder *s,
                              struct diag *d)
{
    const struct ir_graph *g = from->graph;

    if (!vec_room_for(s->mem, &s->value, g->node.len))
        return diag_no_memory(d, g->node.len * sizeof(struct value));
    for (size_t i = 0; i < g->node.len; i++) {
        const struct ir_node *n = &g->node.at[i];
        struct value v = {
            .node = (int32_t)i, .root = (int32_t)i, .region = REGION_ACTS, .shares = -1};

        if (!type_bytes(&n->type, &v.bytes))
            return diag_fail(d, RLX_ERROR_UNBOUND_DIM, "%s: node %zu still has a symbolic size",
                             op_info(n->op)->name, i);
        if (op_is(n->op, OP_LEAF))
            place_leaf(&v, n->op, from->leaf_offset ? from->leaf_offset[i] : 0);
        else
            place_result(g, i, s, &v);
        if (op_is(n->op, OP_LEAF) && from->outside && from->outside[i]) {
            v.region = REGION_OUTSIDE;
            v.flags = VALUE_PINNED | VALUE_FIXED;
            v.offset = 0;
        }
        s->value.at[s->value.len++] = v;
    }
    for (size_t i = 0; i < g->output.len; i++) {
        s->value.at[g->output.at[i]].flags |= VALUE_OUTPUT;
        s->value.at[s->value.at[g->output.at[i]].root].flags |= VALUE_OUTPUT;
    }
    return RLX_OK;
}

/* The node whose step stands at that of v; RLX_NO_VALUE: another's is, which stood before it. The
 * norm of a tee stands where its sum does, a layer where it or its cell does, whichever is first.
 */
static ir_value step_at(const struct joints *j, ir_value v)
{
    switch ((enum joint)j->as[v]) {
    case JOINT_TEE: return RLX_NO_VALUE;
    case JOINT_SUM: return j->with[v];
    case JOINT_LAYER: return j->with[v] < v ? RLX_NO_VALUE : v;
    case JOINT_CELL: return j->with[v] < v ? RLX_NO_VALUE : j->with[v];
    default: return v;
    }
}

static rlx_status select_nodes(const struct ir_graph *g, struct backend *b, struct select_call *c)
{
    const struct joints *j = c->joints;

    for (size_t i = 0; i < g->node.len; i++) {
        const struct value *v = &c->steps->value.at[i];
        c->id = step_at(j, (ir_value)i);
        if (c->id == RLX_NO_VALUE)
            continue;
        c->node = ir_node(g, c->id);
        diag_at(c->diag, op_info(c->node->op)->name, c->id, c->node->label);
        bool writes = op_is(c->node->op, OP_WRITES) && ir_written_state(g, c->node) != RLX_NO_VALUE;
        /* A view and an empty result need no work, unless the op has an effect besides. */
        if (op_is(c->node->op, OP_LEAF) || (!writes && (v->root != (int32_t)i || v->bytes == 0)))
            continue;
        TRY(b->ops->select(b, c));
    }
    return RLX_OK;
}

#define COPY_OUT(field)                                                               \
    do {                                                                              \
        out->field = arena_alloc_array(arena, s->field.len, sizeof *s->field.at, 16); \
        if (!out->field)                                                              \
            return diag_no_memory(d, s->field.len * sizeof *s->field.at);             \
        if (s->field.len)                                                             \
            memcpy(out->field, s->field.at, s->field.len * sizeof *s->field.at);      \
        out->field##_count = s->field.len;                                            \
    } while (0)

static rlx_status finish(const struct step_builder *s, struct arena *arena, struct steps *out,
                         struct diag *d)
{
    COPY_OUT(value);
    COPY_OUT(operand);
    COPY_OUT(step);
    COPY_OUT(packing);
    for (size_t i = 0; i < out->value_count; i++)
        out->value[i].room = out->value[i].bytes;
    return RLX_OK;
}

rlx_status lower_select(const struct select_graph *from, struct backend *b,
                        const struct select_options *options, struct arena *arena,
                        struct steps **out, struct diag *d)
{
    const struct ir_graph *g = from->graph;
    struct step_builder s = {.mem = g->mod->mem};
    struct select_call c = {.graph = g,
                            .symbolic = from->symbolic,
                            .probes = from->probes,
                            .joints = &s.joints,
                            .options = options,
                            .sub = from->sub,
                            .arena = arena,
                            .diag = d,
                            .steps = &s};
    struct steps *steps = arena_new(arena, struct steps);
    rlx_status status = RLX_OK;

    if (!c.sub)
        c.sub = arena_array(arena, void *, g->mod->graph.len);
    s.last_read = mem_alloc(s.mem, g->node.len * sizeof *s.last_read);
    if (!steps || !c.sub || (g->node.len && !s.last_read))
        status = diag_no_memory(d, g->node.len * sizeof *s.last_read);
    if (status == RLX_OK)
        status = joint_find(from->symbolic ? from->symbolic : g, g, b, &options->joint, arena,
                            &s.joints, d);
    if (status == RLX_OK) {
        find_last_reads(g, s.last_read);
        status = make_values(from, &s, d);
    }
    if (status == RLX_OK)
        status = select_nodes(g, b, &c);
    if (status == RLX_OK)
        status = finish(&s, arena, steps, d);
    if (status == RLX_OK)
        lower_into_state(g, from->symbolic, steps);
    mem_free(s.mem, s.last_read, g->node.len * sizeof *s.last_read);
    vec_free(s.mem, &s.value);
    vec_free(s.mem, &s.operand);
    vec_free(s.mem, &s.step);
    vec_free(s.mem, &s.packing);
    vec_free(s.mem, &s.table);
    if (status == RLX_OK)
        *out = steps;
    diag_at(d, NULL, -1, (rlx_str){NULL, 0});
    return status;
}

rlx_status lower_resize(const struct ir_graph *g, struct steps *s, struct diag *d)
{
    for (size_t i = 0; i < g->node.len; i++) {
        struct value *v = &s->value[i];
        const struct value *root = &s->value[v->root];
        uint64_t end;

        if (!type_bytes(&g->node.at[i].type, &v->bytes))
            return diag_fail(d, RLX_ERROR_LIMIT, "node %zu is too large for these sizes", i);
        if (v->root != (int32_t)i) { /* as far into its operand as the sizes of now say */
            if (!(v->flags & VALUE_STORED))
                v->view_offset = s->value[g->node.at[i].in[0]].view_offset + view_offset(g, i, v);
            v->offset = root->offset + v->view_offset;
        }
        if (__builtin_add_overflow(v->view_offset, v->bytes, &end) || end > root->room)
            return diag_fail(d, RLX_ERROR_LIMIT,
                             "node %zu needs %llu bytes for these sizes, %llu were planned", i,
                             (unsigned long long)end, (unsigned long long)root->room);
    }
    return RLX_OK;
}
