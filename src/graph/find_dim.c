/* find_dim.c: see find_dim.h. */
#include "graph/find_dim.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "rlx/tools.h"

rlx_status find_dim(const struct dim_table *dims, const char *name, size_t *symbol, struct diag *d)
{
    rlx_nearest near = {.wanted = rlx_cstr(name)};
    char known[200] = "none", hint[RLX_NEAREST_HINT];
    size_t len = 0;

    if (name && dim_find_symbol(dims, near.wanted, symbol))
        return RLX_OK;
    for (size_t i = 0; i < dim_symbol_count(dims); i++) {
        rlx_str is = dim_symbol_name(dims, i);
        if (!is.len || !dim_symbol_is_used(dims, i))
            continue;
        rlx_nearest_offer(&near, is);
        if (len < sizeof known)
            len += (size_t)snprintf(known + len, sizeof known - len, "%s%.*s", len ? ", " : "",
                                    STR_ARG(is));
    }
    if (len >= sizeof known)
        memcpy(known + sizeof known - 4, "...", 4);
    return diag_fail(d, RLX_ERROR_NAME, "there is no dim \"%s\"; there are: %s%s", name ? name : "",
                     known, rlx_nearest_hint(&near, hint));
}
