/* npy_test.c: NumPy's files: every header that must be taken, every one that must be refused, and
 * twenty thousand that somebody broke. */
#include "import/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../test.h"

/* ---- making files ---------------------------------------------------------------------------- */

struct file_text {
    uint8_t *at; /* exactly as large as the file, so that a read past its end shows */
    size_t len;
};

/* Version `major`, the header as given, then `len` bytes. */
static struct file_text make_file(uint8_t major, const char *header, size_t header_len,
                                  const void *data, size_t len)
{
    size_t prefix = major == 1 ? 10 : 12;
    struct file_text f = {malloc(prefix + header_len + len), prefix + header_len + len};

    if (!f.at)
        return f;
    memcpy(f.at, "\x93NUMPY", 6);
    f.at[6] = major;
    f.at[7] = 0;
    for (size_t i = 8; i < prefix; i++)
        f.at[i] = (uint8_t)(header_len >> (8 * (i - 8)));
    memcpy(f.at + prefix, header, header_len);
    if (len)
        memcpy(f.at + prefix + header_len, data, len);
    return f;
}

struct result {
    rlx_status status;
    struct ir_type type;
    const uint8_t *data;
    struct arena arena; /* to be freed */
    struct diag diag;
};

static struct result read_file(const struct file_text *f)
{
    struct result r = {.data = NULL};

    arena_init(&r.arena, mem_default());
    diag_init(&r.diag, "npy");
    r.status = npy_read(f->at, f->len, &r.arena, &r.type, (const void **)&r.data, &r.diag);
    return r;
}

static const uint8_t zeros[64];

/* The header, a newline added, is taken; the type in short, "f32[2,3]". */
static void check_taken(struct test *t, int line, const char *header, const char *want)
{
    char text[512], got[128];
    int n = snprintf(text, sizeof text, "%s\n", header);
    struct file_text f = make_file(1, text, (size_t)n, zeros, sizeof zeros);
    struct result r = read_file(&f);

    test_note(t, "%s", header);
    if (r.status == RLX_OK) {
        n = snprintf(got, sizeof got, "%s[", rlx_dtype_name(r.type.dtype));
        for (int32_t i = 0; i < r.type.rank; i++)
            n += snprintf(got + n, sizeof got - (size_t)n, "%s%lld", i ? "," : "",
                          (long long)r.type.dim[i]);
        snprintf(got + n, sizeof got - (size_t)n, "]");
        test_expect_str(t, __FILE__, line, got, want, header);
    } else {
        test_fail(t, __FILE__, line, "refused: %s", r.diag.first.message);
    }
    test_note(t, "%s", "");
    arena_free(&r.arena);
    free(f.at);
}

static void check_refused(struct test *t, int line, const char *header, size_t len,
                          rlx_status status, const char *part)
{
    struct file_text f = make_file(1, header, len, zeros, sizeof zeros);
    struct result r = read_file(&f);

    test_note(t, "%s", header);
    test_expect_status(t, __FILE__, line, r.status, status, header);
    test_expect_error(t, __FILE__, line, status, part, &r.diag.first, header);
    test_expect(t, __FILE__, line, r.data == NULL, "nothing is handed out");
    test_note(t, "%s", "");
    arena_free(&r.arena);
    free(f.at);
}

