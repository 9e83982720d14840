/* info_weights.c: `rlx info` on files that hold tensors and no graph. */
#include "info_weights.h"

#include <inttypes.h>
#include <math.h>

#include "rlx/llm.h"
#include "tensor_text.h"

bool is_weights_file(rlx_file_kind kind)
{
    return kind == RLX_FILE_gguf || kind == RLX_FILE_safetensors ||
           kind == RLX_FILE_safetensors_index || kind == RLX_FILE_npy || kind == RLX_FILE_npz;
}

/* ---- values ---- */

enum { MOST_TEXT = 60 }; /* bytes of a string in a table */

/* Untrusted text on a terminal: without control characters, and no more than fits. */
static void print_text(FILE *out, rlx_str s, size_t most)
{
    for (size_t i = 0; i < s.len && i < most; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c == '\n')
            fputs("\\n", out);
        else
            fputc(c < 0x20 || c == 0x7f ? '?' : c, out);
    }
    if (s.len > most)
        fputs("...", out);
}

static void print_float(FILE *out, double v, int digits, bool json)
{
    if (json && !isfinite(v))
        fputs("null", out);
    else
        fprintf(out, "%.*g", digits, v);
}

static void print_element(FILE *out, const rlx_meta *m, size_t i, bool json)
{
    const void *at = m->data;
    rlx_str s;

    switch (m->type) {
    case RLX_META_u8: fprintf(out, "%u", ((const uint8_t *)at)[i]); break;
    case RLX_META_i8: fprintf(out, "%d", ((const int8_t *)at)[i]); break;
    case RLX_META_u16: fprintf(out, "%u", ((const uint16_t *)at)[i]); break;
    case RLX_META_i16: fprintf(out, "%d", ((const int16_t *)at)[i]); break;
    case RLX_META_u32: fprintf(out, "%" PRIu32, ((const uint32_t *)at)[i]); break;
    case RLX_META_i32: fprintf(out, "%" PRId32, ((const int32_t *)at)[i]); break;
    case RLX_META_u64: fprintf(out, "%" PRIu64, ((const uint64_t *)at)[i]); break;
    case RLX_META_i64: fprintf(out, "%" PRId64, ((const int64_t *)at)[i]); break;
    case RLX_META_f32: print_float(out, (double)((const float *)at)[i], 9, json); break;
    case RLX_META_f64: print_float(out, ((const double *)at)[i], 17, json); break;
    case RLX_META_bool: fputs(((const uint8_t *)at)[i] ? "true" : "false", out); break;
    case RLX_META_string:
        s = ((const rlx_str *)at)[i];
        if (json)
            cli_json_string(out, s.ptr, s.len);
        else
            print_text(out, s, MOST_TEXT);
        break;
    }
}

void print_meta_value(FILE *out, const rlx_meta *m, size_t most, bool json)
{
    if (!m->is_array) {
        print_element(out, m, 0, json);
        return;
    }
    fputs("[", out);
    for (size_t i = 0; i < m->count && i < most; i++) {
        fputs(i ? ", " : "", out);
        print_element(out, m, i, json);
    }
    fputs(m->count > most ? ", ...]" : "]", out);
}

/* ---- tables ---- */

static const char *type_name(rlx_weight_type type)
{
    rlx_weight_type_info info = {RLX_SIZED(rlx_weight_type_info), .name = "?"};

    rlx_weight_type_describe(type, &info, NULL);
    return info.name;
}

static void print_metadata(const rlx_weights *w, size_t count)
{
    enum { MOST_ELEMENTS = 6 };
    rlx_meta m;
    int widest = 3;

    for (size_t i = 0; rlx_weights_meta_at(w, i, &m); i++)
        if (m.key.len < 60 && (int)m.key.len > widest)
            widest = (int)m.key.len;
    printf("metadata: %zu keys\n", count);
    for (size_t i = 0; rlx_weights_meta_at(w, i, &m); i++) {
        char type[40];
        printf("  ");
        print_text(stdout, m.key, 200);
        if (m.is_array)
            snprintf(type, sizeof type, "%s[%zu]", rlx_meta_type_name(m.type), m.count);
        else
            snprintf(type, sizeof type, "%s", rlx_meta_type_name(m.type));
        printf("%*s  %-14s ", m.key.len < (size_t)widest ? widest - (int)m.key.len : 0, "", type);
        print_meta_value(stdout, &m, MOST_ELEMENTS, false);
        printf("\n");
    }
}

static void print_tensors(const rlx_weights *w, size_t count)
{
    rlx_weight t;
    int widest = 4;

    for (size_t i = 0; rlx_weights_at(w, i, &t); i++)
        if (t.name.len < 80 && (int)t.name.len > widest)
            widest = (int)t.name.len;
    printf("tensors: %zu\n", count);
    if (count)
        printf("  %-*s  %-8s %-24s %16s\n", widest, "name", "type", "shape", "bytes");
    for (size_t i = 0; rlx_weights_at(w, i, &t); i++) {
        char shape[SHAPE_TEXT];
        shape_text(t.rank, t.dim, shape);
        printf("  ");
        print_text(stdout, t.name, 200);
        printf("%*s  %-8s %-24s %16" PRIu64 "\n",
               t.name.len < (size_t)widest ? widest - (int)t.name.len : 0, "", type_name(t.type),
               shape, t.bytes);
    }
}

