#!/usr/bin/env python3
"""ort.py NAME [--threads N] [--compare FILE.npy]: the networks of bench/support/models.c in ONNX
Runtime, with the same names, shapes and values; the same conversation as bench/network.c.

It prints {"ready": true, "name": ..., "cosine": ...} (the cosine of its output and the file's), or
{"missing": why}; then, for each number of milliseconds read, {"times": [seconds, ...]}."""
import argparse
import json
import sys
import time

NETWORKS = {
    "bert": {"layers": 12, "hidden": 768, "heads": 12, "ffn": 3072, "sequence": 128},
    "resnet50": {"blocks": [3, 4, 6, 3], "width": 64, "classes": 1000, "image": 224,
                 "folded": False},
    "resnet50-folded": {"blocks": [3, 4, 6, 3], "width": 64, "classes": 1000, "image": 224,
                        "folded": True},
}
OPSET = 20  # the first with Gelu


def say(**what):
    print(json.dumps(what), flush=True)


try:
    import numpy as np
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    say(missing=f"{error}; tools/setup bench installs it")
    sys.exit(0)

# ---- values: the rule of bench/support/values.c ------------------------------------------------


def uniform(name, count):
    seed = 14695981039346656037
    for c in name.encode():
        seed = (seed ^ c) * 1099511628211 % 2**64
    z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1


def values(name, shape):
    count = int(np.prod(shape))
    middle, reach = 0.0, 1.0
    if name.endswith(".weight"):
        reach = np.sqrt(3.0 / (shape[0] if len(shape) == 2 else count // shape[0]))
    elif name.endswith((".gamma", ".var")):
        middle, reach = 1.0, 0.25
    elif name.endswith((".bias", ".beta", ".mean")):
        reach = 0.125
    return (middle + reach * uniform(name, count)).astype(np.float32).reshape(shape)


# ---- graphs ------------------------------------------------------------------------------------


class Graph:
    """Nodes and initializers as they come; every method answers the name of its result."""

    def __init__(self, shape):
        self.nodes, self.initializers, self.shape = [], [], shape

    def node(self, op, inputs, **attributes):
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def constant(self, array, name=None):
        name = name or f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def param(self, layer, part, *shape):
        name = f"{layer}.{part}"
        return self.constant(values(name, shape), name)

    def dense(self, layer, x, start, end):
        y = self.node("MatMul", [x, self.param(layer, "weight", start, end)])
        return self.node("Add", [y, self.param(layer, "bias", end)])

    def model(self, result):
        graph = helper.make_graph(
            self.nodes, "bench",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)], self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)],
                                 ir_version=9)


def encoder_layer(g, s, layer, x):
    hidden, heads, size = s["hidden"], s["heads"], s["hidden"] // s["heads"]

    def split(name, perm):
        y = g.dense(f"{layer}.{name}", x, hidden, hidden)
        y = g.node("Reshape", [y, g.constant(np.array([0, 0, heads, size], dtype=np.int64))])
        return g.node("Transpose", [y], perm=perm)

    def norm(name, y):
        return g.node("LayerNormalization", [y, g.param(f"{layer}.{name}", "gamma", hidden),
                                             g.param(f"{layer}.{name}", "beta", hidden)],
                      axis=-1, epsilon=1e-12)

    q, k, v = split("query", [0, 2, 1, 3]), split("key", [0, 2, 3, 1]), split("value", [0, 2, 1, 3])
    scores = g.node("MatMul", [q, k])
    scores = g.node("Div", [scores, g.constant(np.array(np.sqrt(size), dtype=np.float32))])
    a = g.node("MatMul", [g.node("Softmax", [scores], axis=-1), v])
    a = g.node("Transpose", [a], perm=[0, 2, 1, 3])
    a = g.node("Reshape", [a, g.constant(np.array([0, 0, hidden], dtype=np.int64))])
    a = g.node("Add", [g.dense(f"{layer}.attended", a, hidden, hidden), x])
    a = norm("attention_norm", a)
    f = g.node("Gelu", [g.dense(f"{layer}.wide", a, hidden, s["ffn"])])
    f = g.node("Add", [g.dense(f"{layer}.narrow", f, s["ffn"], hidden), a])
    return norm("norm", f)


def encoder(s):
    g, x = Graph([1, s["sequence"], s["hidden"]]), "x"
    for i in range(s["layers"]):
        x = encoder_layer(g, s, f"layer{i}", x)
    return g.model(x)


def conv(g, s, layer, x, start, end, kernel, stride):
    weight = g.param(layer, "weight", end, start, kernel, kernel)
    window = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4}
    if s["folded"]:
        # ONNX has the bias as an input of Conv; exporters write it so.
        return g.node("Conv", [x, weight, g.param(layer, "bias", end)], **window)
    y = g.node("Conv", [x, weight], **window)
    parts = [g.param(layer, part, end) for part in ("gamma", "beta", "mean", "var")]
    return g.node("BatchNormalization", [y, *parts], epsilon=1e-5)


def bottleneck(g, s, name, x, start, width, stride, project):
    skip = conv(g, s, f"{name}.conv0", x, start, 4 * width, 1, stride) if project else x
    y = g.node("Relu", [conv(g, s, f"{name}.conv1", x, start, width, 1, 1)])
    y = g.node("Relu", [conv(g, s, f"{name}.conv2", y, width, width, 3, stride)])
    y = conv(g, s, f"{name}.conv3", y, width, 4 * width, 1, 1)
    return g.node("Relu", [g.node("Add", [y, skip])])


def resnet(s):
    g, start = Graph([1, 3, s["image"], s["image"]]), s["width"]
    x = g.node("Relu", [conv(g, s, "stem", "x", 3, s["width"], 7, 2)])
    x = g.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for stage, blocks in enumerate(s["blocks"]):
        width = s["width"] << stage
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 0 else 1
            x = bottleneck(g, s, f"stage{stage}.block{block}", x, start, width, stride, block == 0)
            start = 4 * width
    x = g.node("Flatten", [g.node("GlobalAveragePool", [x])])
    return g.model(g.dense("classes", x, start, s["classes"]))


# ---- running -----------------------------------------------------------------------------------


def open_session(model, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options,
                                        providers=["CPUExecutionProvider"])


def cosine(a, b):
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def one_round(session, feeds, seconds):
    times, begin, end = [], time.perf_counter(), 0
    while end - begin < seconds:
        start = time.perf_counter()
        session.run(None, feeds)
        end = time.perf_counter()
        times.append(end - start)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("name", choices=NETWORKS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--compare", metavar="FILE.npy")
    args = parser.parse_args()

    shape = NETWORKS[args.name]
    model = encoder(shape) if "layers" in shape else resnet(shape)
    dims = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    feeds = {"x": values("x", dims)}
    session = open_session(model, args.threads)
    result = session.run(None, feeds)[0]
    ready = {"name": f"ONNX Runtime {onnxruntime.__version__}"}
    if args.compare:
        ready["cosine"] = cosine(np.load(args.compare), result)
    say(ready=True, **ready)
    for line in sys.stdin:
        say(times=one_round(session, feeds, float(line) * 1e-3))


main()
