/* model_parts.c: a model with sizes that depend on data, as models without, one after the other.
 *
 * The whole graph stays what the model is known by: its inputs, params, outputs and their names.
 * Each part (pass/parts.h) is a model of its own, whose params lie where those of the whole do. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "model/store.h"
#include "pass/parts.h"

struct slots {
    int32_t *of; /* by node of the whole */
    size_t count;
};

static int32_t slot_of(struct slots *s, ir_value v)
{
    if (s->of[v] == NO_SLOT)
        s->of[v] = (int32_t)s->count++;
    return s->of[v];
}

static rlx_status make_part(struct rlx_model *m, struct slots *slots, const struct graph_part *g,
                            struct model_part *p, struct diag *d)
{
    const struct model_parts *all = m->parts;
    const struct ir_graph *whole = ir_entry(m->mod);

    p->input_count = g->input_count;
    p->input_slot = arena_array(&m->arena, int32_t, g->input_count);
    p->output_slot = arena_array(&m->arena, int32_t, g->output_count);
    p->uses = g->uses;
    if (!p->input_slot || !p->output_slot)
        return diag_no_memory(d, (g->input_count + g->output_count) * sizeof(int32_t));
    for (size_t i = 0; i < g->input_count; i++) {
        ir_value v = g->input[i];
        bool given = ir_node(whole, v)->op == RLX_OP_input && !all->is_cut_leaf[v];
        p->input_slot[i] = given ? NO_SLOT : slot_of(slots, v);
    }
    for (size_t i = 0; i < g->output_count; i++)
        p->output_slot[i] = slot_of(slots, g->output[i]);
    return RLX_OK;
}

static bool is_given(const struct graph_part *part, size_t count, ir_value v)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < part[i].output_count; k++)
            if (part[i].output[k] == v)
                return true;
    return false;
}

/* Those that tell something: nothing computes the count of the others. */
static void take_cuts(struct model_parts *p, struct slots *slots, const struct graph_part *part,
                      size_t parts, const struct ir_cut *cut, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct ir_cut *c = &cut[i];
        if (!is_given(part, parts, c->count))
            continue;
        struct model_cut *own = &p->cut[p->cut_count++];
        *own = (struct model_cut){c->symbol, slot_of(slots, c->count), NO_SLOT, NO_SLOT, c->axis};
        if (c->padded == RLX_NO_VALUE || !is_given(part, parts, c->padded))
            continue;
        own->padded = slot_of(slots, c->padded);
        own->leaf = slot_of(slots, c->leaf);
    }
}

/* A leaf of the whole is used if any part uses it. */
static void copy_uses(struct rlx_model *m, const struct rlx_model *part)
{
    const struct ir_graph *g = ir_entry(part->mod), *whole = ir_entry(m->mod);
    ir_value v;

    IR_EACH(n, g) {
        if (!op_is(n->op, OP_LEAF) || !ir_find_leaf(whole, ir_leaf_name(n), &v))
            continue;
        m->used[v] |= part->used[ir_id(g, n)];
        m->variance[v] |= part->variance[ir_id(g, n)];
    }
}

/* What is cut from something random is as random, and so is what follows from it. */
static void spread_random(struct rlx_model *m, const struct ir_cut *cut, size_t count)
{
    const struct ir_graph *g = ir_entry(m->mod);

    for (size_t i = 0; i < g->node.len; i++) {
        const struct ir_node *n = &g->node.at[i];
        for (int32_t k = 0; k < n->in_count; k++)
            m->random[i] |= m->random[n->in[k]];
        for (size_t k = 0; m->parts->is_cut_leaf[i] && k < count; k++)
            if (cut[k].leaf == (ir_value)i)
                m->random[i] |= m->random[cut[k].padded] || m->random[cut[k].count];
    }
}

static bool names_differ(const struct rlx_model *part)
{
    for (size_t i = 0; i < part->output_count; i++)
        for (size_t k = 0; k < i; k++)
            if (str_eq(part->output_name[i], part->output_name[k]))
                return false;
    return true;
}

/* Outputs are asked for by name: labels of nodes, or, where one of those is like the name that an
 * output without a label has, numbers of slots for all. */
static rlx_status name_outputs(struct rlx_model *part, const int32_t *slot, struct diag *d)
{
    if (names_differ(part))
        return RLX_OK;
    for (size_t i = 0; i < part->output_count; i++) {
        part->output_name[i] = rlx_cstr(arena_printf(&part->arena, "slot%d", slot[i]));
        if (!part->output_name[i].ptr)
            return diag_no_memory(d, 16);
    }
    return RLX_OK;
}

