/* npz_test.c: NumPy's archives: stored and deflated members, large ones, and what is refused. The
 * deflated streams here are made of stored blocks, so that the tests need no compressor. */
#include <stdio.h>

#include "bytes_world.h"
#include "import/inflate.h"

/* ---- making archives ------------------------------------------------------------------------- */

struct member {
    const char *name;
    const char *descr, *shape; /* of its npy header */
    size_t data;               /* bytes 0, 1, 2 ... after that */
    bool deflated, columns;
    /* What the archive says, where that is not the truth. */
    size_t more;            /* bytes that its size is above what is there */
    uint32_t flags;         /* besides: of both headers */
    uint32_t other_crc;     /* turned bits */
    bool large;             /* sizes in an extra field */
    bool sizes_behind;      /* the local header has none */
    const char *other_name; /* of the local header */
    uint32_t method;
};

struct place {
    size_t local;
    size_t size, packed;
    uint32_t crc;
};

static void put_npy(struct made *m, const struct member *x)
{
    char header[256];
    size_t len = (size_t)snprintf(header, sizeof header,
                                  "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n", x->descr,
                                  x->columns ? "True" : "False", x->shape);

    put_bytes(m, "\x93NUMPY\1\0", 8);
    put(m, len, 2);
    put_bytes(m, header, len);
    for (size_t i = 0; i < x->data; i++)
        put(m, i, 1);
}

/* As a raw stream of one stored block. */
static void put_deflated(struct made *m, const struct made *whole)
{
    put(m, 1, 1);
    put(m, whole->len, 2);
    put(m, ~whole->len, 2);
    put_bytes(m, whole->at, whole->len);
}

static void put_common(struct made *m, const struct member *x, const struct place *p, bool zero)
{
    put(m, 20, 2);
    put(m, x->flags | (x->sizes_behind ? 8 : 0), 2);
    put(m, x->method ? x->method : x->deflated ? 8 : 0, 2);
    put(m, 0x210000, 4);
    put(m, zero ? 0 : p->crc ^ x->other_crc, 4);
    put(m, zero ? 0 : x->large ? UINT32_MAX : p->packed, 4);
    put(m, zero ? 0 : x->large ? UINT32_MAX : p->size + x->more, 4);
}

static void put_large(struct made *m, const struct member *x, const struct place *p)
{
    put(m, 1, 2);
    put(m, 16, 2);
    put(m, p->size + x->more, 8);
    put(m, p->packed, 8);
}

static void put_local(struct made *m, const struct member *x, struct place *p)
{
    static struct made whole, packed;
    const char *name = x->other_name ? x->other_name : x->name;
    bool extra = x->large && !x->sizes_behind;

    whole = packed = (struct made){.len = 0};
    put_npy(&whole, x);
    if (x->deflated)
        put_deflated(&packed, &whole);
    else
        packed = whole;
    *p = (struct place){m->len, whole.len, packed.len, crc32_of(0, whole.at, whole.len)};
    put(m, 0x04034b50, 4);
    put_common(m, x, p, x->sizes_behind);
    put(m, strlen(name), 2);
    put(m, extra ? 20 : 0, 2);
    put_text(m, name);
    if (extra)
        put_large(m, x, p);
    put_bytes(m, packed.at, packed.len);
}

static void put_central(struct made *m, const struct member *x, const struct place *p)
{
    put(m, 0x02014b50, 4);
    put(m, 20, 2);
    put_common(m, x, p, false);
    put(m, strlen(x->name), 2);
    put(m, x->large ? 20 : 0, 2);
    put_zeros(m, 10);
    put(m, p->local, 4);
    put_text(m, x->name);
    if (x->large)
        put_large(m, x, p);
}

static void put_end(struct made *m, size_t count, size_t directory)
{
    size_t size = m->len - directory;

    put(m, 0x06054b50, 4);
    put(m, 0, 4);
    put(m, count, 2);
    put(m, count, 2);
    put(m, size, 4);
    put(m, directory, 4);
    put(m, 0, 2);
}

static void archive(struct made *m, const struct member *member, size_t count)
{
    struct place place[8];

    *m = (struct made){.len = 0};
    for (size_t i = 0; i < count; i++)
        put_local(m, &member[i], &place[i]);
    size_t directory = m->len;
    for (size_t i = 0; i < count; i++)
        put_central(m, &member[i], &place[i]);
    put_end(m, count, directory);
}

static const struct member good[] = {
    {.name = "x.npy", .descr = "<f4", .shape = "(2, 3)", .data = 24},
    {.name = "sub/y.npy", .descr = ">i2", .shape = "(2, 3)", .data = 12, .columns = true},
    {.name = "z.npy", .descr = "|u1", .shape = "(40,)", .data = 40, .deflated = true},
    {.name = "w.npy",
     .descr = "|u1",
     .shape = "(2, 2)",
     .data = 4,
     .deflated = true,
     .columns = true,
     .sizes_behind = true},
    {.name = "none.npy", .descr = "<f8", .shape = "(0, 3)", .large = true},
};
enum { GOOD = sizeof good / sizeof good[0] };

/* ---- good ones ------------------------------------------------------------------------------- */

