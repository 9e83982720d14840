#!/usr/bin/env python3
"""null_test.py: no public function crashes for arguments that are NULL or make no sense.

The functions are those that include/rlx declares, with the types that stand there, so a new one is
called too; one with a type that this test does not know how to make fails it. Every call is made in
a process of its own, which has the objects that its parent opened.

null_test.py PART: those only whose names have that part. The library is that of $RLX_BUILD_DIR.
"""
import ctypes
import os
import pathlib
import re
import signal
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ROOM = 1 << 16  # bytes of whatever a pointer of no known type points to, all of them 0
SECONDS = 20
SLOW = {"rlx_selftest"}  # it tests everything when it is given nothing
# Functions that succeed where every pointer is NULL: what they are for needs none.
FINE_WITHOUT = set()

TEXT = b"rlx 1\ngraph (input %x: f32[4], param %w: f32[4]) { %y = add %x, %w return %y }\n"


class Str(ctypes.Structure):
    _fields_ = [("ptr", ctypes.c_char_p), ("len", ctypes.c_size_t)]


class List(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int32), ("at", ctypes.c_int64 * 8)]


class Pair(ctypes.Structure):
    """Two values of a graph: rlx_spectrum, rlx_gate."""
    _fields_ = [("first", ctypes.c_int32), ("second", ctypes.c_int32)]


