/* lm.h: what the commands that run language models share: their flags, the model opened, and text
 * that comes out of it piece by piece. */
#ifndef CLI_LM_H
#define CLI_LM_H

#include "cli.h"
#include "rlx/llm.h"

struct lm_options {
    const char *device, *cache;
    struct texts lora; /* FILE, or FILE=SCALE */
    int64_t context, chunk, guesses;
    bool exact;
    bool vectors; /* of texts are wanted, pooled in this way */
    rlx_llm_pooling pooling;
    /* of sampling; texts are numbers with a point */
    const char *temperature, *top_p, *min_p, *typical, *repeat, *frequency, *presence;
    int64_t top_k, penalty_last, mirostat, seed;
    int64_t tokens; /* at most; -1: until the context is full */
    bool ignore_eos;
    struct texts stop;
    const char *grammar, *schema; /* files */
};
#define LM_OPTIONS_INIT                                                                           \
    {                                                                                             \
        .device = "auto", .cache = "f16", .temperature = "0.8", .top_p = "0.95", .min_p = "0.05", \
        .typical = "0", .repeat = "1", .frequency = "0", .presence = "0", .top_k = 40,            \
        .penalty_last = 64, .tokens = -1                                                          \
    }

/* Rows of a table, which the formatter takes for blocks. */
/* clang-format off */
#define LM_MODEL_FLAGS(o)                                                                         \
    {"--device", FLAG_TEXT, &(o).device, "D", "where to run (auto); rlx devices lists them"},     \
    {"--context", FLAG_NUMBER, &(o).context, "N",                                                 \
     "tokens that there is room for (as trained for, 4096 at most)"},                             \
    {"--chunk", FLAG_NUMBER, &(o).chunk, "N", "tokens of a prompt computed at once (512)"},       \
    {"--cache", FLAG_TEXT, &(o).cache, "TYPE", "of keys and values: f16, f32 (f16)"},             \
    {"--exact", FLAG_SWITCH, &(o).exact, NULL,                                                    \
     "do not round what packed weights are multiplied with to 8 bits"},                           \
    {"--guess", FLAG_NUMBER, &(o).guesses, "N",                                                   \
     "guess so many from what came before, to compute them at once (0)"},                         \
    {"--lora", FLAG_LIST, &(o).lora, "F[=X]", "an adapter, and how much it counts (1); repeatable"}
#define LM_SAMPLING_FLAGS(o)                                                                      \
    {"--tokens", FLAG_NUMBER, &(o).tokens, "N", "generate at most so many (until it ends)"},      \
    {"-n", FLAG_NUMBER, &(o).tokens, "N", "the same"},                                            \
    {"--temp", FLAG_TEXT, &(o).temperature, "X", "chance; 0: the most likely token (0.8)"},       \
    {"--top-k", FLAG_NUMBER, &(o).top_k, "N", "from the N most likely; 0: all (40)"},             \
    {"--top-p", FLAG_TEXT, &(o).top_p, "X", "from those that sum up to X; 1: all (0.95)"},        \
    {"--min-p", FLAG_TEXT, &(o).min_p, "X", "at least X of the likeliest; 0: all (0.05)"},        \
    {"--typical", FLAG_TEXT, &(o).typical, "X", "locally typical ones; 0: off (0)"},              \
    {"--repeat-penalty", FLAG_TEXT, &(o).repeat, "X", "of tokens seen; 1: off (1)"},              \
    {"--frequency-penalty", FLAG_TEXT, &(o).frequency, "X", "per time it was seen (0)"},          \
    {"--presence-penalty", FLAG_TEXT, &(o).presence, "X", "if it was seen at all (0)"},           \
    {"--penalty-last", FLAG_NUMBER, &(o).penalty_last, "N",                                       \
     "tokens that penalties look at; -1: all (64)"},                                              \
    {"--mirostat", FLAG_NUMBER, &(o).mirostat, "2", "keep surprise at one level instead"},        \
    {"--seed", FLAG_NUMBER, &(o).seed, "N", "of chance: the same gives the same text (0)"},       \
    {"--stop", FLAG_LIST, &(o).stop, "TEXT", "end where the model writes this; repeatable"},      \
    {"--grammar", FLAG_TEXT, &(o).grammar, "F", "text must follow this grammar, in GBNF"},        \
    {"--json-schema", FLAG_TEXT, &(o).schema, "F", "text must be JSON that this schema takes"},   \
    {"--ignore-eos", FLAG_SWITCH, &(o).ignore_eos, NULL, "go on where the model would end"}
/* clang-format on */

struct lm {
    struct cli *c;
    const struct lm_options *opt;
    rlx_device *device;
    rlx_llm *model;
    rlx_llm_info info;
    const rlx_tokenizer *tokenizer;
    rlx_grammar *grammar; /* NULL: any text */
    rlx_sampler *sampler;
    rlx_sequence *sequence;
};

/* EXIT_DONE, or what to return; close it either way. */
int lm_open(struct lm *x, struct cli *c, const struct lm_options *o, const char *path);
/* The same without sampler and sequence. */
int lm_open_model(struct lm *x, struct cli *c, const struct lm_options *o, const char *path,
                  bool all_logits);
void lm_close(struct lm *x);

enum lm_end { LM_EOS, LM_STOP, LM_LENGTH, LM_INTERRUPTED };
extern const char *const lm_end_name[];
struct lm_result {
    enum lm_end end;
    size_t prompt, kept, tokens;          /* kept: of the prompt, computed before */
    double prompt_seconds, token_seconds; /* token_seconds: of all but the first */
    double first_seconds;                 /* from the start of the process's work to a token */
};
/* Reads the tokens, then writes what comes after them to write(user, ..), in characters that are
 * whole. EXIT_DONE, or what to return. */
int lm_generate(struct lm *x, const rlx_token_ids *prompt, rlx_write_fn write, void *user,
                struct lm_result *out);
/* Ctrl-C ends a text instead of the command. */
void lm_catch_interrupt(void);
double lm_seconds(void); /* a clock */

#endif
