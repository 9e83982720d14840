/* text_attr.c: attributes of the text form, both ways: `axis=1 keep_dim=true`. How a value is
 * written follows from its kind in ops.def. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/text/text_impl.h"

/* ---- printing ------------------------------------------------------------------------------ */

static void print_ints(const rlx_list *list, struct text *out)
{
    text_add(out, STR("["));
    for (int32_t i = 0; i < list->count; i++)
        text_addf(out, i ? ",%" PRId64 : "%" PRId64, list->at[i]);
    text_add(out, STR("]"));
}

static void print_dims(const struct ir_module *m, const rlx_list *list, struct text *out)
{
    text_add(out, STR("["));
    for (int32_t i = 0; i < list->count; i++) {
        if (i)
            text_add(out, STR(","));
        dim_print(m->dims, list->at[i], out);
    }
    text_add(out, STR("]"));
}

static void print_floats(const struct ir_blob *b, struct text *out)
{
    const float *v = b->ptr;

    text_add(out, STR("["));
    for (size_t i = 0; i < b->len; i++) {
        if (i)
            text_add(out, STR(","));
        text_print_f32(v[i], out);
    }
    text_add(out, STR("]"));
}

/* How many operands a step of that op has; 0: it cannot be one. */
static int32_t step_operands(rlx_op op)
{
    int32_t count = op_info(op)->inputs_max;

    return count >= 1 && count <= 3 && op_info(op)->inputs_min == count ? count : 0;
}

/* [[add,i0,i1],[relu,s0],[cast,s1,f16]]: i is an input of the node, s an earlier step. */
static void print_chain(const struct ir_blob *b, struct text *out)
{
    const rlx_chain_step *step = b->ptr;

    text_add(out, STR("["));
    for (size_t i = 0; i < b->len; i++) {
        const struct op_info *o = op_info((rlx_op)step[i].op);
        text_addf(out, i ? ",[%s" : "[%s", o->name);
        for (int32_t k = 0; k < step_operands((rlx_op)step[i].op); k++) {
            int32_t in = step[i].in[k];
            text_addf(out, in < 0 ? ",i%d" : ",s%d", in < 0 ? -1 - in : in);
        }
        if (step[i].op == RLX_OP_cast)
            text_addf(out, ",%s", rlx_dtype_name((rlx_dtype)step[i].to));
        text_add(out, STR("]"));
    }
    text_add(out, STR("]"));
}

static void print_value(const struct ir_module *m, const struct attr_info *a, const void *at,
                        struct text *out)
{
    const struct ir_blob *blob = at;
    const char *word;

    switch (a->kind) {
    case ATTR_BOOL: text_add(out, *(const attr_BOOL *)at ? STR("true") : STR("false")); break;
    case ATTR_I64: text_addf(out, "%" PRId64, *(const attr_I64 *)at); break;
    case ATTR_U64: text_addf(out, "%" PRIu64, *(const attr_U64 *)at); break;
    case ATTR_F32: text_print_f32(*(const attr_F32 *)at, out); break;
    case ATTR_F64: text_print_f64(*(const attr_F64 *)at, out); break;
    case ATTR_ENUM:
        word = enum_word(a->words, *(const attr_ENUM *)at);
        text_add(out, word ? rlx_cstr(word) : STR("?"));
        break;
    case ATTR_DTYPE: text_addf(out, "%s", rlx_dtype_name(*(const attr_DTYPE *)at)); break;
    case ATTR_DIM: dim_print(m->dims, *(const attr_DIM *)at, out); break;
    case ATTR_AXES:
    case ATTR_INTS: print_ints(at, out); break;
    case ATTR_DIMS: print_dims(m, at, out); break;
    case ATTR_FLOATS: print_floats(blob, out); break;
    case ATTR_BYTES: text_print_hex(blob->ptr, blob->len, out); break;
    case ATTR_STRING: text_print_string((rlx_str){blob->ptr, blob->len}, out); break;
    case ATTR_GRAPH:
        text_add(out, STR("@"));
        text_print_graph_name(m, *(const attr_GRAPH *)at, out);
        break;
    case ATTR_CHAIN: print_chain(blob, out); break;
    case ATTR_UNARY: text_addf(out, "%s", op_info(*(const attr_UNARY *)at)->name); break;
    }
}

