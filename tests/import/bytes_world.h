/* bytes_world.h: files of tensors built byte by byte, for the tests of their readers. */
#ifndef TESTS_IMPORT_BYTES_WORLD_H
#define TESTS_IMPORT_BYTES_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../test.h"
#include "base/str.h"
#include "import/weight_file.h"

struct made {
    uint8_t at[1 << 17];
    size_t len;
    size_t width; /* GGUF: bytes of a length */
};

static inline void put_bytes(struct made *m, const void *bytes, size_t len)
{
    if (len && m->len + len <= sizeof m->at)
        memcpy(m->at + m->len, bytes, len);
    m->len += len;
}

static inline void put(struct made *m, uint64_t v, size_t width)
{
    uint8_t bytes[8];

    for (size_t i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(v >> (8 * i));
    put_bytes(m, bytes, width);
}

static inline void put_text(struct made *m, const char *text)
{
    put_bytes(m, text, strlen(text));
}

static inline void put_zeros(struct made *m, size_t n)
{
    while (n--)
        put(m, 0, 1);
}

struct outcome {
    rlx_status status;
    struct diag diag;
    struct weights w;
    uint8_t *copy; /* exactly as large as the file, so that a read past its end shows */
};

static inline struct outcome read_bytes(const uint8_t *bytes, size_t len)
{
    struct outcome o = {.copy = malloc(len ? len : 1)};

    if (len)
        memcpy(o.copy, bytes, len);
    diag_init(&o.diag, "load");
    weights_init(&o.w, mem_default());
    o.status = weights_read(&o.w, o.copy, len, STR("array"), &o.diag);
    return o;
}

static inline void outcome_free(struct outcome *o)
{
    weights_free(&o->w);
    free(o->copy);
}

static inline void check_refused(struct test *t, int line, const struct made *m, rlx_status status,
                                 const char *part)
{
    struct outcome o = read_bytes(m->at, m->len);

    test_note(t, "line %d", line);
    test_expect(t, __FILE__, line, m->len <= sizeof m->at, "the file fits");
    test_expect_status(t, __FILE__, line, o.status, status, part);
    test_expect_error(t, __FILE__, line, status, part, &o.diag.first, part);
    test_note(t, "%s", "");
    outcome_free(&o);
}
#define expect_refused(t, m, part) check_refused(t, __LINE__, m, RLX_ERROR_FORMAT, part)

/* The file is a seed of the fuzzers: as it stands in fuzz/corpus/. $RLX_TEST_SEEDS=1 writes it
 * there first, after a change here. */
static inline void check_seed(struct test *t, const char *name, const struct made *m)
{
    const char *write = getenv("RLX_TEST_SEEDS");
    char path[128];
    size_t len = 0;

    snprintf(path, sizeof path, "fuzz/corpus/%s", name);
    const char *file = test_source(t, path);
    if (write && strcmp(write, "1") == 0)
        require(t, test_write(t, file, m->at, m->len));
    const char *bytes = test_read(t, file, &len);
    require(t, bytes != NULL);
    expect(t, len == m->len && memcmp(bytes, m->at, len) == 0);
}

/* Reads every byte of every tensor, as far as they are handed out. */
static inline rlx_status touch_all(struct outcome *o)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < o->w.tensor.len; i++) {
        const uint8_t *data;
        TRY(weights_data(&o->w, i, &data, &o->diag));
        for (uint64_t k = 0; k < o->w.tensor.at[i].bytes; k++)
            sum += data[k];
    }
    return sum == UINT32_MAX ? RLX_ERROR_INTERNAL : RLX_OK;
}

/* The file is good; cut at any byte before `needed` it is refused, and after it fine. */
static inline void check_cuts(struct test *t, const struct made *m, size_t needed)
{
    for (size_t len = 0; len <= m->len; len++) {
        struct outcome o = read_bytes(m->at, len);
        test_note(t, "cut at %zu of %zu", len, m->len);
        expect(t, (o.status == RLX_OK) == (len >= needed));
        expect(t, o.status == RLX_OK || o.diag.first.message[0]);
        outcome_free(&o);
    }
    test_note(t, "%s", "");
}

/* With any one bit of the first `len` bytes turned it is read or refused, never more than that. */
static inline void check_flips(struct test *t, const struct made *m, size_t len)
{
    struct made other = *m;
    size_t refused = 0;

    for (size_t bit = 0; bit < len * 8; bit++) {
        other.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        struct outcome o = read_bytes(other.at, other.len);
        if (o.status == RLX_OK)
            o.status = touch_all(&o);
        test_note(t, "bit %zu", bit);
        expect(t, o.status == RLX_OK || o.diag.first.message[0]);
        refused += o.status != RLX_OK;
        outcome_free(&o);
        other.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    test_note(t, "%s", "");
    expect(t, refused > len); /* most bytes matter */
}

static inline rlx_status read_once(struct test *t, const rlx_allocator *mem, void *ctx)
{
    const struct made *m = ctx;
    struct weights w;
    struct diag d;
    (void)t;

    diag_init(&d, "load");
    weights_init(&w, mem);
    rlx_status s = weights_read(&w, m->at, m->len, STR("array"), &d);
    for (size_t i = 0; i < w.tensor.len && s == RLX_OK; i++) {
        const uint8_t *unused;
        s = weights_data(&w, i, &unused, &d);
    }
    weights_free(&w);
    return s;
}

#endif
