/* copy_weights.c: see copy_weights.h. A tensor that keeps its type is copied from the map; others
 * are converted by way of f32, a few thousand rows at a time, so that memory does not grow with
 * their size. */
#include "copy_weights.h"

#include <stdlib.h>
#include <string.h>

uint64_t weight_elements(const rlx_weight *t)
{
    uint64_t n = 1;

    for (int32_t i = 0; i < t->rank; i++)
        n *= (uint64_t)t->dim[i];
    return n;
}

const char *weight_type_text(rlx_weight_type t)
{
    rlx_weight_type_info info = {RLX_SIZED(rlx_weight_type_info), .name = "?"};

    rlx_weight_type_describe(t, &info, NULL);
    return info.name;
}

static int no_memory(struct copy *x)
{
    fprintf(stderr, "rlx %s: out of memory\n", x->c->command->name);
    return EXIT_FAILED;
}

/* ---- what is copied ---- */

int copy_open(struct copy *x, struct cli *c, const char *from, const char *to)
{
    rlx_error err;

    *x = (struct copy){.c = c, .from = from, .to = to};
    int code = cli_context(c);
    if (code != EXIT_DONE)
        return code;
    if (rlx_weights_open(c->ctx, from, &c->load, &x->in, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot read", from);
    x->info = (rlx_weights_info){RLX_SIZED(rlx_weights_info)};
    rlx_weights_describe(x->in, &x->info, NULL);
    x->tensor = calloc(x->info.tensor_count + 1, sizeof *x->tensor);
    x->meta = calloc(x->info.meta_count + 1, sizeof *x->meta);
    if (!x->tensor || !x->meta)
        return no_memory(x);
    for (size_t i = 0; i < x->info.tensor_count; i++)
        rlx_weights_at(x->in, i, &x->tensor[i]);
    while (rlx_weights_meta_at(x->in, x->meta_count, &x->meta[x->meta_count]))
        x->meta_count++;
    return EXIT_DONE;
}

void copy_close(struct copy *x)
{
    for (struct made *m = x->made, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    free(x->tensor);
    free(x->meta);
    rlx_weights_close(x->in);
}

rlx_str *copy_string(struct copy *x, const char *text)
{
    size_t len = strlen(text);
    struct made *m = malloc(sizeof *m + len + 1);

    if (!m)
        return NULL;
    *m = (struct made){x->made, {(char *)(m + 1), len}};
    memcpy(m + 1, text, len + 1);
    x->made = m;
    return &m->value;
}

uint64_t copy_bytes(const struct copy *x)
{
    uint64_t all = 0;

    for (size_t i = 0; i < x->info.tensor_count; i++) {
        rlx_weight_type_info type = {RLX_SIZED(rlx_weight_type_info), .block_elems = 1};
        rlx_weight_type_describe(x->tensor[i].type, &type, NULL);
        all += weight_elements(&x->tensor[i]) / (uint64_t)type.block_elems *
               (uint64_t)type.block_bytes;
    }
    return all;
}

static bool same_key(rlx_str a, rlx_str b)
{
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

bool copy_set_meta(struct copy *x, const rlx_meta *m)
{
    for (size_t i = 0; i < x->meta_count; i++) {
        if (same_key(x->meta[i].key, m->key)) {
            x->meta[i] = *m;
            return true;
        }
    }
    rlx_meta *more = realloc(x->meta, (x->meta_count + 1) * sizeof *more);
    if (!more)
        return false;
    x->meta = more;
    x->meta[x->meta_count++] = *m;
    return true;
}

void copy_drop_meta(struct copy *x, const char *prefix)
{
    size_t kept = 0, len = strlen(prefix);

    for (size_t i = 0; i < x->meta_count; i++)
        if (x->meta[i].key.len < len || memcmp(x->meta[i].key.ptr, prefix, len) != 0)
            x->meta[kept++] = x->meta[i];
    x->meta_count = kept;
}

/* ---- tensors ---- */

/* Elements per piece: a multiple of every block. */
enum { PIECE = 1 << 20 };

static int convert_tensor(struct copy *x, rlx_weights_writer *w, size_t i, float *numbers)
{
    uint64_t count = weight_elements(&x->tensor[i]);
    rlx_error err;

    for (uint64_t done = 0; done < count; done += PIECE) {
        uint64_t n = count - done < PIECE ? count - done : PIECE;
        if (rlx_weights_read_f32(x->in, i, done, n, numbers, &err) != RLX_OK)
            return cli_fail(x->c, &err, "cannot read", x->from);
        if (rlx_weights_write_f32(w, numbers, n, &err) != RLX_OK)
            return cli_fail(x->c, &err, "cannot write", x->to);
    }
    return EXIT_DONE;
}

static int copy_tensor(struct copy *x, rlx_weights_writer *w, size_t i, uint64_t bytes)
{
    const void *data;
    rlx_error err;

    if (rlx_weights_data(x->in, i, &data, &err) != RLX_OK)
        return cli_fail(x->c, &err, "cannot read", x->from);
    if (rlx_weights_write(w, data, (size_t)bytes, &err) != RLX_OK)
        return cli_fail(x->c, &err, "cannot write", x->to);
    return EXIT_DONE;
}

static int write_tensors(struct copy *x, rlx_weights_writer *w)
{
    float *numbers = malloc(PIECE * sizeof *numbers);
    uint64_t left;
    size_t i, number = 0;
    int code = numbers ? EXIT_DONE : no_memory(x);

    while (code == EXIT_DONE && rlx_weights_next(w, &i, &left)) {
        char what[64];
        rlx_weight old;
        snprintf(what, sizeof what, "%.*s", (int)x->tensor[i].name.len, x->tensor[i].name.ptr);
        cli_progress(x->c, what, number++, x->info.tensor_count);
        rlx_weights_at(x->in, i, &old);
        code = old.type == x->tensor[i].type ? copy_tensor(x, w, i, left)
                                             : convert_tensor(x, w, i, numbers);
    }
    cli_progress_end(x->c);
    free(numbers);
    return code;
}

int copy_write(struct copy *x)
{
    const rlx_weights_content content = {
        RLX_SIZED(rlx_weights_content),
        .kind = x->kind,
        .tensor = x->tensor,
        .tensor_count = x->info.tensor_count,
        .meta = x->meta,
        .meta_count = x->meta_count,
        .alignment = x->kind == RLX_FILE_gguf ? (uint32_t)x->info.alignment : 0,
    };
    rlx_weights_writer *w;
    rlx_error err;

    if (rlx_weights_begin(x->c->ctx, x->to, &content, &w, &err) != RLX_OK)
        return cli_fail(x->c, &err, "cannot write", x->to);
    int code = write_tensors(x, w);
    if (code != EXIT_DONE) {
        rlx_weights_abandon(w);
        return code;
    }
    if (rlx_weights_finish(w, &err) != RLX_OK)
        return cli_fail(x->c, &err, "cannot write", x->to);
    return EXIT_DONE;
}
