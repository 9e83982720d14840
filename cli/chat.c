/* chat.c: `rlx chat`: a conversation with a language model, in a terminal or from a pipe. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lm.h"
#include "rlx/template.h"

static struct {
    const char *prompt, *system, *template_file;
    struct lm_options lm;
    bool think, no_think, quiet;
} opt = {.lm = LM_OPTIONS_INIT};

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--prompt", FLAG_TEXT, &opt.prompt, "TEXT", "say this, print the answer, and end"},
        {"-p", FLAG_TEXT, &opt.prompt, "TEXT", "the same"},
        {"--system", FLAG_TEXT, &opt.system, "TEXT", "what the model is told first"},
        {"--template", FLAG_TEXT, &opt.template_file, "F",
         "a template for conversations, in place of the model's own"},
        {"--think", FLAG_SWITCH, &opt.think, NULL, "ask for reasoning, where a template can"},
        {"--no-think", FLAG_SWITCH, &opt.no_think, NULL, "or for none"},
        LM_SAMPLING_FLAGS(opt.lm),
        LM_MODEL_FLAGS(opt.lm),
        {"--quiet", FLAG_SWITCH, &opt.quiet, NULL, "no figures, and no words of welcome"},
        {0}};
    return list;
}

/* What models without a template of their own mostly understand. */
static const char chatml[] =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/* ---- the conversation --------------------------------------------------------------------- */

enum { MOST_MESSAGES = 4096 };
struct chat {
    struct lm lm;
    rlx_template *template;
    rlx_chat_message said[MOST_MESSAGES]; /* texts are malloc's */
    size_t count;
    bool tty;
};

static bool say(struct chat *x, const char *role, const char *text, size_t len)
{
    char *copy = x->count < MOST_MESSAGES ? malloc(len + 1) : NULL;

    if (!copy) {
        fprintf(stderr, "rlx chat: the conversation has become too long; /new begins another\n");
        return false;
    }
    memcpy(copy, text, len);
    x->said[x->count++] = (rlx_chat_message){rlx_cstr(role), {copy, len}};
    return true;
}

static void take_back(struct chat *x, size_t left)
{
    while (x->count > left)
        free((char *)(uintptr_t)x->said[--x->count].content.ptr);
}

static bool is_role(const struct chat *x, size_t i, const char *role)
{
    return i < x->count && strcmp(x->said[i].role.ptr, role) == 0;
}

/* The number of the last thing the user said; x->count: nothing yet. */
static size_t last_question(const struct chat *x)
{
    for (size_t i = x->count; i-- > 0;)
        if (is_role(x, i, "user"))
            return i;
    return x->count;
}

static rlx_str token_text(const struct lm *lm, rlx_special_token which)
{
    rlx_tokenizer_info info = {RLX_SIZED(rlx_tokenizer_info)};
    rlx_token token;

    if (rlx_tokenizer_describe(lm->tokenizer, &info, NULL) == RLX_OK &&
        rlx_tokenizer_at(lm->tokenizer, info.special[which], &token))
        return token.text;
    return (rlx_str){"", 0};
}

static int render(struct chat *x, rlx_token_ids *ids)
{
    rlx_chat_desc chat = {RLX_SIZED(rlx_chat_desc),
                          .messages = x->said,
                          .message_count = x->count,
                          .add_generation_prompt = true,
                          .thinking = opt.think      ? RLX_THINKING_ON
                                      : opt.no_think ? RLX_THINKING_OFF
                                                     : RLX_THINKING_DEFAULT,
                          .bos_token = token_text(&x->lm, RLX_SPECIAL_bos),
                          .eos_token = token_text(&x->lm, RLX_SPECIAL_eos),
                          .now = (int64_t)time(NULL)};
    rlx_rendered text;
    rlx_error err;

    if (rlx_template_render(x->template, &chat, &text, &err) != RLX_OK)
        return cli_fail(x->lm.c, &err, "cannot write", "the conversation in the model's words");
    rlx_status s = rlx_rendered_encode(x->lm.tokenizer, &text, ids, &err);
    rlx_rendered_free(x->template, &text);
    return s == RLX_OK ? EXIT_DONE : cli_fail(x->lm.c, &err, "cannot encode", "the conversation");
}

struct reply {
    struct buffer text;
};

static void put(void *user, const char *text, size_t len)
{
    struct reply *r = user;

    buffer_add(&r->text, text, len);
    cli_write(stdout, text, len);
    fflush(stdout);
}

static void print_figures(const struct chat *x, const struct lm_result *r)
{
    size_t used;

    rlx_sequence_tokens(x->lm.sequence, &used);
    fprintf(stderr, "[%zu tokens, %.1f/s; %zu of %lld in use, %zu of them known before; %s]\n",
            r->tokens, r->token_seconds > 0 ? (double)(r->tokens - 1) / r->token_seconds : 0, used,
            (long long)x->lm.info.context, r->kept, lm_end_name[r->end]);
}

