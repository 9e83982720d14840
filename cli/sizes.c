/* sizes.c: the sizes of a model's symbolic dims: from --dim, from the inputs' shapes, or assumed
 * for a batch; and the message when one is missing. */
#include <stdlib.h>
#include <string.h>

#include "bind.h"

static bool is_named(rlx_str name, const char *word)
{
    return name.len == strlen(word) && memcmp(name.ptr, word, name.len) == 0;
}

static bool has_word(rlx_str name, const char *word)
{
    return memmem(name.ptr, name.len, word, strlen(word)) != NULL;
}

/* ---- --dim ---- */

/* All dims of the model, with the sizes known so far; NULL: the reason was printed. */
static rlx_model_dim *list_dims(struct opened *o, size_t *count, int *code)
{
    rlx_run_desc run = opened_run(o);
    rlx_error err;

    *count = rlx_model_dim_count(o->model);
    rlx_model_dim *dims = calloc(*count + 1, sizeof *dims);
    *code = dims ? EXIT_DONE : EXIT_FAILED;
    if (dims && rlx_model_dims(o->model, &run, dims, &err) != RLX_OK) {
        *code = cli_fail(o->c, &err, "cannot take the inputs of", o->path);
        free(dims);
        return NULL;
    }
    return dims;
}

static int add_dim(struct opened *o, rlx_str name, int64_t size)
{
    char *own = o->dim_count < MAX_DIMS ? strndup(name.ptr, name.len) : NULL;

    if (!own)
        return EXIT_FAILED;
    o->dim[o->dim_count++] = (rlx_dim_size){own, size};
    return EXIT_DONE;
}

static int unknown_dim(struct opened *o, rlx_str name, const rlx_model_dim *dims, size_t count)
{
    rlx_nearest near = {.wanted = name};
    struct buffer known = {0};
    char hint[RLX_NEAREST_HINT];

    for (size_t i = 0; i < count; i++) {
        rlx_nearest_offer(&near, dims[i].name);
        buffer_add(&known, ", ", i ? 2 : 0);
        buffer_add(&known, dims[i].name.ptr, dims[i].name.len);
    }
    int code = count
                   ? cli_misuse(o->c, "the model has no dim \"%.*s\"; it has: %s%s", (int)name.len,
                                name.ptr, known.at ? known.at : "", rlx_nearest_hint(&near, hint))
                   : cli_misuse(o->c, "the model has no dim \"%.*s\": all its sizes are fixed",
                                (int)name.len, name.ptr);
    buffer_free(&known);
    return code;
}

static int take_dim(struct opened *o, const char *text, const rlx_model_dim *dims, size_t count)
{
    const char *equals = strchr(text, '=');
    rlx_str name = {text, equals ? (size_t)(equals - text) : 0};
    int64_t size;

    if (!equals || !cli_integer(equals + 1, &size) || size < 0 || o->dim_count == MAX_DIMS)
        return cli_misuse(o->c, "--dim \"%s\" is not of the form NAME=SIZE, as in --dim seq=128",
                          text);
    for (size_t i = 0; i < count; i++)
        if (dims[i].name.len == name.len && memcmp(dims[i].name.ptr, name.ptr, name.len) == 0)
            return add_dim(o, name, size);
    return unknown_dim(o, name, dims, count);
}

int check_dims(struct opened *o, const rlx_dim_size *sizes, size_t size_count)
{
    size_t count;
    int code;
    rlx_model_dim *dims = list_dims(o, &count, &code);

    for (size_t i = 0; dims && code == EXIT_DONE && i < size_count; i++) {
        bool known = false;
        for (size_t k = 0; k < count; k++)
            known |= is_named(dims[k].name, sizes[i].name);
        if (!known)
            code = unknown_dim(o, rlx_cstr(sizes[i].name), dims, count);
    }
    free(dims);
    return code;
}

int take_dims(struct opened *o, const struct texts *texts)
{
    size_t count;
    int code = EXIT_DONE;

    if (!texts || !texts->count)
        return EXIT_DONE;
    rlx_model_dim *dims = list_dims(o, &count, &code);
    for (size_t i = 0; dims && code == EXIT_DONE && i < texts->count; i++)
        code = take_dim(o, texts->at[i], dims, count);
    free(dims);
    return code;
}

/* ---- what is missing ---- */

/* A size to suggest, for a command line that works. */
static int64_t usual_size(const rlx_model_dim *d)
{
    int64_t size =
        has_word(d->name, "batch") || is_named(d->name, "N")                                 ? 1
        : has_word(d->name, "past")                                                          ? 16
        : has_word(d->name, "seq") || has_word(d->name, "len") || has_word(d->name, "token") ? 128
        : has_word(d->name, "height") || has_word(d->name, "width") || is_named(d->name, "H") ||
                is_named(d->name, "W") || is_named(d->name, "h") || is_named(d->name, "w")
            ? 224
            : 8;

    return d->bound && d->bound < size ? d->bound : size;
}

static bool is_missing(const rlx_model_dim *d)
{
    return d->size < 0 && d->of_input;
}

/* Prints the command line that was given, and a --dim for each that is missing. */
static void suggest(const struct opened *o, const rlx_model_dim *dims, size_t count)
{
    fputs("this would work:\n  ", stderr);
    cli_print_command(o->c, stderr);
    for (size_t i = 0; i < count; i++)
        if (is_missing(&dims[i]))
            fprintf(stderr, " --dim %.*s=%lld", (int)dims[i].name.len, dims[i].name.ptr,
                    (long long)usual_size(&dims[i]));
    fputs("\n", stderr);
}

