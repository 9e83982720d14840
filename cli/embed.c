/* embed.c: `rlx embed`: vectors of texts, and how alike they are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lm.h"

static struct {
    const char *file, *output, *pooling;
    struct lm_options lm;
    bool similarity, raw, json;
} opt = {.lm = LM_OPTIONS_INIT};

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--file", FLAG_TEXT, &opt.file, "F", "texts, a line each; -: standard input"},
        {"--output", FLAG_TEXT, &opt.output, "F.npy",
         "write vectors there instead, f32[texts, width]"},
        {"--similarity", FLAG_SWITCH, &opt.similarity, NULL,
         "the cosines between all texts instead of their vectors"},
        {"--json", FLAG_SWITCH, &opt.json, NULL, "vectors, and with --similarity cosines as well"},
        {"--pooling", FLAG_TEXT, &opt.pooling, "P",
         "of the vectors of tokens: mean, first or last (as the file says)"},
        {"--raw", FLAG_SWITCH, &opt.raw, NULL, "vectors as they come, not of length 1"},
        {"--device", FLAG_TEXT, &opt.lm.device, "D", "where to run (auto); rlx devices lists them"},
        {"--context", FLAG_NUMBER, &opt.lm.context, "N",
         "tokens of the longest text (as trained for, 4096 at most)"},
        {"--exact", FLAG_SWITCH, &opt.lm.exact, NULL,
         "do not round what packed weights are multiplied with to 8 bits"},
        {"--lora", FLAG_LIST, &opt.lm.lora, "F[=X]",
         "an adapter, and how much it counts (1); repeatable"},
        {0}};
    return list;
}

/* ---- texts -------------------------------------------------------------------------------- */

struct texts_in {
    rlx_str *at;
    size_t count;
    struct buffer file; /* what they are parts of */
};

static int no_memory(struct cli *c)
{
    fprintf(stderr, "rlx %s: out of memory\n", c->command->name);
    return EXIT_FAILED;
}

/* What comes after the last line end is a line if there is anything. */
static int split_lines(struct cli *c, struct texts_in *t)
{
    size_t lines = 1, begin = 0;

    for (size_t i = 0; i < t->file.len; i++)
        lines += t->file.at[i] == '\n';
    if (!(t->at = calloc(lines, sizeof *t->at)))
        return no_memory(c);
    for (size_t i = 0; i <= t->file.len; i++) {
        if (i < t->file.len ? t->file.at[i] != '\n' : begin == i)
            continue;
        size_t end = i > begin && t->file.at[i - 1] == '\r' ? i - 1 : i;
        t->at[t->count++] = (rlx_str){t->file.at + begin, end - begin};
        begin = i + 1;
    }
    return EXIT_DONE;
}

static int take_texts(struct cli *c, const struct texts *args, struct texts_in *t)
{
    int code;

    if (opt.file) {
        code = cli_read_file(c, opt.file, &t->file);
        return code == EXIT_DONE ? split_lines(c, t) : code;
    }
    if (!(t->at = calloc(args->count, sizeof *t->at)))
        return no_memory(c);
    for (size_t i = 1; i < args->count; i++)
        t->at[t->count++] = rlx_cstr(args->at[i]);
    return EXIT_DONE;
}

/* ---- vectors ------------------------------------------------------------------------------ */

struct vectors {
    float *at; /* [count, width] */
    size_t *tokens;
    size_t count, width;
};

static int embed_one(struct lm *x, rlx_str text, size_t i, struct vectors *v)
{
    const char *const what = opt.file ? "line" : "text";
    rlx_token_ids ids = {0};
    char which[64];
    rlx_error err;

    rlx_status s = rlx_tokenizer_encode(x->tokenizer, text, RLX_ENCODE_ADD, &ids, &err);
    if (s == RLX_OK)
        s = rlx_llm_embed(x->model, ids.at, ids.count, !opt.raw, v->at + i * v->width, &err);
    v->tokens[i] = ids.count;
    rlx_token_ids_free(x->tokenizer, &ids);
    snprintf(which, sizeof which, "%s %zu", what, i + 1);
    return s == RLX_OK ? EXIT_DONE : cli_fail(x->c, &err, "cannot embed", which);
}

static int embed_all(struct lm *x, const struct texts_in *t, struct vectors *v)
{
    int code = EXIT_DONE;

    v->count = t->count;
    v->width = (size_t)x->info.vector_width;
    v->tokens = calloc(v->count + 1, sizeof *v->tokens);
    v->at = v->count < SIZE_MAX / sizeof *v->at / v->width
                ? calloc(v->count * v->width + 1, sizeof *v->at)
                : NULL;
    if (!v->at || !v->tokens)
        return no_memory(x->c);
    for (size_t i = 0; code == EXIT_DONE && i < v->count; i++) {
        code = embed_one(x, t->at[i], i, v);
        cli_progress(x->c, "embedding", i + 1, v->count);
    }
    cli_progress_end(x->c);
    return code;
}

