/* generate.c: `rlx generate`: a language model goes on with a text. */
#include <stdlib.h>
#include <string.h>

#include "lm.h"

static struct {
    const char *prompt, *file;
    struct lm_options lm;
    bool json, no_special, list, quiet, no_echo;
} opt = {.lm = LM_OPTIONS_INIT};

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--prompt", FLAG_TEXT, &opt.prompt, "TEXT",
         "what to go on from (the beginning of a text)"},
        {"-p", FLAG_TEXT, &opt.prompt, "TEXT", "the same"},
        {"--file", FLAG_TEXT, &opt.file, "F", "the prompt is in this file; -: standard input"},
        LM_SAMPLING_FLAGS(opt.lm),
        LM_MODEL_FLAGS(opt.lm),
        {"--no-special", FLAG_SWITCH, &opt.no_special, NULL,
         "do not begin with the token that begins a text"},
        {"--no-echo", FLAG_SWITCH, &opt.no_echo, NULL, "print what comes after the prompt alone"},
        {"--json", FLAG_SWITCH, &opt.json, NULL, "text and figures as one JSON object"},
        {"--quiet", FLAG_SWITCH, &opt.quiet, NULL, "no line with figures in the end"},
        {"--list", FLAG_SWITCH, &opt.list, NULL, "the architectures that can be run"},
        {0}};
    return list;
}

static int list_architectures(void)
{
    const char *name, *text;

    for (size_t i = 0; rlx_llm_arch(i, &name, &text); i++)
        printf("%-16s %s\n", name, text);
    return EXIT_DONE;
}

/* ---- the prompt --------------------------------------------------------------------------- */

static int read_prompt(struct cli *c, struct buffer *b)
{
    if (opt.file)
        return cli_read_file(c, opt.file, b);
    buffer_add(b, opt.prompt ? opt.prompt : "", opt.prompt ? strlen(opt.prompt) : 0);
    return EXIT_DONE;
}

/* A text that has no beginning of its own begins with the token for one, or for an end. */
static int encode(struct lm *x, rlx_str text, rlx_token_ids *ids)
{
    const uint32_t how = RLX_ENCODE_PARSE | (opt.no_special ? 0 : RLX_ENCODE_ADD);
    rlx_tokenizer_info info = {RLX_SIZED(rlx_tokenizer_info)};
    rlx_error err;

    if (rlx_tokenizer_describe(x->tokenizer, &info, &err) != RLX_OK ||
        rlx_tokenizer_encode(x->tokenizer, text, how, ids, &err) != RLX_OK)
        return cli_fail(x->c, &err, "cannot encode", "the prompt");
    if (ids->count && info.add_eos && ids->at[ids->count - 1] == info.special[RLX_SPECIAL_eos])
        ids->count--; /* it is to go on */
    if ((int64_t)ids->count > x->info.context) {
        fprintf(stderr,
                "rlx %s: the prompt has %zu tokens, and there is room for %lld (--context)\n",
                x->c->command->name, ids->count, (long long)x->info.context);
        return EXIT_FAILED;
    }
    if (ids->count)
        return EXIT_DONE;
    fprintf(stderr,
            "rlx %s: the prompt is empty, and the vocabulary has no token that begins a "
            "text: give --prompt TEXT\n",
            x->c->command->name);
    return EXIT_FAILED;
}

/* ---- what is printed ---------------------------------------------------------------------- */

static double rate(size_t count, double seconds)
{
    return seconds > 0 ? (double)count / seconds : 0;
}

