/* model_weights.c: params from a file of tensors, by name. Bytes that fit as they are stay in the
 * file, which the model then keeps open; the others are converted. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "ir/quant/quant_scheme.h"
#include "model/weights.h"
#include "run/convert.h"

/* What a param will have; data NULL: it stays as it is. */
struct taken {
    uint8_t *data;
    enum param_kept kept;
};

enum fit { FIT_AS_IT_IS, FIT_CONVERTED, FIT_UNPACKED };

struct pairing {
    rlx_model *m;
    struct rlx_weights *w;
    struct diag *d;
};

static void dims_text(const int64_t *dim, int32_t rank, char out[160])
{
    size_t len = 0;

    out[0] = 0;
    for (int32_t i = 0; i < rank && len < 130; i++)
        len += (size_t)snprintf(out + len, 160 - len, "%s%" PRId64, i ? "," : "", dim[i]);
}

static rlx_status wrong_shape(const struct pairing *p, const struct weight *t,
                              const struct ir_type *type)
{
    char have[160], want[160];

    dims_text(t->dim, t->rank, have);
    dims_text(type->dim, type->rank, want);
    return diag_fail(p->d, RLX_ERROR_SHAPE, "param \"%.*s\" is %s[%s], the file has %s[%s]",
                     STR_ARG(t->name), rlx_dtype_name(type->dtype), want,
                     weight_type(t->type)->name, have);
}

static bool same_dims(const struct weight *t, const struct ir_type *type, int32_t count)
{
    return t->rank == type->rank &&
           memcmp(t->dim, type->dim, (size_t)count * sizeof t->dim[0]) == 0;
}

/* Packed rows as the u8 that dequant_matmul takes. */
static bool is_packed_form(const struct weight *t, const struct ir_type *type)
{
    int64_t row;

    return t->rank > 0 && type->dtype == RLX_DTYPE_u8 && same_dims(t, type, t->rank - 1) &&
           quant_row_bytes(quant_scheme((int32_t)weight_type(t->type)->scheme), t->dim[t->rank - 1],
                           &row) &&
           type->dim[type->rank - 1] == row;
}

static rlx_status find_fit(const struct pairing *p, const struct weight *t,
                           const struct ir_type *type, enum fit *out)
{
    const struct weight_type *from = weight_type(t->type);

    if (from->use == RLX_WEIGHT_OPAQUE)
        return diag_fail(p->d, RLX_ERROR_UNSUPPORTED, "param \"%.*s\": %s is not read",
                         STR_ARG(t->name), from->name);
    if (from->use == RLX_WEIGHT_PACKED && is_packed_form(t, type)) {
        *out = FIT_AS_IT_IS;
        return RLX_OK;
    }
    if (!same_dims(t, type, t->rank))
        return wrong_shape(p, t, type);
    if (from->use == RLX_WEIGHT_PACKED  ? !dtype_is(type->dtype, CLASS_F)
        : from->use == RLX_WEIGHT_BYTES ? type->dtype != RLX_DTYPE_u8
                                        : !convert_allowed(type->dtype, from->dtype))
        return diag_fail(p->d, RLX_ERROR_DTYPE, "param \"%.*s\" is %s, %s cannot become that",
                         STR_ARG(t->name), rlx_dtype_name(type->dtype), from->name);
    *out = from->use == RLX_WEIGHT_PACKED ? FIT_UNPACKED
           : from->dtype == type->dtype   ? FIT_AS_IT_IS
                                          : FIT_CONVERTED;
    return RLX_OK;
}

static rlx_status check_bools(const struct pairing *p, const struct weight *t, const uint8_t *data)
{
    for (uint64_t i = 0; t->type == RLX_WEIGHT_BOOL && i < t->bytes; i++)
        if (data[i] > 1)
            return diag_fail(p->d, RLX_ERROR_FORMAT, "tensor \"%.*s\" holds a bool of %d",
                             STR_ARG(t->name), data[i]);
    return RLX_OK;
}

static rlx_status unpack(const struct pairing *p, const struct weight *t, rlx_dtype to,
                         const uint8_t *data, uint8_t *out)
{
    enum { PIECE = 1024 }; /* a multiple of every block */
    const struct weight_type *type = weight_type(t->type);
    uint64_t count = t->bytes / (uint64_t)type->bytes * (uint64_t)type->elems;
    float buffer[PIECE];

    for (uint64_t done = 0; done < count; done += PIECE) {
        uint64_t n = count - done < PIECE ? count - done : PIECE;
        TRY(weights_to_f32(t, data, done, n, buffer, p->d));
        convert(to, out + done * rlx_dtype_size(to), RLX_DTYPE_f32, buffer, (size_t)n);
    }
    return RLX_OK;
}

