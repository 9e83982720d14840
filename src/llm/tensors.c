/* tensors.c: a file's tensors as params of the graph, each in the type it has there: packed weights
 * are multiplied as they are. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "llm/build.h"

struct llm_tensor {
    rlx_value param;
    bool packed;
    rlx_quant_scheme scheme;
};

static const char *full_name(int64_t layer, const char *name, char out[96])
{
    if (layer == LLM_GLOBAL)
        snprintf(out, 96, "%s", name);
    else
        snprintf(out, 96, "blk.%lld.%s", (long long)layer, name);
    return out;
}

bool llm_has(const struct llm_build *b, int64_t layer, const char *name)
{
    char full[96];
    size_t i;

    return b->w && rlx_weights_find(b->w, rlx_cstr(full_name(layer, name, full)), &i);
}

/* The tensor of that name, which must be [.., k] of that shape. false: the file has none, or one of
 * a type that cannot be multiplied; the diag knows. */
static bool find_type(struct llm_build *b, const char *full, rlx_weight_type_info *out)
{
    rlx_weight tensor;
    rlx_error err;
    size_t i;

    *out = (rlx_weight_type_info){RLX_SIZED(rlx_weight_type_info), .use = RLX_WEIGHT_PLAIN};
    if (!b->w)
        return true;
    if (!rlx_weights_find(b->w, rlx_cstr(full), &i) || !rlx_weights_at(b->w, i, &tensor)) {
        (diag_fail)(b->d, RLX_ERROR_FORMAT, "the file has no tensor \"%s\"", full);
        return false;
    }
    if (rlx_weight_type_describe(tensor.type, out, &err) != RLX_OK) {
        diag_again(b->d, &err, err.status);
        return false;
    }
    if (out->use == RLX_WEIGHT_PLAIN || out->use == RLX_WEIGHT_PACKED)
        return true;
    (diag_fail)(b->d, RLX_ERROR_UNSUPPORTED,
                "the tensor \"%s\" is of the type %s, which cannot be multiplied", full, out->name);
    return false;
}

/* The param of that name, of rows with k numbers each; lead: the axes before these. */
static struct llm_tensor matrices(struct llm_build *b, int64_t layer, const char *name,
                                  rlx_list lead, int64_t k)
{
    struct llm_tensor t = {.param = RLX_NO_VALUE};
    rlx_weight_type_info type;
    rlx_list shape = lead;
    char full[96];

    if (!find_type(b, full_name(layer, name, full), &type))
        return t;
    t.packed = type.use == RLX_WEIGHT_PACKED;
    t.scheme = type.scheme;
    t.param = rlx_graph_leaf(b->g, full);
    if (t.param != RLX_NO_VALUE)
        return t;
    if (t.packed && k % type.block_elems) {
        (diag_fail)(b->d, RLX_ERROR_SHAPE, "rows of %lld numbers of \"%s\" are not blocks of %d",
                    (long long)k, full, (int)type.block_elems);
        return t;
    }
    shape.at[shape.count++] = t.packed ? k / type.block_elems * type.block_bytes : k;
    t.param = rlx_param(b->g, full, t.packed ? RLX_DTYPE_u8 : RLX_DTYPE_f32, shape);
    return t;
}

static struct llm_tensor matrix(struct llm_build *b, int64_t layer, const char *name, int64_t rows,
                                int64_t k)
{
    return matrices(b, layer, name, RLX_LIST(rows), k);
}

static rlx_value times_matrix(struct llm_build *b, rlx_value x, struct llm_tensor t, int64_t k)
{
    rlx_dequant_matmul_desc desc = RLX_DEQUANT_MATMUL_DESC_INIT;

    if (!t.packed)
        return rlx_matmul(b->g, x, t.param, false, true);
    desc.scheme = t.scheme;
    desc.k = k;
    desc.act = b->exact ? RLX_ACT_PRECISION_exact : RLX_ACT_PRECISION_q8;
    return rlx_dequant_matmul(b->g, x, t.param, RLX_NO_VALUE, RLX_NO_VALUE, &desc);
}

