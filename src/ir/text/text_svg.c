/* text_svg.c: a graph as a picture that any browser shows.
 *
 * A box per chain of nodes (text_fold.h), from the inputs at the top to the outputs at the bottom:
 * the ops, the weights and constants they read, the value's name, its type. Colours tell what feeds
 * the graph from what computes. What is cut for room is whole in the tooltip. */
#include <string.h>

#include "ir/text/text_fold.h"
#include "ir/text/text_impl.h"

enum {
    MAX_LINES = 28,
    MAX_COLUMNS = 36,
    SHOWN_ELEMENTS = 4,
    CHAIN_SHOWN = 8, /* ops of a longer chain: the first and the last few */
    CHAIN_LAST = 3,
    WORDS_SHOWN = 3, /* weights and constants of one op */
};
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

enum style { LINE_OP, LINE_NAME, LINE_WORD, LINE_ATTR, LINE_TYPE };
static const char *const styles[] = {
    [LINE_OP] = " class=\"op\">",     [LINE_NAME] = ">",
    [LINE_WORD] = " class=\"word\">", [LINE_ATTR] = " class=\"attr\">",
    [LINE_TYPE] = " class=\"type\">",
};

struct card {
    struct {
        const char *text;
        enum style style;
    } line[MAX_LINES];
    int lines, colour;
    const char *tip; /* all of it; NULL: nothing more than what the lines say */
};

