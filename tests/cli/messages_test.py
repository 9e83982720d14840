#!/usr/bin/env python3
"""messages_test.py: what the rlx command answers to a command line that is wrong: every refusal says
what would be right."""
import os
import subprocess
import sys

from world import (COMMANDS, FAILED, MISUSED, MLP, RLX, call, field, need, npy_bytes,
                   on_terminal, rlx, run_tests)

TOKENS = ("rlx 1\ngraph (input %ids: i64[batch,seq], input %mask: i64[batch,seq]) {\n"
          "%s = mul %ids, %mask\nreturn %s }")
PICTURE = ("rlx 1\ngraph (input %x: f32[N,3,height,width]) {\n"
           "%y = reduce_mean %x axes=[2,3]\nreturn %y }")


def says(r, *parts):
    for part in parts:
        need(part in r.err, f"{r.what}: without {part!r}: {r.err!r}")


# ---- misspelt names ----------------------------------------------------------------------------


def test_commands(_):
    for arguments in (["rnu"], ["help", "rnu"]):
        r = call(arguments)
        need(r.code == MISUSED and not r.out, f"{r.what}: {r.code} {r.out!r}")
        says(r, "did you mean run?", *COMMANDS)
    need("did you mean" not in call(["frobnicate"]).err, "a far name was meant")


def test_flags(_):
    says(rlx("run", MLP, "--rnadom", code=MISUSED), "unknown flag --rnadom", "--random?")
    says(rlx("run", MLP, "--random", "--set", "no_fusio", code=MISUSED), 'unknown flag "no_fusio"', "did you mean no_fusion?")
    says(rlx("run", MLP, "--out=x", code=MISUSED), "did you mean --output?")
    says(rlx("devices", "--thread=1", code=MISUSED), "did you mean --threads?")
    says(rlx("run", MLP, "--seed", code=MISUSED), "--seed takes a value: --seed N")
    says(rlx("run", MLP, "--seed=x", code=MISUSED), '--seed takes an integer, not "x"')
    says(rlx("devices", "--json=1", code=MISUSED), "--json takes no value")


def test_inputs_and_params(t):
    x = t.array("x", [4, 8], [0] * 32)
    says(rlx("run", MLP, "--input", f"X={x}", code=MISUSED), 'no input "X"; did you mean x?',
         "x: f32[4,8]")
    says(rlx("run", MLP, "--param", f"w3={x}", code=MISUSED), "did you mean w1?", "b2: f32[4]")
    says(rlx("run", MLP, "--input", x, code=MISUSED), "NAME=FILE or NAME=1,2,3")
    graph = t.write("t.rlx", TOKENS.replace("ids", "input_ids"))
    says(rlx("run", graph, "--input", "ids=1", code=MISUSED), "did you mean input_ids?")
    r = rlx("run", MLP, "--random", "--expect", f"z={x}", code=MISUSED, out_on_failure=True)
    says(r, 'no output "z"; it has: y')


def test_passes_precisions_devices_ops(t):
    says(rlx("kernel", "softmx", code=FAILED), "did you mean softmax?")
    says(rlx("opt", MLP, "--pass=simplfy", code=FAILED), "did you mean simplify?", "dce, ")
    says(rlx("print", MLP, "--after", "ddce", code=FAILED), "did you mean dce?", "simplify, ")
    says(rlx("run", MLP, "--random", "--precision=fp16", code=MISUSED), "did you mean f16?",
         "mixed-bf16", "CLASS=TYPE")
    says(rlx("run", MLP, "--random", "--precision=compte=f16", code=MISUSED), "mean compute?")
    says(rlx("run", MLP, "--random", "--device=gpu", code=FAILED), "did you mean vulkan?",
         "cpu, vulkan", "rlx devices")
    says(rlx("run", MLP, "--random", "--device=cpv", code=FAILED), "did you mean cpu?")
    says(rlx("run", MLP, "--random", "--device=cpu:avx3", code=FAILED), "it has: ", "baseline")
    says(rlx("selftest", "--op", "reluu", code=FAILED), "did you mean relu?", "rlx ops")
    says(rlx("bench", "--op", "matmull f32[2,2] f32[2,2]", code=FAILED), "did you mean matmul?")
    says(rlx("info", t.write("a.rlx", "rlx 1\ngraph (input %x: f33[2]) { return %x }"), code=FAILED),
         "known are f32 f16")


def test_types_of_files(t):
    npz = t.write("w.npz", b"")
    says(rlx("quantize", npz, "out.gguf", "Q4_X", code=MISUSED), "types: Q4_0", "did you mean Q4_0?")
    says(rlx("convert", npz, "out.pt", code=MISUSED), ".safetensors", ".onnx")
    says(rlx("ops", "--category=math", code=MISUSED), "there are: io, elementwise")


# ---- files -------------------------------------------------------------------------------------


