/* main.c: the rlx command: finds the subcommand and hands over. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

extern const struct command cmd_devices, cmd_ops, cmd_info, cmd_print, cmd_opt, cmd_plan,
    cmd_compile, cmd_run, cmd_bench, cmd_selftest, cmd_flags, cmd_check, cmd_conform, cmd_kernel,
    cmd_convert, cmd_quantize;

static const struct command *const commands[] = {
    &cmd_info,  &cmd_print,    &cmd_opt,     &cmd_plan,     &cmd_compile, &cmd_run,
    &cmd_bench, &cmd_selftest, &cmd_check,   &cmd_conform,  &cmd_devices, &cmd_ops,
    &cmd_flags, &cmd_kernel,   &cmd_convert, &cmd_quantize,
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

static void overview(FILE *out)
{
    fputs("usage: rlx COMMAND [flags] ...\n\n"
          "Checks, plans, runs and measures tensor programs.\n\n"
          "commands:\n",
          out);
    for (size_t i = 0; cli_command_at(i); i++)
        fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fputs("  help       show what a command does and its flags\n\n"
          "flags of every command: --help, --threads N, --external-data follow, --items NAME=N,\n"
          "--absent NAME\n"
          "rlx --version prints the version.\n",
          out);
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
    if (argc > 2 && !cmd) {
        fprintf(stderr, "rlx: there is no command \"%s\"\n", argv[2]);
        return EXIT_MISUSED;
    }
    if (cmd)
        cli_help(cmd, stdout);
    else
        overview(stdout);
    return EXIT_DONE;
}

/* No command opens a window. Drivers look for a display all the same when they are started, and
 * libwayland complains of it where users have no runtime directory, as in containers. */
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
    if (!c.command) {
        fprintf(stderr, "rlx: there is no command \"%s\"; rlx help lists them\n", argv[1]);
        return EXIT_MISUSED;
    }
    int code = c.command->run(&c, argc - 2, argv + 2);
    cli_free_items(&c);
    rlx_context_destroy(c.ctx);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("rlx: cannot write to standard output\n", stderr);
        return EXIT_FAILED;
    }
    return code;
}
