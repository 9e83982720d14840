"""elementwise.py: ops on single elements."""
import itertools
import math

import numpy as np

from numpy_vectors.cases import (ALL, BITS, EXACT, FLOATS, INTS, SIGNED, ULP, any_integer,
                                 function_tol, kind, name_of, nums, pairs, rounded, special, ulps,
                                 values, wide)

BROADCASTS = [((), ()), ((7,), (7,)), ((2, 1, 3), (4, 1)), ((0, 3), (1, 3)), ((3, 5), (5,)),
              ((1,), (2, 1, 2, 1)), ((2, 3, 1, 2), (1, 4, 2))]


def truncated_div(a, b):
    """C's integer division; NumPy's rounds down, and both take x / 0 for 0."""
    with np.errstate(all="ignore"):
        return np.floor_divide(a - np.fmod(a, b), b)


def arithmetic(book):
    f = "arithmetic"
    for op, fn in [("add", np.add), ("sub", np.subtract), ("mul", np.multiply)]:
        for dt in FLOATS + INTS + ["c64"]:
            # A product of complex numbers rounds each part of it, one way or another.
            tol = (4e-7, 4e-7) if dt == "c64" else BITS
            shapes = BROADCASTS if dt in ("f32", "i64") else BROADCASTS[1:4]
            for sa, sb in shapes:
                seed = f"{op}{dt}{sa}"
                if dt in INTS:
                    a, b = any_integer(seed, dt, sa), any_integer(seed + "b", dt, sb)
                else:
                    a, b = values(seed, dt, sa), values(seed + "b", dt, sb)
                with np.errstate(all="ignore"):
                    want = fn(a, b)
                book.add(f, f"{dt} {nums(sa)} {nums(sb)}", op, [a, b], want, tol=tol)
        for dt in FLOATS:
            a, b = pairs(special(dt))
            with np.errstate(all="ignore"):
                book.add(f, f"{dt} special values", op, [a, b], fn(a, b), tol=BITS)
        a, b = values(op + "long", "f32", (3, 67)), values(op + "longb", "f32", (3, 67))
        book.add(f, "f32 long rows", op, [a, b], fn(a, b), tol=BITS)
    for dt in FLOATS:
        for sa, sb in BROADCASTS[:4]:
            a, b = values(f"div{dt}{sa}", dt, sa), values(f"div{dt}{sb}b", dt, sb, 0.5, 4)
            book.add(f, f"{dt} {nums(sa)} {nums(sb)}", "div", [a, b], a / b, tol=ulps(dt, 1))
        a, b = pairs(special(dt))
        with np.errstate(all="ignore"):
            book.add(f, f"{dt} special values", "div", [a, b], a / b, tol=ulps(dt, 1))
    a, b = values("divc", "c64", (2, 3)), values("divcb", "c64", (3,), 0.5, 2)
    book.add(f, "c64", "div", [a, b], rounded(wide(a) / wide(b), "c64"), tol=(1e-6, 1e-6))
    for dt in INTS:
        a, b = any_integer("div" + dt, dt, (23,)), values("divb" + dt, dt, (23,), -9, 9)
        book.add(f, f"{dt} and by zero", "div", [a, b], truncated_div(a, b))
        with np.errstate(all="ignore"):
            book.add(f, f"{dt} and by zero", "mod", [a, b], np.fmod(a, b))


