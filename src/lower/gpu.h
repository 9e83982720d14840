/* gpu.h: a node as launches of kernels: plain data that the driver of any GPU can turn into its own
 * calls. Here op knowledge ends and driver knowledge begins:
 *
 *     node, sizes  =>  launches (kernel, buffers, words, grid)  =>  a driver's commands
 *
 * A family has one lowering function (gpu/families.def). It is a pure function of the node, its
 * sizes and the device, called when a program is compiled, to learn of its kernels and scratch, and
 * again whenever sizes change. It reads like a script:
 *
 *     gpu_kernel(c, "softmax", "softmax");
 *     gpu_type(c, "T", c->out->dtype);
 *     gpu_bind(c, gpu_in(c, 0));
 *     gpu_bind(c, gpu_out(c));
 *     gpu_u32(c, "cols", cols);
 *     gpu_groups(c, rows);
 *
 * Mistakes are kept in the call, and the first one is reported; nothing after it has an effect. */
#ifndef LOWER_GPU_H
#define LOWER_GPU_H

#include <pthread.h>
#include <stdatomic.h>

#include "backend/backend.h"
#include "base/str.h"
#include "kernel/kernel.h"
#include "lower/lower.h"

#define GPU_BUFFERS 8    /* of one kernel: what WebGPU promises */
#define GPU_BINDINGS 64  /* of one kernel: its buffers, those that are large as several windows */
#define GPU_OPERANDS 256 /* of a step: concat may have many */
#define GPU_PLACES 64    /* operands of which more is known than that they begin anywhere */
#define GPU_WORDS 256    /* of a launch, without those of offsets */
#define GPU_FAULT (-1)   /* as an operand: where bad indices are reported (kernels/index_check) */
#define GPU_ALIGN 256    /* of parts of the scratch */
#define GPU_GROUP 256    /* invocations of an ordinary group */
#define GPU_TEXTS 12     /* that a device keeps */
#define GPU_LAUNCHES (1 << 18) /* of a step: a loop has those of all its rounds */

/* A part of an operand of the step. */
struct gpu_arg {
    int32_t operand; /* in the order of the step, or GPU_FAULT */
    uint64_t offset, bytes;
};

/* A parameter of a kernel that is words, not a buffer. */
struct gpu_param {
    const char *name;
    uint32_t first, count; /* words */
    uint8_t type;          /* KIR_U32, KIR_I32 or KIR_F32 */
};

/* A kernel made for one use; the device keeps it (backend/gpu). */
struct gpu_kernel {
    const char *key; /* "softmax:softmax T=f32", and how its buffers are bound */
    uint32_t buffers, words, group[3], bindings;
    uint32_t all_words;            /* words, and those of begins_at after them */
    uint8_t first[GPU_BUFFERS];    /* the binding a buffer is in, or the first of its windows */
    uint8_t windows[GPU_BUFFERS];  /* how many; those of buffers that overlap are the same ones */
    uint64_t window;               /* bytes of each but the last */
    uint8_t mode[GPU_BUFFERS];     /* enum kir_mode */
    uint8_t element[GPU_BUFFERS];  /* bytes */
    bool begins_at[GPU_BUFFERS];   /* its first element is given as a word after the others */
    uint32_t type[GPU_BUFFERS];    /* of elements; those of equal ones can lie in one binding */
    const struct gpu_param *param; /* in order */
    uint32_t params;
    rlx_str source; /* of a generated one */
    void *pipeline; /* the driver's */
};

struct gpu_launch {
    const struct gpu_kernel *kernel;
    struct gpu_arg arg[GPU_BUFFERS];
    uint32_t first_word; /* in the work's words; the kernel tells how many */
    uint32_t grid[3];    /* all 0: nothing to do */
};

/* Launches that the host has repeated. [first, body) leave a word at go_on; while it is not 0,
 * [body, end) are a round, and it begins again. */
struct gpu_loop {
    uint32_t first, body, end;
    struct gpu_arg go_on;
    int64_t most;  /* rounds at which it ends; RLX_ABSENT: there is no such number */
    int64_t limit; /* rounds at which the run fails with LIMIT; 0: never */
};

/* What a step is for a GPU: struct command.work. */
struct gpu_work {
    const struct ir_graph *graph;
    ir_value node;
    enum joint joint;     /* that it is the step of; JOINT_NONE: of its node alone */
    const ir_value *in;   /* whose types its operands have, and .. */
    const ir_value *read; /* .. whose bytes they are */
    int32_t in_count;
    struct gpu_launch *launch;
    uint32_t launches, launch_room;
    struct gpu_loop *loop; /* in the order of their first launches, outer ones before inner ones */
    uint32_t loops, loop_room;
    uint32_t *word;
    uint32_t words, word_room;
    uint64_t scratch; /* bytes planned */
    uint64_t stamp;   /* of what is launched, on which bytes: equal ones launch the same */
    struct arena *arena;
    void *room; /* gpu_room's */
    size_t room_bytes;
    struct gpu_control *control; /* of a node with sub-graphs (gpu/gpu_sub_program.h); else NULL */
    int32_t scratch_operand, table_operand; /* their places among the step's */
    int32_t half;       /* 1 + the operand of which the kernel reads a copy in f16; 0: none */
    int32_t half_place; /* of that copy among the step's operands */
    bool check_indices;
    uint32_t prepared;          /* kernels made for it by gpu_prepare */
    uint8_t begins[GPU_PLACES]; /* operand i: 0 at the start of a slot, else 1 + log2 of what it is
                                   known to begin at a multiple of, in bytes */
};

