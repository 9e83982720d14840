/* svg.c: a plan as a picture. Time goes to the right, offsets go up, a slot is a box.
 *
 *     title: arena, lower bound, ratio; what else takes memory besides the arena
 *     +---------------+--+ arena
 *     +- - - - - - - -|- + lower bound
 *     |      +--------+  |
 *     +------+-----------+ steps
 *
 * What a box cannot say inside is in its tooltip. A slot that is taken over in place changes colour
 * halfway through the step that does it, at a dotted edge. */
#include <stdio.h>

#include "plan/report.h"

enum {
    WIDTH = 1280,
    HEIGHT = 778,
    LEFT = 96,
    RIGHT = 24,
    TOP = 102,
    BOTTOM = 60,
    PLOT_W = WIDTH - LEFT - RIGHT,
    PLOT_H = HEIGHT - TOP - BOTTOM,
    X_TICKS = 12,     /* at most */
    Y_TICKS = 10,     /* at most */
    CHAR_WIDTH = 65,  /* of a label, in tenths of a pixel */
    LINE_HEIGHT = 13, /* of a label, in pixels */
};

static const struct {
    const char *fill, *edge;
} palette[8] = {
    {"#a9cdee", "#3d7cb5"}, {"#fbd3a0", "#c07a1f"}, {"#b7e0ae", "#4c9141"}, {"#f3b4b0", "#bf4a44"},
    {"#cfc0e8", "#7558ad"}, {"#f6e58d", "#a78f12"}, {"#a8e0dc", "#2f8f89"}, {"#e3c9b3", "#8f6642"},
};
static const char scratch_fill[] = "#e2e5e9", scratch_edge[] = "#8b939d";

struct drawing {
    struct report r;
    struct text *out;
    uint64_t bytes; /* the top of the plot */
    double t0, t1;  /* positions at its left and right edge */
    bool *taken;    /* by value: an in-place step took its slot over */
};

/* ---- numbers; never through printf's %f, which follows the locale ---- */

static void add_tenths(struct text *out, int64_t tenths)
{
    if (tenths < 0) {
        text_add(out, STR("-"));
        tenths = -tenths;
    }
    text_addf(out, tenths % 10 ? "%lld.%lld" : "%lld", (long long)(tenths / 10),
              (long long)(tenths % 10));
}

static int64_t x_of(const struct drawing *w, double position) /* in tenths of a pixel */
{
    return LEFT * 10 + (int64_t)((position - w->t0) / (w->t1 - w->t0) * PLOT_W * 10 + 0.5);
}

static int64_t y_of(const struct drawing *w, uint64_t offset)
{
    return (TOP + PLOT_H) * 10 - (int64_t)((double)offset / (double)w->bytes * PLOT_H * 10 + 0.5);
}

static void attr(struct text *out, const char *name, int64_t tenths)
{
    text_addf(out, " %s=\"", name);
    add_tenths(out, tenths);
    text_add(out, STR("\""));
}

/* ---- text ---- */

/* Escaped; what XML does not allow, and bytes that are not UTF-8, become U+FFFD. */
static void add_escaped(struct text *out, rlx_str s)
{
    while (s.len > 0) {
        size_t n = str_utf8_step(s);
        unsigned char c = (unsigned char)s.ptr[0];
        if (n == 0 || c < 0x20 || c == 0x7f ||
            (n == 3 && c == 0xef && s.len >= 3 && (unsigned char)s.ptr[1] == 0xbf &&
             (unsigned char)s.ptr[2] >= 0xbe))
            text_add(out, STR("\xef\xbf\xbd"));
        else if (c == '&')
            text_add(out, STR("&amp;"));
        else if (c == '<')
            text_add(out, STR("&lt;"));
        else if (c == '>')
            text_add(out, STR("&gt;"));
        else if (c == '"')
            text_add(out, STR("&quot;"));
        else
            text_add(out, (rlx_str){s.ptr, n});
        n = n ? n : 1;
        s = (rlx_str){s.ptr + n, s.len - n};
    }
}

static size_t characters(rlx_str s)
{
    size_t count = 0;
    for (; s.len > 0; count++) {
        size_t n = str_utf8_step(s);
        n = n ? n : 1;
        s = (rlx_str){s.ptr + n, s.len - n};
    }
    return count;
}

static void add_ratio(struct text *out, uint64_t a, uint64_t b)
{
    uint64_t thousandths = b ? (uint64_t)((double)a / (double)b * 1000 + 0.5) : 1000;
    text_addf(out, "%llu.%03llu", (unsigned long long)(thousandths / 1000),
              (unsigned long long)(thousandths % 1000));
}

