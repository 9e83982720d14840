/* disk_cache.c: compiled programs in a folder, one file each.
 *
 *     <key>.rlxc    128 bits of everything a program depends on, in hex
 *
 * A file is an artefact without model and weights. It appears in one step, so any number of
 * processes may use one folder, and is read as warily as any file; but the graph in it is believed,
 * so a file or folder that other users may write to is not used. When the folder grows too large
 * the files used longest ago go. Nothing here fails a compile: trouble is logged. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "compile/cache/artefact.h"
#include "compile/stage_options.h"
#include "ir/fingerprint.h"

struct key {
    uint64_t part[2];
};
enum { NAME_LENGTH = 32 + 5 }; /* 32 digits, ".rlxc" */

/* ---- keys ---- */

static rlx_status model_fingerprint(struct rlx_model *m, uint64_t *out, struct diag *d)
{
    rlx_status s = RLX_OK;

    pthread_mutex_lock(&m->lock);
    if (m->fingerprint == 0)
        s = ir_fingerprint(m->mod, true, &m->fingerprint, d);
    *out = m->fingerprint;
    pthread_mutex_unlock(&m->lock);
    return s;
}

static uint64_t fold(uint64_t h, const struct compile_request *r, uint64_t model,
                     const int64_t *binding, size_t count)
{
    const struct dim_table *dims = r->model->mod->dims;
    struct target_note note;

    target_note_of(r->target, &note);
    const uint64_t part[] = {ARTEFACT_FORMAT,
                             RLX_VERSION,
                             model,
                             reuse_options_key(r),
                             debug_options(r->desc)->alignment,
                             note.native,
                             note.alignment,
                             note.max_buffer,
                             (uint64_t)(int64_t)note.threads};
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++)
        h = fingerprint_u64(h, part[i]);
    h = fingerprint_str(h, note.backend);
    h = fingerprint_str(h, note.description);
    h = fingerprint_str(h, note.features);
    for (size_t i = 0; i < count; i++) {
        if (binding[i] == -1)
            continue;
        h = fingerprint_str(h, dim_symbol_name(dims, i));
        h = fingerprint_u64(h, (uint64_t)binding[i]);
    }
    return h;
}

static rlx_status make_key(const struct compile_request *r, const int64_t *binding, size_t count,
                           struct key *out, struct diag *d)
{
    uint64_t model;

    TRY(model_fingerprint(r->model, &model, d));
    out->part[0] = fold(1, r, model, binding, count);
    out->part[1] = fold(2, r, model, binding, count);
    return RLX_OK;
}

static rlx_status make_path(const char *folder, const struct key *key, char path[PATH_MAX],
                            struct diag *d)
{
    int len = snprintf(path, PATH_MAX, "%s/%016" PRIx64 "%016" PRIx64 ".rlxc", folder, key->part[0],
                       key->part[1]);

    return len < PATH_MAX ? RLX_OK : diag_fail(d, RLX_ERROR_IO, "the path %s is too long", folder);
}

static void put_key(const struct key *key, struct text *out)
{
    put_u64(out, key->part[0]);
    put_u64(out, key->part[1]);
}

static rlx_status check_key(const struct artefact_file *a, const struct key *want, struct diag *d)
{
    struct reader r;
    struct key got;

    TRY(artefact_need(a, SECTION_KEY, 0, &r, d));
    got.part[0] = get_u64(&r);
    got.part[1] = get_u64(&r);
    TRY(reader_end(&r, artefact_kind_name(SECTION_KEY), 0, d));
    if (memcmp(&got, want, sizeof got) != 0 || a->library != RLX_VERSION)
        return diag_fail(d, RLX_ERROR_FORMAT, "it is another program's");
    return RLX_OK;
}

/* ---- finding ---- */

static rlx_status read_program(const struct compile_request *r, const struct file *f,
                               const struct key *key, const struct ir_module *bound,
                               const int64_t *binding, size_t count, struct arena *scratch,
                               struct reuse *out, struct diag *d)
{
    struct artefact_file a;
    struct blobs blobs;
    struct reader program, text;
    struct saved_program *p = arena_new(scratch, struct saved_program);

    if (!p)
        return diag_no_memory(d, sizeof *p);
    TRY(artefact_read(&a, f, true, scratch, d));
    TRY(check_key(&a, key, d));
    TRY(artefact_need(&a, SECTION_PROGRAM, 0, &program, d));
    TRY(artefact_need(&a, SECTION_OPTIMISED, 0, &text, d));
    TRY(blobs_read(&blobs, &a, scratch, d));
    TRY(saved_program_get(program, 0, scratch, p, d));
    if (!saved_program_has_sizes(p, r->model->mod->dims, binding, count))
        return diag_fail(d, RLX_ERROR_FORMAT, "it is for other sizes");
    TRY(saved_program_parse(&blobs, text, p, bound, true, r->model->ctx, &out->mod, d));
    p->plan.max_buffer = r->desc->max_buffer; /* part of the key */
    out->from = REUSE_CACHE;
    out->plan = &p->plan;
    return RLX_OK;
}

