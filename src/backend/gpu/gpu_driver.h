/* gpu_driver.h: what all GPU backends share at run time, and what each of them brings.
 *
 *     node => launches (lower/gpu) => recordings, tickets, transfers (here) => an API's calls
 *
 * A driver is one table, struct gpu_driver, and a device struct that begins with struct gpu_device.
 * It makes buffers, pipelines and commands, and hands commands to a queue. All decisions are made
 * here: which memory the host writes to directly, where a barrier is needed, what is recorded
 * again, who waits for what.
 *
 * Everything that goes to the queue gets the next ticket, and tickets are done in order. Where
 * nothing else is said, the device's lock is held while a function of the table runs. */
#ifndef BACKEND_GPU_DRIVER_H
#define BACKEND_GPU_DRIVER_H

#include "backend/gpu/gpu_kernels.h"

struct gpu_device;
struct gpu_recording;

/* ---- memory ---- */

enum gpu_use {
    GPU_FOR_WORK,     /* of kernels; the only one that counts as the device's memory, but for .. */
    GPU_FOR_WORDS,    /* .. the words of launches */
    GPU_FOR_UPLOAD,   /* the host writes, the device copies from it */
    GPU_FOR_READBACK, /* the device copies to it, the host reads */
    GPU_FOR_TIMES     /* a driver's own */
};

struct buffer {
    uint64_t bytes;        /* a multiple of GPU_ALIGN */
    uint64_t asked;        /* of these, what was asked for */
    uint64_t counted;      /* what counts as the device's memory */
    uint64_t used;         /* the last ticket that may touch it; under the device's lock */
    uint8_t *mapped;       /* NULL: the host does not see it */
    bool coherent;         /* of mapped: no flush or invalidate is needed */
    void *handle, *memory; /* the driver's */
    uint64_t taken;        /* the driver's: bytes of memory */
};

/* How the host reaches the device's memory (runtime.md 3.4). */
enum gpu_memory_mode {
    GPU_MODE_AUTO,
    GPU_MODE_MAPPED, /* it is the host's own: the host reads and writes it */
    GPU_MODE_BAR,    /* the host sees it over a bus: it writes there, and reads little */
    GPU_MODE_STAGING /* it does not: all goes through buffers of its own */
};

/* ---- commands ---- */

/* Who touched memory, and who will: a barrier is from some of these to some. */
enum { GPU_BY_KERNELS = 1, GPU_BY_COPIES = 2, GPU_BY_HOST = 4 };

/* What a recording will hold, at most. */
struct gpu_needs {
    uint32_t launches;
    uint32_t bindings; /* of all of them; of words too, where they lie in a buffer */
    uint32_t times;
    uint64_t words; /* bytes, each launch's aligned */
    bool faults;
};

/* One launch with all that it needs. No span is empty, and all begin where a buffer can. */
struct gpu_dispatch {
    const struct gpu_kernel *kernel;
    const struct span *span;
    uint32_t spans;
    const uint32_t *word; /* with zeros after them: driver.spare_words */
    uint32_t words;
    struct span place; /* where the words lie; no buffer: they go with the launch */
    const uint32_t *grid;
    uint32_t command; /* whose it is, by its place among those that are recorded */
};

/* A driver's recording begins with this; all zeros is one that was never made. */
#define GPU_TOUCHED 32
struct gpu_recording {
    bool valid;
    bool timed;  /* it measures every command */
    bool faults; /* kernels report indices that are out of range */
    uint64_t key;
    uint64_t used;               /* when; 0: never */
    uint64_t ticket;             /* of its last run */
    struct run_report *report;   /* to be filled when that is done; NULL: nobody waits for one */
    struct gpu_recording *later; /* the next one that has a report to fill */

    void *commands;                         /* what the driver's submit takes; prepare sets it */
    size_t count;                           /* of the program's commands */
    struct buffer words, fault, fault_seen; /* fault: where kernels tell of bad indices; fault_seen:
                                               its copy for the host */
    struct buffer *touched[GPU_TOUCHED];
    uint32_t touches; /* GPU_TOUCHED + 1: more than are noted */
};

/* ---- the host's bytes ---- */

