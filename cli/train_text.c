/* train_text.c: a language model from nothing but text: the vocabulary is learned first, then the
 * model, which is held against the last part of the text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "copy_weights.h"
#include "train.h"

#define BETWEEN "<|endoftext|>" /* files; the vocabulary's own token for it */

struct text_training {
    struct cli *c;
    const struct text_options *text;
    struct buffer all; /* the files, one after another */
    rlx_tokenizer *tokenizer;
    rlx_token_ids ids;
    rlx_llm_shape shape;
    rlx_weights *base; /* of --lora; NULL: the model is a new one */
    rlx_model *model;
    int64_t length;       /* of a window */
    rlx_weight_type type; /* that matrices are saved in */
};

/* ---- the text ---- */

static int read_file(struct text_training *x, const char *path)
{
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    bool fine = f && cli_read_all(f, &x->all);

    if (f && f != stdin)
        fclose(f);
    if (fine)
        return EXIT_DONE;
    fprintf(stderr, "rlx %s: cannot read %s\n", x->c->command->name, path);
    return EXIT_FAILED;
}

static int read_text(struct text_training *x)
{
    int code = EXIT_DONE;

    for (size_t i = 0; code == EXIT_DONE && i < x->text->file.count; i++) {
        if (i > 0)
            buffer_add(&x->all, BETWEEN, strlen(BETWEEN));
        code = read_file(x, x->text->file.at[i]);
    }
    if (code == EXIT_DONE && x->all.len == 0) {
        fprintf(stderr, "rlx %s: the text to learn from is empty\n", x->c->command->name);
        code = EXIT_FAILED;
    }
    return code;
}

/* The vocabulary: of the model that is there, or learned from the text. */
static rlx_status find_vocabulary(struct text_training *x, rlx_error *err)
{
    rlx_bpe_desc desc = {RLX_SIZED(rlx_bpe_desc), .vocab = (uint32_t)x->shape.vocab,
                         .add_bos = true};

    if (x->base)
        return rlx_tokenizer_from_weights(x->c->ctx, x->base, &x->tokenizer, err);
    cli_doing(x->c, "learning the vocabulary of", x->text->file.at[0]);
    return rlx_bpe_train(x->c->ctx, (rlx_str){x->all.at, x->all.len}, &desc, &x->tokenizer, err);
}

static int make_tokens(struct text_training *x)
{
    const rlx_str text = {x->all.at, x->all.len};
    rlx_tokenizer_info info = {RLX_SIZED(rlx_tokenizer_info)};
    rlx_error err;
    rlx_status s = find_vocabulary(x, &err);

    if (s == RLX_OK)
        s = rlx_tokenizer_describe(x->tokenizer, &info, &err);
    if (s == RLX_OK) {
        cli_doing(x->c, "encoding", x->text->file.at[0]);
        s = rlx_tokenizer_encode(x->tokenizer, text, RLX_ENCODE_PARSE, &x->ids, &err);
    }
    cli_progress_end(x->c);
    if (s != RLX_OK)
        return cli_fail(x->c, &err, "cannot make tokens of", x->text->file.at[0]);
    if (!x->base)
        x->shape.vocab = info.vocab;
    fprintf(stderr, "%zu bytes of text, %u tokens in the vocabulary, %zu tokens of text\n",
            x->all.len, info.vocab, x->ids.count);
    buffer_free(&x->all);
    return EXIT_DONE;
}

/* ---- the model ---- */

static rlx_status build(struct text_training *x, int64_t batch, rlx_graph *g, rlx_error *err)
{
    rlx_list shape = RLX_LIST(batch, x->length);
    rlx_value tokens = rlx_input(g, "tokens", RLX_DTYPE_i32, shape);
    rlx_value targets = rlx_input(g, "targets", RLX_DTYPE_i32, shape), logits;
    rlx_status s = rlx_llm_build(g, &x->shape, tokens, &logits, err);

    if (s != RLX_OK)
        return s;
    rlx_value loss = rlx_cross_entropy(g, logits, targets, NULL);
    rlx_label(g, loss, "loss");
    rlx_output(g, loss);
    return rlx_model_create(g, &x->model, err);
}

