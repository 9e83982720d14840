/* onnx_sequence_test.c: sequences and optionals: as inputs and outputs of a model, through bodies,
 * and in files of their own. */
#include "import/onnx/read/onnx.h"

#include <stdlib.h>
#include <string.h>

#include "onnx_world.h"
#include "test.h"

enum holder { SEQUENCE = 4, OPTIONAL = 9 };

/* A value whose type is a tensor's in holders, the inmost first. dims NULL: of any rank. */
static void put_held(struct bytes *graph, uint32_t number, const char *name,
                     const char *const *dims, const enum holder *holder, size_t holders)
{
    struct bytes v = {.len = 0}, type = {.len = 0}, tensor = {.len = 0}, shape = {.len = 0};

    for (; dims && *dims; dims++) {
        struct bytes d = {.len = 0};
        if (**dims >= '0' && **dims <= '9')
            put_int(&d, 1, (uint64_t)atoll(*dims));
        else
            put_text(&d, 2, *dims);
        put_sub(&shape, 1, &d);
    }
    put_int(&tensor, 1, 1);
    if (dims)
        put_sub(&tensor, 2, &shape);
    put_sub(&type, 1, &tensor);
    for (size_t i = 0; i < holders; i++) {
        struct bytes held = {.len = 0}, outer = {.len = 0};
        put_sub(&held, 1, &type);
        put_sub(&outer, holder[i], &held);
        type = outer;
    }
    put_text(&v, 1, name);
    put_sub(&v, 2, &type);
    put_sub(graph, number, &v);
}

static const enum holder a_sequence[] = {SEQUENCE}, an_optional[] = {OPTIONAL},
                         both[] = {SEQUENCE, OPTIONAL}, nested[] = {SEQUENCE, SEQUENCE};
#define DIMS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A node with a body. */
static void put_body_node(struct bytes *graph, const char *op, const char *const *in,
                          const char *const *out, const char *attr, const struct bytes *body,
                          const char *attr2, const struct bytes *body2)
{
    struct bytes n = {.len = 0}, a = {.len = 0};

    for (; *in; in++)
        put_text(&n, 1, *in);
    for (; *out; out++)
        put_text(&n, 2, *out);
    put_text(&n, 4, op);
    put_text(&a, 1, attr);
    put_sub(&a, 6, body);
    put_int(&a, 20, ONNX_ATTR_GRAPH);
    put_sub(&n, 5, &a);
    if (attr2) {
        a.len = 0;
        put_text(&a, 1, attr2);
        put_sub(&a, 6, body2);
        put_int(&a, 20, ONNX_ATTR_GRAPH);
        put_sub(&n, 5, &a);
    }
    put_sub(graph, 1, &n);
}

/* y = x, whatever x holds */
static struct bytes identity(const char *const *dims, const enum holder *holder, size_t holders)
{
    struct bytes g = {.len = 0};

    NODE(&g, "Identity", "x", "y");
    put_held(&g, 11, "x", dims, holder, holders);
    put_held(&g, 12, "y", dims, holder, holders);
    return finish(&g, 16);
}

/* ---- inputs and outputs ---- */

TEST(onnx_sequence, items_are_inputs_and_outputs)
{
    struct bytes m = identity(DIMS("n", "3"), a_sequence, 1);
    const rlx_load_input two = {.name = "x", .item_count = 2}, by_number = {.item_count = 2};
    static const char *const want =
        "rlx 1\n"
        "dim n_0\n"
        "dim n_1\n"
        "graph @main (input %v0 \"x[0]\": f32[n_0,3], input %v1 \"x[1]\": f32[n_1,3]) {\n"
        "    return %v0, %v1\n"
        "}\n";

    expect_given(t, &m, &two, 1, want);
    expect_given(t, &m, &by_number, 1, want);
    struct result r = import_given(m.at, m.len, &two, 1);
    require_ok(t, r.status);
    expect(t, str_eq(r.m.output_name[0], STR("y[0]")) && str_eq(r.m.output_name[1], STR("y[1]")));
    onnx_imported_free(&r.m);
}

