/* ir_text.c: fuzzes the text form: whatever parses must print as text that prints as itself, can be
 * drawn, compiled and, where it is small, run. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlx/custom.h"
#include "run_model.h"
#include "targets.h"

struct printed {
    char *at;
    size_t len;
};

static void keep(void *user, const char *text, size_t len)
{
    struct printed *p = user;
    char *grown = realloc(p->at, p->len + len + 1);

    if (!grown)
        abort();
    memcpy(grown + p->len, text, len);
    p->at = grown;
    p->len += len;
    p->at[p->len] = 0;
}

static void ignore(void *user, const char *text, size_t len)
{
    (void)user, (void)text, (void)len;
}

static void demand(rlx_status s, const rlx_error *err, const char *what, const struct printed *p)
{
    if (s == RLX_OK)
        return;
    fprintf(stderr, "%s: %s\n%s\n", what, err->message, p->at ? p->at : "");
    abort();
}

static void round_trip(rlx_context *ctx, const rlx_model *m, bool types)
{
    struct printed first = {0}, second = {0};
    rlx_model *again = NULL;
    rlx_error err = {0};

    demand(rlx_model_print(m, false, types, keep, &first, &err), &err, "print", &first);
    demand(rlx_model_parse(ctx, (rlx_str){first.at, first.len}, &again, &err), &err,
           "what was printed does not parse", &first);
    demand(rlx_model_print(again, false, types, keep, &second, &err), &err, "print", &first);
    if (first.len != second.len || memcmp(first.at, second.at, first.len) != 0) {
        fprintf(stderr, "printed:\n%s\nparsed and printed again:\n%s\n", first.at, second.at);
        abort();
    }
    rlx_model_destroy(again);
    free(first.at);
    free(second.at);
}

/* The op that custom.rlx names. */
static rlx_status infer_blur(void *user, const rlx_tensor *in, int32_t in_count, const void *attrs,
                             size_t attrs_size, rlx_tensor *out, char *message)
{
    (void)user, (void)in_count, (void)attrs, (void)attrs_size;
    message[0] = 0;
    *out = in[0];
    return RLX_OK;
}

static rlx_status blur(void *user, const rlx_tensor *in, int32_t in_count, const void *attrs,
                       size_t attrs_size, rlx_tensor *out)
{
    (void)user, (void)in_count, (void)attrs, (void)attrs_size;
    if (out->bytes)
        memcpy(out->data, in[0].data, out->bytes);
    return RLX_OK;
}

/* Anew, with as much memory as a stranger's graph gets. */
static void run_text(const rlx_context_desc *other, rlx_str text)
{
    size_t used = 0;
    const rlx_allocator mem = {fuzz_resize, &used};
    rlx_context_desc desc = *other;
    rlx_context *ctx = NULL;
    rlx_model *m = NULL;

    desc.allocator = &mem;
    if (rlx_context_create(RLX_VERSION, &desc, &ctx, NULL) == RLX_OK &&
        rlx_model_parse(ctx, text, &m, NULL) == RLX_OK)
        fuzz_run_model(ctx, m);
    rlx_model_destroy(m);
    rlx_context_destroy(ctx);
    if (used)
        abort();
}

void fuzz_ir_text(const uint8_t *data, size_t size)
{
    const rlx_custom_op op = {RLX_SIZED(rlx_custom_op), .name = "blur", .inputs = 1,
                              .infer = infer_blur, .cpu = blur};
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .custom_ops = &op,
                                   .custom_op_count = 1, .threads = 1};
    const rlx_str text = {size ? (const char *)data : "", size};
    rlx_context *ctx = NULL;
    rlx_model *m = NULL;
    rlx_error err = {0};

    if (rlx_context_create(RLX_VERSION, &desc, &ctx, &err) != RLX_OK)
        return;
    if (rlx_model_parse(ctx, text, &m, &err) == RLX_OK) {
        round_trip(ctx, m, false);
        round_trip(ctx, m, true);
        if (rlx_model_draw(m, RLX_PICTURE_SVG, ignore, NULL, &err) != RLX_OK ||
            rlx_model_draw(m, RLX_PICTURE_DOT, ignore, NULL, &err) != RLX_OK)
            abort();
        run_text(&desc, text);
    } else if (err.status == RLX_ERROR_FORMAT && (err.message[0] < '1' || err.message[0] > '9')) {
        /* there is no line and column in front */
        fprintf(stderr, "%s: %s\n", rlx_status_name(err.status), err.message);
        abort();
    }
    rlx_model_destroy(m);
    rlx_context_destroy(ctx);
}
