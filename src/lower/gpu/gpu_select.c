/* gpu_select.c: a node becomes one step, and its launches are found for the sizes of now. */
#include <string.h>

#include "base/map.h"
#include "base/str.h"
#include "lower/gpu/gpu_joints.h"
#include "lower/gpu/gpu_sub_program.h"

#define MOST_OPERANDS GPU_OPERANDS
#define MOST_PREPARED 64 /* kernels of one step */

/* ---- one lowering ---- */

/* Types and places as the lowering of a step that several nodes share wants them. */
static gpu_lower_fn join(struct gpu_call *c, const struct gpu_work *w, struct gpu_arg *arg,
                         struct ir_type *in, struct ir_type *out, struct columns *columns)
{
    uint32_t in_place;

    if (w->joint == JOINT_TEE) {
        c->arg_also = (struct gpu_arg){.operand = w->in_count + 1, .bytes = c->arg_out.bytes};
        return gpu_lower_norm_tee;
    }
    if (w->joint == JOINT_LAYER)
        c->arg_also = (struct gpu_arg){.operand = w->in_count + 1, .bytes = gpu_cell_bytes(c)};
    if (w->joint == JOINT_SPLIT)
        c->columns_of = gpu_split_types(c->node, in, w->in_count, out);
    for (int32_t i = 0; w->joint == JOINT_PACKED && i < 3; i++) {
        columns[i] = joint_columns(w->graph, ir_node(w->graph, w->read[i]));
        columns[i].rows = gpu_count(&in[i]) / columns[i].width; /* at these sizes */
        arg[i].bytes = joint_extent(&columns[i]) * rlx_dtype_size(in[i].dtype);
        c->columns = columns;
    }
    return gpu_lowering(op_info(c->op)->family, &in_place);
}

/* An op whose result is empty has nothing to do, unless it is there for its state. */
static bool writes_nothing(const struct gpu_call *c)
{
    return gpu_count(c->out) == 0 && !op_is(c->op, OP_WRITES) && c->work->joint != JOINT_LAYER;
}

/* in_place of the table's row is not asked here: the step says it. */
static rlx_status lower_node(struct gpu_target *t, struct gpu_work *w, struct ir_type *in,
                             const struct ir_type *result, const struct ir_type *symbolic,
                             int32_t step, uint64_t *scratch, struct diag *d)
{
    const struct ir_node *n = ir_node(w->graph, w->node);
    struct gpu_arg arg[MOST_OPERANDS];
    struct columns columns[3];
    struct ir_type out = *result;
    struct gpu_call c = {.node = n,
                         .op = n->op,
                         .attr = &n->attr,
                         .graph = w->graph,
                         .in_count = w->in_count,
                         .in = in,
                         .out = &out,
                         .symbolic = symbolic,
                         .arg_in = arg,
                         .features = &t->features,
                         .max_binding = t->max_binding,
                         .max_bindings = t->max_bindings,
                         .check_indices = w->check_indices,
                         .step = step,
                         .half = w->half,
                         .device = t,
                         .work = w,
                         .diag = d};

    for (int32_t i = 0; i < w->in_count; i++) {
        arg[i] = (struct gpu_arg){.operand = i};
        type_bytes(&in[i], &arg[i].bytes);
        if (w->half == i + 1)
            arg[i] = (struct gpu_arg){.operand = w->half_place, .bytes = arg[i].bytes / 2};
    }
    c.arg_out.operand = n->op == RLX_OP_cache_append ? 0 : w->in_count;
    type_bytes(&out, &c.arg_out.bytes);
    w->launches = 0;
    w->words = 0;
    w->loops = 0;
    *scratch = 0;
    if (writes_nothing(&c))
        return RLX_OK;
    gpu_lower_fn lower = join(&c, w, arg, in, &out, columns);
    if (joint_writes_both(w->joint))
        lower(&c);
    else
        gpu_lower_in_parts(&c, lower);
    *scratch = c.scratch;
    return c.status;
}

/* ---- select ---- */

static rlx_status emit_step(struct select_call *c, struct gpu_work *w, uint32_t in_place)
{
    const char *name = joint_step_name(w->joint);

    if (name)
        TRY(select_joint(c, name, w->read, w->in_count, w));
    else
        TRY(select_node(c, w, in_place));
    if (w->scratch)
        TRY(select_scratch(c, w->scratch));
    if (w->half)
        TRY(gpu_select_half(c, w));
    if (!w->control || !w->control->table)
        return RLX_OK;
    return select_shared_table(c, w->control->table_key, w->control->table,
                               &w->control->table_is_own);
}

