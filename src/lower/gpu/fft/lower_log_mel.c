/* lower_log_mel.c: band energies of spectra as logarithms (kernels/log_mel.rlk).
 *
 *     log_mel:           energies  =>  levels
 *     log_mel_backward:  energies  =>  gradients for them  =>  spread over the bins */
#include "lower/gpu/rows/lower_rows.h"

struct mel {
    uint64_t frames, n_fft, bins, bands;
};

static struct mel mel_of(const struct gpu_call *c)
{
    const struct ir_type *spec = &c->in[0], *filt = &c->in[1];
    struct mel m = {.n_fft = (uint64_t)spec->dim[spec->rank - 1] / 2,
                    .bins = (uint64_t)filt->dim[1],
                    .bands = (uint64_t)filt->dim[0]};

    m.frames = m.n_fft ? gpu_count(spec) / (2 * m.n_fft) : 0;
    return m;
}

static uint64_t lanes_for(uint64_t n)
{
    return gpu_min(gpu_pow2(gpu_ceil(n, 4)), 64);
}

static struct gpu_arg launch_energies(struct gpu_call *c, const struct mel *m)
{
    struct gpu_arg energy = gpu_temp(c, m->frames * m->bands * sizeof(float));
    uint64_t lanes = lanes_for(m->bins);

    gpu_kernel(c, "log_mel", "energies");
    gpu_const(c, "LANES", (int64_t)lanes);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, energy);
    gpu_u32(c, "frames", m->frames);
    gpu_u32(c, "n_fft", m->n_fft);
    gpu_u32(c, "bins", m->bins);
    gpu_u32(c, "bands", m->bands);
    gpu_groups(c, gpu_ceil(m->frames * m->bands, GPU_GROUP / lanes));
    return energy;
}

static void launch_levels(struct gpu_call *c, const struct mel *m, bool gradient,
                          struct gpu_arg energy, struct gpu_arg y)
{
    uint64_t lanes = lanes_for(m->bands);

    gpu_kernel(c, "log_mel", "levels");
    gpu_flag(c, "GRADIENT", gradient);
    gpu_const(c, "LANES", (int64_t)lanes);
    gpu_bind(c, energy);
    gpu_bind(c, gradient ? gpu_in(c, 2) : energy);
    gpu_bind(c, y);
    gpu_u32(c, "frames", m->frames);
    gpu_u32(c, "bands", m->bands);
    gpu_groups(c, gpu_ceil(m->frames, GPU_GROUP / lanes));
}

void gpu_lower_log_mel(struct gpu_call *c)
{
    const struct mel m = mel_of(c);

    if (gpu_count(c->out) > 0)
        launch_levels(c, &m, false, launch_energies(c, &m), gpu_out(c));
}

void gpu_lower_log_mel_backward(struct gpu_call *c)
{
    const struct mel m = mel_of(c);

    if (gpu_count(c->out) == 0)
        return;
    struct gpu_arg gradient = gpu_temp(c, m.frames * m.bands * sizeof(float));
    launch_levels(c, &m, true, launch_energies(c, &m), gradient);
    gpu_kernel(c, "log_mel", "spread");
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, gradient);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "frames", m.frames);
    gpu_u32(c, "n_fft", m.n_fft);
    gpu_u32(c, "bins", m.bins);
    gpu_u32(c, "bands", m.bands);
    gpu_invocations(c, m.frames * m.n_fft, GPU_GROUP);
}
