#!/usr/bin/env python3
"""html_test.py: the page of `rlx print --html`, in a browser without a window.

Chromium is driven over its DevTools protocol, on this machine only: pages are clicked, typed into and
read back. Exits 77 where there is no Chromium (tools/setup browser). $RLX is the command; with
$RLX_SCREENSHOTS=DIR, pictures of the pages are left there."""
import base64
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("RLX_BUILD_DIR", ROOT / "build" / "release"))
RLX = os.environ.get("RLX", str(BUILD / "rlx"))
PATIENCE = 120  # seconds, for one answer of a browser on a busy machine


class Wrong(Exception):
    pass


def need(held, why):
    if not held:
        raise Wrong(why)


# ---- a browser ---------------------------------------------------------------------------------


class Socket:
    """A WebSocket, as far as DevTools need one: text frames, ours masked, as RFC 6455 has it."""

    def __init__(self, host, port, path):
        self.socket = socket.create_connection((host, port), timeout=PATIENCE)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\n"
                             f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                             "Sec-WebSocket-Version: 13\r\n\r\n").encode())
        self.rest = b""
        while b"\r\n\r\n" not in self.rest:
            self.rest += self.more()
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        need(b" 101 " in head.split(b"\r\n")[0], f"no WebSocket: {head!r}")

    def more(self):
        part = self.socket.recv(1 << 16)
        need(part, "the browser has gone")
        return part

    def take(self, count):
        while len(self.rest) < count:
            self.rest += self.more()
        part, self.rest = self.rest[:count], self.rest[count:]
        return part

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = (struct.pack(">B", 0x80 | len(data)) if len(data) < 126 else
                struct.pack(">BH", 0xfe, len(data)) if len(data) < 1 << 16 else
                struct.pack(">BQ", 0xff, len(data)))
        masked = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
        self.socket.sendall(b"\x81" + size + mask + masked)

    def receive(self):
        whole = b""
        while True:
            first, size = self.take(2)
            size &= 0x7f
            if size == 126:
                size = struct.unpack(">H", self.take(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self.take(8))[0]
            data = self.take(size)
            if first & 0x0f in (0, 1):
                whole += data
                if first & 0x80:
                    return whole.decode()


class Browser:
    def __init__(self, program, folder):
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--no-first-run",
                 "--disable-background-networking", "--disable-sync", "--disable-extensions",
                 "--disable-component-update", "--window-size=1400,900", f"--user-data-dir={folder}", "about:blank"]
        self.process = subprocess.Popen([program, *flags], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                        env={**os.environ, "HOME": str(folder)})
        where = None
        while not where:
            line = self.process.stderr.readline().decode(errors="replace")
            need(line, "the browser did not start")
            where = re.search(r"DevTools listening on ws://([\d.]+):(\d+)/", line)
        connection = http.client.HTTPConnection(where[1], int(where[2]), timeout=PATIENCE)
        connection.request("GET", "/json/list")
        pages = [t for t in json.loads(connection.getresponse().read()) if t["type"] == "page"]
        path = re.sub(r"^ws://[^/]+", "", pages[0]["webSocketDebuggerUrl"])
        self.socket = Socket(where[1], int(where[2]), path)
        self.count, self.events = 0, []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(domain + ".enable")

    def ask(self, method, **params):
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.count:
                need("error" not in message, f"{method}: {message.get('error')}")
                return message["result"]
            self.events.append(message)

    def js(self, text):
        """The value of an expression in the page."""
        r = self.ask("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True)
        need("exceptionDetails" not in r, f"{text}: {r.get('exceptionDetails')}")
        return r["result"].get("value")

    def open(self, path):
        self.events = []
        self.ask("Page.navigate", url=path.as_uri())
        deadline = time.monotonic() + PATIENCE
        while not self.js("document.readyState === 'complete' && Boolean(window.rlx)"):
            need(time.monotonic() < deadline, f"{path.name} does not become ready: {self.complaints()}")
            time.sleep(0.05)

    def complaints(self):
        """Exceptions, errors in the log, and everything that was asked of a network."""
        bad = [e for e in self.events if e["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")]
        asked = [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return bad + [url for url in asked if not url.startswith(("file:", "data:"))]

    def mouse(self, kind, x, y, **more):
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def press(self, key, text=""):
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, **({"text": text} if text and kind == "keyDown" else {}))

    def type(self, text):
        self.ask("Input.insertText", text=text)

    def picture(self, name):
        folder = os.environ.get("RLX_SCREENSHOTS")
        if folder:
            self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            data = base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])
            (pathlib.Path(folder) / f"{name}.png").write_bytes(data)

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


# ---- models ------------------------------------------------------------------------------------


