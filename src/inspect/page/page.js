// page.js: what the reader does: folding, searching, looking at a node.

const data = JSON.parse(document.getElementById("data").textContent);
const find = id => document.getElementById(id);
const canvas = new Canvas(find("canvas"));
const FIRST_BOXES = 80; // groups are unfolded at first while there are no more boxes than this

let graph, open, shown, hits = [], hit = -1;

function element(tag, text, attributes) { // text is never read as HTML
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  for (const [k, v] of Object.entries(attributes || {})) if (k.startsWith("--")) e.style.setProperty(k, v); else e.setAttribute(k, v);
  return e;
}

// ---- what is shown ----

function arrange() {
  shown = graph.boxes(open, find("chains").checked);
  for (const b of shown.boxes) {
    makeCard(graph, b);
    b.unfolded = open.has("sub:" + b.nodes[0]);
  }
  canvas.hottest = Math.max(1, ...shown.boxes.map(b => b.ns || 0));
  const sheet = layout(shown.boxes);
  canvas.found = new Set(hits.map(boxOf).filter(Boolean));
  if (canvas.selected) canvas.selected = shown.boxes.find(b => b.key === canvas.selected.key) || null;
  canvas.show(graph, shown.boxes, sheet);
  find("status").textContent = `${graph.nodes.length} nodes in ${shown.boxes.length} boxes`;
}

// The screen stays where it is: the box that was clicked does not move away.
function arrangeAround(node) {
  const before = boxOf(node), x = before && before.x - canvas.x, y = before && before.y - canvas.y;
  arrange();
  const after = boxOf(node);
  if (before && after) { canvas.x = after.x - x; canvas.y = after.y - y; }
  canvas.redraw();
}

function boxOf(id) {
  const n = graph.nodes[id];
  if (!n.word) return shown.of[graph.shownFor(n, open).id];
  return n.readers.map(r => shown.of[graph.shownFor(graph.nodes[r], open).id]).find(Boolean) || null;
}

// Level by level, as long as it can be taken in.
function openFirst() {
  const groups = [...graph.groups.values()], deepest = Math.max(0, ...groups.map(g => g.depth));
  open = new Set();
  for (let depth = 1; depth <= deepest; depth++) {
    const more = new Set(open);
    for (const g of groups) if (g.depth === depth) more.add(g.key);
    if (graph.boxes(more, true).boxes.length > FIRST_BOXES) break;
    open = more;
  }
}

function choose(view) {
  graph = new Graph(data.views[view]);
  hits = [];
  canvas.selected = null;
  openFirst();
  arrange();
  canvas.begin();
  showSummary();
  drawLegend();
  if (find("search").value) search();
}

function toggle(box) {
  const node = box.nodes[0], head = graph.nodes[node];
  if (box.kind === "group") open.add(box.key);
  else if (box.kind === "chain") open.add("chain:" + node);
  else if (head.g) { if (open.has("sub:" + node)) open.delete("sub:" + node); else open.add("sub:" + node); }
  else return;
  arrangeAround(node);
}

function foldAway(key, node) {
  open.delete(key);
  arrangeAround(node);
  select(boxOf(node), node);
}

function drawLegend() {
  const there = new Set(graph.nodes.filter(n => !n.word).map(n => n.c));
  find("legend").replaceChildren(...categories.filter(c => there.has(c)).map(c => element("span", c, {"--key": `var(--${c})`})));
}

// ---- the panel ----

function rows(pairs) {
  const list = element("dl");
  for (const [key, value] of pairs) {
    if (value === undefined || value === "" || value === null) continue;
    list.append(element("dt", key), value instanceof Node ? value : element("dd", value));
  }
  return list;
}

function nodeList(ids, note) {
  const list = element("ul", undefined, {class: "list"});
  for (const id of ids.slice(0, 200)) {
    const n = graph.nodes[id], item = element("li"), b = element("button", undefined, {type: "button", title: n.name});
    const name = element("span", undefined, {class: "name"});
    name.append(element("bdi", n.name));
    b.append(name, element("span", note ? note(n) : n.o, {class: "note"}));
    b.addEventListener("click", () => reveal(id));
    item.append(b);
    list.append(item);
  }
  return list;
}

function section(title, ...content) { return [element("h3", title), ...content]; }

