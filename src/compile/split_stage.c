/* split_stage.c: what the graph computes from weights alone becomes a module apart
 * (pass/static_pack.c), whose results the store keeps as copies: copies.c computes them. */
#include <string.h>

#include "base/str.h"
#include "compile/compilation.h"
#include "compile/copies.h"

/* Which of the model's params that value of a static part is computed from. */
static void mark_needs(const struct rlx_model *m, const struct ir_graph *g, ir_value of, bool *live,
                       bool *needs)
{
    memset(live, 0, g->node.len);
    memset(needs, 0, m->param_count);
    live[of] = true;
    for (size_t v = (size_t)of + 1; v-- > 0;) {
        const struct ir_node *n = &g->node.at[v];
        for (int32_t k = 0; live[v] && k < n->in_count; k++)
            live[n->in[k]] = true;
        for (size_t i = 0; i < m->param_count && live[v] && n->op == RLX_OP_param; i++)
            if (str_eq(m->param[i].name, ir_leaf_name(n)))
                needs[i] = true;
    }
}

/* live, needs: room, by node and by param. */
static rlx_status register_packs(const struct compile_request *r, bool *live, bool *needs,
                                 struct static_program *out, struct diag *d)
{
    const struct ir_graph *g = ir_entry(out->mod);
    const rlx_allocator *mem = r->mem;

    out->count = g->output.len;
    out->pack = mem_alloc(mem, out->count * sizeof *out->pack);
    out->leaf = mem_alloc(mem, out->count * sizeof *out->leaf);
    if (!out->pack || !out->leaf)
        return diag_no_memory(d, out->count * sizeof *out->leaf);
    for (size_t i = 0; i < out->count; i++) {
        struct weight_copy like = {.key = out->made[i].key,
                                   .needs = needs,
                                   .type = *ir_type_of(g, g->output.at[i]),
                                   .computed = true};
        type_bytes(&like.type, &like.bytes);
        mark_needs(r->model, g, g->output.at[i], live, needs);
        TRY(compile_copy_of(r, &like, &out->pack[i], d));
        out->leaf[i] = (struct pack_leaf){-1, true};
    }
    return RLX_OK;
}

static rlx_status register_static(const struct compile_request *r, const struct static_part *fixed,
                                  struct static_program *out, struct diag *d)
{
    const rlx_allocator *mem = &r->model->ctx->mem;
    size_t nodes = ir_entry(fixed->mod)->node.len, room = nodes + r->model->param_count;
    bool *marks = mem_alloc(mem, room);

    out->mod = fixed->mod;
    out->made = fixed->pack;
    if (!marks)
        return diag_no_memory(d, room);
    rlx_status status = register_packs(r, marks, marks + nodes, out, d);
    mem_free(mem, marks, room);
    return status;
}

rlx_status stage_split(struct compilation *k)
{
    const struct compile_request *r = k->request;

    if (k->stage.pass.no_static_pack || k->stage.pass.no_optimize)
        return RLX_OK;
    TRY(pass_split_static(k->mod, r->mem, &k->fixed, k->d));
    return k->fixed.mod ? register_static(r, &k->fixed, &k->out->fixed, k->d) : RLX_OK;
}
