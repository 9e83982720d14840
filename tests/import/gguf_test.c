/* gguf_test.c: GGUF files of every version, and one for each rule that refuses them. */
#include <stdio.h>

#include "bytes_world.h"
#include "ir/quant/quant_scheme.h"

/* ---- making files ---------------------------------------------------------------------------- */

static void head(struct made *m, uint32_t version, uint64_t tensors, uint64_t keys)
{
    *m = (struct made){.width = version == 1 ? 4 : 8};
    put_text(m, "GGUF");
    put(m, version, 4);
    put(m, tensors, m->width);
    put(m, keys, m->width);
}

static void put_string(struct made *m, const char *text, size_t len)
{
    put(m, len, m->width);
    put_bytes(m, text, len);
}

static void key(struct made *m, const char *name, uint32_t type)
{
    put_string(m, name, strlen(name));
    put(m, type, 4);
}

static void key_number(struct made *m, const char *name, uint32_t type, uint64_t v, size_t width)
{
    key(m, name, type);
    put(m, v, width);
}

static void tensor(struct made *m, const char *name, uint32_t rank, const uint64_t *dim,
                   uint32_t type, uint64_t offset)
{
    put_string(m, name, strlen(name));
    put(m, rank, 4);
    for (uint32_t i = 0; i < rank; i++)
        put(m, dim[i], m->width);
    put(m, type, 4);
    put(m, offset, 8);
}

static void align(struct made *m, size_t to)
{
    while (m->len % to)
        put(m, 0, 1);
}

/* Every type of value, two tensors; *header: where the data begins. */
static void good_file(struct made *m, uint32_t version, size_t *header)
{
    head(m, version, 2, 15);
    key_number(m, "a.u8", RLX_META_u8, 200, 1);
    key_number(m, "a.i8", RLX_META_i8, (uint64_t)-5, 1);
    key_number(m, "a.u16", RLX_META_u16, 60000, 2);
    key_number(m, "a.i16", RLX_META_i16, (uint64_t)-300, 2);
    key_number(m, "a.u32", RLX_META_u32, 4000000000u, 4);
    key_number(m, "a.i32", RLX_META_i32, (uint64_t)-70000, 4);
    key_number(m, "a.f32", RLX_META_f32, 0x3fc00000, 4);
    key_number(m, "a.bool", RLX_META_bool, 1, 1);
    key(m, "a.string", RLX_META_string);
    put_string(m, "h\xc3\xa9llo", 6);
    key_number(m, "a.u64", RLX_META_u64, UINT64_MAX, 8);
    key_number(m, "a.i64", RLX_META_i64, (uint64_t)INT64_MIN, 8);
    key_number(m, "a.f64", RLX_META_f64, 0x4004000000000000, 8);
    key(m, "tokenizer.strings", 9);
    put(m, RLX_META_string, 4);
    put(m, 3, m->width);
    put_string(m, "one", 3);
    put_string(m, "", 0);
    put_string(m, "\xff\x00z", 3); /* any bytes will do, there */
    key(m, "a.numbers", 9);
    put(m, RLX_META_i16, 4);
    put(m, 2, m->width);
    put(m, 7, 2);
    put(m, (uint64_t)-7, 2);
    key(m, "a.empty", 9);
    put(m, RLX_META_f64, 4);
    put(m, 0, m->width);
    tensor(m, "second", 2, (uint64_t[]){32, 2}, 2, 32); /* Q4_0: 36 bytes */
    tensor(m, "first", 3, (uint64_t[]){2, 1, 3}, 0, 0); /* F32: 24 bytes */
    align(m, 32);
    *header = m->len;
    for (int i = 0; i < 32 + 36; i++)
        put(m, (uint64_t)i, 1);
}

/* One F32 tensor of 4 elements, after what *m holds already. */
static void finish(struct made *m)
{
    tensor(m, "t", 1, (uint64_t[]){4}, 0, 0);
    align(m, 32);
    put_zeros(m, 16);
}

