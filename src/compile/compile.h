/* compile.h: what the compiler is asked for, and the program it makes.
 *
 * It knows a model, a device and the weights of the one on the other. Whoever asks (a session) says
 * the rest: sizes, where states and inputs lie, how much memory may be taken. */
#ifndef COMPILE_H
#define COMPILE_H

#include "model/store.h"
#include "pass/recompute.h"
#include "rlx/artefact.h"
#include "run/program.h"

/* In compile_request.size: the symbol stays, and the program runs at any size up to its bound. */
#define SYMBOL_KEPT (-2)

struct compile_request {
    struct rlx_model *model;
    struct rlx_device *device;
    const struct target *target; /* the device, with desc's max_buffer */
    const rlx_session_desc *desc;
    struct store *store;          /* the model's weights on the device */
    const rlx_allocator *mem;     /* of the program, and of what is made on the way; bounded: */
    struct mem_bound *mem_bound;  /* by this */
    size_t symbol_count;          /* by symbol: */
    const int64_t *size;          /* its size, -1 where it has none, or SYMBOL_KEPT */
    const int64_t *bound;         /* 0: none */
    bool *by_value;               /* out: it has a bound, but cannot shrink below it */
    const struct memory *state;   /* where the session's states are, */
    const uint64_t *state_offset; /* by node of the model's entry graph */
    bool plan_only;               /* only the plan is wanted: the program takes no memory */
    /* The buffer in which programs read that input of the model; NULL: they have a slot for it. */
    struct buffer *(*input_buffer)(void *user, rlx_str input);
    /* May the device give so many bytes more? MEMORY if not. _locked: the model's lock is held. */
    rlx_status (*may_take)(void *user, uint64_t bytes, struct diag *d);
    rlx_status (*may_take_locked)(void *user, uint64_t bytes, struct diag *d);
    void *user;
    rlx_compiled_info *compiled; /* where programs, passes and reuse are counted */
};

/* What is computed from weights alone, as a graph of its own; packs are its outputs. */
struct static_program {
    struct ir_module *mod;          /* NULL: there is none */
    struct weight_copy **pack;      /* by output */
    const struct static_pack *made; /* by output: what it stands for; in mod */
    struct pack_leaf *leaf;         /* by output: where the program has it */
    size_t count;
};
struct pack_leaf {
    int32_t value; /* -1: nowhere */
    bool read;     /* as it is, not only in packed copies */
};

/* A param of a program. */
struct param_leaf {
    int32_t value;
    uint32_t param;
    bool read; /* as it is */
};

/* A program, and what it needs to be brought up to date when weights change. */
struct compiled_program {
    const rlx_allocator *mem;
    struct program *program;
    struct ir_module *optimised; /* what the passes made, before weights were split off */
    struct static_program fixed;
    uint64_t fresh; /* the version of the weights its copies are all made from; 0: not yet */
    struct recompute_report recomputed;
    struct store *store;     /* that it has joined; NULL: none */
    struct param_leaf *leaf; /* params of the program, where the store has `plain` */
    size_t leaf_count, leaf_room;
    int64_t *binding; /* by symbol; -1: not bound, -2: it runs at any size up to its bound */
    uint64_t last_use;
};

/* compile.c: EXTENT: a bounded symbol cannot be kept; which ones is in r->by_value. */
rlx_status compile(const struct compile_request *r, struct compiled_program *out, struct diag *d);
void compiled_program_destroy(struct compiled_program *p);

/* copies.c: whatever the program needs of copied and combined weights, made where it is old. The
 * model's lock is held. */
rlx_status copies_refresh(const struct compile_request *r, struct compiled_program *p,
                          struct diag *d);

/* readers.c: programs come and go with the params they read as they are. */
rlx_status readers_join(struct store *s, struct compiled_program *p, struct diag *d);
void readers_leave(struct compiled_program *p);

#endif
