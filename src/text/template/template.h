/* template.h: chat templates, as the rest of the library sees them: rlx/template.h with arguments
 * checked. */
#ifndef TEXT_TEMPLATE_TEMPLATE_H
#define TEXT_TEMPLATE_TEMPLATE_H

#include "base/arena.h"
#include "base/diag.h"
#include "rlx/template.h"

struct tpl_node;
struct rlx_template {
    rlx_context *owner; /* kept by the public functions */
    const rlx_allocator *mem;
    struct arena arena; /* of all below, and of this */
    rlx_str source;     /* line breaks are \n */
    struct tpl_node *body;
};

#define TPL_MOST_SOURCE ((size_t)1 << 20)

rlx_status tpl_create(rlx_str source, const rlx_allocator *mem, struct rlx_template **out,
                      struct diag *d);
void tpl_free(struct rlx_template *t); /* NULL is fine */
rlx_status tpl_render(const struct rlx_template *t, const rlx_chat_desc *chat, rlx_rendered *out,
                      struct diag *d);
void tpl_rendered_free(const struct rlx_template *t, rlx_rendered *r);
rlx_status tpl_encode(const rlx_tokenizer *t, const rlx_rendered *r, rlx_token_ids *out,
                      struct diag *d);

#endif
