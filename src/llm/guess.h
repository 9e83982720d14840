/* guess.h: what may come next, judged by what came before. */
#ifndef LLM_GUESS_H
#define LLM_GUESS_H

#include <stddef.h>
#include <stdint.h>

/* Up to `most` tokens that may follow id[count]: those that followed the last place at which the
 * text was as it is at its end. Returns how many; 0: there is no such place. */
size_t llm_guess(const int32_t *id, size_t count, size_t most, int32_t *out);

#endif
