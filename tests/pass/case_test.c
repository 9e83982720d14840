/* case_test.c: with fuse_*.case, move_norm_reshape.case and mark_regions.case line 4 of runtime.md
 * 10: every tests/pass/cases/NAME.case: a graph, the passes of its first line, the graph after,
 * or the word "unchanged". A file may hold several, each from a line "# rlx opt" on; lines of "==="
 * between them are for the eye. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../test.h"
#include "rlx/tools.h"

struct printed {
    char text[16384];
    size_t len;
};

static void collect(void *user, const char *text, size_t len)
{
    struct printed *p = user;

    if (p->len + len < sizeof p->text) {
        memcpy(p->text + p->len, text, len);
        p->len += len;
    }
    p->text[p->len] = 0;
}

static bool print(struct test *t, const rlx_model *m, struct printed *out)
{
    rlx_error err;

    out->len = 0;
    return expect_ok(t, rlx_model_print(m, false, false, collect, out, &err));
}

/* The value after that flag in the first line. */
static bool flag_value(const char *source, const char *flag, char *out, size_t size)
{
    size_t line = strcspn(source, "\n");
    const char *at = strstr(source, flag);

    if (!at || (size_t)(at - source) >= line)
        return false;
    at += strlen(flag);
    snprintf(out, size, "%.*s", (int)strcspn(at, " \n"), at);
    return true;
}

/* The passes stand after --pass= in the first line; --device=D and --precision=P after them. */
static void run_case(struct test *t, rlx_context *ctx, char *source)
{
    char *after = strstr(source, "\n---\n"), passes[256], word[128];
    rlx_session_desc desc = {RLX_SIZED(rlx_session_desc)};
    rlx_model *before = NULL, *made = NULL, *want = NULL;
    rlx_device *dev = NULL;
    rlx_error err = {0};
    static struct printed got, expected;

    require(t, after && flag_value(source, "--pass=", passes, sizeof passes));
    *after = 0;
    if (flag_value(source, "--device=", word, sizeof word))
        expect_ok(t, rlx_device_open(ctx, word, &dev, &err));
    if (flag_value(source, "--precision=", word, sizeof word))
        expect_ok(t, rlx_precision_parse(word, &desc, &err));
    const char *graph = strchr(source, '\n') + 1;
    const char *wanted = strncmp(after + 5, "unchanged", 9) ? after + 5 : graph;
    if (rlx_model_parse(ctx, rlx_cstr(graph), &before, &err) != RLX_OK ||
        rlx_model_transform_for(before, passes, dev, &desc, &made, &err) != RLX_OK ||
        rlx_model_parse(ctx, rlx_cstr(wanted), &want, &err) != RLX_OK)
        fail(t, "%s, in %.200s", err.message, graph);
    else if (print(t, made, &got) && print(t, want, &expected))
        expect_str(t, got.text, expected.text);
    rlx_model_destroy(before);
    rlx_model_destroy(made);
    rlx_model_destroy(want);
    rlx_device_close(dev);
}

static void run_file(struct test *t, rlx_context *ctx, char *text)
{
    while (text) {
        char *next = strstr(text + 1, "\n# rlx opt");
        if (next)
            *next++ = 0;
        run_case(t, ctx, text);
        text = next;
    }
}

TEST(pass, cases)
{
    DIR *folder = opendir(test_source(t, "tests/pass/cases"));
    rlx_context *ctx = NULL;
    struct dirent *entry;
    int count = 0;

    require(t, folder != NULL);
    expect_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, NULL));
    while ((entry = readdir(folder)) != NULL) {
        char path[512];
        size_t len;
        if (!strstr(entry->d_name, ".case"))
            continue;
        snprintf(path, sizeof path, "tests/pass/cases/%s", entry->d_name);
        test_note(t, "%s", path);
        const char *text = test_read(t, test_source(t, path), &len);
        char *copy = text ? strdup(text) : NULL;
        for (char *at = copy, *next; at; at = next) {
            next = strstr(at, "\n===\n");
            if (next)
                *next = 0, next += 5;
            run_file(t, ctx, at);
        }
        free(copy);
        count++;
    }
    closedir(folder);
    rlx_context_destroy(ctx);
    expect(t, count >= 6);
}
