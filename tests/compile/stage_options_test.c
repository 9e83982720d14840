/* stage_options_test.c: an option does the same however it is set, and programs that differ by it
 * are kept apart (base/options.def). */
#include "compile/stage_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlx/cache.h"
#include "rlx/tools.h"
#include "session/session.h"
#include "test.h"

/* Something for every option to change. */
static const char graph[] =
    "rlx 1 graph (input %x: f32[1,4,16], input %i: i32[4], input %p: f32[1,4,4,4],"
    " param %w: f32[16,48], param %b: f32[48], param %o: f32[16,16], param %c: f32[16],"
    " param %l: f32[16,16], param %r: f32[16,16], param %g: f32[4], param %s: f32[16]) {"
    " %y = matmul %x, %w %z = add %y, %b"
    " %q = narrow %z axis=2 start=0 len=16 %k = narrow %z axis=2 start=16 len=16"
    " %v = narrow %z axis=2 start=32 len=16"
    " %a = attention %q, %k, %v num_heads=2 head_dim=8 layout=packed mask_kind=none"
    " %m = matmul %a, %o %h = add %x, %m %n = layer_norm %h, %s, %c"
    " %e = matmul %n, %l %f = matmul %n, %r %t = silu %e %u = mul %t, %f"
    " %d = matmul %u, %o %db = add %d, %c %dr = relu %db %j = add %h, %dr"
    " %n2 = layer_norm %j, %s, %c"
    " %k1 = const f32[2] {1 4} %k2 = const f32[2] {1 4} %k3 = sqrt %k1 %k4 = sqrt %k2"
    " %k5 = add %k3, %k4 %e1 = exp %j %e2 = exp %j %e3 = add %e1, %e2 %e4 = tanh %e3"
    " %sl = add %l, %r %sm = matmul %n2, %sl"
    " %gn = group_norm %p, %g, %g num_groups=2 %ga = gather %s, %i axis=0"
    " return %n2, %k5, %e4, %sm, %gn, %ga }";

enum option {
#define OPTION(desc, name, ...) OPTION_##name,
#include "base/options.def"
    OPTION_count
};

struct row {
    const char *name, *flag, *values;
    enum flag_kind kind;
    bool in_key;
};

