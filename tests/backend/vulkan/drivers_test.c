/* drivers_test.c: drivers stay loaded when the last device is closed. Where they do not, what they
 * keep in globals is lost, and a leak sanitizer says so when this process ends. */
#include <dlfcn.h>
#include <stdlib.h>

#include "../gpu/world.h"

static void ignore(void *user, const char *variant, const struct target *target, const char *why)
{
    (void)user, (void)variant, (void)target, (void)why;
}

/* Has the loader find this driver alone, and lists its devices, of which it has none. */
static bool list_with(struct test *t, const char *driver)
{
    const char *manifest = test_temp(t, "driver.json");
    char text[1200];
    int len = snprintf(text, sizeof text,
                       "{\"file_format_version\": \"1.0.0\", \"ICD\": {\"library_path\": \"%s\", "
                       "\"api_version\": \"1.3.0\"}}",
                       driver);

    if (!expect(t, len > 0 && (size_t)len < sizeof text) ||
        !test_write(t, manifest, text, (size_t)len))
        return false;
    setenv("VK_ICD_FILENAMES", manifest, 1);
    backend_find(STR("vulkan"))->list(&(struct device_desc){.mem = mem_default()}, ignore, NULL);
    unsetenv("VK_ICD_FILENAMES");
    return true;
}

TEST(vulkan_drivers, stay_loaded)
{
    const char *driver = test_built(t, "fakes/vulkan_driver.so");
    void *vulkan = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!vulkan)
        skip(t, "there is no loader of Vulkan");
    if (!list_with(t, driver))
        return;
    void *again = dlopen(driver, RTLD_LAZY | RTLD_NOLOAD);
    expect(t, again != NULL);
    if (again)
        dlclose(again);
    dlclose(vulkan);
}
