/* run.c: `rlx run`, a graph on files, pictures and numbers. */
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "literal.h"
#include "profile.h"
#include "results.h"
#include "rlx/debug.h"
#include "watch.h"

#define UNSET INT64_MIN
static struct {
    struct texts inputs, params, dims, expect;
    const char *output, *device, *precision, *trace, *params_file, *inputs_file;
    const char *layout, *resize, *mean, *std, *scale, *labels, *tolerance;
    bool random, profile, f16_weights, nans, fail_nans, stats, fused, json;
    int64_t seed, limit, flat, top;
} opt = {.device = "auto", .limit = UNSET, .flat = -1};

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--input", FLAG_LIST, &opt.inputs, "NAME=VALUE",
         "an input: a file, a picture, numbers such as 1,2,3, or - (once per input)"},
        {"--inputs", FLAG_TEXT, &opt.inputs_file, "FILE", "inputs by name: npz, safetensors"},
        {"--param", FLAG_LIST, &opt.params, "NAME=FILE", "a value for a param; once per param"},
        {"--params", FLAG_TEXT, &opt.params_file, "FILE",
         "values for params by name: GGUF, safetensors, npz"},
        {"--random", FLAG_SWITCH, &opt.random, NULL, "random values for what is not given"},
        {"--seed", FLAG_NUMBER, &opt.seed, "N", "of the random values (0)"},
        {"--dim", FLAG_LIST, &opt.dims, "NAME=N",
         "the size of a symbolic dim; 1 for a batch if not given"},
        {"--device", FLAG_TEXT, &opt.device, "D", "where to run (auto); rlx devices lists them"},
        {"--precision", FLAG_TEXT, &opt.precision, "P",
         "f32, f16, mixed, mixed-bf16, mixed-conservative, compute=f16 (declared)"},
        {"--f16-weights", FLAG_SWITCH, &opt.f16_weights, NULL,
         "on GPUs, matmul and conv read f32 params as f16"},
        {"--layout", FLAG_TEXT, &opt.layout, "L",
         "of pictures: nchw, nhwc, chw, hwc or hw (by the input's shape)"},
        {"--resize", FLAG_TEXT, &opt.resize, "WxH", "of pictures: bilinear (as they are)"},
        {"--scale", FLAG_TEXT, &opt.scale, "X", "of pictures: pixels become 0 to X (1)"},
        {"--mean", FLAG_TEXT, &opt.mean, "A,B,C", "of pictures: subtracted, per channel (0)"},
        {"--std", FLAG_TEXT, &opt.std, "A,B,C", "of pictures: divided by, after that (1)"},
        {"--output", FLAG_TEXT, &opt.output, "DIR", "write every output there as NAME.npy"},
        {"--json", FLAG_SWITCH, &opt.json, NULL, "the outputs as one JSON object"},
        {"--top", FLAG_NUMBER, &opt.top, "K", "the K largest of each row, with their indices"},
        {"--labels", FLAG_TEXT, &opt.labels, "FILE",
         "with --top: a name for each index, one per line"},
        {"--expect", FLAG_LIST, &opt.expect, "FILE",
         "compare outputs with an npz, or NAME=FILE.npy; exit 1 if they differ"},
        {"--tolerance", FLAG_TEXT, &opt.tolerance, "T",
         "of --expect: T + T |x| (1e-4; 1e-2 for halves, 0 for integers)"},
        {"--limit", FLAG_NUMBER, &opt.limit, "N",
         "elements shown (8; --json: all), rows of --top (8), lines of --stats (40)"},
        {"--profile", FLAG_SWITCH, &opt.profile, NULL,
         "where the time goes, by kind of step and by node"},
        {"--trace", FLAG_TEXT, &opt.trace, "FILE",
         "write a trace for Perfetto or chrome://tracing"},
        {"--check-nans", FLAG_SWITCH, &opt.nans, NULL,
         "look for NaN and Inf after every step and show the first"},
        {"--fail-nans", FLAG_SWITCH, &opt.fail_nans, NULL, "fail if there is a NaN or Inf"},
        {"--stats", FLAG_SWITCH, &opt.stats, NULL, "how large the values of every node are"},
        {"--fused", FLAG_SWITCH, &opt.fused, NULL,
         "with those three: look at steps as compiled, not at nodes as written"},
        {"--flat", FLAG_NUMBER, &opt.flat, "I", "with --stats: the element at this position too"},
        {0}};
    return list;
}

