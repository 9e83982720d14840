/* file_write.c: replacing a file in one step, so that a reader sees the old bytes or the new.
 *
 *     write folder/.rlx-0123456789abcdef, close it, rename it to folder/name
 *
 * The temporary name contains nothing of the real one, which may already be as long as a name can
 * be. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/io_error.h"
#include "base/map.h"

/* Where the bytes will end up: path, or what it points to. */
static rlx_status find_target(const char *path, char target[PATH_MAX], struct diag *d)
{
    struct stat st;
    size_t len = strlen(path);

    if (len >= PATH_MAX)
        return io_error_errno(d, "cannot write", rlx_cstr(path), ENAMETOOLONG);
    memcpy(target, path, len + 1);
    if (stat(path, &st) != 0)
        return RLX_OK; /* not there yet; if it is out of reach, creating it will say so */
    if (!S_ISREG(st.st_mode))
        return io_error(d, "cannot write", rlx_cstr(path), "not a regular file");
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && !realpath(path, target))
        return io_error_errno(d, "cannot write", rlx_cstr(path), errno);
    return RLX_OK;
}

/* Creates a new file beside the target, for writing, and names it in temp. */
static rlx_status create_temp(const char *target, enum file_access access, char temp[PATH_MAX],
                              int *fd, struct diag *d)
{
    enum { TRIES = 100 };
    const char *slash = strrchr(target, '/');
    int folder = slash ? (int)(slash - target) + 1 : 0;
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t salt = hash_mix((uint64_t)now.tv_nsec, (uint64_t)getpid());
    mode_t mode = access == FILE_PRIVATE ? 0600 : 0666;

    for (uint64_t i = 0; i < TRIES; i++) {
        int len =
            snprintf(temp, PATH_MAX, "%.*s.rlx-%016" PRIx64, folder, target, hash_mix(salt, i));
        errno = ENAMETOOLONG;
        *fd = len < PATH_MAX ? open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode) : -1;
        if (*fd >= 0)
            return RLX_OK;
        if (errno != EEXIST)
            break;
    }
    return io_error_errno(d, "cannot write", rlx_cstr(target), errno);
}

/* 0, or the errno of what failed. */
static int write_all(int fd, const char *data, size_t size)
{
    while (size) {
        size_t most = (size_t)1 << 30; /* some systems refuse more in one call */
        ssize_t n = write(fd, data, size < most ? size : most);
        if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0) {
            data += n;
            size -= (size_t)n;
        }
    }
    return 0;
}

static rlx_status give_up(struct file_writer *w, int err, struct diag *d)
{
    rlx_status s = io_error_errno(d, "cannot write", rlx_cstr(w->target), err);

    file_abandon(w);
    return s;
}

rlx_status file_begin(struct file_writer *w, const char *path, enum file_access access,
                      struct diag *d)
{
    _Static_assert(sizeof w->target >= PATH_MAX && sizeof w->temp >= PATH_MAX, "a path fits");
    w->open = false;
    w->durable = false;
    w->size = 0;
    TRY(find_target(path, w->target, d));
    TRY(create_temp(w->target, access, w->temp, &w->fd, d));
    w->open = true;
    return RLX_OK;
}

rlx_status file_add(struct file_writer *w, const void *data, size_t size, struct diag *d)
{
    int err = write_all(w->fd, data, size);

    w->size += size;
    return err ? give_up(w, err, d) : RLX_OK;
}

rlx_status file_patch(struct file_writer *w, uint64_t at, const void *data, size_t size,
                      struct diag *d)
{
    int err = lseek(w->fd, (off_t)at, SEEK_SET) < 0 ? errno : write_all(w->fd, data, size);

    if (!err && lseek(w->fd, (off_t)w->size, SEEK_SET) < 0)
        err = errno;
    return err ? give_up(w, err, d) : RLX_OK;
}

/* The new name reaches the disk with its folder. Some file systems cannot be asked for that; the
 * file itself is there already, so that this is no failure. */
static void sync_folder(const char *target)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(target, '/');
    int len = slash ? snprintf(folder, sizeof folder, "%.*s", (int)(slash - target) + 1, target)
                    : snprintf(folder, sizeof folder, ".");
    int fd = len > 0 && (size_t)len < sizeof folder
                 ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                 : -1;

    if (fd < 0)
        return;
    (void)fsync(fd);
    close(fd);
}

rlx_status file_commit(struct file_writer *w, struct diag *d)
{
    int err = w->durable && fsync(w->fd) != 0 ? errno : 0;

    /* A network file system may find out only now that it has no room. */
    if (close(w->fd) != 0 && !err)
        err = errno;
    w->fd = -1;
    if (!err && rename(w->temp, w->target) != 0)
        err = errno;
    if (err)
        return give_up(w, err, d);
    w->open = false;
    if (w->durable)
        sync_folder(w->target);
    return RLX_OK;
}

void file_abandon(struct file_writer *w)
{
    if (!w->open)
        return;
    if (w->fd >= 0)
        close(w->fd);
    unlink(w->temp);
    w->open = false;
}

static rlx_status write_whole(const char *path, enum file_access access, const void *data,
                              size_t size, struct diag *d)
{
    struct file_writer w;

    TRY(file_begin(&w, path, access, d));
    TRY(file_add(&w, data, size, d));
    return file_commit(&w, d);
}

rlx_status file_write(const char *path, const void *data, size_t size, struct diag *d)
{
    return write_whole(path, FILE_FOR_ALL, data, size, d);
}

rlx_status file_write_private(const char *path, const void *data, size_t size, struct diag *d)
{
    return write_whole(path, FILE_PRIVATE, data, size, d);
}
