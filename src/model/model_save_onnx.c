/* model_save_onnx.c: a model as an ONNX file: rlx/onnx.h.
 *
 *     a copy of the graph   functions inlined, ops without a counterpart as simpler ones
 *     onnx_write            that as ONNX's structs
 *     PATH, PATH.data       those as bytes, and weights that do not go into the file */
#include "rlx/onnx.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "import/onnx/write/onnx_write.h"
#include "import/wire_write.h"
#include "model/save_onnx.h"
#include "model/store.h"
#include "pass/pass.h"

#define LARGEST_FILE INT32_MAX /* that Protocol Buffers take */
#define LEAST_EXTERNAL 1024
#define EXTERNAL_ALIGNMENT 4096 /* so that it can be mapped */
#define PIECE ((size_t)64 << 10)

/* ---- the graph ---- */

static rlx_status prepare(const rlx_model *m, struct ir_module **out, struct diag *d)
{
    static const char *const passes[] = {"inline-custom-fn", "expand"};
    struct target onnx = {.backend = "onnx"};

    for (int f = 0; f < FAMILY_count; f++)
        onnx.native[f] = onnx_writes((enum op_family)f);
    TRY(ir_module_copy(m->mod, &m->ctx->mem, out, d));
    for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++)
        TRY(pass_one(pass_find(rlx_cstr(passes[i])), *out, &onnx, NULL, NULL, d));
    return RLX_OK;
}

static const void *param_data(void *user, rlx_str name)
{
    const rlx_model *m = user;

    for (size_t i = 0; i < m->param_count; i++)
        if (str_eq(m->param[i].name, name))
            return m->param[i].bytes || !m->param[i].data ? m->param[i].data : "";
    return NULL;
}

rlx_status onnx_of_model(const rlx_model *m, struct model_as_onnx *out, struct diag *d)
{
    const struct onnx_write_options options = {m->output_name, param_data, (void *)m};

    memset(out, 0, sizeof *out);
    TRY(model_is_whole(m, "be written as ONNX", d));
    TRY(model_restore_params(m, d));
    TRY(prepare(m, &out->mod, d));
    return onnx_write(out->mod, &options, &m->ctx->mem, &out->written, d);
}

void model_as_onnx_free(struct model_as_onnx *a)
{
    onnx_written_free(&a->written);
    ir_module_destroy(a->mod);
}

/* ---- bytes into a file, in larger pieces ---- */

struct output {
    struct file_writer file;
    uint8_t held[PIECE];
    size_t count;
};

static rlx_status flush(struct output *o, struct diag *d)
{
    size_t count = o->count;

    o->count = 0;
    return count ? file_add(&o->file, o->held, count, d) : RLX_OK;
}

static rlx_status put(void *user, const void *bytes, size_t count, struct diag *d)
{
    struct output *o = user;

    if (count > PIECE - o->count)
        TRY(flush(o, d));
    if (count > PIECE)
        return file_add(&o->file, bytes, count, d);
    memcpy(o->held + o->count, bytes, count);
    o->count += count;
    return RLX_OK;
}

/* ---- weights in a file of their own ---- */

static rlx_status add_entry(struct arena *a, struct onnx_entry *e, const char *key,
                            const char *value, struct diag *d)
{
    *e = (struct onnx_entry){rlx_cstr(key), arena_str(a, rlx_cstr(value))};
    return e->value.ptr ? RLX_OK : diag_no_memory(d, strlen(value));
}

static rlx_status move_out(struct onnx_tensor *t, const char *name, struct output *to,
                           struct arena *a, struct diag *d)
{
    static const uint8_t zeros[EXTERNAL_ALIGNMENT];
    size_t fill = (size_t)(-to->file.size % EXTERNAL_ALIGNMENT);
    struct onnx_entry *e = arena_array(a, struct onnx_entry, 3);
    char number[32];

    if (!e)
        return diag_no_memory(d, 3 * sizeof *e);
    TRY(file_add(&to->file, zeros, fill, d));
    TRY(add_entry(a, &e[0], "location", name, d));
    snprintf(number, sizeof number, "%" PRIu64, to->file.size);
    TRY(add_entry(a, &e[1], "offset", number, d));
    snprintf(number, sizeof number, "%zu", t->raw.len);
    TRY(add_entry(a, &e[2], "length", number, d));
    TRY(file_add(&to->file, t->raw.ptr, t->raw.len, d));
    t->external.at = e;
    t->external.count = 3;
    t->location = 1;
    t->has_raw = false;
    return RLX_OK;
}

