/* artefact_forged_test.c: artefacts forged by somebody who knows how, checksums and all: what
 * is in them must still make sense. */
#include <stdio.h>
#include <string.h>

#include "compile/cache/artefact.h"
#include "ir/fingerprint.h"
#include "ir/text/text.h"
#include "rlx/artefact.h"
#include "test.h"

#define MODEL                                                                   \
    "rlx 1\ngraph (input %x: f32[4,8], param %w: f32[8], state %s: f32[8]) {\n" \
    "    %y = mul %x, %w\n    %z = add %y, %s\n    %o = neg %z\n    return %o\n}\n"

struct forge {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_error err;
    const char *good, *bad; /* paths */
    struct arena arena;
    struct artefact_file file;
};

static bool start_with(struct test *t, struct forge *f, const char *model)
{
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    struct file bytes;

    *f = (struct forge){.good = test_temp(t, "good.rlxa"), .bad = test_temp(t, "bad.rlxa")};
    arena_init(&f->arena, mem_default());
    bool ok = expect_ok(t, rlx_context_create(RLX_VERSION, NULL, &f->ctx, &f->err)) &&
              expect_ok(t, rlx_device_open(f->ctx, "cpu", &f->dev, &f->err)) &&
              expect_ok(t, rlx_model_parse(f->ctx, rlx_cstr(model), &m, &f->err)) &&
              expect_ok(t, rlx_session_create(m, f->dev, NULL, &s, &f->err)) &&
              expect_ok(t, rlx_session_save(s, f->good, 0, &f->err)) &&
              expect_ok(t, file_open(&bytes, f->good, FILE_READ, mem_default(), NULL)) &&
              expect_ok(t, artefact_read(&f->file, &bytes, true, &f->arena, NULL));

    rlx_session_destroy(s);
    rlx_model_destroy(m);
    return ok;
}

static bool start(struct test *t, struct forge *f)
{
    return start_with(t, f, MODEL);
}

static void finish(struct forge *f)
{
    file_close(&f->file.file);
    arena_free(&f->arena);
    rlx_device_close(f->dev);
    rlx_context_destroy(f->ctx);
}

static rlx_status load(struct forge *f)
{
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    rlx_status status = rlx_session_load(f->dev, f->bad, NULL, NULL, &m, &s, &f->err);

    rlx_session_destroy(s);
    rlx_model_destroy(m);
    return status;
}

/* One section changed: another text for it (NULL: left out), with or without a second copy. */
struct change {
    uint32_t kind;
    const struct text *text;
    bool twice;
    const uint64_t *fingerprint; /* of section program, instead of its own */
};

static void write_bad(struct test *t, struct forge *f, const struct change *c)
{
    struct artefact_writer w;

    require_ok(t, artefact_begin(&w, f->bad, FILE_FOR_ALL, mem_default(), NULL));
    for (size_t i = 0; i < f->file.section_count; i++) {
        const struct artefact_section *s = &f->file.section[i];
        rlx_str bytes = {(const char *)f->file.file.data + s->offset, (size_t)s->size};
        struct text text;
        text_init(&text, mem_default());
        if (s->kind == SECTION_PROGRAM && c->fingerprint) {
            text_add(&text, (rlx_str){bytes.ptr, 8});
            put_u64(&text, *c->fingerprint);
            text_add(&text, (rlx_str){bytes.ptr + 16, bytes.len - 16});
        } else {
            text_add(&text, bytes);
        }
        const struct text *use = s->kind == c->kind ? c->text : &text;
        for (int k = 0; use && k <= (s->kind == c->kind && c->twice); k++) {
            if (s->kind == SECTION_BLOBS)
                expect_ok(t, artefact_begin_pieces(&w, SECTION_BLOBS, NULL));
            else
                expect_ok(t, artefact_add(&w, s->kind, s->number, use, NULL));
        }
        text_free(&text);
    }
    expect_ok(t, artefact_commit(&w, NULL));
    artefact_writer_free(&w);
}

static void expect_refused(struct test *t, struct forge *f, const struct change *c,
                           const char *part)
{
    test_note(t, "%s: %s", artefact_kind_name(c->kind) ? artefact_kind_name(c->kind) : "?", part);
    write_bad(t, f, c);
    rlx_status s = load(f);
    if (s != RLX_ERROR_FORMAT && s != RLX_ERROR_SHAPE && s != RLX_ERROR_GRAPH)
        fail(t, "%s: %s", rlx_status_name(s), f->err.message);
    expect_contains(t, f->err.message, part);
}

TEST(artefact_forged, as_it_was_it_is_fine)
{
    struct forge f;

    if (start(t, &f)) {
        size_t a, b;
        write_bad(t, &f, &(struct change){0});
        expect_ok(t, load(&f));
        const char *x = test_read(t, f.good, &a), *y = test_read(t, f.bad, &b);
        require(t, x && y && a == b);
        expect_bytes(t, y, x, a);
    }
    finish(&f);
}

/* Another optimised graph, with the fingerprint it has. */
static void expect_graph(struct test *t, struct forge *f, const char *source, const char *part)
{
    struct ir_module *m = NULL;
    uint64_t fingerprint;
    struct text text;

    text_init(&text, mem_default());
    text_add(&text, rlx_cstr(source));
    require_ok(t, ir_parse(rlx_cstr(source), NULL, mem_default(), &m, NULL));
    require_ok(t, ir_fingerprint(m, true, &fingerprint, NULL));
    expect_refused(t, f, &(struct change){.kind = SECTION_OPTIMISED, .text = &text}, "fingerprint");
    expect_refused(
        t, f,
        &(struct change){.kind = SECTION_OPTIMISED, .text = &text, .fingerprint = &fingerprint},
        part);
    ir_module_destroy(m);
    text_free(&text);
}

