#!/usr/bin/env python3
"""Tables of whole models from the JSON lines of encoder_bench, vision_bench and the peers, all of one run.

    model_tables.py FILE.jsonl
    model_tables.py --rounds FILE.jsonl     one line for each case, the median of its lines, as JSON again

prints one. /peer: time divided by that of the fastest peer of the same kind: fp32 peers for what keeps activations in
floating point, int8 peers for what quantizes them too.
"""
import json
import pathlib
import statistics
import sys

HEADER = ["case", "what", "ms", "cosine", "/eager", "/peer"]


def read_rows(path):
    """The measurements of a file; lines that are none (setup times) are left out."""
    rows = [row for row in map(json.loads, path.read_text().splitlines()) if "case" in row]
    for row in rows:  # the peers write a batch alone as a number
        row["case"] = row["case"] if isinstance(row["case"], list) else [row["case"]]
    return rows


def median_of_rounds(rows):
    """One row for each case and way, in their first order."""
    times = {}
    for row in rows:
        times.setdefault((row["peer"], tuple(row["case"])), []).append(row)
    return [{**same[0], "ms": statistics.median(row["ms"] for row in same), "rounds": len(same)} for same in times.values()]


def is_ours(row):
    return row["peer"].startswith("halftone")


def quantizes_activations(row):
    name = row["peer"]
    return "int8dq" in name or "int8act" in name or "int8static" in name or not is_ours(row) and "int8" in name


def ratio(row, rivals):
    return f"{row['ms'] / min(rival['ms'] for rival in rivals):.2f}" if rivals else "–"


def cells(rows):
    """One list of texts a measurement, in the order of HEADER."""
    lines = []
    for case in sorted({tuple(row["case"]) for row in rows}):
        mine = [row for row in rows if tuple(row["case"]) == case]
        eager = [row for row in mine if row["peer"] == "halftone-eager-fp32"]
        peers = [row for row in mine if not is_ours(row)]
        for row in mine:
            rivals = [peer for peer in peers if quantizes_activations(peer) == quantizes_activations(row)]
            lines.append([", ".join(map(str, case)), row["peer"], f"{row['ms']:.2f}", f"{row['cos']:.4f}",
                          ratio(row, eager), ratio(row, rivals) if is_ours(row) else "–"])
    return lines


def text_table(rows):
    lines = [HEADER, *cells(rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    left = (0, 1)
    return "\n".join("  ".join(text.ljust(width) if column in left else text.rjust(width)
                               for column, (text, width) in enumerate(zip(line, widths))) for line in lines)


if __name__ == "__main__":
    measured = read_rows(pathlib.Path(sys.argv[-1]))
    if sys.argv[1] == "--rounds":
        print("\n".join(map(json.dumps, median_of_rounds(measured))))
    else:
        print(text_table(measured))
