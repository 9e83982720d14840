/* library_test.c: libraries that are opened at run time, and stay. */
#include "base/library.h"

#include <dlfcn.h>

#include "../test.h"

static bool is_loaded(const char *path)
{
    void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);

    if (library)
        dlclose(library);
    return library != NULL;
}

TEST(library, the_first_that_is_there)
{
    const char *names[] = {"/nowhere/libnothing.so", test_built(t, "fakes/webgpu_old.so"),
                           "/nowhere/libnothing.so"};
    uint32_t (*version)(void);
    void *library;

    expect(t, library_open(names, 1) == NULL);
    require(t, (library = library_open(names, 3)) != NULL);
    expect(t, library_find(library, "wgpuGetVersion", &version) && version() != 0);
    expect(t, !library_find(library, "wgpuGetVersions", &version) && version == NULL);
    dlclose(library);
    expect(t, is_loaded(names[1]));
}

/* What somebody else opens goes when they close it, unless it has the symbol. */
TEST(library, what_others_load_is_kept_by_a_symbol)
{
    const char *path = test_built(t, "fakes/kept.so");
    void *library;

    require(t, (library = dlopen(path, RTLD_NOW | RTLD_LOCAL)) != NULL);
    library_keep("a_symbol_that_nobody_has");
    dlclose(library);
    expect(t, !is_loaded(path));
    require(t, (library = dlopen(path, RTLD_NOW | RTLD_LOCAL)) != NULL);
    library_keep("rlx_tests_kept");
    dlclose(library);
    expect(t, is_loaded(path));
}
