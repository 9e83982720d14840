/* values.c: what a model's inputs and params hold: files, pictures, numbers on the command line,
 * and random numbers for the rest. */
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "literal.h"
#include "rlx/artefact.h"
#include "tensor_text.h"

/* ---- random numbers ---- */

/* splitmix64: plain random bits for made-up inputs. */
static uint64_t next_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* How many integers there are to choose from: token ids and the like are small enough for any
 * table; masks and other choices of two are 0 or 1. */
static uint64_t integers_of(const rlx_io_info *leaf)
{
    static const char *const choices[] = {"mask", "token_type", "segment_ids", "use_cache"};

    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        if (memmem(leaf->name.ptr, leaf->name.len, choices[i], strlen(choices[i])))
            return 2;
    return leaf->dtype == RLX_DTYPE_bool ? 2 : 8;
}

/* Floats in [-1, 1), variances in [0.5, 1.5), integers in [0, 8) or [0, 2); in f32, which every
 * leaf accepts. */
static void fill_random(rlx_tensor *t, const rlx_io_info *leaf, uint64_t seed)
{
    float *at = t->data, scale = leaf->variance ? 0x1p-24f : 0x1p-23f;
    float least = leaf->variance ? 0.5f : -1;
    size_t count = t->bytes / sizeof *at;
    bool floating = leaf->dtype <= RLX_DTYPE_f64 || leaf->dtype == RLX_DTYPE_c64;
    uint64_t integers = integers_of(leaf);

    for (size_t i = 0; i < count; i++) {
        uint64_t bits = next_bits(&seed) >> 40;
        at[i] = floating ? (float)bits * scale + least : (float)(bits % integers);
    }
}

static int make_random(struct opened *o, const rlx_io_info *info, uint64_t seed, rlx_tensor *t)
{
    rlx_error err;

    t->dtype = info->dtype == RLX_DTYPE_c64 ? RLX_DTYPE_c64 : RLX_DTYPE_f32;
    if (rlx_tensor_alloc(o->c->ctx, t, &err) != RLX_OK)
        return cli_fail(o->c, &err, "cannot make", "random values");
    fill_random(t, info, seed);
    return EXIT_DONE;
}

/* ---- NAME=VALUE ---- */

static const char *find_pair(const struct texts *pairs, rlx_str name)
{
    for (size_t i = 0; pairs && i < pairs->count; i++)
        if (strncmp(pairs->at[i], name.ptr, name.len) == 0 && pairs->at[i][name.len] == '=')
            return pairs->at[i] + name.len + 1;
    return NULL;
}

static void list_leaves(const rlx_model *m, rlx_io_kind kind, size_t most, struct buffer *out)
{
    size_t count = rlx_model_io_count(m, kind);
    char type[256];
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};

    for (size_t i = 0; i < count && i < most; i++) {
        rlx_model_io(m, kind, i, &info, NULL);
        rlx_model_io_type(m, kind, i, type, sizeof type);
        buffer_add(out, "\n  ", 3);
        buffer_add(out, info.name.ptr, info.name.len);
        buffer_add(out, ": ", 2);
        buffer_add(out, type, strlen(type));
    }
    if (count > most) {
        int len =
            snprintf(type, sizeof type, "\n  and %zu more: rlx info lists them", count - most);
        buffer_add(out, type, (size_t)len);
    }
}

static int unknown_leaf(struct opened *o, rlx_io_kind kind, const char *what, rlx_str name)
{
    rlx_nearest near = {.wanted = name};
    struct buffer known = {0};
    char hint[RLX_NEAREST_HINT];
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};

    for (size_t i = 0; i < rlx_model_io_count(o->model, kind); i++) {
        rlx_model_io(o->model, kind, i, &info, NULL);
        rlx_nearest_offer(&near, info.name);
    }
    list_leaves(o->model, kind, 12, &known);
    int code =
        cli_misuse(o->c, "the model has no %s \"%.*s\"%s\nits %ss are:%s", what, (int)name.len,
                   name.ptr, rlx_nearest_hint(&near, hint), what, known.at ? known.at : " none");
    buffer_free(&known);
    return code;
}

