/* compile.c: the compiler, in order. Read this first.
 *
 *     bind     symbols get their sizes, those with a bound stay; all is inferred and checked again
 *     reuse    a file may have what the passes and the planner would find (reuse.c)
 *     passes   rewrite, fuse, expand what the device has no kernels for  (pass/pipeline.c)
 *     split    what depends on weights alone is computed apart           (pass/static_pack.c)
 *     size     a copy with the bounds in place of the symbols that stayed
 *     select   nodes become steps: kernel, operands, scratch             (lower/select.c)
 *     plan     lifetimes over the steps, an offset for every value       (plan/plan.c)
 *     load     memory, constants, addresses into the steps               (run/program.c) */
#include <string.h>

#include "base/map.h"
#include "base/str.h"
#include "compile/cache/artefact.h"
#include "compile/compile_watch.h"
#include "compile/fold_eval.h"
#include "compile/stage_options.h"
#include "inspect/stages.h"
#include "pass/dispatch.h"
#include "pass/static_pack.h"
#include "session/session.h"

#ifdef NDEBUG
enum { CHECK_ALWAYS = false };
#else
enum { CHECK_ALWAYS = true }; /* debug builds verify after every pass, and every plan */
#endif

/* Everything a compile makes on its way. */
struct making {
    struct rlx_session *s;
    struct target target;
    struct stage_options stage;
    struct arena scratch;
    struct ir_module *mod;      /* what becomes the program's */
    struct ir_module *symbolic; /* NULL: nothing stays symbolic */
    struct static_part fixed;
    struct program_slot *inputs;
    size_t input_count;
    struct size_probes probes; /* of what stays symbolic */
    struct compile_watch watch;
    struct reuse reuse;
    struct session_program *out;
    struct diag *d;
};

/* ---- where leaves lie ---- */

static const struct weight_copy *pack_of(const struct making *k, rlx_str name)
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
    const struct making *k = user;
    const struct rlx_model *m = k->s->model;
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
        out->offset = k->s->state_offset[v];
    for (size_t i = 0; i < m->param_count && leaf->op == RLX_OP_param; i++)
        if (m->param[i].node == v)
            out->offset = k->s->store->offset[i];
    const struct handle *h = handle_of(k->s, ir_leaf_name(leaf));
    if (leaf->op == RLX_OP_input && h && h->direct) {
        out->is_outside = true;
        out->outside = h->buffer;
    }
}

/* Copies are told apart by what they are made from, of which shape, and how they are laid out: the
 * same bytes under another shape give another copy. */
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
    struct making *k = user;
    struct rlx_model *m = k->s->model;
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
    return budget_copy_of(k->s, &like, out, d);
}

static rlx_status may_take(void *user, uint64_t bytes, struct diag *d)
{
    return budget_check(((struct making *)user)->s, bytes, d);
}

/* ---- stages ---- */

