/* selftest.c: `rlx selftest`, every op on a device against its definition. */
#include "cli.h"

static struct {
    const char *device, *op;
    bool verbose, onnx;
    int64_t seed;
} opt = {.device = "auto"};

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--device", FLAG_TEXT, &opt.device, "D",
         "the device: vulkan, cpu:baseline, .. (auto); rlx devices lists them"},
        {"--op", FLAG_TEXT, &opt.op, "NAME", "only this op (all)"},
        {"--seed", FLAG_NUMBER, &opt.seed, "N", "of the random values (0)"},
        {"--onnx", FLAG_SWITCH, &opt.onnx, NULL,
         "each case written as ONNX and read back before it runs"},
        {"--verbose", FLAG_SWITCH, &opt.verbose, NULL, "a line per case, with its error"},
        {0}};
    return list;
}

static void each(void *user, const rlx_selftest_result *r)
{
    struct cli *c = user;
    static const char *const words[] = {"passed", "FAILED", "skipped"};

    if (opt.verbose || r->verdict == RLX_FAILED) {
        cli_progress_end(c);
        printf("%s: %s: %s%s%s\n", words[r->verdict], r->op, r->what,
               r->verdict == RLX_PASSED ? "" : ": ", r->verdict == RLX_PASSED ? "" : r->message);
        if (opt.verbose && r->verdict == RLX_PASSED)
            printf("    error: %.3g of the tolerance\n", r->max_error);
    }
    if (r->done % 16 == 0)
        cli_progress(c, r->op, r->done, r->total);
}

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    rlx_device *dev;
    rlx_error err;
    rlx_selftest_summary sum = {0};
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count)
        return cli_misuse(c, "takes no arguments");
    if ((code = cli_context(c)) != EXIT_DONE)
        return code;
    if (rlx_device_open(c->ctx, opt.device, &dev, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot open device", opt.device);
    rlx_selftest_desc desc = {RLX_SIZED(rlx_selftest_desc),
                              .op = opt.op,
                              .seed = (uint64_t)opt.seed,
                              .each = each,
                              .user = c,
                              .through_onnx = opt.onnx};
    if (rlx_selftest(c->ctx, dev, &desc, &sum, &err) != RLX_OK)
        code = cli_fail(c, &err, "cannot test", opt.op ? opt.op : opt.device);
    else {
        cli_progress_end(c);
        printf("%zu passed, %zu failed, %zu skipped\n", sum.passed, sum.failed, sum.skipped);
        code = sum.failed ? EXIT_FAILED : EXIT_DONE;
    }
    rlx_device_close(dev);
    return code;
}

const struct command cmd_selftest = {
    .name = "selftest",
    .summary = "Check every op of a device against its definition",
    .usage = "rlx selftest [--device D] [--op NAME] [--seed N] [--onnx] [--verbose]",
    .details = "Takes ordinary and extreme values and shapes, and compares each result with a slow "
               "one in\n"
               "double precision. Ends with a line of counts. Exits with 1 if something fails.",
    .examples = "rlx selftest --op matmul --device vulkan",
    .run = run,
    .flags = flags,
};
