/* device_run.h: a graph without leaves, given as text, run on a device; its outputs as doubles. */
#ifndef TESTS_OPS_DEVICE_RUN_H
#define TESTS_OPS_DEVICE_RUN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../test.h"
#include "rlx/graph.h"

struct device_run {
    rlx_context *ctx;
    rlx_device *dev;
    bool as_written; /* on GPUs nothing is folded, for that would be done by the CPU */
};

static inline bool device_open(struct test *t, struct device_run *r, const char *name)
{
    rlx_error err;

    *r = (struct device_run){.as_written = strncmp(name, "cpu", 3) != 0};
    if (!expect_ok(t, rlx_context_create(RLX_VERSION, NULL, &r->ctx, &err)))
        return false;
    rlx_status s = rlx_device_open(r->ctx, name, &r->dev, &err);
    if (!test_no_device(t, name, s, err.message))
        return true;
    rlx_context_destroy(r->ctx);
    r->ctx = NULL;
    return false;
}

static inline void device_close(struct device_run *r)
{
    rlx_device_close(r->dev);
    rlx_context_destroy(r->ctx);
}

/* Output i as numbers, read back as f32 (f64 and integers as what they are). -1: it failed, and the
 * failure is noted. `body` is what stands between the braces, or a whole file. */
static inline long device_numbers(struct test *t, struct device_run *r, const char *body, size_t i,
                                  double *out, size_t max)
{
    const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc),
                                   .debug =
                                       DEBUG(.check_plan = true, .no_optimize = r->as_written)};
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    rlx_error err = {0};
    rlx_tensor shape;
    char *text = malloc(strlen(body) + 64), name[16];
    long count = -1;

    if (!text)
        return -1;
    sprintf(text, strncmp(body, "rlx", 3) == 0 ? "%s" : "rlx 1\ngraph () {\n%s\n}\n", body);
    snprintf(name, sizeof name, "out%zu", i);
    if (rlx_model_parse(r->ctx, rlx_cstr(text), &m, &err) == RLX_OK &&
        rlx_session_create(m, r->dev, &desc, &s, &err) == RLX_OK &&
        rlx_session_output_shape(s, i, &shape, &err) == RLX_OK) {
        size_t elements = shape.bytes / rlx_dtype_size(shape.dtype);
        bool wide = shape.dtype == RLX_DTYPE_f64;
        rlx_binding o = {name, shape};
        o.tensor.dtype = wide ? RLX_DTYPE_f64 : RLX_DTYPE_f32;
        o.tensor.bytes = elements * (wide ? 8 : 4);
        o.tensor.data = calloc(elements + 1, 8);
        if (rlx_session_run(
                s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), .outputs = &o, .output_count = 1},
                &err) == RLX_OK) {
            for (size_t k = 0; k < elements && k < max; k++)
                out[k] = wide ? ((double *)o.tensor.data)[k] : (double)((float *)o.tensor.data)[k];
            count = (long)elements;
        }
        free(o.tensor.data);
    }
    if (count < 0)
        fail(t, "%s: %s\n  in: %s", rlx_status_name(err.status), err.message, text);
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    free(text);
    return count;
}

/* The numbers of output 0 must be those of the text, within tol * max(1, |want|). */
static inline void device_gives(struct test *t, struct device_run *r, const char *body,
                                const char *want, double tol)
{
    double got[512];
    long count = device_numbers(t, r, body, 0, got, 512), k = 0;
    char *end;

    test_note(t, "%s", body);
    for (const char *p = want; count >= 0 && *p; p = end) {
        double v = strtod(p, &end);
        if (end == p)
            break;
        if (k < count)
            expect_near(t, got[k], v, tol * (v > 1 ? v : v < -1 ? -v : 1));
        k++;
    }
    if (count >= 0)
        expect_eq(t, count, k);
    test_note(t, "%s", "");
}

#endif
