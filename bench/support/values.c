/* values.c: what params and inputs of the benchmarks hold. The rule is written down twice, here and
 * in bench/ort.py, and uses nothing but exact integer steps and one rounding, so both agree. */
#include <math.h>
#include <string.h>

#include "models.h"

static uint64_t seed_of(const char *name)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 1099511628211u;
    return h;
}

/* Number i of the stream: uniform in [-1, 1). */
static double uniform(uint64_t seed, uint64_t i)
{
    uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15u; /* splitmix64 */

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-52 - 1;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), e = strlen(end);

    return n >= e && strcmp(name + n - e, end) == 0;
}

int64_t values_count(const rlx_tensor *shape)
{
    int64_t n = 1;

    for (int i = 0; i < shape->rank; i++)
        n *= shape->dim[i];
    return n;
}

void values_fill(const char *name, const rlx_tensor *shape, float *out)
{
    uint64_t seed = seed_of(name);
    int64_t n = values_count(shape);
    double middle = 0, reach = 1;

    if (ends_with(name, ".weight") && n > 0) {
        /* Matrices are [in, out], kernels [out, in, height, width]. */
        int64_t fan_in = shape->rank == 2 ? shape->dim[0] : n / shape->dim[0];
        reach = sqrt(3.0 / (double)fan_in);
    } else if (ends_with(name, ".gamma") || ends_with(name, ".var")) {
        middle = 1, reach = 0.25;
    } else if (ends_with(name, ".bias") || ends_with(name, ".beta") || ends_with(name, ".mean")) {
        reach = 0.125;
    }
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)(middle + reach * uniform(seed, (uint64_t)i));
}
