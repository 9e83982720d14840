/* pre_test.c: how each rule of pre.def cuts text into words. What is expected was worked out by
 * another engine for regular expressions, from the patterns of llm-tokenizers.md 2. */
#include "text/tokenizer.h"
#include "text_world.h"

struct joined {
    char text[8192], separator;
    size_t len;
};

static rlx_status add_word(void *user, rlx_str word)
{
    struct joined *j = user;

    if (j->len)
        j->text[j->len++] = j->separator;
    if (j->len + word.len + 2 < sizeof j->text) {
        memcpy(j->text + j->len, word.ptr, word.len);
        j->len += word.len;
    }
    j->text[j->len] = 0;
    return RLX_OK;
}

/* The words of a text, joined; or why there are none. */
static void cut(struct test *t, const char *pre, rlx_str text, struct joined *out)
{
    struct tok_cutter c = {.count = 0};
    const struct tok_pre *rule = tok_pre_find(rlx_cstr(pre));
    struct arena a;
    struct diag d;

    diag_init(&d, "test");
    arena_init(&a, mem_default());
    out->len = 0;
    out->text[0] = 0;
    if (expect(t, rule != NULL)) {
        expect_ok(t, tok_cutter_build(&c, rule, &a, &d));
        expect_ok(t, tok_cut(&c, text, add_word, out, &d));
    }
    arena_free(&a);
}

