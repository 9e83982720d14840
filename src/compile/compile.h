/* compile.h: a program of a session, as the compiler makes it. */
#ifndef COMPILE_H
#define COMPILE_H

#include "model/store.h"
#include "run/program.h"

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

struct session_program {
    const rlx_allocator *mem;
    struct program *program;
    struct ir_module *optimised; /* what the passes made, before weights were split off */
    struct static_program fixed;
    uint64_t fresh;      /* the version of the weights its copies are all made from; 0: not yet */
    struct store *store; /* that it has joined; NULL: none */
    struct param_leaf *leaf; /* params of the program, where the store has `plain` */
    size_t leaf_count, leaf_room;
    int64_t *binding; /* by symbol; -1: not bound, -2: it runs at any size up to its bound */
    uint64_t last_use;
};

/* compile.c: the program for s->key. EXTENT: a bounded symbol in it cannot be kept; which ones is
 * in s->by_value. */
rlx_status compile(struct rlx_session *s, struct session_program *out, struct diag *d);
void session_program_destroy(struct session_program *p);

/* copies.c: whatever the program needs of copied and combined weights, made where it is old. */
struct static_part;
rlx_status copies_register(struct rlx_session *s, const struct static_part *fixed,
                           struct static_program *out, struct diag *d);
rlx_status copies_refresh(struct rlx_session *s, struct session_program *p, struct diag *d);

/* readers.c: programs come and go with the params they read as they are. */
rlx_status readers_join(struct store *s, struct session_program *p, struct diag *d);
void readers_leave(struct session_program *p);

#endif
