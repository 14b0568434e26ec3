#!/usr/bin/env python3
"""AotAutograd of C++ models against torch._functorch.aot_autograd of the same models in Python, with the same decompositions.

With the table "core" bytes alone are compared: its formulas are not Python's (src/autograd/decompositions compares them).

usage: training_oracle.py TRAINING_GRAPHS [--texts] [NAME…]

--texts prints the graphs of models that differ.
"""
import collections
import json
import pathlib
import re
import subprocess
import sys
import textwrap
import warnings

import torch
from functorch.compile import default_decompositions
from torch._decomp import get_decompositions

sys.path.append(str(pathlib.Path(__file__).parents[3] / "src" / "autograd" / "partition" / "oracle"))

from known_training_differences import KNOWN, NOTHING_TO_RECOMPUTE, OTHER_OPERATORS
from partition_oracle import without_views
from python_models import python_models
from torch_side import report_on

warnings.filterwarnings("ignore")
NUMBERS = re.compile(r"^(aten::(?:add|sub|mul|div)\.)Scalar$")
# Norms, losses, dropout and attention taken further apart; torch takes seconds for each model.
CORE = {"mlp_hard", "layer_norm", "group_norm", "batch_norm_2d", "tied_weights", "transformer_encoder_layer", "dropout",
        "no_grad_inside", "character_transformer"}

HEADER = f"""{'':38}operators (min-cut)     bytes saved
{'':38}forward     backward       default       min-cut
{'model':28} {'table':7}  ours torch  ours torch    ours  torch   ours  torch  operators"""


def overload(name):
    packet, _, rest = name.removeprefix("aten::").partition(".")
    return getattr(getattr(torch.ops.aten, packet), rest or "default")


def same_table(names):
    """Python's decompositions of the operators that ours takes apart."""
    operators = set(map(overload, names))
    return {operator: function for operator, function in get_decompositions(list(operators)).items() if operator in operators}


def functorch_operators():
    """What functorch takes apart by default, but for other devices."""
    return {operator for operator in default_decompositions
            if operator._overloadname not in ("out", "grad_input") and "cudnn" not in str(operator)}


def computing(counts):
    """Without views. C++ gives numbers to operators' Scalar overloads, Python the same numbers to the Tensor ones: one name."""
    merged = collections.Counter()
    for name, count in without_views(counts).items():
        merged[NUMBERS.sub(r"\1Tensor", name)] += count
    return merged


def difference(ours, python):
    ours, python = computing(ours), computing(python)
    counts = {name: ours.get(name, 0) - python.get(name, 0) for name in sorted(ours.keys() | python.keys())}
    return {name: count for name, count in counts.items() if count}


