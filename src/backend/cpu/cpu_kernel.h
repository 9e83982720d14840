/* cpu_kernel.h: what a CPU kernel is given and how it shares its work.
 *
 * Files in kernels/ are compiled once per ISA level; CPU_NAME(x) gives each level's copy a name of
 * its own, and everything else in them is static. A kernel takes dense row-major tensors of any
 * rank up to 8, empty ones included, and cuts its work into blocks by the shapes alone, never by
 * the number of threads, so that results are the same for any number. Kernels allocate nothing:
 * what they need besides is scratch that they ask for beforehand. */
#ifndef BACKEND_CPU_KERNEL_H
#define BACKEND_CPU_KERNEL_H

#include "base/diag.h"
#include "base/pool.h"
#include "ir/op.h"

struct cpu_tensor {
    void *data;
    rlx_dtype dtype;
    int32_t rank;
    int64_t dim[RLX_MAX_RANK];
    int64_t count;      /* elements; 0: empty, and data may be NULL */
    const void *packed; /* the copy that the kernel's pack made of it; NULL: there is none */
};

/* Where a kernel reports an index that must not be out of range. The smallest position wins. */
struct cpu_fault {
    _Atomic int64_t position; /* INT64_MAX: none */
    _Atomic int64_t value;
};

struct cpu_call {
    rlx_op op;
    const union ir_attr *attr; /* normalised */
    int32_t in_count;
    const struct cpu_tensor *in;
    const struct cpu_tensor *out;
    const struct cpu_tensor *also; /* a second result, or NULL: the sum that a norm is of, the
                                    * last cell of an lstm */
    bool thirds;   /* a product's columns are stored as three results, one after the other */
    void *scratch; /* aligned to CPU_ALIGN, as many bytes as the kernel's scratch() asked for */
    void *table;   /* likewise, as table_size() asked for and make_table() filled */
    bool bounded;  /* runs may have smaller sizes than these, when asked for bytes */
    struct pool *pool;
    struct cpu_fault *fault;
    bool check_indices; /* report every out-of-range index, not only where the op always does */
};

/* How a kernel prefers an operand that is the same in every run. */
struct cpu_pack {
    uint64_t bytes;  /* 0: as it is */
    uint64_t layout; /* with the operand's type, says all about the copy: equal ones are shared */
    bool alone;      /* run never reads the operand itself, whatever the sizes */
    bool whole;      /* unpack gives the operand back, bit by bit */
};

struct cpu_kernel {
    void (*run)(const struct cpu_call *c);
    /* Bytes of scratch for these shapes (data pointers are NULL then); NULL: none. */
    uint64_t (*scratch)(const struct cpu_call *c);
    /* What depends on shapes and attributes alone and is worth keeping: bytes for these shapes, and
     * what is in them. They are filled before the first run and again when sizes change; at first
     * they are zero. NULL: none. */
    uint64_t (*table_size)(const struct cpu_call *c);
    void (*make_table)(const struct cpu_call *c, void *to);
    /* Bit i: when input i has exactly the output's shape and element size, the kernel reads its
     * element k before it writes k and no other, so the output may take its place. */
    uint32_t in_place;
    /* Weights. pack_size: the copy wanted of operand i for these shapes (data pointers are NULL
     * then). pack: makes it, from c->in[i].data, when the weight is loaded. run then finds it in
     * c->in[i].packed, or NULL where the operand changes or copies are not wanted. The other sizes
     * of a later call may be smaller than those that were asked about. */
    struct cpu_pack (*pack_size)(const struct cpu_call *c, int32_t i);
    void (*pack)(const struct cpu_call *c, int32_t i, void *to);
    /* The operand again, from a copy of that layout; like: its type and where it goes. NULL in a
     * kernel whose copies are never whole. */
    void (*unpack)(const struct cpu_tensor *like, uint64_t layout, const void *packed,
                   struct pool *pool);
    /* Before each run: refuses operands with values that the op does not allow, other than indices
     * out of range. NULL: all values are allowed. */
    rlx_status (*check)(const struct cpu_call *c, struct diag *d);
};

#define CPU_PASTE_(a, b) a##_##b
#define CPU_PASTE(a, b) CPU_PASTE_(a, b)
#define CPU_NAME(x) CPU_PASTE(x, CPU_ISA)

/* One table per ISA level, by family; run is NULL where the CPU has no kernel. */
struct cpu_kernels {
    const char *isa;
    const struct cpu_kernel *family[FAMILY_count];
};

/* Run fn(ctx, begin, end, worker) over [0, count) in blocks of `grain` items. */
typedef void (*cpu_range_fn)(void *ctx, int64_t begin, int64_t end, int worker);
void cpu_for(struct pool *pool, int64_t count, int64_t grain, cpu_range_fn fn, void *ctx);

void cpu_report_index(const struct cpu_call *c, int64_t position, int64_t value);

#endif
