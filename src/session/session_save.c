/* session_save.c: a session, its model and its programs into a file. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "compile/cache/artefact.h"
#include "session/session.h"

struct saver {
    rlx_session *s;
    const char *path;
    unsigned flags;
    const rlx_allocator *mem;
    struct artefact_writer to;
    struct blob_writer blobs;
    struct arena scratch;
    struct diag *diag;
};

static rlx_status add(struct saver *w, enum artefact_kind kind, size_t number, struct text *bytes,
                      rlx_status s)
{
    if (s == RLX_OK)
        s = artefact_add(&w->to, kind, (uint32_t)number, bytes, w->diag);
    text_free(bytes);
    return s;
}

static rlx_status save_target(struct saver *w)
{
    struct target_note note;
    struct text bytes;

    target_note_of(&w->s->target, &note);
    text_init(&bytes, w->mem);
    target_note_put(&note, &bytes);
    return add(w, SECTION_TARGET, 0, &bytes, RLX_OK);
}

static rlx_status save_model(struct saver *w)
{
    const struct rlx_model *m = w->s->model;
    struct text bytes;

    text_init(&bytes, w->mem);
    put_u32(&bytes, (uint32_t)m->output_count);
    for (size_t i = 0; i < m->output_count; i++)
        put_str(&bytes, m->output_name[i]);
    TRY(add(w, SECTION_MODEL, 0, &bytes, RLX_OK));
    text_init(&bytes, w->mem);
    rlx_status s = blobs_print(&w->blobs, m->mod, &bytes, w->diag);
    return add(w, SECTION_GRAPH, 0, &bytes, s);
}

static rlx_status save_programs(struct saver *w)
{
    rlx_session *s = w->s;
    const struct compile_request r = session_request(s);
    uint64_t options = reuse_options_key(&r);
    struct text bytes;
    rlx_status status;
    int64_t *size;

    for (size_t i = 0; i < s->program_count; i++) {
        const struct compiled_program *p = &s->program[i];
        text_init(&bytes, w->mem);
        status = reuse_sizes(&r, p->binding, &w->scratch, &size, w->diag);
        if (status == RLX_OK)
            status = saved_program_put(p, options, s->model->mod->dims, size, s->symbol_count,
                                       &bytes, w->diag);
        TRY(add(w, SECTION_PROGRAM, i, &bytes, status));
        text_init(&bytes, w->mem);
        status = blobs_print(&w->blobs, p->optimised, &bytes, w->diag);
        TRY(add(w, SECTION_OPTIMISED, i, &bytes, status));
    }
    return RLX_OK;
}

/* ---- weights ---- */

enum { WEIGHTS_NONE, WEIGHTS_INSIDE, WEIGHTS_BESIDE };

static rlx_status beside_align(struct file_writer *f, struct diag *d)
{
    static const uint8_t zeros[ARTEFACT_ALIGN];

    return file_add(f, zeros, (size_t)(-f->size % ARTEFACT_ALIGN), d);
}

/* One param: its bytes into the file, a row into the index. What was never set is left out. */
static rlx_status save_weight(struct saver *w, size_t i, struct file_writer *beside,
                              struct text *index, uint32_t *count)
{
    const struct model_param *p = &w->s->model->param[i];
    const struct ir_type *t = ir_type_of(ir_entry(w->s->model->mod), p->node);
    char *name = mem_alloc(w->mem, p->name.len + 1);
    void *data = mem_alloc(w->mem, (size_t)p->bytes + 1);
    rlx_tensor value = {.dtype = t->dtype, .data = data, .bytes = (size_t)p->bytes};
    struct diag own;
    uint64_t offset = 0;
    rlx_status s = name && data ? RLX_OK : diag_no_memory(w->diag, (size_t)p->bytes);