/* Every NAME=VALUE must name a leaf of that kind. */
static int check_pairs(struct opened *o, const struct texts *pairs, rlx_io_kind kind,
                       const char *what)
{
    for (size_t i = 0; pairs && i < pairs->count; i++) {
        const char *equals = strchr(pairs->at[i], '=');
        bool known = false;
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        if (!equals)
            return cli_misuse(o->c, "--%s \"%s\" is not of the form NAME=FILE%s", what,
                              pairs->at[i], kind == RLX_IO_INPUT ? " or NAME=1,2,3" : "");
        for (size_t k = 0; k < rlx_model_io_count(o->model, kind) && !known; k++) {
            rlx_model_io(o->model, kind, k, &info, NULL);
            known = find_pair(&(struct texts){.at = {pairs->at[i]}, .count = 1}, info.name) != NULL;
        }
        if (!known)
            return unknown_leaf(o, kind, what,
                                (rlx_str){pairs->at[i], (size_t)(equals - pairs->at[i])});
    }
    return EXIT_DONE;
}

int check_params(struct opened *o, const struct open_options *opt)
{
    return check_pairs(o, opt->params, RLX_IO_PARAM, "param");
}

int check_inputs(struct opened *o, const struct open_options *opt)
{
    return check_pairs(o, opt->inputs, RLX_IO_INPUT, "input");
}

/* ---- params ---- */

static int set_param(struct opened *o, const rlx_io_info *info, const rlx_tensor *value)
{
    char *name = strndup(info->name.ptr, info->name.len);
    rlx_error err;
    int code = name ? EXIT_DONE : EXIT_FAILED;

    if (name && rlx_model_set_param(o->model, name, value, &err) != RLX_OK)
        code = cli_fail(o->c, &err, "cannot set param", name);
    free(name);
    return code;
}

int take_params(struct opened *o, const struct open_options *opt)
{
    cli_doing(o->c, "setting params of", opt->path);
    int code = opt->params_file ? cli_load_params(o->c, o->model, opt->params_file) : EXIT_DONE;

    for (size_t i = 0; code == EXIT_DONE && i < rlx_model_io_count(o->model, RLX_IO_PARAM); i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        rlx_tensor value = {0};
        rlx_model_io(o->model, RLX_IO_PARAM, i, &info, NULL);
        const char *file = find_pair(opt->params, info.name);
        if (!file && (!opt->random || rlx_model_has_param(o->model, info.name)))
            continue;
        value.rank = info.rank;
        memcpy(value.dim, info.dim, sizeof value.dim);
        code = file ? cli_load_array(o->c, file, info.name, &value)
                    : make_random(o, &info, opt->seed + 1000 + i, &value);
        if (code == EXIT_DONE)
            code = set_param(o, &info, &value);
        rlx_tensor_free(o->c->ctx, &value);
    }
    cli_progress_end(o->c);
    return code;
}

/* ---- inputs ---- */

static bool has_input(const struct opened *o, rlx_str name)
{
    for (size_t i = 0; i < o->input_count; i++)
        if (strlen(o->input[i].name) == name.len &&
            memcmp(o->input[i].name, name.ptr, name.len) == 0)
            return true;
    return false;
}

static bool has_shape(const rlx_io_info *info, const rlx_tensor *t)
{
    bool same = info->rank == t->rank;

    for (int32_t i = 0; same && i < t->rank; i++)
        same = info->dim[i] < 0 || info->dim[i] == t->dim[i];
    return same;
}

static bool fits(const rlx_io_info *info, const rlx_tensor *t)
{
    return has_shape(info, t) && (info->dtype == t->dtype || t->dtype == RLX_DTYPE_f32);
}

