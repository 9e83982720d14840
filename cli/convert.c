/* convert.c: `rlx convert`, a file of tensors in another format, or a model as ONNX. */
#include <stdlib.h>
#include <string.h>

#include "copy_weights.h"
#include "info_weights.h"
#include "rlx/artefact.h"
#include "rlx/onnx.h"

static struct {
    const char *type;
    bool external;
} opt;

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--type", FLAG_TEXT, &opt.type, "T",
         "floats and packed weights become this type: f32, f16, bf16, f64"},
        {"--external", FLAG_SWITCH, &opt.external, NULL,
         "of a model: weights go to OUT.data instead of into OUT"},
        {0}};
    return list;
}

static bool ends_in(const char *path, const char *extension)
{
    size_t len = strlen(path), n = strlen(extension);

    return len >= n && strcmp(path + len - n, extension) == 0;
}

/* By the new file's name. */
static bool kind_of(const char *path, rlx_file_kind *out)
{
    static const struct {
        const char *extension;
        rlx_file_kind kind;
    } rows[] = {{".gguf", RLX_FILE_gguf},
                {".safetensors", RLX_FILE_safetensors},
                {".npz", RLX_FILE_npz},
                {".npy", RLX_FILE_npy}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (ends_in(path, rows[i].extension)) {
            *out = rows[i].kind;
            return true;
        }
    }
    return false;
}

static int change_types(struct copy *x)
{
    rlx_weight_type to;
    rlx_weight_type_info info = {RLX_SIZED(rlx_weight_type_info)};

    if (!opt.type)
        return EXIT_DONE;
    if (!rlx_weight_type_find(opt.type, &to) ||
        rlx_weight_type_describe(to, &info, NULL) != RLX_OK || info.use != RLX_WEIGHT_PLAIN ||
        info.dtype > RLX_DTYPE_f64)
        return cli_misuse(x->c, "--type takes f32, f16, bf16 or f64, not \"%s\"", opt.type);
    for (size_t i = 0; i < x->info.tensor_count; i++) {
        rlx_weight_type_info old = {RLX_SIZED(rlx_weight_type_info)};
        rlx_weight_type_describe(x->tensor[i].type, &old, NULL);
        if (old.use == RLX_WEIGHT_PACKED ||
            (old.use == RLX_WEIGHT_PLAIN && old.dtype <= RLX_DTYPE_f64))
            x->tensor[i].type = to;
    }
    return EXIT_DONE;
}

/* A single value as a string; false: no memory. */
static bool as_string(struct copy *x, rlx_meta *m)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (!out)
        return false;
    print_meta_value(out, m, 0, false);
    fclose(out);
    rlx_str *value = copy_string(x, text);
    free(text);
    *m = (rlx_meta){m->key, RLX_META_string, false, 1, value};
    return value != NULL;
}

/* What the new format can keep of the metadata: GGUF all, safetensors single values as strings,
 * NumPy nothing. */
static int fit_metadata(struct copy *x, size_t *dropped)
{
    size_t kept = 0;

    copy_drop_meta(x, "split."); /* the parts are one file now */
    for (size_t i = 0; i < x->meta_count && x->kind != RLX_FILE_gguf; i++) {
        rlx_meta m = x->meta[i];
        if (x->kind != RLX_FILE_safetensors || m.is_array) {
            ++*dropped;
            continue;
        }
        if (m.type != RLX_META_string && !as_string(x, &m))
            return EXIT_FAILED;
        x->meta[kept++] = m;
    }
    if (x->kind != RLX_FILE_gguf)
        x->meta_count = kept;
    return EXIT_DONE;
}

static size_t params_without_value(const rlx_model *m)
{
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};
    size_t count = 0;

    for (size_t i = 0; i < rlx_model_io_count(m, RLX_IO_PARAM); i++)
        if (rlx_model_io(m, RLX_IO_PARAM, i, &info, NULL) == RLX_OK)
            count += info.used && !rlx_model_has_param(m, info.name);
    return count;
}

static int convert_model(struct cli *c, const char *from, const char *to)
{
    const rlx_onnx_desc desc = {RLX_SIZED(rlx_onnx_desc), .external = opt.external};
    rlx_model *m;
    rlx_error err;

    if (opt.type)
        return cli_misuse(c, "--type is for files of tensors");
    int code = cli_load(c, from, &m);
    if (code != EXIT_DONE)
        return code;
    cli_doing(c, "writing", to);
    rlx_status s = rlx_model_save_onnx(m, to, &desc, &err);
    cli_progress_end(c);
    if (s != RLX_OK)
        code = cli_fail(c, &err, "cannot write", to);
    else {
        size_t missing = params_without_value(m);
        printf("%s: %zu inputs, %zu outputs", to, rlx_model_io_count(m, RLX_IO_INPUT) + missing,
               rlx_model_io_count(m, RLX_IO_OUTPUT));
        if (missing)
            printf("; %zu of the inputs are params without a value", missing);
        printf("\n");
    }
    rlx_model_destroy(m);
    return code;
}

static int convert_tensors(struct cli *c, const char *from, const char *to, rlx_file_kind kind)
{
    struct copy x;
    size_t dropped = 0;
    char text[32];
    int code = copy_open(&x, c, from, to);

    x.kind = kind;
    if (code == EXIT_DONE)
        code = change_types(&x);
    if (code == EXIT_DONE)
        code = fit_metadata(&x, &dropped);
    if (code == EXIT_DONE)
        code = copy_write(&x);
    if (code == EXIT_DONE) {
        printf("%s: %zu tensors, %s", to, x.info.tensor_count, cli_bytes(copy_bytes(&x), text));
        if (dropped)
            printf("; %zu keys of metadata left out", dropped);
        printf("\n");
    }
    copy_close(&x);
    return code;
}

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    rlx_file_kind kind;
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count != 2)
        return cli_misuse(c, "takes two files: the one to read and the one to write");
    if (ends_in(args.at[1], ".onnx"))
        return convert_model(c, args.at[0], args.at[1]);
    if (opt.external)
        return cli_misuse(c, "--external is for models");
    if (!kind_of(args.at[1], &kind))
        return cli_misuse(c,
                          "%s should end in .gguf, .safetensors, .npz or .npy, or, for a model, in "
                          ".onnx",
                          args.at[1]);
    return convert_tensors(c, args.at[0], args.at[1], kind);
}

const struct command cmd_convert = {
    .name = "convert",
    .summary = "Write a file of tensors in another format, or a model as ONNX",
    .usage = "rlx convert IN OUT [--type T] [--external]",
    .details =
        "IN is GGUF (of a split one, the first part), safetensors or its index, npz or npy.\n"
        "OUT ends in .gguf, .safetensors, .npz or .npy, and is written in that format. What\n"
        "the format has no type for is refused, unless --type converts it.\n"
        "Where OUT ends in .onnx, IN is a model: text, an artefact, or ONNX itself. Its weights\n"
        "are included; params without a value become inputs. Every node that ONNX has no\n"
        "equivalent of is named.",
    .examples = "rlx convert model.gguf model.safetensors --type f16\n"
                "rlx convert graph.rlx graph.onnx --external",
    .run = run,
    .flags = flags,
};
