/* gguf.h: what the reader and the writer of GGUF agree on; gguf.c draws the layout. */
#ifndef IMPORT_GGUF_H
#define IMPORT_GGUF_H

enum {
    GGUF_MAX_KEY = 65535, /* bytes */
    GGUF_MAX_NAME = 1023, /* of a tensor */
    GGUF_MAX_STRING = 1 << 30,
    GGUF_MAX_RANK = 4,
    GGUF_DEFAULT_ALIGN = 32,
    GGUF_MIN_ALIGN = 8,
    GGUF_MAX_ALIGN = 1 << 20,
    GGUF_ARRAY = 9, /* a type of values, beside those of rlx_meta_type */
};
#define GGUF_MAX_DIM ((int64_t)1 << 40)
#define GGUF_ALIGNMENT_KEY "general.alignment"
#define GGUF_TOKENIZER_KEYS "tokenizer." /* whose arrays hold strings of any bytes */

#endif
