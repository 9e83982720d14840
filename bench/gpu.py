#!/usr/bin/env python3
"""gpu.py RLX [--device vulkan] [--json FILE] [--only WORDS] [--small]: a GPU's kernels beside
PyTorch on the same GPU, where there is one, and beside a copy on the device, in one run.

Every graph makes its own operands on the device and returns one number, so that what is timed, by
the device's own clock, is the step that the line is about. --small: sizes for a slow device."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

# GPUs that were idle run at a fraction of their clock at first: both sides work that long before
# they are timed.
WARM_MS = 800


def graph(lines, result):
    """Lines of a graph, and the sum of a value of rank 2."""
    body = "\n".join("    " + line for line in lines)
    return (f"rlx 1\ngraph () {{\n{body}\n"
            f"    %end = reduce_sum %{result} axes=[0,1]\n    return %end\n}}\n")


def random(name, shape, dtype="f32", high=1):
    """A value of random numbers from 0 to high."""
    dims = ",".join(map(str, shape))
    made = f"= rng_uniform shape=[{dims}] high={high} seed={sum(name.encode())}"
    if dtype == "f32":
        return [f"%{name} {made}"]
    return [f"%{name}_f32 {made}", f"%{name} = cast %{name}_f32 to={dtype}"]


class Jobs:
    def __init__(self, options):
        self.rlx, self.device, self.small = options.rlx, options.device, options.small
        self.folder = tempfile.mkdtemp(prefix="rlx-gpu-")
        self.copy = None

    def run(self, name, text, *flags, device=None, env=None):
        path = os.path.join(self.folder, f"{name}.rlx")
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        command = [self.rlx, "bench", path, "--device", device or self.device, "--json", "--ms",
                   str(WARM_MS), *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              env={**os.environ, **(env or {})})
        if done.returncode:
            raise RuntimeError(done.stderr.strip() or f"exit status {done.returncode}")
        return json.loads(done.stdout)

    def step(self, name, text, op):
        """Microseconds of the last step of that kind."""
        found = [s for s in self.run(name, text)["steps"] if s["name"] == op]
        if not found:
            raise RuntimeError(f"no step {op}")
        return found[-1]["us"]


def torch_time(make, rounds=20):
    """Microseconds of what make() returns as a function; None: there is no GPU for PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    work = make(torch)
    start = time.monotonic()
    while time.monotonic() < start + WARM_MS / 1000:
        work()
        torch.cuda.synchronize()
    times = []
    for _ in range(5):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(rounds):
            work()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1000 / rounds)
    del work
    torch.cuda.empty_cache()
    return statistics.median(times)


def matmul(jobs, dtype, n):
    text = graph(random("a", [n, n], dtype) + random("b", [n, n], dtype)
                 + ["%y = matmul %a, %b", "%z = cast %y to=f32"], "z")
    us = jobs.step(f"matmul_{dtype}_{n}", text, "matmul")
    kind = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}[dtype]

    def make(torch):
        a, b = (torch.rand(n, n, device="cuda", dtype=getattr(torch, kind)) for _ in range(2))
        return lambda: a @ b

    return us, torch_time(make), f"{2 * n ** 3 / us / 1e6:.1f} TFLOP/s"


def rate(jobs, us, moved):
    if jobs.copy is None:
        jobs.copy = moved / us
    return f"{moved / us / 1e6:.2f} TB/s, {moved / us / jobs.copy:.2f} of copy"


def rows(jobs, op, attrs, torch_op):
    shape = [4096, 512] if jobs.small else [65536, 4096]
    text = graph(random("x", shape) + [f"%y = {op} %x{attrs}"], "y")
    us = jobs.step(op, text, op)

    def make(torch):
        x = torch.rand(*shape, device="cuda")
        return lambda: torch_op(torch, x)

    return us, torch_time(make), rate(jobs, us, 2 * 4 * shape[0] * shape[1])


def layer_norm(jobs):
    shape = [4096, 512] if jobs.small else [65536, 4096]
    width = shape[1]
    text = graph(random("x", shape) + random("g", [width]) + random("b", [width])
                 + ["%y = layer_norm %x, %g, %b axis=1"], "y")
    us = jobs.step("layer_norm", text, "layer_norm")

    def make(torch):
        x = torch.rand(*shape, device="cuda")
        g, b = (torch.rand(width, device="cuda") for _ in range(2))
        return lambda: torch.nn.functional.layer_norm(x, (width,), g, b)

    return us, torch_time(make), rate(jobs, us, 2 * 4 * shape[0] * width)


