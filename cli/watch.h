/* watch.h: the values of every node, as a run computes them. */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include "cli.h"

struct watch_row {
    int32_t node;
    char name[64], op[48];
    double max_abs, at; /* at: the value at the flat index, if has_at */
    uint64_t nonzero, count, bad;
    bool has_at;
};

struct watch {
    int64_t flat; /* show the value at this index; -1: none */
    struct watch_row *row;
    size_t count, cap;
    bool failed; /* no memory for a row */
};

void watch_note(void *user, const rlx_watch_event *e); /* user: a struct watch */
/* In graph order, without leaves, reshapes and casts, in at most that many lines. */
void watch_print(FILE *out, struct watch *w, int64_t limit);
void watch_free(struct watch *w);

#endif
