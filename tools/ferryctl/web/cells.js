// ---- The map of a large job: a panel for each node, a cell for each of its ranks ----
//
// Arrows are of nodes: bytes from panel to panel, the heaviest ones only, and in red the ranks of a
// panel that wait, however far away, for the same rank. Cells of a node of which nothing has changed
// stay as they were drawn.

const kCell = 12;
const kPitch = 14;      // from one cell to the next
const kRowName = 28;    // room for the number of a row's first rank
const kPanelHead = 38;  // and for what a node is called
const kMostFlowWords = 12;
const kMostNamed = 3;  // ranks that others wait for
const kMostNodeName = 20;  // letters
const drawn = {cells: 0};  // ever; for tests
const drawnNodes = bare();  // by job, then by node: {signature, group}

const shortened = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
// So many cells side by side that a panel is about twice as wide as high.
function columnsFor(ranks, width) {
  let columns = [8, 16, 32, 64].find((each) => each >= 2 * Math.ceil(ranks / each)) || 64;
  while (columns > 4 && kRowName + columns * kPitch + 6 > width) columns /= 2;
  return columns;
}

class CellMap extends JobMap {
  constructor(id, job, width) {
    super(id, job, width, "cell");
    this.right = width;
    const most = Math.max(...this.nodes.map((node) => node.ranks.length));
    this.columns = columnsFor(most, width);
    this.panelWidth = kRowName + this.columns * kPitch + 6;
    this.causes = Object.entries(job.causes || {}).map(([number, cause]) => ({number: Number(number), cause}));
    this.marked = new Set(this.causes.filter(({cause}) => !cause.deadlock).map(({number}) => number));
    const isEmpty = !this.causes.length && !Object.keys(job.flows).length;
    const least = this.isNarrow() || this.nodes.length > 64 ? 12 : 48;
    this.across = Math.max(1, Math.floor((width + least) / (this.panelWidth + least)));
    this.gap = this.across > 1 ? Math.min(110, (width - this.across * this.panelWidth) / (this.across - 1)) : 0;
    this.down = isEmpty || this.nodes.length > 64 ? 14 : 40;
  }

  draw() {
    const known = drawnNodes[this.id] || bare();
    drawnNodes[this.id] = bare();  // nodes that are gone are forgotten
    let y = 14;
    for (let first = 0; first < this.nodes.length; first += this.across) {
      const row = this.nodes.slice(first, first + this.across);
      const lines = Math.max(...row.map((node) => Math.ceil(node.ranks.length / this.columns)));
      const h = kPanelHead + lines * kPitch + 8;
      row.forEach((node, i) => this.panel(node, i * (this.panelWidth + this.gap), y, h, known));
      y += h + this.down;
    }
    this.nodeFlows();
    this.nodeWaits();
    this.chosenChain();
    return this.picture(y - this.down + 4);
  }

  panel(node, x, y, h, known) {
    const daemon = (model.state.daemons || {})[node.at] || {};
    const name = [/^\d+$/.test(node.key) ? "node " + node.key : "a node", daemon.node || ""].filter(Boolean).join("  ·  ");
    const stuck = node.ranks.filter((each) => kindOf(each.rank) === "stuck").length;
    this.frames.set(node.key, {x, y, w: this.panelWidth, h});
    this.over.append(
      drawing("rect", {class: "frame panel", x: x + .5, y: y + .5, rx: 8, width: this.panelWidth - 1, height: h - 1}),
      drawing("text", {class: "small", x: x + 10, y: y + 16, text: shortened(name, 9 + kMostNodeName)}, drawing("title", {text: name})),
      drawing("text", {class: "small", x: x + 10, y: y + 30, text: [counted(node.ranks.length, "rank"),
        "sends " + rateText((this.job.rates || {})[node.key])].join("  ·  ")}));
    if (stuck) {
      this.over.append(drawing("text", {class: "small alarming", x: x + this.panelWidth - 10, y: y + 30,
        "text-anchor": "end", text: stuck + (this.columns > 8 ? " wait long" : "")}));
    }
    const left = x + kRowName;
    const top = y + kPanelHead;
    const signs = node.ranks.map((each, i) => {
      this.places.set(each.number, {x: left + (i % this.columns) * kPitch, y: top + Math.floor(i / this.columns) * kPitch, w: kCell, h: kCell});
      return [each.number, kindOf(each.rank), this.marked.has(each.number), chosen[this.id] === each.number,
        this.stop === each.number].join();
    });
    const signature = [left, top, this.columns, ...signs].join(";");
    const before = known[node.key];
    const group = before && before.signature === signature ? before.group : this.cells(node, left);
    drawnNodes[this.id][node.key] = {signature, group};
    this.over.append(group);
  }

