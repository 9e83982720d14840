"""windows.py: convolution, pooling, attention and rotary embedding."""
import itertools
import math

import numpy as np

from numpy_vectors.cases import EXACT, FLOATS, nums, rounded, sum_tol, ulps, values, wide
from numpy_vectors.reductions import softmax_of


def conv_of(x, w, stride, padding, dilation, groups):
    n = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(p, p) for p in padding])
    size = [(x.shape[2 + i] - dilation[i] * (w.shape[2 + i] - 1) - 1) // stride[i] + 1
            for i in range(n)]
    cin, cout = w.shape[1], w.shape[0] // groups
    y = np.zeros([x.shape[0], w.shape[0]] + size)
    for at in itertools.product(*[range(k) for k in w.shape[2:]]):
        first = [a * d for a, d in zip(at, dilation)]
        part = x[(slice(None), slice(None)) + tuple(
            slice(a, a + (o - 1) * s + 1, s) for a, o, s in zip(first, size, stride))]
        for g in range(groups):
            y[:, g * cout:(g + 1) * cout] += np.einsum(
                "nc...,oc->no...", part[:, g * cin:(g + 1) * cin],
                w[(slice(g * cout, (g + 1) * cout), slice(None)) + at])
    return y


# x, w, stride, padding, dilation, groups
CONVS = [((1, 1, 5), (1, 1, 3), [2], [1], [1], 1), ((2, 3, 11), (4, 3, 3), [1], [0], [2], 1),
         ((1, 4, 9), (4, 1, 4), [1], [2], [1], 4),
         ((1, 3, 7, 6), (2, 3, 3, 3), [1, 1], [1, 1], [1, 1], 1),
         ((2, 4, 6, 5), (6, 2, 3, 2), [2, 1], [1, 0], [1, 2], 2),
         ((1, 8, 4, 4), (5, 8, 1, 1), [1, 1], [0, 0], [1, 1], 1),
         ((1, 2, 8, 8), (3, 2, 5, 5), [3, 3], [2, 2], [1, 1], 1),
         ((1, 2, 4, 3, 5), (3, 2, 2, 3, 2), [1, 1, 2], [1, 1, 0], [1, 1, 1], 1),
         ((0, 2, 4, 4), (3, 2, 3, 3), [1, 1], [1, 1], [1, 1], 1)]


def conv(book):
    f = "conv"
    for dt in FLOATS:
        for sx, sw, stride, padding, dilation, groups in CONVS if dt == "f32" else CONVS[3:5]:
            x, w = values(f"cx{dt}{sx}", dt, sx), values(f"cw{dt}{sw}", dt, sw)
            args = (stride, padding, dilation, groups)
            y = conv_of(wide(x), wide(w), *args)
            scale = np.max(conv_of(np.abs(wide(x)), np.abs(wide(w)), *args), initial=0)
            attrs = (f"stride={nums(stride)} padding={nums(padding)} dilation={nums(dilation)} "
                     f"groups={groups}")
            n = int(np.prod(sw[1:]))
            book.add(f, f"{dt} {nums(sx)} {nums(sw)}", "conv", [x, w], rounded(y, dt), attrs,
                     sum_tol(dt, n, scale))
    x, w = values("ctx", "f32", (1, 4, 3, 4)), values("ctw", "f32", (4, 2, 3, 2))
    rows = (([2, 2], [1, 0], [1, 0], 1), ([1, 1], [0, 0], [0, 0], 2))
    for stride, padding, extra, groups in rows:
        cout = 2 * groups
        size = [(x.shape[2 + i] - 1) * stride[i] + w.shape[2 + i] + extra[i] for i in (0, 1)]
        y = np.zeros((1, cout, *size))
        for i, j in itertools.product(range(3), range(2)):
            for g in range(groups):
                lo, hi = g * 4 // groups, (g + 1) * 4 // groups
                part = np.einsum("nchw,co->nohw", wide(x)[:, lo:hi], wide(w)[lo:hi, :, i, j])
                y[:, 2 * g:2 * g + 2, i:i + 2 * stride[0] + 1:stride[0],
                  j:j + 3 * stride[1] + 1:stride[1]] += part
        y = y[:, :, padding[0]:size[0] - padding[0], padding[1]:size[1] - padding[1]]
        book.add(f, f"f32 stride {nums(stride)} groups {groups}", "conv_transpose", [x, w],
                 rounded(y, "f32"), f"stride={nums(stride)} padding={nums(padding)} "
                 f"output_padding={nums(extra)} groups={groups}", sum_tol("f32", 24, 100))


