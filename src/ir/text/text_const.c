/* text_const.c: the data of constants in the text form, both ways.
 *
 *     %a = const f32[2,2] {1 2 3 4}            numbers, or true and false; c64: pairs re im
 *     %b = const f32[2] bytes 0x0000803f00000040
 *     %c = const f32[1000,8] npy "weights.npy"
 *
 * Braces are for what is small and reads back exactly; everything else is bytes. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "ir/text/text_impl.h"

enum { MAX_IN_BRACES = 64, MAX_ELIDED = 8 };

/* ---- elements ------------------------------------------------------------------------------ */

/* One float of the dtype from a double, rounded once. false: finite, but too large for it. */
static bool store_float(rlx_dtype dtype, double v, unsigned char *to)
{
    float f32 = (float)v;
    uint16_t half = 0;

    switch (dtype) {
    case RLX_DTYPE_f64: memcpy(to, &v, sizeof v); return true;
    case RLX_DTYPE_f16:
        half = f64_to_f16(v);
        f32 = f16_to_f32(half);
        memcpy(to, &half, sizeof half);
        break;
    case RLX_DTYPE_bf16:
        half = f64_to_bf16(v);
        f32 = bf16_to_f32(half);
        memcpy(to, &half, sizeof half);
        break;
    default: memcpy(to, &f32, sizeof f32); break; /* f32, and each half of c64 */
    }
    return !isinf(f32) || isinf(v);
}

static float load_float(rlx_dtype dtype, const unsigned char *from)
{
    uint16_t half;
    float v;

    if (dtype == RLX_DTYPE_f16 || dtype == RLX_DTYPE_bf16) {
        memcpy(&half, from, sizeof half);
        return dtype == RLX_DTYPE_f16 ? f16_to_f32(half) : bf16_to_f32(half);
    }
    memcpy(&v, from, sizeof v);
    return v;
}

/* The low bytes of an integer. */
static void store_int(size_t size, uint64_t v, unsigned char *to)
{
    uint8_t v8 = (uint8_t)v;
    uint16_t v16 = (uint16_t)v;
    uint32_t v32 = (uint32_t)v;
    const void *from[] = {&v8, &v16, &v32, &v};

    memcpy(to, from[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3], size);
}

static int64_t load_int(size_t size, const unsigned char *from)
{
    int8_t v8;
    int16_t v16;
    int32_t v32;
    int64_t v64;

    switch (size) {
    case 1: memcpy(&v8, from, 1); return v8;
    case 2: memcpy(&v16, from, 2); return v16;
    case 4: memcpy(&v32, from, 4); return v32;
    default: memcpy(&v64, from, 8); return v64;
    }
}

/* ---- reading ------------------------------------------------------------------------------- */

static rlx_status parse_float(struct text_parser *p, rlx_dtype dtype, unsigned char *to)
{
    size_t at = p->tok.at;
    double v = 0;

    TRY(text_parse_f64(p, &v));
    if (!store_float(dtype, v, to))
        return text_fail(p, at, RLX_ERROR_FORMAT, "the number is too large for %s",
                         rlx_dtype_name(dtype));
    return RLX_OK;
}

static rlx_status parse_element(struct text_parser *p, rlx_dtype dtype, unsigned char *to)
{
    size_t size = rlx_dtype_size(dtype);
    unsigned shift = (unsigned)(64 - 8 * size);
    uint64_t u;
    int64_t i;

    switch (dtype_class(dtype)) {
    case CLASS_F: return parse_float(p, dtype, to);
    case CLASS_C:
        TRY(parse_float(p, dtype, to));
        text_take(p, ",");
        return parse_float(p, dtype, to + 4);
    case CLASS_I:
        TRY(text_parse_i64(p, INT64_MIN >> shift, INT64_MAX >> shift, &i));
        store_int(size, (uint64_t)i, to);
        return RLX_OK;
    case CLASS_U:
        TRY(text_parse_u64(p, UINT64_MAX >> shift, &u));
        store_int(size, u, to);
        return RLX_OK;
    case CLASS_B: break;
    }
    bool yes = text_token_is(&p->tok, "true");
    if (yes || text_token_is(&p->tok, "false")) {
        *to = yes;
        text_next(p);
        return RLX_OK;
    }
    TRY(text_parse_u64(p, 1, &u));
    *to = (unsigned char)u;
    return RLX_OK;
}