static rlx_status allocate(struct rlx_model *m, struct slots *slots, size_t cuts, struct diag *d)
{
    const struct ir_graph *g = ir_entry(m->mod);
    size_t n = g->node.len;

    m->parts = arena_new(&m->arena, struct model_parts);
    slots->of = arena_array(&m->arena, int32_t, n);
    if (!m->parts || !slots->of)
        return diag_no_memory(d, n * sizeof *slots->of);
    m->parts->cut = arena_array(&m->arena, struct model_cut, cuts);
    m->parts->is_cut_leaf = arena_array(&m->arena, bool, n);
    m->parts->output_slot = arena_array(&m->arena, int32_t, g->output.len);
    if (!m->parts->cut || !m->parts->is_cut_leaf || !m->parts->output_slot)
        return diag_no_memory(d, n);
    for (size_t i = 0; i < n; i++)
        slots->of[i] = NO_SLOT;
    return RLX_OK;
}

/* Modules that no model has taken yet are destroyed by the caller. */
static rlx_status make_models(struct rlx_model *m, struct slots *slots, struct graph_part *part,
                              size_t count, struct diag *d)
{
    struct model_parts *p = m->parts;

    p->part = arena_array(&m->arena, struct model_part, count);
    if (!p->part)
        return diag_no_memory(d, count * sizeof *p->part);
    p->count = count;
    for (size_t i = 0; i < count; i++) {
        TRY(make_part(m, slots, &part[i], &p->part[i], d));
        TRY(model_from_module(m->ctx, part[i].mod, &p->part[i].model, d));
        part[i].mod = NULL;
        TRY(name_outputs(p->part[i].model, p->part[i].output_slot, d));
        copy_uses(m, p->part[i].model);
    }
    return RLX_OK;
}

rlx_status model_cut(struct rlx_model *m, const struct ir_cut *cut, size_t count, struct diag *d)
{
    const struct ir_graph *g = ir_entry(m->mod);
    struct slots slots = {.count = 0};
    struct graph_part *part;
    size_t parts;

    TRY(allocate(m, &slots, count, d));
    TRY(cut_into_parts(m->mod, cut, count, &m->ctx->mem, &m->arena, &part, &parts, d));
    for (size_t i = 0; i < count; i++)
        if (cut[i].padded != RLX_NO_VALUE)
            m->parts->is_cut_leaf[cut[i].leaf] = true;
    spread_random(m, cut, count);
    rlx_status status = make_models(m, &slots, part, parts, d);
    for (size_t i = 0; i < parts; i++)
        ir_module_destroy(part[i].mod);
    if (status != RLX_OK)
        return status;
    take_cuts(m->parts, &slots, part, parts, cut, count);
    for (size_t i = 0; i < g->output.len; i++)
        m->parts->output_slot[i] = slot_of(&slots, g->output.at[i]);
    m->parts->slots = slots.count;
    model_parts_share_params(m);
    return RLX_OK;
}

void model_parts_destroy(struct model_parts *p)
{
    for (size_t i = 0; p && i < p->count; i++)
        model_release(p->part[i].model);
}

void model_parts_share_params(struct rlx_model *m)
{
    size_t k;

    for (size_t i = 0; i < m->parts->count; i++) {
        struct rlx_model *part = m->parts->part[i].model;
        for (size_t j = 0; j < part->param_count; j++) {
            if (model_find_param(m, part->param[j].name, &k, NULL) == RLX_OK && m->param[k].changed)
                param_take(&part->values, j, m->param[k].data,
                           m->param[k].kept == PARAM_MAPPED ? PARAM_MAPPED : PARAM_BORROWED,
                           &m->ctx->mem);
        }
    }
}

rlx_status model_is_whole(const struct rlx_model *m, const char *what, struct diag *d)
{
    if (!m->parts)
        return RLX_OK;
    return diag_fail(
        d, RLX_ERROR_UNSUPPORTED,
        "a model with sizes that depend on data runs in parts (here %zu) and cannot %s",
        m->parts->count, what);
}

bool model_is_input(const struct rlx_model *m, ir_value v)
{
    return ir_node(ir_entry(m->mod), v)->op == RLX_OP_input &&
           !(m->parts && m->parts->is_cut_leaf[v]);
}

int model_part_title(const struct model_parts *p, size_t i, char *out, size_t size)
{
    return snprintf(out, size, "%s# part %zu of %zu\n", i ? "\n" : "", i + 1, p->count);
}