TEST(onnx_sequence, shapes_are_told_where_the_model_has_none)
{
    struct bytes m = identity(NULL, a_sequence, 1);
    const rlx_tensor shape[] = {{.rank = 0}, {.rank = 2, .dim = {4, 5}}};
    const rlx_load_input with = {.name = "x", .item_count = 2, .shape = shape};
    const rlx_load_input without = {.name = "x", .item_count = 2};

    expect_given(t, &m, &with, 1,
                 "rlx 1\n"
                 "graph @main (input %v0 \"x[0]\": f32[], input %v1 \"x[1]\": f32[4,5]) {\n"
                 "    return %v0, %v1\n"
                 "}\n");
    expect_given_refused(t, &m, &without, RLX_ERROR_UNSUPPORTED,
                         "does not give the rank of \"x[0]\"");
    struct bytes fixed = identity(DIMS("n", "3"), a_sequence, 1);
    expect_given_refused(t, &fixed, &with, RLX_ERROR_SHAPE, "the shape given for \"x[0]\"");
    const rlx_tensor negative = {.rank = 2, .dim = {-1, 3}}, deep = {.rank = 99};
    expect_given_refused(t, &fixed,
                         &(rlx_load_input){.name = "x", .item_count = 1, .shape = &negative},
                         RLX_ERROR_SHAPE, "is not the model's");
    expect_given_refused(t, &m, &(rlx_load_input){.name = "x", .item_count = 1, .shape = &deep},
                         RLX_ERROR_SHAPE, "is not the model's");
}

TEST(onnx_sequence, a_tensor_takes_a_shape_too)
{
    struct bytes m = identity(NULL, NULL, 0);
    const rlx_tensor shape = {.rank = 1, .dim = {7}};
    const rlx_load_input given = {.name = "x", .item_count = 1, .shape = &shape};

    expect_given(t, &m, &given, 1,
                 "rlx 1\n"
                 "graph @main (input %x: f32[7]) {\n"
                 "    return %x\n"
                 "}\n");
    expect_given_refused(t, &m, NULL, RLX_ERROR_UNSUPPORTED, "does not give the rank");
}

TEST(onnx_sequence, what_is_told_must_be_of_use)
{
    struct bytes seq = identity(DIMS("3"), a_sequence, 1), tensor = identity(DIMS("3"), NULL, 0);
    struct bytes deep = identity(DIMS("3"), nested, 2);
    const rlx_load_input many = {.name = "x", .item_count = SIZE_MAX};
    const rlx_load_input none = {.name = "x", .item_count = 0};
    const rlx_load_input other = {.name = "z", .item_count = 1};
    const rlx_load_input absent = {.name = "x", .absent = true};

    expect_given_refused(t, &seq, NULL, RLX_ERROR_UNSUPPORTED, "say at load how many items it has");
    expect_given_refused(t, &seq, &many, RLX_ERROR_LIMIT, "more than 4096");
    expect_given_refused(t, &seq, &none, RLX_ERROR_UNSUPPORTED, "there is nothing to compute");
    expect_given_refused(t, &seq, &other, RLX_ERROR_ARGUMENT, "the model has no input \"z\"");
    expect_given_refused(t, &seq, &absent, RLX_ERROR_ARGUMENT, "it is not an optional");
    expect_given_refused(t, &tensor, &absent, RLX_ERROR_ARGUMENT, "it is not an optional");
    expect_given_refused(t, &deep, &other, RLX_ERROR_ARGUMENT, "no input \"z\"");
    expect_given_refused(t, &deep, &(rlx_load_input){.name = "x", .item_count = 1},
                         RLX_ERROR_UNSUPPORTED, "a sequence of something other than tensors");
}

TEST(onnx_sequence, an_optional_is_its_value_or_nothing)
{
    struct bytes m = identity(DIMS("3"), an_optional, 1), of_many = identity(DIMS("3"), both, 2);
    const rlx_load_input one = {.name = "x", .item_count = 1}, absent = {.absent = true};

    expect_given(t, &m, NULL, 0,
                 "rlx 1\n"
                 "graph @main (input %x: f32[3]) {\n"
                 "    return %x\n"
                 "}\n");
    expect_given(t, &of_many, &one, 1,
                 "rlx 1\n"
                 "graph @main (input %v0 \"x[0]\": f32[3]) {\n"
                 "    return %v0\n"
                 "}\n");
    expect_given_refused(t, &of_many, NULL, RLX_ERROR_UNSUPPORTED,
                         "say at load how many items it has");
    expect_given_refused(t, &m, &absent, RLX_ERROR_UNSUPPORTED, "there is nothing to compute");

    struct bytes g = {.len = 0};
    NODE(&g, "OptionalHasElement", "x", "y");
    put_held(&g, 11, "x", DIMS("3"), an_optional, 1);
    put_value(&g, 12, "y", 9, NULL);
    struct bytes has = finish(&g, 18);
    expect_given(t, &has, &absent, 1,
                 "rlx 1\n"
                 "graph @main () {\n"
                 "    %v0 = const bool[] {false}\n"
                 "    return %v0\n"
                 "}\n");
}

