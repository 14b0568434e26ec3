"""The benchmark suite's part of the performance page of a CPU, from suite.json of halftone bench."""
import json
import math
import re

TITLE = "## The benchmark suite (`halftone bench`)"
BEGIN, END = "<!-- suite -->", "<!-- /suite -->"
BLOCK = re.compile(f"{BEGIN}.*?{END}\n", re.DOTALL)
EXPLAINED = """Speed-up over libtorch's eager run of the same C++ module, each row in a process of its own, baseline and candidate in turns; in
brackets the cosine to eager's results where it is below .9999. A word stands for what went wrong. *best ms*: of the fastest row
whose answers hold; *MB*: weights as they are stored, without quantization → of the fastest row. Memory: eager's peak / ours."""

PLANS_EXPLAINED = """Autoquant's plans, measured at length in turns with fp32 and every single scheme that keeps a cosine of .995 (`autoquant_bench`).
Times / the best single scheme's and / fp32's: below 1 is faster. Planning: cold / from the cache."""


def read(folder):
    path = folder / "suite.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def cell(text):
    """Names are anybody's."""
    return re.sub(r"\s+", " ", text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + " ---: |" * len(header)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows] + [""]


def holds(row):
    return row.get("accuracy", "") in ("pass", "pass_due_to_skip", "") and row.get("speedup", 0) > 0


def speed_cell(row):
    if row is None or row.get("accuracy") == "pass_due_to_skip":  # nothing to quantize
        return "–"
    if not holds(row):
        return f"**{cell(row.get('accuracy', '') or 'no time')}**"
    cosine = row.get("cosine", 1)
    return f"{row['speedup']:.2f}" + (f" ({cosine:.4f})".replace("(0.", "(.") if cosine < 0.9999 else "")


def geometric_mean(rows):
    speeds = [row["speedup"] for row in rows if holds(row)]
    return f"{math.exp(sum(map(math.log, speeds)) / len(speeds)):.2f}" if speeds else "–"


def megabytes(count):
    return f"{count / 1e6:.1f}" if count >= 1e5 else f"{count / 1e6:.3f}"


def milliseconds(time):
    return f"{time:.2f}" if time >= 0.1 else f"{time:.4f}"


def model_row(name, batch, by_scheme, schemes):
    rows = [by_scheme.get(scheme) for scheme in schemes]
    good = [row for row in rows if row and holds(row) and row.get("abs_latency")]
    cells = [cell(name), str(batch), *map(speed_cell, rows)]
    if not good:
        return cells + ["–", "–", "–"]
    best = min(good, key=lambda row: row["abs_latency"])
    plain = by_scheme.get("noquant", good[0])
    sizes = " → ".join(megabytes(row["bytes"]) for row in (plain, best) if row.get("bytes"))
    # Eager's time is that of the row's own rounds.
    return cells + [milliseconds(best["abs_latency"] * best["speedup"]), milliseconds(best["abs_latency"]), sizes or "–"]


def inference_table(rows):
    schemes = list(dict.fromkeys(row["scheme"] for row in rows))
    models = {}
    for row in rows:
        models.setdefault((row["name"], row["batch_size"]), {})[row["scheme"]] = row
    cells = [model_row(name, batch, by_scheme, schemes) for (name, batch), by_scheme in models.items()]
    means = [geometric_mean([row for row in rows if row["scheme"] == scheme]) for scheme in schemes]
    cells.append(["geometric mean", "", *means, "", "", ""])
    return table(["model", "batch", *map(cell, schemes), "eager ms", "best ms", "MB"], cells)


def training_table(rows):
    cells = [[cell(row["name"]), str(row["batch_size"]), speed_cell(row),
              f"{row['compression_ratio']:.2f}" if row.get("compression_ratio") else "–", cell(row.get("accuracy", ""))] for row in rows]
    cells.append(["geometric mean", "", geometric_mean(rows), "", ""])
    return table(["model", "batch", "speed-up", "memory", "accuracy"], cells)


def plan_rows(bench):
    """One batch size of autoquant_bench a row."""
    for batch in bench["batches"]:
        own = next(row for row in batch["rows"] if row["name"] == "plan")
        yield [cell(bench["model"].removesuffix(".pt2")), str(batch["batch"]), f"{own['ms']:.2f}", cell(batch["best"]), f"{batch['to_best']:.3f}",
               f"{batch['to_fp32']:.3f}", f"{batch['cosine']:.4f}", f"{batch['cold_seconds']:.1f} / {batch['cached_seconds']:.2f}"]


def plan_lines(folder):
    """Autoquant's plans beside single schemes, where autoquant_bench has measured them."""
    benches = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("autoquant-*.json"))]
    rows = [row for bench in benches for row in plan_rows(bench)]
    if not rows:
        return []
    return [PLANS_EXPLAINED, "",
            *table(["model", "batch", "plan ms", "best single scheme", "plan / best", "plan / fp32", "cosine", "planned in s"], rows)]


def lines_of(results, folder):
    machine = results.get("machine", {})
    lines = [BEGIN, TITLE, "", EXPLAINED, "",
             f"Measured on {machine.get('date', '?')[:10]}, {machine.get('threads', '?')} threads; made by `make bench-suite`.", ""]
    rows = [row for row in results["rows"] if row["backend"] == "halftone"]
    inference = [row for row in rows if row["mode"] == "inference"]
    training = [row for row in rows if row["mode"] == "training"]
    if inference:
        lines += ["Inference:", "", *inference_table(inference)]
    if training:
        lines += ["Training steps:", "", *training_table(training)]
    return lines + plan_lines(folder) + [END, ""]


def section(folder):
    results = read(folder)
    return lines_of(results, folder) if results else [BEGIN, TITLE, "", "not measured.", "", END, ""]


def machine(folder):
    """What the suite was measured on."""
    results = read(folder)
    if not results:
        raise SystemExit(f"suite_tables: no suite.json in {folder}")
    return results["machine"]


def replaced(folder, page):
    """The text of a CPU's page with this part of it anew."""
    block = "\n".join(lines_of(read(folder), folder))
    if BLOCK.search(page + "\n"):
        return BLOCK.sub(lambda _: block, page + "\n", count=1)
    if "## Kernels" in page:
        return page.replace("## Kernels", block + "\n## Kernels", 1)
    return page + block
