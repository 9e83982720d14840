/* template.c: fuzzes chat templates: one that is taken writes a text whose spans are all of it, and
 * in which nothing that a user wrote counts as the template's; one that is refused, when it is read
 * or when it runs, has a sentence why. A NUL ends the template; what follows are its variables. */
#include <string.h>

#include "limits.h"
#include "rlx/template.h"
#include "targets.h"

static void need(bool held)
{
    if (!held)
        abort();
}

#define MARK "\xee\x80\x80" /* whoever else writes its first byte shows it in the source */

static const char usual[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"Be " MARK "\\n\"},"
    "{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"" MARK "\"}]},"
    "{\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"" MARK "\","
    "\"function\": {\"name\": \"f" MARK "\", \"arguments\": {\"" MARK
    "\": [1, 2.5, true, null]}}}]}],"
    "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"" MARK "\"}}],"
    "\"s\": \"a" MARK " B\", \"l\": [3, 1, 2], \"d\": {\"b\": 1, \"" MARK "\": {}}, \"n\": 7}";

static void check_spans(const rlx_rendered *r, bool marked)
{
    size_t at = 0;

    for (size_t i = 0; i < r->span_count; at += r->span[i++].len) {
        need(r->span[i].len > 0 && r->span[i].len <= r->text.len - at);
        need(i == 0 || r->span[i].data != r->span[i - 1].data);
        need(!marked || r->span[i].data || !memchr(r->text.ptr + at, 0xee, r->span[i].len));
    }
    need(at == r->text.len && r->text.ptr[at] == 0);
}

static void render(const rlx_template *t, rlx_str variables, bool marked)
{
    const rlx_chat_desc chat = {RLX_SIZED(rlx_chat_desc),      .variables = variables,
                                .add_generation_prompt = true, .now = 1753920000,
                                .max_steps = 100000,           .max_output = 1 << 18,
                                .max_memory = 16 << 20};
    rlx_rendered r;
    rlx_error err;

    if (rlx_template_render(t, &chat, &r, &err) != RLX_OK) {
        fuzz_need_reason(&err);
        return;
    }
    check_spans(&r, marked);
    rlx_rendered_free(t, &r);
}

void fuzz_template(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    const size_t len = end ? (size_t)(end - data) : size;
    const rlx_str own = {(const char *)data + len + 1, end ? size - len - 1 : 0};
    size_t used = 0;
    const rlx_allocator mem = {fuzz_resize, &used};
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = &mem, .threads = 1};
    rlx_context *ctx = NULL;
    rlx_template *t = NULL;
    rlx_error err;

    if (rlx_context_create(RLX_VERSION, &desc, &ctx, &err) != RLX_OK)
        return;
    if (rlx_template_parse(ctx, (rlx_str){(const char *)data, len}, &t, &err) == RLX_OK) {
        /* An escape can make any character. */
        const bool marked = !end && len && !memchr(data, 0xee, len) && !memchr(data, '\\', len);
        render(t, end ? own : (rlx_str){usual, sizeof usual - 1}, marked);
        rlx_template_close(t);
    } else
        fuzz_need_reason(&err);
    rlx_context_destroy(ctx);
    need(used == 0);
}
