/* run.c: `rlx run`, a graph on files. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bind.h"
#include "profile.h"
#include "tensor_text.h"
#include "watch.h"

static struct {
    struct texts inputs, params, dims, fixed;
    const char *output, *device, *precision, *trace, *params_file;
    bool random, profile, f16_weights, nans, fail_nans, stats, fused;
    int64_t seed, limit, flat;
} opt = {.device = "auto", .limit = 40, .flat = -1};

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--input", FLAG_LIST, &opt.inputs, "NAME=FILE", "a value for an input; once per input"},
        {"--param", FLAG_LIST, &opt.params, "NAME=FILE", "a value for a param; once per param"},
        {"--params", FLAG_TEXT, &opt.params_file, "FILE",
         "values for params by name: GGUF, safetensors, npz"},
        {"--output", FLAG_TEXT, &opt.output, "DIR", "write every output there as NAME.npy"},
        {"--device", FLAG_TEXT, &opt.device, "D", "where to run; rlx devices lists them"},
        {"--fix", FLAG_LIST, &opt.fixed, "NAME=X.npy",
         "an ONNX model's input that is known when it is loaded: a shape, a choice"},
        {"--dim", FLAG_LIST, &opt.dims, "NAME=N", "the size of a symbolic dim"},
        {"--precision", FLAG_TEXT, &opt.precision, "P",
         "as f32, f16, mixed, mixed-conservative, mixed-bf16, or compute=f16,..."},
        {"--f16-weights", FLAG_SWITCH, &opt.f16_weights, NULL,
         "on GPUs, matmul and conv read f32 params as f16"},
        {"--random", FLAG_SWITCH, &opt.random, NULL, "random values for what is not given"},
        {"--seed", FLAG_NUMBER, &opt.seed, "N", "of the random values"},
        {"--profile", FLAG_SWITCH, &opt.profile, NULL,
         "where the time goes, by kind of step and by node"},
        {"--trace", FLAG_TEXT, &opt.trace, "FILE",
         "write a trace for Perfetto or chrome://tracing"},
        {"--check-nans", FLAG_SWITCH, &opt.nans, NULL,
         "look for NaN and Inf after every step and show the first"},
        {"--fail-nans", FLAG_SWITCH, &opt.fail_nans, NULL, "fail if there are any"},
        {"--stats", FLAG_SWITCH, &opt.stats, NULL, "how large every node's numbers are"},
        {"--fused", FLAG_SWITCH, &opt.fused, NULL,
         "with those three: look at steps as compiled, not at nodes as written"},
        {"--limit", FLAG_NUMBER, &opt.limit, "N", "lines of --stats (40); 0: all"},
        {"--flat", FLAG_NUMBER, &opt.flat, "I", "with --stats: the element at this position too"},
        {0}};
    return list;
}

static void print_output(const rlx_binding *b)
{
    const rlx_tensor *t = &b->tensor;
    size_t count = t->bytes / rlx_dtype_size(t->dtype);
    bool readable = t->dtype != RLX_DTYPE_c64;
    char shape[SHAPE_TEXT];

    printf("%-16s %s%s", b->name, rlx_dtype_name(t->dtype), shape_text(t->rank, t->dim, shape));
    for (size_t i = 0; readable && i < count && i < 8; i++)
        printf(" %.6g", tensor_element(t, i));
    printf("%s\n", readable && count > 8 ? " ..." : "");
}

/* A file name from an output's name: no separators, nothing hidden. */
static void file_name(const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s", name);
    for (char *p = out; *p; p++)
        if (*p == '/' || (*p == '.' && p == out))
            *p = '_';
}

static int save(struct cli *c, const struct opened *o)
{
    char path[4096], name[SHAPE_TEXT];
    rlx_error err;

    if (mkdir(opt.output, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "rlx run: cannot make the folder %s: %s\n", opt.output, strerror(errno));
        return EXIT_FAILED;
    }
    for (size_t i = 0; i < o->output_count; i++) {
        file_name(o->output[i].name, name, sizeof name);
        snprintf(path, sizeof path, "%s/%s.npy", opt.output, name);
        if (rlx_tensor_save(c->ctx, path, &o->output[i].tensor, &err) != RLX_OK)
            return cli_fail(c, &err, "cannot write", path);
    }
    return EXIT_DONE;
}

