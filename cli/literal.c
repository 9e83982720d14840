/* literal.c: see literal.h. */
#include "literal.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NUMBERS (1 << 20) /* a command line has no room for more */

struct reader {
    const char *at;
    struct literal *out;
    int64_t seen[RLX_MAX_RANK]; /* elements of a list at that depth; -1: none was finished yet */
    int32_t rank;               /* depth of the lists that hold numbers; -1: not known yet */
    size_t room;
};

static bool fail(struct reader *r, const char *why)
{
    if (!r->out->wrong)
        r->out->wrong = why;
    return false;
}

static void skip_spaces(struct reader *r)
{
    while (*r->at == ' ' || *r->at == '\t')
        r->at++;
}

/* Moves past the word, if it comes next and ends there. */
static bool take_word(struct reader *r, const char *word)
{
    size_t len = strlen(word);

    if (strncmp(r->at, word, len) != 0 || isalnum((unsigned char)r->at[len]) ||
        strchr("._-/", r->at[len] ? r->at[len] : ' '))
        return false;
    r->at += len;
    return true;
}

static bool take_number(struct reader *r, struct number *n)
{
    char *end;

    *n = (struct number){.is_integer = true};
    if (take_word(r, "true"))
        n->integer = 1;
    else if (!take_word(r, "false")) {
        n->real = strtod(r->at, &end);
        size_t len = (size_t)(end - r->at);
        /* strtod also accepts 0x10 and nan(...), which are not meant here */
        if (!len || memchr(r->at, 'x', len) || memchr(r->at, 'X', len) || memchr(r->at, '(', len))
            return fail(r, "a number was expected");
        errno = 0;
        n->integer = strtoll(r->at, NULL, 10);
        n->is_integer = strspn(r->at, "+-0123456789") == len && errno == 0;
        r->at = end;
        return true;
    }
    n->real = (double)n->integer;
    return true;
}

static bool add_number(struct reader *r, int32_t depth)
{
    struct literal *l = r->out;
    struct number n;

    if (r->rank < 0)
        r->rank = depth;
    if (r->rank != depth)
        return fail(r, "numbers and lists are mixed in one list");
    if (!take_number(r, &n))
        return false;
    if (l->count == r->room) {
        size_t room = r->room * 2 + 16;
        struct number *more = room <= MOST_NUMBERS * 2 ? realloc(l->at, room * sizeof *more) : NULL;
        if (!more)
            return fail(r, "there are too many numbers");
        l->at = more;
        r->room = room;
    }
    l->integers = l->integers && n.is_integer;
    l->at[l->count++] = n;
    return true;
}

/* A number, or a list of as many elements as its neighbours have. */
static bool take_value(struct reader *r, int32_t depth)
{
    int64_t count = 0;

    skip_spaces(r);
    if (*r->at != '[')
        return add_number(r, depth);
    if (depth == RLX_MAX_RANK)
        return fail(r, "lists are nested too deeply");
    r->at++;
    skip_spaces(r);
    while (*r->at != ']') {
        if ((count && *r->at++ != ',') || !take_value(r, depth + 1))
            return fail(r, "a list is not closed, or a comma is missing");
        count++;
        skip_spaces(r);
    }
    r->at++;
    if (count == 0 && r->rank < 0)
        r->rank = depth + 1;
    if (r->seen[depth] >= 0 && r->seen[depth] != count)
        return fail(r, "the lists are not all of the same length");
    r->seen[depth] = count;
    return true;
}

/* Everything up to the end: one value, or several with commas between them, which are a list. */
static bool take_all(struct reader *r)
{
    struct literal *l = r->out;
    bool several = false;

    do {
        if (several && *r->at++ != ',')
            return fail(r, "numbers were expected, with commas between them");
        if (!take_value(r, 0))
            return false;
        skip_spaces(r);
        if (!several && *r->at == ',' && r->seen[0] >= 0)
            return fail(r, "several lists need brackets around them");
        several = true;
    } while (*r->at);
    l->rank = r->rank < 0 ? 0 : r->rank;
    memcpy(l->dim, r->seen, sizeof l->dim);
    if (l->rank == 0 && l->count > 1) {
        l->rank = 1;
        l->dim[0] = (int64_t)l->count;
    }
    for (int32_t i = 0; i < l->rank; i++)
        l->dim[i] = l->dim[i] < 0 ? 0 : l->dim[i];
    return true;
}

enum literal_outcome literal_read(const char *text, struct literal *out)
{
    struct reader r = {.at = text, .out = out, .rank = -1};

    *out = (struct literal){.integers = true};
    for (int i = 0; i < RLX_MAX_RANK; i++)
        r.seen[i] = -1;
    if (*text && take_all(&r))
        return LITERAL_READ;
    literal_free(out);
    return *text == '[' ? LITERAL_BAD : LITERAL_NONE;
}

void literal_free(struct literal *l)
{
    free(l->at);
    l->at = NULL;
    l->count = 0;
}

/* ---- as a tensor ---- */

struct range {
    int64_t least, most;
};

static struct range range_of(rlx_dtype d)
{
    switch (d) {
    case RLX_DTYPE_i8: return (struct range){INT8_MIN, INT8_MAX};
    case RLX_DTYPE_i16: return (struct range){INT16_MIN, INT16_MAX};
    case RLX_DTYPE_i32: return (struct range){INT32_MIN, INT32_MAX};
    case RLX_DTYPE_u8: return (struct range){0, UINT8_MAX};
    case RLX_DTYPE_u16: return (struct range){0, UINT16_MAX};
    case RLX_DTYPE_u32: return (struct range){0, UINT32_MAX};
    case RLX_DTYPE_u64: return (struct range){0, INT64_MAX};
    case RLX_DTYPE_bool: return (struct range){0, 1};
    default: return (struct range){INT64_MIN, INT64_MAX};
    }
}

static int store_integers(struct cli *c, const struct literal *l, const char *name, rlx_tensor *t)
{
    struct range range = range_of(t->dtype);
    size_t size = rlx_dtype_size(t->dtype);

    for (size_t i = 0; i < l->count; i++) {
        const struct number *n = &l->at[i];
        if (!n->is_integer || n->integer < range.least || n->integer > range.most)
            return cli_misuse(c, "%s: %.17g is not a value of %s", name, n->real,
                              rlx_dtype_name(t->dtype));
        memcpy((char *)t->data + i * size, &n->integer, size); /* little-endian: the low bytes */
    }
    return EXIT_DONE;
}

static void store_floats(const struct literal *l, rlx_tensor *t)
{
    for (size_t i = 0; i < l->count; i++) {
        if (t->dtype == RLX_DTYPE_f64)
            ((double *)t->data)[i] = l->at[i].real;
        else
            ((float *)t->data)[i] = (float)l->at[i].real;
    }
}

int literal_store(struct cli *c, const struct literal *l, const char *name, rlx_tensor *t)
{
    rlx_error err;

    if (t->dtype == RLX_DTYPE_c64)
        return cli_misuse(c, "%s: complex numbers are given in files only", name);
    if (t->dtype == RLX_DTYPE_f16 || t->dtype == RLX_DTYPE_bf16)
        t->dtype = RLX_DTYPE_f32; /* which every float takes */
    if (rlx_tensor_alloc(c->ctx, t, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot make room for", name);
    if (t->dtype > RLX_DTYPE_f64)
        return store_integers(c, l, name, t);
    store_floats(l, t);
    return EXIT_DONE;
}