#define taken(header, want) check_taken(t, __LINE__, header, want)
#define refused(header, status, part) \
    check_refused(t, __LINE__, header "\n", sizeof(header "\n") - 1, RLX_ERROR_##status, part)

#define FLAT "'fortran_order': False, "

/* ---- headers that are taken ------------------------------------------------------------------ */

TEST(npy, element_types)
{
    static const char *const codes[RLX_DTYPE_count] = {
        [RLX_DTYPE_f32] = "f4", [RLX_DTYPE_f16] = "f2", [RLX_DTYPE_f64] = "f8",
        [RLX_DTYPE_i8] = "i1",  [RLX_DTYPE_i16] = "i2", [RLX_DTYPE_i32] = "i4",
        [RLX_DTYPE_i64] = "i8", [RLX_DTYPE_u8] = "u1",  [RLX_DTYPE_u16] = "u2",
        [RLX_DTYPE_u32] = "u4", [RLX_DTYPE_u64] = "u8", [RLX_DTYPE_bool] = "b1",
        [RLX_DTYPE_c64] = "c8"};

    for (int k = 0; k < RLX_DTYPE_count; k++) {
        for (const char *order = "<>=|"; codes[k] && *order; order++) {
            char header[128], want[32];
            int n = snprintf(header, sizeof header, "{'descr': '%c%s', " FLAT "'shape': (3,), }",
                             *order, codes[k]);
            snprintf(want, sizeof want, "%s[3]", rlx_dtype_name((rlx_dtype)k));
            if (*order == '|' && rlx_dtype_size((rlx_dtype)k) > 1) {
                header[n++] = '\n';
                check_refused(t, __LINE__, header, (size_t)n, RLX_ERROR_FORMAT, "byte order");
            } else {
                check_taken(t, __LINE__, header, want);
            }
        }
    }
}

TEST(npy, shapes)
{
    taken("{'descr': '<f4', " FLAT "'shape': ()}", "f32[]");
    taken("{'descr': '<f4', " FLAT "'shape': (3,)}", "f32[3]");
    taken("{'descr': '<f4', " FLAT "'shape': (2, 3)}", "f32[2,3]");
    taken("{'descr': '<f4', " FLAT "'shape': (2, 3,)}", "f32[2,3]");
    taken("{'descr': '<f4', " FLAT "'shape': (0,)}", "f32[0]");
    taken("{'descr': '<f4', " FLAT "'shape': (5, 0, 7)}", "f32[5,0,7]");
    taken("{'descr': '|u1', " FLAT "'shape': (1, 1, 1, 1, 1, 1, 1, 2)}", "u8[1,1,1,1,1,1,1,2]");
    taken("{'descr': '|u1', " FLAT "'shape': (0, 9223372036854775807)}",
          "u8[0,9223372036854775807]");
}

TEST(npy, spellings)
{
    taken("{\"shape\": (2,), \"descr\": \"<i2\", \"fortran_order\": True}", "i16[2]");
    taken("{'shape':(2,),'fortran_order':False,'descr':'<i2'}", "i16[2]");
    taken("  {  'shape' : ( 2 , ) , 'fortran_order' : False , 'descr' : '<i2' , }   ", "i16[2]");
    taken("{\n'shape':\t(2,),\r\n'fortran_order': False, 'descr': '<i2'}\n\n", "i16[2]");
    taken("{'shape': (2,), \"fortran_order\": False, 'descr': \"<i2\",}", "i16[2]");
}

/* ---- headers that are refused ---------------------------------------------------------------- */

TEST(npy, keys)
{
    refused("{" FLAT "'shape': (3,)}", FORMAT, "must all be there");
    refused("{'descr': '<f4', 'shape': (3,)}", FORMAT, "must all be there");
    refused("{'descr': '<f4', 'fortran_order': False}", FORMAT, "must all be there");
    refused("{}", FORMAT, "must all be there");
    refused("{'descr': '<f4', 'descr': '<f4', " FLAT "'shape': (3,)}", FORMAT, "given twice");
    refused("{'descr': '<f4', " FLAT "'shape': (3,), 'shape': (3,)}", FORMAT, "given twice");
    refused("{'descr': '<f4', " FLAT "'shape': (3,), 'more': 1}", FORMAT, "unknown key");
    refused("{'Descr': '<f4', " FLAT "'shape': (3,)}", FORMAT, "unknown key");
    refused("{'descr ': '<f4', " FLAT "'shape': (3,)}", FORMAT, "unknown key");
    refused("{'': '<f4', " FLAT "'shape': (3,)}", FORMAT, "unknown key");
    refused("{1: '<f4', " FLAT "'shape': (3,)}", FORMAT, "quoted string");
}

TEST(npy, element_types_that_are_refused)
{
    static const char *const bad[] = {"<f3", "<f16", "|O",    "<O8",     "|S4",     "<U4",
                                      "|V8", "<M8",  "<m8",   "<f",      "<",       "",
                                      "f4",  "!f4",  "<f4 ",  "<b2",     "<i16",    "<u16",
                                      "<F4", "<c4",  "<f4f4", "<i4,<i4", "<M8[ns]", "float32"};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char header[128];
        int n = snprintf(header, sizeof header, "{'descr': '%s', " FLAT "'shape': (3,)}\n", bad[i]);
        check_refused(t, __LINE__, header, (size_t)n, RLX_ERROR_FORMAT, "npy: ");
    }
    refused("{'descr': '<c16', " FLAT "'shape': (3,)}", UNSUPPORTED, "<c16");
    refused("{'descr': [('a', '<f4')], " FLAT "'shape': (3,)}", FORMAT, "structured");
    refused("{'descr': ('<f4', (2,)), " FLAT "'shape': (3,)}", FORMAT, "quoted string");
    refused("{'descr': <f4, " FLAT "'shape': (3,)}", FORMAT, "quoted string");
    refused("{'descr': u'<f4', " FLAT "'shape': (3,)}", FORMAT, "quoted string");
    refused("{'descr': '<f4\", " FLAT "\"shape\": (3,)}", FORMAT, "npy: ");
}

