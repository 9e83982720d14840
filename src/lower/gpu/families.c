/* families.c: which function lowers a family. */
#include "lower/gpu/gpu_core.h"

static const struct row {
    gpu_lower_fn lower;
    uint32_t in_place;
} rows[FAMILY_count] = {
#define GPU_FAMILY(family, function, in_place) [FAMILY_##family] = {function, in_place},
#include "lower/gpu/families.def"
};

gpu_lower_fn gpu_lowering(enum op_family f, uint32_t *in_place)
{
    *in_place = rows[f].in_place;
    return rows[f].lower;
}

void gpu_describe(struct target *out)
{
    for (int f = 0; f < FAMILY_count; f++)
        out->native[f] = rows[f].lower != NULL;
    out->joins_branches = true;
}
