#!/usr/bin/env python3
"""browser_test.py TOOL PAYLOADS: the report in headless Chromium. Clicks, sorts, reads the numbers shown and compares them with the
JSON; no console message and no request but for the file itself may come. Leaves with 77 (skipped) where there is no Chromium."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import devtools
import make_sample

TOOL, PAYLOADS = (sys.argv + ["", ""])[1:3]
CELLS = """[...document.querySelectorAll("#rows tbody tr[data-index]")].map((row) => [...row.cells].map((cell) => cell.innerText))"""
INDICES = """[...document.querySelectorAll("#rows tbody tr[data-index]")].map((row) => Number(row.dataset.index))"""


def shown_numbers(row):
    """The row's cells as the report must write them."""
    def fixed(key, digits, unit="", factor=1):
        return f"{row[key] * factor:.{digits}f}{unit}" if key in row else "–"
    speed = fixed("speedup", 3, "×")
    if "speedup_low" in row:
        ends = max(row["speedup"] - row["speedup_low"], row["speedup_high"] - row["speedup"]) if "speedup_high" in row else None
        speed = f"{row['speedup']:.2f}× ±" + ("?" if ends is None else f"{ends:.2f}")
    time = row.get("abs_latency", 0)
    digits = 4 if time < 1 else 2 if time < 100 else 1
    return [row["name"], str(row["batch_size"]), row["scheme"], row.get("accuracy") or "–", speed, fixed("rounds", 0),
            fixed("abs_latency", digits), fixed("cosine", 5), fixed("bytes", 2, "", 1e-6),
            fixed("compression_ratio", 2), fixed("compilation_latency", 2), fixed("unsupported_ops", 0)]


def close(shown, wanted):
    """JavaScript and Python may round the last digit of a tie differently."""
    if shown == wanted:
        return True
    if " ±" in wanted:
        return shown.count(" ±") == 1 and all(map(close, shown.split(" ±"), wanted.split(" ±")))
    number = lambda text: float(text.rstrip("× %"))
    try:
        return abs(number(shown) - number(wanted)) <= 1.01 * 10 ** -len(wanted.rstrip("× %").partition(".")[2])
    except ValueError:
        return False


# Control and format characters of Unicode, and line ends, as the report has to spell them out.
UNSAFE = {chr(c) for first, last in ((0, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x61C, 0x61C), (0x200B, 0x200F), (0x2028, 0x202E),
                                     (0x2060, 0x206F), (0xFEFF, 0xFEFF), (0xFFF9, 0xFFFB), (0xE0000, 0xE007F)) for c in range(first, last + 1)}


