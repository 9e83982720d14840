/* backend.h: all that a device must do for rlx. One table per backend, chosen by name in
 * backend/registry.c; no other file asks which backend it is talking to.
 *
 * A backend that brings its own kernels (cpu) also brings `select`, which turns a node into steps;
 * the others share the lowering to dispatches. */
#ifndef BACKEND_BACKEND_H
#define BACKEND_BACKEND_H

#include "base/flags.h"
#include "ir/graph.h"
#include "ir/target.h"
#include "lower/joint.h"
#include "plan/steps.h"

#define BACKEND_ABI 8 /* raised when this struct changes */

struct backend_ops;
struct backend { /* a device's own struct begins with this */
    const struct backend_ops *ops;
    const rlx_allocator *mem;
};

struct device_desc {
    const rlx_allocator *mem;
    rlx_str variant; /* what stood after the colon of its name: "1" in "vulkan:1"; may be none */
    int32_t threads; /* CPU workers; 0: one per core */
    const struct flags *flags; /* of the context; NULL: all are at their defaults */
    const char *cache_dir;     /* for what is worth keeping between processes; NULL: the user's */
    void (*log)(void *user, int level, const char *line); /* as rlx_context_desc's; may be NULL */
    void *log_user;
};

struct buffer; /* memory of a device; each backend's own */
struct span {
    struct buffer *buffer;
    uint64_t offset, bytes;
};
static inline bool spans_overlap(struct span a, struct span b)
{
    return a.buffer && a.buffer == b.buffer && a.bytes && b.bytes &&
           a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

/* One unit of a schedule. Operands are in the order of the step's. */
struct command {
    enum { COMMAND_DISPATCH, COMMAND_COPY, COMMAND_BARRIER } kind;
    void *work;                 /* dispatch: what select or load made for it */
    const struct span *operand; /* dispatch: all; copy: [0] to, [1] from */
    uint32_t operand_count;
    const struct operand *use; /* dispatch: how each is used; NULL: any may be written */
    int32_t step;              /* its number in the program */
    bool idle; /* nothing to do for the sizes of this run: what it writes is empty */
};

/* What a run has to say about its data; filled by the time its ticket is done. */
struct run_report {
    int32_t step;            /* the step that met a bad index; -1: none */
    int64_t position, value; /* where in the index operand, and what it was */
    rlx_error failed;        /* why it ended before its last command; status RLX_OK: it did not */
};

/* Called after each command when set, before submit returns, on the thread that submits. */
struct run_hooks {
    void (*after)(void *user, int32_t step, uint64_t start_ns, uint64_t end_ns);
    void *user;
    bool reads; /* it looks at what the command wrote, so no later one may have begun */
};

struct select_call;
struct gpu_kernels;

/* One device of a kind. variant: what open takes after the colon, "" where it takes nothing.
 * missing: NULL, or why there is none and what to do about it; target is then NULL. */
typedef void (*device_row_fn)(void *user, const char *variant, const struct target *target,
                              const char *missing);

struct backend_ops {
    uint32_t abi;
    const char *name; /* "cpu", "null" */

    /* open returns the device's struct; it outlives the sessions on it. describe needs no device.
     */
    rlx_status (*open)(const struct device_desc *desc, struct backend **out, struct diag *d);
    void (*close)(struct backend *b);
    void (*describe)(const struct backend *b, struct target *out); /* limits, native families */

    /* Memory. The planner calls alloc once per region, so it may be slow. It is zeroed. */
    rlx_status (*alloc)(struct backend *b, uint64_t bytes, struct buffer **out, struct diag *d);
    void (*release)(struct backend *b, struct buffer *buf);
    /* A buffer that is memory of the host's, which is only read and stays where it is: nothing is
     * copied, and release leaves it alone. NULL in a backend that works in memory of its own. */
    rlx_status (*wrap)(struct backend *b, const void *data, uint64_t bytes, struct buffer **out,
                       struct diag *d);
    rlx_status (*write)(struct backend *b, struct span dst, const void *src, struct diag *d);
    rlx_status (*read)(struct backend *b, struct span src, void *dst, struct diag *d);
    rlx_status (*copy)(struct backend *b, struct span dst, struct span src, struct diag *d);
    rlx_status (*fill)(struct backend *b, struct span dst, uint8_t byte, struct diag *d);
    /* These are about to be read, as they are when all that was asked for so far is done: a device
     * whose memory the host cannot see may begin to bring them over, all at once. Reads are right
     * without it, and tell what went wrong with it. NULL: there is nothing to gain. */
    void (*fetch)(struct backend *b, const struct span *src, size_t count);

    /* Lowering. select: the steps of one node. load: a command's operands have addresses now, and
     * its node may have sizes different from before, never larger ones than those selected for;
     * LIMIT when it cannot work with these. pack: make the copy of an operand that select asked for
     * with select_packed, from `source`; NULL in a backend that never does. unpack: the operand, of
     * that type, from such a copy, to memory of the host's; NULL in a backend whose packings have
     * no form. */
    rlx_status (*select)(struct backend *b, struct select_call *c);
    /* Can it take that node, with those that belong to it, as lower/joint.h says, and does it pay?
     * NULL: never. */
    bool (*joins)(struct backend *b, enum joint kind, const struct ir_graph *g, ir_value v);
    rlx_status (*load)(struct backend *b, struct command *c, struct diag *d);
    rlx_status (*pack)(struct backend *b, struct command *c, int32_t operand, struct span source,
                       struct diag *d);
    rlx_status (*unpack)(struct backend *b, const struct pack_form *form,
                         const struct ir_type *type, struct span packed, void *to, struct diag *d);
    /* Make what the command needs at the sizes that its node has now, so that a later load and run
     * at these need not wait for it; it will be loaded before it is submitted. NULL: nothing is
     * ever made then. */
    rlx_status (*prepare)(struct backend *b, struct command *c, struct diag *d);
    /* These commands, or the nodes they were made from, are about to change: it returns when no run
     * of them is left that would notice. NULL: submit takes with it what a run needs. */
    void (*settle)(struct backend *b, const struct command *list);
    /* These commands will not come again: what was kept for them can go. May be NULL. */
    void (*unload)(struct backend *b, const struct command *list);

    /* Work. submit may return before the work is done, with a ticket; tickets are done in order.
     * poll never blocks; wait returns when that ticket is done. Commands, report and hooks stay
     * where they are until then, and what goes wrong later is in the report. run: all of it
     * in one call, where the caller's own thread can do the work; NULL: submit, then wait. */
    rlx_status (*submit)(struct backend *b, const struct command *list, size_t count,
                         const struct run_hooks *hooks, struct run_report *report, uint64_t *ticket,
                         struct diag *d);
    rlx_status (*run)(struct backend *b, const struct command *list, size_t count,
                      const struct run_hooks *hooks, struct run_report *report, struct diag *d);
    rlx_status (*poll)(struct backend *b, uint64_t ticket, bool *done, struct diag *d);
    rlx_status (*wait)(struct backend *b, uint64_t ticket, struct diag *d);

    /* Of a GPU: its limits and kernels (backend/gpu). NULL: it is not one. */
    struct gpu_kernels *(*gpu)(struct backend *b);

    /* The devices of this kind, each as open takes it. NULL: there is one, as describe(NULL) says.
     */
    void (*list)(const struct device_desc *desc, device_row_fn each, void *user);
};

/* For who has nothing else to do meanwhile. */
static inline rlx_status backend_run(struct backend *b, const struct command *list, size_t count,
                                     const struct run_hooks *hooks, struct run_report *report,
                                     struct diag *d)
{
    uint64_t ticket;

    if (b->ops->run)
        return b->ops->run(b, list, count, hooks, report, d);
    TRY(b->ops->submit(b, list, count, hooks, report, &ticket, d));
    return b->ops->wait(b, ticket, d);
}

/* registry.c */
const struct backend_ops *backend_find(rlx_str name); /* NULL: there is none of that name */
const struct backend_ops *backend_at(size_t i);       /* NULL: there are no more */

#endif
