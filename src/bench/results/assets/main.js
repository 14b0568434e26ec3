// Controls, theme and paper.
const option = (value, text) => el("option", { value }, text);
const fillSelect = (id, options) => byId(id).replaceChildren(...options);
const rowTitle = (row) => [shorten(row.name, 40), "batch " + row.batch_size, shorten(row.scheme, 24)].join(" · ");

const drawFiltered = () => {
  drawFront();
  drawSpeed();
  drawSize();
  drawTable();
};
const drawAll = () => {
  Chart.defaults.font.family = cssColour("--sans");
  drawFiltered();
  drawDetail();
};

const setTheme = () => {
  const wanted = document.querySelector("input[name=theme]:checked").value;
  const dark = wanted === "dark" || (wanted === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
};
const remember = (value) => {
  try { localStorage.setItem("halftone-theme", value); } catch { /* files may have no storage */ }
};
const recall = () => {
  try { return localStorage.getItem("halftone-theme"); } catch { return null; }
};

const setUpControls = () => {
  const everything = (title) => option("all", title);
  const batches = distinct(rows.map((row) => row.batch_size)).sort((a, b) => a - b);
  fillSelect("batch", [everything("all"), ...batches.map((batch) => option(String(batch), String(batch)))]);
  fillSelect("mode", [everything("all"), ...distinct(rows.map((row) => row.mode)).map((mode) => option(mode, visible(mode)))]);
  const models = new Map(rows.map((row) => [modelKey(row), row]));
  const modes = distinct(rows.map((row) => row.mode)).length;
  fillSelect("front-model", [everything("all models"), ...[...models].map(([key, row]) =>
    option(key, shorten(row.name, 40) + " · batch " + row.batch_size + (modes > 1 ? " · " + visible(row.mode) : "")))]);
  fillSelect("sort", [option("", "order of the run"), ...resultColumns.flatMap((column) =>
    [option(column.key + "+", column.title + " ↑"), option(column.key + "-", column.title + " ↓")])]);
  const detailed = rows.filter((row) => (row.layers || []).length || (row.plan || []).length);
  fillSelect("detail", detailed.map((row) => option(String(row.index), rowTitle(row))));
  byId("layers").hidden = detailed.length === 0;
  const planned = detailed.find((row) => (row.plan || []).length);
  if (planned) byId("detail").value = String(planned.index);
  for (const scheme of schemeNames) {
    const box = el("input", { type: "checkbox", name: "scheme", value: scheme, checked: "" });
    box.style.setProperty("--c", `var(${colourName(scheme)})`);
    box.addEventListener("change", () => {
      state.schemes[box.checked ? "add" : "delete"](scheme);
      drawFiltered();
    });
    byId("schemes").append(el("label", {}, box, el("span", {}, ...textNodes(scheme || "(none)"))));
  }
};

const listen = () => {
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("search").addEventListener("input", (event) => { state.search = event.target.value; drawFiltered(); });
  for (const key of ["batch", "mode", "passing"]) {
    byId(key).addEventListener("change", (event) => { state[key] = event.target.value; drawFiltered(); });
  }
  byId("front-model").addEventListener("change", drawFront);
  byId("detail").addEventListener("change", drawDetail);
  byId("sort").addEventListener("change", (event) => sortBy(event.target.value.slice(0, -1), event.target.value.endsWith("-"), false));
  byId("theme").addEventListener("change", (event) => { remember(event.target.value); setTheme(); drawAll(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { setTheme(); drawAll(); });
  // Paper is white, and narrower than most windows.
  addEventListener("beforeprint", () => {
    document.documentElement.dataset.theme = "light";
    document.body.style.width = "680px";
    drawAll();
  });
  addEventListener("afterprint", () => {
    document.body.style.width = "";
    setTheme();
    drawAll();
  });
};

const stored = [...document.querySelectorAll("input[name=theme]")].find((input) => input.value === recall());
if (stored) stored.checked = true;
setTheme();
setUpControls();
listen();
drawMachine();
drawSummary();
drawAll();
