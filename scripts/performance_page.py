#!/usr/bin/env python3
"""Writes the page of this CPU, docs/performance/CPU.md, from what `make performance` measured, and the summary, docs/performance.md.

    performance_page.py FOLDER SUMMARY
    performance_page.py --suite FOLDER SUMMARY     only the table of the suite, as `make bench-suite` measured it
    performance_page.py --resnet FOLDER SUMMARY    only ResNet-50, as scripts/bench_resnet measured it
    performance_page.py --summary SUMMARY          only the summary, from the pages that are there
    performance_page.py --check SUMMARY            writes nothing: exit 1 where the summary is not what the pages say

The pages are in the folder with the summary's name: docs/performance/ for docs/performance.md.
FOLDER holds linear-*.json and attention-*.json of kernels_bench_peers, ort-*.jsonl where ONNX Runtime ran, encoder.jsonl and
vision.jsonl, resnet.jsonl (ours and the peers'), load.txt of backend_load_bench, training.jsonl of training_bench, suite.json of halftone bench. A part that is not there is called "not measured".
The page of the CPU that FOLDER was measured on is replaced, those of other CPUs are kept. performance_summary.py makes the summary.
"""
import datetime
import json
import os
import pathlib
import re
import sys

import kernel_targets
import model_tables
import performance_summary
import suite_tables
from suite_tables import table

NOTE = """Made by `make performance`; do not edit. What the columns mean: [how to read the figures](../performance.md#how-to-read-the-figures).
"""


def load(folder):
    paths = sorted([*folder.glob("linear-*.json"), *folder.glob("attention-*.json")])
    data = [json.loads(path.read_text()) for path in paths]
    if not data:
        sys.exit(f"performance_page: no JSON in {folder}")
    if len({(d["cpu"], d["isa"]) for d in data}) != 1:
        sys.exit(f"performance_page: {folder} mixes machines")
    ort = []
    for path in sorted(folder.glob("ort-*.jsonl")):
        threads = int(path.stem.split("-")[1])
        ort += [dict(json.loads(line), threads=threads) for line in path.read_text().splitlines()]
    return data, ort


def number(value, form="{:.2f}"):
    return form.format(value) if value else "–"


def case_row(row):
    limit = max(row["of_peak"], row["of_read"])
    ratio = number(row["to_baseline"])
    if row["slower_than_baseline"]:
        ratio = f"**{ratio}**"
    # A share of reads above 100 % means that the weights came from a cache.
    share = "cache" if limit > 1.05 else f"{limit:.0%}"
    return [str(row["m"]), row["contender"], f"{row['median_ms']:.3f}", f"{row['spread']:.0%}", share, ratio,
            number(row["to_rival"])]


def kernel_tables(rows, suite):
    lines = []
    keys = sorted({(r["n"] if suite == "linear" else 0, r["k"], r["threads"]) for r in rows if r["suite"] == suite})
    for n, k, threads in keys:
        mine = [r for r in rows if r["suite"] == suite and r["k"] == k and r["threads"] == threads
                and (suite != "linear" or r["n"] == n)]
        what = f"N {n}, K {k}" if suite == "linear" else f"Attention, 12 heads of {k}"
        lines += [f"## {what}, threads {threads}", ""]
        lines += table(["M", "kernel", "ms", "±", "limit", "/linear" if suite == "linear" else "/sdpa", "/rival"],
                       [case_row(r) for r in mine])
    return lines


def slower_list(rows):
    slower = [r for r in rows if r["slower_than_baseline"]]
    lines = [f"Slower than `at::linear` or ATen's attention: {len(slower)} of {sum(r['ours'] for r in rows)} cases.", ""]
    return lines + [f"- {r['contender']}, {r['m']}×{r['n']}×{r['k']}, threads {r['threads']}: {r['to_baseline']:.2f}"
                    for r in slower] + [""]


