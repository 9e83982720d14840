/* measure.c: rounds, statistics, and lines of the table. */
#include "measure.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void give_up(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    fputs("bench: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct options options_read(int argc, char **argv)
{
    struct options o = {1, 5, 0.1};

    for (int i = 1; i < argc; i += 2) {
        char *end = "";
        long n = i + 1 < argc ? strtol(argv[i + 1], &end, 10) : 0;
        if (n < 1 || n > 1000000 || *end)
            give_up("%s wants a number of 1 or more", argv[i]);
        if (strcmp(argv[i], "--threads") == 0)
            o.threads = (int)n;
        else if (strcmp(argv[i], "--rounds") == 0)
            o.rounds = (int)n;
        else if (strcmp(argv[i], "--ms") == 0)
            o.seconds = (double)n * 1e-3;
        else
            give_up("there is no flag %s; there are --threads, --rounds and --ms", argv[i]);
    }
    return o;
}

/* ---- rounds ---- */

/* Times of one side. What does not fit any more is left out: enough are there. */
struct samples {
    double at[1 << 14];
    size_t count;
};

static void one_round(struct side *side, struct samples *s, const struct options *o)
{
    /* Workers of the side before wait for more by spinning: OpenBLAS's do so for about 30 ms. */
    if (o->threads > 1)
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    side->call(side->user); /* to warm up: caches were another side's */
    double begin = now(), t = begin;
    do {
        double start = t;
        side->call(side->user);
        t = now();
        if (s->count < sizeof s->at / sizeof *s->at)
            s->at[s->count++] = t - start;
    } while (t - begin < o->seconds);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct times times_of(double *sample, size_t count)
{
    if (count == 0)
        return (struct times){0};
    qsort(sample, count, sizeof *sample, ascending);
    double median = sample[count / 2];
    double quartiles = sample[count - 1 - count / 4] - sample[count / 4];
    return (struct times){sample[0], median, median > 0 ? quartiles / median : 0, count};
}

void measure(struct side *sides, size_t count, const struct options *o)
{
    struct samples *samples = calloc(count, sizeof *samples);

    if (!samples)
        give_up("out of memory");
    for (int round = 0; round < o->rounds; round++)
        for (size_t i = 0; i < count; i++)
            if (!sides[i].missing)
                one_round(&sides[i], &samples[i], o);
    for (size_t i = 0; i < count; i++)
        sides[i].times = times_of(samples[i].at, samples[i].count);
    free(samples);
}

const struct side *fastest(const struct side *sides, size_t count)
{
    const struct side *best = &sides[0];

    for (size_t i = 1; i < count; i++)
        if (!sides[i].missing && (best->missing || sides[i].times.best < best->times.best))
            best = &sides[i];
    return best;
}

/* ---- lines ---- */

static void print_text(const char *key, const char *text)
{
    printf(", \"%s\": \"", key);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else
            putchar(c < ' ' ? ' ' : c);
    }
    putchar('"');
}

static void print_number(const char *key, double number)
{
    printf(", \"%s\": %.9g", key, number);
}

void line_print(const struct line *l)
{
    printf("{\"threads\": %d", l->threads);
    print_text("case", l->name);
    print_text("unit", l->unit);
    if (l->against)
        print_text("against", l->against);
    print_number("rlx", l->value);
    print_number("median", l->median);
    print_number("spread", l->spread);
    if (l->missing) {
        print_text("missing", l->missing);
    } else if (l->against) {
        print_number("other", l->other);
        print_number("other_median", l->other_median);
        print_number("ratio", l->ratio);
    }
    if (l->wanted > 0)
        print_number("wanted", l->wanted);
    puts("}");
    fflush(stdout);
}

static double per_second(double work, double seconds)
{
    return seconds > 0 ? work / seconds : 0;
}

void compare_rates(const char *name, const struct options *o, const char *unit, double work,
                   double other_work, const struct side *rlx, const struct side *other,
                   double wanted)
{
    struct line l = {.name = name,
                     .threads = o->threads,
                     .unit = unit,
                     .against = other->name,
                     .missing = rlx->missing ? rlx->missing : other->missing,
                     .wanted = wanted};

    l.value = per_second(work, rlx->times.best) * 1e-9;
    l.median = per_second(work, rlx->times.median) * 1e-9;
    l.spread = rlx->times.spread;
    if (!l.missing) {
        l.other = per_second(other_work, other->times.best) * 1e-9;
        l.other_median = per_second(other_work, other->times.median) * 1e-9;
        l.ratio = l.other > 0 ? l.value / l.other : 0;
    }
    line_print(&l);
}

void compare_limit(const char *name, int threads, const char *unit, double value, double limit,
                   const char *what)
{
    struct line l = {.name = name,
                     .threads = threads,
                     .unit = unit,
                     .against = what,
                     .value = value,
                     .median = value,
                     .other = limit,
                     .other_median = limit,
                     .wanted = 1};

    l.ratio = value > 0 ? limit / value : 1; /* nothing at all keeps every limit */
    line_print(&l);
}

void print_times(void (*call)(void *user), void *user, double seconds)
{
    double begin = now(), t;
    const char *comma = "";

    printf("{\"times\": [");
    do {
        double start = now();
        call(user);
        t = now();
        printf("%s%.9f", comma, t - start);
        comma = ", ";
    } while (t - begin < seconds);
    puts("]}");
    fflush(stdout);
}
