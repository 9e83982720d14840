/* items.c: `--items` and `--absent`, which say what a model's sequences and optionals hold.
 *
 *     --items x=3            three items, of the shapes that the model declares
 *     --items x=[4],[2,3]    two, of these shapes; of an input that is not a sequence: its shape */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define MAX_SHAPES 4096 /* of one input */

/* Reads a number that is not negative, and moves past it. */
static bool take_size(const char **at, int64_t *out)
{
    char *end;

    if (!isdigit((unsigned char)**at))
        return false;
    *out = strtoll(*at, &end, 10);
    *at = end;
    return true;
}

/* Reads "[2,3]" or "[]", and moves past it. */
static bool take_shape(const char **at, rlx_tensor *out)
{
    *out = (rlx_tensor){0};
    if (*(*at)++ != '[')
        return false;
    while (**at != ']') {
        if (out->rank == RLX_MAX_RANK || (out->rank && *(*at)++ != ',') ||
            !take_size(at, &out->dim[out->rank]))
            return false;
        out->rank++;
    }
    ++*at;
    return true;
}

static bool take_shapes(const char *at, rlx_load_input *out)
{
    size_t room = 0;

    for (const char *p = at; *p; p++)
        room += *p == '[';
    rlx_tensor *shape = room && room <= MAX_SHAPES ? calloc(room, sizeof *shape) : NULL;
    if (!shape)
        return false;
    out->shape = shape;
    do {
        if (out->item_count == room || !take_shape(&at, &shape[out->item_count]))
            return false;
        out->item_count++;
    } while (*at++ == ',');
    return at[-1] == 0;
}

/* "NAME=3", "NAME=[2,3],[4]". A name may contain "=", but what follows it may not. */
static bool take_items(const char *text, rlx_load_input *out)
{
    const char *equals = strrchr(text, '='), *at = equals ? equals + 1 : "";
    int64_t count;

    if (!equals || equals == text || !(out->name = strndup(text, (size_t)(equals - text))))
        return false;
    if (*at == '[')
        return take_shapes(at, out);
    if (!take_size(&at, &count) || *at)
        return false;
    out->item_count = (size_t)count;
    return true;
}

int cli_take_items(struct cli *c, const struct texts *items, const struct texts *absent)
{
    size_t count = items->count + absent->count;

    if (!count)
        return EXIT_DONE;
    rlx_load_input *input = calloc(count, sizeof *input);
    if (!input)
        return EXIT_FAILED;
    c->load.inputs = input;
    c->load.input_count = count;
    for (size_t i = 0; i < items->count; i++)
        if (!take_items(items->at[i], &input[i]))
            return cli_misuse(c, "\"%s\" is not of the form NAME=COUNT or NAME=[2,3],[4]",
                              items->at[i]);
    for (size_t i = 0; i < absent->count; i++) {
        rlx_load_input *in = &input[items->count + i];
        in->absent = true;
        if (!(in->name = strdup(absent->at[i])))
            return EXIT_FAILED;
    }
    return EXIT_DONE;
}

void cli_free_items(struct cli *c)
{
    for (size_t i = 0; i < c->load.input_count; i++) {
        free((char *)c->load.inputs[i].name);
        free((rlx_tensor *)c->load.inputs[i].shape);
    }
    free((rlx_load_input *)c->load.inputs);
    c->load.inputs = NULL;
    c->load.input_count = 0;
}
