/* handle.h: what handle.c and feed.c share. */
#ifndef SESSION_HANDLE_H
#define SESSION_HANDLE_H

#include "run/block.h"
#include "session/session.h"

rlx_str handle_name(const rlx_session *s, const struct handle *h);
/* Bound as a handle; else NAME, or STATE. */
rlx_status handle_find_bound(rlx_session *s, const char *name, struct handle **out, struct diag *d);
/* The handle gets room for this shape. Data moves along where symbols without a bound changed. */
rlx_status handle_fit(rlx_session *s, struct handle *h, const struct ir_type *want, struct diag *d);

/* A block_fn that copies within the device. */
struct handle_mover {
    struct backend *backend;
    struct buffer *to, *from;
    uint64_t to_offset, from_offset;
    struct diag *diag;
};
rlx_status handle_move(void *mover, uint64_t to, uint64_t from, uint64_t bytes);

#endif