rlx_value llm_vector(struct llm_build *b, int64_t layer, const char *name, rlx_list shape)
{
    rlx_weight_type_info type;
    char full[96];

    if (!find_type(b, full_name(layer, name, full), &type))
        return RLX_NO_VALUE;
    rlx_value there = rlx_graph_leaf(b->g, full);
    return there != RLX_NO_VALUE ? there : rlx_param(b->g, full, RLX_DTYPE_f32, shape);
}

/* ---- what is computed with them ---- */

static rlx_value with_lora(struct llm_build *b, int64_t layer, const char *name, rlx_value x,
                           rlx_value y, int64_t out, int64_t in)
{
    int64_t rank = b->spec->lora_rank;
    char full[96], part[112];

    if (rank == 0 || layer == LLM_GLOBAL)
        return y;
    full_name(layer, name, full);
    snprintf(part, sizeof part, "%s.lora_a", full);
    rlx_value small = rlx_param(b->g, part, RLX_DTYPE_f32, RLX_LIST(rank, in));
    snprintf(part, sizeof part, "%s.lora_b", full);
    rlx_value large = rlx_param(b->g, part, RLX_DTYPE_f32, RLX_LIST(out, rank));
    small = rlx_matmul(b->g, x, small, false, true);
    large = rlx_matmul(b->g, small, large, false, true);
    return rlx_add(b->g, y,
                   rlx_mul(b->g, large, rlx_scalar(b->g, large, (double)b->spec->lora_scale)));
}

static rlx_value with_scale(struct llm_build *b, int64_t layer, const char *part, rlx_value y)
{
    char name[64];

    snprintf(name, sizeof name, "%s.scale", part);
    return llm_has(b, layer, name) ? rlx_mul(b->g, y, llm_vector(b, layer, name, RLX_LIST(1))) : y;
}

static rlx_value with_bias(struct llm_build *b, int64_t layer, const char *part, rlx_value y,
                           int64_t out)
{
    char name[64];

    snprintf(name, sizeof name, "%s.bias", part);
    return llm_has(b, layer, name) ? rlx_add(b->g, y, llm_vector(b, layer, name, RLX_LIST(out)))
                                   : y;
}

rlx_value llm_linear(struct llm_build *b, int64_t layer, const char *part, rlx_value x, int64_t out,
                     int64_t in)
{
    char name[64], full[96];

    snprintf(name, sizeof name, "%s.weight", part);
    rlx_value y = times_matrix(b, x, matrix(b, layer, name, out, in), in);
    y = with_lora(b, layer, name, x, y, out, in);
    y = llm_adapted(b, full_name(layer, name, full), x, y, out, in);
    if (strncmp(part, "ffn_", 4) == 0)
        return with_scale(b, layer, part, with_bias(b, layer, part, y, out));
    return with_bias(b, layer, part, with_scale(b, layer, part, y), out);
}

rlx_expert_matrix llm_expert_matrix(struct llm_build *b, int64_t layer, const char *part,
                                    int64_t experts, int64_t out, int64_t in)
{
    rlx_expert_matrix m = RLX_EXPERT_MATRIX_INIT;
    char name[64];

    snprintf(name, sizeof name, "%s.weight", part);
    struct llm_tensor t = matrices(b, layer, name, RLX_LIST(experts, out), in);
    m.w = t.param;
    m.scheme = t.scheme;
    snprintf(name, sizeof name, "%s.bias", part);
    if (llm_has(b, layer, name))
        m.bias = llm_vector(b, layer, name, RLX_LIST(experts, out));
    snprintf(name, sizeof name, "%s.scale", part);
    if (llm_has(b, layer, name))
        m.scale = llm_vector(b, layer, name, RLX_LIST(experts));
    return m;
}

