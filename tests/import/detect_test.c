/* detect_test.c: every kind of file is recognised by its bytes, and by nothing else. */
#include "import/detect.h"

#include "../test.h"
#include "base/str.h"

TEST(detect, every_kind_by_its_bytes)
{
    static const struct {
        rlx_str bytes;
        rlx_file_kind want;
    } rows[] = {
        {STR("GGUF\3\0\0\0"), RLX_FILE_gguf},
        {STR("GGUF"), RLX_FILE_gguf},
        {STR("\x93NUMPY\1\0"), RLX_FILE_npy},
        {STR("PK\3\4\x14\0"), RLX_FILE_npz},
        {STR("PK\5\6\0\0"), RLX_FILE_npz},
        {STR("RLXAOT\r\n\1"), RLX_FILE_artefact},
        {STR("\2\0\0\0\0\0\0\0{}"), RLX_FILE_safetensors},
        {STR("{\1\0\0\0\0\0\0{}"), RLX_FILE_safetensors}, /* of length 0x17b */
        {STR("{\"weight_map\": {}}"), RLX_FILE_safetensors_index},
        {STR(" \n\t{"), RLX_FILE_safetensors_index},
        {STR("rlx 1\ngraph () {\n}\n"), RLX_FILE_text},
        {STR("# a comment\nrlx 1\n"), RLX_FILE_text},
        {STR(""), RLX_FILE_text},
        {STR("\x08\x07\x12\x04tool"), RLX_FILE_onnx},
        {STR("\x08\x07\x3a\xff"), RLX_FILE_onnx}, /* cut short, but no doubt what it was */
        {STR("\x3a\2\x12\0\x42\2\x10\x0d"), RLX_FILE_onnx}, /* the graph first */
        {STR("\x3a\x7f\x12\0"), RLX_FILE_unknown},          /* the same, cut short */
        {STR("\x42\2\x10\x0d"), RLX_FILE_unknown},          /* no graph */
        {STR("\0\0\0\0"), RLX_FILE_unknown},
        {STR("\xff\xd8\xff\xe0\0\x10JFIF"), RLX_FILE_unknown},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rlx_file_kind got = detect_kind((const uint8_t *)rows[i].bytes.ptr, rows[i].bytes.len);
        test_note(t, "row %zu", i);
        expect_str(t, rlx_file_kind_name(got), rlx_file_kind_name(rows[i].want));
    }
}

TEST(detect, names_are_hints)
{
    expect_eq(t, detect_kind_by_name(STR("a/b.gguf")), RLX_FILE_gguf);
    expect_eq(t, detect_kind_by_name(STR("b.safetensors")), RLX_FILE_safetensors);
    expect_eq(t, detect_kind_by_name(STR("b.safetensors.index.json")), RLX_FILE_safetensors_index);
    expect_eq(t, detect_kind_by_name(STR("b.rlx")), RLX_FILE_text);
    expect_eq(t, detect_kind_by_name(STR("b.rlxa")), RLX_FILE_artefact);
    expect_eq(t, detect_kind_by_name(STR("gguf")), RLX_FILE_unknown);
    expect_eq(t, detect_kind_by_name(STR("")), RLX_FILE_unknown);
    expect_str(t, rlx_file_kind_name((rlx_file_kind)99), "?");
    expect_str(t, rlx_file_kind_text((rlx_file_kind)-1), "?");
}

static rlx_status refuse(const char *bytes, size_t size, struct diag *d)
{
    return detect_refuse((const uint8_t *)bytes, size, STR("x.onnx"), "a model", d);
}

TEST(detect, a_refusal_says_what_it_is)
{
    struct diag d;

    diag_init(&d, "load");
    expect_status(t, refuse("\x93NUMPY\1", 7, &d), RLX_ERROR_FORMAT);
    expect_error(t, RLX_ERROR_FORMAT, "a model was expected, but this is one NumPy array",
                 &d.first);
    diag_init(&d, "load");
    expect_status(t, refuse("\0\0\0\0", 4, &d), RLX_ERROR_FORMAT);
    expect_error(t, RLX_ERROR_FORMAT, "the file is called .onnx, but does not begin like one",
                 &d.first);
    diag_init(&d, "load");
    expect_status(t, refuse("\x89PNG\r\n\x1a\n\0\0", 10, &d), RLX_ERROR_FORMAT);
    expect_error(t, RLX_ERROR_FORMAT, "a model was expected, but this is a PNG picture", &d.first);
    diag_init(&d, "load");
    expect_status(t, refuse("\x80\x02", 2, &d), RLX_ERROR_FORMAT);
    expect_error(t, RLX_ERROR_FORMAT, "a Python pickle: save the model as ONNX", &d.first);
}

/* What downloads and repositories leave instead of a model. */
TEST(detect, what_is_not_a_model_is_called_by_its_name)
{
    static const struct {
        rlx_str bytes, path;
        const char *want; /* NULL: some reader of ours may say more */
    } rows[] = {
        {STR("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n"),
         STR("m.onnx"),
         "but this is a Git LFS pointer, which stands for the file: \"git lfs pull\""},
        {STR("version https://git-lfs.github.com/spec/v1\n"), STR("m.rlx"), "a Git LFS pointer"},
        {STR("\n <!DOCTYPE HTML>\n<html>"), STR("m.gguf"), "but this is an HTML page"},
        {STR("<html><body>"), STR("m"), "an HTML page"},
        {STR("<?xml version=\"1.0\"?>"), STR("m.onnx"), "but this is XML"},
        {STR("Dear reader,\n"), STR("m.onnx"), "but this is text of another kind"},
        {STR("Dear reader,\n"), STR("m.gguf"), "but this is text of another kind"},
        {STR("\x80\x04\x95\x10\0\0"), STR("m.onnx"), "a Python pickle"},
        {STR("\x80\x02}q"), STR("m.gguf"), "a Python pickle"},
        {STR("PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x0a\0\0\0"
             "a/data.pkl"),
         STR("m.onnx"), "but this is a PyTorch file"},
        {STR("Dear reader,\n"), STR("m.rlx"), NULL},
        {STR("# mine\n\n rlx 1 graph () {}"), STR("m.onnx"), NULL},
        {STR("PK\3\4\x14\0"), STR("m.onnx"), NULL},
        {STR("\x08\x07\x3a\xff"), STR("m.onnx"), NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const uint8_t *bytes = (const uint8_t *)rows[i].bytes.ptr;
        struct diag d;
        test_note(t, "row %zu", i);
        expect_eq(t, detect_is_foreign(bytes, rows[i].bytes.len, rows[i].path), !!rows[i].want);
        diag_init(&d, "load");
        detect_refuse(bytes, rows[i].bytes.len, rows[i].path, "a model", &d);
        if (rows[i].want)
            expect_error(t, RLX_ERROR_FORMAT, rows[i].want, &d.first);
    }
}
