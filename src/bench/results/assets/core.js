// The data, what is chosen of it, and how values are written. Text only ever becomes text nodes: no markup is made of data.
const data = JSON.parse(document.getElementById("results").textContent);
const rows = data.rows.map((row, index) => ({ ...row, index }));
const byId = (id) => document.getElementById(id);

const el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
};

// Characters that hide, move or turn text, spelled out. The same list as terminal_text() in text.cpp.
const unsafe = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;
const spell = (c) => {
  const simple = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }[c];
  if (simple) return simple;
  const code = c.codePointAt(0);
  if (code < 0x100) return "\\x" + code.toString(16).padStart(2, "0");
  return code < 0x10000 ? "\\u" + code.toString(16).padStart(4, "0") : "\\U" + code.toString(16).padStart(8, "0");
};
const visible = (text) => String(text).replace(unsafe, spell);

// The same as nodes, with what was spelled out set apart from text that only looks like it.
const textNodes = (text) => {
  const nodes = [];
  let from = 0;
  for (const match of String(text).matchAll(unsafe)) {
    if (match.index > from) nodes.push(text.slice(from, match.index));
    nodes.push(el("span", { class: "esc" }, spell(match[0])));
    from = match.index + match[0].length;
  }
  nodes.push(text.slice(from));
  return nodes;
};

const shorten = (text, longest) => {
  const characters = [...visible(text)];
  if (characters.length <= longest) return characters.join("");
  const head = Math.ceil((longest - 1) / 2);
  return characters.slice(0, head).join("") + "…" + characters.slice(characters.length - (longest - 1 - head)).join("");
};

// Numbers that JSON cannot write come as the strings "NaN" and "Infinity".
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const fixed = (value, digits, unit = "") =>
  value === undefined ? "–" : isNumber(value) ? value.toFixed(digits) + unit : String(value);
const milliseconds = (value) => fixed(value, isNumber(value) && value < 1 ? 4 : isNumber(value) && value < 100 ? 2 : 1);
const megabytes = (value) => fixed(isNumber(value) ? value / 1e6 : value, 2);
const errorText = (value) => (isNumber(value) ? (value === 0 ? "0" : value.toExponential(1)) : fixed(value, 0));

const count = (number, word) => number + " " + word + (number === 1 ? "" : "s");
const holds = (row) => !row.accuracy || row.accuracy.startsWith("pass");
const geometricMean = (values) => Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
const distinct = (values) => [...new Set(values)];

const baselines = new Set(["noquant", "fp32", "eager", ""]);
const schemeNames = distinct(rows.map((row) => row.scheme)).sort((a, b) => baselines.has(b) - baselines.has(a));
// A layer's scheme has the short name of what the whole model may have too: one colour for both.
const longNames = new Map([["int8dq", "int8dynamic"], ["int8wo", "int8weightonly"], ["int4wo", "int4weightonly"], ["fp32", "noquant"]]);
const colourNames = new Map();
for (const scheme of [...schemeNames, ...rows.flatMap((row) => [...(row.layers || []).map((layer) => layer.scheme), ...(row.plan || []).map((choice) => choice.choice)])]) {
  const name = longNames.get(scheme) ?? scheme;
  const used = [...colourNames.values()].filter((colour) => colour !== "--base").length;
  if (!colourNames.has(name)) colourNames.set(name, baselines.has(name) ? "--base" : "--s" + (used % 7));
}
const colourName = (scheme) => colourNames.get(longNames.get(scheme) ?? scheme) || "--base";
const shapes = ["circle", "triangle", "rect", "rectRot", "star", "crossRot", "rectRounded", "cross"];
const shapeOf = (scheme) => shapes[Math.max(0, schemeNames.indexOf(scheme)) % shapes.length];
const cssColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colourOf = (scheme) => cssColour(colourName(scheme));
const swatch = (scheme) => {
  const node = el("span", { class: "swatch", "aria-hidden": "true" });
  node.style.setProperty("--c", `var(${colourName(scheme)})`);
  return node;
};

const state = { search: "", schemes: new Set(schemeNames), batch: "all", mode: "all", passing: "all", sort: "", down: false };

const matches = (row) => {
  if (!state.schemes.has(row.scheme)) return false;
  if (state.batch !== "all" && String(row.batch_size) !== state.batch) return false;
  if (state.mode !== "all" && row.mode !== state.mode) return false;
  if (state.passing !== "all" && holds(row) !== (state.passing === "pass")) return false;
  const wanted = state.search.toLowerCase();
  return !wanted || [row.name, row.scheme, row.accuracy, row.error].some((text) => String(text || "").toLowerCase().includes(wanted));
};
const shownRows = () => rows.filter(matches);

// What no other has both a smaller time and a smaller error than, from left to right.
const paretoFront = (points) => {
  const front = [];
  for (const point of [...points].sort((a, b) => a.x - b.x || a.y - b.y)) {
    if (front.length === 0 || point.y < front[front.length - 1].y) front.push(point);
  }
  return front;
};