TEST(artefact_forged, the_graph_must_have_the_ends_of_the_model)
{
    struct forge f;

    if (start(t, &f)) {
#define REST "    %z = add %y, %s\n    %o = neg %z\n    return %o\n}\n"
        /* a param that reaches past the model's */
        expect_graph(t, &f,
                     "rlx 1\ngraph (input %x: f32[4,800], param %w: f32[800], state %s: f32[8]) {\n"
                     "    %m = mul %x, %w\n    %y = narrow %m axis=1 start=0 len=8\n" REST,
                     "input \"x\"");
        expect_graph(t, &f,
                     "rlx 1\ngraph (input %x: f32[4,8], param %w: f32[4,8], state %s: f32[8]) {\n"
                     "    %y = mul %x, %w\n" REST,
                     "param \"w\"");
        expect_graph(t, &f,
                     "rlx 1\ngraph (input %x: f32[4,8], param %w: f32[8], state %s: f32[4,8]) {\n"
                     "    %y = mul %x, %w\n" REST,
                     "state \"s\"");
        expect_graph(t, &f,
                     "rlx 1\ngraph (input %x: f32[4,8], input %w: f32[8], state %s: f32[8]) {\n"
                     "    %y = mul %x, %w\n" REST,
                     "input \"w\"");
        expect_graph(t, &f,
                     "rlx 1\ngraph (input %x: f32[4,8], param %v: f32[8], state %s: f32[8]) {\n"
                     "    %y = mul %x, %v\n" REST,
                     "param \"v\"");
#undef REST
#define HEAD                                                                    \
    "rlx 1\ngraph (input %x: f32[4,8], param %w: f32[8], state %s: f32[8]) {\n" \
    "    %y = mul %x, %w\n    %z = add %y, %s\n"
        expect_graph(t, &f, HEAD "    %o = neg %z\n    return %o, %z\n}\n", "2 outputs");
        expect_graph(t, &f, HEAD "    %o = reshape %z shape=[32]\n    return %o\n}\n", "output 0");
        /* the right ends, but another step: the plan is not its own */
        expect_graph(t, &f, HEAD "    %o = abs %z\n    return %o\n}\n", "not what its model");
        expect_graph(t, &f, HEAD "    %q = neg %z\n    %o = neg %q\n    return %o\n}\n",
                     "not what its model");
#undef HEAD
    }
    finish(&f);
}

/* The file is in order and shows one graph: a stranger must not make it run another. */
TEST(artefact_forged, the_graph_must_be_the_models_own)
{
#define LIMITED(most)                                                                         \
    "rlx 1\ngraph (input %x: f32[4,8]) {\n    %y = clamp %x min=-1 max=" most "\n    return " \
    "%y\n}\n"
    struct forge f;

    if (start_with(t, &f, LIMITED("1")))
        expect_graph(t, &f, LIMITED("2"), "not what its model compiles to");
    finish(&f);
#undef LIMITED
}

TEST(artefact_forged, every_section_counts)
{
    struct forge f;
    struct text text;

    if (start(t, &f)) {
        text_init(&text, mem_default());
        text_add(&text, STR("nonsense"));
        for (size_t i = 0; i < f.file.section_count; i++) {
            uint32_t kind = f.file.section[i].kind;
            if (kind != SECTION_BLOBS && kind != SECTION_PROGRAM)
                expect_refused(t, &f, &(struct change){.kind = kind}, ""); /* left out */
            expect_refused(t, &f, &(struct change){kind, &text, true, NULL}, "twice");
            if (kind != SECTION_BLOBS)
                expect_refused(t, &f, &(struct change){.kind = kind, .text = &text}, "");
        }
        text_free(&text);
    }
    finish(&f);
}

/* More sections than a model has use for. */
TEST(artefact_forged, nothing_may_be_hidden_in_it)
{
    static const struct artefact_section extra[] = {
        {.kind = SECTION_PROGRAM, .number = 7},
        {.kind = SECTION_OPTIMISED, .number = 1},
        {.kind = SECTION_GRAPH, .number = 1},
        {.kind = SECTION_KEY},
        {.kind = 0},
        {.kind = SECTION_END},
        {.kind = UINT32_MAX},
    };
    struct forge f;

    if (start(t, &f)) {
        for (size_t i = 0; i < sizeof extra / sizeof extra[0]; i++) {
            struct artefact_writer w;
            require_ok(t, artefact_begin(&w, f.bad, FILE_FOR_ALL, mem_default(), NULL));
            for (size_t k = 0; k <= f.file.section_count; k++) {
                bool last = k == f.file.section_count;
                const struct artefact_section *s = last ? &extra[i] : &f.file.section[k];
                struct text text;
                text_init(&text, mem_default());
                text_add(&text, (rlx_str){(const char *)f.file.file.data + s->offset,
                                          last ? 0 : (size_t)s->size});
                if (s->kind == SECTION_BLOBS)
                    expect_ok(t, artefact_begin_pieces(&w, SECTION_BLOBS, NULL));
                else
                    expect_ok(t, artefact_add(&w, s->kind, s->number, &text, NULL));
                text_free(&text);
            }
            expect_ok(t, artefact_commit(&w, NULL));
            artefact_writer_free(&w);
            test_note(t, "section %zu", i);
            expect_status(t, load(&f), RLX_ERROR_FORMAT);
        }
    }
    finish(&f);
}