TEST(npy, shapes_that_are_refused)
{
    refused("{'descr': '<f4', " FLAT "'shape': (3)}", FORMAT, "comma");
    refused("{'descr': '<f4', " FLAT "'shape': 3}", FORMAT, "not a tuple");
    refused("{'descr': '<f4', " FLAT "'shape': [3]}", FORMAT, "not a tuple");
    refused("{'descr': '<f4', " FLAT "'shape': (-1,)}", FORMAT, "size was expected");
    refused("{'descr': '<f4', " FLAT "'shape': (+3,)}", FORMAT, "size was expected");
    refused("{'descr': '<f4', " FLAT "'shape': (1.5,)}", FORMAT, "comma");
    refused("{'descr': '<f4', " FLAT "'shape': (1e2,)}", FORMAT, "comma");
    refused("{'descr': '<f4', " FLAT "'shape': (0x3,)}", FORMAT, "comma");
    refused("{'descr': '<f4', " FLAT "'shape': (3L,)}", FORMAT, "comma");
    refused("{'descr': '<f4', " FLAT "'shape': (1 2,)}", FORMAT, "comma");
    refused("{'descr': '<f4', " FLAT "'shape': (,)}", FORMAT, "size was expected");
    refused("{'descr': '<f4', " FLAT "'shape': (3,,)}", FORMAT, "size was expected");
    refused("{'descr': '<f4', " FLAT "'shape': (True,)}", FORMAT, "size was expected");
    refused("{'descr': '<f4', " FLAT "'shape': ((3,),)}", FORMAT, "size was expected");
    refused("{'descr': '<f4', " FLAT "'shape': (3,}", FORMAT, "size was expected");
    refused("{'descr': '<f4', " FLAT "'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1)}", LIMIT, "rank above");
    refused("{'descr': '<f4', " FLAT "'shape': (9223372036854775808,)}", FORMAT, "overflows");
    refused("{'descr': '<f4', " FLAT "'shape': (99999999999999999999999,)}", FORMAT, "overflows");
    refused("{'descr': '<f4', " FLAT "'shape': (4611686018427387904,)}", FORMAT, "overflows");
    refused("{'descr': '|u1', " FLAT "'shape': (4294967296, 4294967296)}", FORMAT, "overflows");
    refused("{'descr': '|u1', " FLAT "'shape': (0, 4294967296, 4294967296)}", FORMAT, "overflows");
    refused("{'descr': '<f4', " FLAT "'shape': (17,)}", FORMAT, "68 bytes of data needed, 64");
}

TEST(npy, text_that_is_no_header)
{
    refused("", FORMAT, "not a dict");
    refused("[]", FORMAT, "not a dict");
    refused("{'descr': '<f4', " FLAT "'shape': (3,)", FORMAT, "end of the dict");
    refused("{'descr': '<f4' " FLAT "'shape': (3,)}", FORMAT, "comma");
    refused("{'descr': '<f4',, " FLAT "'shape': (3,)}", FORMAT, "quoted string");
    refused("{'descr' '<f4', " FLAT "'shape': (3,)}", FORMAT, "colon");
    refused("{'descr': '<f4', 'fortran_order': false, 'shape': (3,)}", FORMAT, "True or False");
    refused("{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}", FORMAT, "True or False");
    refused("{'descr': '<f4', 'fortran_order': Falsey, 'shape': (3,)}", FORMAT, "comma");
    refused("{'descr': '<f4', " FLAT "'shape': (3,)} {", FORMAT, "after the dict");
    refused("{'descr': '<f4', " FLAT "'shape': (3,)}#", FORMAT, "after the dict");
    refused("{'descr': '<f4', " FLAT "'shape': (3,)}\0", FORMAT, "after the dict");
    refused("{'descr': '<f4\0', " FLAT "'shape': (3,)}", FORMAT, "no element type");
    refused("{'descr", FORMAT, "has no end");
    refused("{'descr': '<f4', " FLAT "'shape': (3", FORMAT, "comma");

    const char open[] = "{'descr': '<f4', " FLAT "'shape': (3,)}  "; /* no newline */
    check_refused(t, __LINE__, open, sizeof open - 1, RLX_ERROR_FORMAT, "newline");
    check_refused(t, __LINE__, open, 0, RLX_ERROR_FORMAT, "newline");
}

