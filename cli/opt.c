/* opt.c: `rlx opt`, a graph after named passes: what the pass tests are written with. */
#include "cli.h"

static struct {
    const char *pass, *device, *precision;
    bool list, types;
} opt;

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--pass", FLAG_TEXT, &opt.pass, "A,B", "the passes to run, in this order"},
        {"--device", FLAG_TEXT, &opt.device, "D", "as for this device (for none)"},
        {"--precision", FLAG_TEXT, &opt.precision, "P",
         "f32, f16, mixed, mixed-bf16, mixed-conservative, compute=f16 (declared)"},
        {"--types", FLAG_SWITCH, &opt.types, NULL, "the type after every node"},
        {"--list", FLAG_SWITCH, &opt.list, NULL, "list the passes"},
        {0}};
    return list;
}

static int list_passes(void)
{
    const char *name, *summary;

    for (size_t i = 0; rlx_pass_at(i, &name, &summary); i++)
        printf("%-20s %s\n", name, summary);
    return EXIT_DONE;
}

static int transform(struct cli *c, const rlx_model *m, const char *path)
{
    rlx_model *out;
    rlx_device *dev = NULL;
    rlx_session_desc desc = {RLX_SIZED(rlx_session_desc)};
    rlx_error err;
    int code = EXIT_DONE;

    if (opt.precision && rlx_precision_parse(opt.precision, &desc, &err) != RLX_OK)
        return cli_misuse(c, "--precision: %s", err.message);
    if (opt.device && rlx_device_open(c->ctx, opt.device, &dev, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot open", opt.device);
    if (rlx_model_transform_for(m, opt.pass, dev, &desc, &out, &err) != RLX_OK)
        code = cli_fail(c, &err, "cannot transform", path);
    else {
        if (rlx_model_print(out, false, opt.types, cli_write, stdout, &err) != RLX_OK)
            code = cli_fail(c, &err, "cannot print", path);
        rlx_model_destroy(out);
    }
    rlx_device_close(dev);
    return code;
}

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    rlx_model *m;
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (opt.list)
        return list_passes();
    if (args.count != 1 || !opt.pass)
        return cli_misuse(c, "takes --pass and one model; --list shows the passes");
    if ((code = cli_load(c, args.at[0], &m)) != EXIT_DONE)
        return code;
    code = transform(c, m, args.at[0]);
    rlx_model_destroy(m);
    return code;
}

const struct command cmd_opt = {
    .name = "opt",
    .summary = "Print a graph after named passes",
    .usage = "rlx opt --pass=A,B [--device D] [--precision P] [--types] FILE | rlx opt --list",
    .examples = "rlx opt --pass=simplify,dce graph.rlx\n"
                "rlx opt --list",
    .run = run,
    .flags = flags,
};
