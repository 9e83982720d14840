/* tpl_functions.c: functions that every template has. */
#include <stdio.h>
#include <string.h>

#include "text/template/tpl_call.h"

/* Pairs from a dict, if one is given, then from arguments with names. */
static rlx_status collect(struct tpl_call *c, struct tpl_dict **out)
{
    const size_t plain = c->all.count - c->all.names;

    TRY(tpl_dict_new(c->r, out));
    if (plain > 1 || (plain && c->all.at[0].kind != TPL_DICT))
        return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "%s takes one dict, and arguments with names",
                       c->fn->name);
    for (size_t i = 0; plain && i < c->all.at[0].u.dict->count; i++) {
        const struct tpl_pair *p = &c->all.at[0].u.dict->at[i];
        TRY(tpl_dict_set(c->r, *out, p->key, p->value));
    }
    for (size_t i = 0; i < c->all.names; i++)
        TRY(tpl_dict_set_name(c->r, *out, c->all.name[i], c->all.at[plain + i]));
    return RLX_OK;
}

static rlx_status make_namespace(struct tpl_call *c)
{
    c->out.kind = TPL_NAMESPACE;
    return collect(c, &c->out.u.dict);
}

static rlx_status make_dict(struct tpl_call *c)
{
    c->out.kind = TPL_DICT;
    return collect(c, &c->out.u.dict);
}

static rlx_status range(struct tpl_call *c)
{
    int64_t begin = 0, end, step;
    struct tpl_list *l;

    TRY(tpl_arg_int(c, 0, 0, &end));
    TRY(tpl_arg_int(c, 2, 1, &step));
    if (tpl_given(c, 1)) {
        begin = end;
        TRY(tpl_arg_int(c, 1, 0, &end));
    }
    if (step == 0)
        return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "range: the step is 0");
    TRY(tpl_list_new(c->r, &l));
    enum { MOST = 100000 };
    for (int64_t i = begin; step > 0 ? i < end : i > end;) {
        if (l->count == MOST)
            return tpl_bad(c->r, RLX_ERROR_LIMIT, "range: more than %d numbers", MOST);
        TRY(tpl_list_add(c->r, l, tpl_int(i)));
        if (__builtin_add_overflow(i, step, &i))
            break;
    }
    c->out = (struct tpl_value){.kind = TPL_LIST, .u.list = l};
    return RLX_OK;
}

static rlx_status raise_exception(struct tpl_call *c)
{
    const struct tpl_str *s;

    TRY(tpl_to_str(c->r, c->arg[0], &s));
    return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "%.*s", STR_ARG(s->text));
}

/* ---- time -------------------------------------------------------------------------------- */

struct when {
    int64_t year;
    int month, day, hour, minute, second, weekday, yearday; /* from 1, 1, 0, 0, 0, 0 (Sunday), 1 */
};

/* The date of a day since 1970-01-01, by counting from a 1st of March, in years that end with it.
 */
static struct when date_of(int64_t now)
{
    const int64_t day = now / 86400 - (now % 86400 < 0), second = now - day * 86400;
    const int64_t shifted = day + 719468; /* days from 0000-03-01 */
    const int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    const int64_t of_era = shifted - era * 146097;
    const int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    const int64_t march = (5 * of_year + 2) / 153; /* months since March */
    struct when w = {.year = year + era * 400 + (march >= 10),
                     .month = (int)(march < 10 ? march + 3 : march - 9),
                     .day = (int)(of_year - (153 * march + 2) / 5 + 1),
                     .hour = (int)(second / 3600),
                     .minute = (int)(second / 60 % 60),
                     .second = (int)(second % 60)};
    const bool leap = (w.year % 4 == 0 && w.year % 100 != 0) || w.year % 400 == 0;

    w.weekday = (int)(((day % 7) + 11) % 7); /* day 0 was a Thursday */
    w.yearday = (int)(march >= 10 ? of_year - 305 : of_year + 60 + leap);
    return w;
}

static const char months[][10] = {"January",   "February", "March",    "April",
                                  "May",       "June",     "July",     "August",
                                  "September", "October",  "November", "December"};
