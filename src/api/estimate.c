/* estimate.c: how much memory a model will take on a device, before anything is put there: the
 * compiler's stages up to the plan, and no further. */
#include "api/dims.h"
#include "api/objects.h"
#include "base/str.h"
#include "pass/pass.h"
#include "rlx/tools.h"

static rlx_status sizes_of(const rlx_model *m, const rlx_dim_size *dims, size_t count,
                           struct arena *arena, int64_t **out, size_t *symbols, struct diag *d)
{
    size_t symbol;

    *symbols = dim_symbol_count(m->mod->dims);
    *out = arena_array(arena, int64_t, *symbols);
    if (!*out)
        return diag_no_memory(d, *symbols * sizeof **out);
    for (size_t i = 0; i < *symbols; i++)
        (*out)[i] = -1;
    for (size_t i = 0; i < count; i++) {
        TRY(find_dim(m->mod->dims, dims[i].name, &symbol, d));
        (*out)[symbol] = dims[i].size;
    }
    return RLX_OK;
}

static uint64_t leaf_bytes(const struct ir_graph *g, rlx_op op)
{
    uint64_t sum = 0, bytes;

    IR_EACH(n, g)
        if (n->op == op && type_bytes(&n->type, &bytes))
            sum += bytes;
    return sum;
}

static rlx_status plan_module(rlx_device *dev, struct ir_module *mod, const struct target *target,
                              struct arena *arena, struct plan **out, struct diag *d)
{
    static const struct pass_options options;
    static const struct select_options select = {.pack_weights = true};
    const struct select_graph graph = {.graph = ir_entry(mod)};
    struct steps *steps;

    TRY(pass_all(mod, target, &options, d));
    TRY(lower_select(&graph, dev->backend, &select, arena, &steps, d));
    return plan_build(steps, &(struct plan_options){.align = target->alignment}, arena, out, d);
}

static rlx_status estimate(const rlx_model *m, rlx_device *dev, const rlx_dim_size *dims,
                           size_t count, uint64_t budget, struct arena *arena,
                           rlx_memory_estimate *out, struct diag *d)
{
    struct ir_module *mod;
    struct plan *plan = NULL;
    struct target target;
    int64_t *size;
    size_t symbols;

    dev->backend->ops->describe(dev->backend, &target);
    TRY(sizes_of(m, dims, count, arena, &size, &symbols, d));
    TRY(ir_bind(m->mod, size, symbols, &m->ctx->mem, &mod, d));
    rlx_memory_estimate e = {.weights = m->weight_bytes,
                             .inputs = leaf_bytes(ir_entry(mod), RLX_OP_input),
                             .states = leaf_bytes(ir_entry(mod), RLX_OP_state),
                             .budget = budget ? budget : target.memory};
    rlx_status s = plan_module(dev, mod, &target, arena, &plan, d);
    ir_module_destroy(mod);
    TRY(s);
    e.constants = plan->size[REGION_CONSTS];
    e.activations = plan->size[REGION_ACTS];
    for (size_t i = 0; i < plan->steps->packing_count; i++)
        e.weight_copies += plan->steps->value[plan->steps->packing[i].value].bytes;
    if (__builtin_add_overflow(e.weights, e.constants, &e.total) ||
        __builtin_add_overflow(e.total, e.weight_copies, &e.total) ||
        __builtin_add_overflow(e.total, e.activations, &e.total) ||
        __builtin_add_overflow(e.total, e.states, &e.total))
        return diag_fail(d, RLX_ERROR_LIMIT, "the sum of the model's memory overflows 64 bits");
    e.deficit = e.budget && e.total > e.budget ? e.total - e.budget : 0;
    *out = e;
    return RLX_OK;
}

rlx_status rlx_model_memory(const rlx_model *m, rlx_device *dev, const rlx_dim_size *dims,
                            size_t dim_count, uint64_t budget, rlx_memory_estimate *out,
                            rlx_error *err)
{
    struct diag d;
    struct arena arena;

    diag_init(&d, "memory");
    if (!m || !dev || !out || (dim_count && !dims)) {
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL",
                  !m     ? "m"
                  : !dev ? "dev"
                  : !out ? "out"
                         : "dims");
        return diag_report(&d, err);
    }
    arena_init(&arena, &m->ctx->mem);
    estimate(m, dev, dims, dim_count, budget, &arena, out, &d);
    arena_free(&arena);
    return diag_report(&d, err);
}
