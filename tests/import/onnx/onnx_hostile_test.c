/* onnx_hostile_test.c: ONNX files that mean harm: weights in files that are not theirs to read,
 * sizes that do not fit, and the fuzzer's seeds, broken at every place. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "onnx_world.h"

/* ---- weights in other files -------------------------------------------------------------------
 */

/* root/secret, and in root/in a model's folder: files, a folder, links and a pipe. Answers the path
 * of the model, which need not be there. */
static const char *plant(struct test *t)
{
    static const char *const folders[] = {"root", "root/in", "root/in/sub"};
    static const char *const files[] = {"root/secret", "root/in/w", "root/in/sub/w"};
    static const char *const links[][2] = {{"root/in/link", "w"},
                                           {"root/in/out", "../secret"},
                                           {"root/in/up", ".."},
                                           {"root/in/zero", "/dev/zero"}};
    static const float w[] = {1, 2, 3, 4};
    bool ok = true;

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        ok &= mkdir(test_temp(t, folders[i]), 0700) == 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        ok &= test_write(t, test_temp(t, files[i]), w, sizeof w);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        ok &= symlink(links[i][1], test_temp(t, links[i][0])) == 0;
    ok &= mkfifo(test_temp(t, "root/in/pipe"), 0600) == 0;
    return expect(t, ok) ? test_temp(t, "root/in/model.onnx") : NULL;
}

static void put_entry(struct bytes *tensor, const char *key, const char *value)
{
    struct bytes e = {.len = 0};

    if (!value)
        return;
    put_text(&e, 1, key);
    put_text(&e, 2, value);
    put_sub(tensor, 13, &e);
}

/* y = w, of `count` floats that lie elsewhere. */
static struct bytes model_beside(int64_t count, const char *location, const char *offset,
                                 const char *length)
{
    struct bytes g = {.len = 0}, w = {.len = 0};

    put_int(&w, 1, (uint64_t)count);
    put_int(&w, 2, 1);
    put_text(&w, 8, "w");
    put_entry(&w, "location", location);
    put_entry(&w, "offset", offset);
    put_entry(&w, "length", length);
    put_int(&w, 14, 1);
    put_sub(&g, 5, &w);
    NODE(&g, "Identity", "w", "y");
    put_value(&g, 12, "y", 1, NULL);
    return finish(&g, 13);
}

static struct result import_at(const struct bytes *m, const char *path, unsigned mode)
{
    struct onnx_import_options options = {.path = path, .mode = mode};
    struct result r;

    diag_init(&r.diag, "load");
    r.status =
        onnx_import((rlx_str){(const char *)m->at, m->len}, &options, mem_default(), &r.m, &r.diag);
    return r;
}

TEST(onnx_hostile, external_data_is_read_from_beside_the_model)
{
    static const struct {
        const char *location, *offset, *length;
        int64_t count;
        const char *text;
    } rows[] = {
        {"w", NULL, NULL, 4, "const f32[4] {1 2 3 4}"}, {"w", "8", "8", 2, "const f32[2] {3 4}"},
        {"sub/w", "12", NULL, 1, "const f32[1] {4}"},   {"w", "16", "0", 0, "const f32[0]"},
        {"./w", "0", "4", 1, "const f32[1] {1}"},
    };
    const char *path = plant(t);

    require(t, path != NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bytes m =
            model_beside(rows[i].count, rows[i].location, rows[i].offset, rows[i].length);
        struct result r = import_at(&m, path, i % 2 ? FILE_MAP : FILE_READ);
        struct text text;
        text_init(&text, mem_default());
        test_note(t, "row %zu: %s", i, r.status == RLX_OK ? "" : r.diag.first.message);
        if (expect_status(t, r.status, RLX_OK)) {
            expect_ok(t, ir_print(r.m.mod, NULL, &text, &r.diag));
            expect_contains(t, text.at, rows[i].text);
        }
        text_free(&text);
        onnx_imported_free(&r.m);
    }
}

TEST(onnx_hostile, external_data_stays_beside_the_model)
{
    static const struct {
        const char *location, *why;
    } rows[] = {
        {NULL, "its name is empty"},      {"", "its name is empty"},
        {"/etc/passwd", "absolute path"}, {"/dev/zero", "absolute path"},
        {"../secret", "\"..\""},          {"sub/../../secret", "\"..\""},
        {"link", "symbolic link"},        {"out", "symbolic link"},
        {"up/secret", "symbolic link"},   {"zero", "symbolic link"},
        {"pipe", "not a regular file"},   {"sub", "it is a folder"},
        {"missing", "No such file"},
    };
    const char *path = plant(t);

    require(t, path != NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bytes m = model_beside(4, rows[i].location, NULL, NULL);
        struct result r = import_at(&m, path, FILE_MAP);
        test_note(t, "row %zu", i);
        expect_status(t, r.status, RLX_ERROR_IO);
        expect_contains(t, r.diag.first.message, rows[i].why);
        onnx_imported_free(&r.m);
        expect_refused(t, &m, RLX_ERROR_FORMAT, "lies in another file"); /* without a path */
    }
}

