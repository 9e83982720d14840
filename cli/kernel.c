/* kernel.c: `rlx kernel`, the kernel compiler for one file, and a kernel run on .npy files. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "rlx/kernel.h"
#include "tensor_text.h"

#define MAX_BUFFERS 16

static struct {
    const char *emit, *kernel, *out, *device, *grid;
    struct texts define, input, output, word;
    bool plain, run;
} opt;

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--emit", FLAG_TEXT, &opt.emit, "FORM", "tree (default), wgsl, spirv, or names"},
        {"--kernel", FLAG_TEXT, &opt.kernel, "NAME", "which of the file's kernels (the first)"},
        {"-D", FLAG_LIST, &opt.define, "NAME=VALUE",
         "a constant or type of the kernel; repeatable"},
        {"--plain", FLAG_SWITCH, &opt.plain, NULL,
         "for a device with none of the optional features"},
        {"--out", FLAG_TEXT, &opt.out, "FILE",
         "write there, not to standard output; with --run a folder for NAME.npy"},
        {"--run", FLAG_SWITCH, &opt.run, NULL, "run the kernel once on a GPU"},
        {"--device", FLAG_TEXT, &opt.device, "D", "on which device: vulkan (default), webgpu, ..."},
        {"--input", FLAG_LIST, &opt.input, "NAME=FILE",
         "an .npy file for a buffer (without NAME=, the next one); repeatable"},
        {"--output", FLAG_LIST, &opt.output, "NAME=TYPE",
         "a buffer that it writes: y=f32[2,3], or an input's NAME"},
        {"--word", FLAG_LIST, &opt.word, "NAME=N,N,..", "any other parameter; repeatable"},
        {"--grid", FLAG_TEXT, &opt.grid, "X,Y,Z", "how many groups (1)"},
        {0}};
    return list;
}

static bool form_of(const char *word, rlx_kernel_form *out)
{
    static const char *const words[] = {[RLX_KERNEL_TREE] = "tree",
                                        [RLX_KERNEL_WGSL] = "wgsl",
                                        [RLX_KERNEL_SPIRV] = "spirv",
                                        [RLX_KERNEL_NAMES] = "names"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(word, words[i]) == 0) {
            *out = (rlx_kernel_form)i;
            return true;
        }
    return false;
}

static rlx_kernel_desc description(const char *file)
{
    return (rlx_kernel_desc){RLX_SIZED(rlx_kernel_desc),  .file = file,
                             .kernel = opt.kernel,        .define = opt.define.at,
                             .defines = opt.define.count, .plain = opt.plain};
}

/* ---- compiling ---- */

static int emit(struct cli *c, const char *file)
{
    rlx_kernel_desc desc = description(file);
    struct buffer text = {0};
    rlx_error err;
    int code;

    if (!form_of(opt.emit ? opt.emit : "tree", &desc.form))
        return cli_misuse(c, "--emit takes tree, wgsl, spirv or names, not %s", opt.emit);
    if (desc.form == RLX_KERNEL_SPIRV && !opt.out && isatty(STDOUT_FILENO))
        return cli_misuse(c, "SPIR-V is binary, and standard output is a terminal: give --out FILE,"
                             " or a pipe");
    if (rlx_kernel_compile(c->ctx, &desc, buffer_add, &text, &err) != RLX_OK)
        code = cli_fail(c, &err, "cannot compile", desc.file);
    else if (text.failed)
        code = EXIT_FAILED;
    else
        code = cli_write_file(c, opt.out, text.at ? text.at : "", text.len);
    buffer_free(&text);
    return code;
}

/* ---- running ---- */

struct buffers {
    rlx_kernel_buffer at[MAX_BUFFERS];
    char name[MAX_BUFFERS][64];
    bool shown[MAX_BUFFERS]; /* a result */
    size_t count;
};

/* "x=x.npy" or "x.npy": the buffer's name, if any, goes to *name, and what follows it is
 * returned. */
