/* machine.h: the places in a grammar that a text may have led to, and what was found out about
 * them.
 *
 *     gram_state      how far one text has come: a configuration
 *     gram_machine    shared by the states made from one: all configurations so far
 *       gram_frame    where a rule goes on that called another, and the frame of its own caller
 *       gram_thread   one way to read the text: a character that may come, and a frame
 *       gram_config   all ways at once; the empty one is dead
 *       a row         what a byte of each class leads to from a configuration, once it was asked
 * for
 *
 * Frames, and configurations, that are equal are the same one. So text that goes in circles, as
 * inside of a string, costs one look at a table for each byte. When there are too many, those that
 * states are in are kept and all others are forgotten. */
#ifndef GRAMMAR_MACHINE_H
#define GRAMMAR_MACHINE_H

#include <pthread.h>

#include "grammar/program.h"
#include "text/token_prefix.h"

struct gram_frame {
    uint32_t node;   /* to go on from */
    uint32_t parent; /* a frame made before this one */
    uint32_t depth;
};
#define GRAM_BOTTOM 0u /* the frame under the root rule: its end is that of the text */

struct gram_thread {
    uint32_t at;    /* a node of op CHAR */
    uint32_t state; /* byte state of that character */
    uint32_t frame;
};

struct gram_config {
    size_t first; /* threads, sorted */
    uint32_t count;
    uint32_t row;  /* where it begins; GRAM_NOTHING: there is none yet */
    uint32_t mask; /* the slot that may have its mask; GRAM_NOTHING: none has */
    bool may_end;
};
#define GRAM_DEAD 0u
#define GRAM_NOTHING UINT32_MAX

struct gram_store { /* what can be forgotten and found out again */
    VEC(struct gram_frame) frame;
    VEC(struct gram_thread) thread;
    VEC(struct gram_config) config;
    VEC(uint32_t) row; /* configurations, by class of bytes; GRAM_NOTHING: not asked for yet */
    struct map by_frame, by_config;
};

struct gram_mask {   /* tokens that may come, but those that end a text */
    uint32_t config; /* GRAM_NOTHING: the slot is free */
    bool any;
    uint32_t *bits;
};

struct gram_place { /* scratch: a node to go on from */
    uint32_t node, frame;
};
struct gram_seen {
    uint32_t node, frame, round;
};

struct gram_machine {
    const rlx_allocator *mem;
    uint32_t refs;        /* states */
    pthread_mutex_t lock; /* of all that follows, and of configs in states */
    struct rlx_grammar *grammar;
    const struct tok_prefixes *tokens; /* NULL: bytes alone */
    struct rlx_grammar_state *states;
    struct gram_store store;
    /* Configurations of a text that is followed, byte by byte: kept, as those of states. */
    VEC(uint32_t) path;
    VEC(struct gram_mask) mask;
    size_t next_mask; /* the slot that is overwritten next */
    uint64_t steps;   /* of this call */
    /* scratch, for one step */
    VEC(struct gram_place) work;
    VEC(struct gram_thread) next;
    struct gram_seen *seen; /* open addressing */
    size_t seen_cap, seen_len;
    uint32_t round; /* entries of seen with another number are free */
    bool may_end;
};

struct rlx_grammar_state {
    void *owner; /* of the memory: for src/api */
    struct gram_machine *machine;
    struct rlx_grammar_state *before, *after; /* in its machine */
    uint32_t config;
    bool may_end, can_go_on;
    bool ended; /* by a token */
};

enum {
    GRAM_MOST_WAYS = 1 << 15,   /* nodes that a byte may lead through */
    GRAM_MOST_FRAMES = 1 << 16, /* rules that are open */
    GRAM_MOST_STEPS = 1 << 23,  /* of a call: nodes gone through */
    GRAM_MOST_STORE = 64 << 20, /* bytes; those kept may have half of them */
    GRAM_MOST_MASKS = 8 << 20,  /* bytes */
};

/* machine.c */
rlx_status gram_machine_create(struct rlx_grammar *g, const struct tok_prefixes *tokens,
                               const rlx_allocator *mem, struct gram_machine **out, struct diag *d);
void gram_machine_free(struct gram_machine *m);
/* The configuration at the start of a text, to path[0]. */
rlx_status gram_begin(struct gram_machine *m, struct diag *d);
/* What byte leads to from path[from], to path[from + 1]. Ids of configurations, but for those that
 * are kept, may have changed after it. */
rlx_status gram_step(struct gram_machine *m, size_t from, uint8_t byte, struct diag *d);

/* configs.c: where the store is too large, all that nobody needs is left out. */
rlx_status gram_forget(struct gram_machine *m, struct diag *d);
void gram_store_init(struct gram_store *s, const rlx_allocator *mem);
void gram_store_free(struct gram_store *s, const rlx_allocator *mem);
size_t gram_store_bytes(const struct gram_store *s);
/* The frame, or the configuration, which is put there if it is new. */
rlx_status gram_store_frame(struct gram_store *s, const rlx_allocator *mem, uint32_t node,
                            uint32_t parent, uint32_t *out, struct diag *d);
rlx_status gram_store_config(struct gram_store *s, const rlx_allocator *mem,
                             const struct gram_thread *threads, size_t count, bool may_end,
                             uint32_t *out, struct diag *d);

/* mask.c: of path[0]. The slot's is valid until the next call. */
rlx_status gram_find_mask(struct gram_machine *m, const struct gram_mask **out, struct diag *d);

#endif