/* Trusted, names lead anywhere, but still to regular files alone. */
TEST(onnx_hostile, trusted_names_lead_to_regular_files)
{
    static const struct {
        const char *location;
        bool good;
    } rows[] = {{"link", true},  {"../secret", true}, {"up/secret", true},
                {"pipe", false}, {"zero", false},     {"/dev/zero", false}};
    const char *path = plant(t);

    require(t, path != NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bytes m = model_beside(4, rows[i].location, NULL, NULL);
        struct result r = import_at(&m, path, FILE_MAP | FILE_FOLLOW);
        test_note(t, "row %zu", i);
        expect_status(t, r.status, rows[i].good ? RLX_OK : RLX_ERROR_IO);
        if (!rows[i].good)
            expect_contains(t, r.diag.first.message, "not a regular file");
        onnx_imported_free(&r.m);
    }
}

/* The file has 16 bytes. */
TEST(onnx_hostile, external_sizes_fit_the_file)
{
    static const struct {
        int64_t count;
        const char *offset, *length, *why;
    } rows[] = {
        {5, NULL, NULL, "bytes 0 to 20 of \"w\", which has 16"},
        {4, "1", NULL, "bytes 1 to 17 of \"w\", which has 16"},
        {1, "16", NULL, "bytes 16 to 20 of \"w\", which has 16"},
        {1, "17", NULL, "which has 16"},
        {0, "17", "0", "which has 16"},
        {1, "9223372036854775807", NULL, "which has 16"},
        {INT64_C(1) << 60, NULL, NULL, "which has 16"},
        {4, NULL, "12", "takes 16 bytes, not 12"},
        {4, NULL, "20", "takes 16 bytes, not 20"},
        {4, "-1", NULL, "offset is not a number: \"-1\""},
        {4, "9223372036854775808", NULL, "offset is not a number"},
        {4, "0x0", NULL, "offset is not a number"},
        {4, "", NULL, "offset is not a number"},
        {4, NULL, " 16", "length is not a number"},
        {INT64_C(1) << 62, NULL, NULL, "impossible dims"},
        {-1, NULL, NULL, "impossible dims"},
    };
    const char *path = plant(t);

    require(t, path != NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bytes m = model_beside(rows[i].count, "w", rows[i].offset, rows[i].length);
        struct result r = import_at(&m, path, FILE_MAP);
        test_note(t, "row %zu", i);
        expect_status(t, r.status, RLX_ERROR_FORMAT);
        expect_contains(t, r.diag.first.message, rows[i].why);
        onnx_imported_free(&r.m);
    }
}

/* A fuzzer's: a constant that was a node already, handed on as it is, was looked for among the
 * nodes of the op that handed it on. */
TEST(onnx_hostile, constants_handed_on_stay_what_they_are)
{
    static const char *const ops[] = {"Clip", "Identity", "Sum", "Concat"};
    const float c[] = {1, 2};

    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        struct bytes g = {.len = 0};
        put_tensor(&g, "c", 1, (const int64_t[]){2}, 1, c, sizeof c);
        NODE(&g, "Add", LIST("x", "c"), "s");
        put_node(&g, ops[i], (const char *const[]){"c", NULL}, (const char *const[]){"d", NULL},
                 strcmp(ops[i], "Concat") == 0 ? "axis" : NULL, 0);
        NODE(&g, "Mul", LIST("s", "d"), "y");
        put_value(&g, 11, "x", 1, (const char *const[]){"2", NULL});
        put_value(&g, 12, "y", 1, NULL);
        struct bytes m = finish(&g, 13);
        test_note(t, "%s", ops[i]);
        expect_text(t, &m,
                    "rlx 1\n"
                    "graph @main (input %x: f32[2]) {\n"
                    "    %v1 = const f32[2] {1 2}\n"
                    "    %s = add %x, %v1\n"
                    "    %v3 = const f32[2] {1 2}\n"
                    "    %y = mul %s, %v3\n"
                    "    return %y\n"
                    "}\n");
    }
}

/* A bit of a seed turned: the start of a symbolic axis, given as the least number there is. */
TEST(onnx_hostile, slices_from_far_away_begin_at_the_beginning)
{
    const int64_t starts[] = {INT64_MIN, INT64_MIN + 1, -(INT64_C(1) << 40)}, end = -1, axis = 0;
    const int64_t one[] = {1};

    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        struct bytes g = {.len = 0};
        put_tensor(&g, "from", 7, one, 1, &starts[i], 8);
        put_tensor(&g, "to", 7, one, 1, &end, 8);
        put_tensor(&g, "axes", 7, one, 1, &axis, 8);
        NODE(&g, "Slice", LIST("x", "from", "to", "axes"), "y");
        put_value(&g, 11, "x", 1, (const char *const[]){"n", NULL});
        put_value(&g, 12, "y", 1, NULL);
        struct bytes m = finish(&g, 13);
        expect_text(t, &m,
                    "rlx 1\n"
                    "dim n\n"
                    "graph @main (input %x: f32[n]) {\n"
                    "    %y = narrow %x axis=0 start=0 len=n-1\n"
                    "    return %y\n"
                    "}\n");
    }
}

