/* wire_write.h: structs as messages of Protocol Buffers, by the tables that wire.h reads them with.
 *
 * What a struct leaves at zero is left out, as a reader takes it for zero anyway; where a field has
 * a WIRE_SEEN row, that row decides. Lists are written one element at a time. */
#ifndef IMPORT_WIRE_WRITE_H
#define IMPORT_WIRE_WRITE_H

#include "import/wire.h"

/* Where bytes go, in order. Small pieces are many. */
struct wire_sink {
    rlx_status (*put)(void *user, const void *bytes, size_t count, struct diag *d);
    void *user;
};

/* Bytes of the message at `in`; UINT64_MAX: it nests deeper than WIRE_MAX_DEPTH. */
uint64_t wire_size(const struct wire_message *m, const void *in);
/* LIMIT where it nests too deep. */
rlx_status wire_write(const struct wire_message *m, const void *in, const struct wire_sink *sink,
                      struct diag *d);

#endif
