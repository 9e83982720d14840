/* cache_test.c: the file that pipelines are kept in: found again, and never trusted. */
#include <sys/stat.h>
#include <unistd.h>

#include "../gpu/world.h"
#include "backend/vulkan/vk_cache.h"
#include "backend/vulkan/vulkan.h"

static const struct vk_cache_key key = {.uuid = {1, 2, 3}, .vendor = 4, .device = 5, .driver = 6};

TEST(vulkan_cache, a_file_comes_back)
{
    const char *path = test_temp(t, "pipelines.bin");
    struct diag d;
    const uint8_t *data;
    size_t len = 0, bytes;

    diag_init(&d, "test");
    require_ok(t, vk_cache_write(path, &key, "made up, but of a driver", 24, &d));
    const uint8_t *file = (const uint8_t *)test_read(t, path, &len);
    require(t, file && vk_cache_check(&key, file, len, &data, &bytes));
    expect_eq_u64(t, bytes, 24);
    expect_bytes(t, data, "made up, but of a driver", 24);
    require_ok(t, vk_cache_write(path, &key, "", 0, &d));
    file = (const uint8_t *)test_read(t, path, &len);
    expect(t, file && vk_cache_check(&key, file, len, &data, &bytes) && bytes == 0);
}

/* Any bit of it, any length but its own, any other key. */
TEST(vulkan_cache, damage_is_seen)
{
    const char *path = test_temp(t, "pipelines.bin");
    struct vk_cache_key other = key;
    struct diag d;
    uint8_t copy[128] = {0};
    const uint8_t *data;
    size_t len = 0, bytes;

    diag_init(&d, "test");
    require_ok(t, vk_cache_write(path, &key, "bytes of pipelines", 18, &d));
    const char *file = test_read(t, path, &len);
    require(t, file && len < sizeof copy);
    memcpy(copy, file, len);
    for (size_t i = 0; i < len * 8; i++) {
        copy[i / 8] ^= (uint8_t)(1u << i % 8);
        expect(t, !vk_cache_check(&key, copy, len, &data, &bytes));
        copy[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    for (size_t n = 0; n <= len + 2; n++)
        expect(t, vk_cache_check(&key, copy, n, &data, &bytes) == (n == len));
    other.driver++;
    expect(t, !vk_cache_check(&other, copy, len, &data, &bytes));
}

static const char nothing[] = "kernel nothing(x: inout [u32]) group(1) { x[0] = 1 }\n";

static void use_device(struct test *t, const char *folder)
{
    const rlx_flag flag = {"GPU_CACHE", folder};
    struct buffer *x = NULL;
    struct world_step s;
    struct world w;

    if (!world_open_on(t, &w, "vulkan", &flag, 1))
        return;
    expect_ok(t, w.b->ops->alloc(w.b, 4, &x, &w.diag));
    const struct span span = {x, 0, 4};
    world_step(t, &w, &s, nothing, "nothing", &span, 1, false, NULL, 0);
    w.b->ops->release(w.b, x);
    world_close(t, &w);
}

/* The folder is made; a file that is not one is replaced. */
TEST(vulkan_cache, a_device_keeps_its_pipelines)
{
    const char *folder = test_temp(t, "cache");
    char path[1200] = "";
    struct world w;
    struct stat st;
    size_t len = 0;

    if (!world_open_on(t, &w, "vulkan", &(rlx_flag){"GPU_CACHE", folder}, 1))
        return;
    snprintf(path, sizeof path, "%s", vk_device_of(w.b)->cache_path);
    world_close(t, &w);
    expect(t, stat(path, &st) != 0); /* nothing was built, nothing is kept */
    use_device(t, folder);
    require(t, stat(path, &st) == 0);
    expect_eq(t, st.st_mode & 0777, 0600);
    require(t, test_write(t, path, "not what it was", 15));
    use_device(t, folder);
    const char *file = test_read(t, path, &len);
    expect(t, file && len > 15 && memcmp(file, "RLXPIPE1", 8) == 0);
    unlink(path);
    rmdir(folder);
}
