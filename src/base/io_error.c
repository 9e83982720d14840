/* io_error.c: failures about files, with the system's own words for them. */
#include "base/io_error.h"

#include <string.h>

#include "base/str.h"

rlx_status io_error(struct diag *d, const char *doing, rlx_str path, const char *why)
{
    enum { SHOWN = 320 }; /* leaves room in a message for the reason, which must not be cut off */
    rlx_str tail = path;

    if (path.len > SHOWN) {
        tail = (rlx_str){path.ptr + (path.len - SHOWN), SHOWN};
        for (int i = 0; i < 3 && str_utf8_step(tail) == 0; i++) { /* begin with a character */
            tail.ptr++;
            tail.len--;
        }
    }
    return diag_fail(d, RLX_ERROR_IO, "%s %s%.*s: %s", doing, tail.len < path.len ? "..." : "",
                     STR_ARG(tail), why);
}

/* There are two strerror_r in use: one answers with the text, the other with a status. */
static inline const char *from_text(const char *answer, const char *buffer)
{
    (void)buffer;
    return answer;
}

static inline const char *from_status(int answer, const char *buffer)
{
    return answer == 0 ? buffer : "unknown error";
}

#define WORDS(call, buffer) \
    _Generic((call), int : from_status, default : from_text)((call), (buffer))

rlx_status io_error_errno(struct diag *d, const char *doing, rlx_str path, int err)
{
    char buffer[128] = "";

    return io_error(d, doing, path, WORDS(strerror_r(err, buffer, sizeof buffer), buffer));
}