static void put_word(struct bytes *node, const char *name, const char *word)
{
    struct bytes a = {.len = 0};

    put_text(&a, 1, name);
    put_text(&a, 4, word);
    put_int(&a, 20, ONNX_ATTR_STRING);
    put_sub(node, 5, &a);
}

/* A fuzzer's: sizes, and places in the picture, that are not 64-bit integers. */
TEST(onnx_hostile, resizes_to_and_from_nowhere)
{
    static const struct {
        const char *mode, *dim, *why; /* why NULL: it is imported */
        float scale, start, end;
    } rows[] = {
        {"linear", "1000000000000000000", "too long", 9e8f, 0, 1},
        {"nearest", "4", "too long", 9e8f, 0, 1},
        {"linear", "4", NULL, 2, -3e38f, 3e38f},
        {"cubic", "4", NULL, 2, INFINITY, 1},
        {"nearest", "4", NULL, 2, NAN, 3e38f},
        {"linear", "4", "above 0", NAN, 0, 1},
        {"linear", "4", "above 0", -1, 0, 1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bytes g = {.len = 0}, n = {.len = 0};
        const float region[] = {rows[i].start, rows[i].end};
        put_tensor(&g, "region", 1, (const int64_t[]){2}, 1, region, sizeof region);
        put_tensor(&g, "scale", 1, (const int64_t[]){1}, 1, &rows[i].scale, 4);
        put_text(&n, 1, "x");
        put_text(&n, 1, "region");
        put_text(&n, 1, "scale");
        put_text(&n, 2, "y");
        put_text(&n, 4, "Resize");
        put_word(&n, "mode", rows[i].mode);
        put_word(&n, "coordinate_transformation_mode", "tf_crop_and_resize");
        put_sub(&g, 1, &n);
        put_value(&g, 11, "x", 1, (const char *const[]){rows[i].dim, NULL});
        put_value(&g, 12, "y", 1, NULL);
        struct bytes m = finish(&g, 13);
        struct result r = import(m.at, m.len);
        test_note(t, "row %zu: %s", i, r.status == RLX_OK ? "imported" : r.diag.first.message);
        expect(t, (r.status == RLX_OK) == !rows[i].why);
        if (rows[i].why)
            expect_contains(t, r.diag.first.message, rows[i].why);
        onnx_imported_free(&r.m);
    }
}

/* ---- broken files ------------------------------------------------------------------------------
 */

/* It is read, or refused with a sentence; a copy of exactly its size shows a read past its end. */
static void read_or_refuse(struct test *t, const uint8_t *bytes, size_t len, size_t *refused)
{
    uint8_t *exact = malloc(len ? len : 1);

    require(t, exact);
    memcpy(exact, bytes, len);
    struct result r = import(exact, len);
    expect(t, r.status == RLX_OK || r.diag.first.message[0]);
    expect(t, r.status != RLX_ERROR_INTERNAL);
    *refused += r.status != RLX_OK;
    onnx_imported_free(&r.m);
    free(exact);
}

/* The seeds have functions, loops, branches, sequences, recurrences and quantised weights. */
TEST(onnx_hostile, seeds_broken_anywhere_are_refused_or_read)
{
    const char *folder = test_source(t, "fuzz/corpus/onnx");
    DIR *dir = opendir(folder);
    size_t files = 0, refused = 0, bits = 0;

    require(t, dir != NULL);
    for (struct dirent *e; (e = readdir(dir));) {
        char path[4096];
        uint8_t model[4096] = {0x08, 0x08}; /* the fuzzer puts these in front of every seed */
        size_t len = 0;
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        const char *seed = test_read(t, path, &len);
        if (!seed || !expect(t, len + 2 <= sizeof model))
            continue;
        memcpy(model + 2, seed, len);
        len += 2;
        files++;
        for (size_t cut = 0; cut <= len; cut++) {
            test_note(t, "%s, cut at %zu", e->d_name, cut);
            read_or_refuse(t, model, cut, &refused);
        }
        for (size_t bit = 0; bit < len * 8; bit++) {
            test_note(t, "%s, bit %zu", e->d_name, bit);
            model[bit / 8] ^= (uint8_t)(1u << bit % 8);
            read_or_refuse(t, model, len, &refused);
            model[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        bits += len * 8;
    }
    closedir(dir);
    test_note(t, "%s", "");
    expect(t, files >= 10);
    expect(t, refused > bits / 8 && refused < bits); /* neither all broken nor all whole */
}
