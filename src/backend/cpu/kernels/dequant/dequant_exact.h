/* dequant_exact.h: products of f32 rows with rows packed in blocks: dequant_matmul and
 * dequant_grouped_matmul of GGUF schemes, by c->op. */
#ifndef BACKEND_DEQUANT_EXACT_H
#define BACKEND_DEQUANT_EXACT_H

#include "backend/cpu/kernels/dequant/quant_rows.h"
#include "backend/cpu/kernels/gemm/experts.h"

/* What both ops come to: rows of x, in groups, each with an expert's n packed rows of k elements.
 * dequant_matmul has one expert, which has all rows. */
struct dequant {
    int64_t m, n, k, experts;
    bool grouped; /* x [m,k], ids in c->in[2]; otherwise the leading axes of x are rows */
    struct quant_rows w;
};

static inline struct dequant dequant_of(const struct cpu_call *c)
{
    const struct cpu_tensor *w = &c->in[1], *out = c->out;
    bool grouped = c->op == RLX_OP_dequant_grouped_matmul;
    const struct attr_dequant_grouped_matmul *group = &c->attr->dequant_grouped_matmul;
    const struct attr_dequant_matmul *one = &c->attr->dequant_matmul;
    struct dequant d = {.n = out->dim[out->rank - 1], .grouped = grouped, .m = 1, .experts = 1};

    for (int32_t i = 0; i < out->rank - 1; i++)
        d.m *= out->dim[i];
    d.k = grouped ? group->k : one->k;
    if (grouped)
        d.experts = w->dim[0];
    d.w = quant_rows_of(grouped ? group->scheme : one->scheme, w->data, d.k);
    return d;
}

#define dequant_exact_scratch CPU_NAME(dequant_exact_scratch)
#define dequant_exact_run CPU_NAME(dequant_exact_run)

uint64_t dequant_exact_scratch(const struct cpu_call *c);
/* x: the rows [m,k], which need not be c->in[0]'s. scratch: as many bytes as were asked for. */
void dequant_exact_run(const struct cpu_call *c, const float *x, void *scratch);

#endif
