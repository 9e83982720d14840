/* model_onnx.c: an ONNX file as a model. Its params keep their bytes where they are, in the file.
 */
#include <string.h>

#include "base/file.h"
#include "import/onnx/read/onnx.h"
#include "model/store.h"

/* What such a model holds on to. */
struct onnx_source {
    const rlx_allocator *mem;
    struct file file;
    struct onnx_imported imported;
};

static void close_source(void *source)
{
    struct onnx_source *s = source;

    onnx_imported_free(&s->imported);
    file_close(&s->file);
    mem_free(s->mem, s, sizeof *s);
}

static bool is_mapped(const struct file *f, const struct onnx_files *beside, const void *data,
                      size_t bytes)
{
    bool mapped = file_maps(f, data, bytes);

    for (size_t i = 0; i < beside->file.len && !mapped; i++)
        mapped = file_maps(&beside->file.at[i].file, data, bytes);
    return mapped;
}

static rlx_status take_weights(struct rlx_model *m, const struct file *f,
                               const struct onnx_imported *from, struct diag *d)
{
    /* Both are in the order of the nodes. */
    for (size_t i = 0; i < m->param_count; i++) {
        const struct model_param *p = &m->param[i];
        if (i >= from->weight.len || !str_eq(from->weight.at[i].name, p->name))
            return diag_fail(d, RLX_ERROR_INTERNAL, "param \"%.*s\" has no bytes",
                             STR_ARG(p->name));
        const void *data = from->weight.at[i].data;
        bool mapped = is_mapped(f, &from->files, data, (size_t)p->bytes);
        param_take(&m->values, i, (void *)data, mapped ? PARAM_MAPPED : PARAM_BORROWED,
                   &m->ctx->mem);
    }
    return RLX_OK;
}

static rlx_status make_model(rlx_context *ctx, const struct file *f, struct onnx_source *s,
                             rlx_model **out, struct diag *d)
{
    rlx_model *m;

    TRY(model_from_module(ctx, s->imported.mod, &m, d));
    s->imported.mod = NULL;
    m->source = s;
    m->close_source = close_source;
    for (size_t i = 0; i < m->output_count; i++)
        m->output_name[i] = s->imported.output_name[i];
    rlx_status status = take_weights(m, f, &s->imported, d);
    if (status == RLX_OK && s->imported.cut.len)
        status = model_cut(m, s->imported.cut.at, s->imported.cut.len, d);
    if (status == RLX_OK)
        *out = m;
    else {
        m->source = NULL; /* stays the caller's */
        model_release(m);
    }
    return status;
}

rlx_status model_load_onnx(rlx_context *ctx, const char *path, const struct file *f,
                           const rlx_load_desc *desc, rlx_model **out, struct diag *d)
{
    struct onnx_source *s = mem_alloc(&ctx->mem, sizeof *s);
    struct onnx_import_options options = {.path = path, .mode = FILE_MAP};

    if (!s)
        return diag_no_memory(d, sizeof *s);
    s->mem = &ctx->mem;
    if (desc) {
        options.mode = desc->read_files ? FILE_READ : FILE_MAP;
        options.mode |= desc->follow_external ? FILE_FOLLOW : 0;
        options.known = desc->known;
        options.known_count = desc->known ? desc->known_count : 0;
        options.inputs = desc->inputs;
        options.input_count = desc->inputs ? desc->input_count : 0;
    }
    rlx_status status = onnx_import((rlx_str){(const char *)f->data, f->size}, &options, &ctx->mem,
                                    &s->imported, d);
    if (status != RLX_OK)
        context_log_text(ctx, 1, (rlx_str){s->imported.report.at, s->imported.report.len});
    if (status == RLX_OK)
        status = make_model(ctx, f, s, out, d);
    if (status != RLX_OK)
        close_source(s);
    else
        s->file = *f;
    return status;
}
