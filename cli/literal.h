/* literal.h: numbers on the command line: 16000, 1,2,3 or [[1,2],[3,4]]. */
#ifndef CLI_LITERAL_H
#define CLI_LITERAL_H

#include "cli.h"

struct number {
    double real;
    int64_t integer;
    bool is_integer; /* and fits 64 bits */
};

struct literal {
    struct number *at;
    size_t count;
    int32_t rank; /* as the brackets say; 1,2,3 is of rank 1 */
    int64_t dim[RLX_MAX_RANK];
    bool integers;     /* all of them are integers */
    const char *wrong; /* LITERAL_BAD: what is wrong, as a sentence */
};

/* NONE: it is not written like numbers, so it names a file. BAD: it begins like numbers, but is
 * not. READ: the caller frees it. */
enum literal_outcome { LITERAL_NONE, LITERAL_BAD, LITERAL_READ };
enum literal_outcome literal_read(const char *text, struct literal *out);
void literal_free(struct literal *l);

/* Allocates t, whose dtype and dims are set and hold as many elements, and stores the numbers. name
 * is for messages. EXIT_DONE, or what to return. */
int literal_store(struct cli *c, const struct literal *l, const char *name, rlx_tensor *t);

#endif
