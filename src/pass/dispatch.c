/* dispatch.c: see dispatch.h. The report is made on a copy that is prepared and legalised as a
 * compile does it, without the passes that only make it faster. */
#include "pass/dispatch.h"

#include "pass/expand/expand.h"
#include "pass/facts.h"

/* ---- nodes without a kernel ---- */

static bool has_kernel(const struct target *t, const struct ir_node *n)
{
    return !t || op_is(n->op, OP_LEAF) || t->native[op_info(n->op)->family] ||
           family_is_view(op_info(n->op)->family);
}

static bool is_lowered(const struct ir_node *n)
{
    return n->op == RLX_OP_if || n->op == RLX_OP_while || n->op == RLX_OP_scan ||
           n->op == RLX_OP_custom_fn;
}

/* Will some pass take it away? */
static bool has_rewriter(const struct target *t, const struct pass_options *o,
                         const struct ir_graph *g, const struct ir_node *n)
{
    return is_lowered(n) || pass_rewrites(t, o, g, n);
}

static void note_offender(struct dispatch_report *r, const struct ir_graph *g,
                          const struct ir_node *n)
{
    struct dispatch_offender *o = &r->offender[r->offender_count++];

    *o = (struct dispatch_offender){.graph = g->id, .node = ir_id(g, n), .op = n->op};
    if (n->label.len)
        o->label = arena_str(&r->arena, n->label);
    if (n->op == RLX_OP_custom)
        o->custom =
            arena_str(&r->arena, (rlx_str){n->attr.custom.name.ptr, n->attr.custom.name.len});
}

/* Of the graphs that run. looking: before anything was rewritten. */
static rlx_status find_offenders(struct dispatch_report *r, const struct ir_module *m,
                                 const struct target *t, bool looking, struct diag *d)
{
    bool *used = arena_array(&r->arena, bool, m->graph.len);
    size_t nodes = 0;

    for (size_t i = 0; i < m->graph.len; i++)
        nodes += m->graph.at[i]->node.len;
    r->offender = arena_array(&r->arena, struct dispatch_offender, nodes);
    if (!used || !r->offender)
        return diag_no_memory(d, nodes * sizeof *r->offender);
    graphs_in_use(m, used);
    for (size_t i = 0; i < m->graph.len; i++) {
        const struct ir_graph *g = m->graph.at[i];
        for (size_t k = 0; used[i] && k < g->node.len; k++)
            if (!has_kernel(t, &g->node.at[k]) &&
                !(looking && has_rewriter(t, r->options, g, &g->node.at[k])))
                note_offender(r, g, &g->node.at[k]);
    }
    r->compile_ready = r->offender_count == 0;
    return RLX_OK;
}

static void add_offender(struct text *text, const struct dispatch_offender *o)
{
    text_addf(text, "node %d", o->node);
    if (o->graph)
        text_addf(text, " of graph %d", o->graph);
    if (o->label.len)
        text_addf(text, " %%%.*s", STR_ARG(o->label));
    text_addf(text, " (%s", op_info(o->op)->name);
    if (o->custom.len)
        text_addf(text, " \"%.*s\"", STR_ARG(o->custom));
    text_add(text, STR(")"));
}

/* One failure that lists them all, as far as it holds them, then one for each. */
static rlx_status refuse(const struct dispatch_report *r, const struct target *t, struct diag *d)
{
    struct text text;
    bool custom = false;

    text_init(&text, r->arena.mem);
    for (size_t i = 0; i < r->offender_count; i++) {
        text_add(&text, i ? STR(", ") : STR(""));
        add_offender(&text, &r->offender[i]);
        custom = custom || r->offender[i].op == RLX_OP_custom;
    }
    const struct dispatch_offender *first = &r->offender[0];
    diag_at(d, op_info(first->op)->name, first->node, first->label);
    if (text.failed)
        diag_no_memory(d, text.cap);
    else
        diag_fail(d, RLX_ERROR_UNSUPPORTED, "%s has no kernel for %zu node%s%s: %s", t->backend,
                  r->offender_count, r->offender_count == 1 ? "" : "s",
                  custom ? " (a custom op needs a kernel for it in its rlx_custom_op)" : "",
                  text.at);
    for (size_t i = 0; !text.failed && r->offender_count > 1 && i < r->offender_count; i++) {
        const struct dispatch_offender *o = &r->offender[i];
        diag_at(d, op_info(o->op)->name, o->node, o->label);
        diag_fail(d, RLX_ERROR_UNSUPPORTED, "%s has no kernel for %s", t->backend,
                  op_info(o->op)->name);
    }
    rlx_status s = text.failed ? RLX_ERROR_MEMORY : RLX_ERROR_UNSUPPORTED;
    text_free(&text);
    return s;
}

