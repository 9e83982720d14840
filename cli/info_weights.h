/* info_weights.h: `rlx info` on files that hold tensors and no graph. */
#ifndef CLI_INFO_WEIGHTS_H
#define CLI_INFO_WEIGHTS_H

#include "cli.h"
#include "rlx/weights.h"

bool is_weights_file(rlx_file_kind kind);
/* Metadata, tensors and their sizes: tables, or one JSON object. */
int info_weights(struct cli *c, const char *path, bool json);

/* A value as text, at most `most` elements of an array; for tables and for messages. */
void print_meta_value(FILE *out, const rlx_meta *m, size_t most, bool json);

#endif
