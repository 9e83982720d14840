/* text_test.c: the text form: what is printed is what was parsed, and what is wrong is said where.
 * Values
 * have text_value_test.c, hostile texts text_hostile_test.c. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "text_check.h"

/* ---- the corpus: every op, every kind of value ---------------------------------------------- */

static void mark_ops(const struct ir_module *m, bool *seen)
{
    for (size_t i = 0; i < m->graph.len; i++)
        IR_EACH(n, m->graph.at[i]) {
            seen[n->op] = true;
        }
}

TEST(text, corpus_prints_as_it_parses)
{
    const char *folder = test_source(t, "fuzz/corpus/ir_text");
    DIR *dir = opendir(folder);
    bool seen[RLX_OP_count] = {false};
    int files = 0;

    require(t, dir != NULL);
    for (struct dirent *e; (e = readdir(dir));) {
        char path[4096];
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        const char *source = test_read(t, path, NULL);
        if (!source)
            continue;
        files++;
        test_note(t, "%s", e->d_name);
        expect_print(t, source, NULL);
        struct ir_module *m = parse(t, source);
        if (m)
            mark_ops(m, seen);
        ir_module_destroy(m);
    }
    closedir(dir);
    test_note(t, "%s", "");
    expect(t, files >= 12);
    for (int op = RLX_OP_none + 1; op < RLX_OP_count; op++) {
        if (!seen[op])
            fail(t, "no file of fuzz/corpus/ir_text holds the op %s", op_info((rlx_op)op)->name);
    }
}

/* ---- the canonical form ------------------------------------------------------------------- */

TEST(text, the_example_of_the_format)
{
    static const char text[] = "rlx 1\n"
                               "graph (input %x: f32[4,8], param %w: f32[16,8]) {\n"
                               "    %y = matmul %x, %w transpose_b=true\n"
                               "    return %y\n"
                               "}\n";

    expect_print(t, text, text);
}

TEST(text, blanks_comments_and_order_of_attributes_do_not_matter)
{
    expect_print(t,
                 "  rlx 1 # the header\r\n#nothing\ngraph(input%x:f32[ 4 , n ]){%y=reduce_sum "
                 "%x\n keep_dim=true axes=[1]return%y}# the end",
                 NULL);
}

TEST(text, canonical_layout)
{
    expect_print(t,
                 "rlx 1 dim seq <= 512 dim unused dim top <= 7 dim b graph @main (input %x \"x\": "
                 "f32[seq,b], param %w \"layer w\": f32[3]) { %s = reduce_sum %x keep_dim=false "
                 "axes=[-1] %v9 = relu %s return %v9, %w, %v9 }",
                 "rlx 1\n"
                 "dim seq <= 512\n"
                 "dim top <= 7\n"
                 "dim b\n"
                 "graph @main (input %x: f32[seq,b], param %w \"layer w\": f32[3]) {\n"
                 "    %s = reduce_sum %x axes=[1]\n"
                 "    %v3 = relu %s\n"
                 "    return %v3, %w, %v3\n"
                 "}\n");
}

TEST(text, long_lists_of_leaves_take_a_line_each)
{
    expect_print(t,
                 "rlx 1 graph (input %the_first_of_them: f32[10,20,30], input %the_second_of_them: "
                 "f32[10,20,30], state %c: i8[1]) { return %c }",
                 "rlx 1\n"
                 "graph (\n"
                 "    input %the_first_of_them: f32[10,20,30],\n"
                 "    input %the_second_of_them: f32[10,20,30],\n"
                 "    state %c: i8[1]\n"
                 ") {\n"
                 "    return %c\n"
                 "}\n");
}

TEST(text, types_are_printed_and_checked)
{
    struct ir_module *m = parse(t, "rlx 1 graph (input %x: f32[n,4]) {"
                                   " %y = reduce_max %x axes=[1] : f32[n] return %y }");

    require(t, m != NULL);
    struct text out = print(t, m, true, false);
    expect_contains(t, out.at, "%y = reduce_max %x axes=[1]: f32[n]\n");
    text_free(&out);
    ir_module_destroy(m);
    expect_refusal(t, "rlx 1\ngraph (input %x: f32[n,4]) {\n %y = relu %x : f32[n,5]\n return %y }",
                   RLX_ERROR_FORMAT, "3:17: the type is declared as f32[n,5], but it is f32[n,4]");
}