static void summary(struct lm *x, const struct lm_result *r)
{
    rlx_memory_info memory = {RLX_SIZED(rlx_memory_info)};
    char weights[32], states[32], rest[32];
    size_t made, right;

    fprintf(stderr,
            "\n%zu tokens of prompt, %.1f/s; %zu generated, %.1f/s; first after %.2f s (%s)\n",
            r->prompt, rate(r->prompt - r->kept, r->prompt_seconds), r->tokens,
            rate(r->tokens ? r->tokens - 1 : 0, r->token_seconds), r->first_seconds,
            lm_end_name[r->end]);
    rlx_sequence_guessed(x->sequence, &made, &right);
    if (made)
        fprintf(stderr, "%zu of %zu guesses were right\n", right, made);
    if (rlx_sequence_memory(x->sequence, &memory, NULL) == RLX_OK)
        fprintf(stderr, "%s: weights %s, context of %lld tokens %s, activations %s\n", x->info.arch,
                cli_bytes(memory.weights + memory.weight_copies, weights),
                (long long)x->info.context, cli_bytes(memory.state, states),
                cli_bytes(memory.activations + memory.constants, rest));
}

static void print_json(const struct lm *x, rlx_str prompt, const struct buffer *text,
                       const struct lm_result *r)
{
    fputs("{\"model\": ", stdout);
    cli_json_string(stdout, x->info.arch, strlen(x->info.arch));
    fputs(", \"prompt\": ", stdout);
    cli_json_string(stdout, prompt.ptr, prompt.len);
    fputs(", \"text\": ", stdout);
    cli_json_string(stdout, text->at ? text->at : "", text->len);
    printf(", \"end\": \"%s\", \"prompt_tokens\": %zu, \"tokens\": %zu, \"prompt_seconds\": %.6f, "
           "\"token_seconds\": %.6f}\n",
           lm_end_name[r->end], r->prompt, r->tokens, r->prompt_seconds, r->token_seconds);
}

static void write_now(void *user, const char *text, size_t len)
{
    cli_write(user, text, len);
    fflush(user);
}

static int generate(struct lm *x, rlx_str prompt)
{
    struct lm_result r;
    struct buffer text = {0};
    rlx_token_ids ids = {0};
    int code = encode(x, prompt, &ids);

    if (code == EXIT_DONE && !opt.json && !opt.no_echo)
        write_now(stdout, prompt.ptr, prompt.len);
    if (code == EXIT_DONE)
        code = opt.json ? lm_generate(x, &ids, buffer_add, &text, &r)
                        : lm_generate(x, &ids, write_now, stdout, &r);
    if (code == EXIT_DONE && opt.json)
        print_json(x, prompt, &text, &r);
    else if (code == EXIT_DONE) {
        putchar('\n');
        fflush(stdout);
        if (!opt.quiet)
            summary(x, &r);
    }
    buffer_free(&text);
    rlx_token_ids_free(x->tokenizer, &ids);
    return code;
}

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    struct buffer prompt = {0};
    struct lm x = {0};
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (opt.list)
        return list_architectures();
    if (args.count != 1)
        return cli_misuse(c, "takes a GGUF file");
    if (opt.prompt && opt.file)
        return cli_misuse(c, "takes --prompt or --file, not both");
    if ((code = read_prompt(c, &prompt)) == EXIT_DONE &&
        (code = lm_open(&x, c, &opt.lm, args.at[0])) == EXIT_DONE) {
        lm_catch_interrupt();
        code = generate(&x, (rlx_str){prompt.at ? prompt.at : "", prompt.len});
    }
    lm_close(&x);
    buffer_free(&prompt);
    return code;
}

const struct command cmd_generate = {
    .name = "generate",
    .summary = "Let a language model go on with a text",
    .usage = "rlx generate [flags] MODEL.gguf",
    .details = "Text is printed as it comes. In the end a line says how fast it was, and why it "
               "ended: the\nmodel ended it (eos), --stop, --tokens or a full context (length). "
               "Ctrl-C ends the text. --list\nnames the architectures that can be run.",
    .examples = "rlx generate model.gguf -p \"Once upon a time\"\n"
                "rlx generate model.gguf -p \"The capital of France is\" -n 20 --temp 0\n"
                "rlx generate model.gguf --file prompt.txt --device vulkan --json",
    .run = run,
    .flags = flags,
};
