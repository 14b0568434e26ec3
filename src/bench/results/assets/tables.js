// Summary, tables and lists.
const cell = (column, row) => {
  const text = column.text ? column.text(row) : String(row[column.key] ?? "");
  const classes = [column.kind || "", text === "–" || text === "" ? "void" : ""].join(" ").trim();
  const node = el("td", { class: classes || null, "data-label": column.title });
  // One child, so that a phone's card can set it beside its label.
  node.append(el("span", {}, ...(column.nodes ? column.nodes(row, text) : textNodes(text))));
  return node;
};

const fillTable = (table, columns, list, sortable) => {
  const head = el("tr", {}, ...columns.map((column) => {
    const node = el("th", { scope: "col", class: column.kind === "n" ? "n" : null });
    if (!sortable) return node.append(column.title), node;
    if (state.sort === column.key) node.setAttribute("aria-sort", state.down ? "descending" : "ascending");
    const button = el("button", { type: "button", "data-key": column.key }, column.title);
    button.addEventListener("click", () => sortBy(column.key, state.sort === column.key ? !state.down : false, true));
    return node.append(button), node;
  }));
  // A reason is a sentence or more: under the row, as wide as the table.
  const body = list.flatMap((row) => {
    const line = el("tr", { "data-index": row.index, class: sortable && row.error ? "noted" : null }, ...columns.map((column) => cell(column, row)));
    if (!sortable || !row.error) return [line];
    return [line, el("tr", { class: "note" }, el("td", { colspan: columns.length }, el("span", {}, ...textNodes(row.error))))];
  });
  table.replaceChildren(el("thead", {}, head), el("tbody", {}, ...body));
};

const schemeNodes = (row, text) => [swatch(text), ...textNodes(text)];
// As describe_bench() writes it: with the farther end of the 95 % interval, "±?" where there were too few rounds for one.
const speedText = (row) => {
  if (!isNumber(row.speedup) || !isNumber(row.speedup_low)) return fixed(row.speedup, 3, "×");
  const ends = isNumber(row.speedup_high) ? fixed(Math.max(row.speedup - row.speedup_low, row.speedup_high - row.speedup), 2) : "?";
  return fixed(row.speedup, 2, "×") + " ±" + ends;
};
const accuracyText = (row) => (row.accuracy === "pass_due_to_skip" ? "skipped" : row.accuracy || "–");
const resultColumns = [
  { key: "name", title: "Model", kind: "name" },
  { key: "batch_size", title: "Batch", kind: "n" },
  ...(distinct(rows.map((row) => row.mode)).length > 1 ? [{ key: "mode", title: "Mode" }] : []),
  { key: "scheme", title: "Scheme", kind: "scheme", nodes: schemeNodes },
  { key: "accuracy", title: "Accuracy", text: accuracyText,
    nodes: (row, text) => [el("span", { class: !row.accuracy || row.accuracy === "pass_due_to_skip" ? null : holds(row) ? "good" : "bad" }, text)] },
  { key: "speedup", title: "Speed-up", kind: "n", text: speedText },
  { key: "rounds", title: "Rounds", kind: "n", text: (row) => fixed(row.rounds, 0) },
  { key: "abs_latency", title: "Time, ms", kind: "n", text: (row) => milliseconds(row.abs_latency) },
  { key: "cosine", title: "Cosine", kind: "n", text: (row) => fixed(row.cosine, 5) },
  { key: "bytes", title: "Size, MB", kind: "n", text: (row) => megabytes(row.bytes) },
  { key: "compression_ratio", title: "Memory ratio", kind: "n", text: (row) => fixed(row.compression_ratio, 2) },
  { key: "compilation_latency", title: "Compile, s", kind: "n", text: (row) => fixed(row.compilation_latency, 2) },
  // Usually there are none.
  ...(rows.some((row) => row.unsupported_ops > 0)
    ? [{ key: "unsupported_ops", title: "Left to ATen", kind: "n", text: (row) => fixed(row.unsupported_ops, 0) }] : []),
];

const compare = (a, b) => {
  if (typeof a === "string" && typeof b === "string") return a < b ? -1 : a > b ? 1 : 0;
  return a - b;
};
const sortedRows = () => {
  const list = shownRows();
  if (!state.sort) return list;
  const numeric = rows.some((row) => isNumber(row[state.sort]));
  const missing = (row) => row[state.sort] === undefined || (numeric && !isNumber(row[state.sort]));
  const known = list.filter((row) => !missing(row)).sort((a, b) => compare(a[state.sort], b[state.sort]) || a.index - b.index);
  if (state.down) known.reverse();
  return [...known, ...list.filter(missing)];
};
const sortBy = (key, down, focus) => {
  state.sort = key;
  state.down = down;
  byId("sort").value = key + (down ? "-" : "+");
  drawTable();
  if (focus) [...document.querySelectorAll("#rows th button")].find((button) => button.dataset.key === key)?.focus();
};
const drawTable = () => {
  const list = sortedRows();
  fillTable(byId("rows"), resultColumns, list, true);
  const timed = rows.map((row) => row.rounds).filter(isNumber);
  byId("table-hint").textContent = (timed.length ? "Speed-up: the median of the rounds, ± the 95 % interval. " : "") +
    (rows.some((row) => row.unsupported_ops > 0) ? "Left to ATen: operators that the backend has no kernel for." : "");
  byId("shown").textContent = (list.length === rows.length ? "" : list.length + " of ") + count(rows.length, "result");
};

