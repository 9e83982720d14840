/* json_test.c: commas, escapes and numbers. */
#include "base/json.h"

#include <float.h>
#include <math.h>

#include "test.h"

TEST(json, nothing_and_empty)
{
    struct text x;
    struct json j;

    text_init(&x, mem_default());
    json_init(&j, &x);
    json_open(&j, '{');
    json_key(&j, "a");
    json_open(&j, '[');
    json_close(&j, ']');
    json_key(&j, "b");
    json_open(&j, '{');
    json_close(&j, '}');
    json_close(&j, '}');
    expect_eq(t, j.depth, 0);
    expect_str(t, x.at, "{\"a\":[],\"b\":{}}");
    text_free(&x);
}

TEST(json, values_are_separated)
{
    struct text x;
    struct json j;

    text_init(&x, mem_default());
    json_init(&j, &x);
    json_open(&j, '[');
    json_i64(&j, INT64_MIN);
    json_i64(&j, 0);
    json_f64(&j, 0.1);
    json_f64(&j, -0.0);
    json_f64(&j, DBL_MAX);
    json_f64(&j, (double)NAN);
    json_f64(&j, -HUGE_VAL);
    json_bool(&j, true);
    json_bool(&j, false);
    json_open(&j, '{');
    json_key(&j, "k");
    json_str(&j, STR("v"));
    json_key(&j, "n");
    json_str(&j, (rlx_str){NULL, 0});
    json_close(&j, '}');
    json_str(&j, STR(""));
    json_close(&j, ']');
    expect_str(t, x.at,
               "[-9223372036854775808,0,0.1,-0,1.7976931348623157e308,null,null,true,false,"
               "{\"k\":\"v\",\"n\":null},\"\"]");
    text_free(&x);
}

TEST(json, text_is_escaped)
{
    struct text x;
    struct json j;

    text_init(&x, mem_default());
    json_init(&j, &x);
    json_str(&j, STR("q\" b\\ \n\r\t \x01\x1f\x7f /"));
    json_key(&j, "\"");
    json_str(&j, STR("a\0b \xc3\xa4 \xff\xc0\xaf \xed\xa0\x80 \xf0\x9f"));
    expect_str(t, x.at,
               "\"q\\\" b\\\\ \\n\\r\\t \\u0001\\u001f\x7f /\",\"\\\"\":"
               "\"a\\u0000b \xc3\xa4 \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd "
               "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd\"");
    expect(t, str_is_utf8((rlx_str){x.at, x.len}));
    text_free(&x);
}

static rlx_status write_some(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct text x;
    struct json j;
    (void)t;
    (void)ctx;

    text_init(&x, mem);
    json_init(&j, &x);
    json_open(&j, '[');
    for (int i = 0; i < 50; i++) {
        json_i64(&j, i);
        json_str(&j, STR("te\nxt"));
    }
    json_close(&j, ']');
    rlx_status s = x.failed ? RLX_ERROR_MEMORY : RLX_OK;
    text_free(&x);
    return s;
}

TEST(json, survives_no_memory)
{
    expect_survives_no_memory(t, write_some, NULL);
}
