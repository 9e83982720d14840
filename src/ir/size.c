/* size.c: a module that was bound once, for other sizes of the same symbols.
 *
 * Binding copies and infers everything; this only evaluates what is symbolic, in place, so it can
 * be done in every run. */
#include "ir/size.h"

static rlx_status resize_dim(const struct dim_table *t, ir_dim from, ir_dim *to,
                             const int64_t *size, size_t count, struct diag *d)
{
    const char *why = NULL;
    int64_t n = 0;

    if (from >= 0 || from == RLX_DIM_INFER)
        return RLX_OK; /* as it was bound */
    rlx_status s = dim_size(t, from, size, count, &n, &why);
    if (s != RLX_OK)
        return diag_fail(d, s, "a dim has no size for this run: %s", why);
    *to = n;
    return RLX_OK;
}

static rlx_status resize_attrs(const struct dim_table *t, const struct ir_node *from,
                               struct ir_node *to, const int64_t *size, size_t count,
                               struct diag *d)
{
    size_t attrs;
    const struct attr_info *a = family_attrs(op_info(from->op)->family, &attrs);

    for (size_t i = 0; i < attrs; i++) {
        const void *have = (const char *)&from->attr + a[i].offset;
        void *want = (char *)&to->attr + a[i].offset;
        if (a[i].kind == ATTR_DIM)
            TRY(resize_dim(t, *(const ir_dim *)have, want, size, count, d));
        if (a[i].kind != ATTR_DIMS)
            continue;
        const rlx_list *list = have;
        for (int32_t k = 0; k < list->count; k++)
            TRY(resize_dim(t, list->at[k], &((rlx_list *)want)->at[k], size, count, d));
    }
    return RLX_OK;
}

rlx_status ir_resize(const struct ir_module *symbolic, struct ir_module *sized, const int64_t *size,
                     size_t count, struct diag *d)
{
    const struct dim_table *t = symbolic->dims;

    for (size_t i = 0; i < symbolic->graph.len; i++) {
        const struct ir_graph *from = symbolic->graph.at[i];
        struct ir_graph *to = sized->graph.at[i];
        for (size_t k = 0; k < from->node.len; k++) {
            const struct ir_node *n = &from->node.at[k];
            for (int32_t a = 0; a < n->type.rank; a++)
                TRY(resize_dim(t, n->type.dim[a], &to->node.at[k].type.dim[a], size, count, d));
            TRY(resize_attrs(t, n, &to->node.at[k], size, count, d));
        }
    }
    return RLX_OK;
}

bool ir_check_holds(enum ir_check_kind kind, int64_t a, int64_t b)
{
    switch (kind) {
    case CHECK_EQUAL: return a == b;
    case CHECK_AT_LEAST: return a >= b;
    case CHECK_STRETCHES: return a == 1 || a == b;
    case CHECK_FILLED: return a != 0 || b == 0;
    default: return b != 0 && a % b == 0;
    }
}

rlx_status ir_check_fits(const struct ir_check *c, const struct ir_node *n, int64_t a, int64_t b,
                         struct diag *d)
{
    if (ir_check_holds(c->kind, a, b))
        return RLX_OK;
    return diag_fail(d, c->status, "%s: %s do not fit once dims have sizes: %lld and %lld",
                     op_info(n->op)->name, c->what, (long long)a, (long long)b);
}

rlx_status ir_check_sizes(const struct ir_module *m, const int64_t *size, size_t count,
                          struct diag *d)
{
    for (size_t i = 0; i < m->check.len; i++) {
        const struct ir_check *c = &m->check.at[i];
        const struct ir_node *n = ir_node(m->graph.at[c->graph], c->node);
        int64_t a = dim_eval(m->dims, c->a, size, count, NULL);
        int64_t b = dim_eval(m->dims, c->b, size, count, NULL);
        if (a < 0 || b < 0)
            continue;
        diag_at(d, op_info(n->op)->name, c->node, n->label);
        TRY(ir_check_fits(c, n, a, b, d));
    }
    diag_at(d, NULL, -1, (rlx_str){NULL, 0});
    return RLX_OK;
}
