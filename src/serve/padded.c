/* padded.c: a run of `actual` rows on a session that was made for `upper` of them.
 *
 * Inputs are copied into tensors of upper rows, zeros after them; of outputs the first rows are
 * handed out. What a row past actual comes to does not matter: nobody reads it. */
#include <string.h>

#include "serve/serve.h"

/* ---- rows ---- */

/* Of a tensor with rows of `inner` elements: bytes of `rows` rows. */
static rlx_status row_bytes(const rlx_tensor *t, int64_t inner, int64_t rows, size_t *out,
                            struct diag *d)
{
    int64_t bytes;

    if (inner < 1)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "rows of %lld elements cannot be padded",
                         (long long)inner);
    if ((unsigned)t->dtype >= RLX_DTYPE_count || t->rank < 1 || t->rank > RLX_MAX_RANK)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "a tensor of rank %d has no rows", t->rank);
    if (__builtin_mul_overflow(inner, rows, &bytes) ||
        __builtin_mul_overflow(bytes, (int64_t)rlx_dtype_size(t->dtype), &bytes))
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%lld rows of %lld elements overflow 64 bits",
                         (long long)rows, (long long)inner);
    *out = (size_t)bytes;
    return RLX_OK;
}

static rlx_status check_rows(int64_t actual, int64_t upper, struct diag *d)
{
    if (actual >= 0 && actual <= upper)
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_ARGUMENT, "%lld rows do not fit into %lld", (long long)actual,
                     (long long)upper);
}

/* As many bytes as the rows take, and dims that say so: the first one counts rows. */
static rlx_status check_tensor(const rlx_tensor *t, int64_t inner, int64_t rows, size_t *bytes,
                               struct diag *d)
{
    size_t count, whole;

    TRY(row_bytes(t, inner, 1, &whole, d));
    TRY(row_bytes(t, inner, rows, bytes, d));
    if (t->bytes % whole)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%zu bytes are not rows of %zu", t->bytes, whole);
    if (t->bytes != *bytes)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%zu bytes are %zu rows of %zu, not %lld", t->bytes,
                         t->bytes / whole, whole, (long long)rows);
    if (!tensor_count(t, &count) || t->dim[0] != rows ||
        count * rlx_dtype_size(t->dtype) != t->bytes)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "the tensor's first dim is %lld, not its %lld rows",
                         (long long)t->dim[0], (long long)rows);
    if (t->bytes && !t->data)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "data is NULL");
    return RLX_OK;
}

/* `have` rows become `want`: rows are left out at the end, or zeros are put there. */
static rlx_status resize_rows(const rlx_tensor *from, int64_t inner, int64_t have, int64_t want,
                              rlx_tensor *to, struct diag *d)
{
    size_t old, new;

    TRY(check_tensor(from, inner, have, &old, d));
    TRY(row_bytes(from, inner, want, &new, d));
    if (to->bytes < new || (new && !to->data))
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%lld rows, %zu bytes, do not fit into %zu",
                         (long long)want, new, to->bytes);
    size_t kept = old < new ? old : new;
    if (kept)
        memcpy(to->data, from->data, kept);
    if (new > kept)
        memset((char *)to->data + kept, 0, new - kept);
    void *data = to->data;
    *to = *from;
    to->data = data;
    to->dim[0] = want;
    to->bytes = new;
    return RLX_OK;
}

rlx_status rows_pad(const rlx_tensor *from, int64_t inner, int64_t actual, int64_t upper,
                    rlx_tensor *to, struct diag *d)
{
    TRY(check_rows(actual, upper, d));
    return resize_rows(from, inner, actual, upper, to, d);
}

rlx_status rows_slice(const rlx_tensor *from, int64_t inner, int64_t actual, int64_t upper,
                      rlx_tensor *to, struct diag *d)
{
    TRY(check_rows(actual, upper, d));
    return resize_rows(from, inner, upper, actual, to, d);
}

/* ---- the run ---- */

struct padding {
    const rlx_padded_run *run;
    struct arena arena;
    rlx_binding *in, *out; /* of upper rows */
    struct diag *diag;
};

/* Says whose fault it was. */
static rlx_status about(struct padding *p, const char *what, const char *name,
                        const struct diag *why)
{
    return diag_fail(p->diag, why->first.status, "%s \"%s\": %.300s", what, name ? name : "",
                     why->first.message);
}

