/* onnx_write.h: a module of ours as an ONNX model. */
#ifndef IMPORT_ONNX_WRITE_H
#define IMPORT_ONNX_WRITE_H

#include "base/str.h"
#include "import/onnx/read/onnx_model.h"
#include "ir/graph.h"

struct onnx_write_options {
    const rlx_str *output_name; /* one per output of the entry graph */
    /* The bytes of a param, which must outlive what is written; NULL: it has none, and becomes an
     * input. */
    const void *(*param)(void *user, rlx_str name);
    void *user;
};

struct onnx_written {
    struct onnx_model model; /* for onnx_put_model */
    struct text report;      /* a line for each node that cannot be written */
    struct arena arena;
};

/* UNSUPPORTED says how many nodes cannot be written; the report names every one of them. The module
 * must outlive it. Free it in either case. */
rlx_status onnx_write(const struct ir_module *m, const struct onnx_write_options *options,
                      const rlx_allocator *mem, struct onnx_written *out, struct diag *d);
void onnx_written_free(struct onnx_written *w);

/* Is every op of that family written as it is? Others may be written as simpler ones. */
bool onnx_writes(enum op_family f);

#endif
