/* file_test.c: files read whole, files named by files, and files replaced in one step. */
#include "base/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "test.h"

/* ---- opening ----------------------------------------------------------------------------- */

TEST(file, both_modes_give_the_bytes)
{
    const char *path = test_temp(t, "some");
    static unsigned char bytes[100001];
    struct test_alloc count = {0};
    rlx_allocator mem = test_allocator(&count);

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7);
    require(t, test_write(t, path, bytes, sizeof bytes));
    for (int mode = FILE_MAP; mode <= FILE_READ; mode++) {
        struct diag d;
        struct file f;
        diag_init(&d, "test");
        require_ok(t, file_open(&f, path, (enum file_mode)mode, &mem, &d));
        expect_eq(t, f.size, sizeof bytes);
        expect_eq(t, f.mapped, mode == FILE_MAP);
        expect_bytes(t, f.data, bytes, sizeof bytes);
        file_close(&f);
        expect(t, f.data == NULL);
        file_close(&f);
    }
    expect_no_leak(t, &count);
}

TEST(file, an_empty_file_has_data_and_no_bytes)
{
    const char *path = test_temp(t, "empty");

    require(t, test_write(t, path, "", 0));
    for (int mode = FILE_MAP; mode <= FILE_READ; mode++) {
        struct file f;
        require_ok(t, file_open(&f, path, (enum file_mode)mode, mem_default(), NULL));
        expect(t, f.data != NULL && f.size == 0);
        file_close(&f);
    }
}

TEST(file, missing_folder_and_pipe_are_refused)
{
    struct diag d;
    struct file f = {.size = 77};
    const char *missing = test_temp(t, "missing"), *pipe_path = test_temp(t, "pipe");

    diag_init(&d, "test");
    expect_status(t, file_open(&f, missing, FILE_MAP, mem_default(), &d), RLX_ERROR_IO);
    expect_contains(t, d.first.message, missing);
    expect_contains(t, d.first.message, "No such file");

    const char *folder = test_temp(t, "folder");
    require(t, mkdir(folder, 0700) == 0);
    diag_init(&d, "test");
    expect_status(t, file_open(&f, folder, FILE_READ, mem_default(), &d), RLX_ERROR_IO);
    expect_error(t, RLX_ERROR_IO, "it is a folder", &d.first);

    require(t, mkfifo(pipe_path, 0600) == 0);
    diag_init(&d, "test");
    expect_status(t, file_open(&f, pipe_path, FILE_READ, mem_default(), &d), RLX_ERROR_IO);
    expect_error(t, RLX_ERROR_IO, "not a regular file", &d.first);
    expect_eq(t, f.size, 77); /* left alone */
}

static void expect_own(struct test *t, const char *path, const char *why)
{
    struct diag d;
    struct file f;

    diag_init(&d, "test");
    rlx_status s = file_open_own(&f, path, FILE_READ, mem_default(), &d);
    if (why) {
        expect_error(t, RLX_ERROR_IO, why, &d.first);
    } else if (expect_ok(t, s)) {
        expect_eq(t, f.size, 4);
        file_close(&f);
    }
}

TEST(file, own_files_are_those_that_nobody_else_can_write)
{
    const char *folder = test_temp(t, "folder");
    char path[4096], link[4096];
    struct diag d;

    diag_init(&d, "test");
    snprintf(path, sizeof path, "%s/mine", folder);
    snprintf(link, sizeof link, "%s/link", folder);
    require(t, mkdir(folder, 0700) == 0);
    require(t, test_write(t, path, "mine", 4) && chmod(path, 0644) == 0);
    expect_own(t, path, NULL);
    expect_ok(t, file_check_own_folder(path, &d));
    require(t, chmod(path, 0664) == 0);
    expect_own(t, path, "other users may write to it");
    require(t, chmod(path, 0600) == 0 && chmod(folder, 01777) == 0);
    expect_own(t, path, "other users may write to it");
    expect_status(t, file_check_own_folder(path, &d), RLX_ERROR_IO);
    require(t, chmod(folder, 0700) == 0 && symlink("mine", link) == 0);
    expect_own(t, link, "cannot open");
    if (geteuid() == 0) { /* only root can give files away */
        require(t, chown(path, 12345, (gid_t)-1) == 0);
        expect_own(t, path, "belongs to another user");
        require(t, chown(path, 0, (gid_t)-1) == 0 && chown(folder, 12345, (gid_t)-1) == 0);
        expect_own(t, path, "belongs to another user");
        require(t, chown(folder, 0, (gid_t)-1) == 0);
    }
    expect_own(t, path, NULL);
    unlink(link);
    unlink(path);
    rmdir(folder);
}

