/* report.h: what the text, JSON and picture of a plan have in common (report.c). */
#ifndef PLAN_REPORT_H
#define PLAN_REPORT_H

#include "plan/plan.h"

extern const char *const report_region[REGION_COUNT]; /* "weights", "consts", ... */

struct report {
    const struct plan *p;
    plan_name name; /* may be NULL */
    void *user;
    struct text *out;
    const struct value **value; /* what is shown: of the activations, with bytes; by offset */
    size_t count;
    size_t bytes; /* of value[], for report_end */
};
/* views: whether to include views. False: no memory, and out->failed is set. */
bool report_begin(struct report *r, const struct plan *p, plan_name name, void *user,
                  struct text *out, bool views);
void report_end(struct report *r);

/* The value's place in steps->value. */
int32_t report_id(const struct report *r, const struct value *v);
rlx_str report_name(const struct report *r, const struct value *v); /* "" if it has none */
/* The same, in one line of text: a character that would end the line or a column becomes '?'. */
void report_add_name(const struct report *r, const struct value *v);
void report_node(const struct report *r, const struct value *v); /* "%12", or "scratch" */
void report_bytes(struct text *out, uint64_t bytes);             /* "1.50 MiB" */
uint64_t report_total(const struct plan *p);                     /* of all regions */

/* The largest slots alive at the peak, at most max; how many. */
size_t report_peak(const struct report *r, const struct value **out, size_t max);

#endif
