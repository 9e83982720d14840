/* targets.c: the entry of libFuzzer and of driver.c: to the target that $FUZZ_TARGET names. */
#include "targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef void (*target_fn)(const uint8_t *data, size_t size);

static target_fn chosen(void)
{
    static const struct {
        const char *name;
        target_fn run;
    } list[] = {
#define X(name) {#name, fuzz_##name},
        FUZZ_TARGET_MAP(X)
#undef X
    };
    const char *name = getenv("FUZZ_TARGET");

    for (size_t i = 0; name && i < sizeof list / sizeof *list; i++)
        if (strcmp(list[i].name, name) == 0)
            return list[i].run;
    fprintf(stderr, "FUZZ_TARGET is to name one of:");
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        fprintf(stderr, " %s", list[i].name);
    fprintf(stderr, "\n");
    exit(2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static target_fn run;

    if (!run)
        run = chosen();
    run(data, size);
    return 0;
}
