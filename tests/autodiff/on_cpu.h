/* on_cpu.h: a graph of gradients run on the CPU, or on another device, its outputs compared with
 * what ir/eval says: every op that a rule writes down must run. */
#ifndef TESTS_AUTODIFF_ON_CPU_H
#define TESTS_AUTODIFF_ON_CPU_H

#include <math.h>
#include <stdlib.h>

#include "../test.h"
#include "ir/eval/eval.h"
#include "ir/text/text.h"

enum { ON_CPU_MOST = 32 };

struct on_cpu {
    rlx_context *ctx;
    rlx_device *dev;
    const char *device; /* its name */
    rlx_model *model;
    rlx_session *session;
    rlx_binding in[ON_CPU_MOST + 1], out[ON_CPU_MOST];
    size_t in_count, out_count;
    double tol; /* there inputs are rounded to their types */
    char name[ON_CPU_MOST + 1][32];
    rlx_error err;
};

static inline bool is_complex(const struct eval_tensor *t)
{
    return t->type.dtype == RLX_DTYPE_c64;
}

/* f32, or pairs of them, whatever the type: what is not f32 is converted. */
static inline rlx_tensor on_cpu_tensor(struct arena *a, const struct eval_tensor *from)
{
    size_t parts = is_complex(from) ? 2 : 1, count = (size_t)from->count * parts;
    float *to = arena_array(a, float, count + 1);
    rlx_tensor r = {.dtype = is_complex(from) ? RLX_DTYPE_c64 : RLX_DTYPE_f32,
                    .rank = from->type.rank,
                    .data = to,
                    .bytes = count * sizeof *to};

    for (int32_t i = 0; i < r.rank; i++)
        r.dim[i] = from->type.dim[i];
    for (size_t k = 0; to && k < count; k++)
        to[k] = !is_complex(from) ? (float)eval_real(from, (int64_t)k)
                : k % 2           ? (float)from->at[k / 2].im
                                  : (float)from->at[k / 2].f;
    return r;
}

static inline void on_cpu_compare(struct test *t, const struct on_cpu *c,
                                  const struct eval_tensor *want, const rlx_tensor *got,
                                  const char *source)
{
    double tol = c->tol;
    const float *have = got->data;
    double largest = 0;
    int parts = is_complex(want) ? 2 : 1;

    for (int64_t k = 0; k < want->count * parts; k++)
        largest = fmax(largest, fabs(k % parts ? want->at[k / parts].im : want->at[k / parts].f));
    for (int64_t k = 0; k < want->count * parts; k++) {
        double w = k % parts ? want->at[k / parts].im : want->at[k / parts].f;
        if (w != (double)have[k] && !(fabs((double)have[k] - w) <= tol * (1e-2 + largest))) {
            fail(t, "on %s element %d is %.9g, not %.9g\n  in: %s", c->device, (int)k,
                 (double)have[k], w, source);
            return;
        }
    }
}

/* Inputs by value, and outputs dx[], those that there are. */
static inline bool on_cpu_bind(struct on_cpu *c, struct arena *a, struct ir_graph *g,
                               const struct eval_tensor *value, const ir_value *dx, size_t count,
                               struct diag *d)
{
    g->output.len = 0;
    for (size_t v = 0; v < g->node.len && c->in_count <= ON_CPU_MOST; v++) {
        rlx_str name = ir_leaf_name(&g->node.at[v]);
        if (g->node.at[v].op != RLX_OP_input)
            continue;
        rlx_dtype type = g->node.at[v].type.dtype;
        c->tol = fmax(c->tol, type == RLX_DTYPE_bf16 ? 2e-2 : type == RLX_DTYPE_f16 ? 3e-3 : 1e-4);
        snprintf(c->name[c->in_count], 32, "%.*s", STR_ARG(name));
        c->in[c->in_count] = (rlx_binding){c->name[c->in_count], on_cpu_tensor(a, &value[v])};
        c->in_count++;
    }
    static const char *const names[] = {"out0",  "out1",  "out2",  "out3", "out4",  "out5",
                                        "out6",  "out7",  "out8",  "out9", "out10", "out11",
                                        "out12", "out13", "out14", "out15"};
    for (size_t i = 0; i < count; i++) {
        if (dx[i] == RLX_NO_VALUE)
            continue;
        c->out[c->out_count] = (rlx_binding){names[c->out_count], on_cpu_tensor(a, &value[dx[i]])};
        c->out_count++;
        if (ir_add_output(g, dx[i], d))
            return false;
    }
    return true;
}

static inline bool on_cpu_run(struct on_cpu *c, const struct text *s)
{
    const rlx_run_desc run = {
        RLX_SIZED(rlx_run_desc), c->in, c->in_count, c->out, c->out_count, NULL, 0};

    return !rlx_model_parse(c->ctx, (rlx_str){s->at, s->len}, &c->model, &c->err) &&
           !rlx_session_create(c->model, c->dev, NULL, &c->session, &c->err) &&
           !rlx_session_run(c->session, &run, &c->err);
}

static inline bool on_cpu_open(struct on_cpu *c, const char *device)
{
    c->device = device;
    return !rlx_context_create(RLX_VERSION, NULL, &c->ctx, &c->err) &&
           !rlx_device_open(c->ctx, device, &c->dev, &c->err);
}

static inline void on_cpu_close(struct on_cpu *c)
{
    rlx_device_close(c->dev);
    rlx_context_destroy(c->ctx);
}

/* value: of every node of m's entry. Its outputs become dx[]. c is open, and has run nothing. */
static inline void on_device(struct test *t, struct on_cpu *c, struct ir_module *m,
                             const struct eval_tensor *value, const ir_value *dx, size_t count,
                             const char *source)
{
    struct arena a;
    struct diag d;
    struct text s;

    diag_init(&d, "test");
    arena_init(&a, mem_default());
    text_init(&s, mem_default());
    if (!on_cpu_bind(c, &a, ir_entry(m), value, dx, count, &d) || ir_print(m, NULL, &s, &d))
        fail(t, "%s\n  in: %s", d.first.message, source);
    else if (c->out_count > 0 && !on_cpu_run(c, &s))
        fail(t, "%s\n  in: %s", c->err.message, source);
    else
        for (size_t i = 0, k = 0; i < count; i++)
            if (dx[i] != RLX_NO_VALUE)
                on_cpu_compare(t, c, &value[dx[i]], &c->out[k++].tensor, source);
    rlx_session_destroy(c->session);
    rlx_model_destroy(c->model);
    text_free(&s);
    arena_free(&a);
}

static inline void on_cpu(struct test *t, struct ir_module *m, const struct eval_tensor *value,
                          const ir_value *dx, size_t count, const char *source)
{
    struct on_cpu c = {0};

    if (on_cpu_open(&c, "cpu"))
        on_device(t, &c, m, value, dx, count, source);
    else
        fail(t, "%s", c.err.message);
    on_cpu_close(&c);
}

#endif
