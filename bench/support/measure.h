/* measure.h: timing two or more sides in turn, and saying how they compare.
 *
 * A machine drifts by more than the differences looked for. So every comparison is between sides
 * timed in the same minute: round after round, each side in its turn gets its share of time. The
 * best call counts, for noise only ever adds; the median and the spread say how noisy it was.
 *
 * A program prints one JSON object per line; tools/bench makes the table. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>

struct options {
    int threads;    /* --threads N (1) */
    int rounds;     /* --rounds N (5) */
    double seconds; /* --ms N (100), of a side in a round */
};
/* Ends the program, after a sentence, if it does not understand. */
struct options options_read(int argc, char **argv);

double now(void); /* seconds */
/* Calls for so long, and prints how many seconds each took, as JSON: a round, for a script that
 * lets several programs take turns. */
void print_times(void (*call)(void *user), void *user, double seconds);
/* Ends the program with that sentence. */
_Noreturn void give_up(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Seconds per call. */
struct times {
    double best, median, spread; /* spread: between the quartiles, as a part of the median */
    size_t calls;
};
struct times times_of(double *sample, size_t count); /* sorts them */

/* One that takes part: a call that does the whole work once. */
struct side {
    const char *name;
    void (*call)(void *user);
    void *user;
    const char *missing; /* why it does not take part; NULL: it does */
    struct times times;  /* what measure found */
};
void measure(struct side *sides, size_t count, const struct options *o);

/* The fastest of those that took part; the first if none did. */
const struct side *fastest(const struct side *sides, size_t count);

/* A line of the table. Ratios are such that more is better, whatever the unit. */
struct line {
    const char *name; /* of the case */
    int threads;      /* 0: says nothing about threads */
    const char *unit;
    const char *against; /* a peer's name, or what limit it is; NULL: stands for itself */
    const char *missing; /* why there is nothing to compare with; NULL: there is */
    double value, median, spread, other, other_median, ratio;
    double wanted; /* ratio; 0: none */
};
void line_print(const struct line *l);

/* rlx against another; work is what one call does, in flops or bytes, and is shown in 1e9 of them
 * per second. */
void compare_rates(const char *name, const struct options *o, const char *unit, double work,
                   double other_work, const struct side *rlx, const struct side *other,
                   double wanted);
/* A figure that must stay below a limit. */
void compare_limit(const char *name, int threads, const char *unit, double value, double limit,
                   const char *what);

#endif
