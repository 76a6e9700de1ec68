// ---- Jobs: a card each ----

const kMostSentences = 5;
const kMostTableRows = 24;

function pills(counts) {
  return kKinds.filter((kind) => counts[kind]).map((kind) =>
    element("span", {class: "pill k-" + kind, text: counts[kind] + " " + kKindText[kind]}));
}

// Long waits in the words of `ferryctl why`: for each rank or circle that others wait for, however
// far away, the sentence of the one that is nearest to it.
function sentences(job) {
  const causes = Object.entries(job.causes || {}).sort(([a, one], [b, other]) =>
    (other.deadlock ? 1 : 0) - (one.deadlock ? 1 : 0) || other.waits - one.waits ||
    one.since - other.since || a - b);
  const lines = [];
  let told = 0;
  for (const [number, cause] of causes.slice(0, kMostSentences)) {
    told += cause.waits;
    const line = element("p", {class: "alarm"}, cause.why + ", for ",
      element("b", {text: durationText(ageOf(cause.since))}));
    const others = cause.waits - (kindOf(job.ranks[number] || {}) === "stuck" ? 1 : 0);
    if (!cause.deadlock && cause.waits > 1) {
      line.append(element("span", {class: "further",
        text: `${counted(others, "rank waits", "ranks wait")} for rank ${number}, directly or through others`}));
    } else if (cause.deadlock) {
      line.append(element("span", {class: "further",
        text: `${counted(cause.waits, "rank is", "ranks are")} in this circle or wait for it`}));
    }
    lines.push(line);
  }
  const all = Object.values(job.ranks).filter((rank) => kindOf(rank) === "stuck").length;
  if (all > told) lines.push(element("p", {class: "faint", text: `and ${all - told} more such waits`}));
  for (const trouble of job.troubles || []) lines.push(element("p", {class: "alarm", text: trouble}));
  return lines;
}

// ---- The answer of `ferryctl why` about the rank that was clicked ----

const kAskAgainMs = 2000;
const told = bare();  // by job: {number, text, at, waits}

function askWhy(id) {
  const number = chosen[id];
  const known = told[id];
  if (number === undefined || !(id in model.state.jobs)) {
    delete told[id];
    return;
  }
  const isSame = known && known.number === number;
  if (isSame && (known.waits || Date.now() - known.at < kAskAgainMs)) return;
  const asked = {number, text: isSame ? known.text : "", at: Date.now(), waits: true};
  told[id] = asked;
  fetch(`why?rank=${number}&job=${encodeURIComponent(id)}`).then((answer) => answer.text()).then((text) => {
    asked.text = text;
  }, () => {
    asked.text = "no answer";
  }).then(() => {
    asked.at = Date.now();
    asked.waits = false;
    render();
  });
}

function details(id, job) {
  const number = chosen[id];
  const rank = number === undefined ? null : job.ranks[number];
  if (!rank) return [];
  const about = job.rough ? "about " : "";
  const rows = [
    ["does", doesText(rank)],
    ["call", rank.call],
    ["waits for", chainOf(job, number).slice(1).map((each) => "rank " + each).join(", ")],
    ["process", rank.pid ? `${rank.pid}, on CPUs ${rank.cpus || "unknown"}` : ""],
    ["daemon", rank.at],
    ["interface", rank.nic],
    ["sends", `${about}${rateText(rank.out)}, ${rank.messages || 0} messages/s; ${bytesText(rank.sent || 0)} in all`],
    ["receives", `${about}${rateText(rank.in)}; ${bytesText(rank.received || 0)} in all`],
    ["direct links", rank.links ? `${rank.links}, out ${rateText(rank.link_out)}` : ""],
    ["requests", `${rank.open || 0} open; ${counted(rank.queued || 0, "send")} queued, ` +
      `${counted(rank.unexpected || 0, "message")} unexpected`],
    ["fails", rank.poison],
  ];
  const list = element("dl");
  for (const [name, value] of rows) {
    if (value) list.append(element("dt", {text: name}), element("dd", {text: value}));
  }
  return [element("div", {class: "details"},
    element("b", {text: `rank ${number} of ${job.label} `}),
    element("button", {text: "close", click: () => choose(id, number)}), list,
    element("pre", {class: "why", text: (told[id] || {}).text || ""}))];
}