/* ---- good files ------------------------------------------------------------------------------ */

static void check_values(struct test *t, const struct weights *w)
{
    uint64_t u = 0;
    float f = 0;
    bool b = false, found = false;
    rlx_str s = {NULL, 0};

    expect_ok(t, meta_get_u64(w, STR("a.u8"), UINT64_MAX, &u, &found, NULL));
    expect_eq_u64(t, u, 200);
    expect_ok(t, meta_get_u64(w, STR("a.u64"), UINT64_MAX, &u, &found, NULL));
    expect_eq_u64(t, u, UINT64_MAX);
    expect_status(t, meta_get_u64(w, STR("a.u64"), UINT32_MAX, &u, &found, NULL), RLX_ERROR_DTYPE);
    expect_status(t, meta_get_u64(w, STR("a.i8"), UINT64_MAX, &u, &found, NULL), RLX_ERROR_DTYPE);
    expect_status(t, meta_get_u64(w, STR("a.f32"), UINT64_MAX, &u, &found, NULL), RLX_ERROR_DTYPE);
    expect_eq_u64(t, u, UINT64_MAX); /* left alone */
    expect_ok(t, meta_get_u64(w, STR("nowhere"), UINT64_MAX, &u, &found, NULL));
    expect(t, !found);
    expect_ok(t, meta_get_f32(w, STR("a.f32"), &f, NULL));
    expect_near(t, f, 1.5, 0);
    expect_ok(t, meta_get_f32(w, STR("a.f64"), &f, NULL));
    expect_near(t, f, 2.5, 0);
    expect_ok(t, meta_get_f32(w, STR("a.i16"), &f, NULL));
    expect_near(t, f, -300, 0);
    expect_ok(t, meta_get_f32(w, STR("a.i64"), &f, NULL));
    expect_near(t, f, -9223372036854775808.0, 0);
    expect_status(t, meta_get_f32(w, STR("a.string"), &f, NULL), RLX_ERROR_DTYPE);
    expect_ok(t, meta_get_bool(w, STR("a.bool"), &b, NULL));
    expect(t, b);
    expect_status(t, meta_get_bool(w, STR("a.u8"), &b, NULL), RLX_ERROR_DTYPE);
    expect_ok(t, meta_get_str(w, STR("a.string"), &s, NULL));
    expect(t, str_eq(s, STR("h\xc3\xa9llo")));
    expect_status(t, meta_get_str(w, STR("tokenizer.strings"), &s, NULL), RLX_ERROR_DTYPE);
}

static void check_arrays(struct test *t, const struct weights *w)
{
    const rlx_meta *m = weights_meta(w, STR("tokenizer.strings"));

    require(t, m && m->is_array && m->count == 3);
    const rlx_str *text = m->data;
    expect(t, str_eq(text[0], STR("one")) && text[1].len == 0);
    expect(t, str_eq(text[2], (rlx_str){"\xff\x00z", 3}));
    m = weights_meta(w, STR("a.numbers"));
    require(t, m && m->is_array && m->count == 2 && m->type == RLX_META_i16);
    expect_eq(t, ((const int16_t *)m->data)[1], -7);
    m = weights_meta(w, STR("a.empty"));
    require(t, m && m->is_array && m->count == 0);
}

TEST(gguf, every_version_is_read)
{
    for (uint32_t version = 1; version <= 3; version++) {
        struct made m;
        size_t header, i;
        good_file(&m, version, &header);
        struct outcome o = read_bytes(m.at, m.len);
        test_note(t, "version %u: %s", version, o.diag.first.message);
        require_ok(t, o.status);
        expect_eq(t, o.w.version, version);
        expect_eq_u64(t, o.w.alignment, 32);
        check_values(t, &o.w);
        check_arrays(t, &o.w);
        require(t, o.w.tensor.len == 2 && weights_find(&o.w, STR("first"), &i) && i == 1);
        const struct weight *w = &o.w.tensor.at[1];
        expect(t, w->type == RLX_WEIGHT_F32 && w->rank == 3);
        expect(t, w->dim[0] == 3 && w->dim[1] == 1 && w->dim[2] == 2); /* the fastest is last */
        expect(t, w->at == o.copy + header && w->bytes == 24);         /* where it lies */
        w = &o.w.tensor.at[0];
        expect(t, w->type == RLX_WEIGHT_Q4_0 && w->bytes == 36 && w->at == o.copy + header + 32);
        expect(t, !weights_find(&o.w, STR("third"), &i));
        outcome_free(&o);
    }
}

