/* network.c: a whole network, one round of runs for every line it is sent, so that another program
 * can be timed in turn. tools/bench talks to it and to bench/ort.py.
 *
 *   network NAME [--threads N] [--output FILE.npy]
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
    rlx_memory_info m;
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

static void answer_round(struct job *j, double seconds)
{
    double begin = now(), t;
    const char *comma = "";

    printf("{\"times\": [");
    do {
        double start = now();
        job_call(j);
        t = now();
        printf("%s%.9f", comma, t - start);
        comma = ", ";
    } while (t - begin < seconds);
    puts("]}");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int threads = 1;
    const char *output = NULL, *name = argc > 1 ? argv[1] : "";
    struct job j;
    rlx_error err;
    char line[32];

    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--threads") == 0)
            threads = (int)strtol(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--output") == 0)
            output = argv[i + 1];
        else
            give_up("there is no flag %s; there are --threads and --output", argv[i]);
    }
    rlx_graph *g = job_begin(&j, threads);
    build(g, name);
    job_open_network(&j, g);
    job_call(&j);
    if (output)
        check(rlx_tensor_save(j.ctx, output, &j.output.tensor, &err), &err);
    print_memory(&j, name);
    puts("{\"ready\": true}");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin))
        answer_round(&j, strtod(line, NULL) * 1e-3);
    job_close(&j);
    return 0;
}
