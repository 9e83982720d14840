/* version.c: the rule of version.h. */
#include "base/version.h"

bool version_serves(uint32_t library, uint32_t caller)
{
    uint32_t minor = library / 100 % 100, wanted = caller / 100 % 100;

    if (library / 10000 != caller / 10000)
        return false;
    return library < 10000 ? wanted == minor : wanted <= minor;
}