/* ---- the device that is lowered for ---- */

/* What lowering knows of it, and all that it asks of it: a kernel by what it is made of. Whoever
 * keeps the kernels (backend/gpu/gpu_kernels.h) fills this in. */
struct gpu_target {
    struct backend *backend; /* for the graphs of loops, and their tables */
    struct kc_features features;
    uint32_t max_groups;   /* per dimension of a grid */
    uint64_t max_binding;  /* bytes of a buffer that a kernel sees through one binding */
    uint32_t max_bindings; /* of a kernel; its words are not counted */
    rlx_status (*find)(struct gpu_target *t, const char *key, rlx_str source,
                       const struct kc_binding *how, uint32_t buffers, uint32_t words,
                       const struct gpu_kernel **out, struct diag *d);
    atomic_size_t kernels; /* made so far */

    /* the texts that lowering writes kernels' sources into, kept for the next one */
    pthread_mutex_t lock;
    struct text text[GPU_TEXTS];
    size_t texts;
};
/* Its backend and limits are set; the rest begins, and ends. */
rlx_status gpu_target_open(struct gpu_target *t, struct diag *d);
void gpu_target_close(struct gpu_target *t);

/* For backend_ops.select and .load. After a load the work's launches are those of its sizes now. */
rlx_status gpu_select(struct gpu_target *t, struct select_call *c);
rlx_status gpu_load(struct gpu_target *t, struct command *c, struct diag *d);
/* For backend_ops.joins. */
bool gpu_joins(struct gpu_target *t, enum joint kind, const struct ir_graph *graph, ir_value v);
/* For .prepare: the kernels of its launches are made, up to a number of them. */
rlx_status gpu_prepare(struct gpu_target *t, struct command *c, struct diag *d);
/* For backend_ops.describe: what all that is lowered here has in common. */
void gpu_describe(struct target *out);
/* One launch's bindings where the command's operands lie, in bytes: offset is down to `align`, and
 * what is left of it has become a word. words: those of the launch, with room for GPU_BUFFERS more.
 * fault: bound where a kernel tells of bad indices. */
struct gpu_bound {
    struct span span[GPU_BINDINGS]; /* of no bytes: nobody looks */
    bool writes[GPU_BINDINGS];
    uint32_t bindings, words;
};
rlx_status gpu_bind_launch(const struct gpu_work *w, const struct gpu_launch *l,
                           const struct command *c, struct span fault, uint64_t align,
                           uint32_t *word, struct gpu_bound *out, struct diag *d);

/* The same where no two buffers of a launch may overlap: those that do have one span, and the
 * kernel is the one that knows (gpu/gpu_merge.c). */
rlx_status gpu_bind_apart(struct gpu_target *t, const struct gpu_work *w,
                          const struct gpu_launch *l, const struct command *c, struct span fault,
                          uint64_t align, uint32_t *word, struct gpu_bound *out,
                          const struct gpu_kernel **kernel, struct diag *d);

/* So many groups in up to three dimensions of at most `limit` each, as few as will do, with some to
 * spare; false: too many. */
bool gpu_fold_grid(uint64_t count, uint32_t limit, uint32_t grid[3]);

/* ---- for lowering functions ---- */

#define GPU_KEY 1024
#define GPU_GIVEN 64 /* names of a launch's words */
/* Words that a lowering function gives a parameter. */
struct gpu_given {
    const char *name;
    uint32_t first, count; /* in the launch's words, as they were given */
    uint8_t type;          /* KIR_U32, KIR_I32 or KIR_F32 */
};
struct gpu_call {
    const struct ir_node *node;
    rlx_op op;
    const union ir_attr *attr;
    const struct ir_graph *graph;
    int32_t in_count;
    const struct ir_type *in; /* sizes as they are now; static */
    const struct ir_type *out;
    const struct ir_type *symbolic; /* the result's while sizes may yet shrink, else NULL */
    const struct gpu_arg *arg_in;   /* where they lie */
    struct gpu_arg arg_out;
    struct gpu_arg arg_also; /* of a JOINT_TEE: where the sum goes; of a JOINT_LAYER, the cell */
    const struct columns *columns; /* of a JOINT_PACKED: how q, k and v lie; else NULL */
    uint64_t columns_of;           /* of a JOINT_SPLIT by columns of a matrix: how many that has in
                                      all; its items follow one another in each row. Else 0 */
    const struct kc_features *features;
    uint64_t max_binding;
    uint32_t max_bindings;
    bool check_indices; /* tell of indices out of range; they are harmless anyway */
    int32_t step;       /* its number in the program */
    int32_t half;       /* 1 + the operand that lies in f16, whatever its type says; 0: none */

