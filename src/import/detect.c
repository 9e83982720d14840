/* detect.c: what a file is, by what is in it.
 *
 *     GGUF               47 47 55 46
 *     npy                93 'N' 'U' 'M' 'P' 'Y'
 *     npz (zip)          'P' 'K', then 3 4, or 5 6 where it is empty
 *     artefact           its magic
 *     safetensors        a length of 64 bits, then '{'
 *     safetensors index  '{', after spaces
 *     ONNX               protocol buffer fields of a model, no magic
 *     text               no control characters at its beginning
 *
 * Text is asked for before ONNX without its usual first byte: "rlx 1" is a field of sorts, too. */
#include "import/detect.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "import/weight_file.h"

static const struct {
    const char *name, *extension, *text;
} kinds[] = {
#define X(name, number, extension, text) [number] = {#name, extension, text},
    RLX_FILE_KIND_MAP(X)
#undef X
};

static bool begins(const uint8_t *bytes, size_t size, const char *magic, size_t len)
{
    return size >= len && memcmp(bytes, magic, len) == 0;
}

static bool is_safetensors(const uint8_t *bytes, size_t size)
{
    uint64_t header = 0;

    for (size_t i = 0; i < 8 && size > 8; i++)
        header |= (uint64_t)bytes[i] << (8 * i);
    return size > 8 && header <= SAFETENSORS_MAX_HEADER && bytes[8] == '{';
}

static bool is_json_object(const uint8_t *bytes, size_t size)
{
    size_t i = 0;

    while (i < size &&
           (bytes[i] == ' ' || bytes[i] == '\t' || bytes[i] == '\n' || bytes[i] == '\r'))
        i++;
    return i < size && bytes[i] == '{';
}

static bool is_text(const uint8_t *bytes, size_t size)
{
    enum { LOOK_AT = 512 };

    for (size_t i = 0; i < size && i < LOOK_AT; i++)
        if ((bytes[i] < 0x20 && !strchr("\t\n\v\f\r", bytes[i])) || bytes[i] == 0x7f || !bytes[i])
            return false;
    return true;
}

static bool take_varint(const uint8_t *bytes, size_t size, size_t *at, uint64_t *out)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64 && *at < size; shift += 7) {
        uint8_t byte = bytes[(*at)++];
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return true;
        }
    }
    return false;
}

/* Every field from the first to the last is one a model has, and the graph is among them. */
static bool is_onnx(const uint8_t *bytes, size_t size)
{
    enum { VARINT = 0, LENGTH = 2, IR_VERSION = 1, MODEL_VERSION = 5, GRAPH = 7, LAST = 26 };
    bool graph = false;
    size_t at = 0;

    if (size >= 2 && bytes[0] == (IR_VERSION << 3 | VARINT) && bytes[1] > 0 && bytes[1] < 0x80)
        return true; /* as every exporter begins; what is wrong after that is for the reader to
                      * find */
    while (at < size) {
        uint64_t tag, value;
        if (!take_varint(bytes, size, &at, &tag) || !take_varint(bytes, size, &at, &value))
            return false;
        bool number = tag >> 3 == IR_VERSION || tag >> 3 == MODEL_VERSION;
        if (tag >> 3 == 0 || tag >> 3 > LAST || (tag & 7) != (number ? VARINT : LENGTH))
            return false;
        if (!number && value > size - at)
            return false;
        at += number ? 0 : (size_t)value;
        graph = graph || tag >> 3 == GRAPH;
    }
    return graph;
}

rlx_file_kind detect_kind(const uint8_t *bytes, size_t size)
{
    if (begins(bytes, size, "GGUF", 4))
        return RLX_FILE_gguf;
    if (begins(bytes, size, "\x93NUMPY", 6))
        return RLX_FILE_npy;
    if (begins(bytes, size, "PK\3\4", 4) || begins(bytes, size, "PK\5\6", 4))
        return RLX_FILE_npz;
    if (begins(bytes, size, DETECT_ARTEFACT_MAGIC, 8))
        return RLX_FILE_artefact;
    if (is_safetensors(bytes, size)) /* its length may begin with a '{' */
        return RLX_FILE_safetensors;
    if (is_json_object(bytes, size))
        return RLX_FILE_safetensors_index;
    if (is_text(bytes, size))
        return RLX_FILE_text;
    return is_onnx(bytes, size) ? RLX_FILE_onnx : RLX_FILE_unknown;
}

rlx_file_kind detect_kind_by_name(rlx_str path)
{
    rlx_file_kind best = RLX_FILE_unknown;

    for (int i = 1; i < RLX_FILE_count; i++)
        if (str_ends(path, rlx_cstr(kinds[i].extension)))
            best = (rlx_file_kind)i;
    return best;
}

static bool begins_in_any_case(const uint8_t *bytes, size_t size, const char *lower)
{
    size_t i = 0;

    for (; i < size && lower[i] && tolower(bytes[i]) == lower[i]; i++)
        ;
    return !lower[i];
}

static const uint8_t *after_spaces(const uint8_t *bytes, size_t *size)
{
    while (*size && strchr(" \t\r\n", *bytes) && *bytes)
        bytes++, --*size;
    return bytes;
}

static bool is_html(const uint8_t *bytes, size_t size)
{
    bytes = after_spaces(bytes, &size);
    return begins_in_any_case(bytes, size, "<!doctype html") ||
           begins_in_any_case(bytes, size, "<html");
}