function jobCard(id, job, width) {
  const card = element("article", {class: "job"});
  const ranks = Object.values(job.ranks);
  const hidden = job.size - ranks.length;
  card.append(element("div", {class: "head"},
    element("h2", {text: job.label, title: "job " + id}),
    element("span", {class: "faint", text: [job.program === job.label ? "" : job.program,
      job.slurm ? "Slurm job " + job.slurm : "", counted(job.size, "rank"), job.state,
      "user " + userText(job.uid)].filter(Boolean).join(" · ")}),
    element("span", {class: "counts"}, ...pills(countKinds(ranks)))));
  card.append(...sentences(job));
  if (ranks.length) card.append(mapOf(id, job, width).draw());
  if (hidden > 0) {
    card.append(element("p", {class: "faint",
      text: `${counted(hidden, "rank")} on nodes whose daemons this page does not ask: run ferryctl web there, too`}));
  }
  const undrawn = Object.keys(job.flows).length - kMostArrows;
  if (undrawn > 0) {
    card.append(element("p", {class: "faint", text: `${undrawn} pairs of nodes that move less have no arrow`}));
  }
  if (job.pairs_left_out && ranks.length <= kBoxes) {
    card.append(element("p", {class: "faint", text: `${job.pairs_left_out} pairs that move less are left out`}));
  }
  card.append(...details(id, job));
  const canvas = element("canvas", {"aria-label": "the last minute"});
  card.append(element("div", {class: "timeline"}, canvas));
  drawTimeline(canvas, id, job, width);
  return card;
}

// ---- Pictures of the last minute ----

function prepared(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.height = height + "px";
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  return context;
}

function drawTimeline(canvas, id, job, width) {
  const spans = model.spans[id] || bare();
  const numbers = Object.keys(spans).map(Number).sort((a, b) => a - b);
  const isRows = numbers.length > 0;
  const row = isRows ? Math.max(5, Math.min(14, Math.floor(180 / Math.max(1, numbers.length)))) : 0;
  const left = 58;
  const bytes = 34;
  const body = isRows ? numbers.length * (row + 2) : 90;
  const height = 14 + body + 8 + bytes + 16;
  const context = prepared(canvas, width, height);
  const end = model.now;
  const xOf = (t) => left + (width - left) * Math.max(0, (t - (end - kMinute)) / kMinute);
  const faint = colourOf("faint");
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = faint;
  context.fillText("the last minute", left, 9);
  const top = 14;
  context.fillStyle = colourOf("track");
  context.fillRect(left, top, width - left, body);
  if (isRows) {
    numbers.forEach((number, i) => {
      const y = top + i * (row + 2);
      if (row >= 9 || i % 4 === 0) {
        context.fillStyle = faint;
        context.textAlign = "right";
        context.fillText("rank " + number, left - 6, y + Math.min(row, 10));
        context.textAlign = "left";
      }
      const span = spans[number];
      span.forEach(([t, kind], at) => {
        const until = at + 1 < span.length ? span[at + 1][0] : end;
        context.fillStyle = colourOf(kind);
        context.fillRect(xOf(t), y, Math.max(1, xOf(until) - xOf(t)), row);
      });
    });
  } else {
    model.points.forEach((point, at) => {
      const next = at + 1 < model.points.length ? model.points[at + 1].t : end;
      const counts = point.counts[id];
      if (!counts) return;
      const all = Object.values(counts).reduce((sum, n) => sum + n, 0) || 1;
      let y = top;
      for (const kind of kKinds) {
        const h = body * (counts[kind] || 0) / all;
        context.fillStyle = colourOf(kind);
        const from = Math.floor(xOf(point.t));  // whole pixels have no seams
        context.fillRect(from, y, Math.max(1, Math.ceil(xOf(next)) - from), h);
        y += h;
      }
    });
  }
  curve(context, model.points.map((point) => [point.t, point.rates[id] || 0]), xOf, top + body + 8, bytes, "sent", left);
  context.fillStyle = faint;
  context.textAlign = "center";
  for (const s of [60, 45, 30, 15]) context.fillText(`−${s} s`, Math.max(left + 12, xOf(end - s * 1000)), height - 3);
  context.textAlign = "right";
  context.fillText("now", width - 2, height - 3);
  context.textAlign = "left";
}

function curve(context, points, xOf, y, height, name, left) {
  const most = Math.max(1, ...points.map(([, rate]) => rate));
  context.beginPath();
  points.forEach(([t, rate], i) => {
    const at = y + height - (height - 2) * rate / most;
    i ? context.lineTo(xOf(t), at) : context.moveTo(xOf(t), at);
  });
  context.strokeStyle = colourOf("bytes");
  context.lineWidth = 1.5;
  context.stroke();
  if (!left || !points.length) return;
  context.lineTo(xOf(points[points.length - 1][0]), y + height);
  context.lineTo(xOf(points[0][0]), y + height);
  context.globalAlpha = .15;
  context.fillStyle = colourOf("bytes");
  context.fill();
  context.globalAlpha = 1;
  context.fillStyle = colourOf("faint");
  context.textAlign = "right";
  context.fillText(name, left - 6, y + height - 2);
  context.textAlign = "left";
  if (most > 1) context.fillText("at most " + rateText(most), left + 4, y + 10);
}

