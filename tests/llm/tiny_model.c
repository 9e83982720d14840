/* tiny_model.c: from a row of tiny_models.def to a GGUF file. */
#include "tiny_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TINY(name, arch, ...) {#name, arch, __VA_ARGS__},
static const struct tiny_model models[] = {
#include "tiny_models.def"
};

const struct tiny_model *tiny_model_at(size_t i)
{
    return i < sizeof models / sizeof models[0] ? &models[i] : NULL;
}

const struct tiny_model *tiny_model_find(const char *name)
{
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        if (strcmp(models[i].name, name) == 0)
            return &models[i];
    return NULL;
}

/* ---- a file being put together ------------------------------------------------------------ */

enum { MOST_KEYS = 64, MOST_TENSORS = 1200, MOST_NAME = 72, MOST_ARRAY = 64, PIECES = 257 };

static const char *const merged[] = {"t h",  "h e", "i n",        "e r",          "a n",
                                     "o n",  "r e", "th e",       "\xc4\xa0 t",   "\xc4\xa0 a",
                                     "e n",  "o r", "in g",       "\xc4\xa0t he", "n d",
                                     "an d", "e s", "\xc4\xa0 s", "i s",          "t o"};
enum { MERGES = sizeof merged / sizeof merged[0] };
_Static_assert(256 + MERGES + 1 == TINY_VOCAB, "bytes, merges, the end");

union value {
    uint32_t u32[MOST_ARRAY];
    float f32[MOST_ARRAY];
    uint8_t b[MOST_ARRAY];
    rlx_str str[MOST_ARRAY];
};

struct file {
    const struct tiny_model *m;
    const struct tiny_change *change;
    size_t keys, tensors;
    rlx_meta meta[MOST_KEYS];
    union value value[MOST_KEYS];
    char key[MOST_KEYS][MOST_NAME], text[MOST_KEYS][MOST_NAME];
    rlx_weight tensor[MOST_TENSORS];
    char name[MOST_TENSORS][MOST_NAME];
    char token[TINY_VOCAB][16];
    rlx_str token_str[TINY_VOCAB], merge_str[MERGES];
    int32_t token_type[TINY_VOCAB];
};

static bool is_left_out(const struct file *f, const char *name)
{
    return f->change->without && strcmp(f->change->without, name) == 0;
}

/* ---- keys ---- */

/* The place of that key: a new one, or the one it has already. */
static size_t place_of_key(struct file *f, const char *name)
{
    size_t i = 0;

    while (i < f->keys && strcmp(f->key[i], name) != 0)
        i++;
    if (i == MOST_KEYS || strlen(name) >= MOST_NAME)
        abort();
    if (i == f->keys && !is_left_out(f, name))
        f->keys++;
    strcpy(f->key[i], name);
    f->meta[i] = (rlx_meta){.key = rlx_cstr(f->key[i]), .count = 1, .data = &f->value[i]};
    return i;
}

static rlx_meta_type kind_of(const char *value)
{
    if (strncmp(value, "true", 4) == 0 || strncmp(value, "false", 5) == 0)
        return RLX_META_bool;
    if (strspn(value, "0123456789.,e+-") != strlen(value))
        return RLX_META_string;
    return strchr(value, '.') ? RLX_META_f32 : RLX_META_u32;
}