TEST(file, a_very_long_path_keeps_its_reason)
{
    static char path[3000];
    struct diag d;
    struct file f;

    for (size_t i = 0; i + 1 < sizeof path; i++)
        path[i] = i % 50 == 0 ? '/' : 'x';
    memcpy(path + sizeof path - 5, "/end", 4);
    diag_init(&d, "test");
    expect_status(t, file_open(&f, path, FILE_READ, mem_default(), &d), RLX_ERROR_IO);
    expect_contains(t, d.first.message, "cannot open ...xxx");
    expect_contains(t, d.first.message, "/end: No such file");
}

static rlx_status open_once(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct diag d;
    struct file f;
    (void)t;

    diag_init(&d, "test");
    TRY(file_open(&f, ctx, FILE_READ, mem, &d));
    file_close(&f);
    return RLX_OK;
}

TEST(file, survives_no_memory)
{
    const char *path = test_temp(t, "file");
    char copy[4096];

    require(t, test_write(t, path, "abc", 3));
    snprintf(copy, sizeof copy, "%s", path);
    expect_survives_no_memory(t, open_once, copy);
}

/* ---- files named by files ---------------------------------------------------------------- */

/* root/secret, and in root/in files, a folder, and links of each hostile kind. All names go through
 * test_temp, the folder before what is in it: so all of it is removed. Answers root/in/model. */
static const char *plant(struct test *t)
{
    static const char *const folders[] = {"root", "root/in", "root/in/sub"};
    static const char *const files[][2] = {
        {"root/secret", "secret"},    {"root/in/model", "model"}, {"root/in/part", "part"},
        {"root/in/sub/deep", "deep"}, {"root/in/..odd", "odd"},
    };
    static const char *const links[][2] = {
        {"root/in/link", "part"}, {"root/in/out", "../secret"},    {"root/in/up", ".."},
        {"root/in/side", "sub"},  {"root/in/dangling", "nowhere"}, {"root/in/loop", "loop"},
    };
    bool ok = true;

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        ok &= mkdir(test_temp(t, folders[i]), 0700) == 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        ok &= test_write(t, test_temp(t, files[i][0]), files[i][1], strlen(files[i][1]));
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        ok &= symlink(links[i][1], test_temp(t, links[i][0])) == 0;
    ok &= mkfifo(test_temp(t, "root/in/pipe"), 0600) == 0;
    return expect(t, ok) ? test_temp(t, "root/in/model") : NULL;
}

TEST(file, beside_opens_what_is_beside)
{
    static const char *const rows[][2] = {
        {"part", "part"},      {"./part", "part"},     {"sub/deep", "deep"},
        {"sub//deep", "deep"}, {"sub/./deep", "deep"}, {"..odd", "odd"},
    };
    const char *model = plant(t);
    require(t, model != NULL);

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int mode = FILE_MAP; mode <= FILE_READ; mode++) {
            struct diag d;
            struct file f;
            test_note(t, "\"%s\"", rows[i][0]);
            diag_init(&d, "test");
            require_ok(t, file_open_beside(&f, model, rlx_cstr(rows[i][0]), (enum file_mode)mode,
                                           mem_default(), &d));
            expect(t, str_eq((rlx_str){(const char *)f.data, f.size}, rlx_cstr(rows[i][1])));
            file_close(&f);
        }
    }
}

TEST(file, beside_takes_a_view_and_a_linked_folder)
{
    const char *model = plant(t);
    struct file f;
    require(t, model != NULL);

    require_ok(
        t, file_open_beside(&f, model, (rlx_str){"partXYZ", 4}, FILE_READ, mem_default(), NULL));
    file_close(&f);
    /* The caller's own path may go through links: only the stranger's name may not. */
    model = test_temp(t, "root/in/side/../model");
    require_ok(t, file_open_beside(&f, model, STR("part"), FILE_READ, mem_default(), NULL));
    file_close(&f);
}

