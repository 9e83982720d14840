/* onnx.c: fuzzes the reader of ONNX models: a model that is handed out can be printed, compiled
 * and, where it is small, run; one that is refused has a sentence why. */
#include "rlx/onnx.h"
#include "files.h"
#include "run_model.h"
#include "targets.h"

static void count(void *user, const char *text, size_t len)
{
    (void)text;
    *(size_t *)user += len;
}

/* Written as ONNX and read again, or refused with a reason. */
static void write_and_read(rlx_context *ctx, const rlx_model *m)
{
    struct fuzz_file f;
    rlx_model *again = NULL;
    rlx_error err = {0};

    if (!fuzz_file_make(&f, ".onnx", NULL, 0, NULL, 0))
        return;
    if (rlx_model_save_onnx(m, f.path, NULL, &err) != RLX_OK ||
        rlx_model_load(ctx, f.path, NULL, &again, &err) != RLX_OK)
        fuzz_need_reason(&err);
    rlx_model_destroy(again);
    fuzz_file_close(&f);
}

static void check_model(rlx_context *ctx, rlx_model *m)
{
    size_t len = 0;
    rlx_error err;

    if (rlx_model_print(m, true, false, count, &len, &err) == RLX_OK && len == 0)
        abort();
    write_and_read(ctx, m);
    fuzz_run_model(ctx, m);
    rlx_model_destroy(m);
}

/* Inputs that are sequences have as many items as are given. */
static rlx_status load_with_sequences(rlx_context *ctx, const char *path, rlx_model **m,
                                      rlx_error *err)
{
    static const rlx_load_input inputs[] = {
        {.item_count = 2}, {.item_count = 0}, {.absent = true}, {.item_count = 3}};
    const rlx_load_desc desc = {RLX_SIZED(rlx_load_desc), .inputs = inputs, .input_count = 4};

    return rlx_model_load(ctx, path, &desc, m, err);
}

void fuzz_onnx(const uint8_t *data, size_t size)
{
    static const uint8_t ir_version[] = {0x08, 0x08}; /* these tell it from other files */
    size_t used = 0;
    const rlx_allocator mem = {fuzz_resize, &used};
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = &mem, .threads = 1};
    rlx_context *ctx = NULL;
    rlx_model *m = NULL;
    rlx_error err = {0};
    struct fuzz_file f;

    if (fuzz_file_make(&f, NULL, ir_version, sizeof ir_version, data, size) &&
        rlx_context_create(RLX_VERSION, &desc, &ctx, &err) == RLX_OK) {
        rlx_status s = rlx_model_load(ctx, f.path, NULL, &m, &err);
        if (s == RLX_ERROR_UNSUPPORTED)
            s = load_with_sequences(ctx, f.path, &m, &err);
        if (s == RLX_OK)
            check_model(ctx, m);
        else
            fuzz_need_reason(&err);
    }
    rlx_context_destroy(ctx);
    fuzz_file_close(&f);
    if (used)
        abort();
}
