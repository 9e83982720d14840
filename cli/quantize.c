/* quantize.c: `rlx quantize`, weights in few bits. */
#include <stdlib.h>
#include <string.h>

#include "copy_weights.h"
#include "quantize_mix.h"
#include "rlx/quant.h"

static struct {
    struct texts keep;
} opt;

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--keep", FLAG_LIST, &opt.keep, "TEXT",
         "leave tensors unchanged whose name contains this; repeatable"},
        {0}};
    return list;
}

int weight_file_type(rlx_weight_type t)
{
    switch (t) {
    case RLX_WEIGHT_F32: return 0;
    case RLX_WEIGHT_F16: return 1;
    case RLX_WEIGHT_Q4_0: return 2;
    case RLX_WEIGHT_Q4_1: return 3;
    case RLX_WEIGHT_Q8_0: return 7;
    case RLX_WEIGHT_Q5_0: return 8;
    case RLX_WEIGHT_Q5_1: return 9;
    case RLX_WEIGHT_Q2_K: return 10;
    case RLX_WEIGHT_Q3_K: return 11;
    case RLX_WEIGHT_Q4_K: return 14;
    case RLX_WEIGHT_Q5_K: return 16;
    case RLX_WEIGHT_Q6_K: return 18;
    case RLX_WEIGHT_IQ4_NL: return 25;
    case RLX_WEIGHT_IQ4_XS: return 30;
    case RLX_WEIGHT_BF16: return 32;
    case RLX_WEIGHT_TQ1_0: return 36;
    case RLX_WEIGHT_TQ2_0: return 37;
    case RLX_WEIGHT_MXFP4: return 38;
    default: return -1;
    }
}

static bool has_text(rlx_str name, const char *text)
{
    return memmem(name.ptr, name.len, text, strlen(text)) != NULL;
}

/* Matrices are packed; vectors (norms, biases), the choice of experts, and what --keep names are
 * not. */
static bool is_wanted(const rlx_weight *t)
{
    rlx_weight_type_info info = {RLX_SIZED(rlx_weight_type_info)};

    rlx_weight_type_describe(t->type, &info, NULL);
    bool numbers = info.use == RLX_WEIGHT_PACKED ||
                   (info.use == RLX_WEIGHT_PLAIN && info.dtype <= RLX_DTYPE_f64);
    if (!numbers || t->rank < 2 || has_text(t->name, "norm") || has_text(t->name, "ffn_gate_inp"))
        return false;
    for (size_t i = 0; i < opt.keep.count; i++)
        if (has_text(t->name, opt.keep.at[i]))
            return false;
    return true;
}

/* What all becomes: one type, or a mix of several. */
struct target {
    const char *name;
    rlx_weight_type type;  /* that most become */
    const struct mix *mix; /* NULL: all become it */
    int file_type;         /* -1: there is no number for it */
};

/* What a type is replaced by where rows are not a multiple of its blocks: about as many bits, in
 * blocks of 32. */
static rlx_weight_type with_small_blocks(rlx_weight_type t)
{
    switch (t) {
    case RLX_WEIGHT_Q2_K:
    case RLX_WEIGHT_Q3_K:
    case RLX_WEIGHT_IQ4_XS: return RLX_WEIGHT_IQ4_NL;
    case RLX_WEIGHT_Q4_K: return RLX_WEIGHT_Q5_0;
    case RLX_WEIGHT_Q5_K: return RLX_WEIGHT_Q5_1;
    default: return RLX_WEIGHT_Q8_0;
    }
}

/* The type for a row of k elements: the wanted one, otherwise one with smaller blocks, otherwise
 * none. */
static bool type_for(int64_t k, rlx_weight_type wanted, rlx_weight_type *out)
{
    rlx_weight_type_info info = {RLX_SIZED(rlx_weight_type_info), .block_elems = 1};

    rlx_weight_type_describe(wanted, &info, NULL);
    *out = wanted;
    if (k % info.block_elems == 0)
        return true;
    *out = with_small_blocks(wanted);
    return k % 32 == 0;
}

/* How many tensors each type has. */
struct choices {
    size_t of_type[RLX_WEIGHT_TYPE_count];
    size_t smaller; /* of them: have another one because of their rows */
    size_t left;    /* stay as they are because of their rows */
};

static struct choices choose_types(struct copy *x, const struct target *to)
{
    struct mix_model model = {.tied = true};
    struct choices n = {.left = 0};

    for (size_t i = 0; i < x->info.tensor_count; i++)
        mix_see(&model, x->tensor[i].name);
    for (size_t i = 0; i < x->info.tensor_count; i++) {
        rlx_weight *t = &x->tensor[i];
        rlx_weight_type type, wanted = to->mix ? mix_type(to->mix, &model, t->name) : to->type;
        if (!is_wanted(t))
            continue;
        if (!type_for(t->dim[t->rank - 1], wanted, &type)) {
            n.left++;
            continue;
        }
        t->type = type;
        n.of_type[type]++;
        n.smaller += type != wanted;
    }
    return n;
}