function memoryOf(n) {
  if (n.b === undefined) return [];
  const life = n.l ? (n.l[0] === n.l[1] ? `step ${n.l[0]}` : `steps ${n.l[0]} to ${n.l[1]}`) : undefined;
  return section("Memory", rows([["bytes", `${n.b.toLocaleString("en")} (${bytesText(n.b)})`], ["region", n.r],
    ["offset", n.f === undefined ? undefined : n.f.toLocaleString("en")], ["alive", life], ["place", n.p]]));
}

function timeOf(n) {
  if (n.s === undefined && !n.w) return [];
  const rate = n.ns && n.w ? `${(n.w / n.ns).toFixed(2)} GFLOP/s` : undefined;
  const share = n.ns && graph.total ? ` (${(100 * n.ns / graph.total).toFixed(1)}% of all steps)` : "";
  return section("Work", rows([["step", n.s], ["time", n.ns === undefined ? undefined : timeText(n.ns) + share],
    ["FLOPs", n.w ? countText(n.w) : undefined], ["rate", rate]]));
}

// In the other graphs: what became of it, or what it was.
function elsewhere(n) {
  const parts = [];
  data.views.forEach((view, v) => {
    if (view === graph.view || n.o === "output") return;
    const same = view.graphs[0].nodes.findIndex(other => other.n === n.n);
    if (same < 0) return;
    const other = view.graphs[0].nodes[same], b = element("button", undefined, {type: "button"});
    b.append(element("span", view.name, {class: "name"}),
      element("span", other.o + (other.ns ? ", " + timeText(other.ns) : ""), {class: "note"}));
    b.addEventListener("click", () => { find("view").value = v; choose(v); reveal(same); });
    const item = element("li"), list = element("ul", undefined, {class: "list"});
    item.append(b);
    list.append(item);
    parts.push(...section("The same name", list));
  });
  return parts;
}

function showNode(id) {
  const n = graph.nodes[id], panel = find("panel");
  const tag = element("span", n.c, {class: "tag", "--key": `var(--${n.c})`});
  const type = element("dd");
  type.append(element("code", n.t));
  const attributes = n.a ? element("dd") : "";
  if (n.a) attributes.append(element("code", n.a));
  const groups = element("ul", undefined, {class: "list"});
  const folds = n.path.map(key => [key, graph.groups.get(key).name, "fold"]);
  if (n.g) folds.push(["sub:" + id, "sub-graphs", open.has("sub:" + id) ? "fold" : "unfold"]);
  const box = boxOf(id);
  const head = box && box.nodes[0];
  for (const chain of open) if (chain.startsWith("chain:") && chainNodes(chain).has(id)) folds.push([chain, "its chain", "fold"]);
  for (const [key, name, what] of folds) {
    const b = element("button", undefined, {type: "button"}), item = element("li");
    b.append(element("span", name, {class: "name"}), element("span", what, {class: "note"}));
    b.addEventListener("click", () => { if (what === "fold") foldAway(key, id); else { open.add(key); arrangeAround(id); showNode(id); } });
    item.append(b);
    groups.append(item);
  }
  const words = n.ins.filter(v => graph.nodes[v].word), ins = n.ins.filter(v => !graph.nodes[v].word);
  panel.replaceChildren(element("h2", n.name), tag,
    rows([["op", n.o], ["type", type], ["attributes", attributes], ["elements", n.e]]), ...timeOf(n), ...memoryOf(n),
    ...(folds.length ? section("Inside of", groups) : []), ...elsewhere(n),
    ...(words.length ? section("Weights and constants", nodeList(words, v => v.t)) : []),
    ...(ins.length ? section("Reads", nodeList(ins)) : []),
    ...(n.readers.length ? section("Read by", nodeList(n.readers)) : []));
  if (box && box.kind === "chain" && head !== undefined)
    panel.append(...section(`Chain of ${box.nodes.length}`, nodeList(box.nodes), unfoldButton(box)));
}

// The nodes that would be one box if that chain were folded.
function chainNodes(chain) {
  const without = new Set(open);
  without.delete(chain);
  const folded = graph.boxes(without, true), box = folded.of[Number(chain.slice(6))];
  return new Set(box && box.nodes.length > 1 ? box.nodes : []);
}

