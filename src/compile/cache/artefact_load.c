/* artefact_load.c: a file into a model that knows its programs; sessions then take those that fit
 * (reuse.c). */
#include <stdio.h>
#include <string.h>

#include "compile/cache/artefact.h"

static rlx_status read_programs(struct artefact *a, struct diag *d)
{
    struct reader r;
    size_t count = 0;

    while (artefact_find(&a->file, SECTION_PROGRAM, (uint32_t)count, &r))
        count++;
    a->program = arena_array(&a->arena, struct saved_program, count);
    if (!a->program)
        return diag_no_memory(d, count * sizeof *a->program);
    for (uint32_t i = 0; i < count; i++) {
        struct reader text;
        TRY(artefact_need(&a->file, SECTION_OPTIMISED, i, &text, d));
        artefact_find(&a->file, SECTION_PROGRAM, i, &r);
        TRY(saved_program_get(r, i, &a->arena, &a->program[i], d));
        a->program_count++;
    }
    return RLX_OK;
}

/* Sections that nobody would look at are as wrong as missing ones. */
static rlx_status check_sections(const struct artefact *a, struct diag *d)
{
    for (size_t i = 0; i < a->file.section_count; i++) {
        const struct artefact_section *s = &a->file.section[i];
        bool many = s->kind == SECTION_PROGRAM || s->kind == SECTION_OPTIMISED;
        if (s->kind == SECTION_KEY)
            return diag_fail(d, RLX_ERROR_FORMAT,
                             "the file belongs to a cache: it holds a program, but no model");
        if (s->number >= (many ? a->program_count : 1))
            return diag_fail(d, RLX_ERROR_FORMAT, "nothing refers to section \"%s\" %u",
                             artefact_kind_name(s->kind), s->number);
    }
    return RLX_OK;
}

static rlx_status read_model(struct artefact *a, rlx_context *ctx, rlx_model **out, struct diag *d)
{
    struct ir_module *mod;
    struct reader r;

    TRY(artefact_need(&a->file, SECTION_GRAPH, 0, &r, d));
    TRY(blobs_parse(&a->blobs, r, false, ctx, &mod, d));
    rlx_status s = model_from_module(ctx, mod, out, d);
    if (s != RLX_OK)
        ir_module_destroy(mod);
    return s;
}

/* The names of outputs: a text may not be able to spell the label they come from. */
static rlx_status read_names(const struct artefact *a, rlx_model *m, struct diag *d)
{
    struct reader r;

    TRY(artefact_need(&a->file, SECTION_MODEL, 0, &r, d));
    if (get_u32(&r) != m->output_count)
        return diag_fail(d, RLX_ERROR_FORMAT, "the graph has %zu outputs, not those that are named",
                         m->output_count);
    for (size_t i = 0; i < m->output_count; i++) {
        rlx_str name = get_str(&r);
        if (name.len == 0 || !str_is_utf8(name)) {
            reader_fail(&r, "holds an output without a proper name");
            break;
        }
        m->output_name[i] = arena_str(&m->arena, name);
        if (!m->output_name[i].ptr)
            return diag_no_memory(d, name.len);
    }
    return reader_end(&r, artefact_kind_name(SECTION_MODEL), 0, d);
}

/* ---- weights ---- */

struct weight {
    struct piece piece; /* first: see artefact_check_pieces */
    rlx_str name;
};

static rlx_status take_weight(struct artefact *a, rlx_model *m, const struct weight *w,
                              const struct file *from, struct diag *d)
{
    size_t i;

    if (w->piece.offset > from->size || w->piece.size > from->size - w->piece.offset ||
        w->piece.offset % ARTEFACT_ALIGN)
        return diag_fail(d, RLX_ERROR_FORMAT, "weights \"%.*s\" do not lie in their file",
                         STR_ARG(w->name));
    TRY(model_find_param(m, w->name, &i, d));
    const struct model_param *p = &m->param[i];
    const uint8_t *at = from->data + w->piece.offset;
    if (p->bytes != w->piece.size || p->data)
        return diag_fail(d, RLX_ERROR_FORMAT, "weights \"%.*s\": %llu bytes, the model has %llu%s",
                         STR_ARG(w->name), (unsigned long long)w->piece.size,
                         (unsigned long long)p->bytes, p->data ? ", once" : "");
    TRY(artefact_check_piece(from->data, &w->piece, a->file.check_sums, "weights", d));
    bool is_bool = ir_type_of(ir_entry(m->mod), p->node)->dtype == RLX_DTYPE_bool;
    for (uint64_t k = 0; is_bool && k < p->bytes; k++)
        if (at[k] > 1)
            return diag_fail(d, RLX_ERROR_FORMAT, "weights \"%.*s\" hold a bool of %d",
                             STR_ARG(w->name), at[k]);
    param_take(&m->values, i, (void *)at,
               file_maps(from, at, w->piece.size) ? PARAM_MAPPED : PARAM_BORROWED, &m->ctx->mem);
    a->weights++;
    a->weight_bytes += p->bytes;
    return RLX_OK;
}

static rlx_status read_weight_rows(struct reader *r, struct arena *arena, struct weight **out,
                                   size_t *count, struct diag *d)
{
    *count = get_count(r, 28);
    *out = arena_array(arena, struct weight, *count);
    if (!*out)
        return diag_no_memory(d, *count * sizeof **out);
    for (size_t i = 0; i < *count; i++) {
        struct weight *w = &(*out)[i];
        w->name = get_str(r);
        w->piece.offset = get_u64(r);
        w->piece.size = get_u64(r);
        w->piece.checksum = get_u64(r);
    }
    return reader_end(r, artefact_kind_name(SECTION_WEIGHT_INDEX), 0, d);
}

