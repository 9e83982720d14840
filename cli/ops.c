/* ops.c: `rlx ops`, the op table and what exists for each op. */
#include <string.h>

#include "cli.h"

static struct {
    bool json, missing;
    const char *category;
} opt;

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--json", FLAG_SWITCH, &opt.json, NULL, "a JSON array, one object per op"},
        {"--missing", FLAG_SWITCH, &opt.missing, NULL, "only ops that lack infer, cpu or vulkan"},
        {"--category", FLAG_TEXT, &opt.category, "NAME", "only ops of this category (all)"},
        {0}};
    return list;
}

static bool wanted(const rlx_op_row *r)
{
    if (opt.category && strcmp(opt.category, r->category) != 0)
        return false;
    return !opt.missing || !r->infer || !r->cpu || !r->vulkan;
}

static void field(const char *key, const char *text)
{
    printf(", \"%s\": ", key);
    cli_json_string(stdout, text, strlen(text));
}

static void flag_field(const char *key, bool on)
{
    printf(", \"%s\": %s", key, on ? "true" : "false");
}

static void print_json(void)
{
    rlx_op_row r;
    bool first = true;

    fputs("[", stdout);
    for (size_t i = 0; rlx_op_at(i, &r); i++) {
        if (!wanted(&r))
            continue;
        printf("%s\n  {\"name\": ", first ? "" : ",");
        first = false;
        cli_json_string(stdout, r.name, strlen(r.name));
        field("family", r.family);
        field("category", r.category);
        field("inputs", r.inputs);
        field("attributes", r.attributes);
        field("summary", r.summary);
        flag_field("special", r.special);
        flag_field("infer", r.infer);
        flag_field("grad", r.grad);
        flag_field("cpu", r.cpu);
        flag_field("vulkan", r.vulkan);
        flag_field("webgpu", r.webgpu);
        fputs("}", stdout);
    }
    fputs("\n]\n", stdout);
}

static const char *mark(bool on)
{
    return on ? "yes" : "-";
}

static void print_table(void)
{
    rlx_op_row r;
    size_t count = 0;

    printf("%-36s %-14s %-6s %-6s %-6s %-6s %-6s %s\n", "op", "category", "infer", "grad", "cpu",
           "vulkan", "webgpu", "meaning");
    for (size_t i = 0; rlx_op_at(i, &r); i++) {
        if (!wanted(&r))
            continue;
        count++;
        printf("%-36s %-14s %-6s %-6s %-6s %-6s %-6s %s\n", r.name, r.category, mark(r.infer),
               mark(r.grad), mark(r.cpu), mark(r.vulkan), mark(r.webgpu), r.summary);
    }
    printf("%zu ops\n", count);
}

/* Checks that the category exists; otherwise names all that do. */
static int check_category(struct cli *c)
{
    rlx_nearest near = {.wanted = rlx_cstr(opt.category)};
    struct buffer known = {0};
    char hint[RLX_NEAREST_HINT];
    rlx_op_row r;
    bool found = !opt.category;

    for (size_t i = 0; !found && rlx_op_at(i, &r); i++) {
        found = strcmp(opt.category, r.category) == 0;
        if (known.at && strstr(known.at, r.category))
            continue;
        rlx_nearest_offer(&near, rlx_cstr(r.category));
        buffer_add(&known, ", ", known.len ? 2 : 0);
        buffer_add(&known, r.category, strlen(r.category));
    }
    int code = found ? EXIT_DONE
                     : cli_misuse(c, "there is no category \"%s\"; there are: %s%s", opt.category,
                                  known.at ? known.at : "none", rlx_nearest_hint(&near, hint));
    buffer_free(&known);
    return code;
}

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count)
        return cli_misuse(c, "takes no arguments");
    if ((code = check_category(c)) != EXIT_DONE)
        return code;
    if (opt.json)
        print_json();
    else
        print_table();
    return EXIT_DONE;
}

const struct command cmd_ops = {
    .name = "ops",
    .summary = "List every op and what exists for it",
    .usage = "rlx ops [--json] [--missing] [--category NAME]",
    .details =
        "infer: its shape rule; grad: its gradient rule; the others: it runs on that device,\n"
        "directly or written as simpler ops.",
    .examples = "rlx ops --category reduction",
    .run = run,
    .flags = flags,
};
