"""reductions.py: reductions, ordering, running sums, softmax and its losses."""
import numpy as np

from numpy_vectors.cases import (ALL, EXACT, FLOATS, INTS, ULP, any_integer, kind, name_of, nums,
                                 rounded, sum_tol, values, wide)

AXES = [(0,), (1,), (-1,), (0, 1), (0, 2), (2, 1), (0, 1, 2), ()]


def reduced(op, x, axes, keep):
    """In the precision of ops-core.md 1.7, rounded once."""
    wrap = {"dtype": x.dtype} if x.dtype.kind in "iu" else {}
    w = x if x.dtype.kind in "iub" else wide(x)
    with np.errstate(all="ignore"):
        if op == "sum":
            y = np.sum(w, axis=axes, keepdims=keep, **wrap)
        elif op == "prod":
            y = np.prod(w, axis=axes, keepdims=keep, **wrap)
        elif op == "mean":
            y = np.sum(w, axis=axes, keepdims=keep) / np.float64(
                np.prod([x.shape[a] for a in axes]))
        else:
            y = getattr(np, op)(w, axis=axes, keepdims=keep)
    return rounded(y, name_of(x))


def reduce_tol(op, dt, x, axes):
    if dt not in ULP or op in ("max", "min"):
        return EXACT
    n = int(np.prod([x.shape[a] for a in axes])) if axes else 1
    if op == "prod":
        return (max(n, 4) * ULP["f32" if dt == "c64" else dt], 1e-30 if dt != "f16" else 1e-7)
    return sum_tol(dt, n, 3.2 * n / (n if op == "mean" else 1))


def reductions(book):
    f = "reduce"
    for op in ("sum", "mean", "max", "min", "prod"):
        for dt in ALL:
            if (op == "mean" and dt in INTS + ["bool"]) or (op in ("max", "min") and dt == "c64"):
                continue
            if dt == "bool" and op in ("sum", "prod"):
                continue
            x = values(op + dt, dt, (2, 3, 4), 0.5 if op == "prod" else -3, 3)
            for axes in AXES if dt in ("f32", "i32") else [(1,), (2, 0)]:
                for keep in (False, True) if dt == "f32" else (False,):
                    book.add(f, f"{dt} {nums(axes)}{' kept' if keep else ''}", "reduce_" + op, [x],
                             reduced(op, x, axes, keep),
                             f"axes={nums(axes)}" + (" keep_dim=true" if keep else ""),
                             reduce_tol(op, dt, x, axes))
        for shape in ((131,), (3, 77), (77, 3)):
            x = values(f"{op}{shape}", "f32", shape, 0.9 if op == "prod" else -3, 1.1)
            for axis in range(len(shape)):
                book.add(f, f"f32 long {nums(shape)} axis {axis}", "reduce_" + op, [x],
                         reduced(op, x, (axis,), False), f"axes=[{axis}]",
                         reduce_tol(op, "f32", x, (axis,)))
        x = np.array([[1, np.nan, 2], [np.inf, 3, 4], [np.inf, -np.inf, 0]], np.float32)
        book.add(f, "f32 special values", "reduce_" + op, [x], reduced(op, x, (1,), False),
                 "axes=[1]", reduce_tol(op, "f32", x, (1,)))
        empty = np.zeros((2, 0, 3), np.float32)
        want = {"max": -np.inf, "min": np.inf}.get(op)
        want = (np.full((2, 3), want, np.float32) if want is not None
                else reduced(op, empty, (1,), False))
        book.add(f, "f32 empty axis", "reduce_" + op, [empty], want, "axes=[1]")
        book.add(f, "f32 nothing left", "reduce_" + op, [empty], np.zeros((0, 3), np.float32),
                 "axes=[0]")
    for dt in INTS:
        x = any_integer("wrap" + dt, dt, (3, 6))
        for op in ("sum", "prod", "max", "min"):
            book.add(f, f"{dt} whole range", "reduce_" + op, [x], reduced(op, x, (1,), False),
                     "axes=[1]")


