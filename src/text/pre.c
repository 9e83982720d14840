/* pre.c: the rules by which byte-level BPE cuts text into words: patterns, and a table of who uses
 * which. */
#include "text/tokenizer.h"
#include "text/unicode.h"

/* ---- what a pattern cannot say ----------------------------------------------------------- */

static bool is(uint32_t c, uint32_t categories)
{
    return (unicode_category_bit(c) & categories) != 0;
}

static bool digit_at(rlx_str s, size_t at, size_t *bytes)
{
    return at < s.len && is(utf8_next(s.ptr + at, s.len - at, bytes), CAT_BIT(Nd));
}

/* Whether a match that ended at `at` was of digits: then threes are what is left of the run. */
static bool digit_before(rlx_str s, size_t at)
{
    size_t bytes;

    for (size_t k = 1; k <= 4 && k <= at; k++)
        if (digit_at((rlx_str){s.ptr, at}, at - k, &bytes) && bytes == k)
            return true;
    return false;
}

/* How many digits there are from `at` on; *end: where they end. */
static size_t count_digits(rlx_str s, size_t at, size_t *end)
{
    size_t count = 0, bytes;

    for (; digit_at(s, at, &bytes); at += bytes)
        count++;
    *end = at;
    return count;
}

static size_t skip_digits(rlx_str s, size_t at, size_t count)
{
    size_t bytes;

    for (; count && digit_at(s, at, &bytes); count--)
        at += bytes;
    return at;
}

static bool ends_word(rlx_str s, size_t at)
{
    size_t bytes;

    return at == s.len || !is(utf8_next(s.ptr + at, s.len - at, &bytes),
                              CATS_L | CATS_M | CAT_BIT(Nd) | CAT_BIT(Nl) | CAT_BIT(Pc));
}

/* Runs of digits, in threes from the right, the first one to three alone. bounded: only where no
 * letter follows. */
static size_t find_digits(rlx_str s, size_t at, size_t *start, bool bounded)
{
    size_t step, end;

    for (; at < s.len; at += step) {
        if (!digit_at(s, at, &step))
            continue;
        *start = at;
        if (digit_before(s, at))
            return skip_digits(s, at, 3) - at;
        size_t count = count_digits(s, at, &end);
        if (!bounded || ends_word(s, end))
            return skip_digits(s, at, count % 3 ? count % 3 : 3) - at;
        step = end - at;
    }
    return 0;
}

static size_t threes(rlx_str s, size_t at, size_t *start)
{
    return find_digits(s, at, start, false);
}

static size_t bounded_threes(rlx_str s, size_t at, size_t *start)
{
    return find_digits(s, at, start, true);
}

/* The first place from `at` on that three digits follow, or six, and so on; s.len: there is none.
 */
static size_t first_three(rlx_str s, size_t at)
{
    size_t step, end;

    for (; at < s.len; at += step) {
        if (!digit_at(s, at, &step))
            continue;
        if (digit_before(s, at))
            return at;
        size_t count = count_digits(s, at, &end);
        if (count >= 3)
            return skip_digits(s, at, count % 3);
        step = end - at;
    }
    return s.len;
}

/* Text from one such place to the next. */
static size_t from_three_to_three(rlx_str s, size_t at, size_t *start)
{
    size_t end, bytes;

    *start = first_three(s, at);
    end = skip_digits(s, *start, 3);
    return (digit_at(s, end, &bytes) ? end : first_three(s, end)) - *start;
}

/* Spaces at the end: \s+$, which would try again at each space before it. */
static size_t last_spaces(rlx_str s, size_t at, size_t *start)
{
    size_t step, from = s.len;

    for (size_t i = at; i < s.len; i += step) {
        bool space = unicode_is_space(utf8_next(s.ptr + i, s.len - i, &step));
        if (!space)
            from = s.len;
        else if (from == s.len)
            from = i;
    }
    *start = from;
    return s.len - from;
}