/* ---- versions and lengths -------------------------------------------------------------------- */

#define PLAIN "{'descr': '<f4', " FLAT "'shape': (2,), }      \n"

TEST(npy, versions)
{
    const float data[2] = {1.5f, -2};

    for (uint8_t major = 0; major < 6; major++) {
        struct file_text f =
            make_file(major == 1 ? 1 : 2, PLAIN, sizeof PLAIN - 1, data, sizeof data);
        f.at[6] = major;
        struct result r = read_file(&f);
        test_note(t, "version %d", major);
        expect_status(t, r.status, major >= 1 && major <= 3 ? RLX_OK : RLX_ERROR_FORMAT);
        if (r.status == RLX_OK)
            expect_bytes(t, r.data, data, sizeof data);
        else
            expect_contains(t, r.diag.first.message, "version");
        arena_free(&r.arena);
        f.at[7] = 1; /* no minor version but 0 */
        r = read_file(&f);
        expect_status(t, r.status, RLX_ERROR_FORMAT);
        arena_free(&r.arena);
        free(f.at);
    }
    test_note(t, "%s", "");
}

TEST(npy, bad_magic)
{
    for (int i = 0; i < 6; i++) {
        struct file_text f = make_file(1, PLAIN, sizeof PLAIN - 1, zeros, 8);
        f.at[i] ^= 1;
        struct result r = read_file(&f);
        expect_status(t, r.status, RLX_ERROR_FORMAT);
        expect_contains(t, r.diag.first.message, "not an npy file");
        arena_free(&r.arena);
        free(f.at);
    }
}

TEST(npy, header_lengths)
{
    static const uint32_t lengths[] = {
        0, 1, 60000, 65535, 65536, 1 << 20, (1 << 20) + 1, 0x7fffffff, 0xffffffff};

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct file_text f = make_file(3, PLAIN, sizeof PLAIN - 1, zeros, 8);
        for (int k = 0; k < 4; k++)
            f.at[8 + k] = (uint8_t)(lengths[i] >> (8 * k));
        struct result r = read_file(&f);
        expect_status(t, r.status, RLX_ERROR_FORMAT);
        arena_free(&r.arena);
        free(f.at);
    }
}

/* A header may have as many spaces as it likes, up to 2^20 bytes in all. */
TEST(npy, long_headers)
{
    size_t most = 1 << 20;
    char *header = malloc(most + 1);

    require(t, header != NULL);
    for (size_t len = most; len <= most + 1; len++) {
        memset(header, ' ', len);
        memcpy(header, PLAIN, sizeof PLAIN - 2);
        header[len - 1] = '\n';
        struct file_text f = make_file(2, header, len, zeros, 8);
        struct result r = read_file(&f);
        expect_status(t, r.status, len == most ? RLX_OK : RLX_ERROR_FORMAT);
        arena_free(&r.arena);
        free(f.at);
    }
    free(header);
}

TEST(npy, every_truncation_is_refused)
{
    for (uint8_t major = 1; major <= 3; major++) {
        struct file_text whole = make_file(major, PLAIN, sizeof PLAIN - 1, zeros, 8);
        for (size_t len = 0; len < whole.len; len++) {
            struct file_text f = {malloc(len ? len : 1), len};
            memcpy(f.at, whole.at, len);
            struct result r = read_file(&f);
            expect_status(t, r.status, RLX_ERROR_FORMAT);
            arena_free(&r.arena);
            free(f.at);
        }
        free(whole.at);
    }
    struct file_text none = {NULL, 0};
    struct result r = read_file(&none);
    expect_status(t, r.status, RLX_ERROR_FORMAT);
}

