/* results.h: the results of a run: shown, ranked and saved; expect.c compares them with what they
 * should be.
 */
#ifndef CLI_RESULTS_H
#define CLI_RESULTS_H

#include "bind.h"

struct labels { /* names of what --top shows, by index; {0}: none */
    struct buffer text;
    char **at;
    size_t count;
};
int labels_load(struct cli *c, const char *path, struct labels *out); /* a line each */
void labels_free(struct labels *l);

struct result_options {
    int64_t limit; /* elements shown of each output; 0: all */
    int64_t top;   /* show this many of the largest instead; 0: no */
    bool json;
    const struct labels *labels;
};

/* A line for each output, or one JSON object. EXIT_DONE, or what to return. */
int results_print(struct cli *c, const struct opened *o, const struct result_options *options);
/* Every output as DIR/NAME.npy. */
int results_save(struct cli *c, const struct opened *o, const char *dir);

/* expect.c. texts: NAME=FILE, or files of tensors with the outputs by name. Prints a line for each
 * output with its error; EXIT_FAILED if one is off by more than tolerance + tolerance |wanted|.
 * tolerance < 0: 1e-4, 1e-2 for halves, 0 for integers. */
int results_expect(struct cli *c, const struct opened *o, const struct texts *texts,
                   double tolerance, FILE *out);

#endif
