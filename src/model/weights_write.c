/* weights_write.c: files of tensors, written: bytes as they are, and numbers packed by threads. */
#include "model/weights_write.h"

#include <math.h>

#include "base/pool.h"
#include "context/context.h"
#include "import/weight_writer.h"
#include "ir/quant/quant_encode.h"
#include "run/convert.h"

struct rlx_weights_writer {
    struct rlx_context *ctx;
    struct weight_writer writer;
    struct pool *pool; /* both only where numbers are written */
    uint8_t *packed;   /* PACKED_BYTES */
};
#define PACKED_BYTES ((size_t)PIECE * PIECES * sizeof(double)) /* of the widest type */

enum { PIECE = 4096, PIECES = 64 }; /* elements: a multiple of every block; pieces at a time */

rlx_status weights_writer_begin(rlx_context *ctx, const char *path,
                                const rlx_weights_content *content, struct rlx_weights_writer **out,
                                struct diag *d)
{
    struct rlx_weights_writer *w = mem_alloc(&ctx->mem, sizeof *w);

    if (!w)
        return diag_no_memory(d, sizeof *w);
    w->ctx = context_retain(ctx);
    rlx_status s = writer_begin(&w->writer, &ctx->mem, path, content, d);
    if (s == RLX_OK)
        *out = w;
    else
        weights_writer_abandon(w);
    return s;
}

bool weights_writer_next(const struct rlx_weights_writer *w, size_t *i, uint64_t *left)
{
    return writer_next(&w->writer, i, left);
}

rlx_status weights_writer_write(struct rlx_weights_writer *w, const void *data, size_t bytes,
                                struct diag *d)
{
    return writer_write(&w->writer, data, bytes, d);
}

/* ---- from numbers ---- */

/* Numbers on their way into the file: pieces that threads take one by one. */
struct numbers {
    const struct weight_type *type;
    const float *x;
    size_t count;
    uint8_t *out;
    bool failed[PIECES];
};

static size_t bytes_of(const struct weight_type *type, size_t elements)
{
    return elements / (size_t)type->elems * (size_t)type->bytes;
}

/* Where the first block is that cannot be packed; count: nowhere. */
static size_t pack(const struct weight_type *type, const float *x, size_t count, uint8_t *out)
{
    size_t elems = (size_t)type->elems;

    if (type->use == RLX_WEIGHT_PLAIN) {
        convert(type->dtype, out, RLX_DTYPE_f32, x, count);
        return count;
    }
    for (size_t k = 0; k < count; k += elems)
        if (quant_first_not_finite(x + k, type->elems) >= 0 ||
            !quant_encode_block((int32_t)type->scheme, x + k, out + bytes_of(type, k)))
            return k;
    return count;
}

static void pack_piece(void *ctx, int64_t piece, int worker)
{
    struct numbers *p = ctx;
    size_t at = (size_t)piece * PIECE, n = p->count - at < PIECE ? p->count - at : PIECE;

    (void)worker;
    p->failed[piece] = pack(p->type, p->x + at, n, p->out + bytes_of(p->type, at)) != n;
}

static rlx_status say_why(const rlx_weight *t, const float *x, uint64_t element, struct diag *d)
{
    const struct weight_type *type = weight_type(t->type);
    int64_t bad = quant_first_not_finite(x, type->elems);

    if (bad >= 0)
        return diag_fail(d, RLX_ERROR_NUMERIC, "tensor \"%.*s\": element %llu is %s",
                         STR_ARG(t->name), (unsigned long long)element + (unsigned long long)bad,
                         isnan(x[bad]) ? "NaN"
                         : x[bad] > 0  ? "Inf"
                                       : "-Inf");
    return diag_fail(d, RLX_ERROR_LIMIT,
                     "tensor \"%.*s\": elements from %llu on are too large for %s, whose scales "
                     "are f16",
                     STR_ARG(t->name), (unsigned long long)element, type->name);
}

