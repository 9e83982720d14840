/* gpu_submit.c: one run of a program, and what is said of it while it runs.
 *
 * A program without loops is one piece. Loops cut it at their begin, where a round begins, and at
 * their end:
 *
 *     [ steps before ]  { [ condition ] go on? [ round ] }...  [ steps after ]
 *
 * Only "go on?" is waited for. The device is free for others in the meantime. */

#include "backend/gpu/gpu_run.h"
#include "base/clock.h"

struct run {
    struct gpu_device *g;
    const struct command *list;
    struct run_report *report;
    struct diag *diag;
    bool single;     /* each piece is waited for */
    bool timed;      /* each command is measured */
    size_t command;  /* what comes before this command's... */
    uint32_t launch; /* ...launch is on its way */
    struct gpu_recording *last;
    uint64_t ticket; /* of what was handed over last */
};

/* For tests: a device that is lost after so many runs, and rounds of loops. What it was at is done
 * first: a device that is really lost stops. */
static rlx_status count_run(struct run *r)
{
    struct gpu_device *g = r->g;

    pthread_mutex_lock(&g->lock);
    if (g->options.lose_after && g->runs >= g->options.lose_after && !g->lost) {
        gpu_settle(g);
        g->lost = true;
    }
    g->runs++;
    rlx_status s = gpu_check(g, r->diag);
    pthread_mutex_unlock(&g->lock);
    return s;
}

/* ---- pieces ---- */

static rlx_status run_piece(struct run *r, const struct gpu_piece *p)
{
    struct gpu_device *g = r->g;
    struct gpu_recording **out = &r->last;

    TRY(r->single ? gpu_record_single(g, r->list, p, out, r->diag)
                  : gpu_find_recording(g, r->list, p, r->timed, out, r->diag));
    TRY(gpu_run(g, r->last, p, r->diag));
    gpu_note_report(g, r->last, r->report);
    r->ticket = r->last->ticket;
    if (!r->single)
        return RLX_OK;
    TRY(gpu_await(g, r->ticket, r->diag));
    return gpu_take_due(g, r->diag);
}

/* Hand over all that comes before a launch of a command. */
static rlx_status run_until(struct run *r, size_t command, uint32_t launch)
{
    const struct gpu_piece p = {.list = r->list + r->command,
                                .count = command - r->command + (launch > 0),
                                .first = r->launch,
                                .end = launch > 0 ? launch : UINT32_MAX};
    bool none = r->command == command && r->launch == launch;

    r->command = command;
    r->launch = launch;
    if (none)
        return RLX_OK;
    pthread_mutex_lock(&r->g->lock);
    rlx_status s = run_piece(r, &p);
    pthread_mutex_unlock(&r->g->lock);
    return s;
}

/* ---- loops ---- */

static rlx_status ask(struct run *r, const struct command *c, const struct gpu_arg *go_on,
                      bool *yes)
{
    struct backend *b = &r->g->base;
    struct span at = c->operand[go_on->operand];
    uint32_t word;

    at.offset += go_on->offset;
    at.bytes = sizeof word;
    TRY(b->ops->read(b, at, &word, r->diag));
    *yes = word != 0;
    return RLX_OK;
}

static rlx_status run_loop(struct run *r, uint32_t loop);

/* The launches of the command up to `end`, loops from number `next` on among them; what comes
 * after the last loop is left for later. */
static rlx_status run_loops(struct run *r, uint32_t next, uint32_t end)
{
    const struct gpu_work *w = r->list[r->command].work;

    while (next < w->loops && w->loop[next].first < end) {
        uint32_t now = next;
        while (next < w->loops && w->loop[next].first < w->loop[now].end)
            next++; /* those in it are its own */
        TRY(run_loop(r, now));
    }
    return RLX_OK;
}

/* The first loop that begins at or after a launch, of those after number `loop`. */
static uint32_t loop_from(const struct gpu_work *w, uint32_t loop, uint32_t launch)
{
    uint32_t next = loop + 1;

    while (next < w->loops && w->loop[next].first < launch)
        next++;
    return next;
}

