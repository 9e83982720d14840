/* text_svg.c: a graph as a picture that any browser shows.
 *
 * A box per node, from the inputs at the top to the outputs at the bottom: the op, the value's
 * name, the attributes, the type. Colours tell what feeds the graph from what computes. */
#include <string.h>

#include "ir/text_impl.h"
#include "ir/text_layout.h"

enum { MAX_LINES = 4, MAX_COLUMNS = 44, SHOWN_ELEMENTS = 4 };
static const double LINE_HEIGHT = 16, CHAR_WIDTH = 7.25, PAD_X = 14, PAD_Y = 9, HEADER = 62;

struct colours {
    const char *name, *fill, *edge;
};

enum { INPUT, PARAM, STATE, CONST, HEAVY, PLAIN, OUTPUT, COLOURS };
static const struct colours colours[COLOURS] = {
    [INPUT] = {"input", "#dbeafe", "#2563eb"},    [PARAM] = {"param", "#fef3c7", "#d97706"},
    [STATE] = {"state", "#ede9fe", "#7c3aed"},    [CONST] = {"const", "#f1f5f9", "#64748b"},
    [HEAVY] = {"heavy op", "#ffe4e6", "#be123c"}, [PLAIN] = {"op", "#ffffff", "#475569"},
    [OUTPUT] = {"output", "#dcfce7", "#15803d"},
};

struct card {
    const char *line[MAX_LINES]; /* the first is set bold */
    int lines, colour;
};

struct drawing {
    const struct ir_graph *graph;
    struct arena *arena;
    struct text *out;
    struct card *card; /* of nodes, then of outputs */
    struct layout layout;
};

/* ---- cards --------------------------------------------------------------------------------- */

static int colour_of(const struct ir_node *n)
{
    switch (n->op) {
    case RLX_OP_input: return INPUT;
    case RLX_OP_param: return PARAM;
    case RLX_OP_state: return STATE;
    case RLX_OP_const: return CONST;
    default: break;
    }
    switch (op_info(n->op)->category) {
    case CATEGORY_CONTRACTION:
    case CATEGORY_WINDOW:
    case CATEGORY_SEQUENCE:
    case CATEGORY_FUSED: return HEAVY;
    default: return PLAIN;
    }
}

static size_t columns(const char *s)
{
    rlx_str rest = rlx_cstr(s);
    size_t count = 0;

    while (rest.len) {
        size_t step = str_utf8_step(rest);
        step = step ? step : 1;
        rest = (rlx_str){rest.ptr + step, rest.len - step};
        count++;
    }
    return count;
}

/* The text as a line of the card, cut to what a card is wide; an empty one is left out. */
static bool add_line(struct arena *arena, struct card *c, struct text *t)
{
    rlx_str s = {t->at, t->len};
    size_t count = 0, end = 0;

    if (t->failed)
        return false;
    while (end < s.len && count < MAX_COLUMNS) {
        size_t step = str_utf8_step((rlx_str){s.ptr + end, s.len - end});
        end += step ? step : 1;
        count++;
    }
    if (s.len) {
        c->line[c->lines] =
            arena_printf(arena, "%.*s%s", (int)end, s.ptr, end < s.len ? "\xe2\x80\xa6" : "");
        if (!c->line[c->lines++])
            return false;
    }
    t->len = 0;
    return true;
}

static void print_details(const struct ir_graph *g, const struct ir_node *n, struct text *t)
{
    rlx_str name = ir_leaf_name(n);
    int64_t count;

    if (name.len) {
        text_print_string(name, t);
    } else if (n->op != RLX_OP_const) {
        ir_print_attrs(g->mod, n->op, &n->attr, t);
    } else if (type_count(&n->type, &count) && count <= SHOWN_ELEMENTS) {
        size_t before = t->len;
        text_print_const(g->mod, n, &(struct text_print_options){.elide = true}, t);
        const char *brace = t->failed ? NULL : strchr(t->at + before, '{');
        if (brace) { /* what stands before it is the type */
            size_t left = strlen(brace);
            memmove(t->at + before, brace, left + 1);
            t->len = before + left;
        }
    }
}

static bool make_card(const struct ir_graph *g, const struct text_names *names, ir_value id,
                      struct arena *arena, struct card *c)
{
    const struct ir_node *n = ir_node(g, id);
    struct text t;

    text_init(&t, g->mod->mem);
    c->colour = colour_of(n);
    text_addf(&t, "%s", op_info(n->op)->name);
    bool ok = add_line(arena, c, &t);
    text_addf(&t, "%%%.*s", STR_ARG(names->name[id]));
    ok = ok && add_line(arena, c, &t);
    if (!str_eq(ir_leaf_name(n), names->name[id]))
        print_details(g, n, &t);
    ok = ok && add_line(arena, c, &t);
    ir_print_type(g->mod, &n->type, &t);
    ok = ok && add_line(arena, c, &t);
    text_free(&t);
    return ok;
}

