/* weights.h: files that hold tensors by name, and no graph: GGUF, safetensors, npz, npy.
 *
 * A file comes from a stranger: it is checked before anything is believed, and what breaks its
 * format is refused (FORMAT) with the byte where it does. docs/formats.md lists formats and types.
 */
#ifndef RLX_WEIGHTS_H
#define RLX_WEIGHTS_H

#include "rlx/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what a file is ---------------------------------------------------------------------- */

/* X(name, extension, what it is). Content decides; an extension is only what files are called. */
#define RLX_FILE_KIND_MAP(X)                                                   \
    X(unknown, "", "nothing that rlx knows")                                   \
    X(text, ".rlx", "a graph in the text form")                                \
    X(artefact, ".rlxa", "a model with its compiled programs")                 \
    X(onnx, ".onnx", "an ONNX model")                                          \
    X(gguf, ".gguf", "tensors and metadata, packed weights among them")        \
    X(safetensors, ".safetensors", "tensors behind a JSON header")             \
    X(safetensors_index, ".json", "which safetensors file holds which tensor") \
    X(npy, ".npy", "one NumPy array")                                          \
    X(npz, ".npz", "NumPy arrays in a zip archive")

#define X(name, extension, text) RLX_FILE_##name,
typedef enum rlx_file_kind { RLX_FILE_KIND_MAP(X) RLX_FILE_count } rlx_file_kind;
#undef X
RLX_API const char *rlx_file_kind_name(rlx_file_kind k); /* "gguf"; "?" if there is no such kind */
RLX_API const char *rlx_file_kind_text(rlx_file_kind k); /* "one NumPy array"; likewise */
/* By what is in the file. */
RLX_API rlx_status rlx_file_detect(rlx_context *ctx, const char *path, rlx_file_kind *out,
                                   rlx_error *err);

#ifdef __cplusplus
}
#endif
#endif