static void print_types(const rlx_weights *w)
{
    struct {
        size_t count;
        uint64_t elements, bytes;
    } of[RLX_WEIGHT_TYPE_count] = {{0}};
    char text[32];
    rlx_weight t;

    for (size_t i = 0; rlx_weights_at(w, i, &t); i++) {
        uint64_t elements = 1;
        for (int32_t k = 0; k < t.rank; k++)
            elements *= (uint64_t)t.dim[k];
        of[t.type].count++;
        of[t.type].elements += elements;
        of[t.type].bytes += t.bytes;
    }
    for (int i = 0; i < RLX_WEIGHT_TYPE_count; i++)
        if (of[i].count)
            printf("  %-8s %6zu tensors %16" PRIu64 " elements %16" PRIu64 " bytes  %s\n",
                   type_name((rlx_weight_type)i), of[i].count, of[i].elements, of[i].bytes,
                   cli_bytes(of[i].bytes, text));
}

/* What a language model is, in words; or why it cannot be run. */
static void print_language_model(const rlx_weights *w)
{
    rlx_llm_info m = {RLX_SIZED(rlx_llm_info)};
    rlx_error err;
    rlx_meta arch;

    if (!rlx_weights_meta(w, rlx_cstr("general.architecture"), &arch))
        return;
    if (rlx_llm_peek(w, &m, &err) != RLX_OK) {
        printf("rlx generate cannot run it: %s\n", err.message);
        return;
    }
    printf("a language model of the architecture %s (%s): %.4g million numbers\n", m.arch,
           m.arch_text, (double)m.params / 1e6);
    printf("  %" PRId64 " layers of width %" PRId64 ", %" PRId64 " heads of %" PRId64 " (%" PRId64
           " of keys and values), %" PRId64 " inside the feed-forward part\n",
           m.layers, m.width, m.heads, m.head_dim, m.kv_heads, m.ffn);
    printf("  %" PRId64 " tokens in its vocabulary, a context of %" PRId64 "%s\n", m.vocab,
           m.trained_context, m.chat_template.ptr ? ", a template for chats" : "");
}

static void print_tables(const rlx_weights *w)
{
    rlx_weights_info info = {RLX_SIZED(rlx_weights_info), .files = 0};
    char text[32];

    rlx_weights_describe(w, &info, NULL);
    printf("%s: %s\n", rlx_file_kind_name(info.kind), rlx_file_kind_text(info.kind));
    printf("%u file%s, %" PRIu64 " bytes (%s)", info.files, info.files == 1 ? "" : "s", info.bytes,
           cli_bytes(info.bytes, text));
    if (info.version)
        printf(", version %u", info.version);
    if (info.alignment)
        printf(", aligned to %" PRIu64, info.alignment);
    printf("\n");
    print_language_model(w);
    if (info.meta_count)
        print_metadata(w, info.meta_count);
    print_tensors(w, info.tensor_count);
    print_types(w);
}

/* ---- JSON ---- */

static void json_metadata(const rlx_weights *w)
{
    rlx_meta m;

    printf("\"metadata\": {");
    for (size_t i = 0; rlx_weights_meta_at(w, i, &m); i++) {
        fputs(i ? ",\n " : "\n ", stdout);
        cli_json_string(stdout, m.key.ptr, m.key.len);
        printf(": {\"type\": \"%s\", \"value\": ", rlx_meta_type_name(m.type));
        print_meta_value(stdout, &m, SIZE_MAX, true);
        printf("}");
    }
    printf("},\n");
}

static void json_tensors(const rlx_weights *w)
{
    rlx_weight t;

    printf("\"tensors\": [");
    for (size_t i = 0; rlx_weights_at(w, i, &t); i++) {
        char shape[SHAPE_TEXT];
        shape_text(t.rank, t.dim, shape);
        fputs(i ? ",\n {\"name\": " : "\n {\"name\": ", stdout);
        cli_json_string(stdout, t.name.ptr, t.name.len);
        printf(", \"type\": \"%s\", \"shape\": %s, \"bytes\": %" PRIu64 "}", type_name(t.type),
               shape, t.bytes);
    }
    printf("]}\n");
}

static void print_json(const rlx_weights *w)
{
    rlx_weights_info info = {RLX_SIZED(rlx_weights_info), .files = 0};

    rlx_weights_describe(w, &info, NULL);
    printf("{\"kind\": \"%s\", \"version\": %u, \"files\": %u, \"bytes\": %" PRIu64
           ", \"alignment\": %" PRIu64 ",\n",
           rlx_file_kind_name(info.kind), info.version, info.files, info.bytes, info.alignment);
    json_metadata(w);
    json_tensors(w);
}

int info_weights(struct cli *c, const char *path, bool json)
{
    rlx_weights *w;
    rlx_error err;

    if (rlx_weights_open(c->ctx, path, &c->load, &w, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot read", path);
    if (json)
        print_json(w);
    else
        print_tables(w);
    rlx_weights_close(w);
    return EXIT_DONE;
}