static int make_model(struct text_training *x, int64_t batch)
{
    rlx_graph *g;
    rlx_error err;

    if (rlx_graph_create(x->c->ctx, &g, &err) != RLX_OK)
        return cli_fail(x->c, &err, "cannot make", "the model");
    if (build(x, batch, g, &err) != RLX_OK) {
        rlx_graph_destroy(g);
        return cli_fail(x->c, &err, "cannot make", "the model");
    }
    if (x->base && rlx_model_load_weights(x->model, x->base, NULL, &err) != RLX_OK)
        return cli_fail(x->c, &err, "cannot take weights from", x->text->lora);
    return EXIT_DONE;
}

static void count_params(const struct text_training *x)
{
    double count = 0;

    for (size_t i = 0; i < rlx_model_io_count(x->model, RLX_IO_PARAM); i++) {
        rlx_io_info io = {RLX_SIZED(rlx_io_info)};
        double one = 1;
        if (rlx_model_io(x->model, RLX_IO_PARAM, i, &io, NULL) != RLX_OK)
            continue;
        for (int32_t k = 0; k < io.rank; k++)
            one *= (double)io.dim[k];
        count += one;
    }
    fprintf(stderr, "%lld layers of width %lld, %.2f million params\n", (long long)x->shape.layers,
            (long long)x->shape.width, count / 1e6);
}

/* Parts that are added to what goes through the layers begin smaller, the more there are. */
static int train(struct text_training *x, struct training *t)
{
    const float small = (float)(0.02 / sqrt(2 * (double)x->shape.layers));
    static const char *const added[] = {"*.lora_a", "*.lora_b"};
    const rlx_init_rule init[] = {
        {"*.lora_a", RLX_INIT_NORMAL, 0.02f},     {"*.lora_b", RLX_INIT_CONSTANT, 0},
        {"*norm*", RLX_INIT_CONSTANT, 1},         {"*.attn_output.*", RLX_INIT_NORMAL, small},
        {"*.ffn_down.*", RLX_INIT_NORMAL, small}, {"*", RLX_INIT_NORMAL, 0.02f}};
    rlx_dataset_desc data = {RLX_SIZED(rlx_dataset_desc), .tokens = x->ids.at,
                             .token_count = x->ids.count, .context = x->length};
    int code = training_options(t);

    if (x->base && t->desc.train_count == 0) {
        t->desc.train = added;
        t->desc.train_count = 2;
    }
    if (code == EXIT_DONE && (code = training_data(t, x->model, &data)) == EXIT_DONE &&
        (code = training_open(t, x->model, init, sizeof init / sizeof init[0])) == EXIT_DONE) {
        count_params(x);
        code = training_run(t);
    }
    if (code == EXIT_DONE && t->opt->save)
        code = save_gguf(t, &x->shape, x->tokenizer, x->type, t->opt->save);
    if (t->opt->json && t->trainer && (code == EXIT_DONE || t->stopped))
        training_json(t, stdout);
    return code;
}

/* ---- the options ---- */

static int64_t or (int64_t given, int64_t usual)
{
    return given ? given : usual;
}

/* What suits small transformers, where nothing else was said. */
static void take_usual(struct train_options *o)
{
    if (!o->schedule)
        o->schedule = "cosine";
    if (!o->clip)
        o->clip = "1";
    if (!o->validate)
        o->validate = "0.05";
    if (!o->final_ratio)
        o->final_ratio = "0.1";
    o->batch = or (o->batch, 16);
    if (!o->steps && !o->epochs)
        o->steps = 1000;
    if (!o->warmup && o->steps)
        o->warmup = o->steps / 20;
}