TEST(gguf, seeds_of_the_fuzzer)
{
    static const char *const names[] = {"gguf/values_v1.gguf", "gguf/values_v2.gguf",
                                        "gguf/values_v3.gguf"};
    static struct made m;
    size_t header;

    for (uint32_t version = 1; version <= 3; version++) {
        good_file(&m, version, &header);
        check_seed(t, names[version - 1], &m);
    }
    head(&m, 3, 2, 1);
    key_number(&m, "general.alignment", RLX_META_u32, 8, 4);
    tensor(&m, "t", 0, NULL, 0, 8);
    tensor(&m, "k", 1, (uint64_t[]){256}, 23, 16); /* IQ4_XS */
    align(&m, 8);
    put_zeros(&m, 16 + 136);
    check_seed(t, "gguf/aligned.gguf", &m);
}

TEST(gguf, cut_anywhere_it_is_refused)
{
    for (uint32_t version = 1; version <= 3; version++) {
        struct made m;
        size_t header;
        good_file(&m, version, &header);
        check_cuts(t, &m, m.len);
    }
}

TEST(gguf, turned_bits_do_no_harm)
{
    for (uint32_t version = 1; version <= 3; version++) {
        struct made m;
        size_t header;
        good_file(&m, version, &header);
        check_flips(t, &m, header);
    }
}

TEST(gguf, survives_no_memory)
{
    struct made m;
    size_t header;

    good_file(&m, 3, &header);
    expect_survives_no_memory(t, read_once, &m);
}

TEST(gguf, no_tensors_need_no_data)
{
    struct made m;

    head(&m, 3, 0, 1);
    key_number(&m, "k", RLX_META_u8, 1, 1);
    check_cuts(t, &m, m.len);
    head(&m, 3, 0, 0);
    struct outcome o = read_bytes(m.at, m.len);
    expect_ok(t, o.status);
    outcome_free(&o);
}

TEST(gguf, other_alignments_and_gaps)
{
    struct made m;

    head(&m, 3, 1, 1);
    key_number(&m, "general.alignment", RLX_META_u32, 64, 4);
    tensor(&m, "t", 0, NULL, 0, 64); /* one element, after a gap */
    align(&m, 64);
    size_t header = m.len;
    put_zeros(&m, 64);
    put(&m, 0x3f800000, 4);
    put_text(&m, "and more after it");
    struct outcome o = read_bytes(m.at, m.len);
    require_ok(t, o.status);
    expect(t, o.w.tensor.at[0].rank == 0 && o.w.tensor.at[0].at == o.copy + header + 64);
    outcome_free(&o);
}

/* ---- what is refused (the numbers are those of ops-special.md 2.1.4)
 * ------------------------------
 */

TEST(gguf, refuses_versions)
{
    static const uint32_t versions[] = {0, 4, 0x03000000, 0x00010000, UINT32_MAX};
    static const char *const why[] = {"version 0", "version 4", "big-endian", "big-endian",
                                      "version 4294967295"};
    struct made m;

    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) { /* G1 */
        head(&m, versions[i], 0, 0);
        expect_refused(t, &m, why[i]);
    }
}

