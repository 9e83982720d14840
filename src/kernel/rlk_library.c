/* rlk_library.c: the kernels that are part of the library, by the names of their files without
 * .rlk. */
#include "kernel/kernel.h"

/* As cmake/embed.cmake writes it; a row without a name ends it. */
struct kc_embedded {
    const char *name;
    const unsigned char *text;
    size_t len;
};
extern const struct kc_embedded kc_embedded[];

static bool find(void *user, rlx_str name, rlx_str *text)
{
    (void)user;
    for (const struct kc_embedded *e = kc_embedded; e->name; e++)
        if (str_eq(name, rlx_cstr(e->name))) {
            *text = (rlx_str){(const char *)e->text, e->len};
            return true;
        }
    return false;
}

const struct kc_sources kc_library = {find, NULL};

const char *kc_library_name(size_t i)
{
    return kc_embedded[i].name;
}
