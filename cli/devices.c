/* devices.c: `rlx devices`, what this machine can run on. */
#include <string.h>

#include "cli.h"

static struct {
    bool json;
} opt;

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--json", FLAG_SWITCH, &opt.json, NULL, "a JSON array, one object per device"}, {0}};
    return list;
}

static void print_json(rlx_context *ctx)
{
    rlx_device_info d = {RLX_SIZED(rlx_device_info)};

    fputs("[", stdout);
    for (size_t i = 0; rlx_device_at(ctx, i, &d, NULL) == RLX_OK; i++) {
        printf("%s\n  {\"name\": ", i ? "," : "");
        cli_json_string(stdout, d.name, strlen(d.name));
        printf(", \"present\": %s, \"description\": ", d.present ? "true" : "false");
        cli_json_string(stdout, d.description, strlen(d.description));
        printf(", \"features\": ");
        cli_json_string(stdout, d.features, strlen(d.features));
        printf(", \"memory\": %llu, \"max_buffer\": %llu, \"alignment\": %llu}",
               (unsigned long long)d.memory, (unsigned long long)d.max_buffer,
               (unsigned long long)d.alignment);
    }
    fputs("\n]\n", stdout);
}

static void print_table(rlx_context *ctx)
{
    rlx_device_info d = {RLX_SIZED(rlx_device_info)};
    char memory[32];

    for (size_t i = 0; rlx_device_at(ctx, i, &d, NULL) == RLX_OK; i++) {
        printf("%-10s %s\n", d.name, d.description);
        if (d.features[0])
            printf("%-10s features: %s\n", "", d.features);
        if (d.memory || d.max_buffer)
            printf("%-10s memory: ", "");
        if (d.memory)
            printf("%s%s", cli_bytes(d.memory, memory), d.max_buffer ? ", " : "\n");
        if (d.max_buffer)
            printf("at most %s in one buffer\n", cli_bytes(d.max_buffer, memory));
    }
}

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count)
        return cli_misuse(c, "takes no arguments");
    if ((code = cli_context(c)) != EXIT_DONE)
        return code;
    if (opt.json)
        print_json(c->ctx);
    else
        print_table(c->ctx);
    return EXIT_DONE;
}

const struct command cmd_devices = {
    .name = "devices",
    .summary = "List the devices this machine can run on",
    .usage = "rlx devices [--json]",
    .details =
        "A name is what --device and RLX_DEVICE take; vulkan alone is the first Vulkan device,\n"
        "auto is what RLX_DEVICE names, or the CPU. Where a kind has no device, the line says "
        "what\n"
        "to install.",
    .examples = "rlx devices",
    .run = run,
    .flags = flags,
};
