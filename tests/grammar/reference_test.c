/* reference_test.c: random grammars against a matcher of another kind: recursive, on whole texts of
 * characters, by the sets of places where an item may end. All short texts are tried byte by byte,
 * and masks token by token. */
#include <pthread.h>

#include "grammar_world.h"

/* ---- grammars, as trees ------------------------------------------------------------------ */

enum { RULES = 4, CHARS = 4, MOST_NODES = 160, MOST_TEXT = 5 };

/* All texts are of these; the last byte of a character is never that of another's. */
static const char *const letters[CHARS] = {"a", "b", "\xc3\xa9", "\xf0\x9f\x98\x80"};
static const char *const written[CHARS] = {"a", "b", "\\xe9", "\\U0001F600"};

enum kind { SET, NOT_SET, RULE, SEQUENCE, CHOICE, REPEAT };
struct tree {
    enum kind kind;
    int value;       /* of sets: bits of characters; of a rule: its number */
    int min, max;    /* of a repetition; max -1: none */
    int left, right; /* -1: none, which is the empty text */
};

struct random_grammar {
    struct tree node[MOST_NODES];
    int nodes, rule[RULES];
    uint64_t seed;
    char text[16384];
    size_t len;
};

static unsigned draw(struct random_grammar *g, unsigned n)
{
    g->seed = g->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(g->seed >> 33) % n;
}

static int make(struct random_grammar *g, int depth)
{
    const int at = g->nodes++;
    struct tree n = {.left = -1, .right = -1};
    const unsigned what = depth > 3 || g->nodes > MOST_NODES - 20 ? draw(g, 4) : draw(g, 12);

    if (what < 3) {
        n.kind = what == 2 ? NOT_SET : SET;
        n.value = (int)(1u << draw(g, CHARS));
        if (draw(g, 3) == 0)
            n.value |= (int)(1u << draw(g, CHARS));
    } else if (what < 5) {
        n.kind = RULE;
        n.value = (int)draw(g, RULES);
    } else if (what < 10) {
        n.kind = what < 8 ? SEQUENCE : CHOICE;
        n.left = draw(g, 8) ? make(g, depth + 1) : -1;
        n.right = make(g, depth + 1);
    } else {
        static const int counts[][2] = {{0, 1}, {0, -1}, {1, -1}, {2, 2}, {1, 3}, {2, -1}, {0, 2}};
        const unsigned c = draw(g, 7);
        n.kind = REPEAT;
        n.min = counts[c][0];
        n.max = counts[c][1];
        n.left = make(g, depth + 1);
    }
    g->node[at] = n;
    return at;
}

static void put(struct random_grammar *g, const char *text)
{
    g->len += (size_t)snprintf(g->text + g->len, sizeof g->text - g->len, "%s", text);
}

static void write_tree(struct random_grammar *g, int at)
{
    char part[32];

    if (at < 0) {
        put(g, "\"\"");
        return;
    }
    const struct tree *n = &g->node[at];
    switch (n->kind) {
    case SET:
    case NOT_SET:
        put(g, n->kind == SET ? "[" : "[^");
        for (int i = 0; i < CHARS; i++)
            put(g, n->value >> i & 1 ? written[i] : "");
        put(g, "]");
        break;
    case RULE:
        snprintf(part, sizeof part, "r%d", n->value);
        put(g, part);
        break;
    case SEQUENCE:
    case CHOICE:
        put(g, "(");
        write_tree(g, n->left);
        put(g, n->kind == CHOICE ? " | " : " ");
        write_tree(g, n->right);
        put(g, ")");
        break;
    case REPEAT:
        put(g, "(");
        write_tree(g, n->left);
        snprintf(part, sizeof part, n->max < 0 ? "){%d,}" : "){%d,%d}", n->min, n->max);
        put(g, part);
        break;
    }
}

