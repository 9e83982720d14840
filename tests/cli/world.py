"""world.py: what the tests of the rlx command share: running it, files of numbers, and reporting.

$RLX is the command (build/release/rlx if not said). Every call is also checked for what must never
happen: a crash, a sanitizer's report, escape codes where there is no terminal, an exit status that is
not 0, 1 or 2, results on standard error or failures on standard output. Files of numbers are
written and read here with struct alone, so that nothing of rlx checks itself."""
import json
import math
import os
import pathlib
import pty
import random
import re
import struct
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("RLX_BUILD_DIR", ROOT / "build" / "release"))
RLX = os.environ.get("RLX", str(BUILD / "rlx"))
EXAMPLES = sorted((ROOT / "examples").glob("*.rlx"))
MLP = str(ROOT / "examples" / "mlp.rlx")
COMMANDS = ["info", "print", "opt", "plan", "compile", "run", "bench", "selftest", "check",
            "conform", "devices", "ops", "flags", "kernel", "convert", "quantize", "tokenize", "template",
            "train", "generate", "chat", "perplexity", "embed"]
TAKES_FILE = {"info": [], "print": [], "opt": ["--pass=dce"], "plan": [],
              "compile": ["-o", "/dev/null/nowhere"], "run": [], "bench": [], "check": [],
              "train": ["--data", "x=x.npy"]}
TELLS = {"--profile", "--stats", "--check-nans"}  # of run: what they show is not a result
DONE, FAILED, MISUSED = 0, 1, 2


class Skipped(Exception):
    """There is nothing to test with here, and why."""


class Wrong(Exception):
    pass


def need(held, why):
    if not held:
        raise Wrong(why)


# ---- running the command -----------------------------------------------------------------------


class Result:
    def __init__(self, arguments, code, out, err):
        self.what = "rlx " + " ".join(arguments)
        self.code, self.out, self.err = code, out, err

    def json(self):
        try:
            return json.loads(self.out)
        except ValueError as error:
            raise Wrong(f"{self.what}: not JSON: {error}: {self.out[:200]!r}") from None


def call(arguments, stdin=b"", env=None, stdout=None):
    arguments = [str(a) for a in arguments]
    done = subprocess.run([RLX, *arguments], input=stdin, stdout=stdout or subprocess.PIPE,
                          stderr=subprocess.PIPE, env={**os.environ, **(env or {})}, timeout=300,
                          check=False)
    return Result(arguments, done.returncode, (done.stdout or b"").decode(errors="replace"),
                  done.stderr.decode(errors="replace"))


def rlx(*arguments, code=DONE, stdin=b"", out_on_failure=False, env=None, notes=False):
    """Runs it, checks what holds for every call, and that it ends with this code. notes: of sizes
    that were taken for granted, on stderr."""
    r = call(arguments, stdin, env)
    need(r.code == code, f"{r.what}: exit status {r.code}, wanted {code}: {r.err[:500]!r}")
    need("Sanitizer" not in r.err and "runtime error" not in r.err, f"{r.what}: {r.err[:2000]}")
    need("\x1b" not in r.out + r.err, f"{r.what}: escape codes, but there is no terminal")
    if code == DONE:
        need(not r.err or env or notes or TELLS & set(arguments), f"{r.what}: says on stderr: {r.err[:500]!r}")
    else:
        need(r.err.startswith("rlx"), f"{r.what}: no reason on stderr: {r.err[:500]!r}")
        need(r.err.endswith("\n"), f"{r.what}: the reason has no line end")
        need(not r.out or out_on_failure, f"{r.what}: failed, and printed {r.out[:200]!r}")
    if code == MISUSED:
        need(f"rlx help {arguments[0]}" in r.err, f"{r.what}: does not say where help is")
    return r


# ---- files -------------------------------------------------------------------------------------


def npy_bytes(shape, numbers, code="<f4", fortran=False):
    numbers = list(numbers)
    dims = ",".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    head = f"{{'descr': '{code}', 'fortran_order': {fortran}, 'shape': ({dims}), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    letter = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "|u1": "B", "|b1": "?"}[code]
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()
            + struct.pack(f"<{len(numbers)}{letter}", *numbers))


def read_npy(path):
    """(dtype code, shape, numbers)"""
    data = path.read_bytes()
    need(data[:6] == b"\x93NUMPY", f"{path}: no npy file")
    size = struct.unpack("<H", data[8:10])[0]
    head = data[10:10 + size].decode()
    m = re.search(r"'descr': '(.*?)'.*'shape': \((.*?)\)", head)
    need(m and "'fortran_order': False" in head, f"{path}: header {head!r}")
    shape = [int(n) for n in m[2].split(",") if n.strip()]
    letter = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "|b1": "?"}[m[1]]
    return m[1], shape, struct.unpack(f"<{math.prod(shape)}{letter}", data[10 + size:])