def extremes_and_powers(book):
    f = "binary"
    for op, fn in [("max", np.maximum), ("min", np.minimum)]:
        for dt in FLOATS + INTS + ["bool"]:
            a = values(op + dt, dt, (2, 1, 5), -50, 50)
            b = values(op + dt + "b", dt, (3, 1), -50, 50)
            book.add(f, f"{dt} broadcast", op, [a, b], fn(a, b))
        for dt in FLOATS:
            a, b = pairs(special(dt))
            book.add(f, f"{dt} special values", op, [a, b], fn(a, b))
        empty = np.zeros((0, 4), np.float32)
        book.add(f, "f32 empty", op, [empty, empty], empty)
    for dt in FLOATS:
        a, b = values("pow" + dt, dt, (4, 5), 0.05, 3), values("powb" + dt, dt, (5,), -3, 3)
        book.add(f, f"{dt} broadcast", "pow", [a, b], rounded(wide(a) ** wide(b), dt),
                 tol=function_tol(dt))
        grid = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, np.inf, -np.inf, np.nan], kind(dt))
        a, b = pairs(grid)
        with np.errstate(all="ignore"):
            book.add(f, f"{dt} special values", "pow", [a, b],
                     rounded(np.power(wide(a), wide(b)), dt), tol=function_tol(dt))
            book.add(f, f"{dt} special values", "atan2", [a, b],
                     rounded(np.arctan2(wide(a), wide(b)), dt), tol=function_tol(dt))
            book.add(f, f"{dt} special values", "mod", [a, b], np.fmod(a, b))
        a, b = values("mod" + dt, dt, (6, 5), -40, 40), values("modb" + dt, dt, (6, 1), 0.5, 7)
        book.add(f, f"{dt} broadcast", "mod", [a, b], np.fmod(a, b))
        a, b = values("atan2" + dt, dt, (17,)), values("atan2b" + dt, dt, (17,))
        book.add(f, dt, "atan2", [a, b], rounded(np.arctan2(wide(a), wide(b)), dt),
                 tol=function_tol(dt))


def bits_and_shifts(book):
    f = "binary"
    for op, fn in [("bit_and", np.bitwise_and), ("bit_or", np.bitwise_or),
                   ("bit_xor", np.bitwise_xor)]:
        for dt in INTS:
            a, b = any_integer(op + dt, dt, (3, 4)), any_integer(op + dt + "b", dt, (4,))
            book.add(f, dt, op, [a, b], fn(a, b))
        a, b = pairs(np.array([False, True]))
        book.add(f, "bool", op, [a, b], fn(a, b))
    for op, fn in [("shl", np.left_shift), ("shr", np.right_shift)]:
        for dt in INTS:
            width = 8 * kind(dt).itemsize
            counts = [0, 1, 3, width - 1, width, width + 3] + ([-1] if dt in SIGNED else [])
            a, b = pairs(any_integer(op + dt, dt, (5,)), np.array(counts, kind(dt)))
            book.add(f, f"{dt} all counts", op, [a, b], fn(a, b))


# Mixtures on which the two promotions agree.
MIXED = [("u8", "i8"), ("u16", "i16"), ("u32", "i32"), ("i8", "i32"), ("u8", "u32"), ("f16", "f32"),
         ("f32", "f64"), ("i64", "f32"), ("u8", "i64"), ("bool", "f16"), ("bool", "i32"),
         ("f32", "c64"), ("i16", "f64")]


def promotion(book):
    for da, db in MIXED:
        a, b = values("mix" + da + db, da, (2, 3), -5, 5), values("mixb" + da + db, db, (3,), -5, 5)
        for (x, y) in ((a, b), (b, a)):
            label = f"{name_of(x)} with {name_of(y)}"
            book.add("promotion", label, "add", [x, y], x + y)
            book.add("promotion", label, "eq", [x, y], x == y)
            book.add("promotion", label, "where", [np.array([True, False, True]), x, y],
                     np.where(np.array([True, False, True]), x, y))


def compare(book):
    table = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
             "gt": np.greater, "ge": np.greater_equal}
    for op, fn in table.items():
        for dt in FLOATS:
            a, b = pairs(special(dt)[:9])
            book.add("compare", f"{dt} special values", op, [a, b], fn(a, b))
        for dt in INTS:
            a = any_integer(op + dt, dt, (3, 1, 4))
            b = np.concatenate([a[0, 0, :2], any_integer(op + "b" + dt, dt, (2,))])
            book.add("compare", f"{dt} broadcast", op, [a, b], fn(a, b))
    for op in ("eq", "ne"):
        a, b = pairs(np.array([False, True]))
        book.add("compare", "bool", op, [a, b], table[op](a, b))
        a, b = pairs(np.array([0, 1, 1j, 1 + 1j, complex(np.nan, 0)], np.complex64))
        book.add("compare", "c64", op, [a, b], table[op](a, b))
        empty = np.zeros((2, 0), np.float32)
        book.add("compare", "f32 empty", op, [empty, np.float32(1)], empty.astype(bool))


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), 1 - 1 / (1 + np.exp(-np.abs(x))))


