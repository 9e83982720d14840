/* content.h: what bytes hold, as a number: to tell whether an input changed since the last run. */
#ifndef RUN_CONTENT_H
#define RUN_CONTENT_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a over the element count and the data in words of 8 bytes, little end first. */
uint64_t content_hash(const void *data, size_t bytes, uint64_t count);
/* Another one, independent of it: both being equal by chance does not happen. */
uint64_t content_hash_2(const void *data, size_t bytes);

#endif