function unfoldButton(box) {
  const b = element("button", "Unfold", {type: "button", id: "unfold-this"});
  b.addEventListener("click", () => { const node = box.nodes[0]; toggle(box); select(boxOf(node), node); });
  return b;
}

function showGroup(box) {
  const group = graph.groups.get(box.key), nodes = box.nodes.map(id => graph.nodes[id]);
  const flops = nodes.reduce((s, n) => s + (n.w || 0), 0);
  find("panel").replaceChildren(element("h2", group.name), element("span", "group", {class: "tag"}),
    rows([["nodes", nodes.length], ["time", box.ns ? timeText(box.ns) : undefined],
      ["FLOPs", flops ? countText(flops) : undefined]]), unfoldButton(box),
    ...section("Nodes", nodeList(box.nodes)));
}

function showSummary() {
  const view = graph.view, panel = find("panel"), timed = graph.nodes.filter(n => n.ns);
  const m = view.memory || {};
  panel.replaceChildren(element("h2", view.name),
    rows([["nodes", graph.nodes.filter(n => !n.word).length], ["weights and constants", graph.nodes.filter(n => n.word).length],
      ["graphs", view.graphs.length > 1 ? view.graphs.length : undefined], ["steps", view.steps],
      ["time of all steps", graph.total ? timeText(graph.total) : undefined],
      ...Object.entries(m).map(([k, v]) => [k, bytesText(v)])]));
  if (data.note) panel.append(element("p", data.note, {class: "hint"}));
  const top = (list, by) => list.sort((a, b) => by(b) - by(a)).slice(0, 12).map(n => n.id);
  if (timed.length)
    panel.append(...section("Most time", nodeList(top(timed, n => n.ns), n => timeText(n.ns))));
  const placed = graph.nodes.filter(n => n.b && n.r === "activations");
  if (placed.length)
    panel.append(...section("Largest in the arena", nodeList(top(placed, n => n.b), n => bytesText(n.b))));
  panel.append(element("p", "Click a box to look at it, its + to unfold it. Drag to move, turn the wheel to zoom. " +
    "/ searches, Enter goes to the next hit, f shows all, Escape goes back.", {class: "hint"}));
}

function select(box, node) {
  canvas.selected = box;
  if (!box) showSummary();
  else if (node !== undefined) showNode(node);
  else if (box.kind === "group") showGroup(box);
  else showNode(box.nodes[box.nodes.length - 1]);
  canvas.redraw();
}

// Unfolds what a node is in, and goes there.
function reveal(id) {
  const n = graph.nodes[id];
  const seen = n.word ? graph.nodes[n.readers[0]] : n;
  for (const key of seen.path) open.add(key);
  for (let g = seen.graph; graph.owner.has(g); g = graph.nodes[graph.owner.get(g)].graph) open.add("sub:" + graph.owner.get(g));
  arrange();
  const box = boxOf(id);
  select(box, id);
  if (box) canvas.centre(box);
}

// ---- search ----

function search() {
  const words = find("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  hits = !words.length ? [] : graph.nodes.filter(n => {
    const text = `${n.name} ${n.o} ${n.t} ${n.a} ${n.c}`.toLowerCase();
    return words.every(w => text.includes(w));
  }).map(n => n.id);
  hit = -1;
  const results = find("results");
  results.hidden = !words.length;
  results.replaceChildren(element("h3", words.length ? `${hits.length} found` : ""), nodeList(hits, n => `${n.o} ${cut(n.t, 22)}`));
  canvas.found = new Set(hits.map(boxOf).filter(Boolean));
  find("status").textContent = words.length ? `${hits.length} found` : `${graph.nodes.length} nodes in ${shown.boxes.length} boxes`;
  canvas.redraw();
}

function nextHit(step) {
  if (!hits.length) return;
  hit = (hit + step + hits.length) % hits.length;
  reveal(hits[hit]);
  find("results").querySelectorAll("button").forEach((b, i) => b.setAttribute("aria-current", i === hit));
}

// ---- hands ----

