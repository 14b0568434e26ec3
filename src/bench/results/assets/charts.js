// The charts. They are made anew when filter, theme or paper change: there are few, and nothing moves.
const charts = new Map();
const smallestError = 1e-6; // where smaller errors, and none, stand on a logarithmic axis
const superscript = (power) => "10" + (power < 0 ? "⁻" : "") + [...String(Math.abs(power))].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
const powerOfTen = (value) => {
  const power = Math.round(Math.log10(value));
  return Math.abs(10 ** power - value) < value * 1e-6 ? power : null;
};

const draw = (name, height, config, label) => {
  const canvas = byId("chart-" + name);
  const box = byId("box-" + name);
  charts.get(name)?.destroy();
  charts.delete(name);
  box.querySelector(".empty")?.remove();
  canvas.hidden = !config;
  if (!config) {
    box.style.height = "auto";
    box.append(el("p", { class: "empty" }, label));
    return;
  }
  box.style.height = height + "px";
  canvas.setAttribute("aria-label", label);
  charts.set(name, new Chart(canvas, config));
};

const axisStyle = (title, more = {}) => ({
  title: { display: Boolean(title), text: title, color: cssColour("--soft"), font: { size: 12 } },
  grid: { color: cssColour("--hair"), drawBorder: false, drawTicks: false },
  ticks: { color: cssColour("--soft"), padding: 8, font: { size: 12 } },
  ...more,
});

const commonOptions = () => ({
  responsive: true,
  maintainAspectRatio: false,
  animation: false,
  plugins: {
    legend: { display: false },
    tooltip: {
      backgroundColor: cssColour("--ink"), titleColor: cssColour("--paper"), bodyColor: cssColour("--paper"),
      padding: 10, cornerRadius: 3, displayColors: false,
    },
  },
});

// The names of schemes beside their points, unless that would cover another name.
const pointLabels = {
  id: "pointLabels",
  afterDatasetsDraw(chart) {
    const { ctx, chartArea } = chart;
    const taken = [];
    ctx.save();
    ctx.font = "600 12px " + Chart.defaults.font.family;
    ctx.textBaseline = "middle";
    chart.data.datasets.forEach((set, index) => {
      if (!set.labelled) return;
      chart.getDatasetMeta(index).data.forEach((point, i) => {
        const text = shorten(set.data[i].label, 24);
        const width = ctx.measureText(text).width;
        const right = point.x + 11 + width < chartArea.right;
        for (const shift of [0, 14, -14]) {
          const box = { x: right ? point.x + 11 : point.x - 11 - width, y: point.y + shift, width };
          if (box.y < chartArea.top + 6 || box.y > chartArea.bottom - 6) continue;
          if (taken.some((t) => Math.abs(t.y - box.y) < 13 && t.x < box.x + width && box.x < t.x + t.width)) continue;
          taken.push(box);
          ctx.lineWidth = 4;
          ctx.strokeStyle = cssColour("--paper");
          ctx.strokeText(text, box.x, box.y);
          ctx.fillStyle = set.borderColor;
          ctx.fillText(text, box.x, box.y);
          break;
        }
      });
    });
    ctx.restore();
  },
};

const lineAtOne = {
  id: "lineAtOne",
  afterDatasetsDraw({ ctx, chartArea, scales }) {
    const x = scales.x.getPixelForValue(1);
    if (x < chartArea.left || x > chartArea.right) return;
    ctx.save();
    ctx.strokeStyle = cssColour("--ink");
    ctx.setLineDash([2, 3]);
    ctx.beginPath();
    ctx.moveTo(x, chartArea.top);
    ctx.lineTo(x, chartArea.bottom);
    ctx.stroke();
    ctx.restore();
  },
};

const modelKey = (row) => JSON.stringify([row.name, row.batch_size, row.mode]);

const frontPoints = (chosen) => {
  const usable = (chosen === "all" ? shownRows() : shownRows().filter((row) => modelKey(row) === chosen)).filter(
    (row) => isNumber(row.cosine) && (chosen === "all" ? isNumber(row.speedup) && row.speedup > 0 : isNumber(row.abs_latency)));
  return usable.map((row) => ({
    x: chosen === "all" ? 1 / row.speedup : row.abs_latency,
    y: Math.max(1 - row.cosine, smallestError),
    label: row.scheme, row,
  }));
};

const schemeMeans = (points) =>
  schemeNames.map((scheme) => ({ scheme, of: points.filter((point) => point.label === scheme && holds(point.row)) }))
    .filter(({ of }) => of.length > 0)
    .map(({ scheme, of }) => ({
      x: geometricMean(of.map((point) => point.x)), y: geometricMean(of.map((point) => point.y)), label: scheme, count: of.length,
    }));