static rlx_status wrong_count(struct text_parser *p, size_t at, const struct ir_type *t,
                              int64_t count, const char *more)
{
    struct text type;

    text_init(&type, p->mod->mem);
    ir_print_type(p->mod, t, &type);
    rlx_status s = type.failed
                       ? diag_no_memory(p->diag, 0)
                       : text_fail(p, at, RLX_ERROR_FORMAT, "%s has %" PRId64 " elements, but %s",
                                   type.at, count, more);
    text_free(&type);
    return s;
}

static rlx_status parse_braces(struct text_parser *p, const struct ir_type *t, int64_t count,
                               unsigned char **out)
{
    size_t size = rlx_dtype_size(t->dtype), at = p->tok.at;
    int64_t seen = 0;

    /* A number takes at least a character, so what is allocated is bounded by what is there. */
    if ((uint64_t)count > p->lex.source.len - at)
        return wrong_count(p, at, t, count, "the text that follows is shorter than that");
    unsigned char *to = arena_alloc_array(&p->mod->arena, (size_t)count, size, 16);
    if (!to)
        return diag_no_memory(p->diag, (size_t)count * size);
    text_next(p);
    while (!text_token_is(&p->tok, "}")) {
        if (seen == count)
            return wrong_count(p, p->tok.at, t, count, "there are more in the braces");
        TRY(parse_element(p, t->dtype, to + (size_t)seen++ * size));
        if (text_take(p, ",") && text_token_is(&p->tok, "}"))
            return text_unexpected(p, "a number after ','");
    }
    if (seen != count)
        return wrong_count(p, p->tok.at, t, count, "there are fewer in the braces");
    text_next(p);
    *out = to;
    return RLX_OK;
}

static rlx_status parse_bytes(struct text_parser *p, const struct ir_type *t, uint64_t bytes,
                              unsigned char **out)
{
    if (p->tok.kind != TEXT_HEX)
        return text_unexpected(p, "bytes such as 0x00ff");
    size_t count = text_hex_count(&p->tok);
    if (count == SIZE_MAX)
        return text_fail(p, p->tok.at, RLX_ERROR_FORMAT, "bytes take two hex digits each");
    if (count != bytes)
        return text_fail(p, p->tok.at, RLX_ERROR_FORMAT,
                         "the type takes %" PRIu64 " bytes, but %zu are given", bytes, count);
    unsigned char *to = arena_alloc(&p->mod->arena, count, 16);
    if (!to)
        return diag_no_memory(p->diag, count);
    text_hex_bytes(&p->tok, to);
    for (size_t i = 0; t->dtype == RLX_DTYPE_bool && i < count; i++) {
        if (to[i] > 1)
            return text_fail(p, p->tok.at, RLX_ERROR_FORMAT, "a bool is 0 or 1, not %d", to[i]);
    }
    text_next(p);
    *out = to;
    return RLX_OK;
}

static rlx_status parse_npy(struct text_parser *p, const struct ir_type *t, const void **out)
{
    const struct text_parse_options *o = p->options;
    size_t at = p->tok.at;
    struct ir_type found = {0};
    struct diag inner;
    rlx_str name;

    diag_init(&inner, NULL);
    TRY(text_parse_string(p, &name));
    if (!o || !o->load_npy)
        return text_fail(p, at, RLX_ERROR_FORMAT, "files named by a text are not opened here");
    if (o->load_npy(o->user, name, &p->mod->arena, &found, out, &inner) != RLX_OK)
        return text_fail_with(p, at, &inner);
    if (!type_same(&found, t))
        return text_fail(p, at, RLX_ERROR_FORMAT, "the file \"%.*s\" holds another type",
                         STR_ARG(name));
    return RLX_OK;
}

rlx_status text_parse_const(struct text_parser *p, struct ir_new_node *n)
{
    size_t at = p->tok.at;
    struct ir_type t;
    unsigned char *own = NULL;
    const void *data = NULL;
    uint64_t bytes;
    int64_t count;

    TRY(text_parse_type(p, &t));
    if (!type_is_static(&t))
        return text_fail(p, at, RLX_ERROR_FORMAT, "the sizes of a constant are numbers");
    if (!type_count(&t, &count) || !type_bytes(&t, &bytes))
        return text_fail(p, at, RLX_ERROR_LIMIT, "the byte count overflows 64 bits");
    if (text_token_is(&p->tok, "{")) {
        TRY(parse_braces(p, &t, count, &own));
    } else if (text_take(p, "bytes")) {
        TRY(parse_bytes(p, &t, bytes, &own));
    } else if (text_take(p, "npy")) {
        TRY(parse_npy(p, &t, &data));
    } else {
        return text_unexpected(p, "'{', 'bytes' or 'npy'");
    }
    struct attr_const_ *a = &n->attr.const_;
    a->dtype = t.dtype;
    a->shape.count = t.rank;
    memcpy(a->shape.at, t.dim, sizeof t.dim);
    a->data = (struct ir_blob){own ? own : data, (size_t)bytes};
    n->borrow_data = true; /* it is the module's already */
    return RLX_OK;
}

