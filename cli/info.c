/* info.c: `rlx info`, what is in a file, and what becomes of it on a device. */
#include <string.h>

#include "bind.h"
#include "info_weights.h"

static struct {
    struct texts dims;
    const char *device;
    int64_t budget;
    bool json, dispatch, fusion, schedule, memory, bindings;
} opt;

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--dispatch", FLAG_SWITCH, &opt.dispatch, NULL,
         "instead: which ops have kernels, and what becomes of the others"},
        {"--fusion", FLAG_SWITCH, &opt.fusion, NULL,
         "instead: what was fused, and what was not and why"},
        {"--schedule", FLAG_SWITCH, &opt.schedule, NULL,
         "instead: the steps it becomes, by kind, with bytes and arithmetic"},
        {"--bindings", FLAG_SWITCH, &opt.bindings, NULL,
         "instead: inputs and outputs, where they are, and weights by group"},
        {"--memory", FLAG_SWITCH, &opt.memory, NULL, "instead: the memory it will take"},
        {"--budget", FLAG_NUMBER, &opt.budget, "BYTES",
         "with --memory: the memory there is (the device's)"},
        {"--device", FLAG_TEXT, &opt.device, "D", "for all of these: the device (auto)"},
        {"--dim", FLAG_LIST, &opt.dims, "NAME=N",
         "the size of a symbolic dim, for the last three (a batch: 1)"},
        {"--json", FLAG_SWITCH, &opt.json, NULL, "one JSON object"},
        {0}};
    return list;
}

