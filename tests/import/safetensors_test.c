/* safetensors_test.c: safetensors files, and one for each rule that refuses them. */
#include <stdio.h>

#include "bytes_world.h"

static void file_of(struct made *m, const char *header, size_t data)
{
    *m = (struct made){.len = 0};
    put(m, strlen(header), 8);
    put_text(m, header);
    for (size_t i = 0; i < data; i++)
        put(m, i, 1);
}

static const char good[] =
    "{\"__metadata__\":{\"format\":\"pt\",\"a\\u00e9\\\"\":\"\\ud83d\\ude00\\n\"},"
    "\"b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[8,32]},\n"
    " \"a\" : { \"data_offsets\" : [ 0 , 8 ] , \"shape\" : [] , \"dtype\" : \"I64\" },"
    "\"none\":{\"dtype\":\"BF16\",\"shape\":[0,7],\"data_offsets\":[8,8]},"
    "\"bits\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[32,35]}}   ";

TEST(safetensors, is_read)
{
    struct made m;
    size_t i;
    rlx_str s = {NULL, 0};

    file_of(&m, good, 35);
    struct outcome o = read_bytes(m.at, m.len);
    test_note(t, "%s", o.diag.first.message);
    require_ok(t, o.status);
    require(t, o.w.tensor.len == 4 && o.w.meta.len == 2);
    require(t, weights_find(&o.w, STR("b"), &i));
    const struct weight *b = &o.w.tensor.at[i];
    expect(t, b->type == RLX_WEIGHT_F32 && b->rank == 2 && b->dim[0] == 2 && b->dim[1] == 3);
    expect(t, b->at == o.copy + 8 + strlen(good) + 8 && b->bytes == 24);
    require(t, weights_find(&o.w, STR("none"), &i));
    expect(t, o.w.tensor.at[i].bytes == 0 && o.w.tensor.at[i].dim[1] == 7);
    expect_ok(t, meta_get_str(&o.w, STR("a\xc3\xa9\""), &s, NULL));
    expect(t, str_eq(s, STR("\xf0\x9f\x98\x80\n")));
    outcome_free(&o);
    file_of(&m, "{}", 0);
    o = read_bytes(m.at, m.len);
    expect_ok(t, o.status);
    outcome_free(&o);
}

TEST(safetensors, seeds_of_the_fuzzer)
{
    struct made m;

    file_of(&m, good, 35);
    check_seed(t, "safetensors/types.safetensors", &m);
    file_of(&m, "{}", 0);
    check_seed(t, "safetensors/empty.safetensors", &m);
}

TEST(safetensors, cut_anywhere_it_is_refused)
{
    struct made m;

    file_of(&m, good, 35);
    check_cuts(t, &m, m.len);
}

TEST(safetensors, turned_bits_do_no_harm)
{
    struct made m;

    file_of(&m, good, 35);
    check_flips(t, &m, 8 + strlen(good));
}

TEST(safetensors, survives_no_memory)
{
    struct made m;

    file_of(&m, good, 35);
    expect_survives_no_memory(t, read_once, &m);
}

TEST(safetensors, refuses_lengths)
{
    struct made m;

    file_of(&m, "{", 9);
    expect_refused(t, &m, "header of 1 bytes");
    m = (struct made){.len = 0};
    put(&m, 100000001, 8);
    put_text(&m, "{}");
    check_refused(t, __LINE__, &m, RLX_ERROR_FORMAT, "a file of tensors (");
    m = (struct made){.len = 0};
    put(&m, 3, 8);
    put_text(&m, "{}");
    expect_refused(t, &m, "header of 3 bytes");
    file_of(&m, "{\"\xff\":{}}", 0);
    expect_refused(t, &m, "not UTF-8");
}

/* A header of one tensor "t" with those members, over that many bytes. */
static void refuse_tensor(struct test *t, int line, const char *members, size_t data,
                          const char *why)
{
    struct made m;
    char header[512];

    snprintf(header, sizeof header, "{\"t\":{%s}}", members);
    file_of(&m, header, data);
    check_refused(t, line, &m, RLX_ERROR_FORMAT, why);
}
#define refuse(members, data, why) refuse_tensor(t, __LINE__, members, data, why)
#define F32_4 "\"dtype\":\"F32\",\"shape\":[1]"

TEST(safetensors, refuses_members)
{
    refuse("\"dtype\":\"F32\",\"shape\":[1]", 4, "needs dtype, shape and data_offsets");
    refuse("", 0, "needs dtype, shape and data_offsets");
    refuse(F32_4 ",\"data_offsets\":[0,4],\"x\":1", 4, "unknown member");
    refuse(F32_4 ",\"shape\":[1],\"data_offsets\":[0,4]", 4, "given twice");
    refuse("\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]", 4, "no dtype \"F33\"");
    refuse("\"dtype\":\"\",\"shape\":[1],\"data_offsets\":[0,4]", 4, "no dtype \"\"");
    refuse("\"dtype\":1,\"shape\":[1],\"data_offsets\":[0,4]", 4, "a string was expected");
}

