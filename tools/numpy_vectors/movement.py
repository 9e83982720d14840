"""movement.py: ops that move elements about, by position or by index."""
import itertools

import numpy as np

from numpy_vectors.cases import (ALL, BITS, EXACT, FLOATS, INTS, kind, nums, rounded, sum_tol,
                                 values, wide)


def movement(book):
    f = "movement"
    for dt in ALL:
        x = values("move" + dt, dt, (3, 4, 5), -50, 50)
        y = values("move2" + dt, dt, (3, 2, 5), -50, 50)
        book.add(f, dt, "reshape", [x], x.reshape(6, 10), "shape=[6,-1]", BITS)
        book.add(f, dt, "transpose", [x], x.transpose(2, 0, 1), "perm=[2,0,1]", BITS)
        book.add(f, dt, "narrow", [x], x[:, 1:3], "axis=1 start=1 len=2", BITS)
        book.add(f, dt, "slice", [x], x[:, :, 4::-2], "axis=2 start=4 len=3 step=-2", BITS)
        book.add(f, dt, "concat", [x, y, x], np.concatenate([x, y, x], 1), "axis=1", BITS)
        book.add(f, dt, "reverse", [x], np.flip(x, (0, 2)), "axes=[0,-1]", BITS)
        book.add(f, dt, "tile", [y], np.tile(y, (1, 2, 3)), "reps=[1,2,3]", BITS)
        book.add(f, dt, "expand", [y[:, :1]], np.broadcast_to(y[:, :1], (2, 3, 4, 5)),
                 "shape=[2,3,4,5]", BITS)
        book.add(f, dt, "trilu", [x], np.triu(x, 1), "diagonal=1")
        book.add(f, f"{dt} circular", "pad", [y], np.pad(y, ((1, 2), (0, 2), (5, 0)), "wrap"),
                 "before=[1,0,5] after=[2,2,0] mode=circular", BITS)


