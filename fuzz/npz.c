/* npz.c: fuzzes the reader of NumPy's archives, which inflate members with zlib. */
#include "targets.h"
#include "weights.h"

void fuzz_npz(const uint8_t *data, size_t size)
{
    fuzz_weights(data, size);
}
