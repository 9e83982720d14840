/* compile.c: the compiler, in order. Read this first.
 *
 *     bind     symbols get their sizes; everything is inferred and checked again
 *     passes   rewrite, expand what the device has no kernels for       (pass/pipeline.c)
 *     select   nodes become steps: kernel, operands, scratch            (lower/select.c)
 *     plan     lifetimes over the steps, an offset for every value      (plan/plan.c)
 *     load     memory, constants, addresses into the steps              (run/program.c) */
#include <stdio.h>

#include "api/objects.h"
#include "pass/pass.h"

#ifdef NDEBUG
enum { CHECK_ALWAYS = false };
#else
enum { CHECK_ALWAYS = true }; /* debug builds verify every plan */
#endif

/* Params lie where the store has them, states where the session has them; both were laid out for
 * the model's own graph, whose leaves keep their names through every pass. */
static uint64_t leaf_offset(void *user, const struct ir_node *leaf)
{
    const struct rlx_session *s = user;
    const struct rlx_model *m = s->model;
    ir_value v;

    if (!ir_find_leaf(ir_entry(m->mod), ir_leaf_name(leaf), &v))
        return 0;
    if (leaf->op == RLX_OP_state)
        return s->state_offset[v];
    for (size_t i = 0; i < m->param_count; i++)
        if (m->param[i].node == v)
            return m->param[i].offset;
    return 0;
}

static rlx_status list_inputs(const struct ir_module *mod, struct arena *arena,
                              struct program_slot **out, size_t *count, struct diag *d)
{
    const struct ir_graph *g = ir_entry(mod);
    size_t n = 0;

    *count = ir_inputs(g, NULL, 0);
    *out = arena_array(arena, struct program_slot, *count);
    if (!*out)
        return diag_no_memory(d, *count * sizeof **out);
    IR_EACH(node, g) {
        if (node->op == RLX_OP_input)
            (*out)[n++] = (struct program_slot){ir_leaf_name(node), node->type, -1};
    }
    return RLX_OK;
}

static void pass_options_of(const rlx_session_desc *desc, struct pass_options *out)
{
    *out = (struct pass_options){
        .no_optimize = desc->no_optimize,
        .no_fold = desc->no_fold,
        .no_cse = desc->no_cse,
        .no_fusion = desc->no_fusion,
        .no_matmul_fusion = desc->no_matmul_fusion,
        .no_residual_fusion = desc->no_residual_fusion,
        .no_weight_concat = desc->no_weight_concat,
        .no_regions = desc->no_regions,
        .no_static_pack = desc->no_static_pack,
        .assert_fusion_clean = desc->assert_fusion_clean,
        .precision = desc->precision,
        .precision_map = desc->precision_map,
        .dispatch = desc->dispatch,
    };
}

static rlx_status lower(struct rlx_session *s, struct ir_module *mod, struct arena *scratch,
                        struct program **out, struct diag *d)
{
    struct target target;
    struct pass_options options;
    struct backend *b = s->device->backend;
    struct program_slot *inputs;
    size_t input_count;

    b->ops->describe(b, &target);
    struct program_desc desc = {
        .backend = b,
        .mem = &s->model->ctx->mem,
        .plan = {.align = s->desc.alignment ? s->desc.alignment : target.alignment,
                 .no_reuse = s->desc.no_reuse,
                 .no_in_place = s->desc.no_in_place,
                 .check = s->desc.check_plan || CHECK_ALWAYS},
        .select = {.check_indices = s->desc.check_indices, .loop_limit = s->desc.loop_limit},
        .weights = s->store->buffer,
        .state = s->state,
        .leaf_offset = leaf_offset,
        .user = s,
    };
    pass_options_of(&s->desc, &options);
    rlx_status status = list_inputs(mod, scratch, &inputs, &input_count, d);
    if (status == RLX_OK)
        status = pass_all(mod, &target, &options, d);
    if (status != RLX_OK) {
        ir_module_destroy(mod);
        return status;
    }
    return program_create(&desc, mod, inputs, input_count, out, d);
}

static void log_program(const rlx_context *ctx, const struct program *p)
{
    char line[160];

    if (!ctx->log)
        return;
    snprintf(line, sizeof line, "compiled %zu steps; activations %llu bytes, lower bound %llu",
             p->steps->step_count, (unsigned long long)p->plan->size[REGION_ACTS],
             (unsigned long long)p->plan->lower_bound);
    ctx->log(ctx->log_user, 2, line);
}

rlx_status compile(struct rlx_session *s, const int64_t *binding, size_t count,
                   struct program **out, struct diag *d)
{
    const rlx_allocator *mem = &s->model->ctx->mem;
    struct ir_module *mod; /* the model's own stays as it was */
    struct arena scratch;

    TRY(ir_bind(s->model->mod, binding, count, mem, &mod, d));
    arena_init(&scratch, mem);
    rlx_status status = lower(s, mod, &scratch, out, d);
    arena_free(&scratch);
    if (status == RLX_OK)
        log_program(s->model->ctx, *out);
    return status;
}
