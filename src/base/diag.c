/* diag.c: failures as records with a sentence, and the names of the statuses.
 *
 * Names and messages quote what files say, so all text is made printable UTF-8 on the way in: a
 * stray byte or a control character becomes '?', and a cut is made between two characters. */
#include "base/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* ---- statuses ---------------------------------------------------------------------------- */

static const struct {
    rlx_status status;
    const char *name, *text;
} statuses[] = {
#define X(name, value, text) {RLX_##name, #name, text},
    RLX_STATUS_MAP(X)
#undef X
};

const char *rlx_status_name(rlx_status s)
{
    static const char prefix[] = "ERROR_";
    const size_t skip = sizeof prefix - 1;

    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        const char *name = statuses[i].name;
        if (statuses[i].status == s)
            return strncmp(name, prefix, skip) == 0 ? name + skip : name;
    }
    return "?";
}

const char *rlx_status_text(rlx_status s)
{
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        if (statuses[i].status == s)
            return statuses[i].text;
    }
    return "no such status";
}

/* ---- text that fits ---------------------------------------------------------------------- */

static bool printable(unsigned char c)
{
    return (c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t';
}

/* s into dst, printable and terminated; if it is longer than cap - 1 bytes it ends in "...". */
static void put(char *dst, size_t cap, rlx_str s)
{
    size_t len = 0, cut = 0; /* cut: the last place between characters that leaves room for "..." */

    while (s.len) {
        size_t step = str_utf8_step(s);
        bool good = step > 1 || (step == 1 && printable((unsigned char)s.ptr[0]));
        if (step == 0)
            step = 1;
        if (len + 3 < cap)
            cut = len;
        if (step >= cap - len) { /* no room for it and the NUL */
            memcpy(dst + cut, "...", 3);
            len = cut + 3;
            break;
        }
        if (good)
            memcpy(dst + len, s.ptr, step);
        else
            dst[len] = '?';
        len += step;
        s.ptr += step;
        s.len -= step;
    }
    dst[len] = 0;
}

#define PUT(field, s) put((field), sizeof(field), (s))

/* ---- diag -------------------------------------------------------------------------------- */

void diag_init(struct diag *d, const char *stage)
{
    memset(d, 0, sizeof *d);
    d->first.node = -1;
    d->place.node = -1;
    diag_stage(d, stage, NULL);
}

void diag_stage(struct diag *d, const char *stage, const char *backend)
{
    if (!d)
        return;
    PUT(d->place.stage, rlx_cstr(stage));
    PUT(d->place.backend, rlx_cstr(backend));
}

void diag_at(struct diag *d, const char *op, int32_t node, rlx_str label)
{
    if (!d)
        return;
    PUT(d->place.op, rlx_cstr(op));
    PUT(d->place.label, label);
    d->place.node = op ? node : -1;
}

static void record(struct diag *d, const rlx_error *e)
{
    if (d->count == 0)
        d->first = *e;
    if (d->count < UINT32_MAX)
        d->count++;
    if (d->each)
        d->each(d->user, e);
}

rlx_status(diag_fail)(struct diag *d, rlx_status s, const char *fmt, ...)
{
    if (s == RLX_OK)
        s = RLX_ERROR_INTERNAL; /* a failure must not look like success */
    if (!d)
        return s;

    rlx_error e = d->place;
    char line[sizeof e.message + 4]; /* longer than fits, so that put() sees when to cut */
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);

    if (len < 0)
        PUT(e.message, rlx_cstr(rlx_status_text(s)));
    else
        PUT(e.message, rlx_cstr(line));
    e.status = s;
    record(d, &e);
    return s;
}

rlx_status(diag_no_memory)(struct diag *d, size_t bytes)
{
    if (bytes == 0)
        return diag_fail(d, RLX_ERROR_MEMORY, "out of memory");
    return diag_fail(d, RLX_ERROR_MEMORY, "out of memory: no room for %zu bytes", bytes);
}

rlx_status diag_again(struct diag *d, const rlx_error *e, rlx_status s)
{
    diag_stage(d, e->stage, e->backend);
    diag_at(d, e->op, e->node, rlx_cstr(e->label));
    return (diag_fail)(d, s, "%s", e->message);
}

rlx_status diag_report(const struct diag *d, rlx_error *err)
{
    if (err && d->first.status != RLX_OK)
        *err = d->first;
    return d->first.status;
}
