/* version.h: which programs a library serves (docs/install.md, Versions). */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#include <stdbool.h>
#include <stdint.h>

/* Does a library of that version serve a program that was compiled with the caller's headers? Of
 * the same major version any that is not newer; below 1.0, where a minor version may change
 * anything, those of the same minor. Patches never matter. CMakeLists.txt names the shared library,
 * and what find_package takes, by the same rule. */
bool version_serves(uint32_t library, uint32_t caller);

#endif
