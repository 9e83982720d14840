/* program_stage.c: an optimised graph becomes a program: steps, plan, memory. program_create does
 * that; here is what it needs to know about leaves and weights, and with which options. */
#include "base/map.h"
#include "base/str.h"
#include "compile/compilation.h"
#include "compile/copies.h"

/* ---- where leaves lie ---- */

static const struct weight_copy *pack_of(const struct compilation *k, rlx_str name)
{
    for (size_t i = 0; i < k->fixed.count; i++)
        if (str_eq(k->fixed.pack[i].name, name))
            return k->out->fixed.pack[i];
    return NULL;
}

/* Params lie where the store has them, states where the session has them; both were laid out for
 * the model's own graph, whose leaves keep their names through every pass. */
static void place_leaf(void *user, const struct ir_node *leaf, struct leaf_place *out)
{
    const struct compilation *k = user;
    const struct compile_request *r = k->request;
    const struct rlx_model *m = r->model;
    const struct weight_copy *pack = pack_of(k, ir_leaf_name(leaf));
    ir_value v;

    if (leaf->op == RLX_OP_param && pack) {
        out->is_outside = true;
        out->outside = pack->buffer;
        return;
    }
    if (!ir_find_leaf(ir_entry(m->mod), ir_leaf_name(leaf), &v))
        return;
    if (leaf->op == RLX_OP_state)
        out->offset = r->state_offset[v];
    for (size_t i = 0; i < m->param_count && leaf->op == RLX_OP_param; i++)
        if (m->param[i].node == v)
            out->offset = r->store->offset[i];
    struct buffer *own =
        leaf->op == RLX_OP_input ? r->input_buffer(r->user, ir_leaf_name(leaf)) : NULL;
    if (own) {
        out->is_outside = true;
        out->outside = own;
    }
}

/* ---- copies of weights ---- */

/* Copies are distinguished by what they are made from, of which shape, and how they are laid out:
 * the same bytes under another shape give another copy. */
static uint64_t copy_key(const struct ir_node *source, uint64_t layout)
{
    const struct ir_type *t = &source->type;
    const struct ir_blob *data = source->op == RLX_OP_const ? &source->attr.const_.data : NULL;
    rlx_str name = ir_leaf_name(source);
    uint64_t part[4 + RLX_MAX_RANK] = {layout, (uint64_t)t->dtype, (uint64_t)t->rank};

    part[3] = data ? hash_bytes(data->ptr, data->len) : hash_bytes(name.ptr, name.len);
    for (int32_t i = 0; i < t->rank; i++)
        part[4 + i] = (uint64_t)t->dim[i];
    return hash_bytes(part, sizeof part);
}

static rlx_status copy_of(void *user, const struct ir_node *source, const struct packing *what,
                          uint64_t bytes, struct weight_copy **out, struct diag *d)
{
    struct compilation *k = user;
    struct rlx_model *m = k->request->model;
    const struct weight_copy *pack = pack_of(k, ir_leaf_name(source));
    bool *needs = arena_array(&k->scratch, bool, m->param_count);

    if (!needs)
        return diag_no_memory(d, m->param_count);
    for (size_t i = 0; i < m->param_count; i++)
        needs[i] =
            pack ? pack->needs[i]
                 : source->op == RLX_OP_param && str_eq(m->param[i].name, ir_leaf_name(source));
    const struct weight_copy like = {.key = copy_key(source, what->layout),
                                     .bytes = bytes,
                                     .needs = needs,
                                     .form = what->form,
                                     .type = source->type};
    return compile_copy_of(k->request, &like, out, d);
}

static rlx_status may_take(void *user, uint64_t bytes, struct diag *d)
{
    const struct compile_request *r = ((struct compilation *)user)->request;

    return r->may_take(r->user, bytes, d);
}

/* ---- the program ---- */

rlx_status stage_program(struct compilation *k)
{
    const struct compile_request *r = k->request;

    k->stage.plan.saved = k->reuse.plan;
    const struct program_desc desc = {
        .backend = r->device->backend,
        .mem = r->mem,
        .plan = k->stage.plan,
        .select = k->stage.select,
        .weights = r->store->plain ? NULL : &r->store->memory,
        .state = r->state,
        .symbol_count = r->symbol_count,
        .plan_only = r->plan_only,
        .probes = &k->probes,
        .place_leaf = place_leaf,
        .copy_of = copy_of,
        .may_take = may_take,
        .user = k,
    };
    struct ir_module *mod = k->mod, *symbolic = k->symbolic;

    k->mod = k->symbolic = NULL; /* the program's now */
    return program_create(&desc, mod, symbolic, k->inputs, k->input_count, &k->out->program, k->d);
}
