/* info.c: `rlx info`, what is in a file. */
#include "cli.h"

static struct {
    bool json;
} opt;

static const struct flag *flags(void)
{
    static const struct flag list[] = {{"--json", FLAG_SWITCH, &opt.json, NULL, "one JSON object"},
                                       {0}};
    return list;
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
    if ((code = cli_load(c, args.at[0], &m)) != EXIT_DONE)
        return code;
    if (rlx_model_describe(m, opt.json, cli_write, stdout, &err) != RLX_OK)
        code = cli_fail(c, &err, "cannot describe", args.at[0]);
    rlx_model_destroy(m);
    return code;
}

const struct command cmd_info = {
    .name = "info",
    .summary = "Show the inputs, params, outputs and ops of a file",
    .usage = "rlx info [--json] FILE",
    .details = "FILE is a graph in the text form (*.rlx), - for standard input.",
    .run = run,
    .flags = flags,
};
