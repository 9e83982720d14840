/* hf_read.c: reads a tokenizer.json:
 *
 *     added_tokens    [{id, content, special, ..}]   tokens that text is cut at
 *     normalizer      null, or NFC, which is left to the caller
 *     pre_tokenizer   Split by a pattern, ByteLevel, Digits, or a Sequence of those
 *     post_processor  TemplateProcessing: what stands before and after a text
 *     model           BPE: vocab {text: id}, merges ["left right"] or [["left", "right"]]
 *
 * What changes ids and is not known is UNSUPPORTED. */
#include <string.h>

#include "base/json_read.h"
#include "text/hf_json.h"

struct hf {
    struct json_in j;
    struct hf_file *f;
    struct diag *d;
};

typedef rlx_status (*hf_key_fn)(struct hf *h, rlx_str key, void *user);

/* Every member of an object. */
static rlx_status each_key(struct hf *h, hf_key_fn fn, void *user)
{
    rlx_str key;

    TRY(json_read_open(&h->j, '{'));
    for (bool first = true, more;; first = false) {
        TRY(json_read_more(&h->j, '}', first, &more));
        if (!more)
            return RLX_OK;
        TRY(json_read_key(&h->j, &key));
        TRY(fn(h, key, user));
    }
}

typedef rlx_status (*hf_item_fn)(struct hf *h, void *user);

static rlx_status each_item(struct hf *h, hf_item_fn fn, void *user)
{
    TRY(json_read_open(&h->j, '['));
    for (bool first = true, more;; first = false) {
        TRY(json_read_more(&h->j, ']', first, &more));
        if (!more)
            return RLX_OK;
        TRY(fn(h, user));
    }
}

/* The text of a value of any kind. */
static rlx_status read_raw(struct hf *h, rlx_str *out)
{
    struct json_in *j = &h->j;

    while (j->pos < j->text.len && strchr(" \t\n\r", j->text.ptr[j->pos]))
        j->pos++;
    size_t from = j->pos;
    TRY(json_read_skip(j));
    *out = (rlx_str){j->text.ptr + from, j->pos - from};
    return RLX_OK;
}

static bool is_null(const struct hf *h)
{
    size_t at = h->j.pos;

    while (at < h->j.text.len && strchr(" \t\n\r", h->j.text.ptr[at]))
        at++;
    return str_starts((rlx_str){h->j.text.ptr + at, h->j.text.len - at}, STR("null"));
}

static rlx_status read_bool(struct hf *h, bool *out)
{
    rlx_str raw;

    TRY(read_raw(h, &raw));
    *out = str_eq(raw, STR("true"));
    return *out || str_eq(raw, STR("false")) ? RLX_OK
                                             : json_read_bad(&h->j, "true or false was expected");
}

static rlx_status unsupported(struct hf *h, const char *what, rlx_str which)
{
    return diag_fail(h->d, RLX_ERROR_UNSUPPORTED, "tokenizer.json: %s \"%.*s\" is not supported",
                     what, STR_ARG(which));
}

/* ---- tokens ------------------------------------------------------------------------------ */

static rlx_status read_id(struct hf *h, uint32_t *out)
{
    uint64_t id;

    TRY(json_read_u64(&h->j, &id));
    if (id >= TOK_MOST_TOKENS)
        return json_read_bad(&h->j, "an id beyond 16777216");
    *out = (uint32_t)id;
    return RLX_OK;
}

static rlx_status add_token(struct hf *h, const struct hf_token *t)
{
    if (!vec_room(h->f->mem, &h->f->token))
        return diag_no_memory(h->d, sizeof *t);
    h->f->token.at[h->f->token.len++] = *t;
    return RLX_OK;
}

static rlx_status added_key(struct hf *h, rlx_str key, void *user)
{
    struct hf_token *t = user;
    bool special;

    if (str_eq(key, STR("id")))
        return read_id(h, &t->id);
    if (str_eq(key, STR("content")))
        return json_read_string(&h->j, &t->text);
    if (!str_eq(key, STR("special")))
        return json_read_skip(&h->j);
    TRY(read_bool(h, &special));
    t->type = special ? RLX_TOKEN_CONTROL : RLX_TOKEN_USER_DEFINED;
    return RLX_OK;
}

static rlx_status added_item(struct hf *h, void *user)
{
    struct hf_token t = {.type = RLX_TOKEN_USER_DEFINED};

    (void)user;
    TRY(each_key(h, added_key, &t));
    return t.text.len ? add_token(h, &t) : json_read_bad(&h->j, "an added token without content");
}

static rlx_status vocab_key(struct hf *h, rlx_str key, void *user)
{
    struct hf_token t = {.text = key, .type = RLX_TOKEN_NORMAL};

    (void)user;
    TRY(read_id(h, &t.id));
    return add_token(h, &t);
}

/* ---- merges ------------------------------------------------------------------------------ */

static rlx_status pair_item(struct hf *h, void *user)
{
    struct text *t = user;
    rlx_str part;

    TRY(json_read_string(&h->j, &part));
    if (t->len)
        text_add(t, STR(" "));
    text_add(t, part);
    return RLX_OK;
}