TEST(onnx_sequence, names_of_outputs_stay_apart)
{
    struct bytes g = {.len = 0};

    NODE(&g, "SequenceConstruct", LIST("a", "a"), "y");
    NODE(&g, "Relu", "a", "y[1]");
    put_value(&g, 11, "a", 1, DIMS("2"));
    put_held(&g, 12, "y", NULL, a_sequence, 1);
    put_value(&g, 12, "y[1]", 1, NULL);
    struct bytes m = finish(&g, 13);
    expect_refused(t, &m, RLX_ERROR_UNSUPPORTED, "two outputs would be called \"y[1]\"");
}

/* ---- bodies ---- */

/* z = SequenceMap(x, w): item + w, w a weight */
static struct bytes map_model(void)
{
    struct bytes g = {.len = 0}, body = {.len = 0};
    float w[32] = {0};

    NODE(&body, "Add", LIST("a", "b"), "c");
    put_value(&body, 11, "a", 1, NULL);
    put_value(&body, 11, "b", 1, NULL);
    put_value(&body, 12, "c", 1, NULL);
    put_tensor(&g, "w", 1, (const int64_t[]){32}, 1, w, sizeof w);
    put_body_node(&g, "SequenceMap", DIMS("x", "w"), DIMS("z"), "body", &body, NULL, NULL);
    put_held(&g, 11, "x", DIMS("32"), a_sequence, 1);
    put_held(&g, 12, "z", NULL, a_sequence, 1);
    return finish(&g, 17);
}

TEST(onnx_sequence, a_body_for_each_item_reads_one_weight)
{
    struct bytes m = map_model();
    const rlx_load_input two = {.name = "x", .item_count = 2};

    expect_given(t, &m, &two, 1,
                 "rlx 1\n"
                 "graph @main (input %v0 \"x[0]\": f32[32], input %v1 \"x[1]\": f32[32], "
                 "param %b: f32[32]) {\n"
                 "    %c = add %v0, %b\n"
                 "    %v4 = add %v1, %b\n"
                 "    return %c, %v4\n"
                 "}\n");
}

TEST(onnx_sequence, a_body_for_each_item_needs_sequences_of_one_length)
{
    struct bytes g = {.len = 0}, body = {.len = 0};

    NODE(&body, "Add", LIST("a", "b"), "c");
    put_value(&body, 11, "a", 1, NULL);
    put_value(&body, 11, "b", 1, NULL);
    put_value(&body, 12, "c", 1, NULL);
    put_body_node(&g, "SequenceMap", DIMS("x", "y"), DIMS("z"), "body", &body, NULL, NULL);
    put_held(&g, 11, "x", DIMS("2"), a_sequence, 1);
    put_held(&g, 11, "y", DIMS("2"), a_sequence, 1);
    put_held(&g, 12, "z", NULL, a_sequence, 1);
    struct bytes m = finish(&g, 17);
    const rlx_load_input given[] = {{.name = "x", .item_count = 2}, {.name = "y", .item_count = 3}};
    struct result r = import_given(m.at, m.len, given, 2);
    expect_status(t, r.status, RLX_ERROR_SHAPE);
    expect_contains(t, r.diag.first.message, "sequences of 2 and of 3 items");
    onnx_imported_free(&r.m);
}

/* r = If(p): a sequence of a, or one of b (twice where `longer`) */
static struct bytes branches(bool longer)
{
    struct bytes g = {.len = 0}, yes = {.len = 0}, no = {.len = 0};

    NODE(&yes, "SequenceConstruct", "a", "s");
    put_held(&yes, 12, "s", NULL, a_sequence, 1);
    if (longer)
        NODE(&no, "SequenceConstruct", LIST("b", "b"), "t");
    else
        NODE(&no, "SequenceConstruct", "b", "t");
    put_held(&no, 12, "t", NULL, a_sequence, 1);
    put_body_node(&g, "If", DIMS("p"), DIMS("r"), "then_branch", &yes, "else_branch", &no);
    put_value(&g, 11, "p", 9, NULL);
    put_value(&g, 11, "a", 1, DIMS("2"));
    put_value(&g, 11, "b", 1, DIMS("2"));
    put_held(&g, 12, "r", NULL, a_sequence, 1);
    return finish(&g, 13);
}

