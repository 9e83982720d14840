/* onnx.c: fuzzes the reader of ONNX models: a model that is handed out can be printed, and one that
 * is refused has a sentence why. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rlx/rlx.h"
#include "rlx/tools.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void count(void *user, const char *text, size_t len)
{
    (void)text;
    *(size_t *)user += len;
}

static void check_model(rlx_model *m)
{
    size_t len = 0;
    rlx_error err;

    if (rlx_model_print(m, true, false, count, &len, &err) == RLX_OK && len == 0)
        abort();
    rlx_model_destroy(m);
}

/* The reader takes a path: a file without a name, in memory, has one too. It is told from other
 * files by how it begins. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t ir_version[] = {0x08, 0x08};
    const rlx_context_desc desc = {.threads = 1};
    rlx_context *ctx = NULL;
    rlx_model *m = NULL;
    rlx_error err = {0};
    char path[64];
    int fd = memfd_create("onnx", MFD_CLOEXEC);

    if (fd < 0 || write(fd, ir_version, 2) != 2 ||
        (size && write(fd, data, size) != (ssize_t)size) ||
        rlx_context_create(RLX_VERSION, &desc, &ctx, &err) != RLX_OK) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (rlx_model_load(ctx, path, NULL, &m, &err) == RLX_OK)
        check_model(m);
    else if (err.status == RLX_OK || err.message[0] == 0 || m)
        abort();
    rlx_context_destroy(ctx);
    close(fd);
    return 0;
}
