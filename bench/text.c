/* text.c: how fast text becomes tokens, and back, and how long learning takes: byte-level BPE of
 * 4096 tokens on one thread. The text is $RLX_TEST_DATA/text/tinyshakespeare.txt or, without it,
 * words that are as frequent as in English. At least 20 MB/s are wanted. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlx/text.h"
#include "support/measure.h"

enum { MADE_BYTES = 4 << 20, WORDS = 20000, VOCAB = 4096 };

struct job {
    rlx_context *ctx;
    rlx_tokenizer *tokenizer;
    rlx_str text;
    rlx_token_ids ids;
    size_t written;
};

static void check(rlx_status s, const rlx_error *err)
{
    if (s != RLX_OK)
        give_up("%s: %s", rlx_status_name(s), err->message);
}

/* ---- the text ---------------------------------------------------------------------------- */

static bool read_text(rlx_str *out)
{
    const char *folder = getenv("RLX_TEST_DATA");
    char path[4096];
    FILE *f = NULL;

    if (folder) {
        snprintf(path, sizeof path, "%s/text/tinyshakespeare.txt", folder);
        f = fopen(path, "rb");
    }
    if (!f)
        return false;
    char *text = malloc(MADE_BYTES);
    *out = (rlx_str){text, text ? fread(text, 1, MADE_BYTES, f) : 0};
    fclose(f);
    return out->len > 0;
}

/* Word number n is drawn n times as rarely as the first one; it is spelled by its number. */
static rlx_str make_text(void)
{
    static const char *const part[] = {"the", "in", "er", "a", "ti", "on", "re", "s", "o", "ing"};
    char *text = malloc(MADE_BYTES + 64);
    uint32_t seed = 1;
    size_t len = 0;

    if (!text)
        give_up("no memory");
    while (len < MADE_BYTES) {
        seed = seed * 1664525u + 1013904223u;
        double u = (double)(seed >> 8) / (1 << 24);
        for (uint32_t n = (uint32_t)exp(u * log(WORDS)); n; n /= 10)
            len += (size_t)sprintf(text + len, "%s", part[n % 10]);
        text[len++] = seed % 97 ? ' ' : '\n';
    }
    return (rlx_str){text, len};
}

/* ---- what is timed ----------------------------------------------------------------------- */

static void learn(void *user)
{
    struct job *j = user;
    const rlx_bpe_desc desc = {RLX_SIZED(rlx_bpe_desc), .vocab = VOCAB};
    rlx_error err;

    rlx_tokenizer_close(j->tokenizer);
    check(rlx_bpe_train(j->ctx, j->text, &desc, &j->tokenizer, &err), &err);
}

static void encode(void *user)
{
    struct job *j = user;
    rlx_error err;

    j->ids.count = 0;
    check(rlx_tokenizer_encode(j->tokenizer, j->text, 0, &j->ids, &err), &err);
}

static void count(void *user, const char *text, size_t len)
{
    (void)text;
    ((struct job *)user)->written += len;
}

static void decode(void *user)
{
    struct job *j = user;
    rlx_error err;

    j->written = 0;
    check(rlx_tokenizer_decode(j->tokenizer, j->ids.at, j->ids.count, 0, count, j, &err), &err);
    if (j->written != j->text.len)
        give_up("%zu bytes came back, of %zu", j->written, j->text.len);
}

static void show(const char *name, struct job *j, const struct options *o, void (*call)(void *),
                 double wanted)
{
    struct side side = {.name = "rlx", .call = call, .user = j};

    call(j); /* what the next one works on is there, too */
    measure(&side, 1, o);
    const double rate = (double)j->text.len / side.times.best / 1e6;
    line_print(&(struct line){.name = name,
                              .threads = 1,
                              .unit = "MB/s",
                              .against = wanted > 0 ? "floor" : NULL,
                              .value = rate,
                              .median = (double)j->text.len / side.times.median / 1e6,
                              .spread = side.times.spread,
                              .other = wanted,
                              .other_median = wanted,
                              .ratio = wanted > 0 ? rate / wanted : 0,
                              .wanted = wanted > 0 ? 1 : 0});
}

int main(int argc, char **argv)
{
    const struct options o = options_read(argc, argv);
    struct job j = {.written = 0};
    rlx_error err;

    check(rlx_context_create(RLX_VERSION, NULL, &j.ctx, &err), &err);
    if (!read_text(&j.text))
        j.text = make_text();
    show("learning 4096 tokens", &j, &o, learn, 0);
    show("encoding", &j, &o, encode, 20);
    show("decoding", &j, &o, decode, 20);
    rlx_token_ids_free(j.tokenizer, &j.ids);
    rlx_tokenizer_close(j.tokenizer);
    rlx_context_destroy(j.ctx);
    free((char *)j.text.ptr);
    return 0;
}
