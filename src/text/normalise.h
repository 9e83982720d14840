/* normalise.h: SentencePiece's map of characters: texts that are replaced by others, the longest
 * first. */
#ifndef TEXT_NORMALISE_H
#define TEXT_NORMALISE_H

#include "base/diag.h"
#include "base/str.h"

struct charsmap {
    const uint8_t *unit; /* the double array, 4 bytes each, of any alignment */
    size_t units;        /* 0: nothing is replaced */
    const char *text;    /* replacements, which end with a NUL */
    size_t text_len;
};

/* The blob stays the caller's. FORMAT: it contradicts itself. */
rlx_status charsmap_read(struct charsmap *m, const void *blob, size_t size, struct diag *d);
/* What the beginning of a text becomes, and how many bytes that was: a replacement, a character, or
 * U+FFFD for a byte that is none. */
rlx_str charsmap_next(const struct charsmap *m, rlx_str text, size_t *used);

#endif