def network(layers):
    """A graph with the names of an encoder: eleven nodes and seven weights a layer."""
    leaves, body, last = ["input %x: f32[8,32]"], [], "x"
    for i in range(layers):
        at = f"encoder.layer{i}"
        leaves += [f"param %{at}.attention.{k}: f32[32,32]" for k in ("q", "k", "v", "o")]
        leaves += [f"param %{at}.mlp.{k}: f32[{s}]" for k, s in (("up", "32,32"), ("bias", "32"), ("norm", "32"))]
        a, m = f"%{at}.attention", f"%{at}.mlp"
        body += [f"{a}.mq = matmul %{last}, {a}.q", f"{a}.mk = matmul %{last}, {a}.k",
                 f"{a}.mv = matmul %{last}, {a}.v", f"{a}.p = mul {a}.mq, {a}.mk",
                 f"{a}.s = add {a}.p, {a}.mv", f"{a}.y = matmul {a}.s, {a}.o", f"{m}.r = add {a}.y, %{last}",
                 f"{m}.n = rms_norm {m}.r, {m}.norm", f"{m}.u = matmul {m}.n, {m}.up",
                 f"{m}.g = add {m}.u, {m}.bias", f"{m}.y = silu {m}.g"]
        last = f"{at}.mlp.y"
    return f"rlx 1\ngraph ({', '.join(leaves)}) {{\n" + "\n".join(body) + f"\nreturn %{last} }}\n"


BRANCHES = """rlx 1
graph @main (input %x: f32[4], input %flag: bool[]) {
    %a = neg %x
    %i = if %flag, %a then_graph=@yes else_graph=@no result=0
    %y = exp %i
    return %y
}
graph @yes (input %v: f32[4]) { %sine = sin %v return %sine }
graph @no (input %v: f32[4]) { %cosine = cos %v return %cosine }
"""


def field(number, data):
    """A length-delimited field of a protocol buffer."""
    def varint(n):
        out = bytearray()
        while n > 0x7f:
            out.append(n & 0x7f | 0x80)
            n >>= 7
        return bytes(out) + bytes([n])
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data


def onnx_chain(names):
    """An ONNX model of one Neg after the other, whose values have these names."""
    def value(name):
        tensor = field(1, 1) + field(2, field(1, field(1, 4)))
        return field(1, name) + field(2, field(1, tensor))
    nodes = b"".join(field(1, field(1, a) + field(2, b) + field(3, a) + field(4, "Neg"))
                     for a, b in zip(names, names[1:]))
    graph = nodes + field(2, names[0]) + field(11, value(names[0])) + field(12, value(names[-1]))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17))


def page(folder, name, model, *flags):
    source, out = folder / name, folder / f"{name}.html"
    (source.write_bytes if isinstance(model, bytes) else source.write_text)(model)
    done = subprocess.run([RLX, "print", source, "--html", out, *flags], capture_output=True, text=True,
                          timeout=300, check=False, env={**os.environ, "XDG_CACHE_HOME": str(folder)})
    need(done.returncode == 0 and not done.stdout, f"rlx print --html: {done.stderr} {done.stdout}")
    return out


# ---- tests -------------------------------------------------------------------------------------


def centre(b, name, corner=False):
    r = b.js(f"rlx.place(rlx.find({json.dumps(name)}))")
    return (r["left"] + r["width"] - 12, r["top"] + 10) if corner else (r["left"] + r["width"] / 2,
                                                                         r["top"] + r["height"] / 2)


def panel(b):
    return b.js("document.getElementById('panel').innerText")


def test_folding(b, folder):
    b.open(page(folder, "net.rlx", network(50), "--profile", "--device", "cpu"))
    need(b.js("document.title") == "net.rlx", "its title")
    need(b.js("[...document.getElementById('view').options].map(o => o.text)") ==
         ["as written", "as it runs on cpu"], "its graphs")
    b.js("const v = document.getElementById('view'); v.value = 0; v.dispatchEvent(new Event('change'))")
    need("\n552\n" in panel(b), f"550 nodes, an input and an output: {panel(b)!r}")
    b.js("document.getElementById('fold').click()")
    folded = len(b.js("rlx.boxes()"))
    need(folded < 10, f"folded: {folded} boxes")
    b.picture("folded")
    name = "encoder.layer7.attention.s"
    b.click(*centre(b, name))
    need("encoder" in panel(b) and "group" in panel(b), f"a group's panel: {panel(b)!r}")
    b.js("document.getElementById('unfold-this').click()")
    need(len(b.js("rlx.boxes()")) > folded + 30, "a group does not unfold")
    b.js("document.getElementById('search').focus()")
    b.type(name)
    b.press("Enter")
    need(panel(b).startswith(name), f"search goes to {panel(b)!r}")
    for word in ("add", "f32[8,32]", "reads", "read by"):
        need(word in panel(b).lower(), f"no {word} in {panel(b)!r}")
    boxes = len(b.js("rlx.boxes()"))
    b.js("[...document.querySelectorAll('#panel button')].find(x => /layer7$/.test(x.firstChild.textContent)).click()")
    need(len(b.js("rlx.boxes()")) < boxes, "a group does not fold again")
    b.js("document.getElementById('unfold').click()")
    chains = [x for x in b.js("rlx.boxes()") if x["kind"] == "chain"]
    need(chains, "no chain is one box")
    need(max(x["nodes"] for x in chains) >= 3, f"chains are short: {chains[:3]}")
    b.js("document.getElementById('search').value = ''")
    name = "encoder.layer3.mlp.y"
    b.js("document.getElementById('search').focus()")
    b.type(name)
    b.press("Enter")
    boxes = len(b.js("rlx.boxes()"))
    b.click(*centre(b, name, corner=True))  # the + of the chain
    need(len(b.js("rlx.boxes()")) > boxes, "a chain does not unfold")
    b.js("document.getElementById('chains').click()")
    need(not [x for x in b.js("rlx.boxes()") if x["kind"] == "chain"], "chains are still there")


