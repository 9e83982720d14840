/* array.c: the value of an input or param from a file: an npy file, or the tensor of that name in a
 * file of several. */
#include <string.h>

#include "bind.h"
#include "info_weights.h"

/* The tensor of that name, or the only one there is. */
static bool find_array(const rlx_weights *w, rlx_str name, size_t *i)
{
    rlx_weights_info info = {RLX_SIZED(rlx_weights_info)};

    if (rlx_weights_find(w, name, i))
        return true;
    rlx_weights_describe(w, &info, NULL);
    *i = 0;
    return info.tensor_count == 1;
}

int cli_copy_array(struct cli *c, rlx_weights *w, size_t i, const char *file, rlx_tensor *out)
{
    rlx_weight_type_info type = {RLX_SIZED(rlx_weight_type_info)};
    rlx_weight t = {.rank = 0};
    const void *data;
    rlx_error err;

    rlx_weights_at(w, i, &t);
    rlx_weight_type_describe(t.type, &type, NULL);
    if (type.use != RLX_WEIGHT_PLAIN || t.rank > RLX_MAX_RANK) {
        fprintf(stderr,
                "rlx %s: %s: \"%.*s\" is %s of rank %d, which is not supported as a value\n",
                c->command->name, file, (int)t.name.len, t.name.ptr, type.name, t.rank);
        return EXIT_FAILED;
    }
    *out = (rlx_tensor){.dtype = type.dtype, .rank = t.rank};
    memcpy(out->dim, t.dim, sizeof out->dim);
    if (rlx_weights_data(w, i, &data, &err) != RLX_OK ||
        rlx_tensor_alloc(c->ctx, out, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot read", file);
    if (out->bytes)
        memcpy(out->data, data, out->bytes);
    return EXIT_DONE;
}

static int find_and_copy(struct cli *c, rlx_weights *w, const char *file, rlx_str name,
                         rlx_tensor *out)
{
    rlx_nearest near = {.wanted = name};
    char hint[RLX_NEAREST_HINT];
    rlx_weight t;
    size_t i;

    if (find_array(w, name, &i))
        return cli_copy_array(c, w, i, file, out);
    for (i = 0; rlx_weights_at(w, i, &t); i++)
        rlx_nearest_offer(&near, t.name);
    fprintf(stderr, "rlx %s: %s has no \"%.*s\"%s (rlx info %s lists what it has)\n",
            c->command->name, file, (int)name.len, name.ptr, rlx_nearest_hint(&near, hint), file);
    return EXIT_FAILED;
}

/* An array, or several, from a pipe. */
static int load_stdin(struct cli *c, rlx_str name, rlx_tensor *out)
{
    static bool taken;
    struct buffer b = {0};
    rlx_weights *w;
    rlx_error err;
    int code;

    if (taken)
        return cli_misuse(c, "standard input can be read only once, but \"-\" was given twice");
    taken = true;
    if (!cli_read_all(stdin, &b)) {
        fprintf(stderr, "rlx %s: cannot read standard input\n", c->command->name);
        code = EXIT_FAILED;
    } else if (rlx_weights_parse(c->ctx, b.at ? b.at : "", b.len, &w, &err) != RLX_OK) {
        code = cli_fail(c, &err, "cannot read", "standard input");
    } else {
        code = find_and_copy(c, w, "standard input", name, out);
        rlx_weights_close(w);
    }
    buffer_free(&b);
    return code;
}

static int load_named(struct cli *c, const char *file, rlx_str name, rlx_tensor *out)
{
    rlx_weights *w;
    rlx_error err;

    if (rlx_weights_open(c->ctx, file, &c->load, &w, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot read", file);
    int code = find_and_copy(c, w, file, name, out);
    rlx_weights_close(w);
    return code;
}

int cli_load_array(struct cli *c, const char *file, rlx_str name, rlx_tensor *out)
{
    rlx_file_kind kind = RLX_FILE_npy;
    rlx_error err;

    if (strcmp(file, "-") == 0)
        return load_stdin(c, name, out);
    if (rlx_file_detect(c->ctx, file, &kind, &err) == RLX_OK && kind != RLX_FILE_npy &&
        is_weights_file(kind))
        return load_named(c, file, name, out);
    if (rlx_tensor_load(c->ctx, file, out, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot read", file);
    return EXIT_DONE;
}

int cli_load_params(struct cli *c, rlx_model *m, const char *file)
{
    rlx_weights_use use = {RLX_SIZED(rlx_weights_use), .set = 0};
    rlx_weights *w;
    rlx_error err;

    if (rlx_weights_open(c->ctx, file, &c->load, &w, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot read", file);
    rlx_status s = rlx_model_load_weights(m, w, &use, &err);
    rlx_weights_close(w);
    if (s != RLX_OK)
        return cli_fail(c, &err, "cannot take params from", file);
    if (use.set == 0 && use.missing) {
        fprintf(
            stderr,
            "rlx %s: %s has none of the params, such as \"%s\" (rlx info %s lists what it has)\n",
            c->command->name, file, use.example, file);
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}