/* ---- frame ---- */

/* What a program takes in total, of which the arena is one part. */
static void draw_regions(const struct plan *p, struct text *out)
{
    static const struct {
        enum region region;
        const char *name;
    } part[] = {{REGION_WEIGHTS, "weights"},
                {REGION_OUTSIDE, "their copies"},
                {REGION_CONSTS, "constants"},
                {REGION_ACTS, "arena"},
                {REGION_STATE, "states"}};
    const char *between = "";

    text_addf(out, "<text x=\"%d\" y=\"70\" fill=\"#5b6470\">%llu bytes in all: ", LEFT,
              (unsigned long long)report_total(p));
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
        unsigned long long bytes = p->held[part[i].region];
        if (bytes == 0 && part[i].region != REGION_ACTS)
            continue;
        text_addf(out, "%s%s %llu", between, part[i].name, bytes);
        between = ", ";
    }
    text_add(out, STR("</text>\n"));
}

static void draw_head(const struct drawing *w)
{
    const struct plan *p = w->r.p;
    struct text *out = w->out;

    text_addf(out,
              "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
              "viewBox=\"0 0 %d %d\" font-family=\"Helvetica, Arial, sans-serif\" "
              "font-size=\"12\" fill=\"#22262b\">\n",
              WIDTH, HEIGHT, WIDTH, HEIGHT);
    text_addf(out, "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", WIDTH, HEIGHT);
    text_addf(out, "<text x=\"%d\" y=\"32\" font-size=\"18\" font-weight=\"bold\">arena ", LEFT);
    report_bytes(out, p->held[REGION_ACTS]);
    text_add(out, STR(", lower bound "));
    report_bytes(out, p->lower_bound);
    text_add(out, STR(", ratio "));
    add_ratio(out, p->held[REGION_ACTS], p->lower_bound);
    text_addf(out, "</text>\n<text x=\"%d\" y=\"52\" fill=\"#5b6470\">%zu slots, ", LEFT,
              w->r.count - p->in_place);
    report_bytes(out, p->unshared);
    text_addf(out, " if nothing were shared; method: %s", p->method ? p->method : "none");
    if (p->in_place > 0)
        text_addf(out, "; %u values in place of an input (dotted edges)", p->in_place);
    text_add(out, STR("</text>\n"));
    draw_regions(p, out);
    text_addf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#fafbfc\"/>\n", LEFT,
              TOP, PLOT_W, PLOT_H);
}

static void draw_line(const struct drawing *w, int64_t x1, int64_t y1, int64_t x2, int64_t y2,
                      const char *style)
{
    text_add(w->out, STR("<line"));
    attr(w->out, "x1", x1);
    attr(w->out, "y1", y1);
    attr(w->out, "x2", x2);
    attr(w->out, "y2", y2);
    text_addf(w->out, " %s/>\n", style);
}

static void begin_label(const struct drawing *w, int64_t x, int64_t y, const char *style)
{
    text_add(w->out, STR("<text"));
    attr(w->out, "x", x);
    attr(w->out, "y", y);
    text_addf(w->out, " %s>", style);
}

/* The smallest of 1, 2, 5, 10, 20, ... that cuts span into at most `most` pieces. */
static uint64_t tick_decimal(uint64_t span, unsigned most)
{
    uint64_t step = 1;
    for (unsigned i = 0; span / step > most; i++)
        step = i % 3 == 1 ? step / 2 * 5 : step * 2;
    return step;
}

static uint64_t tick_binary(uint64_t span, unsigned most)
{
    uint64_t step = 1;
    while (span / step > most)
        step *= 2;
    return step;
}

static const char grid[] = "stroke=\"#e4e7eb\"";
static const char axis[] = "stroke=\"#5b6470\"";

