/* lm.c: a language model opened by a command, and text written by it piece by piece. */
#include "lm.h"

#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *const lm_end_name[] = {"eos", "stop", "length", "interrupted"};

double lm_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the model ---------------------------------------------------------------------------- */

enum { MAX_ADAPTERS = 16 };

static bool real(const char *text, float *out)
{
    char *end;

    *out = strtof(text, &end);
    return *text && !*end && isfinite(*out);
}

/* "FILE", or "FILE=SCALE". The path is cut off where the scale begins. */
static int take_adapters(struct lm *x, rlx_llm_adapter out[MAX_ADAPTERS])
{
    const struct texts *list = &x->opt->lora;

    if (list->count > MAX_ADAPTERS)
        return cli_misuse(x->c, "--lora: at most %d can be used at once", MAX_ADAPTERS);
    for (size_t i = 0; i < list->count; i++) {
        char *path = strdup(list->at[i]), *equals = path ? strrchr(path, '=') : NULL;
        out[i] = (rlx_llm_adapter){.path = path, .scale = 1};
        if (!path || (equals && !real(equals + 1, &out[i].scale)))
            return cli_misuse(x->c, "--lora takes a file, and may end in =X, a number: %s",
                              list->at[i]);
        if (equals)
            *equals = 0;
    }
    return EXIT_DONE;
}

static int open_with_adapters(struct lm *x, const char *path, rlx_llm_desc *desc)
{
    rlx_llm_adapter adapters[MAX_ADAPTERS] = {{0}};
    int code = take_adapters(x, adapters);
    rlx_error err;

    desc->adapters = adapters;
    desc->adapter_count = x->opt->lora.count;
    if (code == EXIT_DONE &&
        (rlx_llm_open(x->c->ctx, x->device, path, desc, &x->model, &err) != RLX_OK ||
         rlx_llm_describe(x->model, &x->info, &err) != RLX_OK))
        code = cli_fail(x->c, &err, "cannot open", path);
    for (size_t i = 0; i < MAX_ADAPTERS; i++)
        free((char *)(uintptr_t)adapters[i].path);
    return code;
}