def test_what_a_node_says(b, folder):
    b.open(page(folder, "net.rlx", network(50), "--profile", "--device", "cpu"))
    b.js("document.getElementById('search').focus()")
    b.type("encoder.layer7.attention.y")
    b.press("Enter")
    text = panel(b)
    for part in (r"bytes\s+1,024 \(1\.00 KiB\)", r"region\s+activations", r"offset\s+[\d,]+", r"alive\s+steps? \d+",
                 r"step\s+\d+", r"time\s+[\d.]+ (ns|µs|ms)", r"FLOPs\s+[\d.]+ k", r"type\s+f32\[8,32\]",
                 r"encoder\.layer7\.attention\.o\s+f32\[32,32\]", r"as written"):
        need(re.search(part, text), f"{part!r} is not in {text!r}")
    b.js("[...document.querySelectorAll('#panel button')].find(x => /as written/.test(x.textContent)).click()")
    need(b.js("document.getElementById('view').value") == "0" and panel(b).startswith("encoder.layer7.attention.y"),
         "it does not go to the graph as written")
    b.picture("node")
    b.press("Escape")
    b.js("document.getElementById('canvas').focus(); document.getElementById('view').value = 1")
    b.js("document.getElementById('view').dispatchEvent(new Event('change'))")
    text = panel(b).lower()
    need("most time" in text and "largest in the arena" in text and "memory in all" in text, f"summary: {text!r}")


def test_search_and_keys(b, folder):
    b.open(page(folder, "net.rlx", network(50)))
    b.js("document.activeElement.blur()")
    b.press("/", "/")
    need(b.js("document.activeElement.id") == "search", "/ does not search")
    for text, count in (("silu", 50), ("layer12. f32[32,32]", 5), ("contraction layer3.", 5), ("nothing such", 0)):
        b.js("document.getElementById('search').value = ''")
        b.type(text)
        found = b.js("document.querySelector('#results h3').textContent")
        need(found == f"{count} found", f"{text!r}: {found}")
    b.js("document.getElementById('search').value = ''")
    b.type("layer2.mlp")
    seen = []
    for _ in range(3):
        b.press("Enter")
        seen.append(b.js("document.querySelector('#panel h2').textContent"))
    need(len(set(seen)) == 3 and all("layer2.mlp" in s for s in seen), f"Enter: {seen}")
    b.press("Escape")
    need(b.js("document.getElementById('results').hidden"), "Escape leaves the search there")
    before = b.js("rlx.camera()")
    b.mouse("mouseWheel", 500, 500, deltaX=0, deltaY=-300)
    zoomed = b.js("rlx.camera()")
    need(zoomed["zoom"] > before["zoom"], "the wheel does not zoom")
    b.mouse("mousePressed", 300, 300, button="left", clickCount=1)
    b.mouse("mouseMoved", 360, 340, button="left", buttons=1)
    b.mouse("mouseReleased", 360, 340, button="left", clickCount=1)
    moved = b.js("rlx.camera()")
    need(moved["x"] < zoomed["x"] and moved["y"] < zoomed["y"], "dragging does not move it")
    b.press("f", "f")
    need(b.js("rlx.camera().zoom") < moved["zoom"], "f does not show all")


def test_sub_graphs(b, folder):
    b.open(page(folder, "branches.rlx", BRANCHES))
    boxes = len(b.js("rlx.boxes()"))
    b.click(*centre(b, "i", corner=True))
    need(len(b.js("rlx.boxes()")) >= boxes + 4, "sub-graphs do not unfold")
    b.click(*centre(b, "sine"))
    need("sin" in panel(b), f"a node of a sub-graph: {panel(b)!r}")
    b.picture("sub-graphs")
    b.click(*centre(b, "i", corner=True))
    need(len(b.js("rlx.boxes()")) == boxes, "sub-graphs do not fold")
    b.js("document.getElementById('search').focus()")
    b.type("cosine")
    b.press("Enter")
    need(panel(b).startswith("cosine"), f"search in a sub-graph: {panel(b)!r}")


