/* stage_options.c: see stage_options.h. All of it is made from the rows of base/options.def. */
#include "compile/stage_options.h"

#include "base/desc.h"
#include "base/str.h"
#include "ir/fingerprint.h"

const rlx_debug_desc *debug_options(const rlx_session_desc *desc)
{
    static const rlx_debug_desc none = {RLX_SIZED(rlx_debug_desc)};

    return desc->debug ? desc->debug : &none;
}

rlx_status session_descs_read(const rlx_session_desc *theirs, struct session_descs *own,
                              struct diag *d)
{
    *own = (struct session_descs){{RLX_SIZED(rlx_session_desc)}, {RLX_SIZED(rlx_debug_desc)}};
    TRY(DESC_READ(rlx_session_desc, &own->user, theirs, d));
    TRY(DESC_READ(rlx_debug_desc, &own->debug, own->user.debug, d));
    own->user.debug = &own->debug;
    return RLX_OK;
}

/* The desc that a row is a field of. */
#define FROM_USER const rlx_session_desc *from = desc;
#define FROM_DEBUG const rlx_debug_desc *from = debug_options(desc);

void stage_options_of(const rlx_session_desc *desc, struct stage_options *out)
{
    *out = (struct stage_options){0};
#define PASS(name) out->pass.name = from->name;
#define JOINT(name) out->select.joint.name = from->name;
#define SELECT(name) out->select.name = from->name;
#define SELECT_UNLESS(name, field) out->select.field = !from->name;
#define PLAN(name) out->plan.name = from->name;
#define SESSION(name) (void)from->name;
#define SETTING(where, name, kind, type, tells, readers) \
    {                                                    \
        FROM_##where readers                             \
    }
#define OPTION(where, name, kind, type, values, tells, flag, readers, ...) \
    {                                                                      \
        FROM_##where readers                                               \
    }
#include "base/options.def"
}

static uint64_t hash_map(uint64_t h, const rlx_precision_map *m)
{
    h = fingerprint_u64(h, m->compute);
    h = fingerprint_u64(h, m->reduction);
    h = fingerprint_u64(h, m->elementwise);
    return fingerprint_u64(h, m->movement);
}

enum tells { TELLS_NO, TELLS_LAYOUT, TELLS_PROGRAM };

/* Of the rows that tell apart that much, or more. */
static uint64_t options_key(const rlx_session_desc *desc, enum tells least)
{
    uint64_t h = 0;

#define HASH_SWITCH(x) fingerprint_u64(h, x)
#define HASH_NUMBER(x) fingerprint_u64(h, (uint64_t)(x))
#define HASH_CHOICE(x) fingerprint_u64(h, (uint64_t)(x))
#define HASH_TEXT(x) fingerprint_str(h, rlx_cstr((x) ? (x) : ""))
#define HASH_MAP(x) hash_map(h, &(x))
#define ROW(where, name, kind, tells)             \
    if (TELLS_##tells >= least) {                 \
        FROM_##where h = HASH_##kind(from->name); \
    }
#define SETTING(where, name, kind, type, tells, ...) ROW(where, name, kind, tells)
#define OPTION(where, name, kind, type, values, tells, ...) ROW(where, name, kind, tells)
#include "base/options.def"
    return h;
}

uint64_t program_options_key(const rlx_session_desc *desc)
{
    return options_key(desc, TELLS_PROGRAM);
}

uint64_t all_options_key(const rlx_session_desc *desc)
{
    return options_key(desc, TELLS_LAYOUT);
}
