/* bind.c: see bind.h. */
#include "bind.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rlx/artefact.h"

static int misuse_pair(struct cli *c, const char *text, const char *form)
{
    return cli_misuse(c, "\"%s\" is not of the form %s", text, form);
}

/* splitmix64: plain random bits for made-up inputs. */
static uint64_t next_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Floats in [-1, 1), variances in [0.5, 1.5), whole numbers in [0, 8); in f32, which every leaf
 * accepts. */
static void fill_random(rlx_tensor *t, const rlx_io_info *leaf, uint64_t seed)
{
    float *at = t->data, scale = leaf->variance ? 0x1p-24f : 0x1p-23f;
    float least = leaf->variance ? 0.5f : -1;
    size_t count = t->bytes / sizeof *at;
    bool floating = leaf->dtype <= RLX_DTYPE_f64;

    for (size_t i = 0; i < count; i++) {
        uint64_t bits = next_bits(&seed) >> 40;
        at[i] = floating ? (float)bits * scale + least : (float)(bits % 8);
    }
}

static int take_dims(struct opened *o, const struct texts *dims)
{
    for (size_t i = 0; dims && i < dims->count; i++) {
        const char *equals = strchr(dims->at[i], '=');
        char *end, *name;
        if (!equals || o->dim_count == sizeof o->dim / sizeof o->dim[0])
            return misuse_pair(o->c, dims->at[i], "NAME=SIZE");
        long long size = strtoll(equals + 1, &end, 10);
        if (*end || end == equals + 1 || size < 0)
            return misuse_pair(o->c, dims->at[i], "NAME=SIZE");
        name = strndup(dims->at[i], (size_t)(equals - dims->at[i]));
        if (!name)
            return EXIT_FAILED;
        o->dim[o->dim_count++] = (rlx_dim_size){name, size};
    }
    return EXIT_DONE;
}

static const char *find_pair(const struct texts *pairs, rlx_str name)
{
    for (size_t i = 0; pairs && i < pairs->count; i++)
        if (strncmp(pairs->at[i], name.ptr, name.len) == 0 && pairs->at[i][name.len] == '=')
            return pairs->at[i] + name.len + 1;
    return NULL;
}

/* Every NAME=FILE must name a leaf of that kind. */
static int check_pairs(struct opened *o, const struct texts *pairs, rlx_io_kind kind,
                       const char *what)
{
    for (size_t i = 0; pairs && i < pairs->count; i++) {
        const char *equals = strchr(pairs->at[i], '=');
        bool known = false;
        rlx_io_info info;
        if (!equals)
            return misuse_pair(o->c, pairs->at[i], "NAME=FILE");
        for (size_t k = 0; k < rlx_model_io_count(o->model, kind); k++) {
            rlx_model_io(o->model, kind, k, &info, NULL);
            known = known || (info.name.len == (size_t)(equals - pairs->at[i]) &&
                              strncmp(info.name.ptr, pairs->at[i], info.name.len) == 0);
        }
        if (!known)
            return cli_misuse(o->c, "the model has no %s \"%.*s\"", what,
                              (int)(equals - pairs->at[i]), pairs->at[i]);
    }
    return EXIT_DONE;
}

/* The shape of a leaf, with the sizes that --dim gave; false: they do not tell it. */
static bool shape_of(const struct opened *o, const rlx_io_info *info, size_t i, rlx_tensor *t)
{
    t->rank = info->rank;
    for (int32_t a = 0; a < info->rank; a++)
        t->dim[a] = info->dim[a];
    return info->kind != RLX_IO_INPUT ||
           rlx_model_input_shape(o->model, i, o->dim, o->dim_count, t, NULL) == RLX_OK;
}

