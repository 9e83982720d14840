/* template_world.h: what tests of templates share: a text rendered, its spans, its failure. */
#ifndef TESTS_TEMPLATE_WORLD_H
#define TESTS_TEMPLATE_WORLD_H

#include "rlx/template.h"
#include "text/text_world.h"

/* What comes out, as text: "plain" for the template's, "{data}" in brackets where spans is set, or
 * "[message]" where it fails. */
static inline rlx_status render_into(rlx_context *ctx, const char *source,
                                     const rlx_chat_desc *chat, bool spans, char *out, size_t room)
{
    rlx_template *t;
    rlx_rendered r;
    rlx_error err;
    size_t len = 0, at = 0;

    out[0] = 0;
    rlx_status s = rlx_template_parse(ctx, rlx_cstr(source), &t, &err);
    if (s == RLX_OK) {
        s = rlx_template_render(t, chat, &r, &err);
        for (size_t i = 0; s == RLX_OK && i < r.span_count && len + 3 < room; i++) {
            const bool data = spans && r.span[i].data;
            size_t part = r.span[i].len < room - len - 3 ? r.span[i].len : room - len - 3;
            if (data)
                out[len++] = '{';
            memcpy(out + len, r.text.ptr + at, part);
            len += part;
            if (data)
                out[len++] = '}';
            out[len] = 0;
            at += r.span[i].len;
        }
        if (s == RLX_OK)
            rlx_rendered_free(t, &r);
        rlx_template_close(t);
    }
    if (s != RLX_OK)
        snprintf(out, room, "[%s]", err.message);
    return s;
}

#endif
