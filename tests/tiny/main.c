/* main.c: rlx-tiny-model NAME FILE: a model of tests/llm/tiny_models.def as a GGUF file, for
 * programs that it is compared with. With --seed in front: of the smallest sizes, for
 * fuzz/corpus/llm. Without arguments: the names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llm/tiny_model.h"

/* "llama" or, for packed matrices, "llama_blocks@Q8_0". */
static const struct tiny_model *find(char *name, struct tiny_change *change)
{
    char *type = strchr(name, '@');

    if (type && !rlx_weight_type_find(type + 1, &change->type))
        return NULL;
    if (type)
        *type = 0;
    return tiny_model_find(name);
}

static struct tiny_model smallest(const struct tiny_model *m)
{
    struct tiny_model s = *m;

    s.layers = 1;
    s.width = s.head_dim = s.ffn = 8;
    s.rot = m->rot ? 4 : 0;
    if (m->rot == m->head_dim)
        s.rot = 8;
    s.heads = s.kv_heads = 1;
    s.context = 16;
    return s;
}

int main(int argc, char **argv)
{
    const bool seed = argc > 1 && strcmp(argv[1], "--seed") == 0;
    struct tiny_change change = {.type = RLX_WEIGHT_F32, .tokens = seed ? 16 : 0};
    struct tiny_model small;
    const struct tiny_model *m;
    rlx_context *ctx;
    rlx_error err;

    argc -= seed;
    argv += seed;

    for (size_t i = 0; argc < 3 && (m = tiny_model_at(i)); i++)
        puts(m->name);
    if (argc < 3)
        return argc == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
    if (!(m = find(argv[1], &change))) {
        fprintf(stderr, "rlx-tiny-model: there is no model \"%s\"\n", argv[1]);
        return EXIT_FAILURE;
    }
    if (seed) {
        small = smallest(m);
        m = &small;
    }
    if (rlx_context_create(RLX_VERSION, NULL, &ctx, &err) != RLX_OK)
        return EXIT_FAILURE;
    rlx_status s = tiny_model_write(ctx, argv[2], m, &change, &err);
    if (s != RLX_OK)
        fprintf(stderr, "rlx-tiny-model: %s\n", err.message);
    rlx_context_destroy(ctx);
    return s == RLX_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