/* A value for leaf i of its kind: its file, or random numbers. *given: false when there is none. */
static int make_value(struct opened *o, const rlx_io_info *info, size_t i, const char *file,
                      const struct open_options *opt, uint64_t number, rlx_tensor *out, bool *given)
{
    rlx_error err;

    *given = true;
    memset(out, 0, sizeof *out);
    if (file)
        return cli_load_array(o->c, file, info->name, out);
    *given = opt->random && shape_of(o, info, i, out);
    if (!*given)
        return EXIT_DONE;
    out->dtype = info->dtype == RLX_DTYPE_c64 ? RLX_DTYPE_c64 : RLX_DTYPE_f32;
    if (rlx_tensor_alloc(o->c->ctx, out, &err) != RLX_OK)
        return cli_fail(o->c, &err, "cannot make", "random values");
    fill_random(out, info, opt->seed + number);
    return EXIT_DONE;
}

static int set_params(struct opened *o, const struct open_options *opt)
{
    size_t count = rlx_model_io_count(o->model, RLX_IO_PARAM);
    int file = opt->params_file ? cli_load_params(o->c, o->model, opt->params_file) : EXIT_DONE;

    if (file != EXIT_DONE)
        return file;
    for (size_t i = 0; i < count; i++) {
        rlx_io_info info;
        rlx_tensor value;
        rlx_error err;
        bool given;
        char *name;
        int code;
        rlx_model_io(o->model, RLX_IO_PARAM, i, &info, NULL);
        if (rlx_model_has_param(o->model, info.name) && !find_pair(opt->params, info.name))
            continue;
        code = make_value(o, &info, i, find_pair(opt->params, info.name), opt, 1000 + i, &value,
                          &given);
        if (code != EXIT_DONE)
            return code;
        if (!given)
            continue;
        name = strndup(info.name.ptr, info.name.len);
        rlx_status s = rlx_model_set_param(o->model, name ? name : "", &value, &err);
        rlx_tensor_free(o->c->ctx, &value);
        if (s != RLX_OK)
            code = cli_fail(o->c, &err, "cannot set param", name);
        free(name);
        if (code != EXIT_DONE)
            return code;
    }
    return EXIT_DONE;
}

static int make_inputs(struct opened *o, const struct open_options *opt)
{
    size_t count = rlx_model_io_count(o->model, RLX_IO_INPUT);

    o->input = calloc(count + 1, sizeof *o->input);
    if (!o->input)
        return EXIT_FAILED;
    for (size_t i = 0; i < count; i++) {
        rlx_io_info info;
        rlx_binding *b = &o->input[o->input_count];
        bool given;
        int code;
        rlx_model_io(o->model, RLX_IO_INPUT, i, &info, NULL);
        code =
            make_value(o, &info, i, find_pair(opt->inputs, info.name), opt, i, &b->tensor, &given);
        if (code != EXIT_DONE)
            return code;
        if (!given)
            continue;
        b->name = strndup(info.name.ptr, info.name.len);
        o->input_count++;
    }
    return EXIT_DONE;
}

static int open_session(struct opened *o, const struct open_options *opt)
{
    rlx_error err;

    if (rlx_device_open(o->c->ctx, rlx_cstr(opt->device), &o->device, &err) != RLX_OK)
        return cli_fail(o->c, &err, "cannot open device", opt->device);
    if (rlx_session_create(o->model, o->device, opt->session, &o->session, &err) != RLX_OK)
        return cli_fail(o->c, &err, "cannot compile", opt->path);
    return EXIT_DONE;
}

int opened_open_session(struct opened *o, struct cli *c, const struct open_options *opt)
{
    rlx_model *model;
    int code = cli_load(c, opt->path, &model);

    *o = (struct opened){0};
    if (code != EXIT_DONE)
        return code;
    *o = (struct opened){.c = c, .model = model};
    if ((code = check_pairs(o, opt->params, RLX_IO_PARAM, "param")) != EXIT_DONE ||
        (code = set_params(o, opt)) != EXIT_DONE)
        return code;
    return open_session(o, opt);
}

int opened_values(struct opened *o, struct cli *c, rlx_model *model, const struct open_options *opt)
{
    int code;

    *o = (struct opened){.c = c, .model = model};
    if ((code = take_dims(o, opt->dims)) != EXIT_DONE ||
        (code = check_pairs(o, opt->inputs, RLX_IO_INPUT, "input")) != EXIT_DONE ||
        (code = check_pairs(o, opt->params, RLX_IO_PARAM, "param")) != EXIT_DONE ||
        (code = set_params(o, opt)) != EXIT_DONE)
        return code;
    return make_inputs(o, opt);
}

