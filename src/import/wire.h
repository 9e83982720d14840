/* wire.h: Protocol Buffers' wire format, read into plain structs by tables.
 *
 * A message is a run of fields, each a key (number * 8 + type) and a value:
 *
 *     type 0  varint          7 bits a byte, low ones first, the top bit says that more follow
 *     type 1  8 bytes         type 5  4 bytes
 *     type 2  a length as varint and as many bytes: text, a message, or packed numbers
 *
 * A struct wire_message lists the fields that the program wants and where in a struct they go; all
 * others are skipped. Texts are views of the bytes read; only lists and messages take memory, as
 * much as the bytes themselves ask for. Nothing is believed before it is known to fit. */
#ifndef IMPORT_WIRE_H
#define IMPORT_WIRE_H

#include "base/arena.h"
#include "base/diag.h"

#define WIRE_MAX_DEPTH 64
#define WIRE_MAX_ROWS 24

/* How a field is stored. A list has the layout of WIRE_LIST. */
enum wire_kind {
    WIRE_I64,     /* int64_t; a varint */
    WIRE_F32,     /* float */
    WIRE_STR,     /* rlx_str */
    WIRE_MESSAGE, /* a pointer to its struct; NULL: there was none */
    WIRE_SEEN,    /* bool: was there such a field? Beside another row of the same number */
    WIRE_I64S,    /* lists of these; numbers packed or one by one */
    WIRE_F32S,
    WIRE_F64S,
    WIRE_STRS,
    WIRE_MESSAGES, /* the structs themselves, one after the other */
};

#define WIRE_LIST(T)  \
    struct {          \
        T *at;        \
        size_t count; \
    }
typedef WIRE_LIST(int64_t) wire_i64s;
typedef WIRE_LIST(float) wire_f32s;
typedef WIRE_LIST(double) wire_f64s;
typedef WIRE_LIST(rlx_str) wire_strs;

struct wire_message;
struct wire_row {
    uint32_t number;
    enum wire_kind kind;
    size_t offset;
    const struct wire_message *sub; /* of MESSAGE and MESSAGES */
};
struct wire_message {
    const char *name; /* for messages to people */
    size_t size;      /* of its struct */
    const struct wire_row *row;
    size_t rows;
};

/* The whole of `bytes` as one message. FORMAT names message, field and byte. The struct at `out` is
 * zeroed first; what it points to is in the arena or in `bytes`. */
rlx_status wire_read(const struct wire_message *m, rlx_str bytes, void *out, struct arena *arena,
                     struct diag *d);

#endif