def chain(jobs):
    """Four elementwise ops of two tensors, in one kernel."""
    shape = [4096, 512] if jobs.small else [65536, 4096]
    text = graph(random("x", shape)
                 + ["%a = reverse %x axes=[0]", "%t = mul %x, %a", "%u = gelu_approx %t",
                    "%v = add %u, %x", "%y = tanh %v", "%z = reverse %y axes=[1]"], "z")
    us = jobs.step("chain", text, "elementwise_region")

    def make(torch):
        x, a = (torch.rand(*shape, device="cuda") for _ in range(2))
        gelu = torch.nn.functional.gelu
        return lambda: torch.tanh(gelu(x * a, approximate="tanh") + x)

    return us, torch_time(make), rate(jobs, us, 3 * 4 * shape[0] * shape[1])


def gemv(jobs, scheme):
    k, n = (1024, 1024) if jobs.small else (8192, 28672)
    if scheme == "f16":
        text = graph(random("x", [1, k], "f16") + random("w", [k, n], "f16")
                     + ["%y = matmul %x, %w", "%z = cast %y to=f32"], "z")
        us, moved = jobs.step("gemv", text, "matmul"), 2 * k * n

        def make(torch):
            x = torch.rand(1, k, device="cuda", dtype=torch.float16)
            w = torch.rand(k, n, device="cuda", dtype=torch.float16)
            return lambda: x @ w

        return us, torch_time(make), rate(jobs, us, moved)
    block = {"q4_0": 18, "q8_0": 34, "q4_k": 144, "q6_k": 210}[scheme]
    per = 256 if scheme.endswith("_k") else 32
    row = k // per * block
    text = graph(random("x", [1, k]) + random("w", [n, row], "u8", 255)
                 + [f"%y = dequant_matmul %x, %w scheme={scheme} k={k} act=q8"], "y")
    us = jobs.step(f"gemv_{scheme}", text, "dequant_matmul")
    return us, None, rate(jobs, us, n * row)


def gemv_chain(jobs):
    """64 different f16 matrices, one after the other."""
    n, count = (256, 8) if jobs.small else (4096, 64)
    lines = random("x", [1, n], "f16")
    for i in range(count):
        lines += random(f"w{i}", [n, n], "f16")
    last = "x"
    for i in range(count):
        lines.append(f"%y{i} = matmul %{last}, %w{i}")
        last = f"y{i}"
    text = graph(lines + [f"%z = cast %{last} to=f32"], "z")
    times = [s["us"] for s in jobs.run("gemv_chain", text)["steps"] if s["name"] == "matmul"]
    us = sum(times)
    return us, None, rate(jobs, us, 2 * n * n * count)


def attention(jobs):
    heads, length, width = (4, 256, 64) if jobs.small else (16, 4096, 128)
    flat = [heads * length, width]
    lines = []
    for name in "qkv":
        lines += random(f"{name}_flat", flat, "f16")
        lines.append(f"%{name} = reshape %{name}_flat shape=[1,{heads},{length},{width}]")
    text = graph(lines + [f"%y = attention %q, %k, %v num_heads={heads} head_dim={width} "
                          "mask_kind=causal layout=bhsd",
                          f"%o = reshape %y shape=[{heads * length},{width}]",
                          "%z = cast %o to=f32"], "z")
    us = jobs.step("attention", text, "attention")

    def make(torch):
        q, k, v = (torch.rand(1, heads, length, width, device="cuda", dtype=torch.float16)
                   for _ in range(3))
        sdpa = torch.nn.functional.scaled_dot_product_attention
        return lambda: sdpa(q, k, v, is_causal=True)

    flops = 2 * heads * length * length * width
    return us, torch_time(make), f"{flops / us / 1e6:.1f} TFLOP/s"


def tiny(jobs):
    """Steps that each wait for the one before."""
    count = 100 if jobs.small else 1000
    lines = random("x", [1, 16]) + ["%y0 = cumsum %x axis=1"]
    lines += [f"%y{i + 1} = cumsum %y{i} axis=1" for i in range(count - 1)]
    result = jobs.run("tiny", graph(lines, f"y{count - 1}"))
    us = result["median_us"]
    return us, None, f"{us / count:.2f} us each, submit and wait included"


