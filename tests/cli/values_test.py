#!/usr/bin/env python3
"""values_test.py: what `rlx run` takes as inputs, numbers, archives, pictures, standard input, and what it
gives: JSON, the largest, and how far results are from what was expected."""
import ctypes
import io
import struct
import sys
import zipfile
import zlib

from world import FAILED, MISUSED, MLP, Skipped, call, near, need, npy_bytes, read_npy, rlx, run_tests

ECHO = "rlx 1\ngraph (input %x: {}) {{ %y = reshape %x shape=[-1]\nreturn %y }}"


def echo(t, kind):
    """A graph that gives its input as one row."""
    return t.write("echo.rlx", ECHO.format(kind))


def values(*arguments, **options):
    return rlx("run", *arguments, "--json", **options).json()["outputs"][0]["values"]


# ---- numbers -----------------------------------------------------------------------------------


def test_numbers(t):
    for kind, text, want in (("i64[]", "16000", [16000]), ("f32[3]", "1,2,3", [1, 2, 3]),
                             ("f32[3]", "[1, -2.5, 1e2]", [1, -2.5, 100]),
                             ("f32[2,2]", "[[1,2],[3,4]]", [1, 2, 3, 4]),
                             ("f32[2,2]", "1,2,3,4", [1, 2, 3, 4]), ("u8[1]", "255", [255]),
                             ("i64[1]", "-9223372036854775807", [-9223372036854775807]),
                             ("bool[3]", "true,0,1", [True, False, True]), ("f64[1]", ".5", [.5]),
                             ("f16[2]", "0.5,2", [.5, 2]), ("i32[0]", "[]", [])):
        got = values(echo(t, kind), "--input", f"x={text}")
        need(got == want, f"{kind} of {text}: {got}")
    need(values(echo(t, "f32[2]"), "--input", "x=nan,inf") == [None, None], "NaN and Inf in JSON")


def test_numbers_of_symbolic_shapes(t):
    graph = t.write("g.rlx", "rlx 1\ngraph (input %x: i64[b,n]) { return %x }")
    for text, shape in (("1,2,3", [1, 3]), ("[[1],[2]]", [2, 1]), ("7", [1, 1])):
        r = rlx("run", graph, "--input", f"x={text}", "--json").json()["outputs"][0]
        need(r["shape"] == shape, f"{text}: {r}")
    r = rlx("run", graph, "--input", "x=1,2,3,4", "--dim", "b=2", "--json").json()["outputs"][0]
    need(r["shape"] == [2, 2], f"with --dim: {r}")


def test_numbers_that_do_not_fit(t):
    for kind, text, why in (("f32[3]", "1,2", "2 numbers"), ("u8[1]", "256", "not a value of u8"),
                            ("i32[1]", "1.5", "not a value of i32"), ("u8[1]", "-1", "of u8"),
                            ("f32[4]", "[[1,2],[3]]", "not all of the same length"),
                            ("f32[2]", "[1,2", "not closed"), ("f32[2]", "[1,[2]]", "mixed"),
                            ("f32[1]", "[" * 9 + "1" + "]" * 9, "too deeply"),
                            ("c64[1]", "1", "in files only"), ("f32[2]", "[1,two]", "a number")):
        r = rlx("run", echo(t, kind), "--input", f"x={text}", code=MISUSED)
        need(why in r.err, f"{kind} of {text}: {r.err!r}")


def test_a_file_that_is_called_like_a_number(t):
    graph = echo(t, "f32[2]")
    (t.path / "7").write_bytes(npy_bytes([2], [3, 4]))
    need(values(graph, "--input", f"x={t.path}/7") == [3, 4], "a file called 7")
    for name in ("1.npy", "1,2.npy", "inf.npy", "true.npy"):
        r = call(["run", graph, "--input", f"x={name}"])
        need(r.code == FAILED and "No such file" in r.err, f"{name} is taken for a number: {r.err!r}")


# ---- files -------------------------------------------------------------------------------------


def npz(arrays):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in arrays.items():
            archive.writestr(name + ".npy", content)
    return out.getvalue()


TWO = "rlx 1\ngraph (input %a: f32[n], input %b: f32[n]) { %y = add %a, %b\n%z = sub %a, %b\nreturn %y, %z }"


def test_inputs_of_an_archive(t):
    graph = t.write("g.rlx", TWO)
    both = t.write("in.npz", npz({"a": npy_bytes([2], [1, 2]), "b": npy_bytes([2], [10, 20]),
                                  "more": npy_bytes([1], [0])}))
    need(values(graph, "--inputs", both) == [11, 22], "both of an archive")
    need(values(graph, "--inputs", both, "--input", "a=5,6") == [15, 26], "what is given beats it")
    none = t.write("none.npz", npz({"c": npy_bytes([2], [1, 2])}))
    r = rlx("run", graph, "--inputs", none, code=FAILED)
    need("has none of the inputs" in r.err and "a: f32[n]" in r.err, f"none of them: {r.err!r}")
    bad = t.write("bad.npz", npz({"a": npy_bytes([2, 1], [1, 2])}))
    r = rlx("run", graph, "--inputs", bad, code=FAILED)
    need("a: SHAPE: f32[n] is wanted" in r.err and "f32[2,1]" in r.err, f"another shape: {r.err!r}")


