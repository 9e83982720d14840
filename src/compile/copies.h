/* copies.h: the copies of weights that a program reads; see copies.c. */
#ifndef COMPILE_COPIES_H
#define COMPILE_COPIES_H

#include "compile/compile.h"

/* The store's copy of that key; there must be room for a new one on the device. */
rlx_status compile_copy_of(const struct compile_request *r, const struct weight_copy *like,
                           struct weight_copy **out, struct diag *d);

#endif
