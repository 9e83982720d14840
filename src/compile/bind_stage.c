/* bind_stage.c: symbols get their sizes, those with a bound stay; all is inferred and checked
 * again. */
#include "compile/compilation.h"

static rlx_status bind_symbols_of_model(struct compilation *k)
{
    const struct compile_request *r = k->request;
    int64_t *size = arena_array(&k->scratch, int64_t, r->symbol_count);
    bool *keep = arena_array(&k->scratch, bool, r->symbol_count), any = false;

    if (!size || !keep)
        return diag_no_memory(k->d, r->symbol_count * sizeof *size);
    for (size_t i = 0; i < r->symbol_count; i++) {
        any |= keep[i] = r->size[i] == SYMBOL_KEPT;
        size[i] = keep[i] ? -1 : r->size[i];
    }
    return ir_bind_some(r->model->mod, size, any ? keep : NULL, r->symbol_count, r->mem, &k->mod,
                        k->d);
}

/* A registered op knows sizes, not what they may shrink to: symbols of its operands are bound by
 * value (runtime.md 4.6). */
static rlx_status check_custom(struct compilation *k, const struct ir_graph *g,
                               const struct ir_node *n)
{
    const struct compile_request *r = k->request;
    bool open = false;

    for (int32_t i = 0; i < n->in_count; i++) {
        const struct ir_type *t = ir_type_of(g, n->in[i]);
        open |= !type_is_static(t);
        for (int32_t a = 0; a < t->rank && !r->desc->strict_extent; a++)
            for (size_t y = 0; y < r->symbol_count; y++)
                r->by_value[y] |= r->size[y] == SYMBOL_KEPT && !dim_is_static(t->dim[a]) &&
                                  t->dim[a] != RLX_DIM_UNKNOWN &&
                                  dim_uses(k->mod->dims, t->dim[a], y);
    }
    if (!open)
        return RLX_OK;
    diag_at(k->d, op_info(n->op)->name, ir_id(g, n), n->label);
    return diag_fail(k->d, RLX_ERROR_EXTENT,
                     "custom op \"%.*s\" is compiled for each size of its operands",
                     (int)n->attr.custom.name.len, (const char *)n->attr.custom.name.ptr);
}

static rlx_status check_customs(struct compilation *k)
{
    for (size_t g = 0; g < k->mod->graph.len; g++) {
        IR_EACH(n, k->mod->graph.at[g]) {
            if (n->op == RLX_OP_custom)
                TRY(check_custom(k, k->mod->graph.at[g], n));
        }
    }
    return RLX_OK;
}

/* All of the model's inputs, in its order, also those that binding dropped. */
static rlx_status list_inputs(struct compilation *k)
{
    const struct ir_graph *model = ir_entry(k->request->model->mod), *g = ir_entry(k->mod);
    size_t n = 0;

    k->input_count = ir_inputs(model, NULL, 0);
    k->inputs = arena_array(&k->scratch, struct program_slot, k->input_count);
    if (!k->inputs)
        return diag_no_memory(k->d, k->input_count * sizeof *k->inputs);
    IR_EACH(node, model) {
        ir_value v;
        if (node->op != RLX_OP_input)
            continue;
        bool there = ir_find_leaf(g, ir_leaf_name(node), &v);
        k->inputs[n++] =
            (struct program_slot){ir_leaf_name(node), there ? *ir_type_of(g, v) : node->type, -1};
    }
    return RLX_OK;
}

rlx_status stage_bind(struct compilation *k)
{
    TRY(bind_symbols_of_model(k));
    TRY(check_customs(k));
    compile_watch_bound(&k->watch, k->mod);
    return list_inputs(k);
}
