/* cli.c: what the subcommands share. */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int cli_misuse(struct cli *c, const char *fmt, ...)
{
    va_list args;

    fprintf(stderr, "rlx %s: ", c->command->name);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fprintf(stderr, "\nusage: %s\n", c->command->usage);
    if (c->command->examples)
        fprintf(stderr, "example: %.*s\n", (int)strcspn(c->command->examples, "\n"),
                c->command->examples);
    fprintf(stderr, "rlx help %s says more\n", c->command->name);
    return EXIT_MISUSED;
}

static void show_held(struct cli *c)
{
    if (c->held[0])
        fprintf(stderr, "rlx: %s\n", c->held);
    c->held[0] = 0;
}

int cli_fail(struct cli *c, const rlx_error *err, const char *doing, const char *what)
{
    const char *red = c->color ? "\033[31m" : "", *plain = c->color ? "\033[0m" : "";

    cli_progress_end(c);
    if (!strstr(err->message, c->held)) /* otherwise the message repeats it */
        show_held(c);
    c->held[0] = 0;
    fprintf(stderr, "rlx %s: %s %s: %s%s%s: %s", c->command->name, doing, what, red,
            rlx_status_name(err->status), plain, err->message);
    if (err->node >= 0) {
        fprintf(stderr, " (node %d", err->node);
        if (err->label[0])
            fprintf(stderr, " \"%s\"", err->label);
        fputs(")", stderr);
    }
    fputs("\n", stderr);
    return EXIT_FAILED;
}

/* A warning is held until the next line: a failure often ends in the same sentence. */
static void log_line(void *user, int level, const char *line)
{
    struct cli *c = user;

    if (c->quiet || (level > 1 && level > c->log_level))
        return;
    cli_progress_end(c);
    show_held(c);
    if (level <= 1 && strlen(line) < sizeof c->held)
        snprintf(c->held, sizeof c->held, "%s", line);
    else
        fprintf(stderr, "rlx: %s\n", line);
}

void cli_log_end(struct cli *c)
{
    show_held(c);
}

/* In quotes, where a shell would not read it as a plain word. */
static void print_word(const char *word, FILE *out)
{
    bool plain = *word && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789_-+=.,/:@%") == strlen(word);

    if (plain) {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word; word++)
        fputs(*word == '\'' ? "'\\''" : (char[]){*word, 0}, out);
    fputc('\'', out);
}

void cli_print_command(const struct cli *c, FILE *out)
{
    fprintf(out, "rlx %s", c->command->name);
    for (int i = 0; i < c->argc; i++) {
        fputc(' ', out);
        print_word(c->argv[i], out);
    }
}

bool cli_flag_row(const struct cli *c, const char *name, rlx_flag_row *out)
{
    for (size_t i = 0; rlx_flag_at(c->ctx, i, out); i++)
        if (strcmp(out->name, name) == 0)
            return true;
    return false;
}

static bool is_on(const struct cli *c, const char *flag)
{
    rlx_flag_row row;

    return cli_flag_row(c, flag, &row) && row.on;
}

/* Shows what was asked for: RLX_VERBOSE 1 and reports are lines of level 2, graphs of 3. */
static int wanted_level(const struct cli *c)
{
    rlx_flag_row verbose;
    int64_t level = 0;

    if (cli_flag_row(c, "RLX_VERBOSE", &verbose) && verbose.on)
        cli_integer(verbose.value, &level);
    if (level >= 2)
        return 3;
    return level == 1 || is_on(c, "RLX_GPU_SCHEDULE") || is_on(c, "RLX_FUSION_REPORT") ||
                   is_on(c, "RLX_DISPATCH_REPORT")
               ? 2
               : 1;
}

/* Of --set: NAME=VALUE, or NAME alone, which is 1. */
struct settings {
    rlx_flag flag[MAX_TEXTS];
    size_t count;
};

static bool split_settings(const struct texts *texts, struct settings *out)
{
    for (out->count = 0; out->count < texts->count; out->count++) {
        const char *text = texts->at[out->count], *equals = strchr(text, '=');
        char *name = strndup(text, equals ? (size_t)(equals - text) : strlen(text));
        if (!name)
            return false;
        out->flag[out->count] = (rlx_flag){name, equals ? equals + 1 : "1"};
    }
    return true;
}

