/* files.h: bytes under a path, for readers that take one. */
#ifndef FUZZ_FILES_H
#define FUZZ_FILES_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct fuzz_file {
    int fd;
    bool named;
    char path[64];
};

/* A file without a name, in memory, or, where a reader goes by its name, one that ends so. head:
 * what stands in front of the bytes. */
static inline bool fuzz_file_make(struct fuzz_file *f, const char *ending, const void *head,
                                  size_t head_size, const void *data, size_t size)
{
    f->named = ending != NULL;
    if (f->named) {
        snprintf(f->path, sizeof f->path, "/dev/shm/rlx-fuzz-%d%s", (int)getpid(), ending);
        f->fd = open(f->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    } else {
        f->fd = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(f->path, sizeof f->path, "/proc/self/fd/%d", f->fd);
    }
    return f->fd >= 0 && (!head_size || write(f->fd, head, head_size) == (ssize_t)head_size) &&
           (!size || write(f->fd, data, size) == (ssize_t)size);
}

static inline void fuzz_file_close(struct fuzz_file *f)
{
    if (f->fd < 0)
        return;
    close(f->fd);
    if (f->named)
        unlink(f->path);
}

#endif