/* What to do with the outputs. */
struct wanted {
    struct result_options show;
    struct labels labels;
    struct picture_options picture;
    double tolerance;
};

/* What watches the run, and what it saw. All of it goes to stderr: results are on stdout. */
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
        numerics.step < 0) /* otherwise it was logged */
        rlx_numerics_print(&numerics, cli_write, stderr);
    if (opt.stats)
        watch_print(stderr, &v->watch, opt.limit == UNSET ? 40 : opt.limit);
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
    cli_doing(c, "running", path);
    if (rlx_session_submit(o->session, &run, &ticket, &err) != RLX_OK)
        return opened_fail(o, &err, "cannot run", path);
    if ((code = opened_make_outputs(o)) != EXIT_DONE)
        return code;
    run = opened_run(o);
    if (rlx_session_wait(o->session, ticket, &run, &err) != RLX_OK)
        return opened_fail(o, &err, "cannot run", path);
    cli_progress_end(c);
    return EXIT_DONE;
}

static int run_model(struct cli *c, struct opened *o, const char *path, const struct wanted *w)
{
    struct views v = {.watch = {.flat = opt.flat}};
    int code = run_viewed(c, o, &v, path);

    if (code == EXIT_DONE)
        code = results_print(c, o, &w->show);
    if (code == EXIT_DONE)
        code = show_views(c, o, &v);
    profile_free(&v.profile);
    watch_free(&v.watch);
    if (code == EXIT_DONE && opt.output)
        code = results_save(c, o, opt.output);
    if (code == EXIT_DONE)
        code = results_expect(c, o, &opt.expect, w->tolerance, opt.json ? stderr : stdout);
    return code;
}

/* ---- flags ---- */

/* Up to four numbers, one per channel. */
static int take_channels(struct cli *c, const char *flag, const char *text, double out[4],
                         size_t *count)
{
    struct literal l = {0};
    bool taken = text && literal_read(text, &l) == LITERAL_READ && l.count <= 4 && l.count;

    for (size_t i = 0; taken && i < l.count; i++)
        out[i] = l.at[i].real;
    *count = taken ? l.count : 0;
    literal_free(&l);
    return taken || !text ? EXIT_DONE
                          : cli_misuse(c,
                                       "%s takes a number, or one for each channel with commas "
                                       "between them, not \"%s\"",
                                       flag, text);
}

static bool take_real(const char *text, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return *text && !*end && *out >= 0 && *out < 1e300;
}

static int take_picture(struct cli *c, struct picture_options *p)
{
    int code;

    *p = (struct picture_options){.layout = opt.layout, .resize = opt.resize, .scale = 1};
    if (opt.scale && (!take_real(opt.scale, &p->scale) || p->scale == 0))
        return cli_misuse(c, "--scale takes a positive number, not \"%s\"", opt.scale);
    if ((code = take_channels(c, "--mean", opt.mean, p->mean, &p->mean_count)) != EXIT_DONE ||
        (code = take_channels(c, "--std", opt.std, p->std, &p->std_count)) != EXIT_DONE)
        return code;
    for (size_t i = 0; i < p->std_count; i++)
        if (p->std[i] == 0)
            return cli_misuse(c, "--std cannot be 0: pixels are divided by it");
    return EXIT_DONE;
}

static int take_wanted(struct cli *c, struct wanted *w)
{
    if (opt.top < 0 || (opt.limit < 0 && opt.limit != UNSET))
        return cli_misuse(c, "%s must not be negative", opt.top < 0 ? "--top" : "--limit");
    if (opt.labels && !opt.top)
        return cli_misuse(c, "--labels needs --top");
    if (opt.tolerance && !opt.expect.count)
        return cli_misuse(c, "--tolerance needs --expect");
    w->tolerance = -1;
    if (opt.tolerance && !take_real(opt.tolerance, &w->tolerance))
        return cli_misuse(c, "--tolerance takes a number of at least 0, not \"%s\"", opt.tolerance);
    w->show = (struct result_options){.limit = opt.limit != UNSET     ? opt.limit
                                               : opt.json && !opt.top ? 0
                                                                      : 8,
                                      .top = opt.top,
                                      .json = opt.json,
                                      .labels = &w->labels};
    return opt.labels ? labels_load(c, opt.labels, &w->labels) : EXIT_DONE;
}

