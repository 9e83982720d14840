/* json.c: JSON on one line. The writer puts the commas; what it writes is always valid UTF-8. */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>

void json_init(struct json *j, struct text *out)
{
    *j = (struct json){.out = out};
}

static void comma(struct json *j)
{
    if (j->need_comma)
        text_add(j->out, STR(","));
    j->need_comma = true;
}

void json_open(struct json *j, char bracket)
{
    comma(j);
    text_add(j->out, (rlx_str){&bracket, 1});
    j->need_comma = false;
    j->depth++;
}

void json_close(struct json *j, char bracket)
{
    text_add(j->out, (rlx_str){&bracket, 1});
    j->need_comma = true;
    j->depth--;
}

/* The escape with a letter of its own, or NULL. */
static const char *short_escape(char c)
{
    switch (c) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: return NULL;
    }
}

static void quoted(struct json *j, rlx_str s)
{
    text_add(j->out, STR("\""));
    while (s.len) {
        size_t step = str_utf8_step(s);
        const char *escape = short_escape(s.ptr[0]);
        if (escape)
            text_add(j->out, rlx_cstr(escape));
        else if (step == 1 && (unsigned char)s.ptr[0] < 0x20)
            text_addf(j->out, "\\u%04x", (unsigned)s.ptr[0]);
        else if (step == 0)
            text_add(j->out, STR("\xef\xbf\xbd"));
        else
            text_add(j->out, (rlx_str){s.ptr, step});
        step += step == 0;
        s.ptr += step;
        s.len -= step;
    }
    text_add(j->out, STR("\""));
}

void json_key(struct json *j, const char *key)
{
    comma(j);
    quoted(j, rlx_cstr(key));
    text_add(j->out, STR(":"));
    j->need_comma = false;
}

void json_str(struct json *j, rlx_str s)
{
    comma(j);
    if (s.ptr)
        quoted(j, s);
    else
        text_add(j->out, STR("null"));
}

void json_i64(struct json *j, int64_t v)
{
    comma(j);
    text_addf(j->out, "%" PRId64, v);
}

void json_f64(struct json *j, double v)
{
    char number[32];

    comma(j);
    if (isfinite(v))
        text_add(j->out, (rlx_str){number, str_from_f64(number, v)});
    else
        text_add(j->out, STR("null"));
}

void json_bool(struct json *j, bool v)
{
    comma(j);
    text_add(j->out, v ? STR("true") : STR("false"));
}