static rlx_status open_beside(struct artefact *a, const char *path, rlx_str name, uint64_t size,
                              enum file_mode mode, struct diag *d)
{
    struct file f;

    TRY(file_open_beside(&f, path, name, mode, a->mem, d));
    a->beside = f;
    if (f.size == size)
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_FORMAT, "%.*s has %zu bytes; the artefact was made with %llu",
                     STR_ARG(name), f.size, (unsigned long long)size);
}

static rlx_status read_weights(struct artefact *a, const char *path, enum file_mode mode,
                               rlx_model *m, struct diag *d)
{
    enum { INSIDE = 1, BESIDE = 2 };
    struct weight *weight;
    struct reader r;
    size_t count;

    if (!artefact_find(&a->file, SECTION_WEIGHT_INDEX, 0, &r))
        return artefact_check_pieces(&a->file, SECTION_WEIGHTS, NULL, 0, 0, d);
    uint32_t where = get_u32(&r);
    rlx_str name = get_str(&r);
    uint64_t size = get_u64(&r);
    TRY(read_weight_rows(&r, &a->arena, &weight, &count, d));
    if (where == BESIDE)
        TRY(open_beside(a, path, name, size, mode, d));
    else if (where != INSIDE || name.len || size)
        return diag_fail(d, RLX_ERROR_FORMAT, "the weights are in place %u, which does not exist",
                         where);
    TRY(artefact_check_pieces(&a->file, SECTION_WEIGHTS, &weight[0].piece,
                              where == INSIDE ? count : 0, sizeof *weight, d));
    for (size_t i = 0; i < count; i++)
        TRY(take_weight(a, m, &weight[i], where == BESIDE ? &a->beside : &a->file.file, d));
    return RLX_OK;
}

/* ---- the whole ---- */

void artefact_destroy(struct artefact *a)
{
    if (!a)
        return;
    file_close(&a->file.file);
    file_close(&a->beside);
    arena_free(&a->arena);
    mem_free(a->mem, a, sizeof *a);
}

static rlx_status read_all(struct artefact *a, rlx_context *ctx, const char *path,
                           const rlx_load_desc *desc, rlx_model **out, struct diag *d)
{
    enum file_mode mode = desc && desc->read_files ? FILE_READ : FILE_MAP;
    rlx_model *m;
    struct reader r;

    TRY(artefact_need(&a->file, SECTION_TARGET, 0, &r, d));
    TRY(target_note_get(r, &a->target, d));
    TRY(blobs_read(&a->blobs, &a->file, &a->arena, d));
    TRY(read_programs(a, d));
    TRY(check_sections(a, d));
    TRY(read_model(a, ctx, &m, d));
    rlx_status s = read_names(a, m, d);
    if (s == RLX_OK)
        s = read_weights(a, path, mode, m, d);
    if (s != RLX_OK) {
        model_release(m);
        return s;
    }
    *out = m;
    return RLX_OK;
}

rlx_status artefact_load_model(rlx_context *ctx, const char *path, const struct file *f,
                               const rlx_load_desc *desc, rlx_model **out, struct diag *d)
{
    struct artefact *a = mem_alloc(&ctx->mem, sizeof *a);
    rlx_model *m = NULL;

    if (!a)
        return diag_no_memory(d, sizeof *a);
    a->mem = &ctx->mem;
    a->trusted = desc && desc->trust_programs;
    arena_init(&a->arena, &ctx->mem);
    rlx_status s = artefact_read(&a->file, f, !(desc && desc->skip_checksums), &a->arena, d);
    if (s == RLX_OK)
        s = read_all(a, ctx, path, desc, &m, d);
    if (s != RLX_OK) {
        a->file.file = (struct file){0}; /* the caller's still */
        artefact_destroy(a);
        return s;
    }
    m->artefact = a;
    m->artefact_destroy = artefact_destroy;
    *out = m;
    return RLX_OK;
}

/* ---- what is in it ---- */

static void copy_text(char *out, size_t size, rlx_str text)
{
    snprintf(out, size, "%.*s", STR_ARG(text));
}

void artefact_describe(const struct artefact *a, rlx_artefact_info *out)
{
    *out = (rlx_artefact_info){
        .format = a->file.format,
        .library = a->file.library,
        .programs = (uint32_t)a->program_count,
        .weights = a->weights,
        .weight_bytes = a->weight_bytes,
        .weights_beside = a->beside.data != NULL,
    };
    copy_text(out->backend, sizeof out->backend, a->target.backend);
    copy_text(out->device, sizeof out->device, a->target.description);
}

bool artefact_describe_program(const struct artefact *a, size_t i, rlx_artefact_program *out)
{
    const struct saved_program *p = &a->program[i];
    size_t len = 0;

    if (i >= a->program_count)
        return false;
    *out = (rlx_artefact_program){
        .steps = (uint32_t)p->steps.step_count,
        .activations = p->plan.size[REGION_ACTS],
        .constants = p->plan.size[REGION_CONSTS],
    };
    for (size_t k = 0; k < p->dim_count && len < sizeof out->sizes; k++) {
        bool bounded = p->size[k] < 0;
        len += (size_t)snprintf(out->sizes + len, sizeof out->sizes - len, "%s%.*s%s%lld",
                                k ? " " : "", STR_ARG(p->dim[k]), bounded ? "<=" : "=",
                                (long long)(bounded ? -2 - p->size[k] : p->size[k]));
    }
    return true;
}
