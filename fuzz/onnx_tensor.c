/* onnx_tensor.c: fuzzes the reader of a tensor alone in its file, as the tests of ONNX have them.
 */
#include "targets.h"
#include "tensor.h"

void fuzz_onnx_tensor(const uint8_t *data, size_t size)
{
    fuzz_tensor(".pb", data, size);
}
