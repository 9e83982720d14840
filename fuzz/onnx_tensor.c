/* onnx_tensor.c: fuzzes the readers of a tensor, and of a list of them, alone in its file, as the
 * tests of ONNX have them. */
#include "targets.h"
#include "tensor.h"

static void list(const uint8_t *data, size_t size)
{
    size_t used = 0;
    const rlx_allocator mem = {fuzz_resize, &used};
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = &mem, .threads = 1};
    rlx_context *ctx = NULL;
    rlx_tensor_list l = {.at = NULL};
    rlx_error err = {0};
    struct fuzz_file f;

    if (fuzz_file_make(&f, ".pb", NULL, 0, data, size) &&
        rlx_context_create(RLX_VERSION, &desc, &ctx, &err) == RLX_OK) {
        if (rlx_tensor_list_load(ctx, f.path, &l, &err) == RLX_OK) {
            for (size_t i = 0; i < l.count; i++)
                fuzz_check_tensor(&l.at[i]);
            rlx_tensor_list_free(ctx, &l);
        } else {
            fuzz_need_reason(&err);
        }
    }
    rlx_context_destroy(ctx);
    fuzz_file_close(&f);
    if (used)
        abort();
}

void fuzz_onnx_tensor(const uint8_t *data, size_t size)
{
    fuzz_tensor(".pb", data, size);
    list(data, size);
}
