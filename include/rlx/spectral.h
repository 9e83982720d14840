/* spectral.h: spectra of signals, built from rlx_fft and simpler ops.
 *
 *     rlx_spectrum s = rlx_rfft(g, x, RLX_ABSENT, RLX_FFT_NORM_forward);
 *     rlx_output(g, rlx_psd(g, s));
 *
 * Transforms are along the last axis, which has a known size where the text below needs it; all
 * others are batch. Signals are f32 or f64. Failures are kept by the graph, as those of builders.
 * norm says which transform divides: backward neither, forward the inverse by n, ortho both by sqrt
 * n; so irfft(rfft(x)) is x with forward and with ortho. */
#ifndef RLX_SPECTRAL_H
#define RLX_SPECTRAL_H

#ifndef RLX_UNSTABLE
#error "rlx/spectral.h may change with any version: define RLX_UNSTABLE before including it"
#endif

#include "rlx/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Real and imaginary parts, of one shape; both RLX_NO_VALUE when a call failed. */
typedef struct rlx_spectrum {
    rlx_value re, im;
} rlx_spectrum;

/* The smallest power of two that is not below n; 1 for n <= 1, 0 if none fits. */
RLX_API int64_t rlx_next_pow2(int64_t n);

/* Along any axis, without a norm. f32 and f64 have real parts and then imaginary ones there. */
RLX_API rlx_value rlx_fft_axis(rlx_graph *g, rlx_value x, int64_t axis, bool inverse);
/* Along several, in ascending order, each once. More than one axis needs c64; none gives x. */
RLX_API rlx_value rlx_fftn(rlx_graph *g, rlx_value x, rlx_list axes);
RLX_API rlx_value rlx_ifftn(rlx_graph *g, rlx_value x, rlx_list axes);

/* Real [..., n], zeros appended up to p = next_pow2(n) -> [..., p]. */
RLX_API rlx_spectrum rlx_fft_real(rlx_graph *g, rlx_value x, rlx_fft_norm norm);
/* Its first p/2 + 1 bins; the others mirror them. */
RLX_API rlx_spectrum rlx_rfft_pow2(rlx_graph *g, rlx_value x, rlx_fft_norm norm);
/* x cut to n points, or zeros appended -> [..., n/2 + 1]. RLX_ABSENT: as many as x has. */
RLX_API rlx_spectrum rlx_rfft(rlx_graph *g, rlx_value x, int64_t n, rlx_fft_norm norm);

/* The real part of the inverse transform of [..., n]. */
RLX_API rlx_value rlx_ifft_spectrum(rlx_graph *g, rlx_spectrum s, rlx_fft_norm norm);
/* Back from rfft_pow2 of n points: [..., next_pow2(n)/2 + 1] -> [..., n]. */
RLX_API rlx_value rlx_irfft_pow2(rlx_graph *g, rlx_spectrum s, int64_t n, rlx_fft_norm norm);
/* Back from rfft: [..., n/2 + 1] -> [..., n]. */
RLX_API rlx_value rlx_irfft(rlx_graph *g, rlx_spectrum s, int64_t n, rlx_fft_norm norm);

/* Frames of frame_len samples, one every hop, without a window: x [..., t] ->
 * [1 + (t - frame_len)/hop, ..., 2 (frame_len/2 + 1)], real parts and then imaginary ones. */
RLX_API rlx_value rlx_stft(rlx_graph *g, rlx_value x, int64_t frame_len, int64_t hop,
                           rlx_fft_norm norm);
/* (re^2 + im^2) / n, n the last size of s. */
RLX_API rlx_value rlx_psd(rlx_graph *g, rlx_spectrum s);
/* psd(rfft(x)): n is the number of its bins. */
RLX_API rlx_value rlx_psd_real(rlx_graph *g, rlx_value x, rlx_fft_norm norm);
/* All of a [..., la] convolved with b [..., lb] -> [..., la + lb - 1], by transforms of
 * next_pow2(max(n_fft, la + lb - 1)) points. Scaled correctly with norm forward only. */
RLX_API rlx_value rlx_fft_conv1d(rlx_graph *g, rlx_value a, rlx_value b, int64_t n_fft,
                                 rlx_fft_norm norm);

/* Constants of f64: the frequency of each bin in cycles per sample, [n] (the upper half negative)
 * and [n/2 + 1]. */
RLX_API rlx_value rlx_fftfreq(rlx_graph *g, int64_t n);
RLX_API rlx_value rlx_rfftfreq(rlx_graph *g, int64_t n);

#ifdef __cplusplus
}
#endif
#endif