static rlx_status pad_input(struct padding *p, size_t i)
{
    const rlx_padded_run *run = p->run;
    const rlx_binding *from = &run->inputs[i];
    struct diag own;
    size_t bytes = 0;

    diag_init(&own, "pad");
    p->in[i].name = from->name;
    if (check_rows(run->actual, run->upper, &own) != RLX_OK ||
        row_bytes(&from->tensor, run->input_inner[i], run->upper, &bytes, &own) != RLX_OK)
        return about(p, "input", from->name, &own);
    rlx_tensor to = {.data = arena_alloc(&p->arena, bytes, 64), .bytes = bytes};
    if (!to.data)
        return diag_no_memory(p->diag, bytes);
    if (rows_pad(&from->tensor, run->input_inner[i], run->actual, run->upper, &to, &own) != RLX_OK)
        return about(p, "input", from->name, &own);
    p->in[i].tensor = to;
    return RLX_OK;
}

/* Room for the upper rows of an output; one without rows is read where the caller wants it. */
static rlx_status place_output(struct padding *p, size_t i)
{
    const rlx_padded_run *run = p->run;
    const rlx_binding *to = &run->outputs[i];
    struct diag own;
    size_t bytes = 0, small = 0;

    diag_init(&own, "pad");
    p->out[i] = *to;
    if (run->output_inner[i] == 0)
        return RLX_OK;
    rlx_tensor shape = {.dtype = to->tensor.dtype, .rank = 1}; /* the run fills in the rest */
    if (row_bytes(&shape, run->output_inner[i], run->upper, &bytes, &own) != RLX_OK ||
        row_bytes(&shape, run->output_inner[i], run->actual, &small, &own) != RLX_OK)
        return about(p, "output", to->name, &own);
    if (to->tensor.bytes < small)
        return diag_fail(p->diag, RLX_ERROR_ARGUMENT,
                         "output \"%s\": %lld rows take %zu bytes, there is room for %zu",
                         to->name ? to->name : "", (long long)run->actual, small, to->tensor.bytes);
    p->out[i].tensor.data = arena_alloc(&p->arena, bytes, 64);
    p->out[i].tensor.bytes = bytes;
    return p->out[i].tensor.data ? RLX_OK : diag_no_memory(p->diag, bytes);
}

static rlx_status take_output(struct padding *p, size_t i)
{
    const rlx_padded_run *run = p->run;
    rlx_binding *to = &run->outputs[i];
    struct diag own;

    diag_init(&own, "slice");
    if (run->output_inner[i] == 0)
        to->tensor = p->out[i].tensor;
    else if (p->out[i].tensor.dim[0] == run->actual && run->actual < run->upper) {
        /* a run that was given the actual size returns that many rows by itself */
        p->out[i].tensor.bytes =
            (size_t)(p->out[i].tensor.bytes / (size_t)run->upper) * (size_t)run->actual;
        if (rows_slice(&p->out[i].tensor, run->output_inner[i], run->actual, run->actual,
                       &to->tensor, &own) != RLX_OK)
            return about(p, "output", to->name, &own);
    } else if (rows_slice(&p->out[i].tensor, run->output_inner[i], run->actual, run->upper,
                          &to->tensor, &own) != RLX_OK)
        return about(p, "output", to->name, &own);
    return RLX_OK;
}

static rlx_status run_all(rlx_session *s, struct padding *p)
{
    const rlx_padded_run *run = p->run;
    size_t in_count = run->input_count + run->other_count;
    rlx_dim_size dim = {run->dim, run->actual};

    p->in = arena_array(&p->arena, rlx_binding, in_count);
    p->out = arena_array(&p->arena, rlx_binding, run->output_count);
    if (!p->in || !p->out)
        return diag_no_memory(p->diag, in_count * sizeof *p->in);
    for (size_t i = 0; i < run->input_count; i++)
        TRY(pad_input(p, i));
    if (run->other_count)
        memcpy(p->in + run->input_count, run->others, run->other_count * sizeof *p->in);
    for (size_t i = 0; i < run->output_count; i++)
        TRY(place_output(p, i));
    rlx_run_desc desc = {
        RLX_SIZED(rlx_run_desc), p->in,           in_count, p->out, run->output_count,
        run->dim ? &dim : NULL,  run->dim != NULL};
    TRY(session_run(s, &desc, p->diag));
    for (size_t i = 0; i < run->output_count; i++)
        TRY(take_output(p, i));
    return RLX_OK;
}

rlx_status run_padded(struct rlx_session *s, const rlx_padded_run *run, struct diag *d)
{
    if ((run->input_count && (!run->inputs || !run->input_inner)) ||
        (run->other_count && !run->others) ||
        (run->output_count && (!run->outputs || !run->output_inner)))
        return diag_fail(d, RLX_ERROR_ARGUMENT, "a list of the run is NULL but not empty");
    TRY(session_is_whole(s, "run padded", d));
    TRY(check_rows(run->actual, run->upper, d));
    struct padding p = {.run = run, .diag = d};
    arena_init(&p.arena, &s->model->ctx->mem);
    rlx_status status = run_all(s, &p);
    arena_free(&p.arena);
    return status;
}