rlx_value llm_each(struct llm_build *b, int64_t layer, const char *part, rlx_value x, int64_t count,
                   int64_t out, int64_t in)
{
    char name[64];

    snprintf(name, sizeof name, "%s.weight", part);
    struct llm_tensor t = matrices(b, layer, name, RLX_LIST(count, out), in);
    if (!t.packed)
        return rlx_matmul(b->g, x, t.param, false, true);
    return rlx_matmul(b->g, x, rlx_dequant_moe_weights(b->g, t.param, t.scheme, in), false, false);
}

rlx_value llm_rows(struct llm_build *b, const char *name, int64_t count, int64_t width,
                   rlx_value which)
{
    struct llm_tensor t = matrix(b, LLM_GLOBAL, name, count, width);

    return t.packed ? rlx_dequant_gather(b->g, t.param, which, t.scheme, width)
                    : rlx_gather(b->g, t.param, which, 0);
}

rlx_value llm_embed(struct llm_build *b, rlx_value tokens)
{
    return llm_rows(b, "token_embd.weight", b->spec->vocab, b->spec->width, tokens);
}

rlx_value llm_unembed(struct llm_build *b, rlx_value x)
{
    const struct llm_spec *s = b->spec;

    if (!s->tied)
        return llm_linear(b, LLM_GLOBAL, "output", x, s->vocab, s->width);
    struct llm_tensor t = matrix(b, LLM_GLOBAL, "token_embd.weight", s->vocab, s->width);
    return times_matrix(b, x, t, s->width);
}

static rlx_value all_alike(struct llm_build *b, rlx_value like, int64_t width, double v)
{
    return rlx_expand(b->g, rlx_scalar(b->g, like, v), RLX_LIST(width));
}

/* A gain or a shift that is missing changes nothing. */
static rlx_value normed(struct llm_build *b, rlx_value x, rlx_value gain, rlx_value shift,
                        int64_t width)
{
    if (gain == RLX_NO_VALUE)
        gain = all_alike(b, x, width, 1);
    if (b->spec->norm == LLM_NORM_RMS)
        return rlx_rms_norm(b->g, x, gain, shift, -1, b->spec->eps);
    if (shift == RLX_NO_VALUE)
        shift = all_alike(b, x, width, 0);
    return rlx_layer_norm(b->g, x, gain, shift, -1, b->spec->eps);
}

rlx_value llm_bare_norm(struct llm_build *b, rlx_value x, int64_t width)
{
    return normed(b, x, RLX_NO_VALUE, RLX_NO_VALUE, width);
}

rlx_value llm_norm(struct llm_build *b, int64_t layer, const char *part, rlx_value x, int64_t width)
{
    char name[64];

    if (!part)
        return x;
    if (b->spec->bare_norms)
        return llm_bare_norm(b, x, width);
    snprintf(name, sizeof name, "%s.weight", part);
    if (!llm_has(b, layer, name) && llm_has(b, layer, part))
        snprintf(name, sizeof name, "%s", part); /* some files leave the suffix out */
    rlx_value gain = llm_vector(b, layer, name, RLX_LIST(width)), shift = RLX_NO_VALUE;
    snprintf(name, sizeof name, "%s.bias", part);
    if (llm_has(b, layer, name))
        shift = llm_vector(b, layer, name, RLX_LIST(width));
    return gain == RLX_NO_VALUE ? gain : normed(b, x, gain, shift, width);
}

rlx_value llm_columns(struct llm_build *b, rlx_value x, int64_t first, int64_t count)
{
    return rlx_narrow(b->g, x, -1, first, count);
}

rlx_value llm_scaled(struct llm_build *b, rlx_value x, double by)
{
    return by == 1 ? x : rlx_mul(b->g, x, rlx_scalar(b->g, x, by));
}

rlx_value llm_capped(struct llm_build *b, rlx_value x, double cap)
{
    return cap == 0 ? x : llm_scaled(b, rlx_tanh(b->g, llm_scaled(b, x, 1 / cap)), cap);
}
