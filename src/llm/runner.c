/* runner.c: the graph that reads a chunk of tokens and says what comes next, and a run of it.
 *
 * One program serves prompts and single tokens: `n` tokens of this run, at most a chunk, and
 * `length` tokens with those read before, at most the context, are dims with a bound. Keys and
 * values stay in states. Cosines and sines of positions come from outside, where they are exact. */
#include <math.h>
#include <stdio.h>

#include "base/str.h"
#include "llm/build.h"
#include "llm/engine.h"

const char *llm_table_name(int rope, bool sine)
{
    static const char *const name[LLM_ROPES][2] = {{"cos", "sin"}, {"cos_local", "sin_local"}};

    return name[rope][sine];
}

size_t llm_table_count(const struct llm_turns *t, int64_t rows)
{
    return (size_t)rows * (size_t)t->pairs;
}

/* ---- the graph ---------------------------------------------------------------------------- */

static rlx_value build(rlx_llm *m, rlx_graph *g, struct diag *d)
{
    const struct llm_spec *s = &m->spec;
    struct llm_build b = {.g = g,
                          .spec = s,
                          .w = m->weights,
                          .d = d,
                          .batch = 1,
                          .cached = true,
                          .cache_rows = m->desc.context,
                          .cache =
                              m->desc.cache == RLX_LLM_CACHE_F32 ? RLX_DTYPE_f32 : RLX_DTYPE_f16};

    b.rows = rlx_dim_symbol(g, LLM_ROWS);
    b.length = rlx_dim_symbol(g, LLM_LENGTH);
    rlx_value tokens = rlx_input(g, LLM_TOKENS, RLX_DTYPE_i32, RLX_LIST(1, b.rows));
    b.at = rlx_input(g, LLM_AT, RLX_DTYPE_i32, RLX_EMPTY);
    if (s->learned_positions)
        b.positions = rlx_input(g, LLM_POSITIONS, RLX_DTYPE_i32, RLX_LIST(b.rows));
    if (s->temper != 0)
        b.temper = rlx_input(g, LLM_TEMPER, RLX_DTYPE_f32, RLX_LIST(b.rows, 1));
    for (int r = 0; r < LLM_ROPES; r++)
        if (m->turns_used[r]) {
            const rlx_list shape = RLX_LIST(b.rows, m->turns[r].pairs);
            b.cos[r] = rlx_input(g, llm_table_name(r, false), RLX_DTYPE_f32, shape);
            b.sin[r] = rlx_input(g, llm_table_name(r, true), RLX_DTYPE_f32, shape);
        }
    rlx_value x = llm_decoder(&b, tokens);
    if (!m->desc.all_logits)
        x = rlx_narrow(g, x, 1, rlx_dim_sub(g, b.rows, 1), 1);
    return llm_head(&b, x);
}

rlx_status llm_make_model(rlx_llm *m, struct diag *d)
{
    rlx_graph *g;
    rlx_error err;

    if (rlx_graph_create(m->ctx, &g, &err) != RLX_OK)
        return diag_again(d, &err, err.status);
    rlx_value logits = build(m, g, d);
    rlx_status s = d->count ? d->first.status : rlx_graph_check(g, &err);
    if (s == RLX_OK) {
        rlx_label(g, logits, "logits");
        rlx_output(g, logits);
        if ((s = rlx_dim_bound(g, LLM_ROWS, m->desc.chunk, &err)) == RLX_OK &&
            (s = rlx_dim_bound(g, LLM_LENGTH, m->desc.context, &err)) == RLX_OK)
            s = rlx_model_create(g, &m->model, &err);
    }
    if (s != RLX_OK)
        rlx_graph_destroy(g);
    if (s == RLX_OK)
        s = rlx_model_load_weights(m->model, m->weights, NULL, &err);
    return s == RLX_OK || d->count ? s : diag_again(d, &err, s);
}

/* ---- a run -------------------------------------------------------------------------------- */