struct drawing {
    const struct ir_graph *graph;
    struct arena *arena;
    struct text *out;
    struct text_names names;
    struct fold fold;
    struct card *card; /* of the fold's boxes, then of outputs */
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

static size_t columns_of(rlx_str rest)
{
    size_t count = 0;

    while (rest.len) {
        size_t step = str_utf8_step(rest);
        step = step ? step : 1;
        rest = (rlx_str){rest.ptr + step, rest.len - step};
        count++;
    }
    return count;
}

/* How many bytes the first, or the last, `most` characters take. */
static size_t bytes_of(rlx_str s, size_t most)
{
    size_t end = 0;

    for (; end < s.len && most > 0; most--) {
        size_t step = str_utf8_step((rlx_str){s.ptr + end, s.len - end});
        end += step ? step : 1;
    }
    return end;
}

/* The text as a line of the card, cut to what a card is wide, a name at its beginning; an empty one
 * is left out. */
static bool add_line(struct arena *arena, struct card *c, enum style style, struct text *t)
{
    rlx_str s = {t->at, t->len};
    size_t wide = t->failed || !s.len ? 0 : columns_of(s);

    if (t->failed)
        return false;
    if (s.len && c->lines < MAX_LINES) {
        const char *line;
        if (wide <= MAX_COLUMNS) {
            line = arena_printf(arena, "%.*s", STR_ARG(s));
        } else if (style == LINE_NAME) {
            size_t skip = bytes_of(s, wide - MAX_COLUMNS + 1);
            line = arena_printf(arena, "\xe2\x80\xa6%.*s", (int)(s.len - skip), s.ptr + skip);
        } else {
            line =
                arena_printf(arena, "%.*s\xe2\x80\xa6", (int)bytes_of(s, MAX_COLUMNS - 1), s.ptr);
        }
        if (!line)
            return false;
        c->line[c->lines].text = line;
        c->line[c->lines++].style = style;
    }
    t->len = 0;
    return true;
}

static rlx_str name_of(const struct drawing *w, ir_value id)
{
    return fold_name(w->graph, &w->names, id);
}

/* The elements of a small constant. */
static bool print_elements(const struct ir_graph *g, const struct ir_node *n, struct text *t)
{
    size_t before = t->len;
    int64_t count;

    if (n->op != RLX_OP_const || !type_count(&n->type, &count) || count > SHOWN_ELEMENTS)
        return false;
    text_print_const(g->mod, n, &(struct text_print_options){.elide = true}, t);
    const char *brace = t->failed ? NULL : strchr(t->at + before, '{');
    if (brace) { /* what stands before it is the type */
        size_t left = strlen(brace);
        memmove(t->at + before, brace, left + 1);
        t->len = before + left;
    }
    return true;
}

/* A weight or a constant in the box of its reader. */
static void print_word(const struct drawing *w, ir_value id, struct text *t)
{
    const struct ir_node *n = ir_node(w->graph, id);
    rlx_str name = name_of(w, fold_source(w->graph, id));

    if (!print_elements(w->graph, n, t)) {
        size_t skip = columns_of(name) > MAX_COLUMNS / 2 ? columns_of(name) - MAX_COLUMNS / 2 : 0;
        size_t from = bytes_of(name, skip);
        text_addf(t, "%s%.*s", skip ? "\xe2\x80\xa6" : "", (int)(name.len - from), name.ptr + from);
    }
    text_add(t, STR(" "));
    ir_print_type(w->graph->mod, &n->type, t);
}

static bool add_words(struct drawing *w, const struct ir_node *n, struct card *c, struct text *t)
{
    int32_t words = 0;
    bool ok = true;

    for (int32_t i = 0; i < n->in_count && ok; i++) {
        if (w->fold.box_of[n->in[i]] >= 0)
            continue;
        if (words++ < WORDS_SHOWN) {
            print_word(w, n->in[i], t);
            ok = add_line(w->arena, c, LINE_WORD, t);
        }
    }
    if (ok && words > WORDS_SHOWN) {
        text_addf(t, "and %d more", words - WORDS_SHOWN);
        ok = add_line(w->arena, c, LINE_WORD, t);
    }
    return ok;
}

/* One node of a chain: its op, what it is set to, what it reads besides the chain. */
static bool add_node(struct drawing *w, ir_value id, struct card *c, struct text *t)
{
    const struct ir_node *n = ir_node(w->graph, id);
    bool ok;

    text_addf(t, "%s", op_info(n->op)->name);
    ok = add_line(w->arena, c, LINE_OP, t);
    if (!op_is(n->op, OP_LEAF))
        ir_print_attrs(w->graph->mod, n->op, &n->attr, t);
    else if (n->op == RLX_OP_const)
        print_elements(w->graph, n, t);
    ok = ok && add_line(w->arena, c, LINE_ATTR, t);
    return ok && add_words(w, n, c, t);
}

/* Every node of the box, a line each, whole. */
static const char *make_tip(struct drawing *w, size_t box, struct text *t)
{
    for (int32_t i = w->fold.first[box]; i < w->fold.first[box + 1]; i++) {
        const struct ir_node *n = ir_node(w->graph, w->fold.node[i]);
        rlx_str name = name_of(w, w->fold.node[i]);
        text_addf(t, "%s%%%.*s = %s", i > w->fold.first[box] ? "\n" : "", STR_ARG(name),
                  op_info(n->op)->name);
        for (int32_t k = 0; k < n->in_count; k++) {
            rlx_str operand = name_of(w, n->in[k]);
            text_addf(t, "%s %%%.*s", k ? "," : "", STR_ARG(operand));
        }
        if (!op_is(n->op, OP_LEAF)) {
            text_add(t, STR(" "));
            ir_print_attrs(w->graph->mod, n->op, &n->attr, t);
        }
        text_add(t, STR(" : "));
        ir_print_type(w->graph->mod, &n->type, t);
    }
    const char *tip = t->failed ? NULL : arena_printf(w->arena, "%.*s", (int)t->len, t->at);
    t->len = 0;
    return tip;
}

static bool make_card(struct drawing *w, size_t box, struct card *c)
{
    int32_t first = w->fold.first[box], count = w->fold.first[box + 1] - first;
    int32_t skipped = count > CHAIN_SHOWN ? count - CHAIN_SHOWN : 0;
    ir_value last = w->fold.node[first + count - 1];
    struct text t;
    bool ok = true;

    text_init(&t, w->graph->mod->mem);
    c->colour = PLAIN;
    for (int32_t i = 0; i < count && ok; i++) {
        ir_value id = w->fold.node[first + i];
        int colour = colour_of(ir_node(w->graph, id));
        c->colour = colour != PLAIN ? colour : c->colour;
        if (skipped && i >= CHAIN_SHOWN - CHAIN_LAST && i < count - CHAIN_LAST) {
            if (i == CHAIN_SHOWN - CHAIN_LAST) {
                text_addf(&t, "\xe2\x80\xa6 %d more \xe2\x80\xa6", skipped);
                ok = add_line(w->arena, c, LINE_ATTR, &t);
            }
            continue;
        }
        ok = add_node(w, id, c, &t);
    }
    rlx_str name = name_of(w, last);
    text_addf(&t, "%%%.*s", STR_ARG(name));
    ok = ok && add_line(w->arena, c, LINE_NAME, &t);
    ir_print_type(w->graph->mod, &ir_node(w->graph, last)->type, &t);
    ok = ok && add_line(w->arena, c, LINE_TYPE, &t);
    if (ok)
        c->tip = make_tip(w, box, &t);
    text_free(&t);
    return ok && c->tip;
}

static rlx_status make_cards(struct drawing *w, struct diag *d)
{
    const struct ir_graph *g = w->graph;

    TRY(text_name_values(g, w->arena, &w->names, d));
    TRY(fold_graph(g, w->arena, &w->fold, d));
    size_t boxes = w->fold.boxes, outputs = g->output.len;
    w->card = arena_array(w->arena, struct card, boxes + outputs);
    if (!w->card)
        return diag_no_memory(d, (boxes + outputs) * sizeof *w->card);
    for (size_t i = 0; i < boxes; i++) {
        if (!make_card(w, i, &w->card[i]))
            return diag_no_memory(d, 0);
    }
    for (size_t i = 0; i < outputs; i++) {
        struct card *c = &w->card[boxes + i];
        c->line[0].text = arena_printf(w->arena, "output %zu", i);
        c->line[0].style = LINE_OP;
        c->lines = 1;
        c->colour = OUTPUT;
        if (!c->line[0].text)
            return diag_no_memory(d, 0);
    }
    return RLX_OK;
}

/* ---- places -------------------------------------------------------------------------------- */

static rlx_status place(struct drawing *w, struct diag *d)
{
    const struct ir_graph *g = w->graph;
    struct fold *f = &w->fold;
    size_t boxes = f->boxes + g->output.len;
    struct layout_box *box = arena_array(w->arena, struct layout_box, boxes);

    if (!box)
        return diag_no_memory(d, boxes * sizeof *box);
    for (size_t i = 0; i < boxes; i++) {
        size_t widest = 0;
        for (int k = 0; k < w->card[i].lines; k++) {
            size_t wide = columns_of(rlx_cstr(w->card[i].line[k].text));
            widest = wide > widest ? wide : widest;
        }
        box[i].width = (double)widest * CHAR_WIDTH + 2 * PAD_X;
        box[i].height = w->card[i].lines * LINE_HEIGHT + 2 * PAD_Y;
        box[i].floats = i < f->boxes;
    }
    for (size_t i = 0; i < f->arcs; i++) /* what reads something is below it */
        box[f->arc[i].to].floats = false;
    for (size_t i = 0; i < g->output.len; i++) /* outputs are never words: they have boxes */
        f->arc[f->arcs++] =
            (struct layout_arc){f->box_of[g->output.at[i]], (int32_t)(f->boxes + i)};
    w->layout = (struct layout){.box = box, .boxes = boxes, .arc = f->arc, .arcs = f->arcs};
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
        bool shown = step > 1 || (step == 1 && ((unsigned char)*s.ptr >= 0x20 || *s.ptr == '\n'));
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

    text_add(out, STR("<g>"));
    if (c->tip) {
        text_add(out, STR("<title>"));
        add_escaped(out, c->tip);
        text_add(out, STR("</title>"));
    }
    ADD(out, "<rect x=\"~\" y=\"~\" width=\"~\" height=\"~\" rx=\"8\"", b->x - b->width / 2, b->y,
        b->width, b->height);
    text_addf(out, " fill=\"%s\" stroke=\"%s\"/>\n", look->fill, look->edge);
    for (int i = 0; i < c->lines; i++) {
        ADD(out, "<text x=\"~\" y=\"~\"", b->x, b->y + PAD_Y + (i + 0.75) * LINE_HEIGHT);
        text_add(out, rlx_cstr(styles[c->line[i].style]));
        add_escaped(out, c->line[i].text);
        text_add(out, STR("</text>\n"));
    }
    text_add(out, STR("</g>\n"));
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
                      ".word{fill:#92400e;font-size:11px}.attr{fill:#64748b;font-size:11px}"
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
