/* conform_data.c: see conform_data.h. */
#include "conform_data.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

/* Nothing in a file distinguishes a tensor from a list of them: what cannot be read as one is tried
 * as the other.
 */
static void load_file(rlx_context *ctx, const char *path, struct data_file *out)
{
    rlx_tensor t = {0};
    rlx_error ignored;

    *out = (struct data_file){.list = {.count = 1}};
    if (rlx_tensor_load(ctx, path, &t, &out->err) == RLX_OK) {
        out->list.at = malloc(sizeof t);
        if (out->list.at)
            *out->list.at = t;
        else {
            rlx_tensor_free(ctx, &t);
            out->err = (rlx_error){.status = RLX_ERROR_MEMORY, .message = "no memory"};
        }
    } else if (rlx_tensor_list_load(ctx, path, &out->list, &ignored) == RLX_OK) {
        out->is_list = true;
        out->err.status = RLX_OK;
    }
}

void data_files_load(rlx_context *ctx, const char *dir, const char *what, struct data_files *out)
{
    for (out->count = 0; out->count < MAX_FILES; out->count++) {
        char path[8192];
        snprintf(path, sizeof path, "%s/%s_%zu.pb", dir, what, out->count);
        if (!exists(path))
            break;
        load_file(ctx, path, &out->at[out->count]);
    }
}

void data_files_free(rlx_context *ctx, struct data_files *f)
{
    for (size_t i = 0; i < f->count; i++) {
        struct data_file *file = &f->at[i];
        if (file->is_list)
            rlx_tensor_list_free(ctx, &file->list);
        else if (file->list.at) {
            rlx_tensor_free(ctx, file->list.at);
            free(file->list.at);
        }
    }
    f->count = 0;
}

const rlx_tensor *data_files_tensor(const struct data_files *f, size_t i, rlx_error *err)
{
    err->status = RLX_OK;
    for (size_t k = 0; k < f->count; k++) {
        const struct data_file *file = &f->at[k];
        if (i >= file->list.count) {
            i -= file->list.count;
            continue;
        }
        *err = file->err;
        return err->status == RLX_OK ? &file->list.at[i] : NULL;
    }
    return NULL;
}

size_t data_files_tensors(const struct data_files *f)
{
    size_t count = 0;

    for (size_t i = 0; i < f->count; i++)
        count += f->at[i].list.count;
    return count;
}

const rlx_error *data_files_broken(const struct data_files *f)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->at[i].err.status != RLX_OK && f->at[i].err.status != RLX_ERROR_UNSUPPORTED)
            return &f->at[i].err;
    return NULL;
}