/* NumPy's name for it; NULL: NumPy has no such type. */
static const char *numpy_name(rlx_dtype d)
{
    static const char *const names[RLX_DTYPE_count] = {
        [RLX_DTYPE_f32] = "float32",  [RLX_DTYPE_f16] = "float16", [RLX_DTYPE_f64] = "float64",
        [RLX_DTYPE_i8] = "int8",      [RLX_DTYPE_i16] = "int16",   [RLX_DTYPE_i32] = "int32",
        [RLX_DTYPE_i64] = "int64",    [RLX_DTYPE_u8] = "uint8",    [RLX_DTYPE_u16] = "uint16",
        [RLX_DTYPE_u32] = "uint32",   [RLX_DTYPE_u64] = "uint64",  [RLX_DTYPE_bool] = "bool",
        [RLX_DTYPE_c64] = "complex64"};

    return names[d];
}

/* Reports what is wanted, and what the file holds. */
static int refuse_value(struct opened *o, size_t i, const char *file, const rlx_io_info *info,
                        const rlx_tensor *t)
{
    char want[256], shape[SHAPE_TEXT];
    bool type = has_shape(info, t);

    rlx_model_io_type(o->model, RLX_IO_INPUT, i, want, sizeof want);
    fprintf(stderr, "rlx %s: %.*s: %s: %s is wanted, %s holds %s%s", o->c->command->name,
            (int)info->name.len, info->name.ptr, type ? "DTYPE" : "SHAPE", want,
            strcmp(file, "-") == 0 ? "standard input" : file, rlx_dtype_name(t->dtype),
            shape_text(t->rank, t->dim, shape));
    if (type && numpy_name(info->dtype))
        fprintf(stderr, "; in NumPy: x.astype(\"%s\")", numpy_name(info->dtype));
    fputs("\n", stderr);
    return EXIT_FAILED;
}

/* Takes the tensor over. */
static int add_input(struct opened *o, const rlx_io_info *info, rlx_tensor *value)
{
    rlx_binding *b = &o->input[o->input_count];

    *b = (rlx_binding){strndup(info->name.ptr, info->name.len), *value};
    if (!b->name) {
        rlx_tensor_free(o->c->ctx, value);
        return EXIT_FAILED;
    }
    o->input_count++;
    return EXIT_DONE;
}

static int take_file(struct opened *o, const struct open_options *opt, size_t i,
                     const rlx_io_info *info, const char *file)
{
    static const struct picture_options plain = {.scale = 1};
    rlx_tensor value = {0};
    int code;

    if (picture_is(file))
        code = picture_load(o->c, file, opt->picture ? opt->picture : &plain, info, &value);
    else {
        code = cli_load_array(o->c, file, info->name, &value);
        if (code == EXIT_DONE && !fits(info, &value))
            code = refuse_value(o, i, file, info, &value);
    }
    if (code == EXIT_DONE)
        return add_input(o, info, &value);
    rlx_tensor_free(o->c->ctx, &value);
    return code;
}

/* The input's own shape where that is known, else that of the brackets; of a plain list, unknown
 * sizes are 1, except for the last. false: it has another number of elements. */
static bool shape_for(const struct opened *o, size_t i, const rlx_io_info *info,
                      const struct literal *l, rlx_tensor *out)
{
    int64_t known = 1;
    int32_t last = -1;

    *out = (rlx_tensor){.dtype = info->dtype, .rank = info->rank};
    if (!input_shape(o, i, out)) {
        bool nested = l->rank == info->rank;
        memcpy(out->dim, info->dim, sizeof out->dim);
        known_axes(o, i, out);
        for (int32_t a = 0; a < info->rank; a++) {
            if (out->dim[a] < 0)
                last = a;
            out->dim[a] = nested ? l->dim[a] : out->dim[a] < 0 ? 1 : out->dim[a];
        }
        for (int32_t a = 0; a < info->rank; a++)
            known *= a == last ? 1 : out->dim[a];
        if (!nested && last >= 0 && known > 0)
            out->dim[last] = (int64_t)l->count / known;
    }
    out->dtype = info->dtype;
    int64_t count = 1;
    for (int32_t a = 0; a < out->rank; a++)
        if (__builtin_mul_overflow(count, out->dim[a], &count))
            return false;
    return (size_t)count == l->count;
}

