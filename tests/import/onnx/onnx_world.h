/* onnx_world.h: ONNX files built field by field, and what the importer makes of them. */
#ifndef TESTS_IMPORT_ONNX_WORLD_H
#define TESTS_IMPORT_ONNX_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/onnx/read/onnx.h"
#include "ir/text/text.h"
#include "test.h"

/* ---- writing messages --------------------------------------------------------------------------
 */

struct bytes {
    uint8_t at[8192];
    size_t len;
};

static inline void put_varint(struct bytes *b, uint64_t v)
{
    for (; v > 0x7f; v >>= 7)
        b->at[b->len++] = (uint8_t)(v | 0x80);
    b->at[b->len++] = (uint8_t)v;
}

static inline void put_int(struct bytes *b, uint32_t number, uint64_t v)
{
    put_varint(b, number << 3);
    put_varint(b, v);
}

static inline void put_data(struct bytes *b, uint32_t number, const void *data, size_t len)
{
    put_varint(b, number << 3 | 2);
    put_varint(b, len);
    if (len)
        memcpy(b->at + b->len, data, len);
    b->len += len;
}

static inline void put_text(struct bytes *b, uint32_t number, const char *text)
{
    put_data(b, number, text, strlen(text));
}

static inline void put_sub(struct bytes *b, uint32_t number, const struct bytes *sub)
{
    put_data(b, number, sub->at, sub->len);
}

/* "x y -> z": a node of the graph; attr: an INT attribute of that value, or NULL. */
static inline void put_node(struct bytes *graph, const char *op, const char *const *in,
                            const char *const *out, const char *attr, int64_t value)
{
    struct bytes n = {.len = 0}, a = {.len = 0};

    for (; *in; in++)
        put_text(&n, 1, *in);
    for (; *out; out++)
        put_text(&n, 2, *out);
    put_text(&n, 4, op);
    if (attr) {
        put_text(&a, 1, attr);
        put_int(&a, 3, (uint64_t)value);
        put_int(&a, 20, ONNX_ATTR_INT);
        put_sub(&n, 5, &a);
    }
    put_sub(graph, 1, &n);
}
#define NODE(g, op, in, out) \
    put_node(g, op, (const char *const[]){in, NULL}, (const char *const[]){out, NULL}, NULL, 0)
#define LIST(...) __VA_ARGS__

/* dims: numbers, or names of symbols; number: 11 an input, 12 an output. */
static inline void put_value(struct bytes *graph, uint32_t number, const char *name, int64_t elem,
                             const char *const *dims)
{
    struct bytes v = {.len = 0}, type = {.len = 0}, tensor = {.len = 0}, shape = {.len = 0};

    for (; dims && *dims; dims++) {
        struct bytes d = {.len = 0};
        if (**dims >= '0' && **dims <= '9')
            put_int(&d, 1, (uint64_t)atoll(*dims));
        else
            put_text(&d, 2, *dims);
        put_sub(&shape, 1, &d);
    }
    put_int(&tensor, 1, (uint64_t)elem);
    put_sub(&tensor, 2, &shape);
    put_sub(&type, 1, &tensor);
    put_text(&v, 1, name);
    put_sub(&v, 2, &type);
    put_sub(graph, number, &v);
}

static inline void put_tensor(struct bytes *graph, const char *name, int64_t elem,
                              const int64_t *dims, size_t rank, const void *raw, size_t len)
{
    struct bytes t = {.len = 0};

    for (size_t i = 0; i < rank; i++)
        put_int(&t, 1, (uint64_t)dims[i]);
    put_int(&t, 2, (uint64_t)elem);
    put_text(&t, 8, name);
    put_data(&t, 9, raw, len);
    put_sub(graph, 5, &t);
}

static inline struct bytes finish(const struct bytes *graph, int64_t opset)
{
    struct bytes m = {.len = 0}, o = {.len = 0};

    put_text(&o, 1, "");
    put_int(&o, 2, (uint64_t)opset);
    put_int(&m, 1, 8);
    put_sub(&m, 7, graph);
    put_sub(&m, 8, &o);
    return m;
}

/* ---- importing ---------------------------------------------------------------------------------
 */

struct result {
    rlx_status status;
    struct onnx_imported m; /* to be freed */
    struct diag diag;
};

/* With what is given of some inputs. */
static inline struct result import_given(const void *data, size_t len, const rlx_load_input *given,
                                         size_t count)
{
    struct onnx_import_options options = {.mode = FILE_READ, .inputs = given, .input_count = count};
    struct result r;

    diag_init(&r.diag, "load");
    r.status = onnx_import((rlx_str){data, len}, &options, mem_default(), &r.m, &r.diag);
    return r;
}

static inline struct result import(const void *data, size_t len)
{
    return import_given(data, len, NULL, 0);
}

/* The model as text: what was made of it. */
static inline void expect_given(struct test *t, const struct bytes *model,
                                const rlx_load_input *given, size_t count, const char *want)
{
    struct result r = import_given(model->at, model->len, given, count);
    struct text text;

    text_init(&text, mem_default());
    if (expect_status(t, r.status, RLX_OK)) {
        expect_ok(t, ir_print(r.m.mod, NULL, &text, &r.diag));
        expect_str(t, text.at, want);
    } else
        test_note(t, "%s", r.diag.first.message);
    text_free(&text);
    onnx_imported_free(&r.m);
}

static inline void expect_text(struct test *t, const struct bytes *model, const char *want)
{
    expect_given(t, model, NULL, 0, want);
}

static inline void expect_given_refused(struct test *t, const struct bytes *model,
                                        const rlx_load_input *given, rlx_status status,
                                        const char *part)
{
    struct result r = import_given(model->at, model->len, given, given != NULL);

    expect_status(t, r.status, status);
    expect_contains(t, r.diag.first.message, part);
    onnx_imported_free(&r.m);
}

static inline void expect_refused(struct test *t, const struct bytes *model, rlx_status status,
                                  const char *part)
{
    expect_given_refused(t, model, NULL, status, part);
}

/* For expect_survives_no_memory; ctx: the model. */
static inline rlx_status import_with(struct test *t, const rlx_allocator *mem, void *ctx)
{
    const struct bytes *m = ctx;
    struct onnx_import_options options = {.mode = FILE_READ};
    struct onnx_imported out;
    struct diag d;

    (void)t;
    diag_init(&d, "load");
    rlx_status s = onnx_import((rlx_str){(const char *)m->at, m->len}, &options, mem, &out, &d);
    onnx_imported_free(&out);
    return s;
}

#endif