def spelled_out(text):
    simple = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    code = lambda c: f"\\x{ord(c):02x}" if ord(c) < 0x100 else f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}"
    return "".join(simple.get(c) or (code(c) if c in UNSAFE else c) for c in text)


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.sample = make_sample.sample()
        cls.page_file = cls.make("sample", cls.sample)
        cls.browser = devtools.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.folder.cleanup()

    @classmethod
    def make(cls, name, results):
        source, page = (pathlib.Path(cls.folder.name, name + end) for end in (".json", ".html"))
        source.write_text(json.dumps(results), encoding="utf-8")
        subprocess.run([TOOL, "html", str(source), str(page)], check=True, timeout=60)
        return page

    def open(self, page=None, width=1280, height=900, mobile=False):
        tab = self.browser.page()
        tab.viewport(width, height, 1, mobile)
        tab.prefer("light")
        tab.open(page or self.page_file)
        self.addCleanup(tab.call, "Page.close")
        self.addCleanup(tab.evaluate, "localStorage.clear()")  # where the theme is kept
        self.addCleanup(self.check_silence, tab, page or self.page_file)
        return tab

    def check_silence(self, tab, page):
        self.assertEqual(tab.problems(), [])
        self.assertEqual(set(tab.requests()), {page.resolve().as_uri()})

    def check_rows(self, tab, wanted):
        shown = tab.evaluate(CELLS)
        self.assertEqual(len(shown), len(wanted))
        for cells, row in zip(shown, wanted):
            cells = [cells[0].split("\n")[0], *cells[1:]]
            for cell, text in zip(cells, shown_numbers(row), strict=True):
                self.assertTrue(close(cell, text), f"{row['name']}: {cell!r} shown, {text!r} wanted")

    def test_numbers_are_those_of_the_json(self):
        tab = self.open()
        self.check_rows(tab, self.sample["rows"])
        self.assertEqual(tab.evaluate("document.getElementById('title').innerText"), make_sample.TITLE)
        self.assertIn("Sample CPU", tab.evaluate("document.getElementById('machine').innerText"))
        self.assertEqual(tab.evaluate("[...document.querySelectorAll('canvas')].filter((c) => c.width > 300 && c.height > 60).length"), 5)

    def test_click_on_a_scheme_filters_table_and_charts(self):
        tab = self.open()
        before = tab.evaluate("document.getElementById('chart-speed').toDataURL()")
        tab.click("#schemes input[value=int8dynamic]")
        wanted = [row for row in self.sample["rows"] if row["scheme"] != "int8dynamic"]
        self.check_rows(tab, wanted)
        self.assertEqual(tab.evaluate("document.getElementById('shown').innerText"), f"{len(wanted)} of {len(self.sample['rows'])} results")
        self.assertNotEqual(tab.evaluate("document.getElementById('chart-speed').toDataURL()"), before)
        tab.click("#schemes input[value=int8dynamic]")
        self.check_rows(tab, self.sample["rows"])
        self.assertEqual(tab.evaluate("document.getElementById('chart-speed').toDataURL()"), before)

    def test_search_and_selects_filter_together(self):
        tab = self.open()
        tab.type("#search", "RESNET")
        self.check_rows(tab, [row for row in self.sample["rows"] if row["name"] == "resnet50"])
        tab.select("#batch", "8")
        tab.select("#passing", "pass")
        self.check_rows(tab, [row for row in self.sample["rows"] if row["name"] == "resnet50" and row["batch_size"] == 8
                              and row["accuracy"] == "pass"])
        tab.select("#passing", "fail")
        tab.type("#search", "nothing like it")
        self.check_rows(tab, [])
        self.assertIn("No result shown", tab.evaluate("document.getElementById('box-front').innerText"))

    def test_click_on_a_heading_sorts(self):
        tab = self.open()
        rows = self.sample["rows"]
        for key in ("speedup", "cosine", "name"):
            known = sorted((i for i, row in enumerate(rows) if key in row), key=lambda i: (rows[i][key], i))
            missing = [i for i, row in enumerate(rows) if key not in row]
            tab.click(f"#rows th button[data-key={key}]")
            self.assertEqual(tab.evaluate(INDICES), known + missing)
            self.assertEqual(tab.evaluate("document.querySelector('#rows [aria-sort]').getAttribute('aria-sort')"), "ascending")
            tab.key("Enter", 13, "\r")  # the heading keeps the focus: the keyboard turns the order
            self.assertEqual(tab.evaluate(INDICES), known[::-1] + missing)

    def test_pareto_front_is_right(self):
        tab = self.open()
        rows = [row for row in self.sample["rows"] if row["name"] == "encoder" and row["batch_size"] == 1 and row["accuracy"] == "pass"]
        tab.select("#front-model", json.dumps(["encoder", 1, "inference"], separators=(",", ":")))
        better = lambda a, b: a["abs_latency"] <= b["abs_latency"] and a["cosine"] > b["cosine"] or (
            a["abs_latency"] < b["abs_latency"] and a["cosine"] >= b["cosine"])
        front = [row["scheme"] for row in sorted(rows, key=lambda row: row["abs_latency"]) if not any(better(other, row) for other in rows)]
        label = tab.evaluate("document.getElementById('chart-front').getAttribute('aria-label')")
        self.assertTrue(label.endswith("On the Pareto front: " + ", ".join(front)), label)

    def test_training_has_bars_of_its_own(self):
        """The same model and scheme in two modes: two bars with the rows' own numbers, no mean of both."""
        rows = [{"name": "net", "mode": mode, "scheme": "noquant", "speedup": speedup, "accuracy": "pass"}
                for mode, speedup in (("inference", 2.0), ("training", 0.5))]
        tab = self.open(self.make("modes", {"format": "halftone-bench", "version": 1, "rows": rows}))
        shown = tab.evaluate("(({labels, datasets}) => [labels, datasets.map((each) => [...each.data])])(Chart.getChart('chart-speed').data)")
        self.assertEqual(shown, [["net · inference", "net · training"], [[2.0, 0.5]]])
        tab.select("#mode", "training")
        self.assertEqual(tab.evaluate("Chart.getChart('chart-speed').data.labels"), ["net"])

    def test_layers_and_plan_of_the_chosen_result(self):
        tab = self.open()
        index = next(i for i, row in enumerate(self.sample["rows"]) if row["name"] == "unet" and "plan" in row)
        tab.select("#detail", str(index))
        row = self.sample["rows"][index]
        layers = tab.evaluate("[...document.querySelectorAll('#layer-rows tbody tr')].map((r) => [...r.cells].map((c) => c.innerText))")
        wanted = sorted(row["layers"], key=lambda layer: -layer["ms"])
        self.assertEqual([cells[0] for cells in layers], [layer["layer"] for layer in wanted])
        for cells, layer in zip(layers, wanted):
            self.assertTrue(close(cells[4], f"{layer['share'] * 100:.1f} %"), (cells, layer))
        chosen = tab.evaluate("[...document.querySelectorAll('#plan-rows tbody tr')].map((r) => [r.cells[0].innerText, r.cells[1].innerText])")
        self.assertEqual(chosen, [[choice["layer"], choice["choice"]] for choice in row["plan"]])

    def test_the_interval_and_what_it_rests_on(self):
        tab = self.open()
        cells = tab.evaluate(CELLS)
        self.assertRegex(cells[0][4], r"^\d\.\d\d× ±\?$")
        self.assertRegex(cells[1][4], r"^\d\.\d\d× ±0\.\d\d$")
        self.assertEqual(cells[1][5], "39")
        self.assertIn("median of the rounds, ± the 95 % interval", tab.evaluate("document.getElementById('table-hint').innerText"))

    def test_the_table_fits_an_ordinary_window(self):
        """At 1280 pixels nothing has to be scrolled sideways, and a reason has the width of the table."""
        tab = self.open(width=1280)
        inside, outside = tab.evaluate("(({scrollWidth, clientWidth}) => [scrollWidth, clientWidth])(document.querySelector('#table .scroll'))")
        self.assertLessEqual(inside, outside)
        reason, table = tab.evaluate("['#rows tr.note td', '#rows'].map((each) => document.querySelector(each).getBoundingClientRect().width)")
        self.assertGreater(reason, 0.95 * table)

    def test_no_line_is_promised_where_there_is_none(self):
        row = {"name": "net", "mode": "inference", "scheme": "int8wo", "speedup": 2.0, "abs_latency": 1.0, "cosine": 0.99, "accuracy": "pass"}
        hint = "document.getElementById('front-hint').innerText"
        self.assertIn("The line joins", self.open().evaluate(hint))
        alone = self.open(self.make("alone", {"format": "halftone-bench", "version": 1, "rows": [row]}))
        self.assertNotIn("line", alone.evaluate(hint))

    def test_one_far_value_leaves_the_other_bars_visible(self):
        rows = [{"name": f"net{i}", "mode": "inference", "scheme": "int8wo", "speedup": speedup, "accuracy": "pass"}
                for i, speedup in enumerate((1.2, 1.5, 2008.0))]
        tab = self.open(self.make("far", {"format": "halftone-bench", "version": 1, "rows": rows}))
        widths = tab.evaluate("Chart.getChart('chart-speed').getDatasetMeta(0).data.map((bar) => Math.abs(bar.width))")
        self.assertGreater(widths[0], 20, widths)
        self.assertEqual(self.open().evaluate("Chart.getChart('chart-speed').scales.x.type"), "linear")

    def test_theme_follows_the_system_and_the_switch(self):
        tab = self.open()
        paper = "getComputedStyle(document.body).backgroundColor"
        light = tab.evaluate(paper)
        tab.click("#theme input[value=dark]")
        dark = tab.evaluate(paper)
        self.assertNotEqual(light, dark)
        tab.click("#theme input[value=auto]")
        self.assertEqual(tab.evaluate(paper), light)
        tab.prefer("dark")
        tab.wait_for(f"{paper} === {json.dumps(dark)}")

    def test_text_has_contrast(self):
        """WCAG AA (4.5) of each text colour on the paper, in both themes."""
        tab = self.open()
        ratio = """(() => { const parse = (c) => { const d = document.createElement("canvas").getContext("2d"); d.fillStyle = c; d.fillRect(0, 0, 1, 1);
            return [...d.getImageData(0, 0, 1, 1).data].slice(0, 3).map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); };
          const light = (c) => { const [r, g, b] = parse(c); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
          const css = getComputedStyle(document.documentElement); const paper = light(css.getPropertyValue("--paper").trim());
          return ["--ink", "--soft", "--accent", "--good", "--bad", "--s0", "--s1", "--s2", "--s3", "--s4", "--s5", "--s6"].map((n) => {
            const l = light(css.getPropertyValue(n).trim()); return [n, (Math.max(l, paper) + 0.05) / (Math.min(l, paper) + 0.05)]; }); })()"""
        for theme in ("light", "dark"):
            tab.click(f"#theme input[value={theme}]")
            for name, value in tab.evaluate(ratio):
                self.assertGreaterEqual(value, 4.5, f"{name} in {theme}")

    def test_controls_have_names(self):
        tab = self.open()
        nameless = tab.evaluate("""[...document.querySelectorAll("button, input, select, canvas")].filter((e) => !(e.labels?.length ||
            e.getAttribute("aria-label") || e.innerText)).map((e) => e.outerHTML)""")
        self.assertEqual(nameless, [])

    def test_fits_a_phone(self):
        tab = self.open(width=390, height=844, mobile=True)
        self.assertEqual(tab.evaluate("document.documentElement.scrollWidth"), 390)
        tab.select("#sort", "speedup-")
        rows = [row for row in self.sample["rows"] if "speedup" in row]
        first = tab.evaluate(INDICES)[0]
        self.assertEqual(self.sample["rows"][first]["speedup"], max(row["speedup"] for row in rows))

    def test_prints(self):
        tab = self.open()
        tab.click("#theme input[value=dark]")
        path = pathlib.Path(self.folder.name, "print.pdf")
        tab.print_pdf(path)
        self.assertGreater(path.stat().st_size, 50_000)
        self.assertEqual(tab.evaluate("document.documentElement.dataset.theme + document.body.style.width"), "dark")

    def test_payloads_are_text(self):
        """Every payload as every name: shown spelled out, nothing runs, nothing breaks."""
        entries = json.loads(pathlib.Path(PAYLOADS).read_text(encoding="utf-8"))
        names = [entry["text"] * entry.get("repeat", 1) for entry in entries if "text" in entry]
        rows = [{"name": text, "scheme": text, "mode": text, "backend": text, "error": text, "speedup": 1.5, "abs_latency": 2.0, "cosine": 0.99,
                 "bytes": 5, "layers": [{"layer": text, "kind": text, "scheme": text, "ms": 1.0, "error": 0.1, "reason": text}],
                 "plan": [{"layer": text, "choice": text, "reason": text, "candidates": [{"scheme": text, "ms": 1.0, "note": text}]}]} for text in names]
        machine = {"cpu": names[1], "isa": names[2], "os": names[3], "date": names[4], "versions": {text: text for text in names}}
        results = {"format": "halftone-bench", "version": 1, "title": names[1], "machine": machine, "rows": rows}
        tab = self.open(self.make("payloads", results))
        self.assertEqual(tab.evaluate("typeof window.hacked"), "undefined")
        for rows_of in ("tr[data-index]", "tr.note"):  # names, and errors below them
            shown = tab.evaluate(f"[...document.querySelectorAll('#rows tbody {rows_of}')].map((r) => r.cells[0].textContent)")
            self.assertEqual(shown, [spelled_out(name) for name in names if name or rows_of != "tr.note"])
        for i in range(0, len(rows), 7):
            tab.select("#detail", str(i))
            tab.select("#front-model", tab.evaluate(f"document.querySelectorAll('#front-model option')[{i + 1}].value"))
        self.assertEqual(tab.evaluate("typeof window.hacked"), "undefined")
        self.assertEqual(tab.evaluate("document.querySelectorAll('img, svg, b:not(.figure b)').length"), 0)

    def test_little_or_nothing_to_show(self):
        """No rows, a row without numbers, numbers that JSON has no word for: still a page, and no error."""
        odd = {"name": "odd", "speedup": "NaN", "abs_latency": "Infinity", "cosine": "NaN", "accuracy": "fail_accuracy"}
        for name, rows, text in (("none", [], "0 results"), ("bare", [{"name": "bare"}], "1 result"), ("odd", [odd], "1 result")):
            page = self.make(name, {"format": "halftone-bench", "version": 1, "rows": rows})
            tab = self.open(page)
            self.assertEqual(tab.evaluate("document.getElementById('shown').innerText"), text)
            self.assertIn("No result shown", tab.evaluate("document.getElementById('box-front').innerText"))
            if name == "odd":
                self.assertIn("NaN", tab.evaluate(CELLS)[0])

    def test_policy_stops_what_is_not_ours(self):
        """Were a name ever taken for markup, the page's policy would still keep it from running."""
        tab = self.browser.page()
        self.addCleanup(tab.call, "Page.close")
        tab.open(self.page_file)
        tab.evaluate("""(() => { const s = document.createElement("script"); s.textContent = "window.hacked = 1"; document.body.append(s);
            const d = document.createElement("div"); d.setAttribute("onclick", "window.hacked = 1"); document.body.append(d); d.click(); })()""")
        self.assertEqual(tab.evaluate("typeof window.hacked"), "undefined")
        self.assertGreaterEqual(len(tab.problems()), 2)


if __name__ == "__main__":
    if not devtools.find_chromium():
        print("browser_test: no chromium here (scripts/setup installs Debian's); skipped")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=1)
