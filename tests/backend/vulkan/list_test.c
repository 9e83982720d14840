/* list_test.c: what is said of Vulkan devices, whether there are any or not. */
#include "../gpu/world.h"
#include "backend/vulkan/vulkan.h"

static rlx_context *open_context(struct test *t, const rlx_flag *flags, size_t count)
{
    rlx_context *ctx = NULL;

    expect_ok(t, rlx_context_create(RLX_VERSION,
                                    &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .flags = flags,
                                                        .flag_count = count},
                                    &ctx, NULL));
    return ctx;
}

/* Every one that is listed as present can be opened by its name, and only those. */
TEST(vulkan_list, listed_ones_open)
{
    const rlx_flag none = {"GPU_CACHE", "0"};
    rlx_context *ctx = open_context(t, &none, 1);
    rlx_device_info info = {RLX_SIZED(rlx_device_info)};
    size_t found = 0, vulkan = 0;

    for (size_t i = 0; ctx && rlx_device_at(ctx, i, &info, NULL) == RLX_OK; i++) {
        rlx_device *dev = NULL;
        rlx_error err;
        if (strncmp(info.name, "vulkan", 6) != 0)
            continue;
        found++;
        expect(t, info.description[0] != 0);
        if (!info.present)
            continue;
        char name[32];
        snprintf(name, sizeof name, "vulkan:%zu", vulkan++);
        expect_str(t, info.name, name);
        expect(t, info.memory > 0 && info.max_buffer > 0 && info.alignment == 256);
        expect_contains(t, info.features, "memory=");
        expect_contains(t, info.description, "Vulkan 1.");
        expect_ok(t, rlx_device_open(ctx, info.name, &dev, &err));
        rlx_device_close(dev);
    }
    expect(t, found > 0);
    if (vulkan) {
        rlx_device *dev;
        rlx_error err;
        expect_status(t, rlx_device_open(ctx, "vulkan:99", &dev, &err), RLX_ERROR_NO_DEVICE);
        expect_contains(t, err.message, "no number 99");
        expect_status(t, rlx_device_open(ctx, "vulkan:fast", &dev, &err), RLX_ERROR_NO_DEVICE);
    }
    rlx_context_destroy(ctx);
}

TEST(vulkan_list, features_can_be_turned_off)
{
    const rlx_flag flags[] = {{"GPU_NO_COOP", "1"}, {"GPU_MEMORY", "staging"}};
    struct target target;
    struct world w;

    if (!world_open_on(t, &w, "vulkan", flags, 2))
        return;
    w.b->ops->describe(w.b, &target);
    expect(t, !strstr(target.features, "coop"));
    expect_contains(t, target.features, "memory=staging");
    world_close(t, &w);
}

/* A device with smaller limits than its own keeps to them. */
TEST(vulkan_list, limits_can_be_lowered)
{
    const rlx_flag flags[] = {{"GPU_MAX_BINDING", "65536"}, {"GPU_MAX_GROUPS", "4"}};
    struct target target;
    struct world w;

    if (!world_open_on(t, &w, "vulkan", flags, 2))
        return;
    w.b->ops->describe(w.b, &target);
    expect(t, target.max_buffer > 65536); /* kernels see a part of it */
    expect_eq_u64(t, world_gpu(&w)->target.max_groups, 4);
    expect_eq_u64(t, world_gpu(&w)->target.max_binding, 65536);
    world_close(t, &w);
}
