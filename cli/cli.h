/* cli.h: what the subcommands of rlx share: flags, help, messages, progress. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdio.h>

#include "rlx/load.h"
#include "rlx/session.h"
#include "rlx/tools.h"

#define MAX_TEXTS 256
struct texts {
    const char *at[MAX_TEXTS];
    size_t count;
};

struct command;
struct cli {
    rlx_context *ctx; /* made on first use by cli_context */
    const struct command *command;
    int threads;        /* --threads, of every command */
    rlx_load_desc load; /* --external-data, --items, --absent, likewise: how files are opened */
    bool color;         /* stderr is a terminal */
    bool progress;      /* likewise */
    int log_level;      /* lines up to this level are shown */
    bool quiet;         /* not even warnings */
    const char *trace;  /* --trace of the command; NULL: none */
    struct texts fix;   /* --fix: inputs that are known when the model is loaded */
    struct texts set;   /* --set: flags and options, of every command */
    int argc;           /* the command's arguments, for messages that show a better line */
    char **argv;
    char held[512]; /* a line of the log that cli_fail may be about to repeat */
};

/* A text collected in memory. */
struct buffer {
    char *at;
    size_t len, cap;
    bool failed;
};

/* A flag of a command. A list ends with a zeroed row. */
enum flag_kind { FLAG_SWITCH, FLAG_TEXT, FLAG_NUMBER, FLAG_LIST };
struct flag {
    const char *name; /* "--json" */
    enum flag_kind kind;
    void *to;          /* bool *, const char **, int64_t *, struct texts * */
    const char *value; /* what its value is called in help: "FILE" */
    const char *help;
};

struct command {
    const char *name;
    const char *summary;  /* one line */
    const char *usage;    /* "rlx plan [flags] FILE|CSV" */
    const char *details;  /* a few sentences; may be NULL */
    const char *examples; /* command lines, one each; the first is shown after misuse */
    int (*run)(struct cli *c, int argc, char **argv);
    const struct flag *(*flags)(void); /* for help, the man page and completion */
};

/* Exit codes: 0 done, 1 failed, 2 misused. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_MISUSED = 2 };

/* Parses the command's flags (and --threads, --help), anywhere on the line; the rest goes to args.
 * false: return *code from the command. */
bool cli_parse(struct cli *c, const struct flag *flags, int argc, char **argv, struct texts *args,
               int *code);
int cli_misuse(struct cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int cli_fail(struct cli *c, const rlx_error *err, const char *doing, const char *what);
void cli_help(const struct command *cmd, FILE *out);
bool cli_integer(const char *text, int64_t *out); /* all of the text, in decimal */
/* The command line as it was given, so that more can be added. */
void cli_print_command(const struct cli *c, FILE *out);

int cli_context(struct cli *c);  /* EXIT_DONE, or what to return */
void cli_log_end(struct cli *c); /* the last line of the log is shown, if it was held back */
bool cli_flag_row(const struct cli *c, const char *name, rlx_flag_row *out); /* of rlx flags */
/* A file of any kind that holds a model; "-" is standard input, in the text form. */
bool cli_read_all(FILE *in, struct buffer *b);
/* The same of a file, or of "-", standard input. EXIT_DONE, or what to return. */
int cli_read_file(struct cli *c, const char *path, struct buffer *b);
int cli_load(struct cli *c, const char *path, rlx_model **out);

void cli_write(void *user, const char *text, size_t len); /* user: a FILE * */
/* A whole file, written at the end; NULL path: standard output. */
int cli_write_file(struct cli *c, const char *path, const char *text, size_t len);

void buffer_add(void *user, const char *text, size_t len); /* user: a struct buffer */
void buffer_free(struct buffer *b);

/* progress.c: on a terminal only. Shows what the command waits for once it takes a second. */
void cli_doing(struct cli *c, const char *doing, const char *what);
void cli_progress(struct cli *c, const char *what, size_t done,
                  size_t total); /* total 0: unknown */
void cli_progress_end(struct cli *c);
void cli_progress_stop(struct cli *c);               /* for good */
const char *cli_bytes(uint64_t bytes, char out[32]); /* "1.50 MB" */
void cli_json_string(FILE *out, const char *text, size_t len);

/* items.c: what --items and --absent say goes to c->load. EXIT_DONE, or what to return. */
int cli_take_items(struct cli *c, const struct texts *items, const struct texts *absent);
void cli_free_items(struct cli *c);

/* main.c */
const struct command *cli_command_at(size_t i);

#endif
