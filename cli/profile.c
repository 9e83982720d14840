/* profile.c: see profile.h. */
#include "profile.h"

#include <stdlib.h>
#include <string.h>

void profile_note(void *user, const rlx_profile_event *e)
{
    struct profile *p = user;
    size_t index = (size_t)e->index;

    if (index >= p->cap) {
        size_t cap = index * 2 + 64;
        struct profile_row *more = realloc(p->step, cap * sizeof *more);
        p->failed = p->failed || !more;
        if (!more)
            return;
        memset(more + p->cap, 0, (cap - p->cap) * sizeof *more);
        p->step = more;
        p->cap = cap;
    }
    struct profile_row *r = &p->step[index];
    r->name = e->step;
    snprintf(r->label, sizeof r->label, "%.*s", (int)e->label.len,
             e->label.ptr ? e->label.ptr : "");
    r->index = e->index;
    r->count++;
    r->ns += e->duration_ns;
    r->bytes = e->bytes_read + e->bytes_written;
    r->flops = e->flops;
    p->count = index + 1 > p->count ? index + 1 : p->count;
}

void profile_free(struct profile *p)
{
    free(p->step);
    *p = (struct profile){0};
}

/* In full nanoseconds, as tables show it: a ceiling taken from more digits than the rows it is held
 * against would be beaten by them. */
double profile_row_ns(const struct profile_row *r)
{
    uint64_t mean = r->count ? r->ns / r->count : 0;

    return (double)mean;
}

/* ---- ceilings ---- */

/* A step that was faster than the ceiling becomes the ceiling: its data came from a cache, its
 * elements were narrower than f32, or the device was busy when the ceiling was measured. */
static void raise(struct ceiling *c, const struct profile *p)
{
    c->flops = c->measured.flops;
    c->copy_bytes = c->measured.copy_bytes;
    c->flops_by = c->copy_by = NULL;
    for (size_t i = 0; i < p->count; i++) {
        const struct profile_row *r = &p->step[i];
        double seconds = profile_row_ns(r) * 1e-9;
        if (seconds > 0 && (double)r->flops / seconds > c->flops) {
            c->flops = (double)r->flops / seconds;
            c->flops_by = r;
        }
        if (seconds > 0 && (double)r->bytes / seconds > c->copy_bytes) {
            c->copy_bytes = (double)r->bytes / seconds;
            c->copy_by = r;
        }
    }
}

int profile_ceiling(struct cli *c, rlx_device *dev, const struct profile *p, struct ceiling *out)
{
    rlx_error err;

    *out = (struct ceiling){0};
    cli_doing(c, "measuring", "the device");
    for (int fresh = 0; fresh < 2; fresh++) {
        if (rlx_ceilings_measure(dev, fresh, &out->measured, &err) != RLX_OK)
            return cli_fail(c, &err, "cannot measure", "the device");
        raise(out, p);
        if ((!out->flops_by && !out->copy_by) || !out->measured.cached)
            break;
    }
    cli_progress_end(c);
    return EXIT_DONE;
}

static void print_raised(FILE *out, const struct profile_row *by, const char *what, double value)
{
    if (by)
        fprintf(out, "  step %d (%s%s%s) was faster: percentages are of its %.2f %s\n", by->index,
                by->name, by->label[0] ? " " : "", by->label, value / 1e9, what);
}

void ceiling_print(FILE *out, const struct ceiling *c)
{
    const rlx_ceilings *m = &c->measured;

    fprintf(out, "ceilings of %s (%s", m->name, m->device);
    if (m->threads)
        fprintf(out, ", %d threads", m->threads);
    fprintf(out, "%s): %.1f GFLOP/s in f32, %.2f GB/s copied\n",
            m->cached ? ", measured earlier" : "", m->flops / 1e9, m->copy_bytes / 1e9);
    print_raised(out, c->flops_by, "GFLOP/s", c->flops);
    print_raised(out, c->copy_by, "GB/s", c->copy_bytes);
}

/* ---- rows of one run ---- */

struct rows {
    struct profile_row *at;
    size_t count;
};

static int by_time(const void *a, const void *b)
{
    const struct profile_row *x = a, *y = b;

    return (x->ns < y->ns) - (x->ns > y->ns);
}

/* Each step's mean time, most first; steps that did not run are left out. */
static bool steps_of(const struct profile *p, struct rows *out)
{
    *out = (struct rows){.at = calloc(p->count + 1, sizeof *out->at)};
    for (size_t i = 0; out->at && i < p->count; i++) {
        if (!p->step[i].count)
            continue;
        struct profile_row r = p->step[i];
        r.ns = (uint64_t)profile_row_ns(&r);
        r.count = 1;
        out->at[out->count++] = r;
    }
    if (out->count)
        qsort(out->at, out->count, sizeof *out->at, by_time);
    return out->at != NULL;
}

static void add_row(struct profile_row *to, const struct profile_row *r)
{
    to->count += r->count;
    to->ns += r->ns;
    to->bytes += r->bytes;
    to->flops += r->flops;
}

