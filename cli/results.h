/* results.h: what a run gave: shown, ranked and saved; expect.c compares it with what it should be.
 */
#ifndef CLI_RESULTS_H
#define CLI_RESULTS_H

#include "bind.h"

struct labels { /* of what --top counts, by index; {0}: none */
    struct buffer text;
    char **at;
    size_t count;
};
int labels_load(struct cli *c, const char *path, struct labels *out); /* a line each */
void labels_free(struct labels *l);

struct result_options {
    int64_t limit; /* elements shown of each output; 0: all */
    int64_t top;   /* that many of the largest instead; 0: no */
    bool json;
    const struct labels *labels;
};

/* A line for each output, or one JSON object. EXIT_DONE, or what to return. */
int results_print(struct cli *c, const struct opened *o, const struct result_options *options);
/* Every output as DIR/NAME.npy. */
int results_save(struct cli *c, const struct opened *o, const char *dir);

/* expect.c. texts: NAME=FILE, or files of tensors with the outputs by name. A line for each output
 * with how far it is off; EXIT_FAILED where one is further off than tolerance + tolerance |wanted|.
 * tolerance < 0: 1e-4, 1e-2 for halves, nothing for integers. */
int results_expect(struct cli *c, const struct opened *o, const struct texts *texts,
                   double tolerance, FILE *out);

#endif
