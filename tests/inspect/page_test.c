/* page_test.c: a model as an HTML page: what is in the file, and what is refused. How it behaves in
 * a browser is in tests/cli/html_test.py. */
#include <stdlib.h>

#include "debug_world.h"

#define NASTY                                                                                      \
    "rlx 1\ngraph (input %x \"</script><script>x()</script>\": f32[4], param %w "                  \
    "\"a&b'\\\"\\x01\": "                                                                          \
    "f32[4], input %f: bool[]) {\n    %a = mul %x, %w\n"                                           \
    "    %i = if %f, %a then_graph=@t else_graph=@e result=0\n    %y = exp %i\n    return %y\n}\n" \
    "graph @t (input %v: f32[4]) { %s = sin %v return %s }\n"                                      \
    "graph @e (input %v: f32[4]) { %c = cos %v return %c }\n"

struct file {
    char *at;
    size_t len;
};

static void keep(void *user, const char *text, size_t len)
{
    struct file *f = user;
    char *more = realloc(f->at, f->len + len + 1);

    if (!more)
        return;
    f->at = more;
    memcpy(f->at + f->len, text, len);
    f->len += len;
    f->at[f->len] = 0;
}

TEST(page, is_one_file_in_which_names_are_text)
{
    const uint64_t ns[8] = {1234567};
    struct world w;
    struct file f = {0};

    if (open_world(t, &w, NASTY, NULL, NULL)) {
        const rlx_page_desc desc = {
            RLX_SIZED(rlx_page_desc), .title = "</title><b>", .note = "<i>",
            .session = w.session,     .step_ns = ns,          .step_count = 8};
        expect_ok(t, rlx_page_write(w.model, &desc, keep, &f, &w.err));
    }
    if (f.at) {
        expect_eq(t, count_of(f.at, "</script>"), 2); /* the page's own */
        expect_eq(t, count_of(f.at, "</title>"), 1);
        expect_eq(t, count_of(f.at, "<b>") + count_of(f.at, "<i>") + count_of(f.at, "x()<"), 0);
        expect_contains(t, f.at, "\\u003c/script\\u003e\\u003cscript\\u003ex()");
        expect_contains(t, f.at, "a\\u0026b'\\\"\\u0001");
        expect_contains(t, f.at, "\"g\":[1,2]"); /* the branches of the if */
        expect_contains(t, f.at, "\"name\":\"as it runs on cpu\"");
        expect_contains(t, f.at, "\"s\":0,\"ns\":1234567");
        expect_eq(t, count_of(f.at, "@DATA@") + count_of(f.at, "@CSS@") + count_of(f.at, "@JS@"),
                  0);
        expect_eq(t, count_of(f.at, "http://") + count_of(f.at, "https://"), 0);
    }
    free(f.at);
    close_world(&w);
}

TEST(page, refuses_what_it_cannot_show)
{
    const char *sized = "rlx 1\ngraph (input %x: f32[n]) { %y = neg %x return %y }\n";
    rlx_page_desc desc = {RLX_SIZED(rlx_page_desc)};
    struct world w, other;
    struct file f = {0};

    if (open_world(t, &w, sized, NULL, NULL) && open_world(t, &other, LOGS, NULL, NULL)) {
        expect_status(t, rlx_page_write(NULL, &desc, keep, &f, &w.err), RLX_ERROR_ARGUMENT);
        desc.size = 0;
        expect_status(t, rlx_page_write(w.model, &desc, keep, &f, &w.err), RLX_ERROR_ARGUMENT);
        desc.size = sizeof desc;
        expect_status(t, rlx_page_write(w.model, &desc, NULL, &f, &w.err), RLX_ERROR_ARGUMENT);
        desc.session = other.session;
        expect_status(t, rlx_page_write(w.model, &desc, keep, &f, &w.err), RLX_ERROR_ARGUMENT);
        desc.session = w.session; /* no size is known yet */
        expect_status(t, rlx_page_write(w.model, &desc, keep, &f, &w.err), RLX_ERROR_STATE);
        expect(t, f.at == NULL);
        desc.session = NULL;
        expect_ok(t, rlx_page_write(w.model, &desc, keep, &f, &w.err));
        expect(t, f.at != NULL);
        close_world(&other);
    }
    free(f.at);
    close_world(&w);
}

static rlx_status write_page(struct test *t, const rlx_allocator *mem, void *user)
{
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = mem};
    struct world w = {0};
    struct file f = {0};
    rlx_error err;

    (void)t, (void)user;
    rlx_status s = rlx_context_create(RLX_VERSION, &desc, &w.ctx, &err);
    if (s == RLX_OK)
        s = rlx_model_parse(w.ctx, rlx_cstr(NASTY), &w.model, &err);
    if (s == RLX_OK)
        s = rlx_page_write(w.model, &(rlx_page_desc){RLX_SIZED(rlx_page_desc), .title = "t"}, keep,
                           &f, &err);
    free(f.at);
    close_world(&w);
    return s;
}

TEST(page, survives_no_memory)
{
    expect_survives_no_memory(t, write_page, NULL);
}

/* The graph after a pass, as a model that outlives the one it was made from. */
TEST(model_after, is_a_model_of_its_own)
{
    const char *graph = "rlx 1\ngraph (input %x: f32[2]) {\n    %a = const f32[2] {1 4}\n"
                        "    %b = sqrt %a\n    %y = mul %x, %b\n    return %y\n}\n";
    struct world w;
    rlx_model *after = NULL;
    char text[4096] = "";

    if (open_world(t, &w, graph, NULL, NULL)) {
        expect_ok(t, rlx_model_after(w.model, "dce", w.dev, &after, &w.err));
        expect_status(t, rlx_model_after(w.model, "nonsense", w.dev, &after, &w.err),
                      RLX_ERROR_NAME);
        expect_status(t, rlx_model_after(NULL, "dce", w.dev, &after, &w.err), RLX_ERROR_ARGUMENT);
        rlx_session_destroy(w.session);
        rlx_model_destroy(w.model);
        w.session = NULL;
        w.model = NULL;
    }
    if (after) {
        expect_ok(t, rlx_model_print(after, false, false, collect, text, &w.err));
        expect_contains(t, text, "const f32[2] {1 2}"); /* folded, and its bytes are still there */
        rlx_model_destroy(after);
    }
    close_world(&w);
}