TEST(file, beside_refuses_hostile_names)
{
    static const struct {
        rlx_str name;
        const char *why;
    } rows[] = {
        {{"", 0}, "its name is empty"},
        {{NULL, 0}, "its name is empty"},
        {{"/etc/passwd", 11}, "absolute path"},
        {{"//etc/passwd", 12}, "absolute path"},
        {{"..", 2}, "\"..\""},
        {{"../secret", 9}, "\"..\""},
        {{"./../secret", 11}, "\"..\""},
        {{"sub/../part", 11}, "\"..\""},
        {{"sub/../../secret", 16}, "\"..\""},
        {{"part/..", 7}, "\"..\""},
        {{"nowhere/../part", 15}, "cannot open"},
        {{"link", 4}, "symbolic link"},
        {{"out", 3}, "symbolic link"},
        {{"up/secret", 9}, "symbolic link"},
        {{"side/deep", 9}, "symbolic link"},
        {{"dangling", 8}, "symbolic link"},
        {{"loop", 4}, "symbolic link"},
        {{"loop/x", 6}, "symbolic link"},
        {{"sub", 3}, "it is a folder"},
        {{".", 1}, "it is a folder"},
        {{"./.", 3}, "it is a folder"},
        {{"sub/", 4}, "folder"},
        {{"part/", 5}, "folder"},
        {{"part/x", 6}, "Not a directory"},
        {{"pipe", 4}, "not a regular file"},
        {{"missing", 7}, "No such file"},
        {{"sub/missing", 11}, "No such file"},
        {{"pa\0rt", 5}, "NUL"},
        {{"part\0/../x", 10}, "NUL"},
    };
    const char *model = plant(t);
    require(t, model != NULL);

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct diag d;
        struct file f = {.size = 77};
        test_note(t, "row %zu, \"%.*s\"", i, STR_ARG(rows[i].name));
        diag_init(&d, "test");
        expect_status(t, file_open_beside(&f, model, rows[i].name, FILE_MAP, mem_default(), &d),
                      RLX_ERROR_IO);
        expect_error(t, RLX_ERROR_IO, rows[i].why, &d.first);
        expect_eq(t, f.size, 77);
    }
}

TEST(file, beside_follows_when_told)
{
    static const char *const taken[][2] = {
        {"part", "part"},      {"../secret", "secret"}, {"out", "secret"},
        {"side/deep", "deep"}, {"sub/../part", "part"},
    };
    static const char *const refused[] = {"", "sub", "sub/", "pipe", "missing", "dangling", "loop"};
    const char *model = plant(t), *absolute = test_temp(t, "root/secret");
    unsigned mode = FILE_MAP | FILE_FOLLOW;
    struct file f;
    require(t, model != NULL);

    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        test_note(t, "\"%s\"", taken[i][0]);
        require_ok(t,
                   file_open_beside(&f, model, rlx_cstr(taken[i][0]), mode, mem_default(), NULL));
        expect(t, str_eq((rlx_str){(const char *)f.data, f.size}, rlx_cstr(taken[i][1])));
        file_close(&f);
    }
    require_ok(t, file_open_beside(&f, model, rlx_cstr(absolute), mode, mem_default(), NULL));
    file_close(&f);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        test_note(t, "\"%s\"", refused[i]);
        expect_status(t,
                      file_open_beside(&f, model, rlx_cstr(refused[i]), mode, mem_default(), NULL),
                      RLX_ERROR_IO);
    }
}

TEST(file, beside_refuses_long_components)
{
    static char name[70000];
    const char *model = plant(t);
    struct diag d;
    struct file f;
    require(t, model != NULL);

    for (size_t len = 255; len < sizeof name; len += 23248) {
        memset(name, 'n', len);
        diag_init(&d, "test");
        expect_status(
            t, file_open_beside(&f, model, (rlx_str){name, len}, FILE_MAP, mem_default(), &d),
            RLX_ERROR_IO);
        expect_contains(t, d.first.message, len > 255 ? "File name too long" : "No such file");
    }
    for (size_t i = 0; i < sizeof name; i++) /* "./././" without end, and then a file */
        name[i] = i % 2 ? '/' : '.';
    memcpy(name + sizeof name - 4, "part", 4);
    require_ok(t, file_open_beside(&f, model, (rlx_str){name, sizeof name}, FILE_MAP, mem_default(),
                                   NULL));
    file_close(&f);
}

TEST(file, beside_leaves_no_descriptor_open)
{
    static const char *const names[] = {"part", "sub/deep",  "side/deep", "sub/missing",
                                        "pipe", "../secret", "sub"};
    const char *model = plant(t);
    require(t, model != NULL);
    int before = dup(0);
    require(t, before >= 0);
    close(before);

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct file f;
        if (file_open_beside(&f, model, rlx_cstr(names[i]), FILE_READ, mem_default(), NULL) ==
            RLX_OK)
            file_close(&f);
    }
    int after = dup(0); /* the lowest free number */
    expect_eq(t, after, before);
    close(after);
}

/* ---- writing ----------------------------------------------------------------------------- */

static int count_entries(const char *folder)
{
    DIR *dir = opendir(folder);
    int count = 0;

    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count - 2; /* . and .. */
}

TEST(file, writes_and_replaces)
{
    const char *folder = test_temp(t, "folder"), *path = test_temp(t, "folder/out");
    size_t len;
    require(t, mkdir(folder, 0700) == 0);

    require_ok(t, file_write(path, "one", 3, NULL));
    expect_str(t, test_read(t, path, &len), "one");
    require_ok(t, file_write(path, "second", 6, NULL));
    expect_str(t, test_read(t, path, &len), "second");
    require_ok(t, file_write(path, NULL, 0, NULL));
    expect_str(t, test_read(t, path, &len), "");
    expect_eq(t, count_entries(folder), 1);

    char name[7 + 255 + 1] = "folder/"; /* as long as a name can be */
    memset(name + 7, 'n', 255);
    path = test_temp(t, name);
    require_ok(t, file_write(path, "long", 4, NULL));
    expect_str(t, test_read(t, path, &len), "long");
    expect_eq(t, count_entries(folder), 2);
}

