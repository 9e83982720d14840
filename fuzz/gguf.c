/* gguf.c: fuzzes the reader of GGUF files. */
#include "targets.h"
#include "weights.h"

void fuzz_gguf(const uint8_t *data, size_t size)
{
    fuzz_weights(data, size);
}