static void draw_axes(const struct drawing *w)
{
    int64_t left = LEFT * 10, right = (LEFT + PLOT_W) * 10;
    int64_t top = TOP * 10, bottom = (TOP + PLOT_H) * 10;
    uint64_t step = tick_binary(w->bytes, Y_TICKS);

    for (uint64_t b = 0; b <= w->bytes; b += step) {
        int64_t y = y_of(w, b);
        draw_line(w, left - 40, y, right, y, grid);
        begin_label(w, left - 80, y + 40, "text-anchor=\"end\" fill=\"#5b6470\"");
        report_bytes(w->out, b);
        text_add(w->out, STR("</text>\n"));
        if (w->bytes - b < step)
            break; /* b + step might wrap */
    }
    step = tick_decimal((uint64_t)(w->t1 - w->t0), X_TICKS);
    int64_t first = (int64_t)w->t0;
    int64_t rest = first % (int64_t)step;
    for (int64_t t = first - rest + (rest > 0 ? (int64_t)step : 0); (double)t <= w->t1;
         t += (int64_t)step) {
        int64_t x = x_of(w, (double)t);
        draw_line(w, x, bottom, x, bottom + 50, axis);
        begin_label(w, x, bottom + 190, "text-anchor=\"middle\" fill=\"#5b6470\"");
        text_addf(w->out, "%lld</text>\n", (long long)t);
    }
    draw_line(w, left, bottom, right, bottom, axis);
    draw_line(w, left, top, left, bottom, axis);
    begin_label(w, right, bottom + 420, "text-anchor=\"end\" fill=\"#5b6470\"");
    text_add(w->out, STR("position in the schedule, in steps</text>\n"));
    text_addf(w->out,
              "<text transform=\"translate(20 %d) rotate(-90)\" text-anchor=\"end\" "
              "fill=\"#5b6470\">offset in the arena</text>\n",
              TOP);
}

static void draw_marks(const struct drawing *w)
{
    const struct plan *p = w->r.p;
    int64_t left = LEFT * 10, right = (LEFT + PLOT_W) * 10;
    int64_t top = TOP * 10, bottom = (TOP + PLOT_H) * 10;
    int64_t x1 = x_of(w, p->peak), x2 = x_of(w, (double)p->peak + 1), x = (x1 + x2) / 2;
    int64_t y = y_of(w, p->lower_bound);
    const char *anchor = x < left + PLOT_W * 10 / 2 ? "start" : "end";

    text_add(w->out, STR("<g pointer-events=\"none\">\n"));
    draw_line(w, left, y, right, y,
              "stroke=\"#c0262d\" stroke-width=\"1.5\" stroke-dasharray=\"7 4\"");
    text_add(w->out, STR("<rect"));
    attr(w->out, "x", x1);
    attr(w->out, "y", top);
    attr(w->out, "width", x2 - x1 > 10 ? x2 - x1 : 10);
    attr(w->out, "height", bottom - top);
    text_add(w->out, STR(" fill=\"#c0262d\" fill-opacity=\"0.12\"/>\n"));
    draw_line(w, x, top - 60, x, bottom,
              "stroke=\"#c0262d\" stroke-width=\"1\" stroke-dasharray=\"2 3\"");
    text_add(w->out, STR("<text"));
    attr(w->out, "x", x + (anchor[0] == 's' ? 50 : -50));
    attr(w->out, "y", top - 60);
    text_addf(w->out, " text-anchor=\"%s\" fill=\"#c0262d\">peak: ", anchor);
    report_bytes(w->out, p->lower_bound);
    text_addf(w->out, " live at step %d (the lower bound, dashed)</text>\n</g>\n", p->peak);
}

/* ---- boxes ---- */

struct box {
    int64_t x, y, w, h; /* tenths of a pixel */
};

static struct box box_of(const struct drawing *w, const struct value *v)
{
    double from = v->birth + (v->shares >= 0 ? 0.5 : 0.0);
    double to = v->death + (w->taken[report_id(&w->r, v)] ? 0.5 : 1.0);
    int64_t x1 = x_of(w, from), x2 = x_of(w, to);
    int64_t y1 = y_of(w, v->offset + v->bytes), y2 = y_of(w, v->offset);
    return (struct box){x1, y1, x2 - x1, y2 - y1};
}

static void draw_tooltip(const struct drawing *w, const struct value *v)
{
    const struct value *all = w->r.p->steps->value;
    rlx_str name = report_name(&w->r, v);

    text_add(w->out, STR("<title>"));
    report_node(&w->r, v);
    if (name.len > 0) {
        text_add(w->out, STR(" "));
        add_escaped(w->out, name);
    }
    text_addf(w->out, "\n%llu bytes at %llu (", (unsigned long long)v->bytes,
              (unsigned long long)v->offset);
    report_bytes(w->out, v->bytes);
    text_addf(w->out, ")\nalive in steps %d to %d", v->birth, v->death);
    if (v->shares >= 0) {
        text_add(w->out, STR("\nin place of "));
        report_node(&w->r, &all[v->shares]);
    }
    if (v->flags & VALUE_INPUT)
        text_add(w->out, STR("\ninput"));
    if (v->flags & VALUE_OUTPUT)
        text_add(w->out, STR("\noutput"));
    text_add(w->out, STR("</title>"));
}

