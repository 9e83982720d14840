/* special_tokens.c: which tokens mean something: those the metadata names, those known by their
 * text, and those that end what a model generates (llm-tokenizers.md 4). */
#include <string.h>

#include "text/tokenizer.h"

static uint32_t find(const struct rlx_tokenizer *t, const char *text)
{
    return tok_find(t, rlx_cstr(text));
}

static bool has(const struct rlx_tokenizer *t, const char *text)
{
    return find(t, text) != TOK_NONE;
}

/* ---- ids --------------------------------------------------------------------------------- */

static void default_id(struct rlx_tokenizer *t, rlx_special_token which, int32_t id)
{
    t->special[which] = id >= 0 && (uint32_t)id < t->vocab ? id : -1;
}

static void default_ids(struct rlx_tokenizer *t)
{
    const struct tok_kind *k = t->kind;
    bool no_bos = t->pre && (t->pre->flags & PRE_NO_BOS);

    for (size_t i = 0; i < RLX_SPECIAL_count; i++)
        t->special[i] = -1;
    default_id(t, RLX_SPECIAL_bos, no_bos ? -1 : k->bos);
    default_id(t, RLX_SPECIAL_eos, k->eos);
    default_id(t, RLX_SPECIAL_unk, k->unk);
    default_id(t, RLX_SPECIAL_sep, k->sep);
    default_id(t, RLX_SPECIAL_pad, k->pad);
    default_id(t, RLX_SPECIAL_cls, k->cls);
    default_id(t, RLX_SPECIAL_mask, k->mask);
}

static rlx_status read_ids(struct rlx_tokenizer *t, struct diag *d)
{
    static const char *const keys[] = {
#define X(name, key) "ggml." key "_token_id",
        RLX_SPECIAL_TOKEN_MAP(X)
#undef X
    };
    static const struct {
        const char *key;
        rlx_special_token which;
    } old[] = {{"ggml.prefix_token_id", RLX_SPECIAL_fim_pre},
               {"ggml.suffix_token_id", RLX_SPECIAL_fim_suf},
               {"ggml.middle_token_id", RLX_SPECIAL_fim_mid}};

    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        TRY(tok_meta_id(t, old[i].key, &t->special[old[i].which], d));
    for (size_t i = 0; i < RLX_SPECIAL_count; i++)
        TRY(tok_meta_id(t, keys[i], &t->special[i], d));
    return RLX_OK;
}

/* ---- by text ----------------------------------------------------------------------------- */

enum { MOST_NAMES = 12 };
static const struct {
    rlx_special_token which;
    const char *text[MOST_NAMES];
} names[] = {
    {RLX_SPECIAL_eot,
     {"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>",
      "<EOT>", "_<EOT>", "[EOT]", "<\357\275\234end\342\226\201of\342\226\201sentence\357\275\234>",
      "<end_of_utterance>"}},
    {RLX_SPECIAL_eom, {"<|eom_id|>"}},
    {RLX_SPECIAL_fim_pre,
     {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>",
      "<\357\275\234fim\342\226\201begin\357\275\234>", "<PRE>", "\xe2\x96\x81<PRE>",
      "<|code_prefix|>", "<|prefix|>"}},
    {RLX_SPECIAL_fim_suf,
     {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>",
      "<\357\275\234fim\342\226\201hole\357\275\234>", "<SUF>", "\xe2\x96\x81<SUF>",
      "<|code_suffix|>", "<|suffix|>"}},
    {RLX_SPECIAL_fim_mid,
     {"<|fim_middle|>", "<fim-middle>", "<fim_middle>",
      "<\357\275\234fim\342\226\201end\357\275\234>", "<MID>", "\xe2\x96\x81<MID>",
      "<|code_middle|>", "<|middle|>"}},
    {RLX_SPECIAL_fim_pad, {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>"}},
    {RLX_SPECIAL_fim_rep, {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}},
    {RLX_SPECIAL_fim_sep, {"<|file_sep|>"}},
};

static void ids_by_text(struct rlx_tokenizer *t)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; k < MOST_NAMES && names[i].text[k] && t->special[names[i].which] < 0;
             k++) {
            uint32_t id = find(t, names[i].text[k]);
            if (id != TOK_NONE)
                t->special[names[i].which] = (int32_t)id;
        }
}

/* ---- what ends --------------------------------------------------------------------------- */

static const char *const endings[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<\357\275\234end\342\226\201of\342\226\201sentence\357\275\234>",
    "[e~["};

