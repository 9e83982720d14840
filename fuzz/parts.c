/* parts.c: fuzzes tensors in several files: an index of safetensors, where the bytes begin like
 * JSON, and else the first part of a GGUF file in two. What they lead to is good and lies beside
 * them. */
#include <fcntl.h>
#include <sys/stat.h>

#include "targets.h"
#include "weights.h"

static char folder[48];

static const char *in_folder(const char *name, char path[96])
{
    snprintf(path, 96, "%s/%s", folder, name);
    return path;
}

static void remove_folder(void)
{
    static const char *const names[] = {"a", "b", "index.json", "m-00001-of-00002.gguf",
                                        "m-00002-of-00002.gguf"};
    char path[96];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(in_folder(names[i], path));
    rmdir(folder);
}

/* One tensor of four floats, by this name, in a file of this kind. */
static void write_part(rlx_context *ctx, rlx_file_kind kind, const char *file, const char *tensor)
{
    static const float numbers[4] = {1, 2, 3, 4};
    static const uint16_t no = 1, count = 2;
    const rlx_meta meta[] = {{rlx_cstr("split.no"), RLX_META_u16, false, 1, &no},
                             {rlx_cstr("split.count"), RLX_META_u16, false, 1, &count}};
    const rlx_weight one = {
        .name = rlx_cstr(tensor), .type = RLX_WEIGHT_F32, .rank = 1, .dim = {4}, .bytes = 16};
    const rlx_weights_content content = {RLX_SIZED(rlx_weights_content), kind, &one, 1, meta,
                                         kind == RLX_FILE_gguf ? 2 : 0,  0};
    rlx_weights_writer *out = NULL;
    char path[96];
    uint64_t left;
    size_t i;

    need(rlx_weights_begin(ctx, in_folder(file, path), &content, &out, NULL) == RLX_OK);
    while (rlx_weights_next(out, &i, &left))
        need(rlx_weights_write(out, numbers, (size_t)left, NULL) == RLX_OK);
    need(rlx_weights_finish(out, NULL) == RLX_OK);
}

static void make_folder(rlx_context *ctx)
{
    snprintf(folder, sizeof folder, "/dev/shm/rlx-fuzz-%d.d", (int)getpid());
    need(mkdir(folder, 0700) == 0 && atexit(remove_folder) == 0);
    write_part(ctx, RLX_FILE_safetensors, "a", "x");
    write_part(ctx, RLX_FILE_safetensors, "b", "y");
    write_part(ctx, RLX_FILE_gguf, "m-00002-of-00002.gguf", "y");
}

void fuzz_parts(const uint8_t *data, size_t size)
{
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .threads = 1};
    const rlx_load_desc load = {RLX_SIZED(rlx_load_desc), .read_files = true};
    rlx_context *ctx = NULL;
    rlx_weights *w = NULL;
    rlx_error err = {.status = RLX_OK};
    char path[96];

    if (access("/dev/shm", W_OK) != 0 ||
        rlx_context_create(RLX_VERSION, &desc, &ctx, &err) != RLX_OK)
        return;
    if (!folder[0])
        make_folder(ctx);
    in_folder(size && data[0] == '{' ? "index.json" : "m-00001-of-00002.gguf", path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    need(fd >= 0 && (!size || write(fd, data, size) == (ssize_t)size));
    close(fd);
    if (rlx_weights_open(ctx, path, &load, &w, &err) == RLX_OK) {
        look_at_all(w);
        rlx_weights_close(w);
    } else {
        need(err.status != RLX_OK && err.message[0] && !w);
    }
    rlx_context_destroy(ctx);
}
