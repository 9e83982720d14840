#!/usr/bin/env python3
"""llm.py RLX [--threads 2] [--types Q8_0,Q4_0,Q4_K] [--shape 1b|110m|FILE.gguf]: language models beside
llama.cpp, from the same files, in turn: tokens of a prompt per second, and of what comes after it.

Files have random weights of the shape and are kept in build/bench. Q4_K writes the mix that is called
Q4_K_M. Wants llama.cpp as the PyPI package xllamacpp, and gguf and numpy: tools/setup bench. Ratios are
rlx over llama.cpp; the best of the rounds counts on either side."""
import argparse
import json
import pathlib
import platform
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHAPES = {"1b": dict(layers=22, width=2048, ffn=5632, heads=32, kv=4, vocab=32000, tied=False),
          "110m": dict(layers=12, width=768, ffn=2048, heads=12, kv=12, vocab=32000, tied=True)}
PROMPT, TOKENS = 512, 64
WANTED = {"Q8_0": 1.1, "Q4_0": 1.1, "Q4_K": 1.8, "prompt": 1.5, "prompt with AMX": 2.5}


# ---- files -------------------------------------------------------------------------------------


def bytes_as_text():
    """How byte-level BPE spells the 256 bytes."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    spelled = {b: chr(b) for b in own}
    for i, b in enumerate(b for b in range(256) if b not in own):
        spelled[b] = chr(0x100 + i)
    return [spelled[b] for b in range(256)]


def blocks(np, gguf, rng, kind, rows, columns):
    """Random blocks of a type, with scales that make numbers of about 0.02 of them."""
    if kind == "F32":
        return (rng.standard_normal((rows, columns)) * 0.02).astype(np.float32)
    elems, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    out = rng.integers(0, 256, (rows, columns // elems, size), dtype=np.uint8)
    scales = {"Q8_0": [(0, 3e-4)], "Q4_0": [(0, 4e-3)], "Q4_K": [(0, 1e-4), (2, 1e-4)],
              "Q6_K": [(208, 2e-5)]}
    for at, value in scales[kind]:
        out[:, :, at:at + 2] = np.frombuffer(np.float16(value).tobytes(), np.uint8)
    return out.reshape(rows, -1)


def kind_of(name, kind, layer, layers):
    if kind != "Q4_K":
        return kind
    more = layer is not None and (layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2)
    return "Q6_K" if name == "output" or (more and name in ("attn_v", "ffn_down")) else "Q4_K"


def write(path, shape, kind):
    import gguf
    import numpy as np
    rng = np.random.default_rng(1)
    w = gguf.GGUFWriter(path, "llama")
    w.add_context_length(2048)
    w.add_embedding_length(shape["width"])
    w.add_block_count(shape["layers"])
    w.add_feed_forward_length(shape["ffn"])
    w.add_head_count(shape["heads"])
    w.add_head_count_kv(shape["kv"])
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_dimension_count(shape["width"] // shape["heads"])
    tokens = bytes_as_text()
    tokens += ["ab"] + [f"<{i}>" for i in range(shape["vocab"] - len(tokens) - 2)] + ["<|endoftext|>"]
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    w.add_token_list(tokens)
    w.add_token_types([1] * (len(tokens) - 1) + [3])
    w.add_token_merges(["a b"])
    w.add_eos_token_id(len(tokens) - 1)
    w.add_bos_token_id(len(tokens) - 1)

    def add(name, rows, columns, layer=None):
        k = kind_of(name.split(".")[-1], kind, layer, shape["layers"])
        w.add_tensor(f"{name}.weight", blocks(np, gguf, rng, k, rows, columns),
                     raw_dtype=gguf.GGMLQuantizationType[k])

    def norm(name):
        w.add_tensor(f"{name}.weight", np.ones(shape["width"], np.float32))

    width, keys = shape["width"], shape["width"] // shape["heads"] * shape["kv"]
    add("token_embd", shape["vocab"], width)
    norm("output_norm")
    if not shape["tied"]:
        add("output", shape["vocab"], width)
    for i in range(shape["layers"]):
        norm(f"blk.{i}.attn_norm")
        norm(f"blk.{i}.ffn_norm")
        for part, rows, columns in [("attn_q", width, width), ("attn_k", keys, width), ("attn_v", keys, width),
                                    ("attn_output", width, width), ("ffn_gate", shape["ffn"], width),
                                    ("ffn_up", shape["ffn"], width), ("ffn_down", width, shape["ffn"])]:
            add(f"blk.{i}.{part}", rows, columns, i)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def model_file(shape, kind):
    if shape not in SHAPES:
        return pathlib.Path(shape)
    path = ROOT / "build" / "bench" / f"llama-{shape}-{kind}.gguf"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        write(part, SHAPES[shape], kind)
        part.replace(path)
    return path


# ---- sides -------------------------------------------------------------------------------------


def rlx(command, path, threads, device):
    """Tokens per second: of the prompt, and after it."""
    done = subprocess.run([command, "generate", path, "--prompt", "a" * PROMPT, "--tokens", str(TOKENS), "--temp",
                           "0", "--ignore-eos", "--json", "--context", "1024", "--no-special", "--device", device,
                           "--threads", str(threads)], stdout=subprocess.PIPE, text=True, check=True)
    r = json.loads(done.stdout)
    return r["prompt_tokens"] / r["prompt_seconds"], (r["tokens"] - 1) / r["token_seconds"]


def llama(path, threads):
    """The same of llama.cpp, in a process of its own."""
    code = """if True:
        import json, sys, xllamacpp as x
        p = x.CommonParams()
        p.model.path, p.n_ctx, p.n_parallel, p.n_gpu_layers = sys.argv[1], 1024, 1, 0
        p.cpuparams.n_threads = p.cpuparams_batch.n_threads = int(sys.argv[2])
        s = x.Server(p)
        r = s.handle_completions({"prompt": "a" * int(sys.argv[3]), "temperature": 0, "n_predict": int(sys.argv[4]),
                                  "ignore_eos": True, "cache_prompt": False})
        r = r if isinstance(r, dict) else json.loads(r)
        print("\\n" + json.dumps(r["timings"]))
    """
    done = subprocess.run([sys.executable, "-c", code, str(path), str(threads), str(PROMPT), str(TOKENS)],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    t = json.loads(done.stdout.strip().splitlines()[-1])
    return t["prompt_per_second"], t["predicted_per_second"]


def processor():
    info = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    names = re.findall(r"^model name\s*: (.*)", info, re.M)
    return f"{names[0] if names else platform.machine()}{', AMX' if 'amx_int8' in info else ''}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rlx", help="the command to measure: build/release/rlx")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--types", default="Q8_0,Q4_0,Q4_K")
    parser.add_argument("--shape", default="1b", help="1b, 110m, or a GGUF file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    amx = "AMX" in processor()
    print(f"{processor()}, {args.threads} threads; tokens/s, rlx and llama.cpp")
    print(f"{'type':8} {'prompt of 512':>24} {'ratio':>6} {'decode':>20} {'ratio':>6}")
    for kind in args.types.split(",") if args.shape in SHAPES else ["file"]:
        path = model_file(args.shape, kind)
        best = [0.0] * 4
        for _ in range(args.rounds):
            ours, theirs = rlx(args.rlx, path, args.threads, args.device), llama(path, args.threads)
            best = [max(a, b) for a, b in zip(best, (*ours, *theirs))]
        print(f"{kind:8} {best[0]:11.1f} / {best[2]:10.1f} {best[0] / best[2]:6.2f} "
              f"{best[1]:9.2f} / {best[3]:8.2f} {best[1] / best[3]:6.2f}"
              f"   (wanted {WANTED['prompt with AMX' if amx else 'prompt']}, {WANTED.get(kind, 1.1)})", flush=True)


main()
