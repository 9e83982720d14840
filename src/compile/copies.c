/* copies.c: weights in other forms, kept up to date.
 *
 *     static part   what a graph computes from params alone: a graph of its own
 *     packed        a weight in the layout that a kernel reads best: made by the backend
 *
 * Both live in the store, under a key of their content, so that the programs of a model share them.
 * The static part comes first: what it computes may be packed in turn. On a device that works in
 * host memory it is then not kept, and neither are params that can be had back from it. */
#include "compile/copies.h"

#include <string.h>

#include "base/str.h"
#include "model/undo_moves.h"
#include "pass/pass.h"
#include "pass/static_pack.h"

/* A weight's copy is one thing: it cannot be cut. */
rlx_status compile_copy_of(const struct compile_request *r, const struct weight_copy *like,
                           struct weight_copy **out, struct diag *d)
{
    rlx_str name = STR("");

    for (size_t i = 0; like->needs && i < r->model->param_count && !name.len; i++)
        if (like->needs[i])
            name = r->model->param[i].name;
    if (r->desc->max_buffer && like->bytes > r->desc->max_buffer)
        return memory_too_large("a copy of weights, of param", name, like->bytes,
                                r->desc->max_buffer, d);
    if (!store_has_copy(r->store, like->key, like->bytes))
        TRY(r->may_take(r->user, like->bytes, d));
    return store_copy_of(r->store, like, out, d);
}

/* ---- making them ---- */

static void place_param(void *user, const struct ir_node *leaf, struct leaf_place *out)
{
    const struct compile_request *r = user;
    const struct rlx_model *m = r->model;

    for (size_t i = 0; i < m->param_count; i++)
        if (str_eq(m->param[i].name, ir_leaf_name(leaf)))
            out->offset = r->store->offset[i];
}

static rlx_status may_take(void *user, uint64_t bytes, struct diag *d)
{
    const struct compile_request *r = user;

    return r->may_take_locked(r->user, bytes, d);
}

static const struct param_leaf *leaf_of(const struct compiled_program *sp, int32_t value)
{
    for (size_t i = 0; i < sp->leaf_count; i++)
        if (sp->leaf[i].value == value)
            return &sp->leaf[i];
    return NULL;
}

/* Packs that are computed together, from one to before another. */
struct batch {
    const struct compile_request *r;
    struct compiled_program *of;
    size_t from, to;
    struct program *p; /* its outputs are the packs, in their order */
};
#define BATCH_BYTES (UINT64_C(4) << 20) /* of several packs; one may be larger */

static bool has_old_copies(const struct compile_request *r, const struct compiled_program *sp,
                           int32_t source)
{
    const struct steps *steps = sp->program->steps;

    for (size_t i = 0; i < steps->packing_count; i++)
        if (steps->packing[i].source == source &&
            store_copy_is_old(r->store, sp->program->packed[i]))
            return true;
    return false;
}

static bool must_make(const struct compile_request *r, const struct compiled_program *sp, size_t i)
{
    const struct pack_leaf *leaf = &sp->fixed.leaf[i];
    const struct weight_copy *c = sp->fixed.pack[i];

    return (leaf->read && (!c->buffer || store_copy_is_old(r->store, c))) ||
           (leaf->value >= 0 && has_old_copies(r, sp, leaf->value));
}

/* Where params lie apart, few of them are to be there twice: what is made of them goes on being
 * packed before the next batch. */
static size_t batch_end(const struct compile_request *r, const struct compiled_program *sp,
                        size_t from)
{
    uint64_t most = r->store->plain ? BATCH_BYTES : UINT64_MAX, sum = sp->fixed.pack[from]->bytes;
    size_t to = from + 1;

    while (to < sp->fixed.count && sum < most && sp->fixed.pack[to]->bytes <= most - sum)
        sum += sp->fixed.pack[to++]->bytes;
    return to;
}

/* Its part of the module. */
static rlx_status cut_batch(const struct batch *k, struct ir_module **out, struct diag *d)
{
    static const struct pass_options none = {.no_optimize = true};
    size_t count = k->to - k->from;
    uint64_t changes = 0;
    struct ir_module *mod;

    TRY(ir_module_copy(k->of->fixed.mod, &k->r->model->ctx->mem, &mod, d));
    struct ir_graph *g = ir_entry(mod);
    rlx_status status = RLX_OK;
    if (count < g->output.len) {
        memmove(g->output.at, g->output.at + k->from, count * sizeof *g->output.at);
        g->output.len = count;
        status = pass_one(pass_find(STR("dce")), mod, k->r->target, &none, &changes, d);
    }
    if (status == RLX_OK)
        *out = mod;
    else
        ir_module_destroy(mod);
    return status;
}

