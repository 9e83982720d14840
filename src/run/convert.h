/* convert.h: elements from one dtype to another by the rules of cast (ops-core.md 2.3). */
#ifndef RUN_CONVERT_H
#define RUN_CONVERT_H

#include "ir/type.h"

bool convert_allowed(rlx_dtype to, rlx_dtype from); /* complex to real is not */
/* count elements; to and from must not overlap. */
void convert(rlx_dtype to, void *dst, rlx_dtype from, const void *src, size_t count);
/* The same where src may begin anywhere, as in a file. */
void convert_unaligned(rlx_dtype to, void *dst, rlx_dtype from, const void *src, size_t count);

#endif
