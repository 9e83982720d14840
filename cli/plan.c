/* plan.c: `rlx plan`, where every byte of a program lives, before it runs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "rlx/debug.h"

static struct {
    int64_t capacity;
    const char *svg, *device;
    struct texts dims;
    bool json, quiet, no_reuse;
} opt = {.device = "auto"};

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--capacity", FLAG_NUMBER, &opt.capacity, "N", "exit 1 if it does not fit in N bytes"},
        {"--svg", FLAG_TEXT, &opt.svg, "OUT", "draw it: time to the right, offset upwards"},
        {"--json", FLAG_SWITCH, &opt.json, NULL, "one JSON object"},
        {"--quiet", FLAG_SWITCH, &opt.quiet, NULL, "one line only"},
        {"--device", FLAG_TEXT, &opt.device, "D", "plan for this device (auto)"},
        {"--dim", FLAG_LIST, &opt.dims, "NAME=N",
         "the size of a symbolic dim; 1 for a batch if not given"},
        {"--no-reuse", FLAG_SWITCH, &opt.no_reuse, NULL, "give every tensor its own bytes"},
        {0}};
    return list;
}

struct source { /* where plans come from: a session, or a CSV file */
    rlx_session *session;
    struct buffer *csv;
};

static rlx_status make(struct cli *c, const struct source *s, rlx_plan_format format,
                       rlx_write_fn write, void *user, rlx_plan_summary *sum, rlx_error *err)
{
    if (!s->csv)
        return rlx_session_plan(s->session, format, write, user, sum, err);
    return rlx_plan_csv(c->ctx, (rlx_str){s->csv->at, s->csv->len}, (uint64_t)opt.capacity, format,
                        write, user, sum, err);
}

static int show(struct cli *c, const struct source *s, const char *path)
{
    rlx_plan_summary sum;
    rlx_error err;
    struct buffer text = {0};
    rlx_plan_format format = opt.svg ? RLX_PLAN_SVG : opt.json ? RLX_PLAN_JSON : RLX_PLAN_TEXT;
    bool want = !opt.quiet || opt.svg;
    int code = EXIT_DONE;

    if (make(c, s, format, want ? buffer_add : NULL, &text, &sum, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot plan", path);
    if (want)
        code = cli_write_file(c, opt.svg, text.at ? text.at : "", text.len);
    buffer_free(&text);
    bool fits = opt.capacity <= 0 || sum.arena <= (uint64_t)opt.capacity;
    if ((opt.quiet || opt.svg) && !opt.json)
        printf("%s: %llu bytes, lower bound %llu, without sharing %llu, by %s%s\n", path,
               (unsigned long long)sum.arena, (unsigned long long)sum.lower_bound,
               (unsigned long long)sum.unshared, sum.method, fits ? "" : ": does not fit");
    if (!fits) {
        fprintf(stderr, "rlx plan: %s needs %llu bytes, the capacity is %lld\n", path,
                (unsigned long long)sum.arena, (long long)opt.capacity);
        return EXIT_FAILED;
    }
    return code;
}

static int plan_csv(struct cli *c, const char *path)
{
    struct buffer csv = {0};
    struct source s = {.csv = &csv};
    char chunk[65536];
    size_t n;
    FILE *f = fopen(path, "rb");
    int code = cli_context(c);

    if (!f) {
        fprintf(stderr, "rlx plan: cannot read %s: %s\n", path, strerror(errno));
        return EXIT_FAILED;
    }
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
        buffer_add(&csv, chunk, n);
    fclose(f);
    if (code == EXIT_DONE && csv.at)
        code = show(c, &s, path);
    else if (code == EXIT_DONE) {
        fprintf(stderr, "rlx plan: %s is empty\n", path);
        code = EXIT_FAILED;
    }
    buffer_free(&csv);
    return code;
}

static int plan_model(struct cli *c, const char *path)
{
    struct opened o;
    const rlx_debug_desc debug = {RLX_SIZED(rlx_debug_desc), .no_reuse = opt.no_reuse,
                                  .check_plan = true};
    const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .debug = &debug};
    int code = opened_from_file(&o, c,
                                &(struct open_options){.path = path,
                                                       .device = opt.device,
                                                       .dims = &opt.dims,
                                                       .needs_sizes = true,
                                                       .session = &desc});

    if (code == EXIT_DONE) {
        struct source s = {.session = o.session};
        code = show(c, &s, path);
    }
    opened_close(&o);
    return code;
}

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count != 1)
        return cli_misuse(c, "takes one model or CSV file");
    if (opt.capacity < 0)
        return cli_misuse(c, "--capacity must not be negative");
    size_t len = strlen(args.at[0]);
    bool csv = len > 4 && strcmp(args.at[0] + len - 4, ".csv") == 0;
    return csv ? plan_csv(c, args.at[0]) : plan_model(c, args.at[0]);
}

const struct command cmd_plan = {
    .name = "plan",
    .summary = "Show a program's memory before it runs",
    .usage = "rlx plan FILE|CSV [--capacity N] [--svg OUT] [--json]",
    .details = "FILE is a graph; CSV a bare problem with the columns id, lower, upper, size, each\n"
               "alive in [lower, upper).",
    .examples = "rlx plan model.onnx --dim seq=128\n"
                "rlx plan graph.rlx --svg plan.svg\n"
                "rlx plan problem.csv --capacity 1048576",
    .run = run,
    .flags = flags,
};