void ir_print_attrs(const struct ir_module *m, rlx_op op, const union ir_attr *v, struct text *out)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(op)->family, &count);
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        if (attr_is_default(&a[i], v))
            continue;
        text_addf(out, any ? " %s=" : "%s=", a[i].name);
        print_value(m, &a[i], (const char *)v + a[i].offset, out);
        any = true;
    }
}

/* ---- reading: words ------------------------------------------------------------------------ */

static rlx_status parse_bool(struct text_parser *p, bool *out)
{
    bool yes = text_token_is(&p->tok, "true");

    if (!yes && !text_token_is(&p->tok, "false"))
        return text_unexpected(p, "true or false");
    *out = yes;
    text_next(p);
    return RLX_OK;
}

/* Adds the words of a list to a message, as long as they fit. */
static void list_word(char *list, size_t cap, const char *word)
{
    size_t len = strlen(list);

    snprintf(list + len, cap - len, "%s%s", len ? ", " : "", word);
}

static rlx_status parse_enum(struct text_parser *p, const char *words, attr_ENUM *out)
{
    char known[300] = "";

    if (p->tok.kind == TEXT_WORD && enum_from_word(words, p->tok.text, out)) {
        text_next(p);
        return RLX_OK;
    }
    for (int32_t i = 0; enum_word(words, i); i++)
        list_word(known, sizeof known, enum_word(words, i));
    char what[340];
    snprintf(what, sizeof what, "one of %s", known);
    return text_unexpected(p, what);
}

static rlx_status parse_dtype(struct text_parser *p, rlx_dtype *out)
{
    if (p->tok.kind != TEXT_WORD || !dtype_from_name(p->tok.text, out))
        return text_unexpected(p, "an element type such as f32");
    text_next(p);
    return RLX_OK;
}

static rlx_status parse_op(struct text_parser *p, rlx_op *out)
{
    if (p->tok.kind != TEXT_WORD || !op_from_name(p->tok.text, out))
        return text_unexpected(p, "the name of an op");
    text_next(p);
    return RLX_OK;
}

static rlx_status parse_unary(struct text_parser *p, attr_UNARY *out)
{
    if (text_take(p, "none")) {
        *out = RLX_OP_none;
        return RLX_OK;
    }
    size_t at = p->tok.at;
    TRY(parse_op(p, out));
    if (op_info(*out)->family != FAMILY_unary)
        return text_fail(p, at, RLX_ERROR_FORMAT, "%s is not a unary op", op_info(*out)->name);
    return RLX_OK;
}

/* ---- reading: lists ------------------------------------------------------------------------ */

/* `[` has been taken: is there another element? Deals with the commas. */
static rlx_status more(struct text_parser *p, size_t seen, bool *out)
{
    *out = false;
    if (text_take(p, "]"))
        return RLX_OK;
    if (seen && !text_take(p, ","))
        return text_unexpected(p, "',' or ']'");
    *out = true;
    return RLX_OK;
}

static rlx_status parse_list(struct text_parser *p, bool dims, rlx_list *out)
{
    rlx_list list = {0};
    bool another;

    TRY(text_need(p, "["));
    for (;;) {
        TRY(more(p, (size_t)list.count, &another));
        if (!another)
            break;
        if (list.count == RLX_MAX_RANK)
            return text_fail(p, p->tok.at, RLX_ERROR_LIMIT, "a list has at most %d entries",
                             RLX_MAX_RANK);
        int64_t *at = &list.at[list.count++];
        TRY(dims ? text_parse_dim(p, true, at) : text_parse_i64(p, INT64_MIN, INT64_MAX, at));
    }
    *out = list;
    return RLX_OK;
}

static rlx_status parse_floats(struct text_parser *p, struct ir_blob *out)
{
    /* Count the commas first: an element each, and one more. */
    struct text_parser ahead = *p;
    size_t room = 1, count = 0;
    bool another;

    for (; ahead.tok.kind != TEXT_END && ahead.tok.kind != TEXT_BAD; text_next(&ahead)) {
        if (text_token_is(&ahead.tok, "]"))
            break;
        room += text_token_is(&ahead.tok, ",");
    }
    float *v = arena_array(&p->mod->arena, float, room);
    if (!v)
        return diag_no_memory(p->diag, room * sizeof *v);
    TRY(text_need(p, "["));
    for (;;) {
        TRY(more(p, count, &another));
        if (!another)
            break;
        TRY(text_parse_f32(p, &v[count++]));
    }
    *out = (struct ir_blob){v, count};
    return RLX_OK;
}

