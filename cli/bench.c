/* bench.c: `rlx bench`, how long a graph or a single op takes, step by step.
 *
 * Each step's bandwidth is compared with that of a copy on the same device, so that a figure means
 * something on any machine. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bind.h"
#include "profile.h"

static struct {
    const char *op, *device, *precision, *trace;
    struct texts dims;
    int64_t repeat, milliseconds;
    bool json, profile, f16_weights;
} opt = {.device = "auto", .milliseconds = 1000};

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--op", FLAG_TEXT, &opt.op, "SPEC", "one op: \"matmul f32[512,512] f32[512,512] attr=v\""},
        {"--device", FLAG_TEXT, &opt.device, "D", "where to run (auto); rlx devices lists them"},
        {"--dim", FLAG_LIST, &opt.dims, "NAME=N",
         "the size of a symbolic dim; 1 for a batch if not given"},
        {"--precision", FLAG_TEXT, &opt.precision, "P",
         "f32, f16, mixed, mixed-bf16, mixed-conservative, compute=f16 (declared)"},
        {"--f16-weights", FLAG_SWITCH, &opt.f16_weights, NULL,
         "on GPUs, matmul and conv read f32 params as f16"},
        {"--repeat", FLAG_NUMBER, &opt.repeat, "N",
         "exactly this many runs (as many as fit in --ms)"},
        {"--ms", FLAG_NUMBER, &opt.milliseconds, "N", "as many runs as fit in this time (1000)"},
        {"--profile", FLAG_SWITCH, &opt.profile, NULL,
         "where the time goes, compared with what the machine could do"},
        {"--trace", FLAG_TEXT, &opt.trace, "FILE",
         "write a trace for Perfetto or chrome://tracing"},
        {"--json", FLAG_SWITCH, &opt.json, NULL, "one JSON object"},
        {0}};
    return list;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#define MAX_RUNS 100000

/* --repeat, or RLX_BENCH_ITERS; 0: as many as fit in the time. */
static size_t wanted_runs(const struct cli *c)
{
    rlx_flag_row row;

    if (opt.repeat || !cli_flag_row(c, "RLX_BENCH_ITERS", &row) || !row.on)
        return (size_t)opt.repeat;
    return (size_t)strtoull(row.value, NULL, 10);
}

static int measure(struct cli *c, struct opened *o, const char *what, double *seconds,
                   size_t *count)
{
    rlx_error err;
    rlx_run_desc run = opened_run(o);
    size_t wanted = wanted_runs(c);
    double end;
    int code;

    cli_doing(c, "warming up", what);
    if (rlx_session_run(o->session, &run, &err) != RLX_OK)
        return opened_fail(o, &err, "cannot run", what);
    cli_doing(c, "measuring", what);
    if ((code = opened_make_outputs(o)) != EXIT_DONE)
        return code;
    run = opened_run(o);
    end = now() + (double)opt.milliseconds * 1e-3;
    for (*count = 0; *count < MAX_RUNS; (*count)++) {
        double start = now();
        if (wanted ? *count >= wanted : start > end && *count >= 3)
            break;
        if (rlx_session_run(o->session, &run, &err) != RLX_OK)
            return cli_fail(c, &err, "cannot run", what);
        seconds[*count] = now() - start;
    }
    cli_progress_end(c);
    qsort(seconds, *count, sizeof *seconds, by_value);
    return EXIT_DONE;
}

struct result {
    double *seconds; /* of each run, sorted */
    size_t count;
    struct profile profile;
    struct ceiling ceiling;
};

static void print_text(const char *what, const struct result *r)
{
    const double *s = r->seconds;

    printf("%s on %s: median %.1f us, fastest %.1f us, slowest %.1f us, %zu runs\n", what,
           opt.device, s[r->count / 2] * 1e6, s[0] * 1e6, s[r->count - 1] * 1e6, r->count);
    ceiling_print(stdout, &r->ceiling);
    printf("\n%5s %-32s %12s %10s %8s\n", "step", "name", "us", "GB/s", "of copy");
    for (size_t i = 0; i < r->profile.count; i++) {
        const struct profile_row *k = &r->profile.step[i];
        if (!k->count)
            continue;
        double ns = profile_row_ns(k), rate = ns > 0 ? (double)k->bytes / ns : 0;
        printf("%5zu %-32s %12.2f %10.2f %7.1f%%\n", i, k->name, ns / 1e3, rate,
               r->ceiling.copy_bytes > 0 ? 100 * rate * 1e9 / r->ceiling.copy_bytes : 0);
    }
    if (opt.profile) {
        puts("");
        profile_print(stdout, &r->profile, &r->ceiling);
    }
}