/* For those that read it as it is, and for kernels with layouts of their own. */
static rlx_status keep_pack(const struct batch *k, size_t i, struct diag *d)
{
    struct backend *b = k->r->device->backend;
    struct weight_copy *c = k->of->fixed.pack[i];
    const struct pack_leaf *leaf = &k->of->fixed.leaf[i];
    struct span from = program_span(k->p, k->p->output[i - k->from].value);
    struct program *p = k->of->program;

    if (leaf->read && !c->buffer)
        TRY(b->ops->alloc(b, c->bytes, &c->buffer, d));
    if (c->buffer)
        TRY(b->ops->copy(b, (struct span){c->buffer, 0, from.bytes}, from, d));
    c->made = k->r->store->values->version;
    for (size_t j = 0; leaf->value >= 0 && j < p->steps->packing_count; j++) {
        const struct packing *how = &p->steps->packing[j];
        if (how->source != leaf->value || !store_copy_is_old(k->r->store, p->packed[j]))
            continue;
        TRY(b->ops->pack(b, &p->command[how->step], how->operand, from, d));
        p->packed[j]->made = c->made;
    }
    return RLX_OK;
}

/* The copy that has all of a pack; NULL: none has. */
static struct weight_copy *copy_with_all(const struct batch *k, size_t i)
{
    const struct steps *steps = k->of->program->steps;
    int32_t leaf = k->of->fixed.leaf[i].value;

    for (size_t j = 0; leaf >= 0 && j < steps->packing_count; j++)
        if (steps->packing[j].source == leaf && steps->packing[j].form.whole)
            return k->of->program->packed[j];
    return k->of->fixed.pack[i]->buffer ? k->of->fixed.pack[i] : NULL;
}

/* Will somebody read it again to make something of it? */
static bool is_needed_later(const struct batch *k, size_t param)
{
    for (size_t i = 0; i < k->of->leaf_count; i++)
        if (k->of->leaf[i].param == param)
            return true;
    for (size_t i = k->to; i < k->of->fixed.count; i++)
        if (k->of->fixed.pack[i]->needs[param])
            return true;
    return false;
}

/* Its value is in a pack: it need not be anywhere else. Failing to undo it is not an error,
 * nor that there is no memory to note it. */
static void leave_to_packs(const struct batch *k, size_t param, ir_value leaf)
{
    const rlx_allocator *mem = &k->r->model->ctx->mem;
    const struct ir_graph *part = ir_entry(k->p->mod);
    struct diag d;

    diag_init(&d, "run");
    for (size_t i = k->from; i < k->to && plain_param_is_spare(k->r->store, param); i++) {
        struct weight_copy *c = k->of->fixed.pack[i]->needs[param] ? copy_with_all(k, i) : NULL;
        struct ir_module *undo = NULL;
        if (c)
            undo_moves_find(part, part->output.at[i - k->from], leaf, k->r->target, mem, &undo, &d);
        if (undo)
            param_leave_to(&k->r->store->values->param[param], k->r->store, c, undo, mem);
    }
}

/* Params that the batch reads are there, or no longer have to be. */
static rlx_status hold_params(const struct batch *k, bool hold, bool made, struct diag *d)
{
    const struct rlx_model *m = k->r->model;
    struct store *store = k->r->store;

    IR_EACH(n, ir_entry(k->p->mod)) {
        ir_value leaf = ir_id(ir_entry(k->p->mod), n);
        for (size_t i = 0; i < m->param_count && n->op == RLX_OP_param; i++) {
            if (!str_eq(m->param[i].name, ir_leaf_name(n)))
                continue;
            if (hold)
                TRY(plain_param_hold(store, i, d));
            else
                plain_param_was_packed(store, i, store->plain[i], NULL);
            if (made && !is_needed_later(k, i))
                leave_to_packs(k, i, leaf);
            program_set_plain(k->p, leaf, store->plain[i]);
        }
    }
    return RLX_OK;
}