  cells(node, left) {
    const group = drawing("g");
    node.ranks.forEach((each, i) => {
      const {number, rank} = each;
      const place = this.places.get(number);
      const kind = kindOf(rank);
      ++drawn.cells;
      if (i % this.columns === 0) {
        group.append(drawing("text", {class: "row", x: left - 5, y: place.y + 10, "text-anchor": "end", text: number}));
      }
      group.append(drawing("rect", {class: `cell box k-${kind}` + (chosen[this.id] === number ? " chosen" : "") +
          (this.marked.has(number) ? " cause" : ""),
        x: place.x, y: place.y, width: kCell, height: kCell, rx: 2.5, tabindex: this.stop === number ? 0 : -1,
        role: "button", "data-rank": number, "aria-label": `rank ${number}, ${kKindText[kind]}`}));
    });
    group.addEventListener("click", (event) => {
      const cell = event.target.closest("[data-rank]");
      if (cell) choose(this.id, Number(cell.dataset.rank));
    });
    group.addEventListener("pointerover", (event) => this.hint(event.target.closest("[data-rank]")));
    return group;
  }

  // A cell has its words once the pointer is there: a thousand of them would be a thousand elements.
  hint(cell) {
    const job = (model.state.jobs || {})[this.id];
    const rank = cell && job ? job.ranks[cell.dataset.rank] : null;
    if (!rank) return;
    cell.replaceChildren(drawing("title", {text: `rank ${cell.dataset.rank}: ${doesText(rank)}`}));
  }

  // ---- Arrows ----

  // From panel to panel: beside each other, or by the gaps above and below.
  between(a, b) {
    if (a.y === b.y) {
      const right = b.x > a.x;
      if (Math.abs(b.x - a.x) < 1.5 * (this.panelWidth + this.gap)) {
        const y = a.y + Math.min(a.h, b.h) / 2 + (right ? -9 : 9);
        const [x1, x2] = right ? [a.x + a.w, b.x] : [a.x, b.x + b.w];
        const tip = right ? x2 - 7 : x2 + 7;
        return {d: `M${x1} ${y} H${tip}`, x: x2, y, turn: right ? 0 : 180, at: [(x1 + x2) / 2, right ? y - 7 : y + 15]};
      }
      const x1 = a.x + a.w / 2 + (right ? 14 : -14);
      const x2 = b.x + b.w / 2 + (right ? -14 : 14);
      return {d: `M${x1} ${a.y} C${x1} ${a.y - 26} ${x2} ${a.y - 26} ${x2} ${b.y - 7}`, x: x2, y: b.y, turn: 90,
        at: [(x1 + x2) / 2, a.y - 14]};
    }
    const down = b.y > a.y;
    const x1 = a.x + a.w / 2 + (down ? -14 : 14);
    const x2 = b.x + b.w / 2 + (down ? -14 : 14);
    const [y1, y2] = down ? [a.y + a.h, b.y] : [a.y, b.y + b.h];
    const tip = down ? y2 - 7 : y2 + 7;
    const middle = (y1 + tip) / 2;
    return {d: `M${x1} ${y1} C${x1} ${middle} ${x2} ${middle} ${x2} ${tip}`, x: x2, y: y2, turn: down ? 90 : -90,
      at: [(x1 + x2) / 2, middle + 4]};
  }

