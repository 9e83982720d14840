/* load.c: a model from a file or from standard input, with what --fix says of its inputs. */
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "info_weights.h"
#include "literal.h"

bool cli_read_all(FILE *in, struct buffer *b)
{
    char chunk[65536];
    size_t n;

    while ((n = fread(chunk, 1, sizeof chunk, in)) > 0)
        buffer_add(b, chunk, n);
    return !ferror(in) && !b->failed;
}

int cli_read_file(struct cli *c, const char *path, struct buffer *b)
{
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    bool fine = in && cli_read_all(in, b);

    if (!fine)
        fprintf(stderr, "rlx %s: cannot %s %s\n", c->command->name, in ? "read" : "open", path);
    if (in && in != stdin)
        fclose(in);
    return fine ? EXIT_DONE : EXIT_FAILED;
}

/* What can be done with a file that holds weights and no graph. */
static void explain_weights(struct cli *c, const char *path)
{
    rlx_file_kind kind = RLX_FILE_unknown;

    if (rlx_file_detect(c->ctx, path, &kind, NULL) != RLX_OK || !is_weights_file(kind))
        return;
    fprintf(stderr,
            "It holds tensors, but no graph that says what to compute with them:\n"
            "  rlx info %s                    shows what is in it\n"
            "  rlx run GRAPH.rlx --params %s  runs a graph whose params have its names\n",
            path, path);
    if (kind == RLX_FILE_gguf)
        fprintf(stderr,
                "  rlx generate %s                lets a language model go on with a text\n", path);
    if (kind == RLX_FILE_gguf || kind == RLX_FILE_safetensors)
        fprintf(stderr, "  rlx quantize %s OUT.gguf Q4_K  packs its weights\n", path);
}

/* A value of --fix: the model's type is not known yet, so that numbers become i64 or f32. */
static int fixed_value(struct cli *c, const char *text, rlx_binding *out)
{
    const char *equals = strchr(text, '=');
    struct literal numbers;
    rlx_error err;
    int code = EXIT_DONE;

    if (!equals)
        return cli_misuse(c, "--fix \"%s\" is not of the form NAME=FILE.npy or NAME=1,2,3", text);
    switch (literal_read(equals + 1, &numbers)) {
    case LITERAL_BAD: return cli_misuse(c, "--fix %s: %s", text, numbers.wrong);
    case LITERAL_READ:
        out->tensor = (rlx_tensor){.dtype = numbers.integers ? RLX_DTYPE_i64 : RLX_DTYPE_f32,
                                   .rank = numbers.rank};
        memcpy(out->tensor.dim, numbers.dim, sizeof numbers.dim);
        code = literal_store(c, &numbers, text, &out->tensor);
        literal_free(&numbers);
        break;
    case LITERAL_NONE:
        if (rlx_tensor_load(c->ctx, equals + 1, &out->tensor, &err) != RLX_OK)
            code = cli_fail(c, &err, "cannot read", equals + 1);
    }
    if (code == EXIT_DONE && !(out->name = strndup(text, (size_t)(equals - text))))
        code = EXIT_FAILED;
    return code;
}

static int load_file(struct cli *c, const char *path, const rlx_load_desc *desc, rlx_model **out)
{
    rlx_error err;

    cli_doing(c, "loading", path);
    rlx_status s = rlx_model_load(c->ctx, path, desc, out, &err);
    cli_progress_end(c);
    if (s == RLX_OK)
        return EXIT_DONE;
    int code = cli_fail(c, &err, "cannot read", path);
    if (s == RLX_ERROR_FORMAT)
        explain_weights(c, path);
    return code;
}

static int load_fixed(struct cli *c, const char *path, rlx_model **out)
{
    rlx_binding *known = calloc(c->fix.count + 1, sizeof *known);
    rlx_load_desc desc = c->load;
    int code = known ? EXIT_DONE : EXIT_FAILED;

    for (size_t i = 0; code == EXIT_DONE && i < c->fix.count; i++)
        code = fixed_value(c, c->fix.at[i], &known[i]);
    desc.known = known;
    desc.known_count = c->fix.count;
    if (code == EXIT_DONE)
        code = load_file(c, path, &desc, out);
    for (size_t i = 0; known && i < c->fix.count; i++) {
        rlx_tensor_free(c->ctx, &known[i].tensor);
        free((char *)known[i].name);
    }
    free(known);
    return code;
}

static int parse_stdin(struct cli *c, rlx_model **out)
{
    struct buffer b = {0};
    rlx_error err;
    int code = EXIT_DONE;

    if (!cli_read_all(stdin, &b)) {
        fprintf(stderr, "rlx %s: cannot read standard input\n", c->command->name);
        code = EXIT_FAILED;
    } else if (rlx_model_parse(c->ctx, (rlx_str){b.at ? b.at : "", b.len}, out, &err) != RLX_OK)
        code = cli_fail(c, &err, "cannot read", "-");
    buffer_free(&b);
    return code;
}

int cli_load(struct cli *c, const char *path, rlx_model **out)
{
    int code = cli_context(c);

    if (code != EXIT_DONE)
        return code;
    if (strcmp(path, "-") == 0)
        return parse_stdin(c, out);
    return c->fix.count ? load_fixed(c, path, out) : load_file(c, path, &c->load, out);
}
