/* user_kernel.c: the kernel compiler for files of the user's. */
#include "inspect/user_kernel.h"

#include <string.h>

#include "base/file.h"

/* ---- its text ---- */

static bool copy_file(struct kernel_files *f, struct file *file, rlx_str *text)
{
    *text = arena_str(f->arena, (rlx_str){(const char *)file->data, file->size});
    file_close(file);
    return text->ptr != NULL;
}

static bool find(void *user, rlx_str name, rlx_str *text)
{
    struct kernel_files *f = user;
    struct file file;
    struct diag quiet;

    if (f->source && str_eq(name, rlx_cstr(f->file))) {
        *text = rlx_cstr(f->source);
        return true;
    }
    if (f->path && str_eq(name, rlx_cstr(f->path)))
        return file_open(&file, f->path, FILE_READ, &f->ctx->mem, f->diag) == RLX_OK &&
               copy_file(f, &file, text);
    if (kc_library.find(kc_library.user, name, text))
        return true;
    diag_init(&quiet, "kernel");
    const char *beside = arena_printf(f->arena, "%.*s.rlk", STR_ARG(name));
    return f->path && beside &&
           file_open_beside(&file, f->path, rlx_cstr(beside), FILE_READ, &f->ctx->mem, &quiet) ==
               RLX_OK &&
           copy_file(f, &file, text);
}

struct kc_sources kernel_files_open(struct kernel_files *out, rlx_context *ctx,
                                    const rlx_kernel_desc *desc, struct arena *arena,
                                    struct diag *d)
{
    *out = (struct kernel_files){
        .ctx = ctx, .file = desc->file, .source = desc->source, .arena = arena, .diag = d};
    if (!desc->source && str_ends(rlx_cstr(desc->file), STR(".rlk")))
        out->path = desc->file;
    return (struct kc_sources){find, out};
}

/* ---- made for one use ---- */

/* WGSL has neither f64 nor 64-bit integers, nor cooperative matrices. */
static const struct kc_features wgsl_features = {
    .f16 = true, .subgroups = true, .dot8 = true, .max_group = 1024, .shared_bytes = 32768};

static rlx_status read_defines(const rlx_kernel_desc *desc, struct kc_define *out, struct diag *d)
{
    if (desc->defines > KERNEL_DEFINES)
        return diag_fail(d, RLX_ERROR_LIMIT, "%zu constants; at most %d are taken", desc->defines,
                         KERNEL_DEFINES);
    for (size_t i = 0; i < desc->defines; i++) {
        const char *text = desc->define[i], *equals = text ? strchr(text, '=') : NULL;
        if (!equals)
            return diag_fail(d, RLX_ERROR_ARGUMENT, "\"%s\": a constant is given as NAME=VALUE",
                             text ? text : "NULL");
        out[i] = (struct kc_define){{text, (size_t)(equals - text)}, rlx_cstr(equals + 1)};
    }
    return RLX_OK;
}

rlx_status kernel_make(const struct kc_sources *sources, const rlx_kernel_desc *desc,
                       const struct kc_features *f, struct arena *arena, struct kir *out,
                       struct diag *d)
{
    struct kc_define define[KERNEL_DEFINES];
    rlx_str *names, kernel = rlx_cstr(desc->kernel ? desc->kernel : "");
    size_t count;

    TRY(read_defines(desc, define, d));
    if (!desc->kernel) {
        TRY(kc_kernels(sources, rlx_cstr(desc->file), arena, &names, &count, d));
        if (count == 0)
            return diag_fail(d, RLX_ERROR_NAME, "%s has no kernels", desc->file);
        kernel = names[0];
    }
    return kc_specialise(sources, rlx_cstr(desc->file), kernel, define, desc->defines, f, arena,
                         out, d);
}

struct job {
    const rlx_kernel_desc *desc;
    const struct kc_sources *sources;
    struct arena *arena;
    struct text *out;
    struct diag *diag;
};

static rlx_status emit(const struct job *j)
{
    const struct kc_features *f = j->desc->plain                     ? &kc_least_features
                                  : j->desc->form == RLX_KERNEL_WGSL ? &wgsl_features
                                                                     : &kc_all_features;
    struct kc_emit how = {.features = f};
    struct kir kir;
    uint32_t *words;
    size_t count;

    TRY(kernel_make(j->sources, j->desc, f, j->arena, &kir, j->diag));
    switch (j->desc->form) {
    case RLX_KERNEL_WGSL: return kc_emit_wgsl(&kir, &how, j->out, j->diag);
    case RLX_KERNEL_SPIRV:
        TRY(kc_emit_spirv(&kir, &how, j->arena, &words, &count, j->diag));
        text_add(j->out, (rlx_str){(const char *)words, count * sizeof *words});
        break;
    default: kir_print(&kir, j->out);
    }
    return RLX_OK;
}

static rlx_status list_names(const struct job *j)
{
    rlx_str *names;
    size_t count;

    TRY(kc_kernels(j->sources, rlx_cstr(j->desc->file), j->arena, &names, &count, j->diag));
    for (size_t i = 0; i < count; i++)
        text_addf(j->out, "%.*s\n", STR_ARG(names[i]));
    return RLX_OK;
}

static rlx_status compile_job(const struct job *j)
{
    TRY(j->desc->form == RLX_KERNEL_NAMES ? list_names(j) : emit(j));
    return j->out->failed ? diag_no_memory(j->diag, j->out->len) : RLX_OK;
}

rlx_status user_kernel_compile(rlx_context *ctx, const rlx_kernel_desc *desc, struct text *out,
                               struct diag *d)
{
    struct kernel_files files;
    struct arena arena;

    arena_init(&arena, &ctx->mem);
    const struct kc_sources sources = kernel_files_open(&files, ctx, desc, &arena, d);
    rlx_status s = compile_job(&(struct job){desc, &sources, &arena, out, d});
    arena_free(&arena);
    return s;
}