const pointTooltip = (all) => ({
  title: (items) => (items[0].raw.row ? shorten(items[0].raw.row.name, 60) : visible(items[0].raw.label)),
  label: ({ raw }) => [
    (raw.row ? visible(raw.label) + ", batch " + raw.row.batch_size : "mean of " + raw.count + " results"),
    all ? raw.x.toFixed(3) + " of the baseline's time" : milliseconds(raw.x) + " ms",
    raw.row ? "cosine " + fixed(raw.row.cosine, 6) : "error " + errorText(raw.y),
    ...(raw.row && !holds(raw.row) ? [raw.row.accuracy] : []),
  ],
});

const drawFront = () => {
  const chosen = byId("front-model").value;
  const all = chosen === "all";
  const points = frontPoints(chosen);
  const large = all ? schemeMeans(points) : points.filter((point) => holds(point.row));
  const front = paretoFront(large);
  // One point makes no line.
  byId("front-hint").textContent = (all ? "Small marks are single results, large ones each scheme's geometric mean. " : "") +
    "Left is faster, up is closer to fp32." + (front.length > 1 ? " The line joins what nothing beats in both." : "") +
    (all ? "" : " Hollow marks miss their accuracy and do not count.");
  const datasets = schemeNames.flatMap((scheme) => {
    const colour = colourOf(scheme);
    const style = { borderColor: colour, backgroundColor: colour, pointStyle: shapeOf(scheme), borderWidth: 2 };
    const small = points.filter((point) => point.label === scheme && (all || !holds(point.row)));
    return [
      { label: scheme, data: large.filter((point) => point.label === scheme), ...style, pointRadius: 7, pointHoverRadius: 9, labelled: true },
      { label: scheme, data: small, ...style, backgroundColor: all ? colour + "66" : "transparent", borderColor: all ? colour + "66" : colour,
        borderWidth: 1, pointRadius: all ? 3 : 6 },
    ];
  });
  datasets.push({ data: front, showLine: true, stepped: "before", pointRadius: 0, pointHitRadius: 0, borderColor: cssColour("--ink"), borderWidth: 1 });
  const options = commonOptions();
  options.plugins.tooltip.callbacks = pointTooltip(all);
  options.plugins.tooltip.filter = (item) => item.datasetIndex < datasets.length - 1;
  const times = points.map((point) => point.x);
  options.scales = {
    x: axisStyle(all ? "time, as a share of the baseline's" : "median time, ms", { suggestedMin: 0.92 * Math.min(...times), suggestedMax: 1.08 * Math.max(...times) }),
    y: axisStyle("cosine to fp32", { type: "logarithmic", reverse: true }),
  };
  const lowest = Math.min(...points.map((point) => point.y));
  const highest = Math.max(...points.map((point) => point.y));
  options.scales.y.min = Math.max(10 ** Math.floor(Math.log10(lowest) - 0.2), smallestError / 2);
  options.scales.y.max = 10 ** Math.ceil(Math.log10(highest) + 0.05);
  options.scales.y.ticks.callback = (value) => {
    const power = powerOfTen(value);
    if (power === null) return null;
    return (value <= smallestError * 1.01 ? "≥ " : "") + (1 - value).toFixed(Math.max(0, -power));
  };
  const names = front.map((point) => visible(point.label)).join(", ");
  draw("front", 400, points.length ? { type: "scatter", data: { datasets }, options, plugins: [pointLabels] } : null,
    points.length ? "Scatter chart of time against cosine. On the Pareto front: " + names : "No result shown has both a time and a cosine.");
};

