/* targets.h: what is fuzzed. All targets are one program; $FUZZ_TARGET names the one to run. A
 * target is fuzz/<name>.c, with seeds in fuzz/corpus/<name>/ and, where words help, a dictionary
 * fuzz/<name>.dict. */
#ifndef FUZZ_TARGETS_H
#define FUZZ_TARGETS_H

#include <stddef.h>
#include <stdint.h>

#define FUZZ_TARGET_MAP(X) \
    X(artefact)            \
    X(gbnf)                \
    X(gguf)                \
    X(image)               \
    X(ir_text)             \
    X(json_schema)         \
    X(kernel)              \
    X(llm)                 \
    X(npy)                 \
    X(npz)                 \
    X(onnx)                \
    X(onnx_tensor)         \
    X(parts)               \
    X(safetensors)         \
    X(template)            \
    X(tokenizer)

/* Any bytes: what is wrong with how they are taken ends the process. */
#define X(name) void fuzz_##name(const uint8_t *data, size_t size);
FUZZ_TARGET_MAP(X)
#undef X

#endif