// ---- Panels ----

const kPathWords = [["lane", "lane"], ["one copy", "one copy"], ["direct link", "direct link"], ["daemon", "daemon, NIC"]];

function pathsPanel() {
  const paths = model.state.paths || {};
  const most = Math.max(1, ...Object.values(paths).map((sum) => sum.rate));
  return kPathWords.map(([path, words]) => {
    const sum = paths[path] || {rate: 0, total: 0};
    const fill = element("div", {class: "fill"});
    fill.style.width = (100 * sum.rate / most).toFixed(1) + "%";
    fill.style.opacity = .35;
    const canvas = element("canvas");
    const context = prepared(canvas, 400, 26);
    const end = model.now;
    curve(context, model.points.map((point) => [point.t, point.paths[path] || 0]),
      (t) => 400 * Math.max(0, (t - end + kMinute) / kMinute), 2, 22, "", 0);
    return element("div", {class: "bar", title: bytesText(sum.total) + " since the start of the ranks that run"},
      element("span", {text: words}), element("div", {class: "track"}, fill, canvas),
      element("span", {class: "value", text: rateText(sum.rate)}));
  });
}

// Of each user and quota the daemon where it is fullest: nodes of a job are mostly alike.
function quotasPanel() {
  const users = new Map();
  for (const [at, daemon] of sorted(model.state.daemons)) {
    for (const [uid, user] of sorted(daemon.users)) {
      const known = users.get(uid) || users.set(uid, {daemons: 0, fullest: new Map()}).get(uid);
      ++known.daemons;
      for (const [name, [used, limit]] of Object.entries(user)) {
        const full = {used, limit, share: limit ? used / limit : 0, on: daemon.node || at};
        const other = known.fullest.get(name);
        if (!other || full.share > other.share || (full.share === other.share && used > other.used)) {
          known.fullest.set(name, full);
        }
      }
    }
  }
  const made = [];
  for (const [uid, {daemons, fullest}] of users) {
    const on = daemons === 1 ? [...fullest.values()][0].on : `the fullest of ${daemons} nodes`;
    made.push(element("p", {class: "faint", text: `${userText(uid)} on ${on}`}));
    for (const [name, full] of fullest) {
      if (!full.used && !full.limit) continue;
      const text = name === "pinned" ? bytesText : String;
      const bar = element("div", {class: "fill" + (full.share > .9 ? " much" : "")});
      bar.style.width = (100 * Math.min(1, full.share)).toFixed(1) + "%";
      made.push(element("div", {class: "bar slim", title: "on " + full.on}, element("span", {text: name}),
        element("div", {class: "track"}, bar), element("span", {class: "value faint",
          text: full.limit ? `${text(full.used)} of ${text(full.limit)}` : `${text(full.used)}, no limit`})));
    }
  }
  return made;
}

// Rows beyond a screenful are counted.
function table(titles, allRows) {
  if (!allRows.length) return [];
  const rows = allRows.slice(0, kMostTableRows);
  const further = allRows.length > rows.length
    ? [element("p", {class: "faint", text: `and ${allRows.length - rows.length} more`})] : [];
  const cell = (kind, value, right) =>
    element(kind, right ? {class: "number", text: value} : {text: value === undefined ? "" : value});
  const body = rows.map((row) => element("tr", {}, ...row.map((value, i) => cell("td", value, titles[i][0] === ">"))));
  return [element("table", {}, element("thead", {}, element("tr", {},
    ...titles.map((title) => cell("th", title.replace(">", ""), title[0] === ">")))), element("tbody", {}, ...body)),
    ...further];
}

function daemonsPanel() {
  const inOrder = sorted(model.state.daemons);
  inOrder.sort(([, a], [, b]) => (b.trouble ? 1 : 0) - (a.trouble ? 1 : 0));
  const made = table(["node", "state", ">up", ">CPU", ">memory", ">ranks"],
    inOrder.map(([at, daemon]) => [
      (daemon.node || "?") + "  " + at, daemon.trouble ? "no answer" : daemon.state,
      daemon.since ? durationText(ageOf(daemon.since)) : "",
      daemon.cpu === undefined ? "" : (100 * daemon.cpu).toFixed(1) + " %",
      daemon.memory ? bytesText(daemon.memory) : "", daemon.sessions || 0]));
  for (const [at, daemon] of sorted(model.state.daemons)) {
    if (daemon.trouble) made.push(element("p", {class: "alarm", text: daemon.trouble}));
    for (const [address, peer] of Object.entries(daemon.peers)) {
      if (peer.trouble || peer.state !== "up") {
        made.push(element("p", {class: "faint",
          text: `${daemon.node || at} sees ${peer.name || address}: ${peer.state}${peer.trouble ? ", " + peer.trouble : ""}`}));
      }
    }
  }
  return made;
}

