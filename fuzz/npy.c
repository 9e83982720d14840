/* npy.c: fuzzes the reader of NumPy's files. */
#include "targets.h"
#include "tensor.h"

void fuzz_npy(const uint8_t *data, size_t size)
{
    fuzz_tensor(NULL, data, size);
}