static bool kinds_of(const struct rows *steps, struct rows *out)
{
    *out = (struct rows){.at = calloc(steps->count + 1, sizeof *out->at)};
    for (size_t i = 0; out->at && i < steps->count; i++) {
        size_t k = 0;
        while (k < out->count && strcmp(out->at[k].name, steps->at[i].name) != 0)
            k++;
        out->at[k].name = steps->at[i].name;
        out->count += k == out->count;
        add_row(&out->at[k], &steps->at[i]);
    }
    if (out->count)
        qsort(out->at, out->count, sizeof *out->at, by_time);
    return out->at != NULL;
}

static struct profile_row sum_of(const struct rows *rows)
{
    struct profile_row sum = {.name = "in all"};

    for (size_t i = 0; i < rows->count; i++)
        add_row(&sum, &rows->at[i]);
    return sum;
}

/* The time it would take at the device's ceiling, as a fraction of the time it took. */
static double of_ceiling(const struct profile_row *r, const struct ceiling *c)
{
    double copy = c->copy_bytes > 0 ? (double)r->bytes / c->copy_bytes : 0;
    double compute = c->flops > 0 ? (double)r->flops / c->flops : 0;
    double least = copy > compute ? copy : compute;

    return r->ns ? least / ((double)r->ns * 1e-9) : 0;
}

static double per_ns(uint64_t amount, uint64_t ns)
{
    return ns ? (double)amount / (double)ns : 0;
}

/* ---- tables ---- */

static void print_head(FILE *out, const char *first, const char *second)
{
    fprintf(out, "%7s  %-28s %-16s %13s %7s %10s %8s %10s %9s %10s\n", first, "step", second,
            "time", "share", "kB", "GB/s", "MFLOP", "GFLOP/s", "of ceiling");
}

static void print_row(FILE *out, const char *first, const struct profile_row *r, uint64_t total_ns,
                      const struct ceiling *c)
{
    fprintf(out, "%7s  %-28s %-16s %10.1f us %6.1f%% %10.1f %8.2f %10.3f %9.2f %9.1f%%\n", first,
            r->name, r->label, (double)r->ns / 1e3,
            total_ns ? 100 * (double)r->ns / (double)total_ns : 0, (double)r->bytes / 1e3,
            per_ns(r->bytes, r->ns), (double)r->flops / 1e6, per_ns(r->flops, r->ns),
            100 * of_ceiling(r, c));
}

static void print_table(FILE *out, const struct rows *rows, bool kinds, const struct ceiling *c)
{
    struct profile_row sum = sum_of(rows);
    char first[32];

    print_head(out, kinds ? "count" : "step", kinds ? "" : "node");
    for (size_t i = 0; i < rows->count; i++) {
        const struct profile_row *r = &rows->at[i];
        if (kinds)
            snprintf(first, sizeof first, "%llu x", (unsigned long long)r->count);
        else
            snprintf(first, sizeof first, "%d", r->index);
        print_row(out, first, r, sum.ns, c);
    }
    print_row(out, "", &sum, sum.ns, c);
}

void profile_print(FILE *out, const struct profile *p, const struct ceiling *c)
{
    struct rows steps = {0}, kinds = {0};

    if (steps_of(p, &steps) && kinds_of(&steps, &kinds)) {
        ceiling_print(out, c);
        fputs("\n", out);
        print_table(out, &kinds, true, c);
        fputs("\n", out);
        print_table(out, &steps, false, c);
    }
    free(steps.at);
    free(kinds.at);
}

static void json_rows(FILE *out, const char *key, const struct rows *rows, const struct ceiling *c)
{
    fprintf(out, ", \"%s\": [", key);
    for (size_t i = 0; i < rows->count; i++) {
        const struct profile_row *r = &rows->at[i];
        fprintf(out, "%s{\"step\": \"%s\", \"index\": %d, \"node\": ", i ? ", " : "", r->name,
                r->index);
        cli_json_string(out, r->label, strlen(r->label));
        fprintf(out,
                ", \"count\": %llu, \"us\": %.3f, \"bytes\": %llu, \"flops\": %llu, "
                "\"of_ceiling\": %.6f}",
                (unsigned long long)r->count, (double)r->ns / 1e3, (unsigned long long)r->bytes,
                (unsigned long long)r->flops, of_ceiling(r, c));
    }
    fputs("]", out);
}

void profile_json(FILE *out, const struct profile *p, const struct ceiling *c)
{
    struct rows steps = {0}, kinds = {0};

    if (steps_of(p, &steps) && kinds_of(&steps, &kinds)) {
        struct profile_row sum = sum_of(&steps);
        fputs("{\"device\": ", out);
        cli_json_string(out, c->measured.name, strlen(c->measured.name));
        fputs(", \"description\": ", out);
        cli_json_string(out, c->measured.device, strlen(c->measured.device));
        fprintf(out,
                ", \"threads\": %d, \"ceiling_gflops\": %.3f, \"ceiling_copy_gb_per_s\": %.3f, "
                "\"measured_gflops\": %.3f, \"measured_copy_gb_per_s\": %.3f, "
                "\"us\": %.3f, \"bytes\": %llu, \"flops\": %llu",
                c->measured.threads, c->flops / 1e9, c->copy_bytes / 1e9, c->measured.flops / 1e9,
                c->measured.copy_bytes / 1e9, (double)sum.ns / 1e3, (unsigned long long)sum.bytes,
                (unsigned long long)sum.flops);
        json_rows(out, "kinds", &kinds, c);
        json_rows(out, "nodes", &steps, c);
        fputs("}", out);
    }
    free(steps.at);
    free(kinds.at);
}
