/* npy.c: NumPy's array files (ops-special.md 2.3). The header is a Python dict literal of exactly
 * three keys; it is scanned by hand, copied first, and nothing in it is trusted. */
#include "import/npy.h"

#include <string.h>

#define MAX_HEADER (1u << 20)

static const struct {
    const char *code;
    rlx_dtype dtype;
} codes[] = {
    {"b1", RLX_DTYPE_bool}, {"i1", RLX_DTYPE_i8},  {"i2", RLX_DTYPE_i16}, {"i4", RLX_DTYPE_i32},
    {"i8", RLX_DTYPE_i64},  {"u1", RLX_DTYPE_u8},  {"u2", RLX_DTYPE_u16}, {"u4", RLX_DTYPE_u32},
    {"u8", RLX_DTYPE_u64},  {"f2", RLX_DTYPE_f16}, {"f4", RLX_DTYPE_f32}, {"f8", RLX_DTYPE_f64},
    {"c8", RLX_DTYPE_c64},
};
#define CODE_COUNT (sizeof codes / sizeof codes[0])

struct npy {
    struct ir_type type;
    bool fortran, swap;
    bool has_descr, has_order, has_shape;
};

struct scanner {
    const char *at, *end;
    size_t base; /* of the header in the file, for messages */
    const char *begin;
    struct diag *diag;
};

static rlx_status bad(struct scanner *s, const char *what)
{
    return diag_fail(s->diag, RLX_ERROR_FORMAT, "npy: byte %zu: %s",
                     s->base + (size_t)(s->at - s->begin), what);
}

static void skip_space(struct scanner *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t' || *s->at == '\r'))
        s->at++;
}

