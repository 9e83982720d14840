#!/usr/bin/env python3
"""train_test.py: `rlx train`: it learns, goes on where it stopped, says what is wrong with data, and
leaves whole files behind, whatever ends it."""
import json
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import time

from world import (DONE, FAILED, MISUSED, RLX, Result, call, need, npy_bytes, on_terminal, rlx, run_tests,
                   zip_members)

MODEL = """rlx 1
dim batch
graph (input %x: f32[batch,4], input %y: i32[batch], param %w1: f32[4,16], param %b1: f32[16],
       param %w2: f32[16,3], param %b2: f32[3]) {
    %m1 = matmul %x, %w1
    %a1 = add %m1, %b1
    %h = gelu %a1
    %m2 = matmul %h, %w2
    %a2 = add %m2, %b2
    %e = softmax_cross_entropy_with_logits %a2, %y
    %loss = reduce_mean %e axes=[0]
    return %loss
}
"""
COUNT = 90
USUAL = ["--rate", "0.02", "--batch", "8", "--validate", "0.2"]


def examples():
    r = random.Random(7)
    x = [r.uniform(-1, 1) for _ in range(4 * COUNT)]
    y = []
    for i in range(COUNT):
        a, b, c, d = x[4 * i:4 * i + 4]
        sums = [a + b, c, d - a]
        y.append(sums.index(max(sums)))
    return x, y


def world(t):
    """The model, and the flags that say what it learns from: labels as NumPy has them."""
    x, y = examples()
    return [t.write("model.rlx", MODEL), "--data", "x=" + t.array("x", [COUNT, 4], x),
            "--data", "y=" + t.array("y", [COUNT], y, code="<i8")]


def train(*arguments, code=DONE, **options):
    r = call(["train", *arguments], **options)
    need(r.code == code, f"{r.what}: exit status {r.code}, wanted {code}: {r.err[-700:]!r}")
    need("Sanitizer" not in r.err and "runtime error" not in r.err, f"{r.what}: {r.err[:2000]}")
    need("\x1b" not in r.out + r.err, f"{r.what}: escape codes, but there is no terminal")
    return r


def tensors(path):
    """Name and bytes of each tensor of a safetensors file, and its metadata."""
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + size])
    meta = head.pop("__metadata__", {})
    return {n: data[8 + size + h["data_offsets"][0]:8 + size + h["data_offsets"][1]]
            for n, h in head.items()}, meta


# ---- learning ----------------------------------------------------------------------------------


