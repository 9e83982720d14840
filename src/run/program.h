/* program.h: a graph compiled for one device: its steps, its plan, its memory, its commands. */
#ifndef RUN_PROGRAM_H
#define RUN_PROGRAM_H

#include "backend/backend.h"
#include "lower/lower.h"
#include "plan/plan.h"

/* A leaf or an output as the outside sees it. */
struct program_slot {
    rlx_str name;        /* of an input; outputs are known by their position */
    struct ir_type type; /* static */
    int32_t value;       /* in steps; -1: removed as unused */
};

struct program {
    const rlx_allocator *mem;
    struct backend *backend;
    struct ir_module *mod; /* optimised; the works point into it */
    struct arena arena;
    struct steps *steps;
    struct plan *plan;
    struct buffer *buffer[REGION_COUNT]; /* weights and state are borrowed */
    struct command *command;
    size_t command_count;
    struct program_slot *input, *output;
    size_t input_count, output_count;
};

struct program_desc {
    struct backend *backend;
    const rlx_allocator *mem;
    struct plan_options plan;
    struct select_options select;
    struct buffer *weights, *state;
    /* Where a param or state of that name lies in its region. */
    uint64_t (*leaf_offset)(void *user, const struct ir_node *leaf);
    void *user;
};

/* The module must be static and optimised, and becomes the program's, also when this fails. names:
 * the entry's inputs before optimisation, so that unused ones are still known. */
rlx_status program_create(const struct program_desc *desc, struct ir_module *mod,
                          const struct program_slot *inputs, size_t input_count,
                          struct program **out, struct diag *d);
void program_destroy(struct program *p);

/* The bytes of a value. */
struct span program_span(const struct program *p, int32_t value);

/* Typed access to a slot: count elements of dtype, its first if there are more. Conversions (those
 * of cast, else DTYPE) go through a small buffer. More than it holds is SIZE; nothing is done. */
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
