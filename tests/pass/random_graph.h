/* random_graph.h: well-typed graphs at random, with what may be said about their values.
 *
 * Broadcasts, odd sizes, repeated operands, constants, params, half types, a symbolic dim at times,
 * dead ends, several outputs, and the patterns that fusions look for. Every value has an interval
 * and a bound on how far two correct computations of it may lie apart; steps that would tear small
 * differences open, such as floor or a comparison, only read what has none. */
#ifndef TESTS_PASS_RANDOM_GRAPH_H
#define TESTS_PASS_RANDOM_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RANDOM_MOST_NODES = 60,
    RANDOM_MOST_OUTPUTS = 6,
    RANDOM_SYMBOL_SIZE = 6 /* what is said of values holds when the symbolic dim is this */
};

struct random_value {
    double lo, hi;
    double err; /* two correct results differ by no more than this; 0: they are the same bits */
};

struct random_graph {
    char *text;         /* in the text form; to be freed */
    const char *symbol; /* its symbolic dim; NULL: none */
    size_t outputs;
    struct random_value out[RANDOM_MOST_OUTPUTS];
    bool either_zero[RANDOM_MOST_OUTPUTS]; /* a zero may have either sign */
};

/* The same for the same seed. false: no memory, or a graph could not be made (a bug). */
bool random_graph_make(uint64_t seed, struct random_graph *out);
void random_graph_free(struct random_graph *g);

#endif
