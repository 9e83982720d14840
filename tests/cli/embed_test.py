#!/usr/bin/env python3
"""embed_test.py: `rlx embed`: vectors of texts as JSON and npy, their cosines, and how they are pooled."""
import json
import math
import pathlib
import struct
import subprocess
import sys

from world import FAILED, MISUSED, ROOT, floats, gguf_bytes, near, need, read_npy, rlx, run_tests

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *("\u2581" + c for c in "abcde")]
WIDTH, CONTEXT = 8, 6
TABLE = floats(3, len(WORDS) * WIDTH)


def model(t, pooling=None, name="bert.gguf"):
    """A BERT whose parts add nothing: a token's vector is its normed row of the table."""
    meta = {"general.architecture": "bert", "bert.context_length": CONTEXT, "bert.embedding_length": WIDTH,
            "bert.block_count": 1, "bert.feed_forward_length": 4, "bert.attention.head_count": 2,
            "bert.attention.layer_norm_epsilon": 1e-12, "tokenizer.ggml.model": "bert",
            "tokenizer.ggml.tokens": WORDS, "tokenizer.ggml.token_type": [3] * 5 + [1] * 5,
            **{f"tokenizer.ggml.{key}_token_id": id for key, id in
               {"bos": 2, "eos": 3, "cls": 2, "seperator": 3, "unknown": 1, "padding": 0, "mask": 4}.items()}}
    if pooling is not None:
        meta["bert.pooling_type"] = pooling

    def zeros(*shape):
        return shape, [0.0] * math.prod(shape)

    def norm(where):
        return {f"{where}.weight": ((WIDTH,), [1.0] * WIDTH), f"{where}.bias": zeros(WIDTH)}

    parts = {f"blk.0.{part}.weight": zeros(WIDTH, WIDTH) for part in ("attn_q", "attn_k", "attn_v", "attn_output")}
    tensors = {"token_embd.weight": ((len(WORDS), WIDTH), TABLE), "position_embd.weight": zeros(CONTEXT, WIDTH),
               **norm("token_embd_norm"), **norm("blk.0.attn_output_norm"), **norm("blk.0.layer_output_norm"), **parts,
               "blk.0.ffn_up.weight": zeros(4, WIDTH), "blk.0.ffn_down.weight": zeros(WIDTH, 4)}
    return t.write(name, gguf_bytes(meta, tensors))


def normed(token):
    x = TABLE[WIDTH * token:WIDTH * (token + 1)]
    mean = sum(x) / WIDTH
    root = math.sqrt(sum((v - mean) ** 2 for v in x) / WIDTH)
    return [(v - mean) / root for v in x]


def vector(tokens, unit=True):
    rows = [normed(token) for token in tokens]
    x = [sum(column) / len(rows) for column in zip(*rows)]
    length = math.sqrt(sum(v * v for v in x)) if unit else 1
    return [v / length for v in x]


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b)) / math.hypot(*a) / math.hypot(*b)


def test_vectors(t):
    path = model(t, 1)
    r = rlx("embed", path, "a b", "A", "").json()
    need(r["model"] == "bert" and r["width"] == WIDTH and r["tokens"] == [4, 3, 2], r)
    for got, tokens in zip(r["vectors"], ([2, 5, 6, 3], [2, 5, 3], [2, 3]), strict=True):
        near("a vector", got, vector(tokens), 1e-5)
    near("raw", rlx("embed", path, "c", "--raw").json()["vectors"][0], vector([2, 7, 3], False), 1e-5)
    near("no control token", rlx("embed", path, "[SEP]").json()["tokens"], [5])


def test_pooling(t):
    for path, flags, tokens in ((model(t, 2), [], [2]), (model(t, 3, "l.gguf"), [], [3]),
                                (model(t, 2), ["--pooling", "last"], [3]), (model(t, 4, "r.gguf"), ["--pooling", "first"], [2])):
        near("pooled", rlx("embed", path, "a b", *flags).json()["vectors"][0], vector(tokens), 1e-5)
    r = rlx("embed", model(t, None, "n.gguf"), "a b", notes=True)
    need("their mean" in r.err, r.err)
    near("mean", r.json()["vectors"][0], vector([2, 5, 6, 3]), 1e-5)
    r = rlx("embed", model(t, 4, "r.gguf"), "a", code=FAILED)
    need("ranks texts" in r.err, r.err)