def windows(x, size, stride, padding, fill):
    """Every window of the padded spatial axes, as the last axis."""
    n = len(size)
    x = np.pad(x, [(0, 0), (0, 0)] + [(p, p) for p in padding], constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(x, size, axis=tuple(range(2, 2 + n)))
    view = view[(slice(None), slice(None)) + tuple(slice(None, None, s) for s in stride)]
    return view.reshape(view.shape[:2 + n] + (-1,))


def pool(book):
    f = "pool"
    table = {"sum": (np.sum, 0), "mean": (np.mean, 0), "max": (np.max, -np.inf),
             "min": (np.min, np.inf), "prod": (np.prod, 1)}
    rows = [((1, 2, 7), [3], [2], [1]), ((2, 1, 5, 6), [2, 3], [1, 2], [1, 1]),
            ((1, 2, 3, 4, 4), [2, 2, 2], [1, 2, 1], [0, 1, 0])]
    for word, (shape, size, stride, padding) in itertools.product(table, rows):
        fn, fill = table[word]
        x = values(f"pool{word}{shape}", "f32", shape)
        y = fn(windows(wide(x), size, stride, padding, fill), axis=-1)
        attrs = (f"kind={word} kernel_size={nums(size)} stride={nums(stride)} "
                 f"padding={nums(padding)}")
        tol = EXACT if word in ("max", "min") else (2e-6, 1e-5)
        book.add(f, f"f32 {word} {nums(shape)}", "pool", [x], rounded(y, "f32"), attrs, tol)
        if word == "mean":
            y = np.nanmean(windows(wide(x), size, stride, padding, np.nan), axis=-1)
            book.add(f, f"f32 mean inside {nums(shape)}", "pool", [x], rounded(y, "f32"),
                     attrs + " count_include_pad=false", tol)
    for dt in ("i32", "u8", "f16", "f64"):
        x = values("pool" + dt, dt, (1, 1, 5, 5), -9, 50)
        for word in ("sum", "max", "min"):
            y = table[word][0](windows(x, [2, 2], [1, 1], [0, 0], 0).astype(np.float64), axis=-1)
            book.add(f, f"{dt} {word}", "pool", [x], rounded(y, dt),
                     f"kind={word} kernel_size=[2,2]", ulps(dt, 1) if dt in FLOATS else EXACT)
    x = np.array([[[1, np.nan, 2, 3, -np.inf]]], np.float32)
    book.add(f, "f32 max with NaN", "pool", [x], windows(x, [2], [1], [0], 0).max(-1),
             "kind=max kernel_size=[2]")
    x = values("im2col", "f32", (2, 3, 4, 5))
    view = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0))),
                                                    (3, 2), axis=(2, 3))[:, :, ::2]
    want = view.transpose(0, 2, 3, 1, 4, 5).reshape(-1, 18)
    book.add(f, "f32", "im2col", [x], want, "kernel_size=[3,2] stride=[2,1] padding=[1,0]")


# ---- sequences ---------------------------------------------------------------------------------


