// ---- The state, as the events tell it ----

// Objects without a prototype: names of jobs and hosts are keys in them, whatever they are.
const bare = () => Object.create(null);
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

// `target` after a JSON Merge Patch (RFC 7386).
function patched(target, change) {
  if (!isObject(change)) return change;
  const made = isObject(target) ? target : bare();
  for (const key of Object.keys(change)) {
    if (change[key] === null) delete made[key];
    else made[key] = patched(made[key], change[key]);
  }
  return made;
}

const kMinute = 60000;
const kMostRows = 32;  // of ranks in a timeline
const model = {
  state: bare(),
  now: 0,  // the server's time of the last event
  heard: 0,  // and this browser's
  points: [],  // {t, paths, counts by job}
  spans: bare(),  // by job, then by rank: [[t, kind], ...]
};

// What a rank does, in one word that has a colour.
const kKinds = ["computes", "waits", "stuck", "joins", "stopped", "left", "died", "unknown"];
const kKindText = {
  computes: "computes", waits: "waits", stuck: "waits long", joins: "joins", stopped: "stopped",
  left: "left", died: "died", unknown: "unknown",
};
function kindOf(rank) {
  if (rank.deadlock || (rank.state === "waits" && rank.since)) return "stuck";
  if (rank.state === "unreachable") return "died";
  if (rank.state === "absent") return "joins";
  return kKinds.includes(rank.state) ? rank.state : "unknown";
}

function countKinds(ranks) {
  const counts = bare();
  for (const rank of ranks) {
    const kind = kindOf(rank);
    counts[kind] = (counts[kind] || 0) + 1;
  }
  return counts;
}

// Notes the state at this time for the pictures of the last minute.
function note(t) {
  const point = {t, paths: bare(), counts: bare(), rates: bare()};
  for (const [path, sum] of Object.entries(model.state.paths || {})) point.paths[path] = sum.rate;
  for (const [id, job] of Object.entries(model.state.jobs || {})) {
    point.counts[id] = countKinds(Object.values(job.ranks));
    point.rates[id] = Object.values(job.rates || {}).reduce((sum, rate) => sum + rate, 0);
    if (Object.keys(job.ranks).length > kMostRows) {  // its counts are shown
      delete model.spans[id];
      continue;
    }
    const spans = model.spans[id] || (model.spans[id] = bare());
    for (const [number, rank] of Object.entries(job.ranks)) {
      const kind = kindOf(rank);
      const span = spans[number] || (spans[number] = []);
      if (!span.length || span[span.length - 1][1] !== kind) span.push([t, kind]);
      while (span.length > 1 && span[1][0] < t - kMinute) span.shift();
    }
  }
  for (const id of Object.keys(model.spans)) {
    if (!(id in model.state.jobs)) delete model.spans[id];
  }
  model.points.push(point);
  while (model.points.length > 1 && model.points[1].t < t - kMinute) model.points.shift();
}

function take(kind, data) {
  if (kind === "snapshot") {
    model.state = patched(bare(), data.state);
    model.points = [];
    model.spans = bare();
  } else {
    model.state = patched(model.state, data.change);
  }
  model.now = data.t;
  model.heard = Date.now();
  note(data.t);
}

// ---- Words ----

function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (bytes >= 1000 && unit + 1 < units.length) {
    bytes /= 1024;
    ++unit;
  }
  return (bytes >= 99.5 || Number.isInteger(bytes) ? Math.round(bytes) : bytes.toFixed(bytes < 10 ? 2 : 1)) + " " + units[unit];
}
const rateText = (rate) => (rate ? bytesText(rate) + "/s" : "0");

function durationText(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + (s % 60) + " s";
  if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor((s % 3600) / 60) + " min";
  return Math.floor(s / 86400) + " d " + Math.floor((s % 86400) / 3600) + " h";
}
const ageOf = (time) => model.now + (Date.now() - model.heard) - time;
// Those of an object, "node2" before "node10".
const sorted = (object) => Object.entries(object || {}).sort(([a], [b]) => a.localeCompare(b, "en", {numeric: true}));
const userText = (uid) => (model.state.names || {})[uid] || String(uid);
const counted = (n, one, many) => n + " " + (n === 1 ? one : many || one + "s");

// ---- Elements. Text is only ever set as text, so that no name can be HTML. ----

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "text") made.textContent = value;
    else if (key === "click") made.addEventListener("click", value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}
function drawing(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "text") made.textContent = value;
    else if (key === "click") made.addEventListener("click", value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}
const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
