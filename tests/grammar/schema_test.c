/* schema_test.c: JSON schemas: texts that are valid and taken, texts that are not, and what is
 * refused. */
#include "grammar_world.h"

#define TRY_SCHEMA(schema, good, bad) try_texts(t, (schema), true, (good), (bad))

TEST(schema, any_json_is_what_the_empty_schema_allows)
{
    static const char *const good[] = {
        "null",        "true",
        "-0.5e+10",    "\"\"",
        "[]",          "{}",
        "[1, [], {}]", "{\"a\":{\"b\": [null,\n  \"\\u00e9\\ud83d\\ude00\\n\"]}}",
        "{ \"\": 0 }", NULL};
    static const char *const bad[] = {
        "",      "nul",     "01",    "1.",         ".5",     "+1", "\"\\x\"", "\"\\ud83d\"", "[1,]",
        "[1 2]", "{\"a\"}", "{a:1}", "{\"a\":1,}", "\"\n\"", "1 ", " 1",      "[  1]",       NULL};

    TRY_SCHEMA("{}", good, bad);
    TRY_SCHEMA("true", good, bad);
    TRY_SCHEMA("{\"title\": \"x\", \"x-foo\": {}, \"$defs\": {\"a\": false}}", good, bad);
}

TEST(schema, types_are_followed)
{
    TRY_SCHEMA("{\"type\":\"string\"}", LIST("\"a\"", "\"\\\"\""), LIST("a", "1", "\"\x01\""));
    TRY_SCHEMA("{\"type\":\"boolean\"}", LIST("true", "false"), LIST("null", "True"));
    TRY_SCHEMA("{\"type\":\"null\"}", LIST("null"), LIST("0", "\"null\""));
    TRY_SCHEMA("{\"type\":\"integer\"}", LIST("0", "-17", "9007199254740993"),
               LIST("1.0", "-0", "00", "1e3", "12345678901234567"));
    TRY_SCHEMA("{\"type\":\"number\"}", LIST("0", "-0", "1.50", "-1e-10"), LIST("1e100", "--1"));
    TRY_SCHEMA("{\"type\":[\"integer\",\"null\"]}", LIST("5", "null"), LIST("\"5\"", "5.5"));
    TRY_SCHEMA("{\"type\":\"object\"}", LIST("{}", "{\"a\":[1]}"), LIST("[]", "1"));
    TRY_SCHEMA("{\"type\":\"array\"}", LIST("[]", "[{}, 1]"), LIST("{}"));
    TRY_SCHEMA("{\"minLength\":2}", LIST("\"ab\""), LIST("\"a\"", "[]"));
}

TEST(schema, keys_come_in_their_order_and_optional_ones_may_be_missing)
{
#define THREE \
    "\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"null\"},\"c\":{\"enum\":[1]}}"
    TRY_SCHEMA("{\"type\":\"object\"," THREE "}",
               LIST("{}", "{ }", "{\"a\":1}", "{\"b\":null}", "{\"c\":1}", "{\"a\":1,\"b\":null}",
                    "{\"a\":1, \"c\":1}", "{\"b\":null, \"c\":1}",
                    "{\n  \"a\": 1,\n  \"b\": null,\n  \"c\": 1\n}"),
               LIST("{\"b\":null,\"a\":1}", "{,\"a\":1}", "{\"a\":1,}", "{\"a\":1,\"a\":1}",
                    "{\"d\":1}", "{\"a\":null}"));
    TRY_SCHEMA("{" THREE ",\"required\":[\"b\"]}",
               LIST("{\"b\":null}", "{\"a\":1,\"b\":null}", "{\"b\":null,\"c\":1}",
                    "{\"a\":1,\"b\":null,\"c\":1}"),
               LIST("{}", "{\"a\":1}", "{\"a\":1,\"c\":1}"));
    TRY_SCHEMA("{" THREE ",\"required\":[\"a\",\"c\"]}",
               LIST("{\"a\":1,\"c\":1}", "{\"a\":1,\"b\":null,\"c\":1}"),
               LIST("{\"a\":1}", "{\"c\":1}", "{\"a\":1,\"b\":null}"));
    TRY_SCHEMA("{" THREE ",\"required\":[\"c\"],\"additionalProperties\":false}",
               LIST("{\"c\":1}", "{\"a\":1,\"c\":1}", "{\"a\":1,\"b\":null,\"c\":1}"),
               LIST("{}", "{\"c\":1,\"d\":1}"));
    TRY_SCHEMA("{\"properties\":{\"q\\\"\\n\":true}}", LIST("{\"q\\\"\\n\":[]}", "{}"),
               LIST("{\"q\":1}"));
    TRY_SCHEMA("{\"properties\":{\"a\":false,\"b\":true}}", LIST("{}", "{\"b\":0}"),
               LIST("{\"a\":0}"));
    TRY_SCHEMA("{\"required\":[\"x\"],\"properties\":{\"y\":{\"type\":\"null\"}}}",
               LIST("{\"x\":1}", "{\"y\":null,\"x\":[]}"), LIST("{}", "{\"y\":null}"));
    TRY_SCHEMA("{\"properties\":{},\"additionalProperties\":false}", LIST("{}"), LIST("{\"a\":1}"));
}

