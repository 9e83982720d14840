/* library.c: shared libraries that are found at run time, and keeping loaded those that others
 * load. */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>
#if __has_include(<link.h>)
#include <link.h>
#define CAN_LIST 1
#endif

enum { MOST_PATH = 4096 };

void *library_open(const char *const names[], size_t count)
{
    void *library = NULL;

    for (size_t i = 0; i < count && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return library;
}

/* Function pointers come as void * from dlsym; ISO C has no conversion between the two. */
bool library_find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);

    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* ---- keeping what others load ---- */

#ifdef CAN_LIST
struct place {
    size_t left; /* libraries to skip */
    char *path;
};

static int look(struct dl_phdr_info *info, size_t size, void *user)
{
    struct place *p = user;

    (void)size;
    if (p->left-- > 0)
        return 0;
    *p->path = 0; /* the program itself has no name, and one too long is not looked at */
    if (info->dlpi_name && strlen(info->dlpi_name) < MOST_PATH)
        strcpy(p->path, info->dlpi_name);
    return 1;
}

/* One library at a time, with a copy of its name: while the list is walked nothing can be opened.
 */
static bool path_of(size_t index, char path[MOST_PATH])
{
    return dl_iterate_phdr(look, &(struct place){index, path}) == 1;
}

void library_keep(const char *symbol)
{
    char path[MOST_PATH];

    for (size_t i = 0; path_of(i, path); i++) {
        void *library = *path ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
        if (!library)
            continue;
        if (dlsym(library, symbol))
            (void)dlopen(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
        dlclose(library);
    }
}
#else
void library_keep(const char *symbol)
{
    (void)symbol;
}
#endif