class Tensor(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("rank", ctypes.c_int32), ("dim", ctypes.c_int64 * 8),
                ("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


SCALARS = {"bool": ctypes.c_bool, "int": ctypes.c_int, "unsigned": ctypes.c_uint,
           "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32, "int64_t": ctypes.c_int64,
           "uint64_t": ctypes.c_uint64, "size_t": ctypes.c_size_t, "float": ctypes.c_float,
           "double": ctypes.c_double, "rlx_dim": ctypes.c_int64, "rlx_value": ctypes.c_int32,
           "uint8_t": ctypes.c_uint8, "uint16_t": ctypes.c_uint16}
BY_VALUE = {"rlx_str": Str, "rlx_list": List, "rlx_spectrum": Pair, "rlx_gate": Pair}
SIGNED = {"int", "int32_t", "int64_t", "rlx_dim", "rlx_value"}
# Tensors that no function may take at their word.
TENSORS = [Tensor(0, 1, (ctypes.c_int64 * 8)(4), None, 16),
           Tensor(0, 99, (ctypes.c_int64 * 8)(4), None, 16),
           Tensor(0, -1, (ctypes.c_int64 * 8)(4), None, 16),
           Tensor(0, 2, (ctypes.c_int64 * 8)(-5, -5), None, 100),
           Tensor(0, 2, (ctypes.c_int64 * 8)(1 << 62, 1 << 62), None, 1 << 63),
           Tensor(999, 1, (ctypes.c_int64 * 8)(4), None, 16)]


# ---- what is declared -----------------------------------------------------------------------


def headers():
    for path in sorted((ROOT / "include" / "rlx").glob("*.h")):
        text = re.sub(r"/\*.*?\*/", " ", path.read_text(), flags=re.S)
        yield re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*", " ", text, flags=re.M)


def kinds_of_types():
    """Names of types; objects whose insides nobody sees are the third."""
    enums, callbacks, opaque = set(), set(), set()
    for text in headers():
        opaque |= {f"{name} *" for name in re.findall(r"typedef\s+struct\s+(rlx_\w+)\s+\1;", text)}
        enums |= set(re.findall(r"typedef\s+enum\s+(rlx_\w+)", text))
        callbacks |= set(re.findall(r"typedef[^;{]*\(\*\s*(rlx_\w+)\)", text))
    return enums, callbacks, opaque


def split_parameters(text):
    """Commas inside of parentheses do not count: those are a callback's own."""
    out, depth, now = [], 0, ""
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            out.append(now)
            now = ""
        else:
            now += c
    return out + [now]


def parameter(text):
    """The type: 'T', 'T *', 'T **' or 'callback', without const and names."""
    text = " ".join(text.split())
    if "(*" in text:
        return "callback"
    text = re.sub(r"\bconst\b|\bstruct\b", " ", text)
    text = re.sub(r"(\w+)\s*\[[^]]*\]", r"*\1", text)
    stars = text.count("*")
    base = text.replace("*", " ").split()[0]
    return base + (" " + "*" * stars if stars else "")


def functions():
    for text in headers():
        for m in re.finditer(r"\bRLX_API\b\s+([^;{()]*?)\b(rlx_\w+)\s*\(((?:[^()]|\([^()]*\))*)\)"
                             r"(?:\s*\([^;]*\))?\s*(?:__attribute__[^;]*)?;", text):
            result = parameter(m[1] + " result") if m[1].strip() != "void" else "void"
            inside = m[3].strip()
            types = [] if inside in ("", "void") else [parameter(p)
                                                       for p in split_parameters(inside)]
            yield m[2], result, types


# ---- what is passed -------------------------------------------------------------------------


class Library:
    def __init__(self, path):
        self.lib = ctypes.CDLL(str(path))
        self.enums, self.callbacks, self.opaque = kinds_of_types()
        self.sized = {name for text in headers() for name in
                      re.findall(r"typedef\s+struct\s+(rlx_\w+)\s*\{\s*uint32_t\s+size;", text)}
        self.keep = []
        self.objects = self.open()

    def call(self, name, *arguments):
        """A function that hands out an object as its last but one argument."""
        out, err = ctypes.c_void_p(), ctypes.create_string_buffer(ROOM)
        f = getattr(self.lib, name)
        f.restype = ctypes.c_int
        status = f(*arguments, ctypes.byref(out), err)
        if status or not out.value:
            sys.exit(f"null_test: {name}: status {status}: {err.raw[152:].split(bytes(1))[0]}")
        return ctypes.c_void_p(out.value)

    def open(self):
        version = int(re.search(r"#define RLX_VERSION (\d+)",
                                (ROOT / "include/rlx/base.h").read_text())[1])
        ctx = self.call("rlx_context_create", ctypes.c_uint32(version), None)
        dev = self.call("rlx_device_open", ctx, b"cpu")
        model = self.call("rlx_model_parse", ctx, Str(TEXT, len(TEXT)))
        session = self.call("rlx_session_create", model, dev, None)
        return {"rlx_context *": ctx, "rlx_device *": dev, "rlx_model *": model,
                "rlx_session *": session, "rlx_graph *": self.call("rlx_graph_create", ctx),
                "rlx_cache *": self.call("rlx_cache_create", ctx, ctypes.c_size_t(1),
                                         ctypes.c_uint64(0)),
                "rlx_pages *": self.call("rlx_pages_create", ctx, ctypes.c_int64(4),
                                         ctypes.c_int32(4))}

    def is_pointer(self, kind):
        return kind.endswith("*")

    def number(self, kind, n):
        make = ctypes.c_int if kind in self.enums else SCALARS[kind]
        return make(float(n)) if kind in ("float", "double") else make(n)

    def knows(self, kind):
        return (self.is_pointer(kind) or kind in SCALARS or kind in BY_VALUE or
                kind in self.enums or kind in self.callbacks or kind == "callback")

    def value(self, kind, null, n, tensor):
        """One argument. n: of every number; null: it is NULL if it is a pointer."""
        if kind in self.callbacks or kind == "callback":
            return ctypes.c_void_p()
        if kind == "rlx_str":
            return Str(None, n if null and n > 0 else 0) if null else Str(b"x", 1)
        if kind == "rlx_list":
            return List(n if n in (-1, 3) else 1, (ctypes.c_int64 * 8)(4, 1, 1))
        if kind in BY_VALUE:
            return Pair(n, n)
        if not self.is_pointer(kind):
            return self.number(kind, n if n >= 0 or kind in SIGNED else 0)
        if null:
            return ctypes.c_void_p()
        if kind in self.objects or kind in self.opaque:
            return self.objects.get(kind, ctypes.c_void_p())
        if kind == "rlx_tensor *" and tensor is not None:
            return ctypes.byref(tensor)
        if kind == "char *":
            return ctypes.c_char_p(b"x")
        buffer = ctypes.create_string_buffer(ROOM)
        if kind.split()[0] in self.sized:  # as long as the buffer, and nothing in it is set
            ctypes.memmove(buffer, ctypes.byref(ctypes.c_uint32(ROOM)), 4)
        self.keep.append(buffer)
        return buffer


# ---- calls ----------------------------------------------------------------------------------


def variants(lib, types):
    """(what it is called, the arguments)"""
    pointers = [i for i, kind in enumerate(types) if lib.is_pointer(kind) or kind == "rlx_str"]
    for n in (0, 3, -1):
        yield f"all NULL, numbers {n}", [lib.value(k, True, n, None) for k in types]
    for n in (0, 3, -1):
        for i in pointers:
            if n < 0 and any("*" in k and k not in lib.objects for k in types):
                continue  # so many elements of what is there would be the caller's lie
            yield (f"argument {i} NULL, numbers {n}",
                   [lib.value(k, j == i, n, None) for j, k in enumerate(types)])
    if "rlx_tensor *" in types:
        for at, tensor in enumerate(TENSORS):
            yield f"tensor {at}", [lib.value(k, False, 1, tensor) for k in types]
    if any(k in SIGNED or k in BY_VALUE for k in types):
        yield "numbers -1", [lib.value(k, False, -1, None) for k in types]


def in_child(run):
    """How it ended: the answer of run (a small number), or what killed it."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 2)
        signal.alarm(SECONDS)
        os._exit(run())
    status = os.waitpid(child, 0)[1]
    return None if os.WIFSIGNALED(status) else os.WEXITSTATUS(status), os.WTERMSIG(status)


def try_function(lib, name, result, types):
    f = getattr(lib.lib, name)
    restype = BY_VALUE.get(result, ctypes.c_int if result == "rlx_status" else ctypes.c_void_p)
    f.restype = None if result == "void" else restype
    wrong = []
    for what, arguments in variants(lib, types):
        def run():
            answer = f(*arguments)
            return 0 if result != "rlx_status" else 100 if answer == 0 else 101

        answer, killed = in_child(run)
        if answer is None and not (killed == signal.SIGALRM and name in SLOW):
            wrong.append(f"{name}: {what}: {signal.Signals(killed).name}")
        nothing = what.startswith("all NULL, numbers 0") and any("*" in k for k in types)
        if answer == 100 and nothing and name not in FINE_WITHOUT:
            wrong.append(f"{name}: succeeds with nothing but NULL")
    return wrong


def main(build):
    lib = Library(build / "librlx.so")
    wrong, count = [], 0
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    for name, result, types in functions():
        strange = [k for k in types if not lib.knows(k)]
        count += 1
        if strange:
            wrong.append(f"{name}: null_test.py does not know the type {strange[0]}")
        elif only in name:
            wrong += try_function(lib, name, result, types)
    declared = sum(len(re.findall(r"\bRLX_API\b(?!\s+extern)", text)) for text in headers())
    if count != declared:
        wrong.append(f"{declared} functions are declared, and {count} were understood")
    for line in wrong:
        print("null_test:", line)
    print(f"null_test: {count} functions, {len(wrong)} failures")
    return 1 if wrong else 0


BUILD = pathlib.Path(os.environ.get("RLX_BUILD_DIR", ROOT / "build" / "release")).resolve()
# Some of the functions write files, under the name "x".
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    failed = main(BUILD)
    os.chdir(ROOT)
sys.exit(failed)