TEST(schema, other_keys_are_none_of_those_listed)
{
#define LISTED \
    "\"properties\":{\"ab\":{\"type\":\"null\"},\"a\":{\"type\":\"null\"},\"b\xc3\xa9\":true}"
    TRY_SCHEMA("{" LISTED ",\"additionalProperties\":{\"type\":\"integer\"}}",
               LIST("{}", "{\"ab\":null}", "{\"ab\":null,\"c\":1}",
                    "{\"a\":null,\"abc\":1,\"x\":2}", "{\"b\":1}", "{\"\":1}",
                    "{\"b\xc3\xa8\":1, \"b\xc3\xa9\xc3\xa9\":2}", "{\"aa\":1}",
                    "{\"b\xc3\xa9\":[]}"),
               LIST("{\"ab\":1}", "{\"a\":1}", "{\"c\":null}", "{\"c\":1,\"ab\":null}",
                    "{\"\\u0061\":1}", "{\"c\":1,\"a\":2}"));
    TRY_SCHEMA("{\"additionalProperties\":{\"type\":\"integer\"}}",
               LIST("{}", "{\"a\":1}", "{\"\\n\":1,\"b\":2}"), LIST("{\"a\":null}"));
    TRY_SCHEMA("{\"properties\":{\"a\":{\"type\":\"null\"}},\"required\":[\"a\"],"
               "\"additionalProperties\":true}",
               LIST("{\"a\":null}", "{\"a\":null,\"b\":[1]}"), LIST("{}", "{\"b\":1}"));
}

TEST(schema, arrays_have_their_elements)
{
    TRY_SCHEMA("{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}",
               LIST("[]", "[1]", "[1, 2,3]"), LIST("[null]", "[1,]"));
    TRY_SCHEMA("{\"items\":{\"enum\":[7]},\"minItems\":2,\"maxItems\":3}", LIST("[7,7]", "[7,7,7]"),
               LIST("[]", "[7]", "[7,7,7,7]"));
    TRY_SCHEMA("{\"items\":{\"enum\":[7]},\"maxItems\":1}", LIST("[]", "[7]"), LIST("[7,7]"));
    TRY_SCHEMA("{\"items\":{\"enum\":[7]},\"maxItems\":0}", LIST("[]"), LIST("[7]"));
#define FIRSTS "\"prefixItems\":[{\"enum\":[1]},{\"enum\":[2]},{\"enum\":[3]}]"
    TRY_SCHEMA("{" FIRSTS "}", LIST("[]", "[1]", "[1,2]", "[1,2,3]"),
               LIST("[2]", "[1,2,3,4]", "[1,3]"));
    TRY_SCHEMA("{" FIRSTS ",\"minItems\":2,\"items\":{\"enum\":[9]}}",
               LIST("[1,2]", "[1,2,3]", "[1,2,3,9]", "[1,2,3,9,9]"),
               LIST("[]", "[1]", "[1,2,9]", "[1,2,3,4]"));
    TRY_SCHEMA("{" FIRSTS ",\"items\":true,\"minItems\":4,\"maxItems\":5}",
               LIST("[1,2,3,0]", "[1,2,3,null,\"\"]"), LIST("[1,2,3]", "[1,2,3,4,5,6]"));
    TRY_SCHEMA("{" FIRSTS ",\"maxItems\":2}", LIST("[]", "[1,2]"), LIST("[1,2,3]"));
    TRY_SCHEMA("{" FIRSTS ",\"items\":false,\"minItems\":3}", LIST("[1,2,3]"), LIST("[1,2]"));
    TRY_SCHEMA("{\"items\":[{\"enum\":[1]}],\"additionalItems\":{\"type\":\"null\"}}",
               LIST("[]", "[1]", "[1,null]"), LIST("[null]", "[1,2]"));
}