def test_standard_input(t):
    graph = t.write("g.rlx", TWO)
    got = values(graph, "--input", "a=-", "--input", "b=1,1", stdin=npy_bytes([2], [1, 2]))
    need(got == [2, 3], f"npy on standard input: {got}")
    archive = npz({"a": npy_bytes([2], [4, 5]), "b": npy_bytes([2], [0, 0])})
    need(values(graph, "--input", "a=-", "--input", "b=1,1", stdin=archive) == [5, 6], "npz on it")
    r = rlx("run", graph, "--input", "a=-", "--input", "b=-", code=MISUSED, stdin=npy_bytes([2], [1, 2]))
    need("only once" in r.err, f"twice: {r.err!r}")
    r = rlx("run", graph, "--input", "a=-", "--random", code=FAILED, stdin=b"hello")
    need("standard input" in r.err, f"no array: {r.err!r}")


# ---- pictures ----------------------------------------------------------------------------------


def png(width, height, colour, pixels):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    row = len(pixels) // height
    rows = b"".join(b"\0" + pixels[y * row:(y + 1) * row] for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def test_pictures(t):
    pixels = bytes(range(0, 180, 10))  # 3 wide, 2 high, RGB
    picture = t.write("p.png", png(3, 2, 2, pixels))
    planes = [pixels[i + 3 * k] for i in range(3) for k in range(6)]
    near("nchw", values(echo(t, "f32[1,3,2,3]"), "--input", f"x={picture}"), [v / 255 for v in planes], 1e-6)
    near("nhwc", values(echo(t, "f32[1,2,3,3]"), "--input", f"x={picture}", "--layout=nhwc"),
         [v / 255 for v in pixels], 1e-6)
    near("hwc", values(echo(t, "f32[h,w,3]"), "--input", f"x={picture}"), [v / 255 for v in pixels], 1e-6)
    need(values(echo(t, "u8[2,3,3]"), "--input", f"x={picture}", "--layout=hwc") == [*pixels], "bytes")
    near("0 to 255", values(echo(t, "f32[n,3,h,w]"), "--input", f"x={picture}", "--scale=255"), planes, 1e-6)
    near("normalised", values(echo(t, "f32[1,3,2,3]"), "--input", f"x={picture}", "--mean=0.5,0.25,0",
                              "--std=0.5,0.5,2"),
         [(planes[c * 6 + i] / 255 - m) / s for c, (m, s) in enumerate(((.5, .5), (.25, .5), (0, 2)))
          for i in range(6)], 1e-5)
    ppm = t.write("p.ppm", b"P6 3 2 255\n" + pixels)
    need(values(echo(t, "u8[2,3,3]"), "--input", f"x={ppm}", "--layout=hwc") == [*pixels], "PPM")
    grey = t.write("g.png", png(2, 1, 0, b"\x10\x20"))
    need(values(echo(t, "u8[3,1,2]"), "--input", f"x={grey}") == [16, 32] * 3, "grey as RGB")
    clear = t.write("a.png", png(1, 1, 6, b"\1\2\3\4"))
    need(values(echo(t, "u8[3,1,1]"), "--input", f"x={clear}") == [1, 2, 3], "alpha is dropped")


def test_pictures_resized(t):
    picture = t.write("p.png", png(4, 2, 0, bytes([0, 0, 100, 100] * 2)))
    need(values(echo(t, "u8[1,1,2]"), "--input", f"x={picture}", "--resize=2x1", "--layout=chw") == [0, 100],
         "half as large")
    wide = values(echo(t, "u8[1,1,8]"), "--input", f"x={picture}", "--resize=8x1", "--layout=chw")
    need(wide == [0, 0, 0, 25, 75, 100, 100, 100], f"bilinear: {wide}")


def test_pictures_that_do_not_fit(t):
    picture = t.write("p.png", png(3, 2, 2, bytes(18)))
    for kind, flags, why in (("f32[1,3,4,4]", [], "the picture is 3x2; use --resize 4x4"),
                             ("f32[2,3,2,3]", [], "a batch of one"), ("f32[18]", [], "--layout nchw"),
                             ("f32[1,5,2,3]", ["--layout=nchw"], "1, 3 or 4 channels"),
                             ("f32[1,3,2,3]", ["--layout=hwc"], "a different rank")):
        r = rlx("run", echo(t, kind), "--input", f"x={picture}", *flags, code=FAILED)
        need(why in r.err and "p.png" in r.err, f"{kind}: {r.err!r}")
    graph = echo(t, "f32[1,3,2,3]")
    for flag in ("--layout=nwhc", "--resize=4", "--resize=0x4", "--resize=4x4x", "--mean=a", "--std=0",
                 "--scale=0", "--mean=1,2,3,4,5"):
        rlx("run", graph, "--input", f"x={picture}", flag, code=MISUSED)


def test_damaged_pictures(t):
    graph, whole = echo(t, "u8[2,3,3]"), png(3, 2, 2, bytes(range(18)))
    for cut in range(8, len(whole), 5):
        r = rlx("run", graph, "--input", f"x={t.write('cut.png', whole[:cut])}", "--layout=hwc", code=FAILED)
        need("png: " in r.err, f"cut at {cut}: {r.err!r}")
    r = rlx("run", graph, "--input", f"x={t.write('b.png', whole.replace(b'IDAT', b'IDAX'))}", code=FAILED)
    need("damaged" in r.err, f"another chunk: {r.err!r}")
    r = call(["run", graph, "--input", f"x={t.write('a.jpg', bytes([255, 216, 255, 224]) + bytes(50))}"])
    need(r.code == FAILED and ("libturbojpeg" in r.err or "jpeg: " in r.err), f"JPEG: {r.err!r}")


def jpeg(colours, width, height, pixels):
    """A picture as libturbojpeg writes it, with as little loss as it can."""
    try:
        turbo = ctypes.CDLL("libturbojpeg.so.0")
    except OSError as error:
        raise Skipped(f"there is no libturbojpeg: {error}") from error
    turbo.tjInitCompress.restype = ctypes.c_void_p
    handle, out, size = turbo.tjInitCompress(), ctypes.c_void_p(), ctypes.c_ulong()
    rgb, grey, whole = 0, 6, {3: 0, 1: 3}[colours]  # TJPF_ and TJSAMP_
    need(turbo.tjCompress2(ctypes.c_void_p(handle), pixels, width, 0, height, rgb if colours == 3 else grey,
                           ctypes.byref(out), ctypes.byref(size), whole, 100, 0) == 0, "tjCompress2")
    return ctypes.string_at(out, size.value)


def test_jpeg(t):
    coloured = bytes(c for _ in range(5 * 7) for c in (200, 100, 50))
    picture = t.write("a.jpg", jpeg(3, 7, 5, coloured))
    got = values(echo(t, "u8[5,7,3]"), "--input", f"x={picture}", "--layout=hwc", "--limit", "0")
    need(len(got) == 105 and all(abs(a - b) <= 3 for a, b in zip(got, coloured)), f"coloured: {got[:6]}")
    grey = bytes(10 * (i % 9) for i in range(81))
    picture = t.write("g.jpg", jpeg(1, 9, 9, grey))
    got = values(echo(t, "u8[9,9]"), "--input", f"x={picture}", "--layout=hw", "--limit", "0")
    need(all(abs(a - b) <= 3 for a, b in zip(got, grey)), f"grey: {got[:9]}")
    whole = jpeg(3, 7, 5, coloured)
    for cut in (20, len(whole) // 4, len(whole) // 2, len(whole) - 10):
        r = rlx("run", echo(t, "u8[5,7,3]"), "--input", f"x={t.write('cut.jpg', whole[:cut])}", code=FAILED)
        need("jpeg: " in r.err, f"cut at {cut}: {r.err!r}")


# ---- results -----------------------------------------------------------------------------------


def test_json(t):
    graph = t.write("g.rlx", 'rlx 1\ngraph (input %x: f32[2,2]) { %y = neg %x\n%c = argmax %x axis=-1\n'
                             '%b = gt %x, %y\nreturn %y, %c, %b }')
    r = rlx("run", graph, "--input", "x=1,2,4,3", "--json").json()["outputs"]
    need([o["name"] for o in r] == ["y", "c", "b"] and r[0]["dtype"] == "f32", f"{r}")
    need(r[0]["shape"] == [2, 2] and r[0]["count"] == 4 and r[0]["values"] == [-1, -2, -4, -3], f"{r}")
    need(r[1]["values"] == [1, 0] and r[2]["values"] == [True] * 4, f"{r}")
    r = rlx("run", graph, "--input", "x=1,2,4,3", "--json", "--limit=1").json()["outputs"]
    need(r[0]["values"] == [-1] and r[0]["count"] == 4, f"--limit: {r}")
    need(" -1 ..." in rlx("run", graph, "--input", "x=1,2,4,3", "--limit=1").out, "--limit of text")


def test_top(t):
    graph = t.write("g.rlx", "rlx 1\ngraph (input %x: f32[n,4]) { return %x }")
    labels = t.write("l.txt", "cat\ndog\r\nfox\n")
    r = rlx("run", graph, "--input", "x=1,9,5,nan", "--top=2", "--labels", labels)
    need(r.out.splitlines()[1:] == ["       1             9  dog", "       2             5  fox"], f"{r.out!r}")
    r = rlx("run", graph, "--input", "x=1,9,5,7,3,2,2,1", "--top=3", "--json", "--labels", labels).json()
    top = r["outputs"][0]["top"]
    need([[e["index"] for e in row] for row in top] == [[1, 3, 2], [0, 1, 2]], f"{top}")
    need([e.get("label") for e in top[0]] == ["dog", None, "fox"], f"{top}")
    need(len(rlx("run", graph, "--input", "x=1,2,3,4", "--top=9").out.splitlines()) == 5, "more than there are")
    rlx("run", graph, "--input", "x=1,2,3,4", "--top=-1", code=MISUSED)
    rlx("run", graph, "--input", "x=1,2,3,4", "--labels", labels, code=MISUSED)
    rlx("run", graph, "--input", "x=1,2,3,4", "--top=1", "--labels", t.path / "nowhere", code=FAILED)


def test_expect(t):
    graph = t.write("g.rlx", TWO)
    given = ["--input", "a=1,2", "--input", "b=10,20"]
    y, close, far = (t.write(f"{n}.npy", npy_bytes([2], v))
                     for n, v in (("y", [11, 22]), ("close", [11.0005, 22]), ("far", [11, 23])))
    z = t.write("z.npy", npy_bytes([2], [-9, -18], code="<f8"))
    r = rlx("run", graph, *given, "--expect", f"y={y}", "--expect", f"z={z}")
    need("y: as expected: max abs error 0" in r.out and "z: as expected" in r.out, f"{r.out!r}")
    rlx("run", graph, *given, "--expect", f"y={close}")
    r = rlx("run", graph, *given, "--expect", f"y={close}", "--tolerance=1e-6", code=FAILED, out_on_failure=True)
    need("y: DIFFERS: max abs error 0.0005" in r.out and "1 output is not" in r.err, f"{r.out!r} {r.err!r}")
    r = rlx("run", graph, *given, "--expect", f"y={far}", code=FAILED, out_on_failure=True)
    need("element 1: 22, not 23" in r.out, f"{r.out!r}")
    rlx("run", graph, *given, "--expect", f"y={far}", "--tolerance=0.1")
    both = t.write("out.npz", npz({"y": npy_bytes([2], [11, 22]), "z": npy_bytes([2], [-9, -18])}))
    rlx("run", graph, *given, "--expect", both)
    r = rlx("run", graph, *given, "--expect", both, "--json", notes=True)
    need(len(r.json()["outputs"]) == 2 and "as expected" in r.err, f"with --json: {r.err!r}")
    one = t.write("one.npz", npz({"y": npy_bytes([2], [11, 22]), "w": npy_bytes([2], [0, 0])}))
    r = rlx("run", graph, *given, "--expect", one, code=FAILED, out_on_failure=True)
    need('has no "z"' in r.err, f"an output that is not in it: {r.err!r}")
    for alone in (t.write("alone.npz", npz({"y": npy_bytes([2], [11, 22])})), y):
        r = rlx("run", graph, *given, "--expect", alone, code=MISUSED, out_on_failure=True)
        need("holds one array" in r.err and f"NAME={alone}" in r.err, f"which output? {r.err!r}")
    rlx("run", graph, *given, "--expect", f"y={t.path / 'alone.npz'}")
    shape = t.write("s.npy", npy_bytes([2, 1], [11, 22]))
    r = rlx("run", graph, *given, "--expect", f"y={shape}", code=FAILED, out_on_failure=True)
    need("it is f32[2], but f32[2,1] was expected" in r.out, f"{r.out!r}")
    rlx("run", graph, *given, "--expect", f"y={y}", "--tolerance=-1", code=MISUSED)
    rlx("run", graph, *given, "--tolerance=1", code=MISUSED)


def test_no_half_files(t):
    old = t.write("old.svg", "as it was")
    rlx("print", MLP, "--svg", old)
    need((t.path / "old.svg").read_text().startswith("<svg"), "it is not replaced")
    need(sorted(p.name for p in t.path.iterdir()) == ["old.svg"], "something is left beside it")
    rlx("print", MLP, "--svg", t.path / "no" / "x.svg", code=FAILED)
    rlx("print", MLP, "--svg", "/dev/null")
    rlx("run", MLP, "--random", "--output", t.path / "out")
    code, shape, _ = read_npy(t.path / "out" / "y.npy")
    need((code, shape) == ("<f4", [4, 4]), "an output")
    need([p.name for p in (t.path / "out").iterdir()] == ["y.npy"], "something is left beside it")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