TEST(onnx_sequence, branches_are_chosen_from_item_by_item)
{
    struct bytes same = branches(false), other = branches(true);

    expect_text(t, &same,
                "rlx 1\n"
                "graph @main (input %p: bool[], input %a: f32[2], input %b: f32[2]) {\n"
                "    %v3 = where %p, %a, %b\n"
                "    return %v3\n"
                "}\n");
    expect_refused(t, &other, RLX_ERROR_UNSUPPORTED, "branches whose output 0 differs");
}

/* A loop that doubles what it holds would ask for all memory there is. */
TEST(onnx_sequence, sequences_cannot_grow_without_end)
{
    struct bytes g = {.len = 0}, body = {.len = 0};
    const int64_t rounds = 4000;
    const uint8_t yes = 1;

    NODE(&body, "Identity", "go", "on");
    NODE(&body, "SequenceInsert", LIST("s", "a"), "more");
    put_value(&body, 11, "i", 7, NULL);
    put_value(&body, 11, "go", 9, NULL);
    put_held(&body, 11, "s", NULL, a_sequence, 1);
    put_value(&body, 12, "on", 9, NULL);
    put_held(&body, 12, "more", NULL, a_sequence, 1);
    put_tensor(&g, "n", 7, NULL, 0, &rounds, sizeof rounds);
    put_tensor(&g, "go", 9, NULL, 0, &yes, sizeof yes);
    NODE(&g, "SequenceConstruct", "a", "first");
    put_body_node(&g, "Loop", DIMS("n", "go", "first"), DIMS("all"), "body", &body, NULL, NULL);
    put_value(&g, 11, "a", 1, DIMS("2"));
    put_held(&g, 12, "all", NULL, a_sequence, 1);
    struct bytes m = finish(&g, 13);
    expect_refused(t, &m, RLX_ERROR_LIMIT, "or too many in all");
}

TEST(onnx_sequence, positions_are_in_the_sequence)
{
    static const int64_t inside[] = {-2, 0, 2}, outside[] = {-3, 3};

    for (size_t i = 0; i < 5; i++) {
        const int64_t *at = i < 3 ? &inside[i] : &outside[i - 3];
        struct bytes g = {.len = 0};
        put_tensor(&g, "at", 7, NULL, 0, at, sizeof *at);
        NODE(&g, "SequenceConstruct", LIST("a", "a"), "s");
        NODE(&g, "SequenceInsert", LIST("s", "a", "at"), "y");
        put_value(&g, 11, "a", 1, DIMS("2"));
        put_held(&g, 12, "y", NULL, a_sequence, 1);
        struct bytes m = finish(&g, 13);
        if (i < 3)
            expect_text(t, &m,
                        "rlx 1\n"
                        "graph @main (input %a: f32[2]) {\n"
                        "    return %a, %a, %a\n"
                        "}\n");
        else
            expect_refused(t, &m, RLX_ERROR_INDEX, "there are 2 items");
    }
}

/* y = SplitToSequence(x), x: f32[5], in parts of these sizes; rank 0: in equal ones */
static struct bytes split_model(const int64_t *sizes, size_t rank, int64_t count)
{
    struct bytes g = {.len = 0};

    put_tensor(&g, "sizes", 7, &count, rank, sizes, (size_t)count * sizeof *sizes);
    NODE(&g, "SplitToSequence", LIST("x", "sizes"), "y");
    put_value(&g, 11, "x", 1, DIMS("5"));
    put_held(&g, 12, "y", NULL, a_sequence, 1);
    return finish(&g, 11);
}