function listen() {
  const e = canvas.element;
  let drag = null;
  e.addEventListener("pointerdown", ev => {
    drag = {x: ev.offsetX, y: ev.offsetY, far: false};
    e.setPointerCapture(ev.pointerId);
  });
  e.addEventListener("pointermove", ev => {
    if (!drag) return;
    const dx = ev.offsetX - drag.x, dy = ev.offsetY - drag.y;
    if (!drag.far && Math.hypot(dx, dy) < 4) return;
    drag = {x: ev.offsetX, y: ev.offsetY, far: true};
    e.classList.add("moving");
    canvas.x -= dx / canvas.zoom;
    canvas.y -= dy / canvas.zoom;
    canvas.redraw();
  });
  e.addEventListener("pointerup", ev => {
    const click = drag && !drag.far;
    drag = null;
    e.classList.remove("moving");
    if (!click) return;
    const box = canvas.boxAt(ev.offsetX, ev.offsetY);
    if (box && canvas.onHandle(box, ev.offsetX, ev.offsetY)) toggle(box);
    else select(box);
  });
  e.addEventListener("dblclick", ev => {
    const box = canvas.boxAt(ev.offsetX, ev.offsetY);
    if (box) toggle(box);
  });
  e.addEventListener("wheel", ev => {
    ev.preventDefault();
    canvas.zoomAt(Math.exp(-ev.deltaY * (ev.deltaMode ? 0.05 : 0.0016)), ev.offsetX, ev.offsetY);
  }, {passive: false});
  const middle = factor => canvas.zoomAt(factor, e.clientWidth / 2, e.clientHeight / 2);
  find("larger").addEventListener("click", () => middle(1.3));
  find("smaller").addEventListener("click", () => middle(1 / 1.3));
  find("fit").addEventListener("click", () => canvas.fit());
  find("chains").addEventListener("change", () => arrange());
  find("fold").addEventListener("click", () => { open = new Set(); arrange(); canvas.fit(); });
  find("unfold").addEventListener("click", () => {
    open = new Set(graph.groups.keys());
    for (const owner of graph.owner.values()) open.add("sub:" + owner);
    arrange();
    canvas.begin();
  });
  find("view").addEventListener("change", ev => choose(Number(ev.target.value)));
  find("search").addEventListener("input", search);
  find("search").addEventListener("keydown", ev => {
    if (ev.key === "Enter") { ev.preventDefault(); nextHit(ev.shiftKey ? -1 : 1); }
    if (ev.key === "Escape") { ev.target.value = ""; search(); canvas.element.focus(); }
  });
  document.addEventListener("keydown", ev => {
    if (ev.target.tagName === "INPUT" || ev.target.tagName === "SELECT" || ev.ctrlKey || ev.metaKey || ev.altKey) return;
    const step = 80 / canvas.zoom;
    const acts = {"/": () => find("search").focus(), f: () => canvas.fit(), "+": () => middle(1.3), "=": () => middle(1.3),
      "-": () => middle(1 / 1.3), ArrowLeft: () => { canvas.x -= step; }, ArrowRight: () => { canvas.x += step; },
      ArrowUp: () => { canvas.y -= step; }, ArrowDown: () => { canvas.y += step; }, Escape: () => select(null)};
    if (!acts[ev.key]) return;
    ev.preventDefault();
    acts[ev.key]();
    canvas.redraw();
  });
  new ResizeObserver(() => canvas.redraw()).observe(e);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { canvas.readColours(); canvas.redraw(); });
}

find("title").textContent = document.title = data.title;
find("title").title = data.title;
data.views.forEach((view, i) => find("view").append(element("option", view.name, {value: i})));
listen();
const first = Math.max(0, data.views.findIndex(view => view.graphs[0].nodes.some(n => n.ns)));
find("view").value = first;
choose(first);

// For tests and consoles: where a node's box is on the screen, and what is there.
window.rlx = {
  boxes: () => shown.boxes.map(b => ({key: b.key, kind: b.kind, nodes: b.nodes.length})),
  find: name => graph.nodes.findIndex(n => n.n === name),
  place: id => { const b = boxOf(id), r = canvas.element.getBoundingClientRect(), z = canvas.zoom;
    return {left: r.left + (b.x - canvas.x) * z, top: r.top + (b.y - canvas.y) * z, width: b.w * z, height: b.h * z}; },
  camera: () => ({x: canvas.x, y: canvas.y, zoom: canvas.zoom}),
};
