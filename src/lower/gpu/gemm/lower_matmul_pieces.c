/* lower_matmul_pieces.c: products of which even windows do not show a kernel enough at once.
 *
 *     [m,k] x b        =>  [rows,k] x b, one after another
 *     a x [n,k]^T      =>  a x [columns,k]^T, side by side
 *     a x [k,n]        =>  the sum of a[.., part] x [part,n]
 *
 * What is cut is the operand that is too large, so that a piece of it lies together in memory. Sums
 * stay as wide as they are computed until all pieces are there; then comes the bias, and they are
 * rounded once. */
#include "lower/gpu/gemm/lower_matmul.h"
#include "lower/gpu/gpu_core.h"
#include "lower/gpu/move/lower_move.h"

/* Bindings that a kernel has beside that of the bias. */
static uint64_t bindings_of(const struct gpu_call *c)
{
    return c->max_bindings - 1;
}

static bool fits(const struct gpu_call *c, const struct gpu_matmul *p)
{
    uint64_t bias = p->end.bias >= 0 ? gpu_windows(c, gpu_in(c, p->end.bias)) : 1;

    return gpu_windows(c, p->a) + gpu_windows(c, p->b) + gpu_windows(c, p->y) + bias - 1 <=
           bindings_of(c);
}

/* How many lines, whose bytes of two buffers come to `line`, so many windows show: at least one,
 * and so many that pieces begin where a buffer can, if that is possible. */