def ort_table(ort, rows):
    """ONNX Runtime beside ours, each as a ratio to the fp32 linear of its own run."""
    baseline = {(tuple(r["case"]), r["threads"]): r["ms"] for r in ort if r["peer"] == "fp32"}
    ours = {(r["contender"], r["m"], r["n"], r["k"], r["threads"]): r["to_baseline"] for r in rows}
    match = {"ort-int4": "int4 dynamic", "ort-int8": "int8"}
    cells = []
    for r in ort:
        if r["peer"] in match:
            m, n, k = r["case"]
            cells.append([f"{m}×{n}×{k}", str(r["threads"]), r["peer"],
                          number(r["ms"] / baseline[(m, n, k), r["threads"]]), match[r["peer"]],
                          number(ours.get((match[r["peer"]], m, n, k, r["threads"]), 0))])
    return ["## ONNX Runtime (MatMulNBits), time relative to fp32 of the same run", ""] + table(
        ["case", "threads", "peer", "/linear", "ours", "/linear"], cells)


RESNET_TITLE = "ResNet-50 at 224² (batch)"
RESNET_EXPLAINED = """int8static-A×W: A-bit activations, W-bit weights, calibrated as the peers are (same weights, same data).
7×8 is torch.ao's default for x86 (reduced range); 8×8 is the full range. Without 8-bit dot products 7×7 is the fastest exact one."""


def bfloat16_note(peers):
    """OpenVINO's default precision is bfloat16 where the CPU multiplies it: no fp32 peer, whatever the table calls it."""
    if "ov" not in peers or "avx512_bf16" not in pathlib.Path("/proc/cpuinfo").read_text():
        return []
    return ["On this CPU *ov* computes in bfloat16, OpenVINO's default where there are instructions for it; /peer of fp32 rows compares",
            "with that where it is the fastest.", ""]


def model_section(folder, name, title, explained=""):
    """A whole model: ours and the peers of the same run."""
    path = folder / f"{name}.jsonl"
    if not path.exists():
        return [f"## {title}", "", "not measured.", ""]
    rows = model_tables.read_rows(path)
    peers = sorted({row["peer"] for row in rows if not model_tables.is_ours(row)})
    return [f"## {title}", "", *([explained, ""] if explained else []), f"Peers: {', '.join(peers) or 'not measured'}.", "",
            *bfloat16_note(peers),
            *table(model_tables.HEADER, model_tables.cells(rows))]


def load_section(folder):
    """From a .ht to the first result, and the memory that this takes."""
    title = ["## all-MiniLM-L6-v2, from a `.ht` to the first result", ""]
    path = folder / "load.txt"
    if not path.exists():
        return [*title, "not measured.", ""]
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]
    cells = [[row["what"], f"{row['ms']:.0f}", f"{row['load_ms']:.0f}", f"{row['compile_ms']:.0f}", f"{row['run_ms']:.0f}",
              f"{row['private_mb']:.1f}", f"{row['mapped_mb']:.1f}", f"{row['arena_mb']:.1f}", "yes" if row["pass"] else "**no**"]
             for row in rows]
    limits = f"At (1, 16), process start not counted, checksum included. Limits: {rows[0]['limit_ms']} ms and "
    return [*title, limits + f"{rows[0]['limit_mb']} MB of private memory beyond mapped weights and arena.", "",
            *table(["file", "ms", "load", "compile", "plan and run", "private MB", "mapped MB", "arena MB", "within"], cells)]


def training_section(folder):
    """Training steps, compiled beside eager: time, and the peak of tensors' memory."""
    title = ["## Training steps of small C++ models, beside libtorch's eager", ""]
    path = folder / "training.jsonl"
    if not path.exists():
        return [*title, "not measured.", ""]
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    cells = [[row["model"], row["way"], f"{row['ms']:.3f}", f"{row['time']:.2f}", f"{row['peak_mb']:.3f}", f"{row['memory']:.2f}",
              row["verdict"].split()[0] if row["verdict"] else ""] for row in rows]
    return [*title, "Forward and backward. Wanted: aot_eager at most 1.05 of eager's time; min-cut with a budget below eager's memory on",
            "the Transformer (width 128, 4 layers, 8 × 128 characters).", "",
            *table(["model", "compiled by", "ms", "/eager", "peak MB", "/eager", "met"], cells)]


