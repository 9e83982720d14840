// layout.js: boxes in layers, top to bottom, as src/ir/text/text_layout.c does it: layers by depth, points where lines
// pass a layer, order by barycentre sweeps, places by least squares.

const GAP = 26, POINT_GAP = 14, LAYER_GAP = 44, HOLD = 0.96, MOST_POINTS = 60000;

function layers(boxes) {
  for (const b of boxes) b.layer = 0;
  for (const b of boxes) // by order: what they read is settled; a line back up to a group counts for nothing
    for (const from of b.in) if (from.order < b.order) b.layer = Math.max(b.layer, from.layer + 1);
  for (let i = boxes.length - 1; i >= 0; i--) { // what reads nothing goes next to its readers
    const b = boxes[i];
    const below = [...b.out].filter(to => to.order > b.order);
    if (below.length && ![...b.in].some(from => from.order < b.order))
      b.layer = Math.max(0, Math.min(...below.map(to => to.layer)) - 1);
  }
}

function makeRows(boxes) {
  const vertices = boxes.map(b => ({box: b, layer: b.layer, width: b.w, up: [], down: [], x: 0, order: 0}));
  boxes.forEach((b, i) => { b.vertex = vertices[i]; });
  let points = 0;
  for (const b of boxes)
    for (const to of b.out) if (to.layer > b.layer) points += to.layer - b.layer - 1;
  const straight = points > MOST_POINTS;
  const lines = [];
  for (const b of boxes) {
    const chain = []; // one chain of points per source
    for (const to of [...b.out].sort((x, y) => x.layer - y.layer)) {
      if (to.layer <= b.layer) { lines.push({from: b, to, back: true}); continue; }
      let last = b.vertex;
      for (let l = b.layer + 1; l < to.layer && !straight; l++) {
        if (!chain[l]) {
          chain[l] = {box: null, layer: l, width: 0, up: [last], down: [], x: 0, order: 0};
          last.down.push(chain[l]);
          vertices.push(chain[l]);
        }
        last = chain[l];
      }
      last.down.push(to.vertex);
      to.vertex.up.push(last);
    }
  }
  const rows = [];
  for (const v of vertices) (rows[v.layer] = rows[v.layer] || []).push(v);
  return {rows: Array.from(rows, r => r || []), vertices, lines};
}

function number(row) { row.forEach((v, i) => { v.order = i; }); }

function sweep(rows) {
  rows.forEach(number);
  for (let round = 0; round < 8; round++) {
    const down = round % 2 === 0;
    for (let i = 1; i < rows.length; i++) {
      const row = rows[down ? i : rows.length - 1 - i];
      for (const v of row) {
        const near = down ? v.up : v.down;
        v.mean = near.length ? near.reduce((s, u) => s + u.order, 0) / near.length : v.order;
      }
      row.sort((a, b) => a.mean - b.mean || a.order - b.order);
      number(row);
    }
  }
}

const apart = (a, b) => (a.width + b.width) / 2 + (a.box && b.box ? GAP : POINT_GAP);

function placeRow(row, up, down) {
  if (row.length === 1) { row[0].x = 0; return; } // everything passes through it
  const blocks = [];
  let room = 0;
  row.forEach((v, i) => {
    if (i) room += apart(row[i - 1], v);
    const near = (up ? v.up : []).concat(down ? v.down : []);
    let wish = v.x, weight = 0.1;
    if (near.length) {
      const points = v.box ? [] : near.filter(u => !u.box), from = points.length ? points : near;
      wish = from.reduce((s, u) => s + u.x, 0) / from.length * (v.box ? HOLD : 1);
      weight = v.box ? near.length : 8;
    }
    blocks.push({sum: (wish - room) * weight, weight, count: 1});
    while (blocks.length > 1) {
      const b = blocks[blocks.length - 1], a = blocks[blocks.length - 2];
      if (a.sum * b.weight <= b.sum * a.weight) break;
      a.sum += b.sum; a.weight += b.weight; a.count += b.count;
      blocks.pop();
    }
  });
  room = 0;
  let at = 0;
  for (const b of blocks)
    for (let k = 0; k < b.count; k++, at++) {
      if (at) room += apart(row[at - 1], row[at]);
      row[at].x = b.sum / b.weight + room;
    }
}

// Gives every box x, y (of its upper left corner), and returns lines as lists of points, and the size of it all.
function layout(boxes) {
  layers(boxes);
  const {rows, vertices, lines} = makeRows(boxes);
  sweep(rows);
  for (const row of rows) {
    let x = 0;
    row.forEach((v, i) => { if (i) x += apart(row[i - 1], v); v.x = x; });
    row.forEach(v => { v.x -= x / 2; });
  }
  const rounds = vertices.length > 8000 ? 8 : 16;
  for (let round = 0; round < rounds; round++) {
    const down = round % 2 === 0, settle = round >= rounds - 4;
    for (let i = 0; i < rows.length; i++)
      placeRow(rows[down ? i : rows.length - 1 - i], down || settle, !down || settle);
  }
  const top = [], height = [];
  let y = 0, left = Infinity, right = -Infinity;
  rows.forEach((row, i) => {
    top[i] = y;
    height[i] = row.reduce((h, v) => Math.max(h, v.box ? v.box.h : 0), 10);
    y += height[i] + LAYER_GAP;
    for (const v of row) {
      left = Math.min(left, v.x - v.width / 2);
      right = Math.max(right, v.x + v.width / 2);
      if (v.box) { v.box.x = v.x - v.width / 2; v.box.y = top[i] + (height[i] - v.box.h) / 2; }
    }
  });
  const paths = [];
  for (const v of vertices) {
    v.up.sort((a, b) => a.x - b.x);
    v.up.forEach((u, i) => {
      const gap = v.box ? Math.min(24, (v.width - 24) / v.up.length) : 0;
      const x1 = v.x + (i - (v.up.length - 1) / 2) * gap;
      paths.push({x0: u.x, y0: u.box ? u.box.y + u.box.h : top[u.layer] + height[u.layer], x1,
        y1: v.box ? v.box.y : top[v.layer], arrow: Boolean(v.box), from: u.box, to: v.box});
    });
    if (!v.box) paths.push({x0: v.x, y0: top[v.layer], x1: v.x, y1: top[v.layer] + height[v.layer], arrow: false});
  }
  for (const l of lines)
    paths.push({x0: l.from.x + l.from.w, y0: l.from.y + l.from.h / 2, x1: l.to.x + l.to.w, y1: l.to.y + l.to.h / 2,
      arrow: true, back: true, from: l.from, to: l.to});
  return {paths, left, right, top: 0, bottom: y - LAYER_GAP};
}