static enum param_kept kept_where(const struct rlx_weights *w, const void *data, size_t bytes)
{
    for (size_t i = 0; i < w->set.file.len; i++)
        if (file_maps(&w->set.file.at[i], data, bytes))
            return PARAM_MAPPED;
    return PARAM_BORROWED;
}

/* The value of a param of that type; out->data is NULL when it fails. */
static rlx_status take_tensor(const struct pairing *p, size_t i, const struct model_param *param,
                              struct taken *out)
{
    const struct ir_type *type = ir_type_of(ir_entry(p->m->mod), param->node);
    const struct weight *t = &p->w->set.tensor.at[i];
    const rlx_allocator *mem = &p->m->ctx->mem;
    const uint8_t *data;
    enum fit fit = FIT_CONVERTED;

    TRY(find_fit(p, t, type, &fit));
    TRY(shared_weights_data(p->w, i, &data, p->d));
    TRY(check_bools(p, t, data));
    if (fit == FIT_AS_IT_IS && (uintptr_t)data % rlx_dtype_size(type->dtype) == 0) {
        *out = (struct taken){(uint8_t *)data, kept_where(p->w, data, (size_t)t->bytes)};
        return RLX_OK;
    }
    const struct model_param fresh = {.bytes = param->bytes};
    void *own;
    rlx_status s = RLX_OK;
    TRY(param_room(&fresh, mem, &own, p->d));
    if (fit == FIT_UNPACKED)
        s = unpack(p, t, type->dtype, data, own);
    else
        convert_unaligned(type->dtype, own, weight_type(t->type)->dtype, data,
                          (size_t)param->bytes / rlx_dtype_size(type->dtype));
    if (kept_where(p->w, data, (size_t)t->bytes) == PARAM_MAPPED)
        file_forget(data, (size_t)t->bytes);
    if (s != RLX_OK) {
        param_drop_room(&fresh, mem, own);
        return s;
    }
    *out = (struct taken){own, PARAM_OWN};
    return RLX_OK;
}

static rlx_status take_all(const struct pairing *p, struct taken *taken, rlx_weights_use *use)
{
    for (size_t k = 0; k < p->m->param_count; k++) {
        const struct model_param *param = &p->m->param[k];
        size_t i;
        if (weights_find(&p->w->set, param->name, &i)) {
            TRY(take_tensor(p, i, param, &taken[k]));
            use->set++;
            use->in_file += taken[k].kept != PARAM_OWN;
            continue;
        }
        if (use->missing++ == 0)
            snprintf(use->example, sizeof use->example, "%.*s", STR_ARG(param->name));
    }
    use->unused = p->w->set.tensor.len - use->set; /* names of params are unique, too */
    return RLX_OK;
}

static void commit(rlx_model *m, struct rlx_weights *w, const struct taken *taken)
{
    for (size_t k = 0; k < m->param_count; k++) {
        if (taken[k].data)
            param_take(&m->values, k, taken[k].data, taken[k].kept, &m->ctx->mem);
    }
    shared_weights_retain(w);
    m->weights.at[m->weights.len++] = w;
}

rlx_status model_load_weights(rlx_model *m, struct rlx_weights *w, rlx_weights_use *use,
                              struct diag *d)
{
    struct pairing p = {m, w, d};

    TRY(model_need_open(m, d));
    size_t bytes = m->param_count * sizeof(struct taken);
    struct taken *taken = mem_alloc(&m->ctx->mem, bytes);
    if ((bytes && !taken) || !vec_room(&m->ctx->mem, &m->weights)) {
        mem_free(&m->ctx->mem, taken, bytes);
        return diag_no_memory(d, bytes);
    }
    rlx_status s = take_all(&p, taken, use);
    if (s == RLX_OK)
        commit(m, w, taken);
    for (size_t k = 0; k < m->param_count && s != RLX_OK; k++)
        if (taken[k].data && taken[k].kept == PARAM_OWN)
            param_drop_room(&(struct model_param){.bytes = m->param[k].bytes}, &m->ctx->mem,
                            taken[k].data);
    mem_free(&m->ctx->mem, taken, bytes);
    return s;
}