static rlx_status parse_bytes(struct text_parser *p, struct ir_blob *out)
{
    if (p->tok.kind != TEXT_HEX)
        return text_unexpected(p, "bytes such as 0x00ff");
    size_t count = text_hex_count(&p->tok);
    if (count == SIZE_MAX)
        return text_fail(p, p->tok.at, RLX_ERROR_FORMAT, "bytes take two hex digits each");
    unsigned char *to = arena_alloc(&p->mod->arena, count, 16);
    if (!to)
        return diag_no_memory(p->diag, count);
    text_hex_bytes(&p->tok, to);
    *out = (struct ir_blob){to, count};
    text_next(p);
    return RLX_OK;
}

static rlx_status parse_text(struct text_parser *p, struct ir_blob *out)
{
    rlx_str s;

    TRY(text_parse_string(p, &s));
    s = arena_str(&p->mod->arena, s);
    if (!s.ptr)
        return diag_no_memory(p->diag, s.len);
    *out = (struct ir_blob){s.ptr, s.len};
    return RLX_OK;
}

/* ---- reading: chains ----------------------------------------------------------------------- */

/* i<n> or s<k> */
static rlx_status parse_operand(struct text_parser *p, int32_t *out)
{
    rlx_str s = p->tok.text;
    int64_t number;

    if (p->tok.kind != TEXT_WORD || s.len < 2 || (s.ptr[0] != 'i' && s.ptr[0] != 's') ||
        !str_to_i64((rlx_str){s.ptr + 1, s.len - 1}, &number) || number >= INT32_MAX)
        return text_unexpected(p, "an operand: i and the number of an input, or s and that of an "
                                  "earlier step");
    *out = s.ptr[0] == 'i' ? RLX_CHAIN_INPUT((int32_t)number) : (int32_t)number;
    text_next(p);
    return RLX_OK;
}

static rlx_status parse_step(struct text_parser *p, rlx_chain_step *out)
{
    rlx_chain_step step = {0};
    rlx_dtype to = RLX_DTYPE_f32;
    rlx_op op;

    TRY(text_need(p, "["));
    size_t at = p->tok.at;
    TRY(parse_op(p, &op));
    step.op = (int32_t)op;
    int32_t count = step_operands(op);
    if (count == 0)
        return text_fail(p, at, RLX_ERROR_FORMAT, "%s cannot be a step of a chain",
                         op_info(op)->name);
    for (int32_t i = 0; i < count; i++) {
        TRY(text_need(p, ","));
        TRY(parse_operand(p, &step.in[i]));
    }
    if (op == RLX_OP_cast) {
        TRY(text_need(p, ","));
        TRY(parse_dtype(p, &to));
    }
    step.to = (int32_t)to;
    *out = step;
    return text_need(p, "]");
}

static rlx_status parse_chain(struct text_parser *p, struct ir_blob *out)
{
    const rlx_allocator *mem = p->mod->mem;
    VEC(rlx_chain_step) steps = {0};
    rlx_status s = text_need(p, "[");
    bool another = true;

    while (s == RLX_OK) {
        s = more(p, steps.len, &another);
        if (s != RLX_OK || !another)
            break;
        s = vec_room(mem, &steps) ? parse_step(p, &steps.at[steps.len])
                                  : diag_no_memory(p->diag, sizeof *steps.at);
        steps.len++;
    }
    if (s == RLX_OK) {
        rlx_chain_step *own = arena_array(&p->mod->arena, rlx_chain_step, steps.len);
        if (own && steps.len)
            memcpy(own, steps.at, steps.len * sizeof *own);
        *out = (struct ir_blob){own, steps.len};
        if (!own)
            s = diag_no_memory(p->diag, steps.len * sizeof *own);
    }
    vec_free(mem, &steps);
    return s;
}

/* ---- reading: attributes ------------------------------------------------------------------- */

