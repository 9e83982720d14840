/* load.h: loading a model with other than the default settings. */
#ifndef RLX_LOAD_H
#define RLX_LOAD_H

#include "rlx/rlx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the caller says about an input of an ONNX model before it is loaded: see rlx_load_desc. */
typedef struct rlx_load_input {
    const char *name;  /* NULL: the input at this entry's position */
    bool absent;       /* an optional that has no value */
    size_t item_count; /* of a sequence */
    /* The shapes of a sequence's items, or the one shape of any other input: for models that do not
     * give them, or to fix them. Only rank and dim are read. NULL: as the model says. */
    const rlx_tensor *shape;
} rlx_load_input;

typedef struct rlx_load_desc {
    uint32_t size;
    bool read_files; /* read files into memory instead of mapping them. A mapped file that another
                        process truncates kills the reader. */
    bool skip_checksums; /* of an artefact; everything else in it is still checked */
    /* Allow files that the model names to be anywhere. Otherwise they must be in its folder or
     * below, and a name that is absolute, contains ".." or follows a symbolic link is refused. */
    bool follow_external;
    /* Inputs of an ONNX model whose values are already known, by name, or by position where the
     * name is NULL (data NULL: not this one). An input that holds a shape or an axis must be known,
     * since nothing can be compiled without it; one that selects a branch may be. A value given for
     * such an input at a run is ignored. */
    const rlx_binding *known;
    size_t known_count;
    /* For ONNX models whose inputs are sequences or optionals. A sequence "x" of three items
     * becomes the inputs "x[0]", "x[1]" and "x[2]"; the number of items is given here. An optional
     * has a value, under its own name, unless it is marked absent. Outputs work the same way. */
    const struct rlx_load_input *inputs;
    size_t input_count;
    /* For an artefact from a trusted source: run its compiled graphs as they are. Otherwise the
     * passes run again, and must produce exactly these graphs. */
    bool trust_programs;
} rlx_load_desc;

/* The shape of input i when the symbolic dims have these sizes: out's dtype, rank, dims and bytes.
 */
RLX_API rlx_status rlx_model_input_shape(const rlx_model *m, size_t i, const rlx_dim_size *dims,
                                         size_t dim_count, rlx_tensor *out, rlx_error *err);

#ifdef __cplusplus
}
#endif
#endif
