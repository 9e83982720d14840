// model.js: the page's data as a graph: nodes, who reads whom, groups by name, and what is one box.

const LONGEST_NAME = 400; // characters of a name that are kept for the screen
const SMALLEST_GROUP = 4; // nodes

function short(text, most) { // cut at its beginning, where names are alike
  const letters = Array.from(text);
  return letters.length <= most ? text : "…" + letters.slice(letters.length - most + 1).join("");
}
function cut(text, most) {
  const letters = Array.from(text);
  return letters.length <= most ? text : letters.slice(0, most - 1).join("") + "…";
}

// "/encoder/layer.0/MatMul" is in the groups "/encoder" and "/encoder/layer.0".
function scopesOf(name) {
  const mark = name.includes("/") ? "/" : ".";
  const parts = name.split(mark).slice(0, -1), scopes = [];
  let path = "";
  for (const part of parts.slice(0, 12)) {
    path += (path ? mark : "") + part;
    if (part) scopes.push((name.startsWith(mark) ? mark : "") + path.replace(/^[/.]/, ""));
  }
  return scopes;
}

class Graph {
  constructor(view) {
    this.view = view;
    this.nodes = [];
    const first = [];
    for (const graph of view.graphs) {
      first.push(this.nodes.length);
      for (const n of graph.nodes) this.nodes.push({...n, id: this.nodes.length, graph: first.length - 1});
    }
    for (const n of this.nodes) {
      n.ins = n.i.map(v => v + first[n.graph]);
      n.readers = [];
      n.name = n.n.slice(0, LONGEST_NAME);
    }
    view.graphs.forEach((graph, at) => graph.outputs.forEach((v, i) => {
      const name = (graph.output_names && graph.output_names[i]) || `output ${i}`;
      this.nodes.push({id: this.nodes.length, graph: at, o: "output", c: "io", n: name, name: name.slice(0, LONGEST_NAME),
        t: graph.nodes[v].t, a: "", ins: [v + first[at]], readers: []});
    }));
    for (const n of this.nodes)
      for (const v of new Set(n.ins)) this.nodes[v].readers.push(n.id);
    this.owner = new Map(); // of a sub-graph: the node that runs it
    for (const n of this.nodes) for (const g of n.g || []) this.owner.set(g, n.id);
    this.findWeights();
    this.findGroups();
    this.total = this.nodes.reduce((sum, n) => sum + (n.ns || 0), 0);
  }

  leaf(n) { return n.o === "input" || n.o === "state" || n.o === "param" || n.o === "const"; }

  // Params, constants, and what is computed from these alone: words in the boxes of their readers.
  findWeights() {
    const fed = this.view.graphs.map(g => g.nodes.some(n => n.o === "input" || n.o === "state"));
    for (const n of this.nodes) {
      const made = n.o !== "output" && fed[n.graph] && n.ins.length && n.ins.every(v => this.nodes[v].weight);
      n.weight = n.o === "param" || n.o === "const" || Boolean(made);
    }
    for (const n of this.nodes)
      n.word = n.weight && n.readers.length > 0 && !n.readers.some(r => this.nodes[r].o === "output");
  }

  findGroups() {
    const count = new Map();
    for (const n of this.nodes) n.scopes = n.o === "output" || n.o === "input" ? [] : scopesOf(n.name);
    // Nodes that the importer made have no name of their own: they are where their reader is.
    for (let i = this.nodes.length - 1; i >= 0; i--) {
      const n = this.nodes[i];
      if (n.scopes.length || this.leaf(n) || n.o === "output" || !/^v\d+$/.test(n.name)) continue;
      const reader = n.readers.map(r => this.nodes[r]).find(r => r.o !== "output");
      if (reader && reader.graph === n.graph) n.scopes = reader.scopes;
    }
    for (const n of this.nodes)
      if (!n.word) for (const s of n.scopes) count.set(n.graph + ":" + s, (count.get(n.graph + ":" + s) || 0) + 1);
    this.groups = new Map();
    for (const n of this.nodes) {
      let before = 0;
      n.path = [];
      for (const s of n.scopes) { // a group of few nodes, or of all that the one around it has, is none
        const key = n.graph + ":" + s, size = count.get(key) || 0;
        if (size < SMALLEST_GROUP || size === before) continue;
        before = size;
        n.path.push(key);
        if (!this.groups.has(key)) this.groups.set(key, {key, name: s, nodes: [], depth: n.path.length});
        if (!n.word) this.groups.get(key).nodes.push(n.id);
      }
    }
  }

  // The node that stands for n while sub-graphs are folded.
  shownFor(n, open) {
    let at = n;
    for (let g = n.graph; this.owner.has(g); g = this.nodes[this.owner.get(g)].graph)
      if (!open.has("sub:" + this.owner.get(g))) at = this.nodes[this.owner.get(g)];
    return at;
  }

  // What is one box. open: keys of groups, sub-graphs ("sub:ID") and chains ("chain:ID") that are unfolded.
  boxes(open, chains) {
    const of = new Array(this.nodes.length).fill(null), boxes = [];
    const add = (key, kind) => {
      const box = {key, kind, nodes: [], in: new Set(), out: new Set(), order: boxes.length};
      boxes.push(box);
      return box;
    };
    const groups = new Map();
    for (const n of this.nodes) {
      if (n.word || this.shownFor(n, open) !== n) continue;
      const folded = n.path.find(key => !open.has(key));
      if (folded) {
        if (!groups.has(folded)) groups.set(folded, add(folded, "group"));
        of[n.id] = groups.get(folded);
      } else {
        const joined = chains && this.chainOf(n, of, open);
        of[n.id] = joined || add("node:" + n.id, "node");
      }
      of[n.id].nodes.push(n.id);
    }
    for (const n of this.nodes) {
      const box = of[n.id];
      if (!box) continue;
      for (const v of n.ins) if (of[v] && of[v] !== box) { box.in.add(of[v]); of[v].out.add(box); }
      const owner = this.owner.get(n.graph);
      if (n.o === "input" && owner !== undefined && of[owner] && of[owner] !== box) {
        box.in.add(of[owner]);
        of[owner].out.add(box);
      }
    }
    for (const box of boxes) if (box.kind === "node" && box.nodes.length > 1) box.kind = "chain";
    return {boxes, of};
  }

  // The box of n's operands, if n is all they are read for: as src/ir/text/text_fold.c has it.
  chainOf(n, of, open) {
    let box = null;
    if (this.leaf(n) || n.o === "output" || n.g) return null;
    for (const v of n.ins) {
      if (this.nodes[v].word) continue;
      if (!of[v] || (box && of[v] !== box)) return null;
      box = of[v];
      if (box.kind !== "node" || this.leaf(this.nodes[v]) || this.nodes[v].g || !this.endsAt(v, n.id)) return null;
    }
    const head = box && this.nodes[box.nodes[0]];
    return box && !open.has("chain:" + head.id) && head.path.join() === n.path.join() ? box : null;
  }
  endsAt(v, id) {
    const readers = this.nodes[v].readers;
    return readers.length === 1 || this.detour(v, id, Math.max(...readers)) ||
      this.nodes[id].ins.some(u => this.detour(v, u, id));
  }
  detour(v, n, end) {
    const from = this.nodes[v].readers, by = this.nodes[n].readers;
    return from.length === 2 && Math.max(...from) === end && by.length === 1 && by[0] === end &&
      this.nodes[n].ins.includes(v) && this.nodes[end].o !== "output" &&
      this.nodes[end].ins.every(u => u === v || u === n || this.nodes[u].weight);
  }
}