function nicsPanel() {
  const rows = [];
  for (const [, daemon] of sorted(model.state.daemons)) {
    for (const nic of Object.values(daemon.nics)) {
      rows.push([daemon.node, nic.domain || nic.provider, nic.provider, rateText(nic.out), rateText(nic.in),
        nic.staging[1] ? nic.staging.join(" of ") : "", nic.errors]);
    }
  }
  return table(["node", "interface", "provider", ">out", ">in", ">staging", ">errors"], rows);
}

function gpusPanel() {
  const rows = [];
  for (const [, daemon] of sorted(model.state.daemons)) {
    for (const gpu of Object.values(daemon.gpus)) {
      rows.push([daemon.node, `${gpu.backend} ${gpu.device}: ${gpu.name}`, gpu.total ? bytesText(gpu.total) : "",
        gpu.free ? bytesText(gpu.free) : "", gpu.nic, gpu.to_nic || gpu.note]);
    }
  }
  return table(["node", "device", ">memory", ">free", "nearest NIC", "to the NIC"], rows);
}

// ---- Drawing all of it, at most once a frame, and only what somebody sees ----

function fill(id, made, empty) {
  const body = document.querySelector("#" + id + " .body");
  body.replaceChildren(...(made.length ? made : [element("p", {class: "empty", text: empty})]));
}

function draw() {
  const state = model.state;
  if (!state.daemons) return;
  const nodes = Object.values(state.daemons).map((daemon) => daemon.node).filter(Boolean);
  document.getElementById("who").textContent =
    `${state.uid === 0 ? "all jobs" : "the jobs of " + userText(state.uid)} on ${nodes.length > 4 ? nodes.length + " nodes" : nodes.join(", ") || "this node"}`;
  const trouble = document.getElementById("trouble");
  trouble.hidden = !state.trouble;
  trouble.textContent = state.trouble || "";
  const focused = document.activeElement && document.activeElement.closest ? document.activeElement.closest("[data-rank]") : null;
  const focus = focused && {rank: focused.dataset.rank, job: focused.closest("article").dataset.job};
  const jobs = document.getElementById("jobs");
  const width = Math.max(240, jobs.clientWidth - 38);
  for (const id of Object.keys(drawnNodes)) if (!(id in state.jobs)) delete drawnNodes[id];
  const cards = Object.entries(state.jobs).map(([id, job]) => {
    const card = jobCard(id, job, width);
    card.dataset.job = id;
    return card;
  });
  jobs.replaceChildren(...(cards.length ? cards : [element("article", {},
    element("p", {class: "empty", text: "No job runs here now. Start one: ferryrun -n 4 ./program"}))]));
  if (focus) {
    const card = [...jobs.children].find((each) => each.dataset.job === focus.job);
    const again = card && card.querySelector(`[data-rank="${Number(focus.rank)}"]`);
    if (again) again.focus();
  }
  fill("paths", pathsPanel(), "");
  fill("quotas", quotasPanel(), "no user holds anything");
  fill("daemons", daemonsPanel(), "no ferryd answers");
  fill("nics", nicsPanel(), "no network interface is in use");
  fill("gpus", gpusPanel(), "no GPU is in use");
}

let asked = false;
function render() {
  if (asked) return;
  asked = true;
  const now = () => {
    asked = false;
    draw();
  };
  document.hidden ? setTimeout(now, 0) : requestAnimationFrame(now);
}

// ---- Events ----

const kHiddenMs = 20000;  // a window that nobody sees asks for nothing from then on
let source = null;
let hiding = 0;

function say(text, kind) {
  const live = document.getElementById("live");
  live.textContent = text;
  live.className = kind;
}

function listen() {
  if (source) return;
  source = new EventSource("events");
  for (const kind of ["snapshot", "change"]) {
    source.addEventListener(kind, (event) => {
      take(kind, JSON.parse(event.data));
      for (const id of Object.keys(chosen)) askWhy(id);
      say("live", "on");
      render();
    });
  }
  source.onerror = () => say("no answer: does ferryctl web still run?", "lost");
}

document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (!document.hidden) return listen();
  hiding = setTimeout(() => {
    if (source) source.close();
    source = null;
    say("paused", "");
  }, kHiddenMs);
});
window.addEventListener("resize", render);
document.getElementById("legend").append(...kKinds.filter((kind) => kind !== "unknown").map((kind) =>
  element("li", {}, element("i", {class: "k-" + kind}), kKindText[kind])));
listen();