def test_what_is_no_model(t):
    kinds = {"a.png": (b"\x89PNG\r\n\x1a\n" + bytes(20), "a PNG picture"),
             "lfs.onnx": (b"version https://git-lfs.github.com/spec/v1\noid x\n", "git lfs pull"),
             "page.gguf": (b"<!DOCTYPE html><html></html>", "an HTML page"),
             "note.onnx": (b"Dear reader", "text of another kind"),
             "a.jpg": (b"\xff\xd8\xff\xe0" + bytes(20), "a JPEG picture"),
             "a.pt": (b"\x80\x02}q\x00" + bytes(20), "Python pickle"),
             "a.onnx.gz": (b"\x1f\x8b\x08" + bytes(20), "unpack it first"),
             "a.h5": (b"\x89HDF\r\n\x1a\n" + bytes(20), "export the model to ONNX")}
    for name, (content, text) in kinds.items():
        says(rlx("run", t.write(name, content), code=FAILED), text, ".onnx", ".rlx")
    says(rlx("run", t.write("empty.onnx", b""), code=FAILED), "the file is empty")
    says(rlx("run", t.write("cut.onnx", b"\x08\x07\x3a\xff\x01\x12"), code=FAILED),
         "cannot be read as ONNX", "byte 5", "has 6 bytes")
    says(rlx("run", t.path, code=FAILED), "it is a folder")
    says(rlx("run", t.path / "nowhere.onnx", code=FAILED), "No such file")


def test_weights_are_no_model(t):
    array = t.write("w.npy", npy_bytes([2], [1, 2]))
    r = rlx("run", array, code=FAILED)
    says(r, "holds tensors, but no graph", f"rlx info {array}", f"--params {array}")
    gguf = t.write("w.gguf", b"GGUF\x03\0\0\0" + bytes(16))
    says(rlx("run", gguf, code=FAILED), "rlx quantize", f"--params {gguf}")


# ---- values and sizes --------------------------------------------------------------------------


def test_shapes_and_types(t):
    graph = t.write("g.rlx", "rlx 1\ngraph (input %x: f32[1,3,224,224]) { return %x }")
    wrong = t.write("x.npy", npy_bytes([224, 224, 3], [0] * (224 * 224 * 3)))
    says(rlx("run", graph, "--input", f"x={wrong}", code=FAILED),
         f"x: SHAPE: f32[1,3,224,224] is wanted, {wrong} holds f32[224,224,3]")
    small = t.write("s.rlx", "rlx 1\ngraph (input %x: f32[n,2]) { return %x }")
    doubles = t.write("d.npy", npy_bytes([3, 2], [0] * 6, code="<f8"))
    says(rlx("run", small, "--input", f"x={doubles}", code=FAILED),
         f"x: DTYPE: f32[n,2] is wanted, {doubles} holds f64[3,2]", 'astype("float32")')
    w = t.array("w", [8, 15], [0] * 120)
    says(rlx("run", MLP, "--random", "--param", f"w1={w}", code=FAILED),
         "f32[8,16] is wanted, f32[8,15] was given")


def test_nothing_is_given(t):
    graph = t.write("t.rlx", TOKENS)
    r = rlx("run", graph, code=FAILED)
    says(r, "MISSING_INPUT", '"ids": i64[batch,seq]', '"mask": i64[batch,seq]',
         f"rlx run {graph} --input ids=FILE.npy --input mask=FILE.npy\n",
         f"rlx run {graph} --random --dim seq=128\n")
    r = rlx("run", MLP, code=FAILED)
    says(r, '"x": f32[4,8]', '"w1": f32[8,16]', "--params FILE")
    r = rlx("run", MLP, "--input", "x=" + t.array("x", [4, 8], [0] * 32), code=FAILED)
    need('"x"' not in r.err and '"w1"' in r.err, f"what is given is missed: {r.err!r}")


def test_the_line_that_is_shown_works(t):
    graph = t.write("t with space.rlx", TOKENS)
    for command in ("run", "plan", "bench", "check", "info"):
        flags = {"run": ["--random"], "info": ["--schedule"], "bench": ["--repeat=3"]}.get(command, [])
        r = rlx(command, graph, *flags, code=FAILED)
        says(r, "UNBOUND_DIM: no size is given for batch, seq", "ids: i64[batch,seq]")
        line = r.err.split("this would work:\n  ")[1].strip()
        need(line.endswith("--dim batch=1 --dim seq=128"), f"{r.what}: {line!r}")
        code = os.system(line.replace("rlx", RLX, 1) + " > /dev/null 2>&1")
        need(code == 0, f"{r.what}: does not work: {line!r}")


