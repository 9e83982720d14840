"""contraction.py: products, solvers and norms."""
import itertools

import numpy as np

from numpy_vectors.cases import (EXACT, FLOATS, INTS, kind, norm_tol, nums, rounded, sum_tol,
                                 values, wide)

PRODUCTS = [((1, 1), (1, 1)), ((3, 4), (4, 5)), ((17, 33), (33, 7)), ((2, 1, 4, 5), (3, 5, 6)),
            ((3, 2, 5), (5, 4)), ((2, 3, 0), (0, 4)), ((0, 3), (3, 2)), ((1, 40), (40, 9)),
            ((5, 3, 2), (5, 2, 1)), ((21, 19), (19, 35))]


def swapped(x):
    return np.ascontiguousarray(np.swapaxes(x, -1, -2))


def product_want(fn, a, b, dt):
    """The product in a type that holds it, and how near a result must come."""
    if dt in INTS:
        return fn(a, b).astype(kind(dt)), EXACT
    n = max(1, a.shape[-1])
    scale = np.max(fn(np.abs(wide(a)), np.abs(wide(b))), initial=0)
    if dt == "c64":
        scale *= 2
    return rounded(fn(wide(a), wide(b)), dt), sum_tol(dt, n, scale)


def matmul(book):
    f = "matmul"
    for dt in FLOATS + ["i32", "i64", "c64"]:
        for sa, sb in PRODUCTS if dt == "f32" else PRODUCTS[1:6]:
            lo, hi = (-99999, 99999) if dt in INTS else (-3, 3)
            a, b = values(f"mm{dt}{sa}", dt, sa, lo, hi), values(f"mmb{dt}{sb}", dt, sb, lo, hi)
            want, tol = product_want(np.matmul, a, b, dt)
            for ta, tb in itertools.product((False, True), repeat=2):
                if (ta or tb) and dt != "f32" and sa != PRODUCTS[1][0]:
                    continue
                if (ta or tb) and a.size * b.size > 80000:
                    continue
                attrs = (" transpose_a=true" if ta else "") + (" transpose_b=true" if tb else "")
                stored = [swapped(a) if ta else a, swapped(b) if tb else b]
                book.add(f, f"{dt} {nums(sa)} {nums(sb)}{attrs}", "matmul", stored, want,
                         attrs.strip(), tol)
    a = np.array([[np.inf, 0], [1, np.nan]], np.float32)
    b = np.array([[1, 0], [2, 3]], np.float32)
    with np.errstate(all="ignore"):
        book.add(f, "f32 special values", "matmul", [a, b], a @ b)


def dot_general(book):
    rows = [((2, 3, 4), (4, 2, 5), [2], [0], [0], [1]), ((3,), (4,), [], [], [], []),
            ((2, 3, 4, 5), (4, 3, 6), [1, 2], [1, 0], [], []),
            ((2, 3, 4), (3, 5, 2), [], [], [1, 0], [0, 2]), ((6,), (6,), [0], [0], [], []),
            ((2, 0, 3), (0, 4), [1], [0], [], []), ((3, 2, 4), (4, 5, 3), [-1], [0], [0], [-1])]
    for dt in ("f32", "f64", "f16", "i32", "c64"):
        for sa, sb, lc, rc, lb, rb in rows:
            a, b = values(f"dg{dt}{sa}", dt, sa), values(f"dgb{dt}{sb}", dt, sb)
            left, right = list("abcdefgh"[:len(sa)]), list("ijklmnop"[:len(sb)])
            for i, k in list(zip(lc, rc)) + list(zip(lb, rb)):
                right[k] = left[i]
            batch = [left[i] for i in lb]
            used = set(batch) | {left[i] for i in lc}
            out = batch + [c for c in left if c not in used] + [c for c in right if c not in used]
            spec = f"{''.join(left)},{''.join(right)}->{''.join(out)}"

            def fn(x, y, spec=spec):
                return np.einsum(spec, x, y)

            want, _ = product_want(fn, a, b, dt)
            n = int(np.prod([sa[i] for i in lc], initial=1))
            attrs = (f"lhs_contracting={nums(lc)} rhs_contracting={nums(rc)}"
                     + (f" lhs_batch={nums(lb)} rhs_batch={nums(rb)}" if lb else ""))
            book.add("matmul", f"{dt} {spec}", "dot_general", [a, b], want, attrs,
                     sum_tol(dt, n, 20 * max(n, 1)))
    x, w = values("gx", "f32", (5, 3)), values("gw", "f32", (2, 3, 4))
    expert = np.array([0, 1, 1, 0, 1], np.int32)
    want = np.einsum("mk,mkn->mn", wide(x), wide(w)[expert])
    book.add("matmul", "f32", "grouped_matmul", [x, w, expert], rounded(want, "f32"),
             tol=sum_tol("f32", 3, 27))
    x, w = values("lx", "f32", (2, 3, 4)), values("lw", "f32", (4, 5))
    a, b = values("la", "f32", (4, 2)), values("lb", "f32", (2, 5))
    want = wide(x) @ wide(w) + 0.5 * (wide(x) @ wide(a)) @ wide(b)
    book.add("matmul", "f32", "lora_matmul", [x, w, a, b], rounded(want, "f32"), "scale=0.5",
             (1e-5, 2e-5))