static void add_key(struct file *f, const char *name, const char *value)
{
    char full[MOST_NAME];
    size_t i, n = 0;

    if (name[0] == '.')
        snprintf(full, sizeof full, "%s", name + 1);
    else
        snprintf(full, sizeof full, "%s.%s", f->m->arch, name);
    i = place_of_key(f, full);
    f->meta[i].type = kind_of(value);
    f->meta[i].is_array = f->meta[i].type != RLX_META_string && strchr(value, ',');
    if (f->meta[i].type == RLX_META_string) {
        snprintf(f->text[i], sizeof f->text[i], "%s", value);
        f->value[i].str[0] = rlx_cstr(f->text[i]);
        return;
    }
    for (const char *at = value; at && n < MOST_ARRAY; n++) {
        if (f->meta[i].type == RLX_META_bool)
            f->value[i].b[n] = *at == 't';
        else if (f->meta[i].type == RLX_META_f32)
            f->value[i].f32[n] = strtof(at, NULL);
        else
            f->value[i].u32[n] = (uint32_t)strtoll(at, NULL, 10);
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    f->meta[i].count = n;
}

static void add_number(struct file *f, const char *name, int64_t v)
{
    char text[24];

    snprintf(text, sizeof text, "%lld", (long long)v);
    add_key(f, name, text);
}

/* Each word of a list, cut in two at `cut`. */
static const char *next_word(const char *list, char cut, char name[MOST_NAME],
                             char value[MOST_NAME])
{
    size_t skipped = strspn(list, " "), len;

    list += skipped;
    if (!(len = strcspn(list, " ")))
        return NULL;
    const char *at = memchr(list, cut, len);
    if (!at || len >= MOST_NAME)
        abort();
    snprintf(name, MOST_NAME, "%.*s", (int)(at - list), list);
    snprintf(value, MOST_NAME, "%.*s", (int)(len - (size_t)(at + 1 - list)), at + 1);
    return list + len;
}

static void add_keys(struct file *f, const char *list)
{
    char name[MOST_NAME], value[MOST_NAME];

    while (list && (list = next_word(list, '=', name, value)))
        add_key(f, name, value);
}

static void add_sizes(struct file *f)
{
    const struct tiny_model *m = f->m;

    add_key(f, ".general.architecture", m->arch);
    add_key(f, ".general.name", "tiny");
    add_number(f, "context_length", m->context);
    add_number(f, "embedding_length", m->width);
    add_number(f, "block_count", m->layers);
    add_number(f, "feed_forward_length", m->ffn);
    add_number(f, "attention.head_count", m->heads);
    add_number(f, "attention.head_count_kv", m->kv_heads);
    if (m->heads && m->head_dim * m->heads != m->width) {
        add_number(f, "attention.key_length", m->head_dim);
        add_number(f, "attention.value_length", m->head_dim);
    }
    if (m->rot)
        add_number(f, "rope.dimension_count", m->rot);
}

/* ---- the vocabulary: bytes as GPT-2 writes them, and a few pairs ---- */

static void byte_text(int byte, int *hidden, char out[16])
{
    bool shown = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    int code = shown ? byte : 256 + (*hidden)++;

    if (code < 128)
        snprintf(out, 16, "%c", code);
    else
        snprintf(out, 16, "%c%c", 0xc0 | code >> 6, 0x80 | (code & 63));
}

static void add_list(struct file *f, const char *name, rlx_meta_type type, const void *data,
                     size_t count)
{
    size_t i = place_of_key(f, name);

    f->meta[i] = (rlx_meta){f->meta[i].key, type, true, count, data};
}

static void add_vocabulary(struct file *f)
{
    int hidden = 0;

    for (int i = 0; i < 256; i++)
        byte_text(i, &hidden, f->token[i]);
    for (size_t i = 0; i < MERGES; i++) {
        size_t first = strcspn(merged[i], " ");
        snprintf(f->token[256 + i], 16, "%.*s%s", (int)first, merged[i], merged[i] + first + 1);
        f->merge_str[i] = rlx_cstr(merged[i]);
    }
    snprintf(f->token[TINY_END], 16, "<|endoftext|>");
    for (int i = 0; i < TINY_VOCAB; i++) {
        f->token_str[i] = rlx_cstr(f->token[i]);
        f->token_type[i] = i == TINY_END ? 3 : 1;
    }
    add_key(f, ".tokenizer.ggml.model", "gpt2");
    add_key(f, ".tokenizer.ggml.pre", "gpt-2");
    add_list(f, "tokenizer.ggml.tokens", RLX_META_string, f->token_str, TINY_VOCAB);
    add_list(f, "tokenizer.ggml.token_type", RLX_META_i32, f->token_type, TINY_VOCAB);
    add_list(f, "tokenizer.ggml.merges", RLX_META_string, f->merge_str, MERGES);
    add_number(f, ".tokenizer.ggml.bos_token_id", TINY_END);
    add_number(f, ".tokenizer.ggml.eos_token_id", TINY_END);
}

/* ---- tensors ---- */

static int64_t size_of_state(char letter)
{
    enum { SHARED = 2 * TINY_GROUPS * TINY_STATE };

    switch (letter) {
    case 'J': return TINY_TAPS;
    case 'I': return TINY_INNER;
    case 'S': return TINY_STATE;
    case 'R': return TINY_STATE_HEADS;
    case 'D': return TINY_INNER / TINY_STATE;
    case 'G': return TINY_GROUPS;
    case 'g': return TINY_INNER / TINY_GROUPS;
    case 'C': return TINY_INNER + SHARED;
    case 'Z': return 2 * TINY_INNER + SHARED + TINY_STATE_HEADS;
    case 'X': return TINY_STATE_HEADS + 2 * TINY_STATE;
    case 'A': return 2 * TINY_INNER + SHARED;
    case 'B': return 2 * TINY_INNER;
    case 'b': return 2 * (TINY_INNER / TINY_STATE);
    default: abort();
    }
}

static int64_t size_of(const struct file *f, char letter)
{
    const struct tiny_model *m = f->m;

    switch (letter) {
    case 'd': return m->width;
    case 'q': return m->heads * m->head_dim;
    case 'k': return m->kv_heads * m->head_dim;
    case 'a': return (m->heads + 2 * m->kv_heads) * m->head_dim;
    case 'h': return m->head_dim;
    case 'n': return m->heads;
    case 'm': return m->kv_heads;
    case 'f': return m->ffn;
    case 'F': return 2 * m->ffn;
    case 't': return f->change->tokens ? f->change->tokens : TINY_VOCAB;
    case 'r': return (m->rot ? m->rot : m->head_dim) / 2;
    case 'c': return m->context;
    case '1': return 1;
    case 'Q': return m->heads * TINY_LOCAL_DIM;
    case 'K': return m->kv_heads * TINY_LOCAL_DIM;
    case 'H': return TINY_LOCAL_DIM;
    case 'p': return TINY_SIDE;
    case 'P': return m->layers * TINY_SIDE;
    case 'e': return TINY_EXPERTS;
    case 'x': return TINY_EXPERT_FFN;
    case 's': return TINY_SHARED_FFN;
    case 'E': return 2 * TINY_EXPERT_FFN;
    case 'y': return 2 * m->heads * m->head_dim;
    case 'u': return 3 * m->width;
    case 'L': return TINY_LATENT;
    case 'l': return TINY_QUERY_LATENT;
    case 'M': return TINY_LATENT + m->rot;
    case 'o': return m->head_dim - m->rot;
    case 'v': return TINY_VALUE;
    case 'V': return m->heads * TINY_VALUE;
    case 'W': return m->heads * (m->head_dim - m->rot + TINY_VALUE);
    default: return size_of_state(letter);
    }
}

static rlx_weight_type type_of(const struct file *f, const rlx_weight *t)
{
    rlx_weight_type_info info = {RLX_SIZED(rlx_weight_type_info)};

    if (t->rank < 2 || strstr(t->name.ptr, ".bias") || strstr(t->name.ptr, "norm") ||
        strstr(t->name.ptr, "position"))
        return RLX_WEIGHT_F32;
    if (rlx_weight_type_describe(f->change->type, &info, NULL) != RLX_OK)
        abort();
    return t->dim[t->rank - 1] % info.block_elems ? RLX_WEIGHT_F32 : f->change->type;
}

/* `which` is what follows a shape: of which layers the tensor is. */
static bool is_of_layer(const char *which, int64_t layer)
{
    switch (which[0]) {
    case '-': return layer <= 0;
    case '+': return layer != 0;
    case '<': return layer % 2 == 0;
    case '>': return layer % 2 != 0;
    case '@': return strchr(which + 1, (int)('0' + layer)) != NULL;
    default: return true;
    }
}

static void add_tensor(struct file *f, int64_t layer, const char *name, const char *shape)
{
    char full[2 * MOST_NAME], before[32] = "";
    const size_t rank = strcspn(shape, "+-<>@"), len = strlen(name);
    size_t i = 0;

    if (!is_of_layer(shape + rank, layer))
        return;
    if (layer >= 0)
        snprintf(before, sizeof before, "blk.%lld.", (long long)layer);
    snprintf(full, sizeof full, "%s%.*s%s", before, (int)(len - (name[len - 1] == '.')), name,
             strchr(name, '.') ? "" : ".weight");
    while (i < f->tensors && strcmp(f->name[i], full) != 0)
        i++;
    if (i == MOST_TENSORS || strlen(full) >= MOST_NAME)
        abort();
    if (is_left_out(f, full))
        return;
    f->tensors += i == f->tensors;
    strcpy(f->name[i], full);
    f->tensor[i] = (rlx_weight){.name = rlx_cstr(f->name[i]), .rank = (int32_t)rank};
    for (size_t k = 0; k < rank; k++)
        f->tensor[i].dim[k] = size_of(f, shape[k]);
    f->tensor[i].type = type_of(f, &f->tensor[i]);
}

static void add_tensors(struct file *f, int64_t layer, const char *list)
{
    char name[MOST_NAME], shape[MOST_NAME];

    while (list && (list = next_word(list, ':', name, shape)))
        add_tensor(f, layer, name, shape);
}

static void add_all_tensors(struct file *f)
{
    add_tensor(f, -1, "token_embd", "td");
    add_tensors(f, -1, f->m->global);
    add_tensors(f, -1, f->change->global);
    for (int64_t i = 0; i < f->m->layers; i++) {
        add_tensors(f, i, f->m->layer);
        add_tensors(f, i, f->change->layer);
    }
}

/* ---- weights ---- */

/* In [-1, 1), exactly the same everywhere. */
static float scattered(uint32_t seed, uint64_t i)
{
    uint32_t h = (uint32_t)i * 0x9E3779B1u + seed;

    h = (h ^ (h >> 16)) * 0x7FEB352Du;
    h = (h ^ (h >> 15)) * 0x846CA68Bu;
    h ^= h >> 16;
    return (float)((double)(h >> 8) / 8388608.0 - 1.0);
}

/* Sizes that keep numbers near one from layer to layer, with scores that tell keys apart. */
static void range_of(const rlx_weight *t, float *middle, float *spread)
{
    const char *name = t->name.ptr;
    const int64_t in = t->dim[t->rank - 1];

    *middle = 0;
    if (strstr(name, "gate_exps.bias") || strstr(name, "up_exps.bias")) {
        *spread = 6; /* some are clamped */
    } else if (strstr(name, "ssm_a") && !strstr(name, "ssm_alpha")) {
        *middle = -1; /* what is in a state fades */
        *spread = 0.9f;
    } else if (strstr(name, "ssm_d") && !strstr(name, "ssm_dt")) {
        *spread = 1;
    } else if (strstr(name, ".bias")) {
        *spread = 0.3f;
    } else if (strstr(name, "norm") || strstr(name, ".scale")) {
        *middle = 1;
        *spread = 0.4f;
    } else if (strstr(name, "rope_f")) {
        *middle = 2;
        *spread = 1;
    } else if (strstr(name, "embd")) {
        *spread = 1;
    } else {
        *spread = sqrtf((strcmp(name, "output.weight") == 0 ? 9.0f : 4.0f) / (float)in);
    }
}

static rlx_status write_tensor(rlx_weights_writer *w, const rlx_weight *t, rlx_error *err)
{
    uint32_t seed = 2166136261u;
    uint64_t count = 1;
    float middle, spread;
    float *x;

    for (size_t i = 0; i < t->name.len; i++)
        seed = (seed ^ (uint32_t)(unsigned char)t->name.ptr[i]) * 16777619u;
    for (int32_t k = 0; k < t->rank; k++)
        count *= (uint64_t)t->dim[k];
    if (!(x = malloc(count * sizeof *x)))
        abort();
    range_of(t, &middle, &spread);
    for (uint64_t i = 0; i < count; i++)
        x[i] = (float)((double)middle + (double)spread * (double)scattered(seed, i));
    rlx_status s = rlx_weights_write_f32(w, x, count, err);
    free(x);
    return s;
}

static rlx_status write_file(rlx_context *ctx, const char *path, struct file *f, rlx_error *err)
{
    const rlx_weights_content content = {
        RLX_SIZED(rlx_weights_content), .kind = RLX_FILE_gguf, .tensor = f->tensor,
        .tensor_count = f->tensors,     .meta = f->meta,       .meta_count = f->keys};
    rlx_weights_writer *w;
    uint64_t left;
    size_t i;

    rlx_status s = rlx_weights_begin(ctx, path, &content, &w, err);
    if (s != RLX_OK)
        return s;
    while (s == RLX_OK && rlx_weights_next(w, &i, &left))
        s = write_tensor(w, &f->tensor[i], err);
    if (s == RLX_OK)
        return rlx_weights_finish(w, err);
    rlx_weights_abandon(w);
    return s;
}

rlx_status tiny_model_write(rlx_context *ctx, const char *path, const struct tiny_model *m,
                            const struct tiny_change *change, rlx_error *err)
{
    static const struct tiny_change none;
    struct file *f = calloc(1, sizeof *f);

    if (!f)
        abort();
    f->m = m;
    f->change = change ? change : &none;
    add_sizes(f);
    add_keys(f, m->keys);
    if (!f->change->tokens)
        add_vocabulary(f);
    add_keys(f, f->change->keys);
    add_all_tensors(f);
    rlx_status s = write_file(ctx, path, f, err);
    free(f);
    return s;
}
