/* info.c: `rlx info`, what is in a file, and what a device would make of it. */
#include "cli.h"

static struct {
    bool json, dispatch, fusion;
    const char *device;
} opt;

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--dispatch", FLAG_SWITCH, &opt.dispatch, NULL,
         "which ops a device has kernels for, and what becomes of the others"},
        {"--fusion", FLAG_SWITCH, &opt.fusion, NULL, "what was fused, and what was not and why"},
        {"--device", FLAG_TEXT, &opt.device, "D", "the device of --dispatch and --fusion (cpu)"},
        {"--json", FLAG_SWITCH, &opt.json, NULL, "one JSON object"},
        {0}};
    return list;
}

/* What the compiler makes of it on a device. */
static int compiled(struct cli *c, const rlx_model *m, const char *path)
{
    const char *name = opt.device ? opt.device : "cpu";
    rlx_device *dev;
    rlx_error err;
    rlx_status s;

    if (rlx_device_open(c->ctx, rlx_cstr(name), &dev, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot open", name);
    s = opt.dispatch ? rlx_model_dispatch(m, dev, opt.json, cli_write, stdout, &err)
                     : rlx_model_fusion(m, dev, opt.json, cli_write, stdout, &err);
    rlx_device_close(dev);
    return s == RLX_OK ? EXIT_DONE : cli_fail(c, &err, "cannot look into", path);
}

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    rlx_model *m;
    rlx_error err;
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count != 1)
        return cli_misuse(c, "takes one file");
    if (opt.dispatch && opt.fusion)
        return cli_misuse(c, "--dispatch and --fusion are two reports: ask for one");
    if (opt.device && !opt.dispatch && !opt.fusion)
        return cli_misuse(c, "--device belongs to --dispatch or --fusion");
    if ((code = cli_load(c, args.at[0], &m)) != EXIT_DONE)
        return code;
    if (opt.dispatch || opt.fusion)
        code = compiled(c, m, args.at[0]);
    else if (rlx_model_describe(m, opt.json, cli_write, stdout, &err) != RLX_OK)
        code = cli_fail(c, &err, "cannot describe", args.at[0]);
    rlx_model_destroy(m);
    return code;
}

const struct command cmd_info = {
    .name = "info",
    .summary = "Show the inputs, params, outputs and ops of a file",
    .usage = "rlx info [--dispatch | --fusion] [--device D] [--json] FILE",
    .details = "FILE is a graph in the text form (*.rlx), - for standard input.",
    .run = run,
    .flags = flags,
};