def section(data, ort, folder):
    first = data[0]
    rows = [row for part in data for row in part.get("results", [])]
    largest = {}
    for part in data:
        for peaks in part["peaks"]:
            known = largest.setdefault(peaks["threads"], peaks)
            largest[peaks["threads"]] = {key: max(known[key], value) for key, value in peaks.items()}
    lines = [f"# {first['cpu']}, {first['cores']} cores, {first['isa']}", "", NOTE, f"Measured on {datetime.date.today():%Y-%m-%d}.", ""]
    lines += model_section(folder, "encoder", "all-MiniLM-L6-v2 (batch, tokens)")
    lines += model_section(folder, "vision", "ViT-B/16 at 224² (batch)")
    lines += model_section(folder, "resnet", RESNET_TITLE, RESNET_EXPLAINED)
    lines += load_section(folder) + training_section(folder) + suite_tables.section(folder) + ["## Kernels", ""]
    lines += table(["threads", "reads GB/s", "saturating chain", "exact 8-bit", "fp32, all G multiply-adds/s"],
                   [[str(t)] + [f"{p[key]:.1f}" for key in ("read_gbs", "chain_gmac", "exact8_gmac", "fma_gmac")]
                    for t, p in sorted(largest.items())])
    lines += ["What is wanted, and the worst case of each number of threads; bold where a target is missed.", ""]
    lines += table(*kernel_targets.cells(rows))
    names = sorted({(r["contender"], r["kernel"]) for r in rows})
    lines += ["Kernels: " + "; ".join(f"{label} is `{kernel}`" for label, kernel in names) + ".", ""]
    lines += slower_list(rows) + kernel_tables(rows, "linear") + kernel_tables(rows, "attention")
    return "\n".join(lines + (ort_table(ort, rows) if ort else []))


def this_isa():
    return "avx512vnni" if "avx512_vnni" in pathlib.Path("/proc/cpuinfo").read_text() else "avx2"


def this_cpu():
    """The name that bench/kernels and src/tune give this CPU."""
    first = dict(re.findall(r"(?m)^([\w ]+?)\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0]))
    return f"{first.get('model name', 'unknown')} (family {first['cpu family']}, model {first['model']})"


def resnet_replaced(folder, body):
    """A page with ResNet-50 anew."""
    block = "\n".join(model_section(folder, "resnet", RESNET_TITLE, RESNET_EXPLAINED)) + "\n"
    parts = re.split(r"(?m)^(?=## |<!-- suite -->)", body)
    old = [i for i, part in enumerate(parts) if part.startswith(f"## {RESNET_TITLE}")]
    behind = [i for i, part in enumerate(parts) if part.startswith(("# ", "## ViT", "## all-MiniLM-L6-v2 ("))]
    place = old[0] if old else behind[-1] + 1
    return "".join(parts[:place] + [block] + parts[place + len(old):])


def new_page(cpu, count, isa):
    """A page of a CPU of which nothing is known yet."""
    return f"# {cpu}, {count}, {isa}\n\n{NOTE}\n"


def page_text(option, folder, summary):
    """Where the page of the measured CPU is, and what is to stand there."""
    if option == "--suite":
        machine = suite_tables.machine(folder)
        page = performance_summary.page_of(summary, machine["cpu"], machine["isa"])
        old = page.read_text(encoding="utf-8") if page.exists() else new_page(machine["cpu"], f"{machine['threads']} threads", machine["isa"])
        return page, suite_tables.replaced(folder, old)
    if option == "--resnet":
        page = performance_summary.page_of(summary, this_cpu(), this_isa())
        old = page.read_text(encoding="utf-8") if page.exists() else new_page(this_cpu(), f"{os.cpu_count()} cores", this_isa())
        return page, resnet_replaced(folder, old)
    data, ort = load(folder)
    return performance_summary.page_of(summary, data[0]["cpu"], data[0]["isa"]), section(data, ort, folder)


def main():
    option, summary = sys.argv[1], pathlib.Path(sys.argv[-1])
    if option == "--check":
        return performance_summary.check(summary)
    if option != "--summary":
        page, text = page_text(option, pathlib.Path(sys.argv[-2]), summary)
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text.strip() + "\n", encoding="utf-8")
        print(f"wrote {page}")
    performance_summary.write(summary)


if __name__ == "__main__":
    main()
