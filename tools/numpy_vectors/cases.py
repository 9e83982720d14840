"""cases.py: values to try, cases as text, and how near a result must come."""
import math
import re
import zlib

import numpy as np

EXACT, BITS = "exact", "bits"

FLOATS = ["f16", "f32", "f64"]
SIGNED = ["i8", "i16", "i32", "i64"]
INTS = SIGNED + ["u8", "u16", "u32", "u64"]
ALL = FLOATS + INTS + ["bool", "c64"]
NUMPY_NAME = {"f16": "float16", "f32": "float32", "f64": "float64", "bool": "bool",
              "c64": "complex64", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
              "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64"}
ULP = {"f16": 2.0**-10, "f32": 2.0**-23, "f64": 2.0**-52, "c64": 2.0**-23}


# ---- values ------------------------------------------------------------------------------------


def kind(dt):
    return np.dtype(NUMPY_NAME[dt])


def name_of(array):
    return next(n for n, full in NUMPY_NAME.items() if np.dtype(full) == array.dtype)


def wide(x):
    """The same values where the next steps do not round."""
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def rounded(x, dt):
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(kind(dt))


def values(seed, dt, shape, lo=-3.0, hi=3.0):
    """Random values of few digits; integers in [lo, hi]."""
    r = np.random.RandomState(zlib.crc32(seed.encode()))
    if dt == "bool":
        return r.randint(0, 2, size=shape).astype(bool)
    if dt == "c64":
        return (values(seed + "re", "f32", shape, lo, hi)
                + 1j * values(seed + "im", "f32", shape, lo, hi)).astype(kind(dt))
    if dt in FLOATS:
        return np.asarray(np.round(r.uniform(lo, hi, size=shape), 2)).astype(kind(dt))
    low = max(int(lo), int(np.iinfo(kind(dt)).min))
    return r.randint(low, int(hi) + 1, size=shape).astype(kind(dt))


def any_integer(seed, dt, shape):
    """Over the whole range, both ends included."""
    r = np.random.RandomState(zlib.crc32(seed.encode()))
    x = np.frombuffer(r.bytes(8 * int(np.prod(shape)) or 8), np.uint64)
    x = x[: int(np.prod(shape))].astype(kind(dt)).reshape(shape)
    if x.size > 3:
        x.flat[0], x.flat[1] = np.iinfo(kind(dt)).min, np.iinfo(kind(dt)).max
    return x


def special(dt):
    info = np.finfo(kind(dt))
    return np.array([0.0, -0.0, 1, -1, 0.5, -2.5, np.inf, -np.inf, np.nan, info.smallest_subnormal,
                     info.max, -info.tiny], kind(dt))


def pairs(x, y=None):
    """Every element of x against every one of y, as two flat arrays."""
    y = x if y is None else y
    return np.repeat(x, y.size), np.tile(y, x.size)


# ---- cases -------------------------------------------------------------------------------------


class Book:
    """Cases by file."""

    def __init__(self):
        self.files = {}
        self.names = set()

    def add(self, file, name, op, inputs, want, attrs="", tol=EXACT):
        name = f"{op} {name}".strip()
        if name in self.names:
            raise ValueError(f"two cases are called {name}")
        self.names.add(name)
        lines = [f"# case {name}", "# " + (tol if isinstance(tol, str) else
                                           "tol " + " ".join(f"{t:.3g}" for t in tol)),
                 "rlx 1", "graph () {"]
        operands = []
        for letter, x in zip("abcdefgh", inputs):
            lines += constant(letter, np.asarray(x))
            operands.append("%" + letter)
        lines.append(f"%y = {op} {', '.join(operands)} {attrs}".rstrip())
        lines += constant("want", np.asarray(want))
        lines += ["return %y, %want", "}"]
        self.files.setdefault(file, []).append("\n".join(lines) + "\n")


def number(x):
    if isinstance(x, (np.complexfloating, complex)):
        return f"{number(x.real)} {number(x.imag)}"
    if isinstance(x, np.bool_):
        return str(int(x))
    return re.sub(r"\.0$|\.(?=e)", "", str(x)).replace("e+", "e")


def constant(name, x):
    """A const node, wrapped to lines of at most 100 columns."""
    dt = name_of(x)
    words = [number(v) for v in x.reshape(-1)]
    lines, line = [], f"%{name} = const {dt}[{','.join(map(str, x.shape))}] {{"
    for i, word in enumerate(words):
        if len(line) + len(word) > 98:
            lines.append(line.rstrip())
            line = ""
        line += word + (" " if i + 1 < len(words) else "")
    return lines + [line + "}"]


def nums(x):
    return "[" + ",".join(str(int(i)) for i in x) + "]"


# ---- tolerances (ops-core.md 22) -----------------------------------------------------------------


def ulps(dt, n):
    return (n * ULP[dt], n * {"f16": 2.0**-24, "f64": 5e-324}.get(dt, 1.5e-45))


def function_tol(dt):
    """Of exp, log and the like."""
    return {"f16": ulps("f16", 2), "f64": (4e-15, 1e-300)}.get(dt, (1e-6, 1e-7))


def sum_tol(dt, n, magnitude):
    """Of a sum of n terms whose absolute values add up to at most the magnitude."""
    if dt not in ULP:
        return EXACT
    bound = (4 + math.sqrt(n)) * (2.0**-51 if dt == "f64" else 2.0**-22) * float(magnitude)
    return (ULP["f16"] if dt == "f16" else 0, max(bound, 1e-44))


def norm_tol(dt):
    return {"f16": (4e-3, 2e-3), "f64": (1e-12, 1e-12)}.get(dt, (2e-5, 2e-5))