def gelu(x):
    phi = np.array([math.erfc(-v / math.sqrt(2)) / 2 if v == v else v for v in x.flat])
    return np.where(np.isneginf(x), 0, x * phi.reshape(x.shape))


def gelu_approx(x):
    y = x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return np.where(np.isneginf(x), 0, y)


def erf(x):
    return np.array([math.erf(v) for v in x.flat]).reshape(x.shape)


# op: (what it is in double precision, whether it is defined at infinity by NumPy as by rlx)
UNARY_FUNCTIONS = {
    "sigmoid": (sigmoid, True), "tanh": (lambda x: np.tanh(x), True),
    "exp": (lambda x: np.exp(x), True), "log": (lambda x: np.log(x), True),
    "rsqrt": (lambda x: 1 / np.sqrt(np.abs(x) + np.where(x < 0, np.nan, 0)), True),
    "gelu": (gelu, True), "gelu_approx": (gelu_approx, True),
    "silu": (lambda x: np.where(np.isneginf(x), 0, x * sigmoid(x)), True),
    "atan": (lambda x: np.arctan(x), True), "sin": (lambda x: np.sin(x), True),
    "cos": (lambda x: np.cos(x), True), "tan": (lambda x: np.tan(x), True),
    "softplus": (lambda x: np.logaddexp(0, x), True),
    "elu": (lambda x: np.where(x > 0, x, np.expm1(x)), True), "erf": (erf, True),
    "hard_swish": (lambda x: x * np.clip(x + 3, 0, 6) / 6, False),
    "hard_sigmoid": (lambda x: np.clip(x / 6 + 0.5, 0, 1), True),
    "mish": (lambda x: x * np.tanh(np.logaddexp(0, x)), False),
    "softsign": (lambda x: x / (1 + np.abs(x)), False),
    "log_sigmoid": (lambda x: -np.logaddexp(0, -x), True),
}


def unary_functions(book):
    f = "unary"
    for op, (fn, at_infinity) in UNARY_FUNCTIONS.items():
        for dt in FLOATS:
            tol = {"f16": (2 * ULP["f16"], 2e-7), "f32": (1e-6, 1e-7),
                   "f64": (1e-13, 1e-15)}[dt]
            if op in ("sin", "cos", "tan") and dt == "f32":
                tol = (1e-6, 1e-6)
            if op in ("gelu", "gelu_approx") and dt == "f32":
                tol = (1e-6, 2e-7)
            x = values(op + dt, dt, (3, 11), 0.05 if op in ("log", "rsqrt") else -9, 9)
            with np.errstate(all="ignore"):
                book.add(f, dt, op, [x], rounded(fn(wide(x)), dt), tol=tol)
                x = special(dt)[:9]
                x = x if at_infinity else x[np.isfinite(x) | np.isnan(x)]
                book.add(f, f"{dt} special values", op, [x], rounded(fn(wide(x)), dt), tol=tol)
    x = np.array([100, -100, 700, -700, 1000, -999.5, 88, -104], np.float32)
    for op in ("sigmoid", "tanh", "gelu", "gelu_approx", "silu", "softplus", "log_sigmoid", "sin",
               "cos", "tan", "atan", "erf", "elu"):
        with np.errstate(all="ignore"):
            book.add(f, "f32 far out", op, [x], rounded(UNARY_FUNCTIONS[op][0](wide(x)), "f32"),
                     tol=(1e-6, 1e-6))
    empty = np.zeros((0,), np.float32)
    book.add(f, "f32 empty", "exp", [empty], empty)