static rlx_status move_weights(struct onnx_written *w, const char *path, struct output *to,
                               struct diag *d)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    char file[PATH_MAX], name[NAME_MAX + 1];
    struct onnx_graph *g = w->model.graph;

    if ((size_t)snprintf(file, sizeof file, "%s.data", path) >= sizeof file ||
        (size_t)snprintf(name, sizeof name, "%s.data", base) >= sizeof name)
        return diag_fail(d, RLX_ERROR_IO, "the name %s is too long", path);
    TRY(file_begin(&to->file, file, FILE_FOR_ALL, d));
    for (size_t i = 0; i < g->initializer.count; i++)
        if (g->initializer.at[i].raw.len >= LEAST_EXTERNAL)
            TRY(move_out(&g->initializer.at[i], name, to, &w->arena, d));
    return RLX_OK;
}

/* ---- the whole ---- */

static rlx_status write_files(struct onnx_written *w, const char *path, bool external,
                              struct output *file, struct output *beside, struct diag *d)
{
    const struct wire_sink sink = {put, file};

    if (external || onnx_model_size(&w->model) > LARGEST_FILE)
        TRY(move_weights(w, path, beside, d));
    if (onnx_model_size(&w->model) > LARGEST_FILE)
        return diag_fail(d, RLX_ERROR_LIMIT, "the graph alone is larger than 2 GiB, or too deep");
    TRY(file_begin(&file->file, path, FILE_FOR_ALL, d));
    TRY(onnx_put_model(&w->model, &sink, d));
    TRY(flush(file, d));
    if (beside->file.open)
        TRY(file_commit(&beside->file, d));
    return file_commit(&file->file, d);
}

rlx_status model_save_onnx(const rlx_model *m, const char *path, bool external, struct diag *d)
{
    const rlx_allocator *mem = &m->ctx->mem;
    struct output *o = mem_alloc(mem, 2 * sizeof *o); /* the file, and the one beside it */
    struct model_as_onnx a;

    if (!o)
        return diag_no_memory(d, 2 * sizeof *o);
    rlx_status s = onnx_of_model(m, &a, d);
    if (s == RLX_ERROR_UNSUPPORTED)
        context_log_text(m->ctx, 1, (rlx_str){a.written.report.at, a.written.report.len});
    if (s == RLX_OK)
        s = write_files(&a.written, path, external, &o[0], &o[1], d);
    file_abandon(&o[0].file);
    file_abandon(&o[1].file);
    mem_free(mem, o, 2 * sizeof *o);
    model_as_onnx_free(&a);
    return s;
}

/* ---- there and back, for the self-test ---- */

struct memory_sink {
    uint8_t *at;
    size_t count, room;
};

static rlx_status put_memory(void *user, const void *bytes, size_t count, struct diag *d)
{
    struct memory_sink *to = user;

    if (count > to->room - to->count)
        return diag_fail(d, RLX_ERROR_INTERNAL, "the file is larger than it was measured to be");
    memcpy(to->at + to->count, bytes, count);
    to->count += count;
    return RLX_OK;
}

rlx_status model_through_onnx(const rlx_model *m, rlx_model **out, struct diag *d)
{
    const rlx_allocator *mem = &m->ctx->mem;
    struct model_as_onnx a;
    struct memory_sink to = {NULL, 0, 0};
    rlx_status s = onnx_of_model(m, &a, d);

    if (s == RLX_OK) {
        to.room = (size_t)onnx_model_size(&a.written.model);
        to.at = mem_alloc(mem, to.room);
        s = to.at ? onnx_put_model(&a.written.model, &(struct wire_sink){put_memory, &to}, d)
                  : diag_no_memory(d, to.room);
    }
    model_as_onnx_free(&a);
    struct file f = {.data = to.at, .size = to.count, .mem = mem};
    if (s == RLX_OK)
        s = model_load_onnx(m->ctx, NULL, &f, NULL, out, d);
    if (s != RLX_OK)
        mem_free(mem, to.at, to.room);
    return s;
}
