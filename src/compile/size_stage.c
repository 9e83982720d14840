/* size_stage.c: where symbols stay, a copy of the module with their bounds in their place; and the
 * sizes at which kernels are asked beforehand what they need. */
#include "compile/compilation.h"

/* A value that grows when a symbol shrinks does not fit where the bound puts it. */
static rlx_status check_growth(struct compilation *k)
{
    const struct compile_request *r = k->request;
    const struct ir_module *m = k->mod;

    for (size_t g = 0; g < m->graph.len; g++) {
        IR_EACH(n, m->graph.at[g]) {
            for (int32_t i = 0; i < n->type.rank; i++) {
                if (dim_grows(m->dims, n->type.dim[i]))
                    continue;
                for (size_t y = 0; y < r->symbol_count && !r->desc->strict_extent; y++)
                    r->by_value[y] |=
                        r->size[y] == SYMBOL_KEPT && dim_uses(m->dims, n->type.dim[i], y);
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
static bool can_run_at(const struct compilation *k, const int64_t *size)
{
    struct diag quiet;

    diag_init(&quiet, "compile");
    return ir_check_sizes(k->mod, size, k->request->symbol_count, &quiet) == RLX_OK;
}

/* Sizes to ask kernels about beforehand, as some need more scratch for less work: for all symbols,
 * and for each alone while the others are at their bounds. */
static rlx_status choose_probes(struct compilation *k, const int64_t *upper)
{
    const struct compile_request *r = k->request;
    size_t n = r->symbol_count, most = 130 * (n + 1);
    int64_t *size = arena_alloc_array(&k->scratch, most, n * sizeof *size, sizeof *size);
    bool *varies = arena_array(&k->scratch, bool, n);

    if (!size || !varies)
        return diag_no_memory(k->d, most * n * sizeof *size);
    for (size_t i = 0; i < n; i++)
        varies[i] = r->size[i] == SYMBOL_KEPT;
    k->probes =
        (struct size_probes){.size = size, .symbol_count = n, .upper = upper, .varies = varies};
    for (size_t alone = 0; alone <= n; alone++) {
        bool more = alone == n || r->size[alone] == SYMBOL_KEPT;
        for (int64_t v = 0; more; v = next_probe(v)) {
            int64_t *row = size + k->probes.count * n;
            more = false;
            for (size_t i = 0; i < n; i++) {
                bool small = r->size[i] == SYMBOL_KEPT && (alone == n || alone == i);
                row[i] = small && v < upper[i] ? v : upper[i] - (small && upper[i] > 0);
                more |= small && v < upper[i];
            }
            k->probes.count += can_run_at(k, row);
        }
    }
    return RLX_OK;
}

rlx_status stage_size(struct compilation *k)
{
    const struct compile_request *r = k->request;

    if (ir_module_is_static(k->mod))
        return RLX_OK;
    int64_t *upper = arena_array(&k->scratch, int64_t, r->symbol_count);
    if (!upper)
        return diag_no_memory(k->d, r->symbol_count * sizeof *upper);
    TRY(check_growth(k));
    for (size_t i = 0; i < r->symbol_count; i++)
        upper[i] = r->size[i] == SYMBOL_KEPT ? r->bound[i] : r->size[i];
    TRY(choose_probes(k, upper));
    k->symbolic = k->mod;
    k->mod = NULL;
    return ir_bind(k->symbolic, upper, r->symbol_count, r->mem, &k->mod, k->d);
}
