/* experts.c: rows sorted by expert (experts.h): byte by byte of their ids, keeping the order of
 * equal ones, then cut into groups. */
#include "backend/cpu/kernels/gemm/experts.h"

/* Scratch: three arrays of as many numbers as there are rows, then the groups. */
static int64_t up(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static int64_t numbers_bytes(int64_t rows)
{
    return up(rows * (int64_t)sizeof(int32_t));
}

int64_t experts_scratch(int64_t rows, int64_t experts)
{
    int64_t groups = cpu_min_i64(rows, experts);
    return 3 * numbers_bytes(rows) + up(groups * (int64_t)sizeof(struct expert_group));
}

/* Ids in range, and their rows, in the order of rows. The other rows become zeros. */
static int64_t read_ids(const struct cpu_call *c, int64_t experts, int32_t *id, int32_t *row)
{
    int64_t rows = c->out->dim[0], width = rows ? c->out->count / rows : 0, found = 0;

    for (int64_t i = 0; i < rows; i++) {
        int64_t e = cpu_index(&c->in[2], i);
        if (cpu_index_valid(e, experts)) {
            id[found] = (int32_t)e; /* fewer than 2^24 experts */
            row[found++] = (int32_t)i;
        } else {
            memset(cpu_at(c->out, i * width), 0, (size_t)width * cpu_size(c->out->dtype));
            cpu_report_index(c, i, e);
        }
    }
    return found;
}

/* Sort rows by one byte of their ids, and keep the order of equal ones. */
static void sort_by_byte(const int32_t *id, const int32_t *row, int32_t *to, int64_t n, int shift)
{
    int64_t start[257] = {0};

    for (int64_t i = 0; i < n; i++)
        start[((id[row[i]] >> shift) & 255) + 1]++;
    for (int b = 0; b < 256; b++)
        start[b + 1] += start[b];
    for (int64_t i = 0; i < n; i++)
        to[start[(id[row[i]] >> shift) & 255]++] = row[i];
}

/* Few ones from the front of `group`, which has room for `most`, the others from its end. */
static void make_groups(struct experts *e, const int32_t *id, int64_t n, int64_t most_few,
                        struct expert_group *group, int64_t most)
{
    int64_t few = 0, many = most;

    for (int64_t i = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && id[e->row[next]] == id[e->row[i]];)
            next++;
        struct expert_group one = {id[e->row[i]], (int32_t)i, (int32_t)(next - i)};
        if (one.rows <= most_few)
            group[few++] = one;
        else
            group[--many] = one;
    }
    e->few = group;
    e->few_count = few;
    e->many = group + many;
    e->many_count = most - many;
}

void experts_sort(const struct cpu_call *c, int64_t experts, int64_t few, void *scratch,
                  struct experts *e)
{
    int64_t rows = c->out->dim[0], each = numbers_bytes(rows);
    int32_t *id = scratch;
    int32_t *a = (int32_t *)(void *)((char *)scratch + each);
    int32_t *b = (int32_t *)(void *)((char *)scratch + 2 * each);
    int64_t n = read_ids(c, experts, b, a); /* b: ids of the rows in a */

    for (int64_t i = 0; i < n; i++)
        id[a[i]] = b[i];
    for (int shift = 0; shift < 24 && (experts - 1) >> shift > 0; shift += 8) {
        int32_t *sorted = b;
        sort_by_byte(id, a, sorted, n, shift);
        b = a;
        a = sorted;
    }
    e->row = a;
    make_groups(e, id, n, few, (struct expert_group *)(void *)((char *)scratch + 3 * each),
                cpu_min_i64(rows, experts));
}
