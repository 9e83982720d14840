#!/usr/bin/env python3
"""train.py RLX_BENCH_TRAIN [--net NAME] [--threads N] [--rounds N] [--ms N]: a step of training of
bench/train.c's transformer or of its convolutional network, in rlx and in PyTorch, in turn. PyTorch
is that of the Python it is run with."""
import argparse
import json
import math
import statistics
import subprocess
import sys
import time

VOCAB, WIDTH, LAYERS, HEADS, HIDDEN, ROWS, LENGTH = 6144, 256, 8, 8, 768, 8, 256
PICTURES, COLOURS, SIDE, STAGES, CHANNELS, CLASSES = 64, 3, 32, 3, 32, 10


def scrambled(i, t):
    h = (i * 0x9E3779B1 + t * 0x85EBCA77 + 1) & 0xFFFFFFFF
    h = ((h ^ (h >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
    h = ((h ^ (h >> 15)) * 0x846CA68B) & 0xFFFFFFFF
    return h ^ (h >> 16)


class Torch:
    """The same model, values and updates: build() fills made, and loss() is a step forward."""

    def __init__(self, torch, threads):
        self.torch = torch
        torch.set_num_threads(threads)
        self.made = []
        self.build()
        self.optimiser = torch.optim.AdamW(
            [{"params": [p for p in self.made if p.dim() > 1], "weight_decay": 0.1},
             {"params": [p for p in self.made if p.dim() == 1], "weight_decay": 0.0}], lr=1e-3)

    def spread(self, t, shape):
        h = self.torch.arange(math.prod(shape), dtype=self.torch.int64)
        h = (h * 0x9E3779B1 + t * 0x85EBCA77 + 1) & 0xFFFFFFFF
        h = ((h ^ (h >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
        h = ((h ^ (h >> 15)) * 0x846CA68B) & 0xFFFFFFFF
        h = (h ^ (h >> 16)) >> 8
        return (h.double() * 2.0 ** -23 - 1).float().reshape(shape)

    def param(self, *shape):
        t = len(self.made)
        value = self.torch.ones(shape) if len(shape) == 1 else self.spread(t, shape) * 0.0625
        self.made.append(value.requires_grad_())
        return self.made[-1]

    def step(self):
        loss = self.loss()
        self.optimiser.zero_grad()
        loss.backward()
        self.torch.nn.utils.clip_grad_norm_(self.made, 1.0)
        self.optimiser.step()
        return loss.item()

    def round(self, ms):
        times, begin = [], time.perf_counter()
        while not times or time.perf_counter() - begin < ms * 1e-3:
            start = time.perf_counter()
            self.step()
            times.append(time.perf_counter() - start)
        return times


class Transformer(Torch):
    def build(self):
        torch = self.torch
        self.embed = self.param(VOCAB, WIDTH)
        self.layers = [
            dict(norm1=self.param(WIDTH), q=self.param(WIDTH, WIDTH), k=self.param(WIDTH, WIDTH),
                 v=self.param(WIDTH, WIDTH), o=self.param(WIDTH, WIDTH), norm2=self.param(WIDTH),
                 gate=self.param(WIDTH, HIDDEN), up=self.param(WIDTH, HIDDEN),
                 down=self.param(HIDDEN, WIDTH)) for _ in range(LAYERS)]
        self.norm, self.head = self.param(WIDTH), self.param(WIDTH, VOCAB)
        half = WIDTH // HEADS // 2
        angle = torch.tensor([[p * 10000.0 ** (-i / half) for i in range(half)]
                              for p in range(LENGTH)], dtype=torch.float64)
        self.cos, self.sin = angle.cos().float(), angle.sin().float()
        rows = torch.tensor([[scrambled((r * 31 + i) % 1009, 1000) % VOCAB
                              for i in range(LENGTH + 1)] for r in range(ROWS)])
        self.tokens, self.labels = rows[:, :-1], rows[:, 1:].reshape(-1)

    def turned(self, x):
        a, b = x.chunk(2, dim=-1)
        return self.torch.cat((a * self.cos - b * self.sin, b * self.cos + a * self.sin), dim=-1)

    def heads(self, x):
        return x.reshape(ROWS, LENGTH, HEADS, -1).transpose(1, 2)

    def loss(self):
        torch, F = self.torch, self.torch.nn.functional
        x = self.embed[self.tokens]
        for layer in self.layers:
            h = F.rms_norm(x, (WIDTH,), layer["norm1"], 1e-5)
            q = self.turned(self.heads(h @ layer["q"]))
            k = self.turned(self.heads(h @ layer["k"]))
            a = F.scaled_dot_product_attention(q, k, self.heads(h @ layer["v"]), is_causal=True)
            x = x + a.transpose(1, 2).reshape(ROWS, LENGTH, WIDTH) @ layer["o"]
            h = F.rms_norm(x, (WIDTH,), layer["norm2"], 1e-5)
            x = x + (F.silu(h @ layer["gate"]) * (h @ layer["up"])) @ layer["down"]
        scores = F.rms_norm(x, (WIDTH,), self.norm, 1e-5) @ self.head
        return F.cross_entropy(scores.reshape(-1, VOCAB), self.labels)


class Convolutional(Torch):
    def build(self):
        self.stages = []
        for i in range(STAGES):
            out = CHANNELS << i
            self.stages.append((self.param(out, out // 2 if i else COLOURS, 3, 3), self.param(out)))
        self.head = self.param(CHANNELS << (STAGES - 1), CLASSES)
        self.pictures = self.spread(1000, (PICTURES, COLOURS, SIDE, SIDE))
        self.labels = self.torch.tensor([scrambled(i, 1001) % CLASSES for i in range(PICTURES)])

    def loss(self):
        F, x = self.torch.nn.functional, self.pictures
        for i, (weight, bias) in enumerate(self.stages):
            x = F.relu(F.conv2d(x, weight, bias, padding=1))
            x = F.max_pool2d(x, 2) if i + 1 < STAGES else x
        return F.cross_entropy(x.mean((2, 3)) @ self.head, self.labels)


NETS = {"transformer": Transformer, "conv": Convolutional}


class Rlx:
    def __init__(self, program, net, threads):
        self.child = subprocess.Popen([program, "--net", net, "--threads", str(threads)], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.losses = json.loads(self.child.stdout.readline())["losses"]

    def round(self, ms):
        print(ms, file=self.child.stdin, flush=True)
        return json.loads(self.child.stdout.readline())["times"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--net", choices=NETS, default="transformer")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ms", type=int, default=2000)
    args = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        sys.exit(f"train.py: {error}; run it with a Python that has PyTorch")
    rlx = Rlx(args.program, args.net, args.threads)
    peer = NETS[args.net](torch, args.threads)
    losses = [peer.step() for _ in range(3)]
    print("losses:", " ".join(f"{a:.5f} ({b:.5f})" for a, b in zip(rlx.losses, losses)))
    if any(abs(a - b) > 1e-3 * b for a, b in zip(rlx.losses, losses)):
        sys.exit("train.py: the losses differ")
    times = {"rlx": [], f"PyTorch {torch.__version__}": []}
    for _ in range(args.rounds):
        for name, side in zip(times, (rlx, peer)):
            times[name] += side.round(args.ms)
            time.sleep(0.1)  # threads of this side may still be spinning
    for name, all_of in times.items():
        print(f"{name:24} best {min(all_of) * 1e3:9.1f} ms, median "
              f"{statistics.median(all_of) * 1e3:9.1f} ms, {args.threads} threads")
    ours, theirs = times.values()
    print(f"{'ratio':24} best {min(theirs) / min(ours):9.2f}, median "
          f"{statistics.median(theirs) / statistics.median(ours):9.2f}")


main()
