/* profile.h: where the time of a run goes, by kind of step and by node. */
#ifndef CLI_PROFILE_H
#define CLI_PROFILE_H

#include "cli.h"

struct profile_row {
    const char *name;
    char label[64];
    int32_t index;             /* of the step */
    uint64_t count;            /* steps of this kind, or runs of this step */
    uint64_t ns, bytes, flops; /* ns of all of them; bytes and flops of one run */
};

struct profile {
    struct profile_row *step; /* by step number */
    size_t count, cap;
    bool failed; /* no memory for a step */
};

void profile_note(void *user, const rlx_profile_event *e); /* user: a struct profile */
void profile_free(struct profile *p);
double profile_row_ns(const struct profile_row *r); /* of one run */

/* What percentages refer to: the best that was measured on the device, or what a step of this run
 * reached, if that is more. */
struct ceiling {
    rlx_ceilings measured; /* again, if a step was faster than what was measured earlier */
    double flops, copy_bytes;
    const struct profile_row *flops_by, *copy_by; /* that step, of the profile; NULL: none was */
};
/* EXIT_DONE, or what to return. */
int profile_ceiling(struct cli *c, rlx_device *dev, const struct profile *p, struct ceiling *out);
void ceiling_print(FILE *out, const struct ceiling *c); /* a line, and one for each step above */

/* Tables: kinds and nodes, most time first, and the sum. Percentages are of what
 * the device could do: the larger of its bytes at copy speed and its flops at full speed. */
void profile_print(FILE *out, const struct profile *p, const struct ceiling *c);
void profile_json(FILE *out, const struct profile *p, const struct ceiling *c); /* one object */

#endif