static rlx_status merge_item(struct hf *h, void *user)
{
    struct text *t = user;
    rlx_str merge;

    if (!vec_room(h->f->mem, &h->f->merge))
        return diag_no_memory(h->d, sizeof merge);
    while (h->j.pos < h->j.text.len && strchr(" \t\n\r", h->j.text.ptr[h->j.pos]))
        h->j.pos++;
    if (h->j.pos < h->j.text.len && h->j.text.ptr[h->j.pos] == '[') {
        t->len = 0;
        TRY(each_item(h, pair_item, t));
        merge = arena_str(&h->f->arena, (rlx_str){t->at, t->len});
        if (t->failed || !merge.ptr)
            return diag_no_memory(h->d, t->len);
    } else
        TRY(json_read_string(&h->j, &merge));
    h->f->merge.at[h->f->merge.len++] = merge;
    return RLX_OK;
}

static rlx_status read_merges(struct hf *h)
{
    struct text t;

    text_init(&t, h->f->mem);
    rlx_status s = each_item(h, merge_item, &t);
    text_free(&t);
    return s;
}

static rlx_status model_key(struct hf *h, rlx_str key, void *user)
{
    rlx_str text;
    bool on = false;

    (void)user;
    if (str_eq(key, STR("vocab")))
        return each_key(h, vocab_key, NULL);
    if (str_eq(key, STR("merges")))
        return read_merges(h);
    if (str_eq(key, STR("type"))) {
        TRY(json_read_string(&h->j, &text));
        return str_eq(text, STR("BPE")) ? RLX_OK : unsupported(h, "a model of type", text);
    }
    if (str_eq(key, STR("ignore_merges"))) {
        TRY(read_bool(h, &on));
        h->f->pre.flags |= on ? PRE_WHOLE : 0;
        return RLX_OK;
    }
    if (str_eq(key, STR("byte_fallback"))) {
        TRY(read_bool(h, &on));
        return on ? unsupported(h, "a model with", key) : RLX_OK;
    }
    TRY(read_raw(h, &text));
    bool none = str_eq(text, STR("null")) || str_eq(text, STR("\"\""));
    if (!none &&
        (str_eq(key, STR("continuing_subword_prefix")) || str_eq(key, STR("end_of_word_suffix"))))
        return unsupported(h, "a model with", key);
    return RLX_OK;
}

/* ---- how text is cut --------------------------------------------------------------------- */

static rlx_status add_step(struct hf *h, rlx_str pattern)
{
    struct hf_file *f = h->f;

    if (f->steps == TOK_MOST_STEPS)
        return unsupported(h, "a pre_tokenizer of more steps than 6, with", pattern);
    pattern = arena_str(&f->arena, pattern);
    if (!pattern.ptr)
        return diag_no_memory(h->d, pattern.len);
    f->pre.step[f->steps++].pattern = pattern.ptr;
    return RLX_OK;
}

struct cutter { /* a pre_tokenizer; keys come in any order */
    rlx_str type, regex, text, behavior;
    bool invert, individual, use_regex, prefix;
};

static rlx_status pattern_key(struct hf *h, rlx_str key, void *user)
{
    struct cutter *c = user;

    if (str_eq(key, STR("Regex")))
        return json_read_string(&h->j, &c->regex);
    if (str_eq(key, STR("String")))
        return json_read_string(&h->j, &c->text);
    return unsupported(h, "a pattern of kind", key);
}

static rlx_status cutter_item(struct hf *h, void *user);

static rlx_status cutter_key(struct hf *h, rlx_str key, void *user)
{
    struct cutter *c = user;

    if (str_eq(key, STR("type")))
        return json_read_string(&h->j, &c->type);
    if (str_eq(key, STR("pretokenizers")))
        return each_item(h, cutter_item, NULL);
    if (str_eq(key, STR("pattern")))
        return each_key(h, pattern_key, c);
    if (str_eq(key, STR("behavior")))
        return json_read_string(&h->j, &c->behavior);
    if (str_eq(key, STR("invert")))
        return read_bool(h, &c->invert);
    if (str_eq(key, STR("individual_digits")))
        return read_bool(h, &c->individual);
    if (str_eq(key, STR("use_regex")))
        return read_bool(h, &c->use_regex);
    if (str_eq(key, STR("add_prefix_space")))
        return read_bool(h, &c->prefix);
    return json_read_skip(&h->j);
}

/* A text as a pattern. */
static rlx_status add_text(struct hf *h, rlx_str text)
{
    char quoted[256];
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (len + 2 > sizeof quoted)
            return unsupported(h, "a pattern as long as", text);
        if (strchr("\\^$.|?*+()[]{}", text.ptr[i]) && text.ptr[i])
            quoted[len++] = '\\';
        quoted[len++] = text.ptr[i];
    }
    return add_step(h, (rlx_str){quoted, len});
}