/* Up to PIECES pieces; first: the number of x[0] in its tensor. */
static rlx_status pack_some(struct rlx_weights_writer *w, const rlx_weight *t, const float *x,
                            size_t count, uint64_t first, struct diag *d)
{
    struct numbers p = {.type = weight_type(t->type), .x = x, .count = count, .out = w->packed};
    size_t pieces = (count + PIECE - 1) / PIECE;

    pool_run(w->pool, (int64_t)pieces, pack_piece, &p);
    for (size_t i = 0; i < pieces; i++) {
        size_t at = i * PIECE, n = count - at < PIECE ? count - at : PIECE;
        if (!p.failed[i])
            continue;
        at += pack(p.type, x + at, n, p.out);
        return say_why(t, x + at, first + at, d);
    }
    return writer_write(&w->writer, p.out, bytes_of(p.type, count), d);
}

static rlx_status check_numbers(const struct weight_writer *w, uint64_t count, size_t *i,
                                struct diag *d)
{
    uint64_t left;

    if (!writer_next(w, i, &left))
        return diag_fail(d, RLX_ERROR_SIZE, "all tensors have their bytes already");
    const rlx_weight *t = &w->tensor[*i];
    const struct weight_type *type = weight_type(t->type);
    uint64_t elems = (uint64_t)type->elems;
    if (count % elems || count / elems > left / (uint64_t)type->bytes)
        return diag_fail(
            d, RLX_ERROR_SIZE, "tensor \"%.*s\": %llu elements do not fit %llu bytes of %s",
            STR_ARG(t->name), (unsigned long long)count, (unsigned long long)left, type->name);
    bool plain = type->use == RLX_WEIGHT_PLAIN && convert_allowed(type->dtype, RLX_DTYPE_f32);
    bool packed = type->use == RLX_WEIGHT_PACKED && quant_has_encoder((int32_t)type->scheme);
    if (!plain && !packed)
        return diag_fail(d, RLX_ERROR_UNSUPPORTED, "tensor \"%.*s\": %s is not made from numbers",
                         STR_ARG(t->name), type->name);
    return RLX_OK;
}

rlx_status weights_writer_write_f32(struct rlx_weights_writer *w, const float *x, uint64_t count,
                                    struct diag *d)
{
    enum { AT_ONCE = PIECE * PIECES };
    size_t i;

    if (count == 0)
        return RLX_OK;
    TRY(check_numbers(&w->writer, count, &i, d));
    if (!w->pool)
        TRY(pool_create(&w->pool, w->ctx->threads, &w->ctx->mem, d));
    if (!w->packed && !(w->packed = mem_alloc(&w->ctx->mem, PACKED_BYTES)))
        return diag_no_memory(d, PACKED_BYTES);
    const rlx_weight *t = &w->writer.tensor[i];
    const struct weight_type *type = weight_type(t->type);
    uint64_t first = w->writer.done / (uint64_t)type->bytes * (uint64_t)type->elems;
    for (uint64_t done = 0; done < count; done += AT_ONCE) {
        size_t n = (size_t)(count - done < AT_ONCE ? count - done : AT_ONCE);
        TRY(pack_some(w, t, x + done, n, first + done, d));
    }
    return RLX_OK;
}

void weights_writer_make_durable(struct rlx_weights_writer *w)
{
    w->writer.file.durable = true;
}

rlx_status weights_writer_finish(struct rlx_weights_writer *w, struct diag *d)
{
    rlx_status s = writer_finish(&w->writer, d);

    weights_writer_abandon(w);
    return s;
}

void weights_writer_abandon(struct rlx_weights_writer *w)
{
    if (!w)
        return;
    rlx_context *ctx = w->ctx;
    pool_destroy(w->pool);
    mem_free(&ctx->mem, w->packed, PACKED_BYTES);
    writer_free(&w->writer);
    mem_free(&ctx->mem, w, sizeof *w);
    context_release(ctx);
}
