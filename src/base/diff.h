/* diff.h: what changed between two texts, line by line, as `diff -u` shows it. */
#ifndef BASE_DIFF_H
#define BASE_DIFF_H

#include "base/diag.h"
#include "base/str.h"

/* Adds a unified diff with three lines around each change; nothing where the texts are equal. Texts
 * that differ in more lines than it is worth comparing show as one removed and one added. */
rlx_status diff_lines(rlx_str a, rlx_str b, const char *name_a, const char *name_b,
                      const rlx_allocator *mem, struct text *out, struct diag *d);

#endif
