/* options_test.c: the table of options and the descs of the public headers have the same fields. */
#include <string.h>

#include "base/flags.h"
#include "test.h"

/* The descs as the table has them, and what they have besides. */
#define SETTING(desc, name, kind, type, ...) desc##_FIELD(type, name)
#define OPTION SETTING
struct user_fields {
    uint32_t size;
#define USER_FIELD(type, name) type name;
#define DEBUG_FIELD(type, name)
#define DEBUG_DESC const struct rlx_debug_desc *debug;
#include "base/options.def"
};
#undef USER_FIELD
#undef DEBUG_FIELD

#define SETTING(desc, name, kind, type, ...) desc##_FIELD(type, name)
#define OPTION SETTING
struct debug_fields {
    uint32_t size;
#define USER_FIELD(type, name)
#define DEBUG_FIELD(type, name) type name;
#include "base/options.def"
};
#undef USER_FIELD
#undef DEBUG_FIELD

#define IS_OF_TYPE(type, x) _Generic((x), type : true, default : false)

TEST(options, table_has_every_field_of_the_descs_in_order)
{
    const rlx_session_desc user = {RLX_SIZED(rlx_session_desc)};
    const rlx_debug_desc debug = {RLX_SIZED(rlx_debug_desc)};

#define CHECK_FIELD(type, name, fields, desc)                                  \
    test_note(t, "%s", #name);                                                 \
    expect(t, IS_OF_TYPE(type, desc.name));                                    \
    expect_eq_u64(t, (size_t)((const char *)&desc.name - (const char *)&desc), \
                  offsetof(struct fields, name));
#define USER_FIELD(type, name) CHECK_FIELD(type, name, user_fields, user)
#define DEBUG_FIELD(type, name) CHECK_FIELD(type, name, debug_fields, debug)
#define SETTING(desc, name, kind, type, ...) desc##_FIELD(type, name)
#define OPTION SETTING
#include "base/options.def"
    test_note(t, "%s", "");
    expect_eq_u64(t, sizeof user, sizeof(struct user_fields));
    expect_eq_u64(t, sizeof debug, sizeof(struct debug_fields));
}

TEST(options, flags_name_their_options)
{
    size_t options = 0;

    for (int i = 0; i < FLAG_count; i++) {
        const struct flag_info *info = flag_info((enum flag_id)i);
        options += info->option != NULL;
        expect(t, *info->layer && *info->summary && strncmp(info->name, "RLX_", 4) == 0);
        for (int k = 0; k < i; k++)
            expect(t, strcmp(info->name, flag_info((enum flag_id)k)->name) != 0);
    }
    expect(t, options > 20);
    expect_str(t, flag_info(FLAG_VERIFY)->option, "verify_passes");
    expect_str(t, flag_info(FLAG_VERIFY)->layer, "pass");
    expect_str(t, flag_info(FLAG_NO_FUSION)->layer, "pass, joint");
    expect(t, !flag_info(FLAG_VERBOSE)->option);
}
