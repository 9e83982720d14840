/* gemm_few.c: products with few rows (gemm.h). Each element of b is used a few times only, so the
 * time goes into reading it: b is read once, in the order in which it lies, and never packed. */
#include "backend/cpu/kernels/gemm/gemm.h"
#include "backend/cpu/kernels/gemm/gemm_vec.h"

enum { CHUNK_LEAST = 256, CHUNK_MOST = 1024, COLUMNS_MOST = 1024 };

#define FEW(name) name##_f32
#define FEW_T float
#define FEW_V vec_f32
#define FEW_MADD F32_MADD
#define FEW_MADD_1 F32_MADD_1
#define FEW_LOAD cpu_load_f32
#define FEW_DTYPE RLX_DTYPE_f32
#include "backend/cpu/kernels/gemm/gemm_few_core.h"

#define FEW(name) name##_f64
#define FEW_T double
#define FEW_V vec_f64
#define FEW_MADD F64_MADD
#define FEW_MADD_1 F64_MADD_1
#define FEW_LOAD cpu_load_f64
#define FEW_DTYPE RLX_DTYPE_f64
#include "backend/cpu/kernels/gemm/gemm_few_core.h"

void gemm_few_run(const struct gemm_few *f, void *sum)
{
    if (f->a_dtype == RLX_DTYPE_f64)
        run_f64(f, sum);
    else
        run_f32(f, sum);
}