TEST(text, sub_graphs_in_any_order)
{
    struct ir_module *m = parse(
        t, "rlx 1 graph (input %p: bool[], input %x: f32[2]) { %y = if %p, %x then_graph=@b "
           "else_graph=@a return %y } graph @a (input %x: f32[2]) { %q = const bool[] {1} %r = if "
           "%q, %x then_graph=@b else_graph=@b return %r } graph @b (input %x: f32[2]) { return %x "
           "} graph @lonely () { %c = const i32[] {5} return %c }");

    require(t, m != NULL);
    expect_eq(t, m->graph.len, 4);
    const struct ir_node *n = &ir_entry(m)->node.at[2];
    expect_eq(t, n->attr.if_.then_graph, 2);
    expect_eq(t, n->attr.if_.else_graph, 1);
    expect_eq(t, m->graph.at[3]->node.len, 1);
    ir_module_destroy(m);
}

/* ---- names --------------------------------------------------------------------------------- */

static ir_value add(struct test *t, struct ir_graph *g, rlx_op op, ir_value in, const char *label)
{
    struct ir_new_node n = {.op = op, .in = &in, .in_count = 1, .label = rlx_cstr(label)};
    struct diag d;
    ir_value v = 0;

    diag_init(&d, "test");
    attr_defaults(op, &n.attr);
    expect_ok(t, ir_add(g, &n, &v, &d));
    return v;
}

static ir_value add_input(struct test *t, struct ir_graph *g, const char *name, const char *label)
{
    struct ir_new_node n = {.op = RLX_OP_input, .label = rlx_cstr(label)};
    struct diag d;
    ir_value v = 0;

    diag_init(&d, "test");
    attr_defaults(n.op, &n.attr);
    n.attr.leaf.name = (struct ir_blob){name, strlen(name)};
    n.attr.leaf.dtype = RLX_DTYPE_f32;
    expect_ok(t, ir_add(g, &n, &v, &d));
    return v;
}

/* Leaves in the middle, labels that clash, that are not names, that look like numbers. */
TEST(text, names_are_unique_and_stay)
{
    struct ir_module *m = NULL;
    struct ir_graph *g = NULL, *sub = NULL;
    struct diag d;

    diag_init(&d, "test");
    require_ok(t, ir_module_create(mem_default(), &m, &d));
    require_ok(t, ir_graph_add(m, STR("not a name"), &g, &d));
    ir_value a = add_input(t, g, "a", NULL);
    ir_value b = add(t, g, RLX_OP_relu, a, "same");
    ir_value c = add(t, g, RLX_OP_relu, b, "same");
    ir_value e = add_input(t, g, "an input", "same");
    ir_value f = add(t, g, RLX_OP_exp, c, "a b");
    ir_value h = add(t, g, RLX_OP_exp, f, "v0");
    ir_value i = add(t, g, RLX_OP_exp, h, "a");
    add_input(t, g, "v17", NULL);
    require_ok(t, ir_add_output(g, i, &d));
    require_ok(t, ir_add_output(g, e, &d));
    for (int k = 0; k < 3; k++) { /* g1 is taken, "x" is there twice */
        static const char *const names[] = {"", "g1", "g1"};
        require_ok(t, ir_graph_add(m, rlx_cstr(names[k]), &sub, &d));
        require_ok(t, ir_add_output(sub, add_input(t, sub, "p", NULL), &d));
    }
    struct text first = print(t, m, false, false);
    expect_str(t, first.at,
               "rlx 1\n"
               "graph (input %a: f32[], input %same \"an input\": f32[], input %v2 \"v17\": f32[]) "
               "{\n"
               "    %v3 = relu %a\n"
               "    %v4 = relu %v3\n"
               "    %v5 = exp %v4\n"
               "    %v6 = exp %v5\n"
               "    %v7 = exp %v6\n"
               "    return %v7, %same\n"
               "}\n\n"
               "graph @g1_ (input %p: f32[]) {\n    return %p\n}\n\n"
               "graph @g1 (input %p: f32[]) {\n    return %p\n}\n\n"
               "graph @g3 (input %p: f32[]) {\n    return %p\n}\n");
    expect_print(t, first.at, first.at);
    text_free(&first);
    ir_module_destroy(m);
}