def movement_shapes(book):
    f = "movement"
    x = values("shapes", "f32", (2, 3, 4, 5))
    for perm in [(0, 1, 2, 3), (3, 2, 1, 0), (0, 2, 1, 3), (1, 0, 3, 2), (2, 3, 0, 1),
                 (0, 1, 3, 2)]:
        book.add(f, f"f32 {nums(perm)}", "transpose", [x], x.transpose(perm), f"perm={nums(perm)}")
    big = values("big", "f32", (33, 18))
    book.add(f, "f32 tall", "transpose", [big], big.T, "perm=[1,0]")
    deep = values("deep", "i16", (1, 2, 1, 3, 1, 2, 1, 2))
    book.add(f, "i16 rank 8", "transpose", [deep], deep.transpose(7, 5, 3, 1, 0, 2, 4, 6),
             "perm=[-1,5,3,1,0,2,4,6]")
    scalar, empty = np.float32(2.5), np.zeros((0, 3), np.float32)
    book.add(f, "f32 rank 0", "transpose", [scalar], scalar, "perm=[]")
    book.add(f, "f32 scalar", "reshape", [scalar], scalar.reshape(1, 1), "shape=[1,1]")
    book.add(f, "f32 empty", "reshape", [empty], empty.reshape(3, 0, 5), "shape=[3,0,5]")
    book.add(f, "f32 empty", "transpose", [empty], empty.T, "perm=[1,0]")
    book.add(f, "f32 to empty", "expand", [np.ones((1, 3), np.float32)], empty, "shape=[0,-1]")
    book.add(f, "f32 scalar", "expand", [scalar], np.full((2, 2), 2.5, np.float32), "shape=[2,2]")
    for axis, start, stop, step in [(0, 0, 2, 1), (1, 2, None, -1), (2, 1, 4, 2), (3, 0, 5, 3)]:
        at = [slice(None)] * 4
        at[axis] = slice(start, stop, step)
        want = x[tuple(at)]
        book.add(f, f"f32 axis {axis} step {step}", "slice", [x], want,
                 f"axis={axis} start={start} len={want.shape[axis]} step={step}")
    book.add(f, "f32 nothing", "slice", [x], x[:, 0:0], "axis=1 start=0 len=0")
    book.add(f, "f32 nothing", "narrow", [x], x[:, :, 4:], "axis=-2 start=4 len=0")
    parts = [values(f"part{n}", "f32", (2, n, 3)) for n in (1, 0, 4)]
    book.add(f, "f32 with an empty part", "concat", parts, np.concatenate(parts, 1), "axis=-2")
    book.add(f, "f32 rows", "concat", [x, x], np.concatenate([x, x], 0), "axis=0")
    book.add(f, "f32 nothing", "tile", [x], np.tile(x, (1, 0, 1, 2)), "reps=[1,0,1,2]")
    for upper, diagonal in itertools.product((True, False), (-2, 0, 3)):
        fn = np.triu if upper else np.tril
        book.add(f, f"f32 {'upper' if upper else 'lower'} {diagonal}", "trilu", [x],
                 fn(x, diagonal), f"upper={str(upper).lower()} diagonal={diagonal}")
    img = values("img", "f32", (1, 2, 2, 3))
    book.add(f, "f32", "resize_nearest_2x", [img], img.repeat(2, 2).repeat(2, 3))
    vol = values("vol", "f32", (1, 2, 2, 3, 4))
    index = [np.minimum(np.arange(o) * i // o, i - 1) for o, i in zip((3, 5, 2), (2, 3, 4))]
    book.add(f, "f32", "interpolate_3d", [vol],
             vol[:, :, index[0]][:, :, :, index[1]][..., index[2]], "size=[3,5,2]")


def pad(book):
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    widths = {"one axis": ((0, 0), (3, 2)), "both": ((1, 2), (4, 0)), "none": ((0, 0), (0, 0))}
    for (word, mode), (label, width) in itertools.product(modes.items(), widths.items()):
        for dt in ("f32", "i32", "u8"):
            x = values("pad" + dt, dt, (3, 5), -9, 99)
            keys = {"constant_values": 7} if word == "constant" else {}
            before, after = zip(*width)
            book.add("pad", f"{dt} {word} {label}", "pad", [x], np.pad(x, width, mode, **keys),
                     f"before={nums(before)} after={nums(after)} mode={word}"
                     + (" value=7" if keys else ""), BITS)
    x = values("pad4", "f32", (2, 1, 3, 2))
    book.add("pad", "f32 rank 4", "pad", [x], np.pad(x, ((0, 1), (1, 0), (2, 2), (1, 1))),
             "before=[0,1,2,1] after=[1,0,2,1]")
    book.add("pad", "f32 infinite value", "pad", [x[0, 0, 0]],
             np.pad(x[0, 0, 0], 1, constant_values=-np.inf), "before=[1] after=[1] value=-inf")
    empty = np.zeros((0, 2), np.float32)
    book.add("pad", "f32 empty", "pad", [empty], np.zeros((3, 2), np.float32),
             "before=[1,0] after=[2,0]")


# ---- indexing ----------------------------------------------------------------------------------


def gather(book):
    f = "gather"
    for dt in ALL:
        x, i = values("take" + dt, dt, (4, 3), -50, 50), np.array([3, 0, 0, 2], np.int32)
        book.add(f, dt, "gather", [x, i], np.take(x, i, 0))
        i = values("along" + dt, "i32", (2, 3), 0, 3)
        book.add(f, dt, "gather_elements", [x, i], np.take_along_axis(x[:, :3], i, 0))
    x = values("take", "f32", (2, 5, 3))
    for dt in INTS + ["f32", "f64"]:
        i = values("index" + dt, dt, (2, 2), 0, 4)
        i = np.trunc(i).astype(i.dtype)
        whole = i.astype(np.int64)
        book.add(f, f"f32 by {dt}", "gather", [x, i], np.take(x, whole, 1), "axis=1")
        i2 = np.stack([i, i])[..., :1].reshape(2, 2, 1).repeat(3, 2)
        book.add(f, f"f32 by {dt}", "gather_elements", [x, i2],
                 np.take_along_axis(x, i2.astype(np.int64), 1), "axis=1")
    one = np.int32(1)
    book.add(f, "f32 by a scalar", "gather", [x, one], x[:, :, 1], "axis=-1")
    none = np.zeros((0,), np.int32)
    book.add(f, "f32 by nothing", "gather", [x, none], np.take(x, none, 1), "axis=1")
    out = np.array([-1, 7, 2], np.int32)
    book.add(f, "f32 out of range", "gather", [x, out], np.take(x, out, 1, mode="clip"), "axis=1")
    i = np.array([[0, 4], [1, 2]], np.int32)
    book.add(f, "f32 two coordinates", "gather_nd", [x, i], x[i[:, 0], i[:, 1]])
    i = np.array([[[4, 2]], [[0, 1]]], np.int64)
    book.add(f, "f32 a batch", "gather_nd", [x, i], np.stack([x[b][i[b, :, 0], i[b, :, 1]]
                                                              for b in (0, 1)]), "batch_dims=1")
    i = np.array([[1], [0], [1]], np.int32)
    book.add(f, "f32 whole slices", "gather_nd", [x, i], x[i[:, 0]])


def scatter(book):
    f = "scatter"
    rows = np.array([2, 0, 2, 4, 0], np.int32)
    for dt in FLOATS + INTS:
        u = values("scatter" + dt, dt, (5, 3), -9, 9)
        want = np.zeros((6, 3), kind(dt) if dt in INTS else np.float64)
        np.add.at(want, rows, u)
        tol = sum_tol(dt, 2, 20) if dt in FLOATS else EXACT
        book.add(f, dt, "scatter_add", [u, rows], rounded(want, dt), "out_dim=6", tol)
    u = values("scatter2", "f32", (2, 3, 2))
    i = np.array([[0, 1, 1], [1, 3, 0]], np.int64)
    want = np.zeros((4, 2))
    np.add.at(want, i, u)
    book.add(f, "f32 two index axes", "scatter_add", [u, i], rounded(want, "f32"), "out_dim=4",
             sum_tol("f32", 2, 6))
    want = np.zeros((2, 4, 2))
    for b in range(2):
        np.add.at(want[b], i[0], u[b])
    book.add(f, "f32", "gather_backward", [u, i[0]], rounded(want, "f32"), "axis=1 table_dim=4",
             sum_tol("f32", 2, 6))
    x, u = values("sd", "f32", (4, 3)), values("su", "f32", (2, 3))
    i = np.array([[3, 0, 1], [3, 2, 2]], np.int32)
    ufuncs = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
    columns = np.broadcast_to(np.arange(3), (2, 3))
    for word, fn in ufuncs.items():
        want = wide(x)
        fn.at(want, (i, columns), wide(u))
        tol = (3e-7, 3e-7) if word in ("add", "mul") else EXACT
        book.add(f, f"f32 {word}", "scatter_elements", [x, i, u], rounded(want, "f32"),
                 f"reduction={word}", tol)
        want = wide(x)
        fn.at(want, i[:, 0], wide(u))
        book.add(f, f"f32 {word}", "scatter_nd", [x, i[:, :1], u], rounded(want, "f32"),
                 f"reduction={word}", tol)
    for dt in ALL:
        x, u = values("put" + dt, dt, (3, 4), -9, 9), values("putu" + dt, dt, (3, 2), -9, 9)
        i = np.array([[0, 3], [2, 1], [3, 0]], np.int32)
        want = x.copy()
        np.put_along_axis(want, i, u, 1)
        book.add(f, f"{dt} none", "scatter_elements", [x, i, u], want, "axis=1")
        at = np.array([[0, 3], [2, 1], [1, 0]], np.int32)
        want = x.copy()
        want[at[:, 0], at[:, 1]] = u[:, 0]
        book.add(f, f"{dt} none", "scatter_nd", [x, at, u[:, 0]], want)


MAKERS = [movement, movement_shapes, pad, gather, scatter]