static void expect_data(struct test *t, struct outcome *o, const char *name, const char *want,
                        size_t bytes)
{
    const uint8_t *data = NULL;
    size_t i = 0;

    test_note(t, "%s", name);
    require(t, weights_find(&o->w, rlx_cstr(name), &i));
    require_ok(t, weights_data(&o->w, i, &data, &o->diag));
    expect_eq_u64(t, o->w.tensor.at[i].bytes, bytes);
    expect_bytes(t, data, want, bytes);
    const uint8_t *again = NULL;
    expect_ok(t, weights_data(&o->w, i, &again, &o->diag));
    expect(t, again == data); /* made once */
    test_note(t, "%s", "");
}

TEST(npz, members_are_arrays)
{
    static struct made m;
    uint8_t counted[40];

    for (size_t i = 0; i < sizeof counted; i++)
        counted[i] = (uint8_t)i;
    archive(&m, good, GOOD);
    struct outcome o = read_bytes(m.at, m.len);
    test_note(t, "%s", o.diag.first.message);
    require_ok(t, o.status);
    require(t, o.w.tensor.len == GOOD);
    expect_data(t, &o, "x", (const char *)counted, 24);
    expect_data(t, &o, "z", (const char *)counted, 40);
    expect_data(t, &o, "w", "\0\2\1\3", 4);
    expect_data(t, &o, "sub/y", "\1\0\5\4\11\10\3\2\7\6\13\12", 12);
    expect_data(t, &o, "none", "", 0);
    outcome_free(&o);
    archive(&m, good, 0);
    o = read_bytes(m.at, m.len);
    expect_ok(t, o.status);
    outcome_free(&o);
}

TEST(npz, a_comment_may_stand_behind)
{
    static struct made m;

    archive(&m, good, 1);
    m.at[m.len - 2] = 7;
    put_text(&m, "comment");
    struct outcome o = read_bytes(m.at, m.len);
    expect_ok(t, o.status);
    outcome_free(&o);
    put_text(&m, "!");
    expect_refused(t, &m, "no directory");
}

TEST(npz, seeds_of_the_fuzzer)
{
    static struct made m;

    archive(&m, good, GOOD);
    check_seed(t, "npz/members.npz", &m);
    archive(&m, good + 2, 1);
    check_seed(t, "npz/deflated.npz", &m);
}

TEST(npz, cut_anywhere_it_is_refused)
{
    static struct made m;

    archive(&m, good, GOOD);
    check_cuts(t, &m, m.len);
}

TEST(npz, turned_bits_do_no_harm)
{
    static struct made m;

    archive(&m, good, GOOD);
    check_flips(t, &m, m.len);
}

TEST(npz, survives_no_memory)
{
    static struct made m;

    archive(&m, good, GOOD);
    expect_survives_no_memory(t, read_once, &m);
}

/* ---- what is refused ---------------------------------------------------------------------------
 */

static void refuse_member(struct test *t, int line, struct member x, rlx_status status,
                          const char *why)
{
    static struct made m;

    x.name = x.name ? x.name : "a.npy";
    x.descr = x.descr ? x.descr : "|u1";
    x.shape = x.shape ? x.shape : "(8,)";
    x.data = x.data ? x.data : 8;
    archive(&m, &x, 1);
    check_refused(t, line, &m, status, why);
}
#define refuse(why, ...) \
    refuse_member(t, __LINE__, (struct member){__VA_ARGS__}, RLX_ERROR_FORMAT, why)

TEST(npz, refuses_members)
{
    refuse("not an .npy", .name = "a.txt");
    refuse("a member's name", .name = "../a.npy");
    refuse("a member's name", .name = "b/../a.npy");
    refuse("a member's name", .name = "/a.npy");
    refuse("a member's name", .name = "\xff.npy");
    refuse("a member's name", .name = "");
    refuse("encrypted", .flags = 1);
    refuse("neither stored nor deflated", .method = 12);
    refuse("two sizes", .more = 1);
    refuse("differs from its entry", .other_name = "b.npy");
    refuse("has 77 bytes, its header needs 76", .data = 9);
    refuse("its header needs", .data = 7);
    refuse("its header needs", .deflated = true, .more = 1);
    refuse("its header needs", .deflated = true, .more = 1000);
    refuse("npy: not an npy file", .name = "a.npy", .descr = "|u1", .method = 8);
    refuse("descr must begin", .descr = "[]", .shape = "()");
}

TEST(npz, checks_sums_and_sizes_when_data_is_wanted)
{
    static struct made m;
    struct member x = {.name = "a.npy", .descr = "|u1", .shape = "(8,)", .data = 8, .other_crc = 1};

    for (int deflated = 0; deflated < 2; deflated++) {
        const uint8_t *data;
        x.deflated = deflated;
        archive(&m, &x, 1);
        struct outcome o = read_bytes(m.at, m.len);
        require_ok(t, o.status);
        expect_status(t, weights_data(&o.w, 0, &data, &o.diag), RLX_ERROR_FORMAT);
        expect_error(t, RLX_ERROR_FORMAT, "checksum", &o.diag.first);
        outcome_free(&o);
    }
    /* Both sizes and the header agree, but the stream has more. */
    x = (struct member){.name = "a.npy",
                        .descr = "|u1",
                        .shape = "(8,)",
                        .data = 9,
                        .deflated = true,
                        .more = (size_t)-1};
    archive(&m, &x, 1);
    struct outcome o = read_bytes(m.at, m.len);
    const uint8_t *data;
    require_ok(t, o.status);
    expect_status(t, weights_data(&o.w, 0, &data, &o.diag), RLX_ERROR_FORMAT);
    expect_error(t, RLX_ERROR_FORMAT, "become more than", &o.diag.first);
    outcome_free(&o);
}

