/* q8_test.c: that activations get the same codes from every driver, whatever it makes of quotients
 * and products: a code that differs is off by a whole quantum. */
#include "base/half.h"
#include "interpret.h"
#include "ir/quant/quant_decode.h"
#include "ir/quant/quant_encode.h"

enum { N = 8000 };

static const char source[] =
    "use \"lib/q8\"\n"
    "kernel k<RUN: size>(v: in [f32], a: in [f32], code: out [f32], scale: out [f32]) group(1) {\n"
    "    let g = group.x\n    var s = 0.0\n    code[g] = code_of(v[g], a[g], RUN, s)\n"
    "    scale[g] = s\n}\n";

struct runs {
    float v[N], a[N]; /* a number, and the largest of its run */
    float code[N], scale[N];
};

static uint32_t dice(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 32);
}

static float moved(float x, int units)
{
    for (; units; units += units < 0 ? 1 : -1)
        x = nextafterf(x, units < 0 ? -INFINITY : INFINITY);
    return x;
}

/* Most numbers lie where rounding turns: v halfway between two codes, or a where its scale is
 * halfway between two numbers of f16, but for a few units. */
static void fill(struct runs *r)
{
    uint64_t seed = 3;

    for (int i = 0; i < N; i++) {
        float a = ldexpf(1 + (float)(dice(&seed) >> 9) * 0x1p-23f, (int)(dice(&seed) % 24) - 12);
        if (i % 4 == 1) {
            float d = ldexpf(1 + (float)(2 * (dice(&seed) % 1024) + 1) * 0x1p-11f, -5);
            a = moved(127 * d, (int)(dice(&seed) % 7) - 3);
        }
        float half = (float)(dice(&seed) % 127) + 0.5f;
        float v = i % 2 ? a * ((float)(dice(&seed) >> 8) * 0x1p-24f)
                        : moved(half * (a / 127), (int)(dice(&seed) % 9) - 4);
        r->a[i] = dice(&seed) % 2 ? a : -a;
        r->v[i] = dice(&seed) % 2 ? v : -v;
    }
    r->v[0] = r->a[0] = 0;
    r->a[1] = INFINITY;
    r->a[2] = NAN;
}

/* What ir/quant_encode gives for element 1 of the run { a, v, 0, .. }. */
static void want_of(const struct runs *r, int i, int32_t run, float *code, float *scale)
{
    float x[QUANT_BLOCK_ELEMS] = {r->a[i], r->v[i]};
    uint8_t block[QUANT_BLOCK_BYTES];
    int8_t q;

    *code = 0;
    *scale = NAN;
    if (!(run == 32 ? quant_encode_q8_0(x, block) : quant_encode_q8_k(x, block)))
        return;
    memcpy(&q, block + (run == 32 ? 2 : 4) + 1, 1);
    *code = q;
    if (run == 32)
        *scale = f16_to_f32((uint16_t)(block[0] | block[1] << 8));
    else
        memcpy(scale, block, 4);
}

static void check(struct test *t, struct runs *r, int32_t run, const struct kc_features *features,
                  struct liberty liberty)
{
    struct source s;

    test_note(t, "runs of %d, quotients off by %d, %s products, fma %d", run, liberty.units_off,
              liberty.contracts ? "contracted" : "rounded", features->fma);
    if (source_open(&s, source, run == 32 ? "RUN=32" : "RUN=256", features) != RLX_OK) {
        fail(t, "%s", s.diag.first.message);
        source_close(&s);
        return;
    }
    interpret_freely(&s, (void *const[]){r->v, r->a, r->code, r->scale}, NULL, N, liberty);
    for (int i = 0; i < N; i++) {
        float code, scale;
        want_of(r, i, run, &code, &scale);
        bool right =
            code == r->code[i] && (isnan(scale) ? isnan(r->scale[i]) : scale == r->scale[i]);
        if (!right)
            test_note(t, "%a in a run of %a is %g times %a, wanted %g times %a", (double)r->v[i],
                      (double)r->a[i], (double)r->code[i], (double)r->scale[i], (double)code,
                      (double)scale);
        if (!expect(t, right))
            break;
    }
    source_close(&s);
}

TEST(q8, codes_do_not_hang_on_the_driver)
{
    static struct runs r;
    static const int32_t runs[] = {32, 256};
    struct kc_features fused = kc_least_features;

    fused.fma = true;
    fill(&r);
    for (int i = 0; i < 2; i++)
        for (int units = -2; units <= 2; units++) {
            check(t, &r, runs[i], &kc_least_features, (struct liberty){units, false});
            check(t, &r, runs[i], &kc_least_features, (struct liberty){units, true});
            /* Where there is fma, products are not contracted unless it is asked for. */
            check(t, &r, runs[i], &fused, (struct liberty){units, false});
        }
}