static rlx_status take_cutter(struct hf *h, const struct cutter *c)
{
    if (str_eq(c->type, STR("Sequence")))
        return RLX_OK;
    if (c->prefix)
        return unsupported(h, "a pre_tokenizer with", STR("add_prefix_space"));
    if (str_eq(c->type, STR("ByteLevel"))) {
        h->f->bytes = true;
        return c->use_regex ? add_step(h, rlx_cstr(tok_pre_find(STR("gpt-2"))->step[0].pattern))
                            : RLX_OK;
    }
    if (str_eq(c->type, STR("Digits")))
        return add_step(h, c->individual ? STR("\\p{N}") : STR("\\p{N}+"));
    if (!str_eq(c->type, STR("Split")))
        return unsupported(h, "a pre_tokenizer of type", c->type);
    /* What is kept where everything else goes is all there is, if the pattern covers the text. */
    if (!str_eq(c->behavior, STR("Isolated")) &&
        !(str_eq(c->behavior, STR("Removed")) && c->invert))
        return unsupported(h, "a Split whose behavior is", c->behavior);
    return c->regex.len ? add_step(h, c->regex) : add_text(h, c->text);
}

static rlx_status cutter_item(struct hf *h, void *user)
{
    struct cutter c = {.use_regex = true};

    (void)user;
    if (is_null(h))
        return json_read_skip(&h->j);
    TRY(each_key(h, cutter_key, &c));
    return take_cutter(h, &c);
}

/* ---- the rest ---------------------------------------------------------------------------- */

static rlx_status normalizer_item(struct hf *h, void *user);

static rlx_status normalizer_key(struct hf *h, rlx_str key, void *user)
{
    rlx_str type;

    (void)user;
    if (str_eq(key, STR("normalizers")))
        return each_item(h, normalizer_item, NULL);
    if (!str_eq(key, STR("type")))
        return json_read_skip(&h->j);
    TRY(json_read_string(&h->j, &type));
    return str_eq(type, STR("NFC")) || str_eq(type, STR("Sequence"))
               ? RLX_OK
               : unsupported(h, "a normalizer of type", type);
}

static rlx_status normalizer_item(struct hf *h, void *user)
{
    return is_null(h) ? json_read_skip(&h->j) : each_key(h, normalizer_key, user);
}

struct piece { /* of what a template makes of one text */
    rlx_str special;
    bool sequence;
};

static rlx_status piece_id(struct hf *h, rlx_str key, void *user)
{
    struct piece *p = user;

    return str_eq(key, STR("id")) ? json_read_string(&h->j, &p->special) : json_read_skip(&h->j);
}

static rlx_status piece_key(struct hf *h, rlx_str key, void *user)
{
    struct piece *p = user;

    p->sequence = str_eq(key, STR("Sequence"));
    return each_key(h, piece_id, p);
}

static rlx_status piece_item(struct hf *h, void *user)
{
    bool *seen = user;
    struct piece p = {.sequence = false};

    TRY(each_key(h, piece_key, &p));
    if (p.sequence)
        *seen = true;
    else if (*seen ? h->f->eos.len : h->f->bos.len)
        return unsupported(h, "a template that adds, beside another token,", p.special);
    else
        *(*seen ? &h->f->eos : &h->f->bos) = p.special;
    return RLX_OK;
}

static rlx_status processor_item(struct hf *h, void *user);

static rlx_status processor_key(struct hf *h, rlx_str key, void *user)
{
    bool seen = false;

    (void)user;
    if (str_eq(key, STR("processors")))
        return each_item(h, processor_item, NULL);
    if (str_eq(key, STR("single")))
        return each_item(h, piece_item, &seen);
    return json_read_skip(&h->j);
}

static rlx_status processor_item(struct hf *h, void *user)
{
    return is_null(h) ? json_read_skip(&h->j) : each_key(h, processor_key, user);
}

static rlx_status top_key(struct hf *h, rlx_str key, void *user)
{
    (void)user;
    if (str_eq(key, STR("added_tokens")))
        return each_item(h, added_item, NULL);
    if (str_eq(key, STR("normalizer")))
        return normalizer_item(h, NULL);
    if (str_eq(key, STR("pre_tokenizer")))
        return cutter_item(h, NULL);
    if (str_eq(key, STR("post_processor")))
        return processor_item(h, NULL);
    if (str_eq(key, STR("model")))
        return each_key(h, model_key, NULL);
    return json_read_skip(&h->j);
}

rlx_status hf_read(struct hf_file *f, rlx_str text, struct diag *d)
{
    enum { MAX_DEPTH = 64 };
    struct hf h = {.j = {text, 0, 0, 0, MAX_DEPTH, "tokenizer.json", &f->arena, d}, .f = f, .d = d};

    if (!str_is_utf8(text))
        return diag_fail(d, RLX_ERROR_FORMAT, "tokenizer.json is not UTF-8");
    TRY(each_key(&h, top_key, NULL));
    return json_read_end(&h.j);
}

void hf_free(struct hf_file *f)
{
    vec_free(f->mem, &f->token);
    vec_free(f->mem, &f->merge);
    arena_free(&f->arena);
}