def network(layers, width=64, length=32, heads=4):
    """A transformer of so many layers, with random weights: 24 nodes to a layer."""
    lines, wide = random("x0", [length, width]), 4 * width

    def product(i, to, of, rows, columns):
        return random(f"w_{to}{i}", [rows, columns], high=0.1) + [
            f"%{to}{i} = matmul %{of}{i}, %w_{to}{i}"]

    for i in range(layers):
        lines += random(f"g{i}", [width]) + [f"%n{i} = rms_norm %x{i}, %g{i} axis=1"]
        for name in "qkv":
            lines += product(i, f"{name}_flat", "n", width, width)
            lines.append(f"%{name}{i} = reshape %{name}_flat{i} shape=[1,{length},{width}]")
        lines += [f"%a{i} = attention %q{i}, %k{i}, %v{i} num_heads={heads} "
                  f"head_dim={width // heads} mask_kind=causal layout=packed",
                  f"%a_flat{i} = reshape %a{i} shape=[{length},{width}]"]
        lines += product(i, "o", "a_flat", width, width) + [f"%r{i} = add %x{i}, %o{i}"]
        lines += random(f"h{i}", [width]) + [f"%m{i} = rms_norm %r{i}, %h{i} axis=1"]
        lines += product(i, "u", "m", width, wide) + [f"%e{i} = gelu_approx %u{i}"]
        lines += product(i, "d", "e", wide, width) + [f"%x{i + 1} = add %r{i}, %d{i}"]
    return graph(lines, f"x{layers}"), len(lines)


def cold(jobs):
    """From nothing to the first result, twice: the second process finds the pipelines on disk."""
    text, nodes = network(21)
    path = os.path.join(jobs.folder, "network.rlx")
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    env = {**os.environ, "RLX_GPU_CACHE": tempfile.mkdtemp(dir=jobs.folder)}
    times = []
    for _ in range(2):
        start = time.monotonic()
        done = subprocess.run([jobs.rlx, "run", path, "--device", jobs.device], env=env,
                              capture_output=True, text=True, check=False)
        times.append(time.monotonic() - start)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
    return times[0] * 1e6, None, f"{nodes} nodes; a second process {times[1]:.2f} s"


def both_apis(jobs, precision):
    """A transformer on Vulkan and on WebGPU. Only f16 has cooperative matrices, and only Vulkan."""
    text, _ = network(2, 64, 32, 4) if jobs.small else network(6, 1024, 1024, 16)
    plain = {"RLX_GPU_NO_COOP": "1"} if precision == "f32" else {}
    times = {}
    for device in ("vulkan", "webgpu"):
        times[device] = jobs.run("transformer", text, "--precision", precision, device=device,
                                 env=plain)["median_us"]
    note = (f"{times['webgpu']:.1f} us on webgpu, {times['webgpu'] / times['vulkan']:.2f} times "
            "vulkan's")
    return times["vulkan"], None, note


def table(jobs):
    big = not jobs.small
    sizes = (4096, 8192) if big else (256,)
    yield "copy 1 GiB" if big else "copy", lambda: rows(
        jobs, "pad", " before=[0,0] after=[0,0]", lambda t, x: x.clone())
    for dtype in ("f16", "bf16"):
        for n in sizes:
            yield f"matmul {dtype} {n}", lambda d=dtype, n=n: matmul(jobs, d, n)
    yield f"matmul f32 {sizes[0]}", lambda: matmul(jobs, "f32", sizes[0])
    for scheme in ("f16", "q4_0", "q8_0", "q4_k", "q6_k"):
        yield f"gemv {scheme}", lambda s=scheme: gemv(jobs, s)
    yield "gemv f16, chain", lambda: gemv_chain(jobs)
    yield "elementwise", lambda: chain(jobs)
    yield "softmax", lambda: rows(jobs, "softmax", " axis=1",
                                  lambda t, x: t.softmax(x, dim=1))
    yield "layer_norm", lambda: layer_norm(jobs)
    yield "attention f16 causal", lambda: attention(jobs)
    yield "tiny steps", lambda: tiny(jobs)
    yield "compile and first run", lambda: cold(jobs)
    for precision in ("f32", "f16"):
        yield f"transformer {precision}", lambda p=precision: both_apis(jobs, p)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("rlx")
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--json", help="write the figures there too")
    parser.add_argument("--only", help="only lines with one of these words")
    parser.add_argument("--small", action="store_true", help="sizes for a slow device")
    options = parser.parse_args()
    jobs, figures, failed = Jobs(options), [], 0
    print(f"{'what':24} {'us':>10} {'PyTorch':>10} {'ratio':>6}  rate")
    for name, job in table(jobs):
        if options.only and not name.startswith("copy") and not any(
                word in name for word in options.only.split(",")):
            continue
        try:
            us, peer, note = job()
        except RuntimeError as why:
            failed += 1
            print(f"{name:24} failed: {why}", flush=True)
            continue
        ratio = f"{peer / us:.2f}" if peer else "-"
        print(f"{name:24} {us:10.1f} {f'{peer:.1f}' if peer else '-':>10} {ratio:>6}  {note}",
              flush=True)
        figures.append({"what": name, "us": us, "peer_us": peer, "note": note})
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(figures, out, indent=1)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