static rlx_status parse_value(struct text_parser *p, const struct attr_info *a, void *at)
{
    switch (a->kind) {
    case ATTR_BOOL: return parse_bool(p, at);
    case ATTR_I64: return text_parse_i64(p, INT64_MIN, INT64_MAX, at);
    case ATTR_U64: return text_parse_u64(p, UINT64_MAX, at);
    case ATTR_F32: return text_parse_f32(p, at);
    case ATTR_F64: return text_parse_f64(p, at);
    case ATTR_ENUM: return parse_enum(p, a->words, at);
    case ATTR_DTYPE: return parse_dtype(p, at);
    case ATTR_DIM: return text_parse_dim(p, true, at);
    case ATTR_AXES:
    case ATTR_INTS: return parse_list(p, false, at);
    case ATTR_DIMS: return parse_list(p, true, at);
    case ATTR_FLOATS: return parse_floats(p, at);
    case ATTR_BYTES: return parse_bytes(p, at);
    case ATTR_STRING: return parse_text(p, at);
    case ATTR_GRAPH:
        if (p->tok.kind != TEXT_GRAPH)
            return text_unexpected(p, "a graph such as @body");
        return p->find_graph(p, at);
    case ATTR_CHAIN: return parse_chain(p, at);
    case ATTR_UNARY: return parse_unary(p, at);
    }
    return RLX_OK;
}

static rlx_status unknown_attr(struct text_parser *p, rlx_op op)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(op)->family, &count);
    char known[300] = "";

    if (count == 0)
        return text_fail(p, p->tok.at, RLX_ERROR_FORMAT, "%s has no attributes, but got '%.*s'",
                         op_info(op)->name, STR_ARG(p->tok.text));
    for (size_t i = 0; i < count; i++)
        list_word(known, sizeof known, a[i].name);
    return text_fail(p, p->tok.at, RLX_ERROR_FORMAT, "%s has no attribute '%.*s'; it has %s",
                     op_info(op)->name, STR_ARG(p->tok.text), known);
}

/* Those that must be there: not in the text, and still as attr_defaults leaves them. */
static rlx_status check_required(struct text_parser *p, size_t at, rlx_op op, uint64_t given,
                                 const union ir_attr *attr)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(op)->family, &count);

    for (size_t i = 0; i < count; i++) {
        struct attr_info row = a[i];
        if (strcmp(row.default_text, "REQUIRED") != 0 || (given >> i & 1))
            continue;
        row.default_text = "EMPTY";
        if (attr_is_default(&row, attr))
            return text_fail(p, at, RLX_ERROR_ATTRIBUTE, "%s: the attribute %s is missing",
                             op_info(op)->name, row.name);
    }
    return RLX_OK;
}

rlx_status text_parse_attrs(struct text_parser *p, rlx_op op, union ir_attr *attr)
{
    size_t count, begin = p->tok.at;
    const struct attr_info *a = family_attrs(op_info(op)->family, &count);
    uint64_t given = 0;

    for (;;) {
        struct text_token next = text_peek(p);
        size_t i = 0;
        if (p->tok.kind != TEXT_WORD || !text_token_is(&next, "="))
            break;
        while (i < count && !str_eq(p->tok.text, rlx_cstr(a[i].name)))
            i++;
        if (i == count)
            return unknown_attr(p, op);
        if (given >> i & 1)
            return text_fail(p, p->tok.at, RLX_ERROR_FORMAT, "the attribute %s is given twice",
                             a[i].name);
        given |= UINT64_C(1) << i;
        text_next(p);
        text_next(p);
        TRY(parse_value(p, &a[i], (char *)attr + a[i].offset));
    }
    return check_required(p, begin, op, given, attr);
}

static rlx_status find_graph_of_module(struct text_parser *p, int32_t *id)
{
    for (size_t i = 1; i < p->mod->graph.len; i++) {
        if (str_eq(p->mod->graph.at[i]->name, p->tok.text)) {
            *id = (int32_t)i;
            text_next(p);
            return RLX_OK;
        }
    }
    return text_fail(p, p->tok.at, RLX_ERROR_FORMAT, "there is no sub-graph @%.*s",
                     STR_ARG(p->tok.text));
}

rlx_status ir_parse_attrs(struct ir_module *m, rlx_op op, rlx_str source, union ir_attr *attr,
                          struct diag *d)
{
    struct arena scratch;
    struct text_parser p = {
        .mod = m, .scratch = &scratch, .diag = d, .find_graph = find_graph_of_module};
    union ir_attr parsed = *attr;

    arena_init(&scratch, m->mem);
    text_start(&p, source);
    rlx_status s = str_is_utf8(source)
                       ? text_parse_attrs(&p, op, &parsed)
                       : diag_fail(d, RLX_ERROR_FORMAT, "the attributes are not UTF-8");
    if (s == RLX_OK && p.tok.kind != TEXT_END)
        s = text_unexpected(&p, "an attribute such as axis=1");
    arena_free(&scratch);
    if (s == RLX_OK)
        *attr = parsed;
    return s;
}