    /* the builder's own */
    struct gpu_target *device;
    struct gpu_work *work;
    struct diag *diag;
    rlx_status status; /* of the first mistake */
    uint64_t scratch;  /* bytes used so far */
    struct gpu_launch now;
    uint32_t bound;
    struct gpu_given given[GPU_GIVEN]; /* the launch's words so far */
    uint32_t givens;
    char key[GPU_KEY];
    size_t key_len;
    rlx_str source; /* of a generated kernel */
};

static inline struct gpu_arg gpu_in(const struct gpu_call *c, int32_t i)
{
    return c->arg_in[i];
}
static inline struct gpu_arg gpu_out(const struct gpu_call *c)
{
    return c->arg_out;
}
static inline bool gpu_is_half(const struct gpu_call *c, int32_t i)
{
    return c->half == i + 1;
}
/* Does it begin at a multiple of so many bytes, whatever the sizes? Else it cannot be a buffer of
 * vectors. */
bool gpu_aligned(const struct gpu_call *c, struct gpu_arg a, uint64_t bytes);
/* Bytes of scratch, aligned; they live as long as the step. */
struct gpu_arg gpu_temp(struct gpu_call *c, uint64_t bytes);
/* Bytes of the host's memory to work in, of which a step has one piece, kept for the next sizes.
 * What is in it is not known. NULL: there is no memory, and the call has failed. */
void *gpu_room(struct gpu_call *c, size_t bytes);
/* Bytes of an argument, from `offset` on. */
struct gpu_arg gpu_part(struct gpu_arg a, uint64_t offset, uint64_t bytes);

/* Begin a launch of a kernel of kernels/<file>.rlk. What it needs follows: constants in any order,
 * buffers in the order of the kernel's parameters, words by name; gpu_groups ends it. */
void gpu_kernel(struct gpu_call *c, const char *file, const char *kernel);
/* The same with source that was made for this node; it must live until the launch ends. Kernels are
 * kept by their source, so equal ones are made once. */
void gpu_generated(struct gpu_call *c, rlx_str source, const char *kernel);
void gpu_need_type(struct gpu_call *c, rlx_dtype t); /* refuses what the device has not got */
void gpu_type(struct gpu_call *c, const char *name, rlx_dtype t);
void gpu_const(struct gpu_call *c, const char *name, int64_t value);
void gpu_flag(struct gpu_call *c, const char *name, bool value);
void gpu_name(struct gpu_call *c, const char *name, const char *value); /* any other constant */
void gpu_bind(struct gpu_call *c, struct gpu_arg a);
/* Words, by the names of the kernel's parameters, which must be literals (gpu/gpu_words.c). An
 * array's elements are given one after another, by the same name. LIMIT where one does not fit;
 * INTERNAL, when the launch ends, where the kernel's parameters are other ones. */
void gpu_u32(struct gpu_call *c, const char *name, uint64_t value);
void gpu_i32(struct gpu_call *c, const char *name, int64_t value);
void gpu_f32(struct gpu_call *c, const char *name, double value);
void gpu_u32s(struct gpu_call *c, const char *name, const uint64_t *value, int32_t count);
void gpu_i32s(struct gpu_call *c, const char *name, const int64_t *value, int32_t count);
void gpu_dims(struct gpu_call *c, const char *name, const int64_t *dim, int32_t count); /* u32 */
/* One group per unit of work, however many: kernels find their number with group_number() of
 * lib/grid, and must check it against the count. 0: the launch is dropped. */
void gpu_groups(struct gpu_call *c, uint64_t count);
/* Exactly so many groups along each axis; 0 along any: the launch is dropped. */
void gpu_grid(struct gpu_call *c, const uint32_t groups[3]);
/* Enough groups for that many invocations. */
void gpu_invocations(struct gpu_call *c, uint64_t count, uint32_t group);

/* Refuse: UNSUPPORTED or another status, in the words of the message. */
void gpu_refuse(struct gpu_call *c, rlx_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What elements are computed and summed in, as narrow ones are only loaded and stored. */
static inline rlx_dtype gpu_sum_type(rlx_dtype t)
{
    switch (t) {
    case RLX_DTYPE_f16:
    case RLX_DTYPE_bf16: return RLX_DTYPE_f32;
    case RLX_DTYPE_i8:
    case RLX_DTYPE_i16: return RLX_DTYPE_i32;
    case RLX_DTYPE_u8:
    case RLX_DTYPE_u16:
    case RLX_DTYPE_bool: return RLX_DTYPE_u32;
    default: return t;
    }
}

static inline uint64_t gpu_ceil(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}
static inline uint64_t gpu_count(const struct ir_type *t)
{
    int64_t n = 0;

    return type_count(t, &n) ? (uint64_t)n : 0;
}

typedef void (*gpu_lower_fn)(struct gpu_call *c);
#define GPU_FAMILY(family, function, in_place) void function(struct gpu_call *c);
#include "lower/gpu/families.def"

#endif
