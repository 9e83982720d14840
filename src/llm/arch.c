/* arch.c: the architectures that can be built. Adding one is a row here and its recipe in one of
 * the arch_*.c files; docs/llm.md lists them for users. */
#include "llm/recipes.h"

const struct llm_arch llm_archs[] = {
#define ARCH(name, recipe, text) {name, text, llm_recipe_##recipe},
#include "llm/arch.def"
};
const size_t llm_arch_count = sizeof llm_archs / sizeof llm_archs[0];
