/* file.c: opening regular files and holding their bytes.
 *
 * A name read from a file is walked one component at a time, each opened relative to the
 * folder before it and never through a symlink: what is checked is what is opened, and nothing
 * outside the first folder can be reached. Writing is in file_write.c. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io_error.h"
#include "base/str.h"

/* NONBLOCK, so that a pipe without a writer is refused rather than waited for. */
enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

/* ---- the bytes --------------------------------------------------------------------------- */

static rlx_status read_all(int fd, uint8_t *to, size_t size, rlx_str path, struct diag *d)
{
    size_t done = 0;

    while (done < size) {
        size_t most = (size_t)1 << 30; /* some systems refuse more in one call */
        ssize_t n = read(fd, to + done, size - done < most ? size - done : most);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return io_error_errno(d, "cannot read", path, errno);
        if (n == 0)
            return io_error(d, "cannot read", path, "it became shorter while it was read");
        done += (size_t)n;
    }
    return RLX_OK;
}

/* Fills *f from the open file, which stays the caller's to close. */
static rlx_status take_bytes(struct file *f, int fd, rlx_str path, enum file_mode mode,
                             const rlx_allocator *mem, struct diag *d)
{
    struct stat st;
    struct file now = {.data = (const uint8_t *)"", .mem = mem};

    if (fstat(fd, &st) != 0)
        return io_error_errno(d, "cannot open", path, errno);
    if (!S_ISREG(st.st_mode))
        return io_error(d, "cannot open", path,
                        S_ISDIR(st.st_mode) ? "it is a folder" : "not a regular file");
    if (st.st_size < 0 || (uintmax_t)st.st_size > SIZE_MAX / 2)
        return io_error_errno(d, "cannot open", path, EFBIG);
    now.size = (size_t)st.st_size;

    if (mode == FILE_MAP && now.size) {
        void *at = mmap(NULL, now.size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at != MAP_FAILED) {
            now.data = at;
            now.mapped = true;
        }
    }
    if (!now.mapped && now.size) {
        uint8_t *at = mem_alloc(mem, now.size);
        if (!at)
            return diag_no_memory(d, now.size);
        rlx_status s = read_all(fd, at, now.size, path, d);
        if (s != RLX_OK) {
            mem_free(mem, at, now.size);
            return s;
        }
        now.data = at;
    }
    *f = now;
    return RLX_OK;
}

void file_close(struct file *f)
{
    if (f->mapped)
        munmap((void *)f->data, f->size);
    else if (f->size)
        mem_free(f->mem, (void *)f->data, f->size);
    *f = (struct file){.data = NULL};
}

bool file_maps(const struct file *f, const void *data, size_t size)
{
    uintptr_t at = (uintptr_t)data, from = (uintptr_t)f->data;

    return f->mapped && at >= from && at - from <= f->size && size <= f->size - (at - from);
}

/* Pages that others need a part of are dropped too; they come back the same way. */
void file_forget(const void *data, size_t size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)data / page * page;

    if (size)
        (void)madvise((void *)from, (uintptr_t)data + size - from, MADV_DONTNEED);
}

rlx_status file_open(struct file *f, const char *path, enum file_mode mode,
                     const rlx_allocator *mem, struct diag *d)
{
    int fd = open(path, OPEN_FLAGS);
    if (fd < 0)
        return io_error_errno(d, "cannot open", rlx_cstr(path), errno);

    rlx_status s = take_bytes(f, fd, rlx_cstr(path), mode, mem, d);
    close(fd);
    return s;
}

/* The folder that holds `beside`, opened only to walk on from. */
static rlx_status open_folder_of(const char *beside, int *out, struct diag *d)
{
    const char *slash = strrchr(beside, '/');
    char folder[PATH_MAX] = ".";

    if (slash) {
        size_t len = slash == beside ? 1 : (size_t)(slash - beside);
        if (len >= sizeof folder)
            return io_error_errno(d, "cannot open the folder of", rlx_cstr(beside), ENAMETOOLONG);
        memcpy(folder, beside, len);
        folder[len] = 0;
    }
    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return io_error_errno(d, "cannot open", rlx_cstr(folder), errno);
    *out = fd;
    return RLX_OK;
}

/* ---- files of our own -------------------------------------------------------------------- */

static rlx_status check_own(int fd, rlx_str path, struct diag *d)
{
    struct stat st;
    const char *why = NULL;

    if (fstat(fd, &st) != 0)
        return io_error_errno(d, "cannot open", path, errno);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        why = "it belongs to another user";
    else if (st.st_mode & (S_IWGRP | S_IWOTH))
        why = "other users may write to it";
    return why ? io_error(d, "cannot trust", path, why) : RLX_OK;
}

/* The folder of the path, opened and found to be our own. */
static rlx_status open_own_folder(const char *path, int *out, struct diag *d)
{
    const char *slash = strrchr(path, '/');
    rlx_str folder = slash ? (rlx_str){path, (size_t)(slash - path)} : STR(".");

    TRY(open_folder_of(path, out, d));
    rlx_status s = check_own(*out, folder, d);
    if (s != RLX_OK)
        close(*out);
    return s;
}

