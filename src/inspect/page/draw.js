// draw.js: the canvas: what is in sight is drawn, and only as finely as it can be seen.

const LINE = 16, CHAR = 7.25, PAD = 12, WIDE = 36, CHAIN_SHOWN = 8, WORDS_SHOWN = 3;
const categories = ["io", "contraction", "fused", "window", "normalisation", "sequence", "reduction", "elementwise",
  "movement", "index", "control", "random", "gradient"];

function bytesText(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let u = 0;
  while (n >= 1024 && u < 4) { n /= 1024; u++; }
  return (u && n < 100 ? n.toFixed(2) : Math.round(n)) + " " + units[u];
}
function timeText(ns) {
  return ns < 1e3 ? ns + " ns" : ns < 1e6 ? (ns / 1e3).toFixed(1) + " µs" : ns < 1e9 ? (ns / 1e6).toFixed(2) + " ms" :
    (ns / 1e9).toFixed(2) + " s";
}
function countText(n) {
  const units = ["", "k", "M", "G", "T"];
  let u = 0;
  while (n >= 1000 && u < 4) { n /= 1000; u++; }
  return (u ? n.toFixed(2) : n) + " " + units[u];
}

// The lines of a box: [text, style], and its size.
function makeCard(graph, box) {
  const lines = [], nodes = box.nodes.map(id => graph.nodes[id]);
  const add = (text, style) => { if (text) lines.push([style === "name" ? short(text, WIDE) : cut(text, WIDE), style]); };
  box.ns = nodes.reduce((s, n) => s + (n.ns || 0), 0);
  const counts = new Map();
  for (const n of nodes) counts.set(n.o, (counts.get(n.o) || 0) + 1);
  if (box.kind === "group") {
    const group = graph.groups.get(box.key);
    add(group.name, "name");
    lines[0][1] = "title";
    const most = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 4);
    add(most.map(([op, n]) => `${n} ${op}`).join(", "), "soft");
    add(`${nodes.length} nodes`, "soft");
    box.category = null;
  } else {
    const skipped = nodes.length > CHAIN_SHOWN ? nodes.length - CHAIN_SHOWN : 0;
    nodes.forEach((n, i) => {
      if (skipped && i >= CHAIN_SHOWN - 3 && i < nodes.length - 3) {
        if (i === CHAIN_SHOWN - 3) add(`… ${skipped} more …`, "soft");
        return;
      }
      add(n.o, "op");
      add(n.a, "soft");
      const words = n.ins.filter(v => graph.nodes[v].word);
      for (const v of words.slice(0, WORDS_SHOWN)) add(graph.wordText(v), "word");
      if (words.length > WORDS_SHOWN) add(`and ${words.length - WORDS_SHOWN} more`, "word");
    });
    const last = nodes[nodes.length - 1];
    add(last.name, "name");
    add(last.t, "soft");
    const heavy = nodes.find(n => !["elementwise", "movement", "index", "io"].includes(n.c)) || nodes[0];
    box.category = heavy.c;
  }
  if (box.ns) add(timeText(box.ns) + (graph.total ? `  ${(100 * box.ns / graph.total).toFixed(1)}%` : ""), "time");
  box.lines = lines;
  box.foldable = box.kind !== "node" || Boolean(nodes[0].g);
  box.w = Math.max(...lines.map(l => Array.from(l[0]).length), 6) * CHAR + 2 * PAD + (box.foldable ? 16 : 0);
  box.h = lines.length * LINE + 2 * PAD - 4;
}

Graph.prototype.wordText = function (v) {
  let n = this.nodes[v];
  const type = n.t;
  if (n.e) return `${n.e} ${type}`;
  while (/^v\d+$/.test(n.name) && n.ins.length) n = this.nodes[n.ins[0]];
  return `${short(n.name, 18)} ${type}`;
};

class Canvas {
  constructor(element) {
    this.element = element;
    this.context = element.getContext("2d");
    this.zoom = 1;
    this.x = this.y = 0; // of the sheet, at the upper left corner of the canvas
    this.waiting = false;
    this.readColours();
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    this.colour = {};
    for (const name of ["paper", "ink", "soft", "faint", "edge", "back", "accent", "mark", "heat", "box", "group",
      "group-edge", "word", ...categories]) this.colour[name] = style.getPropertyValue("--" + name).trim();
  }

  show(graph, boxes, sheet) {
    this.graph = graph; this.boxes = boxes; this.sheet = sheet;
    this.redraw();
  }