/* In and out, in the order of the queue. gpu_batched does it by the commands below, through buffers
 * that the host sees; an API that has no such buffers has a table of its own. */
struct gpu_transfers {
    rlx_status (*put)(struct gpu_device *g, struct span dst, const void *src, struct diag *d);
    rlx_status (*get)(struct gpu_device *g, struct span src, void *dst, struct diag *d); /* waits */
    /* They are as long as each other, and may overlap. */
    rlx_status (*move)(struct gpu_device *g, struct span dst, struct span src, struct diag *d);
    rlx_status (*fill)(struct gpu_device *g, struct span dst, uint8_t byte, struct diag *d);
    /* Something on the device is about to change. May be NULL. */
    void (*stale)(struct gpu_device *g);
    /* These are about to be read. May be NULL. */
    rlx_status (*fetch)(struct gpu_device *g, const struct span *src, size_t count, struct diag *d);
};
extern const struct gpu_transfers gpu_batched;

/* ---- what a driver brings ---- */

struct gpu_driver {
    size_t device_bytes, recording_bytes; /* of its structs */
    uint32_t push_bytes;  /* of words that can go with a launch; more lie in a buffer */
    uint32_t spare_words; /* zeros that its kernels want after their words */
    bool apart;           /* no two buffers of a launch may overlap */
    bool zeroes;          /* new memory is zero */
    const struct gpu_transfers *transfers;
    struct gpu_pipelines pipelines;

    /* The device that desc names: what struct gpu_device says of it is filled in. Its options are
     * set. Whatever becomes of it, close is called. No lock is held. */
    rlx_status (*open)(struct gpu_device *g, const struct device_desc *desc, struct diag *d);
    void (*close)(struct gpu_device *g);
    /* What went wrong since it was last asked, other than calls that failed. May be NULL. No lock
     * is held. */
    rlx_status (*check)(struct gpu_device *g, struct diag *d);

    /* buf->bytes are set. MEMORY: gpu_no_memory says it. The lock may be held or not. */
    rlx_status (*make_buffer)(struct gpu_device *g, enum gpu_use use, struct buffer *buf,
                              struct diag *d);
    void (*drop_buffer)(struct gpu_device *g, struct buffer *buf); /* half made is fine */
    /* What the host wrote is to be seen by the device, and the other way round; only of memory that
     * is not coherent. The lock may be held or not. */
    void (*flush)(struct gpu_device *g, const struct buffer *buf, uint64_t offset, uint64_t bytes);
    void (*invalidate)(struct gpu_device *g, const struct buffer *buf, uint64_t offset,
                       uint64_t bytes);

    /* The queue. Commands begin after all that came before them, and get these tickets in turn. */
    rlx_status (*submit)(struct gpu_device *g, void *const *commands, uint32_t count,
                         uint64_t ticket, struct diag *d);
    /* The last ticket that is done. The lock may be held or not. */
    uint64_t (*done)(struct gpu_device *g);
    /* Until it is, or the device is lost, or so much time has passed. The lock may be held or not.
     */
    rlx_status (*wait)(struct gpu_device *g, uint64_t ticket, uint64_t ns, struct diag *d);
    void (*turn)(struct gpu_device *g); /* lets the API notice what is done; may be NULL */

    /* Commands. An API whose commands can be submitted only once has none of these: it notes the
     * launches of a recording, and submit encodes them, with a fault of zeros before. */
    rlx_status (*new_commands)(struct gpu_device *g, void **out, struct diag *d); /* until close */
    rlx_status (*begin)(struct gpu_device *g, void *commands, bool once, struct diag *d);
    rlx_status (*end)(struct gpu_device *g, void *commands, struct diag *d);
    void (*barrier)(struct gpu_device *g, void *commands, int from, int to);
    void (*copy)(struct gpu_device *g, void *commands, struct span dst, struct span src);
    void (*fill)(struct gpu_device *g, void *commands, struct span dst, uint32_t word);