TEST(schema, strings_keep_to_lengths_formats_and_patterns)
{
    TRY_SCHEMA("{\"type\":\"string\",\"minLength\":1,\"maxLength\":3}",
               LIST("\"a\"", "\"\xc3\xa9\\n\xf0\x9f\x98\x80\"", "\"\\ud83d\\ude00\\u00e9b\""),
               LIST("\"\"", "\"abcd\""));
    TRY_SCHEMA("{\"format\":\"date\"}", LIST("\"2024-01-31\"", "\"0000-02-28\"", "\"1999-11-30\""),
               LIST("\"2024-02-30\"", "\"2024-13-01\"", "\"2024-04-31\"", "\"24-01-01\""));
    TRY_SCHEMA("{\"format\":\"time\"}", LIST("\"23:59:59Z\"", "\"00:00:00.25+01:30\""),
               LIST("\"24:00:00Z\"", "\"12:00:00\"", "\"12:60:00Z\""));
    TRY_SCHEMA("{\"format\":\"date-time\"}", LIST("\"2024-12-31T12:00:00-08:00\""),
               LIST("\"2024-12-31 12:00:00Z\""));
    TRY_SCHEMA("{\"format\":\"uuid\"}", LIST("\"123e4567-e89b-12d3-a456-426614174000\""),
               LIST("\"123e4567e89b12d3a456426614174000\""));
    TRY_SCHEMA("{\"pattern\":\"^a+b?$\"}", LIST("\"a\"", "\"aab\""), LIST("\"b\"", "\"ab \""));
    TRY_SCHEMA("{\"pattern\":\"ab\"}", LIST("\"ab\"", "\"xaby\"", "\"aab\\n\""), LIST("\"a\""));
    TRY_SCHEMA("{\"pattern\":\"^a|b$\"}", LIST("\"ax\"", "\"xb\""), LIST("\"xa\"", "\"bx\""));
    TRY_SCHEMA("{\"pattern\":\"^(?:[A-Z]{2}-\\\\d{3,4}|(x|y)*z{2,}?)$\"}",
               LIST("\"AB-123\"", "\"ZZ-0000\"", "\"xyxzz\"", "\"zzz\""),
               LIST("\"AB-12\"", "\"z\"", "\"Ab-123\""));
    TRY_SCHEMA("{\"pattern\":\"^[\\\"\\\\\\\\\\\\n]\\\\.\\\\u0041[^a]$\"}",
               LIST("\"\\\".Ab\"", "\"\\\\.A\\\"\"", "\"\\n.A\xc3\xa9\""),
               LIST("\"n.Ab\"", "\"\\\"xAb\"", "\"\\\".Aa\""));
    TRY_SCHEMA("{\"pattern\":\"^\\\\w\\\\s\\\\S\\\\W.$\"}", LIST("\"_\\t\\\"- \"", "\"a b-c\""),
               LIST("\"- b-x\"", "\"a bbx\""));
}

