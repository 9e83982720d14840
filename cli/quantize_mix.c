/* quantize_mix.c: which tensor gets which type in a mix. */
#include "quantize_mix.h"

#include <string.h>
#include <strings.h>

/* A model has so many layers at most; larger numbers in names are no layers. */
#define MOST_LAYERS 1000000

static const struct mix mixes[] = {
    {"Q3_K_S", RLX_WEIGHT_Q3_K, 11}, {"Q3_K_M", RLX_WEIGHT_Q3_K, 12},
    {"Q3_K_L", RLX_WEIGHT_Q3_K, 13}, {"Q4_K_S", RLX_WEIGHT_Q4_K, 14},
    {"Q4_K_M", RLX_WEIGHT_Q4_K, 15}, {"Q5_K_S", RLX_WEIGHT_Q5_K, 16},
    {"Q5_K_M", RLX_WEIGHT_Q5_K, 17},
};

/* Layers that a rule is for. */
enum where {
    ALL,
    FIRST_TWO,
    FIRST_FOUR,
    FIRST_SIXTEENTH,
    FIRST_EIGHTH,
    ABOUT_HALF /* the first and the last eighth, and of those between every third */
};

/* What is not of the type that most are, apart from the last matrix; the first rule that fits. */
static const struct rule {
    const char *mix, *part; /* part: in the tensor's name */
    enum where where;
    rlx_weight_type type;
} rules[] = {
    {"Q3_K_M", ".attn_v.", FIRST_TWO, RLX_WEIGHT_Q5_K},
    {"Q3_K_M", ".attn_v.", ALL, RLX_WEIGHT_Q4_K},
    {"Q3_K_M", ".attn_output.", ALL, RLX_WEIGHT_Q4_K},
    {"Q3_K_M", ".attn_qkv.", ALL, RLX_WEIGHT_Q4_K},
    {"Q3_K_M", ".ffn_down", FIRST_SIXTEENTH, RLX_WEIGHT_Q5_K},
    {"Q3_K_M", ".ffn_down", ABOUT_HALF, RLX_WEIGHT_Q4_K},
    {"Q3_K_L", ".attn_v.", ALL, RLX_WEIGHT_Q5_K},
    {"Q3_K_L", ".attn_output.", ALL, RLX_WEIGHT_Q5_K},
    {"Q3_K_L", ".attn_qkv.", ALL, RLX_WEIGHT_Q4_K},
    {"Q3_K_L", ".ffn_down", ALL, RLX_WEIGHT_Q5_K},
    {"Q4_K_S", ".attn_v.", FIRST_FOUR, RLX_WEIGHT_Q5_K},
    {"Q4_K_S", ".ffn_down", FIRST_EIGHTH, RLX_WEIGHT_Q5_K},
    {"Q4_K_M", ".attn_v.", ABOUT_HALF, RLX_WEIGHT_Q6_K},
    {"Q4_K_M", ".attn_qkv.", ALL, RLX_WEIGHT_Q5_K},
    {"Q4_K_M", ".ffn_down", ABOUT_HALF, RLX_WEIGHT_Q6_K},
    {"Q5_K_M", ".attn_v.", ABOUT_HALF, RLX_WEIGHT_Q6_K},
    {"Q5_K_M", ".attn_qkv.", ALL, RLX_WEIGHT_Q6_K},
    {"Q5_K_M", ".ffn_down", ABOUT_HALF, RLX_WEIGHT_Q6_K},
};

const struct mix *mix_at(size_t i)
{
    return i < sizeof mixes / sizeof mixes[0] ? &mixes[i] : NULL;
}

const struct mix *mix_find(const char *name)
{
    for (size_t i = 0; mix_at(i); i++)
        if (strcasecmp(mixes[i].name, name) == 0)
            return &mixes[i];
    return NULL;
}

/* N of "blk.N."; -1: it is in no layer. */
static int64_t layer_of(rlx_str name)
{
    int64_t n = 0;
    size_t i = 4;

    if (name.len < 6 || memcmp(name.ptr, "blk.", 4) != 0)
        return -1;
    for (; i < name.len && name.ptr[i] >= '0' && name.ptr[i] <= '9' && n < MOST_LAYERS; i++)
        n = 10 * n + (name.ptr[i] - '0');
    return i > 4 && i < name.len && name.ptr[i] == '.' ? n : -1;
}

static bool is(rlx_str name, const char *text)
{
    return name.len == strlen(text) && memcmp(name.ptr, text, name.len) == 0;
}

void mix_see(struct mix_model *m, rlx_str name)
{
    int64_t layer = layer_of(name);

    if (layer >= m->layers)
        m->layers = layer + 1;
    if (is(name, "output.weight"))
        m->tied = false;
}

static bool is_there(enum where where, int64_t i, int64_t n)
{
    switch (where) {
    case FIRST_TWO: return i < 2;
    case FIRST_FOUR: return i < 4;
    case FIRST_SIXTEENTH: return i < n / 16;
    case FIRST_EIGHTH: return i < n / 8;
    case ABOUT_HALF: return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
    default: return true;
    }
}

rlx_weight_type mix_type(const struct mix *mix, const struct mix_model *m, rlx_str name)
{
    int64_t layer = layer_of(name);

    if (is(name, m->tied ? "token_embd.weight" : "output.weight"))
        return RLX_WEIGHT_Q6_K;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && layer >= 0; i++)
        if (strcmp(rules[i].mix, mix->name) == 0 &&
            memmem(name.ptr, name.len, rules[i].part, strlen(rules[i].part)) &&
            is_there(rules[i].where, layer, m->layers))
            return rules[i].type;
    return mix->most;
}