def test_it_learns(t):
    saved, plot = t.path / "out.safetensors", t.path / "loss.svg"
    r = train(*world(t), *USUAL, "--epochs", "30", "--save", saved, "--plot", plot, "--json",
              "--log", "9")
    told = json.loads(r.out)
    need(told["steps"] == 30 * (72 // 8) and not told["stopped"], f"{told}")
    need(told["losses"][0][1] > 0.8 and told["loss"] < 0.35, f"losses {told['losses']}")
    need(told["validation"] < 0.7 * told["validations"][0][1], f"{told['validations']}")
    need("validation" in r.err and "examples/s" in r.err, f"progress: {r.err[:300]!r}")
    need(sorted(tensors(saved)[0]) == ["b1", "b2", "w1", "w2"], "what was saved")
    picture = plot.read_text()
    need(picture.startswith("<svg") and picture.count("<path class=\"line") == 2, "the picture")
    rlx("info", saved)


def test_what_was_learned_is_used(t):
    """Going on from saved params begins where they were."""
    saved = t.path / "out.npz"
    first = json.loads(train(*world(t), *USUAL, "--epochs", "20", "--save", saved, "--json").out)
    need(sorted(zip_members(saved)) == ["b1.npy", "b2.npy", "w1.npy", "w2.npy"], "the archive")
    again = json.loads(train(*world(t), *USUAL, "--epochs", "1", "--params", saved, "--rate", "0",
                             "--optimiser", "sgd", "--json").out)
    need(abs(again["validation"] - first["validation"]) < 0.3 * first["validation"] or
         again["validation"] < 0.7, f"{first['validation']} became {again['validation']}")


def test_seeds(t):
    flags = [*world(t), *USUAL, "--steps", "12", "--json"]
    a, b, c = (json.loads(train(*flags, "--seed", s).out)["losses"] for s in ("1", "1", "2"))
    need(a == b and a != c, f"{a}\n{b}\n{c}")


def test_optimisers_and_schedules(t):
    flags = [*world(t), "--batch", "8", "--steps", "10", "--json"]
    seen = set()
    for more in ([], ["--optimiser", "adam", "--decay", "0.1"], ["--optimiser", "sgd", "--momentum", "0.9"],
                 ["--optimiser", "lion"], ["--optimiser", "muon"], ["--schedule", "linear"],
                 ["--schedule", "cosine", "--warmup", "3", "--final-ratio", "0.1"],
                 ["--schedule", "one-cycle", "--warmup", "3"], ["--clip", "0.01"],
                 ["--decay", "0.5"], ["--accumulate", "2"], ["--keep", "w*"], ["--train", "b2"]):
        seen.add(json.dumps(json.loads(train(*flags, *more).out)["losses"]))
    need(len(seen) == 13, f"only {len(seen)} of 13 ways to train differ")


def test_on_a_terminal(t):
    said = on_terminal(["train", *world(t), "--steps", "6", "--log", "1"], {})
    need("\r\x1b[K" in said and "step 6/6" in said, f"{said!r}")


# ---- checkpoints -------------------------------------------------------------------------------


def test_going_on_is_the_same_bit_for_bit(t):
    straight, halves = t.path / "a.safetensors", t.path / "b.safetensors"
    flags = [*world(t), *USUAL, "--log", "5", "--every", "10"]
    train(*flags, "--steps", "40", "--checkpoint", straight)
    train(*flags, "--steps", "20", "--checkpoint", halves)
    r = train(*flags, "--steps", "40", "--checkpoint", halves, "--resume")
    need("going on after step 20" in r.err, f"{r.err!r}")
    a, b = tensors(straight), tensors(halves)
    need(set(a[0]) == set(b[0]) and len(a[0]) == 15, f"{sorted(b[0])}")
    for name in a[0]:
        need(a[0][name] == b[0][name], f"{name} differs")
    need(a[1] == b[1] and a[1]["rlx.cursor"] == "40", f"{a[1]} {b[1]}")


def test_checkpoints_are_kept(t):
    path = t.path / "a.safetensors"
    flags = [*world(t), *USUAL, "--steps", "10", "--checkpoint", path]
    r = train(*flags, "--resume")
    need("does not exist yet" in r.err, f"{r.err!r}")
    old = path.read_bytes()
    r = train(*flags, code=FAILED)
    need("--resume continues from it" in r.err and path.read_bytes() == old, f"{r.err!r}")
    train(*flags[:-2], "--resume", code=MISUSED)


def test_a_checkpoint_of_another_model(t):
    path = t.path / "a.safetensors"
    train(*world(t), *USUAL, "--steps", "4", "--checkpoint", path)
    flags = world(t)
    flags[0] = t.write("other.rlx", MODEL.replace("gelu", "silu"))
    r = train(*flags, *USUAL, "--steps", "8", "--checkpoint", path, "--resume", code=FAILED)
    need("model.rlx" in r.err and "other.rlx" in r.err and "is a checkpoint of" in r.err, r.err)
    r = train(*world(t), *USUAL, "--steps", "8", "--checkpoint", path, "--resume", "--optimiser",
              "sgd", code=FAILED)
    need("another optimiser" in r.err, r.err)


def test_stopping_at_once(t):
    """The first Ctrl-C waits for a step that takes long; the second does not."""
    graph = t.write("slow.rlx", """rlx 1
graph (input %x: f32[8,2000], param %w: f32[2000,6000], param %u: f32[6000,2000]) {
    %a = matmul %x, %w
    %b = matmul %a, %u
    %q = mul %b, %b
    %loss = reduce_mean %q axes=[0,1]
    return %loss
}
""")
    x = t.array("big", [8, 2000], [0.01] * 16000)
    process = subprocess.Popen([RLX, "train", graph, "--data", "x=" + x, "--steps", "1000000", "--log", "1",
                                "--accumulate", "1000000", "--rate", "1e-6"], stderr=subprocess.PIPE)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    need(process.wait(10) == -signal.SIGINT, f"exit status {process.returncode}")
    process.stderr.close()


def test_a_full_disk(t):
    path = t.path / "a.safetensors"
    train(*world(t), *USUAL, "--steps", "4", "--checkpoint", path)
    old = path.read_bytes()
    arguments = ["train", *world(t), *USUAL, "--steps", "8", "--checkpoint", path, "--resume"]
    done = subprocess.run([RLX, *map(str, arguments)], stderr=subprocess.PIPE, check=False, timeout=100,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500)))
    need(done.returncode == FAILED and b"cannot write" in done.stderr, f"{done}")
    need(path.read_bytes() == old, "the checkpoint is not what it was")
    need(sorted(p.name for p in t.path.iterdir()) == ["a.safetensors", "model.rlx", "x.npy", "y.npy"],
         "something is left beside it")


