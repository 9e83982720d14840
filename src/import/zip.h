/* zip.h: the members of a zip archive, as its central directory lists them. */
#ifndef IMPORT_ZIP_H
#define IMPORT_ZIP_H

#include "base/arena.h"
#include "base/diag.h"

/* How headers begin, and how members are packed. */
enum {
    ZIP_LOCAL = 0x04034b50,
    ZIP_CENTRAL = 0x02014b50,
    ZIP_END = 0x06054b50,
    ZIP_END_64 = 0x06064b50,
    ZIP_LOCATOR_64 = 0x07064b50,
    ZIP_STORED = 0,
    ZIP_DEFLATED = 8,
    ZIP_LARGE = 1, /* id of the extra field with sizes of 64 bits */
};

struct zip_member {
    rlx_str name;      /* UTF-8, no "..", nothing absolute */
    const uint8_t *at; /* of its bytes, which lie in the archive */
    uint64_t packed;   /* bytes there */
    uint64_t size;     /* bytes they become */
    uint32_t crc;      /* of those */
    bool deflated;
    uint64_t begins, ends; /* with its local header, in the archive */
};

/* bytes: a whole archive. Members that are encrypted, compressed in another way, or overlap, are
 * refused, and so is a local header that says otherwise. Members are in the arena. */
rlx_status zip_read(const uint8_t *bytes, size_t size, struct arena *arena,
                    struct zip_member **member, size_t *count, struct diag *d);

#endif
