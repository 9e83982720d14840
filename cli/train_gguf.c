/* train_gguf.c: a trained language model as a GGUF file: weights under the names they have,
 * matrices in the type that was asked for, and what other programs must know to run it. */
#include <stdlib.h>
#include <string.h>

#include "copy_weights.h"
#include "train.h"

enum { MOST_META = 96 };

struct writing {
    struct training *t;
    rlx_weight *tensor;
    size_t count;
    rlx_meta meta[MOST_META];
    rlx_llm_meta_room room[MOST_META];
    size_t meta_count;
    bool adapter;
};

static int no_memory(const struct writing *w)
{
    fprintf(stderr, "rlx %s: out of memory\n", w->t->c->command->name);
    return EXIT_FAILED;
}

/* ---- what the file says ---- */

static bool add_u32(struct writing *w, const char *key, uint32_t v)
{
    if (w->meta_count == MOST_META)
        return false;
    w->room[w->meta_count].u32 = v;
    w->meta[w->meta_count] =
        (rlx_meta){rlx_cstr(key), RLX_META_u32, false, 1, &w->room[w->meta_count]};
    w->meta_count++;
    return true;
}

static bool add_f32(struct writing *w, const char *key, float v)
{
    if (w->meta_count == MOST_META)
        return false;
    w->room[w->meta_count].f32 = v;
    w->meta[w->meta_count] =
        (rlx_meta){rlx_cstr(key), RLX_META_f32, false, 1, &w->room[w->meta_count]};
    w->meta_count++;
    return true;
}

static bool add_text(struct writing *w, const char *key, const char *v)
{
    if (w->meta_count == MOST_META)
        return false;
    w->room[w->meta_count].str = rlx_cstr(v);
    w->meta[w->meta_count] =
        (rlx_meta){rlx_cstr(key), RLX_META_string, false, 1, &w->room[w->meta_count]};
    w->meta_count++;
    return true;
}

static bool add_name(struct writing *w)
{
    const char *slash = strrchr(w->t->what, '/');

    return add_text(w, "general.name", slash ? slash + 1 : w->t->what);
}

static int add_meta(struct writing *w, const rlx_llm_shape *shape, const rlx_tokenizer *tokenizer,
                    rlx_weight_type type)
{
    bool fits = true;

    while (w->meta_count < MOST_META &&
           rlx_llm_meta(shape, w->meta_count, &w->room[w->meta_count], &w->meta[w->meta_count]))
        w->meta_count++;
    fits = add_name(w);
    if (weight_file_type(type) >= 0)
        fits = fits && add_u32(w, "general.file_type", (uint32_t)weight_file_type(type));
    fits = fits && add_u32(w, "general.quantization_version", 2);
    for (size_t i = 0; fits && rlx_tokenizer_meta(tokenizer, i, &w->meta[w->meta_count]); i++)
        fits = ++w->meta_count < MOST_META;
    return fits ? EXIT_DONE : no_memory(w);
}

/* An adapter says which architecture it goes with, and by how much what it adds is multiplied. */
static int add_adapter_meta(struct writing *w, const rlx_llm_shape *shape)
{
    float alpha = shape->lora_alpha != 0 ? shape->lora_alpha : (float)shape->lora_rank;
    bool fits = add_text(w, "general.architecture", "llama") && add_name(w) &&
                add_text(w, "general.type", "adapter") && add_text(w, "adapter.type", "lora") &&
                add_f32(w, "adapter.lora.alpha", alpha);

    return fits ? EXIT_DONE : no_memory(w);
}

/* ---- what it holds ---- */

/* Norms stay f32, and so do matrices whose rows are no blocks of that type. */
static rlx_weight_type type_of(const rlx_trainer_value *v, rlx_weight_type wanted)
{
    rlx_weight_type_info info = {RLX_SIZED(rlx_weight_type_info)};

    if (v->rank < 2 || rlx_weight_type_describe(wanted, &info, NULL) != RLX_OK ||
        v->dim[v->rank - 1] % info.block_elems)
        return RLX_WEIGHT_F32;
    return wanted;
}

static int add_tensors(struct writing *w, rlx_weight_type wanted)
{
    rlx_trainer_value v;
    size_t room = 0, kept = 0;

    while (rlx_trainer_value_at(w->t->trainer, room, &v))
        room++;
    w->tensor = calloc(room + 1, sizeof *w->tensor);
    if (!w->tensor)
        return no_memory(w);
    for (size_t i = 0; rlx_trainer_value_at(w->t->trainer, i, &v); i++) {
        if (!v.param || (w->adapter && !v.trained))
            continue;
        rlx_weight *one = &w->tensor[w->count++];
        *one = (rlx_weight){.name = v.name, .type = type_of(&v, wanted), .rank = v.rank};
        memcpy(one->dim, v.dim, sizeof v.dim);
        kept += v.rank > 1 && one->type != wanted;
    }
    if (kept)
        fprintf(
            stderr,
            "rlx %s: warning: %zu matrices stay F32: their rows do not divide into blocks of %s\n",
            w->t->c->command->name, kept, weight_type_text(wanted));
    return EXIT_DONE;
}

static int write_tensor(struct writing *w, rlx_weights_writer *to, const rlx_weight *tensor,
                        const char *path)
{
    uint64_t count = weight_elements(tensor);
    float *x = malloc((size_t)count * sizeof *x);
    rlx_tensor value = {.dtype = RLX_DTYPE_f32, .data = x, .bytes = (size_t)count * sizeof *x};
    char name[128];
    rlx_error err;
    int code = EXIT_DONE;

    if (!x)
        return no_memory(w);
    snprintf(name, sizeof name, "%.*s", (int)tensor->name.len, tensor->name.ptr);
    if (rlx_trainer_get(w->t->trainer, name, &value, &err) != RLX_OK ||
        rlx_weights_write_f32(to, x, count, &err) != RLX_OK)
        code = cli_fail(w->t->c, &err, "cannot write", path);
    free(x);
    return code;
}

static int write_file(struct writing *w, const char *path)
{
    const rlx_weights_content content = {
        RLX_SIZED(rlx_weights_content), .kind = RLX_FILE_gguf, .tensor = w->tensor,
        .tensor_count = w->count,       .meta = w->meta,       .meta_count = w->meta_count};
    rlx_weights_writer *to;
    int code = EXIT_DONE;
    uint64_t left;
    rlx_error err;
    size_t i;

    if (rlx_weights_begin(w->t->c->ctx, path, &content, &to, &err) != RLX_OK)
        return cli_fail(w->t->c, &err, "cannot write", path);
    while (code == EXIT_DONE && rlx_weights_next(to, &i, &left))
        code = write_tensor(w, to, &w->tensor[i], path);
    if (code != EXIT_DONE) {
        rlx_weights_abandon(to);
        return code;
    }
    if (rlx_weights_finish(to, &err) != RLX_OK)
        return cli_fail(w->t->c, &err, "cannot write", path);
    return EXIT_DONE;
}

int save_gguf(struct training *t, const rlx_llm_shape *shape, const rlx_tokenizer *tokenizer,
              rlx_weight_type type, const char *path)
{
    struct writing *w = calloc(1, sizeof *w);
    int code;

    if (!w)
        return EXIT_FAILED;
    w->t = t;
    w->adapter = shape->lora_rank > 0;
    code = w->adapter ? add_adapter_meta(w, shape) : add_meta(w, shape, tokenizer, type);
    if (code == EXIT_DONE && (code = add_tensors(w, type)) == EXIT_DONE)
        code = write_file(w, path);
    free(w->tensor);
    free(w);
    return code;
}
