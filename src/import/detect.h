/* detect.h: what a file is, by what is in it. */
#ifndef IMPORT_DETECT_H
#define IMPORT_DETECT_H

#include "base/diag.h"
#include "rlx/weights.h"

/* The first bytes of an artefact, which src/compile/cache reads and writes. */
#define DETECT_ARTEFACT_MAGIC "RLXAOT\r\n"

/* bytes: a whole file, though little of it is looked at. A damaged file still counts as its kind
 * where that is recognisable, so that its reader can say what is wrong. */
rlx_file_kind detect_kind(const uint8_t *bytes, size_t size);
/* What a file of that name usually is; unknown: the name does not say. For messages, and for
 * files that are yet to be written. */
rlx_file_kind detect_kind_by_name(rlx_str path);

/* Is it something that no reader of ours takes, whatever it is called, or text that neither looks
 * like ours nor is called so? Then detect_refuse says what it is. */
bool detect_is_foreign(const uint8_t *bytes, size_t size, rlx_str path);
/* Fails with FORMAT: what the file is, that the caller cannot use. wanted: "a model". */
rlx_status detect_refuse(const uint8_t *bytes, size_t size, rlx_str path, const char *wanted,
                         struct diag *d);

#endif