/* ---- patterns ---------------------------------------------------------------------------- */

#define SPACES_LAST "|\\s+(?!\\S)|\\s+"
#define ENDINGS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define WORD "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define SIGNS "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define BREAKS "|\\s*[\\r\\n]+"

#define P_G2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+" SPACES_LAST
#define P_QW ENDINGS WORD "|\\p{N}" SIGNS BREAKS SPACES_LAST
#define P_LINES "[^\\n]+|[\\n]+"
#define P_DIGIT "\\p{N}"

/* Upper case before lower case, or either alone: "HTMLElement" is two words. */
#define UPPER "\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}"
#define LOWER "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
#define CASED_WORDS(but, endings)                                    \
    "[^\\r\\n\\p{L}\\p{N}]?[" UPPER but "]*[" LOWER but "]+" endings \
    "|[^\\r\\n\\p{L}\\p{N}]?[" UPPER but "]+[" LOWER but "]*" endings
#define SIGNS_SLASH "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"
#define P_O2 CASED_WORDS("", ENDINGS "?") "|\\p{N}{1,3}" SIGNS_SLASH BREAKS SPACES_LAST
#define NOT_HAN "&&[^\\p{Han}]"

#define KANA_HAN "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+"
#define CJK_HANGUL "[\\x{4E00}-\\x{9FA5}\\x{0800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+"
#define P_D3_LAST                                           \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+" \
    "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*" BREAKS SPACES_LAST
#define P_BLOOM " ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{FF0C}\\x{3001}\\x{0964}\\x{06D4}\\x{060C})]+"

/* Letters that have a case, as of one version of Unicode (ops-special.md 9.3). */
#define P_CASED                                                                             \
    "\\s?["                                                                                 \
    "\\x{41}-\\x{5A}\\x{61}-\\x{7A}\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}"   \
    "\\x{1BC}-\\x{1BF}\\x{1C4}-\\x{293}\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}-\\x{377}" \
    "\\x{37B}-\\x{37D}\\x{37F}\\x{386}\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}"           \
    "\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}\\x{531}-\\x{556}"                  \
    "\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}"          \
    "\\x{1CBD}-\\x{1CBF}\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-\\x{1D9A}"          \
    "\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}"          \
    "\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}\\x{1F5D}\\x{1F5F}-\\x{1F7D}\\x{1F80}-\\x{1FB4}"  \
    "\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}\\x{1FC6}-\\x{1FCC}\\x{1FD0}-\\x{1FD3}" \
    "\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}\\x{1FF6}-\\x{1FFC}\\x{2102}" \
    "\\x{2107}\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}\\x{2126}\\x{2128}"   \
    "\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}\\x{2145}-\\x{2149}" \
    "\\x{214E}\\x{2183}-\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}\\x{2CEB}-\\x{2CEE}" \
    "\\x{2CF2}-\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}"          \
    "\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}"          \
    "\\x{FB13}-\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}"        \
    "\\x{104B0}-\\x{104D3}\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}"  \
    "\\x{118A0}-\\x{118DF}\\x{1E900}-\\x{1E943}"                                            \
    "]+"

/* ---- rules ------------------------------------------------------------------------------- */

#define P(text)    \
    {              \
        text, NULL \
    }
#define F(function)    \
    {                  \
        NULL, function \
    }

/* clang-format off */
#define G2         {P(P_G2)}
#define L3         {P(ENDINGS WORD "|\\p{N}{1,3}" SIGNS BREAKS SPACES_LAST)}
#define QW         {P(P_QW)}
#define QW_MARKS   {P(ENDINGS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}" \
                      "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" BREAKS SPACES_LAST)}