int lm_open_model(struct lm *x, struct cli *c, const struct lm_options *o, const char *path,
                  bool all_logits)
{
    rlx_llm_desc desc = {RLX_SIZED(rlx_llm_desc),
                         .context = o->context,
                         .chunk = o->chunk,
                         .exact = o->exact,
                         .guesses = (int32_t)(o->guesses < 0 || o->guesses > 99 ? 99 : o->guesses),
                         .all_logits = all_logits,
                         .vectors = o->vectors,
                         .pooling = o->pooling};
    int code = cli_context(c);
    rlx_error err;

    *x = (struct lm){.c = c, .opt = o, .info = {RLX_SIZED(rlx_llm_info)}};
    if (code != EXIT_DONE)
        return code;
    desc.load = &c->load;
    if (strcmp(o->cache, "f32") == 0)
        desc.cache = RLX_LLM_CACHE_F32;
    else if (strcmp(o->cache, "f16") != 0)
        return cli_misuse(c, "--cache must be f16 or f32, not %s", o->cache);
    if (rlx_device_open(c->ctx, o->device, &x->device, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot open device", o->device);
    if ((code = open_with_adapters(x, path, &desc)) != EXIT_DONE)
        return code;
    x->tokenizer = rlx_llm_tokenizer(x->model);
    if (!x->tokenizer) {
        fprintf(stderr, "rlx %s: %s has no vocabulary: text cannot be made of its tokens\n",
                c->command->name, path);
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

static int read_grammar(struct lm *x)
{
    const struct lm_options *o = x->opt;
    const char *path = o->grammar ? o->grammar : o->schema;
    struct buffer b = {0};
    rlx_error err;

    if (!path)
        return EXIT_DONE;
    if (o->grammar && o->schema)
        return cli_misuse(x->c, "takes --grammar or --json-schema, not both");
    int code = cli_read_file(x->c, path, &b);
    if (code != EXIT_DONE) {
        buffer_free(&b);
        return code;
    }
    const rlx_str text = {b.at, b.len};
    rlx_status s = o->grammar
                       ? rlx_grammar_parse(x->c->ctx, text, (rlx_str){NULL, 0}, &x->grammar, &err)
                       : rlx_grammar_from_schema(x->c->ctx, text, &x->grammar, &err);
    buffer_free(&b);
    return s == RLX_OK ? EXIT_DONE : cli_fail(x->c, &err, "cannot use", path);
}

static int make_sampler(struct lm *x)
{
    const struct lm_options *o = x->opt;
    rlx_sampling how = {RLX_SIZED(rlx_sampling), .seed = (uint64_t)o->seed};
    const struct {
        const char *flag, *text;
        float *to;
    } numbers[] = {{"--temp", o->temperature, &how.temperature},
                   {"--top-p", o->top_p, &how.top_p},
                   {"--min-p", o->min_p, &how.min_p},
                   {"--typical", o->typical, &how.typical},
                   {"--repeat-penalty", o->repeat, &how.repeat_penalty},
                   {"--frequency-penalty", o->frequency, &how.frequency_penalty},
                   {"--presence-penalty", o->presence, &how.presence_penalty}};
    rlx_error err;

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!real(numbers[i].text, numbers[i].to))
            return cli_misuse(x->c, "%s takes a number, not \"%s\"", numbers[i].flag,
                              numbers[i].text);
    if (o->top_k < 0 || o->top_k > INT32_MAX || o->penalty_last < -1 ||
        o->penalty_last > INT32_MAX || (o->mirostat != 0 && o->mirostat != 2))
        return cli_misuse(x->c, "--top-k and --penalty-last take counts; --mirostat takes 2");
    how.top_k = (int32_t)o->top_k;
    how.penalty_last = (int32_t)o->penalty_last;
    how.mirostat = (int32_t)o->mirostat;
    how.grammar = x->grammar;
    if (rlx_sampler_create(x->model, &how, &x->sampler, &err) != RLX_OK)
        return cli_fail(x->c, &err, "cannot choose tokens for", x->info.arch);
    return EXIT_DONE;
}

int lm_open(struct lm *x, struct cli *c, const struct lm_options *o, const char *path)
{
    rlx_error err;
    int code = lm_open_model(x, c, o, path, false);

    if (code == EXIT_DONE && (code = read_grammar(x)) == EXIT_DONE)
        code = make_sampler(x);
    if (code == EXIT_DONE && rlx_sequence_create(x->model, &x->sequence, &err) != RLX_OK)
        code = cli_fail(c, &err, "cannot run", path);
    return code;
}

void lm_close(struct lm *x)
{
    rlx_sequence_destroy(x->sequence);
    rlx_sampler_destroy(x->sampler);
    rlx_grammar_destroy(x->grammar);
    rlx_llm_close(x->model);
    rlx_device_close(x->device);
}

/* ---- text that comes out ------------------------------------------------------------------ */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

void lm_catch_interrupt(void)
{
    struct sigaction act = {.sa_handler = on_interrupt};

    sigaction(SIGINT, &act, NULL);
}

/* Text is held back while it may be the beginning of a stop text. */
struct output {
    const struct texts *stop;
    rlx_write_fn write;
    void *user;
    struct buffer held;
    bool stopped;
};

/* How much of the end of the text is the beginning of that stop text, but not all of it. */
static size_t begun(const struct buffer *b, const char *stop)
{
    size_t len = strlen(stop), n = b->len < len ? b->len : len - 1;

    for (; n > 0; n--)
        if (memcmp(b->at + b->len - n, stop, n) == 0)
            return n;
    return 0;
}

static const char *find(const struct buffer *b, const char *stop)
{
    size_t len = strlen(stop);

    for (size_t i = 0; len && i + len <= b->len; i++)
        if (memcmp(b->at + i, stop, len) == 0)
            return b->at + i;
    return NULL;
}

static void put(void *user, const char *text, size_t len)
{
    struct output *o = user;
    size_t held = 0, out;

    if (o->stopped)
        return;
    buffer_add(&o->held, text, len);
    out = o->held.len;
    for (size_t i = 0; i < o->stop->count; i++) {
        const char *at = find(&o->held, o->stop->at[i]);
        if (at && (size_t)(at - o->held.at) < out) {
            out = (size_t)(at - o->held.at);
            o->stopped = true;
        }
    }
    for (size_t i = 0; !o->stopped && i < o->stop->count; i++) {
        size_t n = *o->stop->at[i] ? begun(&o->held, o->stop->at[i]) : 0;
        held = n > held ? n : held;
    }
    out -= o->stopped ? 0 : held;
    if (out)
        o->write(o->user, o->held.at, out);
    memmove(o->held.at, o->held.at + out, o->held.len - out);
    o->held.len -= out;
}

static void flush(struct output *o)
{
    if (!o->stopped && o->held.len)
        o->write(o->user, o->held.at, o->held.len);
    buffer_free(&o->held);
}

static int next(struct lm *x, rlx_token_stream *stream, struct output *o, struct lm_result *r,
                bool *more)
{
    rlx_token token;
    rlx_error err;
    int32_t id;

    if (rlx_sequence_next(x->sequence, x->sampler, &id, &err) != RLX_OK) {
        *more = false;
        if (err.status != RLX_ERROR_LIMIT)
            return cli_fail(x->c, &err, "cannot go on with", "the text");
        r->end = LM_LENGTH;
        return EXIT_DONE;
    }
    r->tokens++;
    if (rlx_tokenizer_at(x->tokenizer, id, &token) && token.ends && !x->opt->ignore_eos) {
        r->end = LM_EOS;
        *more = false;
        return EXIT_DONE;
    }
    /* Rows that pad the table of tokens have no text. */
    if (rlx_token_stream_add(x->tokenizer, stream, id, put, o, &err) != RLX_OK &&
        err.status != RLX_ERROR_INDEX)
        return cli_fail(x->c, &err, "cannot write", "a token");
    if (o->stopped || interrupted || rlx_sampler_done(x->sampler)) {
        r->end = o->stopped ? LM_STOP : interrupted ? LM_INTERRUPTED : LM_EOS;
        *more = false;
    }
    return EXIT_DONE;
}

int lm_generate(struct lm *x, const rlx_token_ids *prompt, rlx_write_fn write, void *user,
                struct lm_result *r)
{
    struct output o = {.stop = &x->opt->stop, .write = write, .user = user};
    rlx_token_stream stream = {.begun = x->grammar != NULL}; /* it counts a first space */
    int64_t limit = x->opt->tokens < 0 ? INT64_MAX : x->opt->tokens;
    double start = lm_seconds(), first = 0;
    bool more = limit > 0;
    int code = EXIT_DONE;
    rlx_error err;

    *r = (struct lm_result){.end = LM_LENGTH, .prompt = prompt->count};
    interrupted = 0;
    if (rlx_sampler_begin(x->sampler, &err) != RLX_OK ||
        rlx_sequence_set(x->sequence, prompt->at, prompt->count, &r->kept, &err) != RLX_OK)
        return cli_fail(x->c, &err, "cannot read", "the prompt");
    r->prompt_seconds = lm_seconds() - start;
    while (code == EXIT_DONE && more && (int64_t)r->tokens < limit) {
        code = next(x, &stream, &o, r, &more);
        if (r->tokens == 1)
            first = lm_seconds();
    }
    if (r->tokens) {
        r->first_seconds = first - start;
        r->token_seconds = lm_seconds() - first;
    }
    rlx_token_stream_end(&stream, put, &o);
    flush(&o);
    return code;
}