const figure = (value, text) => el("p", { class: "figure" }, el("b", {}, value), el("span", {}, text));
const drawSummary = () => {
  const skipped = rows.filter((row) => row.accuracy === "pass_due_to_skip").length;
  const looked = rows.filter((row) => row.accuracy && row.accuracy !== "pass_due_to_skip");
  const nodes = [figure(String(distinct(rows.map((row) => row.name)).length), "models, " + count(rows.length, "result"))];
  if (looked.length) nodes.push(figure(looked.filter(holds).length + " / " + looked.length, "results hold their accuracy" + (skipped ? ", " + skipped + " skipped" : "")));
  const modes = distinct(rows.map((row) => row.mode)).length;
  for (const mean of [...(data.means || [])].sort((a, b) => b.speedup - a.speedup)) {
    if (!isNumber(mean.speedup) || baselines.has(mean.scheme)) continue;
    const left = mean.left_out ? ", " + mean.left_out + " left out" : "";
    nodes.push(figure(fixed(mean.speedup, 2, "×"),
      visible(mean.scheme) + (modes > 1 ? ", " + visible(mean.mode) : "") + ", geometric mean of " + mean.rows + left));
  }
  byId("summary").replaceChildren(...nodes);
};

const facts = () => {
  const machine = data.machine;
  const list = [["CPU", machine.cpu], ["Instruction set", machine.isa], ["Threads", machine.threads || ""], ["System", machine.os],
    ...Object.entries(machine.versions || {}), ["Date", machine.date]];
  return list.filter(([, value]) => value !== undefined && value !== "");
};
const drawMachine = () => {
  const machine = data.machine;
  byId("title").replaceChildren(...textNodes(data.title || "Benchmark results"));
  const parts = [machine.cpu, machine.isa, machine.threads ? machine.threads + (machine.threads === 1 ? " thread" : " threads") : "", machine.date];
  byId("machine-line").replaceChildren(...textNodes(parts.filter(Boolean).join(" · ")));
  byId("machine").replaceChildren(...facts().flatMap(([name, value]) => [el("dt", {}, ...textNodes(name)), el("dd", {}, ...textNodes(String(value)))]));
};

const layerColumns = [
  { key: "layer", title: "Layer", kind: "name" },
  { key: "kind", title: "Kind" },
  { key: "scheme", title: "Scheme", kind: "scheme", nodes: schemeNodes },
  { key: "ms", title: "Time, ms", kind: "n", text: (layer) => milliseconds(layer.ms) },
  { key: "share", title: "Share", kind: "n", text: (layer) => fixed(isNumber(layer.share) ? layer.share * 100 : layer.share, 1, " %") },
  { key: "error", title: "Error", kind: "n", text: (layer) => errorText(layer.error) },
  { key: "reason", title: "Reason", kind: "wrap" },
];
const candidateNodes = (choice) => [el("ul", { class: "candidates" }, ...choice.candidates.map((candidate) => {
  const numbers = (isNumber(candidate.ms) ? " " + milliseconds(candidate.ms) + " ms" : "") + (isNumber(candidate.error) ? ", error " + errorText(candidate.error) : "");
  const note = candidate.note ? [el("span", { class: "note" }, ...textNodes(candidate.note))] : [];
  return el("li", { class: candidate.scheme === choice.choice ? "chosen" : null }, ...textNodes(candidate.scheme), numbers, ...note);
}))];
const planColumns = [
  { key: "layer", title: "Layer", kind: "name" },
  { key: "choice", title: "Choice", kind: "scheme", nodes: schemeNodes },
  { key: "reason", title: "Reason", kind: "wrap" },
  { key: "candidates", title: "Candidates", text: (choice) => (choice.candidates.length ? "yes" : "–"), nodes: candidateNodes },
];

const chartedLayers = 24;
const drawDetail = () => {
  const row = rows[Number(byId("detail").value)];
  const layers = [...(row?.layers || [])].sort((a, b) => (b.ms ?? -1) - (a.ms ?? -1));
  const plan = row?.plan || [];
  byId("layers-hint").textContent = layers.length > chartedLayers
    ? "The charts show the " + chartedLayers + " costliest of " + layers.length + " layers, the table all of them."
    : "The costliest layers first.";
  for (const id of ["layers-hint", "layer-charts", "layer-rows"]) byId(id).hidden = layers.length === 0;
  drawLayerBars("layer-time", layers.slice(0, chartedLayers), "ms", { beginAtZero: true }, (value) => milliseconds(value) + " ms");
  drawLayerBars("layer-error", layers.slice(0, chartedLayers), "error", { type: "logarithmic" }, errorText);
  fillTable(byId("layer-rows"), layerColumns, layers, false);
  for (const id of ["h-plan", "plan-hint", "plan-rows"]) byId(id).hidden = plan.length === 0;
  byId("plan-hint").textContent = "What was tried for each layer, and why one of it was kept.";
  fillTable(byId("plan-rows"), planColumns, plan, false);
};