def stable_order(x, axis, descending):
    """Stable in both directions; NaN last, and first when descending."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    n = x.shape[axis]
    return n - 1 - np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)


def ordering(book):
    f = "order"
    for op in ("argmax", "argmin"):
        for dt in FLOATS + INTS + ["bool"]:
            x = values(op + dt, dt, (3, 5, 2), -4, 4)
            for axis in (-1, 0, 1):
                book.add(f, f"{dt} axis {axis}", op, [x],
                         getattr(np, op)(x, axis=axis).astype(np.int32), f"axis={axis}")
        x = np.array([[1, np.nan, 7, np.nan], [np.inf, 2, np.inf, -np.inf], [0, -0.0, 0, 0]],
                     np.float32)
        book.add(f, "f32 special values", op, [x], getattr(np, op)(x, axis=1).astype(np.int32))
        for dt in ("i64", "f32"):
            book.add(f, f"f32 as {dt}, kept", op, [x],
                     getattr(np, op)(x, axis=0, keepdims=True).astype(kind(dt)),
                     f"axis=0 keep_dim=true index_dtype={dt}")
    for dt in FLOATS + INTS:
        x = values("sort" + dt, dt, (3, 7, 2), -4, 4)
        if dt in FLOATS:
            x.flat[5], x.flat[9] = np.nan, np.inf
        for axis, down in ((-1, False), (1, False), (1, True), (0, True)):
            order = stable_order(x, axis, down)
            attrs = f"axis={axis}" + (" descending=true" if down else "")
            label = f"{dt} axis {axis}{' down' if down else ''}"
            book.add(f, label, "sort", [x], np.take_along_axis(x, order, axis), attrs)
            book.add(f, label, "argsort", [x], order.astype(np.int32), attrs)
        order = stable_order(x, 1, True)[:, :4]
        book.add(f, f"{dt} indices", "topk", [x], order.astype(np.int32), "k=4 axis=1")
        book.add(f, f"{dt} values", "topk", [x], np.take_along_axis(x, order, 1),
                 "k=4 axis=1 result=values")
    x = values("sortlong", "f32", (2, 150), -2, 2)
    book.add(f, "f32 long with ties", "argsort", [x], stable_order(x, 1, False).astype(np.int64),
             "index_dtype=i64")
    empty = np.zeros((2, 0), np.float32)
    book.add(f, "f32 empty", "sort", [empty], empty)


def scans(book):
    f = "scan"
    table = {"cumsum": np.cumsum, "cumprod": np.cumprod,
             "cummax": lambda x, axis, **_: np.maximum.accumulate(x, axis=axis)}
    start = {"cumsum": 0, "cumprod": 1, "cummax": -np.inf}
    for op, fn in table.items():
        for dt in FLOATS + INTS:
            x = values(op + dt, dt, (3, 4, 2), -2 if op != "cumprod" else 0.5, 2)
            for axis in (0, 1, 2):
                w = wide(x) if dt in FLOATS else x
                y = fn(w, axis=axis, **({} if dt in FLOATS else {"dtype": x.dtype}))
                tol = EXACT if op == "cummax" else sum_tol(dt, 4, 20)
                book.add(f, f"{dt} axis {axis}", op, [x], rounded(y, dt), f"axis={axis}", tol)
                if dt not in FLOATS:
                    continue
                first = np.full_like(np.take(y, [0], axis), start[op])
                before = np.concatenate([first, np.delete(y, -1, axis)], axis)
                book.add(f, f"{dt} axis {axis} exclusive", op, [x], rounded(before, dt),
                         f"axis={axis} exclusive=true", tol)
        x = np.array([[1, np.nan, 3], [-np.inf, 2, np.inf]], np.float32)
        with np.errstate(all="ignore"):
            book.add(f, "f32 special values", op, [x], rounded(fn(wide(x), axis=1), "f32"))
        x = values(op + "long", "f32", (200,), 0.9, 1.1)
        book.add(f, "f32 long", op, [x], rounded(fn(wide(x), axis=0), "f32"),
                 tol=EXACT if op == "cummax" else sum_tol("f32", 200, 230))
        empty = np.zeros((0, 2), np.float32)
        book.add(f, "f32 empty", op, [empty], empty, "axis=0")
    for dt in FLOATS + ["i32"]:
        x = values("back" + dt, dt, (3, 4), -2, 2)
        w = wide(x) if dt in FLOATS else x
        y = np.flip(np.cumsum(np.flip(w, 1), axis=1), 1)
        book.add(f, dt, "cumsum_backward", [x], rounded(y, dt), tol=sum_tol(dt, 4, 8))


def softmax_of(x, axis):
    top = np.max(x, axis=axis, keepdims=True)
    with np.errstate(all="ignore"):
        e = np.exp(x - top)
        y = e / np.sum(e, axis=axis, keepdims=True)
    return np.where(np.isneginf(top), 0, y)


def softmax(book):
    tol = {"f16": (2 * ULP["f16"], 2e-6), "f32": (1e-5, 2e-6), "f64": (1e-12, 1e-14)}
    for dt in FLOATS:
        x = values("softmax" + dt, dt, (2, 5, 3), -9, 9)
        for axis in (-1, 0, 1):
            book.add("softmax", f"{dt} axis {axis}", "softmax", [x],
                     rounded(softmax_of(wide(x), axis), dt), f"axis={axis}", tol[dt])
        x = np.array([[1, -np.inf, 2], [-np.inf] * 3, [np.nan, 0, 1], [np.inf, 0, 1], [9, 9, 9],
                      [6e4, -6e4, 0]], kind(dt))
        book.add("softmax", f"{dt} special values", "softmax", [x],
                 rounded(softmax_of(wide(x), -1), dt), tol=tol[dt])
    x = values("softmaxlong", "f32", (3, 77), -5, 5)
    book.add("softmax", "f32 long rows", "softmax", [x], rounded(softmax_of(wide(x), -1), "f32"),
             tol=tol["f32"])
    x, label = values("loss", "f32", (4, 5)), np.array([0, 4, -1, 2], np.int32)
    lse = np.log(np.sum(np.exp(wide(x)), axis=1))
    picked = wide(x)[np.arange(4), np.maximum(label, 0)]
    want = np.where(label < 0, 0, lse - picked)
    book.add("softmax", "f32", "softmax_cross_entropy_with_logits", [x, label],
             rounded(want, "f32"), tol=tol["f32"])
    target = rounded(softmax_of(values("target", "f64", (4, 5)), -1), "f32")
    want = -np.sum(wide(target) * (wide(x) - lse[:, None]), axis=1)
    book.add("softmax", "f32", "softmax_cross_entropy", [x, target], rounded(want, "f32"),
             tol=(1e-5, 4e-6))


MAKERS = [reductions, ordering, scans, softmax]