/* With any one bit of it turned a file is refused with a sentence, or has all that it says. */
TEST(npy, every_turned_bit_is_survived)
{
    size_t refused = 0;

    for (uint8_t major = 1; major <= 3; major++) {
        struct file_text f = make_file(major, PLAIN, sizeof PLAIN - 1, zeros, 8);
        for (size_t bit = 0; bit < f.len * 8; bit++) {
            f.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
            struct result r = read_file(&f);
            uint64_t bytes = 0;
            test_note(t, "version %d, bit %zu", major, bit);
            if (r.status == RLX_OK)
                expect(t, type_bytes(&r.type, &bytes) && bytes <= f.len && r.data);
            else
                expect(t, r.diag.first.message[0] && !r.data);
            refused += r.status != RLX_OK;
            arena_free(&r.arena);
            f.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        free(f.at);
    }
    expect(t, refused > sizeof PLAIN * 8);
}

TEST(npy, bytes_behind_the_data_are_allowed)
{
    const float data[5] = {1, 2, 3, 4, 5};
    struct file_text f = make_file(1, PLAIN, sizeof PLAIN - 1, data, sizeof data);
    struct result r = read_file(&f);

    expect_ok(t, r.status);
    expect_bytes(t, r.data, data, 8);
    arena_free(&r.arena);
    free(f.at);
}

/* ---- data ------------------------------------------------------------------------------------ */

static void check_data(struct test *t, const char *header, const void *data, size_t len,
                       const void *want, size_t want_len)
{
    struct file_text f = make_file(1, header, strlen(header), data, len);
    struct result r = read_file(&f);

    test_note(t, "%s", header);
    if (expect_ok(t, r.status)) {
        expect_bytes(t, r.data, want, want_len);
        expect_eq_u64(t, (uintptr_t)r.data % 16, 0);
    }
    test_note(t, "%s", "");
    arena_free(&r.arena);
    free(f.at);
}

TEST(npy, big_endian_data_is_turned)
{
    const uint8_t bytes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const uint8_t two[] = {1, 0, 3, 2}, four[] = {3, 2, 1, 0, 7, 6, 5, 4};
    const uint8_t eight[] = {7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8};

    check_data(t, "{'descr': '>i2', " FLAT "'shape': (2,)}\n", bytes, 4, two, 4);
    check_data(t, "{'descr': '>f2', " FLAT "'shape': (2,)}\n", bytes, 4, two, 4);
    check_data(t, "{'descr': '>u4', " FLAT "'shape': (2,)}\n", bytes, 8, four, 8);
    check_data(t, "{'descr': '>f8', " FLAT "'shape': (2,)}\n", bytes, 16, eight, 16);
    check_data(t, "{'descr': '>c8', " FLAT "'shape': (1,)}\n", bytes, 8, four, 8); /* per part */
    check_data(t, "{'descr': '>u1', " FLAT "'shape': (4,)}\n", bytes, 4, bytes, 4);
    check_data(t, "{'descr': '=i2', " FLAT "'shape': (2,)}\n", bytes, 4, bytes, 4);
    check_data(t, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 1)}\n", bytes, 4, two, 4);
}

