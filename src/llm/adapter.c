/* adapter.c: LoRA adapters in GGUF files. For a tensor T, the file has T.lora_a [rank, in] and
 * T.lora_b [out, rank]; x T^T becomes x T^T + scale alpha / rank (x A^T) B^T. */
#include "llm/adapter.h"

#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "llm/build.h"

/* ---- the file ----------------------------------------------------------------------------- */

static rlx_status need_text(const rlx_weights *w, const char *key, const char *want,
                            const char *path, struct diag *d)
{
    rlx_str found = {NULL, 0};
    rlx_error err;

    if (rlx_weights_get_str(w, rlx_cstr(key), &found, &err) != RLX_OK)
        return diag_again(d, &err, err.status);
    if (found.ptr && str_eq(found, rlx_cstr(want)))
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_UNSUPPORTED, "%s: %s is \"%.*s\"; \"%s\" is needed", path, key,
                     STR_ARG(found), want);
}

rlx_status llm_adapter_open(rlx_context *ctx, const rlx_llm_adapter *which,
                            const rlx_load_desc *load, const struct llm_spec *s,
                            struct llm_adapter *out, struct diag *d)
{
    rlx_error err;

    if (!which->path || !isfinite((double)which->scale))
        return diag_fail(d, RLX_ERROR_ARGUMENT, "an adapter has no path, or a scale of %g",
                         (double)which->scale);
    *out = (struct llm_adapter){.scale = which->scale != 0 ? which->scale : 1};
    if (rlx_weights_open(ctx, which->path, load, &out->w, &err) != RLX_OK)
        return diag_again(d, &err, err.status);
    TRY(need_text(out->w, "general.type", "adapter", which->path, d));
    TRY(need_text(out->w, "adapter.type", "lora", which->path, d));
    TRY(need_text(out->w, "general.architecture", s->arch->name, which->path, d));
    if (rlx_weights_get_f32(out->w, STR("adapter.lora.alpha"), &out->alpha, &err) != RLX_OK)
        return diag_again(d, &err, err.status);
    return RLX_OK;
}

/* ---- the graph ---------------------------------------------------------------------------- */

static void param_name(size_t adapter, rlx_str tensor, char out[160])
{
    snprintf(out, 160, "adapter.%zu.%.*s", adapter, STR_ARG(tensor));
}

/* Tensor FULL.suffix, if the adapter has it. */
static bool find(const struct llm_adapter *a, const char *full, const char *suffix, rlx_weight *out)
{
    char name[128];
    size_t i;

    snprintf(name, sizeof name, "%s.%s", full, suffix);
    return rlx_weights_find(a->w, rlx_cstr(name), &i) && rlx_weights_at(a->w, i, out);
}

static rlx_value param(struct llm_build *b, size_t adapter, const rlx_weight *t)
{
    char name[160];

    param_name(adapter, t->name, name);
    return rlx_param(b->g, name, RLX_DTYPE_f32, RLX_LIST(t->dim[0], t->dim[1]));
}

static rlx_value add_one(struct llm_build *b, size_t i, const char *full, rlx_value x, rlx_value y,
                         int64_t out, int64_t in)
{
    const struct llm_adapter *a = &b->adapters[i];
    rlx_weight small, large;

    if (!find(a, full, "lora_a", &small) || !find(a, full, "lora_b", &large))
        return y;
    if (small.rank != 2 || large.rank != 2 || small.dim[1] != in || large.dim[0] != out ||
        small.dim[0] != large.dim[1] || small.dim[0] < 1) {
        (diag_fail)(b->d, RLX_ERROR_SHAPE, "adapter %zu does not fit \"%s\", which is [%lld,%lld]",
                    i, full, (long long)out, (long long)in);
        return RLX_NO_VALUE;
    }
    double rank = (double)small.dim[0];
    double scale = (double)a->scale * (a->alpha != 0 ? (double)a->alpha / rank : 1);
    rlx_value h = rlx_matmul(b->g, x, param(b, i, &small), false, true);
    h = rlx_matmul(b->g, h, param(b, i, &large), false, true);
    return rlx_add(b->g, y, llm_scaled(b, h, scale));
}

rlx_value llm_adapted(struct llm_build *b, const char *full, rlx_value x, rlx_value y, int64_t out,
                      int64_t in)
{
    for (size_t i = 0; i < b->adapter_count; i++)
        y = add_one(b, i, full, x, y, out, in);
    return y;
}

rlx_status llm_adapters_check(const struct llm_build *b)
{
    rlx_weight t;
    char name[160];

    for (size_t i = 0; i < b->adapter_count; i++)
        for (size_t k = 0; rlx_weights_at(b->adapters[i].w, k, &t); k++) {
            param_name(i, t.name, name);
            if (rlx_graph_leaf(b->g, name) == RLX_NO_VALUE)
                return diag_fail(b->d, RLX_ERROR_UNSUPPORTED,
                                 "adapter %zu has a tensor \"%.*s\", which goes with no matrix of "
                                 "this model that can be adapted",
                                 i, STR_ARG(t.name));
        }
    return RLX_OK;
}

/* ---- the values --------------------------------------------------------------------------- */

static rlx_status load_one(const struct llm_adapter *a, size_t number, size_t k,
                           const rlx_weight *t, rlx_model *m, struct diag *d)
{
    const size_t count = (size_t)(t->dim[0] * t->dim[1]), bytes = count * sizeof(float);
    rlx_tensor value = {.dtype = RLX_DTYPE_f32, .rank = 2, .bytes = bytes};
    char name[160];
    rlx_error err;

    param_name(number, t->name, name);
    value.dim[0] = t->dim[0];
    value.dim[1] = t->dim[1];
    if (!(value.data = mem_alloc(mem_default(), bytes)))
        return diag_no_memory(d, bytes);
    rlx_status s = rlx_weights_read_f32(a->w, k, 0, count, value.data, &err);
    if (s == RLX_OK)
        s = rlx_model_set_param(m, name, &value, &err);
    mem_free(mem_default(), value.data, bytes);
    return s == RLX_OK ? s : diag_again(d, &err, s);
}

rlx_status llm_adapters_load(const struct llm_adapter *a, size_t count, rlx_model *m,
                             struct diag *d)
{
    rlx_weight t;

    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; rlx_weights_at(a[i].w, k, &t); k++)
            TRY(load_one(&a[i], i, k, &t, m, d));
    return RLX_OK;
}
