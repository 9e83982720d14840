/* fusion_run.h: a graph in text, run with some options; values come from names, so that two runs of
 * one graph get the same. */
#ifndef TESTS_API_FUSION_RUN_H
#define TESTS_API_FUSION_RUN_H

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlx/tools.h"
#include "test.h"

enum { MOST_OUTPUTS = 4, MOST_INPUTS = 8 };

/* A graph that grows line by line, its leaves apart from its nodes. */
struct source {
    char leaves[8192], nodes[16384], text[32768];
    size_t leaves_len, nodes_len;
    uint64_t seed;
};

static inline void source_start(struct source *s, uint64_t seed)
{
    s->leaves_len = s->nodes_len = 0;
    s->seed = seed;
}

__attribute__((format(printf, 2, 3))) static inline void source_leaf(struct source *s,
                                                                     const char *fmt, ...)
{
    size_t room = sizeof s->leaves - s->leaves_len;
    va_list args;

    va_start(args, fmt);
    s->leaves_len +=
        (size_t)snprintf(s->leaves + s->leaves_len, room, "%s", s->leaves_len ? ", " : "");
    room = sizeof s->leaves - s->leaves_len;
    s->leaves_len += (size_t)vsnprintf(s->leaves + s->leaves_len, room, fmt, args);
    va_end(args);
}

__attribute__((format(printf, 2, 3))) static inline void source_node(struct source *s,
                                                                     const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    s->nodes_len +=
        (size_t)vsnprintf(s->nodes + s->nodes_len, sizeof s->nodes - s->nodes_len, fmt, args);
    va_end(args);
    s->nodes_len += (size_t)snprintf(s->nodes + s->nodes_len, sizeof s->nodes - s->nodes_len, "\n");
}

static inline const char *source_text(struct source *s)
{
    snprintf(s->text, sizeof s->text, "rlx 1\ngraph (%s) {\n%s}\n", s->leaves, s->nodes);
    return s->text;
}

static inline unsigned source_draw(struct source *s, unsigned below)
{
    s->seed = s->seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(s->seed >> 33) % below;
}

struct outcome {
    void *data[MOST_OUTPUTS];
    size_t bytes[MOST_OUTPUTS];
    rlx_dtype dtype[MOST_OUTPUTS];
    size_t count;
};

static inline void outcome_free(struct outcome *o)
{
    for (size_t i = 0; i < o->count; i++)
        free(o->data[i]);
}

/* Numbers in (-1, 1) that depend on the name and the place. */
static inline bool fill(const rlx_io_info *info, char *name, size_t room, rlx_tensor *out)
{
    size_t count = 1;
    uint32_t mix = 2166136261u;

    snprintf(name, room, "%.*s", (int)info->name.len, info->name.ptr);
    for (const char *c = name; *c; c++)
        mix = (mix ^ (uint8_t)*c) * 16777619u;
    *out = (rlx_tensor){.dtype = RLX_DTYPE_f32, .rank = info->rank};
    for (int32_t a = 0; a < info->rank; a++)
        count *= (size_t)(out->dim[a] = info->dim[a]);
    float *x = malloc(count * sizeof *x + 1);
    for (size_t k = 0; x && k < count; k++) {
        uint32_t h = ((uint32_t)k + mix) * 2654435761u;
        h = (h ^ h >> 15) * 2246822519u;
        x[k] = (float)(h >> 8) / 8388608.0f - 1;
    }
    out->data = x;
    out->bytes = count * sizeof *x;
    return x != NULL;
}

static inline bool set_params(rlx_model *m, rlx_error *err)
{
    bool ok = true;

    for (size_t i = 0; ok && i < rlx_model_io_count(m, RLX_IO_PARAM); i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        rlx_tensor value;
        char name[64];
        rlx_model_io(m, RLX_IO_PARAM, i, &info, NULL);
        ok = fill(&info, name, sizeof name, &value) &&
             rlx_model_set_param(m, name, &value, err) == RLX_OK;
        free(value.data);
    }
    return ok;
}

