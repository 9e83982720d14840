/* keys.h: a GGUF file's metadata and tensors as a recipe asks for them. A failure is kept by the
 * diag, and the value is then the default: a recipe reads on, and is checked once at its end. */
#ifndef LLM_KEYS_H
#define LLM_KEYS_H

#include "llm/spec.h"

struct llm_keys {
    const rlx_weights *w;
    rlx_str arch; /* before the names of most keys */
    struct diag *d;
};

/* "ARCH.name". KEY_NEEDED as the default: FORMAT where the file has no such key. */
#define KEY_NEEDED INT64_MIN
#define KEY_NEEDED_F (-HUGE_VAL)
int64_t key_int(const struct llm_keys *k, const char *name, int64_t otherwise);
double key_float(const struct llm_keys *k, const char *name, double otherwise);
bool key_bool(const struct llm_keys *k, const char *name, bool otherwise);
rlx_str key_text(const struct llm_keys *k, const char *name); /* {NULL, 0}: there is none */
bool key_exists(const struct llm_keys *k, const char *name);
/* Of a layer, where the key has a value for each layer, else the one for all. */
int64_t key_int_of(const struct llm_keys *k, const char *name, int64_t layer, int64_t otherwise);
/* An array of bools or integers with one entry per layer; false: the key is no such array. */
bool key_is_array(const struct llm_keys *k, const char *name);

bool has_tensor(const struct llm_keys *k, const char *name);
/* "blk.LAYER.name" */
bool has_layer_tensor(const struct llm_keys *k, int64_t layer, const char *name);

#endif
