// ---- The map of a job: its nodes, their ranks, and who moves bytes to whom or waits for whom ----

const kBoxes = 16;  // a job of so many ranks shows boxes with words,
const kTiles = 128;  // of so many tiles with numbers,
const kCells = 4096;  // of so many cells (cells.js); of more, nodes that open on a click
const kMostArrows = 48;
const kMostOfChain = 16;
const opened = new Set();  // nodes, "job/node"
const chosen = bare();  // by job: the rank whose details are shown
const focused = bare();  // by job: the rank that the Tab key leads to; arrow keys go on from it

function choose(id, number) {
  chosen[id] = chosen[id] === number ? undefined : number;
  focused[id] = number;
  askWhy(id);
  render();
}

// The ranks of a job by node, both in order.
function nodesOf(job) {
  const nodes = new Map();
  for (const [number, rank] of Object.entries(job.ranks)) {
    const key = rank.node === undefined ? rank.at : String(rank.node);
    if (!nodes.has(key)) nodes.set(key, {key, at: rank.at, ranks: []});
    nodes.get(key).ranks.push({number: Number(number), rank});
  }
  const sorted = [...nodes.values()].sort((a, b) => a.key.localeCompare(b.key, "en", {numeric: true}));
  for (const node of sorted) node.ranks.sort((a, b) => a.number - b.number);
  return sorted;
}

// The rank, the one that it waits for, the one that that one waits for ...: of a large job the
// server tells the next one of each.
function chainOf(job, number) {
  const chain = [...((job.ranks[number] || {}).chain || [])];
  while (chain.length > 1 && chain.length < kMostOfChain) {
    const next = ((job.ranks[chain[chain.length - 1]] || {}).chain || [])[1];
    if (next === undefined || chain.includes(next)) break;
    chain.push(next);
  }
  return chain;
}

function doesText(rank) {
  if (rank.why || rank.does) return rank.why || rank.does;
  const next = (rank.chain || [])[1];
  const kind = kindOf(rank);
  return kind === "stuck" && next !== undefined
    ? `waits for rank ${next}` + (rank.call ? " in " + rank.call : "") : kKindText[kind];
}

const widthOf = (rate) => (rate > 0 ? 1 + 1.5 * Math.log10(1 + rate / 1e5) : 0);

function head(x, y, down, kind, size) {
  const s = 3 + size;
  const d = down ? -1 : 1;
  return drawing("path", {class: kind, d: `M${x} ${y} l${-s} ${d * s * 1.3} h${2 * s} z`});
}

function mapOf(id, job, width) {
  const size = Object.keys(job.ranks).length;
  if (size > kTiles && size <= kCells) return new CellMap(id, job, width);
  return new JobMap(id, job, width, size <= kBoxes ? "box" : size <= kTiles ? "tile" : "group");
}

class JobMap {
  constructor(id, job, width, form) {
    this.id = id;
    this.job = job;
    this.width = width;
    this.nodes = nodesOf(job);
    this.form = form;
    const first = this.nodes.length ? this.nodes[0].ranks[0].number : 0;
    this.stop = job.ranks[focused[id]] ? focused[id] : job.ranks[chosen[id]] ? chosen[id] : first;
    this.places = new Map();  // of ranks: {x, y, w, h}
    this.frames = new Map();  // of nodes: {y, h}
    this.under = drawing("g");
    this.over = drawing("g");
    this.top = drawing("g");
  }

  draw() {
    const margin = Object.keys(this.job.flows).length ? (this.isNarrow() ? 40 : 120) : 0;
    this.right = this.width - margin;
    let y = 0;
    for (const node of this.nodes) y = this.node(node, y) + 12;
    this.flows();
    this.pairs();
    this.waits();
    return this.picture(y);
  }

  isNarrow() {
    return this.width < 600;
  }

  picture(y) {
    const height = Math.max(20, y);
    const svg = drawing("svg", {height, viewBox: `0 0 ${this.width} ${height}`, role: "group",
      "aria-label": "map of " + this.job.label}, this.under, this.over, this.top);
    svg.addEventListener("keydown", (event) => this.key(event));
    return svg;
  }

