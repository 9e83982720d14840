/* promote_params.c: named params become inputs of the same name, type and place.
 *
 *     graph (input %x: f32[2], param %w: f32[2])   =>   graph (input %x: f32[2], input %w: f32[2])
 *
 * Needs:  nothing.      Keeps: everything else. Not a pass of the pipeline: it changes what a model
 * asks of its user. */
#include "base/str.h"
#include "pass/pass.h"

static rlx_status no_such_param(const struct ir_graph *g, const char *name, struct diag *d)
{
    struct text known;

    text_init(&known, g->mod->mem);
    IR_EACH(n, g) {
        if (n->op == RLX_OP_param)
            text_addf(&known, "%s%.*s", known.len ? ", " : "", STR_ARG(ir_leaf_name(n)));
    }
    rlx_status s = known.failed ? diag_no_memory(d, known.cap)
                                : diag_fail(d, RLX_ERROR_NAME, "there is no param \"%s\"; %s%s",
                                            name, known.len ? "there are: " : "there are none",
                                            known.len ? known.at : "");
    text_free(&known);
    return s;
}

rlx_status pass_promote_params(struct ir_module *m, const char *const *names, size_t count,
                               struct diag *d)
{
    const struct ir_graph *g = ir_entry(m);
    ir_value v;

    for (size_t i = 0; i < count; i++) {
        if (!ir_find_leaf(g, rlx_cstr(names[i]), &v) || ir_node(g, v)->op != RLX_OP_param)
            return no_such_param(g, names[i], d);
        ir_node(g, v)->op = RLX_OP_input;
    }
    return ir_verify(m, d);
}
