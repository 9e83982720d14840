/* template.h: chat templates: a conversation as the text that a model was taught on.
 *
 *     rlx_template *t;
 *     rlx_chat_message says[] = {{rlx_cstr("user"), rlx_cstr("Hello")}};
 *     rlx_chat_desc chat = {RLX_SIZED(rlx_chat_desc), .messages = says, .message_count = 1,
 *                           .add_generation_prompt = true};
 *     rlx_rendered r;
 *     rlx_template_from_weights(ctx, w, NULL, &t, &err);
 *     rlx_template_render(t, &chat, &r, &err);
 *     rlx_rendered_encode(tokenizer, &r, &ids, &err);
 *
 * A template is a program in a part of the language Jinja, and comes from a stranger: it reads no
 * files, and what it takes of time and memory is bounded. Of its result we know for each byte
 * whether the template wrote it or a user did, so that nobody can put a message into somebody
 * else's mouth by writing "<|im_end|>". docs/templates.md says what is supported.
 *
 * A template does not change, so any number of threads may use it. It keeps its context. */
#ifndef RLX_TEMPLATE_H
#define RLX_TEMPLATE_H

#ifndef RLX_UNSTABLE
#error "rlx/template.h may change with any version: define RLX_UNSTABLE before including it"
#endif

#include "rlx/text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rlx_template rlx_template;

/* ---- where one comes from ---------------------------------------------------------------- */

/* FORMAT: it is not well formed; UNSUPPORTED: it needs what is not there. Both with line and
 * column. The source is copied. */
RLX_API rlx_status rlx_template_parse(rlx_context *ctx, rlx_str source, rlx_template **out,
                                      rlx_error *err);
/* That of a GGUF file: tokenizer.chat_template, or tokenizer.chat_template.<name>. NAME: the file
 * has none. */
RLX_API rlx_status rlx_template_from_weights(rlx_context *ctx, const rlx_weights *w,
                                             const char *name, rlx_template **out, rlx_error *err);
RLX_API void rlx_template_close(rlx_template *t);           /* NULL is fine */
RLX_API rlx_str rlx_template_source(const rlx_template *t); /* with line breaks as \n */

/* ---- a conversation as text -------------------------------------------------------------- */

typedef struct rlx_chat_message {
    rlx_str role, content;
} rlx_chat_message;

typedef enum rlx_thinking {
    RLX_THINKING_DEFAULT = 0, /* as the template has it: enable_thinking is not defined */
    RLX_THINKING_ON = 1,
    RLX_THINKING_OFF = 2
} rlx_thinking;

/* Texts in JSON may be "none". */
typedef struct rlx_chat_desc {
    uint32_t size;
    const rlx_chat_message *messages;
    size_t message_count;
    /* A JSON object: each member is a variable. "messages" in it, where there are none above, is a
     * list of objects with role, content (text, or a list of parts), tool_calls and so on; other
     * usual names are tools, documents, and whatever the model's makers thought of. */
    rlx_str variables;
    rlx_str tools; /* a JSON array: the variable tools, over that of variables */
    bool add_generation_prompt;
    rlx_thinking thinking;
    /* As the vocabulary spells them; "none": as in variables, or "". */
    rlx_str bos_token, eos_token;
    /* Seconds since 1970 for strftime_now, in the zone that it should tell; 0: templates see no
     * such function, and mostly know what to do without. */
    int64_t now;
    /* What a template may take; 0: 20 million steps, 64 MiB, 512 MiB. LIMIT: it takes more. */
    uint64_t max_steps;
    size_t max_output, max_memory;
} rlx_chat_desc;

/* Bytes that one side wrote. data: content, names, arguments of tools: all strings of a
 * conversation but roles, and all of `variables` but those whose name ends in "_token". */
typedef struct rlx_text_span {
    size_t len;
    bool data;
} rlx_text_span;
typedef struct rlx_rendered {
    rlx_str text;              /* followed by a NUL */
    const rlx_text_span *span; /* one after the other; neighbours differ in data */
    size_t span_count;
} rlx_rendered;

/* ARGUMENT: the template raises an exception, or cannot take these values; LIMIT; each with line
 * and column. FORMAT: the JSON is none. *out is to be freed. */
RLX_API rlx_status rlx_template_render(const rlx_template *t, const rlx_chat_desc *chat,
                                       rlx_rendered *out, rlx_error *err);
RLX_API void rlx_rendered_free(const rlx_template *t, rlx_rendered *r);

/* Its tokens, appended to *out. Control tokens, and user-defined ones that look like <|this|>, are
 * taken only where the template spells all of one; in other respects it is encoded as one text, so
 * a conversation without such texts in it gives what rlx_tokenizer_encode with RLX_ENCODE_PARSE
 * gives. No tokens are added: templates write their own. */
RLX_API rlx_status rlx_rendered_encode(const rlx_tokenizer *t, const rlx_rendered *r,
                                       rlx_token_ids *out, rlx_error *err);

#ifdef __cplusplus
}
#endif
#endif