def test_names_of_strangers(b, folder):
    evil = ["</script><script>window.hacked=1</script>", "<img src=http://127.0.0.1:9/x onerror=window.hacked=2>",
            "\"'`${window.hacked=3}\\", "a\x01\x1f\x7f\u2028\u2029\ud7ff", "&lt;b&gt;&amp;", "-->]]>", "__proto__", "n" * 100000]
    path = page(folder, "</title><script>evil.onnx".replace("/", "_"), onnx_chain(["in", *evil, "out"]))
    text = path.read_text(encoding="utf-8")
    need(text.count("</script>") == 2 and "<img" not in text, "a name ends the script it stands in")
    b.open(path)
    need(not b.complaints(), f"{b.complaints()}")
    need(b.js("[typeof window.hacked, document.scripts.length, document.images.length, {}.polluted]") ==
         ["undefined", 2, 0, None], "a name became code")
    b.js("document.getElementById('chains').click()")
    for name in evil[:-1]:
        b.js("document.getElementById('search').value = ''")
        b.js("document.getElementById('search').focus()")
        id_ = b.js(f"rlx.find({json.dumps(name)})")
        need(id_ >= 0 or "\x01" in name, f"{name!r} is not there")
        if id_ >= 0 and " " not in name:
            b.type(name)
            b.press("Enter")
            shown = b.js("document.querySelector('#panel h2').textContent")
            need(shown == name, f"{name!r} is shown as {shown!r}")
    need(b.js("typeof window.hacked") == "undefined" and not b.complaints(), f"{b.complaints()}")
    b.picture("strangers")


def test_dark(b, folder):
    b.open(page(folder, "net.rlx", network(20), "--profile", "--device", "cpu"))
    light = b.js("getComputedStyle(document.body).backgroundColor")
    b.picture("light")
    b.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    need(b.js("getComputedStyle(document.body).backgroundColor") != light, "dark is not dark")
    pixel = b.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done("
                 "[...document.getElementById('canvas').getContext('2d').getImageData(2, 2, 1, 1).data]))))")
    need(max(pixel[:3]) < 80, f"the canvas is not dark: {pixel}")
    b.picture("dark")
    b.ask("Emulation.setEmulatedMedia", features=[])


def test_five_thousand_nodes(b, folder):
    b.open(page(folder, "large.rlx", network(300)))
    need(b.js("Number(document.getElementById('status').textContent.split(' ')[0])") > 5000, "it is smaller")
    start = time.monotonic()
    b.js("document.getElementById('chains').click(); document.getElementById('unfold').click()")
    boxes, seconds = len(b.js("rlx.boxes()")), time.monotonic() - start
    need(boxes > 3000, f"{boxes} boxes")
    need(seconds < 60, f"unfolding {boxes} boxes takes {seconds:.1f} s")  # the machine may be busy
    # What the page itself does for a frame, the browser's own drawing without a GPU left out.
    spent = b.js("new Promise(done => { const c = document.getElementById('canvas'); let n = 0, sum = 0; const turn = () => {"
                 "const t = performance.now(); c.dispatchEvent(new WheelEvent('wheel', {deltaY: n % 2 ? 40 : -40, cancelable: true}));"
                 "requestAnimationFrame(() => { sum += performance.now() - t; if (++n < 30) turn(); else done(sum / n); }); }; turn(); })")
    print(f"{boxes} boxes: {seconds:.2f} s to lay out, {spent:.1f} ms from turn to frame")
    need(spent < 400, f"a frame takes {spent:.0f} ms")
    b.press("f", "f")
    b.picture("five-thousand")


def main():
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program:
        print("skipped: there is no Chromium (tools/setup browser)")
        return 77
    passed = failed = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temp:
        folder = pathlib.Path(temp)
        browser = Browser(program, folder / "profile")
        try:
            for name, test in list(globals().items()):
                if not name.startswith("test_") or (sys.argv[1:] and not any(a in name for a in sys.argv[1:])):
                    continue
                try:
                    (folder / name).mkdir()
                    test(browser, folder / name)
                    need(not browser.complaints(), f"the page complains: {browser.complaints()}")
                    passed += 1
                except (Wrong, OSError, TypeError, KeyError, subprocess.TimeoutExpired) as error:
                    print(f"failed: {name}: {error}", flush=True)
                    failed += 1
        finally:
            browser.close()
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


sys.exit(main())