def solvers(book):
    f = "solve"
    for dt in ("f32", "f64"):
        tol = (1e-5, 1e-5) if dt == "f32" else (1e-12, 1e-12)
        for n in (1, 2, 5, 12):
            a = values(f"solve{n}{dt}", dt, (n, n))
            a = rounded(wide(a) + 4 * np.eye(n)[::-1], dt)  # well conditioned, and must pivot
            b, many = values(f"rhs{n}{dt}", dt, (n,)), values(f"rhs2{n}{dt}", dt, (n, 3))
            book.add(f, f"{dt} {n}", "dense_solve", [a, b],
                     rounded(np.linalg.solve(wide(a), wide(b)), dt), tol=tol)
            book.add(f, f"{dt} {n} many", "dense_solve", [a, many],
                     rounded(np.linalg.solve(wide(a), wide(many)), dt), tol=tol)
            book.add(f, f"{dt} {n}", "det", [a], rounded(np.linalg.det(wide(a)), dt), tol=tol)
            book.add(f, f"{dt} {n}", "logdet", [a], rounded(np.linalg.slogdet(wide(a))[1], dt),
                     tol=tol)
            # Short entries, so that the matrix that is written down is the one that is factored.
            s = np.round(wide(a) @ wide(a).T, 2) + n * np.eye(n)
            s = rounded((s + s.T) / 2, dt)
            book.add(f, f"{dt} {n}", "cholesky", [s],
                     rounded(np.linalg.cholesky(wide(s)), dt), tol=tol)
            for lower, flip in itertools.product((True, False), repeat=2):
                tri = np.tril(wide(s)) if lower else np.triu(wide(s))
                want = np.linalg.solve(tri.T if flip else tri, wide(many))
                word = f"lower={str(lower).lower()} transpose={str(flip).lower()}"
                book.add(f, f"{dt} {n} {word}", "triangular_solve", [s, many], rounded(want, dt),
                         word, tol)
        a = values("bsolve" + dt, dt, (3, 4, 4))
        a = rounded(wide(a) + 6 * np.eye(4), dt)
        b = values("brhs" + dt, dt, (3, 4, 2))
        book.add(f, dt, "batched_dense_solve", [a, b],
                 rounded(np.linalg.solve(wide(a), wide(b)), dt), tol=tol)


# ---- norms -------------------------------------------------------------------------------------


def along(v, x, axis):
    shape = [1] * x.ndim
    shape[axis] = -1
    return v.reshape(shape)


EPS = float(np.float32(1e-5))  # the attribute is an f32


def layer_norm_of(x, gamma, beta, axis, eps=EPS):
    mean = x.mean(axis=axis, keepdims=True)
    var = ((x - mean)**2).mean(axis=axis, keepdims=True)
    return (x - mean) / np.sqrt(var + eps) * gamma + beta


def norms(book):
    f = "norm"
    for dt in FLOATS:
        for axis, shape in ((-1, (3, 4, 7)), (1, (2, 5, 3)), (-1, (2, 33)), (-1, (1, 1))):
            x = values(f"norm{dt}{shape}", dt, shape)
            g = values(f"gamma{dt}{shape}", dt, (shape[axis],), 0.5, 2)
            b = values(f"beta{dt}{shape}", dt, (shape[axis],))
            gw, bw = along(wide(g), x, axis), along(wide(b), x, axis)
            attrs = f"axis={axis}"
            eps = EPS
            if shape == (1, 1):  # the one place where it shows
                attrs, eps = attrs + " eps=0.001", float(np.float32(1e-3))
            tail = f"{dt} {nums(shape)} axis {axis}"
            book.add(f, tail, "layer_norm", [x, g, b],
                     rounded(layer_norm_of(wide(x), gw, bw, axis, eps), dt), attrs, norm_tol(dt))
            r = 1 / np.sqrt((wide(x)**2).mean(axis=axis, keepdims=True) + eps)
            book.add(f, tail, "rms_norm", [x, g], rounded(wide(x) * r * gw, dt), attrs,
                     norm_tol(dt))
            book.add(f, tail + " with beta", "rms_norm", [x, g, b],
                     rounded(wide(x) * r * gw + bw, dt), attrs, norm_tol(dt))
        x = values("gn" + dt, dt, (2, 6, 3, 2))
        g, b = values("gng" + dt, dt, (6,), 0.5, 2), values("gnb" + dt, dt, (6,))
        gw, bw = along(wide(g), x, 1), along(wide(b), x, 1)
        grouped = wide(x).reshape(2, 3, -1)
        y = layer_norm_of(grouped, 1, 0, 2).reshape(x.shape) * gw + bw
        book.add(f, dt, "group_norm", [x, g, b], rounded(y, dt), "num_groups=3", norm_tol(dt))
        book.add(f, dt, "layer_norm_2d", [x, g, b],
                 rounded(layer_norm_of(wide(x), gw, bw, 1), dt), tol=norm_tol(dt))
        mean, var = values("bnm" + dt, dt, (6,)), values("bnv" + dt, dt, (6,), 0.5, 3)
        y = (wide(x) - along(wide(mean), x, 1)) / np.sqrt(along(wide(var), x, 1) + EPS) * gw + bw
        book.add(f, dt, "batch_norm_inference", [x, g, b, mean, var], rounded(y, dt), "axis=1",
                 norm_tol(dt))
        x = values("ada" + dt, dt, (2, 3, 5))
        scale, shift = values("ads" + dt, dt, (2, 1, 5)), values("adt" + dt, dt, (5,))
        y = layer_norm_of(wide(x), 1 + wide(scale), wide(shift), -1)
        book.add(f, dt, "ada_layer_norm", [x, scale, shift], rounded(y, dt), tol=norm_tol(dt))
        y = wide(x) + wide(scale) * wide(x)
        book.add(f, dt, "gated_residual", [x, x, scale], rounded(y, dt), tol=norm_tol(dt))


MAKERS = [matmul, dot_general, solvers, norms]
