/* dims.c: the symbolic dims of a model: by name, and with the sizes that a run gives them. */
#include "model/dims.h"
#include "base/desc.h"

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

/* ---- asked from outside ---- */

/* A leaf of that kind, or an output; RLX_NO_VALUE: there is none. */
static ir_value find_io(const rlx_model *m, rlx_io_kind kind, size_t i)
{
    const struct ir_graph *g = ir_entry(m->mod);
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};
    ir_value v;

    if (rlx_model_io(m, kind, i, &info, NULL) != RLX_OK)
        return RLX_NO_VALUE;
    if (kind == RLX_IO_OUTPUT)
        return i < g->output.len ? g->output.at[i] : RLX_NO_VALUE;
    return ir_find_leaf(g, info.name, &v) ? v : RLX_NO_VALUE;
}

const char *rlx_model_io_type(const rlx_model *m, rlx_io_kind kind, size_t i, char *out,
                              size_t size)
{
    ir_value v = m ? find_io(m, kind, i) : RLX_NO_VALUE;
    struct text type;

    if (!out || !size)
        return "";
    out[0] = 0;
    if (v == RLX_NO_VALUE)
        return out;
    text_init(&type, &m->ctx->mem);
    ir_print_type(m->mod, ir_type_of(ir_entry(m->mod), v), &type);
    snprintf(out, size, "%s", type.at ? type.at : "");
    text_free(&type);
    return out;
}

/* Is it part of the shape of an input that something reads? leads: the first axis of one. */
static bool is_of_inputs(const rlx_model *m, size_t symbol, bool *leads)
{
    const struct ir_graph *g = ir_entry(m->mod);
    bool found = false;

    *leads = false;
    IR_EACH(n, g) {
        if (n->op != RLX_OP_input || !model_is_input(m, ir_id(g, n)) || !m->used[ir_id(g, n)])
            continue;
        for (int32_t a = 0; a < n->type.rank; a++) {
            bool uses = !dim_is_static(n->type.dim[a]) && n->type.dim[a] != RLX_DIM_UNKNOWN &&
                        dim_uses(m->mod->dims, n->type.dim[a], symbol);
            found |= uses;
            *leads |= uses && a == 0;
        }
    }
    return found;
}

static bool is_used(const rlx_model *m, size_t symbol)
{
    return dim_symbol_name(m->mod->dims, symbol).len && dim_symbol_is_used(m->mod->dims, symbol);
}

size_t rlx_model_dim_count(const rlx_model *m)
{
    size_t count = 0;

    for (size_t i = 0; m && i < dim_symbol_count(m->mod->dims); i++)
        count += is_used(m, i);
    return count;
}

static rlx_status list_dims(const rlx_model *m, const rlx_run_desc *run, int64_t *size,
                            size_t symbols, rlx_dim_info *out, struct diag *d)
{
    size_t count = 0;

    TRY(bind_shapes(m, run, size, symbols, d));
    for (size_t i = 0; i < symbols; i++) {
        if (!is_used(m, i))
            continue;
        rlx_dim_info *info = &out[count++];
        *info = (rlx_dim_info){.name = dim_symbol_name(m->mod->dims, i),
                               .size = size[i],
                               .bound = dim_symbol_bound(m->mod->dims, i)};
        info->of_input = is_of_inputs(m, i, &info->leads);
    }
    return RLX_OK;
}

rlx_status rlx_model_dims(const rlx_model *m, const rlx_run_desc *run, rlx_dim_info *out,
                          rlx_error *err)
{
    rlx_run_desc own = {RLX_SIZED(rlx_run_desc)};
    struct diag d;

    diag_init(&d, "model");
    if (!m || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", m ? "out" : "m");
    else if (DESC_READ(rlx_run_desc, &own, run, &d) == RLX_OK) {
        size_t symbols = dim_symbol_count(m->mod->dims), bytes = symbols * sizeof(int64_t);
        int64_t *size = mem_alloc(&m->ctx->mem, bytes);
        if (size)
            list_dims(m, &own, size, symbols, out, &d);
        else
            diag_no_memory(&d, bytes);
        mem_free(&m->ctx->mem, size, bytes);
    }
    return diag_report(&d, err);
}