static void mark_endings(struct rlx_tokenizer *t)
{
    static const rlx_special_token by_id[] = {RLX_SPECIAL_eos,     RLX_SPECIAL_eot,
                                              RLX_SPECIAL_eom,     RLX_SPECIAL_fim_pad,
                                              RLX_SPECIAL_fim_rep, RLX_SPECIAL_fim_sep};
    /* There, a turn goes on after <|end|>. */
    bool channels = (has(t, "<|return|>") && has(t, "<|call|>")) ||
                    (has(t, "<|calls|>") && has(t, "<|flush|>"));
    bool tools = has(t, "<|tool_response>"); /* there, </s> is ordinary text */

    for (size_t i = 0; i < sizeof by_id / sizeof *by_id; i++)
        if (t->special[by_id[i]] >= 0)
            t->mark[t->special[by_id[i]]] |= TOK_MARK_ENDS;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        uint32_t id = find(t, endings[i]);
        if (id == TOK_NONE)
            continue;
        t->mark[id] |= TOK_MARK_ENDS;
        t->type[id] = RLX_TOKEN_CONTROL;
    }
    uint32_t end = find(t, "<|end|>"), s = find(t, "</s>");
    if (channels && end != TOK_NONE) {
        t->mark[end] &= (uint8_t)~TOK_MARK_ENDS;
        t->type[end] = RLX_TOKEN_USER_DEFINED;
    }
    if (tools && s != TOK_NONE) {
        t->mark[s] &= (uint8_t)~TOK_MARK_ENDS;
        t->type[s] = RLX_TOKEN_NORMAL;
    }
}

/* ---- types ------------------------------------------------------------------------------- */

static bool contains(rlx_str s, const char *part)
{
    return memmem(s.ptr, s.len, part, strlen(part)) != NULL;
}

static void correct_types(struct rlx_tokenizer *t)
{
    static const char *const printed[] = {"<|channel|>", "<|message|>", "<|start|>",
                                          "<|constrain|>"};

    if (has(t, "<|return|>") && has(t, "<|call|>"))
        for (size_t i = 0; i < sizeof printed / sizeof *printed; i++) {
            uint32_t id = find(t, printed[i]);
            if (id != TOK_NONE)
                t->type[id] = RLX_TOKEN_USER_DEFINED;
        }
    for (uint32_t i = 0; i < t->vocab; i++)
        if (t->type[i] == RLX_TOKEN_CONTROL && contains(t->text[i], "unused"))
            t->type[i] = RLX_TOKEN_UNUSED;
}

/* Which tokens eat the spaces beside them: no metadata says so, only names do. */
static void mark_eaters(struct rlx_tokenizer *t)
{
    static const char *const left[] = {"jina-v2-de", "jina-v2-es", "jina-v2-code", "nomic-bert-moe",
                                       "jina-bert-v3"};
    rlx_str pre = {0};

    if (tok_meta_str(t, "ggml.pre", &pre, NULL) != RLX_OK)
        return;
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        if (str_eq(pre, rlx_cstr(left[i])) && has(t, "<mask>"))
            t->mark[find(t, "<mask>")] |= TOK_MARK_EATS_LEFT;
    if (str_eq(pre, STR("modern-bert")) && has(t, "[MASK]"))
        t->mark[find(t, "[MASK]")] |= TOK_MARK_EATS_LEFT;
    if (!contains(t->name, "phi-3") && !contains(t->name, "phi3"))
        return;
    for (uint32_t i = 0; i < t->vocab; i++)
        if (t->type[i] == RLX_TOKEN_CONTROL || t->type[i] == RLX_TOKEN_USER_DEFINED ||
            t->type[i] == RLX_TOKEN_UNKNOWN)
            t->mark[i] |= TOK_MARK_EATS_RIGHT;
    static const char *const not [] = {"<unk>", "<s>", "<|endoftext|>"};
    for (size_t i = 0; i < sizeof not / sizeof *not ; i++)
        if (has(t, not [i]))
            t->mark[find(t, not [i])] &= (uint8_t)~TOK_MARK_EATS_RIGHT;
}

rlx_status tok_special_ids(struct rlx_tokenizer *t, struct diag *d)
{
    default_ids(t);
    TRY(read_ids(t, d));
    ids_by_text(t);
    mark_endings(t);
    correct_types(t);
    mark_eaters(t);
    t->add_bos = t->kind->add_bos || (t->pre && (t->pre->flags & PRE_BOS));
    t->add_eos = t->kind->add_eos;
    t->space_prefix = t->kind->space_prefix;
    TRY(tok_meta_bool(t, "ggml.add_bos_token", &t->add_bos, d));
    TRY(tok_meta_bool(t, "ggml.add_eos_token", &t->add_eos, d));
    TRY(tok_meta_bool(t, "ggml.add_space_prefix", &t->space_prefix, d));
    t->add_bos |= t->kind->always_bos;
    if (t->kind->cls_sep) {
        t->special[RLX_SPECIAL_bos] = t->special[RLX_SPECIAL_cls];
        t->add_sep = true;
    }
    return RLX_OK;
}
