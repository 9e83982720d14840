/* kernel.c: fuzzes the kernel compiler: any text is refused with a place, or becomes WGSL and
 * SPIR-V. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rlx/kernel.h"
#include "targets.h"

static void ignore(void *user, const char *text, size_t len)
{
    (void)user, (void)text, (void)len;
}

void fuzz_kernel(const uint8_t *data, size_t size)
{
    static rlx_context *ctx;
    const char *const define[] = {"T=f16", "N=4"};
    rlx_kernel_desc desc = {RLX_SIZED(rlx_kernel_desc), .file = "fuzz", .define = define};
    rlx_error err;

    if (!ctx && rlx_context_create(RLX_VERSION, NULL, &ctx, &err) != RLX_OK)
        abort();
    char *text = malloc(size + 1);
    if (!text)
        return;
    memcpy(text, data, size);
    text[size] = 0;
    desc.source = text;
    for (int form = RLX_KERNEL_TREE; form <= RLX_KERNEL_NAMES; form++)
        for (size_t given = 0; given <= 2; given++) {
            desc.form = (rlx_kernel_form)form;
            desc.defines = given;
            desc.plain = given == 1;
            if (rlx_kernel_compile(ctx, &desc, ignore, NULL, &err) != RLX_OK && !err.message[0])
                abort();
        }
    free(text);
}