#define LAGUNA     {P(P_LINES), P(P_QW)}
#define DIGIT_G2   {P(P_DIGIT), P(P_G2)}
#define FALCON     {P("[\\p{P}\\$\\+<=>\\^~\\|`]+"), P(P_G2), P("[0-9][0-9][0-9]")}
#define DEFAULT    {P("[\\p{P}\\$\\+<=>\\^~\\|]+"), P(P_G2), P("\\p{N}+"), P("[0-9][0-9][0-9]")}
#define DEEPSEEK   {P("[\\r\\n]"), P(P_CASED), \
                    P("\\s?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}" \
                      "\\x{3000}-\\x{3002}]+"), \
                    F(last_spaces), P(CJK_HANGUL), P("\\p{N}+")}
#define DEEPSEEK_CODER \
                   {P("[\\r\\n]"), P("\\s?\\p{L}+"), P("\\s?\\p{P}+"), P(CJK_HANGUL), P(P_DIGIT)}
#define DEEPSEEK_3 {P("\\p{N}{1,3}"), P(KANA_HAN), P(P_D3_LAST)}
#define TEKKEN     {P(CASED_WORDS("", "") "|\\p{N}" SIGNS_SLASH BREAKS SPACES_LAST)}
#define O2         {P(P_O2)}
#define THREES_O2  {F(bounded_threes), P(P_O2)}
#define KIMI       {P("\\p{Han}+|" CASED_WORDS(NOT_HAN, ENDINGS "?") "|\\p{N}{1,3}" \
                      "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" BREAKS SPACES_LAST)}
#define SEED_CODER {P(ENDINGS WORD "|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+" BREAKS SPACES_LAST)}
#define BAILING    {P(ENDINGS WORD "|\\p{N}" SIGNS "|\\s*[\\r\\n]" SPACES_LAST)}
#define MINICPM    {P("\\p{N}{1,3}"), P(ENDINGS WORD "|\\p{N}+" SIGNS BREAKS SPACES_LAST)}
#define SUPER      {P("\\p{N}+"), F(from_three_to_three)}
#define AFMOE      {F(threes), \
                    P("[\\x{4E00}-\\x{9FFF}\\x{3400}-\\x{4DBF}\\x{F900}-\\x{FAFF}\\x{3040}-\\x{309F}" \
                      "\\x{30A0}-\\x{30FF}\\x{FF65}-\\x{FF9F}\\x{2F00}-\\x{2FDF}\\x{0E00}-\\x{0E7F}" \
                      "\\x{0E80}-\\x{0EFF}\\x{1780}-\\x{17FF}\\x{1000}-\\x{109F}\\x{AA60}-\\x{AA7F}" \
                      "\\x{A9E0}-\\x{A9FF}\\x{AC00}-\\x{D7AF}\\x{1100}-\\x{11FF}]+"), \
                    P(P_D3_LAST)}
#define BLOOM      {P(P_BLOOM)}
#define VIKING     {P(P_BLOOM), P(P_DIGIT)}
#define JAIS_2     {P(ENDINGS WORD "|\\p{N}{1,3}" SIGNS BREAKS \
                      "|\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)" \
                      "|\\s{32}(?!\\S)|\\s{16}(?!\\S)|\\s{8}(?!\\S)|\\s{4}(?!\\S)" \
                      "|\\s{1,2}(?!\\S)|\\s")}
#define EXAONE_MOE {P(ENDINGS "|[^\\r\\n\\p{L}\\p{N}]?\\p{Joined}|\\p{N}" SIGNS BREAKS SPACES_LAST)}
#define YOUTU      {P("[\\x{AC00}-\\x{D7A3}\\x{3131}-\\x{318E}]+" \
                      "|[\\x{FF01}\\x{2026}\\x{201C}\\x{201D}\\x{2018}\\x{2019}\\x{2014}\\x{FF1A}" \
                      "\\x{FF1B}\\x{FF0C}\\x{3001}-\\x{303F}\\x{FE30}-\\x{FE4F}]+" \
                      "|[\\x{3105}-\\x{312F}]+|" KANA_HAN), \
                    P(CASED_WORDS("", ENDINGS "?") "|\\p{N}" SIGNS_SLASH BREAKS SPACES_LAST)}
