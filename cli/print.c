/* print.c: `rlx print`, a graph as text or as a picture. */
#include <string.h>

#include "page.h"

static struct {
    bool types, full, profile;
    const char *svg, *dot, *html, *after, *device, *diff;
    struct texts dims;
} opt;

static char details[2048];

/* The names of the passes, in lines that fit. */
static void list_passes(void)
{
    size_t len = (size_t)snprintf(details, sizeof details, "The passes of --after:"), width = len;
    const char *pass;

    for (size_t i = 0; len < sizeof details && rlx_pass_at(i, &pass, NULL); i++) {
        bool full = width + strlen(pass) > 90;
        int added = snprintf(details + len, sizeof details - len, "%s%s%s", i ? "," : "",
                             full ? "\n" : " ", pass);
        width = full ? strlen(pass) : width + (size_t)added;
        len += (size_t)added;
    }
}

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--types", FLAG_SWITCH, &opt.types, NULL, "the type after every node"},
        {"--full", FLAG_SWITCH, &opt.full, NULL,
         "large constants in full, so that it parses again"},
        {"--after", FLAG_TEXT, &opt.after, "PASS", "as it is after this pass of a compile"},
        {"--device", FLAG_TEXT, &opt.device, "D", "the device of --after (cpu) and --html (auto)"},
        {"--svg", FLAG_TEXT, &opt.svg, "OUT", "draw the graph to an SVG file instead"},
        {"--dot", FLAG_TEXT, &opt.dot, "OUT", "write it for Graphviz instead"},
        {"--html", FLAG_TEXT, &opt.html, "OUT", "write a page for a browser instead"},
        {"--profile", FLAG_SWITCH, &opt.profile, NULL,
         "with --html: run it on random inputs and show times"},
        {"--dim", FLAG_LIST, &opt.dims, "NAME=N", "with --html: the size of a symbolic dim"},
        {"--diff", FLAG_TEXT, &opt.diff, "FILE2", "only what turns FILE into FILE2, as diff -u"},
        {0}};

    list_passes();
    return list;
}

static int draw(struct cli *c, const rlx_model *m, rlx_picture kind, const char *path)
{
    struct buffer b = {0};
    rlx_error err;
    int code;

    cli_doing(c, "drawing", path);
    rlx_status s = rlx_model_draw(m, kind, buffer_add, &b, &err);
    cli_progress_end(c);
    if (s != RLX_OK)
        code = cli_fail(c, &err, "cannot draw", path);
    else
        code = cli_write_file(c, path, b.at, b.len);
    buffer_free(&b);
    return code;
}

static int draw_all(struct cli *c, const rlx_model *m)
{
    int code = opt.svg ? draw(c, m, RLX_PICTURE_SVG, opt.svg) : EXIT_DONE;

    return opt.dot && code == EXIT_DONE ? draw(c, m, RLX_PICTURE_DOT, opt.dot) : code;
}

static int show_page(struct cli *c, rlx_model *m, const char *path)
{
    return page_write(c, m,
                      &(struct page_options){.path = path,
                                             .out = opt.html,
                                             .device = opt.device ? opt.device : "auto",
                                             .dims = &opt.dims,
                                             .profile = opt.profile});
}

static int show_page_after(struct cli *c, rlx_model *m, const char *path)
{
    char view[96];

    snprintf(view, sizeof view, "after %s", opt.after);
    return page_write(
        c, m,
        &(struct page_options){.path = path, .out = opt.html, .view = view, .graph_only = true});
}

/* The graph after a pass: drawn, or printed. */
static int show_after(struct cli *c, const rlx_model *m, const char *path)
{
    const char *name = opt.device ? opt.device : "cpu";
    rlx_device *dev;
    rlx_model *then;
    rlx_error err;
    int code = EXIT_DONE;

    if (rlx_device_open(c->ctx, name, &dev, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot open", name);
    if (opt.svg || opt.dot || opt.html) {
        if (rlx_model_after(m, opt.after, dev, &then, &err) != RLX_OK)
            code = cli_fail(c, &err, "cannot compile", path);
        else {
            code = draw_all(c, then);
            if (opt.html && code == EXIT_DONE)
                code = show_page_after(c, then, path);
            else
                rlx_model_destroy(then);
        }
    } else if (rlx_model_print_after(m, opt.after, dev, !opt.full, opt.types, cli_write, stdout,
                                     &err) != RLX_OK)
        code = cli_fail(c, &err, "cannot compile", path);
    rlx_device_close(dev);
    return code;
}

static int diff(struct cli *c, const rlx_model *m, const char *path)
{
    rlx_model *other;
    rlx_error err;
    int code = cli_load(c, opt.diff, &other);

    if (code != EXIT_DONE)
        return code;
    if (rlx_model_diff(m, other, path, opt.diff, cli_write, stdout, &err) != RLX_OK)
        code = cli_fail(c, &err, "cannot compare", path);
    rlx_model_destroy(other);
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
        return cli_misuse(c, "takes one model");
    if (opt.device && !opt.after && !opt.html)
        return cli_misuse(c, "--device is for --after and --html");
    if ((opt.profile || opt.dims.count) && (!opt.html || opt.after))
        return cli_misuse(c, "--profile and --dim are for --html, without --after");
    if ((code = cli_load(c, args.at[0], &m)) != EXIT_DONE)
        return code;
    code = opt.after ? show_after(c, m, args.at[0]) : draw_all(c, m);
    if (opt.diff && code == EXIT_DONE)
        code = diff(c, m, args.at[0]);
    if (opt.html && !opt.after && code == EXIT_DONE)
        return show_page(c, m, args.at[0]);
    if (!opt.svg && !opt.dot && !opt.after && !opt.diff &&
        rlx_model_print(m, !opt.full, opt.types, cli_write, stdout, &err) != RLX_OK)
        code = cli_fail(c, &err, "cannot print", args.at[0]);
    rlx_model_destroy(m);
    return code;
}

const struct command cmd_print = {
    .name = "print",
    .summary = "Print a graph in its canonical text form, or draw it",
    .usage = "rlx print FILE [--after PASS] [--svg OUT] [--dot OUT] [--html OUT [--profile]]",
    .details = details,
    .examples = "rlx print model.onnx --types\n"
                "rlx print model.onnx --after fuse-matmul-bias --device cpu\n"
                "rlx print model.onnx --html model.html --profile --dim seq=128",
    .run = run,
    .flags = flags,
};
