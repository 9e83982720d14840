/* compile.c: `rlx compile`, a model and its compiled programs in one file. */
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "rlx/artefact.h"

static struct {
    struct texts params, bind;
    const char *output, *device, *params_file;
    bool weights, beside, random;
} opt = {.device = "auto"};

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"-o", FLAG_TEXT, &opt.output, "OUT", "the file to write"},
        {"--device", FLAG_TEXT, &opt.device, "D",
         "the device to compile for (auto); rlx devices lists them"},
        {"--bind", FLAG_LIST, &opt.bind, "A=N,B=M",
         "a program for these sizes of symbolic dims; once per program"},
        {"--weights", FLAG_SWITCH, &opt.weights, NULL, "with the values of params"},
        {"--weights-beside", FLAG_SWITCH, &opt.beside, NULL, "the same, in OUT.weights"},
        {"--param", FLAG_LIST, &opt.params, "NAME=FILE", "a value for a param; once per param"},
        {"--params", FLAG_TEXT, &opt.params_file, "FILE",
         "values for params by name: GGUF, safetensors, npz"},
        {"--random", FLAG_SWITCH, &opt.random, NULL, "random values for params without one"},
        {0}};
    return list;
}

enum { MOST_DIMS = 16 };

/* "batch=1,seq=128": names end up terminated in text, which is the caller's to free. */
static bool read_sizes(char *text, rlx_dim_size *out, size_t *count)
{
    char *rest = text;

    *count = 0;
    for (char *part; (part = strsep(&rest, ",")) != NULL;) {
        char *equals = strchr(part, '='), *end;
        if (!equals || equals == part || *count == MOST_DIMS)
            return false;
        *equals = 0;
        long long size = strtoll(equals + 1, &end, 10);
        if (*end || end == equals + 1 || size < 0)
            return false;
        out[(*count)++] = (rlx_dim_size){part, size};
    }
    return true;
}

static int prepare(struct cli *c, struct opened *o, const char *sizes)
{
    rlx_dim_size dim[MOST_DIMS];
    size_t count;
    rlx_error err;
    char *text = strdup(sizes);
    int code = EXIT_DONE;

    if (!text)
        return EXIT_FAILED;
    cli_doing(c, "compiling for", sizes);
    if (!read_sizes(text, dim, &count))
        code = cli_misuse(c, "--bind \"%s\" is not of the form NAME=SIZE,NAME=SIZE", sizes);
    else if ((code = check_dims(o, dim, count)) != EXIT_DONE)
        ; /* the message names those that exist */
    else if (rlx_session_prepare(
                 o->session,
                 &(rlx_run_desc){RLX_SIZED(rlx_run_desc), .dims = dim, .dim_count = count},
                 &err) != RLX_OK)
        code = cli_fail(c, &err, "cannot compile for", sizes);
    cli_progress_end(c);
    free(text);
    return code;
}

static int save(struct cli *c, const struct opened *o)
{
    unsigned how = opt.beside ? RLX_SAVE_WEIGHTS_BESIDE : opt.weights ? RLX_SAVE_WEIGHTS : 0;
    rlx_compiled_info info = {RLX_SIZED(rlx_compiled_info)};
    rlx_error err;

    cli_doing(c, "writing", opt.output);
    if (rlx_session_save(o->session, opt.output, how, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot write", opt.output);
    cli_progress_end(c);
    rlx_session_compiled(o->session, &info, NULL);
    printf("%s: %u programs%s\n", opt.output, info.programs, how ? ", with weights" : "");
    if (!info.programs)
        fprintf(stderr, "rlx compile: the model has symbolic dims, and is compiled where it runs; "
                        "--bind A=N,B=M compiles it for these sizes\n");
    return EXIT_DONE;
}

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    struct opened o;
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count != 1)
        return cli_misuse(c, "takes one model");
    if (!opt.output)
        return cli_misuse(c, "takes -o OUT, the file to write, as in -o model.rlxa");
    code = opened_session_only(&o, c,
                               &(struct open_options){.path = args.at[0],
                                                      .device = opt.device,
                                                      .params = &opt.params,
                                                      .params_file = opt.params_file,
                                                      .random = opt.random});
    for (size_t i = 0; i < opt.bind.count && code == EXIT_DONE; i++)
        code = prepare(c, &o, opt.bind.at[i]);
    if (code == EXIT_DONE)
        code = save(c, &o);
    opened_close(&o);
    return code;
}

const struct command cmd_compile = {
    .name = "compile",
    .summary = "Write a model and its compiled programs into one file",
    .usage = "rlx compile FILE -o OUT [--device D] [--bind A=N,B=M]... [--weights]",
    .details = "Other commands take OUT wherever they take a model. On the device it was made for\n"
               "it needs no compiling; elsewhere it is compiled again. A model without symbolic\n"
               "dims is one program; with them there is one for each --bind.",
    .examples = "rlx compile model.onnx -o model.rlxa --weights --bind batch=1,seq=128\n"
                "rlx compile graph.rlx -o graph.rlxa --params weights.safetensors --weights",
    .run = run,
    .flags = flags,
};
