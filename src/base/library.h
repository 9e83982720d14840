/* library.h: shared libraries that are found at run time. */
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* The first of these names that can be opened; NULL: none. It stays loaded until the process ends,
 * as drivers have threads and memory of their own that outlive what they were opened for; opening
 * it again costs little. */
void *library_open(const char *const names[], size_t count);
/* Writes the address of `name` to *function, which is any pointer to a function; NULL and false if
 * the library has none. */
bool library_find(void *library, const char *name, void *function);
/* Every library now loaded that has this symbol stays so until the process ends, whoever opened it
 * and closes it. */
void library_keep(const char *symbol);
/* What every driver of Vulkan has. Its loader closes drivers with the last instance, and some keep
 * memory in globals, which is then lost, or have destructors for threads that still run. */
#define LIBRARY_OF_VULKAN "vk_icdGetInstanceProcAddr"

#endif