/* The model's answer to what was said last. */
static int answer(struct chat *x)
{
    struct reply reply = {{0}};
    struct lm_result r;
    rlx_token_ids ids = {0};
    int code = render(x, &ids);

    if (code == EXIT_DONE)
        code = lm_generate(&x->lm, &ids, put, &reply, &r);
    if (code == EXIT_DONE) {
        putchar('\n');
        fflush(stdout);
        if (!say(x, "assistant", reply.text.at ? reply.text.at : "", reply.text.len))
            code = EXIT_FAILED;
        if (!opt.quiet && x->tty)
            print_figures(x, &r);
    }
    buffer_free(&reply.text);
    rlx_token_ids_free(x->lm.tokenizer, &ids);
    return code;
}

/* ---- words that begin with a slash -------------------------------------------------------- */

struct word {
    const char *name, *help;
    bool (*run)(struct chat *x, const char *rest); /* false: the conversation ends */
};

static size_t after_system(const struct chat *x)
{
    return is_role(x, 0, "system") ? 1 : 0;
}

static bool do_new(struct chat *x, const char *rest)
{
    (void)rest;
    take_back(x, after_system(x));
    return true;
}

static bool do_undo(struct chat *x, const char *rest)
{
    (void)rest;
    take_back(x, last_question(x));
    return true;
}

static bool do_retry(struct chat *x, const char *rest)
{
    size_t at = last_question(x);

    (void)rest;
    if (at == x->count) {
        fprintf(stderr, "nothing was said yet\n");
        return true;
    }
    take_back(x, at + 1);
    answer(x);
    return true;
}

static bool do_edit(struct chat *x, const char *rest)
{
    size_t at = last_question(x);

    if (!*rest) {
        fprintf(stderr, "/edit TEXT: what you want to have said instead\n");
        return true;
    }
    take_back(x, at);
    if (say(x, "user", rest, strlen(rest)))
        answer(x);
    return true;
}

static bool do_system(struct chat *x, const char *rest)
{
    take_back(x, 0);
    if (*rest)
        say(x, "system", rest, strlen(rest));
    return true;
}

static bool do_history(struct chat *x, const char *rest)
{
    (void)rest;
    for (size_t i = 0; i < x->count; i++)
        printf("%s: %.*s\n", x->said[i].role.ptr, (int)x->said[i].content.len,
               x->said[i].content.ptr);
    fflush(stdout);
    return true;
}

static bool do_save(struct chat *x, const char *rest)
{
    FILE *f = *rest ? fopen(rest, "wb") : NULL;

    if (!f) {
        fprintf(stderr, "/save FILE: %s\n", *rest ? strerror(errno) : "which file?");
        return true;
    }
    for (size_t i = 0; i < x->count; i++) {
        fprintf(f, "%s\n  {\"role\": \"%s\", \"content\": ", i ? "," : "[", x->said[i].role.ptr);
        cli_json_string(f, x->said[i].content.ptr, x->said[i].content.len);
        fputs("}", f);
    }
    fputs(x->count ? "\n]\n" : "[]\n", f);
    if (fclose(f) != 0)
        fprintf(stderr, "/save: %s\n", strerror(errno));
    return true;
}

static bool do_quit(struct chat *x, const char *rest)
{
    (void)x, (void)rest;
    return false;
}

static bool do_help(struct chat *x, const char *rest);

static const struct word words[] = {
    {"/new", "begin again (what the model was told first stays)", do_new},
    {"/undo", "take back the last question and its answer", do_undo},
    {"/retry", "another answer to the last question; --temp 0 gives the same one", do_retry},
    {"/edit", "TEXT: ask this instead of the last question", do_edit},
    {"/system", "TEXT: begin again, and tell the model this first", do_system},
    {"/history", "what was said so far", do_history},
    {"/save", "FILE: the conversation as JSON", do_save},
    {"/help", "these words", do_help},
    {"/quit", "end; so does the end of the input", do_quit},
};

static bool do_help(struct chat *x, const char *rest)
{
    (void)x, (void)rest;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        fprintf(stderr, "  %-9s %s\n", words[i].name, words[i].help);
    fputs("  a line that ends with \\ goes on in the next; Ctrl-C ends an answer\n", stderr);
    return true;
}

static bool do_word(struct chat *x, char *line)
{
    size_t len = strcspn(line, " ");
    const char *rest = line + len + strspn(line + len, " ");

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i].name) == len && strncmp(words[i].name, line, len) == 0)
            return words[i].run(x, rest);
    fprintf(stderr, "there is no %.*s; /help lists what there is\n", (int)len, line);
    return true;
}

/* ---- lines -------------------------------------------------------------------------------- */

