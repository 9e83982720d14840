/* template.c: `rlx template`: a conversation as the text that a model was taught on. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "rlx/template.h"

static struct {
    const char *json, *name;
    int64_t now;
    bool spans, ids, source;
} opt;

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--json", FLAG_TEXT, &opt.json, "F",
         "the variables: a JSON object with messages and so on; -: standard input"},
        {"--spans", FLAG_SWITCH, &opt.spans, NULL,
         "a line for each part: who wrote it, and its text in quotes"},
        {"--ids", FLAG_SWITCH, &opt.ids, NULL, "its tokens, by the vocabulary of the GGUF file"},
        {"--source", FLAG_SWITCH, &opt.source, NULL, "the template itself"},
        {"--name", FLAG_TEXT, &opt.name, "NAME",
         "of several in a GGUF file that one: tokenizer.chat_template.NAME"},
        {"--now", FLAG_NUMBER, &opt.now, "SECONDS",
         "since 1970, for strftime_now; 0: the present time"},
        {0}};
    return list;
}

struct opened {
    rlx_template *t;
    rlx_tokenizer *tokenizer; /* of a GGUF file */
    rlx_token bos, eos;
};

/* ---- opened ------------------------------------------------------------------------------ */

static int read_file(struct cli *c, const char *path, struct buffer *b)
{
    FILE *in = stdin;

    if (strcmp(path, "-") != 0 && !(in = fopen(path, "rb"))) {
        fprintf(stderr, "rlx %s: cannot open %s\n", c->command->name, path);
        return EXIT_FAILED;
    }
    const bool read = cli_read_all(in, b);
    if (in != stdin)
        fclose(in);
    if (read && !b->failed)
        return EXIT_DONE;
    fprintf(stderr, "rlx %s: cannot read %s\n", c->command->name, path);
    return EXIT_FAILED;
}

static int open_gguf(struct cli *c, const char *path, struct opened *o)
{
    rlx_tokenizer_info info = {RLX_SIZED(rlx_tokenizer_info)};
    rlx_weights *w;
    rlx_error err;

    if (rlx_weights_open(c->ctx, path, NULL, &w, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot open", path);
    rlx_status s = rlx_template_from_weights(c->ctx, w, opt.name, &o->t, &err);
    if (s == RLX_OK)
        s = rlx_tokenizer_from_weights(c->ctx, w, &o->tokenizer, &err);
    rlx_weights_close(w);
    if (s != RLX_OK)
        return cli_fail(c, &err, "cannot use", path);
    rlx_tokenizer_describe(o->tokenizer, &info, NULL);
    rlx_tokenizer_at(o->tokenizer, info.special[RLX_SPECIAL_bos], &o->bos);
    rlx_tokenizer_at(o->tokenizer, info.special[RLX_SPECIAL_eos], &o->eos);
    return EXIT_DONE;
}

static int open_source(struct cli *c, const char *path, struct opened *o)
{
    struct buffer b = {0};
    rlx_error err;
    int code = read_file(c, path, &b);

    if (code == EXIT_DONE &&
        rlx_template_parse(c->ctx, (rlx_str){b.at, b.len}, &o->t, &err) != RLX_OK)
        code = cli_fail(c, &err, "cannot use", path);
    buffer_free(&b);
    return code;
}

static int open_template(struct cli *c, const char *path, struct opened *o)
{
    rlx_file_kind kind = RLX_FILE_unknown;

    if (strcmp(path, "-") != 0 && rlx_file_detect(c->ctx, path, &kind, NULL) == RLX_OK &&
        kind == RLX_FILE_gguf)
        return open_gguf(c, path, o);
    if (opt.ids || opt.name)
        return cli_misuse(c, "%s is for GGUF files", opt.ids ? "--ids" : "--name");
    return open_source(c, path, o);
}

/* ---- shown ------------------------------------------------------------------------------- */

static int print_ids(struct cli *c, const struct opened *o, const rlx_rendered *r)
{
    rlx_token_ids ids = {0};
    rlx_error err;

    if (rlx_rendered_encode(o->tokenizer, r, &ids, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot encode", "the text");
    for (size_t i = 0; i < ids.count; i++)
        printf(i ? " %d" : "%d", ids.at[i]);
    putchar('\n');
    rlx_token_ids_free(o->tokenizer, &ids);
    return EXIT_DONE;
}

static void print_spans(const rlx_rendered *r)
{
    size_t at = 0;

    for (size_t i = 0; i < r->span_count; at += r->span[i++].len) {
        fputs(r->span[i].data ? "data      " : "template  ", stdout);
        cli_json_string(stdout, r->text.ptr + at, r->span[i].len);
        putchar('\n');
    }
}

static int render(struct cli *c, const struct opened *o, rlx_str variables)
{
    const rlx_chat_desc chat = {RLX_SIZED(rlx_chat_desc), .variables = variables,
                                .bos_token = o->bos.text, .eos_token = o->eos.text,
                                .now = opt.now ? opt.now : (int64_t)time(NULL)};
    rlx_rendered r;
    rlx_error err;
    int code = EXIT_DONE;

    if (rlx_template_render(o->t, &chat, &r, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot render", opt.json);
    if (opt.ids)
        code = print_ids(c, o, &r);
    else if (opt.spans)
        print_spans(&r);
    else
        fwrite(r.text.ptr, 1, r.text.len, stdout);
    rlx_rendered_free(o->t, &r);
    return code;
}

static int use(struct cli *c, const char *path, struct opened *o)
{
    struct buffer b = {0};
    int code = open_template(c, path, o);

    if (code == EXIT_DONE && opt.source) {
        const rlx_str source = rlx_template_source(o->t);
        fwrite(source.ptr, 1, source.len, stdout);
        putchar('\n');
    } else if (code == EXIT_DONE && (code = read_file(c, opt.json, &b)) == EXIT_DONE)
        code = render(c, o, (rlx_str){b.at ? b.at : "", b.len});
    buffer_free(&b);
    return code;
}

static int run(struct cli *c, int argc, char **argv)
{
    struct opened o = {0};
    struct texts args;
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count != 1 || !opt.json == !opt.source)
        return cli_misuse(c, "takes a template, and --json or --source");
    if (opt.spans && opt.ids)
        return cli_misuse(c, "--spans and --ids do not go together");
    if ((code = cli_context(c)) != EXIT_DONE)
        return code;
    code = use(c, args.at[0], &o);
    rlx_template_close(o.t);
    rlx_tokenizer_close(o.tokenizer);
    return code;
}

const struct command cmd_template = {
    .name = "template",
    .summary = "Write a conversation as a model's chat template has it",
    .usage = "rlx template [flags] FILE --json F",
    .details = "FILE is a GGUF file, whose template and vocabulary are used, or a template in "
               "Jinja.",
    .examples = "rlx template model.gguf --json chat.json\n"
                "rlx template chat_template.jinja --json chat.json --spans\n"
                "rlx template model.gguf --source",
    .run = run,
    .flags = flags,
};
