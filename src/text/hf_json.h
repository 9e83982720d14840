/* hf_json.h: a tokenizer.json: byte-level BPE, as Hugging Face's programs keep it. */
#ifndef TEXT_HF_JSON_H
#define TEXT_HF_JSON_H

#include "text/tokenizer.h"

struct hf_token {
    rlx_str text;
    uint32_t id;
    uint8_t type;
};

/* What the file says, in the arena of whoever reads it. */
struct hf_file {
    const rlx_allocator *mem;
    struct arena arena;
    VEC(struct hf_token) token; /* of the model, and those added */
    VEC(rlx_str) merge;         /* "left right" */
    struct tok_pre pre;         /* steps; flags */
    size_t steps;
    bool bytes;       /* some step is byte-level */
    rlx_str bos, eos; /* what stands before and after a text; len 0: nothing */
};

rlx_status hf_read(struct hf_file *f, rlx_str text, struct diag *d);
void hf_free(struct hf_file *f);
/* The tokenizer of such a file. */
rlx_status tok_from_json(rlx_str text, const rlx_allocator *mem, struct rlx_tokenizer **out,
                         struct diag *d);

#endif
