/* vectors.c: a vector of a text: those that the model has of its tokens, put together into one.
 *
 * A text is read in one run, from its beginning: nothing stays for a later one. So cosines and
 * sines of all positions are made once, and a run takes as many rows of them as it has tokens. */
#include <math.h>

#include "base/desc.h"
#include "base/mem.h"
#include "base/str.h"
#include "llm/build.h"
#include "llm/engine.h"

/* ---- the graph's end ---------------------------------------------------------------------- */

/* Matrices that some models have after everything else, without anything between them. */
static const char *const dense[] = {"dense_2", "dense_3"};
enum { DENSE = sizeof dense / sizeof dense[0] };

static bool dense_rows(const rlx_weights *w, size_t i, int64_t *rows)
{
    const char *const name[DENSE] = {"dense_2.weight", "dense_3.weight"};
    rlx_weight t;

    if (!llm_tensor(w, name[i], &t) || t.rank != 2)
        return false;
    *rows = t.dim[0];
    return true;
}

int64_t llm_vector_width(const rlx_weights *w, const struct llm_spec *s)
{
    int64_t width = s->width;

    for (size_t i = 0; i < DENSE; i++)
        dense_rows(w, i, &width);
    return width;
}

rlx_value llm_pooled(struct llm_build *b, rlx_value x, rlx_llm_pooling pooling)
{
    int64_t width = b->spec->width, rows;

    if (pooling == RLX_LLM_POOLING_FIRST)
        x = rlx_narrow(b->g, x, 1, 0, 1);
    else if (pooling == RLX_LLM_POOLING_LAST)
        x = rlx_narrow(b->g, x, 1, rlx_dim_sub(b->g, b->rows, 1), 1);
    else
        x = rlx_reduce_mean(b->g, x, RLX_LIST(1), true);
    for (size_t i = 0; i < DENSE; i++)
        if (dense_rows(b->w, i, &rows)) {
            x = llm_linear(b, LLM_GLOBAL, dense[i], x, rows, width);
            width = rows;
        }
    return rlx_reshape(b->g, x, RLX_LIST(width));
}

/* ---- what a model keeps for it ------------------------------------------------------------ */

bool llm_only_vectors(const struct llm_spec *s)
{
    return !s->has_head || !s->causal;
}

rlx_status llm_settle_pooling(const struct llm_spec *s, rlx_llm_pooling *how, struct diag *d)
{
    if (*how != RLX_LLM_POOLING_AUTO)
        return RLX_OK;
    if (s->pooling == LLM_POOL_RANK)
        return diag_fail(
            d, RLX_ERROR_UNSUPPORTED,
            "the model ranks texts (pooling_type 4), which is not supported: it has no "
            "vectors of them");
    if (s->pooling < LLM_POOL_NONE || s->pooling > LLM_POOL_RANK)
        return diag_fail(d, RLX_ERROR_FORMAT, "there is no pooling_type %lld",
                         (long long)s->pooling);
    *how = s->pooling == LLM_POOL_NONE ? RLX_LLM_POOLING_MEAN : (rlx_llm_pooling)s->pooling;
    return RLX_OK;
}

static size_t table_bytes(const rlx_llm *m, int r)
{
    return llm_table_count(&m->turns[r], m->desc.context) * sizeof(float);
}

static rlx_status make_tables(rlx_llm *m, int r, struct diag *d)
{
    struct llm_vectors *v = &m->vectors;

    v->cos[r] = mem_alloc(mem_default(), table_bytes(m, r));
    v->sin[r] = mem_alloc(mem_default(), table_bytes(m, r));
    if (!v->cos[r] || !v->sin[r])
        return diag_no_memory(d, table_bytes(m, r));
    llm_turns_fill(&m->turns[r], 0, m->desc.context, v->cos[r], v->sin[r]);
    return RLX_OK;
}

