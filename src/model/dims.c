/* dims.c: the symbolic dims of a model: by name, and with the sizes that a run gives them. */
#include "model/dims.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "ir/text/text.h"
#include "rlx/tools.h"

rlx_status refuse_leaf(const struct rlx_model *m, const char *what, rlx_op op, rlx_str name,
                       struct diag *d)
{
    const struct ir_graph *g = ir_entry(m->mod);
    rlx_nearest near = {.wanted = name};
    char known[200], hint[RLX_NEAREST_HINT];

    IR_EACH(n, g)
        if (n->op == op)
            rlx_nearest_offer(&near, ir_leaf_name(n));
    return diag_fail(d, RLX_ERROR_NAME, "there is no %s \"%.*s\"; there are: %s%s", what,
                     STR_ARG(name), leaf_names(g, op, known, sizeof known),
                     rlx_nearest_hint(&near, hint));
}

rlx_status refuse_output(const struct rlx_model *m, rlx_str name, struct diag *d)
{
    rlx_nearest near = {.wanted = name};
    char hint[RLX_NEAREST_HINT];

    for (size_t i = 0; i < m->output_count; i++)
        rlx_nearest_offer(&near, m->output_name[i]);
    return diag_fail(d, RLX_ERROR_NAME,
                     "there is no output \"%.*s\"; the first of %zu is \"%.*s\"%s", STR_ARG(name),
                     m->output_count, STR_ARG(m->output_name[0]), rlx_nearest_hint(&near, hint));
}

rlx_status refuse_shape(const struct rlx_model *m, const char *what, rlx_str name,
                        const struct ir_type *want, const rlx_tensor *given, struct diag *d)
{
    struct ir_type is = {.dtype = given->dtype, .rank = given->rank};
    struct text a, b;

    memcpy(is.dim, given->dim, sizeof is.dim);
    text_init(&a, &m->ctx->mem);
    text_init(&b, &m->ctx->mem);
    ir_print_type(m->mod, want, &a);
    if (is.rank >= 0 && is.rank <= RLX_MAX_RANK && (unsigned)is.dtype < RLX_DTYPE_count)
        ir_print_type(m->mod, &is, &b);
    rlx_status s =
        diag_fail(d, RLX_ERROR_SHAPE, "%s \"%.*s\": %s is wanted, %s was given", what,
                  STR_ARG(name), a.at ? a.at : "another shape", b.at ? b.at : "something else");
    text_free(&a);
    text_free(&b);
    return s;
}

/* ---- what sizes a model has ---- */

/* A leaf of that kind, or an output; RLX_NO_VALUE: there is none. */
static ir_value find_io(const rlx_model *m, rlx_io_kind kind, size_t i)
{
    const struct ir_graph *g = ir_entry(m->mod);
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};
    struct diag quiet;
    ir_value v;

    diag_init(&quiet, "model");
    if (model_io(m, kind, i, &info, &quiet) != RLX_OK)
        return RLX_NO_VALUE;
    if (kind == RLX_IO_OUTPUT)
        return i < g->output.len ? g->output.at[i] : RLX_NO_VALUE;
    return ir_find_leaf(g, info.name, &v) ? v : RLX_NO_VALUE;
}

void model_io_type(const struct rlx_model *m, rlx_io_kind kind, size_t i, char *out, size_t size)
{
    ir_value v = find_io(m, kind, i);
    struct text type;

    out[0] = 0;
    if (v == RLX_NO_VALUE)
        return;
    text_init(&type, &m->ctx->mem);
    ir_print_type(m->mod, ir_type_of(ir_entry(m->mod), v), &type);
    snprintf(out, size, "%s", type.at ? type.at : "");
    text_free(&type);
}

bool model_uses_dim(const struct rlx_model *m, size_t symbol)
{
    return dim_symbol_name(m->mod->dims, symbol).len && dim_symbol_is_used(m->mod->dims, symbol);
}

size_t model_dim_count(const struct rlx_model *m)
{
    size_t count = 0;

    for (size_t i = 0; i < dim_symbol_count(m->mod->dims); i++)
        count += model_uses_dim(m, i);
    return count;
}