static uint64_t lines_at_once(const struct gpu_call *c, uint64_t windows, uint64_t line)
{
    uint64_t room = (windows > 3 ? windows - 2 : 1) * c->max_binding, slack = 2 * GPU_ALIGN;
    uint64_t each = gpu_aligned_rows(line), most = room > slack ? (room - slack) / line : 0;

    most = most < each ? most : most / each * each;
    return most ? most : 1;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The same product, its sums stored as they are. */
static struct gpu_matmul sums_of(const struct gpu_call *c, const struct gpu_matmul *p,
                                 struct gpu_arg y)
{
    struct gpu_matmul sums = *p;

    sums.y = y;
    sums.end = gpu_no_epilogue(c);
    sums.end.stored = p->sum;
    return sums;
}

/* A piece's scratch, from `before` on, is the next one's. */
static void launch_piece(struct gpu_call *c, const struct gpu_matmul *p, uint64_t before,
                         uint64_t *most)
{
    gpu_matmul_launch(c, p);
    *most = c->scratch > *most ? c->scratch : *most;
    c->scratch = before;
}

/* ---- parts of the depth ---- */

/* Elements [first, first + count) of the depth of an operand with so many lines, whose rows lie so
 * far apart; across: of each depth the lines lie side by side. */
static struct gpu_arg depth_of(struct gpu_call *c, struct gpu_arg from, rlx_dtype t, bool across,
                               uint64_t lines, uint64_t row, uint64_t first, uint64_t count)
{
    uint64_t size = rlx_dtype_size(t), step = across ? row : 1;

    if (across || lines == 1)
        return gpu_part(from, first * step * size, ((count - 1) * step + lines) * size);
    struct gpu_arg to = gpu_temp(c, lines * count * size);
    from = gpu_part(from, first * size, from.bytes - first * size);
    gpu_copy_columns(c, from, row, to, count, lines, count, t);
    return to;
}

static uint64_t depth_at_once(const struct gpu_call *c, const struct gpu_matmul *p)
{
    uint64_t sums = p->of.m * p->of.n * rlx_dtype_size(p->sum);
    uint64_t y = gpu_ceil(sums, c->max_binding), all = bindings_of(c);
    uint64_t b_line = p->bt ? p->of.n : gpu_b_row(p);
    uint64_t line =
        p->of.m * rlx_dtype_size(gpu_a_type(p)) + b_line * rlx_dtype_size(gpu_b_type(p));

    return least_of(lines_at_once(c, all > y ? all - y : 0, line), p->of.k);
}

/* to[i] += from[i], as much at a time as a binding shows. */
static void add_sums(struct gpu_call *c, struct gpu_arg from, struct gpu_arg to, rlx_dtype t)
{
    uint64_t each = c->max_binding / GPU_ALIGN * GPU_ALIGN;

    for (uint64_t at = 0; at < to.bytes && c->status == RLX_OK; at += each) {
        uint64_t bytes = least_of(each, to.bytes - at), count = bytes / rlx_dtype_size(t);
        gpu_kernel(c, "matmul", "add_to");
        gpu_type(c, "A", t);
        gpu_bind(c, gpu_part(from, at, bytes));
        gpu_bind(c, gpu_part(to, at, bytes));
        gpu_u32(c, "count", count);
        gpu_invocations(c, count, GPU_GROUP);
    }
}

static void add_depths(struct gpu_call *c, const struct gpu_matmul *p, uint64_t each)
{
    uint64_t count = p->of.m * p->of.n, bytes = count * rlx_dtype_size(p->sum), k = p->of.k;
    struct gpu_arg total = gpu_temp(c, bytes), more = gpu_temp(c, bytes);
    uint64_t before = c->scratch, most = before;

    for (uint64_t first = 0; first < k && c->status == RLX_OK; first += each) {
        struct gpu_matmul piece = sums_of(c, p, first ? more : total);
        piece.of.k = least_of(each, k - first);
        piece.a = depth_of(c, p->a, gpu_a_type(p), p->at, p->of.m, gpu_a_row(p), first, piece.of.k);
        piece.b =
            depth_of(c, p->b, gpu_b_type(p), !p->bt, p->of.n, gpu_b_row(p), first, piece.of.k);
        launch_piece(c, &piece, before, &most);
        if (first)
            add_sums(c, more, total, p->sum);
    }
    gpu_add_parts(c, &p->end, total, p->y, count, 1);
    c->scratch = most;
}

/* ---- rows and columns ---- */

/* Lines of the one operand that meet all of the other, of which the sums are so many. */
static uint64_t lines_of(const struct gpu_call *c, const struct gpu_matmul *p, struct gpu_arg other,
                         uint64_t size, uint64_t lines, uint64_t sums)
{
    uint64_t seen = gpu_windows(c, other), all = bindings_of(c);
    uint64_t line = p->of.k * size + sums * rlx_dtype_size(p->sum);

    return least_of(lines_at_once(c, all > seen ? all - seen : 0, line), lines);
}

/* [rows,k] x b, one after another. */
static void stack_rows(struct gpu_call *c, const struct gpu_matmul *p, uint64_t each)
{
    uint64_t line = p->of.k * rlx_dtype_size(gpu_a_type(p)), m = p->of.m;
    uint64_t row = p->of.n * rlx_dtype_size(p->sum);
    struct gpu_arg all = gpu_temp(c, m * row);
    uint64_t before = c->scratch, most = before;

    for (uint64_t first = 0; first < m && c->status == RLX_OK; first += each) {
        uint64_t count = least_of(each, m - first);
        struct gpu_matmul piece = sums_of(c, p, gpu_part(all, first * row, count * row));
        piece.of.m = count;
        piece.a = gpu_part(p->a, first * line, count * line);
        launch_piece(c, &piece, before, &most);
    }
    gpu_add_parts(c, &p->end, all, p->y, m * p->of.n, 1);
    c->scratch = most;
}

/* a x [columns,k]^T, side by side. */
static void join_columns(struct gpu_call *c, const struct gpu_matmul *p, uint64_t each)
{
    uint64_t size = rlx_dtype_size(p->sum), m = p->of.m, n = p->of.n;
    uint64_t line = p->of.k * rlx_dtype_size(gpu_b_type(p));
    struct gpu_arg all = gpu_temp(c, m * n * size), some = gpu_temp(c, m * each * size);
    uint64_t before = c->scratch, most = before;

    for (uint64_t first = 0; first < n && c->status == RLX_OK; first += each) {
        uint64_t count = least_of(each, n - first);
        struct gpu_arg to = gpu_part(all, first * size, all.bytes - first * size);
        struct gpu_matmul piece = sums_of(c, p, gpu_part(some, 0, m * count * size));
        piece.of.n = count;
        piece.b = gpu_part(p->b, first * line, count * line);
        launch_piece(c, &piece, before, &most);
        gpu_copy_columns(c, piece.y, count, to, n, m, count, p->sum);
    }
    gpu_add_parts(c, &p->end, all, p->y, m * n, 1);
    c->scratch = most;
}

/* ---- items ---- */

/* Where item i begins in an operand, in elements. */
static uint64_t walk(const struct gpu_matmul *p, uint64_t i, const uint64_t *step)
{
    uint64_t at = 0;

    for (int32_t d = p->rank; d-- > 0; i /= p->size[d])
        at += i % p->size[d] * step[d];
    return at;
}

static void one_by_one(struct gpu_call *c, const struct gpu_matmul *p)
{
    uint64_t each = p->of.m * p->of.n * rlx_dtype_size(p->sum);
    uint64_t a_size = rlx_dtype_size(gpu_a_type(p)), b_size = rlx_dtype_size(gpu_b_type(p));
    uint64_t b_lines = p->bt ? p->of.n : p->of.k, b_line = p->bt ? p->of.k : p->of.n;
    uint64_t b_bytes = b_lines ? ((b_lines - 1) * gpu_b_row(p) + b_line) * b_size : 0;
    struct gpu_arg all = gpu_temp(c, p->of.items * each);
    uint64_t before = c->scratch, most = before;

    for (uint64_t i = 0; i < p->of.items && c->status == RLX_OK; i++) {
        struct gpu_matmul item = sums_of(c, p, gpu_part(all, i * each, each));
        item.of.items = 1;
        item.rank = 1;
        item.size[0] = 1;
        item.a = gpu_part(p->a, walk(p, i, p->a_step) * a_size, p->of.m * p->of.k * a_size);
        item.b = gpu_part(p->b, walk(p, i, p->b_step) * b_size, b_bytes);
        launch_piece(c, &item, before, &most);
    }
    gpu_add_parts(c, &p->end, all, p->y, p->of.items * p->of.m * p->of.n, 1);
    c->scratch = most;
}

bool gpu_matmul_in_pieces(struct gpu_call *c, const struct gpu_matmul *p)
{
    if (fits(c, p))
        return false;
    if (p->of.items > 1) {
        one_by_one(c, p);
        return true;
    }
    uint64_t rows = lines_of(c, p, p->b, rlx_dtype_size(gpu_a_type(p)), p->of.m, p->of.n);
    uint64_t columns = lines_of(c, p, p->a, rlx_dtype_size(gpu_b_type(p)), p->of.n, p->of.m);
    uint64_t depth = depth_at_once(c, p);
    if (!p->at && gpu_windows(c, p->a) > 2 && rows < p->of.m)
        stack_rows(c, p, rows);
    else if (p->bt && gpu_windows(c, p->b) > 2 && columns < p->of.n)
        join_columns(c, p, columns);
    else if (depth < p->of.k)
        add_depths(c, p, depth);
    else
        return false; /* nothing smaller is to be had */
    return true;
}
