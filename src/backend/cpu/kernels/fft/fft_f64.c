/* fft_f64.c: the loops of the fft kernel in f64. */
#include "backend/cpu/kernels/fft/fft.h"
#include "backend/cpu/kernels/fft/fft_roots.h"

#define FFT(name) fft_f64_##name
#define FFT_T double
#define FFT_V vec_f64
#define FFT_MADD(a, b, c) F64_MADD(a, b, c)

#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#if defined(__AVX512F__)
#define FFT_LOW(a, b) SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define FFT_HIGH(a, b) SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define FFT_EVEN(a, b) SHUFFLE(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define FFT_ODD(a, b) SHUFFLE(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#elif defined(__AVX2__)
#define FFT_LOW(a, b) SHUFFLE(a, b, 0, 4, 1, 5)
#define FFT_HIGH(a, b) SHUFFLE(a, b, 2, 6, 3, 7)
#define FFT_EVEN(a, b) SHUFFLE(a, b, 0, 2, 4, 6)
#define FFT_ODD(a, b) SHUFFLE(a, b, 1, 3, 5, 7)
#else
#define FFT_LOW(a, b) SHUFFLE(a, b, 0, 2)
#define FFT_HIGH(a, b) SHUFFLE(a, b, 1, 3)
#define FFT_EVEN(a, b) SHUFFLE(a, b, 0, 2)
#define FFT_ODD(a, b) SHUFFLE(a, b, 1, 3)
#endif

#include "backend/cpu/kernels/fft/fft_core.h"
#include "backend/cpu/kernels/fft/fft_rows_core.h"
#include "backend/cpu/kernels/fft/fft_tables_core.h"
