/* load.h: how a model is loaded, where the defaults do not suffice. */
#ifndef RLX_LOAD_H
#define RLX_LOAD_H

#include "rlx/rlx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is told of an input of an ONNX model before the model is loaded: see rlx_load_desc. */
typedef struct rlx_load_input {
    const char *name;  /* NULL: the input whose number this entry has */
    bool absent;       /* an optional without a value */
    size_t item_count; /* of a sequence */
    /* The shapes of its items (of what is no sequence: one, its own), where the model does not tell
     * them or they are to be fixed; nothing but rank and dim is read. NULL: as the model says. */
    const rlx_tensor *shape;
} rlx_load_input;

typedef struct rlx_load_desc {
    uint32_t size;
    bool read_files; /* read files into memory instead of mapping them. A mapped file that another
                        process truncates kills the reader. */
    bool skip_checksums; /* of an artefact. All else in it is checked as ever. */
    /* Files that the file names may be anywhere. Otherwise they are in its folder or below it, and
     * a name that is absolute, holds ".." or leads through a symbolic link is refused. */
    bool follow_external;
    /* Of an ONNX model: inputs whose values are known already, by name, or by number where the name
     * is NULL (data NULL: not this one). An input that tells a shape or an axis must be known, as
     * nothing can be compiled without; so may be one that chooses a branch. Given at a run, such an
     * input changes nothing any more. */
    const rlx_binding *known;
    size_t known_count;
    /* Of an ONNX model whose inputs are sequences or optionals. A sequence "x" of three items is
     * the inputs "x[0]", "x[1]" and "x[2]" of the model; how many must be told here. An optional
     * has a value, given under its own name, unless it is told to be absent. Outputs likewise. */
    const struct rlx_load_input *inputs;
    size_t input_count;
    /* Of an artefact that you made yourself, or have from somebody you trust: its compiled graphs
     * are run as they are. Otherwise the passes are made again, and have to give these very graphs.
     */
    bool trust_programs;
} rlx_load_desc;

/* The shape input i has when symbolic dims have these sizes: out's dtype, rank, dims and bytes. */
RLX_API rlx_status rlx_model_input_shape(const rlx_model *m, size_t i, const rlx_dim_size *dims,
                                         size_t dim_count, rlx_tensor *out, rlx_error *err);

#ifdef __cplusplus
}
#endif
#endif
