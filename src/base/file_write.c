/* file_write.c: replacing a file in one step, so that a reader sees the old bytes or the new.
 *
 *     write folder/.rlx-0123456789abcdef, close it, rename it to folder/name
 *
 * The other name has nothing of the real one in it: that may be as long as a name can be. */
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

/* Where the bytes shall end up: path, or what it points to. */
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
static rlx_status create_temp(const char *target, mode_t mode, char temp[PATH_MAX], int *fd,
                              struct diag *d)
{
    enum { TRIES = 100 };
    const char *slash = strrchr(target, '/');
    int folder = slash ? (int)(slash - target) + 1 : 0;
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t salt = hash_mix((uint64_t)now.tv_nsec, (uint64_t)getpid());

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

static rlx_status write_mode(const char *path, const void *data, size_t size, mode_t mode,
                             struct diag *d)
{
    char target[PATH_MAX], temp[PATH_MAX];
    int fd = -1;

    TRY(find_target(path, target, d));
    TRY(create_temp(target, mode, temp, &fd, d));
    int err = write_all(fd, data, size);
    if (close(fd) != 0 && !err)
        err = errno; /* a network file system may only now find that it has no room */
    if (!err && rename(temp, target) != 0)
        err = errno;
    if (err) {
        unlink(temp);
        return io_error_errno(d, "cannot write", rlx_cstr(path), err);
    }
    return RLX_OK;
}

rlx_status file_write(const char *path, const void *data, size_t size, struct diag *d)
{
    return write_mode(path, data, size, 0666, d);
}

rlx_status file_write_private(const char *path, const void *data, size_t size, struct diag *d)
{
    return write_mode(path, data, size, 0600, d);
}
