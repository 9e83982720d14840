/* artefact.c: fuzzes the reader of compiled programs. Checksums are not looked at, so that what
 * lies behind them is: a file is refused with a sentence why, or its programs open on a device. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rlx/artefact.h"
#include "rlx/tools.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A graph may ask for any amount of memory. It gets this much, and must live with the answer. */
enum { MOST_BYTES = 64 << 20 };

static void *resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    size_t *used = user;

    if (new_size == 0) {
        free(ptr);
        *used -= old_size;
        return NULL;
    }
    if (new_size > MOST_BYTES || *used - old_size > MOST_BYTES - new_size)
        return NULL;
    ptr = realloc(ptr, new_size);
    if (ptr)
        *used += new_size - old_size;
    return ptr;
}

static void count_text(void *user, const char *text, size_t len)
{
    size_t *total = user;

    (void)text;
    *total += len;
}

static void look_at(const rlx_model *m, const rlx_session *s)
{
    rlx_artefact_info info;
    rlx_artefact_program program;
    rlx_compiled_info compiled;
    size_t total = 0;

    if (!rlx_model_artefact(m, &info) || rlx_session_compiled(s, &compiled, NULL) != RLX_OK)
        abort();
    for (size_t i = 0; i < info.programs; i++)
        if (!rlx_model_artefact_program(m, i, &program))
            abort();
    rlx_model_describe(m, true, count_text, &total, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t used = 0;
    const rlx_allocator mem = {resize, &used};
    const rlx_context_desc desc = {.allocator = &mem, .threads = 1};
    const rlx_load_desc load = {.read_files = true, .skip_checksums = true};
    rlx_context *ctx = NULL;
    rlx_device *dev = NULL;
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    rlx_error err = {0};
    char path[64];
    int fd = memfd_create("artefact", MFD_CLOEXEC);

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd >= 0 && (!size || write(fd, data, size) == (ssize_t)size) &&
        rlx_context_create(RLX_VERSION, &desc, &ctx, &err) == RLX_OK &&
        rlx_device_open(ctx, rlx_cstr("null"), &dev, &err) == RLX_OK) {
        if (rlx_session_load(dev, path, &load, NULL, &m, &s, &err) == RLX_OK)
            look_at(m, s);
        else if (err.status == RLX_OK || err.status == RLX_ERROR_INTERNAL || !err.message[0] || m)
            abort();
    }
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
    if (fd >= 0)
        close(fd);
    if (used)
        abort();
    return 0;
}
