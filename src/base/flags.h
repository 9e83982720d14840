/* flags.h: switches from the environment, as flags.def and options.def list them.
 *
 * They are read once, when a context is made, and stay what they were. An override given in code
 * beats the environment and ends with the context it was given to: nothing outside is changed, so
 * there is nothing to restore. */
#ifndef BASE_FLAGS_H
#define BASE_FLAGS_H

#include "base/arena.h"
#include "base/diag.h"

enum flag_id {
#define FLAG(name, ...) FLAG_##name,
#include "base/flags.def"
#define OPTION(desc, name, kind, type, values, tells, flag, ...) FLAG_##flag,
#include "base/options.def"
    FLAG_count
};

enum flag_kind { FLAG_KIND_SWITCH, FLAG_KIND_NUMBER, FLAG_KIND_TEXT, FLAG_KIND_CHOICE };

struct flag_info {
    const char *name; /* "RLX_VERBOSE" */
    enum flag_kind kind;
    const char *values;       /* what it takes, for people; of a CHOICE, its words */
    const char *default_text; /* "": none */
    const char *stability, *layer, *summary;
    const char *option; /* of a session, that it sets: "no_cse"; NULL: none */
};
const struct flag_info *flag_info(enum flag_id id);

enum flag_source { FLAG_DEFAULT, FLAG_ENVIRONMENT, FLAG_OVERRIDE };
struct flag_value {
    const char *text; /* trimmed; "" is none */
    enum flag_source source;
    bool on;        /* of a SWITCH */
    int64_t number; /* of a NUMBER; of a CHOICE its word, from 1; 0: none */
};

struct flags {
    struct flag_value at[FLAG_count];
    struct arena arena; /* the texts */
};

/* Who is told of values that make no sense, and of names that are not flags. May be NULL. */
typedef void (*flags_warn)(void *user, const char *line);

/* environment: as environ. An override has the name of a flag, with or without its RLX_, or of the
 * option that the flag sets; one that is neither is NAME, and a value that makes no sense for it is
 * ARGUMENT. */
rlx_status flags_read(struct flags *f, const rlx_flag *overrides, size_t count,
                      char *const *environment, const rlx_allocator *mem, flags_warn warn,
                      void *user, struct diag *d);
void flags_free(struct flags *f);

/* Anything but "", 0, false, off and no, in whatever case, spaces around it aside. */
bool flag_text_is_on(rlx_str text);

#endif
