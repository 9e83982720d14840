/* tokenize.c: `rlx tokenize`: text as tokens, and tokens as text. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "rlx/text.h"

static struct {
    const char *file;
    bool ids, no_special, no_parse, decode, count;
} opt;

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--ids", FLAG_SWITCH, &opt.ids, NULL, "only the ids, in one line"},
        {"--count", FLAG_SWITCH, &opt.count, NULL, "only how many there are"},
        {"--no-special", FLAG_SWITCH, &opt.no_special, NULL,
         "do not add the tokens that begin and end a text"},
        {"--no-parse", FLAG_SWITCH, &opt.no_parse, NULL,
         "control tokens that the text spells, such as <s>, are text"},
        {"--file", FLAG_TEXT, &opt.file, "F", "the text is in this file; -: standard input"},
        {"--decode", FLAG_SWITCH, &opt.decode, NULL,
         "the other way: ids are given, text comes out"},
        {0}};
    return list;
}

/* ---- what there is ----------------------------------------------------------------------- */

static const char *type_name(rlx_token_type t)
{
    static const char *const names[] = {"undefined",    "normal", "unknown", "control",
                                        "user-defined", "unused", "byte"};

    return (size_t)t < sizeof names / sizeof *names ? names[t] : "?";
}

/* In quotes, on one line. */
static void print_piece(rlx_str s)
{
    putchar('"');
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c == '\n')
            fputs("\\n", stdout);
        else if (c == '\t')
            fputs("\\t", stdout);
        else if (c < 0x20 || c == 0x7f)
            printf("\\x%02x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void describe(const rlx_tokenizer *t)
{
    static const char *const names[] = {
#define X(name, key) #name,
        RLX_SPECIAL_TOKEN_MAP(X)
#undef X
    };
    rlx_tokenizer_info info = {RLX_SIZED(rlx_tokenizer_info)};
    rlx_token token;

    rlx_tokenizer_describe(t, &info, NULL);
    printf("kind     %s\n", info.kind);
    if (*info.pre)
        printf("words    %s\n", info.pre);
    printf("tokens   %u\n", info.vocab);
    if (info.merges)
        printf("merges   %u\n", info.merges);
    for (size_t i = 0; i < RLX_SPECIAL_count; i++) {
        if (!rlx_tokenizer_at(t, info.special[i], &token))
            continue;
        printf("%-8s %d ", names[i], info.special[i]);
        print_piece(token.text);
        bool added =
            (i == RLX_SPECIAL_bos && info.add_bos) || (i == RLX_SPECIAL_eos && info.add_eos);
        puts(added ? " (added)" : "");
    }
}

/* ---- text to ids ------------------------------------------------------------------------- */

static void print_ids(const rlx_token_ids *ids)
{
    for (size_t i = 0; i < ids->count; i++)
        printf(i ? " %d" : "%d", ids->at[i]);
    putchar('\n');
}

static void print_tokens(const rlx_tokenizer *t, const rlx_token_ids *ids)
{
    rlx_token token;

    for (size_t i = 0; i < ids->count; i++) {
        if (!rlx_tokenizer_at(t, ids->at[i], &token))
            continue;
        printf("%8d  ", ids->at[i]);
        print_piece(token.text);
        if (token.type != RLX_TOKEN_NORMAL)
            printf("  %s", type_name(token.type));
        putchar('\n');
    }
}

static int encode(struct cli *c, const rlx_tokenizer *t, rlx_str text, const char *from)
{
    const uint32_t how =
        (opt.no_special ? 0u : RLX_ENCODE_ADD) | (opt.no_parse ? 0u : RLX_ENCODE_PARSE);
    rlx_token_ids ids = {0};
    rlx_error err;

    if (rlx_tokenizer_encode(t, text, how, &ids, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot encode", from);
    if (opt.count)
        printf("%zu\n", ids.count);
    else if (opt.ids)
        print_ids(&ids);
    else
        print_tokens(t, &ids);
    rlx_token_ids_free(t, &ids);
    return EXIT_DONE;
}

/* ---- ids to text ------------------------------------------------------------------------- */

static int decode(struct cli *c, const rlx_tokenizer *t, char *text)
{
    rlx_token_stream s = {.flags = opt.no_special ? 0 : RLX_DECODE_SPECIAL};
    rlx_error err;
    int64_t id;

    for (char *word, *rest = text; (word = strtok_r(rest, " ,\t\r\n", &rest));) {
        if (!cli_integer(word, &id) || id < 0 || id > INT32_MAX)
            return cli_misuse(c, "\"%s\" is not an id", word);
        if (rlx_token_stream_add(t, &s, (int32_t)id, cli_write, stdout, &err) != RLX_OK)
            return cli_fail(c, &err, "cannot decode", word);
    }
    rlx_token_stream_end(&s, cli_write, stdout);
    return EXIT_DONE;
}

/* ---- the command ------------------------------------------------------------------------- */

/* The text of --file, or of the arguments, which are words of it. */
static int read_text(struct cli *c, const struct texts *args, struct buffer *b)
{
    int code = opt.file ? cli_read_file(c, opt.file, b) : EXIT_DONE;

    for (size_t i = 1; !opt.file && i < args->count; i++) {
        if (i > 1)
            buffer_add(b, " ", 1);
        buffer_add(b, args->at[i], strlen(args->at[i]));
    }
    buffer_add(b, "", 1); /* a NUL */
    return b->failed ? EXIT_FAILED : code;
}

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    struct buffer b = {0};
    rlx_tokenizer *t;
    rlx_error err;
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count < 1 || (opt.file && args.count > 1))
        return cli_misuse(c, "takes a vocabulary, and a text or --file");
    if (opt.decode && (opt.ids || opt.count || opt.no_parse))
        return cli_misuse(c, "--decode goes with --file and --no-special only");
    if ((code = cli_context(c)) != EXIT_DONE)
        return code;
    if (rlx_tokenizer_open(c->ctx, args.at[0], &t, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot open", args.at[0]);
    if (args.count == 1 && !opt.file)
        describe(t);
    else if ((code = read_text(c, &args, &b)) == EXIT_DONE)
        code = opt.decode
                   ? decode(c, t, b.at)
                   : encode(c, t, (rlx_str){b.at, b.len - 1}, opt.file ? opt.file : "the text");
    buffer_free(&b);
    rlx_tokenizer_close(t);
    return code;
}

const struct command cmd_tokenize = {
    .name = "tokenize",
    .summary = "Turn text into the tokens of a language model, and back",
    .usage = "rlx tokenize [flags] VOCAB [TEXT ...]",
    .details =
        "VOCAB is a GGUF file, with or without weights, or a tokenizer.json. Without a text, "
        "its kind and\nspecial tokens are shown; with one, a line for each token: its id, "
        "how the vocabulary spells it,\nand its type if it is not a normal one.",
    .examples = "rlx tokenize model.gguf \"Hello, world\"\n"
                "rlx tokenize model.gguf --file book.txt --count\n"
                "rlx tokenize model.gguf --ids --no-special \"Hello\"\n"
                "rlx tokenize model.gguf --decode 15496 11 995",
    .run = run,
    .flags = flags,
};
