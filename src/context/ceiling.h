/* ceiling.h: what a device can do at best, measured or read from a file; and the part of that which
 * a GPU's queue does (ceiling_device.c). */
#ifndef CONTEXT_CEILING_H
#define CONTEXT_CEILING_H

#include "backend/backend.h"
#include "base/rate.h"
#include "context/context.h"
#include "rlx/tools.h"

rlx_status ceilings_measure(struct rlx_device *dev, bool fresh, rlx_ceilings *out, struct diag *d);
rlx_status ceiling_of_device(struct backend *b, const rlx_allocator *mem, struct rate *out,
                             struct diag *d);

#endif
