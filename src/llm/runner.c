/* runner.c: the graph that reads a chunk of tokens and says what comes next, and a run of it.
 *
 * One program serves prompts and single tokens: `n` tokens of this run, at most a chunk, and
 * `length` tokens with those read before, at most the context, are dims with a bound. Keys and
 * values stay in states. Cosines and sines of positions come from outside, where they are exact. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "llm/build.h"
#include "llm/engine.h"
#include "llm/guess.h"

const char *llm_table_name(int rope, bool sine)
{
    static const char *const name[LLM_ROPES][2] = {{"cos", "sin"}, {"cos_local", "sin_local"}};

    return name[rope][sine];
}

size_t llm_table_count(const struct llm_turns *t, int64_t rows)
{
    return (size_t)rows * (size_t)t->pairs;
}

size_t llm_most_rows(const rlx_llm *m)
{
    return m->desc.all_logits ? (size_t)m->desc.chunk : 1 + (size_t)m->desc.guesses;
}

/* ---- the graph ---------------------------------------------------------------------------- */

/* Of all that were computed, the rows whose logits are asked for. */
static rlx_value picked(const rlx_llm *m, rlx_graph *g, rlx_value x)
{
    rlx_dim count = llm_most_rows(m) > 1 ? rlx_dim_symbol(g, LLM_PICKED) : 1;

    return rlx_gather(g, x, rlx_input(g, LLM_PICK, RLX_DTYPE_i32, RLX_LIST(count)), 1);
}

static rlx_value build(rlx_llm *m, rlx_graph *g, struct diag *d)
{
    const struct llm_spec *s = &m->spec;
    struct llm_build b = {.g = g,
                          .spec = s,
                          .w = m->weights,
                          .d = d,
                          .exact = m->desc.exact,
                          .adapters = m->adapters,
                          .adapter_count = m->desc.adapter_count,
                          .batch = 1,
                          .cached = !m->gives_vectors,
                          .cache_rows = m->desc.context,
                          .cache =
                              m->desc.cache == RLX_LLM_CACHE_F32 ? RLX_DTYPE_f32 : RLX_DTYPE_f16};

    b.rows = rlx_dim_symbol(g, LLM_ROWS);
    rlx_value tokens = rlx_input(g, LLM_TOKENS, RLX_DTYPE_i32, RLX_LIST(1, b.rows));
    if (b.cached) {
        b.length = rlx_dim_symbol(g, LLM_LENGTH);
        b.at = rlx_input(g, LLM_AT, RLX_DTYPE_i32, RLX_EMPTY);
    }
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
    x = m->gives_vectors ? llm_pooled(&b, x, m->desc.pooling) : llm_head(&b, picked(m, g, x));
    return d->count || llm_adapters_check(&b) != RLX_OK ? RLX_NO_VALUE : x;
}

static rlx_status bound(const rlx_llm *m, rlx_graph *g, rlx_error *err)
{
    const int64_t rows = (int64_t)llm_most_rows(m);
    rlx_status s = rlx_dim_bound(g, LLM_ROWS, m->desc.chunk, err);

    if (m->gives_vectors)
        return s;
    if (s == RLX_OK)
        s = rlx_dim_bound(g, LLM_LENGTH, m->desc.context, err);
    return s == RLX_OK && rows > 1 ? rlx_dim_bound(g, LLM_PICKED, rows, err) : s;
}

rlx_status llm_make_model(rlx_llm *m, struct diag *d)
{
    rlx_graph *g;
    rlx_error err;

    if (rlx_graph_create(m->ctx, &g, &err) != RLX_OK)
        return diag_again(d, &err, err.status);
    rlx_value result = build(m, g, d);
    rlx_status s = d->count ? d->first.status : rlx_graph_check(g, &err);
    if (s == RLX_OK) {
        rlx_label(g, result, m->gives_vectors ? LLM_VECTOR : LLM_LOGITS);
        rlx_output(g, result);
        if ((s = bound(m, g, &err)) == RLX_OK)
            s = rlx_model_create(g, &m->model, &err);
    }
    if (s != RLX_OK)
        rlx_graph_destroy(g);
    if (s == RLX_OK)
        s = rlx_model_load_weights(m->model, m->weights, NULL, &err);
    if (s != RLX_OK)
        return d->count ? s : diag_again(d, &err, s);
    return llm_adapters_load(m->adapters, m->desc.adapter_count, m->model, d);
}

/* ---- a run -------------------------------------------------------------------------------- */

void llm_input_add(struct llm_inputs *in, const char *name, rlx_dtype dtype, rlx_list shape,
                   const void *data)
{
    rlx_tensor *t = &in->at[in->count].tensor;

    *t = (rlx_tensor){
        .dtype = dtype, .rank = shape.count, .data = (void *)(uintptr_t)data, .bytes = 4};
    for (int32_t i = 0; i < shape.count; i++) {
        t->dim[i] = shape.at[i];
        t->bytes *= (size_t)shape.at[i];
    }
    in->at[in->count++].name = name;
}

/* The more keys there are, the larger scores have to be for a few of them to count. */
void llm_temper_fill(const struct llm_spec *s, int64_t first, int64_t count, float *out)
{
    for (int64_t i = 0; i < count; i++) {
        double reached = floor((double)(first + i) / s->temper_rows);
        out[i] = (float)(1 + s->temper * log(reached + 1));
    }
}

static void bind_inputs(rlx_sequence *s, int64_t n, size_t rows, const int32_t *at,
                        struct llm_inputs *in)
{
    const rlx_llm *m = s->m;