  fit() {
    const s = this.sheet, w = this.element.clientWidth, h = this.element.clientHeight;
    const wide = s.right - s.left + 60, high = s.bottom - s.top + 60;
    this.zoom = Math.max(0.05, Math.min(1.2, w / wide, h / high)); // a hair would show nothing
    this.x = (s.left + s.right) / 2 - w / this.zoom / 2;
    this.y = high * this.zoom > h ? s.top - 30 / this.zoom : (s.top + s.bottom) / 2 - h / this.zoom / 2;
    this.redraw();
  }
  // As large as it can be read, from the top.
  begin() {
    const s = this.sheet, w = this.element.clientWidth, h = this.element.clientHeight;
    this.zoom = Math.max(0.75, Math.min(1, w / (s.right - s.left + 60), h / (s.bottom - s.top + 60)));
    this.x = (s.left + s.right) / 2 - w / this.zoom / 2;
    this.y = s.top - 30 / this.zoom;
    if ((s.bottom - s.top) * this.zoom < h - 60) this.y = (s.top + s.bottom) / 2 - h / this.zoom / 2;
    this.redraw();
  }
  centre(box) {
    this.zoom = Math.max(this.zoom, 0.8);
    this.x = box.x + box.w / 2 - this.element.clientWidth / this.zoom / 2;
    this.y = box.y + box.h / 2 - this.element.clientHeight / this.zoom / 2;
    this.redraw();
  }
  zoomAt(factor, px, py) {
    const zoom = Math.min(3, Math.max(0.02, this.zoom * factor));
    this.x += px / this.zoom - px / zoom;
    this.y += py / this.zoom - py / zoom;
    this.zoom = zoom;
    this.redraw();
  }
  boxAt(px, py) {
    const x = this.x + px / this.zoom, y = this.y + py / this.zoom;
    return this.boxes.find(b => x >= b.x && x <= b.x + b.w && y >= b.y && y <= b.y + b.h) || null;
  }
  onHandle(box, px, py) { // the corner that folds and unfolds
    const x = this.x + px / this.zoom, y = this.y + py / this.zoom;
    return box.foldable && x >= box.x + box.w - 26 && y <= box.y + 26;
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.paint(); });
  }

  paint() {
    const e = this.element, c = this.context, scale = window.devicePixelRatio || 1;
    const w = e.clientWidth, h = e.clientHeight;
    if (e.width !== Math.round(w * scale) || e.height !== Math.round(h * scale)) {
      e.width = Math.round(w * scale);
      e.height = Math.round(h * scale);
    }
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.fillStyle = this.colour.paper;
    c.fillRect(0, 0, w, h);
    c.setTransform(scale * this.zoom, 0, 0, scale * this.zoom, -this.x * this.zoom * scale, -this.y * this.zoom * scale);
    const sight = {left: this.x, top: this.y, right: this.x + w / this.zoom, bottom: this.y + h / this.zoom};
    this.paintLines(sight);
    for (const b of this.boxes)
      if (b.x < sight.right && b.x + b.w > sight.left && b.y < sight.bottom && b.y + b.h > sight.top) this.paintBox(b);
  }

  paintLines(sight) {
    const c = this.context, near = this.selected;
    c.lineWidth = Math.max(1.2, 0.7 / this.zoom);
    for (const strong of [false, true]) {
      for (const p of this.sheet.paths) {
        const mine = near && (p.from === near || p.to === near);
        if (mine !== strong && (near || strong)) continue;
        const bulge = p.back ? 60 : 0;
        if (Math.min(p.y0, p.y1) > sight.bottom || Math.max(p.y0, p.y1) < sight.top ||
            Math.min(p.x0, p.x1) > sight.right || Math.max(p.x0, p.x1) + bulge < sight.left) continue;
        c.strokeStyle = c.fillStyle = mine ? this.colour.accent : p.back ? this.colour.back : this.colour.edge;
        c.setLineDash(p.back ? [6, 4] : []);
        c.beginPath();
        c.moveTo(p.x0, p.y0);
        const bend = (p.y1 - p.y0) / 2;
        if (p.back) c.bezierCurveTo(p.x0 + bulge, p.y0, p.x1 + bulge, p.y1, p.x1, p.y1);
        else c.bezierCurveTo(p.x0, p.y0 + bend, p.x1, p.y1 - bend, p.x1, p.y1 - (p.arrow ? 6 : 0));
        c.stroke();
        if (!p.arrow || this.zoom < 0.25 || p.back) continue;
        c.beginPath();
        c.moveTo(p.x1, p.y1);
        c.lineTo(p.x1 - 4, p.y1 - 8);
        c.lineTo(p.x1 + 4, p.y1 - 8);
        c.fill();
      }
    }
    c.setLineDash([]);
  }

  paintBox(b) {
    const c = this.context, chosen = b === this.selected, found = this.found && this.found.has(b);
    const edge = b.kind === "group" ? this.colour["group-edge"] : this.colour[b.category] || this.colour.soft;
    c.beginPath();
    c.roundRect(b.x, b.y, b.w, b.h, 8);
    c.fillStyle = found ? this.colour.mark : b.kind === "group" ? this.colour.group : this.colour.box;
    c.fill();
    c.lineWidth = chosen ? 3 : 1.3;
    c.strokeStyle = chosen ? this.colour.accent : edge;
    c.stroke();
    c.save();
    c.clip();
    c.fillStyle = edge;
    c.fillRect(b.x, b.y, 5, b.h);
    if (b.ns && this.graph.total) { // how hot: the width of a bar at its foot
      c.fillStyle = this.colour.heat;
      c.fillRect(b.x + 5, b.y + b.h - 4, (b.w - 5) * Math.min(1, b.ns / this.hottest), 4);
    }
    c.restore();
    if (this.zoom < 0.18) return;
    c.textAlign = "left";
    c.textBaseline = "middle";
    b.lines.forEach(([text, style], i) => {
      const main = style === "op" || style === "title";
      if (this.zoom < 0.4 && !main) return;
      c.font = main ? "600 12.5px ui-monospace, monospace" : "12px ui-monospace, monospace";
      c.fillStyle = style === "soft" ? this.colour.soft : style === "word" ? this.colour.word :
        style === "time" ? this.colour.heat : this.colour.ink;
      c.fillText(text, b.x + PAD + 3, b.y + PAD + (i + 0.4) * LINE);
    });
    if (b.foldable) {
      c.fillStyle = edge;
      c.font = "600 15px ui-monospace, monospace";
      c.textAlign = "center";
      c.fillText(b.unfolded ? "−" : "+", b.x + b.w - 14, b.y + 14);
    }
  }
}
