/* dequant_matmul.c: dequant_matmul and dequant_grouped_matmul (ops-special.md 1.6): which way a
 * packed weight and its activations are multiplied. */
#include "backend/cpu/kernels/dequant/dequant_exact.h"
#include "backend/cpu/kernels/dequant/dequant_q8.h"
#include "backend/cpu/kernels/dequant/dequant_side.h"

static bool is_q8(const struct cpu_call *c)
{
    int32_t act = c->op == RLX_OP_dequant_grouped_matmul ? c->attr->dequant_grouped_matmul.act
                                                         : c->attr->dequant_matmul.act;
    return act == RLX_ACT_PRECISION_q8;
}

static bool is_side(const struct cpu_call *c)
{
    return c->op == RLX_OP_dequant_matmul && !quant_scheme(c->attr->dequant_matmul.scheme)->is_gguf;
}

static uint64_t scratch(const struct cpu_call *c)
{
    if (is_side(c))
        return dequant_side_scratch(c);
    return is_q8(c) ? dequant_q8_scratch(c) : dequant_exact_scratch(c);
}

static void run(const struct cpu_call *c)
{
    if (is_side(c))
        dequant_side_run(c);
    else if (is_q8(c))
        dequant_q8_run(c);
    else
        dequant_exact_run(c, c->in[0].data, c->scratch);
}

extern const struct cpu_kernel CPU_NAME(cpu_dequant_matmul), CPU_NAME(cpu_dequant_grouped_matmul);
const struct cpu_kernel CPU_NAME(cpu_dequant_matmul) = {.run = run, .scratch = scratch};
const struct cpu_kernel CPU_NAME(cpu_dequant_grouped_matmul) = {.run = run, .scratch = scratch};

#ifdef GEMM_AMX
static void run_amx(const struct cpu_call *c)
{
    if (!is_side(c) && is_q8(c))
        dequant_q8_run_amx(c);
    else
        run(c);
}

extern const struct cpu_kernel cpu_dequant_matmul_amx, cpu_dequant_grouped_matmul_amx;
const struct cpu_kernel cpu_dequant_matmul_amx = {.run = run_amx, .scratch = scratch};
const struct cpu_kernel cpu_dequant_grouped_matmul_amx = {.run = run_amx, .scratch = scratch};
#endif
