/* onnx_packed_test.c: elements of fewer bits than a byte, as files have them. */
#include "onnx_run.h"

static void expect_unpacked(struct test *t, struct bytes *tensor, size_t count, const void *want)
{
    struct bytes g = {.len = 0};
    uint8_t got[16];

    put_text(tensor, 8, "x");
    put_sub(&g, 5, tensor);
    put_op(&g, "Identity", IN("x"), "y", NULL);
    if (output_of(t, &g, got, count))
        expect_bytes(t, got, want, count);
}

static struct bytes tensor_of(int64_t elem, uint64_t count)
{
    struct bytes w = {.len = 0};

    put_int(&w, 1, count);
    put_int(&w, 2, (uint64_t)elem);
    return w;
}

TEST(onnx_packed, elements_are_a_stream_of_bits)
{
    static const struct {
        int64_t elem;
        const char *raw; /* of 5 elements */
        size_t len;
        const char *want;
    } rows[] = {{ONNX_FLOAT4E2M1, "\x21\x43\x0f", 3, "\x01\x02\x03\x04\x0f"},
                {ONNX_UINT2, "\xe4\x03", 2, "\x00\x01\x02\x03\x03"},
                /* 6 bits: 0x3f 0x01 0x20 0x15, 0x2a */
                {ONNX_FLOAT6E3M2, "\x7f\x00\x56\x2a", 4, "\x3f\x01\x20\x15\x2a"}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bytes good = tensor_of(rows[i].elem, 5), bad = good, g = {.len = 0};
        put_data(&good, 9, rows[i].raw, rows[i].len);
        expect_unpacked(t, &good, 5, rows[i].want);
        put_data(&bad, 9, rows[i].raw, rows[i].len - 1);
        put_text(&bad, 8, "x");
        put_sub(&g, 5, &bad);
        put_op(&g, "Identity", IN("x"), "y", NULL);
        put_value(&g, 12, "y", 1, NULL);
        struct bytes m = finish(&g, 28);
        expect_refused(t, &m, RLX_ERROR_FORMAT, "packed bytes, not");
    }
}

TEST(onnx_packed, numbers_hold_whole_elements)
{
    struct bytes four = tensor_of(ONNX_FLOAT4E2M1, 3), six = tensor_of(ONNX_FLOAT6E2M3, 3),
                 eight = tensor_of(ONNX_FLOAT8E5M2FNUZ, 3);

    put_int(&four, 5, 0x21);
    put_int(&four, 5, 0x03);
    expect_unpacked(t, &four, 3, "\x01\x02\x03");
    for (uint64_t i = 0; i < 3; i++) {
        put_int(&six, 5, 0x3f - i);
        put_int(&eight, 5, 0xff - i);
    }
    expect_unpacked(t, &six, 3, "\x3f\x3e\x3d");
    expect_unpacked(t, &eight, 3, "\xff\xfe\xfd");
}

TEST(onnx_packed, elements_may_lie_in_another_file)
{
    struct bytes g = {.len = 0}, w = tensor_of(ONNX_INT4, 3), e = {.len = 0};
    const char *path = test_temp(t, "packed.bin");

    require(t, test_write(t, path, "\x21\x0f", 2));
    put_text(&e, 1, "location");
    put_text(&e, 2, strrchr(path, '/') + 1);
    put_text(&w, 8, "x");
    put_sub(&w, 13, &e);
    put_int(&w, 14, 1);
    put_sub(&g, 5, &w);
    put_op(&g, "Identity", IN("x"), "y", NULL);
    uint8_t got[3];
    if (output_of(t, &g, got, 3))
        expect_bytes(t, got, "\x01\x02\xff", 3);
}
