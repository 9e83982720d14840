/* text_print.c: a module in the text form, in one canonical order. */
#include <inttypes.h>
#include <string.h>

#include "ir/text/text_impl.h"

enum { LINE_WIDTH = 100 };

struct printer {
    const struct ir_module *mod;
    const struct text_print_options *options;
    struct text *out;
    struct arena scratch;
    struct diag *diag;
};

/* ---- dims ---------------------------------------------------------------------------------- */

enum { MOST_SYMBOLS = 1024 }; /* in one expression: dims are no larger */

static void mark_symbols(const struct ir_module *m, const ir_dim *dim, int32_t count, bool *used,
                         size_t *found)
{
    for (int32_t i = 0; i < count; i++) {
        size_t n =
            dim_is_static(dim[i]) ? 0 : dim_unbound(m->dims, dim[i], NULL, 0, found, MOST_SYMBOLS);
        while (n)
            used[found[--n]] = true;
    }
}

static void mark_node(const struct ir_module *m, const struct ir_node *n, bool *used, size_t *found)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(n->op)->family, &count);

    mark_symbols(m, n->type.dim, n->type.rank, used, found);
    for (size_t i = 0; i < count; i++) {
        const void *at = (const char *)&n->attr + a[i].offset;
        const rlx_list *list = at;
        if (a[i].kind == ATTR_DIM)
            mark_symbols(m, at, 1, used, found);
        else if (a[i].kind == ATTR_DIMS)
            mark_symbols(m, list->at, list->count, used, found);
    }
}

/* Those that are used or bounded, by number: so they keep their order when parsed, and with it the
 * order of terms in every expression. */
static rlx_status print_symbols(struct printer *p)
{
    const struct ir_module *m = p->mod;
    size_t symbols = dim_symbol_count(m->dims);
    bool *used = arena_array(&p->scratch, bool, symbols);
    size_t *found = arena_array(&p->scratch, size_t, MOST_SYMBOLS);

    if (!used || !found)
        return diag_no_memory(p->diag, symbols);
    for (size_t i = 0; i < m->graph.len; i++)
        IR_EACH(n, m->graph.at[i]) {
            mark_node(m, n, used, found);
        }
    for (size_t i = 0; i < symbols; i++) {
        int64_t bound = dim_symbol_bound(m->dims, i);
        if (!used[i] && !bound)
            continue;
        text_add(p->out, STR("dim "));
        text_add(p->out, dim_symbol_name(m->dims, i));
        if (bound)
            text_addf(p->out, " <= %" PRId64, bound);
        text_add(p->out, STR("\n"));
    }
    return RLX_OK;
}

/* ---- graphs -------------------------------------------------------------------------------- */

static void print_leaf(struct printer *p, const struct text_names *names, const struct ir_node *n,
                       ir_value id)
{
    text_addf(p->out, "%s %%", op_info(n->op)->name);
    text_add(p->out, names->name[id]);
    if (!str_eq(ir_leaf_name(n), names->name[id])) {
        text_add(p->out, STR(" "));
        text_print_string(ir_leaf_name(n), p->out);
    }
    text_add(p->out, STR(": "));
    ir_print_type(p->mod, &n->type, p->out);
}

/* On the graph's line if they fit there, else on a line each. */
static void print_leaves(struct printer *p, const struct ir_graph *g,
                         const struct text_names *names, size_t line_begin)
{
    struct text *out = p->out;
    size_t begin = out->len;

    for (int lines = 0; lines < 2; lines++) {
        out->len = out->failed ? out->len : begin;
        for (size_t i = 0; i < names->leaves; i++) {
            if (i)
                text_add(out, lines ? STR(",") : STR(", "));
            if (lines)
                text_add(out, STR("\n    "));
            print_leaf(p, names, ir_node(g, names->order[i]), names->order[i]);
        }
        if (out->failed || out->len - line_begin + sizeof ") {" - 1 <= LINE_WIDTH)
            break;
        if (lines)
            text_add(out, STR("\n"));
    }
}

static void print_values(struct printer *p, const struct text_names *names, const ir_value *v,
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        text_add(p->out, i ? STR(", %") : STR(" %"));
        text_add(p->out, names->name[v[i]]);
    }
}

static void print_node(struct printer *p, const struct text_names *names, const struct ir_node *n,
                       ir_value id)
{
    struct text *out = p->out;

    text_add(out, STR("    %"));
    text_add(out, names->name[id]);
    text_add(out, STR(" = "));
    if (n->op == RLX_OP_const) {
        text_print_const(p->mod, n, p->options, out);
        text_add(out, STR("\n"));
        return;
    }
    text_addf(out, "%s", op_info(n->op)->name);
    print_values(p, names, n->in, (size_t)n->in_count);
    size_t before = out->len;
    text_add(out, STR(" "));
    ir_print_attrs(p->mod, n->op, &n->attr, out);
    if (!out->failed && out->len == before + 1)
        out->len = before; /* there were none */
    if (p->options->types) {
        text_add(out, STR(": "));
        ir_print_type(p->mod, &n->type, out);
    }
    text_add(out, STR("\n"));
}

static rlx_status print_graph(struct printer *p, const struct ir_graph *g)
{
    struct text *out = p->out;
    struct text_names names;
    size_t line_begin = out->len;

    TRY(text_name_values(g, &p->scratch, &names, p->diag));
    text_add(out, STR("graph "));
    if (g->id != 0 || text_is_name(g->name)) {
        text_add(out, STR("@"));
        text_print_graph_name(p->mod, g->id, out);
        text_add(out, STR(" "));
    }
    text_add(out, STR("("));
    print_leaves(p, g, &names, line_begin);
    text_add(out, STR(") {\n"));
    for (size_t i = names.leaves; i < g->node.len; i++)
        print_node(p, &names, ir_node(g, names.order[i]), names.order[i]);
    text_add(out, STR("    return"));
    print_values(p, &names, g->output.at, g->output.len);
    text_add(out, STR("\n}\n"));
    return RLX_OK;
}

static rlx_status print_module(struct printer *p)
{
    text_add(p->out, STR("rlx 1\n"));
    TRY(print_symbols(p));
    for (size_t i = 0; i < p->mod->graph.len; i++) {
        if (i)
            text_add(p->out, STR("\n"));
        TRY(print_graph(p, p->mod->graph.at[i]));
    }
    return p->out->failed ? diag_no_memory(p->diag, 0) : RLX_OK;
}

rlx_status ir_print(const struct ir_module *m, const struct text_print_options *o, struct text *out,
                    struct diag *d)
{
    static const struct text_print_options plain = {0};
    struct printer p = {.mod = m, .options = o ? o : &plain, .out = out, .diag = d};

    arena_init(&p.scratch, m->mem);
    rlx_status s = print_module(&p);
    arena_free(&p.scratch);
    return s;
}