rlx_status file_check_own_folder(const char *path, struct diag *d)
{
    int fd;

    TRY(open_own_folder(path, &fd, d));
    close(fd);
    return RLX_OK;
}

rlx_status file_open_own(struct file *f, const char *path, enum file_mode mode,
                         const rlx_allocator *mem, struct diag *d)
{
    const char *slash = strrchr(path, '/');
    int folder;

    TRY(open_own_folder(path, &folder, d));
    int fd = openat(folder, slash ? slash + 1 : path, OPEN_FLAGS | O_NOFOLLOW);
    int err = errno;
    close(folder);
    if (fd < 0)
        return io_error_errno(d, "cannot open", rlx_cstr(path), err);
    rlx_status s = check_own(fd, rlx_cstr(path), d);
    if (s == RLX_OK)
        s = take_bytes(f, fd, rlx_cstr(path), mode, mem, d);
    close(fd);
    return s;
}

/* ---- a file named by a file -------------------------------------------------------------- */

/* The next component of the name, terminated; at the end an empty one. "." counts as nothing. */
static rlx_status next_part(rlx_str name, size_t *at, char part[NAME_MAX + 1], struct diag *d)
{
    size_t len = 0;

    do {
        while (*at < name.len && name.ptr[*at] == '/')
            ++*at;
        const char *from = name.ptr + *at;
        for (len = 0; *at + len < name.len && from[len] != '/'; len++)
            continue;
        if (len > NAME_MAX)
            return io_error_errno(d, "cannot open", name, ENAMETOOLONG);
        memcpy(part, from, len);
        part[len] = 0;
        *at += len;
    } while (strcmp(part, ".") == 0);

    if (strcmp(part, "..") == 0)
        return io_error(d, "cannot open", name, "a file may not name another through \"..\"");
    return RLX_OK;
}

static rlx_status check_name(rlx_str name, bool trusted, struct diag *d)
{
    if (name.len == 0)
        return io_error(d, "cannot open", STR("a file"), "its name is empty");
    if (memchr(name.ptr, 0, name.len))
        return io_error(d, "cannot open", name, "the name holds a NUL byte");
    if (name.ptr[0] == '/' && !trusted)
        return io_error(d, "cannot open", name, "a file may not name another by an absolute path");
    if (name.ptr[name.len - 1] == '/')
        return io_error(d, "cannot open", name, "the name is that of a folder");
    return RLX_OK;
}

/* Opens `part` in *fd and puts it in place of *fd. */
static rlx_status step_into(int *fd, const char *part, bool last, rlx_str name, struct diag *d)
{
    struct stat st;
    int flags = last ? OPEN_FLAGS : O_PATH | O_DIRECTORY | O_CLOEXEC;
    int next = openat(*fd, part, flags | O_NOFOLLOW);

    if (next < 0) {
        int err = errno;
        if (fstatat(*fd, part, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
            return io_error(d, "cannot open", name,
                            "a file may not name another through a symbolic link");
        return io_error_errno(d, "cannot open", name, err);
    }
    close(*fd);
    *fd = next;
    return RLX_OK;
}

static rlx_status walk(int *fd, rlx_str name, struct diag *d)
{
    char part[NAME_MAX + 1], after[NAME_MAX + 1];
    size_t at = 0;

    TRY(next_part(name, &at, part, d));
    do {
        TRY(next_part(name, &at, after, d));
        TRY(step_into(fd, part[0] ? part : ".", after[0] == 0, name, d));
        memcpy(part, after, sizeof part);
    } while (part[0]);
    return RLX_OK;
}

/* Opens the name as the system understands it, starting at *fd, wherever it leads. */
static rlx_status follow(int *fd, rlx_str name, struct diag *d)
{
    char path[PATH_MAX];

    if (name.len >= sizeof path)
        return io_error_errno(d, "cannot open", name, ENAMETOOLONG);
    memcpy(path, name.ptr, name.len);
    path[name.len] = 0;
    int next = openat(*fd, path, OPEN_FLAGS);
    if (next < 0)
        return io_error_errno(d, "cannot open", name, errno);
    close(*fd);
    *fd = next;
    return RLX_OK;
}

rlx_status file_open_beside(struct file *f, const char *beside, rlx_str name, unsigned mode,
                            const rlx_allocator *mem, struct diag *d)
{
    bool trusted = (mode & FILE_FOLLOW) != 0;
    int fd = -1;

    TRY(check_name(name, trusted, d));
    TRY(open_folder_of(beside, &fd, d));
    rlx_status s = trusted ? follow(&fd, name, d) : walk(&fd, name, d);
    if (s == RLX_OK)
        s = take_bytes(f, fd, name, (enum file_mode)(mode & ~FILE_FOLLOW), mem, d);
    close(fd);
    return s;
}
