/* convert.c: `rlx convert`, a file of tensors in another format. */
#include <stdlib.h>
#include <string.h>

#include "copy_weights.h"
#include "info_weights.h"

static struct {
    const char *type;
} opt;

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--type", FLAG_TEXT, &opt.type, "T",
         "floats and packed weights become this type: f32, f16, bf16, f64"},
        {0}};
    return list;
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
    size_t len = strlen(path);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t n = strlen(rows[i].extension);
        if (len >= n && strcmp(path + len - n, rows[i].extension) == 0) {
            *out = rows[i].kind;
            return true;
        }
    }
    return false;
}

static int change_types(struct copy *x)
{
    rlx_weight_type to;
    rlx_weight_type_info info = {.name = NULL};

    if (!opt.type)
        return EXIT_DONE;
    if (!rlx_weight_type_find(rlx_cstr(opt.type), &to) || !rlx_weight_type_describe(to, &info) ||
        info.use != RLX_WEIGHT_PLAIN || info.dtype > RLX_DTYPE_f64)
        return cli_misuse(x->c, "--type takes f32, f16, bf16 or f64, not \"%s\"", opt.type);
    for (size_t i = 0; i < x->info.tensor_count; i++) {
        rlx_weight_type_info old = {.name = NULL};
        rlx_weight_type_describe(x->tensor[i].type, &old);
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

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    struct copy x;
    rlx_file_kind kind;
    size_t dropped = 0;
    char text[32];
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count != 2)
        return cli_misuse(c, "takes two files");
    if (!kind_of(args.at[1], &kind))
        return cli_misuse(c, "%s should end in .gguf, .safetensors, .npz or .npy", args.at[1]);
    code = copy_open(&x, c, args.at[0], args.at[1]);
    x.kind = kind;
    if (code == EXIT_DONE)
        code = change_types(&x);
    if (code == EXIT_DONE)
        code = fit_metadata(&x, &dropped);
    if (code == EXIT_DONE)
        code = copy_write(&x);
    if (code == EXIT_DONE) {
        printf("%s: %zu tensors, %s", args.at[1], x.info.tensor_count,
               cli_bytes(copy_bytes(&x), text));
        if (dropped)
            printf("; no place for %zu keys of metadata", dropped);
        printf("\n");
    }
    copy_close(&x);
    return code;
}

const struct command cmd_convert = {
    .name = "convert",
    .summary = "Write a file of tensors in another format",
    .usage = "rlx convert IN OUT [--type T]",
    .details =
        "IN is GGUF (of a split one, the first part), safetensors or its index, npz or npy.\n"
        "OUT ends in .gguf, .safetensors, .npz or .npy, and is written in that format. What\n"
        "the format has no type for is refused; --type says what to make of it.",
    .run = run,
    .flags = flags,
};