def test_stopping(t):
    path = t.path / "a.safetensors"
    arguments = ["train", *world(t), *USUAL, "--steps", "100000000", "--log", "50", "--checkpoint", path]
    process = subprocess.Popen([RLX, *map(str, arguments)], stderr=subprocess.PIPE)
    first = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    rest = process.stderr.read().decode()
    need(process.wait(100) == FAILED, f"exit status {process.returncode}: {rest[-300:]!r}")
    need(first.startswith(b"step 50/") and "stopped after step" in rest, f"{rest[-300:]!r}")
    stopped = int(rest.split("stopped after step ")[1].split(";")[0])
    need(tensors(path)[1]["rlx.cursor"] == str(stopped), f"{tensors(path)[1]}")
    r = train(*arguments[1:-2], "--checkpoint", path, "--resume", "--steps", str(stopped + 5))
    need(f"going on after step {stopped}" in r.err, f"{r.err[:300]!r}")


# ---- what is wrong -----------------------------------------------------------------------------


def test_nan(t):
    graph = MODEL.replace("%h = gelu %a1", "%h = log %a1")
    path = t.path / "a.safetensors"
    flags = world(t)
    flags[0] = t.write("model.rlx", graph)
    r = train(*flags, *USUAL, "--steps", "40", "--checkpoint", path, code=FAILED)
    need("update 1 " in r.err and "not finite" in r.err, f"{r.err!r}")
    need(r.err.count("h (log)") == 1, f"the node is not named, or more than once: {r.err!r}")
    need(not path.exists(), "a checkpoint of nothing")


def test_nan_keeps_the_last_checkpoint(t):
    """A rate that sends the params away after a while."""
    path = t.path / "a.safetensors"
    flags = world(t)
    flags[0] = t.write("model.rlx", MODEL.replace("%h = gelu %a1", "%h = exp %a1"))
    r = train(*flags, "--batch", "8", "--optimiser", "sgd", "--rate", "1e5", "--steps", "40",
              "--every", "1", "--log", "1", "--checkpoint", path, code=FAILED)
    need("not finite" in r.err, f"{r.err!r}")
    if path.exists():
        _, meta = tensors(path)
        need(f"update {int(meta['rlx.cursor']) + 1} " in r.err, f"{meta} {r.err[-400:]!r}")


def test_data_that_does_not_fit(t):
    flags = world(t)
    model = flags[0]
    wide = "x=" + t.array("wide", [COUNT, 2, 3], [0.5] * (6 * COUNT))
    few = "y=" + t.array("few", [7], [0] * 7, code="<i8")
    real = "y=" + t.array("real", [COUNT], [0.5] * COUNT)
    good = [flags[2], flags[4]]
    for data, said in (([wide, good[1]], "the data is f32[90,2,3], so that an example is f32[2,3]; the input is f32[batch,4]"),
                       ([good[0], few], "\"y\" has 7 examples, others have 90"),
                       ([good[0], real], "floats do not become integers"),
                       ([good[0]], "there is no data for the input \"y\""),
                       ([*good, "z=" + good[0][2:]], "the model has no input \"z\"")):
        r = train(model, *(w for d in data for w in ("--data", d)), code=FAILED)
        need(said in r.err, f"{r.what}: {r.err!r}")
    for more, said in ((["--batch", "100"], "90 examples do not fill a batch of 100"),
                       (["--loss", "los"], "no output \"los\" to be the loss; did you mean loss?"),
                       (["--keep", "w9"], "no param \"w9\"")):
        r = train(*flags, *more, code=FAILED)
        need(said in r.err, f"{r.what}: {r.err!r}")


def test_misuse(t):
    flags = world(t)
    for more in (["--optimiser", "adamm"], ["--schedule", "cosin"], ["--rate", "fast"], ["--batch=-1"],
                 ["--epochs", "2", "--steps", "3"], ["--validate", "1"], ["--text", "x.txt"], ["--resume"]):
        r = train(*flags, *more, code=MISUSED)
        need("rlx help train" in r.err, f"{r.what}: {r.err!r}")
    train(*flags, "--save", t.path / "a.gguf", code=MISUSED)
    for flag in ("--save", "--checkpoint", "--plot"):
        r = train(*flags, flag, t.path / "nowhere" / "a.npz", code=FAILED)
        need(f"{flag} " in r.err and "cannot write there" in r.err and "step" not in r.err, f"{r.err!r}")
    train(flags[0], code=MISUSED)
    train(code=MISUSED)
    train("--text", "x.txt", "--quantize", "Q99", code=MISUSED)


# ---- text --------------------------------------------------------------------------------------