/* What looks at the run, and what it saw. Everything goes to stderr: results are on stdout. */
struct views {
    struct profile profile;
    struct watch watch;
};

static int set_views(struct cli *c, struct opened *o, struct views *v)
{
    rlx_error err;

    if (opt.profile)
        rlx_session_set_profile(o->session, profile_note, &v->profile);
    if (opt.stats && rlx_session_set_watch(o->session, watch_note, &v->watch, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot watch", "the run");
    return EXIT_DONE;
}

static int show_views(struct cli *c, struct opened *o, struct views *v)
{
    struct ceiling ceiling;
    rlx_numerics numerics;

    if (opt.nans && rlx_session_numerics(o->session, &numerics, NULL) == RLX_OK &&
        numerics.step < 0) /* else it was logged */
        rlx_numerics_print(&numerics, cli_write, stderr);
    if (opt.stats)
        watch_print(stderr, &v->watch, opt.limit);
    if (!opt.profile)
        return EXIT_DONE;
    int code = profile_ceiling(c, o->device, &v->profile, &ceiling);
    if (code == EXIT_DONE)
        profile_print(stderr, &v->profile, &ceiling);
    return code;
}

static int run_viewed(struct cli *c, struct opened *o, struct views *v, const char *path)
{
    rlx_error err;
    rlx_run_desc run = opened_run(o);
    uint64_t ticket;
    int code = set_views(c, o, v);

    if (code != EXIT_DONE)
        return code;
    if (rlx_session_submit(o->session, &run, &ticket, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot run", path);
    if ((code = opened_make_outputs(o)) != EXIT_DONE)
        return code;
    run = opened_run(o);
    if (rlx_session_wait(o->session, ticket, &run, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot run", path);
    for (size_t i = 0; i < o->output_count; i++)
        print_output(&o->output[i]);
    return show_views(c, o, v);
}

static int run_model(struct cli *c, struct opened *o, const char *path)
{
    struct views v = {.watch = {.flat = opt.flat}};
    int code = run_viewed(c, o, &v, path);

    profile_free(&v.profile);
    watch_free(&v.watch);
    return code == EXIT_DONE && opt.output ? save(c, o) : code;
}

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    struct opened o;
    rlx_session_desc desc = {0};
    rlx_error err;
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count != 1)
        return cli_misuse(c, "takes one file");
    if (opt.precision && rlx_precision_parse(opt.precision, &desc, &err) != RLX_OK)
        return cli_misuse(c, "--precision: %s", err.message);
    desc.f16_weights = opt.f16_weights;
    if (opt.limit < 0)
        return cli_misuse(c, "--limit must not be negative");
    if (opt.fused && !opt.stats && !opt.nans && !opt.fail_nans)
        return cli_misuse(c, "--fused goes with --stats, --check-nans or --fail-nans");
    c->trace = opt.trace;
    desc.check_numerics = opt.fail_nans ? RLX_NUMERICS_FAIL
                          : opt.nans    ? RLX_NUMERICS_REPORT
                                        : RLX_NUMERICS_OFF;
    desc.no_optimize = (opt.stats || opt.nans || opt.fail_nans) && !opt.fused;
    code = opened_open(&o, c,
                       &(struct open_options){.path = args.at[0],
                                              .device = opt.device,
                                              .inputs = &opt.inputs,
                                              .params = &opt.params,
                                              .params_file = opt.params_file,
                                              .dims = &opt.dims,
                                              .fixed = &opt.fixed,
                                              .random = opt.random,
                                              .seed = (uint64_t)opt.seed,
                                              .session = &desc});
    if (code == EXIT_DONE)
        code = run_model(c, &o, args.at[0]);
    opened_close(&o);
    return code;
}

const struct command cmd_run = {
    .name = "run",
    .summary = "Run a graph on .npy files",
    .usage = "rlx run FILE --input NAME=X.npy ... [--output DIR]",
    .details = "Prints each output's type and first elements; --output writes them whole.",
    .run = run,
    .flags = flags,
};