static bool take(struct scanner *s, char c)
{
    skip_space(s);
    if (s->at >= s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static rlx_status scan_string(struct scanner *s, rlx_str *out)
{
    skip_space(s);
    if (s->at >= s->end || (*s->at != '\'' && *s->at != '"'))
        return bad(s, "a quoted string was expected");
    char quote = *s->at++;
    const char *close = memchr(s->at, quote, (size_t)(s->end - s->at));
    if (!close)
        return bad(s, "the string has no end");
    *out = (rlx_str){s->at, (size_t)(close - s->at)};
    s->at = close + 1;
    return RLX_OK;
}

static rlx_status scan_bool(struct scanner *s, bool *out)
{
    rlx_str rest;

    skip_space(s);
    rest = (rlx_str){s->at, (size_t)(s->end - s->at)};
    *out = str_starts(rest, STR("True"));
    if (!*out && !str_starts(rest, STR("False")))
        return bad(s, "True or False was expected");
    s->at += *out ? 4 : 5;
    return RLX_OK;
}

static rlx_status scan_size(struct scanner *s, int64_t *out)
{
    int64_t n = 0;
    const char *start;

    skip_space(s);
    for (start = s->at; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *s->at - '0', &n))
            return bad(s, "a size overflows 64 bits");
    if (s->at == start)
        return bad(s, "a size was expected");
    *out = n;
    return RLX_OK;
}

static rlx_status scan_shape(struct scanner *s, struct ir_type *t)
{
    if (!take(s, '('))
        return bad(s, "the shape is not a tuple");
    while (!take(s, ')')) {
        int64_t n = 0;
        TRY(scan_size(s, &n));
        if (t->rank == RLX_MAX_RANK)
            return diag_fail(s->diag, RLX_ERROR_LIMIT, "npy: rank above %d", RLX_MAX_RANK);
        t->dim[t->rank++] = n;
        if (!take(s, ',')) {
            if (!take(s, ')') || t->rank == 1) /* (3) is a number, not a tuple */
                return bad(s, "a comma or the end of the tuple was expected");
            break;
        }
    }
    return RLX_OK;
}

static rlx_status scan_descr(struct scanner *s, struct npy *n)
{
    rlx_str text;

    skip_space(s);
    if (s->at < s->end && *s->at == '[')
        return bad(s, "structured arrays are not supported");
    TRY(scan_string(s, &text));
    if (text.len < 2 || text.ptr[0] == 0 || !strchr("<>=|", text.ptr[0]))
        return bad(s, "descr must begin with one of < > = |");
    rlx_str code = {text.ptr + 1, text.len - 1};
    for (size_t i = 0; i < CODE_COUNT; i++) {
        if (!str_eq(code, rlx_cstr(codes[i].code)))
            continue;
        bool one_byte = rlx_dtype_size(codes[i].dtype) == 1;
        if (text.ptr[0] == '|' && !one_byte)
            return bad(s, "descr leaves the byte order of a wide type open");
        n->type.dtype = codes[i].dtype;
        n->swap = text.ptr[0] == '>' && !one_byte;
        return RLX_OK;
    }
    return diag_fail(s->diag, str_eq(code, STR("c16")) ? RLX_ERROR_UNSUPPORTED : RLX_ERROR_FORMAT,
                     "npy: no element type for descr \"%.*s\"", STR_ARG(text));
}

static rlx_status scan_entry(struct scanner *s, struct npy *n)
{
    rlx_str key;
    bool *seen;

    TRY(scan_string(s, &key));
    if (!take(s, ':'))
        return bad(s, "a colon was expected");
    if (str_eq(key, STR("descr")))
        seen = &n->has_descr;
    else if (str_eq(key, STR("fortran_order")))
        seen = &n->has_order;
    else if (str_eq(key, STR("shape")))
        seen = &n->has_shape;
    else
        return bad(s, "an unknown key");
    if (*seen)
        return bad(s, "a key is given twice");
    *seen = true;
    if (seen == &n->has_descr)
        return scan_descr(s, n);
    return seen == &n->has_order ? scan_bool(s, &n->fortran) : scan_shape(s, &n->type);
}

static rlx_status scan_header(struct scanner *s, struct npy *n)
{
    if (s->end == s->at || s->end[-1] != '\n')
        return bad(s, "the header does not end in a newline");
    if (!take(s, '{'))
        return bad(s, "the header is not a dict");
    while (!take(s, '}')) {
        TRY(scan_entry(s, n));
        if (!take(s, ',')) {
            if (!take(s, '}'))
                return bad(s, "a comma or the end of the dict was expected");
            break;
        }
    }
    skip_space(s);
    if (s->at != s->end)
        return bad(s, "text after the dict");
    if (!n->has_descr || !n->has_order || !n->has_shape)
        return bad(s, "descr, fortran_order and shape must all be there");
    return RLX_OK;
}

static void swap_bytes(uint8_t *data, size_t count, rlx_dtype t)
{
    size_t size = t == RLX_DTYPE_c64 ? 4 : rlx_dtype_size(t);

    count *= t == RLX_DTYPE_c64 ? 2 : 1;
    for (size_t i = 0; i < count; i++, data += size) {
        for (size_t k = 0; k < size / 2; k++) {
            uint8_t b = data[k];
            data[k] = data[size - 1 - k];
            data[size - 1 - k] = b;
        }
    }
}

/* Column-major to row-major, one element at a time. */
static void to_row_major(const uint8_t *src, uint8_t *dst, const struct ir_type *t, size_t count)
{
    size_t size = rlx_dtype_size(t->dtype);
    int64_t index[RLX_MAX_RANK] = {0};

    for (size_t i = 0; i < count; i++) {
        size_t from = 0;
        for (int32_t a = t->rank; a-- > 0;)
            from = from * (size_t)t->dim[a] + (size_t)index[a];
        memcpy(dst + i * size, src + from * size, size);
        for (int32_t a = t->rank; a-- > 0;) {
            if (++index[a] < t->dim[a])
                break;
            index[a] = 0;
        }
    }
}

/* Where the header's text begins, and its length. */
static rlx_status find_header(const uint8_t *bytes, size_t size, size_t *at, size_t *len,
                              struct diag *d)
{
    uint8_t front[12] = {0}; /* a copy: a mapped file may change meanwhile */

    if (size > 0)
        memcpy(front, bytes, size < sizeof front ? size : sizeof front);
    if (size < 10 || memcmp(front, "\x93NUMPY", 6) != 0)
        return diag_fail(d, RLX_ERROR_FORMAT, "npy: not an npy file");
    if (front[6] < 1 || front[6] > 3 || front[7] != 0)
        return diag_fail(d, RLX_ERROR_FORMAT, "npy: version %d.%d is unknown", front[6], front[7]);
    *at = front[6] == 1 ? 10 : 12;
    if (size < *at)
        return diag_fail(d, RLX_ERROR_FORMAT, "npy: the file ends in its header");
    *len = (size_t)front[8] | (size_t)front[9] << 8;
    if (front[6] > 1)
        *len |= (size_t)front[10] << 16 | (size_t)front[11] << 24;
    if (*len > MAX_HEADER || *len > size - *at)
        return diag_fail(d, RLX_ERROR_FORMAT, "npy: a header of %zu bytes does not fit", *len);
    return RLX_OK;
}

rlx_status npy_parse(const uint8_t *bytes, size_t size, const rlx_allocator *mem,
                     struct npy_layout *out, struct diag *d)
{
    struct npy n = {0};
    size_t at = 0, len = 0;
    uint64_t need;

    TRY(find_header(bytes, size, &at, &len, d));
    char *header = mem_alloc(mem, len);
    if (!header && len)
        return diag_no_memory(d, len);
    if (len)
        memcpy(header, bytes + at, len);
    struct scanner s = {header, header ? header + len : NULL, at, header, d};
    rlx_status status = scan_header(&s, &n);
    mem_free(mem, header, len);
    TRY(status);
    if (!type_bytes(&n.type, &need))
        return diag_fail(d, RLX_ERROR_FORMAT, "npy: the shape overflows 64 bits");
    *out = (struct npy_layout){n.type, n.fortran && n.type.rank > 1, n.swap, at + len, need};
    return RLX_OK;
}

void npy_arrange(const struct npy_layout *l, const uint8_t *data, uint8_t *out)
{
    size_t count = (size_t)(l->need / rlx_dtype_size(l->type.dtype));

    if (l->columns)
        to_row_major(data, out, &l->type, count);
    else if (l->need)
        memcpy(out, data, (size_t)l->need);
    if (l->swap)
        swap_bytes(out, count, l->type.dtype);
}

rlx_status npy_read(const uint8_t *bytes, size_t size, struct arena *arena, struct ir_type *type,
                    const void **data, struct diag *d)
{
    struct npy_layout l;

    TRY(npy_parse(bytes, size, arena->mem, &l, d));
    if (l.need > size - l.data)
        return diag_fail(d, RLX_ERROR_FORMAT, "npy: %llu bytes of data needed, %zu there",
                         (unsigned long long)l.need, size - l.data);
    uint8_t *own = arena_alloc(arena, (size_t)l.need, 64);
    if (!own)
        return diag_no_memory(d, (size_t)l.need);
    npy_arrange(&l, bytes + l.data, own);
    *type = l.type;
    *data = own;
    return RLX_OK;
}

rlx_status npy_header(const struct ir_type *type, struct text *out, struct diag *d)
{
    const char *code = NULL;
    struct text dict;

    for (size_t i = 0; i < CODE_COUNT; i++)
        if (codes[i].dtype == type->dtype)
            code = codes[i].code;
    if (!code)
        return diag_fail(d, RLX_ERROR_UNSUPPORTED, "npy: there is no NumPy type for %s",
                         rlx_dtype_name(type->dtype));
    text_init(&dict, out->mem);
    text_addf(&dict, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
              rlx_dtype_size(type->dtype) == 1 ? '|' : '<', code);
    for (int32_t i = 0; i < type->rank; i++)
        text_addf(&dict, "%s%lld", i ? ", " : "", (long long)type->dim[i]);
    text_addf(&dict, "%s), }", type->rank == 1 ? "," : "");
    /* The prefix is a multiple of 64, ending in a newline. */
    text_addf(&dict, "%*s\n", (int)(63 - (10 + dict.len) % 64), "");
    text_add(out, (rlx_str){"\x93NUMPY\x01\x00", 8});
    text_add(out, (rlx_str){(char[]){(char)(dict.len & 255), (char)(dict.len >> 8)}, 2});
    text_add(out, (rlx_str){dict.at, dict.len});
    bool failed = dict.failed || out->failed;
    text_free(&dict);
    return failed ? diag_no_memory(d, 128) : RLX_OK;
}