TEST(text, names_become_labels)
{
    struct ir_module *m =
        parse(t, "rlx 1 graph (input %x: f32[2]) { %a.b = relu %x %v1 = exp %a.b return %v1 }");

    require(t, m != NULL);
    const struct ir_node *n = ir_entry(m)->node.at;
    expect(t, str_eq(n[0].label, STR("x")) && str_eq(ir_leaf_name(&n[0]), STR("x")));
    expect(t, str_eq(n[1].label, STR("a.b")));
    expect_eq(t, n[2].label.len, 0);
    ir_module_destroy(m);
}

TEST(text, strings_are_escaped)
{
    struct ir_module *m = parse(
        t, "rlx 1 graph (input %x \"a\\\"b\\\\c\\n\\t\\x01\\x7f\xc3\xa9\": f32[]) { return %x }");

    require(t, m != NULL);
    expect(t, str_eq(ir_leaf_name(ir_entry(m)->node.at), STR("a\"b\\c\n\t\x01\x7f\xc3\xa9")));
    struct text out = print(t, m, false, false);
    expect_contains(t, out.at, "\"a\\\"b\\\\c\\n\\t\\x01\\x7f\xc3\xa9\"");
    text_free(&out);
    ir_module_destroy(m);
}

/* ---- errors -------------------------------------------------------------------------------- */