/* Words are joined by |, or by \001 where the text holds one. */
static const struct {
    const char *pre, *text, *words;
} cases[] = {
    /* clang-format off */
    {"llama-bpe", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I|'LL| don|'t| go| | to|\011HTMLElement|,| |123|45| times|!\012\012| | ok|  "},
    {"llama-bpe", "\303\251\314\201 \344\270\255\346\226\207\343\201\213\343\201\252\355\225\234\352\270\200 \357\274\221\357\274\222\340\245\251\302\275 \302\253x\302\273 https://a.b/c\015\012\302\240z", "\303\251|\314\201| \344\270\255\346\226\207\343\201\213\343\201\252\355\225\234\352\270\200| |\357\274\221\357\274\222\340\245\251|\302\275| \302\253|x|\302\273| https|://|a|.b|/c|\015\012|\302\240z"},
    {"qwen2", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I|'LL| don|'t| go| | to|\011HTMLElement|,| |1|2|3|4|5| times|!\012\012| | ok|  "},
    {"qwen2", "\303\251\314\201 \344\270\255\346\226\207\343\201\213\343\201\252\355\225\234\352\270\200 \357\274\221\357\274\222\340\245\251\302\275 \302\253x\302\273 https://a.b/c\015\012\302\240z", "\303\251|\314\201| \344\270\255\346\226\207\343\201\213\343\201\252\355\225\234\352\270\200| |\357\274\221|\357\274\222|\340\245\251|\302\275| \302\253|x|\302\273| https|://|a|.b|/c|\015\012|\302\240z"},
    {"gpt-2", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I|'|LL| don|'t| go| | to|\011|HTMLElement|,| 12345| times|!|\012\012 | ok|  "},
    {"gpt-2", "\303\251\314\201 \344\270\255\346\226\207\343\201\213\343\201\252\355\225\234\352\270\200 \357\274\221\357\274\222\340\245\251\302\275 \302\253x\302\273 https://a.b/c\015\012\302\240z", "\303\251|\314\201| \344\270\255\346\226\207\343\201\213\343\201\252\355\225\234\352\270\200| \357\274\221\357\274\222\340\245\251\302\275| \302\253|x|\302\273| https|://|a|.|b|/|c|\015\012|\302\240|z"},
    {"qwen35", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I|'LL| don|'t| go| | to|\011HTMLElement|,| |1|2|3|4|5| times|!\012\012| | ok|  "},
    {"qwen35", "\340\244\250\340\244\256\340\244\270\340\245\215\340\244\244\340\245\207 \340\244\246\340\245\201\340\244\250\340\244\277\340\244\257\340\244\276", "\340\244\250\340\244\256\340\244\270\340\245\215\340\244\244\340\245\207| \340\244\246\340\245\201\340\244\250\340\244\277\340\244\257\340\244\276"},
    {"laguna", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I|'LL| don|'t| go| | to|\011HTMLElement|,| |1|2|3|4|5| times|!|\012\012| | ok|  "},
    {"laguna", "a \012\012 b", "a| |\012\012| b"},
    {"starcoder", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I|'|LL| don|'t| go| | to|\011|HTMLElement|,| |1|2|3|4|5| times|!|\012\012 | ok|  "},
    {"starcoder", "x123", "x|1|2|3"},
    {"falcon", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I|'|LL| don|'|t| go| | to|\011|HTMLElement|,| |123|45| times|!|\012\012 | ok|  "},
    {"falcon", "a+b=1234|`x` <y>", "a\001+\001b\001=\001123\0014\001|`\001x\001`\001 \001<\001y\001>"},
    {"default", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I|'|LL| don|'|t| go| | to|\011|HTMLElement|,| |123|45| times|!|\012\012 | ok|  "},
    {"default", "\303\251\314\201 \344\270\255\346\226\207\343\201\213\343\201\252\355\225\234\352\270\200 \357\274\221\357\274\222\340\245\251\302\275 \302\253x\302\273 https://a.b/c\015\012\302\240z", "\303\251|\314\201| \344\270\255\346\226\207\343\201\213\343\201\252\355\225\234\352\270\200| |\357\274\221\357\274\222\340\245\251\302\275| |\302\253|x|\302\273| https|://|a|.|b|/|c|\015\012|\302\240|z"},
    {"default", "a+b=1234|`x` <y>", "a\001+\001b\001=\001123\0014\001|\001`\001x\001`\001 \001<\001y\001>"},
    {"default", "\331\243\331\244\331\245\331\246", "\331\243\331\244\331\245\331\246"},
    {"deepseek-llm", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I|'|LL| don|'|t| go| | to|\011HTMLElement|,| |12345| times|!|\012|\012| | ok|  "},
    {"deepseek-llm", "x\015\012  y\357\274\201 \316\251mega \357\275\201  ", "x|\015|\012| | y|\357\274\201| \316\251|mega| \357\275\201|  "},
    {"deepseek-coder", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I|'|LL| don|'|t| go| | to|\011HTMLElement|,| |1|2|3|4|5| times|!|\012|\012| | ok|  "},
    {"deepseek-coder", "x\012 y !a\344\270\255b", "x|\012| y| !|a|\344\270\255|b"},
    {"deepseek-v3", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I|'LL| don|'t| go| | to|\011HTMLElement|,| |123|45| times|!\012\012| | ok|  "},
    {"deepseek-v3", "\303\251\314\201 \344\270\255\346\226\207\343\201\213\343\201\252\355\225\234\352\270\200 \357\274\221\357\274\222\340\245\251\302\275 \302\253x\302\273 https://a.b/c\015\012\302\240z", "\303\251\314\201| |\344\270\255\346\226\207\343\201\213\343\201\252|\355\225\234\352\270\200| |\357\274\221\357\274\222\340\245\251|\302\275| \302\253|x|\302\273| https|://|a|.b|/c|\015\012|\302\240z"},
    {"deepseek-v3", "!abc 1234 \343\201\213\343\201\252\346\274\242\345\255\227 ok", "!abc| |123|4| |\343\201\213\343\201\252\346\274\242\345\255\227| ok"},
    {"tekken", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I|'LL| don|'t| go| | to|\011HTMLElement|,| |1|2|3|4|5| times|!\012\012| | ok|  "},
    {"tekken", "\303\251\314\201 \344\270\255\346\226\207\343\201\213\343\201\252\355\225\234\352\270\200 \357\274\221\357\274\222\340\245\251\302\275 \302\253x\302\273 https://a.b/c\015\012\302\240z", "\303\251\314\201| \344\270\255\346\226\207\343\201\213\343\201\252\355\225\234\352\270\200| |\357\274\221|\357\274\222|\340\245\251|\302\275| \302\253|x|\302\273| https|://|a|.b|/c|\015\012|\302\240z"},
    {"tekken", "iPhone OSs I'M 42/\012", "i|Phone| OSs| I|'M| |4|2|/\012"},
    {"gpt-4o", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I'LL| don't| go| | to|\011HTMLElement|,| |123|45| times|!\012\012| | ok|  "},
    {"gpt-4o", "\303\251\314\201 \344\270\255\346\226\207\343\201\213\343\201\252\355\225\234\352\270\200 \357\274\221\357\274\222\340\245\251\302\275 \302\253x\302\273 https://a.b/c\015\012\302\240z", "\303\251\314\201| \344\270\255\346\226\207\343\201\213\343\201\252\355\225\234\352\270\200| |\357\274\221\357\274\222\340\245\251|\302\275| \302\253|x|\302\273| https|://|a|.b|/c|\015\012|\302\240z"},
    {"gpt-4o", "iPhone OSs \303\200\303\211a\342\200\231s I'M/\012/x", "i|Phone| OSs| \303\200\303\211a|\342\200\231s| I'M|/\012/|x"},
    {"tiny_aya", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I'LL| don't| go| | to|\011HTMLElement|,| |12|345| times|!\012\012| | ok|  "},
    {"tiny_aya", "1234567 12345a 12", "1|234|567| |123|45|a| |12"},
    {"kimi-k2", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I'LL| don't| go| | to|\011HTMLElement|,| |123|45| times|!\012\012| | ok|  "},
    {"kimi-k2", "\344\270\255\346\226\207x\346\274\242AbC\345\255\227123456", "\344\270\255\346\226\207|x|\346\274\242|Ab|C|\345\255\227|123|456"},
    {"seed-coder", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I|'LL| don|'t| go| | to|\011HTMLElement|,| |1|2|3|4|5| times|!|\012\012| | ok|  "},
    {"seed-coder", "a!!\012\012b", "a|!!|\012\012|b"},
    {"bailingmoe", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I|'LL| don|'t| go| | to|\011HTMLElement|,| |1|2|3|4|5| times|!\012\012| | ok|  "},
    {"bailingmoe", "a \012\012\012 b", "a| \012\012\012| b"},
    {"minicpm5", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I|'LL| don|'t| go| | to|\011HTMLElement|,| |123|45| times|!\012\012| | ok|  "},
    {"minicpm5", "12345 a", "123|45| a"},
    {"superbpe", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I'LL don't go  to\011HTMLElement, |12|345| times!\012\012  ok  "},
    {"superbpe", "pay 1234567 or 12 now\302\275123", "pay |1|234|567| or |12| now|\302\275|123"},
    {"bloom", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I'LL| don't| go| | to|\011|HTMLElement|,| 12345| times|!\012\012 | ok|  "},
    {"bloom", "a (b|c).d, e\342\200\246f\343\200\201g", "a\001 (\001b\001|\001c\001).\001d\001,\001 e\001\342\200\246\001f\001\343\200\201\001g"},
    {"viking", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I'LL| don't| go| | to|\011|HTMLElement|,| |1|2|3|4|5| times|!\012\012 | ok|  "},
    {"viking", "a (b|c).d, 12\342\200\246", "a\001 (\001b\001|\001c\001).\001d\001,\001 \0011\0012\001\342\200\246"},
    {"jais-2", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I|'LL| don|'t| go| | to|\011HTMLElement|,| |123|45| times|!\012\012| | ok|  "},
    {"exaone-moe", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I|'LL| don|'t| go| | to|\011HTMLElement|,| |1|2|3|4|5| times|!\012\012| | ok|  "},
    {"exaone-moe", "one two  three, four 5 six", "one two| | three|,| four| |5| six"},
    {"gemma4", "a b\012\012\012c", "a b|\012\012\012|c"},
    {"chameleon", "I'LL don't go  to\011HTMLElement, 12345 times!\012\012  ok  ", "I|'|LL| don|'|t| go|  |to|\011|HTMLElement|,| |1|2|3|4|5| times|!|\012|\012|  |ok|  "},
    {"chameleon", "x<sentinel:12>IMGIMGABZ\011    a-b  12", "x|<|sentinel|:|1|2|>|IMGIMGABZ|\011|    |a|-|b|  |1|2"},
    {"afmoe", "12345 123 \340\270\201\340\270\202x \344\270\255\346\226\207 a!", "12|345| |123| |\340\270\201\340\270\202|x| |\344\270\255\346\226\207| a|!"},
    {"youtu", "\353\213\244\344\270\255\343\204\205 abc12\343\200\202", "\353\213\244|\344\270\255|\343\204\205| abc|1|2|\343\200\202"},
    {"whitespace", " ab  c\n", " |ab|  |c|\n"},
    {"jais-2", "a       b", "a|    |  | b"},
    /* clang-format on */
};

TEST(pre, cuts_as_the_patterns_say)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct joined j = {.separator = strchr(cases[i].words, 1) ? 1 : '|'};
        test_note(t, "%s, \"%s\"", cases[i].pre, cases[i].text);
        cut(t, cases[i].pre, rlx_cstr(cases[i].text), &j);
        expect_str(t, j.text, cases[i].words);
    }
}

TEST(pre, every_rule_can_be_read_and_loses_nothing)
{
    static const char text[] =
        "It's  1234567 \xc3\x84pfel\xff\xe4\xb8 \xf0\x9f\x98\x80|x|\r\n\n \x80";
    size_t rules = 0;

    for (const struct tok_pre *p; (p = tok_pre_at(rules)); rules++) {
        struct joined j = {.separator = 1};
        test_note(t, "%s", p->name);
        cut(t, p->name, (rlx_str){text, sizeof text - 1}, &j);
        size_t len = 0;
        for (size_t i = 0; i < j.len; i++)
            if (j.text[i] != 1)
                j.text[len++] = j.text[i];
        expect_eq(t, len, sizeof text - 1);
        expect(t, memcmp(j.text, text, sizeof text - 1) == 0);
        expect(t, tok_pre_find(rlx_cstr(p->name)) == p); /* no name comes twice */
    }
    expect_eq(t, rules, 87);
}

static rlx_status count_word(void *user, rlx_str word)
{
    (void)word;
    ++*(size_t *)user;
    return RLX_OK;
}

/* Half a million of one character, for which careless matching takes the square of that: tok_cut
 * refuses to take more than a few hundred steps per byte. */
TEST(pre, long_runs_take_no_quadratic_time)
{
    static const char *const of[] = {" ",  "1",        "a",  "!",   "\n", "A",
                                     " a", "\xcc\x81", "a ", " \n", "'",  "\xff"};
    enum { LEN = 1 << 19 };
    char *text = malloc(LEN);

    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        size_t part = strlen(of[i]);
        for (size_t k = 0; k < LEN; k++)
            text[k] = of[i][k % part];
        for (size_t p = 0; tok_pre_at(p); p++) {
            struct tok_cutter c = {.count = 0};
            struct arena a;
            size_t words = 0;
            if (p && strcmp(tok_pre_at(p)->step[0].pattern ? tok_pre_at(p)->step[0].pattern : "",
                            tok_pre_at(p - 1)->step[0].pattern ? tok_pre_at(p - 1)->step[0].pattern
                                                               : "") == 0)
                continue; /* the same rule under another name */
            test_note(t, "%s, \"%s\"", tok_pre_at(p)->name, of[i]);
            arena_init(&a, mem_default());
            expect_ok(t, tok_cutter_build(&c, tok_pre_at(p), &a, NULL));
            expect_ok(t, tok_cut(&c, (rlx_str){text, LEN}, count_word, &words, NULL));
            expect(t, words > 0);
            arena_free(&a);
        }
    }
    free(text);
}

/* ---- patterns from outside ---- */

TEST(pattern, what_cannot_be_matched_is_refused)
{
    static const struct {
        const char *pattern, *part;
    } refused[] = {
        {"a(b)", "a construct that is not known at byte 1"},
        {"(?<=a)b", "a construct that is not known"},
        {"(?:a+)", "a group of more than words"},
        {"(?:a|b)+", "a group that repeats"},
        {"a+?", "a quantifier that is not greedy"},
        {"[a", "a class that does not end"},
        {"[z-a]", "a range that ends before it begins"},
        {"[a-\\s]", "a range that ends in a class"},
        {"\\p{Greek}", "an unknown property"},
        {"\\p{L", "\\p{ that does not end"},
        {"\\b", "an unknown escape"},
        {"\\x{110000}", "no number of a character"},
        {"a{9999}", "no count up to 4096"},
        {"a{3,2}", "no count like {1,3}"},
        {"a||b", "an alternative that is empty"},
        {"", "an alternative that is empty"},
        {"a\\", "a backslash at the end"},
        {"(?!ab)", "looking ahead for more than a class"},
        {"[[[[[[[[[[a]]]]]]]]]]", "classes nested too deeply"},
    };

    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct pattern p;
        struct arena a;
        struct diag d;
        diag_init(&d, "test");
        arena_init(&a, mem_default());
        test_note(t, "%s", refused[i].pattern);
        expect(t, pattern_parse(&p, rlx_cstr(refused[i].pattern), &a, &d) != RLX_OK);
        expect_contains(t, d.first.message, refused[i].part);
        arena_free(&a);
    }
}

static size_t matched(struct test *t, const char *pattern, const char *text)
{
    struct pattern_effort e = {.most = 1 << 20};
    struct pattern p;
    struct arena a;
    size_t bytes = 0;

    arena_init(&a, mem_default());
    if (expect_ok(t, pattern_parse(&p, rlx_cstr(pattern), &a, NULL)))
        bytes = pattern_match(&p, rlx_cstr(text), 0, &e);
    arena_free(&a);
    return bytes;
}

TEST(pattern, matches_what_it_says)
{
    static const struct {
        const char *pattern, *text;
        size_t bytes;
    } rows[] = {
        {"a|ab", "ab", 1}, /* the first, not the longest */
        {"a*ab", "aaab", 4},
        {"a*+ab", "aaab", 0}, /* possessive: nothing is given back */
        {"[^a-c]+", "xyza", 3},
        {"[]x]+", "]x", 2},
        {"[\\]\\-a]+", "-]a", 3},
        {"\\u00e9\\xe9\\x{e9}", "\xc3\xa9\xc3\xa9\xc3\xa9", 6},
        {"[\\p{L}&&[^\\p{Lu}]]+", "abC", 2},
        {"[\\p{Lu}[0-9]]+", "A1b", 2},
        {"\\P{L}+", "12a", 2},
        {"[\\S]+", "ab c", 2},
        {"\\D", "1", 0},
        {".+", "ab\nc", 2},
        {"(?i:'s|'ll)", "'LL", 3},
        {"(?:'s|'ll)", "'LL", 0},
        {"'(?:[sS]|[lL])?x", "'Lx", 3},
        {"x(?i:ab)?abc", "xabc", 4}, /* the word is given back */
        {"a(?=b)", "ab", 1},
        {"a(?=b)", "ac", 0},
        {"a(?!b)", "ab", 0},
        {"a(?!b)", "a", 1},
        {"a$", "ab", 0},
        {"a{2}", "aaa", 2},
        {"a{2,}", "aaa", 3},
        {"a{0,2}b", "aab", 3},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        test_note(t, "%s on \"%s\"", rows[i].pattern, rows[i].text);
        expect_eq(t, matched(t, rows[i].pattern, rows[i].text), rows[i].bytes);
    }
}

/* Five runs that may each end anywhere: the effort ends it. */
TEST(pattern, effort_is_bounded)
{
    struct pattern_effort e = {.most = 100000};
    struct pattern p;
    struct arena a;
    char text[2001];

    memset(text, 'a', 2000);
    text[2000] = 0;
    arena_init(&a, mem_default());
    require_ok(t, pattern_parse(&p, rlx_cstr("a*a*a*a*a*b"), &a, NULL));
    expect_eq(t, pattern_match(&p, rlx_cstr(text), 0, &e), 0);
    expect(t, e.steps >= e.most && e.steps < e.most + 10000);
    arena_free(&a);
}