static double cosine(const struct vectors *v, size_t i, size_t j)
{
    const float *a = v->at + i * v->width, *b = v->at + j * v->width;
    double ab = 0, aa = 0, bb = 0;

    for (size_t k = 0; k < v->width; k++) {
        ab += (double)a[k] * (double)b[k];
        aa += (double)a[k] * (double)a[k];
        bb += (double)b[k] * (double)b[k];
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

/* ---- what is printed and written ---------------------------------------------------------- */

static int write_npy(struct cli *c, const struct vectors *v)
{
    const rlx_weight tensor = {.name = rlx_cstr("vectors"),
                               .type = RLX_WEIGHT_F32,
                               .rank = 2,
                               .dim = {(int64_t)v->count, (int64_t)v->width}};
    const rlx_weights_content content = {RLX_SIZED(rlx_weights_content), .kind = RLX_FILE_npy,
                                         .tensor = &tensor, .tensor_count = 1};
    rlx_weights_writer *w;
    rlx_error err;
    uint64_t left;
    size_t i;

    if (rlx_weights_begin(c->ctx, opt.output, &content, &w, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot write", opt.output);
    rlx_status s = RLX_OK;
    if (rlx_weights_next(w, &i, &left))
        s = rlx_weights_write(w, v->at, v->count * v->width * sizeof *v->at, &err);
    if (s == RLX_OK)
        s = rlx_weights_finish(w, &err);
    else
        rlx_weights_abandon(w);
    return s == RLX_OK ? EXIT_DONE : cli_fail(c, &err, "cannot write", opt.output);
}

/* JSON has no numbers but finite ones. */
static void print_number(double x, int digits)
{
    if (isfinite(x))
        printf("%.*g", digits, x);
    else
        fputs("null", stdout);
}

static void print_row(const struct vectors *v, size_t i, bool cosines)
{
    const size_t count = cosines ? v->count : v->width;

    putchar('[');
    for (size_t k = 0; k < count; k++) {
        if (k)
            fputs(", ", stdout);
        if (cosines)
            print_number(cosine(v, i, k), 6);
        else
            print_number((double)v->at[i * v->width + k], 9);
    }
    putchar(']');
}

static void print_rows(const struct vectors *v, const char *name, bool cosines)
{
    printf(", \"%s\": [", name);
    for (size_t i = 0; i < v->count; i++) {
        fputs(i ? ",\n" : "\n", stdout);
        print_row(v, i, cosines);
    }
    putchar(']');
}

static void print_json(const struct lm *x, const struct vectors *v)
{
    printf("{\"model\": \"%s\", \"width\": %zu, \"tokens\": [", x->info.arch, v->width);
    for (size_t i = 0; i < v->count; i++)
        printf("%s%zu", i ? ", " : "", v->tokens[i]);
    putchar(']');
    if (!opt.output)
        print_rows(v, "vectors", false);
    if (opt.similarity)
        print_rows(v, "similarities", true);
    puts("}");
}

/* A column for each text, and the text itself in the end of its row. */
static void print_table(const struct vectors *v, const struct texts_in *t)
{
    for (size_t i = 0; i < v->count; i++) {
        for (size_t k = 0; k < v->count; k++)
            printf("%8.4f", cosine(v, i, k));
        printf("  %.*s\n", (int)(t->at[i].len < 200 ? t->at[i].len : 200), t->at[i].ptr);
    }
}

static int show(struct lm *x, const struct vectors *v, const struct texts_in *t)
{
    int code = opt.output ? write_npy(x->c, v) : EXIT_DONE;

    if (code != EXIT_DONE)
        return code;
    if (opt.similarity && !opt.json)
        print_table(v, t);
    else if (opt.json || !opt.output)
        print_json(x, v);
    return EXIT_DONE;
}

/* ---- the command -------------------------------------------------------------------------- */

static int take_pooling(struct cli *c)
{
    static const char *const name[] = {"", "mean", "first", "last"};

    for (int i = 1; opt.pooling && i < 4; i++)
        if (strcmp(opt.pooling, name[i]) == 0)
            opt.lm.pooling = (rlx_llm_pooling)i;
    if (opt.pooling && opt.lm.pooling == RLX_LLM_POOLING_AUTO)
        return cli_misuse(c, "--pooling must be mean, first or last, not %s", opt.pooling);
    opt.lm.vectors = true;
    return EXIT_DONE;
}

static void tell_pooling(const struct lm *x)
{
    if (!opt.pooling && x->info.pooling == RLX_LLM_POOLING_AUTO)
        fprintf(stderr,
                "rlx %s: the file does not say how to make one vector of those of its tokens, so "
                "this is their mean (--pooling)\n",
                x->c->command->name);
}

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    struct texts_in texts = {0};
    struct vectors v = {0};
    struct lm x = {0};
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count < 1 || (opt.file ? args.count > 1 : args.count < 2))
        return cli_misuse(c, "takes a GGUF file, and texts or --file");
    if ((code = take_pooling(c)) == EXIT_DONE &&
        (code = take_texts(c, &args, &texts)) == EXIT_DONE &&
        (code = lm_open_model(&x, c, &opt.lm, args.at[0], false)) == EXIT_DONE) {
        tell_pooling(&x);
        if ((code = embed_all(&x, &texts, &v)) == EXIT_DONE)
            code = show(&x, &v, &texts);
    }
    lm_close(&x);
    free(v.at);
    free(v.tokens);
    free(texts.at);
    buffer_free(&texts.file);
    return code;
}

const struct command cmd_embed = {
    .name = "embed",
    .summary = "Make vectors of texts that show which mean the same",
    .usage = "rlx embed [flags] MODEL.gguf TEXT ...",
    .details = "Prints a vector for each text, as JSON, or writes them to an npy file. Texts that "
               "mean the same\nhave vectors that point the same way: --similarity prints their "
               "cosines, from -1 to 1. Models made\nfor it (BERT and its kin) say how they want it "
               "done; of others the mean over all tokens is taken.",
    .examples = "rlx embed minilm.gguf \"a cat\" \"a kitten\" \"a train\" --similarity\n"
                "rlx embed minilm.gguf --file lines.txt --output vectors.npy\n"
                "rlx embed model.gguf --pooling last \"a text\"",
    .run = run,
    .flags = flags,
};
