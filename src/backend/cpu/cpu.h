/* cpu.h: the CPU backend's own structs, shared by its files.
 *
 *     cpu_select.c   a node becomes a cpu_work: kernel, shapes, room for pointers
 *     cpu_control.c  branches and loops become a cpu_work that runs sub-programs
 *     cpu_device.c   memory and addresses
 *     cpu_submit.c   runs works one after the other, here or on the device's own thread */
#ifndef CPU_CPU_H
#define CPU_CPU_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "backend/backend.h"
#include "backend/cpu/cpu_kernel.h"
#include "lower/lower.h"
#include "rlx/custom.h"

struct buffer {
    uint8_t *data;
    uint64_t bytes;
    bool wrapped;                   /* data is another's */
    _Atomic uint64_t read, written; /* the last jobs that do so; 0: none did */
};

/* A run of a program, or a copy between buffers, that is to be done in its turn. */
struct cpu_job {
    const struct command *list; /* NULL: it is a copy */
    size_t count;
    struct run_report *report;
    struct span to, from;
};

#define CPU_JOBS 64 /* that wait at a time; adding one more blocks */
/* Of everything that was done without queueing; jobs are numbered from the next on. */
#define CPU_FIRST_TICKET 1

struct cpu_queue {
    pthread_mutex_t lock;
    pthread_cond_t come, gone; /* a job, and one that is done */
    pthread_t thread;          /* that does them, once it is started */
    bool started, stop;
    pid_t process;                /* whose thread it is */
    _Atomic uint64_t last, done;  /* tickets: written with the lock held */
    struct cpu_job job[CPU_JOBS]; /* by ticket */
};

struct cpu_device {
    struct backend base;
    struct pool *pool;
    const struct cpu_kernels *kernels; /* of the chosen ISA level */
    struct cpu_queue queue;
};

#define CPU_MAX_PACKED 4
#define CPU_ALIGN \
    64 /* of buffers, scratch and tables: kernels load whole vectors from the latter */

/* One step, ready to run once its operands have addresses. Operands: the inputs, then the output,
 * then what is written also, then scratch, then the table, then packed copies. */
struct cpu_work {
    rlx_status (*run)(struct cpu_work *w, struct diag *d);
    /* Sizes, from the node, and addresses. */
    rlx_status (*load)(struct cpu_work *w, void *const *operand, struct diag *d);
    const struct ir_graph *graph;
    ir_value node, with; /* whose values out and also are */
    enum joint joint;    /* that it is the step of; JOINT_NONE: of its node alone */
    struct cpu_call call;
    struct cpu_tensor *in; /* what call.in points to */
    struct cpu_tensor out, also;
    const ir_value *read; /* whose values `in` are */
    struct cpu_fault fault;
    uint64_t scratch_bytes, table_bytes;          /* that kernels may use */
    int32_t packed_count, packed[CPU_MAX_PACKED]; /* inputs that have packed copies */
    const struct cpu_kernel *kernel;
    const rlx_custom_op *custom;
    rlx_tensor *results; /* of a custom op: all of them; those that are not its node's in scratch */
    struct cpu_control *control;
};

struct cpu_device *cpu_device_of(struct backend *b);
void cpu_tensor_of(const struct ir_type *t, struct cpu_tensor *out); /* no data yet */

/* cpu_select.c */
rlx_status cpu_select(struct backend *b, struct select_call *c);
bool cpu_joins(struct backend *b, enum joint kind, const struct ir_graph *g, ir_value v);
rlx_status cpu_new_work(struct cpu_device *dev, struct select_call *c, struct cpu_work **out);
/* The step of that work: its reads, its write and its scratch, in the order load expects. */
rlx_status cpu_emit(struct select_call *c, struct cpu_work *w, uint32_t in_place, uint64_t scratch);
/* Where operands without bytes are: an address that can be counted from, and nothing to read. */
extern const uint8_t cpu_nothing[];
void cpu_load_tensors(struct cpu_work *w, void *const *operand);

/* cpu_submit.c */
void cpu_queue_init(struct cpu_queue *q);
void cpu_queue_close(struct cpu_queue *q); /* when all jobs are done */
/* These return when no job is left that the caller would disturb, or that would disturb it. */
void cpu_await(struct cpu_device *dev, const struct buffer *b, bool to_write);
void cpu_await_operands(struct cpu_device *dev, const struct command *list, size_t count);
/* Of equal size; done immediately, or after the jobs that use these buffers. */
void cpu_copy_in_turn(struct cpu_device *dev, struct span to, struct span from);
/* Of backend_ops. */
void cpu_settle(struct backend *b, const struct command *list);
rlx_status cpu_submit(struct backend *b, const struct command *list, size_t count,
                      const struct run_hooks *hooks, struct run_report *report, uint64_t *ticket,
                      struct diag *d);
rlx_status cpu_run(struct backend *b, const struct command *list, size_t count,
                   const struct run_hooks *hooks, struct run_report *report, struct diag *d);
rlx_status cpu_poll(struct backend *b, uint64_t ticket, bool *done, struct diag *d);
rlx_status cpu_wait(struct backend *b, uint64_t ticket, struct diag *d);

/* cpu_control.c: if, while, scan and their gradients. */
rlx_status cpu_select_control(struct cpu_device *dev, struct select_call *c);

/* cpu_levels.c: the kernels of an ISA level; "none" picks the best this CPU has. NULL: this CPU
 * does not have that level. */
const struct cpu_kernels *cpu_level(rlx_str name);
void cpu_level_names(char *out, size_t size); /* those this CPU can run, best first */

#endif
