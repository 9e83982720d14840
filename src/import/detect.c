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

#include <string.h>

#include "base/str.h"
#include "import/weight_file.h"

static const struct {
    const char *name, *extension, *text;
} kinds[] = {
#define X(name, extension, text) {#name, extension, text},
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
        return true; /* as every exporter begins; what is wrong behind it is for the reader */
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

/* What people try, that is none of our kinds; NULL: not known either. */
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
        {0, 2, "\x80\x02",
         "a Python pickle: save the model as ONNX, or its weights as safetensors"},
        {257, 5, "ustar", "a tar archive: unpack it first"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (size >= rows[i].at + rows[i].len &&
            memcmp(bytes + rows[i].at, rows[i].magic, rows[i].len) == 0)
            return rows[i].text;
    return NULL;
}

rlx_status detect_refuse(const uint8_t *bytes, size_t size, rlx_str path, const char *wanted,
                         struct diag *d)
{
    rlx_file_kind is = detect_kind(bytes, size), named = detect_kind_by_name(path);
    const char *foreign = foreign_kind(bytes, size);

    if (is == RLX_FILE_unknown && foreign)
        return diag_fail(d, RLX_ERROR_FORMAT, "%s was expected, but this is %s", wanted, foreign);
    if (is == RLX_FILE_unknown && named != RLX_FILE_unknown)
        return diag_fail(d, RLX_ERROR_FORMAT,
                         "%s was expected; the file is called %s, but does not begin like one",
                         wanted, kinds[named].extension);
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