bool cache_find(const struct compile_request *r, const struct ir_module *bound,
                const int64_t *binding, size_t count, struct arena *scratch, struct reuse *out)
{
    const rlx_context *ctx = r->model->ctx;
    char path[PATH_MAX];
    struct diag d;
    struct file f;
    struct key key;

    diag_init(&d, "cache");
    rlx_status status = make_key(r, binding, count, &key, &d);
    if (status == RLX_OK)
        status = make_path(ctx->cache_dir, &key, path, &d);
    if (status == RLX_OK && access(path, F_OK) != 0)
        return false;
    if (status == RLX_OK)
        status = file_open_own(&f, path, FILE_READ, &ctx->mem, &d);
    if (status == RLX_OK) {
        status = read_program(r, &f, &key, bound, binding, count, scratch, out, &d);
        file_close(&f);
        utimensat(AT_FDCWD, path, NULL, 0); /* used now: among the last to go */
    }
    if (status != RLX_OK)
        context_log(ctx, 1, "cache: not used: %s", d.first.message);
    return status == RLX_OK;
}

/* ---- keeping ---- */

static rlx_status write_program(const struct compiled_program *p, uint64_t options,
                                const struct key *key, const struct dim_table *dims,
                                const int64_t *binding, size_t count, struct artefact_writer *w,
                                struct diag *d)
{
    struct blob_writer blobs;
    struct text text;
    rlx_status s;

    text_init(&text, w->mem);
    blobs_init(&blobs, w->mem);
    put_key(key, &text);
    s = artefact_add(w, SECTION_KEY, 0, &text, d);
    text_free(&text);
    if (s == RLX_OK)
        s = saved_program_put(p, options, dims, binding, count, &text, d);
    if (s == RLX_OK)
        s = artefact_add(w, SECTION_PROGRAM, 0, &text, d);
    text_free(&text);
    if (s == RLX_OK)
        s = blobs_print(&blobs, p->optimised, &text, d);
    if (s == RLX_OK)
        s = artefact_add(w, SECTION_OPTIMISED, 0, &text, d);
    text_free(&text);
    if (s == RLX_OK)
        s = blobs_write(&blobs, w, d);
    blobs_free(&blobs);
    return s == RLX_OK ? artefact_commit(w, d) : s;
}

struct entry {
    char name[NAME_LENGTH + 1];
    uint64_t bytes;
    struct timespec used;
};

static int by_age(const void *a, const void *b)
{
    const struct timespec *x = &((const struct entry *)a)->used,
                          *y = &((const struct entry *)b)->used;

    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static bool is_entry(const char *name)
{
    size_t len = strlen(name);

    return len == NAME_LENGTH && strspn(name, "0123456789abcdef") == 32 &&
           strcmp(name + 32, ".rlxc") == 0;
}

/* What a writer that was killed halfway left behind. */
static void remove_stale(int folder, const char *name, const struct stat *st)
{
    enum { AN_HOUR = 3600 };

    if (strncmp(name, ".rlx-", 5) == 0 && S_ISREG(st->st_mode) &&
        st->st_mtim.tv_sec < time(NULL) - AN_HOUR)
        unlinkat(folder, name, 0);
}

/* Down to the bytes allowed, the oldest first, but never the one that was just written. */
static void trim(const rlx_context *ctx, const char *newest)
{
    DIR *dir = opendir(ctx->cache_dir);
    VEC(struct entry) list = {0};
    uint64_t total = 0;
    struct dirent *e;

    while (dir && (e = readdir(dir))) {
        struct stat st;
        if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        remove_stale(dirfd(dir), e->d_name, &st);
        if (!is_entry(e->d_name) || !S_ISREG(st.st_mode) || !vec_room(&ctx->mem, &list))
            continue;
        struct entry *to = &list.at[list.len++];
        memcpy(to->name, e->d_name, sizeof to->name);
        to->bytes = (uint64_t)st.st_size;
        to->used = st.st_mtim;
        total += to->bytes;
    }
    if (list.len)
        qsort(list.at, list.len, sizeof *list.at, by_age);
    for (size_t i = 0; i < list.len && total > ctx->cache_bytes; i++) {
        if (strcmp(list.at[i].name, newest) == 0)
            continue;
        unlinkat(dirfd(dir), list.at[i].name, 0);
        total -= list.at[i].bytes;
    }
    vec_free(&ctx->mem, &list);
    if (dir)
        closedir(dir);
}

void cache_keep(const struct compile_request *r, const struct compiled_program *p,
                const int64_t *binding, size_t count)
{
    const rlx_context *ctx = r->model->ctx;
    struct artefact_writer w = {.mem = &ctx->mem};
    char path[PATH_MAX];
    struct diag d;
    struct key key;

    diag_init(&d, "cache");
    if (mkdir(ctx->cache_dir, 0700) != 0 && errno != EEXIST)
        context_log(ctx, 1, "cache: cannot make the folder %s", ctx->cache_dir);
    rlx_status status = make_key(r, binding, count, &key, &d);
    if (status == RLX_OK)
        status = make_path(ctx->cache_dir, &key, path, &d);
    if (status == RLX_OK)
        status = file_check_own_folder(path, &d);
    if (status == RLX_OK)
        status = artefact_begin(&w, path, FILE_PRIVATE, &ctx->mem, &d);
    if (status == RLX_OK)
        status = write_program(p, reuse_options_key(r), &key, r->model->mod->dims, binding, count,
                               &w, &d);
    artefact_writer_free(&w);
    if (status == RLX_OK)
        trim(ctx, strrchr(path, '/') + 1);
    else
        context_log(ctx, 1, "cache: not kept: %s", d.first.message);
}