/* One or two lines if they fit: what it is, and how big. */
static void draw_box_label(const struct drawing *w, const struct value *v, struct box b)
{
    char id[16] = "scratch";
    rlx_str name = report_name(&w->r, v);
    struct text size;

    if (v->node >= 0)
        snprintf(id, sizeof id, "%%%d", v->node);
    rlx_str label = rlx_cstr(id);
    if (name.len > 0 && (int64_t)characters(name) * CHAR_WIDTH + 60 <= b.w)
        label = name;
    if ((int64_t)characters(label) * CHAR_WIDTH + 30 > b.w || b.h < LINE_HEIGHT * 10)
        return;

    text_init(&size, w->out->mem);
    report_bytes(&size, v->bytes);
    bool two = b.h >= 2 * LINE_HEIGHT * 10 + 40 && !size.failed &&
               (int64_t)size.len * CHAR_WIDTH + 30 <= b.w;
    int64_t y = b.y + b.h / 2 + (two ? -20 : 40);
    begin_label(w, b.x + b.w / 2, y, "text-anchor=\"middle\" pointer-events=\"none\"");
    add_escaped(w->out, label);
    text_add(w->out, STR("</text>"));
    if (two) {
        begin_label(w, b.x + b.w / 2, y + LINE_HEIGHT * 10,
                    "text-anchor=\"middle\" pointer-events=\"none\" fill-opacity=\"0.65\" "
                    "font-size=\"11\"");
        text_add(w->out, (rlx_str){size.at, size.len});
        text_add(w->out, STR("</text>"));
    }
    w->out->failed |= size.failed;
    text_free(&size);
}

static void draw_box(const struct drawing *w, const struct value *v)
{
    struct box b = box_of(w, v);
    const char *fill = scratch_fill, *edge = scratch_edge;

    if (v->node >= 0) {
        fill = palette[v->node % 8].fill;
        edge = palette[v->node % 8].edge;
    }
    text_add(w->out, STR("<g><rect"));
    attr(w->out, "x", b.x);
    attr(w->out, "y", b.y);
    attr(w->out, "width", b.w > 5 ? b.w : 5);
    attr(w->out, "height", b.h > 5 ? b.h : 5);
    bool small = b.w < 40 || b.h < 40; /* otherwise only its edge would be visible */
    text_addf(w->out, " fill=\"%s\" stroke=\"%s\" stroke-width=\"%s\">", fill, edge,
              small ? "0.3" : "0.8");
    draw_tooltip(w, v);
    text_add(w->out, STR("</rect>"));
    if (v->shares >= 0)
        draw_line(w, b.x, b.y, b.x, b.y + b.h,
                  "stroke=\"#ffffff\" stroke-width=\"2\" stroke-dasharray=\"2 2\"");
    draw_box_label(w, v, b);
    text_add(w->out, STR("</g>\n"));
}

static void measure(struct drawing *w)
{
    const struct plan *p = w->r.p;
    bool any = false;

    w->bytes = p->size[REGION_ACTS] > p->lower_bound ? p->size[REGION_ACTS] : p->lower_bound;
    w->bytes = w->bytes ? w->bytes : 1;
    w->t0 = 0;
    w->t1 = 1;
    for (size_t i = 0; i < w->r.count; i++) {
        const struct value *v = w->r.value[i];
        if (!any || v->birth < w->t0)
            w->t0 = v->birth;
        if (!any || v->death + 1.0 > w->t1)
            w->t1 = v->death + 1.0;
        any = true;
        if (v->shares >= 0)
            w->taken[v->shares] = true;
    }
}

void plan_draw(const struct plan *p, plan_name name, void *user, struct text *out)
{
    struct drawing w = {.out = out};
    size_t count = p->steps->value_count + 1;

    if (!report_begin(&w.r, p, name, user, out, false))
        return;
    w.taken = mem_alloc(out->mem, count);
    if (w.taken) {
        measure(&w);
        draw_head(&w);
        draw_axes(&w);
        for (size_t i = 0; i < w.r.count; i++)
            draw_box(&w, w.r.value[i]);
        if (w.r.count > 0)
            draw_marks(&w);
        text_add(out, STR("</svg>\n"));
    } else {
        out->failed = true;
    }
    mem_free(out->mem, w.taken, count);
    report_end(&w.r);
}