  // Enter shows the details of a rank. The Tab key finds one rank of the job, arrows find the next.
  key(event) {
    const at = event.target.closest("[data-rank]");
    if (!at) return;
    const number = Number(at.dataset.rank);
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      return choose(this.id, number);
    }
    const next = this.beside(number, event.key);
    const there = next === undefined ? null : event.currentTarget.querySelector(`[data-rank="${next}"]`);
    if (!there) return;
    event.preventDefault();
    at.setAttribute("tabindex", -1);
    there.setAttribute("tabindex", 0);
    focused[this.id] = next;
    there.focus();
  }

  // The rank whose place is next to that of another one.
  beside(number, key) {
    const [dx, dy] = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[key] || [0, 0];
    const from = this.places.get(number);
    if (!from || (!dx && !dy)) return undefined;
    let best;
    let least = Infinity;
    for (const [other, place] of this.places) {
      const x = place.x - from.x;
      const y = place.y - from.y;
      const along = dx * x + dy * y;
      const cost = along + 4 * Math.abs(dx ? y : x);
      if (along > 0 && cost < least) [best, least] = [other, cost];
    }
    return best;
  }

  node(node, y) {
    const daemon = (model.state.daemons || {})[node.at] || {};
    const out = (this.job.rates || {})[node.key];
    const isOpen = this.form !== "group" || opened.has(this.id + "/" + node.key);
    const title = [/^\d+$/.test(node.key) ? "node " + node.key : "a node", daemon.node,
      counted(node.ranks.length, "rank"), "sends " + rateText(out)].filter(Boolean).join("  ·  ");
    this.over.append(drawing("text", {x: 12, y: y + 18, class: "small",
      text: (this.form === "group" ? (isOpen ? "▾ " : "▸ ") : "") + title}));
    let bottom = y + 28;
    if (this.form === "group") bottom = this.stack(node, bottom);
    if (isOpen) bottom = this.form === "box" ? this.boxes(node, bottom) : this.tiles(node, bottom);
    const frame = drawing("rect", {class: "frame", x: .5, y: y + .5, rx: 8, width: this.right - 1, height: bottom - y + 6});
    this.under.append(frame);
    this.frames.set(node.key, {y, h: bottom - y + 6});
    if (this.form === "group") {
      const toggle = () => {
        const key = this.id + "/" + node.key;
        opened.has(key) ? opened.delete(key) : opened.add(key);
        render();
      };
      this.over.append(drawing("rect", {class: "group", x: 0, y, width: this.right, height: 50,
        fill: "transparent", click: toggle}));
    }
    return bottom + 6;
  }

  // A node's ranks by what they do, as one bar.
  stack(node, y) {
    const counts = countKinds(node.ranks.map((each) => each.rank));
    let x = 12;
    const whole = this.right - 24;
    for (const kind of kKinds) {
      if (!counts[kind]) continue;
      const w = whole * counts[kind] / node.ranks.length;
      this.over.append(drawing("rect", {class: "k-" + kind, x, y, width: Math.max(1, w - 1), height: 16, rx: 3}));
      if (w > 70) {
        this.over.append(drawing("text", {class: "rate", x: x + 6, y: y + 12,
          text: counts[kind] + " " + kKindText[kind]}));
      }
      x += w;
    }
    return y + 22;
  }

  rank(each, x, y, w, h, round, ...inside) {
    const {number, rank} = each;
    const kind = kindOf(rank);
    this.places.set(number, {x, y, w, h});
    const box = drawing("rect", {class: "box k-" + kind, x, y, width: w, height: h, rx: round});
    const title = drawing("title", {text: `rank ${number}: ${doesText(rank)}`});
    const group = drawing("g", {
      class: "rank" + (chosen[this.id] === number ? " chosen" : ""), tabindex: this.stop === number ? 0 : -1,
      role: "button", "data-rank": number, "aria-label": `rank ${number}, ${kKindText[kind]}`,
      click: () => choose(this.id, number)}, title, box, ...inside);
    if (kind === "died") {
      group.append(drawing("path", {class: "cross", d: `M${x + w - 14} ${y + 5} l8 8 m0 -8 l-8 8`}));
    }
    this.over.append(group);
  }

  boxes(node, y) {
    const w = node.ranks.length <= 4 ? 172 : 160;
    const h = 58;
    const fits = Math.max(1, Math.floor((this.right - 24 + 34) / (w + 34)));
    const columns = Math.min(fits, node.ranks.length);
    const gap = columns > 1 ? Math.min(130, (this.right - 24 - columns * w) / (columns - 1)) : 0;
    for (let row = 0; row * columns < node.ranks.length; ++row) {
      const top = y + 22 + row * (h + 66);
      const bus = top + h + 30;
      const here = node.ranks.slice(row * columns, (row + 1) * columns);
      const end = 12 + here.length * w + (here.length - 1) * gap;
      this.under.append(drawing("path", {class: "bus", d: `M12 ${bus} H${end}`}));
      this.under.append(drawing("text", {class: "small", x: 12, y: bus + 15,
        text: this.nodes.length > 1 ? "shared memory, ferryd" : "shared memory"}));
      here.forEach((each, i) => this.box(each, 12 + i * (w + gap), top, w, h, bus));
    }
    return y + 22 + Math.ceil(node.ranks.length / columns) * (h + 66) - 14;
  }

  box(each, x, y, w, h, bus) {
    const {number, rank} = each;
    const kind = kindOf(rank);
    const doing = shortened(rank.call || kKindText[kind], Math.floor((w - 82) / 6));  // beside "rank 15"
    const age = rank.why && rank.since ? durationText(ageOf(rank.since)) : "";
    this.rank(each, x, y, w, h, 8,
      drawing("text", {class: "on", x: x + 10, y: y + 18, text: "rank " + number}),
      drawing("text", {class: "rate", x: x + w - 10 - (kind === "died" ? 12 : 0), y: y + 18, "text-anchor": "end", text: doing}),
      drawing("text", {class: "rate", x: x + w - 10, y: y + 35, "text-anchor": "end", text: age}),
      drawing("text", {class: "rate", x: x + 10, y: y + 35, text: "▲ " + rateText(rank.out)}),
      drawing("text", {class: "rate", x: x + 10, y: y + 50, text: "▼ " + rateText(rank.in)}),
      drawing("text", {class: "rate", x: x + w - 10, y: y + 50, "text-anchor": "end",
        text: rank.open ? rank.open + " open" : ""}));
    const out = x + w / 2 - 18;
    const into = x + w / 2 + 18;
    this.lane(out, y + h, bus, rank.out, true);
    this.lane(into, y + h, bus, rank.in, false);
  }

  // Bytes of a rank to (down) or from what its node shares.
  lane(x, box, bus, rate, down) {
    const width = widthOf(rate);
    if (!width) {
      this.under.append(drawing("path", {class: "idle", d: `M${x} ${box} V${bus}`}));
      return;
    }
    const tip = (3 + width / 2) * 1.3;
    this.under.append(drawing("path", {class: "bytes", "stroke-width": width.toFixed(1),
      d: down ? `M${x} ${box} V${bus - tip}` : `M${x} ${bus} V${box + tip}`}));
    this.under.append(head(x, down ? bus : box, down, "bytes-head", width / 2));
  }

  tiles(node, y) {
    const small = this.form === "group";
    const w = small ? 22 : 44;
    const h = small ? 16 : 30;
    const gap = small ? 3 : 6;
    const columns = Math.max(1, Math.floor((this.right - 24 + gap) / (w + gap)));
    const most = Math.max(1, ...node.ranks.map((each) => each.rank.out || 0));
    const lift = small ? 4 : 14;
    node.ranks.forEach((each, i) => {
      const x = 12 + (i % columns) * (w + gap);
      const top = y + lift + Math.floor(i / columns) * (h + gap);
      const inside = small ? [] : [
        drawing("text", {class: "on", x: x + w / 2, y: top + 17, "text-anchor": "middle", text: each.number}),
        drawing("rect", {fill: "var(--on)", opacity: .75, x: x + 5, y: top + h - 7, height: 3, rx: 1.5,
          width: ((w - 10) * (each.rank.out || 0) / most).toFixed(1)})];
      this.rank(each, x, top, w, h, small ? 3 : 5, ...inside);
    });
    return y + lift + Math.ceil(node.ranks.length / columns) * (h + gap);
  }

  // ---- Arrows ----

  // Between nodes, at the right.
  flows() {
    const flows = Object.entries(this.job.flows).sort((a, b) => b[1] - a[1]).slice(0, kMostArrows);
    for (const [nodes, rate] of flows) {
      const [from, to] = nodes.split(">");
      const a = this.frames.get(from);
      const b = this.frames.get(to);
      if (!a) continue;
      const x = this.right;
      const width = widthOf(rate);
      const down = !b || b.y > a.y;
      const y1 = a.y + a.h / 2 + (down ? 9 : -9);
      const y2 = b ? b.y + b.h / 2 + (down ? -9 : 9) : y1 + 26;
      const bend = down ? 46 : 26;
      this.under.append(drawing("path", {class: "bytes", "stroke-width": width.toFixed(1),
        d: `M${x} ${y1} C${x + bend} ${y1} ${x + bend} ${y2} ${x + 8} ${y2}`}));
      this.under.append(drawing("path", {class: "bytes-head", d: `M${x} ${y2} l9 ${-3 - width / 2} v${6 + width} z`}));
      if (this.isNarrow()) continue;  // no room for words
      this.under.append(drawing("text", {class: "small", x: x + 46, y: (y1 + y2) / 2 + (down ? 14 : -8),
        text: rateText(rate) + (b ? "" : " to node " + to)}));
    }
  }

  // Between ranks of different nodes: dashed by the daemons, whole by a direct link.
  pairs() {
    if (this.form !== "box") return;
    const pairs = Object.entries(this.job.pairs)
      .filter(([, pair]) => pair.rate > 0 || pair.state === "up")
      .sort((a, b) => b[1].rate - a[1].rate).slice(0, kMostArrows);
    for (const [key, pair] of pairs) {
      const [a, b] = key.split(">").map((number) => this.places.get(Number(number)));
      if (!a || !b) continue;
      const down = b.y > a.y;
      const x1 = a.x + a.w / 2 + (down ? -40 : 40);
      const x2 = b.x + b.w / 2 + (down ? -40 : 40);
      const y1 = down ? a.y + a.h : a.y;
      const y2 = down ? b.y : b.y + b.h;
      const middle = (y1 + y2) / 2;
      const isLink = pair.out === "link";
      const width = Math.max(1.2, widthOf(isLink ? (this.job.ranks[key.split(">")[0]] || {}).link_out : pair.rate));
      this.under.append(drawing("path", {class: "bytes" + (isLink ? "" : " by-daemon"), opacity: .55,
        "stroke-width": width.toFixed(1), d: `M${x1} ${y1} C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`},
        drawing("title", {text: key + (isLink ? ", direct link" : ", by the daemons, " + rateText(pair.rate))})));
    }
  }

  // From each rank that waits for long to the one that it waits for.
  waits() {
    let left = kMostArrows;
    for (const {number, rank} of this.nodes.flatMap((node) => node.ranks)) {
      if (kindOf(rank) !== "stuck" || !rank.chain || rank.chain.length < 2 || left-- <= 0) continue;
      const a = this.places.get(number);
      const b = this.places.get(rank.chain[1]);
      if (!a || !b || a === b) continue;
      const x1 = a.x + a.w * .5;
      const x2 = b.x + b.w * (b.x > a.x ? .38 : .62);
      const lift = this.form === "box" ? Math.min(34, 20 + Math.abs(x2 - x1) / 40) : 16;
      const up = Math.min(a.y, b.y) - lift;
      this.top.append(drawing("path", {class: "wait", d: `M${x1} ${a.y} C${x1} ${up} ${x2} ${up} ${x2} ${b.y - 7}`}));
      this.top.append(head(x2, b.y, true, "wait-head", 2));
    }
  }
}