TEST(schema, numbers_keep_to_their_bounds)
{
    static const struct {
        int64_t lo, hi;
    } ranges[] = {{0, 9},     {0, 10},   {5, 5},      {7, 123},    {38, 120},  {100, 999},
                  {99, 1001}, {-5, 5},   {-120, -38}, {-100, 0},   {-1, 1000}, {190, 210},
                  {0, 0},     {1, 1000}, {-7, -7},    {1095, 1101}};
    char schema[128], number[32];

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        struct trial r;
        snprintf(schema, sizeof schema, "{\"type\":\"integer\",\"minimum\":%d,\"maximum\":%d}",
                 (int)ranges[i].lo, (int)ranges[i].hi);
        test_note(t, "%s", schema);
        require(t, trial_begin(t, &r, schema, true));
        for (int64_t n = -1300; n <= 1300; n++) {
            snprintf(number, sizeof number, "%d", (int)n);
            expect(t, (trial_text(&r, rlx_cstr(number)) == WHOLE) ==
                          (n >= ranges[i].lo && n <= ranges[i].hi));
        }
        expect(t, trial_text(&r, rlx_cstr("-0")) == REFUSED || ranges[i].lo < 0);
        trial_end(&r);
    }
    test_note(t, "%s", "");
    TRY_SCHEMA("{\"type\":\"integer\",\"exclusiveMinimum\":3,\"maximum\":12.5}",
               LIST("4", "10", "12"), LIST("3", "13", "-4"));
    TRY_SCHEMA("{\"type\":\"integer\",\"minimum\":17}", LIST("17", "99", "100", "9999999999999999"),
               LIST("16", "9", "-17", "017"));
    TRY_SCHEMA("{\"type\":\"integer\",\"maximum\":-3}", LIST("-3", "-1000"), LIST("-2", "3", "0"));
    TRY_SCHEMA("{\"minimum\":0,\"maximum\":1}", LIST("0", "0.5", "1", "1.0", "0.999"),
               LIST("1.5", "-0.1", "2", "1.01"));
    TRY_SCHEMA("{\"type\":\"number\",\"exclusiveMinimum\":0}", LIST("0.1", "1", "10.5", "0.01"),
               LIST("0", "0.0", "-1", "0.00"));
    TRY_SCHEMA("{\"type\":\"number\",\"minimum\":-2,\"exclusiveMaximum\":12}",
               LIST("-2", "-1.5", "-0.5", "0", "11.99", "10", "-2.0"),
               LIST("12", "12.0", "-2.1", "-3", "13"));
    TRY_SCHEMA("{\"type\":\"number\",\"exclusiveMaximum\":0}", LIST("-0.5", "-7", "-100.25"),
               LIST("0", "-0", "-0.0", "1"));
    TRY_SCHEMA("{\"type\":\"number\",\"minimum\":-10,\"maximum\":-5}", LIST("-5", "-7.5", "-10"),
               LIST("-4.9", "-10.1", "7", "0"));
}

TEST(schema, values_that_are_given_are_the_only_ones)
{
    TRY_SCHEMA("{\"enum\":[\"a\\\"\\n\xc3\xa9\",1,null,[1,{\"x\":2}],1.50]}",
               LIST("\"a\\\"\\n\xc3\xa9\"", "1", "null", "[1,{\"x\":2}]", "1.50"),
               LIST("\"a\"", "2", "[1]", "1.5"));
    TRY_SCHEMA("{\"const\":{\"a\":[]}}", LIST("{\"a\":[]}"), LIST("{}", "{\"a\":[1]}"));
    TRY_SCHEMA("{\"type\":\"string\",\"enum\":[\"x\",1]}", LIST("\"x\""), LIST("1"));
    TRY_SCHEMA("{\"type\":\"integer\",\"enum\":[\"x\",1,2.5]}", LIST("1"), LIST("2.5"));
}

