/* load_model.c: which reader a file is for: text, ONNX, or an artefact with compiled programs. */
#include "compile/load_model.h"

#include "base/file.h"
#include "base/str.h"
#include "compile/cache/artefact.h"
#include "import/detect.h"

/* A reader that succeeds takes the file over; else it stays the caller's. */
static rlx_status load_file(rlx_context *ctx, const char *path, struct file *f,
                            const rlx_load_desc *desc, rlx_model **out, struct diag *d)
{
    static const char wanted[] = "a model (the text form .rlx, .onnx, or .rlxa from rlx compile)";
    rlx_file_kind kind = detect_kind(f->data, f->size);

    if (f->size == 0 || detect_is_foreign(f->data, f->size, rlx_cstr(path)))
        return detect_refuse(f->data, f->size, rlx_cstr(path), wanted, d);
    /* One whose parts come in an unusual order, or one that is broken. */
    if (kind == RLX_FILE_unknown && str_ends(rlx_cstr(path), STR(".onnx")))
        kind = RLX_FILE_onnx;
    switch (kind) {
    case RLX_FILE_text: return model_load_text(ctx, path, f, desc, out, d);
    case RLX_FILE_artefact: return artefact_load_model(ctx, path, f, desc, out, d);
    case RLX_FILE_onnx: return model_load_onnx(ctx, path, f, desc, out, d);
    default: return detect_refuse(f->data, f->size, rlx_cstr(path), wanted, d);
    }
}

rlx_status load_model(rlx_context *ctx, const char *path, const rlx_load_desc *desc,
                      rlx_model **out, struct diag *d)
{
    enum file_mode mode = desc && desc->read_files ? FILE_READ : FILE_MAP;
    struct file f;

    TRY(file_open(&f, path, mode, &ctx->mem, d));
    rlx_status s = load_file(ctx, path, &f, desc, out, d);
    if (s != RLX_OK)
        file_close(&f);
    return s;
}
