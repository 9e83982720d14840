/* required.h: what the required_*_test.c files share: graphs in one line with their numbers, and
 * situations that must be refused. Row numbers are those of runtime.md 8. */
#ifndef TESTS_API_REQUIRED_H
#define TESTS_API_REQUIRED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlx/graph.h"
#include "test.h"

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])

enum { MOST_NUMBERS = 96, MOST_INPUTS = 32 };

struct place {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *model;
    rlx_session *session;
    rlx_error err;
};

static inline void place_drop(struct place *p)
{
    rlx_session_destroy(p->session);
    rlx_model_destroy(p->model);
    p->session = NULL;
    p->model = NULL;
}

static inline void place_close(struct place *p)
{
    place_drop(p);
    rlx_device_close(p->dev);
    rlx_context_destroy(p->ctx);
}

/* false: nothing is open, and the test has failed or is skipped. */
static inline bool place_open(struct test *t, struct place *p, const char *device,
                              const rlx_context_desc *desc)
{
    *p = (struct place){0};
    if (!expect_ok(t, rlx_context_create(RLX_VERSION, desc, &p->ctx, &p->err)))
        return false;
    rlx_status s = rlx_device_open(p->ctx, device, &p->dev, &p->err);
    if (!test_no_device(t, device, s, p->err.message))
        return true;
    rlx_context_destroy(p->ctx);
    p->ctx = NULL;
    return false;
}

/* Parses `graph`, all of a file but its first line, and opens a session on it. */
static inline rlx_status place_build(struct place *p, const char *graph,
                                     const rlx_session_desc *desc)
{
    size_t size = strlen(graph) + 16;
    char *text = malloc(size);

    place_drop(p);
    memset(&p->err, 0, sizeof p->err);
    if (!text)
        return RLX_ERROR_MEMORY;
    snprintf(text, size, "rlx 1\n%s\n", graph);
    rlx_status s = rlx_model_parse(p->ctx, rlx_cstr(text), &p->model, &p->err);
    if (s == RLX_OK)
        s = rlx_session_create(p->model, p->dev, desc, &p->session, &p->err);
    free(text);
    return s;
}

/* Numbers up to the next '|', which is stepped over. */
static inline size_t read_numbers(const char **at, float *out)
{
    size_t n = 0;
    char *end;

    for (; n < MOST_NUMBERS; n++, *at = end) {
        out[n] = strtof(*at, &end);
        if (end == *at)
            break;
    }
    *at += strspn(*at, " ");
    *at += **at == '|';
    return n;
}

/* The model's inputs in their order, as f32, from groups of numbers between bars. */
static inline size_t read_inputs(const rlx_model *m, const char *numbers, rlx_binding *in,
                                 char (*name)[32], float (*data)[MOST_NUMBERS])
{
    size_t count = rlx_model_io_count(m, RLX_IO_INPUT);

    for (size_t i = 0; i < count && i < MOST_INPUTS; i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        rlx_model_io(m, RLX_IO_INPUT, i, &info, NULL);
        snprintf(name[i], sizeof name[i], "%.*s", (int)info.name.len, info.name.ptr);
        in[i] =
            (rlx_binding){name[i], {.dtype = RLX_DTYPE_f32, .rank = info.rank, .data = data[i]}};
        memcpy(in[i].tensor.dim, info.dim, sizeof info.dim);
        in[i].tensor.bytes = read_numbers(&numbers, data[i]) * sizeof(float);
    }
    return count;
}

/* Builds the graph, runs it twice on the numbers and compares output 0 with those wanted. */
static inline bool expect_numbers(struct test *t, struct place *p, const char *graph,
                                  const char *numbers, const char *want)
{
    const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.check_plan = true)};
    rlx_binding in[MOST_INPUTS];
    char name[MOST_INPUTS][32];
    float data[MOST_INPUTS][MOST_NUMBERS], got[MOST_NUMBERS], wanted[MOST_NUMBERS];
    size_t n = read_numbers(&want, wanted);

    if (!expect_ok(t, place_build(p, graph, &desc)))
        return fail(t, "%s", p->err.message);
    size_t count = read_inputs(p->model, numbers, in, name, data);
    for (int i = 0; i < 2; i++) {
        rlx_binding out = {"out0", {.dtype = RLX_DTYPE_f32, .data = got, .bytes = sizeof got}};
        size_t elements = 1;
        memset(got, 0x7f, sizeof got);
        if (!expect_ok(t, rlx_session_run(
                              p->session,
                              &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, count, &out, 1, NULL, 0},
                              &p->err)))
            return fail(t, "%s", p->err.message);
        for (int32_t a = 0; a < out.tensor.rank; a++)
            elements *= (size_t)out.tensor.dim[a];
        if (!expect_eq(t, elements, n) || !expect_close(t, got, wanted, n, 1e-5, 1e-6))
            return false;
    }
    return true;
}

/* The context and the device are as good as before. */
static inline bool expect_working(struct test *t, struct place *p)
{
    return expect_numbers(t, p, "graph (input %x: f32[2]) { %y = neg %x return %y }", "1 -2",
                          "-1 2");
}

/* Must fail with this status, and with `part` in the message. */
static inline void expect_refused(struct test *t, struct place *p, const char *graph,
                                  rlx_status status, const char *part)
{
    place_build(p, graph, NULL);
    expect_error(t, status, part, &p->err);
    expect(t, p->session == NULL);
    expect_working(t, p);
}

#endif
