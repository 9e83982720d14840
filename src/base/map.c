/* map.c: a hash index with open addressing, and the keyed hash that feeds it.
 *
 * A slot keeps the whole hash, so growing needs no callback, and a search compares keys only where
 * all 64 bits agree. Entries are never removed, so an empty slot ends every search. */
#include "base/map.h"

#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* ---- the index --------------------------------------------------------------------------- */

struct map_slot {
    uint64_t hash;
    uint32_t value;
    uint32_t used; /* 0: empty */
};

void map_init(struct map *m, const rlx_allocator *mem)
{
    *m = (struct map){.mem = mem};
}

void map_free(struct map *m)
{
    mem_free(m->mem, m->slot, m->cap * sizeof *m->slot);
    map_init(m, m->mem);
}

/* Where a search for the hash begins. cap is a power of two. The multiplication spreads hashes that
 * differ only in a few bits, in case a caller has such. */
static size_t start(uint64_t hash, size_t cap)
{
    uint64_t spread = hash * UINT64_C(0x9e3779b97f4a7c15);

    return (size_t)(spread ^ (spread >> 32)) & (cap - 1);
}

bool map_find(const struct map *m, uint64_t hash, map_same same, const void *owner, const void *key,
              uint32_t *value)
{
    if (m->cap == 0)
        return false;
    for (size_t i = start(hash, m->cap); m->slot[i].used; i = (i + 1) & (m->cap - 1)) {
        const struct map_slot *s = &m->slot[i];
        if (s->hash == hash && same(owner, s->value, key)) {
            *value = s->value;
            return true;
        }
    }
    return false;
}

static void place(struct map_slot *slot, size_t cap, uint64_t hash, uint32_t value)
{
    size_t i = start(hash, cap);

    while (slot[i].used)
        i = (i + 1) & (cap - 1);
    slot[i] = (struct map_slot){.hash = hash, .value = value, .used = 1};
}

static bool grow(struct map *m)
{
    enum { FIRST = 16 };
    size_t cap = FIRST, bytes;

    if (m->cap && !size_mul(m->cap, 2, &cap))
        return false;
    if (!size_mul(cap, sizeof *m->slot, &bytes))
        return false;
    struct map_slot *slot = mem_alloc(m->mem, bytes);
    if (!slot)
        return false;
    for (size_t i = 0; i < m->cap; i++) {
        if (m->slot[i].used)
            place(slot, cap, m->slot[i].hash, m->slot[i].value);
    }
    mem_free(m->mem, m->slot, m->cap * sizeof *m->slot);
    m->slot = slot;
    m->cap = cap;
    return true;
}

bool map_add(struct map *m, uint64_t hash, uint32_t value)
{
    if (m->len >= m->cap * 7 / 10 && !grow(m)) /* no overflow: a slot is more than 7 bytes */
        return false;
    place(m->slot, m->cap, hash, value);
    m->len++;
    return true;
}

/* ---- the hash ---------------------------------------------------------------------------- */

/* Written once, before the first hash, and only read after that. */
static uint64_t process_key[2];
static pthread_once_t process_key_once = PTHREAD_ONCE_INIT;

struct sip {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotl(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static void sip_round(struct sip *s)
{
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = rotl(s->v1, 13) ^ s->v0;
    s->v3 = rotl(s->v3, 16) ^ s->v2;
    s->v0 = rotl(s->v0, 32);
    s->v2 += s->v1;
    s->v0 += s->v3;
    s->v1 = rotl(s->v1, 17) ^ s->v2;
    s->v3 = rotl(s->v3, 21) ^ s->v0;
    s->v2 = rotl(s->v2, 32);
}

static struct sip sip_start(const uint64_t key[2])
{
    return (struct sip){
        key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
        key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
}

static void sip_word(struct sip *s, uint64_t word)
{
    s->v3 ^= word;
    sip_round(s);
    s->v0 ^= word;
}

static uint64_t sip_end(struct sip *s)
{
    s->v2 ^= 0xff;
    sip_round(s);
    sip_round(s);
    sip_round(s);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

static uint64_t little_endian(const unsigned char *p, size_t bytes)
{
    uint64_t word = 0;

    for (size_t i = 0; i < bytes; i++)
        word |= (uint64_t)p[i] << (8 * i);
    return word;
}

uint64_t hash_bytes_keyed(const uint64_t key[2], const void *data, size_t len)
{
    const unsigned char *p = data;
    struct sip s = sip_start(key);
    size_t left = len;

    for (; left >= 8; p += 8, left -= 8)
        sip_word(&s, little_endian(p, 8));
    sip_word(&s, (uint64_t)len << 56 | little_endian(p, left));
    return sip_end(&s);
}

/* What differs between processes when the system has no random bytes to give. */
static void draw_key_from_surroundings(void)
{
    struct timespec wall = {0}, up = {0};
    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_MONOTONIC, &up);
    const uint64_t seen[] = {(uint64_t)wall.tv_sec,    (uint64_t)wall.tv_nsec,
                             (uint64_t)up.tv_nsec,     (uint64_t)getpid(),
                             (uint64_t)(uintptr_t)&up, (uint64_t)(uintptr_t)&process_key};
    const uint64_t first[2] = {1, 0}, second[2] = {2, 0};

    process_key[0] = hash_bytes_keyed(first, seen, sizeof seen);
    process_key[1] = hash_bytes_keyed(second, seen, sizeof seen);
}

static void draw_key(void)
{
    if (getrandom(process_key, sizeof process_key, GRND_NONBLOCK) != (ssize_t)sizeof process_key)
        draw_key_from_surroundings();
}

uint64_t hash_bytes(const void *data, size_t len)
{
    pthread_once(&process_key_once, draw_key);
    return hash_bytes_keyed(process_key, data, len);
}

uint64_t hash_mix(uint64_t h, uint64_t v)
{
    pthread_once(&process_key_once, draw_key);
    struct sip s = sip_start(process_key);
    sip_word(&s, h);
    sip_word(&s, v);
    return sip_end(&s);
}
