/* steps.h: what will run, in order, before anything has an address.
 *
 *     lower (nodes -> steps)   =>   plan (steps -> offsets)   =>   lower (offsets into the steps)
 *
 * A *value* is a run of bytes: a node's result, a leaf, or a step's scratch. A *step* reads and
 * writes values. The planner knows nothing about ops, kernels or devices. */
#ifndef PLAN_STEPS_H
#define PLAN_STEPS_H

#include "base/arena.h"
#include "base/diag.h"

enum region {
    REGION_WEIGHTS, /* params: one store per (model, device), laid out once, written by uploads */
    REGION_CONSTS,  /* constants of this program */
    REGION_ACTS,    /* inputs, outputs, intermediates, scratch: the planned arena */
    REGION_STATE,   /* resident handles, shared by the programs of a session */
    REGION_OUTSIDE, /* buffers of their own that live longer: packed weights, fed inputs */
    REGION_COUNT
};

enum value_flags {
    VALUE_INPUT = 1,    /* fed before the first step: alive for the whole run, never reused */
    VALUE_OUTPUT = 2,   /* read after the last step: alive to the end */
    VALUE_SCRATCH = 4,  /* alive during one step only */
    VALUE_PINNED = 8,   /* alive for the whole run (a constant, a state, a static pack) */
    VALUE_FIXED = 16,   /* its offset was given beforehand (weights, states): keep it */
    VALUE_THIRD = 32,   /* a view of a third of its root, which is stored third by third */
    VALUE_COLUMNS = 64, /* a view of columns: there are gaps between its rows */
    VALUE_STORED = 128  /* a view of a state, all of it, that its step writes */
};

struct value {
    int32_t node;         /* the graph node it holds; -1: scratch */
    int32_t root;         /* itself, or the value whose bytes it is a view of */
    enum region region;   /* the root's */
    uint32_t flags;       /* enum value_flags */
    uint64_t view_offset; /* bytes from the start of the root; 0 for a root */
    uint64_t bytes;       /* bytes that hold data; 0: no storage at all */
    uint64_t room;        /* bytes planned for: of the largest sizes there can be */
    uint64_t offset;      /* in its region; filled by the planner, for views too */
    int32_t birth, death; /* of a root: first and last step that touch it; filled by the planner */
    int32_t shares; /* the root in whose place it lives (in place), or -1; filled by the planner */
};

enum step_role {
    ROLE_READ,
    ROLE_WRITE,
    ROLE_UPDATE
}; /* UPDATE: reads, then writes, the same bytes */

struct operand {
    int32_t value;
    uint8_t role;  /* enum step_role */
    bool in_place; /* a read: the step may write its (single) written operand over this one */
};

struct step {
    const char *name;      /* stable, lower snake case: what profiles and traces show */
    int32_t node;          /* that it computes */
    uint32_t first, count; /* its operands: steps->operand[first .. first+count) */
    const void *work;      /* the lowering's own: kernel and parameters */
};

/* How a copy can be turned back into what it was made from, in a form that only the backend
 * reads. */
struct pack_form {
    bool whole; /* whether it can, bit for bit */
    uint32_t family;
    uint64_t layout;
};

/* A copy of a weight in the layout that its kernel reads best, made when the weight changes. */
struct packing {
    int32_t value;  /* the copy; outside */
    int32_t source; /* the node whose value it is made from: a param or a constant */
    uint32_t step;  /* the step whose operand it is made for */
    int32_t operand;
    uint64_t layout; /* copies of equal sources and layouts are equal */
    bool alone;      /* the step reads the copy and never the source itself */
    struct pack_form form;
};

struct steps {
    struct value *value;
    size_t value_count;
    struct operand *operand;
    size_t operand_count;
    struct step *step;
    size_t step_count;
    struct packing *packing;
    size_t packing_count;
};

#endif
