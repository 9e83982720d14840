/* gbnf_test.c: the notation of grammars: what it means, and what is refused. */
#include "grammar/machine.h"
#include "grammar_world.h"

TEST(gbnf, items_mean_what_the_notation_says)
{
    try_texts(t, "root ::= \"ab\" | \"c\"", false, LIST("ab", "c"), LIST("", "a", "abc", "ac"));
    try_texts(t, "root ::= [a-cx] [^a-c\\n]", false, LIST("ad", "x\xc3\xa9", "c-"),
              LIST("d", "aa", "a\n", "add"));
    try_texts(t, "root ::= [-a] [b-]", false, LIST("--", "a-", "ab"), LIST("b", "a"));
    try_texts(t, "root ::= . .", false, LIST("ab", "\n\xf0\x9f\x98\x80", "\xe2\x82\xac."),
              LIST("", "a", "abc", "a\xff", "\xc0\x80", "\xed\xa0\x80"));
    try_texts(t, "root ::= a-1? b_2* C+\na-1 ::= \"a\"\nb_2 ::= \"b\"\nC ::= \"c\"", false,
              LIST("c", "ac", "abbbccc"), LIST("", "aac", "b", "ab"));
    try_texts(t, "root ::= \"a\"{2} \"b\"{1,} \"cd\"{0,2}", false,
              LIST("aab", "aabbbb", "aabcd", "aabcdcd"),
              LIST("ab", "aa", "aaab", "aabc", "aabcdcdcd"));
    try_texts(t, "root ::= (\"a\" | \"b\" \"c\"){2,3} \"\"", false,
              LIST("aa", "abc", "bcbcbc", "aaa"), LIST("", "a", "ab", "aaaa", "bcb"));
    try_texts(t, "root ::= | \"x\" root", false, LIST("", "x", "xxxx"), LIST("y", "xy"));
    try_texts(t, "root ::= \"a\"{0} \"b\"{0,0} \"c\"", false, LIST("c"), LIST("ac", "bc"));
    try_texts(t, "root ::= (\"a\"? \"b\"?)*", false, LIST("", "a", "b", "ba", "abba"), LIST("c"));
}

