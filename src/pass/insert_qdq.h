/* insert_qdq.h: values made to look as if they had been kept in 8 bits, as a calibration says. */
#ifndef PASS_INSERT_QDQ_H
#define PASS_INSERT_QDQ_H

#include "ir/graph.h"
#include "rlx/tools.h"

/* Puts a quantize and a dequantize after each value that a record names; everything that read the
 * value reads the result. Only the entry graph is looked at. NAME: there is no such value, or
 * several; other failures as the shape rules give them. On failure m is as it was. */
rlx_status pass_insert_qdq(struct ir_module *m, const rlx_qdq_record *records, size_t count,
                           struct diag *d);

#endif
