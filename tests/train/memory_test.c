/* memory_test.c: what training takes of a device is what was planned: states lie there once, and
 * activations in hardly more than the most that are alive at one step. */
#include "backend/backend.h"
#include "context/context.h"
#include "rlx/tools.h"
#include "transformer.h"

/* ---- a device that counts ---- */

enum { BUFFERS_MOST = 256 };

static const struct backend_ops *under;
static struct counted {
    struct buffer *buffer;
    uint64_t bytes;
} buffers[BUFFERS_MOST];
static size_t buffer_count;

static rlx_status counted_alloc(struct backend *b, uint64_t bytes, struct buffer **out,
                                struct diag *d)
{
    rlx_status s = under->alloc(b, bytes, out, d);

    if (s == RLX_OK && buffer_count < BUFFERS_MOST)
        buffers[buffer_count++] = (struct counted){*out, bytes};
    return s;
}

static void counted_release(struct backend *b, struct buffer *buffer)
{
    for (size_t i = 0; i < buffer_count; i++)
        if (buffers[i].buffer == buffer) {
            buffers[i] = buffers[--buffer_count];
            break;
        }
    under->release(b, buffer);
}

static uint64_t bytes_taken(void)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < buffer_count; i++)
        sum += buffers[i].bytes;
    return sum;
}

/* ---- the tests ---- */

static uint64_t bytes_of_params(const struct weights *w)
{
    uint64_t sum = 0;

    for (int i = 0; i < w->count; i++)
        sum += weight_count(w, i) * sizeof(float);
    return sum;
}

TEST_DEVICES(train_memory, is_what_was_planned)
{
    static struct backend_ops counting;
    rlx_memory_info m = {RLX_SIZED(rlx_memory_info)};
    rlx_memory_estimate e = {0};
    struct learner l;
    float loss;

    if (open_learner(t, &l, 0, NULL)) {
        struct backend *b = l.dev->backend;
        rlx_session *other = NULL;
        under = b->ops;
        buffer_count = 0;
        counting = *under;
        counting.alloc = counted_alloc;
        counting.release = counted_release;
        b->ops = &counting;
        rlx_status s = rlx_session_create(l.model, l.dev, NULL, &other, &l.err);
        if (expect_ok(t, s)) {
            rlx_session *first = l.session;
            l.session = other;
            run_once(t, &l, 0, &loss);
            run_once(t, &l, 1, &loss);
            l.session = first;
            expect_ok(t, rlx_session_memory(other, &m, &l.err));
            expect_ok(t, rlx_model_memory(l.model, l.dev, NULL, 0, 0, &e, &l.err));
        }
        test_note(t, "%llu bytes of activations, lower bound %llu; %llu of states, %llu constants",
                  (unsigned long long)m.activations, (unsigned long long)m.lower_bound,
                  (unsigned long long)m.state, (unsigned long long)m.constants);
        expect_eq_u64(t, bytes_taken(),
                      m.activations + m.state + m.constants + m.weights + m.weight_copies);
        expect_eq_u64(t, e.total, bytes_taken());
        /* Params and what AdamW keeps of them, and little else. */
        uint64_t params = bytes_of_params(&l.weights);
        expect(t, m.weights == 0 && m.weight_copies == 0);
        expect(t, m.state >= 3 * params && m.state < 3 * params + 3 * PARAMS * 256 + 1024);
        expect(t, m.lower_bound > 0 && m.activations * 100 <= m.lower_bound * 105);
        rlx_session_destroy(other);
        b->ops = under;
    }
    close_learner(&l);
}
