"""The summary of the performance pages: docs/performance.md, made from the pages in docs/performance/, one for each CPU.

Nothing is measured here and no figure is new but ours / peer, which is a ratio of two times on the page. What is not on a page is
called "not measured" in the summary.
"""
import re

import model_tables
from suite_tables import table

HEAD = """# Performance

Made by `make performance` (`scripts/performance`) or by its parts from the page of each CPU; do not edit. What is not listed was not
measured.

Whole models: **ours** is the fastest way of Halftone to run the model whose cosine to the fp32 answer is at least {least_cosine};
**peer** is the fastest of all peers of the same run, whatever its cosine. **ours / peer** is the ratio of their times, **fp32 / fp32
peers** that of our fp32 and the fastest peer that keeps activations in floating point: below 1 we are faster. Times are medians in ms.

Kernels: what each target wants, and the worst case at each number of threads; bold where a target is missed.
"""
READING = """
## How to read the figures

The figures of a case (a model; a kernel's shape at a number of threads) come from one run: compare ratios, never times of different
cases. Times are medians.

- **/eager**: time divided by that of our interpreter, which runs ATen's operators one by one, in fp32.
- **/peer**: time divided by that of the fastest peer of the same run and kind: fp32 peers for what keeps activations in
  floating point, int8 peers for what quantizes them too. *cosine*: to the fp32 answer.
- **limit** (kernels): the larger of the shares of memory read bandwidth and of the multiply-add peak of the kernel's own exact
  instruction sequence, both measured in the same run, the bandwidth by plain reads in the same rounds. Weights rotate through 256 MB,
  so that they come from memory where a real model's would. With one thread, processor time.
  A page without a table of targets is older: 64 to 96 MB, of which a large cache keeps a part, uniform integers as
  weights, the best read of the whole run as bandwidth, and ratios of medians over all rounds.
- **/linear**: time divided by that of `at::linear` in fp32 (MKL). Above 1 the kernel is *slower than at::linear* there;
  the JSON says so in `slower_than_baseline`, for the tuner.
- **/rival**: time divided by that of the peer that does the same job: FBGEMM's int8 for int8 (which saturates at 16 bits
  without VNNI: wrong numbers for 8-bit weights), ATen's `_weight_int8pack_mm` and `_weight_int4pack_mm_for_cpu`.
"""
KINDS = {"avx2": "CPUs with AVX2 only (AMD Zen 3)", "avx512vnni": "CPUs with AVX-512 VNNI (AMD Zen 4, Intel Ice Lake)"}
HEADING = re.compile(r"# (?P<cpu>.+), (?P<count>\d+ (?:cores|threads)), (?P<isa>\w+)\n")
LEAST_COSINE = 0.995  # autoquant's default
BFLOAT16 = "On this CPU *ov* computes in bfloat16"
MODEL_HEADER = ["model", "case", "ours", "ms", "cosine", "peer", "ms", "cosine", "ours / peer", "fp32 / fp32 peers"]


def folder_of(page):
    """Where the pages behind a summary are: docs/performance.md has docs/performance/."""
    return page.with_suffix("")


def slug(cpu, isa):
    """The file name of a CPU's page. The instruction set is part of it: a capped run is not the CPU's."""
    return re.sub(r"[^a-z0-9]+", "-", f"{cpu} {isa}".lower()).strip("-")


def page_of(summary, cpu, isa):
    return folder_of(summary) / f"{slug(cpu, isa)}.md"


def sections(text):
    """(title, body) of each part of a page."""
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in re.split(r"(?m)^## ", text)[1:]]


def table_rows(body, header):
    """The rows of the first table with this header, each a list of texts; a cell has no bar of its own."""
    lines = body.splitlines()
    wanted = "| " + " | ".join(header)
    start = next((i for i, line in enumerate(lines) if line.startswith(wanted)), None)
    if start is None:
        return None, []
    block = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        block.append([cell.strip() for cell in line.strip("|").split("|")])
    return block[0], block[2:]


def model_measurements(text):
    """{title of a whole model: its rows as model_tables knows them, in the order of the page}"""
    models = {}
    for title, body in sections(text):
        _, rows = table_rows(body, model_tables.HEADER)
        if rows:
            models[title] = [{"case": case, "peer": what, "ms": float(ms), "cosine": float(cosine), "texts": (ms, cosine), "to_peer": to_peer}
                             for case, what, ms, cosine, _, to_peer in rows]
    return models


def fastest(rows):
    return min(rows, key=lambda row: row["ms"], default=None)


def case_row(title, case, rows):
    ours = fastest([r for r in rows if model_tables.is_ours(r) and r["cosine"] >= LEAST_COSINE])
    peer = fastest([r for r in rows if not model_tables.is_ours(r)])
    fp32 = next((r["to_peer"] for r in rows if r["peer"] == "halftone-fp32"), "–")
    cells = [title, case]
    cells += [ours["peer"].removeprefix("halftone-"), *ours["texts"]] if ours else ["–"] * 3
    cells += [peer["peer"], *peer["texts"]] if peer else ["–"] * 3
    return cells + [f"{ours['ms'] / peer['ms']:.2f}" if ours and peer else "–", fp32]


def model_lines(text):
    rows = []
    for title, measured in model_measurements(text).items():
        for case in dict.fromkeys(row["case"] for row in measured):
            rows.append(case_row(title, case, [row for row in measured if row["case"] == case]))
    if not rows:
        return ["Whole models: not measured.", ""]
    note = [BFLOAT16 + ": it is no fp32 peer, whatever the table calls it.", ""] if BFLOAT16 in text else []
    return [*table(MODEL_HEADER, rows), *note]


def target_lines(text):
    for title, body in sections(text):
        if title == "Kernels":
            header, rows = table_rows(body, ["target", "wanted"])
            if rows:
                return table(header, rows)
    return ["Kernel targets: not measured.", ""]


def cpu_lines(path, folder):
    text = path.read_text(encoding="utf-8")
    heading = HEADING.match(text)
    if not heading:
        raise SystemExit(f"performance_summary: {path} does not begin with '# CPU, N cores, ISA'")
    measured = re.search(r"(?m)^Measured on \d{4}-\d\d-\d\d", text)
    date = f"{measured[0]}. " if measured else ""
    lines = ["#" + heading[0].strip(), "", f"{date}All figures: [{path.name}]({folder.name}/{path.name}).", ""]
    return heading["isa"], lines + model_lines(text) + target_lines(text)


def summary(page):
    """The text of a summary, from the pages behind it."""
    folder = folder_of(page)
    parts = [cpu_lines(path, folder) for path in sorted(folder.glob("*.md"))]
    parts += [(isa, [f"## {name}", "", "not measured.", ""]) for isa, name in KINDS.items() if isa not in {isa for isa, _ in parts}]
    parts.sort(key=lambda part: part[0])
    body = "\n".join("\n".join(lines) for _, lines in parts)
    return HEAD.format(least_cosine=LEAST_COSINE) + "\n" + body.rstrip("\n") + "\n" + READING


def write(page):
    page.write_text(summary(page), encoding="utf-8")
    print(f"wrote {page}")


def check(page):
    if not page.is_file() or page.read_text(encoding="utf-8") != summary(page):
        raise SystemExit(f"{page} is not what its pages say: run scripts/performance_page.py --summary {page}")