TEST(npy, column_order_is_turned)
{
    const uint8_t in[24] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                            12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};
    const uint8_t two[6] = {0, 2, 4, 1, 3, 5};
    uint8_t three[24];

    check_data(t, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}\n", in, 6, two, 6);
    check_data(t, "{'descr': '|u1', 'fortran_order': True, 'shape': (6,)}\n", in, 6, in, 6);
    check_data(t, "{'descr': '|u1', 'fortran_order': True, 'shape': ()}\n", in, 1, in, 1);
    check_data(t, "{'descr': '|u1', 'fortran_order': True, 'shape': (3, 0)}\n", in, 0, in, 0);
    check_data(t, "{'descr': '|u1', 'fortran_order': True, 'shape': (1, 6, 1)}\n", in, 6, in, 6);
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 3; b++)
            for (int c = 0; c < 4; c++)
                three[(a * 3 + b) * 4 + c] = in[(c * 3 + b) * 2 + a];
    check_data(t, "{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3, 4)}\n", in, 24, three,
               24);
    const uint16_t wide[4] = {0x0100, 0x0302, 0x0504, 0x0706};
    const uint16_t turned[4] = {0x0001, 0x0405, 0x0203, 0x0607};
    check_data(t, "{'descr': '>u2', 'fortran_order': True, 'shape': (2, 2)}\n", wide, 8, turned, 8);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void check_header(struct test *t, const struct ir_type *type, const char *want)
{
    struct text out;
    struct diag d;

    diag_init(&d, "npy");
    text_init(&out, mem_default());
    if (expect_ok(t, npy_header(type, &out, &d))) {
        expect_eq_u64(t, out.len % 64, 0);
        expect_bytes(t, out.at, "\x93NUMPY\x01\x00", 8);
        expect_eq_u64(t, (uint8_t)out.at[8] + 256u * (uint8_t)out.at[9], out.len - 10);
        expect_eq(t, out.at[out.len - 1], '\n');
        expect_contains(t, out.at + 10, want);
    }
    text_free(&out);
}

TEST(npy, headers_are_written)
{
    struct ir_type type = {.dtype = RLX_DTYPE_f32};

    check_header(t, &type, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }");
    type = (struct ir_type){RLX_DTYPE_bool, 1, {3}};
    check_header(t, &type, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }");
    type = (struct ir_type){RLX_DTYPE_c64, 2, {2, 0}};
    check_header(t, &type, "{'descr': '<c8', 'fortran_order': False, 'shape': (2, 0), }");
    type.rank = 8;
    for (int i = 0; i < 8; i++)
        type.dim[i] = INT64_MAX;
    check_header(t, &type, "9223372036854775807, 9223372036854775807), }");

    struct text out;
    struct diag d;
    type = (struct ir_type){RLX_DTYPE_bf16, 1, {3}};
    diag_init(&d, "npy");
    text_init(&out, mem_default());
    expect_status(t, npy_header(&type, &out, &d), RLX_ERROR_UNSUPPORTED);
    expect_error(t, RLX_ERROR_UNSUPPORTED, "bf16", &d.first);
    text_free(&out);
}

/* What is written is read as it was: every type, every rank, so that every padding occurs. */
TEST(npy, what_is_written_is_read)
{
    for (int k = 0; k < RLX_DTYPE_count; k++) {
        for (int32_t rank = 0; k != RLX_DTYPE_bf16 && rank <= RLX_MAX_RANK; rank++) {
            struct ir_type type = {.dtype = (rlx_dtype)k, .rank = rank};
            uint8_t data[16 * 8];
            uint64_t bytes;
            struct text out;
            struct diag d;
            for (int32_t i = 0; i < rank; i++)
                type.dim[i] = i < 4 ? 2 : 1;
            for (size_t i = 0; i < sizeof data; i++)
                data[i] = (uint8_t)(i * 89 + 7);
            diag_init(&d, "npy");
            text_init(&out, mem_default());
            require(t, type_bytes(&type, &bytes));
            expect_ok(t, npy_header(&type, &out, &d));
            struct file_text f = {malloc(out.len + bytes), out.len + (size_t)bytes};
            memcpy(f.at, out.at, out.len);
            memcpy(f.at + out.len, data, (size_t)bytes);
            struct result r = read_file(&f);
            expect_ok(t, r.status);
            expect(t, r.status == RLX_OK && type_same(&r.type, &type));
            expect(t, r.status == RLX_OK && memcmp(r.data, data, (size_t)bytes) == 0);
            arena_free(&r.arena);
            text_free(&out);
            free(f.at);
        }
    }
}

/* ---- no memory ------------------------------------------------------------------------------- */

static rlx_status read_once(struct test *t, const rlx_allocator *mem, void *ctx)
{
    const struct file_text *f = ctx;
    struct arena arena;
    struct ir_type type;
    const void *data;
    struct diag d;

    (void)t;
    diag_init(&d, "npy");
    arena_init(&arena, mem);
    rlx_status s = npy_read(f->at, f->len, &arena, &type, &data, &d);
    arena_free(&arena);
    return s;
}