static void make_grammar(struct random_grammar *g, uint64_t seed)
{
    g->seed = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    g->nodes = 0;
    g->len = 0;
    put(g, "root ::= r0\n");
    for (int i = 0; i < RULES; i++)
        g->rule[i] = make(g, 0);
    for (int i = 0; i < RULES; i++) {
        char head[24];
        snprintf(head, sizeof head, "r%d ::= ", i);
        put(g, head);
        write_tree(g, g->rule[i]);
        put(g, "\n");
    }
}

/* ---- the matcher ------------------------------------------------------------------------- */

/* Sets of places in the text are bits. */
struct matching {
    const struct random_grammar *g;
    const int *text; /* characters */
    int len;
    bool known[RULES][MOST_TEXT + 1];
    unsigned ends[RULES][MOST_TEXT + 1];
    bool more; /* a character was wanted where the text ends */
};

static unsigned ends_of(struct matching *m, int at, int from);

static unsigned ends_of_all(struct matching *m, int at, unsigned from)
{
    unsigned to = 0;

    for (int i = 0; i <= m->len; i++)
        if (from >> i & 1)
            to |= ends_of(m, at, i);
    return to;
}

static unsigned ends_of_repeat(struct matching *m, const struct tree *n, int from)
{
    unsigned now = 1u << from, all = 0;

    for (int i = 0; i < n->min; i++)
        now = ends_of_all(m, n->left, now);
    all = now;
    for (int i = n->min; n->max < 0 ? i < n->min + m->len + 2 : i < n->max; i++) {
        now = ends_of_all(m, n->left, now);
        all |= now;
    }
    return all;
}

static unsigned ends_of_rule(struct matching *m, int rule, int from)
{
    if (!m->known[rule][from]) {
        m->ends[rule][from] = ends_of(m, m->g->rule[rule], from);
        m->known[rule][from] = true;
    }
    return m->ends[rule][from];
}

static unsigned ends_of(struct matching *m, int at, int from)
{
    if (at < 0)
        return 1u << from;
    const struct tree *n = &m->g->node[at];
    switch (n->kind) {
    case SET:
    case NOT_SET:
        if (from == m->len) {
            m->more = true;
            return 0;
        }
        /* A character that is none of the letters is in no set. */
        const bool in = m->text[from] < CHARS && (n->value >> m->text[from] & 1);
        return in == (n->kind == SET) ? 1u << (from + 1) : 0;
    case RULE: return ends_of_rule(m, n->value, from);
    case SEQUENCE: return ends_of_all(m, n->right, ends_of(m, n->left, from));
    case CHOICE: return ends_of(m, n->left, from) | ends_of(m, n->right, from);
    case REPEAT: break;
    }
    return ends_of_repeat(m, n, from);
}

static enum verdict judge(const struct random_grammar *g, const int *text, int len)
{
    struct matching m = {.g = g, .text = text, .len = len};
    const unsigned ends = ends_of_rule(&m, 0, 0);

    return ends >> len & 1 ? WHOLE : m.more ? BEGUN : REFUSED;
}

/* ---- all short texts --------------------------------------------------------------------- */

/* May a character follow that begins with the same bytes? There are two of each: the letter, and
 * one beside it, which is in no set. */
static bool may_begin(const struct random_grammar *g, int *text, int len, int letter)
{
    text[len] = letter;
    bool may = judge(g, text, len + 1) != REFUSED;
    text[len] = CHARS;
    return may || judge(g, text, len + 1) != REFUSED;
}

