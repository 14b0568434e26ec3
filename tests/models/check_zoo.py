"""Runs every exported model of the zoo with `halftone run` and compares its answers with PyTorch's.

    python check_zoo.py HALFTONE DIRECTORY [--only NAME] [--backend NAME]

HALFTONE is the program, DIRECTORY what export_zoo.py wrote. One line a model, then `N passed, M failed`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from safetensors import safe_open

from compare import differences

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools/halftone/tests"))
from many_calls import Calls  # noqa: E402

# What other backends than `eager` are held to where eager is exact: their kernels add in another order.
OTHER_BACKENDS = 1e-5
TIMEOUT_SECONDS = 120
PROCESSES = 2


def read(path: Path):
    """The tensors of a file, and the parsed `structure` of its metadata."""
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
        return {name: file.get_tensor(name) for name in file.keys()}, json.loads(metadata.get("structure", "null"))


@dataclass
class Checker:
    program: Path
    directory: Path
    backend: str | None

    def exact(self) -> bool:
        return self.backend in (None, "eager")

    def __post_init__(self):
        # One thread, as in export_zoo.py: how many there are decides in which order sums are added.
        self.calls = Calls(self.program, os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}, timeout=TIMEOUT_SECONDS)

    def halftone(self, model: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.calls("run", self.directory / model, *arguments, "--backend", self.backend or "eager")

    def compare(self, got_file: Path, expected: str, tolerance: float) -> list[str]:
        if not got_file.exists():
            return ["wrote no output file"]
        got, got_structure = read(got_file)
        want, structure = read(self.directory / expected)
        problems = differences(got, want, tolerance)
        if got_structure != structure:
            problems.append(f"structure is {got_structure}, expected {structure}")
        return problems

    def check_calls(self, entry: dict, scratch: Path) -> list[str]:
        """All calls in one session, in order."""
        outputs = [scratch / f"call{number}.safetensors" for number in range(len(entry["calls"]))]
        arguments = []
        for call, output in zip(entry["calls"], outputs):
            arguments += ["--inputs", str(self.directory / call["inputs"]), "--outputs", str(output)]
        result = self.halftone(entry["model"], *arguments)
        if result.returncode != 0:
            return [f"exit code {result.returncode}: {result.stderr.strip()}"]
        problems = []
        for number, (call, output) in enumerate(zip(entry["calls"], outputs)):
            tolerance = entry["tolerance"] if self.exact() else max(entry["tolerance"], OTHER_BACKENDS)
            found = self.compare(output, call["expected"], tolerance)
            if not found and self.exact() and "program" in call:
                found = self.compare(output, call["program"], 0.0)
            problems += [f"call {number}: {problem}" for problem in found]
        return problems

    def check_sample(self, entry: dict, scratch: Path) -> list[str]:
        """A new session on the sample inputs in the file: it must not know what the calls before it wrote."""
        if not entry["sample"]:
            return []
        output = scratch / "sample.safetensors"
        result = self.halftone(entry["model"], "--outputs", str(output))
        if result.returncode != 0:
            return [f"sample inputs: exit code {result.returncode}: {result.stderr.strip()}"]
        tolerance = entry["tolerance"] if self.exact() else max(entry["tolerance"], OTHER_BACKENDS)
        return [f"sample inputs: {problem}" for problem in self.compare(output, entry["sample"], tolerance)]

    def check_refusals(self, entry: dict) -> list[str]:
        problems = []
        for refusal in entry["refused"]:
            result = self.halftone(entry["model"], "--inputs", str(self.directory / refusal["inputs"]))
            if result.returncode != 1:
                problems.append(f"{refusal['inputs']}: exit code {result.returncode}, expected 1")
            # The file's name is in the message too, and must not stand in for the words that are asked for.
            message = result.stderr.replace(refusal["inputs"], "").replace(entry["model"], "")
            missing = [word for word in refusal["says"] if not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", message)]
            if missing:
                problems.append(f"{refusal['inputs']}: the message does not say {missing}: {result.stderr.strip()}")
        return problems

    def check(self, entry: dict) -> list[str]:
        try:
            with tempfile.TemporaryDirectory() as scratch:
                problems = self.check_calls(entry, Path(scratch))
                return problems + self.check_sample(entry, Path(scratch)) + self.check_refusals(entry)
        except subprocess.TimeoutExpired:
            return [f"still running after {TIMEOUT_SECONDS} s"]
        except Exception as error:  # an unreadable output file fails this model, not the whole run
            return [f"{type(error).__name__}: {error}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("halftone", type=Path)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--only", metavar="NAME", help="one model (its variants are models too)")
    parser.add_argument("--backend", metavar="NAME", help=f"given to halftone; all but eager may differ by {OTHER_BACKENDS:g}")
    options = parser.parse_args()
    entries = json.loads((options.directory / "manifest.json").read_text())["models"]
    if options.only:
        entries = [entry for entry in entries if entry["name"] == options.only]
    if not entries:
        print(f"no model called {options.only} in {options.directory}", file=sys.stderr)
        return 2
    checker = Checker(options.halftone.resolve(), options.directory.resolve(), options.backend)
    failed = 0
    with ThreadPoolExecutor(PROCESSES) as pool:
        for entry, problems in zip(entries, pool.map(checker.check, entries)):
            failed += bool(problems)
            print(f"{'FAILED' if problems else 'ok    '} {entry['name']}" + "".join(f"\n    {p}" for p in problems), flush=True)
    print(f"{len(entries) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
