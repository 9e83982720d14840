/* safetensors.c: fuzzes the reader of safetensors files. */
#include "targets.h"
#include "weights.h"

void fuzz_safetensors(const uint8_t *data, size_t size)
{
    fuzz_weights(data, size);
}
