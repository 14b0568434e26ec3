"""What the kernels are wanted to reach, and what they reached, as a table of the performance page.

A target looks at one figure of some cases and has a bound. The worst case of each number of threads stands in the table, so that
one figure says whether the target holds everywhere.
"""
import dataclasses
from typing import Callable


@dataclasses.dataclass(frozen=True)
class Target:
    what: str
    contenders: tuple
    cases: Callable  # of a row: does the target speak of it?
    figure: Callable  # of a row
    bound: float
    at_least: bool = False  # the figure is wanted at or above the bound, else at or below
    form: str = "{:.2f}"

    def rows(self, rows):
        return [r for r in rows if r["contender"] in self.contenders and self.cases(r) and self.figure(r)]

    def met(self, row):
        return self.figure(row) >= self.bound if self.at_least else self.figure(row) <= self.bound

    def worst(self, rows):
        return (min if self.at_least else max)(self.rows(rows), key=self.figure, default=None)

    def wanted(self):
        return ("≥ " if self.at_least else "≤ ") + self.form.format(self.bound)


def large(row):
    return row["n"] >= 1024 and row["k"] >= 1024


def one_row_4096(row):
    return row["m"] == 1 and row["n"] == row["k"] == 4096


def of_read(row):
    return row["of_read"]


def to_baseline(row):
    return row["to_baseline"]


def many_rows(row):
    return row["m"] >= 32


LINEAR = [
    Target("int4 with 8-bit activations, M = 1, 4096²: of the bandwidth", ("int4 dynamic",), one_row_4096, of_read, 0.8, True, "{:.0%}"),
    Target("int8 weight-only, M = 1, 4096²: of the bandwidth", ("int8 weight-only",), one_row_4096, of_read, 0.8, True, "{:.0%}"),
    Target("int4 weight-only, M = 1, 4096²: of the bandwidth", ("int4 weight-only",), one_row_4096, of_read, 0.6, True, "{:.0%}"),
    Target("int8, M ≥ 32, 1024² and up: of its peak", ("int8",), lambda r: many_rows(r) and large(r), lambda r: r["of_peak"], 0.8, True,
           "{:.1%}"),
    Target("int8, 7 bits, M ≥ 32, 1024² and up: of its peak", ("int8 7-bit",), lambda r: many_rows(r) and large(r),
           lambda r: r["of_peak"], 0.8, True, "{:.1%}"),
    Target("int8, M ≥ 32: / FBGEMM", ("int8",), many_rows, lambda r: r["to_rival"], 1.0),
    Target("int8, 7 bits, M ≥ 32: / FBGEMM", ("int8 7-bit",), many_rows, lambda r: r["to_rival"], 1.0),
    Target("int4 with 8-bit activations, M ≥ 32: / at::linear", ("int4 dynamic",), many_rows, to_baseline, 0.6),
    Target("int4 weight-only, M ≥ 32: / at::linear", ("int4 weight-only",), many_rows, to_baseline, 1.0),
    Target("fp32: / at::linear", ("fp32",), lambda r: True, to_baseline, 1.0),
]
ATTENTION = [Target("attention: / ATen's", ("attention",), lambda r: True, to_baseline, 1.0)]


def place(row):
    return f"{row['m']}×{row['n']}×{row['k']}" if row["suite"] == "linear" else f"length {row['m']}"


def cells(rows):
    """One line a target: what, wanted, then for each number of threads the worst case and how many miss."""
    threads = sorted({r["threads"] for r in rows})
    lines = []
    for suite, targets in (("linear", LINEAR), ("attention", ATTENTION)):
        mine = [r for r in rows if r["suite"] == suite]
        for target in targets:
            line = [target.what, target.wanted()]
            for count in threads:
                those = [r for r in mine if r["threads"] == count]
                worst = target.worst(those)
                if worst is None:
                    line.append("not measured")
                    continue
                missed = sum(not target.met(r) for r in target.rows(those))
                text = f"{target.form.format(target.figure(worst))} ({place(worst)})"
                line.append(text if missed == 0 else f"**{text}**, {missed} of {len(target.rows(those))} miss")
            lines.append(line)
    return [["target", "wanted", *[f"worst, threads {count}" for count in threads]], lines]
