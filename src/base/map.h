/* map.h: an index from hashes to numbers. The caller keeps the keys and says when two are equal. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/mem.h"

struct map {
    const rlx_allocator *mem;
    struct map_slot *slot; /* open addressing */
    size_t cap, len;
};

typedef bool (*map_same)(const void *owner, uint32_t value, const void *key);

void map_init(struct map *m, const rlx_allocator *mem);
void map_free(struct map *m);
/* The value under that hash for which same() holds; false: none. */
bool map_find(const struct map *m, uint64_t hash, map_same same, const void *owner, const void *key,
              uint32_t *value);
bool map_add(struct map *m, uint64_t hash, uint32_t value); /* false: no memory, unchanged */

/* SipHash-1-3 with a key drawn once per process, so that chosen names cannot make maps slow. */
uint64_t hash_bytes(const void *data, size_t len);
uint64_t hash_bytes_keyed(const uint64_t key[2], const void *data, size_t len); /* key: the
                                                                                 * caller's */
uint64_t hash_mix(uint64_t h, uint64_t v); /* mixes in one more number, with the same key */

#endif