TEST(npz, refuses_what_would_be_too_large)
{
    refuse_member(t, __LINE__,
                  (struct member){.deflated = true, .large = true, .more = (size_t)5 << 30},
                  RLX_ERROR_LIMIT, "would inflate");
}

TEST(npz, refuses_overlaps)
{
    static struct made m;
    struct place p, same;

    m = (struct made){.len = 0};
    put_local(&m, &good[0], &p);
    same = p;
    size_t directory = m.len;
    put_central(&m, &good[0], &p);
    put_central(&m, &good[0], &same);
    put_end(&m, 2, directory);
    expect_refused(t, &m, "overlap");
}

TEST(npz, refuses_directories)
{
    static struct made m;

    archive(&m, good, 1);
    m.at[m.len - 5] = 1; /* its offset */
    expect_refused(t, &m, "outside of the file");
    archive(&m, good, 1);
    m.at[m.len - 10] = 10; /* its size */
    expect_refused(t, &m, "more members");
    archive(&m, good, 1);
    memset(m.at + m.len - 6, 0xff, 4); /* it would be in the 64-bit directory */
    expect_refused(t, &m, "without its 64-bit directory");
    archive(&m, good, 1);
    m.at[m.len - 18] = 1; /* volumes */
    expect_refused(t, &m, "several volumes");
}

TEST(npz, refuses_64_bit_directories)
{
    static const uint64_t where[] = {0, 1, 200, UINT64_MAX, (uint64_t)1 << 63};
    static struct made m;

    for (size_t i = 0; i < sizeof where / sizeof where[0]; i++) {
        archive(&m, good, 1);
        m.len -= 22;
        put_zeros(&m, 56);
        put(&m, 0x07064b50, 4);
        put(&m, 0, 4);
        put(&m, where[i], 8);
        put(&m, 1, 4);
        put(&m, 0x06054b50, 4);
        put(&m, 0, 4);
        put(&m, UINT32_MAX, 4);
        put(&m, UINT64_MAX, 8);
        put(&m, 0, 2);
        expect_refused(t, &m, "64-bit directory");
    }
}

/* ---- streams -----------------------------------------------------------------------------------
 */

TEST(inflate, whole_streams_and_fronts)
{
    static const uint8_t stream[] = {1, 5, 0, 0xfa, 0xff, 'h', 'e', 'l', 'l', 'o'};
    static const uint8_t fixed[] = {0x4b, 0x04, 0x01, 0x00}; /* "aaaaa", compressed */
    uint8_t out[16];
    struct diag d;
    size_t got = 0;

    diag_init(&d, "test");
    require_ok(t, inflate_whole(stream, sizeof stream, out, 5, mem_default(), &d));
    expect_bytes(t, out, "hello", 5);
    require_ok(t, inflate_front(stream, sizeof stream, out, 3, &got, mem_default(), &d));
    expect_eq(t, got, 3);
    require_ok(t, inflate_front(stream, sizeof stream, out, 16, &got, mem_default(), &d));
    expect_eq(t, got, 5);
    expect_status(t, inflate_whole(stream, sizeof stream, out, 4, mem_default(), &d),
                  RLX_ERROR_FORMAT);
    expect_status(t, inflate_whole(stream, sizeof stream, out, 6, mem_default(), &d),
                  RLX_ERROR_FORMAT);
    expect_status(t, inflate_whole(stream, 7, out, 5, mem_default(), &d), RLX_ERROR_FORMAT);
    expect_status(t, inflate_front(stream, 7, out, 5, &got, mem_default(), &d), RLX_ERROR_FORMAT);
    expect_status(t, inflate_whole(stream, 0, out, 5, mem_default(), &d), RLX_ERROR_FORMAT);
    expect_status(t, inflate_whole((const uint8_t *)"\7", 1, out, 5, mem_default(), &d),
                  RLX_ERROR_FORMAT);
    diag_init(&d, "test");
    expect_ok(t, inflate_whole(fixed, sizeof fixed, out, 5, mem_default(), &d));
    expect_bytes(t, out, "aaaaa", 5);
}

TEST(inflate, checksums)
{
    expect_eq_u64(t, crc32_of(0, (const uint8_t *)"123456789", 9), 0xcbf43926u);
    expect_eq_u64(t, crc32_of(0, NULL, 0), 0);
    expect_eq_u64(t, crc32_of(crc32_of(0, (const uint8_t *)"1234", 4), (const uint8_t *)"56789", 5),
                  0xcbf43926u);
}