    /* Recordings. What was recorded before is done. reserve: memory of the host's for so many
     * launches, taken beforehand; NULL: none is ever needed. */
    rlx_status (*reserve)(struct gpu_device *g, struct gpu_recording *r, uint64_t launches,
                          struct diag *d);
    rlx_status (*prepare)(struct gpu_device *g, struct gpu_recording *r,
                          const struct gpu_needs *needs, struct diag *d);
    rlx_status (*launch)(struct gpu_device *g, struct gpu_recording *r,
                         const struct gpu_dispatch *l, struct diag *d);
    /* Time number `at` is when all before it is done; the first is number 0. NULL where submit
     * does it. */
    void (*time)(struct gpu_device *g, struct gpu_recording *r, uint32_t at);
    /* Times 2 i and 2 i + 1 of a recording that is done, in ns; false: nobody knows. */
    bool (*read_times)(struct gpu_device *g, struct gpu_recording *r, size_t i, uint64_t out[2]);
    void (*drop)(struct gpu_device *g, struct gpu_recording *r);
};

/* ---- a device ---- */

/* What the flags of the context ask of it; 0: as it is. */
struct gpu_options {
    bool validation, no_coop, full_barrier, no_cache;
    enum gpu_memory_mode mode;
    uint64_t max_binding, max_groups, max_memory, lose_after;
};

/* Since the last barrier, which bytes were read and written? */
struct gpu_touch {
    struct span span;
    bool writes;
};
struct gpu_hazards {
    const rlx_allocator *mem;
    VEC(struct gpu_touch) touched;
};

/* Copies that wait to be submitted, or were; gpu_batches.c. Each has a part of the upload buffer.
 */
#define GPU_BATCHES 4
struct gpu_batch {
    void *commands;
    uint64_t ticket; /* of its last submission */
    uint64_t used;   /* bytes of its part */
    uint32_t count;  /* of commands */
    bool open;       /* it is being recorded */
};
struct gpu_batches {
    struct gpu_batch at[GPU_BATCHES];
    uint32_t now;
    struct buffer upload, readback; /* made when first needed */
    struct gpu_hazards hazards;     /* of the open batch */
};

#define GPU_FAULT_BYTES 64
#define GPU_WORD_CHUNK 16384 /* bytes of words, on their way to a buffer */

struct gpu_program; /* gpu_recordings.c */

struct gpu_device {
    struct backend base;
    const struct gpu_driver *driver;
    struct gpu_options options;
    void (*log)(void *user, int level, const char *line);
    void *log_user;
    bool open; /* driver.open was here: its functions may be called */

    /* what the driver's open says */
    char name[120], description[128]; /* name: in messages. description: of the list of devices */
    struct kc_features features;
    uint64_t memory; /* bytes that it has; 0: not known */
    uint64_t max_buffer, max_binding;
    uint32_t max_bindings, max_groups;
    uint64_t align; /* of what is bound */
    enum gpu_memory_mode mode;
    bool is_cpu; /* it is this CPU, which has better things to do than to wait for itself */
    bool clock;  /* it can time its own work */

    struct gpu_kernels kernels;
    struct buffer nothing;      /* bound where a kernel is given no bytes: GPU_ALIGN per binding */
    atomic_uint_least64_t held; /* bytes of its memory */
    atomic_bool lost;

    pthread_mutex_t lock;       /* of all that follows, but what is atomic */
    uint64_t tickets;           /* given out */
    atomic_uint_least64_t done; /* known to be */
    struct gpu_batches batches;
    struct gpu_hazards hazards;    /* of the recording under way */
    uint8_t words[GPU_WORD_CHUNK]; /* of its launches */

    atomic_uint_least64_t released; /* counts buffers that are gone: a recording may name one */
    uint64_t runs;
    struct gpu_program *programs;
    struct gpu_recording *due, *last_due; /* reports to be filled, in the order of tickets */
};
static inline struct gpu_device *gpu_device_of(struct backend *b)
{
    return (struct gpu_device *)b;
}

/* ---- for drivers ---- */

/* gpu_device.c. For backend_ops.open; the other entries are these. */
rlx_status gpu_open(const struct gpu_driver *driver, const struct backend_ops *ops,
                    const struct device_desc *desc, struct backend **out, struct diag *d);
