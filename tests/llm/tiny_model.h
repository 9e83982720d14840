/* tiny_model.h: language models of a few kilobytes, one for each architecture and for each of its
 * turns that matters. Their weights are made from the tensors' names, so that the same file comes
 * out everywhere: llama.cpp was given it (tools/gen-llm-vectors), and tests give it to the engine.
 *
 * The models are rows of tiny_models.def, in words:
 *   keys     "name=value": a value with a point is f32, true and false are bool, other numbers are
 *            u32, and the rest is a string; values with commas are an array. Names follow "ARCH.",
 *            unless they have a dot in front: ".general.name=x"
 *   tensors  "name:SHAPE", a letter per dim: d width, q heads * head_dim, k the same of keys,
 *            h head_dim, n heads, m kv_heads, a rows of queries, keys and values together, f ffn,
 *            F twice that, t vocabulary, r pairs of channels that are turned, c context, 1 one,
 *            e experts, x their ffn, s that of the shared one, Q, K, H as small ones where a head
 *            has TINY_LOCAL_DIM, p what each layer reads of a token, P that of all of them,
 *            y twice q, u three widths, E twice x;
 *            of keys and values that are made of a row: L that row, l that of queries, M what
 *            both are made with, o what is not turned of a head, v a value, V those of all
 *            heads, W both for all heads;
 *            of layers with a state: J taps, I channels inside, S numbers of state, R heads,
 *            D heads of the delta rule, b twice those, G groups, g channels of a group,
 *            C channels of the convolution, Z what the first matrix gives, B the same of
 *            Mamba 1, A of the delta rule, X what Mamba's steps are made of
 *            At the end may be of which layers: "-" layer 0; "+" all but that; "<" even ones;
 *            ">" odd ones; "@13" these. ".weight" is added to a name without a dot; a dot at
 *            its end is left out. */
#ifndef TESTS_LLM_TINY_MODEL_H
#define TESTS_LLM_TINY_MODEL_H

#include "rlx/weights.h"

struct tiny_model {
    const char *name, *arch;
    int64_t layers, width, heads, kv_heads, head_dim, rot, ffn, context;
    const char *keys;
    const char *global, *layer; /* tensors: of the model; of each layer */
};

enum { TINY_EXPERTS = 4, TINY_EXPERT_FFN = 24, TINY_SHARED_FFN = 40 };
enum { TINY_TAPS = 4, TINY_INNER = 96, TINY_STATE = 16, TINY_STATE_HEADS = 4, TINY_GROUPS = 2 };
enum { TINY_LATENT = 32, TINY_QUERY_LATENT = 64, TINY_VALUE = 12 };
enum { TINY_LOCAL_DIM = 8, TINY_SIDE = 6 };
enum { TINY_VOCAB = 277, TINY_END = TINY_VOCAB - 1 }; /* the last token ends a text */

/* Number i; NULL: there are no more. */
const struct tiny_model *tiny_model_at(size_t i);
const struct tiny_model *tiny_model_find(const char *name); /* NULL: there is none */

/* How a file differs from its row: matrices of another type (rows that are no blocks stay F32), a
 * key or tensor left out, by its full name, and keys and tensors added or changed. Zeros: not. */
struct tiny_change {
    rlx_weight_type type;
    const char *without;
    const char *keys, *global, *layer;
    int64_t tokens; /* not 0: so many, and no vocabulary in the file */
};
rlx_status tiny_model_write(rlx_context *ctx, const char *path, const struct tiny_model *m,
                            const struct tiny_change *change, rlx_error *err);

#endif