enum { MAX_INPUTS = 2 + 2 * LLM_ROPES + 2 };

static void add(rlx_binding *in, size_t *count, const char *name, rlx_dtype dtype, rlx_list shape,
                void *data)
{
    rlx_tensor *t = &in[*count].tensor;

    *t = (rlx_tensor){.dtype = dtype, .rank = shape.count, .data = data, .bytes = 4};
    for (int32_t i = 0; i < shape.count; i++) {
        t->dim[i] = shape.at[i];
        t->bytes *= (size_t)shape.at[i];
    }
    in[(*count)++].name = name;
}

/* The more keys there are, the larger scores have to be for a few of them to count. */
static float temper_at(const struct llm_spec *s, int64_t row)
{
    return (float)(1 + s->temper * log(floor((double)row / s->temper_rows) + 1));
}

static size_t bind_inputs(rlx_sequence *s, int64_t n, int32_t *at, rlx_binding in[MAX_INPUTS])
{
    const rlx_llm *m = s->m;
    size_t count = 0;

    add(in, &count, LLM_TOKENS, RLX_DTYPE_i32, RLX_LIST(1, n), s->id + s->computed);
    add(in, &count, LLM_AT, RLX_DTYPE_i32, RLX_EMPTY, at);
    for (int r = 0; r < LLM_ROPES; r++) {
        if (!m->turns_used[r])
            continue;
        const rlx_list shape = RLX_LIST(n, m->turns[r].pairs);
        llm_turns_fill(&m->turns[r], *at, n, s->cos[r], s->sin[r]);
        add(in, &count, llm_table_name(r, false), RLX_DTYPE_f32, shape, s->cos[r]);
        add(in, &count, llm_table_name(r, true), RLX_DTYPE_f32, shape, s->sin[r]);
    }
    if (m->spec.learned_positions) {
        for (int64_t i = 0; i < n; i++)
            s->position[i] = *at + (int32_t)i;
        add(in, &count, LLM_POSITIONS, RLX_DTYPE_i32, RLX_LIST(n), s->position);
    }
    if (m->spec.temper != 0) {
        for (int64_t i = 0; i < n; i++)
            s->temper[i] = temper_at(&m->spec, *at + i);
        add(in, &count, LLM_TEMPER, RLX_DTYPE_f32, RLX_LIST(n, 1), s->temper);
    }
    return count;
}

/* The next n tokens. Logits are read after the last chunk only, or after each if all are wanted. */
static rlx_status run_chunk(rlx_sequence *s, int64_t n, float *logits, size_t rows, struct diag *d)
{
    int32_t at = (int32_t)s->computed;
    rlx_binding in[MAX_INPUTS];
    rlx_binding out = {"logits",
                       {.dtype = RLX_DTYPE_f32,
                        .data = logits,
                        .bytes = rows * (size_t)s->m->spec.vocab * sizeof *logits}};
    rlx_dim_size length = {LLM_LENGTH, at + n};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc),
                        .inputs = in,
                        .input_count = bind_inputs(s, n, &at, in),
                        .outputs = &out,
                        .output_count = logits ? 1 : 0,
                        .dims = &length,
                        .dim_count = 1};
    rlx_error err;

    if (rlx_session_run(s->session, &run, &err) != RLX_OK)
        return diag_again(d, &err, err.status);
    s->computed += (size_t)n;
    return RLX_OK;
}

rlx_status llm_compute(rlx_sequence *s, struct diag *d)
{
    const bool all = s->m->desc.all_logits;
    const size_t chunk = (size_t)s->m->desc.chunk;

    while (s->computed < s->count) {
        size_t left = s->count - s->computed, n = left < chunk ? left : chunk;
        size_t rows = all ? n : 1;
        bool wanted = all || n == left;
        s->rows = 0;
        TRY(run_chunk(s, (int64_t)n, wanted ? s->logits : NULL, rows, d));
        s->rows = wanted ? rows : 0;
    }
    return RLX_OK;
}
