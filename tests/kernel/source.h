/* source.h: for the tests of the kernel compiler: kernels as texts. "test" is the file under test;
 * other names are the library's. */
#ifndef TESTS_KERNEL_SOURCE_H
#define TESTS_KERNEL_SOURCE_H

#include <string.h>

#include "../test.h"
#include "kernel/kernel.h"

struct source {
    const char *text;
    struct arena arena;
    struct diag diag;
    struct kir kir;
};

static inline bool source_find(void *user, rlx_str name, rlx_str *text)
{
    if (!str_eq(name, STR("test")))
        return kc_library.find(kc_library.user, name, text);
    *text = rlx_cstr(user);
    return true;
}

static const struct kc_features source_all = {.f16 = true,
                                              .f16_rounds = true,
                                              .f64 = true,
                                              .int64 = true,
                                              .subgroups = true,
                                              .dot8 = true,
                                              .fma = true,
                                              .coop = true,
                                              .coop_group = true,
                                              .coop_rows = true,
                                              .coop_bf16 = true,
                                              .storage16 = true,
                                              .storage8 = true,
                                              .subgroup_size = 32,
                                              .max_group = 1024,
                                              .shared_bytes = 49152};

/* The kernel "k" of the text; defines: "T=f32,WG=64". */
static inline rlx_status source_open(struct source *s, const char *text, const char *defines,
                                     const struct kc_features *f)
{
    struct kc_sources sources = {source_find, (void *)(uintptr_t)text};
    struct kc_define define[8];
    size_t count = 0;

    *s = (struct source){.text = text};
    arena_init(&s->arena, mem_default());
    diag_init(&s->diag, "kernel");
    for (const char *at = defines; *at && count < 8; count++) {
        size_t name = strcspn(at, "="), value = strcspn(at + name + 1, ",");
        define[count] = (struct kc_define){{at, name}, {at + name + 1, value}};
        at += name + 1 + value;
        at += *at == ',';
    }
    return kc_specialise(&sources, STR("test"), STR("k"), define, count, f, &s->arena, &s->kir,
                         &s->diag);
}

static inline void source_close(struct source *s)
{
    arena_free(&s->arena);
}

/* The same for the least device, which must be possible. */
static inline bool open_kernel(struct test *t, struct source *s, const char *text,
                               const char *defines)
{
    if (source_open(s, text, defines, &kc_least_features) == RLX_OK)
        return true;
    fail(t, "%s", s->diag.first.message);
    source_close(s);
    return false;
}

#endif
