/* curve.c: the loss over the steps as an SVG: a line for what is trained on, one with dots for what
 * is held out, and round numbers on both axes. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "train.h"

enum { WIDTH = 800, HEIGHT = 420, LEFT = 64, RIGHT = 20, TOP = 44, BOTTOM = 44, TICKS = 6 };

bool curve_add(struct curve *k, int64_t step, double loss)
{
    if (k->count == k->room) {
        size_t room = k->room ? 2 * k->room : 64;
        struct curve_point *at = realloc(k->at, room * sizeof *at);
        if (!at)
            return false;
        k->at = at;
        k->room = room;
    }
    k->at[k->count++] = (struct curve_point){step, loss};
    return true;
}

void curve_free(struct curve *k)
{
    free(k->at);
    *k = (struct curve){0};
}

/* ---- axes ---- */

struct axis {
    double low, high, step;
    int decimals;
};

/* A step of 1, 2 or 5 times a power of ten, of which there are few from low to high. */
static struct axis round_axis(double low, double high)
{
    struct axis a = {low, high, 1, 0};

    if (!(high > low))
        a.high = low + 1;
    double rough = (a.high - a.low) / TICKS, power = pow(10, floor(log10(rough)));
    a.step = rough <= power       ? power
             : rough <= 2 * power ? 2 * power
             : rough <= 5 * power ? 5 * power
                                  : 10 * power;
    a.low = floor(a.low / a.step) * a.step;
    a.high = ceil(a.high / a.step) * a.step;
    a.decimals = a.step < 1 ? (int)ceil(-log10(a.step) - 1e-9) : 0;
    return a;
}

struct frame {
    struct axis x, y;
    struct buffer *out;
};

static double place_x(const struct frame *f, double v)
{
    return LEFT + (v - f->x.low) / (f->x.high - f->x.low) * (WIDTH - LEFT - RIGHT);
}

static double place_y(const struct frame *f, double v)
{
    return HEIGHT - BOTTOM - (v - f->y.low) / (f->y.high - f->y.low) * (HEIGHT - TOP - BOTTOM);
}

static void put(struct buffer *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct buffer *out, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    int len = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    buffer_add(out, text, len < (int)sizeof text ? (size_t)len : sizeof text - 1);
}

static void put_escaped(struct buffer *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '<': put(out, "&lt;"); break;
        case '>': put(out, "&gt;"); break;
        case '&': put(out, "&amp;"); break;
        default:
            if ((unsigned char)*text >= ' ')
                buffer_add(out, text, 1);
        }
}

static void draw_axes(const struct frame *f)
{
    for (int i = 0; i <= 2 * TICKS; i++) {
        double v = f->y.low + i * f->y.step, y = place_y(f, v);
        if (v > f->y.high + f->y.step / 2)
            break;
        put(f->out,
            "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" "
            "text-anchor=\"end\">%.*f</text>\n",
            LEFT, y, WIDTH - RIGHT, LEFT - 8, y + 4, f->y.decimals, v);
    }
    for (int i = 0; i <= 2 * TICKS; i++) {
        double v = f->x.low + i * f->x.step, x = place_x(f, v);
        if (v > f->x.high + f->x.step / 2)
            break;
        put(f->out,
            "<path class=\"grid\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\" "
            "text-anchor=\"middle\">%.*f</text>\n",
            x, TOP, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 18, f->x.decimals, v);
    }
}

static void draw_line(const struct frame *f, const struct curve *k, const char *class, bool dots)
{
    if (k->count > 1) {
        put(f->out, "<path class=\"line %s\" d=\"", class);
        for (size_t i = 0; i < k->count; i++)
            put(f->out, "%c%.1f %.1f", i ? 'L' : 'M', place_x(f, (double)k->at[i].step),
                place_y(f, k->at[i].loss));
        put(f->out, "\"/>\n");
    }
    for (size_t i = 0; (dots || k->count == 1) && i < k->count; i++)
        put(f->out, "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", class,
            place_x(f, (double)k->at[i].step), place_y(f, k->at[i].loss));
}

static void widen(const struct curve *k, double x[2], double y[2])
{
    for (size_t i = 0; i < k->count; i++) {
        x[0] = fmin(x[0], (double)k->at[i].step);
        x[1] = fmax(x[1], (double)k->at[i].step);
        y[0] = fmin(y[0], k->at[i].loss);
        y[1] = fmax(y[1], k->at[i].loss);
    }
}

void curve_draw(const struct curve *loss, const struct curve *held, const char *title,
                struct buffer *out)
{
    double x[2] = {INFINITY, -INFINITY}, y[2] = {INFINITY, -INFINITY};

    widen(loss, x, y);
    widen(held, x, y);
    if (x[0] > x[1]) { /* no points */
        x[0] = y[0] = 0;
        x[1] = y[1] = 1;
    }
    struct frame f = {round_axis(x[0], x[1]), round_axis(y[0], y[1]), out};
    put(out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
        "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n",
        WIDTH, HEIGHT, WIDTH, HEIGHT);
    put(out, "<style>text{fill:#444}.grid{stroke:#ddd}.line{fill:none;stroke-width:1.8}"
             ".loss{stroke:#3465a4}.held{stroke:#c4671a}.dot.loss{fill:#3465a4}"
             ".dot.held{fill:#c4671a}</style>\n");
    put(out,
        "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n<text x=\"%d\" y=\"18\" "
        "font-size=\"14\">",
        WIDTH, HEIGHT, LEFT);
    put_escaped(out, title);
    put(out, "</text>\n");
    draw_axes(&f);
    draw_line(&f, loss, "loss", false);
    draw_line(&f, held, "held", true);
    put(out, "<text x=\"%d\" y=\"36\" style=\"fill:#3465a4\">loss</text>\n", LEFT);
    if (held->count)
        put(out, "<text x=\"%d\" y=\"36\" style=\"fill:#c4671a\">validation</text>\n", LEFT + 48);
    put(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">steps</text>\n</svg>\n",
        (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8);
}