TEST(text, errors_say_where_and_what)
{
#define G "rlx 1\ngraph (input %x: f32[4,8]) {\n"
    static const struct {
        const char *source;
        rlx_status status;
        const char *part;
    } row[] = {
        {"", RLX_ERROR_FORMAT, "1:1: expected 'rlx 1', which opens every text, but the text ends"},
        {"graph", RLX_ERROR_FORMAT, "1:1: expected 'rlx 1'"},
        {"rlx", RLX_ERROR_FORMAT, "1:4: expected the version"},
        {"rlx 2", RLX_ERROR_VERSION, "1:5: the text is of version 2; this reads version 1"},
        {"rlx 1", RLX_ERROR_FORMAT, "1:6: expected 'graph', but the text ends"},
        {"rlx 1\ndim", RLX_ERROR_FORMAT, "2:4: expected the name of a dim"},
        {"rlx 1\ndim n <= 0\n", RLX_ERROR_FORMAT, "2:10: 0 is out of range"},
        {"rlx 1\ndim n < 3\n", RLX_ERROR_FORMAT, "2:7: expected '<='"},
        {"rlx 1\ndim n <= 3 dim n <= 4 graph () {}", RLX_ERROR_FORMAT,
         "2:16: the dim n has two bounds"},
        {"rlx 1\ngraph {", RLX_ERROR_FORMAT, "2:7: expected '(', got '{'"},
        {"rlx 1\ngraph (", RLX_ERROR_FORMAT, "2:8: the text ends inside the '(' of line 2"},
        {"rlx 1\ngraph () {\n", RLX_ERROR_FORMAT, "3:1: the text ends inside the '{' of line 2"},
        {"rlx 1\ngraph (input x: f32[]) {}", RLX_ERROR_FORMAT,
         "2:14: expected a value such as %x, got 'x'"},
        {"rlx 1\ngraph (inptu %x: f32[]) {}", RLX_ERROR_FORMAT,
         "2:8: expected input, param or state"},
        {"rlx 1\ngraph (input %x f32[]) {}", RLX_ERROR_FORMAT, "2:17: expected ':', got 'f32'"},
        {"rlx 1\ngraph (input %x: f33[]) {}", RLX_ERROR_FORMAT,
         "2:18: there is no element type 'f33'; known are f32 f16"},
        {"rlx 1\ngraph (input %x: f32[4,]) {}", RLX_ERROR_FORMAT,
         "2:24: expected a size after ','"},
        {"rlx 1\ngraph (input %x: f32[4;]) {}", RLX_ERROR_FORMAT,
         "2:23: no token begins with this character"},
        {"rlx 1\ngraph (input %x: f32[1,2,3,4,5,6,7,8,9]) {}", RLX_ERROR_LIMIT,
         "2:38: a type has at most 8 dims"},
        {"rlx 1\ngraph (input %x: f32[99999999999999999999]) {}", RLX_ERROR_FORMAT,
         "2:22: 99999999999999999999 is out of range"},
        {"rlx 1\ngraph (input %x: f32[-1]) {}", RLX_ERROR_FORMAT,
         "2:22: the size '-1' is negative"},
        {"rlx 1\ngraph (input %x: f32[n*9223372036854775807*2]) {}", RLX_ERROR_FORMAT, "overflows"},
        {"rlx 1\ngraph (param %x: f32[n]) {}", RLX_ERROR_SHAPE, "2:8: param: "},
        {"rlx 1\ngraph (input %x: f32[], input %x: f32[]) {}", RLX_ERROR_FORMAT,
         "2:31: %x is already defined"},
        {"rlx 1\ngraph (input %x: f32[], input %y \"x\": f32[]) {}", RLX_ERROR_GRAPH,
         "2:25: input: the name \"x\" is taken"},
        {"rlx 1\ngraph (input %x \"\": f32[]) {}", RLX_ERROR_GRAPH,
         "2:8: input: the name is empty"},
        {G "  return }", RLX_ERROR_FORMAT, "3:10: expected a value such as %x, got '}'"},
        {G "  return %x } }", RLX_ERROR_FORMAT,
         "3:15: expected 'graph' or the end of the text, got '}'"},
        {G "  return %x,\n}", RLX_ERROR_FORMAT, "4:1: expected a value such as %x"},
        {G "  return %y\n}", RLX_ERROR_FORMAT, "3:10: %y is not defined"},
        {G "  %y = relu %z\n  %z = relu %y\n  return %y }", RLX_ERROR_FORMAT,
         "3:13: %z is used before it is defined, on line 4"},
        {G "  %y = add %x, %y\n  return %y }", RLX_ERROR_FORMAT, "3:16: %y is not defined"},
        {G "  %x = relu %x\n  return %x }", RLX_ERROR_FORMAT, "3:3: %x is already defined"},
        {G "  %y = rleu %x\n  return %y }", RLX_ERROR_FORMAT,
         "3:8: there is no op 'rleu'; did you mean relu?"},
        {G "  %y = matmull %x, %x\n  return %y }", RLX_ERROR_FORMAT, "did you mean matmul?"},
        {G "  %y = frobnicate %x\n  return %y }", RLX_ERROR_FORMAT, "there is no op 'frobnicate'"},
        {G "  %y = none %x\n  return %y }", RLX_ERROR_FORMAT, "there is no op 'none'"},
        {G "  %y = input %x\n  return %y }", RLX_ERROR_FORMAT,
         "3:8: an input is declared in the parentheses"},
        {G "  %y relu %x\n  return %y }", RLX_ERROR_FORMAT, "3:6: expected '=', got 'relu'"},
        {G "  %y = \n  return %x }", RLX_ERROR_FORMAT, "4:3: there is no op 'return'"},
        {G "  %y = relu\n  return %x }", RLX_ERROR_GRAPH, "3:8: relu: takes 1 inputs, got 0"},
        {G "  %y = add %x %x\n  return %y }", RLX_ERROR_FORMAT,
         "3:15: expected ',' between operands"},
        {G "  %y = matmul %x, %x\n  return %y }", RLX_ERROR_SHAPE, "3:8: matmul: "},
        {G "  %y = softmax %x axis=2\n  return %y }", RLX_ERROR_ATTRIBUTE, "3:8: softmax: "},
        {G "  %y = not %x\n  return %y }", RLX_ERROR_DTYPE, "3:8: not: "},
        {G "  %1 = relu %x\n  return %x }", RLX_ERROR_FORMAT, "3:3: expected a name after '%'"},
        {G "  %y = relu %x \"\n  return %x }", RLX_ERROR_FORMAT,
         "3:16: the string has no closing quote"},
        {G "  %y = softmax %x axis=1x\n  return %x }", RLX_ERROR_FORMAT,
         "3:24: this is neither a number nor a word"},
        {G "  %y = const f32[n] {}\n return %y }", RLX_ERROR_FORMAT,
         "3:14: the sizes of a constant are numbers"},
        {G "  %y = const f32[2] {1}\n return %y }", RLX_ERROR_FORMAT,
         "3:23: f32[2] has 2 elements, but there are fewer"},
        {G "  %y = const f32[2] {1 2 3}\n return %y }", RLX_ERROR_FORMAT,
         "3:26: f32[2] has 2 elements, but there are more"},
        {G "  %y = const f32[2] {1, }\n return %y }", RLX_ERROR_FORMAT,
         "3:25: expected a number after ','"},
        {G "  %y = const f32[2] {1 x}\n return %y }", RLX_ERROR_FORMAT,
         "3:24: expected a number, got 'x'"},
        {G "  %y = const f32[2] 1\n return %y }", RLX_ERROR_FORMAT,
         "3:21: expected '{', 'bytes' or 'npy'"},
        {G "  %y = const f16[1] {1e5}\n return %y }", RLX_ERROR_FORMAT,
         "3:22: the number is too large for f16"},
        {G "  %y = const f32[1] {1e39}\n return %y }", RLX_ERROR_FORMAT, "too large for f32"},
        {G "  %y = const i8[1] {128}\n return %y }", RLX_ERROR_FORMAT,
         "3:21: 128 is out of range: -128 to 127 fit here"},
        {G "  %y = const u8[1] {-1}\n return %y }", RLX_ERROR_FORMAT,
         "-1 is out of range: 0 to 255"},
        {G "  %y = const i32[1] {1.5}\n return %y }", RLX_ERROR_FORMAT,
         "expected an integer, got '1.5'"},
        {G "  %y = const bool[1] {2}\n return %y }", RLX_ERROR_FORMAT, "2 is out of range: 0 to 1"},
        {G "  %y = const bool[1] bytes 0x02\n return %y }", RLX_ERROR_FORMAT,
         "a bool is 0 or 1, not 2"},
        {G "  %y = const c64[1] {1}\n return %y }", RLX_ERROR_FORMAT, "expected a number, got '}'"},
        {G "  %y = const f32[1] bytes 0x00\n return %y }", RLX_ERROR_FORMAT,
         "3:27: the type takes 4 bytes, but 1 are given"},
        {G "  %y = const f32[1] bytes 0x000\n return %y }", RLX_ERROR_FORMAT,
         "two hex digits each"},
        {G "  %y = const f32[1] bytes 00\n return %y }", RLX_ERROR_FORMAT,
         "expected bytes such as 0x00ff"},
        {G "  %y = const f32[4294967296,4294967296] {}\n return %y }", RLX_ERROR_LIMIT,
         "overflows"},
        {G "  %y = const f32[1000000000000] {1}\n return %y }", RLX_ERROR_FORMAT,
         "3:33: f32[1000000000000] has 1000000000000 elements"},
        {G "  %y = custom %x name=\"sharpen\"\n return %y }", RLX_ERROR_GRAPH, "3:8: custom: "},
        {"rlx 1 graph @a () {} graph @a () {}", RLX_ERROR_FORMAT,
         "1:28: there is another graph @a"},
    };
#undef G

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        test_note(t, "%s", row[i].source);
        expect_refusal(t, row[i].source, row[i].status, row[i].part);
    }
}

TEST(text, errors_name_the_node)
{
    struct ir_module *m = NULL;
    struct diag d;

    diag_init(&d, "parse");
    ir_parse(STR("rlx 1 graph (input %x: f32[4]) { %y = relu %x %z.1 = not %y return %z.1 }"), NULL,
             mem_default(), &m, &d);
    expect_status(t, d.first.status, RLX_ERROR_DTYPE);
    expect_str(t, d.first.op, "not");
    expect_str(t, d.first.label, "z.1");
    expect_eq(t, d.first.node, 2);
}

TEST(text, columns_count_characters)
{
    expect_refusal(t, "rlx 1 graph (input %x \"\xc3\xa9\xc3\xa9\": f33[]) {}", RLX_ERROR_FORMAT,
                   "1:29: there is no element type");
}
