/* builds_test.c: no run waits for a compiler. */
#include "../../lower/gpu/builds.h"

TEST_SLOW(webgpu_builds, no_run_waits_for_a_compiler)
{
    builds_check(t, "webgpu");
}