/* ---- printing ------------------------------------------------------------------------------ */

/* The shortest text that reads back as this f16 or bf16: an f32 of the value would need more digits
 * than two bytes can tell apart. */
static void print_half(rlx_dtype dtype, const unsigned char *from, struct text *out)
{
    float v = load_float(dtype, from);
    char text[32], whole[32];
    size_t most = str_from_f32(whole, v);
    double power = isfinite(v) && v != 0 ? floor(log10(fabs((double)v))) : 0;

    for (int digits = 1; digits < 8 && isfinite(v) && v != 0; digits++) {
        double scale = pow(10, digits - 1 - power), rounded = round((double)v * scale) / scale;
        unsigned char same[8];
        size_t len = str_from_f64(text, rounded);
        if (len < most && store_float(dtype, rounded, same) && memcmp(same, from, 2) == 0) {
            text_add(out, (rlx_str){text, len});
            return;
        }
    }
    text_print_f32(v, out);
}

static void print_element(rlx_dtype dtype, const unsigned char *from, struct text *out)
{
    double v;

    switch (dtype_class(dtype)) {
    case CLASS_F:
        if (dtype == RLX_DTYPE_f64) {
            memcpy(&v, from, sizeof v);
            text_print_f64(v, out);
        } else if (dtype != RLX_DTYPE_f32) {
            print_half(dtype, from, out);
        } else {
            text_print_f32(load_float(dtype, from), out);
        }
        break;
    case CLASS_C:
        text_print_f32(load_float(dtype, from), out);
        text_add(out, STR(" "));
        text_print_f32(load_float(dtype, from + 4), out);
        break;
    case CLASS_I: text_addf(out, "%" PRId64, load_int(rlx_dtype_size(dtype), from)); break;
    case CLASS_U: {
        size_t size = rlx_dtype_size(dtype);
        uint64_t mask = UINT64_MAX >> (64 - 8 * size);
        text_addf(out, "%" PRIu64, (uint64_t)load_int(size, from) & mask);
        break;
    }
    case CLASS_B: text_add(out, *from ? STR("true") : STR("false")); break;
    }
}

/* Numbers always do, but a NaN only if it is the one that "nan" reads as, and a bool if it is one.
 */
static bool reads_back(rlx_dtype dtype, const unsigned char *from)
{
    unsigned char same[8];
    double v;

    if (dtype == RLX_DTYPE_bool)
        return *from <= 1;
    if (!dtype_is(dtype, CLASS_F | CLASS_C))
        return true;
    for (int part = 0; part <= (dtype == RLX_DTYPE_c64); part++) {
        const unsigned char *at = from + 4 * part;
        if (dtype == RLX_DTYPE_f64)
            memcpy(&v, at, sizeof v);
        else
            v = (double)load_float(dtype, at);
        if (!isnan(v))
            continue;
        store_float(dtype, (double)NAN, same);
        if (memcmp(same, at, dtype == RLX_DTYPE_c64 ? 4 : rlx_dtype_size(dtype)) != 0)
            return false;
    }
    return true;
}

void text_print_const(const struct ir_module *m, const struct ir_node *n,
                      const struct text_print_options *o, struct text *out)
{
    const struct attr_const_ *a = &n->attr.const_;
    char name[32];
    const unsigned char *data = a->data.ptr;
    size_t size = rlx_dtype_size(a->dtype), count = size ? a->data.len / size : 0;
    size_t shown = o->elide && count > MAX_ELIDED ? MAX_ELIDED : count;
    bool braces = shown < count || count <= MAX_IN_BRACES;

    for (size_t i = 0; i < count && braces && !o->elide; i++)
        braces = reads_back(a->dtype, data + i * size);
    text_add(out, STR("const "));
    ir_print_type(m, &n->type, out);
    if (o->elsewhere && o->elsewhere(o->user, n, name)) {
        text_add(out, STR(" npy "));
        text_print_string(rlx_cstr(name), out);
        return;
    }
    if (!braces) {
        text_add(out, STR(" bytes "));
        text_print_hex(data, a->data.len, out);
        return;
    }
    text_add(out, STR(" {"));
    for (size_t i = 0; i < shown; i++) {
        if (i)
            text_add(out, STR(" "));
        print_element(a->dtype, data + i * size, out);
    }
    text_add(out, shown < count ? STR(" ...}") : STR("}"));
}