/* The types of the step's operands and result at one probe; false: there are none. */
static bool types_at(const struct select_call *c, const struct gpu_work *w, size_t probe,
                     struct ir_type *in, struct ir_type *out)
{
    for (int32_t i = 0; i < w->in_count; i++)
        if (!select_type_at(c, w->in[i], probe, &in[i]))
            return false;
    return select_type_at(c, c->id, probe, out);
}

static void types_now(const struct gpu_work *w, struct ir_type *in)
{
    for (int32_t i = 0; i < w->in_count; i++)
        in[i] = *ir_type_of(w->graph, w->in[i]);
}

/* Its kernels are made, and its scratch is known, for all sizes that there may be. */
static rlx_status try_sizes(struct gpu_target *t, struct select_call *c, struct gpu_work *w)
{
    const struct ir_type *symbolic = c->symbolic ? ir_type_of(c->symbolic, c->id) : NULL;
    struct ir_type in[MOST_OPERANDS], out;
    uint64_t need;

    types_now(w, in);
    TRY(lower_node(t, w, in, &c->node->type, symbolic, 0, &w->scratch, c->diag));
    w->table_operand = w->scratch_operand + (w->scratch > 0);
    if (w->control) /* its inner steps have tried their sizes themselves */
        return RLX_OK;
    for (size_t i = 0; c->symbolic && c->probes && i < c->probes->count; i++) {
        if (!types_at(c, w, i, in, &out))
            continue;
        TRY(lower_node(t, w, in, &out, symbolic, 0, &need, c->diag));
        w->scratch = need > w->scratch ? need : w->scratch;
    }
    w->half_place = w->scratch_operand + (w->scratch > 0);
    return RLX_OK;
}

/* ---- where operands begin ---- */

/* What the offset of a narrow in its operand is a multiple of, in bytes, whatever the sizes; 0: it
 * is 0. */
static uint64_t offset_unit(const struct select_call *c, ir_value v)
{
    const struct ir_graph *g = c->symbolic ? c->symbolic : c->graph;
    const struct attr_narrow *a = &ir_node(g, v)->attr.narrow;
    const struct ir_type *from = ir_type_of(g, ir_node(g, v)->in[0]);
    uint64_t unit = rlx_dtype_size(from->dtype);

    if (a->start == 0)
        return 0;
    if (c->joints->as[v] == JOINT_THIRD)
        return unit * (uint64_t)a->len;
    for (int32_t i = (int32_t)a->axis + 1; i < from->rank; i++)
        unit *= dim_is_static(from->dim[i]) ? (uint64_t)from->dim[i] : 1;
    return dim_is_static(a->start) ? unit * (uint64_t)a->start : unit;
}

/* For gpu_work.begins. Slots are aligned. */
static uint8_t begins_at(const struct select_call *c, ir_value v)
{
    uint64_t offset, units = 0;

    for (;; v = ir_node(c->graph, v)->in[0]) {
        const struct ir_node *n = ir_node(c->graph, v);
        bool joint = c->joints->as[v] == JOINT_THIRD || c->joints->as[v] == JOINT_COLUMNS;
        if (!joint && !lower_is_view(c->graph, n, &offset))
            break;
        if (n->op == RLX_OP_narrow)
            units |= offset_unit(c, v); /* the lowest bit of all is what they have in common */
    }
    return units ? (uint8_t)(1 + __builtin_ctzll(units)) : 0;
}

/* ---- a work ---- */

/* A packed attention reads q, k and v where they lie before they are renamed. */
static ir_value *packed_operands(const struct select_call *c)
{
    const struct ir_node *n = c->node;
    ir_value *read = arena_array(c->arena, ir_value, (size_t)n->in_count);

    for (int32_t i = 0; read && i < n->in_count; i++)
        read[i] = i < 3 ? joint_renamed(c->graph, n->in[i]) : n->in[i];
    return read;
}

