/* perplexity.c: `rlx perplexity`: how well a language model foresees a text.
 *
 * The text's tokens are cut into chunks as long as the context, each read by itself:
 *
 *     | first half: read only | second half: each token but the first is foreseen |
 *
 * The surprise at a token is -ln of the probability that the model gave it; perplexity is e to the
 * mean of all surprises. Figures can be compared with llama.cpp's, which counts the same tokens. */
#include <math.h>
#include <string.h>

#include "lm.h"

enum { USUAL_CONTEXT = 512, USUAL_CHUNK = 512, LEAST_CONTEXT = 3 };

static struct {
    const char *file;
    int64_t chunks;
    struct lm_options lm;
    bool json;
} opt = {.lm = LM_OPTIONS_INIT};

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--file", FLAG_TEXT, &opt.file, "F", "the text; -: standard input"},
        {"--context", FLAG_NUMBER, &opt.lm.context, "N", "tokens in a chunk of the text (512)"},
        {"--chunks", FLAG_NUMBER, &opt.chunks, "N", "stop after so many of them (all)"},
        {"--chunk", FLAG_NUMBER, &opt.lm.chunk, "N", "tokens computed at once (512 at most)"},
        {"--device", FLAG_TEXT, &opt.lm.device, "D", "where to run (auto); rlx devices lists them"},
        {"--cache", FLAG_TEXT, &opt.lm.cache, "TYPE", "of keys and values: f16, f32 (f16)"},
        {"--exact", FLAG_SWITCH, &opt.lm.exact, NULL,
         "do not round what packed weights are multiplied with to 8 bits"},
        {"--lora", FLAG_LIST, &opt.lm.lora, "F[=X]",
         "an adapter, and how much it counts (1); repeatable"},
        {"--json", FLAG_SWITCH, &opt.json, NULL, "all figures as one JSON object"},
        {0}};
    return list;
}

/* ---- surprises ---------------------------------------------------------------------------- */

struct tally {
    double sum, squares; /* of surprises */
    size_t count;
};

static double surprise(const float *logits, size_t vocab, int32_t token)
{
    double top = (double)logits[0], sum = 0;

    for (size_t i = 1; i < vocab; i++)
        top = fmax(top, (double)logits[i]);
    for (size_t i = 0; i < vocab; i++)
        sum += exp((double)logits[i] - top);
    return log(sum) + top - (double)logits[token];
}

static double perplexity(const struct tally *t)
{
    return exp(t->sum / (double)t->count);
}

/* The standard error of the mean surprise, carried over to what it is the logarithm of. */
static double deviation(const struct tally *t)
{
    double n = (double)t->count, mean = t->sum / n, variance = t->squares / n - mean * mean;

    return t->count > 1 && variance > 0 ? sqrt(variance / (n - 1)) * perplexity(t) : 0;
}

/* ---- a text ------------------------------------------------------------------------------- */

static int encode(struct lm *x, rlx_str text, rlx_token_ids *ids, int32_t *begin)
{
    rlx_tokenizer_info info = {RLX_SIZED(rlx_tokenizer_info)};
    rlx_error err;

    if (rlx_tokenizer_describe(x->tokenizer, &info, &err) != RLX_OK ||
        rlx_tokenizer_encode(x->tokenizer, text, RLX_ENCODE_ADD, ids, &err) != RLX_OK)
        return cli_fail(x->c, &err, "cannot encode", opt.file);
    *begin = info.add_bos ? info.special[RLX_SPECIAL_bos] : -1;
    if (ids->count >= (size_t)opt.lm.context)
        return EXIT_DONE;
    fprintf(stderr,
            "rlx %s: %s has %zu tokens, which do not fill a context of %lld: take a longer text, "
            "or a smaller --context\n",
            x->c->command->name, opt.file, ids->count, (long long)opt.lm.context);
    return EXIT_FAILED;
}

/* Logits of the `count` tokens that were read last, compared with what came after each. */
static int count_surprises(struct lm *x, const int32_t *after, size_t count, struct tally *t)
{
    const size_t vocab = (size_t)x->info.vocab;
    const float *logits;
    size_t rows;
    rlx_error err;

    if (rlx_sequence_logits(x->sequence, &logits, &rows, &err) != RLX_OK)
        return cli_fail(x->c, &err, "cannot run", x->info.arch);
    for (size_t i = 0; i < count; i++) {
        double s = surprise(logits + (rows - count + i) * vocab, vocab, after[i]);
        if (!isfinite(s)) {
            fprintf(stderr, "rlx %s: what the model gives is not finite\n", x->c->command->name);
            return EXIT_FAILED;
        }
        t->sum += s;
        t->squares += s * s;
        t->count++;
    }
    return EXIT_DONE;
}