// One bar a scheme for each model, in each mode; `value` makes a number of the rows of one model and scheme, or null.
const drawBars = (name, list, value, options) => {
  const modes = distinct(list.map((row) => row.mode)).length;
  const nameOf = (row) => (modes > 1 ? row.name + " · " + row.mode : row.name);
  const models = distinct(list.map(nameOf)).filter((model) => list.some((row) => nameOf(row) === model && value([row]) !== null));
  const worthwhile = options.leaveOut ? (row) => value([row]) !== null && !options.leaveOut(row) : (row) => value([row]) !== null;
  const schemes = schemeNames.filter((scheme) => list.some((row) => row.scheme === scheme && worthwhile(row)));
  const datasets = schemes.map((scheme) => {
    const cells = models.map((model) => list.filter((row) => nameOf(row) === model && row.scheme === scheme));
    const colour = colourOf(scheme);
    return {
      label: visible(scheme), data: cells.map((of) => value(of)), borderColor: colour, borderWidth: 1, borderSkipped: false,
      backgroundColor: cells.map((of) => (of.every(holds) ? colour : "transparent")), barPercentage: 0.84, categoryPercentage: 0.8,
    };
  });
  const labels = models.map((model) => shorten(model, window.innerWidth < 640 ? 16 : 24));
  const height = 62 + models.length * Math.max(30, schemes.length * 12 + 12);
  const full = { ...commonOptions(), indexAxis: "y", ...options };
  full.plugins.tooltip.callbacks = {
    title: (items) => shorten(models[items[0].dataIndex], 60),
    label: (item) => item.dataset.label + ": " + options.text(item.raw),
  };
  // Where one bar is far longer than the others, these would vanish.
  const values = datasets.flatMap((set) => set.data).filter((one) => isNumber(one) && one > 0).sort((a, b) => a - b);
  const logarithmic = values.length > 1 && values[values.length - 1] > 20 * values[Math.floor((values.length - 1) / 2)];
  const scale = axisStyle(options.axis + (logarithmic ? ", logarithmic" : ""), logarithmic
    ? { type: "logarithmic", min: 10 ** Math.floor(Math.log10(values[0]) - 0.5) } : { beginAtZero: true });
  if (logarithmic) scale.ticks.callback = (value) => (powerOfTen(value) === null ? null : String(value));
  full.scales = { x: scale, y: axisStyle("", { grid: { display: false, drawBorder: false } }) };
  draw(name, height, models.length ? { type: "bar", data: { labels, datasets }, options: full, plugins: options.extra || [] } : null,
    models.length ? options.axis + " of " + models.length + " models; the table below has the numbers" : "No result shown has this number.");
};

const drawSpeed = () => {
  const list = shownRows();
  const batches = distinct(list.map((row) => row.batch_size)).length;
  byId("speed-hint").textContent = "Times faster than the baseline; left of the dotted line is slower." +
    (batches > 1 ? " Geometric mean over the batch sizes." : "") + " Hollow bars miss their accuracy.";
  // The baseline itself is the dotted line.
  const mean = (of) => {
    const usable = of.filter((row) => isNumber(row.speedup) && row.speedup > 0).map((row) => row.speedup);
    return usable.length ? geometricMean(usable) : null;
  };
  drawBars("speed", list, mean, { axis: "speed-up", text: (value) => fixed(value, 3, "×"), extra: [lineAtOne],
    leaveOut: (row) => row.speedup === 1 });
};

const drawSize = () => {
  const size = (of) => of.map((row) => row.bytes).filter(isNumber).map((bytes) => bytes / 1e6)[0] ?? null;
  drawBars("size", shownRows(), size, { axis: "MB", text: (value) => fixed(value, 2, " MB") });
};

const drawLayerBars = (name, layers, key, scale, text) => {
  const known = layers.filter((layer) => isNumber(layer[key]));
  const options = { ...commonOptions(), indexAxis: "y" };
  options.plugins.tooltip.callbacks = {
    title: (items) => shorten(known[items[0].dataIndex].layer, 80),
    label: (item) => visible(known[item.dataIndex].scheme) + ": " + text(known[item.dataIndex][key]),
  };
  options.scales = { x: axisStyle("", scale), y: axisStyle("", { grid: { display: false, drawBorder: false } }) };
  options.scales.x.ticks.maxTicksLimit = 6;
  if (scale.type === "logarithmic") {
    options.scales.x.ticks.callback = (value) => (powerOfTen(value) === null ? null : superscript(powerOfTen(value)));
    options.scales.x.ticks.maxTicksLimit = 60;
    const smallest = Math.min(...known.map((layer) => Math.max(layer[key], smallestError)));
    options.scales.x.min = 10 ** (Math.ceil(Math.log10(smallest)) - 1);
    options.scales.x.max = 10 ** Math.ceil(Math.log10(Math.max(smallest, ...known.map((layer) => layer[key]))) + 0.01);
  }
  const colours = known.map((layer) => colourOf(layer.scheme));
  const values = known.map((layer) => (scale.type === "logarithmic" ? Math.max(layer[key], smallestError) : layer[key]));
  const dataset = { data: values, backgroundColor: colours, barPercentage: 0.72, categoryPercentage: 1 };
  const labels = known.map((layer) => shorten(layer.layer, window.innerWidth < 640 ? 16 : 26));
  draw(name, 44 + known.length * 21, known.length ? { type: "bar", data: { labels, datasets: [dataset] }, options } : null,
    known.length ? known.length + " layers, the costliest first; the table below has the numbers" : "Not measured.");
};
