/* csv.c: planning problems from files, one buffer per line.
 *
 *     id,lower,upper,size
 *     b0,0,3,4096            alive in [0, 3): at positions 0, 1 and 2
 *
 * Columns may come in any order and others are ignored; lines end in \n or \r\n; blank ones are
 * skipped. The file is not trusted: whatever does not fit is refused with its line number. */
#include <string.h>

#include "plan/plan.h"

enum column { COLUMN_ID, COLUMN_LOWER, COLUMN_UPPER, COLUMN_SIZE, COLUMN_COUNT };
static const char *const column_name[COLUMN_COUNT] = {"id", "lower", "upper", "size"};

struct reader {
    rlx_str rest;
    size_t line;                 /* number of the line read last, from 1 */
    size_t column[COLUMN_COUNT]; /* which field holds it */
    size_t fields;               /* in the header */
    struct diag *d;
};

static rlx_str trim(rlx_str s)
{
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) {
        s.ptr++;
        s.len--;
    }
    while (s.len &&
           (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t' || s.ptr[s.len - 1] == '\r'))
        s.len--;
    return s;
}

/* The next line that is not blank; false: there is none. */
static bool next_line(struct reader *r, rlx_str *out)
{
    while (r->rest.len > 0) {
        const char *nl = memchr(r->rest.ptr, '\n', r->rest.len);
        size_t len = nl ? (size_t)(nl - r->rest.ptr) : r->rest.len;
        size_t step = nl ? len + 1 : len;
        *out = trim((rlx_str){r->rest.ptr, len});
        r->rest = (rlx_str){r->rest.ptr + step, r->rest.len - step};
        r->line++;
        if (out->len > 0)
            return true;
    }
    return false;
}

/* Take the first field off a line; false: there was none left. */
static bool next_field(rlx_str *line, rlx_str *out)
{
    if (!line->ptr)
        return false;
    const char *comma = line->len ? memchr(line->ptr, ',', line->len) : NULL;
    size_t len = comma ? (size_t)(comma - line->ptr) : line->len;
    *out = trim((rlx_str){line->ptr, len});
    *line = comma ? (rlx_str){comma + 1, line->len - len - 1} : (rlx_str){NULL, 0};
    return true;
}

static rlx_status read_header(struct reader *r)
{
    rlx_str line, field;

    for (int c = 0; c < COLUMN_COUNT; c++)
        r->column[c] = SIZE_MAX;
    if (!next_line(r, &line))
        return diag_fail(r->d, RLX_ERROR_FORMAT,
                         "empty; the first line must name the columns id, lower, upper, size");
    for (; next_field(&line, &field); r->fields++) {
        for (int c = 0; c < COLUMN_COUNT; c++) {
            if (!str_eq(field, rlx_cstr(column_name[c])))
                continue;
            if (r->column[c] != SIZE_MAX)
                return diag_fail(r->d, RLX_ERROR_FORMAT, "line %zu: column %s is named twice",
                                 r->line, column_name[c]);
            r->column[c] = r->fields;
        }
    }
    for (int c = 0; c < COLUMN_COUNT; c++)
        if (r->column[c] == SIZE_MAX)
            return diag_fail(r->d, RLX_ERROR_FORMAT,
                             "line %zu: no column %s; id, lower, upper and size are needed",
                             r->line, column_name[c]);
    return RLX_OK;
}

static rlx_status read_number(const struct reader *r, const rlx_str field[COLUMN_COUNT],
                              enum column c, int64_t max, int64_t *out)
{
    rlx_str f = field[c];
    if (!str_to_i64(f, out) || *out < 0 || *out > max) {
        if (f.len > 40)
            f.len = 40;
        return diag_fail(r->d, RLX_ERROR_FORMAT,
                         "line %zu: %s is '%.*s'; it must be an integer from 0 to %lld", r->line,
                         column_name[c], STR_ARG(f), (long long)max);
    }
    return RLX_OK;
}

static rlx_status read_row(struct reader *r, rlx_str line, struct arena *arena,
                           struct plan_item *item, rlx_str *id)
{
    rlx_str field[COLUMN_COUNT] = {{0}}, f;
    int64_t lower, upper, size;
    size_t n = 0;

    for (; next_field(&line, &f); n++)
        for (int c = 0; c < COLUMN_COUNT; c++)
            if (r->column[c] == n)
                field[c] = f;
    if (n != r->fields)
        return diag_fail(r->d, RLX_ERROR_FORMAT,
                         "line %zu: %zu fields where the first line names %zu", r->line, n,
                         r->fields);
    TRY(read_number(r, field, COLUMN_LOWER, INT32_MAX, &lower));
    TRY(read_number(r, field, COLUMN_UPPER, INT32_MAX, &upper));
    TRY(read_number(r, field, COLUMN_SIZE, INT64_MAX, &size));
    if (lower >= upper)
        return diag_fail(r->d, RLX_ERROR_FORMAT,
                         "line %zu: lower %lld must be below upper %lld: the end is not included",
                         r->line, (long long)lower, (long long)upper);
    *item = (struct plan_item){(uint64_t)size, (int32_t)lower, (int32_t)(upper - 1)};
    *id = arena_str(arena, field[COLUMN_ID]);
    return id->ptr ? RLX_OK : diag_no_memory(r->d, field[COLUMN_ID].len + 1);
}

rlx_status plan_csv_read(rlx_str text, struct arena *arena, struct plan_csv *out, struct diag *d)
{
    struct plan_csv csv = {0};
    struct reader r = {.rest = text, .d = d};
    rlx_str line;
    size_t rows = 0;

    if (str_starts(text, STR("\xef\xbb\xbf"))) /* a byte order mark */
        r.rest = (rlx_str){text.ptr + 3, text.len - 3};
    TRY(read_header(&r));
    for (struct reader ahead = r; next_line(&ahead, &line);)
        rows++;
    csv.item = arena_array(arena, struct plan_item, rows);
    csv.id = arena_array(arena, rlx_str, rows);
    if (!csv.item || !csv.id)
        return diag_no_memory(d, rows * sizeof *csv.item);
    while (csv.count < rows && next_line(&r, &line)) {
        TRY(read_row(&r, line, arena, &csv.item[csv.count], &csv.id[csv.count]));
        csv.count++;
    }
    *out = csv;
    return RLX_OK;
}