TEST(gguf, refuses_counts)
{
    struct made m;

    head(&m, 3, 0, UINT64_MAX); /* G2 */
    put_zeros(&m, 100);
    expect_refused(t, &m, "more keys");
    head(&m, 3, 5, 0);
    put_zeros(&m, 5 * 25 - 1);
    expect_refused(t, &m, "more tensors");
    head(&m, 1, UINT32_MAX, 0);
    put_zeros(&m, 100);
    expect_refused(t, &m, "more tensors");
    head(&m, 1, 0, 11);
    put_zeros(&m, 109);
    expect_refused(t, &m, "more keys");
}

TEST(gguf, refuses_strings)
{
    static char long_name[2000];
    struct made m;

    head(&m, 3, 0, 1); /* G3 */
    put(&m, UINT64_MAX, 8);
    put_zeros(&m, 100);
    expect_refused(t, &m, "longer than the rest");
    head(&m, 3, 0, 1);
    put_string(&m, "", 0);
    put_zeros(&m, 20);
    expect_refused(t, &m, "name is empty");
    head(&m, 3, 0, 1);
    key(&m, "k", RLX_META_string);
    put(&m, 1000, 8);
    put_zeros(&m, 999);
    expect_refused(t, &m, "longer than the rest");
    memset(long_name, 'n', sizeof long_name - 1);
    head(&m, 3, 1, 0);
    tensor(&m, long_name, 1, (uint64_t[]){4}, 0, 0);
    put_zeros(&m, 64);
    expect_refused(t, &m, "longer than is allowed");
    static char long_key[65537];
    memset(long_key, 'k', sizeof long_key - 1);
    head(&m, 3, 0, 1);
    key_number(&m, long_key, RLX_META_u8, 1, 1);
    expect_refused(t, &m, "longer than is allowed");
    long_name[1023] = 0; /* one that just fits */
    head(&m, 3, 1, 0);
    tensor(&m, long_name, 1, (uint64_t[]){4}, 0, 0);
    align(&m, 32);
    put_zeros(&m, 16);
    struct outcome o = read_bytes(m.at, m.len);
    expect_ok(t, o.status);
    outcome_free(&o);
}

TEST(gguf, refuses_what_is_no_utf8)
{
    struct made m;

    head(&m, 3, 0, 1); /* G4 */
    key(&m, "k\xff", RLX_META_u8);
    put_zeros(&m, 8);
    expect_refused(t, &m, "not UTF-8");
    head(&m, 3, 0, 1);
    put_string(&m, "k\0y", 3);
    put(&m, RLX_META_u8, 4);
    put_zeros(&m, 8);
    expect_refused(t, &m, "NUL");
    head(&m, 3, 0, 1);
    key(&m, "tokenizer.k", RLX_META_string); /* a single one is text, there as well */
    put_string(&m, "\xc0\x80", 2);
    expect_refused(t, &m, "not UTF-8");
    head(&m, 3, 0, 1);
    key(&m, "other", 9);
    put(&m, RLX_META_string, 4);
    put(&m, 1, 8);
    put_string(&m, "\xed\xa0\x80", 3);
    expect_refused(t, &m, "not UTF-8");
    head(&m, 3, 1, 0);
    tensor(&m, "\xf5", 1, (uint64_t[]){4}, 0, 0);
    put_zeros(&m, 64);
    expect_refused(t, &m, "not UTF-8");
}

TEST(gguf, refuses_names_that_stand_twice)
{
    struct made m;

    head(&m, 3, 0, 2); /* G5 */
    key_number(&m, "k", RLX_META_u8, 1, 1);
    key_number(&m, "k", RLX_META_u8, 1, 1);
    expect_refused(t, &m, "two keys \"k\"");
    head(&m, 3, 2, 0);
    tensor(&m, "t", 1, (uint64_t[]){4}, 0, 0);
    tensor(&m, "t", 1, (uint64_t[]){4}, 0, 32);
    align(&m, 32);
    put_zeros(&m, 64);
    expect_refused(t, &m, "two tensors \"t\"");
}

