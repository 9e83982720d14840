/* dataset.c: arrays of examples and streams of tokens, in batches.
 *
 *     arrays   order: [ to train on, in a new order each epoch | held out ]
 *     tokens   stream: [ windows from random places            | windows one after another ]
 */
#include "train/dataset.h"

#include <string.h>

#include "base/desc.h"

/* ---- made ---- */

static rlx_status check_array(const rlx_binding *b, size_t i, int64_t examples, struct diag *d)
{
    const rlx_tensor *t = &b->tensor;
    size_t bytes = rlx_dtype_size(t->dtype);

    if (!b->name || (!t->data && t->bytes))
        return diag_fail(d, RLX_ERROR_ARGUMENT, "arrays[%zu] has no %s", i,
                         b->name ? "data" : "name");
    if (t->rank < 1 || t->rank > RLX_MAX_RANK || bytes == 0)
        return diag_fail(d, RLX_ERROR_SHAPE,
                         "\"%s\" has no first axis of examples, or is of no type", b->name);
    for (int32_t k = 0; k < t->rank; k++)
        if (t->dim[k] < 0 || !size_mul(bytes, (size_t)t->dim[k], &bytes))
            return diag_fail(d, RLX_ERROR_SHAPE, "the shape of \"%s\" makes no sense", b->name);
    if (bytes != t->bytes)
        return diag_fail(d, RLX_ERROR_SIZE, "\"%s\" has %zu bytes, its shape asks for %zu", b->name,
                         t->bytes, bytes);
    if (t->dim[0] != examples)
        return diag_fail(d, RLX_ERROR_SHAPE, "\"%s\" has %lld examples, others have %lld", b->name,
                         (long long)t->dim[0], (long long)examples);
    return RLX_OK;
}

static rlx_status copy_name(struct rlx_dataset *s, struct dataset_array *a, const char *name,
                            struct diag *d)
{
    a->name_bytes = strlen(name) + 1;
    a->name = mem_alloc(&s->ctx->mem, a->name_bytes);
    if (!a->name)
        return diag_no_memory(d, a->name_bytes);
    memcpy(a->name, name, a->name_bytes);
    return RLX_OK;
}

static rlx_status make_room(struct rlx_dataset *s, size_t count, struct diag *d)
{
    s->array = mem_alloc(&s->ctx->mem, count * sizeof *s->array);
    s->out = mem_alloc(&s->ctx->mem, count * sizeof *s->out);
    s->count = count; /* from here on destroy looks at both */
    return s->array && s->out ? RLX_OK : diag_no_memory(d, count * sizeof *s->array);
}

/* How many of them are held out: at least one where any are to be, and never all. */
static rlx_status hold_out(int64_t all, double part, const char *what, int64_t *held,
                           struct diag *d)
{
    *held = (int64_t)((double)all * part);
    if (part > 0 && *held == 0)
        *held = 1;
    if (all - *held < 1)
        return diag_fail(d, RLX_ERROR_SIZE, "of %lld %s none is left to train on", (long long)all,
                         what);
    return RLX_OK;
}

static rlx_status add_arrays(struct rlx_dataset *s, const rlx_dataset_desc *desc, struct diag *d)
{
    int64_t all = desc->arrays[0].tensor.rank > 0 ? desc->arrays[0].tensor.dim[0] : 0;

    TRY(make_room(s, desc->array_count, d));
    for (size_t i = 0; i < desc->array_count; i++) {
        struct dataset_array *a = &s->array[i];
        TRY(check_array(&desc->arrays[i], i, all, d));
        a->all = desc->arrays[i].tensor;
        a->elements = 1;
        for (int32_t k = 1; k < a->all.rank; k++)
            a->elements *= (size_t)a->all.dim[k];
        TRY(copy_name(s, a, desc->arrays[i].name, d));
    }
    if (all > UINT32_MAX)
        return diag_fail(d, RLX_ERROR_LIMIT, "%lld examples are more than 2^32", (long long)all);
    TRY(hold_out(all, desc->validation, "examples", &s->held, d));
    s->examples = all - s->held;
    s->order = mem_alloc(&s->ctx->mem, (size_t)all * sizeof *s->order);
    s->epoch_order = mem_alloc(&s->ctx->mem, (size_t)s->examples * sizeof *s->epoch_order);
    if (!s->order || !s->epoch_order)
        return diag_no_memory(d, (size_t)all * sizeof *s->order);
    for (int64_t i = 0; i < all; i++)
        s->order[i] = (uint32_t)i;
    if (s->held)
        order_shuffle(s->order, (uint32_t)all, s->seed, UINT64_MAX);
    return RLX_OK;
}