TEST(schema, schemas_are_put_together)
{
    TRY_SCHEMA("{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"integer\",\"minimum\":10}]}",
               LIST("null", "10", "11"), LIST("9", "\"\""));
    TRY_SCHEMA("{\"oneOf\":[{\"const\":1},{\"const\":2}]}", LIST("1", "2"), LIST("3"));
    TRY_SCHEMA("{\"type\":\"object\",\"properties\":{\"k\":{\"const\":0}},\"required\":[\"k\"],"
               "\"anyOf\":[{\"properties\":{\"a\":{\"const\":1}},\"required\":[\"a\"]},"
               "{\"properties\":{\"b\":{\"const\":2}}}]}",
               LIST("{\"k\":0,\"a\":1}", "{\"k\":0}", "{\"k\":0,\"b\":2}"),
               LIST("{}", "{\"a\":1}", "{\"k\":0,\"a\":1,\"b\":2}"));
    TRY_SCHEMA("{\"allOf\":[{\"properties\":{\"a\":{\"minimum\":2}},\"required\":[\"a\"]},"
               "{\"properties\":{\"a\":{\"type\":\"integer\",\"maximum\":4},\"b\":{\"const\":1}}},"
               "{\"$ref\":\"#/$defs/c\"}],\"$defs\":{\"c\":{\"required\":[\"b\"]}}}",
               LIST("{\"a\":2,\"b\":1}", "{\"a\":4,\"b\":1}"),
               LIST("{\"a\":2}", "{\"a\":5,\"b\":1}"));
    TRY_SCHEMA("{\"allOf\":[{\"type\":[\"string\",\"null\"]},{\"type\":[\"null\",\"integer\"]}]}",
               LIST("null"), LIST("\"\"", "1"));
    TRY_SCHEMA("{\"allOf\":[{\"enum\":[1,2,3]},{\"enum\":[2,3,4]}]}", LIST("2", "3"),
               LIST("1", "4"));
    TRY_SCHEMA("{\"allOf\":[true,{\"type\":\"null\"}]}", LIST("null"), LIST("1"));
}

TEST(schema, parts_are_found_by_name_and_may_name_themselves)
{
    TRY_SCHEMA("{\"$ref\":\"#/definitions/a~1b~01%25\",\"definitions\":{\"a/b~1%\":{\"const\":1}}}",
               LIST("1"), LIST("2"));
    TRY_SCHEMA(
        "{\"$ref\":\"#/$defs/list\",\"$defs\":{\"list\":{\"type\":\"object\",\"properties\":{"
        "\"v\":{\"type\":\"integer\"},\"next\":{\"anyOf\":[{\"$ref\":\"#/$defs/list\"},"
        "{\"type\":\"null\"}]}},\"required\":[\"v\",\"next\"]}}}",
        LIST("{\"v\":1,\"next\":null}", "{\"v\":1,\"next\":{\"v\":2,\"next\":null}}"),
        LIST("{\"v\":1}", "{\"v\":1,\"next\":{}}"));
    TRY_SCHEMA("{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}", LIST("[]", "[[],[[]]]"),
               LIST("[1]"));
    TRY_SCHEMA("{\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"$ref\":\"#/properties/a\","
               "\"description\":\"as a\"},\"c\":{\"$ref\":\"#/properties/a\",\"minimum\":5}}}",
               LIST("{\"a\":1,\"b\":2,\"c\":5}"), LIST("{\"c\":4}", "{\"b\":null}"));
    TRY_SCHEMA("{\"prefixItems\":[{\"const\":1},{\"$ref\":\"#/prefixItems/0\"}]}", LIST("[1,1]"),
               LIST("[1,2]"));
}