TEST(safetensors, refuses_numbers)
{
    static const char *const numbers[] = {
        "-1",  "1.0", "1e0", "01", "+1", "\"1\"", "null", "", "99999999999999999999",
        "0x1", "1.",  "00"};
    char members[256];

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        snprintf(members, sizeof members,
                 "\"dtype\":\"F32\",\"shape\":[%s,1],\"data_offsets\":[0,4]", numbers[i]);
        refuse(members, 4, "byte ");
        snprintf(members, sizeof members, F32_4 ",\"data_offsets\":[0,%s]", numbers[i]);
        refuse(members, 4, "byte ");
    }
    refuse("\"dtype\":\"F32\",\"shape\":[1099511627777],\"data_offsets\":[0,4]", 4, "above 2^40");
    refuse("\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]",
           1, "more than 16 dims");
    refuse("\"dtype\":\"U8\",\"shape\":[1099511627776,1099511627776],\"data_offsets\":[0,4]", 4,
           "overflows");
    refuse("\"dtype\":\"U8\",\"shape\":[1099511627776,1099511627776,0],\"data_offsets\":[0,0]", 0,
           "overflows");
    refuse("\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]", 2, "whole number");
    refuse("\"dtype\":\"F6_E3M2\",\"shape\":[2],\"data_offsets\":[0,2]", 2, "whole number");
}

TEST(safetensors, refuses_places)
{
    struct made m;

    refuse(F32_4 ",\"data_offsets\":[4,0]", 4, "does not lie in the data");
    refuse(F32_4 ",\"data_offsets\":[0,8]", 4, "does not lie in the data");
    refuse(F32_4 ",\"data_offsets\":[18446744073709551615,3]", 4, "does not lie");
    refuse(F32_4 ",\"data_offsets\":[0,3]", 4, "takes 4 bytes, its place has 3");
    refuse(F32_4 ",\"data_offsets\":[0,4,8]", 8, "two numbers");
    refuse(F32_4 ",\"data_offsets\":[0]", 8, "two numbers");
    refuse(F32_4 ",\"data_offsets\":[4,8]", 8, "begins after");
    refuse(F32_4 ",\"data_offsets\":[0,4]", 5, "1 bytes belong to no tensor");
    file_of(&m, "{}", 1);
    expect_refused(t, &m, "belong to no tensor");
    file_of(&m,
            "{\"a\":{" F32_4 ",\"data_offsets\":[0,4]},\"b\":{" F32_4 ",\"data_offsets\":[2,6]}}",
            6);
    expect_refused(t, &m, "\"b\" begins before");
    file_of(&m,
            "{\"a\":{" F32_4 ",\"data_offsets\":[0,4]},\"b\":{" F32_4 ",\"data_offsets\":[0,4]}}",
            4);
    expect_refused(t, &m, "begins before");
}

TEST(safetensors, refuses_json)
{
    static const struct {
        const char *header, *why;
    } rows[] = {
        {"{\"a\":1}", "an object was expected"},
        {"{\"a\"}", "a colon"},
        {"{a:{}}", "a string was expected"},
        {"{}x", "after the header"},
        {"{}\n", "after the header"},
        {"{,}", "a string was expected"},
        {"{\"__metadata__\":{},}", "a string was expected"},
        {"{\"__metadata__\":{\"a\":1}}", "a string was expected"},
        {"{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", "two keys \"a\""},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", "given twice"},
        {"{\"__metadata__\":{\"a\":\"\\x\"}}", "escape"},
        {"{\"__metadata__\":{\"a\":\"\\ud800\"}}", "half a character"},
        {"{\"__metadata__\":{\"a\":\"\\ud800\\u0041\"}}", "half a character"},
        {"{\"__metadata__\":{\"a\":\"\\udc00\"}}", "half a character"},
        {"{\"__metadata__\":{\"a\":\"\t\"}}", "control character"},
        {"{\"__metadata__\":{\"a\":\"b}}", "no end"},
        {"{\"__metadata__\":{\"a\":\"b\\\"}}", "no end"},
        {"{\"__metadata__\":{\"a\":\"\\u12\"}}", "escape"},
        {"{\"__metadata__\":{}", "comma or a closing bracket"},
        {"{\"t\":{\"shape\":[[[[[[[[1]]]]]]]]}}", "byte "},
    };
    struct made m;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        file_of(&m, rows[i].header, 0);
        check_refused(t, (int)i, &m, RLX_ERROR_FORMAT, rows[i].why);
    }
    file_of(&m,
            "{\"a\":{" F32_4 ",\"data_offsets\":[0,4]},\"\\u0061\":{" F32_4
            ",\"data_offsets\":[4,8]}}",
            8);
    expect_refused(t, &m, "two tensors \"a\"");
}
