/* main.c: rlx-random: random graphs on every device, each held against its definition.
 *
 *     rlx-random --count 500                  seeds 1 to 500
 *     rlx-random --seed 71 --count 1          the one that failed
 *     rlx-random --file smaller.rlx           a graph as text */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "random.h"

struct options {
    uint64_t seed, values;
    long count, gpu_every;
    const char *gpus, *file;
    enum value_profile profile;
    bool print, isolate, keep_going;
};

static volatile uint64_t current; /* the seed, for whoever reads what a crash left */

static void tell_seed(int signal_number)
{
    char text[96];
    int n = snprintf(text, sizeof text, "\nsignal %d at --seed %llu: try --isolate\n",
                     signal_number, (unsigned long long)current);

    (void)!write(2, text, (size_t)n);
    _exit(1);
}

/* ---- one graph ---- */

static char *grow_text(uint64_t seed, struct question *q, long *ops)
{
    struct grown grown;
    struct text text;
    struct diag d;
    char *out = NULL;

    diag_init(&d, "grow");
    text_init(&text, mem_default());
    if (grow(seed, &grown, &d) == RLX_OK && ir_verify(grown.mod, &d) == RLX_OK &&
        ir_print(grown.mod, NULL, &text, &d) == RLX_OK)
        out = strdup(text.at);
    else
        fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, d.first.message);
    char *pruned = out && seed % 8 ? without_dead(grown.mod) : NULL;
    if (pruned) {
        free(out);
        out = pruned;
    }
    for (size_t i = 0; out && i < grown.mod->graph.len; i++)
        IR_EACH(n, grown.mod->graph.at[i])
            ops[n->op]++;
    *q = (struct question){
        .text = out, .profile = grown.profile, .values = grown.values, .choices = seed};
    text_free(&text);
    ir_module_destroy(grown.mod);
    return out;
}

static void report(struct world *w, const struct options *o, struct question *q, uint64_t seed,
                   const struct outcome *first)
{
    struct outcome last = *first, *out = &last;
    char *small = shrink(w, q, first->failed, out);

    printf("seed %llu: %s\n    %s\n# rlx-random --file THIS.rlx --values %llu --profile %s --seed "
           "%llu%s%s\n%s",
           (unsigned long long)seed, check_what(out->failed), out->message,
           (unsigned long long)q->values, profile_name(q->profile), (unsigned long long)seed,
           o->gpus ? " --gpus " : "", o->gpus ? o->gpus : "", small ? small : q->text);
    fflush(stdout);
    free(small);
}

/* ---- all ---- */

static int summarise(const struct options *o, const struct outcome *sum, const long *ops, long done,
                     long failed)
{
    long missing = 0;

    for (int c = 1; c < CHECK_COUNT; c++)
        if (sum->tried[c])
            printf("%6ld of them skipped of %6ld  %s\n", sum->skipped[c], sum->tried[c],
                   check_what((enum check)c));
    for (int op = 1; op < RLX_OP_count && o->count >= 500 && !o->file; op++) {
        const char *why = left_out((rlx_op)op);
        if (ops[op] == 0 && !why) {
            printf("no graph has %s: grow it, or say in grow.c why not\n",
                   op_info((rlx_op)op)->name);
            missing++;
        }
    }
    printf("%ld passed, %ld failed, 0 skipped\n", done - failed, failed + missing);
    return failed + missing > 0;
}

static int run(struct world *w, const struct options *o)
{
    struct outcome sum = {0};
    static long ops[RLX_OP_count];
    long failed = 0, done = 0;

    for (long i = 0; i < o->count; i++) {
        struct question q;
        uint64_t seed = o->seed + (uint64_t)i;
        current = seed;
        char *text = grow_text(seed, &q, ops);
        if (o->print)
            printf("%s", text ? text : "");
        q.checks = ~UINT64_C(0);
        if (o->gpu_every > 1 && seed % (uint64_t)o->gpu_every)
            q.checks &= ~(UINT64_C(1) << CHECK_gpu);
        sum.failed = CHECK_grow;
        if (text)
            ask(w, &q, &sum);
        done++;
        if (sum.failed != CHECK_NONE) {
            failed++;
            report(w, o, &q, seed, &sum);
        }
        free(text);
        if (failed >= 10 && !o->keep_going)
            break;
    }
    return summarise(o, &sum, ops, done, failed);
}

static char *read_all(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = f ? calloc(1, 1 << 20) : NULL;

    if (text && fread(text, 1, (1 << 20) - 1, f) == 0)
        text[0] = 0;
    if (f)
        fclose(f);
    return text;
}

static int run_file(struct world *w, const struct options *o)
{
    struct outcome out = {0};
    char *text = read_all(o->file), *begin = text ? strstr(text, "rlx 1") : NULL;
    struct question q = {.text = begin,
                         .profile = o->profile,
                         .values = o->values,
                         .choices = o->seed,
                         .checks = ~UINT64_C(0)};

    if (!begin) {
        fprintf(stderr, "%s: no graph in it\n", o->file);
        free(text);
        return 2;
    }
    current = o->seed;
    ask(w, &q, &out);
    if (out.failed != CHECK_NONE)
        report(w, o, &q, o->seed, &out);
    else
        printf("all is well\n");
    free(text);
    return out.failed != CHECK_NONE;
}

static bool read_options(struct options *o, int argc, char **argv)
{
    *o = (struct options){.seed = 1, .count = 100, .gpu_every = 1, .values = 1};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--print"))
            o->print = true;
        else if (!strcmp(argv[i], "--isolate"))
            o->isolate = true;
        else if (!strcmp(argv[i], "--keep-going"))
            o->keep_going = true;
        else if (i + 1 == argc)
            return false;
        else if (!strcmp(argv[i], "--seed"))
            o->seed = strtoull(value, NULL, 10), i++;
        else if (!strcmp(argv[i], "--values"))
            o->values = strtoull(value, NULL, 10), i++;
        else if (!strcmp(argv[i], "--count"))
            o->count = strtol(value, NULL, 10), i++;
        else if (!strcmp(argv[i], "--gpu-every"))
            o->gpu_every = strtol(value, NULL, 10), i++;
        else if (!strcmp(argv[i], "--gpus"))
            o->gpus = value, i++;
        else if (!strcmp(argv[i], "--file"))
            o->file = value, i++;
        else if (!strcmp(argv[i], "--profile")) {
            for (int p = 0; p < VALUES_COUNT; p++)
                if (!strcmp(value, profile_name((enum value_profile)p)))
                    o->profile = (enum value_profile)p;
            i++;
        } else
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct options o;
    struct world w;
    rlx_error err;

    if (!read_options(&o, argc, argv)) {
        fprintf(stderr, "usage: rlx-random [--seed N] [--count N] [--gpus vulkan,webgpu] "
                        "[--gpu-every N] [--print] [--keep-going] [--isolate]\n"
                        "       rlx-random --file GRAPH.rlx [--values N] [--profile plain|special] "
                        "[--seed N] [--gpus ..]\n");
        return 2;
    }
    if (!world_open(&w, o.gpus, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    if (o.isolate)
        w.apart = o.gpus ? o.gpus : "";
    signal(SIGSEGV, tell_seed);
    signal(SIGABRT, tell_seed);
    signal(SIGFPE, tell_seed);
    int status = o.file ? run_file(&w, &o) : run(&w, &o);
    world_close(&w);
    return status;
}
