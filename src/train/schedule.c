/* schedule.c: the rate of an update, as a function of how many there were before it. All of it is
 * a handful of numbers in the graph, so that the host has no part in it. */
#include "train/train.h"

static const double pi = 3.14159265358979323846;

static rlx_value plus(rlx_graph *g, rlx_value x, double v)
{
    return rlx_add(g, x, train_number(g, x, v));
}

static rlx_value times(rlx_graph *g, rlx_value x, double v)
{
    return rlx_mul(g, x, train_number(g, x, v));
}

/* How far step is on the way from `from` to `to`, 0 to 1. */
static rlx_value progress(rlx_graph *g, rlx_value step, double from, double to)
{
    double length = to > from ? to - from : 1;

    return rlx_clamp(g, times(g, plus(g, step, -from), 1 / length), 0, 1);
}

static rlx_value line(rlx_graph *g, rlx_value p, double a, double b)
{
    return plus(g, times(g, p, b - a), a);
}

/* From a to b as half a wave does: slowly at both ends. */
static rlx_value half_wave(rlx_graph *g, rlx_value p, double a, double b)
{
    return plus(g, times(g, rlx_cos(g, times(g, p, pi)), (a - b) / 2), (a + b) / 2);
}

static rlx_value one_cycle(rlx_graph *g, const rlx_train_desc *d, double rate, rlx_value step)
{
    double top = d->warmup_steps > 1 ? (double)d->warmup_steps - 1 : 0;
    rlx_value up = half_wave(g, progress(g, step, 0, top), rate * (double)d->start_ratio, rate);
    rlx_value down = half_wave(g, progress(g, step, top, (double)d->total_steps - 1), rate,
                               rate * (double)d->final_ratio);

    return rlx_where(g, rlx_lt(g, step, train_number(g, step, top)), up, down);
}

rlx_value train_rate(rlx_graph *g, const rlx_train_desc *d, double rate, rlx_value step)
{
    double from = (double)d->warmup_steps, last = rate * (double)d->final_ratio;
    rlx_value p, v;

    if (d->schedule == RLX_SCHEDULE_ONE_CYCLE)
        return one_cycle(g, d, rate, step);
    if (d->schedule == RLX_SCHEDULE_CONSTANT) {
        v = train_number(g, step, rate);
    } else {
        p = progress(g, step, from, (double)d->total_steps);
        v = d->schedule == RLX_SCHEDULE_LINEAR ? line(g, p, rate, last)
                                               : half_wave(g, p, rate, last);
    }
    if (d->warmup_steps == 0)
        return v;
    return rlx_where(g, rlx_lt(g, step, train_number(g, step, from)),
                     times(g, plus(g, step, 1), rate / from), v);
}