void gpu_close(struct backend *b);
/* b may be NULL: what is true of every device of the kind. */
void gpu_describe_device(const char *backend, const struct backend *b, struct target *out);
rlx_status gpu_select_step(struct backend *b, struct select_call *c);
bool gpu_joins_step(struct backend *b, enum joint kind, const struct ir_graph *g, ir_value v);
rlx_status gpu_load_step(struct backend *b, struct command *c, struct diag *d);
rlx_status gpu_prepare_step(struct backend *b, struct command *c, struct diag *d);
rlx_status gpu_pack_step(struct backend *b, struct command *c, int32_t operand, struct span source,
                         struct diag *d);
struct gpu_kernels *gpu_kernels_of(struct backend *b);
#define GPU_BACKEND_OPS                                                                 \
    .abi = BACKEND_ABI, .close = gpu_close, .alloc = gpu_alloc, .release = gpu_release, \
    .write = gpu_write_bytes, .read = gpu_read_bytes, .copy = gpu_copy_bytes,           \
    .fill = gpu_fill_bytes, .select = gpu_select_step, .joins = gpu_joins_step,         \
    .load = gpu_load_step, .prepare = gpu_prepare_step, .pack = gpu_pack_step,          \
    .unload = gpu_unload, .submit = gpu_submit, .poll = gpu_poll, .wait = gpu_wait,     \
    .gpu = gpu_kernels_of

/* DEVICE_LOST, if it is. */
rlx_status gpu_check(struct gpu_device *g, struct diag *d);
void gpu_log(const struct gpu_device *g, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Which device of a kind is meant by what stands after the colon: a number. NO_DEVICE where it is
 * not one, or there are no more than `count`. */
rlx_status gpu_choose(const char *backend, rlx_str variant, uint32_t count, uint32_t *out,
                      struct diag *d);

/* gpu_features.c. Features that RLX_GPU_WITHOUT names become false; so does clock, for timestamps.
 * ARGUMENT for a name that is none. flags may be NULL. */
rlx_status gpu_disable_features(const struct flags *flags, struct kc_features *f, bool *clock,
                                struct diag *d);

/* gpu_memory.c. A buffer in a struct of the caller's own; what it holds is not known. */
rlx_status gpu_make_buffer(struct gpu_device *g, enum gpu_use use, uint64_t bytes,
                           struct buffer *out, struct diag *d);
void gpu_drop_buffer(struct gpu_device *g, struct buffer *buf); /* nobody uses it; {0} is fine */
/* MEMORY, with what is held, and what is left where that is known. */
rlx_status gpu_no_memory(struct gpu_device *g, uint64_t bytes, uint64_t left, struct diag *d);
rlx_status gpu_alloc(struct backend *b, uint64_t bytes, struct buffer **out, struct diag *d);
void gpu_release(struct backend *b, struct buffer *buf);

/* gpu_transfer.c. */
rlx_status gpu_write_bytes(struct backend *b, struct span dst, const void *src, struct diag *d);
rlx_status gpu_read_bytes(struct backend *b, struct span src, void *dst, struct diag *d);
rlx_status gpu_copy_bytes(struct backend *b, struct span dst, struct span src, struct diag *d);
rlx_status gpu_fill_bytes(struct backend *b, struct span dst, uint8_t byte, struct diag *d);
void gpu_fetch(struct backend *b, const struct span *src, size_t count);

/* gpu_queue.c. That ticket is done, as a callback says. */
void gpu_note_done(struct gpu_device *g, uint64_t ticket);
/* Until it is; the lock may be held or not. */
rlx_status gpu_await(struct gpu_device *g, uint64_t ticket, struct diag *d);
rlx_status gpu_poll(struct backend *b, uint64_t ticket, bool *done, struct diag *d);
rlx_status gpu_wait(struct backend *b, uint64_t ticket, struct diag *d);

/* gpu_submit.c, gpu_recordings.c. */
rlx_status gpu_submit(struct backend *b, const struct command *list, size_t count,
                      const struct run_hooks *hooks, struct run_report *report, uint64_t *ticket,
                      struct diag *d);
void gpu_unload(struct backend *b, const struct command *list);

#endif