static int fail_unbound(const struct opened *o, const rlx_model_dim *dims, size_t count)
{
    char type[256];
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};
    size_t said = 0;

    cli_progress_end(o->c);
    fprintf(stderr, "rlx %s: the sizes of %s are not known: UNBOUND_DIM: no size is given for ",
            o->c->command->name, o->path);
    for (size_t i = 0; i < count; i++)
        if (is_missing(&dims[i]))
            fprintf(stderr, "%s%.*s", said++ ? ", " : "", (int)dims[i].name.len, dims[i].name.ptr);
    fputs("; the inputs are:\n", stderr);
    for (size_t i = 0; i < rlx_model_io_count(o->model, RLX_IO_INPUT); i++) {
        rlx_model_io(o->model, RLX_IO_INPUT, i, &info, NULL);
        fprintf(stderr, "  %.*s: %s\n", (int)info.name.len, info.name.ptr,
                rlx_model_io_type(o->model, RLX_IO_INPUT, i, type, sizeof type));
    }
    suggest(o, dims, count);
    return EXIT_FAILED;
}

int opened_fail(struct opened *o, const rlx_error *err, const char *doing, const char *what)
{
    size_t count;
    int code, listed;

    code = cli_fail(o->c, err, doing, what);
    if (err->status != RLX_ERROR_UNBOUND_DIM)
        return code;
    rlx_model_dim *dims = list_dims(o, &count, &listed);
    bool missing = false;
    for (size_t i = 0; dims && i < count; i++)
        missing |= is_missing(&dims[i]);
    if (missing)
        suggest(o, dims, count);
    free(dims);
    return code;
}

/* ---- what can be assumed ---- */

static bool is_batch(const rlx_model_dim *d)
{
    return d->leads && !d->bound && (is_named(d->name, "N") || has_word(d->name, "batch"));
}

bool input_shape(const struct opened *o, size_t i, rlx_tensor *out)
{
    rlx_run_desc run = opened_run(o);
    size_t count = rlx_model_dim_count(o->model), known = 0;
    rlx_model_dim *dims = calloc(count + 1, sizeof *dims);
    rlx_dim_size *size = calloc(count + 1, sizeof *size);
    bool known_all = dims && size && rlx_model_dims(o->model, &run, dims, NULL) == RLX_OK;

    for (size_t k = 0; known_all && k < count; k++) {
        if (dims[k].size < 0)
            continue;
        size[known] = (rlx_dim_size){strndup(dims[k].name.ptr, dims[k].name.len), dims[k].size};
        known_all = size[known++].name != NULL;
    }
    known_all = known_all && rlx_model_input_shape(o->model, i, size, known, out, NULL) == RLX_OK;
    for (size_t k = 0; size && k < known; k++)
        free((char *)size[k].name);
    free(size);
    free(dims);
    return known_all;
}

void known_axes(const struct opened *o, size_t i, rlx_tensor *out)
{
    rlx_run_desc run = opened_run(o);
    size_t count = rlx_model_dim_count(o->model);
    rlx_model_dim *dims = calloc(count + 1, sizeof *dims);
    char type[512];

    rlx_model_io_type(o->model, RLX_IO_INPUT, i, type, sizeof type);
    const char *at = type + strcspn(type, "[");
    bool known = dims && rlx_model_dims(o->model, &run, dims, NULL) == RLX_OK;
    for (int32_t a = 0; known && a < out->rank && *at; a++) {
        size_t len = strcspn(++at, ",]");
        for (size_t k = 0; k < count; k++)
            if (out->dim[a] < 0 && dims[k].size >= 0 && dims[k].name.len == len &&
                memcmp(dims[k].name.ptr, at, len) == 0)
                out->dim[a] = dims[k].size;
        at += len;
    }
    free(dims);
}

/* Every batch without a size gets 1. */
static int take_batches(struct opened *o)
{
    size_t count;
    int code;
    rlx_model_dim *dims = list_dims(o, &count, &code);

    for (size_t i = 0; dims && code == EXIT_DONE && i < count; i++)
        if (is_missing(&dims[i]) && is_batch(&dims[i]))
            code = add_dim(o, dims[i].name, 1);
    free(dims);
    return code;
}

/* Removes what was added after that. */
static void drop_dims(struct opened *o, size_t first)
{
    while (o->dim_count > first)
        free((char *)o->dim[--o->dim_count].name);
}

int settle_dims(struct opened *o, bool bounded)
{
    size_t count, given = o->dim_count;
    int code = take_batches(o);
    rlx_model_dim *dims = code == EXIT_DONE ? list_dims(o, &count, &code) : NULL;
    bool missing = false;

    for (size_t i = 0; dims && i < count; i++)
        missing |= is_missing(&dims[i]) && (bounded || !dims[i].bound);
    free(dims);
    if (missing) {
        drop_dims(o, given); /* so that they are named too */
        dims = list_dims(o, &count, &code);
        code = dims ? fail_unbound(o, dims, count) : code;
        free(dims);
    }
    for (size_t i = given; i < o->dim_count && code == EXIT_DONE; i++)
        fprintf(stderr, "rlx %s: %s is taken to be 1 (--dim %s=SIZE gives another size)\n",
                o->c->command->name, o->dim[i].name, o->dim[i].name);
    return code;
}

void print_missing_dims(struct opened *o, FILE *out)
{
    size_t count;
    int code;
    rlx_model_dim *dims = list_dims(o, &count, &code);

    for (size_t i = 0; dims && i < count; i++)
        if (is_missing(&dims[i]) && !is_batch(&dims[i]))
            fprintf(out, " --dim %.*s=%lld", (int)dims[i].name.len, dims[i].name.ptr,
                    (long long)usual_size(&dims[i]));
    free(dims);
}