static const char *take_name(struct buffers *b, const char *text)
{
    const char *equals = strchr(text, '=');
    size_t len = equals ? (size_t)(equals - text) : 0;

    if (!equals || len >= sizeof b->name[0])
        return text;
    memcpy(b->name[b->count], text, len);
    b->name[b->count][len] = 0;
    b->at[b->count].name = b->name[b->count];
    return equals + 1;
}

static int load_inputs(struct cli *c, struct buffers *b)
{
    for (size_t i = 0; i < opt.input.count; i++) {
        rlx_error err;
        if (b->count == MAX_BUFFERS)
            return cli_misuse(c, "a kernel has at most %d buffers", MAX_BUFFERS);
        const char *path = take_name(b, opt.input.at[i]);
        if (rlx_tensor_load(c->ctx, path, &b->at[b->count].tensor, &err) != RLX_OK)
            return cli_fail(c, &err, "cannot read", path);
        b->count++;
    }
    return EXIT_DONE;
}

/* "f32[2,3]" */
static bool read_type(const char *text, rlx_tensor *out)
{
    const char *open = strchr(text, '[');
    size_t elements = 1;
    char *end;

    *out = (rlx_tensor){.dtype = RLX_DTYPE_count};
    for (int d = 0; open && d < RLX_DTYPE_count; d++) {
        const char *name = rlx_dtype_name((rlx_dtype)d);
        if (strlen(name) == (size_t)(open - text) && strncmp(name, text, strlen(name)) == 0)
            out->dtype = (rlx_dtype)d;
    }
    if (out->dtype == RLX_DTYPE_count)
        return false;
    for (text = open; *text == '[' || *text == ','; text = end) {
        long long n = strtoll(text + 1, &end, 10);
        if (end == text + 1 || n < 1 || out->rank == RLX_MAX_RANK ||
            elements > SIZE_MAX / 16 / (size_t)n)
            return false;
        out->dim[out->rank++] = n;
        elements *= (size_t)n;
    }
    out->bytes = elements * rlx_dtype_size(out->dtype);
    return strcmp(text, "]") == 0;
}

static bool show_input(struct buffers *b, const char *name)
{
    for (size_t i = 0; i < b->count; i++)
        if (strcmp(b->name[i], name) == 0)
            return b->shown[i] = true;
    return false;
}

static int make_outputs(struct cli *c, struct buffers *b)
{
    for (size_t i = 0; i < opt.output.count; i++) {
        const char *text = opt.output.at[i];
        if (show_input(b, text))
            continue;
        if (b->count == MAX_BUFFERS)
            return cli_misuse(c, "a kernel has at most %d buffers", MAX_BUFFERS);
        rlx_tensor *t = &b->at[b->count].tensor;
        if (!read_type(take_name(b, text), t))
            return cli_misuse(c,
                              "--output takes NAME=TYPE[DIMS], as y=f32[2,3], or the name of an "
                              "input, not %s",
                              text);
        t->data = calloc(1, t->bytes);
        if (!t->data)
            return cli_misuse(c, "out of memory: %zu bytes for %s", t->bytes, text);
        b->shown[b->count++] = true;
    }
    return EXIT_DONE;
}

static int read_grid(struct cli *c, uint32_t groups[3])
{
    const char *at = opt.grid;
    char *end;

    for (int i = 0; at && i < 3; i++, at = *end ? end + 1 : NULL) {
        long long n = strtoll(at, &end, 10);
        if (end == at || n < 1 || n > UINT32_MAX || (*end && (*end != ',' || i == 2)))
            return cli_misuse(c, "--grid takes X, X,Y or X,Y,Z, not %s", opt.grid);
        groups[i] = (uint32_t)n;
    }
    return EXIT_DONE;
}

static void print_result(const char *name, const rlx_tensor *t)
{
    size_t count = t->bytes / rlx_dtype_size(t->dtype);
    bool readable = t->dtype != RLX_DTYPE_c64;
    char shape[SHAPE_TEXT];

    printf("%-16s %s%s", name, rlx_dtype_name(t->dtype), shape_text(t->rank, t->dim, shape));
    for (size_t i = 0; readable && i < count; i++)
        printf(" %.6g", tensor_element(t, i));
    printf("\n");
}

