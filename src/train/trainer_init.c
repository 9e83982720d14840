/* trainer_init.c: what a param holds that was given no value. Numbers are drawn on the host, from
 * the seed and the name, so that they are the same on every device. */
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/rng.h"
#include "train/train.h"
#include "train/trainer.h"

/* Without a rule of the caller's; the first that fits counts. */
static const struct {
    const char *params;
    int32_t most_axes;
    rlx_init how;
    float scale;
} usual[] = {
    {"*norm*", 1, RLX_INIT_CONSTANT, 1},
    {"*gamma*", 1, RLX_INIT_CONSTANT, 1},
    {"*scale*", 1, RLX_INIT_CONSTANT, 1},
    {"*", 1, RLX_INIT_CONSTANT, 0},
    {"*emb*", RLX_MAX_RANK, RLX_INIT_NORMAL, 0.02f},
    {"*", RLX_MAX_RANK, RLX_INIT_FAN_IN, 1},
};

static rlx_status find_rule(const rlx_trainer_desc *desc, const rlx_trainer_value *v,
                            rlx_init_rule *out, rlx_error *err)
{
    for (size_t i = 0; i < desc->init_count; i++) {
        *out = desc->init[i];
        if (!out->params || (int)out->how < 0 || out->how > RLX_INIT_FAN_IN ||
            !isfinite((double)out->scale))
            return trainer_fail(err, RLX_ERROR_ARGUMENT,
                                "init[%zu] has no pattern, or is no rule there is", i);
        if (train_matches(out->params, v->name))
            return RLX_OK;
    }
    size_t i = 0;
    while (v->rank > usual[i].most_axes || !train_matches(usual[i].params, v->name))
        i++;
    *out = (rlx_init_rule){usual[i].params, usual[i].how, usual[i].scale};
    return RLX_OK;
}

static double fan_in(const rlx_trainer_value *v)
{
    double n = 1;

    if (v->rank == 4 || v->rank == 5)
        for (int32_t i = 1; i < v->rank; i++)
            n *= (double)v->dim[i];
    else if (v->rank > 1)
        n = (double)v->dim[v->rank - 2];
    else if (v->rank == 1)
        n = (double)v->dim[0];
    return n > 0 ? n : 1;
}

static void store(rlx_dtype dtype, void *out, size_t i, float x)
{
    switch (dtype) {
    case RLX_DTYPE_f64: ((double *)out)[i] = (double)x; break;
    case RLX_DTYPE_f16: ((uint16_t *)out)[i] = f32_to_f16(x); break;
    case RLX_DTYPE_bf16: ((uint16_t *)out)[i] = f32_to_bf16(x); break;
    default: ((float *)out)[i] = x;
    }
}

rlx_status trainer_init(const rlx_trainer_desc *desc, const struct trainer_value *v, void *out,
                        rlx_error *err)
{
    size_t count = v->bytes / rlx_dtype_size(v->info.dtype);
    uint64_t stream = 0xcbf29ce484222325u; /* FNV-1a of the name */
    struct rng_philox r;
    rlx_init_rule rule;

    if (v->info.dtype > RLX_DTYPE_f64)
        return trainer_fail(err, RLX_ERROR_MISSING_INPUT,
                            "the param \"%.*s\", %s, has no value, and random ones are for floats",
                            STR_ARG(v->info.name), rlx_dtype_name(v->info.dtype));
    TRY(find_rule(desc, &v->info, &rule, err));
    for (size_t i = 0; i < v->info.name.len; i++)
        stream = (stream ^ (uint8_t)v->info.name.ptr[i]) * 0x100000001b3u;
    rng_philox_init(&r, stream ^ desc->seed * 0x9e3779b97f4a7c15u);
    float scale = rule.how == RLX_INIT_FAN_IN ? (float)((double)rule.scale / sqrt(fan_in(&v->info)))
                                              : rule.scale;
    for (size_t i = 0; i < count; i++)
        store(v->info.dtype, out, i,
              rule.how == RLX_INIT_CONSTANT ? scale : scale * rng_philox_normal(&r));
    return RLX_OK;
}
