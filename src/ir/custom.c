/* custom.c: a registered op, found by its name, and its answers, none of which is taken on trust.
 */
#include "ir/custom.h"

#include <inttypes.h>

#include "base/str.h"

const rlx_custom_op *custom_find(const struct ir_customs *c, rlx_str name)
{
    if (!c)
        return NULL;
    for (size_t i = 0; i < c->count; i++)
        if (str_eq(rlx_cstr(c->op[i].name), name))
            return &c->op[i];
    return NULL;
}

int32_t custom_results(const rlx_custom_op *op)
{
    return op->outputs ? op->outputs : 1;
}

bool custom_tensor(const struct ir_type *t, rlx_tensor *out)
{
    uint64_t bytes;

    if (!type_bytes(t, &bytes) || bytes > SIZE_MAX)
        return false;
    *out = (rlx_tensor){.dtype = t->dtype, .rank = t->rank, .bytes = (size_t)bytes};
    for (int32_t i = 0; i < t->rank; i++)
        out->dim[i] = t->dim[i];
    return true;
}

rlx_status custom_failed(const rlx_custom_op *op, const char *function, rlx_status s,
                         const char *message, struct diag *d)
{
    if ((unsigned)s > RLX_ERROR_INTERNAL)
        return diag_fail(d, RLX_ERROR_ARGUMENT,
                         "custom op \"%s\": its %s function returned %d, which is not a status",
                         op->name, function, (int)s);
    return diag_fail(d, s, "custom op \"%s\": %s failed: %s", op->name, function,
                     message && message[0] ? message : rlx_status_text(s));
}

static rlx_status check_result(const rlx_custom_op *op, int32_t i, rlx_tensor *t, struct diag *d)
{
    struct ir_type type = {.dtype = t->dtype, .rank = t->rank};

    if ((unsigned)t->dtype >= RLX_DTYPE_count)
        return diag_fail(d, RLX_ERROR_GRAPH,
                         "custom op \"%s\" gives result %d no element type (%d)", op->name, i,
                         (int)t->dtype);
    if (t->rank < 0 || t->rank > RLX_MAX_RANK)
        return diag_fail(d, t->rank < 0 ? RLX_ERROR_GRAPH : RLX_ERROR_LIMIT,
                         "custom op \"%s\" gives result %d rank %d, at most %d fit", op->name, i,
                         t->rank, RLX_MAX_RANK);
    for (int32_t k = 0; k < t->rank; k++) {
        if (t->dim[k] < 0)
            return diag_fail(d, RLX_ERROR_GRAPH,
                             "custom op \"%s\" gives axis %d of result %d the size %" PRId64,
                             op->name, k, i, t->dim[k]);
        type.dim[k] = t->dim[k];
    }
    if (!custom_tensor(&type, t))
        return diag_fail(d, RLX_ERROR_LIMIT, "custom op \"%s\": result %d is too large", op->name,
                         i);
    return RLX_OK;
}

rlx_status custom_infer(const rlx_custom_op *op, const rlx_tensor *in, int32_t in_count,
                        const struct ir_blob *attrs, rlx_tensor *out, struct diag *d)
{
    char message[CUSTOM_MESSAGE] = "";

    for (int32_t i = 0; i < CUSTOM_RESULTS; i++)
        out[i] = (rlx_tensor){0};
    rlx_status s = op->infer(op->user, in, in_count, attrs->ptr, attrs->len, out, message);
    message[CUSTOM_MESSAGE - 1] = 0;
    if (s != RLX_OK)
        return custom_failed(op, "infer", s, message, d);
    for (int32_t i = 0; i < custom_results(op); i++)
        TRY(check_result(op, i, &out[i], d));
    return RLX_OK;
}