/* "rlx", after comments. */
static bool is_our_text(const uint8_t *bytes, size_t size)
{
    bytes = after_spaces(bytes, &size);
    while (size && *bytes == '#') {
        while (size && *bytes != '\n')
            bytes++, size--;
        bytes = after_spaces(bytes, &size);
    }
    return begins(bytes, size, "rlx", 3);
}

/* A zip archive whose first member is called .../data.pkl. */
static bool is_torch_zip(const uint8_t *bytes, size_t size)
{
    enum { LENGTH_AT = 26, NAME_AT = 30 };
    static const char last[] = "/data.pkl";

    if (size < NAME_AT || !begins(bytes, size, "PK\3\4", 4))
        return false;
    size_t len = (size_t)bytes[LENGTH_AT] | (size_t)bytes[LENGTH_AT + 1] << 8;
    return len <= size - NAME_AT &&
           str_ends((rlx_str){(const char *)bytes + NAME_AT, len}, rlx_cstr(last));
}

#define PICKLE "a Python pickle: save the model as ONNX, or its weights as safetensors"

/* Kinds that people try but rlx does not read; NULL: not one of those either. */
static const char *foreign_kind(const uint8_t *bytes, size_t size)
{
    static const struct {
        size_t at, len;
        const char *magic, *text;
    } rows[] = {
        {0, 8, "\x89PNG\r\n\x1a\n", "a PNG picture"},
        {0, 3, "\xff\xd8\xff", "a JPEG picture"},
        {0, 4, "GIF8", "a GIF picture"},
        {8, 4, "WEBP", "a WebP picture"},
        {0, 4, "%PDF", "a PDF document"},
        {0, 4,
         "\x7f"
         "ELF",
         "a program"},
        {0, 2, "\x1f\x8b", "compressed with gzip: unpack it first"},
        {0, 4, "\x28\xb5\x2f\xfd", "compressed with zstd: unpack it first"},
        {0, 2, "BZ", "compressed with bzip2: unpack it first"},
        {0, 6,
         "\xfd"
         "7zXZ",
         "compressed with xz: unpack it first"},
        {0, 8, "\x89HDF\r\n\x1a\n", "HDF5, as Keras writes: export the model to ONNX"},
        {4, 4, "TFL3", "a TensorFlow Lite model: convert it to ONNX"},
        {0, 2, "\x80\x02", PICKLE},
        {0, 3, "\x80\x03\x63", PICKLE},
        {0, 3, "\x80\x04\x95", PICKLE},
        {0, 3, "\x80\x05\x95", PICKLE},
        {0, 42, "version https://git-lfs.github.com/spec/v1",
         "a Git LFS pointer, which stands for the file: \"git lfs pull\" fetches the file itself"},
        {0, 5, "<?xml", "XML"},
        {257, 5, "ustar", "a tar archive: unpack it first"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (size >= rows[i].at + rows[i].len &&
            memcmp(bytes + rows[i].at, rows[i].magic, rows[i].len) == 0)
            return rows[i].text;
    if (is_torch_zip(bytes, size))
        return "a PyTorch file: export the model to ONNX, or save its weights as safetensors";
    return is_html(bytes, size) ? "an HTML page, as servers send when a file does not exist" : NULL;
}

/* Kinds that little distinguishes. */
static bool may_be_foreign(rlx_file_kind k)
{
    return k == RLX_FILE_unknown || k == RLX_FILE_text || k == RLX_FILE_npz;
}

bool detect_is_foreign(const uint8_t *bytes, size_t size, rlx_str path)
{
    rlx_file_kind is = detect_kind(bytes, size), named = detect_kind_by_name(path);

    if (may_be_foreign(is) && foreign_kind(bytes, size))
        return true;
    return is == RLX_FILE_text && named != RLX_FILE_unknown && named != RLX_FILE_text &&
           !is_our_text(bytes, size);
}

rlx_status detect_refuse(const uint8_t *bytes, size_t size, rlx_str path, const char *wanted,
                         struct diag *d)
{
    rlx_file_kind is = detect_kind(bytes, size), named = detect_kind_by_name(path);
    const char *foreign = foreign_kind(bytes, size);

    if (size == 0)
        return diag_fail(d, RLX_ERROR_FORMAT, "the file is empty");
    if (may_be_foreign(is) && foreign)
        return diag_fail(d, RLX_ERROR_FORMAT, "%s was expected, but this is %s", wanted, foreign);
    if (is == RLX_FILE_unknown && named != RLX_FILE_unknown)
        return diag_fail(d, RLX_ERROR_FORMAT,
                         "%s was expected; the file is called %s, but does not begin like one",
                         wanted, kinds[named].extension);
    if (is == RLX_FILE_text && !is_our_text(bytes, size))
        return diag_fail(d, RLX_ERROR_FORMAT, "%s was expected, but this is text of another kind",
                         wanted);
    return diag_fail(d, RLX_ERROR_FORMAT, "%s was expected, but this is %s", wanted,
                     kinds[is].text);
}

const char *rlx_file_kind_name(rlx_file_kind k)
{
    return (unsigned)k < RLX_FILE_count ? kinds[k].name : "?";
}

const char *rlx_file_kind_text(rlx_file_kind k)
{
    return (unsigned)k < RLX_FILE_count ? kinds[k].text : "?";
}