/* The last token of a chunk is only foreseen: nothing of the chunk comes after it. */
static int read_chunk(struct lm *x, int32_t *id, int32_t begin, struct tally *t)
{
    const size_t all = (size_t)opt.lm.context - 1, first = (size_t)opt.lm.context / 2;
    rlx_error err;

    if (begin >= 0)
        id[0] = begin; /* other chunks do not read this token */
    if (rlx_sequence_rewind(x->sequence, 0, &err) != RLX_OK ||
        rlx_sequence_feed(x->sequence, id, first, &err) != RLX_OK)
        return cli_fail(x->c, &err, "cannot read", "the text");
    for (size_t at = first, n; at < all; at += n) {
        n = all - at < (size_t)opt.lm.chunk ? all - at : (size_t)opt.lm.chunk;
        if (rlx_sequence_feed(x->sequence, id + at, n, &err) != RLX_OK)
            return cli_fail(x->c, &err, "cannot read", "the text");
        int code = count_surprises(x, id + at + 1, n, t);
        if (code != EXIT_DONE)
            return code;
    }
    return EXIT_DONE;
}

/* ---- what is printed ---------------------------------------------------------------------- */

static void print_running(struct cli *c, const struct tally *t, size_t chunk, size_t chunks)
{
    printf(opt.json ? "%s%.6f" : "%s%.4f", chunk ? ", " : "", perplexity(t));
    fflush(stdout);
    if (opt.json)
        cli_progress(c, "reading", chunk + 1, chunks);
}

static void print_result(const struct lm *x, const struct tally *t, size_t chunks, double seconds)
{
    if (!opt.json) {
        printf("\nperplexity %.4f +/- %.5f (%s; %zu chunks of %lld tokens, %zu of them foreseen)\n",
               perplexity(t), deviation(t), x->info.arch, chunks, (long long)opt.lm.context,
               t->count);
        return;
    }
    printf("], \"model\": \"%s\", \"context\": %lld, \"chunks\": %zu, \"foreseen\": %zu, "
           "\"surprise\": %.9f, \"perplexity\": %.6f, \"error\": %.6f, \"seconds\": %.3f}\n",
           x->info.arch, (long long)opt.lm.context, chunks, t->count, t->sum / (double)t->count,
           perplexity(t), deviation(t), seconds);
}

static int measure(struct lm *x, rlx_str text)
{
    const double start = lm_seconds();
    struct tally t = {0};
    rlx_token_ids ids = {0};
    int32_t begin = -1;
    int code = encode(x, text, &ids, &begin);
    size_t chunks = ids.count / (size_t)opt.lm.context;

    if (opt.chunks > 0 && (size_t)opt.chunks < chunks)
        chunks = (size_t)opt.chunks;
    if (code == EXIT_DONE && opt.json)
        fputs("{\"running\": [", stdout);
    for (size_t i = 0; code == EXIT_DONE && i < chunks; i++) {
        code = read_chunk(x, ids.at + i * (size_t)opt.lm.context, begin, &t);
        if (code == EXIT_DONE)
            print_running(x->c, &t, i, chunks);
    }
    cli_progress_end(x->c);
    if (code == EXIT_DONE)
        print_result(x, &t, chunks, lm_seconds() - start);
    else if (t.count)
        putchar('\n');
    rlx_token_ids_free(x->tokenizer, &ids);
    return code;
}

/* ---- the command -------------------------------------------------------------------------- */

/* Logits of all tokens computed at once are kept: half a context is all that is ever asked for. */
static int settle_options(struct cli *c)
{
    struct lm_options *o = &opt.lm;

    if (o->context == 0)
        o->context = USUAL_CONTEXT;
    if (o->context < LEAST_CONTEXT || o->context > 1 << 24 || o->chunk < 0 || opt.chunks < 0)
        return cli_misuse(c,
                          "--context takes a number from %d on; --chunk and --chunks take counts",
                          LEAST_CONTEXT);
    if (o->chunk == 0)
        o->chunk = USUAL_CHUNK;
    if (o->chunk > (o->context + 1) / 2)
        o->chunk = (o->context + 1) / 2;
    return EXIT_DONE;
}

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    struct buffer text = {0};
    struct lm x = {0};
    rlx_error err;
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count != 1 || !opt.file)
        return cli_misuse(c, "takes a GGUF file, and --file with a text");
    if ((code = settle_options(c)) == EXIT_DONE &&
        (code = cli_read_file(c, opt.file, &text)) == EXIT_DONE &&
        (code = lm_open_model(&x, c, &opt.lm, args.at[0], true)) == EXIT_DONE) {
        if (rlx_sequence_create(x.model, &x.sequence, &err) != RLX_OK)
            code = cli_fail(c, &err, "cannot run", args.at[0]);
        else
            code = measure(&x, (rlx_str){text.at ? text.at : "", text.len});
    }
    lm_close(&x);
    buffer_free(&text);
    return code;
}

const struct command cmd_perplexity = {
    .name = "perplexity",
    .summary = "Measure how well a language model foresees a text",
    .usage = "rlx perplexity [flags] --file TEXT MODEL.gguf",
    .details =
        "The text is cut into chunks of --context tokens, each read by itself; the second "
        "half of each\nis foreseen from what comes before. After each chunk the perplexity so "
        "far is printed, in the\nend that of all with its standard error. Lower is better; "
        "figures of one text, context and\nvocabulary can be compared, with llama.cpp's as "
        "well.",
    .examples = "rlx perplexity model.gguf --file book.txt\n"
                "rlx perplexity model-q4.gguf --file book.txt --chunks 20 --json\n"
                "rlx perplexity model.gguf --file book.txt --context 2048 --device vulkan",
    .run = run,
    .flags = flags,
};
