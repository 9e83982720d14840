/* text_check.h: parse, print, compare: what the tests of the text form share. */
#ifndef TESTS_IR_TEXT_CHECK_H
#define TESTS_IR_TEXT_CHECK_H

#include "ir/custom.h"
#include "ir/text/text.h"
#include "test.h"

static inline rlx_status blur_infer(void *user, const rlx_tensor *in, int32_t in_count,
                                    const void *attrs, size_t attrs_size, rlx_tensor *out,
                                    char *message)
{
    (void)user, (void)in_count, (void)attrs, (void)attrs_size;
    message[0] = 0;
    *out = in[0];
    return RLX_OK;
}

static const rlx_custom_op blur = {RLX_SIZED(rlx_custom_op), .name = "blur", .inputs = 1,
                                   .infer = blur_infer};
static const struct ir_customs customs = {.op = &blur, .count = 1};
static const struct text_parse_options options = {.customs = &customs};

/* NULL, with a failure noted, if it does not parse. */
static inline struct ir_module *parse(struct test *t, const char *source)
{
    struct ir_module *m = NULL;
    struct diag d;

    diag_init(&d, "parse");
    if (ir_parse(rlx_cstr(source), &options, mem_default(), &m, &d) != RLX_OK)
        fail(t, "%s: %s", rlx_status_name(d.first.status), d.first.message);
    return m;
}

/* To be freed with text_free. */
static inline struct text print(struct test *t, const struct ir_module *m, bool types, bool elide)
{
    struct text_print_options o = {.types = types, .elide = elide};
    struct text out;
    struct diag d;

    diag_init(&d, "print");
    text_init(&out, mem_default());
    expect_ok(t, ir_print(m, &o, &out, &d));
    return out;
}

/* Prints as `want` and that text prints as itself; want NULL: whatever it is at first. */
static inline void expect_print(struct test *t, const char *source, const char *want)
{
    struct ir_module *m = parse(t, source), *again;

    if (!m)
        return;
    for (int types = 0; types < 2; types++) {
        struct text first = print(t, m, types, false);
        if (want && !types)
            expect_str(t, first.at, want);
        again = parse(t, first.at);
        if (again) {
            struct text second = print(t, again, types, false);
            expect_str(t, second.at, first.at);
            text_free(&second);
            struct diag d;
            diag_init(&d, "verify");
            expect_ok(t, ir_verify(again, &d));
            ir_module_destroy(again);
        }
        text_free(&first);
    }
    ir_module_destroy(m);
}

static inline void expect_refusal(struct test *t, const char *source, rlx_status status,
                                  const char *part)
{
    struct ir_module *m = NULL;
    struct diag d;

    diag_init(&d, "parse");
    expect_status(t, ir_parse(rlx_cstr(source), &options, mem_default(), &m, &d), status);
    expect_error(t, status, part, &d.first);
    expect(t, m == NULL);
    ir_module_destroy(m);
}

#endif
