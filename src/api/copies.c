/* copies.c: weights in other forms, kept up to date.
 *
 *     static part   what a graph computes from params alone: a graph of its own
 *     packed        a weight in the layout that a kernel reads best: made by the backend
 *
 * Both live in the store, under a key of their content, so that the programs of a model share them.
 * The static part comes first: what it computes may be packed in turn. */
#include <string.h>

#include "api/objects.h"
#include "base/str.h"

/* Which of the model's params the module reads. */
static void mark_needs(const struct rlx_model *m, const struct ir_module *mod, bool *needs)
{
    IR_EACH(n, ir_entry(mod)) {
        for (size_t i = 0; i < m->param_count && n->op == RLX_OP_param; i++)
            if (str_eq(m->param[i].name, ir_leaf_name(n)))
                needs[i] = true;
    }
}

static rlx_status register_packs(struct rlx_session *s, const bool *needs, const uint64_t *key,
                                 struct static_program *out, struct diag *d)
{
    const struct ir_graph *g = ir_entry(out->mod);
    const rlx_allocator *mem = &s->host;

    out->count = g->output.len;
    out->pack = mem_alloc(mem, out->count * sizeof *out->pack);
    if (!out->pack)
        return diag_no_memory(d, out->count * sizeof *out->pack);
    for (size_t i = 0; i < out->count; i++) {
        struct weight_copy like = {.key = key[i], .needs = needs};
        type_bytes(ir_type_of(g, g->output.at[i]), &like.bytes);
        TRY(budget_copy_of(s, &like, &out->pack[i], d));
    }
    return RLX_OK;
}

rlx_status copies_register(struct rlx_session *s, struct ir_module *fixed, const uint64_t *key,
                           struct static_program *out, struct diag *d)
{
    const rlx_allocator *mem = &s->model->ctx->mem;
    size_t params = s->model->param_count;
    bool *needs = mem_alloc(mem, params * sizeof *needs + 1);

    out->mod = fixed;
    if (!needs)
        return diag_no_memory(d, params);
    memset(needs, 0, params * sizeof *needs + 1);
    mark_needs(s->model, fixed, needs);
    rlx_status status = register_packs(s, needs, key, out, d);
    mem_free(mem, needs, params * sizeof *needs + 1);
    return status;
}

/* ---- making them ---- */

static void place_param(void *user, const struct ir_node *leaf, struct leaf_place *out)
{
    const struct rlx_session *s = user;
    const struct rlx_model *m = s->model;

    for (size_t i = 0; i < m->param_count; i++)
        if (str_eq(m->param[i].name, ir_leaf_name(leaf)))
            out->offset = s->store->offset[i];
}

static rlx_status may_take(void *user, uint64_t bytes, struct diag *d)
{
    return budget_check_locked(user, bytes, d);
}

static rlx_status run_to_packs(struct rlx_session *s, const struct static_program *f,
                               struct program *p, struct diag *d)
{
    struct backend *b = s->device->backend;
    struct run_report report;
    uint64_t ticket;

    TRY(program_load(p, p->size, d));
    TRY(b->ops->submit(b, p->command, p->command_count, NULL, &report, &ticket, d));
    TRY(b->ops->wait(b, ticket, d));
    for (size_t i = 0; i < f->count; i++) {
        struct span from = program_span(p, p->output[i].value);
        struct span to = {f->pack[i]->buffer, 0, from.bytes};
        if (from.bytes)
            TRY(b->ops->copy(b, to, from, d));
        f->pack[i]->made = s->store->values->version;
    }
    return RLX_OK;
}