TEST(gguf, refuses_values)
{
    static const uint32_t types[] = {13, 99, UINT32_MAX};
    struct made m;

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) { /* G6 */
        head(&m, 3, 0, 1);
        key_number(&m, "k", types[i], 0, 8);
        expect_refused(t, &m, "unknown type");
        head(&m, 3, 0, 1);
        key(&m, "k", 9);
        put(&m, types[i], 4);
        put(&m, 0, 8);
        expect_refused(t, &m, "unknown type");
    }
    head(&m, 3, 0, 1);
    key(&m, "k", 9);
    put(&m, 9, 4);
    put_zeros(&m, 20);
    expect_refused(t, &m, "array of arrays");
    head(&m, 3, 0, 1);
    key(&m, "k", 9);
    put(&m, RLX_META_u64, 4);
    put(&m, (uint64_t)1 << 61, 8);
    put_zeros(&m, 64);
    expect_refused(t, &m, "array is longer");
    head(&m, 3, 0, 1);
    key(&m, "k", 9);
    put(&m, RLX_META_string, 4);
    put(&m, 9, 8);
    put_zeros(&m, 71);
    expect_refused(t, &m, "array is longer");
    head(&m, 3, 0, 1);
    key_number(&m, "k", RLX_META_bool, 2, 1);
    expect_refused(t, &m, "neither 0 nor 1");
}

TEST(gguf, refuses_alignments)
{
    static const uint32_t wrong[] = {0, 1, 4, 12, 33, 1u << 21, 0x80000000u};
    struct made m;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) { /* G7 */
        head(&m, 3, 1, 1);
        key_number(&m, "general.alignment", RLX_META_u32, wrong[i], 4);
        finish(&m);
        expect_refused(t, &m, "power of two");
    }
    head(&m, 3, 1, 1);
    key_number(&m, "general.alignment", RLX_META_u64, 32, 8);
    finish(&m);
    expect_refused(t, &m, "is u64, not u32");
}

TEST(gguf, refuses_shapes_and_types)
{
    static const uint32_t gone[] = {4, 5, 31, 32, 33, 36, 37, 38, 43, 1000, UINT32_MAX};
    static const struct {
        uint32_t rank;
        uint64_t dim[5];
        uint32_t type;
        const char *why;
    } rows[] = {
        {5, {1, 1, 1, 1, 1}, 0, "more than 4 dims"},
        {UINT32_MAX, {1}, 0, "more than 4 dims"},
        {1, {0}, 0, "a dim is 0"},
        {2, {4, ((uint64_t)1 << 40) + 1}, 0, "above 2^40"},
        {1, {UINT64_MAX}, 0, "above 2^40"},
        {2, {(uint64_t)1 << 40, (uint64_t)1 << 40}, 0, "overflow 62 bits"},
        {2, {(uint64_t)1 << 30, (uint64_t)1 << 31}, 28, "overflow 62 bits"}, /* in bytes alone */
        {1, {31}, 2, "not whole blocks of Q4_0"},
        {2, {128, 2}, 12, "not whole blocks of Q4_K"}, /* two rows would be, but a row is not */
        {0, {0}, 8, "not whole blocks of Q8_0"},
    };
    struct made m;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) { /* G8 */
        head(&m, 3, 1, 0);
        tensor(&m, "t", rows[i].rank < 6 ? rows[i].rank : 0, rows[i].dim, rows[i].type, 0);
        if (rows[i].rank > 5)
            memset(m.at + 24 + 9, 0xff, 4);
        put_zeros(&m, 256);
        expect_refused(t, &m, rows[i].why);
    }
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) {
        head(&m, 3, 1, 0);
        tensor(&m, "t", 1, (uint64_t[]){256}, gone[i], 0);
        put_zeros(&m, 2048);
        expect_refused(t, &m, "which does not exist");
    }
}