int opened_open_model(struct opened *o, struct cli *c, rlx_model *model,
                      const struct open_options *opt)
{
    rlx_error err;
    int code = opened_values(o, c, model, opt);

    if (code == EXIT_DONE)
        code = open_session(o, opt);
    if (code != EXIT_DONE)
        return code;
    rlx_run_desc run = opened_run(o);
    if (rlx_session_prepare(o->session, &run, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot compile", opt->path);
    return EXIT_DONE;
}

static void free_bindings(rlx_context *ctx, rlx_binding *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        rlx_tensor_free(ctx, &b[i].tensor);
        free((char *)b[i].name);
    }
    free(b);
}

static int load_fixed(struct cli *c, const struct texts *fixed, rlx_binding *known, size_t *count)
{
    for (; *count < fixed->count; ++*count) {
        const char *text = fixed->at[*count], *equals = strchr(text, '=');
        rlx_error err;
        if (!equals)
            return misuse_pair(c, text, "NAME=FILE.npy");
        if (rlx_tensor_load(c->ctx, equals + 1, &known[*count].tensor, &err) != RLX_OK)
            return cli_fail(c, &err, "cannot read", equals + 1);
        known[*count].name = strndup(text, (size_t)(equals - text));
    }
    return EXIT_DONE;
}

int load_knowing(struct cli *c, const char *path, const struct texts *fixed, rlx_model **out)
{
    rlx_binding *known;
    rlx_load_desc desc = c->load;
    rlx_error err;
    size_t count = 0;

    if (!fixed || !fixed->count)
        return cli_load(c, path, out);
    int code = cli_context(c);
    if (code != EXIT_DONE)
        return code;
    known = calloc(fixed->count, sizeof *known);
    if (!known)
        return EXIT_FAILED;
    code = load_fixed(c, fixed, known, &count);
    desc.known = known;
    desc.known_count = count;
    if (code == EXIT_DONE && rlx_model_load(c->ctx, path, &desc, out, &err) != RLX_OK)
        code = cli_fail(c, &err, "cannot read", path);
    free_bindings(c->ctx, known, count);
    return code;
}

int opened_open(struct opened *o, struct cli *c, const struct open_options *opt)
{
    rlx_model *model;
    int code = load_knowing(c, opt->path, opt->fixed, &model);

    *o = (struct opened){0};
    return code == EXIT_DONE ? opened_open_model(o, c, model, opt) : code;
}

int opened_make_outputs(struct opened *o)
{
    size_t count = rlx_model_io_count(o->model, RLX_IO_OUTPUT);

    o->output = calloc(count + 1, sizeof *o->output);
    if (!o->output)
        return EXIT_FAILED;
    for (size_t i = 0; i < count; i++) {
        rlx_io_info info;
        rlx_error err;
        rlx_binding *b = &o->output[i];
        rlx_model_io(o->model, RLX_IO_OUTPUT, i, &info, NULL);
        if (rlx_session_output_shape(o->session, i, &b->tensor, &err) != RLX_OK ||
            rlx_tensor_alloc(o->c->ctx, &b->tensor, &err) != RLX_OK)
            return cli_fail(o->c, &err, "cannot make room for", "the outputs");
        b->name = strndup(info.name.ptr, info.name.len);
        o->output_count++;
    }
    return EXIT_DONE;
}

rlx_run_desc opened_run(const struct opened *o)
{
    return (rlx_run_desc){o->input,        o->input_count, o->output,
                          o->output_count, o->dim,         o->dim_count};
}

void opened_close(struct opened *o)
{
    if (!o->c)
        return;
    free_bindings(o->c->ctx, o->input, o->input_count);
    free_bindings(o->c->ctx, o->output, o->output_count);
    for (size_t i = 0; i < o->dim_count; i++)
        free((char *)o->dim[i].name);
    rlx_session_destroy(o->session);
    rlx_device_close(o->device);
    rlx_model_destroy(o->model);
}