static void report(const struct copy *x, const struct target *to, const struct choices *n)
{
    char before[32], after[32];

    printf("%s: %zu tensors, %s; it was %s\n", x->to, x->info.tensor_count,
           cli_bytes(copy_bytes(x), after), cli_bytes(x->info.bytes, before));
    printf("%zu are %s", n->of_type[to->type], weight_type_text(to->type));
    for (int i = 0; i < RLX_WEIGHT_TYPE_count; i++)
        if (n->of_type[i] && i != (int)to->type)
            printf(", %zu %s", n->of_type[i], weight_type_text((rlx_weight_type)i));
    if (n->smaller)
        printf(", of which %zu because their rows are not a multiple of 256", n->smaller);
    if (n->left)
        printf(", %zu unchanged (their rows are not a multiple of 32)", n->left);
    printf("\n");
}

static int set_metadata(struct copy *x, const struct target *to)
{
    static uint32_t type, version = 2; /* of the block formats */

    copy_drop_meta(x, "split."); /* the parts are one file now */
    if (to->file_type < 0)
        copy_drop_meta(x, "general.file_type");
    type = (uint32_t)to->file_type;
    if ((to->file_type >= 0 && !copy_set_meta(x, &(rlx_meta){rlx_cstr("general.file_type"),
                                                             RLX_META_u32, false, 1, &type})) ||
        !copy_set_meta(x, &(rlx_meta){rlx_cstr("general.quantization_version"), RLX_META_u32, false,
                                      1, &version}))
        return EXIT_FAILED;
    return EXIT_DONE;
}

/* NVFP4 is of use only with a scale for the whole tensor, which would be a tensor of its own. */
static bool is_written(rlx_weight_type t)
{
    rlx_weight_type_info info = {RLX_SIZED(rlx_weight_type_info)};

    rlx_weight_type_describe(t, &info, NULL);
    if (info.use == RLX_WEIGHT_PACKED)
        return rlx_quant_has_encoder(info.scheme) && t != RLX_WEIGHT_NVFP4;
    return t == RLX_WEIGHT_F32 || t == RLX_WEIGHT_F16 || t == RLX_WEIGHT_BF16;
}

#define TYPES                                                                                   \
    "Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_K, IQ4_NL, IQ4_XS, MXFP4, " \
    "TQ1_0, TQ2_0, F32, F16, BF16; mixes: Q3_K_S, Q3_K_M, Q3_K_L, Q4_K_S, Q4_K_M, Q5_K_S, Q5_K_M"

static int unknown_type(struct cli *c, const char *name)
{
    rlx_nearest near = {.wanted = rlx_cstr(name)};
    char hint[RLX_NEAREST_HINT];

    for (int i = 0; i < RLX_WEIGHT_TYPE_count; i++)
        if (is_written((rlx_weight_type)i))
            rlx_nearest_offer(&near, rlx_cstr(weight_type_text((rlx_weight_type)i)));
    for (size_t i = 0; mix_at(i); i++)
        rlx_nearest_offer(&near, rlx_cstr(mix_at(i)->name));
    return cli_misuse(c, "unknown type \"%s\"; types: " TYPES "%s", name,
                      rlx_nearest_hint(&near, hint));
}

static int check_type(struct cli *c, const char *name, struct target *out)
{
    *out = (struct target){.name = name, .mix = mix_find(name)};
    if (out->mix) {
        out->type = out->mix->most;
        out->file_type = out->mix->file_type;
        return EXIT_DONE;
    }
    if (!rlx_weight_type_find(name, &out->type))
        return unknown_type(c, name);
    out->file_type = weight_file_type(out->type);
    return is_written(out->type)
               ? EXIT_DONE
               : cli_misuse(c, "%s can only be read; these can be written: " TYPES,
                            weight_type_text(out->type));
}

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    struct copy x;
    struct target to;
    struct choices chosen = {.left = 0};
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count != 3)
        return cli_misuse(c, "takes two files and a type: the weights, the file to write, and what "
                             "they become");
    if ((code = check_type(c, args.at[2], &to)) != EXIT_DONE)
        return code;
    code = copy_open(&x, c, args.at[0], args.at[1]);
    x.kind = RLX_FILE_gguf;
    if (code == EXIT_DONE) {
        chosen = choose_types(&x, &to);
        code = set_metadata(&x, &to);
    }
    if (code == EXIT_DONE)
        code = copy_write(&x);
    if (code == EXIT_DONE)
        report(&x, &to, &chosen);
    copy_close(&x);
    return code;
}

const struct command cmd_quantize = {
    .name = "quantize",
    .summary = "Write a GGUF file with its weights in few bits",
    .usage = "rlx quantize IN OUT.gguf TYPE [--keep TEXT]...",
    .details =
        "IN is GGUF, or any other file of tensors that rlx convert reads. TYPE is Q4_0, Q4_1,\n"
        "Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_K, IQ4_NL, IQ4_XS, MXFP4, TQ1_0 or\n"
        "TQ2_0 (which are for weights of -1, 0 and 1 times a scale); or F32, F16 or BF16, to\n"
        "unpack. Matrices are packed; vectors, norms and the choice of experts\n"
        "keep their type. Q3_K_S, Q3_K_M, Q3_K_L, Q4_K_S, Q4_K_M, Q5_K_S and Q5_K_M are mixes:\n"
        "matrices of a language model that matter more become a better type (docs/formats.md).\n"
        "Rows that are not a multiple of a block of 256 take a type with blocks of 32, or stay.",
    .examples = "rlx quantize model.gguf model-q4.gguf Q4_K_M\n"
                "rlx quantize in.gguf out.gguf Q8_0 --keep embd",
    .run = run,
    .flags = flags,
};