TEST(gguf, refuses_places)
{
    static const uint64_t offsets[] = {64, 32, UINT64_MAX - 31, (uint64_t)1 << 63};
    struct made m;

    head(&m, 3, 1, 0); /* G9 */
    tensor(&m, "t", 1, (uint64_t[]){4}, 0, 0);
    expect_refused(t, &m, "ends before its data");
    head(&m, 3, 1, 0); /* G10 */
    tensor(&m, "t", 1, (uint64_t[]){4}, 0, 16);
    align(&m, 32);
    put_zeros(&m, 64);
    expect_refused(t, &m, "not aligned");
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        head(&m, 3, 1, 0);
        tensor(&m, "t", 1, (uint64_t[]){4}, 0, offsets[i]);
        align(&m, 32);
        put_zeros(&m, 47);
        expect_refused(t, &m, "does not lie in the data");
    }
    head(&m, 3, 2, 0); /* G11 */
    tensor(&m, "late", 1, (uint64_t[]){4}, 0, 32);
    tensor(&m, "early", 1, (uint64_t[]){9}, 0, 0);
    align(&m, 32);
    put_zeros(&m, 64);
    expect_refused(t, &m, "\"early\" and \"late\" overlap");
    head(&m, 3, 2, 0);
    tensor(&m, "a", 1, (uint64_t[]){4}, 0, 0);
    tensor(&m, "b", 1, (uint64_t[]){4}, 0, 0);
    align(&m, 32);
    put_zeros(&m, 64);
    expect_refused(t, &m, "overlap");
}

/* ---- types ----------------------------------------------------------------------------------- */

TEST(gguf, block_sizes_are_those_of_the_schemes)
{
    size_t packed = 0;

    for (int i = 0; i < RLX_WEIGHT_TYPE_count; i++) {
        const struct weight_type *type = weight_type((rlx_weight_type)i);
        rlx_weight_type found;
        test_note(t, "%s", type->name);
        expect(t, rlx_weight_type_find(type->name, &found) && (int)found == i);
        if (type->gguf >= 0)
            expect(t, weight_type_of_gguf((uint32_t)type->gguf, &found) && (int)found == i);
        if (*type->safetensors)
            expect(t, weight_type_of_safetensors(rlx_cstr(type->safetensors), &found) &&
                          (int)found == i);
        if (type->use == RLX_WEIGHT_PLAIN)
            expect_eq(t, type->bytes, rlx_dtype_size(type->dtype));
        if (type->use != RLX_WEIGHT_PACKED)
            continue;
        const struct quant_scheme *s = quant_scheme((int32_t)type->scheme);
        expect(t, s->is_gguf && s->block_elems == type->elems && s->block_bytes == type->bytes);
        packed++;
    }
    expect_eq(t, packed, 18);
    rlx_weight_type unused;
    expect(t, !rlx_weight_type_find("Q4", &unused) && !rlx_weight_type_find("", &unused));
    expect(t, rlx_weight_type_find("q4_k", &unused) && unused == RLX_WEIGHT_Q4_K);
}

TEST(gguf, types_are_described)
{
    rlx_weight_type_info info = {RLX_SIZED(rlx_weight_type_info)}, unsized = {.name = "?"};
    rlx_error err;

    expect_ok(t, rlx_weight_type_describe(RLX_WEIGHT_Q4_K, &info, &err));
    expect_str(t, info.name, "Q4_K");
    expect_eq(t, info.block_elems, 256);
    expect_eq(t, info.block_bytes, 144);
    expect_eq(t, info.use, RLX_WEIGHT_PACKED);
    rlx_weight_type_describe(RLX_WEIGHT_TYPE_count, &info, &err);
    expect_error(t, RLX_ERROR_DTYPE, "there is no type", &err);
    rlx_weight_type_describe(RLX_WEIGHT_F32, NULL, &err);
    expect_error(t, RLX_ERROR_ARGUMENT, "is NULL", &err);
    rlx_weight_type_describe(RLX_WEIGHT_F32, &unsized, &err);
    expect_error(t, RLX_ERROR_ARGUMENT, "RLX_SIZED(rlx_weight_type_info)", &err);
    expect_str(t, unsized.name, "?");
}