def test_similarity(t):
    path, tokens = model(t, 1), ([2, 5, 3], [2, 6, 3], [2, 5, 3])
    want = [[cosine(vector(a), vector(b)) for b in tokens] for a in tokens]
    rows = [line.split() for line in rlx("embed", path, "a", "b", "a", "--similarity").out.splitlines()]
    need([row[3] for row in rows] == ["a", "b", "a"], rows)
    for row, cosines in zip(rows, want, strict=True):
        near("a row", [float(x) for x in row[:3]], cosines, 1e-4)
    r = rlx("embed", path, "a", "b", "a", "--similarity", "--json").json()
    for row, cosines in zip(r["similarities"], want, strict=True):
        near("a row", row, cosines, 1e-5)
    need(len(r["vectors"]) == 3, r)


def test_files(t):
    path, out = model(t, 1), t.path / "out.npy"
    lines = t.write("lines.txt", "a\r\n\nb c\n d")
    need(rlx("embed", path, "--file", lines, "--output", out).out == "", "vectors are in the file")
    code, shape, numbers = read_npy(pathlib.Path(out))
    need(code == "<f4" and shape == [4, WIDTH], shape)
    want = [vector(tokens) for tokens in ([2, 5, 3], [2, 3], [2, 6, 7, 3], [2, 8, 3])]
    near("vectors", list(numbers), [x for row in want for x in row], 1e-5)
    need(rlx("embed", path, "--file", "-", "--json", stdin=b"a\nb\n").json()["tokens"] == [3, 3], "two lines")
    need(rlx("embed", path, "--file", t.write("empty", "")).json()["vectors"] == [], "no lines")
    r = rlx("embed", path, "--file", t.write("long.txt", "a\n" + "b " * 9), code=FAILED)
    need("line 2" in r.err and "11 tokens do not fit in a context of 6" in r.err, r.err)


def test_misuse(t):
    path = model(t, 1)
    rlx("embed", code=MISUSED)
    rlx("embed", path, code=MISUSED)
    rlx("embed", path, "a", "--file", "b", code=MISUSED)
    rlx("embed", path, "a", "--pooling", "most", code=MISUSED)
    r = rlx("embed", path, "a", "--context", "7", code=FAILED)
    need("knows 6 positions" in r.err, r.err)
    rlx("embed", str(ROOT / "README.md"), "a", code=FAILED)
    r = rlx("generate", path, "-p", "a", code=FAILED)
    need("gives vectors of texts (rlx embed)" in r.err, r.err)


def test_a_published_model(t):
    """tools/bert-to-gguf: the same model from safetensors and tokenizer.json."""
    vocab = {w[1:] if w[0] == "\u2581" else w: i for i, w in enumerate(WORDS)}
    (t.path / "config.json").write_text(json.dumps({
        "hidden_size": WIDTH, "num_hidden_layers": 1, "intermediate_size": 4, "num_attention_heads": 2,
        "max_position_embeddings": CONTEXT, "layer_norm_eps": 1e-12, "type_vocab_size": 2}))
    (t.path / "tokenizer.json").write_text(json.dumps({
        "model": {"type": "WordPiece", "vocab": vocab, "unk_token": "[UNK]"}, "normalizer": {"lowercase": True},
        "added_tokens": [{"content": w, "special": True} for w in WORDS[:5]]}))
    layer, norm = "encoder.layer.0.", {"weight": [WIDTH], "bias": [WIDTH]}
    shapes = {"embeddings.word_embeddings.weight": [len(WORDS), WIDTH], "embeddings.position_embeddings.weight": [CONTEXT, WIDTH],
              "embeddings.token_type_embeddings.weight": [2, WIDTH],
              **{f"{n}.{k}": s for n in ("embeddings.LayerNorm", layer + "attention.output.LayerNorm", layer + "output.LayerNorm")
                 for k, s in norm.items()},
              **{f"{layer}attention.{n}.{k}": s for n in ("self.query", "self.key", "self.value", "output.dense")
                 for k, s in {"weight": [WIDTH, WIDTH], "bias": [WIDTH]}.items()},
              layer + "intermediate.dense.weight": [4, WIDTH], layer + "intermediate.dense.bias": [4],
              layer + "output.dense.weight": [WIDTH, 4], layer + "output.dense.bias": [WIDTH]}
    head, body = {}, b""
    for name, shape in shapes.items():
        numbers = (TABLE if "word_embeddings" in name else
                   [float("LayerNorm.weight" in name)] * math.prod(shape))
        data = struct.pack(f"<{len(numbers)}f", *numbers)
        head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(head).encode()
    (t.path / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + body)
    out = t.path / "made.gguf"
    subprocess.run([sys.executable, ROOT / "tools" / "bert-to-gguf", t.path, out, "--f32"], check=True)
    near("the same", rlx("embed", out, "a b").json()["vectors"][0], vector([2, 5, 6, 3]), 1e-5)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