    if (s == RLX_OK) {
        memcpy(name, p->name.ptr, p->name.len);
        diag_init(&own, "params");
        s = session_get_param(w->s, name, &value, &own);
    }
    bool set = s == RLX_OK;
    if (s == RLX_ERROR_STATE)
        s = RLX_OK;
    else if (s != RLX_OK && data && name)
        s = diag_fail(w->diag, s, "%s", own.first.message);
    if (set && beside) {
        s = beside_align(beside, w->diag);
        offset = beside->size;
        if (s == RLX_OK)
            s = file_add(beside, data, (size_t)p->bytes, w->diag);
    } else if (set) {
        s = artefact_add_piece(&w->to, data, (size_t)p->bytes, &offset, w->diag);
    }
    if (set && s == RLX_OK) {
        put_str(index, p->name);
        put_u64(index, offset);
        put_u64(index, p->bytes);
        put_u64(index, artefact_checksum(data, (size_t)p->bytes));
        ++*count;
    }
    mem_free(w->mem, name, p->name.len + 1);
    mem_free(w->mem, data, (size_t)p->bytes + 1);
    return s;
}

static rlx_status save_each(struct saver *w, struct file_writer *beside, struct text *rows,
                            uint32_t *count)
{
    if (!beside)
        TRY(artefact_begin_pieces(&w->to, SECTION_WEIGHTS, w->diag));
    for (size_t i = 0; i < w->s->model->param_count; i++)
        TRY(save_weight(w, i, beside, rows, count));
    return beside ? file_commit(beside, w->diag) : RLX_OK;
}

/* index: where, the other file's name and size, then the rows. */
static rlx_status save_weights(struct saver *w)
{
    bool aside = w->flags & RLX_SAVE_WEIGHTS_BESIDE;
    const char *slash = strrchr(w->path, '/'), *base = slash ? slash + 1 : w->path;
    char path[PATH_MAX], name[NAME_MAX + 1] = "";
    struct file_writer beside = {.open = false};
    struct text index, rows;
    uint32_t count = 0;
    rlx_status s = RLX_OK;

    if (aside && ((size_t)snprintf(path, sizeof path, "%s.weights", w->path) >= sizeof path ||
                  (size_t)snprintf(name, sizeof name, "%s.weights", base) >= sizeof name))
        return diag_fail(w->diag, RLX_ERROR_IO, "the name %s is too long", w->path);
    text_init(&index, w->mem);
    text_init(&rows, w->mem);
    if (aside)
        s = file_begin(&beside, path, FILE_FOR_ALL, w->diag);
    if (s == RLX_OK)
        s = save_each(w, aside ? &beside : NULL, &rows, &count);
    file_abandon(&beside);
    put_u32(&index, aside ? WEIGHTS_BESIDE : WEIGHTS_INSIDE);
    put_str(&index, rlx_cstr(name));
    put_u64(&index, beside.size);
    put_u32(&index, count);
    text_add(&index, (rlx_str){rows.at, rows.len});
    index.failed |= rows.failed;
    text_free(&rows);
    return add(w, SECTION_WEIGHT_INDEX, 0, &index, s);
}

/* ---- the whole ---- */

static rlx_status save_all(struct saver *w)
{
    TRY(save_target(w));
    TRY(save_model(w));
    TRY(save_programs(w));
    TRY(blobs_write(&w->blobs, &w->to, w->diag));
    if (w->flags)
        TRY(save_weights(w));
    return artefact_commit(&w->to, w->diag);
}

rlx_status session_save(rlx_session *s, const char *path, unsigned flags, struct diag *d)
{
    if (flags > RLX_SAVE_WEIGHTS_BESIDE)
        return diag_fail(d, RLX_ERROR_ARGUMENT,
                         "flags are %u; weights go into the file or beside it, or nowhere", flags);
    if (s->flights)
        return diag_fail(d, RLX_ERROR_STATE, "the session is running: wait for it first");
    TRY(session_is_whole(s, "be saved", d));
    struct saver w = {.s = s, .path = path, .flags = flags, .mem = &s->model->ctx->mem, .diag = d};
    blobs_init(&w.blobs, w.mem);
    arena_init(&w.scratch, w.mem);
    rlx_status status = artefact_begin(&w.to, path, FILE_FOR_ALL, w.mem, d);
    if (status == RLX_OK)
        status = save_all(&w);
    artefact_writer_free(&w.to);
    blobs_free(&w.blobs);
    arena_free(&w.scratch);
    return status;
}
