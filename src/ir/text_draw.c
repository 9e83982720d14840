/* text_draw.c: a graph in the language of Graphviz, for those who have it. */
#include "ir/text_impl.h"

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

static void draw_node(const struct ir_graph *g, const struct text_names *names, ir_value id,
                      struct text *out)
{
    const struct ir_node *n = ir_node(g, id);
    struct text attrs;

    text_init(&attrs, g->mod->mem);
    if (op_info(n->op)->family != FAMILY_leaf && n->op != RLX_OP_const)
        ir_print_attrs(g->mod, n->op, &n->attr, &attrs);
    text_addf(out, "    n%d [label=\"%s\\n%%", id, op_info(n->op)->name);
    add_escaped(out, names->name[id]);
    if (attrs.len) {
        text_add(out, STR("\\n"));
        add_escaped(out, (rlx_str){attrs.at, attrs.len});
    }
    text_add(out, STR("\\n"));
    ir_print_type(g->mod, &n->type, out);
    text_addf(out, "\" fillcolor=\"%s\"]\n", fill(n));
    out->failed |= attrs.failed;
    text_free(&attrs);
}

void ir_draw_dot(const struct ir_graph *g, struct text *out)
{
    struct arena scratch;
    struct text_names names;

    arena_init(&scratch, g->mod->mem);
    if (text_name_values(g, &scratch, &names, NULL) != RLX_OK) {
        out->failed = true;
        arena_free(&scratch);
        return;
    }
    text_add(out, STR("digraph \""));
    add_escaped(out, g->name);
    text_add(out, STR("\" {\n    node [shape=box style=\"rounded,filled\" fontname=monospace]\n"));
    for (size_t i = 0; i < g->node.len && !out->failed; i++)
        draw_node(g, &names, (ir_value)i, out);
    IR_EACH(n, g) {
        for (int32_t i = 0; i < n->in_count; i++)
            text_addf(out, "    n%d -> n%d\n", n->in[i], ir_id(g, n));
    }
    for (size_t i = 0; i < g->output.len; i++)
        text_addf(out,
                  "    out%zu [label=\"output %zu\" fillcolor=\"#dcfce7\"]\n    n%d -> out%zu\n", i,
                  i, g->output.at[i], i);
    text_add(out, STR("}\n"));
    arena_free(&scratch);
}