/* Params that the program reads are there, or no longer have to be. */
static rlx_status hold_params(struct rlx_session *s, struct program *p, bool hold, struct diag *d)
{
    const struct rlx_model *m = s->model;

    IR_EACH(n, ir_entry(p->mod)) {
        for (size_t i = 0; i < m->param_count && n->op == RLX_OP_param; i++) {
            if (!str_eq(m->param[i].name, ir_leaf_name(n)))
                continue;
            if (hold)
                TRY(plain_hold(s->store, i, d));
            else
                plain_packed(s->store, i, s->store->plain[i], NULL);
            program_set_plain(p, ir_id(ir_entry(p->mod), n), s->store->plain[i]);
        }
    }
    return RLX_OK;
}

/* Its memory is needed for this moment only, so its program is made for this moment. */
static rlx_status run_static(struct rlx_session *s, const struct static_program *f, struct diag *d)
{
    struct backend *b = s->device->backend;
    const rlx_allocator *mem = &s->model->ctx->mem;
    bool apart = s->store->plain != NULL;
    struct ir_module *mod;
    struct program *p;

    const struct program_desc desc = {
        .backend = b,
        .mem = mem,
        .plan = {.align = s->target.alignment, .max_buffer = s->desc.max_buffer},
        .weights = apart ? NULL : &s->store->memory,
        .state = &s->state,
        .place_leaf = place_param,
        .may_take = may_take,
        .user = s,
    };
    TRY(ir_module_copy(f->mod, mem, &mod, d));
    TRY(program_create(&desc, mod, NULL, NULL, 0, &p, d));
    rlx_status status = apart ? hold_params(s, p, true, d) : RLX_OK;
    if (status == RLX_OK)
        status = run_to_packs(s, f, p, d);
    if (apart)
        hold_params(s, p, false, d);
    program_destroy(p);
    return status;
}

static const struct param_leaf *leaf_of(const struct session_program *sp, int32_t value)
{
    for (size_t i = 0; i < sp->leaf_count; i++)
        if (sp->leaf[i].value == value)
            return &sp->leaf[i];
    return NULL;
}

/* From the param where the store keeps it apart; else from what the program reads. */
static rlx_status pack(struct rlx_session *s, const struct session_program *sp, size_t i,
                       struct diag *d)
{
    struct backend *b = s->device->backend;
    struct program *p = sp->program;
    const struct packing *k = &p->steps->packing[i];
    const struct param_leaf *leaf = leaf_of(sp, k->source);
    struct span from = leaf ? (struct span){0} : program_span(p, k->source);

    if (leaf) {
        from.bytes = s->store->values->param[leaf->param].bytes;
        TRY(plain_source(s->store, leaf->param, &from.buffer, d));
    }
    rlx_status status = b->ops->pack(b, &p->command[k->step], k->operand, from, d);
    if (status == RLX_OK)
        p->packed[i]->made = s->store->values->version;
    if (leaf)
        plain_packed(s->store, leaf->param, from.buffer, status == RLX_OK ? p->packed[i] : NULL);
    return status;
}

static rlx_status hold_leaves(struct rlx_session *s, struct session_program *sp, struct diag *d)
{
    for (size_t i = 0; i < sp->leaf_count; i++) {
        const struct param_leaf *l = &sp->leaf[i];
        if (l->read)
            TRY(plain_hold(s->store, l->param, d));
        program_set_plain(sp->program, l->value, l->read ? s->store->plain[l->param] : NULL);
    }
    return RLX_OK;
}

rlx_status copies_refresh(struct rlx_session *s, struct session_program *sp, struct diag *d)
{
    struct program *p = sp->program;
    bool old = false;

    if (sp->fresh == s->store->values->version)
        return RLX_OK;
    for (size_t i = 0; i < sp->fixed.count; i++)
        old |= store_copy_is_old(s->store, sp->fixed.pack[i]);
    if (old)
        TRY(run_static(s, &sp->fixed, d));
    for (size_t i = 0; i < p->steps->packing_count; i++)
        if (store_copy_is_old(s->store, p->packed[i]))
            TRY(pack(s, sp, i, d));
    TRY(hold_leaves(s, sp, d));
    sp->fresh = s->store->values->version;
    return RLX_OK;
}