static int take_shape(struct text_training *x)
{
    const struct text_options *o = x->text;
    const int64_t given[] = {o->layers, o->width, o->heads,  o->kv_heads,
                             o->ffn,    o->vocab, o->context};

    static const char *const flag[] = {"--layers", "--width", "--heads",  "--kv-heads",
                                       "--ffn",    "--vocab", "--context"};

    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++)
        if (given[i] < 0 || given[i] > 1 << 24)
            return cli_misuse(x->c, "%s %lld: must be from 1 to %d", flag[i], (long long)given[i],
                              1 << 24);
    x->shape = (rlx_llm_shape){
        RLX_SIZED(rlx_llm_shape),    .vocab = or (o->vocab, 2048), .context = or (o->context, 256),
        .layers = or (o->layers, 6), .width = or (o->width, 192),  .heads = or (o->heads, 6),
        .tied = !o->untied};
    x->shape.kv_heads = or (o->kv_heads, x->shape.heads % 2 ? x->shape.heads : x->shape.heads / 2);
    x->shape.ffn = or (o->ffn, (x->shape.width * 8 / 3 + 31) / 32 * 32);
    x->length = x->shape.context;
    if (x->shape.vocab < 257)
        return cli_misuse(x->c, "--vocab must be at least 257: the bytes, and the end of a text");
    if (o->quantize && !rlx_weight_type_find(o->quantize, &x->type))
        return cli_misuse(x->c, "--quantize: unknown type \"%s\"; F32, F16 and Q8_0 are common",
                          o->quantize);
    return EXIT_DONE;
}

/* The model that --lora names, and what is added to it. */
static int open_base(struct text_training *x)
{
    const struct text_options *o = x->text;
    double alpha = 0;
    rlx_error err;

    if (!o->lora)
        return EXIT_DONE;
    if (o->layers || o->width || o->heads || o->kv_heads || o->ffn || o->vocab || o->untied)
        return cli_misuse(x->c, "--lora takes the sizes of its model; only --context may be given");
    if (o->rank < 0 || o->rank > 1 << 16 || (o->alpha && !train_real(o->alpha, &alpha)))
        return cli_misuse(x->c, "--rank and --alpha take numbers of at least 0");
    x->shape = (rlx_llm_shape){RLX_SIZED(rlx_llm_shape)};
    if (rlx_weights_open(x->c->ctx, o->lora, &x->c->load, &x->base, &err) != RLX_OK ||
        rlx_llm_read_shape(x->base, &x->shape, &err) != RLX_OK)
        return cli_fail(x->c, &err, "cannot train beside", o->lora);
    x->shape.lora_rank = or (o->rank, 8);
    x->shape.lora_alpha = (float)alpha;
    x->length = or (o->context, x->shape.context < 256 ? x->shape.context : 256);
    return EXIT_DONE;
}

int train_text(struct cli *c, struct train_options *opt, const struct text_options *text)
{
    struct text_training x = {.c = c, .text = text, .type = RLX_WEIGHT_F32};
    struct training t = {.c = c, .opt = opt, .what = text->file.at[0]};
    int code = take_shape(&x);

    take_usual(opt);
    if (code == EXIT_DONE && opt->batch < 1)
        code = cli_misuse(c, "--batch cannot be %lld", (long long)opt->batch);
    if (code == EXIT_DONE && (code = cli_context(c)) == EXIT_DONE &&
        (code = open_base(&x)) == EXIT_DONE && (code = read_text(&x)) == EXIT_DONE &&
        (code = make_tokens(&x)) == EXIT_DONE && (code = make_model(&x, opt->batch)) == EXIT_DONE)
        code = train(&x, &t);
    training_close(&t);
    rlx_model_destroy(x.model);
    rlx_weights_close(x.base);
    rlx_token_ids_free(x.tokenizer, &x.ids);
    rlx_tokenizer_close(x.tokenizer);
    buffer_free(&x.all);
    return code;
}
