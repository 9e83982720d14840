/* bind.c: see bind.h. */
#include "bind.h"

#include <stdlib.h>
#include <string.h>

static int open_session(struct opened *o, const struct open_options *opt)
{
    rlx_error err;

    if (rlx_device_open(o->c->ctx, opt->device, &o->device, &err) != RLX_OK)
        return cli_fail(o->c, &err, "cannot open device", opt->device);
    cli_doing(o->c, "compiling", opt->path);
    rlx_status s = rlx_session_create(o->model, o->device, opt->session, &o->session, &err);
    cli_progress_end(o->c);
    return s == RLX_OK ? EXIT_DONE : opened_fail(o, &err, "cannot compile", opt->path);
}

int opened_session_only(struct opened *o, struct cli *c, const struct open_options *opt)
{
    rlx_model *model;
    int code = cli_load(c, opt->path, &model);

    *o = (struct opened){0};
    if (code != EXIT_DONE)
        return code;
    *o = (struct opened){.c = c, .path = opt->path, .model = model};
    if ((code = check_params(o, opt)) != EXIT_DONE || (code = take_params(o, opt)) != EXIT_DONE)
        return code;
    return open_session(o, opt);
}

int opened_values(struct opened *o, struct cli *c, rlx_model *model, const struct open_options *opt)
{
    int code;

    *o = (struct opened){.c = c, .path = opt->path, .model = model};
    if ((code = take_dims(o, opt->dims)) != EXIT_DONE ||
        (code = check_inputs(o, opt)) != EXIT_DONE || (code = check_params(o, opt)) != EXIT_DONE ||
        (code = take_params(o, opt)) != EXIT_DONE)
        return code;
    return take_inputs(o, opt);
}

int opened_from_model(struct opened *o, struct cli *c, rlx_model *model,
                      const struct open_options *opt)
{
    rlx_error err;
    int code = opened_values(o, c, model, opt);

    if (code == EXIT_DONE)
        code = open_session(o, opt);
    if (code != EXIT_DONE)
        return code;
    rlx_run_desc run = opened_run(o);
    cli_doing(c, "compiling", opt->path);
    rlx_status s = rlx_session_prepare(o->session, &run, &err);
    cli_progress_end(c);
    return s == RLX_OK ? EXIT_DONE : opened_fail(o, &err, "cannot compile", opt->path);
}

static void free_bindings(rlx_context *ctx, rlx_binding *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        rlx_tensor_free(ctx, &b[i].tensor);
        free((char *)b[i].name);
    }
    free(b);
}

int opened_from_file(struct opened *o, struct cli *c, const struct open_options *opt)
{
    rlx_model *model;
    int code = cli_load(c, opt->path, &model);

    *o = (struct opened){0};
    return code == EXIT_DONE ? opened_from_model(o, c, model, opt) : code;
}

int opened_make_outputs(struct opened *o)
{
    size_t count = rlx_model_io_count(o->model, RLX_IO_OUTPUT);

    o->output = calloc(count + 1, sizeof *o->output);
    if (!o->output)
        return EXIT_FAILED;
    for (size_t i = 0; i < count; i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
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
    return (rlx_run_desc){RLX_SIZED(rlx_run_desc), o->input, o->input_count, o->output,
                          o->output_count,         o->dim,   o->dim_count};
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