/* Goes on with every letter from a text that the grammar lets begin. */
static void go_on(struct test *t, const struct random_grammar *g, rlx_grammar_state *s, int *text,
                  int len, int *limits)
{
    for (int i = 0; i < CHARS && len < MOST_TEXT; i++) {
        rlx_grammar_state *next;
        const size_t bytes = strlen(letters[i]);
        bool alive = true;
        rlx_error err = {.status = RLX_OK};

        require_ok(t, rlx_grammar_state_clone(s, &next, NULL));
        for (size_t k = 0; k + 1 < bytes && alive; k++) {
            const bool may = may_begin(g, text, len, i);
            alive = rlx_grammar_accept_bytes(next, (rlx_str){letters[i] + k, 1}, NULL) == RLX_OK;
            if (alive != may || (alive && rlx_grammar_may_end(next)))
                fail(t, "%s\nbyte %zu of letter %d after %d", g->text, k, i, len);
        }
        text[len] = i;
        const enum verdict want = judge(g, text, len + 1);
        alive = alive && rlx_grammar_accept_bytes(next, (rlx_str){letters[i] + bytes - 1, 1},
                                                  &err) == RLX_OK;
        if (err.status == RLX_ERROR_LIMIT) { /* the ambiguous ones: not wrong, but not followed */
            ++*limits;
            rlx_grammar_state_destroy(next);
            continue;
        }
        const enum verdict got = !alive ? REFUSED : rlx_grammar_may_end(next) ? WHOLE : BEGUN;
        if (got != want)
            fail(t, "%s\nletter %d after %d: %d, and not %d", g->text, i, len, (int)got, (int)want);
        if (alive && got == want)
            go_on(t, g, next, text, len + 1, limits);
        rlx_grammar_state_destroy(next);
    }
}

TEST(grammar, random_grammars_take_what_a_plain_matcher_takes)
{
    static struct random_grammar g;
    const uint64_t count = test_full() ? 20000 : 600;
    int taken = 0, limits = 0; /* texts that were too ambiguous */

    for (uint64_t seed = 0; seed < count; seed++) {
        struct trial r;
        int text[MOST_TEXT + 1];
        make_grammar(&g, seed);
        test_note(t, "grammar %d", (int)seed);
        if (trial_begin(t, &r, g.text, false)) {
            taken++;
            expect_eq(t, rlx_grammar_may_end(r.start), judge(&g, text, 0) == WHOLE);
            go_on(t, &g, r.start, text, 0, &limits);
        } else if (!strstr(r.err.message, "begins with itself") &&
                   !strstr(r.err.message, "never ends"))
            fail(t, "%s\n%s", g.text, r.err.message);
        trial_end(&r);
    }
    expect(t, taken > (int)count / 5 && limits < 2 * taken);
}

/* ---- masks ------------------------------------------------------------------------------- */

