/* text_type.c: dims and types of the text form, both ways.
 *
 *     dim    = ["-"] term { ("+" | "-") term }  |  "?"
 *     term   = factor { ("*" | "/") factor }         a "/" rounds down; its right side is a
 * constant factor = INT | NAME | "(" dim ")"
 *
 * A leading "-" takes the whole term with it, as the printer means it: -s/2 is -(s/2). */
#include "ir/text/text_impl.h"

enum { MAX_DEPTH = 64 };

static rlx_status parse_sum(struct text_parser *p, ir_dim *out);

static rlx_status parse_factor(struct text_parser *p, ir_dim *out)
{
    size_t at = p->tok.at;

    if (p->tok.kind == TEXT_NUMBER)
        return text_parse_i64(p, 0, INT64_MAX, out);
    if (p->tok.kind == TEXT_WORD) {
        *out = dim_symbol(p->mod->dims, p->tok.text);
        if (*out == RLX_DIM_FAILED)
            return text_fail(p, at, RLX_ERROR_FORMAT, "'%.*s' cannot name a dim",
                             STR_ARG(p->tok.text));
        text_next(p);
        return RLX_OK;
    }
    if (!text_token_is(&p->tok, "("))
        return text_unexpected(p, "a size: a number, a name, or an expression of them");
    if (p->depth == MAX_DEPTH)
        return text_fail(p, at, RLX_ERROR_LIMIT, "parentheses are nested more than %d deep",
                         MAX_DEPTH);
    p->depth++;
    text_next(p);
    TRY(parse_sum(p, out));
    p->depth--;
    return text_need(p, ")");
}

/* The failure of the arithmetic that began there. */
static rlx_status check(struct text_parser *p, size_t begin, ir_dim d)
{
    size_t end = p->tok.at, limit = begin + 60;

    if (d != RLX_DIM_FAILED)
        return RLX_OK;
    while (end > begin && p->lex.source.ptr[end - 1] == ' ')
        end--;
    end = end < limit ? end : limit;
    return text_fail(p, begin, RLX_ERROR_FORMAT,
                     "the size '%.*s' is negative, overflows, or is too long an expression",
                     (int)(end - begin), p->lex.source.ptr + begin);
}

static rlx_status parse_term(struct text_parser *p, ir_dim *out)
{
    size_t begin = p->tok.at;
    ir_dim r = 0, by = 0;

    TRY(parse_factor(p, &r));
    for (;;) {
        bool divide = text_token_is(&p->tok, "/");
        if (!divide && !text_token_is(&p->tok, "*"))
            break;
        text_next(p);
        size_t at = p->tok.at;
        TRY(parse_factor(p, &by));
        if (divide && by < 1)
            return text_fail(p, at, RLX_ERROR_FORMAT,
                             "a size is divided by a constant of at least 1");
        r = divide ? dim_floor_div(p->mod->dims, r, by) : dim_mul(p->mod->dims, r, by);
        TRY(check(p, begin, r));
    }
    *out = r;
    return RLX_OK;
}

/* What is added and what is taken away are summed apart, as 2-3+s is a size and 2-3 is not. */
static rlx_status parse_sum(struct text_parser *p, ir_dim *out)
{
    size_t begin = p->tok.at;
    ir_dim sum[2] = {0, 0}, term = 0; /* added, taken away */
    bool minus = text_take(p, "-");

    for (;;) {
        TRY(parse_term(p, &term));
        sum[minus] = dim_add(p->mod->dims, sum[minus], term);
        TRY(check(p, begin, sum[minus]));
        minus = text_token_is(&p->tok, "-");
        if (!minus && !text_token_is(&p->tok, "+"))
            break;
        text_next(p);
    }
    *out = dim_sub(p->mod->dims, sum[0], sum[1]);
    return check(p, begin, *out);
}

rlx_status text_parse_dim(struct text_parser *p, bool infer, ir_dim *out)
{
    struct text_parser start = *p;

    if (text_take(p, "?")) {
        *out = RLX_DIM_UNKNOWN;
        return RLX_OK;
    }
    if (infer && text_take(p, "-") && p->tok.kind == TEXT_NUMBER && str_eq(p->tok.text, STR("1"))) {
        text_next(p);
        bool ends = true;
        for (const char *mark = "+-*/"; *mark; mark++)
            ends &= !text_token_is(&p->tok, (const char[]){*mark, 0});
        if (ends) {
            *out = RLX_DIM_INFER;
            return RLX_OK;
        }
    }
    *p = start;
    return parse_sum(p, out);
}

static rlx_status parse_dtype(struct text_parser *p, rlx_dtype *out)
{
    if (p->tok.kind != TEXT_WORD)
        return text_unexpected(p, "a type such as f32[4,8]");
    if (!dtype_from_name(p->tok.text, out))
        return text_fail(p, p->tok.at, RLX_ERROR_FORMAT,
                         "there is no element type '%.*s'; known are "
#define X(name, number, bytes, cls, text) #name " "
                         RLX_DTYPE_MAP(X)
#undef X
                             "(as in f32[4,8])",
                         STR_ARG(p->tok.text));
    text_next(p);
    return RLX_OK;
}

rlx_status text_parse_type(struct text_parser *p, struct ir_type *out)
{
    struct ir_type t = {0};

    TRY(parse_dtype(p, &t.dtype));
    TRY(text_need(p, "["));
    while (!text_token_is(&p->tok, "]")) {
        if (t.rank == RLX_MAX_RANK)
            return text_fail(p, p->tok.at, RLX_ERROR_LIMIT, "a type has at most %d dims",
                             RLX_MAX_RANK);
        TRY(text_parse_dim(p, false, &t.dim[t.rank++]));
        if (!text_take(p, ","))
            break;
        if (text_token_is(&p->tok, "]"))
            return text_unexpected(p, "a size after ','");
    }
    if (!text_take(p, "]"))
        return text_unexpected(p, "',' or ']'");
    *out = t;
    return RLX_OK;
}

void ir_print_type(const struct ir_module *m, const struct ir_type *t, struct text *out)
{
    text_addf(out, "%s[", rlx_dtype_name(t->dtype));
    for (int32_t i = 0; i < t->rank; i++) {
        if (i)
            text_add(out, STR(","));
        dim_print(m->dims, t->dim[i], out);
    }
    text_add(out, STR("]"));
}

rlx_status ir_parse_dim(struct dim_table *dims, rlx_str source, const rlx_allocator *mem,
                        ir_dim *out, struct diag *d)
{
    struct ir_module around = {.mem = mem, .dims = dims};
    struct text_parser p = {.mod = &around, .diag = d};
    size_t known = dim_symbol_count(dims);

    text_start(&p, source);
    TRY(text_parse_dim(&p, false, out));
    if (p.tok.kind != TEXT_END)
        return text_unexpected(&p, "the end of the expression");
    if (dim_symbol_count(dims) > known)
        return diag_fail(d, RLX_ERROR_NAME, "there is no dim \"%.*s\"",
                         STR_ARG(dim_symbol_name(dims, known)));
    return RLX_OK;
}
