/* cli.c: what the subcommands share. */
#include "cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void cli_help(const struct command *cmd, FILE *out)
{
    const struct flag *f = cmd->flags ? cmd->flags() : NULL; /* may complete the details */

    fprintf(out, "usage: %s\n\n%s.\n", cmd->usage, cmd->summary);
    if (cmd->details)
        fprintf(out, "\n%s\n", cmd->details);
    fputs("\nflags:\n", out);
    for (; f && f->name; f++) {
        char head[64];
        snprintf(head, sizeof head, "%s%s%s", f->name, f->value ? " " : "",
                 f->value ? f->value : "");
        fprintf(out, "  %-24s %s\n", head, f->help);
    }
    fputs("  --items NAME=N           how many items a sequence has (ONNX), or their shapes: "
          "[4],[2,3]\n"
          "  --absent NAME            an optional that has no value (ONNX)\n"
          "  --external-data follow   files that a file names may be anywhere, not just beside it\n"
          "  --threads N              CPU workers; without it, one per core\n"
          "  --help                   this text\n",
          out);
}

int cli_misuse(struct cli *c, const char *fmt, ...)
{
    va_list args;

    fprintf(stderr, "rlx %s: ", c->command->name);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fprintf(stderr, "\nusage: %s\nrlx help %s says more\n", c->command->usage, c->command->name);
    return EXIT_MISUSED;
}

int cli_fail(struct cli *c, const rlx_error *err, const char *doing, const char *what)
{
    const char *red = c->color ? "\033[31m" : "", *plain = c->color ? "\033[0m" : "";

    cli_progress_end(c);
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

static bool take_number(const char *text, int64_t *out)
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
    case FLAG_NUMBER: return take_number(value, f->to) ? NULL : "needs a whole number";
    case FLAG_LIST:
        if (list->count == MAX_TEXTS)
            return "is given too often";
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

bool cli_parse(struct cli *c, const struct flag *flags, int argc, char **argv, struct texts *args,
               int *code)
{
    int64_t threads = 0;
    const char *external = NULL;
    struct texts items = {.count = 0}, absent = {.count = 0};
    const struct flag common[] = {{"--threads", FLAG_NUMBER, &threads, "N", ""},
                                  {"--items", FLAG_LIST, &items, "NAME=N", ""},
                                  {"--absent", FLAG_LIST, &absent, "NAME", ""},
                                  {"--external-data", FLAG_TEXT, &external, "follow", ""},
                                  {0}};

    args->count = 0;
    for (int i = 0; i < argc; i++) {
        const char *text = argv[i], *equals = strchr(text, '='), *value = NULL, *wrong;
        size_t len = equals ? (size_t)(equals - text) : strlen(text);
        const struct flag *f;

        if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0) {
            cli_help(c->command, stdout);
            *code = EXIT_DONE;
            return false;
        }
        if (text[0] != '-' || text[1] == 0) {
            if (args->count == MAX_TEXTS) {
                *code = cli_misuse(c, "too many arguments");
                return false;
            }
            args->at[args->count++] = text;
            continue;
        }
        f = find_flag(flags, text, len);
        f = f ? f : find_flag(common, text, len);
        if (!f) {
            *code = cli_misuse(c, "there is no flag %.*s", (int)len, text);
            return false;
        }
        if (equals)
            value = equals + 1;
        else if (f->kind != FLAG_SWITCH && i + 1 < argc)
            value = argv[++i];
        wrong = f->kind != FLAG_SWITCH && !value ? "needs a value" : store(f, value);
        if (wrong) {
            *code = cli_misuse(c, "%s %s", f->name, wrong);
            return false;
        }
    }
    if (threads < 0 || threads > 4096) {
        *code = cli_misuse(c, "--threads must be from 1 to 4096");
        return false;
    }
    if (external && strcmp(external, "follow") != 0) {
        *code = cli_misuse(c, "--external-data takes the word follow, not \"%s\"", external);
        return false;
    }
    c->threads = (int)threads;
    c->load.follow_external = external != NULL;
    *code = cli_take_items(c, &items, &absent);
    return *code == EXIT_DONE;
}

static void log_line(void *user, int level, const char *line)
{
    const struct cli *c = user;

    if (!c->quiet && (level <= 1 || level <= c->log_level))
        fprintf(stderr, "rlx: %s\n", line);
}

bool cli_flag_row(const struct cli *c, const char *name, rlx_flag_row *out)
{
    for (size_t i = 0; rlx_flag_list(c->ctx, i, out); i++)
        if (strcmp(out->name, name) == 0)
            return true;
    return false;
}

static bool is_on(const struct cli *c, const char *flag)
{
    rlx_flag_row row;

    return cli_flag_row(c, flag, &row) && row.on;
}

/* What was asked for is shown: RLX_VERBOSE 1 and reports are lines of level 2, graphs of 3. */
static int wanted_level(const struct cli *c)
{
    rlx_flag_row verbose;
    int64_t level = 0;

    if (cli_flag_row(c, "RLX_VERBOSE", &verbose) && verbose.on)
        take_number(verbose.value, &level);
    if (level >= 2)
        return 3;
    return level == 1 || is_on(c, "RLX_GPU_SCHEDULE") || is_on(c, "RLX_FUSION_REPORT") ||
                   is_on(c, "RLX_DISPATCH_REPORT")
               ? 2
               : 1;
}

int cli_context(struct cli *c)
{
    rlx_error err;
    rlx_context_desc desc = {
        .log = log_line, .log_user = c, .threads = c->threads, .trace = c->trace};

    if (c->ctx)
        return EXIT_DONE;
    if (rlx_context_create(RLX_VERSION, &desc, &c->ctx, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot", "start");
    c->log_level = wanted_level(c);
    return EXIT_DONE;
}

static bool read_all(FILE *in, struct buffer *b)
{
    char chunk[65536];
    size_t n;

    while ((n = fread(chunk, 1, sizeof chunk, in)) > 0)
        buffer_add(b, chunk, n);
    return !ferror(in) && !b->failed;
}

int cli_load(struct cli *c, const char *path, rlx_model **out)
{
    rlx_error err;
    struct buffer b = {0};
    rlx_status s;
    int code = cli_context(c);

    if (code != EXIT_DONE)
        return code;
    if (strcmp(path, "-") != 0)
        s = rlx_model_load(c->ctx, path, &c->load, out, &err);
    else if (read_all(stdin, &b))
        s = rlx_model_parse(c->ctx, (rlx_str){b.at ? b.at : "", b.len}, out, &err);
    else {
        fprintf(stderr, "rlx %s: cannot read standard input\n", c->command->name);
        buffer_free(&b);
        return EXIT_FAILED;
    }
    buffer_free(&b);
    return s == RLX_OK ? EXIT_DONE : cli_fail(c, &err, "cannot read", path);
}

void cli_write(void *user, const char *text, size_t len)
{
    fwrite(text, 1, len, user);
}

int cli_write_file(struct cli *c, const char *path, const char *text, size_t len)
{
    FILE *f = path ? fopen(path, "wb") : stdout;

    if (!f || fwrite(text, 1, len, f) != len || (path && fclose(f) != 0)) {
        fprintf(stderr, "rlx %s: cannot write %s\n", c->command->name, path ? path : "the output");
        return EXIT_FAILED;
    }
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

void cli_progress(struct cli *c, const char *what, size_t done, size_t total)
{
    if (!c->progress)
        return;
    fprintf(stderr, "\r%-40.40s %zu/%zu", what, done, total);
    fflush(stderr);
}

void cli_progress_end(struct cli *c)
{
    if (c->progress)
        fputs("\r\033[K", stderr);
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
