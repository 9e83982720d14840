/* network.c: a whole network, one round of runs for every line it is sent, so that another program
 * can be timed in turn. tools/bench talks to it and to bench/ort.py.
 *
 *   network NAME [--threads N] [--output FILE.npy] [--profile RUNS]
 *
 * --profile shows where the time goes, for people, and ends.
 *
 * NAME is bert, resnet50 or resnet50-folded. It prints lines for its memory, allocations and
 * compile time, then {"ready": true}, and for each number of milliseconds read {"times": [seconds,
 * ...]}. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlx/tools.h"
#include "support/job.h"
#include "support/models.h"

static void build(rlx_graph *g, const char *name)
{
    if (strcmp(name, "bert") == 0)
        encoder_build(g, &bert_base);
    else if (strcmp(name, "resnet50") == 0)
        resnet_build(g, &resnet50);
    else if (strcmp(name, "resnet50-folded") == 0)
        resnet_build(g, &resnet50_folded);
    else
        give_up("there is no network %s; there are bert, resnet50 and resnet50-folded", name);
}

static void print_memory(struct job *j, const char *name)
{
    rlx_memory_info m = {RLX_SIZED(rlx_memory_info)};
    rlx_error err;
    char text[64];

    check(rlx_session_memory(j->session, &m, &err), &err);
    snprintf(text, sizeof text, "%s, arena", name);
    compare_limit(text, 0, "MB", (double)m.activations * 1e-6, (double)m.lower_bound * 1e-6,
                  "lower bound");
    long long before = j->allocations;
    for (int i = 0; i < 3; i++)
        job_call(j);
    snprintf(text, sizeof text, "%s, allocations in 3 runs", name);
    compare_limit(text, 0, "", (double)(j->allocations - before), 0, "none");
    struct line compile = {.name = text, .unit = "ms", .value = j->compile * 1e3};
    compile.median = compile.value;
    snprintf(text, sizeof text, "%s, compile and load weights", name);
    line_print(&compile);
}

static void call(void *user)
{
    job_call(user);
}

/* ---- where the time goes ---- */

struct step {
    const char *name;
    double best; /* seconds */
    int count;   /* of steps that were added up here */
};
struct profile {
    struct step at[4096];
    int count;
};

static void note_step(void *user, const rlx_profile_event *e)
{
    struct profile *p = user;

    if (e->index < 0 || e->index >= (int)(sizeof p->at / sizeof *p->at))
        return;
    struct step *s = &p->at[e->index];
    double took = (double)e->duration_ns * 1e-9;
    if (!s->name || took < s->best)
        *s = (struct step){e->step, took, 1};
    if (e->index >= p->count)
        p->count = e->index + 1;
}

static int slowest_first(const void *a, const void *b)
{
    double x = ((const struct step *)a)->best, y = ((const struct step *)b)->best;

    return (x < y) - (x > y);
}

/* Steps of the same name become one. */
static void add_up(struct profile *p)
{
    int kept = 0;

    for (int i = 0; i < p->count; i++) {
        struct step *same = p->at;
        if (!p->at[i].name)
            continue;
        while (same < p->at + kept && strcmp(same->name, p->at[i].name) != 0)
            same++;
        if (same == p->at + kept) {
            p->at[kept++] = p->at[i];
        } else {
            same->best += p->at[i].best;
            same->count++;
        }
    }
    p->count = kept;
}

static void print_profile(struct job *j, long runs)
{
    struct profile *p = calloc(1, sizeof *p);
    double total = 0;

    if (!p)
        give_up("out of memory");
    rlx_session_set_profile(j->session, note_step, p);
    for (long i = 0; i < runs; i++)
        job_call(j);
    add_up(p);
    qsort(p->at, (size_t)p->count, sizeof *p->at, slowest_first);
    for (int i = 0; i < p->count; i++)
        total += p->at[i].best;
    for (int i = 0; i < p->count; i++)
        printf("%-32s %5d steps %10.3f ms %6.1f%%\n", p->at[i].name, p->at[i].count,
               p->at[i].best * 1e3, 100 * p->at[i].best / total);
    printf("%-32s             %10.3f ms\n", "all, each at its best", total * 1e3);
    free(p);
}

int main(int argc, char **argv)
{
    int threads = 1;
    long profile = 0;
    const char *output = NULL, *name = argc > 1 ? argv[1] : "";
    struct job j;
    rlx_error err;
    char line[32];

    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--threads") == 0)
            threads = (int)strtol(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--output") == 0)
            output = argv[i + 1];
        else if (strcmp(argv[i], "--profile") == 0)
            profile = strtol(argv[i + 1], NULL, 10);
        else
            give_up("there is no flag %s; there are --threads, --output and --profile", argv[i]);
    }
    rlx_graph *g = job_begin(&j, threads);
    build(g, name);
    job_open_network(&j, g);
    job_call(&j);
    if (output)
        check(rlx_tensor_save(j.ctx, output, &j.output.tensor, &err), &err);
    if (profile > 0) {
        print_profile(&j, profile);
        job_close(&j);
        return 0;
    }
    print_memory(&j, name);
    puts("{\"ready\": true}");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin))
        print_times(call, &j, strtod(line, NULL) * 1e-3);
    job_close(&j);
    return 0;
}
