/* diag.h: a call's failure, collected on the way up and handed to the caller's rlx_error. */
#ifndef BASE_DIAG_H
#define BASE_DIAG_H

#include "rlx/rlx.h"

struct diag {
    rlx_error first; /* the first failure; status RLX_OK while there is none */
    uint32_t count;  /* failures so far */
    rlx_error place; /* what is being worked on: stage, backend, op, node, label */
    void (*each)(void *user, const rlx_error *e); /* is told of every failure; may be NULL */
    void *user;
};

void diag_init(struct diag *d, const char *stage);
/* Says where we are; either may be NULL. The op and node stay as they were set. */
void diag_stage(struct diag *d, const char *stage, const char *backend);
/* Says what is being worked on; NULL op: nothing in particular. label may be "none". */
void diag_at(struct diag *d, const char *op, int32_t node, rlx_str label);

/* Records the failure and returns its status. Text that does not fit ends in "...", and what is not
 * printable UTF-8 shows as '?'. d may be NULL, here and above. For floats see str_from_f32: a
 * "%g" follows the process's locale. */
rlx_status diag_fail(struct diag *d, rlx_status s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
rlx_status diag_no_memory(struct diag *d, size_t bytes); /* RLX_ERROR_MEMORY */
/* Both return what they were given; the macros let the compiler see that a failure is never
 * RLX_OK. */
#define diag_fail(d, s, ...)                                  \
    (__extension__({                                          \
        (diag_fail)((d), (s), __VA_ARGS__);                   \
        (s) == RLX_OK ? RLX_ERROR_INTERNAL : (rlx_status)(s); \
    }))
#define diag_no_memory(d, bytes)        \
    (__extension__({                    \
        (diag_no_memory)((d), (bytes)); \
        (rlx_status) RLX_ERROR_MEMORY;  \
    }))
/* Records a failure that another diag collected as one of this diag's, with that status. */
rlx_status diag_again(struct diag *d, const rlx_error *e, rlx_status s);
/* At the API's edge: copy the first failure out (err may be NULL) and return its status. */
rlx_status diag_report(const struct diag *d, rlx_error *err);

#define TRY(call)                 \
    do {                          \
        rlx_status try_ = (call); \
        if (try_ != RLX_OK)       \
            return try_;          \
    } while (0)

#endif