    llm_input_add(in, LLM_TOKENS, RLX_DTYPE_i32, RLX_LIST(1, n), s->id + s->computed);
    llm_input_add(in, LLM_AT, RLX_DTYPE_i32, RLX_EMPTY, at);
    for (size_t i = 0; i < rows; i++)
        s->pick[i] = (int32_t)((size_t)n - rows + i);
    llm_input_add(in, LLM_PICK, RLX_DTYPE_i32, RLX_LIST((int64_t)rows), s->pick);
    for (int r = 0; r < LLM_ROPES; r++) {
        if (!m->turns_used[r])
            continue;
        const rlx_list shape = RLX_LIST(n, m->turns[r].pairs);
        llm_turns_fill(&m->turns[r], *at, n, s->cos[r], s->sin[r]);
        llm_input_add(in, llm_table_name(r, false), RLX_DTYPE_f32, shape, s->cos[r]);
        llm_input_add(in, llm_table_name(r, true), RLX_DTYPE_f32, shape, s->sin[r]);
    }
    if (m->spec.learned_positions) {
        for (int64_t i = 0; i < n; i++)
            s->position[i] = *at + (int32_t)i;
        llm_input_add(in, LLM_POSITIONS, RLX_DTYPE_i32, RLX_LIST(n), s->position);
    }
    if (m->spec.temper != 0) {
        llm_temper_fill(&m->spec, *at, n, s->temper);
        llm_input_add(in, LLM_TEMPER, RLX_DTYPE_f32, RLX_LIST(n, 1), s->temper);
    }
}

/* The next n tokens, and the logits after the last `rows` of them, if they are to be read. */
static rlx_status run_chunk(rlx_sequence *s, size_t n, size_t rows, bool read, struct diag *d)
{
    int32_t at = (int32_t)s->computed;
    struct llm_inputs in = {.count = 0};
    rlx_binding out = {LLM_LOGITS,
                       {.dtype = RLX_DTYPE_f32,
                        .data = s->logits,
                        .bytes = rows * (size_t)s->m->spec.vocab * sizeof *s->logits}};
    rlx_dim_size length = {LLM_LENGTH, at + (int64_t)n};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), .outputs = &out, .output_count = read ? 1 : 0,
                        .dims = &length, .dim_count = 1};
    rlx_error err;

    s->rows = 0;
    bind_inputs(s, (int64_t)n, rows, &at, &in);
    run.inputs = in.at;
    run.input_count = in.count;
    if (rlx_session_run(s->session, &run, &err) != RLX_OK) {
        s->spoiled = s->m->recurrent;
        return diag_again(d, &err, err.status);
    }
    s->computed += n;
    s->first = s->computed - rows;
    s->rows = read ? rows : 0;
    return RLX_OK;
}

/* Guesses are made while one token at a time is generated. */
static size_t guess(rlx_sequence *s)
{
    const rlx_llm *m = s->m;
    size_t room = (size_t)m->desc.context - s->count, most = (size_t)m->desc.guesses;

    if (m->desc.all_logits || s->computed + 1 != s->count)
        return 0;
    most = most < room ? most : room;
    most = most < (size_t)m->desc.chunk ? most : (size_t)m->desc.chunk - 1;
    size_t made = llm_guess(s->id, s->count, most, s->id + s->count);
    s->guessed += made;
    return made;
}

rlx_status llm_compute(rlx_sequence *s, struct diag *d)
{
    const bool all = s->m->desc.all_logits;
    const size_t chunk = (size_t)s->m->desc.chunk;

    while (s->computed < s->count) {
        size_t more = guess(s), left = s->count - s->computed + more;
        size_t n = left < chunk ? left : chunk;
        TRY(run_chunk(s, n, all ? n : 1 + more, all || n == left, d));
    }
    return RLX_OK;
}

static rlx_status clear_state(rlx_sequence *s, const rlx_io_info *io, struct diag *d)
{
    rlx_tensor zero = {.dtype = io->dtype, .rank = io->rank, .bytes = rlx_dtype_size(io->dtype)};
    char name[64];
    rlx_error err;

    snprintf(name, sizeof name, "%.*s", STR_ARG(io->name));
    for (int32_t k = 0; k < io->rank; k++) {
        zero.dim[k] = io->dim[k];
        zero.bytes *= (size_t)io->dim[k];
    }
    if (!(zero.data = mem_alloc(mem_default(), zero.bytes))) /* it is zeroed */
        return diag_no_memory(d, zero.bytes);
    rlx_status st = rlx_session_set_state(s->session, name, &zero, &err);
    mem_free(mem_default(), zero.data, zero.bytes);
    return st == RLX_OK ? st : diag_again(d, &err, st);
}

/* Rows of keys and values are written before they are read. */
static bool is_cache(rlx_str name)
{
    return name.len > 2 && name.ptr[name.len - 2] == '.' &&
           (name.ptr[name.len - 1] == 'k' || name.ptr[name.len - 1] == 'v');
}

rlx_status llm_clear_states(rlx_sequence *s, struct diag *d)
{
    const rlx_model *m = s->m->model;
    rlx_error err;

    s->rows = 0;
    for (size_t i = 0; i < rlx_model_io_count(m, RLX_IO_STATE); i++) {
        rlx_io_info io = {RLX_SIZED(rlx_io_info)};
        rlx_status st = rlx_model_io(m, RLX_IO_STATE, i, &io, &err);
        if (st != RLX_OK)
            return diag_again(d, &err, st);
        if (!is_cache(io.name))
            TRY(clear_state(s, &io, d));
    }
    s->computed = 0;
    s->spoiled = false;
    return RLX_OK;
}