class Case:
    """One model with one table: both partitioners, C++ and Python."""

    def __init__(self, name, table):
        self.name, self.table = name, table
        self.ours, self.python = {}, {}  # by partitioner
        self.failures = []

    def expect(self, holds, text):
        if not holds:
            self.failures.append(f"{self.name}/{self.table}: {text}")

    def differences(self):
        for way in ("default", "min_cut"):
            for part in ("forward", "backward"):
                yield way, part, difference(self.ours[way][part], self.python[way][part])

    def check_operators(self):
        for way, part, found in self.differences():
            known = KNOWN.get((self.name, self.table, way, part), ({}, ""))[0]
            self.expect(found == known, f"{way}, {part}: ours minus Python's: {found}, known: {known}")

    def check_bytes(self):
        least, most = self.ours["min_cut"]["saved_bytes"], self.ours["default"]["saved_bytes"]
        python, python_most = self.python["min_cut"]["saved_bytes"], self.python["default"]["saved_bytes"]
        self.expect(least <= 1.05 * python, f"min-cut saves {least}, Python's {python}")
        self.expect(least <= python_most, f"min-cut saves {least}, Python's default_partition {python_most}")
        if (self.name, self.table) in NOTHING_TO_RECOMPUTE:
            self.expect(least == most, f"min-cut saves {least}, default {most}: no longer equal")
        else:
            self.expect(least < most, f"min-cut saves {least}, default {most}")

    def check(self):
        errors = [report["error"] for report in self.ours.values() if "error" in report]
        self.expect(not errors, str(errors))
        if errors:
            return
        if self.name in OTHER_OPERATORS:
            self.expect(all(found for _, _, found in self.differences()), "the same operators now: can be compared")
            least, most = self.ours["min_cut"]["saved_bytes"], self.ours["default"]["saved_bytes"]
            self.expect(least < most, f"min-cut saves {least}, default {most}")
        else:
            if self.table != "core":
                self.check_operators()
            self.check_bytes()

    def row(self):
        if any("error" in report for report in self.ours.values()):
            return f"{self.name:28} {self.table:7} failed"
        cells = []
        for part in ("forward", "backward"):
            ours, python = (sum(computing(side["min_cut"][part]).values()) for side in (self.ours, self.python))
            cells.append(f"{ours:5} {python:5}")
        saved = [side[way]["saved_bytes"] for way in ("default", "min_cut") for side in (self.ours, self.python)]
        verdict = "other" if self.name in OTHER_OPERATORS else "bytes" if self.table == "core" else "same" if not any(found for _, _, found in self.differences()) else "known"
        numbers = "".join(f"{number:7}" for number in saved)
        return f"{self.name:28} {self.table:7} {cells[0]} {cells[1]} {numbers}  {'DIFFERS' if self.failures else verdict}"

    def texts(self):
        for way, part, found in self.differences():
            if found:
                yield f"--- {self.name}/{self.table} {way} {part} {found}\n{self.ours[way][part + '_text']}\n{self.python[way][part + '_text']}"


def our_reports(tool, wanted):
    done = subprocess.run([tool, *wanted], capture_output=True, text=True, check=True)
    first, *others = map(json.loads, done.stdout.splitlines())
    return first, others


def make_cases(reports, tables):
    cases = collections.OrderedDict()
    models = python_models()
    for report in reports:
        name, table, way = report["model"], report["table"], report["partitioner"]
        if (table == "core" and name not in CORE) or (table == "default" and name in OTHER_OPERATORS):
            continue
        case = cases.setdefault((name, table), Case(name, table))
        case.ours[way] = report
        module, inputs = models[name]
        case.python[way] = report_on(module, inputs, tables[table], way)
    return list(cases.values())


def print_reasons(cases):
    models = collections.defaultdict(dict)  # by reason, in order
    for (name, _, _, _), (_, reason) in KNOWN.items():
        models[reason][name] = True
    for name, reason in OTHER_OPERATORS.items():
        models[reason][name] = True
    there = {case.name for case in cases}
    for reason, names in models.items():
        if there & set(names):
            print(textwrap.fill(f"{', '.join(names)}: {reason}.", 100, subsequent_indent="  "))


def main():
    tool, *words = sys.argv[1:]
    wanted = [word for word in words if word != "--texts"]
    names, reports = our_reports(tool, wanted)
    tables = {"none": {}, **{table: same_table(operators) for table, operators in names.items()}}
    others = functorch_operators() ^ set(tables["default"])
    failures = [f"the default table is not functorch's: {others}"] if others else []
    cases = make_cases(reports, tables)
    print(HEADER)
    for case in cases:
        case.check()
        print(case.row(), flush=True)
        failures += case.failures
        if "--texts" in words:
            print(*case.texts(), sep="\n")
    unused = {(name, table) for name, table, _, _ in KNOWN} - {(case.name, case.table) for case in cases}
    if unused and not wanted:
        failures.append(f"known differences of models that are not there: {sorted(unused)}")
    print_reasons(cases)
    for failure in failures:
        print("FAILED", failure)
    print(f"{len(cases)} pairs of models, {len(failures)} failures")
    sys.exit(1 if failures or not cases else 0)


if __name__ == "__main__":
    main()
