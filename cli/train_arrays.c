/* train_arrays.c: a model on arrays: files that stay mapped, and the tensors in them that are named
 * like its inputs. */
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "train.h"

struct arrays {
    struct cli *c;
    rlx_weights *file[MAX_TEXTS + 1];
    size_t files, room;
    rlx_binding *at;
    size_t count;
};

static void arrays_free(struct arrays *a)
{
    for (size_t i = 0; i < a->count; i++)
        free((char *)a->at[i].name);
    for (size_t i = 0; i < a->files; i++)
        rlx_weights_close(a->file[i]);
    free(a->at);
}

static int add(struct arrays *a, rlx_weights *w, size_t i, rlx_str name, const char *file)
{
    rlx_weight_type_info type = {RLX_SIZED(rlx_weight_type_info), .name = "?"};
    rlx_weight t = {.rank = 0};
    const void *data;
    rlx_error err;

    rlx_weights_at(w, i, &t);
    rlx_weight_type_describe(t.type, &type, NULL);
    if (type.use != RLX_WEIGHT_PLAIN || t.rank > RLX_MAX_RANK) {
        fprintf(stderr, "rlx %s: %s: \"%.*s\" is %s of rank %d, which is not supported as data\n",
                a->c->command->name, file, (int)t.name.len, t.name.ptr, type.name, t.rank);
        return EXIT_FAILED;
    }
    if (a->count == a->room) {
        size_t room = a->room ? 2 * a->room : 16;
        rlx_binding *at = realloc(a->at, room * sizeof *at);
        if (!at)
            return EXIT_FAILED;
        a->at = at;
        a->room = room;
    }
    if (rlx_weights_data(w, i, &data, &err) != RLX_OK)
        return cli_fail(a->c, &err, "cannot read", file);
    rlx_binding *b = &a->at[a->count];
    *b = (rlx_binding){
        strndup(name.ptr, name.len),
        {.dtype = type.dtype, .rank = t.rank, .data = (void *)data, .bytes = (size_t)t.bytes}};
    memcpy(b->tensor.dim, t.dim, sizeof b->tensor.dim);
    a->count += b->name != NULL;
    return b->name ? EXIT_DONE : EXIT_FAILED;
}

static int open_file(struct arrays *a, const char *file, rlx_weights **out)
{
    rlx_error err;

    if (rlx_weights_open(a->c->ctx, file, &a->c->load, out, &err) != RLX_OK)
        return cli_fail(a->c, &err, "cannot read", file);
    a->file[a->files++] = *out;
    return EXIT_DONE;
}

/* NAME=FILE: the tensor of that name, or the only one. */
static int add_pair(struct arrays *a, const char *pair)
{
    const char *equals = strchr(pair, '=');
    rlx_weights_info info = {RLX_SIZED(rlx_weights_info)};
    rlx_weights *w;
    size_t i = 0;

    if (!equals || equals == pair || !equals[1])
        return cli_misuse(a->c, "--data \"%s\" is not of the form NAME=FILE", pair);
    rlx_str name = {pair, (size_t)(equals - pair)};
    int code = open_file(a, equals + 1, &w);
    if (code != EXIT_DONE)
        return code;
    rlx_weights_describe(w, &info, NULL);
    if (!rlx_weights_find(w, name, &i) && info.tensor_count != 1) {
        fprintf(stderr, "rlx %s: %s has no \"%.*s\" (rlx info %s lists what it has)\n",
                a->c->command->name, equals + 1, (int)name.len, name.ptr, equals + 1);
        return EXIT_FAILED;
    }
    return add(a, w, i, name, equals + 1);
}

static bool is_input(const rlx_model *m, rlx_str name)
{
    for (size_t i = 0; i < rlx_model_io_count(m, RLX_IO_INPUT); i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        if (rlx_model_io(m, RLX_IO_INPUT, i, &info, NULL) == RLX_OK && info.name.len == name.len &&
            memcmp(info.name.ptr, name.ptr, name.len) == 0)
            return true;
    }
    return false;
}

/* Whatever in a file is named like an input. */
static int add_file(struct arrays *a, const rlx_model *m, const char *file)
{
    rlx_weights *w;
    rlx_weight t;
    int code = open_file(a, file, &w);

    for (size_t i = 0; code == EXIT_DONE && rlx_weights_at(w, i, &t); i++)
        if (is_input(m, t.name))
            code = add(a, w, i, t.name, file);
    if (code == EXIT_DONE && a->count == 0) {
        fprintf(stderr,
                "rlx %s: %s holds nothing that is named like an input of the model (rlx info %s "
                "lists what it has)\n",
                a->c->command->name, file, file);
        code = EXIT_FAILED;
    }
    return code;
}

static int take_data(struct arrays *a, const rlx_model *m, const struct texts *data,
                     const char *data_file)
{
    int code = data_file ? add_file(a, m, data_file) : EXIT_DONE;

    for (size_t i = 0; code == EXIT_DONE && i < data->count; i++)
        code = add_pair(a, data->at[i]);
    return code;
}

static int finish(struct training *t)
{
    rlx_error err;

    if (t->opt->save && rlx_trainer_export(t->trainer, t->opt->save, &err) != RLX_OK)
        return cli_fail(t->c, &err, "cannot save", t->opt->save);
    return EXIT_DONE;
}

static int train(struct training *t, struct opened *o, struct arrays *a)
{
    rlx_dataset_desc desc = {RLX_SIZED(rlx_dataset_desc), .arrays = a->at, .array_count = a->count};
    const char *end = t->opt->save ? strrchr(t->opt->save, '.') : NULL;
    int code = training_options(t);

    if (end && strcmp(end, ".gguf") == 0)
        return cli_misuse(t->c, "--save writes safetensors, or npz; only --text writes GGUF");
    if (code == EXIT_DONE && (code = training_data(t, o->model, &desc)) == EXIT_DONE &&
        (code = training_open(t, o->model, NULL, 0)) == EXIT_DONE &&
        (code = training_run(t)) == EXIT_DONE)
        code = finish(t);
    if (t->opt->json && t->trainer && (code == EXIT_DONE || t->stopped))
        training_json(t, stdout);
    return code;
}

int train_arrays(struct cli *c, const struct train_options *opt, const char *path,
                 struct texts *data, const char *data_file, const char *params_file)
{
    struct opened o = {.c = c, .path = path};
    struct open_options values = {.path = path, .params_file = params_file};
    struct training t = {.c = c, .opt = opt, .what = path};
    struct arrays a = {.c = c};

    if (!data->count && !data_file)
        return cli_misuse(c,
                          "needs data: --data NAME=FILE for each input, or --data-file FILE.npz");
    int code = cli_load(c, path, &o.model);
    if (code == EXIT_DONE && (code = take_params(&o, &values)) == EXIT_DONE &&
        (code = take_data(&a, o.model, data, data_file)) == EXIT_DONE)
        code = train(&t, &o, &a);
    training_close(&t);
    opened_close(&o);
    arrays_free(&a);
    return code;
}
