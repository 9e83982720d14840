/* flags.c: `rlx flags`, the variables of the environment that rlx reads. */
#include <string.h>

#include "cli.h"

static struct {
    bool json;
} opt;

static const struct flag *flags(void)
{
    static const struct flag list[] = {{"--json", FLAG_SWITCH, &opt.json, NULL, "one JSON array"},
                                       {0}};
    return list;
}

static void print_text(const rlx_context *ctx)
{
    rlx_flag_row row;

    for (size_t i = 0; rlx_flag_at(ctx, i, &row); i++) {
        printf("%s=%s", row.name, row.values);
        printf("  (%s, %s, %s", row.kind, row.layer, row.stability);
        if (*row.default_value)
            printf("; default %s", row.default_value);
        printf(")\n    %s\n", row.summary);
        if (row.option)
            printf("    option %s\n", row.option);
        if (strcmp(row.source, "default") != 0)
            printf("    now \"%s\", from the %s\n", row.value, row.source);
    }
}

static void pair(const char *key, const char *value, const char *comma)
{
    printf("\"%s\": ", key);
    cli_json_string(stdout, value, strlen(value));
    fputs(comma, stdout);
}

static void print_json(const rlx_context *ctx)
{
    rlx_flag_row row;

    fputs("[", stdout);
    for (size_t i = 0; rlx_flag_at(ctx, i, &row); i++) {
        fputs(i ? ",\n {" : "{", stdout);
        pair("name", row.name, ", ");
        pair("kind", row.kind, ", ");
        pair("values", row.values, ", ");
        pair("default", row.default_value, ", ");
        pair("stability", row.stability, ", ");
        pair("layer", row.layer, ", ");
        pair("option", row.option ? row.option : "", ", ");
        pair("value", row.value, ", ");
        pair("source", row.source, ", ");
        pair("summary", row.summary, "}");
    }
    fputs("]\n", stdout);
}

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count)
        return cli_misuse(c, "takes no arguments");
    if ((code = cli_context(c)) != EXIT_DONE)
        return code;
    (opt.json ? print_json : print_text)(c->ctx);
    return EXIT_DONE;
}

const struct command cmd_flags = {
    .name = "flags",
    .summary = "List the environment variables that rlx reads",
    .usage = "rlx flags [--json]",
    .details = "Each with the values it takes, its default and, if it is set, its value.",
    .examples = "rlx flags --json",
    .run = run,
    .flags = flags,
};
