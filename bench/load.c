/* load.c: how long files take to open: an ONNX model of 2,000 nodes, and a gigabyte of weights as
 * GGUF and as safetensors, with what memory they take. The limits are 0.2 s, 0.3 s and 50 MB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rlx/weights.h"
#include "support/job.h"

enum { NODES = 2000, OPENS = 5, TENSORS = 256, ROWS = 1024, COLUMNS = 1024 };
#define WEIGHT_BYTES ((size_t)ROWS * COLUMNS * 4)

static char path[4096];

static void path_make(const char *ending)
{
    const char *folder = getenv("TMPDIR");

    snprintf(path, sizeof path, "%s/rlx-bench-%d.%s", folder ? folder : "/tmp", (int)getpid(),
             ending);
}

/* ---- an ONNX model ---- */

struct message {
    char at[512];
    size_t len;
};

static void put_varint(struct message *m, uint64_t v)
{
    for (; v > 0x7f; v >>= 7)
        m->at[m->len++] = (char)(v | 0x80);
    m->at[m->len++] = (char)v;
}

static void put_bytes(struct message *m, unsigned field, const char *bytes, size_t len)
{
    put_varint(m, field << 3 | 2);
    put_varint(m, len);
    memcpy(m->at + m->len, bytes, len);
    m->len += len;
}

static void put_number(struct message *m, unsigned field, uint64_t v)
{
    put_varint(m, field << 3);
    put_varint(m, v);
}

/* A field of the graph: its bytes go to the file, or are counted where there is none. */
static void put_field(FILE *f, size_t *bytes, unsigned field, const struct message *m)
{
    struct message head = {.len = 0};

    put_varint(&head, field << 3 | 2);
    put_varint(&head, m->len);
    *bytes += head.len + m->len;
    if (f && (fwrite(head.at, 1, head.len, f) != head.len || fwrite(m->at, 1, m->len, f) != m->len))
        give_up("%s: cannot be written", path);
}

static struct message value_of(const char *name)
{
    struct message v = {.len = 0}, type = {.len = 0}, tensor = {.len = 0}, shape = {.len = 0};

    for (int i = 0; i < 2; i++) {
        struct message dim = {.len = 0};
        put_bytes(&dim, 2, i ? "width" : "batch", 5);
        put_bytes(&shape, 1, dim.at, dim.len);
    }
    put_number(&tensor, 1, 1);
    put_bytes(&tensor, 2, shape.at, shape.len);
    put_bytes(&type, 1, tensor.at, tensor.len);
    put_bytes(&v, 1, name, strlen(name));
    put_bytes(&v, 2, type.at, type.len);
    return v;
}

/* Layers of a sum, an activation, a product and a norm, on a matrix of symbolic sizes. */
static size_t put_graph(FILE *f)
{
    static const char *const ops[] = {"Add", "Sigmoid", "Mul", "Softmax"};
    size_t bytes = 0;
    char name[32], before[32] = "x";

    for (int i = 0; i < NODES; i++) {
        struct message node = {.len = 0};
        const char *op = ops[i % 4];
        snprintf(name, sizeof name, i == NODES - 1 ? "y" : "layer.%d", i);
        put_bytes(&node, 1, before, strlen(before));
        if (i % 2 == 0)
            put_bytes(&node, 1, "x", 1);
        put_bytes(&node, 2, name, strlen(name));
        put_bytes(&node, 4, op, strlen(op));
        put_field(f, &bytes, 1, &node);
        snprintf(before, sizeof before, "%s", name);
    }
    struct message in = value_of("x"), out = value_of("y");
    put_field(f, &bytes, 11, &in);
    put_field(f, &bytes, 12, &out);
    return bytes;
}

static void write_onnx(void)
{
    struct message head = {.len = 0}, opset = {.len = 0};
    FILE *f = fopen(path, "wb");
    size_t bytes = 0;

    put_number(&opset, 2, 17);
    put_number(&head, 1, 8);
    put_bytes(&head, 8, opset.at, opset.len);
    put_varint(&head, 7 << 3 | 2);
    put_varint(&head, put_graph(NULL));
    if (!f || fwrite(head.at, 1, head.len, f) != head.len)
        give_up("%s: cannot be written", path);
    bytes = put_graph(f);
    if (fclose(f) != 0 || bytes == 0)
        give_up("%s: cannot be written", path);
}