rlx_status dispatch_check(const struct ir_module *m, const struct target *t, struct diag *d)
{
    struct dispatch_report r = {.backend = t->backend};
    bool clean = true;

    for (size_t i = 0; i < m->graph.len; i++)
        IR_EACH(n, m->graph.at[i])
            clean = clean && has_kernel(t, n);
    if (clean)
        return RLX_OK;
    arena_init(&r.arena, m->mem);
    rlx_status s = find_offenders(&r, m, t, false, d);
    if (s == RLX_OK && r.offender_count)
        s = refuse(&r, t, d);
    arena_free(&r.arena);
    return s;
}

/* ---- the report ---- */

static const char *handler_of(const struct target *t, const struct pass_options *o,
                              const struct ir_graph *g, const struct ir_node *n)
{
    if (n->op == RLX_OP_custom_fn)
        return "inline-custom-fn";
    if (is_lowered(n) && !has_kernel(t, n))
        return "lower-control-flow";
    return pass_rewrites(t, o, g, n) ? rewriter_of(op_info(n->op)->family)->name : NULL;
}

static bool is_offender(const struct dispatch_report *r, rlx_op op)
{
    for (size_t i = 0; i < r->offender_count; i++)
        if (r->offender[i].op == op)
            return true;
    return false;
}

static void classify(struct dispatch_row *row, const struct dispatch_report *r)
{
    const struct rewriter *w = rewriter_of(op_info(row->op)->family);

    row->logical = w && w->when == REWRITE_LOGICAL;
    if (row->logical && row->rewriter)
        row->path = DISPATCH_COMMON;
    else if (is_offender(r, row->op))
        row->path = DISPATCH_UNSUPPORTED;
    else if (row->rewriter)
        row->path = DISPATCH_REWRITTEN;
    else
        row->path = DISPATCH_NATIVE;
}

static void fill_rows(struct dispatch_report *r, const struct ir_module *m, const struct target *t)
{
    struct dispatch_row by_op[RLX_OP_count] = {{0}};

    for (size_t i = 0; i < m->graph.len; i++)
        IR_EACH(n, m->graph.at[i]) {
            const char *handler = handler_of(t, r->options, m->graph.at[i], n);
            by_op[n->op].count++;
            if (handler)
                by_op[n->op].rewriter = handler;
        }
    for (int op = 0; op < RLX_OP_count; op++) {
        if (by_op[op].count == 0 || op_is((rlx_op)op, OP_LEAF))
            continue;
        by_op[op].op = (rlx_op)op;
        classify(&by_op[op], r);
        r->row[r->row_count++] = by_op[op];
    }
}

/* What a compile must do before the device can run it. */
static rlx_status legalise(struct ir_module *m, const struct target *t,
                           const struct pass_options *o, struct diag *d)
{
    static const char *const needed[] = {"inline-custom-fn", "lower-control-flow", "expand"};

    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        TRY(pass_one(pass_find(rlx_cstr(needed[i])), m, t, o, NULL, d));
    return RLX_OK;
}

static rlx_status inspect(const struct ir_module *m, const struct target *t, bool rewrite,
                          struct dispatch_report *r, struct diag *d)
{
    struct ir_module *after = NULL;
    rlx_status s = RLX_OK;

    r->row = arena_array(&r->arena, struct dispatch_row, RLX_OP_count);
    if (!r->row)
        return diag_no_memory(d, RLX_OP_count * sizeof *r->row);
    for (int op = 1; op < RLX_OP_count; op++)
        r->claims += t && !op_is((rlx_op)op, OP_LEAF) && t->native[op_info((rlx_op)op)->family];
    if (rewrite)
        s = ir_module_copy(m, m->mem, &after, d);
    if (s == RLX_OK && rewrite)
        s = legalise(after, t, r->options, d);
    if (s == RLX_OK)
        s = find_offenders(r, rewrite ? after : m, t, !rewrite, d);
    if (s == RLX_OK)
        fill_rows(r, m, t);
    ir_module_destroy(after);
    return s;
}

rlx_status dispatch_inspect(const struct ir_module *m, const struct target *t,
                            const struct pass_options *o, bool rewrite, struct dispatch_report *out,
                            struct diag *d)
{
    *out = (struct dispatch_report){
        .backend = t ? t->backend : "none", .policy = o->dispatch, .options = o};
    arena_init(&out->arena, m->mem);
    rlx_status s = inspect(m, t, rewrite, out, d);
    if (s != RLX_OK)
        dispatch_free(out);
    return s;
}

void dispatch_free(struct dispatch_report *r)
{
    arena_free(&r->arena);
    r->row = NULL;
    r->offender = NULL;
    r->row_count = r->offender_count = 0;
}
