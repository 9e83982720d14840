/* text_draw.c: a graph in the language of Graphviz, for those who have it: a box per chain of nodes
 * (text_fold.h). */
#include "ir/text/text_fold.h"

/* What stands between the quotes of a label. */
static void add_escaped(struct text *out, rlx_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (c == '"' || c == '\\')
            text_addf(out, "\\%c", c);
        else if (c == '\n')
            text_add(out, STR("\\n"));
        else
            text_add(out, (rlx_str){&s.ptr[i], 1});
    }
}

static const char *fill(const struct ir_node *n)
{
    switch (n->op) {
    case RLX_OP_input: return "#dbeafe";
    case RLX_OP_param: return "#fef3c7";
    case RLX_OP_state: return "#ede9fe";
    case RLX_OP_const: return "#f1f5f9";
    default: return "#ffffff";
    }
}

struct drawing {
    const struct ir_graph *graph;
    struct text_names names;
    struct fold fold;
    struct text *out;
};

static void add_name(struct drawing *w, ir_value v)
{
    add_escaped(w->out, fold_name(w->graph, &w->names, v));
}

static void add_type(struct drawing *w, ir_value v)
{
    ir_print_type(w->graph->mod, ir_type_of(w->graph, v), w->out);
}

/* A node's op and attributes, and the weights and constants that it reads: a line each. */
static void draw_node(struct drawing *w, ir_value id)
{
    const struct ir_node *n = ir_node(w->graph, id);
    struct text attrs;

    text_init(&attrs, w->graph->mod->mem);
    if (op_info(n->op)->family != FAMILY_leaf && n->op != RLX_OP_const)
        ir_print_attrs(w->graph->mod, n->op, &n->attr, &attrs);
    text_addf(w->out, "%s", op_info(n->op)->name);
    if (attrs.len) {
        text_add(w->out, STR("\\n"));
        add_escaped(w->out, (rlx_str){attrs.at, attrs.len});
    }
    for (int32_t i = 0; i < n->in_count; i++) {
        if (w->fold.box_of[n->in[i]] >= 0)
            continue;
        text_add(w->out, STR("\\n"));
        add_name(w, fold_source(w->graph, n->in[i]));
        text_add(w->out, STR(" "));
        add_type(w, n->in[i]);
    }
    text_add(w->out, STR("\\n"));
    w->out->failed |= attrs.failed;
    text_free(&attrs);
}

static void draw_box(struct drawing *w, size_t box)
{
    int32_t end = w->fold.first[box + 1];

    text_addf(w->out, "    n%zu [label=\"", box);
    for (int32_t i = w->fold.first[box]; i < end; i++)
        draw_node(w, w->fold.node[i]);
    text_add(w->out, STR("%"));
    add_name(w, w->fold.node[end - 1]);
    text_add(w->out, STR("\\n"));
    add_type(w, w->fold.node[end - 1]);
    text_addf(w->out, "\" fillcolor=\"%s\"]\n",
              fill(ir_node(w->graph, w->fold.node[w->fold.first[box]])));
}

static void draw(struct drawing *w)
{
    const struct ir_graph *g = w->graph;
    struct text *out = w->out;

    text_add(out, STR("digraph \""));
    add_escaped(out, g->name);
    text_add(out, STR("\" {\n    node [shape=box style=\"rounded,filled\" fontname=monospace]\n"));
    for (size_t i = 0; i < w->fold.boxes && !out->failed; i++)
        draw_box(w, i);
    for (size_t i = 0; i < w->fold.arcs; i++)
        text_addf(out, "    n%d -> n%d\n", w->fold.arc[i].from, w->fold.arc[i].to);
    for (size_t i = 0; i < g->output.len; i++)
        text_addf(out,
                  "    out%zu [label=\"output %zu\" fillcolor=\"#dcfce7\"]\n    n%d -> out%zu\n", i,
                  i, w->fold.box_of[g->output.at[i]], i);
    text_add(out, STR("}\n"));
}

void ir_draw_dot(const struct ir_graph *g, struct text *out)
{
    struct drawing w = {.graph = g, .out = out};
    struct arena scratch;
    struct diag d;

    diag_init(&d, "draw");
    arena_init(&scratch, g->mod->mem);
    if (text_name_values(g, &scratch, &w.names, &d) == RLX_OK &&
        fold_graph(g, &scratch, &w.fold, &d) == RLX_OK)
        draw(&w);
    else
        out->failed = true;
    arena_free(&scratch);
}