static const struct row rows[] = {
#define KEY_PROGRAM true
#define KEY_LAYOUT true
#define KEY_NO false
#define OPTION(desc, name, kind, type, values, tells, flag, ...) \
    {#name, "RLX_" #flag, values, FLAG_KIND_##kind, KEY_##tells},
#include "base/options.def"
};

/* Of every row, and of the second word of a choice. */
static const char *value_of(const struct row *r, bool second, char word[16])
{
    const char *bar = strchr(r->values, '|');

    switch (r->kind) {
    case FLAG_KIND_SWITCH: return second ? NULL : "1";
    case FLAG_KIND_NUMBER: return second ? NULL : "65536";
    case FLAG_KIND_TEXT: return second ? NULL : "group_norm";
    case FLAG_KIND_CHOICE:
        if (second)
            return bar + 1;
        snprintf(word, 16, "%.*s", (int)(bar - r->values), r->values);
        return word;
    }
    return NULL;
}

/* number: of the word of a choice. */
static void set(enum option o, const char *value, int number, rlx_session_desc *desc,
                rlx_debug_desc *debug)
{
    switch (o) {
#define TO_USER desc
#define TO_DEBUG debug
#define SET_SWITCH(to, type) (to) = true
#define SET_NUMBER(to, type) (to) = (type)strtoll(value, NULL, 10)
#define SET_CHOICE(to, type) (to) = (type)number
#define SET_TEXT(to, type) (to) = value
#define OPTION(where, name, kind, type, ...) \
    case OPTION_##name:                      \
        SET_##kind(TO_##where->name, type);  \
        break;
#include "base/options.def"
    case OPTION_count: break;
    }
}

/* How many fields differ, and the last that does. */
static int differences(const struct rlx_session *a, const struct rlx_session *b, const char **last)
{
    int count = 0;

#define FROM_USER desc
#define FROM_DEBUG debug
#define SAME_SWITCH(x, y) (x) == (y)
#define SAME_NUMBER(x, y) (x) == (y)
#define SAME_CHOICE(x, y) (x) == (y)
#define SAME_TEXT(x, y) strcmp((x) ? (x) : "", (y) ? (y) : "") == 0
#define SAME_MAP(x, y) memcmp(&(x), &(y), sizeof(x)) == 0
#define SETTING(where, name, kind, ...)                             \
    if (!(SAME_##kind(a->FROM_##where.name, b->FROM_##where.name))) \
        *last = #name, count++;
#define OPTION SETTING
#include "base/options.def"
    return count;
}

struct place {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *model;
    rlx_session *session;
    rlx_error err;
};

static bool open_place(struct test *t, struct place *p, const rlx_flag *flag,
                       const rlx_session_desc *desc)
{
    const rlx_context_desc context = {RLX_SIZED(rlx_context_desc), .threads = 1, .flags = flag,
                                      .flag_count = flag != NULL};

    *p = (struct place){0};
    if (rlx_context_create(RLX_VERSION, &context, &p->ctx, &p->err) == RLX_OK &&
        rlx_device_open(p->ctx, "cpu", &p->dev, &p->err) == RLX_OK &&
        rlx_model_parse(p->ctx, rlx_cstr(graph), &p->model, &p->err) == RLX_OK &&
        rlx_session_create(p->model, p->dev, desc, &p->session, &p->err) == RLX_OK)
        return expect(t, true);
    return fail(t, "%s", p->err.message), false;
}

static void close_place(struct place *p)
{
    rlx_session_destroy(p->session);
    rlx_model_destroy(p->model);
    rlx_device_close(p->dev);
    rlx_context_destroy(p->ctx);
}

/* Three ways to set option number i. */
static void expect_three_ways(struct test *t, const struct place *plain, size_t i,
                              const char *value, int number)
{
    const rlx_flag flag = {rows[i].name, value};
    rlx_debug_desc debug = {RLX_SIZED(rlx_debug_desc)};
    rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .debug = &debug};
    struct place way[3];
    const char *name = "nothing";

    set((enum option)i, value, number, &desc, &debug);
    bool open = open_place(t, &way[0], NULL, &desc);
    setenv(rows[i].flag, value, 1);
    open &= open_place(t, &way[1], NULL, NULL);
    unsetenv(rows[i].flag);
    open &= open_place(t, &way[2], &flag, NULL);
    for (size_t k = 0; k < 3 && open; k++) {
        test_note(t, "%s = %s, way %zu", rows[i].name, value, k);
        expect_eq(t, differences(plain->session, way[k].session, &name), 1);
        expect_str(t, name, rows[i].name);
        expect_eq(t, differences(way[0].session, way[k].session, &name), 0);
    }
    test_note(t, "%s", "");
    for (size_t k = 0; k < 3; k++)
        close_place(&way[k]);
}

TEST(stage_options, an_option_is_the_same_however_it_is_set)
{
    struct place plain;
    char word[16];

    if (open_place(t, &plain, NULL, NULL))
        for (size_t i = 0; i < OPTION_count; i++)
            for (int second = 0; second < 2; second++) {
                const char *value = value_of(&rows[i], second, word);
                if (value)
                    expect_three_ways(t, &plain, i, value, second + 1);
            }
    close_place(&plain);
}

TEST(stage_options, a_clone_has_options_of_its_own)
{
    rlx_debug_desc debug = {RLX_SIZED(rlx_debug_desc), .no_cse = true, .alignment = 256};
    const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .loop_limit = 7, .debug = &debug};
    rlx_session *clone = NULL;
    const char *name = "nothing";
    struct place p;

    if (open_place(t, &p, NULL, &desc)) {
        debug.no_cse = false; /* it was copied */
        expect(t, p.session->desc.debug == &p.session->debug && p.session->debug.no_cse);
        if (expect_ok(t, rlx_session_clone(p.session, 0, &clone, &p.err))) {
            expect(t, clone->desc.debug == &clone->debug);
            expect_eq(t, differences(p.session, clone, &name), 0);
        }
    }
    rlx_session_destroy(clone);
    close_place(&p);
}

struct made {
    char text[65536];
    size_t len;
    uint64_t key;
};

static void collect(void *user, const char *text, size_t len)
{
    struct made *m = user;

    if (m->len + len >= sizeof m->text)
        len = sizeof m->text - 1 - m->len;
    memcpy(m->text + m->len, text, len);
    m->text[m->len += len] = 0;
}

/* What compiling with these options gives: its schedule, its plan and the key of both. */
static bool make(struct test *t, struct place *p, const rlx_session_desc *desc, struct made *out)
{
    rlx_plan_summary plan;

    out->len = 0;
    rlx_session_destroy(p->session);
    p->session = NULL;
    return expect_ok(t, rlx_session_create(p->model, p->dev, desc, &p->session, &p->err)) &&
           expect_ok(t, rlx_session_schedule(p->session, false, collect, out, &p->err)) &&
           expect_ok(t,
                     rlx_session_plan(p->session, RLX_PLAN_TEXT, collect, out, &plan, &p->err)) &&
           expect_ok(t, rlx_model_key(p->model, desc, &out->key, &p->err));
}

TEST(stage_options, what_changes_a_program_changes_its_key)
{
    static struct made plain, other;
    struct place p;
    size_t changed = 0;
    char word[16];

    if (open_place(t, &p, NULL, NULL) && make(t, &p, NULL, &plain))
        for (size_t i = 0; i < OPTION_count; i++)
            for (int second = 0; second < 2; second++) {
                rlx_debug_desc debug = {RLX_SIZED(rlx_debug_desc)};
                rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .debug = &debug};
                const char *value = value_of(&rows[i], second, word);
                if (!value)
                    continue;
                test_note(t, "%s = %s", rows[i].name, value);
                set((enum option)i, value, second + 1, &desc, &debug);
                if (!make(t, &p, &desc, &other))
                    continue;
                bool differs = strcmp(plain.text, other.text) != 0;
                expect(t, !differs || other.key != plain.key);
                expect_eq(t, other.key != plain.key, rows[i].in_key);
                changed += differs;
            }
    test_note(t, "%s", "");
    expect(t, changed >= 12); /* the graph has something for most of them */
    close_place(&p);
}

TEST(stage_options, no_desc_is_a_desc_of_zeros)
{
    const rlx_debug_desc debug = {RLX_SIZED(rlx_debug_desc)};
    const rlx_session_desc none = {RLX_SIZED(rlx_session_desc)},
                           zeros = {RLX_SIZED(rlx_session_desc), .debug = &debug};

    expect_eq_u64(t, all_options_key(&none), all_options_key(&zeros));
    expect(t, debug_options(&none) && debug_options(&zeros) == &debug);
    expect_eq_u64(t,
                  program_options_key(&(rlx_session_desc){RLX_SIZED(rlx_session_desc),
                                                          .debug = DEBUG(.alignment = 64)}),
                  program_options_key(&none));
    expect(t, all_options_key(&(rlx_session_desc){RLX_SIZED(rlx_session_desc),
                                                  .debug = DEBUG(.alignment = 64)}) !=
                  all_options_key(&none));
}
