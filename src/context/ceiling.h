/* ceiling.h: the part of rlx_ceilings_measure that a GPU's queue does (ceiling_device.c). */
#ifndef CONTEXT_CEILING_H
#define CONTEXT_CEILING_H

#include "backend/backend.h"
#include "base/rate.h"

rlx_status ceiling_of_device(struct backend *b, const rlx_allocator *mem, struct rate *out,
                             struct diag *d);

#endif