def unary_exact(book):
    f = "unary"
    floats = {"neg": np.negative, "abs": np.abs, "round": np.rint, "floor": np.floor,
              "ceil": np.ceil, "sign": np.sign, "relu": lambda x: np.maximum(x, 0).astype(x.dtype)}
    for op, fn in floats.items():
        for dt in FLOATS:
            half = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 1e3, -7.25], kind(dt))
            x = np.concatenate([special(dt), half, values(op + dt, dt, (13,))])
            book.add(f, dt, op, [x], fn(x), tol=BITS if op in ("neg", "abs") else EXACT)
    for op in ("neg", "abs", "sign", "relu"):
        for dt in INTS:
            if op == "neg" and dt not in SIGNED:
                continue
            x = any_integer(op + dt, dt, (2, 9))
            x.flat[2] = 0
            with np.errstate(all="ignore"):
                book.add(f, dt, op, [x], floats[op](x))
    for dt in FLOATS:
        x = np.abs(np.concatenate([special(dt), values("sqrt" + dt, dt, (20,), 0, 90)]))
        book.add(f, dt, "sqrt", [x], np.sqrt(x), tol=ulps(dt, 1))
        with np.errstate(all="ignore"):
            x = np.array([-1, -0.0, -np.inf], kind(dt))
            book.add(f, f"{dt} negative", "sqrt", [x], np.sqrt(x))
            x = np.concatenate([special(dt)[:9], values("recip" + dt, dt, (20,), 0.1, 9)])
            book.add(f, dt, "recip", [x], 1 / x, tol=ulps(dt, 1))
    x = values("negc", "c64", (5,))
    book.add(f, "c64", "neg", [x], -x, tol=BITS)
    book.add(f, "c64", "conjugate", [x], np.conj(x))
    book.add(f, "c64", "complex_norm_sq", [x],
             rounded((wide(x) * np.conj(wide(x))).real, "f32"), tol=(3e-7, 0))
    x = values("not", "bool", (3, 3))
    book.add(f, "bool", "not", [x], ~x)


def cast(book):
    f = "cast"
    for da, db in itertools.product(ALL, ALL):
        if da == "c64" and db != "c64":
            continue
        if da in FLOATS and db in INTS:  # outside the range NumPy's answer depends on the machine
            x = values("cast" + db, da, (17,), -100 if db in SIGNED else 0, 120)
        elif da in INTS and db in FLOATS + ["c64"]:
            x = any_integer("cast" + da, da, (17,))
        elif da in INTS:
            x = any_integer("castw" + da, da, (17,))
        elif da in FLOATS and db in FLOATS:
            x = np.concatenate([special(da), values("castf", da, (9,), -9, 9),
                                rounded([65519, 65520, 1e-7, 3e-8, 6.1e-5, 2049, 2051], da)])
        else:
            x = values("cast" + da, da, (9,))
            x.flat[0] = 0
        with np.errstate(all="ignore"):
            want = x.astype(kind(db))
        book.add(f, f"{da} to {db}", "cast", [x], want, f"to={db}")


def select(book):
    f = "select"
    for dt in ALL:
        c = values("where" + dt, "bool", (4, 1, 3))
        a, b = values("wherea" + dt, dt, (5, 1)), values("whereb" + dt, dt, (1, 3))
        book.add(f, f"{dt} broadcast", "where", [c, a, b], np.where(c, a, b))
    for dt in ("f32", "i32", "u8", "f64"):
        c = values("wherec" + dt, dt, (9,), -1, 1)
        if dt == "f32":
            c[0] = np.nan
        a, b = np.full(9, np.nan, np.float32), np.arange(9, dtype=np.float32)
        book.add(f, f"{dt} condition", "where", [c, a, b], np.where(c != 0, a, b))
    for dt in FLOATS:
        x = np.concatenate([special(dt)[:9], values("clamp" + dt, dt, (9,))])
        book.add(f, dt, "clamp", [x], np.clip(x, kind(dt).type(-1.5), kind(dt).type(0.5)),
                 "min=-1.5 max=0.5")
        book.add(f, f"{dt} above only", "clamp", [x], np.minimum(x, kind(dt).type(1)), "max=1")
    for dt in INTS:
        x = any_integer("clamp" + dt, dt, (11,))
        book.add(f, dt, "clamp", [x], np.clip(x, 3, 100), "min=3 max=100")


MAKERS = [arithmetic, extremes_and_powers, bits_and_shifts, promotion, compare, unary_functions,
          unary_exact, cast, select]