static int take_numbers(struct opened *o, size_t i, const rlx_io_info *info, struct literal *l)
{
    char type[256], given[SHAPE_TEXT];
    rlx_tensor value;
    int code;

    if (!shape_for(o, i, info, l, &value)) {
        code = cli_misuse(o->c, "%.*s: %s is wanted, %zu numbers of shape %s were given",
                          (int)info->name.len, info->name.ptr,
                          rlx_model_io_type(o->model, RLX_IO_INPUT, i, type, sizeof type), l->count,
                          shape_text(l->rank, l->dim, given));
        literal_free(l);
        return code;
    }
    snprintf(type, sizeof type, "%.*s", (int)info->name.len, info->name.ptr);
    code = literal_store(o->c, l, type, &value);
    literal_free(l);
    if (code == EXIT_DONE)
        return add_input(o, info, &value);
    rlx_tensor_free(o->c->ctx, &value);
    return code;
}

/* Files first, as their shapes may settle what a list of numbers leaves open. */
static int take_given(struct opened *o, const struct open_options *opt, bool numbers)
{
    for (size_t i = 0; i < rlx_model_io_count(o->model, RLX_IO_INPUT); i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        struct literal l = {0};
        int code = EXIT_DONE;
        rlx_model_io(o->model, RLX_IO_INPUT, i, &info, NULL);
        const char *text = find_pair(opt->inputs, info.name);
        if (!text || has_input(o, info.name))
            continue;
        switch (literal_read(text, &l)) {
        case LITERAL_BAD:
            return cli_misuse(o->c, "%.*s=%s: %s", (int)info.name.len, info.name.ptr, text,
                              l.wrong);
        case LITERAL_READ:
            if (numbers)
                code = take_numbers(o, i, &info, &l);
            literal_free(&l);
            break;
        case LITERAL_NONE: code = numbers ? EXIT_DONE : take_file(o, opt, i, &info, text);
        }
        if (code != EXIT_DONE)
            return code;
    }
    return EXIT_DONE;
}

/* Every tensor of the file that has the name of an input, unless that is given on its own. */
static int take_archive(struct opened *o, const struct open_options *opt)
{
    const char *file = opt->inputs_file;
    rlx_weights *w;
    rlx_error err;
    size_t taken = 0, at;
    int code = EXIT_DONE;

    if (rlx_weights_open(o->c->ctx, file, &o->c->load, &w, &err) != RLX_OK)
        return cli_fail(o->c, &err, "cannot read", file);
    for (size_t i = 0; code == EXIT_DONE && i < rlx_model_io_count(o->model, RLX_IO_INPUT); i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        rlx_tensor value = {0};
        rlx_model_io(o->model, RLX_IO_INPUT, i, &info, NULL);
        if (find_pair(opt->inputs, info.name) || !rlx_weights_find(w, info.name, &at))
            continue;
        taken++;
        code = cli_copy_array(o->c, w, at, file, &value);
        if (code == EXIT_DONE && !fits(&info, &value))
            code = refuse_value(o, i, file, &info, &value);
        if (code == EXIT_DONE)
            code = add_input(o, &info, &value);
        else
            rlx_tensor_free(o->c->ctx, &value);
    }
    rlx_weights_close(w);
    if (code == EXIT_DONE && !taken) {
        struct buffer known = {0};
        list_leaves(o->model, RLX_IO_INPUT, 12, &known);
        fprintf(stderr,
                "rlx %s: %s has none of the inputs, which are:%s\nrlx info %s lists what it has\n",
                o->c->command->name, file, known.at ? known.at : "", file);
        buffer_free(&known);
        code = EXIT_FAILED;
    }
    return code;
}