static rlx_status run_to_packs(const struct batch *k, struct diag *d)
{
    struct backend *b = k->r->device->backend;
    struct run_report report;

    TRY(program_load(k->p, k->p->size, d));
    TRY(backend_run(b, k->p->command, k->p->command_count, NULL, &report, d));
    for (size_t i = k->from; i < k->to; i++)
        TRY(keep_pack(k, i, d));
    return RLX_OK;
}

/* Its memory is needed for this moment only, so its program is made for this moment. */
static rlx_status run_batch(struct batch *k, struct diag *d)
{
    const struct compile_request *r = k->r;
    bool apart = r->store->plain != NULL;
    struct ir_module *mod;

    const struct program_desc desc = {
        .backend = r->device->backend,
        .mem = &r->model->ctx->mem,
        .plan = {.align = r->target->alignment, .max_buffer = r->desc->max_buffer},
        .weights = apart ? NULL : &r->store->memory,
        .state = r->state,
        .place_leaf = place_param,
        .may_take = may_take,
        .user = (void *)r,
    };
    TRY(cut_batch(k, &mod, d));
    TRY(program_create(&desc, mod, NULL, NULL, 0, &k->p, d));
    rlx_status status = apart ? hold_params(k, true, false, d) : RLX_OK;
    if (status == RLX_OK)
        status = run_to_packs(k, d);
    if (apart)
        hold_params(k, false, status == RLX_OK, d);
    program_destroy(k->p);
    return status;
}

static rlx_status make_packs(const struct compile_request *r, struct compiled_program *sp,
                             struct diag *d)
{
    struct batch k = {.r = r, .of = sp};

    for (; k.from < sp->fixed.count; k.from = k.to) {
        bool must = false;
        k.to = batch_end(r, sp, k.from);
        for (size_t i = k.from; i < k.to; i++)
            must = must || must_make(r, sp, i);
        if (must)
            TRY(run_batch(&k, d));
    }
    return RLX_OK;
}

/* From the param where the store keeps it apart; else from what the program reads. */
static rlx_status pack(const struct compile_request *r, const struct compiled_program *sp, size_t i,
                       struct diag *d)
{
    struct backend *b = r->device->backend;
    struct program *p = sp->program;
    const struct packing *k = &p->steps->packing[i];
    const struct param_leaf *leaf = leaf_of(sp, k->source);
    struct span from = leaf ? (struct span){0} : program_span(p, k->source);

    if (leaf) {
        from.bytes = r->store->values->param[leaf->param].bytes;
        TRY(plain_param_source(r->store, leaf->param, &from.buffer, d));
    }
    rlx_status status = b->ops->pack(b, &p->command[k->step], k->operand, from, d);
    if (status == RLX_OK)
        p->packed[i]->made = r->store->values->version;
    if (leaf)
        plain_param_was_packed(r->store, leaf->param, from.buffer,
                               status == RLX_OK ? p->packed[i] : NULL);
    return status;
}

static rlx_status hold_leaves(const struct compile_request *r, struct compiled_program *sp,
                              struct diag *d)
{
    for (size_t i = 0; i < sp->leaf_count; i++) {
        const struct param_leaf *l = &sp->leaf[i];
        if (l->read)
            TRY(plain_param_hold(r->store, l->param, d));
        program_set_plain(sp->program, l->value, l->read ? r->store->plain[l->param] : NULL);
    }
    return RLX_OK;
}

/* Packs that the program reads as they are. */
static void place_packs(struct compiled_program *sp)
{
    for (size_t i = 0; i < sp->fixed.count; i++)
        if (sp->fixed.leaf[i].read && sp->fixed.leaf[i].value >= 0)
            program_set_outside(sp->program, sp->fixed.leaf[i].value, sp->fixed.pack[i]->buffer);
}

rlx_status copies_refresh(const struct compile_request *r, struct compiled_program *sp,
                          struct diag *d)
{
    struct program *p = sp->program;

    if (sp->fresh == r->store->values->version)
        return RLX_OK;
    TRY(make_packs(r, sp, d));
    place_packs(sp);
    for (size_t i = 0; i < p->steps->packing_count; i++)
        if (store_copy_is_old(r->store, p->packed[i]))
            TRY(pack(r, sp, i, d));
    TRY(hold_leaves(r, sp, d));
    sp->fresh = r->store->values->version;
    return RLX_OK;
}
