/* kernel.c: `rlx kernel`, the kernel compiler for one file. */
#include <string.h>

#include "cli.h"
#include "rlx/kernel.h"

static struct {
    const char *emit, *kernel, *out;
    struct texts define;
    bool plain;
} opt;

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--emit", FLAG_TEXT, &opt.emit, "FORM", "tree (default), wgsl, spirv, or names"},
        {"--kernel", FLAG_TEXT, &opt.kernel, "NAME", "which of the file's kernels; the first"},
        {"-D", FLAG_LIST, &opt.define, "NAME=VALUE",
         "a constant or type of the kernel; repeatable"},
        {"--plain", FLAG_SWITCH, &opt.plain, NULL,
         "for a device with none of the optional features"},
        {"--out", FLAG_TEXT, &opt.out, "FILE", "write there instead of to standard output"},
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

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    struct buffer text = {0};
    rlx_kernel_desc desc = {0};
    rlx_error err;
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count != 1)
        return cli_misuse(c, "takes one file");
    if (!form_of(opt.emit ? opt.emit : "tree", &desc.form))
        return cli_misuse(c, "--emit takes tree, wgsl, spirv or names, not %s", opt.emit);
    if ((code = cli_context(c)) != EXIT_DONE)
        return code;
    desc.file = args.at[0];
    desc.kernel = opt.kernel;
    desc.define = opt.define.at;
    desc.defines = opt.define.count;
    desc.plain = opt.plain;
    if (rlx_kernel_compile(c->ctx, &desc, buffer_add, &text, &err) != RLX_OK)
        code = cli_fail(c, &err, "cannot compile", desc.file);
    else if (text.failed)
        code = EXIT_FAILED;
    else
        code = cli_write_file(c, opt.out, text.at ? text.at : "", text.len);
    buffer_free(&text);
    return code;
}

const struct command cmd_kernel = {
    .name = "kernel",
    .summary = "Compile a kernel to SPIR-V or WGSL",
    .usage = "rlx kernel [flags] FILE.rlk",
    .details = "FILE is a path that ends in .rlk, or the name of a file of the library, such as\n"
               "softmax. The language is described in docs/kernel-language.md.",
    .run = run,
    .flags = flags,
};
