/* parse.c: the flags of a command, and those that every command has; help is made from them. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static struct {
    int64_t threads;
    const char *external;
    struct texts items, absent;
} common;

/* The flags of every command; --fix goes where the model is loaded, --set where the context is
 * made. */
static const struct flag *common_flags(struct cli *c)
{
    static struct flag list[] = {
        {"--items", FLAG_LIST, &common.items, "NAME=N",
         "how many items a sequence has (ONNX), or their shapes: [4],[2,3]"},
        {"--absent", FLAG_LIST, &common.absent, "NAME", "an optional that has no value (ONNX)"},
        {"--fix", FLAG_LIST, NULL, "NAME=VALUE",
         "an input that is known when the model is loaded (ONNX): FILE, or 1,2,3"},
        {"--external-data", FLAG_TEXT, &common.external, "follow",
         "files named by a file may be anywhere, not just beside it"},
        {"--set", FLAG_LIST, NULL, "NAME=VALUE",
         "an option of the compiler, or a flag of rlx flags: no_cse, VERBOSE=1"},
        {"--threads", FLAG_NUMBER, &common.threads, "N", "CPU workers; without it, one per core"},
        {"--help", FLAG_SWITCH, NULL, NULL, "this text"},
        {0}};

    list[2].to = c ? &c->fix : NULL;
    list[4].to = c ? &c->set : NULL;
    return list;
}

static void print_flags(const struct flag *f, FILE *out)
{
    for (; f && f->name; f++) {
        char head[64];
        snprintf(head, sizeof head, "%s%s%s", f->name, f->value ? " " : "",
                 f->value ? f->value : "");
        fprintf(out, "  %-24s %s\n", head, f->help);
    }
}

void cli_help(const struct command *cmd, FILE *out)
{
    const struct flag *f = cmd->flags ? cmd->flags() : NULL; /* may complete the details */

    fprintf(out, "usage: %s\n\n%s.\n", cmd->usage, cmd->summary);
    if (cmd->details)
        fprintf(out, "\n%s\n", cmd->details);
    fputs("\nflags:\n", out);
    print_flags(f, out);
    print_flags(common_flags(NULL), out);
    fputs("\nexamples:\n", out);
    for (const char *line = cmd->examples; line && *line;) {
        size_t len = strcspn(line, "\n");
        fprintf(out, "  %.*s\n", (int)len, line);
        line += len + (line[len] == '\n');
    }
}

bool cli_integer(const char *text, int64_t *out)
{
    char *end;

    *out = strtoll(text, &end, 10);
    return *text && !*end;
}

/* Stores one flag's value; NULL: fine, else what is wrong. */
static const char *store(const struct flag *f, const char *value)
{
    struct texts *list = f->to;

    switch (f->kind) {
    case FLAG_SWITCH: *(bool *)f->to = true; return value ? "takes no value" : NULL;
    case FLAG_TEXT: *(const char **)f->to = value; return NULL;
    case FLAG_NUMBER: return cli_integer(value, f->to) ? NULL : "takes an integer";
    case FLAG_LIST:
        if (list->count == MAX_TEXTS)
            return "is given too many times";
        list->at[list->count++] = value;
        return NULL;
    }
    return NULL;
}

static const struct flag *find_flag(const struct flag *flags, const char *text, size_t len)
{
    for (; flags && flags->name; flags++)
        if (strlen(flags->name) == len && strncmp(flags->name, text, len) == 0)
            return flags;
    return NULL;
}

static int unknown_flag(struct cli *c, const struct flag *flags, rlx_str text)
{
    rlx_nearest near = {.wanted = text};
    char hint[RLX_NEAREST_HINT];

    for (const struct flag *f = flags; f && f->name; f++)
        rlx_nearest_offer(&near, rlx_cstr(f->name));
    for (const struct flag *f = common_flags(NULL); f->name; f++)
        rlx_nearest_offer(&near, rlx_cstr(f->name));
    return cli_misuse(c, "unknown flag %.*s%s", (int)text.len, text.ptr,
                      rlx_nearest_hint(&near, hint));
}

/* One flag at *i, and its value, which may be the next argument. EXIT_DONE, or what to return. */
static int take_flag(struct cli *c, const struct flag *flags, int argc, char **argv, int *i)
{
    const char *text = argv[*i], *equals = strchr(text, '='), *value = NULL, *wrong;
    size_t len = equals ? (size_t)(equals - text) : strlen(text);
    const struct flag *f = find_flag(flags, text, len);

    f = f ? f : find_flag(common_flags(c), text, len);
    if (!f)
        return unknown_flag(c, flags, (rlx_str){text, len});
    if (equals)
        value = equals + 1;
    else if (f->kind != FLAG_SWITCH && *i + 1 < argc)
        value = argv[++*i];
    if (f->kind != FLAG_SWITCH && !value)
        return cli_misuse(c, "%s takes a value: %s %s", f->name, f->name, f->value);
    wrong = store(f, value);
    if (wrong && value)
        return cli_misuse(c, "%s %s, not \"%s\"", f->name, wrong, value);
    return wrong ? cli_misuse(c, "%s %s", f->name, wrong) : EXIT_DONE;
}

static int take_common(struct cli *c)
{
    if (common.threads < 0 || common.threads > 4096)
        return cli_misuse(c, "--threads must be from 1 to 4096");
    if (common.external && strcmp(common.external, "follow") != 0)
        return cli_misuse(c, "--external-data takes the word follow, not \"%s\"", common.external);
    c->threads = (int)common.threads;
    c->load.size = sizeof c->load;
    c->load.follow_external = common.external != NULL;
    return cli_take_items(c, &common.items, &common.absent);
}

bool cli_parse(struct cli *c, const struct flag *flags, int argc, char **argv, struct texts *args,
               int *code)
{
    c->argc = argc;
    c->argv = argv;
    args->count = 0;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            cli_help(c->command, stdout);
            *code = EXIT_DONE;
            return false;
        }
        if (argv[i][0] != '-' || argv[i][1] == 0) {
            if (args->count == MAX_TEXTS) {
                *code = cli_misuse(c, "too many arguments");
                return false;
            }
            args->at[args->count++] = argv[i];
            continue;
        }
        if ((*code = take_flag(c, flags, argc, argv, &i)) != EXIT_DONE)
            return false;
    }
    *code = take_common(c);
    return *code == EXIT_DONE;
}