TEST(schema, what_is_not_understood_is_refused_by_name)
{
    static const struct {
        const char *text, *part;
        rlx_status status;
    } cases[] = {
        {"", "a value was expected", RLX_ERROR_FORMAT},
        {"{", "byte 1", RLX_ERROR_FORMAT},
        {"[]", "#: a schema is to be an object", RLX_ERROR_FORMAT},
        {"\"\xff\"", "not UTF-8", RLX_ERROR_FORMAT},
        {"false", "nothing may stand here", RLX_ERROR_FORMAT},
        {"{\"type\":\"x\"}", "no type \"x\"", RLX_ERROR_FORMAT},
        {"{\"type\":[]}", "no type is left", RLX_ERROR_FORMAT},
        {"{\"type\":1,\"type\":2}", "\"type\" comes twice", RLX_ERROR_FORMAT},
        {"{\"minLength\":01}", "a number", RLX_ERROR_FORMAT},
        {"{\"properties\":{\"a\":{\"not\":{}}}}", "#/properties/a: the keyword \"not\"",
         RLX_ERROR_UNSUPPORTED},
        {"{\"items\":{\"uniqueItems\":true}}", "#/items: the keyword \"uniqueItems\"",
         RLX_ERROR_UNSUPPORTED},
        {"{\"format\":\"email\"}", "the format \"email\" is not known", RLX_ERROR_UNSUPPORTED},
        {"{\"pattern\":\"(?=a)\"}", "pattern \"(?=a)\", byte 2: of groups", RLX_ERROR_UNSUPPORTED},
        {"{\"pattern\":\"a\\\\b\"}", "this escape is not known", RLX_ERROR_UNSUPPORTED},
        {"{\"pattern\":\"(a)\\\\1\"}", "this escape is not known", RLX_ERROR_UNSUPPORTED},
        {"{\"pattern\":\"a^\"}", "this sign may not stand here", RLX_ERROR_UNSUPPORTED},
        {"{\"pattern\":\"*\"}", "this sign may not stand here", RLX_ERROR_UNSUPPORTED},
        {"{\"pattern\":\"a)\"}", "a ) without its (", RLX_ERROR_UNSUPPORTED},
        {"{\"pattern\":\"(a\"}", "a ) was expected", RLX_ERROR_UNSUPPORTED},
        {"{\"pattern\":\"[a\"}", "a class has no end", RLX_ERROR_UNSUPPORTED},
        {"{\"pattern\":\"a{99999}\"}", "a count is too large", RLX_ERROR_UNSUPPORTED},
        {"{\"pattern\":\"a\",\"minLength\":1}", "only one of", RLX_ERROR_UNSUPPORTED},
        {"{\"enum\":[]}", "none of the values", RLX_ERROR_FORMAT},
        {"{\"enum\":[\"a\"],\"minLength\":1}", "\"minLength\" beside enum", RLX_ERROR_UNSUPPORTED},
        {"{\"minLength\":3,\"maxLength\":2}", "minLength is 3 and maxLength 2", RLX_ERROR_FORMAT},
        {"{\"minLength\":100000}", "minLength is above 16384", RLX_ERROR_LIMIT},
        {"{\"minLength\":-1}", "minLength is to be an integer", RLX_ERROR_FORMAT},
        {"{\"prefixItems\":[true],\"items\":false,\"minItems\":2}", "minItems is 2",
         RLX_ERROR_FORMAT},
        {"{\"minimum\":3,\"maximum\":2}", "no number lies between", RLX_ERROR_FORMAT},
        {"{\"type\":\"number\",\"minimum\":0.5}", "minimum is 0.5", RLX_ERROR_UNSUPPORTED},
        {"{\"minimum\":1e30}", "at most 16 digits", RLX_ERROR_LIMIT},
        {"{\"required\":[\"a\"],\"properties\":{},\"additionalProperties\":false}",
         "\"a\" is required", RLX_ERROR_FORMAT},
        {"{\"required\":[1]}", "an array of names", RLX_ERROR_FORMAT},
        {"{\"properties\":{\"a\":false},\"required\":[\"a\"]}", "#/properties/a: nothing may stand",
         RLX_ERROR_FORMAT},
        {"{\"anyOf\":[]}", "#: anyOf is to be an array", RLX_ERROR_FORMAT},
        {"{\"$ref\":\"#/$defs/a\"}", "there is no such part", RLX_ERROR_FORMAT},
        {"{\"$ref\":\"other.json\"}", "only parts of the same document", RLX_ERROR_UNSUPPORTED},
        {"{\"$ref\":\"#\"}", "begins with itself", RLX_ERROR_FORMAT},
        {"{\"allOf\":[{\"$ref\":\"#\"}]}", "without an end", RLX_ERROR_LIMIT},
        {"{\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}", "never ends",
         RLX_ERROR_FORMAT},
        {"{\"allOf\":[{\"pattern\":\"a\"},{\"pattern\":\"b\"}]}", "different values of \"pattern\"",
         RLX_ERROR_UNSUPPORTED},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trial r;
        test_note(t, "%.80s", cases[i].text);
        expect(t, !trial_begin(t, &r, cases[i].text, true));
        expect_error(t, cases[i].status, cases[i].part, &r.err);
        trial_end(&r);
    }
}