/* All of the model's inputs, in its order, also those that binding dropped. */
static rlx_status list_inputs(struct making *k)
{
    const struct ir_graph *model = ir_entry(k->s->model->mod), *g = ir_entry(k->mod);
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

static rlx_status bind(struct making *k)
{
    struct rlx_session *s = k->s;
    const rlx_allocator *mem = &s->host;
    int64_t *size = arena_array(&k->scratch, int64_t, s->symbol_count);
    bool any = false;

    if (!size)
        return diag_no_memory(k->d, s->symbol_count * sizeof *size);
    for (size_t i = 0; i < s->symbol_count; i++) {
        any |= s->key[i] == SYMBOL_KEPT;
        size[i] = s->key[i] == SYMBOL_KEPT ? -1 : s->key[i];
    }
    return ir_bind_some(s->model->mod, size, any ? s->keep : NULL, s->symbol_count, mem, &k->mod,
                        k->d);
}

/* A registered op knows sizes, not what they may shrink to: symbols of its operands are bound by
 * value (runtime.md 4.6). */
static rlx_status check_custom(struct making *k, const struct ir_graph *g, const struct ir_node *n)
{
    struct rlx_session *s = k->s;
    bool open = false;

    for (int32_t i = 0; i < n->in_count; i++) {
        const struct ir_type *t = ir_type_of(g, n->in[i]);
        open |= !type_is_static(t);
        for (int32_t a = 0; a < t->rank && !s->desc.strict_extent; a++)
            for (size_t y = 0; y < s->symbol_count; y++)
                s->by_value[y] |= s->keep[y] && !dim_is_static(t->dim[a]) &&
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

static rlx_status check_customs(struct making *k)
{
    for (size_t g = 0; g < k->mod->graph.len; g++) {
        IR_EACH(n, k->mod->graph.at[g]) {
            if (n->op == RLX_OP_custom)
                TRY(check_custom(k, k->mod->graph.at[g], n));
        }
    }
    return RLX_OK;
}

static rlx_status split(struct making *k)
{
    if (k->stage.pass.no_static_pack || k->stage.pass.no_optimize)
        return RLX_OK;
    TRY(pass_split_static(k->mod, &k->s->host, &k->fixed, k->d));
    if (!k->fixed.mod)
        return RLX_OK;
    return copies_register(k->s, &k->fixed, &k->out->fixed, k->d);
}

/* A value that grows when a symbol shrinks does not fit where the bound puts it. */
static rlx_status check_growth(struct making *k)
{
    struct rlx_session *s = k->s;
    const struct ir_module *m = k->mod;

    for (size_t g = 0; g < m->graph.len; g++) {
        IR_EACH(n, m->graph.at[g]) {
            for (int32_t i = 0; i < n->type.rank; i++) {
                if (dim_grows(m->dims, n->type.dim[i]))
                    continue;
                for (size_t y = 0; y < s->symbol_count && !s->desc.strict_extent; y++)
                    s->by_value[y] |= s->keep[y] && dim_uses(m->dims, n->type.dim[i], y);
                diag_at(k->d, op_info(n->op)->name, ir_id(m->graph.at[g], n), n->label);
                return diag_fail(k->d, RLX_ERROR_EXTENT,
                                 "%s: axis %d grows when a bounded dim shrinks",
                                 op_info(n->op)->name, i);
            }
        }
    }
    return RLX_OK;
}

/* 0, 1, 2, 3, 4, 5, 8, 9, 16, 17 and so on: odd ones too, as kernels that take several elements at
 * once have another form for these. */
static int64_t next_probe(int64_t v)
{
    return v < 2 || v % 2 == 0 ? v + 1 : 2 * (v - 1);
}

/* Can a run have these sizes? */
static bool can_run_at(const struct making *k, const int64_t *size)
{
    struct diag quiet;

    diag_init(&quiet, "compile");
    return ir_check_sizes(k->mod, size, k->s->symbol_count, &quiet) == RLX_OK;
}

/* Sizes to ask kernels about beforehand, as some need more scratch for less work: for all symbols,
 * and for each alone while the others are at their bounds. */
static rlx_status choose_probes(struct making *k)
{
    const struct rlx_session *s = k->s;
    size_t n = s->symbol_count, most = 130 * (n + 1);
    int64_t *size = arena_alloc_array(&k->scratch, most, n * sizeof *size, sizeof *size);
    bool *varies = arena_array(&k->scratch, bool, n);

    if (!size || !varies)
        return diag_no_memory(k->d, most * n * sizeof *size);
    for (size_t i = 0; i < n; i++)
        varies[i] = s->key[i] == SYMBOL_KEPT;
    k->probes =
        (struct size_probes){.size = size, .symbol_count = n, .upper = s->upper, .varies = varies};
    for (size_t alone = 0; alone <= n; alone++) {
        bool more = alone == n || s->key[alone] == SYMBOL_KEPT;
        for (int64_t v = 0; more; v = next_probe(v)) {
            int64_t *row = size + k->probes.count * n;
            more = false;
            for (size_t i = 0; i < n; i++) {
                bool small = s->key[i] == SYMBOL_KEPT && (alone == n || alone == i);
                row[i] = small && v < s->upper[i] ? v : s->upper[i] - (small && s->upper[i] > 0);
                more |= small && v < s->upper[i];
            }
            k->probes.count += can_run_at(k, row);
        }
    }
    return RLX_OK;
}

static rlx_status size_at_bounds(struct making *k)
{
    struct rlx_session *s = k->s;

    TRY(check_growth(k));
    for (size_t i = 0; i < s->symbol_count; i++)
        s->upper[i] = s->key[i] == SYMBOL_KEPT ? s->bound[i] : s->key[i];
    TRY(choose_probes(k));
    k->symbolic = k->mod;
    k->mod = NULL;
    return ir_bind(k->symbolic, s->upper, s->symbol_count, &s->host, &k->mod, k->d);
}

static rlx_status make_program(struct making *k)
{
    struct rlx_session *s = k->s;

    k->stage.plan.saved = k->reuse.plan;
    const struct program_desc desc = {
        .backend = s->device->backend,
        .mem = &s->host,
        .plan = k->stage.plan,
        .select = k->stage.select,
        .weights = s->store->plain ? NULL : &s->store->memory,
        .state = &s->state,
        .symbol_count = s->symbol_count,
        .plan_only = s->plan_only,
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

static void after_pass(void *user, const struct pass *pass, const struct ir_module *m,
                       uint64_t changes)
{
    struct making *k = user;

    k->s->compiled.passes++;
    compile_watch_pass(&k->watch, pass, m, changes);
}

static rlx_status optimise(struct making *k)
{
    struct rlx_session *s = k->s;
    struct pass_options options = k->stage.pass;
    struct fold_eval fold;

    fold_eval_init(&fold, &s->host, s->device->backend);
    options.eval = fold_eval_node;
    options.eval_user = &fold;
    options.after = after_pass;
    options.after_user = k;
    rlx_status status = pass_all(k->mod, &k->target, &options, k->d);
    fold_eval_free(&fold);
    if (status == RLX_ERROR_UNSUPPORTED)
        stages_log_dispatch(s->model, &k->target, &k->stage.pass);
    TRY(status);
    compile_watch_passed(&k->watch, k->mod);
    return pass_leaves_first(k->mod, k->d);
}

/* From an optimised graph to a program. The graph itself is kept, for those who save it. */
static rlx_status finish(struct making *k)
{
    TRY(ir_module_copy(k->mod, &k->s->host, &k->out->optimised, k->d));
    TRY(split(k));
    if (!ir_module_is_static(k->mod))
        TRY(size_at_bounds(k));
    return make_program(k);
}

/* What is there of a program that was not finished. */
static void drop(struct making *k)
{
    session_program_destroy(k->out);
    ir_module_destroy(k->mod);
    ir_module_destroy(k->symbolic);
    k->mod = k->symbolic = NULL;
    k->fixed = (struct static_part){0};
}

/* What a cache has may turn out useless as late as this: then the passes are made after all. An
 * artefact that does is damaged, unless it was made for larger buffers than there are here: passes
 * join less where these are small. */
static rlx_status finish_saved(struct making *k, bool *made)
{
    bool final = k->reuse.from == REUSE_ARTEFACT && k->reuse.must_fit;
    struct ir_module *bound = k->mod;
    struct diag own, *d = k->d;
    rlx_error why = {0};

    diag_init(&own, "compile");
    k->mod = k->reuse.mod;
    k->d = final ? d : &own;
    rlx_status status = ir_adopt_dims(k->mod, bound->dims, k->d);
    if (status == RLX_OK)
        status = dispatch_check(k->mod, &k->target, k->d);
    if (status == RLX_OK)
        status = finish(k);
    k->d = d;
    *made = status == RLX_OK;
    if (*made) {
        ir_module_destroy(bound);
        return RLX_OK;
    }
    drop(k);
    k->mod = bound;
    if (final)
        return status;
    diag_report(&own, &why);
    if (status == RLX_ERROR_MEMORY ||
        (k->reuse.from == REUSE_ARTEFACT && status != RLX_ERROR_LIMIT)) {
        return diag_again(d, &why, status);
    }
    reuse_failed(k->s, &own);
    k->reuse = (struct reuse){0};
    return RLX_OK;
}

/* The graph of a stranger's file is only compared: the passes' own is the program's. */
static rlx_status derive(struct making *k)
{
    rlx_status status = optimise(k);

    if (status == RLX_OK)
        status = reuse_compare(k->s, &k->reuse, k->mod, k->d);
    ir_module_destroy(k->reuse.mod);
    k->reuse.mod = NULL;
    return status == RLX_OK ? finish(k) : status;
}

static void choose_options(struct making *k)
{
    struct stage_options *o = &k->stage;
    uint64_t own = k->target.alignment, asked = k->s->debug.alignment;

    stage_options_of(&k->s->desc, o);
    o->pass.verify_passes |= CHECK_ALWAYS;
    o->plan.check_plan |= CHECK_ALWAYS;
    o->plan.align = asked ? asked : own;
    o->select.slot_align = asked < own ? asked : 0;
}

static rlx_status make(struct making *k)
{
    struct rlx_session *s = k->s;
    bool made = false;

    k->target = s->target;
    choose_options(k);
    TRY(bind(k));
    TRY(check_customs(k));
    compile_watch_bound(&k->watch, k->mod);
    TRY(list_inputs(k));
    TRY(reuse_find(s, k->mod, &k->scratch, &k->reuse, k->d));
    if (k->reuse.mod && k->reuse.derive) {
        TRY(derive(k));
        made = true;
    } else if (k->reuse.mod) {
        TRY(finish_saved(k, &made));
    }
    if (!made) {
        TRY(optimise(k));
        TRY(finish(k));
    }
    return reuse_done(s, &k->reuse, k->out, k->d);
}

/* Where the compiler itself ran out of what it may have, that is the failure. */
static rlx_status make_within_bound(struct making *k)
{
    struct mem_bound *b = &k->s->host_bound;
    struct diag own, *d = k->d;
    rlx_error why = {0};

    diag_init(&own, "compile");
    atomic_store(&b->refused, false);
    k->d = &own;
    rlx_status status = make(k);
    k->d = d;
    if (status == RLX_OK)
        return RLX_OK;
    if (status == RLX_ERROR_MEMORY && atomic_load(&b->refused))
        return diag_fail(d, status, "compiling takes more than %zu bytes of the host's memory, %s",
                         b->most,
                         k->s->desc.memory_limit ? "which memory_limit allows"
                                                 : "out of proportion to the model");
    diag_report(&own, &why);
    return diag_again(d, &why, status);
}

void session_program_destroy(struct session_program *p)
{
    const rlx_allocator *mem = p->mem;

    readers_leave(p);
    program_destroy(p->program);
    ir_module_destroy(p->optimised);
    ir_module_destroy(p->fixed.mod);
    mem_free(mem, p->fixed.pack, p->fixed.count * sizeof *p->fixed.pack);
    mem_free(mem, p->fixed.leaf, p->fixed.count * sizeof *p->fixed.leaf);
    p->program = NULL;
    p->optimised = NULL;
    p->fixed = (struct static_program){0};
}

rlx_status compile(struct rlx_session *s, struct session_program *out, struct diag *d)
{
    const rlx_allocator *mem = &s->host;
    struct making k = {.s = s, .out = out, .d = d};

    *out = (struct session_program){.mem = mem};
    compile_watch_begin(&k.watch, s->model->ctx, s->device->backend, &k.target, &k.stage.pass,
                        &k.stage.select.joint);
    arena_init(&k.scratch, mem);
    rlx_status status = make_within_bound(&k);
    if (status == RLX_OK && s->store->plain)
        status = readers_join(s->store, out, d);
    ir_module_destroy(k.mod);
    ir_module_destroy(k.symbolic);
    arena_free(&k.scratch);
    compile_watch_end(&k.watch, status == RLX_OK ? out->program : NULL);
    if (status != RLX_OK)
        session_program_destroy(out);
    return status;
}
