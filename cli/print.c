/* print.c: `rlx print`, a graph as text or as a picture. */
#include "cli.h"

static struct {
    bool types, full;
    const char *svg, *dot;
} opt;

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--types", FLAG_SWITCH, &opt.types, NULL, "the type behind every node"},
        {"--full", FLAG_SWITCH, &opt.full, NULL,
         "large constants in full, so that it parses again"},
        {"--svg", FLAG_TEXT, &opt.svg, "OUT", "draw the graph to an SVG file instead"},
        {"--dot", FLAG_TEXT, &opt.dot, "OUT", "write it for Graphviz instead"},
        {0}};
    return list;
}

static int draw(struct cli *c, const rlx_model *m, rlx_picture kind, const char *path)
{
    struct buffer b = {0};
    rlx_error err;
    int code;

    if (rlx_model_draw(m, kind, buffer_add, &b, &err) != RLX_OK)
        code = cli_fail(c, &err, "cannot draw", path);
    else
        code = cli_write_file(c, path, b.at, b.len);
    buffer_free(&b);
    return code;
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
    if (opt.svg)
        code = draw(c, m, RLX_PICTURE_SVG, opt.svg);
    if (opt.dot && code == EXIT_DONE)
        code = draw(c, m, RLX_PICTURE_DOT, opt.dot);
    if (!opt.svg && !opt.dot &&
        rlx_model_print(m, !opt.full, opt.types, cli_write, stdout, &err) != RLX_OK)
        code = cli_fail(c, &err, "cannot print", args.at[0]);
    rlx_model_destroy(m);
    return code;
}

const struct command cmd_print = {
    .name = "print",
    .summary = "Print a graph in its canonical text form, or draw it",
    .usage = "rlx print [--types] [--full] [--svg OUT] [--dot OUT] FILE",
    .run = run,
    .flags = flags,
};