/* A line, or several where a backslash ends them; false: there are no more. */
static bool read_lines(struct chat *x, struct buffer *b)
{
    bool more = true;
    int c = 0;

    b->len = 0;
    if (x->tty)
        fputs("\n> ", stderr);
    while (more && (c = getchar()) != EOF) {
        if (c != '\n') {
            char byte = (char)c;
            buffer_add(b, &byte, 1);
        } else if (b->len && b->at[b->len - 1] == '\\') {
            b->at[b->len - 1] = '\n';
        } else {
            more = false;
        }
    }
    bool any = b->len > 0 || c != EOF;
    buffer_add(b, "", 1);
    return any && !b->failed;
}

static int converse(struct chat *x)
{
    struct buffer line = {0};
    int code = EXIT_DONE;
    bool more = true;

    if (x->tty && !opt.quiet)
        fprintf(stderr, "%s, a context of %lld tokens. /help lists what can be done.\n",
                x->lm.info.arch_text, (long long)x->lm.info.context);
    while (more && read_lines(x, &line)) {
        clearerr(stdin); /* a Ctrl-C may have ended the line */
        if (line.at[0] == '/')
            more = do_word(x, line.at);
        else if (line.len > 1 &&
                 (code = say(x, "user", line.at, line.len - 1) ? answer(x) : EXIT_FAILED) !=
                     EXIT_DONE)
            take_back(x, last_question(x));
    }
    buffer_free(&line);
    return x->tty ? EXIT_DONE : code;
}

/* ---- the command -------------------------------------------------------------------------- */

static int open_template(struct chat *x)
{
    struct cli *c = x->lm.c;
    struct buffer b = {0};
    rlx_str source = x->lm.info.chat_template;
    rlx_error err;
    int code = EXIT_DONE;

    if (opt.template_file) {
        code = cli_read_file(c, opt.template_file, &b);
        source = (rlx_str){b.at, b.len};
    } else if (!source.ptr) {
        fprintf(stderr, "rlx chat: the model has no template for conversations: ChatML is used; "
                        "--template FILE names another\n");
        source = rlx_cstr(chatml);
    }
    if (code == EXIT_DONE && rlx_template_parse(c->ctx, source, &x->template, &err) != RLX_OK)
        code = cli_fail(c, &err, "cannot use", "the template for conversations");
    buffer_free(&b);
    return code;
}

/* Without an argument: the model that tools/setup models fetches, if it did. */
static const char *find_model(const struct texts *args)
{
    static const char fetched[] = "build/models/SmolLM2-135M-Instruct.Q4_1.gguf";

    if (args->count)
        return args->at[0];
    const char *named = getenv("RLX_MODEL");
    if (named && *named)
        return named;
    if (access(fetched, R_OK) == 0)
        return fetched;
    fputs(
        "rlx chat: which model? Give a GGUF file, or name one in RLX_MODEL. In a checkout of rlx,\n"
        "`tools/setup models` gets a small one (SmolLM2-135M-Instruct, 98 MB), which is then "
        "used.\n",
        stderr);
    return NULL;
}

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    struct chat *x;
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count > 1)
        return cli_misuse(c, "takes one GGUF file");
    if (opt.think && opt.no_think)
        return cli_misuse(c, "takes --think or --no-think, not both");
    const char *path = find_model(&args);
    if (!path)
        return EXIT_MISUSED;
    if (!(x = calloc(1, sizeof *x)))
        return EXIT_FAILED;
    x->tty = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    code = lm_open(&x->lm, c, &opt.lm, path);
    if (code == EXIT_DONE && (code = open_template(x)) == EXIT_DONE) {
        lm_catch_interrupt();
        if (opt.system)
            say(x, "system", opt.system, strlen(opt.system));
        if (!opt.prompt)
            code = converse(x);
        else if (say(x, "user", opt.prompt, strlen(opt.prompt)))
            code = answer(x);
    }
    take_back(x, 0);
    rlx_template_close(x->template);
    lm_close(&x->lm);
    free(x);
    return code;
}

const struct command cmd_chat = {
    .name = "chat",
    .summary = "Talk with a language model",
    .usage = "rlx chat [flags] [MODEL.gguf]",
    .details =
        "Each line is something said; the model answers. Lines that begin with a slash are for "
        "rlx: /help\nlists them. The conversation is written as the model's own template wants "
        "it; what you say is\nnever taken for the template's words. Without a file, RLX_MODEL "
        "names one, or the model is used\nthat tools/setup models has fetched.",
    .examples = "rlx chat model.gguf\n"
                "rlx chat model.gguf --system \"Answer in one sentence.\" --temp 0.2\n"
                "rlx chat model.gguf -p \"What is the capital of France?\"\n"
                "rlx chat --device vulkan",
    .run = run,
    .flags = flags,
};
