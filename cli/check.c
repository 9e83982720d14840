/* check.c: `rlx check`, a graph on several devices, node by node. */
#include <stdlib.h>
#include <string.h>

#include "bind.h"

#define MAX_DEVICES 16

static struct {
    struct texts inputs, params, dims;
    const char *devices, *params_file;
    int64_t seed;
    bool exact, verbose, json;
} opt = {.devices = "cpu,cpu:baseline"};

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--devices", FLAG_TEXT, &opt.devices, "A,B,...",
         "A is what the others are compared with (cpu,cpu:baseline)"},
        {"--input", FLAG_LIST, &opt.inputs, "NAME=VALUE",
         "an input, as for rlx run; otherwise random"},
        {"--param", FLAG_LIST, &opt.params, "NAME=FILE", "a value for a param; otherwise random"},
        {"--params", FLAG_TEXT, &opt.params_file, "FILE",
         "values for params by name: GGUF, safetensors, npz"},
        {"--dim", FLAG_LIST, &opt.dims, "NAME=N",
         "the size of a symbolic dim; 1 for a batch if not given"},
        {"--seed", FLAG_NUMBER, &opt.seed, "N", "of the random values (0)"},
        {"--exact", FLAG_SWITCH, &opt.exact, NULL, "results must be equal, bit for bit"},
        {"--verbose", FLAG_SWITCH, &opt.verbose, NULL,
         "show every node, not only those that differ"},
        {"--json", FLAG_SWITCH, &opt.json, NULL, "one JSON object"},
        {0}};
    return list;
}

struct devices {
    rlx_device *at[MAX_DEVICES];
    size_t count;
};

static int open_devices(struct cli *c, struct devices *d)
{
    for (const char *at = opt.devices; *at;) {
        size_t len = strcspn(at, ",");
        char name[64];
        rlx_error err;
        if (d->count == MAX_DEVICES)
            return cli_misuse(c, "at most %d devices", MAX_DEVICES);
        snprintf(name, sizeof name, "%.*s", (int)len, at);
        if (rlx_device_open(c->ctx, name, &d->at[d->count], &err) != RLX_OK)
            return cli_fail(c, &err, "cannot open device", name);
        d->count++;
        at += len + (at[len] == ',');
    }
    return d->count < 2 ? cli_misuse(c, "--devices takes two or more, as in cpu,vulkan, not \"%s\"",
                                     opt.devices)
                        : EXIT_DONE;
}

/* Printed as results arrive; in JSON, two lists. */
struct printer {
    size_t nodes, outputs;
};

static const char *const verdicts[] = {"ok", "DIFFERS", "skipped"};

static void print_node(void *user, const rlx_check_node *n)
{
    struct printer *p = user;

    if (opt.json) {
        printf("%s{\"device\": \"%s\", \"node\": %d, \"op\": \"%s\", \"label\": ",
               p->nodes++ ? ", " : "", n->device, n->node, n->op);
        cli_json_string(stdout, n->label.ptr ? n->label.ptr : "", n->label.len);
        printf(", \"verdict\": \"%s\", \"error\": ", verdicts[n->verdict]);
        if (n->error < 1e300)
            printf("%.6g, \"message\": ", n->error);
        else
            printf("null, \"message\": ");
        cli_json_string(stdout, n->message, strlen(n->message));
        printf("}");
        return;
    }
    if (n->verdict == RLX_PASSED && !opt.verbose)
        return;
    printf("%-14s node %4d %-24s %-16.*s %-8s %8.3g  %s\n", n->device, n->node, n->op,
           (int)n->label.len, n->label.ptr ? n->label.ptr : "", verdicts[n->verdict], n->error,
           n->message);
}

static void print_output(void *user, const rlx_check_output *o)
{
    struct printer *p = user;
    const rlx_comparison *k = &o->comparison;

    if (opt.json) {
        printf("%s{\"device\": \"%s\", \"name\": ", p->outputs++ ? ", " : "], \"outputs\": [",
               o->device);
        cli_json_string(stdout, o->name.ptr ? o->name.ptr : "", o->name.len);
        printf(", \"passed\": %s, \"max_abs\": %.9g, \"mean_abs\": %.9g, \"cosine\": %.9g, "
               "\"nan\": %llu, \"worst\": %lld}",
               k->passed ? "true" : "false", k->max_abs, k->mean_abs, k->cosine,
               (unsigned long long)k->nan_count, (long long)k->worst_index);
        return;
    }
    printf("%-14s output %-16.*s %s: max error %.3g, relative %.3g, mean %.3g, cosine %.9f",
           o->device, (int)o->name.len, o->name.ptr ? o->name.ptr : "",
           k->passed ? "ok" : "DIFFERS", k->max_abs, k->max_rel, k->mean_abs, k->cosine);
    if (k->nan_count)
        printf(", %llu NaN", (unsigned long long)k->nan_count);
    printf("; worst at %lld\n", (long long)k->worst_index);
}