def meta(path):
    told = rlx("info", path, "--json").json()
    return ({key: m["value"] for key, m in told["metadata"].items()},
            {w["name"]: (w["type"], w["shape"]) for w in told["tensors"]})


SMALL = ["--layers", "2", "--width", "32", "--heads", "4", "--kv-heads", "2", "--ffn", "64", "--vocab",
         "300", "--context", "16", "--batch", "4"]


def test_text(t):
    words = ["red", "green", "blue", "leaf", "sky"]
    r = random.Random(3)
    text = t.write("a.txt", " ".join(r.choice(words) for _ in range(1500)))
    other = t.write("b.txt", "the sky is blue. " * 60)
    out = t.path / "out.gguf"
    r = train("--text", text, "--text", other, *SMALL, "--steps", "60", "--rate", "0.01", "--save", out,
              "--json")
    told = json.loads(r.out)
    need(told["losses"][0][1] > 4 and told["loss"] < 3, f"{told['losses']}")
    need("tokens in the vocabulary" in r.err and "tokens/s" in r.err, f"{r.err[:300]!r}")
    said, held = meta(out)
    need(said["general.architecture"] == "llama" and said["llama.block_count"] == 2, f"{said}")
    need(said["llama.attention.head_count_kv"] == 2 and said["tokenizer.ggml.model"] == "gpt2", f"{said}")
    need(held["blk.1.attn_k.weight"] == ("F32", [16, 32]) and "output.weight" not in held, f"{held}")
    packed = t.path / "packed.gguf"
    train("--text", text, *SMALL, "--steps", "2", "--untied", "--quantize", "Q8_0", "--save", packed)
    said, held = meta(packed)
    need(held["blk.0.ffn_up.weight"][0] == "Q8_0" and held["output_norm.weight"][0] == "F32", f"{held}")
    need("output.weight" in held and said["general.file_type"] == 7, f"{said}")


def test_beside_a_model(t):
    text = t.write("a.txt", "the sky is blue. " * 400)
    other = t.write("b.txt", "the leaf is green. " * 400)
    base, added = t.path / "base.gguf", t.path / "added.gguf"
    train("--text", text, *SMALL, "--steps", "30", "--rate", "0.01", "--save", base, "--quantize", "F16")
    old = base.read_bytes()
    flags = ["--text", other, "--lora", base, "--batch", "4", "--rate", "0.01", "--rank", "4", "--alpha", "8"]
    r = train(*flags, "--steps", "40", "--save", added, "--json")
    told = json.loads(r.out)
    need(told["loss"] < 0.8 * told["losses"][0][1], f"{told['losses']}")
    need(base.read_bytes() == old, "the model itself was changed")
    said, held = meta(added)
    need(said["general.type"] == "adapter" and said["adapter.type"] == "lora" and
         said["adapter.lora.alpha"] == 8 and said["general.architecture"] == "llama", f"{said}")
    need(len(held) == 2 * 2 * 7 and held["blk.1.ffn_down.weight.lora_a"] == ("F32", [4, 64]) and
         held["blk.1.ffn_down.weight.lora_b"] == ("F32", [32, 4]), f"{held}")
    train(*flags, "--layers", "3", code=MISUSED)
    train("--lora", base, code=MISUSED)
    r = train("--text", other, "--lora", added, code=FAILED)
    need("token_embd.weight" in r.err, r.err)


def test_text_goes_on(t):
    text = t.write("a.txt", "one two three four five six seven eight. " * 80)
    paths = [t.path / "a.safetensors", t.path / "b.safetensors"]
    flags = ["--text", text, *SMALL, "--log", "5", "--every", "5", "--schedule", "constant", "--warmup", "1",
             "--validate", "0.2"]
    train(*flags, "--steps", "10", "--checkpoint", paths[0])
    train(*flags, "--steps", "5", "--checkpoint", paths[1])
    train(*flags, "--steps", "10", "--checkpoint", paths[1], "--resume")
    need(tensors(paths[0]) == tensors(paths[1]), "not the same bit for bit")


def test_text_that_cannot_be(t):
    r = train("--text", t.path / "none.txt", code=FAILED)
    need("cannot read" in r.err, r.err)
    r = train("--text", t.write("empty.txt", ""), code=FAILED)
    need("the text to learn from is empty" in r.err, r.err)
    r = train("--text", t.write("short.txt", "too short"), *SMALL, code=FAILED)
    need("are too few for windows of 16 + 1" in r.err, r.err)
    r = train("--text", t.write("a.txt", "abc " * 900), "--width", "30", "--heads", "4", code=FAILED)
    need("cannot be divided among 4 heads" in r.err, r.err)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
