/* cpu.h: the CPU backend's own structs, shared by its files.
 *
 *     select.c   a node becomes a cpu_work: kernel, shapes, room for pointers
 *     control.c  branches and loops become a cpu_work that runs sub-programs
 *     device.c   memory, and running works one after the other */
#ifndef CPU_CPU_H
#define CPU_CPU_H

#include "backend/backend.h"
#include "backend/cpu/kernel.h"
#include "lower/lower.h"

struct cpu_device {
    struct backend base;
    struct pool *pool;
    const struct cpu_kernels *kernels; /* of the chosen ISA level */
    _Atomic uint64_t tickets;
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

/* select.c */
rlx_status cpu_select(struct backend *b, struct select_call *c);
bool cpu_joins(struct backend *b, enum joint kind, const struct ir_graph *g, ir_value v);
rlx_status cpu_new_work(struct cpu_device *dev, struct select_call *c, struct cpu_work **out);
/* The step of that work: its reads, its write and its scratch, in the order load expects. */
rlx_status cpu_emit(struct select_call *c, struct cpu_work *w, uint32_t in_place, uint64_t scratch);
/* Where operands without bytes are: an address that can be counted from, and nothing to read. */
extern const uint8_t cpu_nothing[];
void cpu_load_tensors(struct cpu_work *w, void *const *operand);

/* control.c: if, while, scan and their gradients. */
rlx_status cpu_select_control(struct cpu_device *dev, struct select_call *c);

/* levels.c: the kernels of an ISA level; "none" picks the best this CPU has. NULL: it has not. */
const struct cpu_kernels *cpu_level(rlx_str name);
void cpu_level_names(char *out, size_t size); /* those this CPU can run, best first */

#endif
