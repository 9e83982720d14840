/* text.h: tokenizers, as the rest of the library sees them: rlx/text.h with arguments checked. */
#ifndef TEXT_H
#define TEXT_H

#include "base/diag.h"
#include "import/weight_file.h"
#include "rlx/text.h"

struct tok_pre;
/* From metadata as in GGUF, of which tokenizer.* is copied. name: of the model, or "". pre: how
 * text is cut into words; NULL: as the metadata says. */
rlx_status tok_create(const rlx_meta *meta, size_t count, rlx_str name, const struct tok_pre *pre,
                      const rlx_allocator *mem, struct rlx_tokenizer **out, struct diag *d);
rlx_status tok_from_weights(const struct weights *w, const rlx_allocator *mem,
                            struct rlx_tokenizer **out, struct diag *d);
/* The bytes of a GGUF file or of a tokenizer.json. */
rlx_status tok_from_bytes(const uint8_t *bytes, size_t size, const rlx_allocator *mem,
                          struct rlx_tokenizer **out, struct diag *d);
void tok_free(struct rlx_tokenizer *t); /* NULL is fine */
rlx_status tok_bpe_train(rlx_str text, const rlx_bpe_desc *desc, const rlx_allocator *mem,
                         struct rlx_tokenizer **out, struct diag *d);

void tok_describe(const struct rlx_tokenizer *t, rlx_tokenizer_info *out);
bool tok_at(const struct rlx_tokenizer *t, int32_t id, rlx_token *out);
rlx_status tok_encode(const struct rlx_tokenizer *t, rlx_str text, uint32_t flags,
                      rlx_token_ids *out, struct diag *d);
/* A text of several parts (rlx/template.h): as with RLX_ENCODE_PARSE, but no control token, and no
 * user-defined one that looks like <|this|>, is taken that has a byte of data. */
struct rlx_text_span;
rlx_status tok_encode_spans(const struct rlx_tokenizer *t, rlx_str text,
                            const struct rlx_text_span *span, size_t count, rlx_token_ids *out,
                            struct diag *d);
rlx_status tok_stream_add(const struct rlx_tokenizer *t, rlx_token_stream *s, int32_t id,
                          rlx_write_fn write, void *user, struct diag *d);
void tok_stream_end(rlx_token_stream *s, rlx_write_fn write, void *user);

#endif
