/* file.h: whole files, mapped or read, and written so that a reader never sees half of one. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/diag.h"
#include "base/mem.h"

struct file {
    const uint8_t *data; /* never NULL once open */
    size_t size;
    bool mapped;
    const rlx_allocator *mem; /* of data, unless mapped */
};

/* MAP falls back to READ where the file system cannot map. A mapped file that another process
 * truncates kills the reader: READ is for files that may change. */
enum file_mode { FILE_MAP, FILE_READ };
/* Added to either, for file_open_beside: the caller trusts the names. */
#define FILE_FOLLOW 2u

/* Failures are RLX_ERROR_IO with the path and the system's words, or RLX_ERROR_MEMORY. *f is then
 * left alone. Only regular files are opened. */
rlx_status file_open(struct file *f, const char *path, enum file_mode mode,
                     const rlx_allocator *mem, struct diag *d);
/* For files that we wrote ourselves and trust to be unchanged. The file and its folder must
 * belong to this user or to root, and nobody else may write to either; the file is not a symlink.
 */
rlx_status file_open_own(struct file *f, const char *path, enum file_mode mode,
                         const rlx_allocator *mem, struct diag *d);
/* Whether its folder is one to write such a file into. */
rlx_status file_check_own_folder(const char *path, struct diag *d);
/* A file named by a file: relative to the folder of `beside`, no "..", no symlinks. The name comes
 * from a stranger; the path of `beside` is the caller's own and may hold symlinks. With FILE_FOLLOW
 * the name may be absolute, and lead through ".." and symlinks. */
rlx_status file_open_beside(struct file *f, const char *beside, rlx_str name, unsigned mode,
                            const rlx_allocator *mem, struct diag *d);
void file_close(struct file *f); /* NULL data is fine */

/* Whether these bytes lie in the map of the file. */
bool file_maps(const struct file *f, const void *data, size_t size);
/* These bytes of a map are not needed for now: their pages need not stay in memory. They are read
 * from the file again when they are next used. */
void file_forget(const void *data, size_t size);

/* Written under another name in the same folder, then renamed. If it is a symlink, the file it
 * points to is replaced; anything but a regular file is refused. */
rlx_status file_write(const char *path, const void *data, size_t size, struct diag *d);
/* The same, readable and writable by its owner alone. */
rlx_status file_write_private(const char *path, const void *data, size_t size, struct diag *d);

/* The same, piece by piece, for what is too large to build first. Nothing shows under the
 * path before file_commit. A failed call has given everything up already; file_abandon after it, or
 * after a commit, does nothing. */
struct file_writer {
    bool open;
    bool durable; /* to be set after file_begin: what is committed survives a crash */
    int fd;
    uint64_t size; /* so far */
    char target[4096], temp[4096];
};
enum file_access { FILE_FOR_ALL, FILE_PRIVATE }; /* what the umask leaves of 0666, or 0600 */
rlx_status file_begin(struct file_writer *w, const char *path, enum file_access access,
                      struct diag *d);
rlx_status file_add(struct file_writer *w, const void *data, size_t size, struct diag *d);
/* Overwrites bytes that were added before. */
rlx_status file_patch(struct file_writer *w, uint64_t at, const void *data, size_t size,
                      struct diag *d);
rlx_status file_commit(struct file_writer *w, struct diag *d);
void file_abandon(struct file_writer *w);

#endif
