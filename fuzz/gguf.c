/* gguf.c: fuzzes the reader of GGUF files. */
#include "weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_weights(data, size);
}