static rlx_status make_cards(struct drawing *w, struct diag *d)
{
    const struct ir_graph *g = w->graph;
    size_t nodes = g->node.len, outputs = g->output.len;
    struct text_names names;

    TRY(text_name_values(g, w->arena, &names, d));
    w->card = arena_array(w->arena, struct card, nodes + outputs);
    if (!w->card)
        return diag_no_memory(d, (nodes + outputs) * sizeof *w->card);
    for (size_t i = 0; i < nodes; i++) {
        if (!make_card(g, &names, (ir_value)i, w->arena, &w->card[i]))
            return diag_no_memory(d, 0);
    }
    for (size_t i = 0; i < outputs; i++) {
        struct card *c = &w->card[nodes + i];
        c->line[0] = arena_printf(w->arena, "output %zu", i);
        c->lines = 1;
        c->colour = OUTPUT;
        if (!c->line[0])
            return diag_no_memory(d, 0);
    }
    return RLX_OK;
}

/* ---- places -------------------------------------------------------------------------------- */

static rlx_status place(struct drawing *w, struct diag *d)
{
    const struct ir_graph *g = w->graph;
    size_t nodes = g->node.len, boxes = nodes + g->output.len, arcs = g->output.len;

    IR_EACH(n, g) {
        arcs += (size_t)n->in_count;
    }
    struct layout_box *box = arena_array(w->arena, struct layout_box, boxes);
    struct layout_arc *arc = arena_array(w->arena, struct layout_arc, arcs);
    if (!box || !arc)
        return diag_no_memory(d, boxes * sizeof *box);
    for (size_t i = 0; i < boxes; i++) {
        size_t widest = 0;
        for (int k = 0; k < w->card[i].lines; k++) {
            size_t wide = columns(w->card[i].line[k]);
            widest = wide > widest ? wide : widest;
        }
        box[i].width = (double)widest * CHAR_WIDTH + 2 * PAD_X;
        box[i].height = w->card[i].lines * LINE_HEIGHT + 2 * PAD_Y;
        box[i].floats = i < nodes && op_is(g->node.at[i].op, OP_LEAF);
    }
    arcs = 0;
    IR_EACH(n, g) {
        for (int32_t i = 0; i < n->in_count; i++) {
            bool again = false; /* x*x: one arrow is enough */
            for (int32_t k = 0; k < i && k < 16; k++)
                again |= n->in[k] == n->in[i];
            if (!again)
                arc[arcs++] = (struct layout_arc){n->in[i], ir_id(g, n)};
        }
    }
    for (size_t i = 0; i < g->output.len; i++)
        arc[arcs++] = (struct layout_arc){g->output.at[i], (int32_t)(nodes + i)};
    w->layout = (struct layout){.box = box, .boxes = boxes, .arc = arc, .arcs = arcs};
    return layout_place(&w->layout, w->arena, d);
}

/* ---- the picture --------------------------------------------------------------------------- */

/* Tenths are fine enough, and a "%f" would follow the locale. */
static void add_number(struct text *out, double v)
{
    int64_t tenths = (int64_t)(v * 10 + (v < 0 ? -0.5 : 0.5));

    text_addf(out, "%s%lld", tenths < 0 ? "-" : "",
              (long long)(tenths < 0 ? -tenths : tenths) / 10);
    if (tenths % 10)
        text_addf(out, ".%lld", (long long)(tenths < 0 ? -tenths : tenths) % 10);
}