static rlx_status write_once(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct text out;
    struct diag d;

    (void)t;
    diag_init(&d, "npy");
    text_init(&out, mem);
    rlx_status s = npy_header(ctx, &out, &d);
    text_free(&out);
    return s;
}

TEST(npy, no_memory)
{
    static uint8_t data[40000];
    struct file_text f =
        make_file(1, "{'descr': '>f4', 'fortran_order': True, 'shape': (100, 100)}\n",
                  sizeof "{'descr': '>f4', 'fortran_order': True, 'shape': (100, 100)}\n" - 1, data,
                  sizeof data);
    struct ir_type type = {RLX_DTYPE_f32, 8, {1, 2, 3, 4, 5, 6, 7, 1000000}};

    expect_survives_no_memory(t, read_once, &f);
    expect_survives_no_memory(t, write_once, &type);
    free(f.at);
}

/* ---- broken files ---------------------------------------------------------------------------- */

static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % below);
}

/* One change to a file: bits, bytes, parts repeated or gone, text that means something. */
static void damage(struct file_text *f, uint64_t *state)
{
    static const char *const words[] = {"'shape'", "(",   ")",  ",",  "True",        "{",
                                        "}",       "'",   "\"", "\n", "99999999999", "0",
                                        "-1",      "c16", ">",  "|",  ":",           "\xff"};
    uint32_t at = f->len ? draw(state, (uint32_t)f->len) : 0;
    size_t rest = f->len - at, n = draw(state, 12) + 1;
    const char *word = words[draw(state, sizeof words / sizeof words[0])];

    switch (f->len ? draw(state, 6) : 5) {
    case 0: f->at[at] ^= (uint8_t)(1u << draw(state, 8)); break;
    case 1: f->at[at] = (uint8_t)draw(state, 256); break;
    case 2: /* cut out */
        n = n < rest ? n : rest;
        memmove(f->at + at, f->at + at + n, rest - n);
        f->len -= n;
        break;
    case 3: f->len = at; break;
    case 4: /* written over */
        n = strlen(word) < rest ? strlen(word) : rest;
        memcpy(f->at + at, word, n);
        break;
    default: /* put in; there is room for it */
        n = strlen(word);
        memmove(f->at + at + n, f->at + at, rest);
        memcpy(f->at + at, word, n);
        f->len += n;
    }
}

TEST(npy, broken_files_are_survived)
{
    static const char *const headers[] = {
        PLAIN,
        "{'descr': '>f8', 'fortran_order': True, 'shape': (2, 3, 2), }\n",
        "{\"shape\": (), \"descr\": \"|b1\", \"fortran_order\": False}\n",
        "{'descr': '<c8', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 4), }\n",
        "{'descr': '<i2', 'fortran_order': True, 'shape': (3, 0), }\n",
    };
    const int rounds = test_full() ? 1000000 : 20000;
    uint64_t state = 2024;
    uint8_t data[96];
    int good = 0;

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)i;
    for (int i = 0; i < rounds; i++) {
        const char *header = headers[draw(&state, 5)];
        struct file_text whole = make_file((uint8_t)(1 + draw(&state, 3)), header, strlen(header),
                                           data, draw(&state, sizeof data));
        struct file_text broken = {malloc(whole.len + 64), whole.len};
        memcpy(broken.at, whole.at, whole.len);
        free(whole.at);
        for (uint32_t k = draw(&state, 4); k-- > 0;)
            damage(&broken, &state);
        struct file_text f = {malloc(broken.len ? broken.len : 1), broken.len};
        memcpy(f.at, broken.at, broken.len); /* no room after its end */
        free(broken.at);

        struct result r = read_file(&f);
        uint64_t bytes = 0;
        if (r.status == RLX_OK) {
            good++;
            bool holds = type_bytes(&r.type, &bytes) && bytes <= f.len && r.data;
            for (uint64_t k = 0, sum = 0; holds && k < bytes; k++) /* all of it can be read */
                holds = (sum += r.data[k]) < UINT64_MAX;
            if (!holds)
                expect(t, holds);
        } else if (r.data || r.diag.first.message[0] == 0) {
            fail(t, "status %d without a sentence, or with data", (int)r.status);
        }
        arena_free(&r.arena);
        free(f.at);
    }
    expect(t, good > rounds / 20 && good < rounds / 2); /* neither all broken nor all whole */
}
