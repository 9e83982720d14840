/* model_inline.c: a model as a part of a graph that is being built, or as all of it: rlx/graph.h.
 */
#include "base/str.h"
#include "graph/builder.h"
#include "model/store.h"
#include "pass/inline.h"
#include "rlx/graph.h"

static rlx_status check_arguments(const rlx_graph *g, const rlx_model *m,
                                  const rlx_leaf_value *bind, size_t bind_count,
                                  const rlx_value *out, size_t out_count, struct diag *d)
{
    if (!g || !m || (bind_count && !bind) || !out)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s is NULL",
                         !g     ? "g"
                         : !m   ? "m"
                         : !out ? "out"
                                : "bind");
    if (out_count != m->output_count)
        return diag_fail(d, RLX_ERROR_SIZE, "there is room for %zu outputs; the model has %zu",
                         out_count, m->output_count);
    for (size_t i = 0; i < bind_count; i++)
        if (!bind[i].name)
            return diag_fail(d, RLX_ERROR_ARGUMENT, "the name of binding %zu is NULL", i);
    return RLX_OK;
}

static rlx_status put_in(rlx_graph *g, const rlx_model *m, const rlx_leaf_value *bind,
                         size_t bind_count, rlx_value *out, struct diag *d)
{
    const rlx_allocator *mem = &g->ctx->mem;
    size_t bytes = (bind_count + 1) * sizeof(struct inline_binding);
    struct inline_binding *to = mem_alloc(mem, bytes);

    if (!to)
        return diag_no_memory(d, bytes);
    for (size_t i = 0; i < bind_count; i++)
        to[i] = (struct inline_binding){rlx_cstr(bind[i].name), bind[i].value};
    rlx_status s = inline_check_names(m->mod, to, bind_count, d);
    if (s == RLX_OK)
        s = inline_module(g->g, m->mod, to, bind_count, out, d);
    mem_free(mem, to, bytes);
    return s;
}

rlx_status rlx_graph_inline(rlx_graph *g, const rlx_model *m, const rlx_leaf_value *bind,
                            size_t bind_count, rlx_value *out, size_t out_count, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "build");
    if (check_arguments(g, m, bind, bind_count, out, out_count, &d) == RLX_OK &&
        model_is_whole(m, "be part of a graph", &d) == RLX_OK)
        put_in(g, m, bind, bind_count, out, &d);
    return diag_report(&d, err);
}

/* ---- a graph to build on ---- */

static rlx_status take_over(rlx_graph *g, const rlx_model *m, struct diag *d)
{
    const rlx_allocator *mem = &g->ctx->mem;
    size_t count = m->output_count, bytes = (count + 1) * sizeof(rlx_value);
    rlx_value *out = mem_alloc(mem, bytes);
    rlx_status s = out ? RLX_OK : diag_no_memory(d, bytes);

    if (s == RLX_OK)
        s = inline_module(g->g, m->mod, NULL, 0, out, d);
    for (size_t i = 0; s == RLX_OK && i < count; i++)
        s = ir_add_output(g->g, out[i], d);
    mem_free(mem, out, bytes);
    return s;
}

rlx_status rlx_graph_from_model(const rlx_model *m, rlx_graph **out, rlx_error *err)
{
    rlx_graph *g;
    struct diag d;

    diag_init(&d, "build");
    if (!m || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", m ? "out" : "m");
    else if (model_is_whole(m, "be a graph to build on", &d) == RLX_OK &&
             graph_create(m->ctx, &g, &d) == RLX_OK) {
        if (take_over(g, m, &d) == RLX_OK)
            *out = g;
        else
            graph_destroy(g);
    }
    return diag_report(&d, err);
}