static inline bool take_outputs(rlx_model *m, rlx_session *s, struct outcome *out,
                                rlx_binding *want, char (*name)[64], rlx_error *err)
{
    out->count = rlx_model_io_count(m, RLX_IO_OUTPUT);
    for (size_t i = 0; i < out->count; i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        rlx_model_io(m, RLX_IO_OUTPUT, i, &info, NULL);
        snprintf(name[i], 64, "%.*s", (int)info.name.len, info.name.ptr);
        want[i].name = name[i];
        if (rlx_session_output_shape(s, i, &want[i].tensor, err) != RLX_OK)
            return false;
        out->bytes[i] = want[i].tensor.bytes;
        out->dtype[i] = want[i].tensor.dtype;
        out->data[i] = want[i].tensor.data = calloc(1, out->bytes[i] + 1);
    }
    return true;
}

/* Runs it `times` times, for graphs with states. */
static inline bool run_source(struct test *t, rlx_context *ctx, rlx_device *dev, const char *text,
                              const rlx_session_desc *desc, int times, struct outcome *out)
{
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    rlx_error err = {0};
    rlx_binding in[MOST_INPUTS] = {0}, want[MOST_OUTPUTS] = {0};
    char in_name[MOST_INPUTS][64], out_name[MOST_OUTPUTS][64];
    size_t inputs = 0;

    *out = (struct outcome){0};
    bool ok = rlx_model_parse(ctx, rlx_cstr(text), &m, &err) == RLX_OK && set_params(m, &err) &&
              rlx_session_create(m, dev, desc, &s, &err) == RLX_OK &&
              take_outputs(m, s, out, want, out_name, &err);
    for (; ok && inputs < rlx_model_io_count(m, RLX_IO_INPUT); inputs++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        rlx_model_io(m, RLX_IO_INPUT, inputs, &info, NULL);
        ok = fill(&info, in_name[inputs], 64, &in[inputs].tensor);
        in[inputs].name = in_name[inputs];
    }
    for (int i = 0; ok && i < times; i++)
        ok = rlx_session_run(
                 s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, inputs, want, out->count, NULL, 0},
                 &err) == RLX_OK;
    if (!ok)
        fail(t, "%s in\n%s", err.message, text);
    for (size_t i = 0; i < inputs; i++)
        free(in[i].tensor.data);
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    return ok;
}

static inline double half_value(rlx_dtype d, uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float f;

    if (d == RLX_DTYPE_f16) { /* by its fields */
        int exponent = bits >> 10 & 31, fraction = bits & 1023;
        double v = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
        v = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY) : v;
        return bits >> 15 ? -v : v;
    }
    memcpy(&f, &wide, 4);
    return (double)f;
}

/* Element k of a float output. */
static inline double outcome_at(const struct outcome *o, size_t i, size_t k)
{
    switch (o->dtype[i]) {
    case RLX_DTYPE_f64: return ((const double *)o->data[i])[k];
    case RLX_DTYPE_f32:
    case RLX_DTYPE_c64: return (double)((const float *)o->data[i])[k];
    default: return half_value(o->dtype[i], ((const uint16_t *)o->data[i])[k]);
    }
}

static inline bool is_float(rlx_dtype d)
{
    return d == RLX_DTYPE_f32 || d == RLX_DTYPE_f64 || d == RLX_DTYPE_f16 || d == RLX_DTYPE_bf16 ||
           d == RLX_DTYPE_c64;
}

/* |a - b| <= tol (1 + |b|); tol 0: the same bits, where any NaN is as good as another. */
static inline bool same_outcome(struct test *t, const struct outcome *a, const struct outcome *b,
                                double tol, const char *what, const char *text)
{
    for (size_t i = 0; i < a->count; i++) {
        size_t size = a->dtype[i] == RLX_DTYPE_c64 ? 4 : rlx_dtype_size(a->dtype[i]);
        for (size_t k = 0; k < a->bytes[i] / size; k++) {
            const char *x = (const char *)a->data[i] + k * size;
            if (memcmp(x, (const char *)b->data[i] + k * size, size) == 0)
                continue;
            double va = is_float(a->dtype[i]) ? outcome_at(a, i, k) : 0;
            double vb = is_float(a->dtype[i]) ? outcome_at(b, i, k) : 1;
            if (is_float(a->dtype[i]) && isnan(va) && isnan(vb))
                continue;
            if (fabs(va - vb) <= tol * (1 + fabs(vb)))
                continue;
            fail(t, "%s: output %zu, element %zu: %.9g and %.9g in\n%s", what, i, k, va, vb, text);
            return false;
        }
    }
    return expect(t, a->count > 0 && a->count == b->count);
}

#endif