static rlx_status new_work(struct select_call *c, struct gpu_work **out)
{
    const struct ir_node *n = c->node;
    struct gpu_work *w = *out = arena_new(c->arena, struct gpu_work);

    if (!w)
        return diag_no_memory(c->diag, sizeof *w);
    w->graph = c->graph;
    w->node = c->id;
    w->joint = c->joints->as[c->id];
    w->in_count = n->in_count + (w->joint == JOINT_TEE);
    w->in = w->joint == JOINT_TEE ? joint_tee_operands(c->graph, n, c->arena) : n->in;
    w->read = w->joint == JOINT_PACKED ? packed_operands(c) : w->in;
    if (!w->read)
        return diag_no_memory(c->diag, (size_t)n->in_count * sizeof *w->read);
    w->arena = c->arena;
    w->check_indices = c->options->check_indices;
    for (int32_t i = 0; i < w->in_count && i < GPU_PLACES; i++)
        w->begins[i] = begins_at(c, w->read[i]);
    w->scratch_operand = w->in_count + (n->op != RLX_OP_cache_append) + joint_writes_both(w->joint);
    w->half = gpu_half_operand(c);
    w->table_operand = w->half_place = w->scratch_operand + 1; /* until scratch is known */
    return RLX_OK;
}

rlx_status gpu_select(struct gpu_target *t, struct select_call *c)
{
    const struct ir_node *n = c->node;
    uint32_t in_place = 0;
    struct gpu_work *w;

    if (!gpu_lowering(op_info(n->op)->family, &in_place))
        return diag_fail(c->diag, RLX_ERROR_UNSUPPORTED, "there is no GPU kernel for %s (node %d)",
                         op_info(n->op)->name, c->id);
    if (n->in_count + 2 > MOST_OPERANDS)
        return diag_fail(c->diag, RLX_ERROR_LIMIT, "%s has %d operands, at most %d fit",
                         op_info(n->op)->name, n->in_count, MOST_OPERANDS - 2);
    TRY(new_work(c, &w));
    if (gpu_has_subs(op_info(n->op)->family))
        TRY(gpu_build_subs(t, c, w));
    TRY(try_sizes(t, c, w));
    return emit_step(c, w, in_place);
}

/* ---- load ---- */

static uint64_t stamp_of(const struct gpu_work *w, const struct command *c)
{
    uint64_t h = hash_bytes(w->word, w->words * sizeof *w->word);

    for (uint32_t i = 0; i < w->launches; i++) {
        const struct gpu_launch *l = &w->launch[i];
        h = hash_mix(h, (uint64_t)(uintptr_t)l->kernel);
        h = hash_mix(h, hash_bytes(l->grid, sizeof l->grid));
        for (uint32_t k = 0; k < l->kernel->buffers; k++) {
            h = hash_mix(h, l->arg[k].offset ^ (uint64_t)l->arg[k].operand << 56);
            h = hash_mix(h, l->arg[k].bytes);
        }
    }
    for (uint32_t i = 0; i < w->loops; i++)
        h = hash_mix(h, hash_mix(w->loop[i].body, w->loop[i].end));
    for (uint32_t i = 0; i < c->operand_count; i++) {
        h = hash_mix(h, (uint64_t)(uintptr_t)c->operand[i].buffer);
        h = hash_mix(h, c->operand[i].offset);
    }
    return h;
}

rlx_status gpu_lower_step(struct gpu_target *t, struct gpu_work *w, int32_t step, struct diag *d)
{
    const struct ir_node *n = ir_node(w->graph, w->node);
    struct ir_type in[MOST_OPERANDS];
    uint64_t scratch;

    types_now(w, in);
    TRY(lower_node(t, w, in, &n->type, NULL, step, &scratch, d));
    if (scratch > w->scratch)
        return diag_fail(
            d, RLX_ERROR_LIMIT, "%s needs %llu bytes of scratch for these sizes, %llu were planned",
            op_info(n->op)->name, (unsigned long long)scratch, (unsigned long long)w->scratch);
    return RLX_OK;
}

/* A Fourier transform has a kernel for each length: too many to make beforehand. */
rlx_status gpu_prepare(struct gpu_target *t, struct command *c, struct diag *d)
{
    struct gpu_work *w = c->work;
    size_t before = t->kernels;

    if (w->prepared >= MOST_PREPARED) {
        w->launches = 0;
        return RLX_OK;
    }
    TRY(gpu_lower_step(t, w, c->step, d));
    w->prepared += (uint32_t)(t->kernels - before);
    return RLX_OK;
}

rlx_status gpu_load(struct gpu_target *t, struct command *c, struct diag *d)
{
    struct gpu_work *w = c->work;
    const struct ir_node *n = ir_node(w->graph, w->node);

    diag_at(d, op_info(n->op)->name, w->node, n->label);
    TRY(gpu_lower_step(t, w, c->step, d));
    if (w->control)
        TRY(gpu_fill_table(t, c, d));
    w->stamp = stamp_of(w, c);
    diag_at(d, NULL, -1, (rlx_str){NULL, 0});
    return RLX_OK;
}
