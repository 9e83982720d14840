#!/usr/bin/env python3
"""perplexity_test.py: `rlx perplexity` of a model whose figures can be computed here: attention and the
feed-forward part add nothing, so that a token is foreseen from the one before it alone."""
import math
import random
import sys

from world import FAILED, MISUSED, ROOT, floats, gguf_bytes, need, near, rlx, run_tests

LETTERS, WIDTH, BEGIN = "abcde", 4, 5
WORDS = [*LETTERS, "<s>", "ab"]
VOCAB = len(WORDS)


def model(t, add_bos, scale=3.0):
    """The file, and logits(token) of the next one."""
    table, head = floats(1, VOCAB * WIDTH), [scale * x for x in floats(2, VOCAB * WIDTH)]
    meta = {"general.architecture": "llama", "llama.context_length": 64, "llama.embedding_length": WIDTH,
            "llama.block_count": 1, "llama.feed_forward_length": WIDTH, "llama.attention.head_count": 1,
            "llama.attention.layer_norm_rms_epsilon": 1e-5, "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": WORDS, "tokenizer.ggml.merges": ["a b"],
            "tokenizer.ggml.token_type": [1, 1, 1, 1, 1, 3, 1], "tokenizer.ggml.bos_token_id": BEGIN,
            "tokenizer.ggml.eos_token_id": BEGIN, "tokenizer.ggml.add_bos_token": add_bos}
    square = ((WIDTH, WIDTH), [0.0] * WIDTH * WIDTH)
    ones = ((WIDTH,), [1.0] * WIDTH)
    parts = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]
    tensors = {"token_embd.weight": ((VOCAB, WIDTH), table), "output.weight": ((VOCAB, WIDTH), head), "output_norm.weight": ones,
               "blk.0.attn_norm.weight": ones, "blk.0.ffn_norm.weight": ones,
               **{f"blk.0.{part}.weight": square for part in parts}}

    def surprise(token, after):
        x = table[WIDTH * token:WIDTH * (token + 1)]
        root = math.sqrt(sum(v * v for v in x) / WIDTH + 1e-5)
        logits = [sum(head[WIDTH * v + i] * x[i] / root for i in range(WIDTH)) for v in range(VOCAB)]
        return math.log(sum(math.exp(v) for v in logits)) - logits[after]

    return t.write("model.gguf", gguf_bytes(meta, tensors)), surprise


def letters(count):
    r = random.Random(7)
    ids = []
    while len(ids) < count:
        if (x := r.randrange(5)) != 1 or not ids or ids[-1] != 0:  # "ab" is a token of its own
            ids.append(x)
    return ids


def expected(ids, surprise, context, begin):
    """running, mean, error"""
    seen, running = [], []
    for chunk in range(len(ids) // context):
        part = ids[chunk * context:(chunk + 1) * context]
        if begin:
            part[0] = BEGIN
        seen += [surprise(part[p], part[p + 1]) for p in range(context // 2, context - 1)]
        running.append(math.exp(sum(seen) / len(seen)))
    mean = sum(seen) / len(seen)
    spread = sum(x * x for x in seen) / len(seen) - mean * mean
    return running, mean, math.sqrt(spread / (len(seen) - 1)) * math.exp(mean)


def test_figures(t):
    ids = letters(100)
    for begin in False, True:
        path, surprise = model(t, begin)
        text = t.write("text.txt", "".join(LETTERS[i] for i in ids))
        for context in 3, 8, 9, 33:
            all_ids = [BEGIN, *ids] if begin else ids
            running, mean, error = expected(list(all_ids), surprise, context, begin)
            for flags in [], ["--chunk", 1], ["--chunk", 5]:
                r = rlx("perplexity", path, "--file", text, "--context", context, "--json", "--cache", "f32", *flags).json()
                near("running", r["running"], running, 1e-4)
                near("surprise, error", [r["surprise"], r["error"]], [mean, error], 1e-4)
                need(r["chunks"] == len(running) == len(all_ids) // context, r)
                need(r["foreseen"] == len(running) * (context - 1 - context // 2), r)
        r = rlx("perplexity", path, "--file", text, "--context", 8, "--chunks", 3).out.splitlines()
        running, _, error = expected(list(all_ids[:24]), surprise, 8, begin)
        near("lines", [float(x) for x in r[0].split(", ")], running, 1e-4)
        need(r[1].startswith(f"perplexity {running[-1]:.2f}"[:-1]) and f"+/- {error:.2f}"[:-1] in r[1], r[1])


def test_no_knowledge(t):
    path, _ = model(t, False, 0.0)
    r = rlx("perplexity", path, "--file", "-", "--context", 8, "--json", stdin=b"cdecdecdecde").json()
    near("as many as there are tokens", [r["perplexity"], r["error"]], [VOCAB, 0], 1e-5)


def test_what_cannot_be(t):
    path, _ = model(t, False)
    short = t.write("short.txt", "abc")
    r = rlx("perplexity", path, "--file", short, code=FAILED)
    need("do not fill a context of 512" in r.err, r.err)
    for flags in ["--context", "2"], ["--context", "-5"], ["--chunks", "-1"], ["--chunk", "-1"]:
        rlx("perplexity", path, "--file", short, *flags, code=MISUSED)
    rlx("perplexity", path, code=MISUSED)
    rlx("perplexity", "--file", short, code=MISUSED)
    r = rlx("perplexity", path, "--file", t.path / "none.txt", code=FAILED)
    need("cannot open" in r.err, r.err)
    rlx("perplexity", str(ROOT / "README.md"), "--file", short, code=FAILED)
    path, _ = model(t, False, float("nan"))
    r = rlx("perplexity", path, "--file", "-", "--context", 8, stdin=b"cdecdecdecde", code=FAILED)
    need("not finite" in r.err, r.err)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