static void free_settings(struct settings *s)
{
    for (size_t i = 0; i < s->count; i++)
        free((char *)s->flag[i].name);
}

int cli_context(struct cli *c)
{
    struct settings set;
    rlx_error err = {.status = RLX_ERROR_MEMORY};
    rlx_status s = RLX_ERROR_MEMORY;

    if (c->ctx)
        return EXIT_DONE;
    if (split_settings(&c->set, &set)) {
        const rlx_context_desc desc = {
            RLX_SIZED(rlx_context_desc), .log = log_line,   .log_user = c,
            .threads = c->threads,       .trace = c->trace, .flags = set.flag,
            .flag_count = set.count};
        s = rlx_context_create(RLX_VERSION, &desc, &c->ctx, &err);
    }
    free_settings(&set);
    if (s == RLX_ERROR_NAME || s == RLX_ERROR_ARGUMENT)
        return cli_misuse(c, "--set: %s", err.message);
    if (s != RLX_OK)
        return cli_fail(c, &err, "cannot", "start");
    c->log_level = wanted_level(c);
    return EXIT_DONE;
}

void cli_write(void *user, const char *text, size_t len)
{
    fwrite(text, 1, len, user);
}

static int cannot_write(const struct cli *c, const char *path)
{
    fprintf(stderr, "rlx %s: cannot write %s: %s\n", c->command->name, path, strerror(errno));
    return EXIT_FAILED;
}

/* Under a temporary name first, so that the file appears complete or not at all. */
static int replace_file(struct cli *c, const char *path, const char *text, size_t len)
{
    char part[4096];
    int fd = snprintf(part, sizeof part, "%s.XXXXXX", path) < (int)sizeof part ? mkstemp(part) : -1;
    FILE *f = fd >= 0 ? fdopen(fd, "wb") : NULL;
    mode_t mask = umask(0);

    umask(mask);
    if (!f)
        return cannot_write(c, path);
    bool written = fwrite(text, 1, len, f) == len && fchmod(fd, 0666 & ~mask) == 0;
    if (fclose(f) == 0 && written && rename(part, path) == 0)
        return EXIT_DONE;
    cannot_write(c, path);
    unlink(part);
    return EXIT_FAILED;
}

int cli_write_file(struct cli *c, const char *path, const char *text, size_t len)
{
    struct stat st;

    if (path && (stat(path, &st) != 0 || S_ISREG(st.st_mode)))
        return replace_file(c, path, text, len);
    FILE *f = path ? fopen(path, "wb") : stdout; /* a device, a pipe */
    if (!f || fwrite(text, 1, len, f) != len || (path && fclose(f) != 0))
        return cannot_write(c, path ? path : "the output");
    return EXIT_DONE;
}

void buffer_add(void *user, const char *text, size_t len)
{
    struct buffer *b = user;

    if (b->failed)
        return;
    if (b->len + len + 1 > b->cap) {
        size_t cap = (b->len + len + 1) * 2;
        char *at = realloc(b->at, cap);
        if (!at) {
            b->failed = true;
            return;
        }
        b->at = at;
        b->cap = cap;
    }
    memcpy(b->at + b->len, text, len);
    b->len += len;
    b->at[b->len] = 0;
}

void buffer_free(struct buffer *b)
{
    free(b->at);
    *b = (struct buffer){0};
}

const char *cli_bytes(uint64_t bytes, char out[32])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    double v = (double)bytes;
    size_t u = 0;

    while (v >= 1000 && u + 1 < sizeof units / sizeof units[0]) {
        v /= 1000;
        u++;
    }
    snprintf(out, 32, u ? "%.2f %s" : "%.0f %s", v, units[u]);
    return out;
}

void cli_json_string(FILE *out, const char *text, size_t len)
{
    fputc('"', out);
    for (size_t i = 0; i < len; i++) {
        unsigned char ch = (unsigned char)text[i];
        if (ch == '"' || ch == '\\')
            fprintf(out, "\\%c", ch);
        else if (ch < 0x20)
            fprintf(out, "\\u%04x", ch);
        else
            fputc(ch, out);
    }
    fputc('"', out);
}
