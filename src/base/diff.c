/* diff.c: the shortest way from one list of lines to another.
 *
 * Equal lines at the front and at the end are set aside. In between, a table says how many lines
 * the rest of both have in common, and is walked from the front: O(n m), for texts of a few
 * thousand lines. Where the table would be larger than that, the middle is shown as replaced. */
#include "base/diff.h"

#include <string.h>

#include "base/arena.h"

#define MAX_CELLS ((size_t)16 << 20)
#define AROUND 3 /* lines shown before and after a change */

struct lines {
    rlx_str *at;
    size_t count;
};

static rlx_status split(rlx_str s, struct arena *arena, struct lines *out, struct diag *d)
{
    size_t count = 0, n = 0;

    for (size_t i = 0; i < s.len; i++)
        count += s.ptr[i] == '\n' || i + 1 == s.len;
    out->at = arena_array(arena, rlx_str, count);
    if (!out->at)
        return diag_no_memory(d, count * sizeof *out->at);
    out->count = count;
    while (s.len) {
        const char *end = memchr(s.ptr, '\n', s.len);
        size_t len = end ? (size_t)(end - s.ptr) : s.len, step = len + (end != NULL);
        out->at[n++] = (rlx_str){s.ptr, len};
        s = (rlx_str){s.ptr + step, s.len - step};
    }
    return RLX_OK;
}

/* One line of the result: of both texts, or of one of them. */
struct edit {
    char kind; /* ' ', '-' or '+' */
    rlx_str line;
};

struct edits {
    struct edit *at;
    size_t count;
};

static void push(struct edits *e, char kind, rlx_str line)
{
    e->at[e->count++] = (struct edit){kind, line};
}

static void replace_all(const struct lines *a, const struct lines *b, struct edits *out)
{
    for (size_t i = 0; i < a->count; i++)
        push(out, '-', a->at[i]);
    for (size_t i = 0; i < b->count; i++)
        push(out, '+', b->at[i]);
}

/* common[i][j]: how many lines a, from i on, and b, from j on, have in common. */
static rlx_status compare(const struct lines *a, const struct lines *b, struct arena *arena,
                          struct edits *out, struct diag *d)
{
    size_t width = b->count + 1, cells;

    if (!size_mul(a->count + 1, width, &cells) || cells > MAX_CELLS) {
        replace_all(a, b, out);
        return RLX_OK;
    }
    uint32_t *common = arena_array(arena, uint32_t, cells);
    if (!common)
        return diag_no_memory(d, cells * sizeof *common);
    for (size_t i = a->count; i-- > 0;)
        for (size_t j = b->count; j-- > 0;) {
            uint32_t down = common[(i + 1) * width + j], right = common[i * width + j + 1];
            common[i * width + j] = str_eq(a->at[i], b->at[j]) ? common[(i + 1) * width + j + 1] + 1
                                    : down > right             ? down
                                                               : right;
        }
    size_t i = 0, j = 0;
    while (i < a->count || j < b->count) {
        if (i < a->count && j < b->count && str_eq(a->at[i], b->at[j])) {
            push(out, ' ', a->at[i]);
            i++, j++;
        } else if (j == b->count ||
                   (i < a->count && common[(i + 1) * width + j] >= common[i * width + j + 1]))
            push(out, '-', a->at[i++]);
        else
            push(out, '+', b->at[j++]);
    }
    return RLX_OK;
}

static rlx_status find_edits(struct lines a, struct lines b, struct arena *arena, struct edits *out,
                             struct diag *d)
{
    size_t front = 0, back = 0;
    struct lines tail = a;

    out->at = arena_array(arena, struct edit, a.count + b.count);
    if (!out->at)
        return diag_no_memory(d, (a.count + b.count) * sizeof *out->at);
    while (front < a.count && front < b.count && str_eq(a.at[front], b.at[front]))
        push(out, ' ', a.at[front++]);
    a.at += front, a.count -= front;
    b.at += front, b.count -= front;
    while (back < a.count && back < b.count &&
           str_eq(a.at[a.count - 1 - back], b.at[b.count - 1 - back]))
        back++;
    a.count -= back;
    b.count -= back;
    TRY(compare(&a, &b, arena, out, d));
    for (size_t i = 0; i < back; i++)
        push(out, ' ', tail.at[tail.count - back + i]);
    return RLX_OK;
}

/* ---- hunks ---- */

/* Where the hunk that begins with the change at `from` ends: changes less than twice AROUND lines
 * apart belong together. */
static size_t hunk_end(const struct edits *e, size_t from)
{
    size_t last = from;

    for (size_t i = from; i < e->count && i <= last + 2 * AROUND; i++)
        if (e->at[i].kind != ' ')
            last = i;
    return last + 1 + AROUND < e->count ? last + 1 + AROUND : e->count;
}

static void write_hunk(const struct edits *e, size_t from, size_t to, size_t line_a, size_t line_b,
                       struct text *out)
{
    size_t count_a = 0, count_b = 0;

    for (size_t i = from; i < to; i++) {
        count_a += e->at[i].kind != '+';
        count_b += e->at[i].kind != '-';
    }
    text_addf(out, "@@ -%zu,%zu +%zu,%zu @@\n", line_a + (count_a > 0), count_a,
              line_b + (count_b > 0), count_b);
    for (size_t i = from; i < to; i++) {
        text_add(out, (rlx_str){&e->at[i].kind, 1});
        text_add(out, e->at[i].line);
        text_add(out, STR("\n"));
    }
}

static void write_hunks(const struct edits *e, const char *name_a, const char *name_b,
                        struct text *out)
{
    size_t line_a = 0, line_b = 0, done = 0; /* lines of both before `done` */

    for (size_t i = 0; i < e->count; i++) {
        if (e->at[i].kind == ' ')
            continue;
        if (done == 0 && line_a == 0 && line_b == 0)
            text_addf(out, "--- %s\n+++ %s\n", name_a, name_b);
        size_t from = i > done + AROUND ? i - AROUND : done, to = hunk_end(e, i);
        line_a += from - done; /* these are of both */
        line_b += from - done;
        write_hunk(e, from, to, line_a, line_b, out);
        for (done = from; done < to; done++) {
            line_a += e->at[done].kind != '+';
            line_b += e->at[done].kind != '-';
        }
        i = to - 1;
    }
}

rlx_status diff_lines(rlx_str a, rlx_str b, const char *name_a, const char *name_b,
                      const rlx_allocator *mem, struct text *out, struct diag *d)
{
    struct arena arena;
    struct lines la, lb;
    struct edits edits = {0};

    arena_init(&arena, mem);
    rlx_status s = split(a, &arena, &la, d);
    if (s == RLX_OK)
        s = split(b, &arena, &lb, d);
    if (s == RLX_OK)
        s = find_edits(la, lb, &arena, &edits, d);
    if (s == RLX_OK)
        write_hunks(&edits, name_a, name_b, out);
    arena_free(&arena);
    return s;
}