def gguf_bytes(meta, tensors):
    """meta: {key: True, 3, 0.5, "text" or a list of texts or integers}; tensors: {name: (shape, numbers)},
    as F32."""
    def text(s):
        return struct.pack("<Q", len(s.encode())) + s.encode()

    def value(x):
        if isinstance(x, bool):
            return 7, struct.pack("<?", x)
        if isinstance(x, int):
            return 4, struct.pack("<I", x)
        if isinstance(x, float):
            return 6, struct.pack("<f", x)
        if isinstance(x, str):
            return 8, text(x)
        kinds = [value(v) for v in x]
        return 9, struct.pack("<IQ", kinds[0][0] if kinds else 8, len(x)) + b"".join(v for _, v in kinds)

    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(meta))
    for key, x in meta.items():
        kind, data = value(x)
        head += text(key) + struct.pack("<I", kind) + data
    body = b""
    for name, (shape, numbers) in tensors.items():
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), 0, len(body))
        body += struct.pack(f"<{len(numbers)}f", *numbers)
        body += bytes(-len(body) % 32)
    return head + bytes(-len(head) % 32) + body


def near(what, got, want, tolerance=1e-5):
    need(len(got) == len(want), f"{what}: {len(got)} numbers, wanted {len(want)}")
    for i, (g, w) in enumerate(zip(got, want)):
        need(abs(g - w) <= tolerance * max(1, abs(w)), f"{what}: number {i} is {g}, wanted {w}")


def floats(seed, count):
    r = random.Random(seed)
    return [struct.unpack("<f", struct.pack("<f", r.uniform(-1, 1)))[0] for _ in range(count)]


def read_npy_bytes(data):
    """As read_npy, of bytes."""
    with tempfile.TemporaryDirectory() as temp:
        path = pathlib.Path(temp) / "x.npy"
        path.write_bytes(data)
        code, shape, numbers = read_npy(path)
        return code, list(shape), tuple(numbers)


def zip_members(path):
    with zipfile.ZipFile(path) as archive:
        need(archive.testzip() is None, f"{path}: a member is damaged")
        return {name: archive.read(name) for name in archive.namelist()}


class Folder:
    """A folder of the test's own."""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def write(self, name, content):
        path = self.path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    def array(self, name, shape, numbers, **options):
        return self.write(name + ".npy", npy_bytes(shape, numbers, **options))

    def run(self, graph, inputs=None, params=None, flags=()):
        """Runs a graph on arrays given as (shape, numbers); {output: (code, shape, numbers)}."""
        arguments = ["run", graph, "--output", self.path / "out", *flags]
        for kind, arrays in (("--input", inputs or {}), ("--param", params or {})):
            for name, (shape, numbers) in arrays.items():
                arguments += [kind, f"{name}={self.array(name, shape, numbers)}"]
        rlx(*arguments)
        return {p.stem: read_npy(p) for p in (self.path / "out").glob("*.npy")}


# ---- terminals, and models of ONNX -------------------------------------------------------------


def on_terminal(arguments, env, stdin=subprocess.DEVNULL):
    """What it writes to stderr when that is a terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen([RLX, *arguments], stdin=stdin, stderr=slave,
                               stdout=subprocess.DEVNULL, env={**os.environ, **env})
    os.close(slave)
    said = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        said += piece
    os.close(master)
    process.wait()
    return said.decode(errors="replace")


def field(number, content):
    """A field of a message: bytes, text or a small number."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    content = content.encode() if isinstance(content, str) else content
    return bytes([number << 3 | 2, len(content)]) + content


# ---- all of it ---------------------------------------------------------------------------------


def run_tests(module):
    """Every test_... of the module, or those whose name has a word of the command line in it."""
    wanted = sys.argv[1:]
    tests = [(n, f) for n, f in module.items() if n.startswith("test_")
             and (not wanted or any(w in n for w in wanted))]
    if not pathlib.Path(RLX).exists():
        print(f"failed: there is no {RLX}\n0 passed, 1 failed, 0 skipped")
        return 1
    passed = failed = skipped = 0
    for name, test in tests:
        try:
            with tempfile.TemporaryDirectory() as temp:
                test(Folder(temp))
            passed += 1
        except Skipped as why:
            print(f"skipped: {name}: {why}", flush=True)
            skipped += 1
        except (Wrong, OSError, KeyError, IndexError, subprocess.TimeoutExpired) as error:
            kind = "" if isinstance(error, Wrong) else type(error).__name__ + ": "
            print(f"failed: {name}: {kind}{error}", flush=True)
            failed += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0
