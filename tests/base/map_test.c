/* map_test.c: the hash index and the hash. */
#include "base/map.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "test.h"

struct names {
    char text[5000][16];
    uint64_t (*hash)(const char *s);
};

static uint64_t real_hash(const char *s)
{
    return hash_bytes(s, strlen(s));
}

static uint64_t same_hash(const char *s)
{
    (void)s;
    return 42;
}

static uint64_t poor_hash(const char *s)
{
    return (uint64_t)strlen(s) << 60 | (uint64_t)(unsigned char)s[strlen(s) - 1] << 40;
}

static bool same_name(const void *owner, uint32_t value, const void *key)
{
    const struct names *n = owner;

    return strcmp(n->text[value], key) == 0;
}

static void fill(struct names *n, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        snprintf(n->text[i], sizeof n->text[i], "name%u", i);
}

static void check_all(struct test *t, struct names *n, uint32_t count)
{
    struct test_alloc allocs = {0};
    rlx_allocator mem = test_allocator(&allocs);
    struct map m;
    uint32_t got = 0, wrong = 0;

    map_init(&m, &mem);
    fill(n, count);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = n->text[i];
        wrong += map_find(&m, n->hash(name), same_name, n, name, &got);
        require(t, map_add(&m, n->hash(name), i));
        expect(t, m.len <= m.cap * 7 / 10);
    }
    expect_eq(t, m.len, count);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = n->text[i];
        wrong += !map_find(&m, n->hash(name), same_name, n, name, &got) || got != i;
    }
    expect_eq(t, wrong, 0);
    got = 7;
    expect(t, !map_find(&m, n->hash("other"), same_name, n, "other", &got));
    expect_eq(t, got, 7);
    map_free(&m);
    expect_no_leak(t, &allocs);
}

TEST(map, finds_what_was_added)
{
    static struct names n;

    n.hash = real_hash;
    check_all(t, &n, 5000);
}

TEST(map, finds_when_all_hashes_are_equal)
{
    static struct names n;

    n.hash = same_hash;
    check_all(t, &n, 300);
}

TEST(map, finds_when_hashes_are_poor)
{
    static struct names n;

    n.hash = poor_hash;
    check_all(t, &n, 1000);
}

TEST(map, empty_has_nothing)
{
    struct map m;
    uint32_t got;

    map_init(&m, mem_default());
    expect(t, !map_find(&m, 0, same_name, NULL, "x", &got));
    map_free(&m);
    map_free(&m);
}

TEST(map, extreme_hashes_and_values)
{
    static struct names n = {.text = {"zero"}};
    struct map m;
    uint32_t got = 1;

    map_init(&m, mem_default());
    require(t, map_add(&m, 0, 0));
    expect(t, map_find(&m, 0, same_name, &n, "zero", &got) && got == 0);
    expect(t, !map_find(&m, UINT64_MAX, same_name, &n, "zero", &got));
    require(t, map_add(&m, UINT64_MAX, 0));
    expect(t, map_find(&m, UINT64_MAX, same_name, &n, "zero", &got));
    map_free(&m);
}

static rlx_status add_many(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct names *n = ctx;
    struct map m;
    rlx_status s = RLX_OK;
    uint32_t got, added = 0;

    map_init(&m, mem);
    for (; added < 1000 && s == RLX_OK; added++) {
        if (!map_add(&m, real_hash(n->text[added]), added)) {
            s = RLX_ERROR_MEMORY;
            break;
        }
    }
    for (uint32_t i = 0; i < added; i++) { /* what was in before the failure is still in */
        if (!map_find(&m, real_hash(n->text[i]), same_name, n, n->text[i], &got) || got != i)
            fail(t, "name %u is lost", i);
    }
    if (m.len != added)
        fail(t, "%zu, not %u", m.len, added);
    map_free(&m);
    return s;
}

TEST(map, survives_no_memory)
{
    static struct names n;

    fill(&n, 1000);
    expect_survives_no_memory(t, add_many, &n);
}

/* ---- the hash ---------------------------------------------------------------------------- */

/* Answers of another implementation of SipHash-1-3, for key bytes 00 01 .. 0f and data bytes
 * 00 01 .. (len-1). */
TEST(hash, known_answers)
{
    static const struct {
        size_t len;
        uint64_t hash;
    } rows[] = {
        {0, UINT64_C(0xabac0158050fc4dc)},  {1, UINT64_C(0xc9f49bf37d57ca93)},
        {7, UINT64_C(0xd3927d989bb11140)},  {8, UINT64_C(0x369095118d299a8e)},
        {9, UINT64_C(0x25a48eb36c063de4)},  {15, UINT64_C(0xd320d86d2a519956)},
        {16, UINT64_C(0xcc4fdd1a7d908b66)}, {31, UINT64_C(0x2370dd1f8c21d1bc)},
        {63, UINT64_C(0x9d199062b7bbb3a8)}, {64, UINT64_C(0xf17997ec4b4a6065)},
    };
    const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
    unsigned char data[64];

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)i;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_eq_u64(t, hash_bytes_keyed(key, data, rows[i].len), rows[i].hash);
}

TEST(hash, any_alignment_gives_the_same)
{
    static const char text[] = "the quick brown fox jumps over the lazy dog";
    char room[sizeof text + 8];

    for (size_t shift = 0; shift < 8; shift++) {
        memcpy(room + shift, text, sizeof text);
        expect_eq_u64(t, hash_bytes(room + shift, sizeof text), hash_bytes(text, sizeof text));
    }
    expect_eq_u64(t, hash_bytes(NULL, 0), hash_bytes("", 0));
}

TEST(hash, differs_by_content_length_and_key)
{
    const uint64_t k1[2] = {1, 2}, k2[2] = {1, 3};
    const char zeros[16] = {0};

    for (size_t a = 0; a < 16; a++) {
        for (size_t b = 0; b < a; b++)
            expect(t, hash_bytes(zeros, a) != hash_bytes(zeros, b));
    }
    expect(t, hash_bytes("a", 1) != hash_bytes("b", 1));
    expect(t, hash_bytes_keyed(k1, "a", 1) != hash_bytes_keyed(k2, "a", 1));
    /* The process's key is neither of the keys that a careless program would have. */
    const uint64_t zero_key[2] = {0, 0};
    expect(t, hash_bytes("a", 1) != hash_bytes_keyed(zero_key, "a", 1));
}

TEST(hash, mix_depends_on_both_and_on_order)
{
    uint64_t h = hash_bytes("x", 1);

    expect_eq_u64(t, hash_mix(h, 5), hash_mix(h, 5));
    expect(t, hash_mix(h, 5) != hash_mix(h, 6));
    expect(t, hash_mix(h, 5) != hash_mix(h + 1, 5));
    expect(t, hash_mix(1, 2) != hash_mix(2, 1));
    expect(t, hash_mix(0, 0) != 0);
    expect(t, hash_mix(hash_mix(h, 1), 2) != hash_mix(hash_mix(h, 2), 1));
}