TEST(gbnf, escapes_stand_for_their_characters)
{
    try_texts(t, "root ::= \"\\n\\t\\r\\\\\\\"\\[\\]\"", false, LIST("\n\t\r\\\"[]"), LIST("n"));
    try_texts(t, "root ::= \"\\x41\\xe9\\u20aC\\U0001f600\"", false,
              LIST("A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), LIST("A"));
    try_texts(t, "root ::= [\\]\\[\\x2d\\\\]+", false, LIST("]", "[-\\"), LIST("x", "x-"));
    try_texts(t, "root ::= \"\xc3\xa9\" [\xc3\xa0-\xc3\xbf]", false, LIST("\xc3\xa9\xc3\xa9"),
              LIST("\xc3\xa9", "\xc3\xa9z"));
}

TEST(gbnf, lines_go_on_where_they_may)
{
    static const char text[] = "# a comment\r\n\r\n"
                               "root ::=   # another\n"
                               "  \"a\" |\n\n"
                               "  (\n \"b\"\n  |  # one more\n \"c\" \n) [0-9] * # the last\n"
                               "  \n"
                               "other::=root\n#";
    struct trial r;

    try_texts(t, text, false, LIST("a", "b", "c12"), LIST("a1", "", "bc"));
    require(t, trial_begin(t, &r, text, false));
    expect(t, rlx_grammar_text(r.grammar).len == strlen(text));
    trial_end(&r);
}

TEST(gbnf, another_rule_may_be_the_root)
{
    rlx_context *ctx = text_context(t, NULL);
    rlx_grammar *g = NULL;
    rlx_error err;
    const rlx_str text = rlx_cstr("x ::= \"a\"\ny ::= x");

    expect_ok(t, rlx_grammar_parse(ctx, text, rlx_cstr("y"), &g, &err));
    rlx_grammar_destroy(g);
    expect_status(t, rlx_grammar_parse(ctx, text, (rlx_str){NULL, 0}, &g, &err), RLX_ERROR_FORMAT);
    expect_error(t, RLX_ERROR_FORMAT, "there is no rule \"root\" to begin with", &err);
    expect_status(t, rlx_grammar_parse(ctx, (rlx_str){NULL, 0}, (rlx_str){NULL, 0}, &g, &err),
                  RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_grammar_from_schema(NULL, text, &g, &err), RLX_ERROR_ARGUMENT);
    rlx_grammar_destroy(NULL);
    rlx_grammar_state_destroy(NULL);
    rlx_context_destroy(ctx);
}

TEST(gbnf, mistakes_are_named_with_their_place)
{
    static const struct {
        const char *text, *part;
        rlx_status status;
    } cases[] = {
        {"", "there is no rule \"root\"", RLX_ERROR_FORMAT},
        {"root = \"a\"", "line 1, column 6: \"::=\" was expected", RLX_ERROR_FORMAT},
        {"root\n::= \"a\"", "line 1, column 5", RLX_ERROR_FORMAT},
        {"root ::= \"a\"\n  | \"b\"", "line 2, column 3: the name of a rule", RLX_ERROR_FORMAT},
        {"root ::= \"a\" b\n", "line 1, column 14: there is no rule \"b\"", RLX_ERROR_FORMAT},
        {"root ::= \"\xc3\xa9\" )", "line 1, column 14: ')' may not stand here", RLX_ERROR_FORMAT},
        {"root ::= (\"a\"", "a ) was expected, not 'the end'", RLX_ERROR_FORMAT},
        {"root ::= \"a", "column 10: this text has no closing quote", RLX_ERROR_FORMAT},
        {"root ::= [a", "this class has no end", RLX_ERROR_FORMAT},
        {"root ::= []", "this class has no character", RLX_ERROR_FORMAT},
        {"root ::= [^\\x00-\\U0010ffff]", "this class has no character", RLX_ERROR_FORMAT},
        {"root ::= [b-a]", "ends before it begins", RLX_ERROR_FORMAT},
        {"root ::= \"\\q\"", "an unknown escape", RLX_ERROR_FORMAT},
        {"root ::= \"\\x4\"", "followed by 2 hexadecimal digits", RLX_ERROR_FORMAT},
        {"root ::= \"\\ud800\"", "no character U+D800", RLX_ERROR_FORMAT},
        {"root ::= \"\\U00110000\"", "no character U+110000", RLX_ERROR_FORMAT},
        {"root ::= \"\xff\"", "not UTF-8", RLX_ERROR_FORMAT},
        {"root ::= \"a\"{2,1}", "from 2 to 1 times is never", RLX_ERROR_FORMAT},
        {"root ::= \"a\"{x}", "a count was expected, not 'x'", RLX_ERROR_FORMAT},
        {"root ::= \"a\"{1", "a } was expected", RLX_ERROR_FORMAT},
        {"root ::= <think> .*", "line 1, column 10: tokens by their text", RLX_ERROR_UNSUPPORTED},
        {"root ::= \"a\"*+", "'+' after a repetition", RLX_ERROR_FORMAT},
        {"root ::= \"a\"{0,100000}", "at most 16384 repetitions", RLX_ERROR_LIMIT},
        {"root ::= ((((\"a\"{16000}){16000}){16000}){16000}){16000}", NULL, RLX_OK},
        {"root ::= (\"a\" \"b\"){16000} (\"a\" \"c\"){16000} x{16000} x{16000}\n"
         "x ::= y{16000} y{16000} y{16000} y{16000} y{16000} y{16000} y{16000} y{16000} y{16000}\n"
         "y ::= z{16000} z{16000} z{16000} z{16000} z{16000} z{16000} z{16000} z{16000} z{16000}\n"
         "z ::= v{16000} v{16000} v{16000} v{16000} v{16000} v{16000} v{16000} v{16000} v{16000}\n"
         "v ::= \"a\"{16000} \"b\"{16000} \"c\"{16000} \"d\"{16000} \"e\"{16000} \"f\"{16000}\n",
         "the grammar is too large", RLX_ERROR_LIMIT},
        {"root ::= \"a\"\nroot ::= \"b\"",
         "line 2, column 1: the rule \"root\" is defined a second", RLX_ERROR_FORMAT},
        {"root ::= root \"a\" | \"b\"", "the rule \"root\" begins with itself", RLX_ERROR_FORMAT},
        {"root ::= \"a\" x\nx ::= y? z\ny ::= \"y\"\nz ::= \"\" w\nw ::= x \"b\" | \"\"",
         "begins with itself", RLX_ERROR_FORMAT},
        {"root ::= \"a\" root", "the rule \"root\" never ends", RLX_ERROR_FORMAT},
        {"root ::= \"a\" | x\nx ::= \"b\" y\ny ::= \"c\" x", "never ends", RLX_ERROR_FORMAT},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trial r;
        test_note(t, "%.60s", cases[i].text);
        const bool taken = trial_begin(t, &r, cases[i].text, false);
        expect(t, taken == (cases[i].status == RLX_OK));
        if (!taken)
            expect_error(t, cases[i].status, cases[i].part, &r.err);
        trial_end(&r);
    }
}

TEST(gbnf, parentheses_are_bounded)
{
    static char text[2000];
    struct trial r;
    size_t len = (size_t)snprintf(text, sizeof text, "root ::= ");

    memset(text + len, '(', 200);
    expect(t, !trial_begin(t, &r, text, false));
    expect_error(t, RLX_ERROR_LIMIT, "more than 128 parentheses are open", &r.err);
    trial_end(&r);
}

/* Hostile grammars end with LIMIT, and the state stays where it was. */
TEST(gbnf, ambiguity_has_a_bound)
{
    static const struct {
        const char *text, *repeated;
    } cases[] = {
        {"root ::= \"a\" root \"x\" | \"a\" root \"y\" | \"\"", "a"}, /* 2^n ways to go on */
        {"root ::= \"(\" root \")\" | \"\"", "("},                    /* as many open rules */
    };
    enum { MOST = 200000 };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trial r;
        rlx_status s = RLX_OK;
        test_note(t, "%s", cases[i].text);
        require(t, trial_begin(t, &r, cases[i].text, false));
        for (int k = 0; k < MOST && s == RLX_OK; k++)
            s = rlx_grammar_accept_bytes(r.start, rlx_cstr(cases[i].repeated), &r.err);
        expect_error(t, RLX_ERROR_LIMIT, "", &r.err);
        expect_ok(t, rlx_grammar_accept_bytes(r.start, rlx_cstr(i ? ")" : "x"), &r.err));
        trial_end(&r);
    }
}

TEST(gbnf, a_start_of_too_many_ways_is_refused)
{
    static char text[4000];
    size_t len = (size_t)snprintf(text, sizeof text, "root ::= r0\n");
    struct trial r;

    for (int i = 0; i < 40; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "r%d ::= r%d \"x\" | r%d \"y\"\n", i,
                                i + 1, i + 1);
    snprintf(text + len, sizeof text - len, "r40 ::= \"z\"\n");
    expect(t, !trial_begin(t, &r, text, false));
    expect_error(t, RLX_ERROR_LIMIT, "too ambiguous", &r.err);
    trial_end(&r);
}

/* What is kept about a grammar is bounded, though the text visits ever new places. */
TEST(gbnf, long_texts_forget_what_they_left)
{
    enum { DEEP = 60, STEPS = 1200000 };
    static const char opening[] = "([{", closing[] = ")]}";
    char open[DEEP];
    int depth = 0, forgotten = 0;
    struct trial r;
    rlx_grammar_state *half = NULL;
    uint64_t seed = 1;

    require(t,
            trial_begin(t, &r, "root ::= (\"(\" root \")\" | \"[\" root \"]\" | \"{\" root \"}\")*",
                        false));
    require_ok(t, rlx_grammar_accept_bytes(r.start, rlx_cstr("([{["), &r.err));
    require_ok(t, rlx_grammar_state_clone(r.start, &half, NULL));
    for (int i = 0; i < STEPS; i++) {
        const size_t before = r.start->machine->store.config.len;
        seed = seed * UINT64_C(6364136223846793005) + 1;
        const unsigned what = (unsigned)(seed >> 40);
        const bool opens = depth == 0 || (depth < DEEP && what % 2);
        const char c = opens ? opening[what / 2 % 3] : open[depth - 1];
        const rlx_status s = rlx_grammar_accept_bytes(r.start, (rlx_str){&c, 1}, &r.err);
        depth += opens ? 1 : -1;
        if (opens)
            open[depth - 1] = closing[what / 2 % 3];
        if (s != RLX_OK || rlx_grammar_may_end(r.start)) {
            fail(t, "character %d: %s", i, r.err.message);
            break;
        }
        forgotten += r.start->machine->store.config.len < before;
    }
    expect(t, forgotten > 0);
    expect_status(t, rlx_grammar_accept_bytes(half, rlx_cstr("}"), &r.err), RLX_ERROR_ARGUMENT);
    expect_ok(t, rlx_grammar_accept_bytes(half, rlx_cstr("]}])"), &r.err));
    expect(t, rlx_grammar_may_end(half));
    rlx_grammar_state_destroy(half);
    trial_end(&r);
}