def test_dims(t):
    graph = t.write("p.rlx", PICTURE)
    says(rlx("run", graph, "--random", "--dim", "heigth=8", code=MISUSED),
         "did you mean height?", "it has: N, height, width")
    says(rlx("run", graph, "--random", "--dim", "height", code=MISUSED), "as in --dim seq=128")
    says(rlx("run", MLP, "--random", "--dim", "n=8", code=MISUSED), "all its sizes are fixed")
    says(rlx("compile", graph, "-o", t.path / "o", "--bind", "M=1", code=MISUSED), "it has: N")
    r = rlx("run", graph, "--random", "--dim", "height=8", "--dim", "width=8", notes=True)
    need(r.err == "rlx run: N is taken to be 1 (--dim N=SIZE gives another size)\n", f"{r.err!r}")
    need("f32[1,3]" in r.out, f"{r.what}: {r.out!r}")
    need(not rlx("run", graph, "--random", *[f"--dim={d}" for d in ("N=2", "height=4", "width=4")]).err,
         "a note on a size that was given")


def test_random_follows_what_is_given(t):
    graph = t.write("t.rlx", TOKENS)
    r = rlx("run", graph, "--input", "ids=" + t.array("ids", [2, 5], range(10), code="<i8"), "--random",
            "--json")
    out = r.json()["outputs"][0]
    need(out["shape"] == [2, 5], f"the mask is of another shape: {out}")
    need(set(v for i, v in zip(range(10), out["values"]) if i) <= {*range(10)}, f"{out}")
    need(all(v in (0, i) for i, v in enumerate(out["values"])), f"a mask that is not 0 or 1: {out}")
    r = rlx("run", graph, "--random", "--dim", "seq=300", "--json", notes=True)
    ids = r.json()["outputs"][0]
    need(ids["shape"] == [1, 300] and all(0 <= v < 8 for v in ids["values"]), f"ids: {ids}")


# ---- what must be known when a model is loaded ---------------------------------------------------


def reshape_model(t):
    """y = Reshape(x: f32[2,6], shape: i64[2])"""
    def tensor(name, kind, *dims):
        shape = b"".join(field(1, field(1, d)) for d in dims)
        return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))
    node = field(1, "x") + field(1, "shape") + field(2, "y") + field(4, "Reshape")
    graph = (field(1, node) + field(2, "g") + field(11, tensor("x", 1, 2, 6)) +
             field(11, tensor("shape", 7, 2)) + field(12, field(1, "y") + field(2, field(1, field(1, 1)))))
    return t.write("m.onnx", field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17)))


def test_fix(t):
    model = reshape_model(t)
    r = rlx("run", model, "--random", code=FAILED)
    says(r, 'input 1 ("shape") must be integers known at load', "--fix NAME=VALUE")
    need(r.err.count("known at load") == 1, f"said twice: {r.err!r}")
    for command in ("run", "info", "print", "plan", "bench", "check"):
        flags = {"run": ["--random"], "bench": ["--repeat=3"]}.get(command, [])
        rlx(command, model, "--fix", "shape=3,4", *flags)
    rlx("opt", "--pass=dce", model, "--fix=shape=3,4")
    rlx("compile", model, "-o", t.path / "o.rlxa", "--fix=shape=3,4")
    rlx("convert", model, t.path / "o.onnx", "--fix", "shape=3,4")
    array = t.write("s.npy", npy_bytes([2], [4, 3], code="<i8"))
    r = rlx("run", model, "--random", "--fix", f"shape={array}")
    need("f32[4,3]" in r.out, f"{r.what}: {r.out!r}")
    says(rlx("info", model, "--fix", "shap=3,4", code=FAILED), "it has: x, shape", "mean shape?")
    says(rlx("info", model, "--fix", "shape=[3,4,1]", code=FAILED), "i64[3]", "i64[2] is wanted")
    says(rlx("info", model, "--fix", "shape", code=MISUSED), "NAME=FILE.npy or NAME=1,2,3")
    says(rlx("info", model, "--fix", "shape=[3,", code=MISUSED), "a number was expected")


# ---- terminals ---------------------------------------------------------------------------------


def test_progress(t):
    deep = "".join(f"%a{i + 1} = matmul %a{i}, %w\n" for i in range(48))
    graph = t.write("slow.rlx", "rlx 1\ngraph (input %a0: f32[1024,1024], input %w: f32[1024,1024]) {\n"
                                + deep + "return %a48 }")
    said = on_terminal(["bench", graph, "--ms", "2500", "--threads", "1"], {})
    need("measuring" in said or "warming up" in said, f"no word in three seconds: {said!r}")
    need(said.endswith("\r\x1b[K") or "\n" in said, f"the line stays: {said[-80:]!r}")
    w = t.array("w", [8, 16], [0] * 128)
    with subprocess.Popen(["sh", "-c", 'sleep 3; cat "$0"', w], stdout=subprocess.PIPE) as late:
        said = on_terminal(["run", MLP, "--random", "--param", "w1=-"], {}, stdin=late.stdout)
    need("setting params of" in said, f"no word while it waits for a param: {said!r}")
    need(call(["run", MLP, "--random"]).err == "", "progress where there is no terminal")
    need("\r" not in on_terminal(["run", MLP, "--random"], {}), "progress of what is quick")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