  nodeFlows() {
    const flows = Object.entries(this.job.flows).sort((a, b) => b[1] - a[1]).slice(0, kMostArrows);
    flows.forEach(([nodes, rate], i) => {
      const [from, to] = nodes.split(">");
      const a = this.frames.get(from);
      const b = this.frames.get(to);
      if (!a || !b || a === b) return;
      const arrow = this.between(a, b);
      const width = widthOf(rate);
      this.under.append(drawing("path", {class: "bytes flow", "stroke-width": width.toFixed(1), d: arrow.d},
          drawing("title", {text: `node ${from} to node ${to}: ${rateText(rate)}`})),
        drawing("path", {class: "bytes-head", transform: `translate(${arrow.x} ${arrow.y}) rotate(${arrow.turn})`,
          d: `M0 0 l-9 ${-3 - width / 2} v${6 + width} z`}));
      if (i < kMostFlowWords && !this.isNarrow()) {
        this.top.append(drawing("text", {class: "small halo", x: arrow.at[0], y: arrow.at[1], "text-anchor": "middle",
          text: rateText(rate)}));
      }
    });
  }

  // Ranks that wait for long, by node and by the rank that all of them wait for.
  nodeWaits() {
    let left = kMostArrows;
    for (const {number, cause} of this.causes) {
      const to = this.places.get(number);
      if (!to) continue;
      const home = this.nodes.find((node) => node.ranks.some((each) => each.number === number));
      for (const node of this.nodes) {
        const count = node.ranks.filter((each) => each.rank.cause === number && kindOf(each.rank) === "stuck").length;
        if (!count || node === home || left-- <= 0) continue;
        this.waitsOf(this.frames.get(node.key), to, count, this.frames.get(home.key));
      }
      if (!cause.deadlock && this.causes.length <= kMostNamed) {
        this.top.append(drawing("text", {class: "halo culprit", x: to.x + kCell / 2, y: to.y - 6, "text-anchor": "middle", text: number}));
      }
    }
  }

  waitsOf(a, to, count, home) {
    const x2 = to.x + kCell / 2;
    let [x1, y1, y2, bend] = [a.x + a.w / 2, a.y, to.y - 2, -30];
    if (a.y === home.y) {
      bend = -24;
    } else if (a.y < home.y) {
      [y1, bend] = [a.y + a.h, 30];
    } else {
      [y2, bend] = [to.y + kCell + 2, -30];
    }
    const end = a.y > home.y ? y2 + 30 : y2 - 30;
    this.top.append(
      drawing("path", {class: "wait of-many", d: `M${x1} ${y1} C${x1} ${y1 + bend} ${x2} ${end} ${x2} ${y2}`}),
      drawing("text", {class: "halo alarming small", x: x1 + 8, y: y1 + (bend > 0 ? 13 : -5), text: counted(count, "waits", "wait")}));
  }

  // From the rank whose details are shown to the one that it waits for, and so on.
  chosenChain() {
    const number = chosen[this.id];
    const chain = number === undefined || !this.job.ranks[number] ? [] : chainOf(this.job, number);
    for (let i = 0; i + 1 < chain.length; ++i) {
      const a = this.places.get(chain[i]);
      const b = this.places.get(chain[i + 1]);
      if (!a || !b) continue;
      const up = Math.min(a.y, b.y) - 14;
      const [x1, x2] = [a.x + kCell / 2, b.x + kCell / 2];
      this.top.append(drawing("path", {class: "wait link", d: `M${x1} ${a.y} C${x1} ${up} ${x2} ${up} ${x2} ${b.y - 2}`}));
    }
  }
}