def attention(book):
    f = "sequence"
    for kv, sq, sk in ((4, 3, 3), (2, 3, 5), (1, 5, 3), (4, 1, 9)):
        q = values(f"q{kv}{sq}", "f32", (2, 4, sq, 6))
        k, v = (values(f"{c}{kv}{sk}", "f32", (2, kv, sk, 6)) for c in "kv")
        kw, vw = (np.repeat(wide(t), 4 // kv, axis=1) for t in (k, v))
        scores = np.einsum("bhid,bhjd->bhij", wide(q), kw) / math.sqrt(6)
        place = np.arange(sq)[:, None] + max(0, sk - sq)
        key = np.arange(sk)[None, :]
        masks = {"none": np.full((sq, sk), True), "causal": key <= place,
                 "sliding_window": (key <= place) & (key >= place - 1),
                 "symmetric_window": abs(key - place) <= 1,
                 "chunked_window": (key <= place) & (key // 2 == place // 2)}
        width = {"sliding_window": 1, "symmetric_window": 1, "chunked_window": 2}
        for word, allowed in masks.items():
            p = softmax_of(np.where(allowed, scores, -np.inf), -1)
            book.add(f, f"f32 {word} {kv} {sq} {sk}", "attention", [q, k, v],
                     rounded(p @ vw, "f32"),
                     f"num_heads=4 num_kv_heads={kv} head_dim=6 layout=bhsd mask_kind={word}"
                     + (f" window={width[word]}" if word in width else ""), (0, 6e-5))
        bias = values(f"bias{kv}{sq}", "f32", (1, 1, sq, sk))
        p = softmax_of(3 * np.tanh(scores / 3) + wide(bias), -1)
        book.add(f, f"f32 bias and softcap {kv} {sq} {sk}", "attention", [q, k, v, bias],
                 rounded(p @ vw, "f32"), f"num_heads=4 num_kv_heads={kv} head_dim=6 layout=bhsd "
                 "mask_kind=bias logit_softcap=3", (0, 6e-5))


def slopes(heads, most):
    """ALiBi's slopes of all heads, as those who found them write it: powers, then every other one
    of twice as many."""
    def powers(n):
        return [2.0 ** (-most * (i + 1) / n) for i in range(n)]
    n = 2 ** int(math.log2(heads))
    return np.array(powers(n) + powers(2 * n)[0::2][:heads - n])


def attention_of_models(book):
    """Sinks, ALiBi, values of their own size, a cache of halves."""
    f = "sequence"
    for heads, kv, value, dt in ((6, 2, 6, "f32"), (3, 1, 4, "f16"), (5, 5, 9, "f16")):
        q = values(f"mq{heads}", "f32", (2, 3, heads, 6))
        k = values(f"mk{heads}", dt, (2, 5, kv, 6))
        v = values(f"mv{heads}", dt, (2, 5, kv, value))
        sinks = values(f"ms{heads}", "f32", (heads,))
        kw, vw = (np.repeat(wide(t), heads // kv, axis=2) for t in (k, v))
        scores = np.einsum("bihd,bjhd->bhij", wide(q), kw) / math.sqrt(6)
        place, key = np.arange(3)[:, None] + 2, np.arange(5)[None, :]
        far = slopes(heads, 8)[:, None, None] * abs(place - key)
        for lean, sunk in itertools.product((False, True), repeat=2):
            z = np.where(key <= place, scores - (far if lean else 0), -np.inf)
            column = np.broadcast_to(wide(sinks)[None, :, None, None], z.shape[:3] + (1,))
            p = softmax_of(np.concatenate([z, column], -1), -1)[..., :5] if sunk else softmax_of(z, -1)
            y = np.einsum("bhij,bjhd->bihd", p, vw)
            attrs = (f"num_heads={heads} num_kv_heads={kv} head_dim=6 value_dim={value} layout=bshd "
                     "mask_kind=causal" + " alibi_max_bias=8" * lean + " has_sinks=true" * sunk)
            book.add(f, f"{dt} cache, {heads} heads of {value}{' leaning' * lean}{' sunk' * sunk}",
                     "attention", [q, k, v, sinks][:3 + sunk], rounded(y, "f32"), attrs, (0, 6e-5))


def rope(book):
    x = values("rope", "f32", (2, 3, 8))
    angle = np.arange(5)[:, None] * 10000.0 ** (-np.arange(2) / 2)[None, :]
    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    heads = wide(x).reshape(2, 3, 2, 4)
    c, s = (wide(t)[:3][None, :, None, :] for t in (cos, sin))
    a, b = heads[..., :2], heads[..., 2:]
    want = np.concatenate([a * c - b * s, b * c + a * s], -1).reshape(x.shape)
    book.add("sequence", "f32 half", "rope", [x, cos, sin], rounded(want, "f32"), "head_dim=4",
             (1e-6, 1e-6))
    a, b = heads[..., ::2], heads[..., 1::2]
    want = np.stack([a * c - b * s, b * c + a * s], -1).reshape(x.shape)
    book.add("sequence", "f32 interleaved", "rope", [x, cos, sin], rounded(want, "f32"),
             "head_dim=4 style=interleaved", (1e-6, 1e-6))


MAKERS = [conv, pool, attention, attention_of_models, rope]