TEST(file, a_reader_keeps_the_old_bytes)
{
    const char *path = test_temp(t, "out");
    struct file f;

    require_ok(t, file_write(path, "old", 3, NULL));
    require_ok(t, file_open(&f, path, FILE_MAP, mem_default(), NULL));
    require_ok(t, file_write(path, "newer", 5, NULL));
    expect(t, f.size == 3 && memcmp(f.data, "old", 3) == 0);
    file_close(&f);
}

TEST(file, writes_through_a_link)
{
    const char *folder = test_temp(t, "folder");
    const char *target = test_temp(t, "folder/target"), *path = test_temp(t, "folder/link");
    struct stat st;
    size_t len;
    require(t, mkdir(folder, 0700) == 0);

    require(t, test_write(t, target, "old", 3) && symlink("target", path) == 0);
    require_ok(t, file_write(path, "new", 3, NULL));
    expect_str(t, test_read(t, target, &len), "new");
    expect(t, lstat(path, &st) == 0 && S_ISLNK(st.st_mode));
}

TEST(file, a_failed_write_leaves_nothing)
{
    const char *folder = test_temp(t, "folder"), *path = test_temp(t, "folder/sub");
    const char *pipe_path = test_temp(t, "folder/pipe");
    const char *missing = test_temp(t, "folder/nowhere/out");
    struct diag d;
    struct stat st;
    require(t, mkdir(folder, 0700) == 0 && mkdir(path, 0700) == 0);
    require(t, mkfifo(pipe_path, 0600) == 0);

    const struct {
        const char *path, *why;
    } rows[] = {
        {path, "not a regular file"},
        {pipe_path, "not a regular file"},
        {missing, "No such file"},
        {"", "No such file"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        test_note(t, "\"%s\"", rows[i].path);
        diag_init(&d, "test");
        expect_status(t, file_write(rows[i].path, "x", 1, &d), RLX_ERROR_IO);
        expect_error(t, RLX_ERROR_IO, rows[i].why, &d.first);
        expect_eq(t, count_entries(folder), 2);
    }
    expect(t, stat(pipe_path, &st) == 0 && S_ISFIFO(st.st_mode)); /* still what it was */

    char too_long[5000];
    memset(too_long, 'a', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = 0;
    diag_init(&d, "test");
    expect_status(t, file_write(too_long, "x", 1, &d), RLX_ERROR_IO);
    expect_error(t, RLX_ERROR_IO, "File name too long", &d.first);
}

/* The rename itself fails here: the name is too long, which the other name is not. */
TEST(file, a_failed_rename_removes_the_other_file)
{
    const char *folder = test_temp(t, "folder");
    char path[4096], name[300];
    struct diag d;
    require(t, mkdir(folder, 0700) == 0);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);

    diag_init(&d, "test");
    expect_status(t, file_write(path, "x", 1, &d), RLX_ERROR_IO);
    expect_error(t, RLX_ERROR_IO, "File name too long", &d.first);
    expect_eq(t, count_entries(folder), 0);
}

TEST(file, is_written_piece_by_piece)
{
    const char *path = test_temp(t, "pieces");
    struct file_writer w;
    struct stat st;
    size_t len;

    require_ok(t, file_begin(&w, path, FILE_PRIVATE, NULL));
    expect_ok(t, file_add(&w, "0123", 4, NULL));
    expect_ok(t, file_patch(&w, 1, "xy", 2, NULL));
    expect_ok(t, file_add(&w, "45", 2, NULL));
    expect_eq_u64(t, w.size, 6);
    expect(t, stat(path, &st) != 0); /* not yet */
    expect_ok(t, file_commit(&w, NULL));
    file_abandon(&w); /* does nothing now */
    const char *got = test_read(t, path, &len);
    require(t, got && len == 6);
    expect_bytes(t, got, "0xy345", 6);
    require(t, stat(path, &st) == 0);
    expect_eq(t, st.st_mode & 0777, 0600);

    require_ok(t, file_begin(&w, path, FILE_FOR_ALL, NULL));
    expect_ok(t, file_add(&w, "new", 3, NULL));
    expect(t, access(w.temp, F_OK) == 0);
    file_abandon(&w);
    expect(t, access(w.temp, F_OK) != 0);
    got = test_read(t, path, &len);
    expect_eq_u64(t, len, 6);
}
