/* main.c: the rlx command: finds the subcommand and runs it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

extern const struct command cmd_devices, cmd_ops, cmd_info, cmd_print, cmd_opt, cmd_plan,
    cmd_compile, cmd_run, cmd_bench, cmd_selftest, cmd_flags, cmd_check, cmd_conform, cmd_kernel,
    cmd_convert, cmd_quantize, cmd_template, cmd_tokenize, cmd_train;

static const struct command *const commands[] = {
    &cmd_info,     &cmd_print,    &cmd_opt,      &cmd_plan,   &cmd_compile,
    &cmd_run,      &cmd_bench,    &cmd_selftest, &cmd_check,  &cmd_conform,
    &cmd_devices,  &cmd_ops,      &cmd_flags,    &cmd_kernel, &cmd_convert,
    &cmd_quantize, &cmd_tokenize, &cmd_template, &cmd_train,
};

const struct command *cli_command_at(size_t i)
{
    return i < sizeof commands / sizeof commands[0] ? commands[i] : NULL;
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; cli_command_at(i); i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

/* Grouped by purpose. */
static const struct group {
    const char *title;
    const struct command *command[6];
} groups[] = {
    {"look at a model", {&cmd_info, &cmd_print, &cmd_opt, &cmd_plan}},
    {"run it", {&cmd_run, &cmd_bench, &cmd_compile}},
    {"let it learn", {&cmd_train}},
    {"see that results are right", {&cmd_check, &cmd_selftest, &cmd_conform}},
    {"change files", {&cmd_convert, &cmd_quantize}},
    {"text", {&cmd_tokenize, &cmd_template}},
    {"look things up", {&cmd_devices, &cmd_ops, &cmd_flags, &cmd_kernel}},
};

static void overview(FILE *out)
{
    fputs("usage: rlx COMMAND [flags] ...\n\n"
          "Checks, plans, runs and measures tensor programs: ONNX models, and graphs in a text "
          "form.\n",
          out);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        fprintf(out, "\n%s:\n", groups[i].title);
        for (const struct command *const *c = groups[i].command; *c; c++)
            fprintf(out, "  %-10s %s\n", (*c)->name, (*c)->summary);
    }
    fputs("  help       show what a command does, its flags and examples\n\n"
          "examples:\n"
          "  rlx info model.onnx                          what goes in and out\n"
          "  rlx run model.onnx --random --dim seq=128    does it run here?\n"
          "  rlx run model.onnx --input x=x.npy           on your own data\n\n"
          "flags of every command: --help, --threads N, --external-data follow, --fix NAME=VALUE,\n"
          "--items NAME=N, --absent NAME\n"
          "rlx --version prints the version.\n",
          out);
}

static int unknown_command(const char *name)
{
    rlx_nearest near = {.wanted = rlx_cstr(name)};
    char hint[RLX_NEAREST_HINT];

    for (size_t i = 0; cli_command_at(i); i++)
        rlx_nearest_offer(&near, rlx_cstr(commands[i]->name));
    rlx_nearest_offer(&near, rlx_cstr("help"));
    fprintf(stderr, "rlx: unknown command \"%s\"%s\ncommands:", name,
            rlx_nearest_hint(&near, hint));
    for (size_t i = 0; cli_command_at(i); i++)
        fprintf(stderr, "%s %s", i ? "," : "", commands[i]->name);
    fputs("; rlx help says what they do\n", stderr);
    return EXIT_MISUSED;
}

static int help(int argc, char **argv)
{
    const struct command *cmd = argc > 2 ? find(argv[2]) : NULL;

    if (argc > 2 && strcmp(argv[2], "--man") == 0) { /* what docs/rlx.1 is made from */
        for (size_t i = 0; cli_command_at(i); i++) {
            printf("@%s\n%s\n", commands[i]->name, commands[i]->summary);
            cli_help(commands[i], stdout);
        }
        return EXIT_DONE;
    }
    if (argc > 2 && !cmd)
        return unknown_command(argv[2]);
    if (cmd)
        cli_help(cmd, stdout);
    else
        overview(stdout);
    return EXIT_DONE;
}

/* No command opens a window. Drivers still look for a display when they start, and libwayland
 * prints a complaint where the user has no runtime directory, as in containers. */
static void do_without_display(void)
{
    if (!getenv("XDG_RUNTIME_DIR"))
        setenv("WAYLAND_DISPLAY", "/nonexistent", 0);
}

int main(int argc, char **argv)
{
    const char *plain = getenv("NO_COLOR");
    bool terminal = isatty(STDERR_FILENO);
    struct cli c = {.color = terminal && !(plain && *plain), .progress = terminal};

    do_without_display();
    if (argc < 2) {
        overview(stderr);
        return EXIT_MISUSED;
    }
    if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
        strcmp(argv[1], "-h") == 0)
        return help(argc, argv);
    if (strcmp(argv[1], "--version") == 0) {
        uint32_t v = rlx_version();
        printf("rlx %u.%u.%u\n", v / 10000, v / 100 % 100, v % 100);
        return EXIT_DONE;
    }
    c.command = find(argv[1]);
    if (!c.command)
        return unknown_command(argv[1]);
    int code = c.command->run(&c, argc - 2, argv + 2);
    cli_progress_stop(&c);
    cli_free_items(&c);
    rlx_context_destroy(c.ctx);
    cli_log_end(&c);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("rlx: cannot write to standard output\n", stderr);
        return EXIT_FAILED;
    }
    return code;
}