TEST(onnx_sequence, parts_are_the_whole)
{
    static const struct {
        int64_t sizes[3], count;
        size_t rank;
        rlx_status status;
        const char *part; /* of the text, or of the refusal */
    } cases[] = {
        {{2}, 1, 0, RLX_OK, "start=4 len=1"},
        {{INT64_MAX}, 1, 0, RLX_OK, "return %"},
        {{0}, 1, 0, RLX_ERROR_ATTRIBUTE, "parts of 0"},
        {{2, 0, 3}, 3, 1, RLX_OK, "len=0"},
        {{2, 2}, 2, 1, RLX_ERROR_SHAPE, "parts of 4 in all, of an axis of 5"},
        {{2, INT64_MAX}, 2, 1, RLX_ERROR_SHAPE, "a part of 9223372036854775807 where 3 are left"},
        {{6, -1}, 2, 1, RLX_ERROR_SHAPE, "a part of 6 where 5 are left"},
        {{-1, 6}, 2, 1, RLX_ERROR_SHAPE, "a part of -1 where 5 are left"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bytes m = split_model(cases[i].sizes, cases[i].rank, cases[i].count);
        struct result r = import(m.at, m.len);
        struct text text;
        text_init(&text, mem_default());
        expect_status(t, r.status, cases[i].status);
        if (r.status == RLX_OK)
            expect_ok(t, ir_print(r.m.mod, NULL, &text, &r.diag));
        expect_contains(t, r.status == RLX_OK ? text.at : r.diag.first.message, cases[i].part);
        text_free(&text);
        onnx_imported_free(&r.m);
    }
}

static rlx_status import_two_items(struct test *t, const rlx_allocator *mem, void *ctx)
{
    const struct bytes *m = ctx;
    const rlx_load_input two = {.name = "x", .item_count = 2};
    struct onnx_import_options options = {.mode = FILE_READ, .inputs = &two, .input_count = 1};
    struct onnx_imported out;
    struct diag d;

    (void)t;
    diag_init(&d, "load");
    rlx_status s = onnx_import((rlx_str){(const char *)m->at, m->len}, &options, mem, &out, &d);
    onnx_imported_free(&out);
    return s;
}

TEST(onnx_sequence, every_allocation_may_fail)
{
    struct bytes m = map_model();

    expect_survives_no_memory(t, import_two_items, &m);
}

/* ---- Scan of opset 8 ---- */

/* y, z = Scan(lens, s, x): s + x of every step, of two sequences of at most two steps */
static struct bytes scan_model(const int32_t *lens, size_t count)
{
    struct bytes g = {.len = 0}, body = {.len = 0}, n = {.len = 0}, a = {.len = 0};
    const int64_t dim = (int64_t)count;

    NODE(&body, "Add", LIST("s", "x"), "t");
    NODE(&body, "Identity", "t", "u");
    put_value(&body, 11, "s", 1, NULL);
    put_value(&body, 11, "x", 1, NULL);
    put_value(&body, 12, "t", 1, NULL);
    put_value(&body, 12, "u", 1, NULL);
    if (lens)
        put_tensor(&g, "lens", 6, &dim, 1, lens, count * sizeof *lens);
    put_text(&n, 1, lens ? "lens" : "");
    put_text(&n, 1, "s");
    put_text(&n, 1, "x");
    put_text(&n, 2, "y");
    put_text(&n, 2, "z");
    put_text(&n, 4, "Scan");
    put_text(&a, 1, "body");
    put_sub(&a, 6, &body);
    put_int(&a, 20, ONNX_ATTR_GRAPH);
    put_sub(&n, 5, &a);
    a.len = 0;
    put_text(&a, 1, "num_scan_inputs");
    put_int(&a, 3, 1);
    put_int(&a, 20, ONNX_ATTR_INT);
    put_sub(&n, 5, &a);
    put_sub(&g, 1, &n);
    put_value(&g, 11, "s", 1, DIMS("2", "3"));
    put_value(&g, 11, "x", 1, DIMS("2", "2", "3"));
    put_value(&g, 12, "y", 1, NULL);
    put_value(&g, 12, "z", 1, NULL);
    return finish(&g, 8);
}

static void expect_adds(struct test *t, const struct bytes *m, size_t adds)
{
    struct result r = import(m->at, m->len);
    size_t found = 0;

    if (!expect_status(t, r.status, RLX_OK))
        test_note(t, "%s", r.diag.first.message);
    else {
        const struct ir_graph *g = ir_entry(r.m.mod);
        for (size_t i = 0; i < g->node.len; i++)
            found += g->node.at[i].op == RLX_OP_add;
        expect_eq(t, found, adds);
        const struct ir_type *y = ir_type_of(g, g->output.at[0]);
        const struct ir_type *z = ir_type_of(g, g->output.at[1]);
        expect(t, y->rank == 2 && y->dim[0] == 2 && y->dim[1] == 3);
        expect(t, z->rank == 3 && z->dim[0] == 2 && z->dim[1] == 2 && z->dim[2] == 3);
    }
    onnx_imported_free(&r.m);
}

TEST(onnx_sequence, a_scan_of_a_batch_ends_where_its_sequences_do)
{
    struct bytes all = scan_model(NULL, 0);
    struct bytes some = scan_model((const int32_t[]){1, 2}, 2);
    struct bytes too_long = scan_model((const int32_t[]){1, 3}, 2);
    struct bytes none = scan_model((const int32_t[]){0, 2}, 2);
    struct bytes few = scan_model((const int32_t[]){2}, 1);

    expect_adds(t, &all, 4);
    expect_adds(t, &some, 3);
    expect_refused(t, &too_long, RLX_ERROR_UNSUPPORTED, "a sequence of length 3 of 2");
    expect_refused(t, &none, RLX_ERROR_UNSUPPORTED, "a sequence of length 0 of 2");
    expect_refused(t, &few, RLX_ERROR_UNSUPPORTED, "one for each");
}

/* ---- files of their own ---- */

static struct bytes one_tensor(void)
{
    struct bytes b = {.len = 0};
    const float x = 3;

    put_int(&b, 2, 1);
    put_data(&b, 9, &x, sizeof x);
    return b;
}

static rlx_status read_list(const void *at, size_t len, size_t *count, bool *absent)
{
    struct onnx_list l;
    struct arena arena;
    struct diag d;

    diag_init(&d, "load");
    arena_init(&arena, mem_default());
    rlx_status s = onnx_read_list((rlx_str){at, len}, &l, absent, &arena, &d);
    *count = s == RLX_OK ? l.tensor.count : 0;
    arena_free(&arena);
    return s;
}

TEST(onnx_sequence, lists_in_files)
{
    static const struct {
        int type;               /* of the list */
        int tensors, sequences; /* in it; the sequences hold a tensor each */
        rlx_status status;
        size_t count;
        bool absent;
    } cases[] = {
        {1, 2, 0, RLX_OK, 2, false},                /* a sequence */
        {1, 0, 0, RLX_OK, 0, false},                /* without items */
        {0, 0, 0, RLX_OK, 0, true},                 /* an optional of nothing */
        {3, 0, 1, RLX_OK, 1, false},                /* of a sequence */
        {3, 0, 0, RLX_OK, 0, true},                 /* that is not there */
        {3, 0, 2, RLX_ERROR_UNSUPPORTED, 0, false}, /* a sequence of sequences */
        {3, 1, 1, RLX_ERROR_UNSUPPORTED, 0, false},
        {1, 1, 1, RLX_ERROR_FORMAT, 0, false},
        {0, 1, 0, RLX_ERROR_FORMAT, 0, false},
        {4, 0, 0, RLX_ERROR_UNSUPPORTED, 0, false}, /* a map */
        {-1, 0, 0, RLX_ERROR_UNSUPPORTED, 0, false},
    };
    struct bytes tensor = one_tensor(), sequence = {.len = 0};

    put_int(&sequence, 2, 1);
    put_sub(&sequence, 3, &tensor);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bytes b = {.len = 0};
        size_t count;
        bool absent;
        put_text(&b, 1, "name");
        put_int(&b, 2, (uint64_t)cases[i].type);
        for (int k = 0; k < cases[i].tensors; k++)
            put_sub(&b, 3, &tensor);
        for (int k = 0; k < cases[i].sequences; k++)
            put_sub(&b, 5, &sequence);
        expect_status(t, read_list(b.at, b.len, &count, &absent), cases[i].status);
        expect_eq(t, count, cases[i].count);
        expect(t, cases[i].status != RLX_OK || absent == cases[i].absent);
    }
}

TEST(onnx_sequence, a_list_cut_anywhere_is_refused_or_read)
{
    struct bytes tensor = one_tensor(), sequence = {.len = 0}, b = {.len = 0};

    put_int(&sequence, 2, 1);
    put_sub(&sequence, 3, &tensor);
    put_int(&b, 2, 3);
    put_sub(&b, 5, &sequence);
    for (size_t len = 0; len < b.len; len++) {
        uint8_t *exact = malloc(len ? len : 1); /* so that a read past its end shows */
        size_t count;
        bool absent;
        require(t, exact);
        memcpy(exact, b.at, len);
        read_list(exact, len, &count, &absent);
        expect(t, count == 0);
        free(exact);
    }
    for (int i = 0; i < 80; i++) { /* sequences in sequences */
        struct bytes outer = {.len = 0};
        put_int(&outer, 2, 3);
        put_sub(&outer, 5, &b);
        b = outer;
    }
    size_t count;
    bool absent;
    expect_status(t, read_list(b.at, b.len, &count, &absent), RLX_ERROR_LIMIT);
}