#define LINES      {P(P_LINES)}
#define SPACES     {P("\\S+")}
#define CHAMELEON  {P("<sentinel:[0-9]+>"), P("IMGIMG[A-I]{1,4}Z"), P("[\\t\\n]|    |  "), \
                    P(P_DIGIT), P("[\\p{P}!-/:-@\\[-`{-~]"), P(P_G2)}
/* clang-format on */

static const struct tok_pre table[] = {
#define PRE(name, steps, flags) {name, steps, flags},
#include "text/pre.def"
#undef PRE
};

const struct tok_pre *tok_pre_at(size_t i)
{
    return i < sizeof table / sizeof *table ? &table[i] : NULL;
}

const struct tok_pre *tok_pre_find(rlx_str name)
{
    for (size_t i = 0; tok_pre_at(i); i++)
        if (str_eq(name, rlx_cstr(table[i].name)))
            return &table[i];
    return NULL;
}

/* ---- cutting ----------------------------------------------------------------------------- */

rlx_status tok_cutter_build(struct tok_cutter *c, const struct tok_pre *pre, struct arena *a,
                            struct diag *d)
{
    c->count = 0;
    for (; c->count < TOK_MOST_STEPS; c->count++) {
        const struct tok_step *s = &pre->step[c->count];
        if (!s->pattern && !s->find)
            break;
        c->step[c->count].find = s->find;
        if (s->pattern)
            TRY(pattern_parse(&c->step[c->count].pattern, rlx_cstr(s->pattern), a, d));
    }
    return RLX_OK;
}

struct cutting {
    const struct tok_cutter *cutter;
    tok_word_fn each;
    void *user;
    struct diag *d;
    struct pattern_effort effort;
};

static rlx_status cut(struct cutting *c, size_t step, rlx_str text);

static rlx_status cut_part(struct cutting *c, size_t step, rlx_str text, size_t from, size_t to)
{
    rlx_str part = {text.ptr + from, to - from};

    if (from == to)
        return RLX_OK;
    return step == c->cutter->count ? c->each(c->user, part) : cut(c, step, part);
}

/* Where the next match of a step begins, and its bytes; 0: there is none. */
static size_t find_next(struct cutting *c, const struct tok_cut *s, rlx_str text, size_t at,
                        size_t *start)
{
    size_t step;

    if (s->find)
        return s->find(text, at, start);
    for (; at < text.len; at += step) {
        size_t bytes = pattern_match(&s->pattern, text, at, &c->effort);
        if (bytes) {
            *start = at;
            return bytes;
        }
        utf8_next(text.ptr + at, text.len - at, &step);
    }
    return 0;
}

static rlx_status cut(struct cutting *c, size_t step, rlx_str text)
{
    const struct tok_cut *s = &c->cutter->step[step];
    size_t start = 0, bytes;

    for (size_t at = 0; at < text.len; at = start + bytes) {
        bytes = find_next(c, s, text, at, &start);
        if (!bytes)
            start = text.len;
        TRY(cut_part(c, step + 1, text, at, start));
        TRY(cut_part(c, step + 1, text, start, start + bytes));
    }
    return c->effort.steps < c->effort.most
               ? RLX_OK
               : diag_fail(c->d, RLX_ERROR_LIMIT,
                           "a pattern of the tokenizer needs more than %llu steps for %zu bytes",
                           (unsigned long long)c->effort.most, text.len);
}

rlx_status tok_cut(const struct tok_cutter *c, rlx_str text, tok_word_fn each, void *user,
                   struct diag *d)
{
    enum { STEPS_PER_BYTE = 256, STEPS_LEAST = 1 << 20 };
    struct cutting cutting = {c, each, user, d, {.most = STEPS_LEAST}};

    cutting.effort.most += (uint64_t)text.len * STEPS_PER_BYTE;
    if (c->count == 0)
        return text.len ? each(user, text) : RLX_OK;
    return cut(&cutting, 0, text);
}