static void print_verdict(const rlx_check_summary *s)
{
    printf("%zu nodes agree, %zu differ, %zu skipped; %zu of %zu outputs differ\n", s->passed,
           s->failed, s->skipped, s->outputs_failed, s->outputs);
    if (s->devices_skipped)
        printf("%zu devices were skipped: they compute nothing, or cannot run the graph\n",
               s->devices_skipped);
    if (s->failed)
        printf("the first to differ is node %d, %s%s%s%s, on %s\n", s->first_node, s->first_op,
               s->first_label[0] ? " \"" : "", s->first_label, s->first_label[0] ? "\"" : "",
               s->first_device);
    else if (s->outputs_failed)
        printf("every node agrees on its own: the differences add up, or come from fusing nodes\n");
    else if (s->passed)
        printf("the devices agree\n");
    else
        printf("nothing was compared\n");
}

static int check(struct cli *c, struct opened *o, const struct devices *d, const char *path)
{
    struct printer p = {0};
    rlx_check_summary sum;
    rlx_error err;
    rlx_run_desc run = opened_run(o);
    rlx_check_desc desc = {RLX_SIZED(rlx_check_desc),   .devices = d->at,
                           .device_count = d->count,    .run = &run,
                           .exact = opt.exact,          .each_node = print_node,
                           .each_output = print_output, .user = &p};

    if (opt.json)
        printf("{\"nodes\": [");
    cli_doing(c, "checking", path);
    rlx_status s = rlx_check(o->model, &desc, &sum, &err);
    cli_progress_end(c);
    if (s != RLX_OK)
        return opened_fail(o, &err, "cannot check", path);
    if (opt.json)
        printf("%s], \"passed\": %zu, \"failed\": %zu, \"skipped\": %zu, \"outputs_failed\": %zu, "
               "\"devices_skipped\": %zu, \"first_node\": %d}\n",
               p.outputs ? "" : "], \"outputs\": [", sum.passed, sum.failed, sum.skipped,
               sum.outputs_failed, sum.devices_skipped, sum.first_node);
    else
        print_verdict(&sum);
    if (sum.failed + sum.outputs_failed == 0)
        return EXIT_DONE;
    fprintf(stderr, "rlx check: the devices differ\n");
    return EXIT_FAILED;
}

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    struct opened o = {0};
    struct devices d = {.count = 0};
    rlx_model *model;
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count != 1)
        return cli_misuse(c, "takes one model");
    if ((code = cli_load(c, args.at[0], &model)) != EXIT_DONE)
        return code;
    code = opened_values(&o, c, model,
                         &(struct open_options){.path = args.at[0],
                                                .inputs = &opt.inputs,
                                                .params = &opt.params,
                                                .params_file = opt.params_file,
                                                .dims = &opt.dims,
                                                .random = true,
                                                .seed = (uint64_t)opt.seed});
    if (code == EXIT_DONE)
        code = open_devices(c, &d);
    if (code == EXIT_DONE)
        code = check(c, &o, &d, args.at[0]);
    for (size_t i = 0; i < d.count; i++)
        rlx_device_close(d.at[i]);
    opened_close(&o);
    return code;
}

const struct command cmd_check = {
    .name = "check",
    .summary = "Compare a graph's results on several devices, node by node",
    .usage = "rlx check FILE [--devices A,B,...]",
    .details =
        "Each node runs alone on each device, on the values that the first device had there, and\n"
        "its result is compared within the tolerance of its op; then the whole graph is compared.\n"
        "Exits with 1 if something differs.",
    .examples = "rlx check model.onnx --devices cpu,vulkan\n"
                "rlx check model.onnx --dim seq=64 --verbose",
    .run = run,
    .flags = flags,
};
