/* sampling.c: counts of tokens and penalties for them, built from ops (rlx/sampling.h). */
#include "rlx/sampling.h"

#include <math.h>

#include "graph/builder.h"

static rlx_value filled(rlx_graph *g, float v, rlx_list shape)
{
    return rlx_expand(g, rlx_const(g, RLX_DTYPE_f32, RLX_EMPTY, &v, sizeof v), shape);
}

rlx_value rlx_count_tokens(rlx_graph *g, rlx_value tokens, rlx_dim vocab)
{
    rlx_dtype dtype;
    rlx_list rows;

    if (!g || rlx_value_type(g, tokens, &dtype, &rows, NULL) != RLX_OK) {
        if (g)
            build_fail(g, RLX_ERROR_GRAPH, "count_tokens: tokens is not a node of this graph");
        return RLX_NO_VALUE;
    }
    if (rows.count < 1) {
        build_fail(g, RLX_ERROR_SHAPE, "count_tokens: tokens needs an axis to count along");
        return RLX_NO_VALUE;
    }
    rlx_list counts = rows;
    counts.at[counts.count - 1] = vocab;
    return rlx_scatter_elements(g, filled(g, 0, counts), tokens, filled(g, 1, rows), -1,
                                RLX_SCATTER_REDUCTION_add);
}

/* repetition above 0, all three finite */
static bool in_range(rlx_graph *g, float repetition, float frequency, float presence)
{
    if (!(repetition > 0 && isfinite(repetition)))
        build_fail(g, RLX_ERROR_ATTRIBUTE,
                   "penalize: repetition is %g; it must be above 0, and finite",
                   (double)repetition);
    else if (!isfinite(frequency))
        build_fail(g, RLX_ERROR_ATTRIBUTE, "penalize: frequency is %g; it must be finite",
                   (double)frequency);
    else if (!isfinite(presence))
        build_fail(g, RLX_ERROR_ATTRIBUTE, "penalize: presence is %g; it must be finite",
                   (double)presence);
    else
        return true;
    return false;
}

/* z / by where z > 0, else z * by; only where seen */
static rlx_value repeat_less(rlx_graph *g, rlx_value z, rlx_value seen, float by)
{
    rlx_value factor = rlx_scalar(g, z, (double)by);
    rlx_value above = rlx_gt(g, z, rlx_scalar(g, z, 0));
    rlx_value less = rlx_where(g, above, rlx_div(g, z, factor), rlx_mul(g, z, factor));

    return rlx_where(g, seen, less, z);
}

rlx_value rlx_penalize(rlx_graph *g, rlx_value logits, rlx_value counts, float repetition,
                       float frequency, float presence)
{
    rlx_dtype given;
    rlx_list shape;

    if (!g || !in_range(g, repetition, frequency, presence))
        return RLX_NO_VALUE;
    if (rlx_value_type(g, logits, &given, &shape, NULL) != RLX_OK) {
        build_fail(g, RLX_ERROR_GRAPH, "penalize: logits is not a node of this graph");
        return RLX_NO_VALUE;
    }
    if (!dtype_is(given, CLASS_F)) {
        build_fail(g, RLX_ERROR_DTYPE, "penalize: logits must be floats, not %s",
                   rlx_dtype_name(given));
        return RLX_NO_VALUE;
    }
    rlx_dtype wide = given == RLX_DTYPE_f64 ? RLX_DTYPE_f64 : RLX_DTYPE_f32;
    rlx_value z = rlx_cast(g, logits, wide), n = rlx_cast(g, counts, wide);
    rlx_value seen = rlx_gt(g, n, rlx_scalar(g, n, 0));

    if (repetition != 1)
        z = repeat_less(g, z, seen, repetition);
    if (frequency != 0)
        z = rlx_sub(g, z, rlx_mul(g, n, rlx_scalar(g, n, (double)frequency)));
    if (presence != 0)
        z = rlx_sub(g, z, rlx_mul(g, rlx_cast(g, seen, wide), rlx_scalar(g, z, (double)presence)));
    return rlx_cast(g, z, given);
}
