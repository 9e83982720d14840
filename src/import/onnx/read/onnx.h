/* onnx.h: an ONNX model as a module of ours. */
#ifndef IMPORT_ONNX_H
#define IMPORT_ONNX_H

#include "base/str.h"
#include "import/onnx/read/onnx_model.h"
#include "ir/cut.h"
#include "rlx/load.h"

/* Bytes of a weight: in the model's file, in one beside it, or in the arena. */
struct onnx_weight {
    rlx_str name; /* of a param of the module */
    const void *data;
    ir_value node; /* of the entry graph */
};

struct onnx_import_options {
    const char *path;         /* of the model, for the files it names; NULL: it may name none */
    unsigned mode;            /* of those: enum file_mode, and FILE_FOLLOW */
    const rlx_binding *known; /* this and what follows as in rlx_load_desc */
    size_t known_count;
    const rlx_load_input *inputs;
    size_t input_count;
};

/* All that a model needs once it is made. The bytes it was read from must live as long. */
struct onnx_imported {
    struct ir_module *mod; /* NULL once somebody took it */
    rlx_str *output_name;  /* one per output of the entry graph */
    VEC(struct onnx_weight) weight;
    VEC(struct ir_cut) cut; /* sizes that depend on data */
    struct text report;     /* a line for each node that cannot be imported */
    struct onnx_files files;
    struct arena arena; /* of names and decoded weights */
};

/* UNSUPPORTED says how many nodes cannot be imported; the report names every one of them. Free it
 * in either case. */
rlx_status onnx_import(rlx_str bytes, const struct onnx_import_options *options,
                       const rlx_allocator *mem, struct onnx_imported *out, struct diag *d);
void onnx_imported_free(struct onnx_imported *m);

#endif
