/* npy.c: fuzzes the reader of NumPy's files: a tensor that is handed out has all the bytes it says,
 * and one that is refused has a sentence why. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rlx/rlx.h"
#include "rlx/tools.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_tensor(const rlx_tensor *t)
{
    const uint8_t *bytes = t->data;
    uint64_t need = rlx_dtype_size(t->dtype);
    uint32_t sum = 0;

    if (t->rank < 0 || t->rank > RLX_MAX_RANK || need == 0)
        abort();
    for (int32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] < 0)
            abort();
        need *= (uint64_t)t->dim[i];
    }
    if (need != t->bytes)
        abort();
    for (size_t i = 0; i < t->bytes; i++)
        sum += bytes[i];
    if (sum == UINT32_MAX) /* so that every byte was looked at */
        putchar(' ');
}

/* The reader takes a path: a file without a name, in memory, has one too. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const rlx_context_desc desc = {.threads = 1};
    rlx_context *ctx = NULL;
    rlx_tensor t = {0};
    rlx_error err = {0};
    char path[64];
    int fd = memfd_create("npy", MFD_CLOEXEC);

    if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size) ||
        rlx_context_create(RLX_VERSION, &desc, &ctx, &err) != RLX_OK) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (rlx_tensor_load(ctx, path, &t, &err) == RLX_OK) {
        check_tensor(&t);
        rlx_tensor_free(ctx, &t);
    } else if (err.status == RLX_OK || err.message[0] == 0 || t.data) {
        abort();
    }
    rlx_context_destroy(ctx);
    close(fd);
    return 0;
}