static void time_onnx(rlx_context *ctx)
{
    double best = 1e9;
    rlx_error err;

    path_make("onnx");
    write_onnx();
    for (int i = 0; i < OPENS; i++) {
        rlx_model *m;
        double start = now();
        check(rlx_model_load(ctx, path, NULL, &m, &err), &err);
        double took = now() - start;
        best = took < best ? took : best;
        rlx_model_destroy(m);
    }
    unlink(path);
    compare_limit("importing an ONNX model of 2,000 nodes", 1, "ms", best * 1e3, 200, "limit");
}

/* ---- a gigabyte of weights ---- */

static void put_u64(FILE *f, uint64_t v, size_t width)
{
    for (size_t i = 0; i < width; i++)
        fputc((int)(v >> (8 * i) & 255), f);
}

static void put_gguf_header(FILE *f)
{
    fputs("GGUF", f);
    put_u64(f, 3, 4);
    put_u64(f, TENSORS, 8);
    put_u64(f, 0, 8);
    for (uint64_t i = 0; i < TENSORS; i++) {
        char name[32];
        int len = snprintf(name, sizeof name, "layers.%llu.weight", (unsigned long long)i);
        put_u64(f, (uint64_t)len, 8);
        fputs(name, f);
        put_u64(f, 2, 4);
        put_u64(f, COLUMNS, 8);
        put_u64(f, ROWS, 8);
        put_u64(f, 0, 4); /* f32 */
        put_u64(f, i * WEIGHT_BYTES, 8);
    }
    while (ftell(f) % 32)
        fputc(0, f);
}

static void put_safetensors_header(FILE *f)
{
    put_u64(f, 0, 8);
    fputs("{", f);
    for (size_t i = 0; i < TENSORS; i++)
        fprintf(f,
                "%s\"layers.%zu.weight\":{\"dtype\":\"F32\",\"shape\":[%d,%d],"
                "\"data_offsets\":[%zu,%zu]}",
                i ? "," : "", i, ROWS, COLUMNS, i * WEIGHT_BYTES, (i + 1) * WEIGHT_BYTES);
    fputs("}", f);
    long end = ftell(f);
    rewind(f);
    put_u64(f, (uint64_t)end - 8, 8);
    fseek(f, end, SEEK_SET);
}

/* The tensors are a hole in the file: opening does not look at them, and a disk need not either. */
static void write_weights(void (*put_header)(FILE *))
{
    FILE *f = fopen(path, "wb");

    if (!f)
        give_up("%s: cannot be written", path);
    put_header(f);
    off_t bytes = (off_t)ftell(f) + (off_t)(TENSORS * WEIGHT_BYTES);
    if (fflush(f) != 0 || ftruncate(fileno(f), bytes) != 0 || fclose(f) != 0)
        give_up("%s: cannot be written", path);
}

/* Bytes that a context has taken, and the most it had at once. */
struct taken {
    size_t now, most;
};

static void *take(void *user, void *ptr, size_t old_size, size_t new_size)
{
    struct taken *t = user;

    t->now += new_size - old_size;
    t->most = t->now > t->most ? t->now : t->most;
    if (new_size)
        return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

static void time_weights(const char *ending, void (*put_header)(FILE *))
{
    struct taken taken = {0, 0};
    const rlx_allocator memory = {take, &taken};
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = &memory, .threads = 1};
    double best = 1e9;
    char name[96];
    rlx_context *ctx;
    rlx_error err;

    path_make(ending);
    write_weights(put_header);
    check(rlx_context_create(RLX_VERSION, &desc, &ctx, &err), &err);
    for (int i = 0; i < OPENS; i++) {
        rlx_weights *w;
        double start = now();
        check(rlx_weights_open(ctx, path, NULL, &w, &err), &err);
        double took = now() - start;
        best = took < best ? took : best;
        rlx_weights_close(w);
    }
    rlx_context_destroy(ctx);
    unlink(path);
    snprintf(name, sizeof name, "opening a %s file of 1 GB", ending);
    compare_limit(name, 1, "ms", best * 1e3, 300, "limit");
    snprintf(name, sizeof name, "memory for a %s file of 1 GB", ending);
    compare_limit(name, 1, "MB", (double)taken.most / 1e6, 50, "limit");
}

int main(int argc, char **argv)
{
    rlx_context *ctx;
    rlx_error err;

    (void)options_read(argc, argv); /* all it measures is on one thread */
    check(rlx_context_create(RLX_VERSION,
                             &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .threads = 1}, &ctx,
                             &err),
          &err);
    time_onnx(ctx);
    time_weights("gguf", put_gguf_header);
    time_weights("safetensors", put_safetensors_header);
    rlx_context_destroy(ctx);
    return 0;
}
