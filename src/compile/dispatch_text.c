/* dispatch_text.c: who runs which op, as text; and what plans call nodes. */
#include "base/str.h"
#include "compile/reports.h"
#include "pass/dispatch.h"

void dispatch_text(const struct ir_module *mod, const struct target *t,
                   const struct pass_options *o, struct text *out)
{
    struct dispatch_report r;
    struct diag d;

    diag_init(&d, "dispatch");
    if (!mod || dispatch_inspect(mod, t, o, true, &r, &d) != RLX_OK)
        return;
    dispatch_print(&r, out);
    dispatch_free(&r);
}

rlx_status dispatch_of(const struct ir_module *mod, struct backend *backend, bool json,
                       struct text *out, struct diag *d)
{
    static const struct pass_options defaults;
    struct dispatch_report r;
    struct target target;

    backend->ops->describe(backend, &target);
    TRY(dispatch_inspect(mod, &target, &defaults, true, &r, d));
    (json ? dispatch_print_json : dispatch_print)(&r, out);
    dispatch_free(&r);
    return RLX_OK;
}

void log_dispatch(const struct rlx_context *ctx, const struct ir_module *mod,
                  const struct target *t, const struct pass_options *o)
{
    struct text text;

    if (!ctx->log)
        return;
    text_init(&text, &ctx->mem);
    dispatch_text(mod, t, o, &text);
    if (!text.failed && text.len)
        context_log_text(ctx, 2, (rlx_str){text.at, text.len});
    text_free(&text);
}

rlx_str plan_node_name(void *user, int32_t node)
{
    const struct ir_graph *g = user;

    if (node < 0 || (size_t)node >= g->node.len)
        return STR("scratch");
    const struct ir_node *n = ir_node(g, node);
    rlx_str leaf = ir_leaf_name(n);
    return n->label.len ? n->label : leaf.len ? leaf : rlx_cstr(op_info(n->op)->name);
}