static void print_json(const char *what, const struct result *r)
{
    const double *s = r->seconds;
    const char *between = "";

    fputs("{\"what\": ", stdout);
    cli_json_string(stdout, what, strlen(what));
    printf(", \"median_us\": %.3f, \"fastest_us\": %.3f, \"slowest_us\": %.3f, \"runs\": %zu, "
           "\"copy_gb_per_s\": %.3f, \"steps\": [",
           s[r->count / 2] * 1e6, s[0] * 1e6, s[r->count - 1] * 1e6, r->count,
           r->ceiling.copy_bytes / 1e9);
    for (size_t i = 0; i < r->profile.count; i++) {
        const struct profile_row *k = &r->profile.step[i];
        if (!k->count)
            continue;
        printf("%s{\"step\": %zu, \"name\": \"%s\", \"us\": %.3f, \"bytes\": %llu}", between, i,
               k->name, profile_row_ns(k) / 1e3, (unsigned long long)k->bytes);
        between = ", ";
    }
    fputs("]", stdout);
    if (opt.profile) {
        fputs(", \"profile\": ", stdout);
        profile_json(stdout, &r->profile, &r->ceiling);
    }
    fputs("}\n", stdout);
}

/* Steps are timed in separate runs, so that timing them does not slow down those above. */
static int measure_steps(struct cli *c, struct opened *o, const char *what, struct profile *out)
{
    rlx_run_desc run = opened_run(o);
    rlx_error err;

    rlx_session_set_profile(o->session, profile_note, out);
    for (int i = 0; i < 5; i++)
        if (rlx_session_run(o->session, &run, &err) != RLX_OK)
            return cli_fail(c, &err, "cannot run", what);
    return EXIT_DONE;
}

static int bench(struct cli *c, struct opened *o, const char *what)
{
    struct result r = {.seconds = calloc(MAX_RUNS, sizeof *r.seconds)};
    int code = r.seconds ? measure(c, o, what, r.seconds, &r.count) : EXIT_FAILED;

    if (code == EXIT_DONE)
        code = measure_steps(c, o, what, &r.profile);
    if (code == EXIT_DONE)
        code = profile_ceiling(c, o->device, &r.profile, &r.ceiling);
    if (code == EXIT_DONE && r.count)
        (opt.json ? print_json : print_text)(what, &r);
    profile_free(&r.profile);
    free(r.seconds);
    return code;
}

/* "matmul f32[4,8] f32[8,2] transpose_a=true" as a graph. */
static int op_model(struct cli *c, const char *spec, rlx_model **out)
{
    struct buffer text = {0}, node = {0};
    char *copy, *save = NULL, piece[512];
    size_t operands = 0;
    rlx_error err;
    int code = cli_context(c);

    if (code != EXIT_DONE || !(copy = strdup(spec)))
        return EXIT_FAILED;
    buffer_add(&text, "rlx 1\ngraph (", 13);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        bool operand = node.len && strchr(word, '[') && !strchr(word, '=');
        if (operand) {
            snprintf(piece, sizeof piece, "%sinput %%x%zu: %s", operands ? ", " : "", operands,
                     word);
            buffer_add(&text, piece, strlen(piece));
            snprintf(piece, sizeof piece, "%s %%x%zu", operands ? "," : "", operands);
            operands++;
        } else
            snprintf(piece, sizeof piece, " %s", word);
        buffer_add(&node, piece, strlen(piece));
    }
    buffer_add(&text, ") {\n%y =", 8);
    buffer_add(&text, node.at ? node.at : "", node.len);
    buffer_add(&text, "\nreturn %y\n}\n", 13);
    if (rlx_model_parse(c->ctx, (rlx_str){text.at, text.len}, out, &err) != RLX_OK)
        code = cli_fail(c, &err, "cannot build", spec);
    free(copy);
    buffer_free(&text);
    buffer_free(&node);
    return code;
}

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    struct opened o = {0};
    rlx_model *model;
    rlx_session_desc desc = {RLX_SIZED(rlx_session_desc)};
    rlx_error err;
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count + (opt.op != NULL) != 1 || (opt.op && !strchr(opt.op, '[')))
        return cli_misuse(
            c,
            "takes one model, or --op with the types of its operands, as in \"relu f32[64,64]\"");
    if (opt.repeat < 0 || opt.milliseconds < 0)
        return cli_misuse(c, "--repeat and --ms must not be negative");
    if (opt.precision && rlx_precision_parse(opt.precision, &desc, &err) != RLX_OK)
        return cli_misuse(c, "--precision: %s", err.message);
    desc.f16_weights = opt.f16_weights;
    c->trace = opt.trace;
    const char *what = opt.op ? opt.op : args.at[0];
    struct open_options options = {.path = what,
                                   .device = opt.device,
                                   .dims = &opt.dims,
                                   .random = true,
                                   .seed = 1,
                                   .session = &desc};
    code = opt.op ? op_model(c, opt.op, &model) : cli_load(c, args.at[0], &model);
    if (code != EXIT_DONE)
        return code;
    code = opened_from_model(&o, c, model, &options);
    if (code == EXIT_DONE)
        code = bench(c, &o, what);
    opened_close(&o);
    return code;
}

const struct command cmd_bench = {
    .name = "bench",
    .summary = "Time a graph or a single op, step by step",
    .usage = "rlx bench FILE | rlx bench --op SPEC",
    .details =
        "Inputs and params are random. Times are of whole runs, inputs and outputs included;\n"
        "steps are timed in separate runs and compared with a copy on the same device.",
    .examples = "rlx bench model.onnx --dim seq=128\n"
                "rlx bench --op \"matmul f32[512,512] f32[512,512]\" --device vulkan",
    .run = run,
    .flags = flags,
};
