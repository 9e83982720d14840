/* artefact.c: fuzzes the reader of compiled programs. Checksums are not looked at, so that what
 * lies after them is: a file is refused with a sentence why, or its programs open on a device. */
#include "rlx/artefact.h"
#include "files.h"
#include "limits.h"
#include "rlx/tools.h"
#include "targets.h"

static void count_text(void *user, const char *text, size_t len)
{
    size_t *total = user;

    (void)text;
    *total += len;
}

static void look_at(const rlx_model *m, const rlx_session *s)
{
    rlx_artefact_info info = {RLX_SIZED(rlx_artefact_info)};
    rlx_artefact_program program;
    rlx_compiled_info compiled = {RLX_SIZED(rlx_compiled_info)};
    size_t total = 0;

    if (rlx_model_artefact(m, &info, NULL) != RLX_OK ||
        rlx_session_compiled(s, &compiled, NULL) != RLX_OK)
        abort();
    for (size_t i = 0; i < info.programs; i++)
        if (!rlx_model_artefact_program(m, i, &program))
            abort();
    rlx_model_describe(m, true, count_text, &total, NULL);
}

void fuzz_artefact(const uint8_t *data, size_t size)
{
    size_t used = 0;
    const rlx_allocator mem = {fuzz_resize, &used};
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = &mem, .threads = 1};
    const rlx_load_desc load = {RLX_SIZED(rlx_load_desc), .read_files = true,
                                .skip_checksums = true, .trust_programs = true};
    rlx_context *ctx = NULL;
    rlx_device *dev = NULL;
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    rlx_error err = {0};
    struct fuzz_file f;

    if (fuzz_file_make(&f, NULL, NULL, 0, data, size) &&
        rlx_context_create(RLX_VERSION, &desc, &ctx, &err) == RLX_OK &&
        rlx_device_open(ctx, "null", &dev, &err) == RLX_OK) {
        if (rlx_session_load(dev, f.path, &load, NULL, &m, &s, &err) == RLX_OK)
            look_at(m, s);
        else
            fuzz_need_reason(&err);
    }
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
    fuzz_file_close(&f);
    if (used)
        abort();
}