/* Tokens that cut characters, repeat each other, and mean something. */
static rlx_tokenizer *tokens_of(struct test *t, rlx_context *ctx)
{
    static struct world w;
    static char store[256][4];
    rlx_error err;

    world_begin(&w, "gpt2", "gpt-2");
    world_bytes(&w, store);
    static const char *const more[] = {"ab",
                                       "ba",
                                       "aab",
                                       "bb",
                                       "a\xc3\x83",
                                       "\xc3\x83\xc2\xa9",
                                       "\xc2\xa9"
                                       "a",
                                       "\xc3\xb0\xc5\x81",
                                       "ab\xc3\x83\xc2\xa9"
                                       "b"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        world_token(&w, more[i], RLX_TOKEN_NORMAL, 0);
    world_token(&w, "<s>", RLX_TOKEN_CONTROL, 0);
    world_token(&w, "</s>", RLX_TOKEN_CONTROL, 0);
    world_token(&w, "<unused>", RLX_TOKEN_UNUSED, 0);
    world_token(&w, "aba", RLX_TOKEN_USER_DEFINED, 0);
    world_merge(&w, "a b");
    world_number(&w, "tokenizer.ggml.eos_token_id", (uint32_t)w.tokens - 3);
    rlx_tokenizer *k = world_open(t, &w, ctx, &err);
    if (!k)
        fail(t, "%s", err.message);
    return k;
}

/* Against trying each token; returns how many may come. */
static size_t check_mask(struct test *t, rlx_grammar_state *s, uint32_t vocab, const uint32_t *bits)
{
    size_t count = 0;

    for (uint32_t id = 0; id < vocab; id++) {
        rlx_grammar_state *next;
        if (!expect_ok(t, rlx_grammar_state_clone(s, &next, NULL)))
            return 0;
        const bool may = rlx_grammar_accept(next, (int32_t)id, NULL) == RLX_OK;
        if (may != (bits[id / 32] >> id % 32 & 1))
            fail(t, "token %u: %s", id, may ? "its bit is missing" : "its bit is set");
        count += may;
        rlx_grammar_state_destroy(next);
    }
    return count;
}

TEST(grammar, masks_are_what_trying_each_token_gives)
{
    static struct random_grammar g;
    rlx_context *ctx = text_context(t, NULL);
    rlx_tokenizer *k = tokens_of(t, ctx);
    rlx_tokenizer_info info = {RLX_SIZED(rlx_tokenizer_info)};
    rlx_error err;
    uint32_t bits[16];

    require(t, k);
    require_ok(t, rlx_tokenizer_describe(k, &info, NULL));
    require(t, info.vocab <= 512);
    for (uint64_t seed = 0; seed < 60; seed++) {
        rlx_grammar *grammar;
        rlx_grammar_state *s;
        make_grammar(&g, seed);
        test_note(t, "grammar %d:\n%.300s", (int)seed, g.text);
        if (rlx_grammar_parse(ctx, rlx_cstr(g.text), rlx_cstr("r0"), &grammar, &err) != RLX_OK)
            continue;
        require_ok(t, rlx_grammar_state_create(grammar, k, &s, &err));
        for (int step = 0; step < 12; step++) {
            memset(bits, 0, sizeof bits);
            const rlx_status status = rlx_grammar_mask(s, bits, &err);
            const size_t count = check_mask(t, s, info.vocab, bits);
            expect(t, (status == RLX_OK) == (count > 0));
            if (count == 0)
                break;
            unsigned pick = draw(&g, (unsigned)count);
            uint32_t id = 0;
            while (!(bits[id / 32] >> id % 32 & 1) || pick--)
                id++;
            expect_ok(t, rlx_grammar_accept(s, (int32_t)id, &err));
        }
        rlx_grammar_destroy(grammar); /* the state goes on */
        rlx_grammar_state_destroy(s);
    }
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}

TEST(grammar, ends_come_where_a_text_may_end)
{
    rlx_context *ctx = text_context(t, NULL);
    rlx_tokenizer *k = tokens_of(t, ctx);
    rlx_grammar *g;
    rlx_grammar_state *s, *other;
    rlx_error err;
    uint32_t bits[16];

    require(t, k);
    const int32_t eos = rlx_tokenizer_find(k, rlx_cstr("</s>"));
    const int32_t a = rlx_tokenizer_find(k, rlx_cstr("a"));
    require_ok(
        t, rlx_grammar_parse(ctx, rlx_cstr("root ::= \"a\" \"a\"?"), (rlx_str){NULL, 0}, &g, &err));
    require_ok(t, rlx_grammar_state_create(g, k, &s, &err));
    require_ok(t, rlx_grammar_mask(s, bits, &err));
    expect(t, !(bits[eos / 32] >> eos % 32 & 1));
    expect_status(t, rlx_grammar_accept(s, eos, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_grammar_accept(s, -1, &err), RLX_ERROR_INDEX);
    expect_status(t, rlx_grammar_accept(s, 100000, &err), RLX_ERROR_INDEX);
    expect_status(t, rlx_grammar_accept(s, eos - 1, &err), RLX_ERROR_ARGUMENT);
    expect_error(t, RLX_ERROR_ARGUMENT, "never allowed by a grammar", &err);
    expect_status(t, rlx_grammar_accept(s, a + 1, &err), RLX_ERROR_ARGUMENT);
    expect_ok(t, rlx_grammar_accept(s, a, &err)); /* nothing was changed by those */
    expect(t, rlx_grammar_may_end(s) && !rlx_grammar_done(s));
    require_ok(t, rlx_grammar_mask(s, bits, &err));
    expect(t, bits[eos / 32] >> eos % 32 & 1);
    require_ok(t, rlx_grammar_state_clone(s, &other, &err));
    expect_ok(t, rlx_grammar_accept(other, a, &err));
    expect(t, rlx_grammar_done(other) && !rlx_grammar_done(s));
    expect_ok(t, rlx_grammar_mask(other, bits, &err)); /* the end, and nothing else */
    expect_ok(t, rlx_grammar_accept(other, eos, &err));
    expect(t, rlx_grammar_done(other));
    expect_status(t, rlx_grammar_mask(other, bits, &err), RLX_ERROR_STATE);
    expect_status(t, rlx_grammar_accept(other, a, &err), RLX_ERROR_STATE);
    rlx_grammar_state_destroy(s);
    expect_status(t, rlx_grammar_accept_bytes(other, rlx_cstr("a"), &err), RLX_ERROR_STATE);
    rlx_grammar_state_destroy(other);
    rlx_grammar_destroy(g);
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}

/* ---- published vocabularies -------------------------------------------------------------- */

static void check_vocab(struct test *t, const char *name)
{
    static const char json[] = "{\"k\xc3\xa9y\": [1, -2.5, \"a \\\"b\\\" \xf0\x9f\x98\x80\"], "
                               "\"x\":{\"y\": null}}";
    rlx_context *ctx = text_context(t, NULL);
    const char *path = test_data(t, name);
    rlx_tokenizer *k = NULL;
    rlx_tokenizer_info info = {RLX_SIZED(rlx_tokenizer_info)};
    rlx_grammar *g = NULL;
    rlx_grammar_state *s = NULL;
    rlx_token_ids ids = {0};
    struct collected first = {0};
    rlx_error err;

    if (path && rlx_tokenizer_open(ctx, path, &k, &err) == RLX_OK) {
        expect_ok(t, rlx_tokenizer_describe(k, &info, NULL));
        expect_ok(t, rlx_tokenizer_encode(k, rlx_cstr(json), 0, &ids, NULL));
        expect_ok(t, rlx_grammar_from_schema(ctx, rlx_cstr("{}"), &g, &err));
        expect_ok(t, rlx_grammar_state_create(g, k, &s, &err));
        uint32_t *bits = calloc((info.vocab + 31) / 32, sizeof *bits);
        /* The first may begin with a space that encoding put there, and decoding takes away. */
        expect_ok(t, rlx_tokenizer_decode(k, ids.at, 1, 0, collect, &first, NULL));
        expect_ok(t, rlx_grammar_accept_bytes(s, rlx_cstr(first.at), &err));
        for (size_t i = 1; i < ids.count && bits; i++) {
            if (i % 8 == 3) {
                expect_ok(t, rlx_grammar_mask(s, bits, &err));
                check_mask(t, s, info.vocab, bits);
            }
            if (rlx_grammar_accept(s, ids.at[i], &err) != RLX_OK)
                fail(t, "token %zu of %s: %s", i, json, err.message);
        }
        expect(t, rlx_grammar_done(s));
        free(bits);
    }
    rlx_token_ids_free(k, &ids);
    rlx_grammar_state_destroy(s);
    rlx_grammar_destroy(g);
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}

TEST(grammar, tokens_of_json_follow_its_grammar_gpt2)
{
    check_vocab(t, "tokenizers/gpt-2.gguf");
}

TEST(grammar, tokens_of_json_follow_its_grammar_llama)
{
    check_vocab(t, "tokenizers/llama-spm.gguf");
}

/* ---- threads ----------------------------------------------------------------------------- */

struct writer {
    rlx_grammar_state *s;
    int number;
    bool fine;
};

/* Each copy goes its own way; what they share is found out by whoever is first. */
static void *write_text(void *user)
{
    struct writer *w = user;
    uint32_t bits[16];
    char part[32];

    w->fine = true;
    for (int i = 0; i < 200 && w->fine; i++) {
        snprintf(part, sizeof part, "[%d,\"%d\",", i, w->number);
        w->fine = rlx_grammar_accept_bytes(w->s, rlx_cstr(part), NULL) == RLX_OK &&
                  rlx_grammar_mask(w->s, bits, NULL) == RLX_OK && !(bits[',' / 32] >> ',' % 32 & 1);
    }
    return NULL;
}

TEST(grammar, copies_may_be_used_by_several_threads)
{
    enum { THREADS = 4 };
    rlx_context *ctx = text_context(t, NULL);
    rlx_tokenizer *k = tokens_of(t, ctx);
    rlx_grammar *g;
    rlx_grammar_state *s;
    struct writer w[THREADS];
    pthread_t thread[THREADS];

    require(t, k);
    require_ok(t, rlx_grammar_from_schema(ctx, rlx_cstr("{}"), &g, NULL));
    require_ok(t, rlx_grammar_state_create(g, k, &s, NULL));
    for (int i = 0; i < THREADS; i++) {
        w[i].number = i;
        expect_ok(t, rlx_grammar_state_clone(s, &w[i].s, NULL));
        expect_eq(t, pthread_create(&thread[i], NULL, write_text, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        expect_eq(t, pthread_join(thread[i], NULL), 0);
        expect(t, w[i].fine);
        rlx_grammar_state_destroy(w[i].s);
    }
    rlx_grammar_state_destroy(s);
    rlx_grammar_destroy(g);
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}

/* ---- memory ------------------------------------------------------------------------------ */

struct scene {
    const char *vocab;
};

static rlx_status with_mem(struct test *t, const rlx_allocator *mem, void *user)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"pattern\":\"^x+$\"},"
        "\"b\":{\"$ref\":\"#/$defs/n\"}},\"required\":[\"a\"],\"additionalProperties\":true,"
        "\"$defs\":{\"n\":{\"allOf\":[{\"type\":\"integer\",\"minimum\":3},{\"maximum\":40}]}}}";
    const struct scene *scene = user;
    rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = mem};
    rlx_context *ctx = NULL;
    rlx_tokenizer *k = NULL;
    rlx_grammar *g = NULL;
    rlx_grammar_state *s = NULL, *copy = NULL;
    rlx_error err;
    uint32_t bits[16];

    (void)t;
    rlx_status status = rlx_context_create(RLX_VERSION, &desc, &ctx, &err);
    if (status == RLX_OK)
        status = rlx_tokenizer_open(ctx, scene->vocab, &k, &err);
    if (status == RLX_OK)
        status = rlx_grammar_from_schema(ctx, rlx_cstr(schema), &g, &err);
    if (status == RLX_OK)
        status = rlx_grammar_state_create(g, k, &s, &err);
    if (status == RLX_OK)
        status = rlx_grammar_accept_bytes(s, rlx_cstr("{\"a\":\"x"), &err);
    if (status == RLX_OK)
        status = rlx_grammar_state_clone(s, &copy, &err);
    if (status == RLX_OK)
        status = rlx_grammar_mask(copy, bits, &err);
    if (status == RLX_OK)
        status = rlx_grammar_accept_bytes(s, rlx_cstr("\", \"b\": 17, \"c\":[]}"), &err);
    rlx_grammar_state_destroy(copy);
    rlx_grammar_state_destroy(s);
    rlx_grammar_destroy(g);
    rlx_tokenizer_close(k);
    if (ctx)
        rlx_context_destroy(ctx);
    return status;
}

TEST(grammar, every_allocation_may_fail)
{
    static struct world w;
    static char store[256][4];
    rlx_context *ctx = text_context(t, NULL);
    rlx_error err;
    struct scene scene = {test_temp(t, "grammar.gguf")};

    world_begin(&w, "gpt2", "gpt-2");
    world_bytes(&w, store);
    world_token(&w, "\":", RLX_TOKEN_NORMAL, 0);
    world_token(&w, "a", RLX_TOKEN_USER_DEFINED, 0);
    w.text[w.tokens - 1] = rlx_cstr("ax");
    world_merge(&w, "\" :");
    require_ok(t, world_write(&w, ctx, scene.vocab, &err));
    rlx_context_destroy(ctx);
    expect_survives_no_memory(t, with_mem, &scene);
}
