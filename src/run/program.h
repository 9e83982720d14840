/* program.h: a graph compiled for one device: its steps, its plan, its memory, its commands.
 *
 * A program may be compiled for symbols at their bounds and run at any smaller sizes. Its slots are
 * as large as the bounds make them; in each run values are stored in them densely, in that run's
 * shapes, so kernels see ordinary tensors and a run does exactly what a program compiled for its
 * sizes would do. */
#ifndef RUN_PROGRAM_H
#define RUN_PROGRAM_H

#include "backend/backend.h"
#include "lower/lower.h"
#include "plan/plan.h"
#include "run/memory.h"

/* A leaf or an output as callers see it. */
struct program_slot {
    rlx_str name;        /* of an input; outputs go by position */
    struct ir_type type; /* static */
    int32_t value;       /* in steps; -1: removed as unused */
};

/* A weight in another form, or several made into one: computed when they change, kept in its own
 * buffer by the owner of the weights. */
struct weight_copy {
    uint64_t key; /* of equal content */
    uint64_t bytes;
    struct buffer *buffer;
    uint64_t made;     /* which version of the weights it was made from; 0: not yet */
    const bool *needs; /* by param */
    struct pack_form form;
    struct ir_type type; /* of what it is a copy of */
    bool computed;       /* computed by a static part; where params have separate buffers, it has
                          * one only if the next is not 0 */
    uint32_t readers;    /* programs that read the param itself; counted where params have separate
                          * buffers */
};

struct program {
    const rlx_allocator *mem;
    struct backend *backend;
    struct ir_module *mod;      /* optimised, static; the works point into it */
    struct ir_module *symbolic; /* the same nodes with symbols; NULL: sizes never change */
    struct arena arena;
    struct steps *steps;
    struct plan *plan;
    struct memory consts, acts;
    const struct memory *memory[REGION_COUNT]; /* weights and state are borrowed; outside: none */
    struct buffer **outside;                   /* by value: the buffer of one that lies outside */
    struct buffer **plain; /* by value: of a param; NULL: not there now. No array: memory has all */
    struct span *span;     /* of every operand */
    struct command *command;
    size_t command_count;
    struct program_slot *input, *output;
    size_t input_count, output_count;
    struct weight_copy **packed; /* by packing of the steps */
    int64_t *size;               /* by symbol: what it is loaded for */
    bool *uses;                  /* by symbol: whether a size in the program depends on it */
    size_t symbol_count;
    bool loaded; /* the commands are as size, outside and buffers say */
};

/* Where a leaf other than a constant is: in its region, or in its own buffer. */
struct leaf_place {
    uint64_t offset;
    bool is_outside;
    struct buffer *outside; /* NULL: a program that is only planned has none */
};

struct program_desc {
    struct backend *backend;
    const rlx_allocator *mem;
    struct plan_options plan;
    struct select_options select;
    const struct memory *weights, *state; /* NULL: none; weights: or each has a buffer of its own */
    size_t symbol_count;
    bool plan_only; /* nothing is allocated and it cannot be loaded: only its steps and plan are of
                     * interest */
    const struct size_probes *probes; /* of a symbolic module; else NULL */
    /* NULL: there are inputs only, and they lie in the arena. */
    void (*place_leaf)(void *user, const struct ir_node *leaf, struct leaf_place *out);
    /* The copy of a param or constant that a kernel asked for. */
    rlx_status (*copy_of)(void *user, const struct ir_node *source, const struct packing *what,
                          uint64_t bytes, struct weight_copy **out, struct diag *d);
    /* May it allocate this many bytes? MEMORY if not. NULL: there is no limit. */
    rlx_status (*may_take)(void *user, uint64_t bytes, struct diag *d);
    void *user;
};

/* mod: static and optimised; symbolic: the same with symbols, or NULL. Both become the program's,
 * also when this fails. It must be loaded before it runs. inputs: the entry's before optimisation,
 * so that unused ones are known. */
rlx_status program_create(const struct program_desc *desc, struct ir_module *mod,
                          struct ir_module *symbolic, const struct program_slot *inputs,
                          size_t input_count, struct program **out, struct diag *d);
void program_destroy(struct program *p);

/* Prepares everything for these sizes; returns at once if they are loaded already. Nothing is
 * allocated. After a failure no sizes are loaded. */
rlx_status program_load(struct program *p, const int64_t *size, struct diag *d);
/* From the next load on, that value is in this buffer. */
void program_set_outside(struct program *p, int32_t value, struct buffer *buffer);

/* The same for a param; NULL: it has none for now, which is fine if nothing reads it. */
void program_set_plain(struct program *p, int32_t value, struct buffer *buffer);
/* Is that leaf itself read, by a step or as an output, and not only a copy of it? */
bool program_reads(const struct program *p, int32_t leaf);

/* The bytes of a value. */
struct span program_span(const struct program *p, int32_t value);

/* Typed access to a slot: count elements of dtype, its first if there are more. Conversions (those
 * of cast, else DTYPE) go through a small buffer. Asking for more than the slot holds is SIZE, and
 * nothing is done. */
rlx_status program_write(struct program *p, const struct program_slot *slot, rlx_dtype dtype,
                         const void *data, size_t count, struct diag *d);
rlx_status program_read(struct program *p, const struct program_slot *slot, rlx_dtype dtype,
                        void *data, size_t count, struct diag *d);

/* The same for any span of a device. */
rlx_status span_write(struct backend *b, struct span s, rlx_dtype slot, rlx_dtype dtype,
                      const void *data, size_t count, struct diag *d);
rlx_status span_read(struct backend *b, struct span s, rlx_dtype slot, rlx_dtype dtype, void *data,
                     size_t count, struct diag *d);

#endif