static rlx_status add_tokens(struct rlx_dataset *s, const rlx_dataset_desc *desc, struct diag *d)
{
    const char *const names[] = {desc->input ? desc->input : "tokens",
                                 desc->target ? desc->target : "targets"};

    s->tokens = desc->tokens;
    s->token_count = (int64_t)desc->token_count;
    s->context = desc->context;
    if (desc->context < 1 || desc->context > INT32_MAX)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "the context is %lld tokens; it must be positive",
                         (long long)desc->context);
    TRY(hold_out(s->token_count, desc->validation, "tokens", &s->token_held, d));
    s->examples = (s->token_count - s->token_held - 1) / s->context;
    s->held = s->token_held ? (s->token_held - 1) / s->context : 0;
    if (s->examples < 1 || (s->token_held && s->held < 1))
        return diag_fail(d, RLX_ERROR_SIZE,
                         "%lld tokens, %lld of them held out, are too few for windows of %lld + 1",
                         (long long)s->token_count, (long long)s->token_held,
                         (long long)s->context);
    TRY(make_room(s, 2, d));
    for (size_t i = 0; i < 2; i++) {
        s->array[i].all =
            (rlx_tensor){.dtype = RLX_DTYPE_i32, .rank = 2, .dim = {s->examples, s->context}};
        s->array[i].elements = (size_t)s->context;
        TRY(copy_name(s, &s->array[i], names[i], d));
    }
    return RLX_OK;
}

static rlx_status check_desc(const rlx_dataset_desc *desc, struct diag *d)
{
    bool arrays = desc->array_count > 0, tokens = desc->token_count > 0;

    if (arrays == tokens || (arrays && !desc->arrays) || (tokens && !desc->tokens))
        return diag_fail(d, RLX_ERROR_ARGUMENT, "a dataset is made of arrays or of tokens");
    if (desc->batch < 0 || desc->batch > INT32_MAX)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "a batch cannot have %lld examples",
                         (long long)desc->batch);
    if (!(desc->validation >= 0 && desc->validation < 1))
        return diag_fail(d, RLX_ERROR_ARGUMENT,
                         "the part that is held out is at least 0 and "
                         "below 1");
    if (desc->token_count > INT64_MAX / 8)
        return diag_fail(d, RLX_ERROR_LIMIT, "there are too many tokens");
    return RLX_OK;
}

rlx_status rlx_dataset_create(rlx_context *ctx, const rlx_dataset_desc *desc, rlx_dataset **out,
                              rlx_error *err)
{
    rlx_dataset_desc own = {RLX_SIZED(rlx_dataset_desc)};
    struct diag d;

    diag_init(&d, "data");
    if (!ctx || !desc || !out)
        (diag_fail)(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !desc ? "desc" : "out");
    else if (DESC_READ(rlx_dataset_desc, &own, desc, &d) == RLX_OK)
        check_desc(&own, &d);
    rlx_dataset *s = d.count ? NULL : mem_alloc(&ctx->mem, sizeof *s);
    if (d.count == 0 && !s)
        (void)diag_no_memory(&d, sizeof *s);
    if (!s)
        return diag_report(&d, err);
    s->ctx = context_retain(ctx);
    s->wanted = own.batch;
    s->seed = own.seed;
    s->epoch = UINT64_MAX;
    if ((own.array_count ? add_arrays : add_tokens)(s, &own, &d) == RLX_OK)
        *out = s;
    else
        rlx_dataset_destroy(s);
    return diag_report(&d, err);
}

void rlx_dataset_destroy(rlx_dataset *s)
{
    if (!s)
        return;
    struct rlx_context *ctx = s->ctx;
    const rlx_allocator *mem = &ctx->mem;
    for (size_t i = 0; s->array && s->out && i < s->count; i++) {
        mem_free(mem, s->array[i].name, s->array[i].name_bytes);
        mem_free(mem, s->out[i].tensor.data, s->out_room);
    }
    mem_free(mem, s->array, s->count * sizeof *s->array);
    mem_free(mem, s->out, s->count * sizeof *s->out);
    mem_free(mem, s->order, (size_t)(s->examples + s->held) * sizeof *s->order);
    mem_free(mem, s->epoch_order, (size_t)s->examples * sizeof *s->epoch_order);
    mem_free(mem, s, sizeof *s);
    context_release(ctx);
}

/* ---- asked ---- */

/* Examples in a batch of what is held out: fewer only where there are fewer. */
static int64_t held_batch(const rlx_dataset *s)
{
    return s->held < s->batch ? s->held : s->batch;
}