static const char days[][10] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                "Thursday", "Friday", "Saturday"};

/* One directive of strftime, in the C locale; -1: there is none such. */
static int directive(const struct when *w, int64_t now, char d, char out[64])
{
    const int hour12 = w->hour % 12 ? w->hour % 12 : 12;
    const size_t room = 64;
    const long long year = (long long)w->year;

    switch (d) {
    case 'Y': return snprintf(out, room, "%lld", year);
    case 'y': return snprintf(out, room, "%02d", (int)(((year % 100) + 100) % 100));
    case 'm': return snprintf(out, room, "%02d", w->month);
    case 'd': return snprintf(out, room, "%02d", w->day);
    case 'e': return snprintf(out, room, "%2d", w->day);
    case 'H': return snprintf(out, room, "%02d", w->hour);
    case 'I': return snprintf(out, room, "%02d", hour12);
    case 'M': return snprintf(out, room, "%02d", w->minute);
    case 'S': return snprintf(out, room, "%02d", w->second);
    case 'f': return snprintf(out, room, "000000");
    case 'j': return snprintf(out, room, "%03d", w->yearday);
    case 'p': return snprintf(out, room, "%s", w->hour < 12 ? "AM" : "PM");
    case 'A': return snprintf(out, room, "%s", days[w->weekday]);
    case 'a': return snprintf(out, room, "%.3s", days[w->weekday]);
    case 'B': return snprintf(out, room, "%s", months[w->month - 1]);
    case 'b':
    case 'h': return snprintf(out, room, "%.3s", months[w->month - 1]);
    case 'w': return snprintf(out, room, "%d", w->weekday);
    case 'u': return snprintf(out, room, "%d", w->weekday ? w->weekday : 7);
    case 's': return snprintf(out, room, "%lld", (long long)now);
    case 'F': return snprintf(out, room, "%lld-%02d-%02d", year, w->month, w->day);
    case 'T':
    case 'X': return snprintf(out, room, "%02d:%02d:%02d", w->hour, w->minute, w->second);
    case 'D':
    case 'x':
        return snprintf(out, room, "%02d/%02d/%02d", w->month, w->day,
                        (int)(((year % 100) + 100) % 100));
    case 'R': return snprintf(out, room, "%02d:%02d", w->hour, w->minute);
    case 'c':
        return snprintf(out, room, "%.3s %.3s %2d %02d:%02d:%02d %lld", days[w->weekday],
                        months[w->month - 1], w->day, w->hour, w->minute, w->second, year);
    case 'Z':
    case 'z': return 0; /* of no zone in particular */
    case '%': return snprintf(out, room, "%%");
    default: return -1;
    }
}

static rlx_status strftime_now(struct tpl_call *c)
{
    const struct when w = date_of(c->r->now);
    const struct tpl_str *format;
    struct tpl_text t;
    char out[64];

    TRY(tpl_arg_str(c, 0, &format));
    const bool data = format->data || format->cuts;
    tpl_text_begin(&t, c->r);
    for (size_t i = 0; i < format->text.len; i++) {
        const char *at = format->text.ptr + i;
        if (*at != '%' || i + 1 == format->text.len) {
            tpl_text_add(&t, (rlx_str){at, 1}, data);
            continue;
        }
        const bool no_zero = at[1] == '-' && i + 2 < format->text.len; /* %-d */
        const char which = at[1 + no_zero];
        int len = directive(&w, c->r->now, which, out), from = 0;
        if (len < 0)
            return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "strftime_now: there is no %%%c", which);
        while (no_zero && from + 1 < len && (out[from] == '0' || out[from] == ' '))
            from++;
        tpl_text_add(&t, (rlx_str){out + from, (size_t)(len - from)}, data);
        i += 1 + no_zero;
    }
    return tpl_text_end(&t, &c->out);
}

const struct tpl_builtin tpl_functions[] = {
    {"namespace", "*", 0, make_namespace},       {"dict", "*", 0, make_dict},
    {"range", "start stop step", 1, range},      {"raise_exception", "message", 0, raise_exception},
    {"strftime_now", "format", 1, strftime_now}, {0}};
