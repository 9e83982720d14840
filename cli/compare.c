/* compare.c: see compare.h. */
#include "compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tensor_text.h"

#define RELATIVE 1e-3
#define RELATIVE_BF16 0x1p-6 /* two steps of bf16 */
#define ABSOLUTE 1e-7

static bool same_type(const rlx_tensor *a, const rlx_tensor *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

static bool is_close(double have, double want, double relative)
{
    if (isnan(want) || isnan(have))
        return isnan(want) && isnan(have);
    if (isinf(want) || isinf(have))
        return have == want;
    return fabs(have - want) <= ABSOLUTE + relative * fabs(want);
}

bool compare_types(const rlx_tensor *have, const rlx_tensor *want, char *why, size_t size)
{
    char have_text[SHAPE_TEXT], want_text[SHAPE_TEXT];

    if (same_type(have, want))
        return true;
    snprintf(why, size, "it is %s%s, not %s%s", rlx_dtype_name(have->dtype),
             shape_text(have->rank, have->dim, have_text), rlx_dtype_name(want->dtype),
             shape_text(want->rank, want->dim, want_text));
    return false;
}

bool compare_tensors(const rlx_tensor *have, const rlx_tensor *want, char *why, size_t size)
{
    rlx_tensor a = *have, b = *want;

    if (!compare_types(have, want, why, size))
        return false;
    if (a.dtype == RLX_DTYPE_c64) /* pairs */
        a.dtype = b.dtype = RLX_DTYPE_f32;
    double relative = a.dtype == RLX_DTYPE_bf16 ? RELATIVE_BF16 : RELATIVE;
    size_t count = b.bytes / rlx_dtype_size(b.dtype), apart = 0, first = 0;
    for (size_t i = 0; i < count; i++) {
        bool whole = a.dtype > RLX_DTYPE_f64 && a.dtype < RLX_DTYPE_c64;
        bool same = whole ? memcmp((const char *)a.data + i * rlx_dtype_size(a.dtype),
                                   (const char *)b.data + i * rlx_dtype_size(b.dtype),
                                   rlx_dtype_size(a.dtype)) == 0
                          : is_close(tensor_element(&a, i), tensor_element(&b, i), relative);
        if (!same && apart++ == 0)
            first = i;
    }
    if (apart)
        snprintf(why, size, "element %zu is %.9g, not %.9g; %zu of %zu differ", first,
                 tensor_element(&a, first), tensor_element(&b, first), apart, count);
    return apart == 0;
}