rlx_status rlx_dataset_describe(const rlx_dataset *s, rlx_dataset_info *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "data");
    if (!s || !s->batch)
        (diag_fail)(&d, s ? RLX_ERROR_STATE : RLX_ERROR_ARGUMENT, "%s",
                    s ? "the dataset is not fitted to a model" : "the dataset is NULL");
    else {
        const rlx_dataset_info own = {RLX_SIZED(rlx_dataset_info),
                                      .batch = s->batch,
                                      .tokens = s->tokens ? s->batch * s->context : 0,
                                      .examples = s->examples,
                                      .held_out = s->held,
                                      .epoch = s->examples < s->batch ? 1 : s->examples / s->batch,
                                      .validation = s->held ? s->held / held_batch(s) : 0};
        INFO_WRITE(rlx_dataset_info, &own, out, &d);
    }
    return diag_report(&d, err);
}

/* Which example is row r of batch i. */
static uint32_t example(rlx_dataset *s, rlx_split split, uint64_t i, int64_t r)
{
    if (split == RLX_SPLIT_VALIDATION)
        return s->order[s->examples + (int64_t)i * held_batch(s) + r];
    uint64_t per_epoch = (uint64_t)(s->examples / s->batch), epoch = i / per_epoch;
    if (epoch != s->epoch) {
        memcpy(s->epoch_order, s->order, (size_t)s->examples * sizeof *s->order);
        order_shuffle(s->epoch_order, (uint32_t)s->examples, s->seed, epoch);
        s->epoch = epoch;
    }
    return s->epoch_order[(int64_t)(i % per_epoch) * s->batch + r];
}

static rlx_status take_example(rlx_dataset *s, size_t k, uint32_t from, int64_t r, struct diag *d)
{
    const struct dataset_array *a = &s->array[k];
    size_t stride = a->elements * rlx_dtype_size(a->all.dtype);
    size_t width = a->elements * rlx_dtype_size(a->dtype), at;

    if (convert_elements(a->dtype, (char *)s->out[k].tensor.data + (size_t)r * width, a->all.dtype,
                         (const char *)a->all.data + from * stride, a->elements, &at))
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_INDEX, "\"%s\": a number of example %u does not fit %s", a->name,
                     from, rlx_dtype_name(a->dtype));
}

static void take_window(rlx_dataset *s, rlx_split split, uint64_t i, int64_t r)
{
    int64_t train = s->token_count - s->token_held, at;
    size_t bytes = (size_t)s->context * sizeof(int32_t);

    if (split == RLX_SPLIT_VALIDATION)
        at = train + ((int64_t)i * held_batch(s) + r) * s->context;
    else
        at = (int64_t)order_pick((uint64_t)(train - s->context), s->seed,
                                 i * (uint64_t)s->batch + (uint64_t)r);
    for (size_t k = 0; k < 2; k++)
        memcpy((char *)s->out[k].tensor.data + (size_t)r * bytes, s->tokens + at + (int64_t)k,
               bytes);
}

static rlx_status take_batch(rlx_dataset *s, rlx_split split, uint64_t i, struct diag *d)
{
    int64_t rows = split == RLX_SPLIT_VALIDATION ? held_batch(s) : s->batch;

    if (!s->batch)
        return diag_fail(d, RLX_ERROR_STATE, "the dataset is not fitted to a model");
    if (split == RLX_SPLIT_VALIDATION && (!s->held || i >= (uint64_t)(s->held / rows)))
        return diag_fail(d, RLX_ERROR_ARGUMENT, "there is no batch %llu of what is held out",
                         (unsigned long long)i);
    for (int64_t r = 0; r < rows; r++) {
        if (s->tokens) {
            take_window(s, split, i, r);
            continue;
        }
        uint32_t from = example(s, split, i, r);
        for (size_t k = 0; k < s->count; k++)
            TRY(take_example(s, k, from, r, d));
    }
    for (size_t k = 0; k < s->count; k++) {
        rlx_tensor *t = &s->out[k].tensor;
        t->dim[0] = rows;
        t->bytes = (size_t)rows * s->array[k].elements * rlx_dtype_size(t->dtype);
    }
    return RLX_OK;
}

rlx_status rlx_dataset_batch(rlx_dataset *s, rlx_split split, uint64_t i,
                             const rlx_binding **inputs, size_t *count, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "data");
    if (!s || !inputs || !count)
        (diag_fail)(&d, RLX_ERROR_ARGUMENT, "%s is NULL",
                    !s        ? "the dataset"
                    : !inputs ? "inputs"
                              : "count");
    else if (take_batch(s, split, i, &d) == RLX_OK) {
        *inputs = s->out;
        *count = s->count;
    }
    return diag_report(&d, err);
}
