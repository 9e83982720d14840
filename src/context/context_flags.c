/* context_flags.c: what the flags of a context mean for its devices and sessions (base/flags.def).
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "context/context.h"
#include "rlx/tools.h"

void flags_apply(const struct rlx_context *ctx, rlx_session_desc *desc, rlx_debug_desc *debug)
{
#define TAKE_SWITCH(to, type, flag) (to) |= (flag)->on
#define TAKE_NUMBER(to, type, flag) (to) = (to) ? (to) : (type)(flag)->number
#define TAKE_CHOICE TAKE_NUMBER
#define TAKE_TEXT(to, type, flag) (to) = (to) ? (to) : *(flag)->text ? (flag)->text : NULL
#define IN_USER desc
#define IN_DEBUG debug
#define OPTION(where, name, kind, type, values, tells, flag, ...) \
    TAKE_##kind(IN_##where->name, type, context_flag(ctx, FLAG_##flag));
#include "base/options.def"
}

/* "cpu:baseline" is a kind of "cpu". */
static bool is_kind_of(rlx_str name, rlx_str kind)
{
    return kind.len && name.len > kind.len && str_starts(name, kind) && name.ptr[kind.len] == ':';
}

bool flags_allow_device(const struct rlx_context *ctx, rlx_str name, bool or_kind_of_it)
{
    const char *list = context_flag(ctx, FLAG_DEVICES)->text;

    if (!*list)
        return true;
    for (const char *at = list; *at;) {
        size_t len = strcspn(at, ", ");
        rlx_str entry = {at, len};
        if (str_eq(entry, name) || is_kind_of(name, entry) ||
            (or_kind_of_it && is_kind_of(entry, name)))
            return true;
        at += len + (at[len] != 0);
    }
    return false;
}

rlx_str flags_auto_device(const struct rlx_context *ctx)
{
    const char *name = context_flag(ctx, FLAG_DEVICE)->text;
    const char *list = context_flag(ctx, FLAG_DEVICES)->text;

    if (*name && strcmp(name, "auto") != 0)
        return rlx_cstr(name);
    if (*list)
        return (rlx_str){list, strcspn(list, ", ")};
    return rlx_cstr(backend_at(0)->name);
}

void context_log(const struct rlx_context *ctx, int level, const char *fmt, ...)
{
    char line[512];
    va_list args;

    if (!ctx->log)
        return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    ctx->log(ctx->log_user, level, line);
}

void context_log_text(const struct rlx_context *ctx, int level, rlx_str lines)
{
    char line[512];

    while (ctx->log && lines.len) {
        const char *end = memchr(lines.ptr, '\n', lines.len);
        size_t len = end ? (size_t)(end - lines.ptr) : lines.len;
        size_t shown = len < sizeof line - 1 ? len : sizeof line - 1;
        memcpy(line, lines.ptr, shown);
        line[shown] = 0;
        if (len)
            ctx->log(ctx->log_user, level, line);
        lines.ptr += len + (end != NULL);
        lines.len -= len + (end != NULL);
    }
}