/* Text with numbers: each '~' takes the next one. */
static void add_with(struct text *out, const char *format, const double *number, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t len = strcspn(format, "~");
        text_add(out, (rlx_str){format, len});
        add_number(out, number[i]);
        format += len + (format[len] == '~');
    }
    text_add(out, rlx_cstr(format));
}
#define ADD(out, format, ...)                                \
    add_with((out), (format), (const double[]){__VA_ARGS__}, \
             sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static void add_escaped(struct text *out, const char *text)
{
    for (rlx_str s = rlx_cstr(text); s.len;) {
        size_t step = str_utf8_step(s);
        bool shown = step > 1 || (step == 1 && (unsigned char)*s.ptr >= 0x20);
        step = step ? step : 1;
        switch (*s.ptr) {
        case '&': text_add(out, STR("&amp;")); break;
        case '<': text_add(out, STR("&lt;")); break;
        case '>': text_add(out, STR("&gt;")); break;
        default: text_add(out, shown ? (rlx_str){s.ptr, step} : STR("?"));
        }
        s = (rlx_str){s.ptr + step, s.len - step};
    }
}

static void draw_line(struct text *out, const struct layout_line *l)
{
    double bend = (l->y1 - l->y0) / 2;

    if (l->x0 == l->x1)
        ADD(out, "<path d=\"M~ ~V~\"", l->x0, l->y0, l->y1);
    else
        ADD(out, "<path d=\"M~ ~C~ ~ ~ ~ ~ ~\"", l->x0, l->y0, l->x0, l->y0 + bend, l->x1,
            l->y1 - bend, l->x1, l->y1);
    text_add(out, l->arrow ? STR(" marker-end=\"url(#a)\"/>\n") : STR("/>\n"));
}

static void draw_card(struct text *out, const struct card *c, const struct layout_box *b)
{
    const struct colours *look = &colours[c->colour];

    ADD(out, "<rect x=\"~\" y=\"~\" width=\"~\" height=\"~\" rx=\"8\"", b->x - b->width / 2, b->y,
        b->width, b->height);
    text_addf(out, " fill=\"%s\" stroke=\"%s\"/>\n", look->fill, look->edge);
    for (int i = 0; i < c->lines; i++) {
        ADD(out, "<text x=\"~\" y=\"~\"", b->x, b->y + PAD_Y + (i + 0.75) * LINE_HEIGHT);
        text_add(out, i == 0              ? STR(" class=\"op\">")
                      : i == c->lines - 1 ? STR(" class=\"type\">")
                                          : STR(">"));
        add_escaped(out, c->line[i]);
        text_add(out, STR("</text>\n"));
    }
}

/* What the picture shows, and what its colours mean. */
static double draw_header(const struct drawing *w, struct text *out)
{
    const struct ir_graph *g = w->graph;
    struct text title;
    double x = 24;

    text_init(&title, g->mod->mem);
    text_addf(&title, "graph %.*s", STR_ARG(g->name));
    text_add(out, STR("<text x=\"24\" y=\"28\" class=\"title\">"));
    add_escaped(out, title.at ? title.at : "graph");
    text_add(out, STR("</text>\n"));
    out->failed |= title.failed;
    text_free(&title);
    for (int i = 0; i < COLOURS; i++) {
        bool there = false;
        for (size_t k = 0; k < w->layout.boxes && !there; k++)
            there = w->card[k].colour == i;
        if (!there)
            continue;
        ADD(out, "<rect x=\"~\" y=\"40\" width=\"14\" height=\"14\" rx=\"4\"", x);
        text_addf(out, " fill=\"%s\" stroke=\"%s\"/>\n", colours[i].fill, colours[i].edge);
        ADD(out, "<text x=\"~\" y=\"51\" class=\"key\">", x + 20);
        text_addf(out, "%s</text>\n", colours[i].name);
        x += 40 + (double)strlen(colours[i].name) * CHAR_WIDTH;
    }
    return x;
}

static void draw(struct drawing *w)
{
    struct text header, *out = w->out;

    text_init(&header, w->graph->mod->mem);
    double wide = draw_header(w, &header);
    double width = w->layout.width > wide ? w->layout.width : wide;
    double height = w->layout.height + HEADER;
    double left = (width - w->layout.width) / 2;

    ADD(out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"~\" height=\"~\" "
        "viewBox=\"0 0 ~ ~\">\n",
        width, height, width, height);
    text_add(out, STR("<style>text{font:12px monospace;text-anchor:middle;fill:#0f172a}"
                      ".op{font-weight:bold}.type{fill:#475569}"
                      ".key{text-anchor:start}.title{font-size:16px;text-anchor:start}</style>\n"
                      "<marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7.5\" refY=\"4\" "
                      "markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\">"
                      "<path d=\"M0 0.8L8 4L0 7.2Z\" fill=\"#64748b\"/></marker>\n"
                      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"));
    text_add(out, (rlx_str){header.at, header.len});
    out->failed |= header.failed;
    text_free(&header);
    ADD(out, "<g transform=\"translate(~ ~)\">\n", left, HEADER - 10);
    text_add(out, STR("<g fill=\"none\" stroke=\"#64748b\" stroke-width=\"1.3\">\n"));
    for (size_t i = 0; i < w->layout.lines && !out->failed; i++)
        draw_line(out, &w->layout.line[i]);
    text_add(out, STR("</g>\n"));
    for (size_t i = 0; i < w->layout.boxes && !out->failed; i++)
        draw_card(out, &w->card[i], &w->layout.box[i]);
    text_add(out, STR("</g>\n</svg>\n"));
}

rlx_status ir_draw_svg(const struct ir_graph *g, struct text *out, struct diag *d)
{
    struct arena arena;
    struct drawing w = {.graph = g, .arena = &arena, .out = out};

    arena_init(&arena, g->mod->mem);
    rlx_status s = make_cards(&w, d);
    if (s == RLX_OK)
        s = place(&w, d);
    if (s == RLX_OK)
        draw(&w);
    arena_free(&arena);
    if (s == RLX_OK && out->failed)
        return diag_no_memory(d, 0);
    return s;
}