static int take_random(struct opened *o, const struct open_options *opt)
{
    for (size_t i = 0; i < rlx_model_io_count(o->model, RLX_IO_INPUT); i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        rlx_tensor value = {0};
        rlx_model_io(o->model, RLX_IO_INPUT, i, &info, NULL);
        if (has_input(o, info.name) || !input_shape(o, i, &value))
            continue; /* an input without a shape by now is not read */
        int code = make_random(o, &info, opt->seed + i, &value);
        if (code == EXIT_DONE)
            code = add_input(o, &info, &value);
        else
            rlx_tensor_free(o->c->ctx, &value);
        if (code != EXIT_DONE)
            return code;
    }
    return EXIT_DONE;
}

/* ---- what is missing ---- */

static bool is_missing(const struct opened *o, rlx_io_kind kind, const rlx_io_info *info)
{
    return info->used && !(kind == RLX_IO_INPUT ? has_input(o, info->name)
                                                : rlx_model_has_param(o->model, info->name));
}

static size_t print_missing(const struct opened *o, rlx_io_kind kind, const char *what, bool first)
{
    size_t count = 0, most = 12;
    char type[256];
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};

    for (size_t i = 0; i < rlx_model_io_count(o->model, kind); i++) {
        rlx_model_io(o->model, kind, i, &info, NULL);
        if (!is_missing(o, kind, &info))
            continue;
        if (count++ == 0 && first)
            fprintf(stderr, "rlx %s: cannot run %s: MISSING_INPUT: these %ss have no value:\n",
                    o->c->command->name, o->path, what);
        else if (count == 1)
            fprintf(stderr, "these %ss have none either:\n", what);
        if (count <= most)
            fprintf(stderr, "  \"%.*s\": %s\n", (int)info.name.len, info.name.ptr,
                    rlx_model_io_type(o->model, kind, i, type, sizeof type));
    }
    if (count > most)
        fprintf(stderr, "  and %zu more\n", count - most);
    return count;
}

static int check_complete(struct opened *o)
{
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};
    size_t inputs = print_missing(o, RLX_IO_INPUT, "input", true), shown = 0;
    size_t params = print_missing(o, RLX_IO_PARAM, "param", inputs == 0);

    if (!inputs && !params)
        return EXIT_DONE;
    fputs("give them, or use random values for what is not given:\n  ", stderr);
    cli_print_command(o->c, stderr);
    for (size_t i = 0; i < rlx_model_io_count(o->model, RLX_IO_INPUT); i++) {
        rlx_model_io(o->model, RLX_IO_INPUT, i, &info, NULL);
        if (is_missing(o, RLX_IO_INPUT, &info) && shown++ < 4)
            fprintf(stderr, " --input %.*s=FILE.npy", (int)info.name.len, info.name.ptr);
    }
    fprintf(stderr, "%s%s\n  ", shown > 4 ? " ..." : "", params ? " --params FILE" : "");
    cli_print_command(o->c, stderr);
    fputs(" --random", stderr);
    print_missing_dims(o, stderr);
    fputs("\n", stderr);
    return EXIT_FAILED;
}

int take_inputs(struct opened *o, const struct open_options *opt)
{
    int code;

    o->input = calloc(rlx_model_io_count(o->model, RLX_IO_INPUT) + 1, sizeof *o->input);
    if (!o->input)
        return EXIT_FAILED;
    if ((code = take_given(o, opt, false)) != EXIT_DONE)
        return code;
    if (opt->inputs_file && (code = take_archive(o, opt)) != EXIT_DONE)
        return code;
    if ((code = take_given(o, opt, true)) != EXIT_DONE)
        return code;
    if (opt->random || opt->needs_sizes)
        code = settle_dims(o, opt->random);
    if (code == EXIT_DONE && opt->random)
        code = take_random(o, opt);
    return code == EXIT_DONE && opt->needs_values ? check_complete(o) : code;
}