static int take_session(struct cli *c, rlx_session_desc *desc)
{
    static const rlx_debug_desc no_passes = {RLX_SIZED(rlx_debug_desc), .no_optimize = true};
    rlx_error err;

    if (opt.precision && rlx_precision_parse(opt.precision, desc, &err) != RLX_OK)
        return cli_misuse(c, "--precision: %s", err.message);
    if (opt.fused && !opt.stats && !opt.nans && !opt.fail_nans)
        return cli_misuse(c, "--fused needs --stats, --check-nans or --fail-nans");
    desc->f16_weights = opt.f16_weights;
    desc->check_numerics = opt.fail_nans ? RLX_NUMERICS_FAIL
                           : opt.nans    ? RLX_NUMERICS_REPORT
                                         : RLX_NUMERICS_OFF;
    if ((opt.stats || opt.nans || opt.fail_nans) && !opt.fused)
        desc->debug = &no_passes;
    return EXIT_DONE;
}

static int open_and_run(struct cli *c, const char *path, const rlx_session_desc *desc,
                        const struct wanted *w)
{
    struct opened o;
    int code = opened_from_file(&o, c,
                                &(struct open_options){.path = path,
                                                       .device = opt.device,
                                                       .inputs = &opt.inputs,
                                                       .inputs_file = opt.inputs_file,
                                                       .params = &opt.params,
                                                       .params_file = opt.params_file,
                                                       .dims = &opt.dims,
                                                       .random = opt.random,
                                                       .needs_values = true,
                                                       .seed = (uint64_t)opt.seed,
                                                       .picture = &w->picture,
                                                       .session = desc});

    if (code == EXIT_DONE)
        code = run_model(c, &o, path, w);
    opened_close(&o);
    return code;
}

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    struct wanted w = {0};
    rlx_session_desc desc = {RLX_SIZED(rlx_session_desc)};
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count != 1)
        return cli_misuse(c, "takes one model");
    c->trace = opt.trace;
    if ((code = take_session(c, &desc)) == EXIT_DONE &&
        (code = take_picture(c, &w.picture)) == EXIT_DONE &&
        (code = take_wanted(c, &w)) == EXIT_DONE)
        code = open_and_run(c, args.at[0], &desc, &w);
    labels_free(&w.labels);
    return code;
}

const struct command cmd_run = {
    .name = "run",
    .summary = "Run a model on files, pictures and numbers",
    .usage = "rlx run FILE --input NAME=VALUE ... [--random] [--output DIR] [--json]",
    .details =
        "FILE is a model: ONNX, the text form, or what rlx compile wrote. VALUE is a file (npy, "
        "npz,\n"
        "safetensors, ONNX's .pb), a picture (PNG, PPM, PGM, JPEG), numbers such as 16000, 1,2,3 "
        "or\n"
        "[[1,2],[3,4]], or - for an npy file on standard input; a file that has the name of a "
        "number is\n"
        "given by its path, ./16000. Prints each output's type and first elements. Exits with 1 if "
        "it\n"
        "fails, or an output is not as expected, and with 2 where the command line makes no sense.",
    .examples = "rlx run model.onnx --input x=x.npy\n"
                "rlx run model.onnx --random --dim seq=128\n"
                "rlx run model.onnx --input ids=101,2023,102 --input mask=1,1,1 --json\n"
                "rlx run net.onnx --input x=cat.png --resize 224x224 --mean 0.485,0.456,0.406 \\\n"
                "    --std 0.229,0.224,0.225 --top 5 --labels classes.txt\n"
                "rlx run model.onnx --inputs in.npz --expect out.npz --tolerance 1e-3",
    .run = run,
    .flags = flags,
};