static rlx_status run_loop(struct run *r, uint32_t loop)
{
    size_t command = r->command;
    const struct gpu_work *w = r->list[command].work;
    const struct gpu_loop *l = &w->loop[loop];
    bool go_on = true;

    TRY(run_until(r, command, l->first));
    for (int64_t t = 0; l->most == RLX_ABSENT || t < l->most; t++) {
        r->launch = l->first;
        TRY(count_run(r));
        TRY(run_loops(r, loop + 1, l->body));
        TRY(run_until(r, command, l->body));
        TRY(ask(r, &r->list[command], &l->go_on, &go_on));
        if (!go_on)
            break;
        if (l->limit && t >= l->limit)
            return diag_fail(r->diag, RLX_ERROR_LIMIT, "while: still going after %lld iterations",
                             (long long)l->limit);
        TRY(run_loops(r, loop_from(w, loop, l->body), l->end));
        TRY(run_until(r, command, l->end));
    }
    r->launch = l->end;
    return RLX_OK;
}

/* Commands [from, to), from where the last ones ended. */
static rlx_status run_commands(struct run *r, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        const struct gpu_work *w = r->list[i].work;
        if (r->list[i].idle || w->loops == 0)
            continue;
        TRY(run_until(r, i, 0));
        TRY(run_loops(r, 0, w->launches));
    }
    return run_until(r, to, 0);
}

/* ---- with hooks ---- */

static bool read_times(struct gpu_device *g, struct gpu_recording *r, size_t i, uint64_t out[2])
{
    pthread_mutex_lock(&g->lock);
    bool known = g->driver->read_times(g, r, i, out);
    pthread_mutex_unlock(&g->lock);
    return known;
}

/* The device's clock becomes the host's: the last step ended when the host heard of it. */
static void report_times(struct run *r, size_t count, const struct run_hooks *hooks)
{
    struct gpu_device *g = r->g;
    uint64_t heard = clock_ns(), last[2] = {0, 0}, at[2];
    bool known = count && read_times(g, r->last, count - 1, last);

    for (size_t i = 0; i < count; i++) {
        if (!known || !read_times(g, r->last, i, at))
            at[0] = at[1] = last[1];
        hooks->after(hooks->user, r->list[i].step, heard - (last[1] - at[0]),
                     heard - (last[1] - at[1]));
    }
}

static rlx_status run_singly(struct run *r, size_t count, const struct run_hooks *hooks)
{
    r->single = true;
    for (size_t i = 0; i < count; i++) {
        uint64_t start = clock_ns();
        TRY(run_commands(r, i, i + 1));
        hooks->after(hooks->user, r->list[i].step, start, clock_ns());
    }
    return RLX_OK;
}

/* One after the other, if the hook looks at the results of each, or their times are not known. */
static bool must_be_single(const struct gpu_device *g, const struct command *list, size_t count,
                           const struct run_hooks *hooks)
{
    if (hooks->reads || !g->clock)
        return true;
    for (size_t i = 0; i < count; i++)
        if (((const struct gpu_work *)list[i].work)->loops)
            return true;
    return false;
}

static rlx_status submit(struct run *r, size_t count, const struct run_hooks *hooks)
{
    TRY(count_run(r));
    if (hooks && must_be_single(r->g, r->list, count, hooks))
        return run_singly(r, count, hooks);
    r->timed = hooks != NULL;
    TRY(run_commands(r, 0, count));
    if (!hooks)
        return RLX_OK;
    TRY(gpu_await(r->g, r->ticket, r->diag));
    report_times(r, count, hooks);
    return RLX_OK;
}

rlx_status gpu_submit(struct backend *b, const struct command *list, size_t count,
                      const struct run_hooks *hooks, struct run_report *report, uint64_t *ticket,
                      struct diag *d)
{
    struct gpu_device *g = gpu_device_of(b);
    struct run r = {.g = g, .list = list, .report = report, .diag = d};

    report->step = -1;
    report->failed.status = RLX_OK;
    rlx_status s = submit(&r, count, hooks);
    if (s == RLX_OK) {
        *ticket = r.ticket;
    } else {
        pthread_mutex_lock(&g->lock);
        gpu_forget_report(g, report);
        pthread_mutex_unlock(&g->lock);
    }
    return s;
}