/* What the compiler makes of it on a device. */
static int show_report(struct cli *c, const rlx_model *m, const char *path)
{
    rlx_device *dev;
    rlx_error err;
    rlx_status s;

    if (rlx_device_open(c->ctx, opt.device, &dev, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot open device", opt.device);
    s = opt.dispatch ? rlx_model_dispatch(m, dev, opt.json, cli_write, stdout, &err)
                     : rlx_model_fusion(m, dev, opt.json, cli_write, stdout, &err);
    rlx_device_close(dev);
    return s == RLX_OK ? EXIT_DONE : cli_fail(c, &err, "cannot look into", path);
}

static void memory_text(const rlx_memory_estimate *e)
{
    const struct {
        const char *what;
        uint64_t bytes;
    } rows[] = {{"weights", e->weights},     {"their copies", e->weight_copies},
                {"constants", e->constants}, {"activations", e->activations},
                {"states", e->states},       {"in all", e->total},
                {"budget", e->budget}};
    char text[32];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        printf("%-12s %16llu  %s\n", rows[i].what, (unsigned long long)rows[i].bytes,
               cli_bytes(rows[i].bytes, text));
    printf("inputs are %s of the activations\n", cli_bytes(e->inputs, text));
    if (e->deficit)
        printf("too large by %llu bytes (%s)\n", (unsigned long long)e->deficit,
               cli_bytes(e->deficit, text));
    else
        printf("it fits\n");
}

/* What an activation_budget costs and saves. */
static void recompute_text(const rlx_memory_estimate *e)
{
    char alive[32], kept[32];

    if (e->kept == 0)
        return;
    printf("%u steps are computed again, %.1f %% more arithmetic: %s alive at once, not %s\n",
           e->recomputed, e->flops ? 100 * (double)e->recomputed_flops / (double)e->flops : 0,
           cli_bytes(e->alive, alive), cli_bytes(e->kept, kept));
}

static int show_memory(struct cli *c, const struct opened *o, const char *path)
{
    rlx_memory_estimate e;
    rlx_device *dev;
    rlx_error err;

    if (rlx_device_open(c->ctx, opt.device, &dev, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot open device", opt.device);
    rlx_status s =
        rlx_model_memory(o->model, dev, o->dim, o->dim_count, (uint64_t)opt.budget, &e, &err);
    rlx_device_close(dev);
    if (s != RLX_OK)
        return cli_fail(c, &err, "cannot plan", path);
    if (opt.json)
        printf("{\"weights\": %llu, \"weight_copies\": %llu, \"constants\": %llu, \"activations\": "
               "%llu, \"states\": %llu, "
               "\"total\": %llu, \"inputs\": %llu, \"budget\": %llu, \"deficit\": %llu, "
               "\"recomputed\": %u, \"recomputed_flops\": %llu, \"flops\": %llu, \"kept\": %llu, "
               "\"alive\": %llu}\n",
               (unsigned long long)e.weights, (unsigned long long)e.weight_copies,
               (unsigned long long)e.constants, (unsigned long long)e.activations,
               (unsigned long long)e.states, (unsigned long long)e.total,
               (unsigned long long)e.inputs, (unsigned long long)e.budget,
               (unsigned long long)e.deficit, e.recomputed, (unsigned long long)e.recomputed_flops,
               (unsigned long long)e.flops, (unsigned long long)e.kept,
               (unsigned long long)e.alive);
    else {
        memory_text(&e);
        recompute_text(&e);
    }
    return EXIT_DONE;
}

static int show_session(struct cli *c, struct opened *o, const char *path)
{
    rlx_error err;
    rlx_status s = opt.schedule
                       ? rlx_session_schedule(o->session, opt.json, cli_write, stdout, &err)
                       : rlx_session_bindings(o->session, opt.json, cli_write, stdout, &err);

    return s == RLX_OK ? EXIT_DONE : cli_fail(c, &err, "cannot look into", path);
}

static int describe(struct cli *c, const rlx_model *m, const char *path)
{
    rlx_error err;

    if (rlx_model_describe(m, opt.json, cli_write, stdout, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot describe", path);
    return EXIT_DONE;
}

static int check_flags(struct cli *c)
{
    int views = opt.dispatch + opt.fusion + opt.schedule + opt.memory + opt.bindings;

    if (views > 1)
        return cli_misuse(
            c, "one of --dispatch, --fusion, --schedule, --bindings and --memory at a time");
    if (opt.device && views == 0)
        return cli_misuse(
            c, "--device needs --dispatch, --fusion, --schedule, --bindings or --memory");
    if (opt.budget < 0)
        return cli_misuse(c, "--budget must not be negative");
    if (!opt.device)
        opt.device = "auto";
    return EXIT_DONE;
}

/* Shows a file of tensors, with *code to return; false: it is another kind of file. */
static bool show_weights(struct cli *c, const char *path, int *code)
{
    rlx_file_kind kind = RLX_FILE_unknown;

    if (strcmp(path, "-") == 0 || (*code = cli_context(c)) != EXIT_DONE ||
        rlx_file_detect(c->ctx, path, &kind, NULL) != RLX_OK || !is_weights_file(kind))
        return false;
    if (opt.dispatch || opt.fusion || opt.schedule || opt.memory || opt.bindings)
        *code = cli_misuse(c, "%s has tensors, but no graph", path);
    else
        *code = info_weights(c, path, opt.json);
    return true;
}

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    struct opened o = {0};
    rlx_model *m;
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count != 1)
        return cli_misuse(c, "takes one file: a model, or a file of tensors");
    if ((code = check_flags(c)) != EXIT_DONE)
        return code;
    if (show_weights(c, args.at[0], &code))
        return code;
    if ((code = cli_load(c, args.at[0], &m)) != EXIT_DONE)
        return code;
    bool compiled = opt.schedule || opt.bindings;
    struct open_options options = {.path = args.at[0],
                                   .device = opt.device,
                                   .dims = &opt.dims,
                                   .random = compiled,
                                   .needs_sizes = opt.memory};
    if (compiled)
        code = opened_from_model(&o, c, m, &options);
    else
        code = opened_values(&o, c, m, &options);
    if (code == EXIT_DONE)
        code = compiled                     ? show_session(c, &o, args.at[0])
               : opt.memory                 ? show_memory(c, &o, args.at[0])
               : opt.dispatch || opt.fusion ? show_report(c, m, args.at[0])
                                            : describe(c, m, args.at[0]);
    opened_close(&o);
    return code;
}

const struct command cmd_info = {
    .name = "info",
    .summary = "Show what is in a model, or in a file of tensors",
    .usage = "rlx info FILE [--dispatch | --fusion | --schedule | --bindings | --memory]",
    .details = "FILE is a model, ONNX, the text form (*.rlx; - for standard input) or what rlx "
               "compile wrote:\n"
               "its inputs, params, outputs and ops. Or a file of tensors (GGUF, "
               "safetensors or its index,\nnpz, npy): its metadata, and the tensors with types, "
               "shapes and sizes.",
    .examples = "rlx info model.onnx\n"
                "rlx info weights.gguf --json\n"
                "rlx info model.onnx --memory --dim seq=128",
    .run = run,
    .flags = flags,
};