rlx_status llm_vectors_open(rlx_llm *m, struct diag *d)
{
    const size_t count = (size_t)m->desc.context;
    struct llm_vectors *v = &m->vectors;
    rlx_error err;

    v->position = mem_alloc(mem_default(), count * sizeof *v->position);
    v->temper = mem_alloc(mem_default(), count * sizeof *v->temper);
    if (!v->position || !v->temper)
        return diag_no_memory(d, count * sizeof *v->position);
    for (size_t i = 0; i < count; i++)
        v->position[i] = (int32_t)i;
    if (m->spec.temper != 0)
        llm_temper_fill(&m->spec, 0, m->desc.context, v->temper);
    for (int r = 0; r < LLM_ROPES; r++)
        if (m->turns_used[r])
            TRY(make_tables(m, r, d));
    if (rlx_session_create(m->model, m->device, NULL, &v->session, &err) != RLX_OK)
        return diag_again(d, &err, err.status);
    return RLX_OK;
}

void llm_vectors_close(rlx_llm *m)
{
    struct llm_vectors *v = &m->vectors;

    rlx_session_destroy(v->session);
    mem_free(mem_default(), v->position, (size_t)m->desc.context * sizeof *v->position);
    mem_free(mem_default(), v->temper, (size_t)m->desc.context * sizeof *v->temper);
    for (int r = 0; r < LLM_ROPES; r++) {
        mem_free(mem_default(), v->cos[r], v->cos[r] ? table_bytes(m, r) : 0);
        mem_free(mem_default(), v->sin[r], v->sin[r] ? table_bytes(m, r) : 0);
    }
}

/* ---- a run -------------------------------------------------------------------------------- */

static rlx_status check(const rlx_llm *m, const int32_t *id, size_t count, struct diag *d)
{
    if (!m->gives_vectors)
        return diag_fail(d, RLX_ERROR_STATE,
                         "the model was opened to go on with texts: rlx_llm_desc.vectors is false");
    if (count == 0)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "a text without tokens has no vector");
    return llm_check_tokens(m, 0, id, count, d);
}

static rlx_status compute(rlx_llm *m, const int32_t *id, int64_t n, float *out, struct diag *d)
{
    const struct llm_vectors *v = &m->vectors;
    struct llm_inputs in = {.count = 0};
    rlx_binding result = {
        LLM_VECTOR,
        {.dtype = RLX_DTYPE_f32, .data = out, .bytes = (size_t)m->vector_width * sizeof *out}};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), .outputs = &result, .output_count = 1};
    rlx_error err;

    llm_input_add(&in, LLM_TOKENS, RLX_DTYPE_i32, RLX_LIST(1, n), id);
    if (m->spec.temper != 0)
        llm_input_add(&in, LLM_TEMPER, RLX_DTYPE_f32, RLX_LIST(n, 1), v->temper);
    if (m->spec.learned_positions)
        llm_input_add(&in, LLM_POSITIONS, RLX_DTYPE_i32, RLX_LIST(n), v->position);
    for (int r = 0; r < LLM_ROPES; r++)
        if (m->turns_used[r]) {
            const rlx_list shape = RLX_LIST(n, m->turns[r].pairs);
            llm_input_add(&in, llm_table_name(r, false), RLX_DTYPE_f32, shape, v->cos[r]);
            llm_input_add(&in, llm_table_name(r, true), RLX_DTYPE_f32, shape, v->sin[r]);
        }
    run.inputs = in.at;
    run.input_count = in.count;
    if (rlx_session_run(v->session, &run, &err) != RLX_OK)
        return diag_again(d, &err, err.status);
    return RLX_OK;
}

/* To a length of 1; what has none stays as it is. */
static void normalise(float *x, int64_t count)
{
    double square = 0;

    for (int64_t i = 0; i < count; i++)
        square += (double)x[i] * (double)x[i];
    for (int64_t i = 0; square > 0 && i < count; i++)
        x[i] = (float)((double)x[i] / sqrt(square));
}

rlx_status rlx_llm_embed(rlx_llm *m, const int32_t *id, size_t count, bool unit, float *out,
                         rlx_error *err)
{
    struct diag d;

    diag_init(&d, "llm");
    if (!m || (!id && count) || !out)
        (diag_fail)(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !m ? "m" : out ? "id" : "out");
    else if (check(m, id, count, &d) == RLX_OK &&
             compute(m, id, (int64_t)count, out, &d) == RLX_OK && unit)
        normalise(out, m->vector_width);
    return diag_report(&d, err);
}