/* A line for each result, or a file. */
static int show(struct cli *c, const struct buffers *b)
{
    for (size_t i = 0; i < b->count; i++) {
        const rlx_tensor *t = &b->at[i].tensor;
        char name[96], path[4200];
        rlx_error err;
        if (!b->shown[i])
            continue;
        if (b->name[i][0])
            snprintf(name, sizeof name, "%s", b->name[i]);
        else
            snprintf(name, sizeof name, "out%zu", i - opt.input.count);
        snprintf(path, sizeof path, "%s/%s.npy", opt.out ? opt.out : "", name);
        if (!opt.out)
            print_result(name, t);
        else if (rlx_tensor_save(c->ctx, path, t, &err) != RLX_OK)
            return cli_fail(c, &err, "cannot write", path);
    }
    return EXIT_DONE;
}

static int run_buffers(struct cli *c, const char *file, struct buffers *b)
{
    const char *device = opt.device ? opt.device : "vulkan";
    const rlx_kernel_desc kernel = description(file);
    rlx_kernel_run_desc desc = {RLX_SIZED(rlx_kernel_run_desc), .kernel = &kernel, .buffers = b->at,
                                .words = opt.word.at, .word_count = opt.word.count};
    rlx_device *dev;
    rlx_error err;
    int code = read_grid(c, desc.groups);

    if (code == EXIT_DONE)
        code = load_inputs(c, b);
    if (code == EXIT_DONE)
        code = make_outputs(c, b);
    if (code != EXIT_DONE)
        return code;
    desc.buffer_count = b->count;
    if (rlx_device_open(c->ctx, device, &dev, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot open", device);
    if (rlx_kernel_run(c->ctx, dev, &desc, &err) != RLX_OK)
        code = cli_fail(c, &err, "cannot run", file);
    rlx_device_close(dev);
    return code == EXIT_DONE ? show(c, b) : code;
}

static int run_once(struct cli *c, const char *file)
{
    static struct buffers b;
    int code = run_buffers(c, file, &b);

    for (size_t i = 0; i < b.count; i++)
        if (i < opt.input.count)
            rlx_tensor_free(c->ctx, &b.at[i].tensor);
        else
            free(b.at[i].tensor.data);
    return code;
}

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count != 1)
        return cli_misuse(c, "takes one file");
    if (!opt.run && (opt.input.count || opt.output.count || opt.word.count || opt.grid))
        return cli_misuse(c, "--input, --output, --word and --grid need --run");
    if (opt.run && (opt.emit || opt.plain))
        return cli_misuse(c, "--emit and --plain cannot be used with --run");
    if ((code = cli_context(c)) != EXIT_DONE)
        return code;
    return opt.run ? run_once(c, args.at[0]) : emit(c, args.at[0]);
}

const struct command cmd_kernel = {
    .name = "kernel",
    .summary = "Compile a kernel to SPIR-V or WGSL, or run it",
    .usage = "rlx kernel [flags] FILE.rlk",
    .details = "FILE is a path that ends in .rlk, or the name of a file of the library, such as\n"
               "softmax. The language is described in docs/kernel-language.md.\n"
               "\n"
               "With --run the kernel is made for a GPU and run once. Every parameter is given:\n"
               "buffers that it reads as .npy files, buffers that it writes by their types, and\n"
               "words by their values. A message about what is missing lists all of them.",
    .examples = "rlx kernel pad --kernel triangle -D W=u32 -D UPPER=true --emit wgsl\n"
                "rlx kernel scale.rlk --run --input x=x.npy --output 'y=f32[4]' --word n=4\n"
                "rlx kernel scale.rlk --run --device webgpu --grid 16 --input x.npy \\\n"
                "    --output 'f32[1024]' --word n=1024 --out results",
    .run = run,
    .flags = flags,
};
